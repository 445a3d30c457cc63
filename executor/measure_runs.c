/* Which runs: each operation in at least three sizes, the large ones near those of models that run on a processor in
 * reasonable time. */
#include <stdio.h>
#include <string.h>

#include "executor/measure_internal.h"

typedef enum family { FAMILY_DENSE, FAMILY_CLASSIC, FAMILY_EXPERTS, FAMILY_LATENT, FAMILY_COUNT } family;

/** `hidden` is a multiple of 64. */
typedef struct probe_row {
    family family;
    int32_t hidden, seq_len;
    const char *layout;
} probe_row;

static const probe_row alone[] = {
    {FAMILY_DENSE, 64, 64, "micro_batch=1"},    {FAMILY_DENSE, 128, 128, "micro_batch=2"},
    {FAMILY_DENSE, 256, 64, "grad_accum=2"},    {FAMILY_DENSE, 448, 192, "micro_batch=1"},
    {FAMILY_CLASSIC, 64, 64, "micro_batch=1"},  {FAMILY_CLASSIC, 256, 128, "micro_batch=1"},
    {FAMILY_EXPERTS, 64, 64, "micro_batch=1"},  {FAMILY_EXPERTS, 192, 128, "micro_batch=2"},
    {FAMILY_LATENT, 64, 128, "micro_batch=1"},  {FAMILY_LATENT, 192, 96, "micro_batch=2"},
    {FAMILY_CLASSIC, 128, 96, "micro_batch=2"}, {FAMILY_EXPERTS, 128, 64, "micro_batch=1"},
};

static const probe_row pairs[] = {
    {FAMILY_DENSE, 64, 64, "tp=2,sp=on,micro_batch=1"},
    {FAMILY_DENSE, 256, 128, "tp=2,micro_batch=1"},
    {FAMILY_DENSE, 192, 256, "cp=2,cp_method=ring,sharding=zero3"},
    {FAMILY_DENSE, 128, 128, "cp=2,cp_method=ulysses,sharding=zero3"},
    {FAMILY_DENSE, 64, 64, "cp=2,cp_method=ring,sharding=zero2"},
    {FAMILY_DENSE, 64, 64, "cp=2,cp_method=ulysses,sharding=zero1"},
    {FAMILY_DENSE, 192, 128, "cp=2,cp_method=allgather,sharding=zero1"},
    {FAMILY_DENSE, 128, 64, "dp_shard=2,sharding=zero2,micro_batch=1,grad_accum=2"},
    {FAMILY_DENSE, 320, 128, "dp_shard=2,sharding=zero3,micro_batch=1"},
    {FAMILY_CLASSIC, 192, 128, "dp_replicate=2,micro_batch=1"},
    {FAMILY_DENSE, 64, 64, "pp=2,micro_batch=1,grad_accum=4"},
    {FAMILY_DENSE, 256, 128, "pp=2,micro_batch=1,grad_accum=4"},
    {FAMILY_EXPERTS, 64, 64, "dp_shard=2,ep=2,sharding=zero2,micro_batch=1"},
    {FAMILY_EXPERTS, 192, 128, "dp_shard=2,ep=2,sharding=zero2,micro_batch=2"},
    {FAMILY_LATENT, 128, 128, "tp=2,sp=on,micro_batch=1"},
};

enum { ALONE = sizeof alone / sizeof alone[0], PAIRS = sizeof pairs / sizeof pairs[0], WIDE = 2 };

int32_t nd_probes_count(int32_t processors)
{
    return ALONE + PAIRS + (processors > 2 ? WIDE : 0);
}

static void describe(const probe_row *row, char *text, size_t text_bytes)
{
    int h = row->hidden;
    switch (row->family) {
    case FAMILY_CLASSIC:
        (void)snprintf(text, text_bytes,
                       "{\"model_type\":\"gpt2\",\"n_embd\":%d,\"n_layer\":2,\"n_head\":%d,\"n_positions\":512,"
                       "\"vocab_size\":%d}",
                       h, h / 32, 8 * h);
        return;
    case FAMILY_EXPERTS:
        (void)snprintf(text, text_bytes,
                       "{\"model_type\":\"qwen2_moe\",\"hidden_size\":%d,\"num_hidden_layers\":2,"
                       "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,\"intermediate_size\":%d,"
                       "\"moe_intermediate_size\":%d,\"shared_expert_intermediate_size\":%d,\"num_experts\":8,"
                       "\"num_experts_per_tok\":2,\"decoder_sparse_step\":1,\"vocab_size\":%d,"
                       "\"max_position_embeddings\":512,\"tie_word_embeddings\":false}",
                       h, h / 16, h / 32, 2 * h, h / 2, h, 6 * h);
        return;
    case FAMILY_LATENT:
        (void)snprintf(text, text_bytes,
                       "{\"model_type\":\"deepseek_v3\",\"hidden_size\":%d,\"num_hidden_layers\":2,"
                       "\"num_attention_heads\":%d,\"num_key_value_heads\":%d,\"q_lora_rank\":%d,\"kv_lora_rank\":%d,"
                       "\"qk_nope_head_dim\":16,\"qk_rope_head_dim\":16,\"v_head_dim\":16,\"intermediate_size\":%d,"
                       "\"moe_intermediate_size\":%d,\"n_routed_experts\":8,\"n_shared_experts\":1,"
                       "\"num_experts_per_tok\":3,\"first_k_dense_replace\":1,\"moe_layer_freq\":1,\"n_group\":1,"
                       "\"topk_group\":1,\"vocab_size\":%d,\"max_position_embeddings\":512,"
                       "\"tie_word_embeddings\":false}",
                       h, h / 16, h / 16, h / 2, h / 4, 2 * h, h / 4, 6 * h);
        return;
    case FAMILY_DENSE:
    case FAMILY_COUNT:
        break;
    }
    (void)snprintf(text, text_bytes,
                   "{\"model_type\":\"llama\",\"hidden_size\":%d,\"num_hidden_layers\":2,\"num_attention_heads\":%d,"
                   "\"num_key_value_heads\":%d,\"intermediate_size\":%d,\"vocab_size\":%d,"
                   "\"max_position_embeddings\":512,\"tie_word_embeddings\":false}",
                   h, h / 16, h / 32, h * 11 / 4, 8 * h);
}

/* Data parallelism by as many ranks as there are processors: every shape allows it. */
static probe_row wide_row(int32_t index, int32_t processors, char *layout, size_t layout_bytes)
{
    (void)snprintf(layout, layout_bytes, "%s=%d%s,micro_batch=1", index == 0 ? "dp_replicate" : "dp_shard",
                   (int)processors, index == 0 ? "" : ",sharding=zero3");
    return (probe_row){FAMILY_DENSE, index == 0 ? 192 : 256, 128, layout};
}

nd_status nd_probe_make(int32_t index, int32_t processors, nd_probe *out, nd_error *err)
{
    char text[1024];
    char layout[64];
    probe_row row = index < ALONE           ? alone[index]
                    : index < ALONE + PAIRS ? pairs[index - ALONE]
                                            : wide_row(index - ALONE - PAIRS, processors, layout, sizeof layout);
    describe(&row, text, sizeof text);
    out->seq_len = row.seq_len;
    ND_TRY(nd_layout_parse(row.layout, &out->layout, NULL, err));
    return nd_model_parse(text, strlen(text), "measured model", false, &out->model, err);
}
