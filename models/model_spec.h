/** A decoder-only transformer: its shapes and what follows from them.
 *
 * Layers differ in at most four ways (dense or MoE feed-forward, full or windowed attention), so a model is a
 * few layer kinds and, per layer, which kind it is. Everything else is the same in all layers.
 */
#ifndef ND_MODELS_MODEL_SPEC_H
#define ND_MODELS_MODEL_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

ND_BEGIN_DECLS

enum { ND_MODEL_LAYERS_MAX = 1024, ND_LAYER_KINDS_MAX = 4, ND_MODEL_NAME_MAX = 96 };

typedef enum nd_attention_kind {
    ND_ATTENTION_GQA, /* multi-head and multi-query included: kv_heads from 1 to heads */
    ND_ATTENTION_MLA  /* multi-head latent attention of DeepSeek */
} nd_attention_kind;

typedef enum nd_ffn_kind {
    ND_FFN_SWIGLU, /* gate, up, down */
    ND_FFN_GEGLU,  /* gate, up, down */
    ND_FFN_GELU,   /* up, down; relu too */
} nd_ffn_kind;

typedef enum nd_norm_kind { ND_NORM_RMS, ND_NORM_LAYER } nd_norm_kind;

typedef enum nd_qk_norm {
    ND_QK_NORM_NONE,
    ND_QK_NORM_HEAD,      /* weights over head_dim, shared by the heads (Qwen3, Gemma3) */
    ND_QK_NORM_FULL,      /* weights over the whole projection (OLMo2) */
    ND_QK_NORM_UNWEIGHTED /* no weights (Llama-4) */
} nd_qk_norm;

/* How a tensor-parallel plan divides the projections (design of Hugging Face's plans). */
typedef enum nd_tp_plan {
    ND_TP_PLAN_FULL,     /* attention and feed-forward divided */
    ND_TP_PLAN_GATHERED, /* weights divided, projected outputs gathered: attention runs whole (OLMo2, Phi3) */
    ND_TP_PLAN_MLP_ONLY, /* attention whole (DeepSeek-V3) */
    ND_TP_PLAN_NONE      /* no plan in transformers (gpt2, opt, falcon, gpt_oss) */
} nd_tp_plan;

typedef struct nd_layer_kind {
    bool moe;              /* expert feed-forward instead of dense */
    int64_t window_tokens; /* keys a query can see at most; 0: all before it */
    int64_t layers;        /* how many layers are of this kind */
    bool chunked;          /* window_tokens is a chunk: a query sees its own chunk only (Llama-4) */
} nd_layer_kind;

typedef struct nd_model_spec {
    char name[ND_MODEL_NAME_MAX];
    char family[32]; /* model_type of config.json */
    int64_t hidden;
    int64_t layers;
    int64_t vocab;
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;           /* GQA; for MLA see below */
    int64_t max_seq_len_tokens; /* max_position_embeddings, 0 when unknown */

    nd_attention_kind attention;
    int64_t mla_q_rank; /* 0: no query compression */
    int64_t mla_kv_rank;
    int64_t mla_nope_dim;
    int64_t mla_rope_dim;
    int64_t mla_v_dim;

    bool q_bias, kv_bias, o_bias;
    bool attention_sinks; /* one learned scalar a head (gpt-oss) */
    nd_qk_norm qk_norm;

    nd_ffn_kind ffn;
    int64_t ffn_hidden; /* dense layers; 0 when every layer is MoE and none is dense */
    bool ffn_bias;

    int64_t experts; /* 0: dense model */
    int64_t experts_topk;
    int64_t moe_ffn_hidden;    /* of one routed expert */
    int64_t shared_ffn_hidden; /* of all shared experts together, 0 when none */
    bool shared_gate;          /* hidden -> 1 gate on the shared expert (Qwen2-MoE) */
    bool router_bias;
    bool expert_bias;

    nd_norm_kind norm;
    int64_t norms_per_layer; /* 2; 4 in Gemma2/3; 1 in Falcon-7B */
    bool final_norm;

    bool tied_embeddings;
    int64_t learned_positions; /* rows of a learned position table, 0: rotary or none */
    int64_t embed_dim;         /* width of the embedding when it is not hidden (OPT-350M), else = hidden */

    nd_tp_plan tp_plan;

    int64_t layer_kinds_count;
    nd_layer_kind layer_kinds[ND_LAYER_KINDS_MAX];
    uint8_t kind_of_layer[ND_MODEL_LAYERS_MAX];

    char note[192]; /* what the reader assumed or left out ("vision tower not counted"), or empty */
} nd_model_spec;

/** Parameter counts; all exact integers. */
typedef struct nd_param_counts {
    int64_t total;           /* every trainable parameter once */
    int64_t active;          /* the same with experts_topk instead of all experts; both embeddings counted */
    int64_t input_embedding; /* vocab x embed_dim */
    int64_t positions;       /* learned positions, and OPT's embedding projections */
    int64_t head;            /* 0 when tied */
    int64_t final_norm;
    int64_t attention_layer; /* projections, biases, QK norms, sinks of one layer */
    int64_t norms_layer;
    int64_t dense_ffn_layer; /* 0 when there is no dense layer */
    int64_t router_layer;    /* of one MoE layer, shared-expert gate included */
    int64_t shared_layer;    /* shared experts of one MoE layer */
    int64_t expert;          /* one routed expert */
    int64_t moe_layers;
    int64_t experts_total; /* all routed experts of all layers */
} nd_param_counts;

/** How attention FLOPs are counted: over the whole s x s score matrix, or the causal half (and windows). */
typedef enum nd_flops_convention { ND_FLOPS_FULL, ND_FLOPS_CAUSAL } nd_flops_convention;

/** Resolve what `--model` was given: a built-in name (case, '.', '-', '_' and the organisation prefix do not
 * matter), a config.json, or a directory that holds one.
 *
 * \param[in] assume_llama  read an unknown model_type as Llama-like instead of refusing it (noted in out->note)
 * \return ND_ENOTFOUND with the nearest built-in name; ND_EPARSE with file, line, column; ND_EUNSUPPORTED for an
 *         unknown model_type, with the supported ones and what would be assumed.
 */
nd_status nd_model_load(const char *name_or_path, bool assume_llama, nd_model_spec *out, nd_error *err) ND_NODISCARD;

/** Parse the text of a config.json; `origin` stands for its name in messages and becomes the model's name
 * unless the config has _name_or_path. */
nd_status nd_model_parse(const char *text, size_t length, const char *origin, bool assume_llama, nd_model_spec *out,
                         nd_error *err) ND_NODISCARD;

/** Built-in models in alphabetical order: `index` from 0 to nd_model_builtin_count() - 1. */
size_t nd_model_builtin_count(void);
const char *nd_model_builtin_name(size_t index);

/** Consistency of a spec (every count positive, heads divide, top-k within experts, kinds add up). */
nd_status nd_model_check(const nd_model_spec *model, nd_error *err) ND_NODISCARD;

/** Exact parameter counts. `model` passed nd_model_check(). Equations: docs/MODEL.md, section "Parameters". */
nd_param_counts nd_model_params(const nd_model_spec *model);

/** Keys that the queries of one sequence see in total: s^2 (full convention), the causal triangle
 * s(s+1)/2 limited by the window otherwise. */
double nd_attention_pairs(int64_t seq_len_tokens, int64_t window_tokens, nd_flops_convention convention);

/** The same for one layer of this kind: a chunked layer counts the triangles of its chunks, fewer than a window. */
double nd_layer_kind_pairs(const nd_layer_kind *kind, int64_t seq_len_tokens, nd_flops_convention convention);

/** Model FLOPs of forward + backward for one token at this sequence length (no recompute), head included, input
 * embedding lookup not. Multiply by tokens for a step. Equation: docs/MODEL.md, "FLOPs". */
double nd_model_flops_per_token(const nd_model_spec *model, int64_t seq_len_tokens, nd_flops_convention convention);

/** Number of matrices in a feed-forward of this kind: 3 with a gate, else 2. */
int64_t nd_ffn_matrices(nd_ffn_kind kind);

/** Dims of the query-key and value products of one head (head_dim twice for GQA; MLA differs). */
int64_t nd_model_qk_dim(const nd_model_spec *model);
int64_t nd_model_v_dim(const nd_model_spec *model);

ND_END_DECLS

#endif
