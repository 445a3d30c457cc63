/** Every parameter of a model by name and shape, and how tensor parallelism cuts it. Independent of ranks: who holds
 * what is program/placement.h.
 *
 * Names and shapes are those of Hugging Face checkpoints where the model family has one convention ("model.layers.0.
 * self_attn.q_proj.weight", [out, in]); vectors are [1, n].
 */
#ifndef ND_PROGRAM_PARAMS_H
#define ND_PROGRAM_PARAMS_H

#include "core/status.h"
#include "models/model_spec.h"

ND_BEGIN_DECLS

enum { ND_PARAM_NAME_MAX = 96 };

/** What a parameter is for: the builder finds the weights of an operation by it. */
#define ND_ROLE_LIST(X)                                                                                                \
    X(ND_ROLE_EMBED, "embed")                                                                                          \
    X(ND_ROLE_POSITIONS, "positions")                                                                                  \
    X(ND_ROLE_NORM1, "norm1")                                                                                          \
    X(ND_ROLE_NORM1_BIAS, "norm1_bias")                                                                                \
    X(ND_ROLE_Q, "q")                                                                                                  \
    X(ND_ROLE_Q_BIAS, "q_bias")                                                                                        \
    X(ND_ROLE_K, "k")                                                                                                  \
    X(ND_ROLE_K_BIAS, "k_bias")                                                                                        \
    X(ND_ROLE_V, "v")                                                                                                  \
    X(ND_ROLE_V_BIAS, "v_bias")                                                                                        \
    X(ND_ROLE_Q_NORM, "q_norm")                                                                                        \
    X(ND_ROLE_K_NORM, "k_norm")                                                                                        \
    X(ND_ROLE_Q_DOWN, "q_down") /* MLA */                                                                              \
    X(ND_ROLE_Q_DOWN_NORM, "q_down_norm")                                                                              \
    X(ND_ROLE_KV_DOWN, "kv_down") /* latent rows, then rotary rows */                                                  \
    X(ND_ROLE_KV_DOWN_NORM, "kv_down_norm")                                                                            \
    X(ND_ROLE_KV_UP, "kv_up") /* per head: nope_dim key rows, then v_dim value rows */                                 \
    X(ND_ROLE_O, "o")                                                                                                  \
    X(ND_ROLE_O_BIAS, "o_bias")                                                                                        \
    X(ND_ROLE_NORM1_POST, "norm1_post") /* before the residual, models of four norms */                                \
    X(ND_ROLE_NORM2, "norm2")                                                                                          \
    X(ND_ROLE_NORM2_BIAS, "norm2_bias")                                                                                \
    X(ND_ROLE_GATE, "gate")                                                                                            \
    X(ND_ROLE_UP, "up")                                                                                                \
    X(ND_ROLE_UP_BIAS, "up_bias")                                                                                      \
    X(ND_ROLE_DOWN, "down")                                                                                            \
    X(ND_ROLE_DOWN_BIAS, "down_bias")                                                                                  \
    X(ND_ROLE_NORM2_POST, "norm2_post")                                                                                \
    X(ND_ROLE_ROUTER, "router")                                                                                        \
    X(ND_ROLE_ROUTER_BIAS, "router_bias")                                                                              \
    X(ND_ROLE_SHARED_GATE, "shared_gate") /* of the shared expert's feed-forward */                                    \
    X(ND_ROLE_SHARED_UP, "shared_up")                                                                                  \
    X(ND_ROLE_SHARED_DOWN, "shared_down")                                                                              \
    X(ND_ROLE_SHARED_SCALE, "shared_scale") /* hidden -> 1, Qwen2-MoE */                                               \
    X(ND_ROLE_EXPERT_GATE, "expert_gate")                                                                              \
    X(ND_ROLE_EXPERT_UP, "expert_up")                                                                                  \
    X(ND_ROLE_EXPERT_DOWN, "expert_down")                                                                              \
    X(ND_ROLE_FINAL_NORM, "final_norm")                                                                                \
    X(ND_ROLE_FINAL_NORM_BIAS, "final_norm_bias")                                                                      \
    X(ND_ROLE_HEAD, "head")

typedef enum nd_role {
#define ND_ROLE_ENUM(name, text) name,
    ND_ROLE_LIST(ND_ROLE_ENUM)
#undef ND_ROLE_ENUM
        ND_ROLE_COUNT
} nd_role;

/** How tp divides a parameter. */
typedef enum nd_param_split {
    ND_PARAM_WHOLE,    /* every tp rank holds it */
    ND_PARAM_ROWS,     /* outputs of a column-parallel matrix, and its bias (cols of [1, n]) */
    ND_PARAM_COLS,     /* inputs of a row-parallel matrix */
    ND_PARAM_VOCAB,    /* rows of the vocabulary, padded to a multiple of tp */
    ND_PARAM_KV_HEADS, /* rows (of a bias: columns) by key-value head; heads are copied when tp exceeds them */
    ND_PARAM_EXPERT    /* ep: whole experts; ep 1: as GATE/UP rows, DOWN cols */
} nd_param_split;

/** Whether each tp rank has only a part of the gradient of a parameter that it holds whole. */
typedef enum nd_param_partial {
    ND_PARTIAL_NEVER,
    ND_PARTIAL_SP,    /* under sequence parallelism: used outside the divided region */
    ND_PARTIAL_ALWAYS /* used inside it */
} nd_param_partial;

typedef enum nd_param_init { ND_INIT_NORMAL, ND_INIT_ONES, ND_INIT_ZEROS } nd_param_init;

typedef struct nd_param {
    char name[ND_PARAM_NAME_MAX];
    nd_role role;
    int32_t layer;  /* -1: not of a layer */
    int32_t expert; /* -1: not of a routed expert */
    int64_t rows, cols;
    nd_param_split split;
    nd_param_partial partial;
    nd_param_init init;
    bool decay; /* weight decay applies: matrices */
} nd_param;

typedef struct nd_param_list {
    int32_t count;
    nd_param *params; /* embedding, layers in order (experts last in a layer), final norm, head */
} nd_param_list;

/** List the parameters; their elements add up to nd_model_params().total.
 * \return ND_EUNSUPPORTED naming the part of the model that a program cannot run (attention sinks, biases of experts,
 *         an embedding narrower than the model, ...); ND_ENOMEM. Free with nd_param_list_free(). */
nd_status nd_param_list_create(const nd_model_spec *model, nd_param_list *out, nd_error *err) ND_NODISCARD;
void nd_param_list_free(nd_param_list *params); /* NULL and an empty list are fine */

const char *nd_role_name(nd_role role); /* "q", ...; never NULL */

ND_END_DECLS

#endif
