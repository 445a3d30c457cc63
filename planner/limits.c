/* Limits upwards: micro-batch and sequence. Memory grows with both, so that powers of two and then halves find them. */
#include "planner/limits.h"

#include <stdlib.h>
#include <string.h>

#include "core/integers.h"
#include "planner/limits_internal.h"

const char *nd_limit_quantity_name(nd_limit_quantity quantity)
{
    static const char *const names[ND_LIMIT_QUANTITY_COUNT] = {
        [ND_LIMIT_MICRO_BATCH] = "micro-batch", [ND_LIMIT_SEQ_LEN] = "seq-len", [ND_LIMIT_GPUS] = "gpus"};
    return names[quantity];
}

nd_status nd_limit_search(nd_limit_hunt *hunt, int64_t value, const nd_cluster_spec *cluster,
                          const nd_train_spec *train, uint32_t pinned, bool rough, nd_error *err)
{
    bool any_closest = hunt->out->quantity != ND_LIMIT_GPUS; /* there it tells whether more GPUs help */
    return rough ? nd_point_ask(hunt->task, value, cluster, train, pinned, &hunt->pin, any_closest, &hunt->point, err)
                 : nd_point_search(hunt->task, value, cluster, train, pinned, &hunt->pin, &hunt->point, err);
}

nd_status nd_limit_look_again(nd_limit_hunt *hunt, int64_t value, bool rough, nd_error *err)
{
    if (hunt->point.value == value && (rough || !hunt->point_is_rough)) {
        return ND_OK;
    }
    hunt->out->searches++;
    hunt->point_is_rough = rough;
    return hunt->search(hunt, value, rough, err);
}

nd_status nd_limit_look(nd_limit_hunt *hunt, int64_t value, nd_limit_seen *out, nd_error *err)
{
    for (int32_t i = 0; i < hunt->count; i++) {
        if (hunt->seen[i].value == value) {
            *out = hunt->seen[i];
            return ND_OK;
        }
    }
    ND_TRY(nd_limit_look_again(hunt, value, true, err));
    const nd_point *point = &hunt->point;
    nd_limit_seen seen = {.value = value, .legal = point->fits || point->has_closest};
    seen.reached[ND_LEVEL_SURE] = point->fits_surely;
    seen.reached[ND_LEVEL_POSSIBLE] = point->fits_likely;
    seen.least_bytes = point->has_closest ? point->closest.estimate.memory.peak_bytes : 0.0;
    if (hunt->count < ND_LIMIT_SEEN_MAX) {
        hunt->seen[hunt->count++] = seen;
    }
    *out = seen;
    return ND_OK;
}

nd_status nd_limit_check_pins(const nd_limit *out, nd_error *err)
{
    bool found = out->has_sure || out->has_possible;
    return !found && out->has_beyond && out->beyond.contradictory ? nd_fail(err, ND_EINVAL, "%s", out->beyond.reason)
                                                                  : ND_OK;
}

/* Tokens that a sequence must be a multiple of for this cp and tp: two pieces for each rank of a ring, and whole tokens
 * for each tp rank in them. */
static int64_t tokens_needed(const nd_layout *layout)
{
    int64_t cp = layout->size[ND_AXIS_CP];
    int64_t tp = layout->size[ND_AXIS_TP];
    return nd_least_common_multiple(cp == 1 ? 1 : 2 * cp, cp * tp);
}

/* The first power of two (times `step`) that is too much, and the last that is not (0: none). Values that no layout can
 * have are passed over. */
static nd_status bracket(nd_limit_hunt *hunt, nd_limit_level level, int64_t step, int64_t *reached, int64_t *too_much,
                         nd_error *err)
{
    *reached = 0;
    for (int64_t value = step; value <= hunt->out->ceiling; value *= 2) {
        nd_limit_seen seen;
        ND_TRY(nd_limit_look(hunt, value, &seen, err));
        if (seen.reached[level]) {
            *reached = value;
        } else if (seen.legal) {
            *too_much = value;
            return ND_OK;
        }
    }
    *too_much = 0;
    return ND_OK;
}

/* The largest multiple of `step` in [reached, too_much) that is reached, by halves. */
static nd_status narrow(nd_limit_hunt *hunt, nd_limit_level level, int64_t step, int64_t reached, int64_t too_much,
                        int64_t *out, nd_error *err)
{
    while (too_much - reached > step) {
        int64_t middle = reached + (too_much - reached) / (2 * step) * step;
        nd_limit_seen seen;
        if (middle == reached) {
            break;
        }
        ND_TRY(nd_limit_look(hunt, middle, &seen, err));
        if (seen.reached[level]) {
            reached = middle;
        } else {
            too_much = middle;
        }
    }
    *out = reached;
    return ND_OK;
}

nd_status nd_limit_take(nd_limit_hunt *hunt, int64_t value, bool *has, nd_point *out, nd_error *err)
{
    ND_TRY(nd_limit_look_again(hunt, value, false, err));
    *out = hunt->point;
    *has = true;
    return ND_OK;
}

/* The limits of both levels and the value beyond, by powers of two and halves. */
static nd_status climb(nd_limit_hunt *hunt, nd_error *err)
{
    nd_limit *out = hunt->out;
    int64_t limits[ND_LEVEL_COUNT] = {0};
    int64_t first_too_much = 0;
    int64_t widest_step = out->step;
    for (int level = 0; level < ND_LEVEL_COUNT; level++) {
        int64_t reached = 0;
        int64_t too_much = 0;
        ND_TRY(bracket(hunt, (nd_limit_level)level, out->step, &reached, &too_much, err));
        int64_t step = out->step;
        if (reached > 0 && out->quantity == ND_LIMIT_SEQ_LEN) {
            ND_TRY(nd_limit_look_again(hunt, reached, false, err));
            const nd_plan *plan = level == ND_LEVEL_SURE ? &hunt->point.sure : &hunt->point.best;
            int64_t finer = nd_least_common_multiple(step, tokens_needed(&plan->layout));
            step = reached % finer == 0 ? finer : step;
        }
        limits[level] = reached;
        if (reached > 0 && too_much > 0) {
            ND_TRY(narrow(hunt, (nd_limit_level)level, step, reached, too_much, &limits[level], err));
        }
        first_too_much = too_much > 0 ? limits[level] + step : 0;
        widest_step = step > widest_step ? step : widest_step;
        out->at_ceiling = reached > 0 && too_much == 0;
    }
    if (limits[ND_LEVEL_SURE] > 0) {
        ND_TRY(nd_limit_take(hunt, limits[ND_LEVEL_SURE], &out->has_sure, &out->sure, err));
    }
    if (limits[ND_LEVEL_POSSIBLE] > limits[ND_LEVEL_SURE]) {
        ND_TRY(nd_limit_take(hunt, limits[ND_LEVEL_POSSIBLE], &out->has_possible, &out->possible, err));
    }
    if (!out->at_ceiling) {
        int64_t beyond = limits[ND_LEVEL_POSSIBLE] > 0 ? first_too_much : out->step;
        ND_TRY(nd_limit_take(hunt, beyond, &out->has_beyond, &out->beyond, err));
    }
    out->step = widest_step;
    return nd_limit_check_pins(out, err);
}

static void pin_micro_batch(nd_limit_hunt *hunt, int64_t value)
{
    hunt->pin.micro_batch = (int32_t)value;
    hunt->pinned |= nd_layout_key_bit(ND_LAYOUT_KEY_MICRO_BATCH);
}

static nd_status search_micro_batch(nd_limit_hunt *hunt, int64_t value, bool rough, nd_error *err)
{
    const nd_task *task = hunt->task;
    nd_train_spec train = *task->context->train;
    if (!task->batch_given) {
        train.global_batch_seqs = nd_task_batch_seqs(task, task->context->cluster->gpus, value);
    }
    pin_micro_batch(hunt, value);
    return nd_limit_search(hunt, value, task->context->cluster, &train, hunt->pinned, rough, err);
}

/* Only divisors of the batch are possible, and which of them are legal depends on the data ranks: all are tried, from
 * the largest down. */
static nd_status descend_divisors(nd_limit_hunt *hunt, nd_error *err)
{
    nd_limit *out = hunt->out;
    int64_t batch = hunt->task->context->train->global_batch_seqs;
    int64_t beyond = 0;
    out->ceiling = batch < out->ceiling ? batch : out->ceiling;
    for (int64_t value = out->ceiling; value >= 1 && !out->has_sure; value--) {
        nd_limit_seen seen;
        if (batch % value != 0) {
            continue;
        }
        ND_TRY(nd_limit_look(hunt, value, &seen, err));
        if (seen.reached[ND_LEVEL_SURE]) {
            ND_TRY(nd_limit_take(hunt, value, &out->has_sure, &out->sure, err));
        } else if (seen.reached[ND_LEVEL_POSSIBLE] && !out->has_possible) {
            ND_TRY(nd_limit_take(hunt, value, &out->has_possible, &out->possible, err));
        }
        if (!seen.reached[ND_LEVEL_POSSIBLE] && !out->has_possible) {
            beyond = value; /* the last one is the nearest */
        }
    }
    out->at_ceiling = beyond == 0;
    if (beyond > 0) {
        ND_TRY(nd_limit_take(hunt, beyond, &out->has_beyond, &out->beyond, err));
    }
    return nd_limit_check_pins(out, err);
}

/* The fastest micro-batch at the batch of the largest one. */
static nd_status find_fastest(nd_limit_hunt *hunt, nd_error *err)
{
    nd_limit *out = hunt->out;
    const nd_task *task = hunt->task;
    const nd_point *limit = out->has_sure ? &out->sure : &out->possible;
    uint32_t pinned =
        task->pinned & ~nd_layout_key_bit(ND_LAYOUT_KEY_MICRO_BATCH) & ~nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM);
    if (!out->has_sure && !out->has_possible) {
        return ND_OK;
    }
    out->searches++;
    ND_TRY(nd_point_search(task, 0, &limit->cluster, &limit->train, pinned, &task->pin, &out->fastest, err));
    const nd_point *fastest = &out->fastest;
    const nd_plan *plan = out->has_sure && fastest->fits_surely ? &fastest->sure : &fastest->best;
    const nd_plan *of_limit = out->has_sure ? &limit->sure : &limit->best;
    out->fastest.value = plan->layout.micro_batch;
    out->has_fastest = fastest->fits && plan->layout.micro_batch != limit->value &&
                       plan->estimate.tokens_per_s > of_limit->estimate.tokens_per_s; /* only up to 64 are tried */
    out->fastest.best = *plan;
    return ND_OK;
}

nd_limit_hunt *nd_limit_start(const nd_task *task, nd_limit_quantity quantity, nd_limit *out)
{
    nd_limit_hunt *hunt = calloc(1, sizeof *hunt);
    memset(out, 0, sizeof *out);
    out->quantity = quantity;
    out->step = 1;
    if (hunt != NULL) {
        hunt->task = task;
        hunt->pinned = task->pinned;
        hunt->pin = task->pin;
        hunt->out = out;
    }
    return hunt;
}

nd_status nd_limit_micro_batch(const nd_task *task, nd_limit *out, nd_error *err)
{
    nd_limit_hunt *hunt = nd_limit_start(task, ND_LIMIT_MICRO_BATCH, out);
    if (hunt == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while looking for the largest micro-batch");
    }
    out->ceiling = ND_LIMIT_MICRO_BATCH_MAX;
    hunt->search = search_micro_batch;
    nd_status status = task->batch_given ? descend_divisors(hunt, err) : climb(hunt, err);
    if (status == ND_OK) {
        status = find_fastest(hunt, err);
    }
    free(hunt);
    return status;
}

static nd_status search_seq_len(nd_limit_hunt *hunt, int64_t value, bool rough, nd_error *err)
{
    const nd_task *task = hunt->task;
    nd_train_spec train = *task->context->train;
    train.seq_len_tokens = value;
    return nd_limit_search(hunt, value, task->context->cluster, &train, hunt->pinned, rough, err);
}

nd_status nd_limit_seq_len(const nd_task *task, nd_limit *out, nd_error *err)
{
    nd_limit_hunt *hunt = nd_limit_start(task, ND_LIMIT_SEQ_LEN, out);
    if (hunt == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while looking for the longest sequence");
    }
    out->ceiling = ND_LIMIT_SEQ_LEN_MAX;
    hunt->search = search_seq_len;
    if ((task->pinned & nd_layout_key_bit(ND_LAYOUT_KEY_MICRO_BATCH)) == 0) {
        pin_micro_batch(hunt, 1);
    }
    nd_layout fixed = task->pin; /* degrees that are not pinned are 1 */
    int64_t needed = task->pinned != 0 ? tokens_needed(&fixed) : 1;
    out->step = nd_least_common_multiple(ND_LIMIT_SEQ_LEN_STEP, needed);
    nd_limit_seen seen;
    nd_status status = nd_limit_look(hunt, out->step, &seen, err);
    if (status == ND_OK && seen.legal && !seen.reached[ND_LEVEL_POSSIBLE]) {
        int64_t coarse = out->step;
        int64_t fine = nd_least_common_multiple(ND_LIMIT_SEQ_LEN_FINE_STEP, needed);
        status = nd_limit_look(hunt, fine, &seen, err);
        out->step = status == ND_OK && seen.reached[ND_LEVEL_POSSIBLE] ? fine : coarse;
    }
    if (status == ND_OK) {
        status = climb(hunt, err);
    }
    free(hunt);
    return status;
}
