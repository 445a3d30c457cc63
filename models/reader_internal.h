/** Private to models/: what the family readers share. A reader fills a spec from the keys of one JSON object. */
#ifndef ND_MODELS_READER_INTERNAL_H
#define ND_MODELS_READER_INTERNAL_H

#include "core/json.h"
#include "core/resource.h"
#include "models/model_spec.h"

/* Bounds that no real model comes near; beyond them a config is a mistake, and products could overflow. */
#define ND_HIDDEN_MAX    INT64_C(1000000)
#define ND_FFN_MAX       INT64_C(10000000)
#define ND_VOCAB_MAX     INT64_C(100000000)
#define ND_HEADS_MAX     INT64_C(65536)
#define ND_HEAD_DIM_MAX  INT64_C(65536)
#define ND_EXPERTS_MAX   INT64_C(65536)
#define ND_POSITIONS_MAX INT64_C(1000000000)
#define ND_PARAMS_MAX    1e15

extern const nd_resource nd_model_resources[]; /* configs/, embedded at build time */

typedef struct nd_reader_layer {
    bool moe;
    bool chunked;
    int64_t window_tokens;
} nd_reader_layer;

typedef struct nd_model_reader {
    nd_json object; /* holds the keys of the text model */
    nd_json outer;  /* the whole config; the same object unless nested */
    nd_model_spec *spec;
    nd_error *err;
    nd_reader_layer layer[ND_MODEL_LAYERS_MAX];
} nd_model_reader;

/* What tells one Llama-like family from another. 0 as a default: the key must be there, or follows from others. */
typedef struct nd_llama_traits {
    int64_t hidden, layers, heads; /* defaults, 0: required */
    int64_t ffn_hidden;            /* default, 0: required, -1: the family reads it by itself */
    int64_t vocab;                 /* default, 0: required */
    int64_t positions;             /* default of max_position_embeddings, 0: unknown */
    int64_t kv_heads;              /* default, 0: as many as heads */
    int64_t head_dim;              /* default, 0: hidden / heads */
    bool no_head_dim_key;          /* the family has no head_dim of its own */
    bool tied;
    bool qkv_bias;       /* always, whatever the config says */
    bool attention_bias; /* default of the key attention_bias */
    bool mlp_bias_key;
    nd_qk_norm qk_norm;
    nd_tp_plan tp_plan;
} nd_llama_traits;

/* config_reader.c */
nd_status nd_reader_document(const nd_json_doc *doc, const char *origin, bool assume_llama, nd_model_spec *out,
                             nd_error *err) ND_NODISCARD;

/* builtin.c */
/** The built-in that `name` means, or NULL; `dropped` gets words of the name that were ignored ("instruct"), or "".
 */
const nd_resource *nd_builtin_find(const char *name, char *dropped, size_t dropped_bytes);

/* readers_common.c: keys. `old_key` (or NULL) is another name of the same thing. */
bool nd_reader_find(const nd_model_reader *r, const char *key, const char *old_key, nd_json *out);
/** Where an error about this key points: its value, or the object when the key is absent. */
nd_json nd_reader_at(const nd_model_reader *r, const char *key, const char *old_key);
/** Required when `missing` is 0, else that is the value of a missing key. null is refused. */
nd_status nd_reader_count(const nd_model_reader *r, const char *key, const char *old_key, int64_t max, int64_t missing,
                          int64_t *out) ND_NODISCARD;
/** A key that may be null, and whose values start at `min`. */
nd_status nd_reader_nullable(const nd_model_reader *r, const char *key, const char *old_key, int64_t min, int64_t max,
                             int64_t missing, int64_t if_null, int64_t *out) ND_NODISCARD;
/** null reads as false, as in Python. */
nd_status nd_reader_flag(const nd_model_reader *r, const char *key, const char *old_key, bool missing,
                         bool *out) ND_NODISCARD;
/** tie_word_embeddings of the inner object, else of the outer one, else `missing`. */
nd_status nd_reader_tied(const nd_model_reader *r, bool missing) ND_NODISCARD;
/** Append to spec->note, separated by "; ". */
void nd_reader_note(nd_model_spec *spec, const char *format, ...) ND_PRINTF(2, 3);
/** ND_EUNSUPPORTED in place of the ND_EPARSE of nd_json_fail(). */
nd_status nd_reader_unsupported(nd_error *err);

/* readers_layers.c: windows and experts, layer by layer. */
void nd_reader_window_all(nd_model_reader *r, int64_t window_tokens);
/** Every `period`-th layer is full, the others see the window. */
void nd_reader_window_period(nd_model_reader *r, int64_t window_tokens, int64_t period);
/** layer_types when present, as full_attention, sliding_attention, chunked_attention. */
nd_status nd_reader_layer_types(nd_model_reader *r, int64_t window_tokens, int64_t chunk_tokens,
                                bool *found) ND_NODISCARD;
/** Qwen: use_sliding_window, max_window_layers, layer_types. */
nd_status nd_reader_window_qwen(nd_model_reader *r) ND_NODISCARD;
/** Qwen: decoder_sparse_step and mlp_only_layers. */
nd_status nd_reader_sparse_step(nd_model_reader *r) ND_NODISCARD;
void nd_reader_moe_all(nd_model_reader *r);
/** Experts and top-k: count within bounds, top-k at most the experts. */
nd_status nd_reader_experts(nd_model_reader *r, const char *key, const char *old_key, int64_t experts_missing,
                            int64_t topk_missing) ND_NODISCARD;
/** Turn the layers into layer kinds. */
nd_status nd_reader_finish(nd_model_reader *r) ND_NODISCARD;

/* readers_llama.c: shapes, attention, feed-forward, norms and ties of a Llama-like family. */
nd_status nd_reader_llama_like(nd_model_reader *r, const nd_llama_traits *traits) ND_NODISCARD;

nd_status nd_read_llama(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_mistral(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_qwen2(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_qwen3(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_phi3(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_granite(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_olmo2(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_olmo3(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_smollm3(nd_model_reader *r) ND_NODISCARD;
/* readers_moe.c */
nd_status nd_read_mixtral(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_qwen2_moe(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_qwen3_moe(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_gpt_oss(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_llama4(nd_model_reader *r) ND_NODISCARD;
/* readers_deepseek.c */
nd_status nd_read_deepseek_v2(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_deepseek_v3(nd_model_reader *r) ND_NODISCARD;
/* readers_gemma.c */
nd_status nd_read_gemma2(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_gemma3(nd_model_reader *r) ND_NODISCARD;
/* readers_classic.c */
nd_status nd_read_gpt2(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_gpt_neox(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_opt(nd_model_reader *r) ND_NODISCARD;
nd_status nd_read_falcon(nd_model_reader *r) ND_NODISCARD;

#endif
