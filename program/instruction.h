/** One instruction of a rank's program: the contract between the builder, the backends that run it, the simulation
 * that times it, and the replay that adds up its memory.
 *
 * Matrices are row-major and contiguous. Rows of activations are sequence-major: row = position x micro_batch +
 * sequence, so that slices of the sequence (sp, cp) are contiguous. `real` is the compute type of the program (fp64,
 * fp32 or bf16), `wide` what it accumulates in (fp64, fp32, fp32). Scalars are fp64, indices int32.
 */
#ifndef ND_PROGRAM_INSTRUCTION_H
#define ND_PROGRAM_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/decls.h"
#include "program/members.h"

ND_BEGIN_DECLS

/** Element types of buffers. */
typedef enum nd_elem { ND_ELEM_F64, ND_ELEM_F32, ND_ELEM_BF16, ND_ELEM_I32, ND_ELEM_COUNT } nd_elem;

/* X(enumerator, text): in[] -> out[]; [+] adds to what is there when `accumulate` is set, else overwrites. */
#define ND_INS_LIST(X)                                                                                                 \
    /* memory: before the first and after the last use of buffer out[0] */                                             \
    X(ND_INS_ALLOC, "alloc")                                                                                           \
    X(ND_INS_FREE, "free")                                                                                             \
    /* this stream goes on when instruction `waits_for` is done */                                                     \
    X(ND_INS_WAIT, "wait")                                                                                             \
    /* the micro-batch's own part of the sequence: out tokens[rows], labels[rows] (int32; label < 0: masked) */        \
    X(ND_INS_LOAD, "load")                                                                                             \
    /* labels[rows] -> out fp64 [+] number of labels that are not masked */                                            \
    X(ND_INS_COUNT_LABELS, "count_labels")                                                                             \
    X(ND_INS_ZERO, "zero") /* out[rows x cols], any type */                                                            \
    X(ND_INS_COPY, "copy") /* a -> out, any type; types may differ (rounded to nearest even) */                        \
    X(ND_INS_ADD, "add")   /* a + b -> out; out may be a or b; types may differ, the sum is wide */                    \
    /* out[m,n] [+] A[m,k] B[k,n]; trans_a: A is stored [k,m]; trans_b: B is stored [n,k]; A, B real; out real or      \
     * wide */                                                                                                         \
    X(ND_INS_GEMM, "gemm")                                                                                             \
    /* the same for `groups` experts: in[2] offsets int32[groups + 1]; rows offsets[e] .. offsets[e + 1] of the token  \
     * matrices belong to expert e. Without trans_a: A[rows,k], B stacked [groups][k,n] or [groups][n,k], out[rows,n]. \
     * With trans_a: A[rows,m], B[rows,n], out stacked [groups][m,n] [+], an expert without rows adds nothing (and is  \
     * zero without accumulate). */                                                                                    \
    X(ND_INS_GEMM_GROUPED, "gemm_grouped")                                                                             \
    X(ND_INS_BIAS, "bias")           /* x[rows,cols], bias[cols] -> out = x + bias; out may be x */                    \
    X(ND_INS_BIAS_GRAD, "bias_grad") /* dy[rows,cols] -> out wide[cols] [+] column sums */                             \
    /* x[rows,cols], weight[cols] or absent, bias[cols] or absent -> out y, out stats wide: 1/rms[rows] of RMSNorm,    \
     * mean[rows] then 1/deviation[rows] of LayerNorm (layer_norm set) */                                              \
    X(ND_INS_NORM, "norm")                                                                                             \
    /* x, weight, stats, dy -> out dx [+] real, dweight wide (always added) or absent, dbias wide (added) or absent */ \
    X(ND_INS_NORM_GRAD, "norm_grad")                                                                                   \
    /* x[rows, heads x dim] -> out (may be x): the `rot_dim` last of each head's `dim` columns are turned by           \
     * position x theta^(-2i/rot_dim), halves paired (i, i + rot_dim/2); `inverse` turns back */                       \
    X(ND_INS_ROPE, "rope")                                                                                             \
    /* q[q rows, heads x dim], k[kv rows, kv_heads x dim], v[kv rows, kv_heads x v_dim] -> out o[q rows, heads x       \
     * v_dim], lse wide[q rows x heads]; causal by the positions of q_map and kv_map, limited by window (chunked: to   \
     * the query's own chunk). `accumulate`: o and lse hold the result over other keys and are merged; a query without \
     * keys here keeps them (without accumulate: o 0, lse -inf). q head h reads kv head h x kv_heads / heads. o is     \
     * wide when accumulate is used, else real or wide. */                                                             \
    X(ND_INS_ATTENTION, "attention")                                                                                   \
    X(ND_INS_ATTENTION_DELTA, "attention_delta") /* o, do [q rows, heads x v_dim] -> delta wide[q rows x heads] */     \
    /* q, k, v, do, lse, delta -> out dq, dk, dv wide, always added; lse and delta are the final ones */               \
    X(ND_INS_ATTENTION_GRAD, "attention_grad")                                                                         \
    /* multi-head latent attention: up[rows, heads x (nope + v_dim)] of keys and values, rot[rows, rot_dim] shared by  \
     * the heads -> out k[rows, heads x (nope + rot_dim)], v[rows, heads x v_dim]; dim = nope + rot_dim */             \
    X(ND_INS_SPLIT_LATENT, "split_latent")                                                                             \
    X(ND_INS_SPLIT_LATENT_GRAD, "split_latent_grad") /* dk, dv -> out dup, drot (sum over heads) */                    \
    X(ND_INS_GLU, "glu")                             /* gate, up [rows,cols] -> out act(gate) x up */                  \
    X(ND_INS_GLU_GRAD, "glu_grad")                   /* gate, up, dout -> out dgate, dup */                            \
    X(ND_INS_ACTIVATION, "activation")               /* x -> out act(x) */                                             \
    X(ND_INS_ACTIVATION_GRAD, "activation_grad")     /* x, dout -> out dx */                                           \
    /* ids int32[rows], table[vocab_rows, cols] -> out[rows,cols]; ids outside vocab_first .. + vocab_rows: 0 */       \
    X(ND_INS_EMBED, "embed")                                                                                           \
    X(ND_INS_EMBED_GRAD, "embed_grad") /* ids, dx -> out dtable wide, added row by row in order of the ids */          \
    X(ND_INS_POSITIONS, "positions")   /* -> out int32[rows]: position of every row by q_map */                        \
    /* vocabulary-parallel cross-entropy; logits[rows, vocab_rows] of columns vocab_first ..; columns >= vocab do not  \
     * exist (padding) */                                                                                              \
    X(ND_INS_LOSS_MAX, "loss_max") /* logits -> out wide[rows], -inf when no column exists */                          \
    X(ND_INS_LOSS_SUM, "loss_sum") /* logits, max, labels -> out wide[2 x rows]: sums of exp(logit - max), then target \
                                      logits (0 where another rank holds the target or the label is masked) */         \
    /* logits, max, sums, labels, count fp64 -> out dlogits (may be logits) = (softmax - target) / count, 0 where      \
     * masked and in padding; out loss fp64 += loss_weight x sum of (log(sum) + max - target logit) / count; a count   \
     * of 0 gives zeros */                                                                                             \
    X(ND_INS_LOSS, "loss")                                                                                             \
    /* logits[rows,experts], bias[experts] or absent (wide) -> out probs wide[rows,experts] (softmax), experts         \
     * int32[rows,topk] by falling probability (ties: lower expert), weights wide[rows,topk] = probs / their sum */    \
    X(ND_INS_ROUTE, "route")                                                                                           \
    X(ND_INS_ROUTE_GRAD, "route_grad") /* probs, experts, weights, dweights wide -> out dlogits real[rows,experts] */  \
    /* experts int32[rows,topk] -> out slots int32[rows x topk]: place of each copy when sorted by expert, then row;   \
     * offsets int32[experts + 1]; counts int32[experts] */                                                            \
    X(ND_INS_SORT, "sort")                                                                                             \
    /* After an all-to-all of counts. own counts int32[experts], received int32[parts][experts/parts] -> out slots     \
     * int32[rows] of the received rows (by source, then expert) when sorted by expert, then source; offsets           \
     * int32[experts/parts + 1]; send_rows int32[parts]; receive_rows int32[parts] */                                  \
    X(ND_INS_REGROUP, "regroup")                                                                                       \
    X(ND_INS_ROWS_SCATTER, "rows_scatter") /* x, slots int32[rows] -> out[slots[i]] = x[i / copies]; cols wide rows */ \
    /* y, slots int32[rows x copies], weights wide or absent -> out[i] [+] sum over j of weight x y[slots[i x copies + \
     * j]] */                                                                                                          \
    X(ND_INS_ROWS_COMBINE, "rows_combine")                                                                             \
    /* y, slots, weights, dout -> out dy[slots[..]] = weight x dout[i]; dweights wide[rows x copies] = dout[i] . y */  \
    X(ND_INS_ROWS_COMBINE_GRAD, "rows_combine_grad")                                                                   \
    X(ND_INS_ROW_GATE, "row_gate")           /* x[rows,cols], g[rows] -> out sigmoid(g) x x */                         \
    X(ND_INS_ROW_GATE_GRAD, "row_gate_grad") /* x, g, dout -> out dx, dg[rows] */                                      \
    /* x[rows, heads x dim] -> out[parts][rows, h x dim], h = max(heads/parts, 1): part p holds heads p x heads/parts  \
     * .. (the same head for several parts when there are fewer heads than parts) */                                   \
    X(ND_INS_PACK, "pack")                                                                                             \
    X(ND_INS_UNPACK, "unpack")           /* the reverse; a head that several parts hold is their sum (sum set) or the  \
                                            first one's */                                                             \
    X(ND_INS_SUM_SQUARES, "sum_squares") /* x wide[rows x cols] -> out fp64 [+] sum of x^2 */                          \
    X(ND_INS_CLIP, "clip") /* sum of squares fp64 -> out norm fp64, scale fp64 = min(1, max_norm / (norm + 1e-6)) */   \
    /* grad wide, scale fp64 -> out master wide, m wide, v wide [rows x cols], all updated; out[3] weight real or      \
     * absent: the master rounded. Learning rate, betas and step are the run's; `decay`: weight decay applies. */      \
    X(ND_INS_ADAMW, "adamw")                                                                                           \
    /* collectives over `group`; rows x cols elements of the smaller side (a rank's part); any type */                 \
    X(ND_INS_ALL_REDUCE, "all_reduce") /* in -> out, may be the same; `max` instead of a sum */                        \
    X(ND_INS_ALL_GATHER, "all_gather") /* part -> out [members] parts; part may lie in its place in out */             \
    /* [members] parts -> out own part summed; out may be its place in in; the rest of in may be overwritten too */    \
    X(ND_INS_REDUCE_SCATTER, "reduce_scatter")                                                                         \
    X(ND_INS_ALL_TO_ALL, "all_to_all") /* [members] parts -> out: part i goes to member i; never in place */           \
    /* x (rows of cols), send_rows int32[members], receive_rows int32[members] -> out, by source; rows: most that can  \
     * arrive; copies: rows of the rank's own tokens, which leave on the way there and arrive on the way back */       \
    X(ND_INS_ALL_TO_ALL_ROWS, "all_to_all_rows")                                                                       \
    X(ND_INS_SHIFT, "shift") /* in goes to the next member of the ring, out comes from the one before */               \
    X(ND_INS_SEND, "send")   /* starts to send in to rank `peer`, in order per pair and channel */                     \
    /* the buffer of send `waits_for` may be reused; peer, channel and in like that send (in absent: the buffers of    \
     * all sends to that peer and channel so far) */                                                                   \
    X(ND_INS_SEND_WAIT, "send_wait")                                                                                   \
    X(ND_INS_RECV, "recv") /* out comes from rank `peer` */

typedef enum nd_ins_op {
#define ND_INS_ENUM(name, text) name,
    ND_INS_LIST(ND_INS_ENUM)
#undef ND_INS_ENUM
        ND_INS_COUNT
} nd_ins_op;

/** Streams of a rank: instructions of one run in order, of different ones at the same time unless they wait. */
typedef enum nd_stream {
    ND_STREAM_COMPUTE,
    ND_STREAM_GATHER, /* weights of the next unit */
    ND_STREAM_REDUCE, /* gradients */
    ND_STREAM_RING,   /* keys and values of context parallelism */
    ND_STREAM_SEND,   /* pipeline */
    ND_STREAM_RECV,
    ND_STREAM_COUNT
} nd_stream;

/** What memory is for. */
#define ND_MEMORY_CLASS_LIST(X)                                                                                        \
    X(ND_MEMORY_WEIGHTS, "weights")                                                                                    \
    X(ND_MEMORY_GRADS, "grads")                                                                                        \
    X(ND_MEMORY_OPTIMIZER, "optimizer")                                                                                \
    X(ND_MEMORY_ACTIVATIONS, "activations") /* kept for the backward pass */                                           \
    X(ND_MEMORY_GATHERED, "gathered")       /* whole weights and gradients of a unit */                                \
    X(ND_MEMORY_LOGITS, "logits")                                                                                      \
    X(ND_MEMORY_WORKSPACE, "workspace") /* everything that lives within a pass */

typedef enum nd_memory_class {
#define ND_MEMORY_ENUM(name, text) name,
    ND_MEMORY_CLASS_LIST(ND_MEMORY_ENUM)
#undef ND_MEMORY_ENUM
        ND_MEMORY_CLASS_COUNT
} nd_memory_class;

typedef enum nd_activation { ND_ACTIVATION_SILU, ND_ACTIVATION_GELU /* tanh form */ } nd_activation;

/** Which positions of the sequence rows are, `micro_batch` rows each.
 *
 * Zigzag: the sequence is cut into 2 cp chunks and member r holds chunks r and 2 cp - 1 - r; else member r holds the
 * r-th of cp equal pieces. `member` -1: all members' pieces, one after the other. `first` skips positions of that list
 * (sequence parallelism). */
typedef struct nd_seq_map {
    int64_t seq_len;
    int32_t cp;
    int32_t member;
    bool zigzag;
    int64_t first, positions; /* the part of the list that the rows are */
} nd_seq_map;

/** Position in the sequence of entry `index` (from 0) of the map. */
int64_t nd_seq_map_position(const nd_seq_map *map, int64_t index);

/** `offset` elements into buffer `buffer`; buffer 0: absent. */
typedef struct nd_ref {
    int32_t buffer;
    int64_t offset;
} nd_ref;

enum { ND_INS_IN_MAX = 6, ND_INS_OUT_MAX = 4 };

typedef struct nd_ins {
    nd_ins_op op;
    nd_stream stream;
    nd_ref in[ND_INS_IN_MAX];
    nd_ref out[ND_INS_OUT_MAX];
    nd_ref live_rows; /* int32: how many of `rows` exist in this run (experts); absent: all */

    int64_t rows, cols;
    int64_t m, n, k, groups; /* gemm */
    int64_t heads, kv_heads, dim, v_dim;
    int64_t copies, parts;                  /* experts; pack */
    int64_t vocab, vocab_first, vocab_rows; /* embed, loss */
    int64_t window;                         /* attention: keys a query sees at most; 0: all */
    int64_t rot_dim;                        /* rope */
    int32_t micro_batch;                    /* sequences, of rope, attention, positions, load */
    nd_seq_map q_map, kv_map;               /* of x for rope, positions and load (q_map) */
    double theta, scale, loss_weight, max_norm, eps;
    nd_activation activation;
    bool trans_a, trans_b, accumulate, chunked, layer_norm, inverse, sum, max, decay;

    nd_members_kind group; /* collectives */
    int32_t peer;          /* send, recv: global rank */
    int32_t channel;       /* send, recv: 0 activations, 1 gradients */
    int32_t waits_for;     /* wait, send_wait: index of an instruction */

    /* where it comes from */
    int32_t layer;   /* of the model; -1: embedding, head or none */
    int32_t micro;   /* micro-batch, -1: once a step */
    int8_t pass;     /* nd_pass */
    const char *tag; /* "attn.q", "ffn.down.wgrad", ...; static storage */
} nd_ins;

const char *nd_ins_name(nd_ins_op op);        /* "gemm"; never NULL */
const char *nd_stream_name(nd_stream stream); /* "compute" */
const char *nd_memory_class_name(nd_memory_class memory_class);
const char *nd_elem_name(nd_elem elem);
int64_t nd_elem_bytes(nd_elem elem);

/** Collectives, sends and receives. */
bool nd_ins_communicates(nd_ins_op op);

ND_END_DECLS

#endif
