/** What a search enumerates: the values of each key, after pins, limits and the stack's abilities. */
#ifndef ND_PLANNER_SEARCH_SPACE_INTERNAL_H
#define ND_PLANNER_SEARCH_SPACE_INTERNAL_H

#include "planner/search.h"

ND_BEGIN_DECLS

enum {
    ND_DIVISORS_MAX = 256,   /* no number up to 2^20 has more than 240 */
    ND_RECOMPUTES_MAX = 4,   /* none, selective, full, every:2 (other distances are tried when pinned) */
    ND_MICRO_BATCH_CAP = 64, /* larger ones are tried only when pinned */
    ND_VPP_CAP = 8,
    ND_PIPELINES_MAX = ND_VPP_CAP * ND_SCHEDULE_COUNT * ND_SPLIT_COUNT,
};

/** What a pipeline of one depth can be. */
typedef struct nd_pipeline_choice {
    int32_t vpp;
    nd_split split;
    nd_schedule schedule;
} nd_pipeline_choice;

typedef struct nd_recompute_choice {
    nd_recompute mode;
    int32_t every;
} nd_recompute_choice;

typedef struct nd_search_space {
    const nd_cost_context *context;
    const nd_search_options *options;
    int32_t divisors[ND_DIVISORS_MAX]; /* of the GPU count, ascending */
    int32_t divisors_count;
    int32_t micro_batches[ND_DIVISORS_MAX]; /* ascending; never empty */
    int32_t micro_batches_count;
    nd_recompute_choice recomputes[ND_RECOMPUTES_MAX];
    int32_t recomputes_count;
    /* how many choices there are, so that branches are counted without walking them */
    int32_t pipelines_count[ND_DIVISORS_MAX]; /* with pp = divisors[i]; 0: this pp is not wanted */
    int32_t shardings_count[2][2];            /* [dp_shard > 1][cp > 1] */
} nd_search_space;

/** Pins and limits that no layout can meet: ND_EINVAL names them and what would work. */
nd_status nd_search_options_check(const nd_cost_context *context, const nd_search_options *options,
                                  nd_error *err) ND_NODISCARD;

/** "pp=1, tp<=8": the pinned and limited keys; "(none)" when there are none. */
void nd_search_options_text(const nd_search_options *options, char *out, size_t out_bytes);

void nd_search_space_init(const nd_cost_context *context, const nd_search_options *options, nd_search_space *out);

/** Whether pin and limit of a degree admit `value`. */
bool nd_space_has_degree(const nd_search_space *space, nd_layout_key key, int32_t value);

/** Values of the other keys, given what they depend on; each returns how many it wrote (at least 1 unless noted). */
int32_t nd_space_cp_methods(const nd_search_space *space, int32_t cp, nd_cp_method out[ND_CP_METHOD_COUNT]);
int32_t nd_space_sequence_parallel(const nd_search_space *space, int32_t tp, bool out[2]);
int32_t nd_space_expert_degrees(const nd_search_space *space, int32_t out[ND_DIVISORS_MAX]); /* may be 0 */
/** By vpp, then split, then schedule. */
int32_t nd_space_pipelines(const nd_search_space *space, int32_t pp,
                           nd_pipeline_choice out[ND_PIPELINES_MAX]); /* may be 0 */
int32_t nd_space_shardings(const nd_search_space *space, int32_t dp_shard, int32_t cp,
                           nd_sharding out[ND_SHARDING_COUNT]);

/** Whether pp x vpp chunks can be split=even: interleaved chunks must be equal, or balanced. */
bool nd_space_has_even(const nd_search_space *space, int32_t pp, int32_t vpp);

/** Whether `data_ranks` are divided into dp_replicate x `dp_shard`, given tp, cp and ep of the layout. */
bool nd_space_has_data_split(const nd_search_space *space, const nd_layout *layout, int32_t data_ranks,
                             int32_t dp_shard);

/** Whether micro_batches[index] is tried with `data_ranks` = dp_replicate x dp_shard, and the accumulation that
 * follows. Where no micro-batch can give the global batch, the smallest one is tried, so that the reason is counted. */
bool nd_space_has_micro_batch(const nd_search_space *space, int32_t index, int64_t data_ranks, int64_t *grad_accum);

ND_END_DECLS

#endif
