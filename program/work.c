#include "program/work.h"

/** How the elements of an operation are counted. */
typedef enum shape {
    SHAPE_NONE,   /* ALLOC, FREE, WAIT: nothing is done */
    SHAPE_CALL,   /* the same for every size */
    SHAPE_MATRIX, /* rows x cols */
    SHAPE_ROWS,
    SHAPE_VOCABULARY, /* rows x vocab_rows */
    SHAPE_HEADS,      /* rows x heads x rot_dim */
    SHAPE_LATENT,     /* rows x heads x (dim + v_dim) */
    SHAPE_VALUES,     /* rows x heads x v_dim */
    SHAPE_PLACES,     /* rows x copies */
    SHAPE_COPIES,     /* rows x cols x copies */
    SHAPE_ROUTE,      /* rows x cols x copies: the best of cols, copies times */
    SHAPE_GEMM,
    SHAPE_GROUPED,
    SHAPE_ATTENTION,
    SHAPE_COLLECTIVE,
    SHAPE_MESSAGE
} shape;

static const shape shape_of[ND_INS_COUNT] = {
    [ND_INS_ALLOC] = SHAPE_NONE,
    [ND_INS_FREE] = SHAPE_NONE,
    [ND_INS_WAIT] = SHAPE_NONE,
    [ND_INS_LOAD] = SHAPE_ROWS,
    [ND_INS_COUNT_LABELS] = SHAPE_ROWS,
    [ND_INS_ZERO] = SHAPE_MATRIX,
    [ND_INS_COPY] = SHAPE_MATRIX,
    [ND_INS_ADD] = SHAPE_MATRIX,
    [ND_INS_GEMM] = SHAPE_GEMM,
    [ND_INS_GEMM_GROUPED] = SHAPE_GROUPED,
    [ND_INS_BIAS] = SHAPE_MATRIX,
    [ND_INS_BIAS_GRAD] = SHAPE_MATRIX,
    [ND_INS_NORM] = SHAPE_MATRIX,
    [ND_INS_NORM_GRAD] = SHAPE_MATRIX,
    [ND_INS_ROPE] = SHAPE_HEADS,
    [ND_INS_ATTENTION] = SHAPE_ATTENTION,
    [ND_INS_ATTENTION_DELTA] = SHAPE_VALUES,
    [ND_INS_ATTENTION_GRAD] = SHAPE_ATTENTION,
    [ND_INS_SPLIT_LATENT] = SHAPE_LATENT,
    [ND_INS_SPLIT_LATENT_GRAD] = SHAPE_LATENT,
    [ND_INS_GLU] = SHAPE_MATRIX,
    [ND_INS_GLU_GRAD] = SHAPE_MATRIX,
    [ND_INS_ACTIVATION] = SHAPE_MATRIX,
    [ND_INS_ACTIVATION_GRAD] = SHAPE_MATRIX,
    [ND_INS_EMBED] = SHAPE_MATRIX,
    [ND_INS_EMBED_GRAD] = SHAPE_MATRIX,
    [ND_INS_POSITIONS] = SHAPE_ROWS,
    [ND_INS_LOSS_MAX] = SHAPE_VOCABULARY,
    [ND_INS_LOSS_SUM] = SHAPE_VOCABULARY,
    [ND_INS_LOSS] = SHAPE_VOCABULARY,
    [ND_INS_ROUTE] = SHAPE_ROUTE,
    [ND_INS_ROUTE_GRAD] = SHAPE_MATRIX,
    [ND_INS_SORT] = SHAPE_PLACES,
    [ND_INS_REGROUP] = SHAPE_ROWS,
    [ND_INS_ROWS_SCATTER] = SHAPE_MATRIX,
    [ND_INS_ROWS_COMBINE] = SHAPE_COPIES,
    [ND_INS_ROWS_COMBINE_GRAD] = SHAPE_COPIES,
    [ND_INS_ROW_GATE] = SHAPE_MATRIX,
    [ND_INS_ROW_GATE_GRAD] = SHAPE_MATRIX,
    [ND_INS_PACK] = SHAPE_MATRIX,
    [ND_INS_UNPACK] = SHAPE_MATRIX,
    [ND_INS_SUM_SQUARES] = SHAPE_MATRIX,
    [ND_INS_CLIP] = SHAPE_CALL,
    [ND_INS_ADAMW] = SHAPE_MATRIX,
    [ND_INS_ALL_REDUCE] = SHAPE_COLLECTIVE,
    [ND_INS_ALL_GATHER] = SHAPE_COLLECTIVE,
    [ND_INS_REDUCE_SCATTER] = SHAPE_COLLECTIVE,
    [ND_INS_ALL_TO_ALL] = SHAPE_COLLECTIVE,
    [ND_INS_ALL_TO_ALL_ROWS] = SHAPE_COLLECTIVE,
    [ND_INS_SHIFT] = SHAPE_COLLECTIVE,
    [ND_INS_SEND] = SHAPE_CALL,
    [ND_INS_SEND_WAIT] = SHAPE_CALL,
    [ND_INS_RECV] = SHAPE_MESSAGE,
};

const char *nd_work_term_name(nd_ins_op op, int32_t term)
{
    static const char *const product[ND_WORK_TERMS] = {"call", "flop", "operand", "result"};
    static const char *const attention[ND_WORK_TERMS] = {"call", "flop", "score", "operand"};
    static const char *const collective[ND_WORK_TERMS] = {"call", "byte", "far_byte", "member"};
    static const char *const message[ND_WORK_TERMS] = {"call", "byte", "far_byte", ""};
    static const char *const other[ND_WORK_TERMS] = {"call", "element", "far_element", ""};
    switch ((int)shape_of[op]) {
    case SHAPE_NONE:
        return "";
    case SHAPE_CALL:
        return term == 0 ? "call" : "";
    case SHAPE_GEMM:
    case SHAPE_GROUPED:
        return product[term];
    case SHAPE_ATTENTION:
        return attention[term];
    case SHAPE_COLLECTIVE:
        return collective[term];
    case SHAPE_MESSAGE:
        return message[term];
    default:
        return other[term];
    }
}

/* The position run of the map that entry `index` begins, as long as positions follow each other. */
static int64_t run_length(const nd_seq_map *map, int64_t index)
{
    int64_t first = nd_seq_map_position(map, index);
    int64_t count = 1;
    while (index + count < map->positions && nd_seq_map_position(map, index + count) == first + count) {
        count++;
    }
    return count;
}

/* First position that a query at `position` sees. */
static int64_t oldest(const nd_ins *ins, int64_t position)
{
    if (ins->window == 0) {
        return 0;
    }
    int64_t first = ins->chunked ? position / ins->window * ins->window : position - ins->window + 1;
    return first > 0 ? first : 0;
}

/* Keys at the positions from .. to (included) among those of the map. */
static int64_t keys_between(const nd_seq_map *map, int64_t from, int64_t to)
{
    int64_t keys = 0;
    for (int64_t i = 0; i < map->positions;) {
        int64_t count = run_length(map, i);
        int64_t position = nd_seq_map_position(map, i);
        int64_t first = from > position ? from : position;
        int64_t last = to < position + count - 1 ? to : position + count - 1;
        keys += last >= first ? last - first + 1 : 0;
        i += count;
    }
    return keys;
}

int64_t nd_attention_scores(const nd_ins *ins)
{
    enum { BLOCK = 64 }; /* rows, as in the processor's kernel and in flash attention */
    int64_t scores = 0;
    for (int64_t i = 0; i < ins->q_map.positions;) {
        int64_t count = run_length(&ins->q_map, i);
        int64_t position = nd_seq_map_position(&ins->q_map, i);
        for (int64_t row = 0; row < count; row += BLOCK) {
            int64_t rows = count - row < BLOCK ? count - row : BLOCK;
            int64_t last = position + row + rows - 1;
            scores += rows * keys_between(&ins->kv_map, oldest(ins, position + row), last);
        }
        i += count;
    }
    return scores;
}

/* Matrix products of one score element: two forward, five backward. */
static nd_ins_work attention(const nd_ins *ins)
{
    double heads = (double)ins->heads * (double)ins->micro_batch;
    double kv_heads = (double)ins->kv_heads * (double)ins->micro_batch;
    double scores = (double)nd_attention_scores(ins) * heads;
    double flops =
        2.0 * (double)(ins->op == ND_INS_ATTENTION_GRAD ? 3 * ins->dim + 2 * ins->v_dim : ins->dim + ins->v_dim);
    double elements = (heads * (double)ins->q_map.positions + kv_heads * (double)ins->kv_map.positions) *
                      (double)(ins->dim + ins->v_dim);
    return (nd_ins_work){{heads, scores * flops, scores, elements}};
}

static nd_ins_work product(double groups, double m, double n, double k, bool trans_a)
{
    double weights = trans_a ? m * n * groups : k * n * groups;
    double rows = trans_a ? k : m; /* of all groups together */
    double inner = trans_a ? m : k;
    double operands = trans_a ? rows * (m + n) : rows * inner + weights;
    double results = trans_a ? weights : rows * n;
    return (nd_ins_work){{groups, 2.0 * m * n * k, operands, results}};
}

/* The part of the rows that exists when all experts get the same. */
static double live_frac(const nd_program *program, const nd_ins *ins)
{
    bool of_experts = ins->live_rows.buffer != 0 || ins->op == ND_INS_GEMM_GROUPED || ins->op == ND_INS_REGROUP;
    return of_experts ? program->expert_rows_frac : 1.0;
}

/* Bytes that a rank reads: of a reduction all parts of its slice, then, to gather, the others' results. */
static double bytes_read(const nd_program *program, const nd_ins *ins, int32_t members)
{
    double part = (double)(ins->rows * ins->cols) * (double)nd_elem_bytes(program->buffers[ins->out[0].buffer].elem);
    double others = (double)(members - 1) / (double)members;
    switch ((int)ins->op) {
    case ND_INS_ALL_REDUCE:
        return part * (1.0 + others);
    case ND_INS_ALL_GATHER:
        return part * (double)(members - 1);
    case ND_INS_REDUCE_SCATTER:
    case ND_INS_ALL_TO_ALL:
        return part * (double)members;
    case ND_INS_ALL_TO_ALL_ROWS: /* `rows` is the most that can arrive, from all members */
        return (double)(ins->copies * ins->cols) * (double)nd_elem_bytes(program->buffers[ins->out[0].buffer].elem);
    default:
        return part;
    }
}

static double elements(const nd_ins *ins)
{
    double rows = (double)ins->rows;
    double cols = (double)ins->cols;
    switch ((int)shape_of[ins->op]) {
    case SHAPE_ROWS:
        return rows;
    case SHAPE_PLACES:
        return rows * (double)ins->copies;
    case SHAPE_VOCABULARY:
        return rows * (double)ins->vocab_rows;
    case SHAPE_HEADS:
        return rows * (double)(ins->heads * ins->rot_dim);
    case SHAPE_LATENT:
        return rows * (double)(ins->heads * (ins->dim + ins->v_dim));
    case SHAPE_VALUES:
        return rows * (double)(ins->heads * ins->v_dim);
    case SHAPE_COPIES:
    case SHAPE_ROUTE:
        return rows * cols * (double)(ins->copies > 0 ? ins->copies : 1);
    default:
        return rows * cols;
    }
}

/* Second level caches of the processors of these years hold 1 to 2 MiB: what goes over more than that waits for the
 * next level, whatever it computes. */
static const double near_bytes = 1048576.0;

static double beyond(double units, double unit_bytes)
{
    double far = units - near_bytes / unit_bytes;
    return far > 0.0 ? far : 0.0;
}

static double element_bytes(const nd_program *program, const nd_ins *ins)
{
    nd_ref larger = ins->op == ND_INS_SUM_SQUARES ? ins->in[0] : ins->out[0];
    return (double)nd_elem_bytes(program->buffers[larger.buffer].elem);
}

nd_ins_work nd_ins_work_of(const nd_program *program, const nd_ins *ins, int32_t members)
{
    double live = live_frac(program, ins);
    switch ((int)shape_of[ins->op]) {
    case SHAPE_NONE:
        return (nd_ins_work){{0.0}};
    case SHAPE_CALL:
        return (nd_ins_work){{1.0}};
    case SHAPE_GEMM:
        return product(1.0, (double)ins->m, (double)ins->n, (double)ins->k, ins->trans_a);
    case SHAPE_GROUPED: {
        double rows = (double)ins->rows * live;
        return ins->trans_a ? product((double)ins->groups, (double)ins->m, (double)ins->n, rows, true)
                            : product((double)ins->groups, rows, (double)ins->n, (double)ins->k, false);
    }
    case SHAPE_ATTENTION:
        return attention(ins);
    case SHAPE_COLLECTIVE: {
        double bytes = bytes_read(program, ins, members);
        return (nd_ins_work){{1.0, bytes, beyond(bytes, 1.0), members > 2 ? (double)(members - 2) : 0.0}};
    }
    case SHAPE_MESSAGE: {
        double bytes = bytes_read(program, ins, 2);
        return (nd_ins_work){{1.0, bytes, beyond(bytes, 1.0)}};
    }
    default: {
        double count = elements(ins) * live;
        return (nd_ins_work){{1.0, count, beyond(count, element_bytes(program, ins))}};
    }
    }
}
