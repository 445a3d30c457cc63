/** What is trained, apart from model, cluster and layout. */
#ifndef ND_CORE_TRAIN_SPEC_H
#define ND_CORE_TRAIN_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/dtype.h"
#include "core/status.h"

ND_BEGIN_DECLS

/* X(enumerator, text, state bytes per parameter) : bytes of optimizer state, master weights not included.
 * adamw 2 x fp32; adamw-8bit 2 x int8 (block scales ignored, < 1 %); adamw-bf16 2 x bf16; sgd and lion one
 * fp32 moment; muon one fp32 moment on matrices (Adam on embeddings and head is added by the cost model). */
#define ND_OPTIMIZER_LIST(X)                                                                                           \
    X(ND_OPTIMIZER_ADAMW, "adamw", 8)                                                                                  \
    X(ND_OPTIMIZER_ADAMW_8BIT, "adamw-8bit", 2)                                                                        \
    X(ND_OPTIMIZER_ADAMW_BF16, "adamw-bf16", 4)                                                                        \
    X(ND_OPTIMIZER_SGD, "sgd", 4)                                                                                      \
    X(ND_OPTIMIZER_LION, "lion", 4)                                                                                    \
    X(ND_OPTIMIZER_MUON, "muon", 4)

typedef enum nd_optimizer {
#define ND_OPTIMIZER_ENUM(name, text, bytes) name,
    ND_OPTIMIZER_LIST(ND_OPTIMIZER_ENUM)
#undef ND_OPTIMIZER_ENUM
        ND_OPTIMIZER_COUNT
} nd_optimizer;

/* `math` materialises the score matrix; the others are flash attention of that generation: flash1 with its Triton port,
 * flash2, and the newest kernel of Hopper (FlashAttention-3, cuDNN) and Blackwell (FlashAttention-4, cuDNN). */
#define ND_ATTENTION_LIST(X)                                                                                           \
    X(ND_ATTENTION_FLASH2, "flash2")                                                                                   \
    X(ND_ATTENTION_FLASH3, "flash3")                                                                                   \
    X(ND_ATTENTION_FLASH1, "flash1")                                                                                   \
    X(ND_ATTENTION_MATH, "math")

typedef enum nd_attention {
#define ND_ATTENTION_ENUM(name, text) name,
    ND_ATTENTION_LIST(ND_ATTENTION_ENUM)
#undef ND_ATTENTION_ENUM
        ND_ATTENTION_COUNT
} nd_attention;

typedef struct nd_train_spec {
    int64_t seq_len_tokens;    /* tokens of one sequence, >= 1 */
    int64_t global_batch_seqs; /* sequences of one optimizer step, >= 1 */
    nd_dtype precision;        /* compute precision */
    nd_optimizer optimizer;
    nd_attention attention;
    int32_t lora_rank; /* 0: all weights train; otherwise adapters on every linear layer */
    int32_t base_bits; /* bits of a frozen weight: 16, 8 or 4; 16 when lora_rank is 0 */
} nd_train_spec;

const char *nd_optimizer_name(nd_optimizer optimizer);
int64_t nd_optimizer_state_bytes(nd_optimizer optimizer);
const char *nd_attention_name(nd_attention attention);

/** Parse the names above, and "r=16" / "r=16,bits=4"; ND_EINVAL lists what is allowed. */
nd_status nd_optimizer_parse(const char *text, nd_optimizer *out, nd_error *err) ND_NODISCARD;
nd_status nd_attention_parse(const char *text, nd_attention *out, nd_error *err) ND_NODISCARD;
nd_status nd_precision_parse(const char *text, nd_dtype *out, nd_error *err) ND_NODISCARD;
nd_status nd_lora_parse(const char *text, nd_train_spec *spec, nd_error *err) ND_NODISCARD;

/** Sequence 1..2^30 tokens, batch 1..2^40 sequences, together at most 2^53 tokens; LoRA rank 0..65536, bits in {4, 8,
 * 16}. */
nd_status nd_train_spec_check(const nd_train_spec *spec, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
