/* The fewest GPUs. More are not always enough where fewer are (the batch and the heads must divide), so that every
 * small count is tried. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/limits_internal.h"

enum {
    EVERY_NODE_UP_TO = 8,   /* counts of nodes that are all tried */
    EVERY_GAP_UP_TO = 8,    /* and between two counts; wider gaps are halved */
    ILLEGAL_NODES_MAX = 64, /* where nothing is legal up to here, more nodes bring no layout either */
    SURE_FACTOR_MAX = 8,    /* times the GPUs that may do, where to stop looking for those that surely do */
    CANDIDATES_MAX = 160
};

/* Four times the GPUs must save this part of the least memory, or the rest is what no degree divides. */
static const double least_saving = 0.01;

typedef struct candidates {
    int32_t count;
    int64_t gpus[CANDIDATES_MAX];
} candidates;

static void add(candidates *list, int64_t gpus)
{
    if (list->count < CANDIDATES_MAX && gpus <= ND_LIMIT_GPUS_MAX) {
        list->gpus[list->count++] = gpus;
    }
}

static candidates list_candidates(int64_t node)
{
    candidates list = {.count = 0};
    for (int64_t part = 1; part < node; part++) {
        if (node % part == 0) {
            add(&list, part);
        }
    }
    for (int64_t nodes = 1; nodes <= EVERY_NODE_UP_TO; nodes++) {
        add(&list, nodes * node);
    }
    for (int64_t nodes = EVERY_NODE_UP_TO; nodes * node <= ND_LIMIT_GPUS_MAX; nodes *= 2) {
        add(&list, nodes / 2 * 3 * node);
        add(&list, nodes * 2 * node);
    }
    return list;
}

/* If anything fits, it does with a micro-batch of 1; which one is best is asked at the limit only. */
static nd_status search_gpus(nd_limit_hunt *hunt, int64_t value, bool rough, nd_error *err)
{
    const nd_task *task = hunt->task;
    bool pinned = (task->pinned & nd_layout_key_bit(ND_LAYOUT_KEY_MICRO_BATCH)) != 0;
    uint32_t keys = hunt->pinned | (rough ? nd_layout_key_bit(ND_LAYOUT_KEY_MICRO_BATCH) : 0);
    nd_cluster_spec cluster;
    nd_train_spec train = *task->context->train;
    nd_error why;
    if (nd_cluster_resize_gpus(task->context->cluster, value, &cluster, &why) != ND_OK) {
        /* a single node whose network nobody stated */
        hunt->point = (nd_point){.value = value, .contradictory = true};
        (void)snprintf(hunt->point.reason, sizeof hunt->point.reason, "%.500s", why.message);
        return ND_OK;
    }
    if (!task->batch_given) {
        train.global_batch_seqs = nd_task_batch_seqs(task, value, pinned ? task->pin.micro_batch : 1);
    }
    return nd_limit_search(hunt, value, &cluster, &train, keys, rough, err);
}

/* Whether GPUs stopped helping at candidate `index`: a quarter of them (or fewer) need as little memory. Only powers of
 * two of nodes can tell: the batch and the heads may not divide by 3. */
static nd_status stops_helping(nd_limit_hunt *hunt, const candidates *list, int32_t index, int32_t *earlier,
                               bool *stops, nd_error *err)
{
    nd_limit_seen now;
    double least_bytes = 0.0;
    *stops = false;
    ND_TRY(nd_limit_look(hunt, list->gpus[index], &now, err));
    for (int32_t i = 0; i < index && list->gpus[i] * 4 <= list->gpus[index]; i++) {
        nd_limit_seen seen;
        ND_TRY(nd_limit_look(hunt, list->gpus[i], &seen, err));
        if (seen.legal && (least_bytes == 0.0 || seen.least_bytes < least_bytes)) {
            least_bytes = seen.least_bytes;
            *earlier = i;
        }
    }
    int64_t nodes = list->gpus[index] / hunt->task->context->cluster->gpus_per_node;
    *stops = now.legal && least_bytes > 0.0 && now.least_bytes > (1.0 - least_saving) * least_bytes &&
             nodes >= EVERY_NODE_UP_TO && (nodes & (nodes - 1)) == 0;
    return ND_OK;
}

/* Nothing fits up to candidate `last`: keep the last one that is legal, a quarter of it when that needs as little, and
 * what stands in the way of more. */
static nd_status give_up(nd_limit_hunt *hunt, const candidates *list, int32_t last, int32_t last_legal, int32_t earlier,
                         nd_error *err)
{
    nd_limit *out = hunt->out;
    nd_point beyond;
    ND_TRY(nd_limit_look_again(hunt, list->gpus[last], true, err));
    beyond = hunt->point;
    if (earlier >= 0) {
        ND_TRY(nd_limit_take(hunt, list->gpus[earlier], &out->has_earlier, &out->earlier, err));
    }
    ND_TRY(nd_limit_take(hunt, list->gpus[last_legal >= 0 ? last_legal : last], &out->has_beyond, &out->beyond, err));
    if (beyond.contradictory) { /* no larger cluster can be described, or none that the pins divide */
        memcpy(out->beyond.reason, beyond.reason, sizeof out->beyond.reason);
    }
    return ND_OK;
}

/* The first candidate that reaches a level; -1 when none does, and then out->beyond and earlier say where it ended. */
static nd_status first_candidate(nd_limit_hunt *hunt, const candidates *list, nd_limit_level level, int64_t most,
                                 int32_t *found, nd_error *err)
{
    int32_t last_legal = -1;
    *found = -1;
    for (int32_t i = 0; i < list->count && list->gpus[i] <= most; i++) {
        nd_limit_seen seen;
        bool stops = false;
        int32_t earlier = 0;
        ND_TRY(nd_limit_look(hunt, list->gpus[i], &seen, err));
        if (seen.reached[level]) {
            *found = i;
            return ND_OK;
        }
        last_legal = seen.legal ? i : last_legal;
        if (!seen.reached[ND_LEVEL_POSSIBLE]) {
            ND_TRY(stops_helping(hunt, list, i, &earlier, &stops, err));
        }
        bool illegal =
            last_legal < 0 && list->gpus[i] >= ILLEGAL_NODES_MAX * hunt->task->context->cluster->gpus_per_node;
        if (!stops && !illegal && i + 1 < list->count) {
            continue;
        }
        return level == ND_LEVEL_POSSIBLE ? give_up(hunt, list, i, last_legal, stops ? earlier : -1, err) : ND_OK;
    }
    return ND_OK;
}

/* Fewest whole nodes in (below, gpus] that reach the level, given that `gpus` does and `below` does not. */
static nd_status narrow_nodes(nd_limit_hunt *hunt, nd_limit_level level, int64_t below, int64_t gpus, int64_t *out,
                              nd_error *err)
{
    int64_t node = hunt->task->context->cluster->gpus_per_node;
    nd_limit_seen seen;
    *out = gpus;
    while (below >= node && (*out - below) / node > EVERY_GAP_UP_TO) {
        int64_t middle = (below + *out) / (2 * node) * node;
        ND_TRY(nd_limit_look(hunt, middle, &seen, err));
        if (seen.reached[level]) {
            *out = middle;
        } else {
            below = middle;
        }
    }
    for (int64_t value = below + node; below >= node && value < *out; value += node) {
        ND_TRY(nd_limit_look(hunt, value, &seen, err));
        if (seen.reached[level]) {
            *out = value;
        }
    }
    return ND_OK;
}

/* The largest number of GPUs below the limit at which nothing fits: what fixes would have to make fit. */
static nd_status take_beyond(nd_limit_hunt *hunt, int64_t limit, nd_error *err)
{
    int64_t most = 0;
    for (int32_t i = 0; i < hunt->count; i++) {
        const nd_limit_seen *seen = &hunt->seen[i];
        if (seen->value < limit && seen->value > most && seen->legal && !seen->reached[ND_LEVEL_POSSIBLE]) {
            most = seen->value;
        }
    }
    return most > 0 ? nd_limit_take(hunt, most, &hunt->out->has_beyond, &hunt->out->beyond, err) : ND_OK;
}

static nd_status descend(nd_limit_hunt *hunt, nd_error *err)
{
    nd_limit *out = hunt->out;
    candidates list = list_candidates(hunt->task->context->cluster->gpus_per_node);
    int64_t limits[ND_LEVEL_COUNT] = {0};
    for (int level = ND_LEVEL_COUNT - 1; level >= 0; level--) {
        int32_t found = -1;
        int64_t most = level == ND_LEVEL_SURE ? SURE_FACTOR_MAX * limits[ND_LEVEL_POSSIBLE] : ND_LIMIT_GPUS_MAX;
        ND_TRY(first_candidate(hunt, &list, (nd_limit_level)level, most, &found, err));
        if (found >= 0) {
            int64_t below = found > 0 ? list.gpus[found - 1] : 0;
            ND_TRY(narrow_nodes(hunt, (nd_limit_level)level, below, list.gpus[found], &limits[level], err));
        } else if (level == ND_LEVEL_POSSIBLE) {
            return nd_limit_check_pins(out, err);
        }
    }
    if (limits[ND_LEVEL_SURE] > 0) {
        ND_TRY(nd_limit_take(hunt, limits[ND_LEVEL_SURE], &out->has_sure, &out->sure, err));
    }
    if (limits[ND_LEVEL_POSSIBLE] != limits[ND_LEVEL_SURE]) {
        ND_TRY(nd_limit_take(hunt, limits[ND_LEVEL_POSSIBLE], &out->has_possible, &out->possible, err));
    }
    out->at_ceiling = limits[ND_LEVEL_POSSIBLE] == 1;
    return out->at_ceiling ? ND_OK : take_beyond(hunt, limits[ND_LEVEL_POSSIBLE], err);
}

nd_status nd_limit_gpus(const nd_task *task, nd_limit *out, nd_error *err)
{
    nd_limit_hunt *hunt = nd_limit_start(task, ND_LIMIT_GPUS, out);
    if (hunt == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while looking for the fewest GPUs");
    }
    out->ceiling = ND_LIMIT_GPUS_MAX;
    hunt->pinned = nd_task_pinned_at_any_gpus(task);
    hunt->search = search_gpus;
    nd_status status = descend(hunt, err);
    free(hunt);
    return status;
}
