#include "planner/search_space_internal.h"

#include <string.h>

#include "planner/constraints_internal.h"

static bool pinned(const nd_search_options *options, nd_layout_key key)
{
    return (options->pinned >> key & 1u) != 0;
}

static bool limited(const nd_search_options *options, nd_layout_key key)
{
    return (options->limited >> key & 1u) != 0;
}

bool nd_space_has_degree(const nd_search_space *space, nd_layout_key key, int32_t value)
{
    const nd_search_options *options = space->options;
    if (pinned(options, key) && value != nd_layout_key_value(&options->pin, key)) {
        return false;
    }
    return !limited(options, key) || value <= nd_layout_key_value(&options->max, key);
}

static void list_divisors(nd_search_space *space)
{
    int64_t gpus = space->context->cluster->gpus;
    for (int64_t value = 1; value <= gpus; value++) {
        if (gpus % value == 0 && space->divisors_count < ND_DIVISORS_MAX) {
            space->divisors[space->divisors_count++] = (int32_t)value;
        }
    }
}

/* Ascending and without duplicates. */
static void add_micro_batch(nd_search_space *space, int64_t value)
{
    if (value < 1 || value > INT32_MAX || space->micro_batches_count >= ND_DIVISORS_MAX ||
        !nd_space_has_degree(space, ND_LAYOUT_KEY_MICRO_BATCH, (int32_t)value)) {
        return;
    }
    int32_t at = space->micro_batches_count;
    for (int32_t i = 0; i < space->micro_batches_count; i++) {
        if (space->micro_batches[i] == value) {
            return;
        }
    }
    for (; at > 0 && space->micro_batches[at - 1] > value; at--) {
        space->micro_batches[at] = space->micro_batches[at - 1];
    }
    space->micro_batches[at] = (int32_t)value;
    space->micro_batches_count++;
}

static void list_micro_batches(nd_search_space *space)
{
    const nd_search_options *options = space->options;
    int64_t global = space->context->train->global_batch_seqs;
    if (pinned(options, ND_LAYOUT_KEY_MICRO_BATCH)) {
        add_micro_batch(space, options->pin.micro_batch);
    } else if (pinned(options, ND_LAYOUT_KEY_GRAD_ACCUM)) {
        /* accumulation given: each number of data ranks leaves one micro-batch */
        for (int32_t i = 0; i < space->divisors_count; i++) {
            int64_t share = global / options->pin.grad_accum;
            if (global % options->pin.grad_accum == 0 && share % space->divisors[i] == 0) {
                add_micro_batch(space, share / space->divisors[i]);
            }
        }
    } else {
        for (int64_t value = 1; value <= ND_MICRO_BATCH_CAP; value++) {
            if (global % value == 0) {
                add_micro_batch(space, value);
            }
        }
    }
    if (space->micro_batches_count == 0) {
        space->micro_batches[space->micro_batches_count++] = 1;
    }
}

static void list_recomputes(nd_search_space *space)
{
    const nd_search_options *options = space->options;
    if (pinned(options, ND_LAYOUT_KEY_RECOMPUTE)) {
        space->recomputes[space->recomputes_count++] =
            (nd_recompute_choice){options->pin.recompute, options->pin.recompute_every};
        return;
    }
    static const nd_recompute_choice all[] = {
        {ND_RECOMPUTE_NONE, 1},
        {ND_RECOMPUTE_SELECTIVE, 1},
        {ND_RECOMPUTE_FULL, 1},
        {ND_RECOMPUTE_EVERY, 2},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (nd_mask_has(space->context->stack->recomputes, (int)all[i].mode) &&
            all[i].every <= space->context->model->layers) {
            space->recomputes[space->recomputes_count++] = all[i];
        }
    }
    if (space->recomputes_count == 0) {
        space->recomputes[space->recomputes_count++] = all[0];
    }
}

int32_t nd_space_cp_methods(const nd_search_space *space, int32_t cp, nd_cp_method out[ND_CP_METHOD_COUNT])
{
    int32_t count = 0;
    if (pinned(space->options, ND_LAYOUT_KEY_CP_METHOD)) {
        out[count++] = space->options->pin.cp_method;
        return count;
    }
    for (int method = 0; cp > 1 && method < ND_CP_METHOD_COUNT; method++) {
        if (nd_mask_has(space->context->stack->cp_methods, method)) {
            out[count++] = (nd_cp_method)method;
        }
    }
    if (count == 0) {
        out[count++] = ND_CP_METHOD_RING; /* without cp it means nothing; without a method the stack's rule speaks */
    }
    return count;
}

int32_t nd_space_sequence_parallel(const nd_search_space *space, int32_t tp, bool out[2])
{
    const nd_stack *stack = space->context->stack;
    if (pinned(space->options, ND_LAYOUT_KEY_SP)) {
        out[0] = space->options->pin.sequence_parallel;
        return 1;
    }
    if (tp == 1) {
        out[0] = false;
        return 1;
    }
    out[0] = true;
    out[1] = false;
    return stack->tp_without_sp && !stack->tp_implies_sp ? 2 : 1;
}

int32_t nd_space_expert_degrees(const nd_search_space *space, int32_t out[ND_DIVISORS_MAX])
{
    int32_t count = 0;
    bool moe = space->context->model->experts > 0;
    for (int32_t i = 0; i < space->divisors_count; i++) {
        int32_t value = space->divisors[i];
        bool wanted = moe || value == 1 || pinned(space->options, ND_LAYOUT_KEY_EP);
        if (wanted && nd_space_has_degree(space, ND_LAYOUT_KEY_EP, value)) {
            out[count++] = value;
        }
    }
    return count;
}

static int32_t list_schedules(const nd_search_space *space, int32_t pp, int32_t vpp, nd_schedule out[ND_SCHEDULE_COUNT])
{
    int32_t count = 0;
    if (pinned(space->options, ND_LAYOUT_KEY_SCHEDULE)) {
        out[count++] = space->options->pin.schedule;
    } else if (vpp > 1) {
        out[count++] = ND_SCHEDULE_INTERLEAVED;
    } else {
        out[count++] = ND_SCHEDULE_1F1B;
        if (pp > 1 && nd_mask_has(space->context->stack->schedules, ND_SCHEDULE_ZERO_BUBBLE)) {
            out[count++] = ND_SCHEDULE_ZERO_BUBBLE;
        }
    }
    return count;
}

bool nd_space_has_even(const nd_search_space *space, int32_t pp, int32_t vpp)
{
    return vpp == 1 || space->context->model->layers % ((int64_t)pp * vpp) == 0;
}

static bool tries_balanced(const nd_search_space *space, int32_t pp, int32_t vpp)
{
    bool has_layers = (int64_t)pp * vpp <= space->context->model->layers;
    return pp > 1 && has_layers && nd_mask_has(space->context->stack->splits, ND_SPLIT_BALANCED) &&
           !(pinned(space->options, ND_LAYOUT_KEY_SPLIT) && space->options->pin.split != ND_SPLIT_BALANCED);
}

static int32_t list_chunks(const nd_search_space *space, int32_t pp, int32_t out[ND_VPP_CAP])
{
    const nd_search_options *options = space->options;
    int32_t count = 0;
    if (pinned(options, ND_LAYOUT_KEY_VPP)) {
        out[count++] = options->pin.vpp;
        return count;
    }
    bool other_schedule = pinned(options, ND_LAYOUT_KEY_SCHEDULE) && options->pin.schedule != ND_SCHEDULE_INTERLEAVED;
    bool can = pp > 1 && !other_schedule && nd_mask_has(space->context->stack->schedules, ND_SCHEDULE_INTERLEAVED);
    for (int32_t vpp = 1; vpp <= ND_VPP_CAP; vpp++) {
        bool divides = nd_space_has_even(space, pp, vpp) || tries_balanced(space, pp, vpp);
        if ((vpp == 1 || (can && divides)) && nd_space_has_degree(space, ND_LAYOUT_KEY_VPP, vpp)) {
            out[count++] = vpp;
        }
    }
    return count;
}

static int32_t list_splits(const nd_search_space *space, int32_t pp, int32_t vpp, nd_split out[ND_SPLIT_COUNT])
{
    int32_t count = 0;
    if (pinned(space->options, ND_LAYOUT_KEY_SPLIT)) {
        out[count++] = space->options->pin.split;
        return count;
    }
    if (nd_space_has_even(space, pp, vpp)) {
        out[count++] = ND_SPLIT_EVEN;
    }
    if (tries_balanced(space, pp, vpp)) {
        out[count++] = ND_SPLIT_BALANCED;
    }
    return count;
}

int32_t nd_space_pipelines(const nd_search_space *space, int32_t pp, nd_pipeline_choice out[ND_PIPELINES_MAX])
{
    int32_t chunks[ND_VPP_CAP];
    int32_t chunks_count = nd_space_has_degree(space, ND_LAYOUT_KEY_PP, pp) ? list_chunks(space, pp, chunks) : 0;
    int32_t count = 0;
    for (int32_t i = 0; i < chunks_count; i++) {
        nd_schedule schedules[ND_SCHEDULE_COUNT];
        nd_split splits[ND_SPLIT_COUNT];
        int32_t schedules_count = list_schedules(space, pp, chunks[i], schedules);
        int32_t splits_count = list_splits(space, pp, chunks[i], splits);
        for (int32_t s = 0; s < schedules_count * splits_count; s++) {
            out[count++] = (nd_pipeline_choice){chunks[i], splits[s / schedules_count], schedules[s % schedules_count]};
        }
    }
    return count;
}

int32_t nd_space_shardings(const nd_search_space *space, int32_t dp_shard, int32_t cp,
                           nd_sharding out[ND_SHARDING_COUNT])
{
    int32_t count = 0;
    if (pinned(space->options, ND_LAYOUT_KEY_SHARDING)) {
        out[count++] = space->options->pin.sharding;
        return count;
    }
    int first = dp_shard == 1 ? ND_SHARDING_NONE : ND_SHARDING_ZERO1;
    for (int mode = first; (dp_shard > 1 || cp > 1) && mode < ND_SHARDING_COUNT; mode++) {
        if (nd_mask_has(space->context->stack->shardings, mode)) {
            out[count++] = (nd_sharding)mode;
        }
    }
    if (count == 0) {
        out[count++] = ND_SHARDING_NONE;
    }
    return count;
}

bool nd_space_has_data_split(const nd_search_space *space, const nd_layout *layout, int32_t data_ranks,
                             int32_t dp_shard)
{
    int64_t expert_ranks = (int64_t)layout->size[ND_AXIS_CP] * layout->size[ND_AXIS_TP] * dp_shard;
    return data_ranks % dp_shard == 0 && expert_ranks % layout->ep == 0 &&
           nd_space_has_degree(space, ND_LAYOUT_KEY_DP_SHARD, dp_shard) &&
           nd_space_has_degree(space, ND_LAYOUT_KEY_DP_REPLICATE, data_ranks / dp_shard);
}

bool nd_space_has_micro_batch(const nd_search_space *space, int32_t index, int64_t data_ranks, int64_t *grad_accum)
{
    const nd_search_options *options = space->options;
    int64_t micro_batch = space->micro_batches[index];
    int64_t global = space->context->train->global_batch_seqs;
    int64_t share = global / data_ranks;
    bool whole = global % data_ranks == 0;
    if (pinned(options, ND_LAYOUT_KEY_GRAD_ACCUM)) {
        *grad_accum = options->pin.grad_accum;
        int64_t wanted = whole && share % *grad_accum == 0 ? share / *grad_accum : 0;
        bool possible = wanted >= 1 && wanted <= INT32_MAX &&
                        nd_space_has_degree(space, ND_LAYOUT_KEY_MICRO_BATCH, (int32_t)wanted);
        return pinned(options, ND_LAYOUT_KEY_MICRO_BATCH) || (possible ? micro_batch == wanted : index == 0);
    }
    *grad_accum = share / micro_batch > 0 ? share / micro_batch : 1;
    if (pinned(options, ND_LAYOUT_KEY_MICRO_BATCH)) {
        return true;
    }
    return whole ? share % micro_batch == 0 : index == 0;
}

static void count_choices(nd_search_space *space)
{
    nd_pipeline_choice pipelines[ND_PIPELINES_MAX];
    nd_sharding shardings[ND_SHARDING_COUNT];
    for (int32_t i = 0; i < space->divisors_count; i++) {
        space->pipelines_count[i] = nd_space_pipelines(space, space->divisors[i], pipelines);
    }
    for (int32_t shard = 1; shard <= 2; shard++) {
        for (int32_t cp = 1; cp <= 2; cp++) {
            space->shardings_count[shard > 1][cp > 1] = nd_space_shardings(space, shard, cp, shardings);
        }
    }
}

void nd_search_space_init(const nd_cost_context *context, const nd_search_options *options, nd_search_space *out)
{
    memset(out, 0, sizeof *out);
    out->context = context;
    out->options = options;
    list_divisors(out);
    list_micro_batches(out);
    list_recomputes(out);
    count_choices(out);
}
