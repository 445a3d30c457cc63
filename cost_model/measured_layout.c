/* The layout of a measured row: degrees, sharding, recompute, batch. */
#include <stdlib.h>
#include <string.h>

#include "cost_model/measured_internal.h"

/* A plain yes is what the switch of a framework does: every layer. */
static const char *const yes[] = {"yes", "true", "on", "1", "activation_checkpointing", "gradient_checkpointing"};
static const char *const no[] = {"no", "false", "off", "0"};
static const char every[] = "every:";
static const char recompute_expected[] = "none, selective, partial, full, every:LAYERS (2 or more) or empty";

static void read_recompute(nd_row *row, nd_layout *layout)
{
    layout->recompute_every = 1;
    bool yes_means_full = nd_row_is_one_of(row, "recompute", yes, sizeof yes / sizeof yes[0]);
    if (yes_means_full || nd_row_mentions(row, "recompute", "full")) {
        layout->recompute = ND_RECOMPUTE_FULL;
    } else if (nd_row_mentions(row, "recompute", "selective")) {
        layout->recompute = ND_RECOMPUTE_SELECTIVE;
    } else if (nd_row_mentions(row, "recompute", "partial")) {
        layout->recompute = ND_RECOMPUTE_EVERY;
        layout->recompute_every = 2;
        nd_row_assume(row, ND_ASSUMED_PARTIAL);
    } else if (nd_row_mentions(row, "recompute", every)) {
        long layers = strtol(nd_row_text(row, "recompute") + strlen(every), NULL, 10);
        bool known = layers >= 2 && layers <= 1 << 20;
        layout->recompute = ND_RECOMPUTE_EVERY;
        layout->recompute_every = known ? (int32_t)layers : 2;
        if (!known) {
            nd_row_malformed(row, "recompute", recompute_expected);
        }
    } else if (*nd_row_text(row, "recompute") == '\0') {
        if (!nd_row_has(row, "notes", "sets none")) {
            nd_row_assume(row, ND_ASSUMED_RECOMPUTE);
        }
    } else if (!nd_row_mentions(row, "recompute", "none") &&
               !nd_row_is_one_of(row, "recompute", no, sizeof no / sizeof no[0])) {
        nd_row_malformed(row, "recompute", recompute_expected);
    }
}

static void read_sharding(nd_row *row, const nd_stack *stack, nd_layout *layout)
{
    static const nd_sharding stages[] = {ND_SHARDING_NONE, ND_SHARDING_ZERO1, ND_SHARDING_ZERO2, ND_SHARDING_ZERO3};
    int64_t zero = nd_row_int_to(row, "zero_stage", 3, -1);
    if (zero < 0) {
        nd_row_assume(row, ND_ASSUMED_SHARDING);
        layout->sharding = stack->default_sharding;
    } else {
        layout->sharding = stages[zero];
    }
    int32_t *replicate = &layout->size[ND_AXIS_DP_REPLICATE];
    int32_t *shard = &layout->size[ND_AXIS_DP_SHARD];
    if (layout->sharding != ND_SHARDING_NONE && *shard == 1) { /* sharded over all data-parallel ranks */
        *shard = *replicate;
        *replicate = 1;
    }
    if (nd_row_has(row, "framework", "torchtitan") && layout->size[ND_AXIS_PP] > 1 &&
        layout->sharding == ND_SHARDING_ZERO3) {
        layout->sharding = ND_SHARDING_ZERO2; /* reshard_after_forward "default" is off with pipelines */
    }
}

/* InternEvo's optimizer states are sharded inside a group of ranks and replicated across groups. */
static void split_sharding_group(nd_row *row, nd_layout *layout)
{
    static const char group[] = "sharding group: ";
    const char *text = strstr(nd_row_text(row, "notes"), group);
    char *end = NULL;
    long ranks = text != NULL ? strtol(text + strlen(group), &end, 10) : 0;
    int32_t *shard = &layout->size[ND_AXIS_DP_SHARD];
    if (ranks > 0 && strncmp(end, " ranks", strlen(" ranks")) == 0 && *shard % ranks == 0) {
        layout->size[ND_AXIS_DP_REPLICATE] *= (int32_t)(*shard / ranks);
        *shard = (int32_t)ranks;
    }
}

static int32_t degree(nd_row *row, const char *name, int64_t otherwise)
{
    int64_t value = nd_row_int(row, name, otherwise);
    return (int32_t)(value < 1 ? 1 : value > (1 << 20) ? 1 << 20 : value);
}

static void read_degrees(nd_row *row, nd_layout *l)
{
    l->size[ND_AXIS_TP] = degree(row, "tp", 1);
    l->size[ND_AXIS_CP] = degree(row, "cp", 1);
    l->size[ND_AXIS_PP] = degree(row, "pp", 1);
    l->size[ND_AXIS_DP_REPLICATE] = degree(row, "dp_replicate", 1);
    l->size[ND_AXIS_DP_SHARD] = degree(row, "dp_shard", 1);
    l->vpp = degree(row, "vpp", nd_row_has(row, "notes", "interleaved 1F1B") ? 2 : 1);
    l->vpp = l->size[ND_AXIS_PP] > 1 ? l->vpp : 1;
    if (l->size[ND_AXIS_PP] > 1 && nd_row_has(row, "notes", "interleaving, recompute not stated")) {
        nd_row_assume(row, ND_ASSUMED_INTERLEAVING);
    }
    l->ep = degree(row, "ep", 1);
    l->schedule = l->vpp > 1 ? ND_SCHEDULE_INTERLEAVED : ND_SCHEDULE_1F1B;
}

/* A row without any data-parallel degree: the ranks that the other axes leave. */
static void fill_data_parallel(nd_row *row, int64_t gpus, nd_layout *l)
{
    int64_t others = (int64_t)l->size[ND_AXIS_TP] * l->size[ND_AXIS_CP] * l->size[ND_AXIS_PP];
    bool stated = *nd_row_text(row, "dp_replicate") != '\0' || *nd_row_text(row, "dp_shard") != '\0';
    if (!stated && others < gpus && gpus % others == 0) {
        nd_row_assume(row, ND_ASSUMED_DATA_PARALLEL);
        l->size[ND_AXIS_DP_REPLICATE] = (int32_t)(gpus / others);
    }
}

/* torchtitan of 2024 and early 2025 splits the local batch into as many micro-batches as there are stages. */
static int64_t usual_micro_batch(nd_row *row, const nd_layout *layout, int64_t local_batch)
{
    int64_t stages = (int64_t)layout->size[ND_AXIS_PP] * layout->vpp;
    if (nd_row_has(row, "framework", "torchtitan") && layout->size[ND_AXIS_PP] > 1) {
        return local_batch > stages ? local_batch / stages : 1;
    }
    nd_row_assume(row, ND_ASSUMED_MICRO_BATCH);
    return 1;
}

static void read_batch(nd_row *row, nd_layout *l)
{
    int64_t data_ranks = (int64_t)l->size[ND_AXIS_DP_REPLICATE] * l->size[ND_AXIS_DP_SHARD];
    int64_t micro_batch = nd_row_int_to(row, "micro_batch", 1 << 20, 0);
    int64_t global = nd_row_int(row, "global_batch", 0);
    if (global == 0) {
        nd_row_assume(row, ND_ASSUMED_GLOBAL_BATCH);
        global = (micro_batch > 0 ? micro_batch : 1) * data_ranks * l->size[ND_AXIS_PP];
    }
    if (global < micro_batch * data_ranks) { /* no such batch: one micro-batch a rank */
        nd_row_assume(row, ND_ASSUMED_GLOBAL_BATCH);
    }
    if (micro_batch == 0) {
        micro_batch = usual_micro_batch(row, l, global / data_ranks);
    }
    l->micro_batch = (int32_t)micro_batch;
    l->grad_accum = (global + l->micro_batch * data_ranks / 2) / (l->micro_batch * data_ranks);
    l->grad_accum = l->grad_accum > 0 ? l->grad_accum : 1;
}

nd_status nd_row_layout(nd_row *row, nd_measured_run *run, nd_error *err)
{
    nd_layout *l = &run->layout;
    *l = nd_layout_single();
    read_degrees(row, l);
    fill_data_parallel(row, run->cluster.gpus, l);
    read_recompute(row, l);
    read_sharding(row, &run->stack, l);
    bool sp = nd_row_int(row, "sp", run->stack.tp_usually_sp) != 0;
    l->sequence_parallel = sp && l->size[ND_AXIS_TP] > 1;
    double ranks = 1.0; /* the product of absurd degrees fits no integer */
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        ranks *= l->size[axis];
    }
    if (ranks != (double)run->cluster.gpus) {
        return nd_fail(err, ND_EUNSUPPORTED, "the degrees multiply to %.0f ranks, not to %lld GPUs", ranks,
                       (long long)run->cluster.gpus);
    }
    split_sharding_group(row, l);
    read_batch(row, l);
    if (run->model.experts == 0) {
        l->ep = 1;
    }
    return ND_OK;
}
