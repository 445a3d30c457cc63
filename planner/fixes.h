/** What could be changed about a layout or its training, and what each change brings and costs.
 *
 * Every change is made, checked against the rules and estimated; nothing is a rule of thumb. The global batch stays the
 * same in sequences, so accumulation follows the micro-batch and the data ranks.
 */
#ifndef ND_PLANNER_FIXES_H
#define ND_PLANNER_FIXES_H

#include "cost_model/estimate.h"
#include "frameworks/framework.h"

ND_BEGIN_DECLS

/* X(enumerator, text, class): the text is the JSON word. */
#define ND_FIX_LIST(X)                                                                                                 \
    X(ND_FIX_RECOMPUTE, "recompute", ND_FIX_CLASS_LAYOUT)                                                              \
    X(ND_FIX_MICRO_BATCH, "micro_batch", ND_FIX_CLASS_LAYOUT)                                                          \
    X(ND_FIX_SHARDING, "sharding", ND_FIX_CLASS_LAYOUT)                                                                \
    X(ND_FIX_TP, "tp", ND_FIX_CLASS_LAYOUT)                                                                            \
    X(ND_FIX_CP, "cp", ND_FIX_CLASS_LAYOUT)                                                                            \
    X(ND_FIX_PP, "pp", ND_FIX_CLASS_LAYOUT)                                                                            \
    X(ND_FIX_EP, "ep", ND_FIX_CLASS_LAYOUT)                                                                            \
    X(ND_FIX_SEQUENCE_PARALLEL, "sequence_parallel", ND_FIX_CLASS_LAYOUT)                                              \
    X(ND_FIX_OFFLOAD, "offload", ND_FIX_CLASS_LAYOUT)                                                                  \
    X(ND_FIX_OPTIMIZER, "optimizer", ND_FIX_CLASS_SOFTWARE)                                                            \
    X(ND_FIX_LOSS, "loss", ND_FIX_CLASS_SOFTWARE)                                                                      \
    X(ND_FIX_NODES, "nodes", ND_FIX_CLASS_HARDWARE)                                                                    \
    X(ND_FIX_SEQ_LEN, "seq_len", ND_FIX_CLASS_TRAINING)                                                                \
    X(ND_FIX_LORA, "lora", ND_FIX_CLASS_TRAINING)                                                                      \
    X(ND_FIX_QLORA, "qlora", ND_FIX_CLASS_TRAINING)

typedef enum nd_fix_kind {
#define ND_FIX_ENUM(name, text, class) name,
    ND_FIX_LIST(ND_FIX_ENUM)
#undef ND_FIX_ENUM
        ND_FIX_COUNT
} nd_fix_kind;

/** How much a change asks for, least first. */
typedef enum nd_fix_class {
    ND_FIX_CLASS_LAYOUT,   /* the same training on the same GPUs, divided in another way */
    ND_FIX_CLASS_SOFTWARE, /* another optimizer or loss kernel */
    ND_FIX_CLASS_HARDWARE, /* more GPUs */
    ND_FIX_CLASS_TRAINING, /* something else is trained */
    ND_FIX_CLASS_COUNT
} nd_fix_class;

enum { ND_FIXES_MAX = 48, ND_FIX_TEXT_MAX = 160 };

typedef struct nd_fix {
    nd_fix_kind kind;
    nd_fix_kind second;                /* of a pair of changes; ND_FIX_COUNT: there is only one */
    char layout_keys[ND_FIX_TEXT_MAX]; /* what changes in --layout: "tp=2,dp_shard=4"; empty: nothing */
    char options[ND_FIX_TEXT_MAX];     /* what changes beside it: "--optimizer adamw-8bit"; empty: nothing */
    nd_layout layout;
    nd_train_spec train;
    int64_t nodes;
    double loss_chunks;
    nd_estimate estimate;
    bool host_fits;              /* the node has the host memory that the change needs, or it is not known */
    double saved_bytes;          /* of the peak of a GPU; negative when the change costs memory */
    double slower_frac;          /* GPU time of a token against before, minus 1; negative when faster */
    double saved_bytes_per_frac; /* saved_bytes / slower_frac; HUGE_VAL when it is not slower */
} nd_fix;

typedef struct nd_fix_options {
    uint32_t kinds;    /* which to try: bit (1u << nd_fix_kind) */
    bool only_fitting; /* leave out those with which the layout is not expected to fit either (GPU or host) */
} nd_fix_options;

nd_fix_options nd_fix_options_default(void); /* all kinds, fitting or not */

const char *nd_fix_kind_name(nd_fix_kind kind); /* "recompute", ...; never NULL */
nd_fix_class nd_fix_kind_class(nd_fix_kind kind);

/** The change as one types it: "recompute=full", "--optimizer adamw-8bit", "dp_shard=16 with --cluster 2x8xh100".
 * Always terminated. */
void nd_fix_change(const nd_fix *fix, char *out, size_t out_bytes);

/** Every single change of `layout` that is legal and saves memory of the GPU (or turns the verdict, or makes the host
 * suffice).
 *
 * \param[in]  framework may be NULL
 * \param[in]  layout    passed nd_layout_allowed()
 * \param[in]  options   NULL: nd_fix_options_default()
 * \param[out] out       at most ND_FIXES_MAX; those that keep the training first, then those that train something else;
 *                       in each the most bytes saved per fraction of time lost first, of those that cost no time the
 *                       most bytes first
 * \return how many
 */
int32_t nd_fixes_find(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      const nd_fix_options *options, nd_fix out[ND_FIXES_MAX]);

/** The smallest change after which the layout fits: one change of layout or software, else two of them, else more
 * nodes, else another training (alone, then with one other change). Of equally small ones the one that loses least
 * time.
 *
 * \param[in]  worst  the worst verdict that counts as fitting; a borderline layout must be expected to fit, too (its
 *                    peak within the capacity)
 * \return false when no one or two changes suffice; `out` is untouched then
 */
bool nd_fixes_smallest_that_fits(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                                 nd_verdict worst, nd_fix *out);

ND_END_DECLS

#endif
