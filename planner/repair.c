#include "planner/repair.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "planner/fixes_internal.h"

enum { CHOICES_MAX = 6 };

/* What a repair may change. */
typedef struct state {
    nd_layout layout;
    nd_train_spec train;
} state;

typedef struct choice {
    state after;
    char change[ND_REPAIR_TEXT_MAX];
} choice;

typedef struct walk {
    const nd_cost_context *base;
    const nd_framework *framework;
    uint32_t given;
    int32_t depth_max;
    nd_repair_step path[ND_REPAIR_STEPS_MAX];
    nd_repair *out;
} walk;

bool nd_layout_broken(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      nd_refusal *refusal)
{
    *refusal = (nd_refusal){0};
    if (framework != NULL && !framework->allows(context->model, layout, context->train, NULL, refusal)) {
        return true;
    }
    return !nd_layout_allowed(context, framework, layout, NULL, refusal);
}

static bool given(uint32_t keys, nd_layout_key key)
{
    return (keys >> key & 1u) != 0;
}

/* Ranks of all axes but one; 0 when they overflow what a cluster can have. */
static int64_t other_ranks(const nd_layout *layout, nd_axis but)
{
    int64_t ranks = 1;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        ranks *= axis == (int)but ? 1 : layout->size[axis];
        if (ranks > INT32_MAX) {
            return 0;
        }
    }
    return ranks;
}

/* Give the ranks that the other degrees leave to `axis`; false when they do not divide the GPUs. */
static bool take_rest(const nd_cost_context *context, nd_layout *layout, nd_axis axis)
{
    int64_t others = other_ranks(layout, axis);
    int64_t gpus = context->cluster->gpus;
    if (others == 0 || gpus % others != 0) {
        return false;
    }
    layout->size[axis] = (int32_t)(gpus / others);
    return true;
}

/* What nobody wrote follows: ranks, modes and accumulation. */
static void settle(const walk *w, uint32_t changed, state *s)
{
    nd_layout *layout = &s->layout;
    const nd_stack *stack = w->base->stack;
    uint32_t fixed = w->given | changed;
    const uint32_t data = 1u << ND_LAYOUT_KEY_DP_SHARD | 1u << ND_LAYOUT_KEY_DP_REPLICATE;
    const uint32_t axes = 1u << ND_LAYOUT_KEY_PP | 1u << ND_LAYOUT_KEY_CP | 1u << ND_LAYOUT_KEY_TP;
    if ((changed & data) == 0 && (changed & axes) != 0 && !take_rest(w->base, layout, ND_AXIS_DP_SHARD)) {
        (void)take_rest(w->base, layout, ND_AXIS_DP_REPLICATE);
    }
    bool shares = (int64_t)layout->size[ND_AXIS_DP_SHARD] * layout->size[ND_AXIS_CP] > 1;
    if (!given(fixed, ND_LAYOUT_KEY_SHARDING)) {
        layout->sharding = shares ? stack->default_sharding : ND_SHARDING_NONE;
    }
    if (!given(fixed, ND_LAYOUT_KEY_SCHEDULE)) {
        layout->schedule = layout->vpp > 1 ? ND_SCHEDULE_INTERLEAVED : ND_SCHEDULE_1F1B;
    }
    if (!given(fixed, ND_LAYOUT_KEY_SP)) {
        bool wants = stack->tp_implies_sp || !stack->tp_without_sp || stack->tp_usually_sp || layout->sequence_parallel;
        layout->sequence_parallel = layout->size[ND_AXIS_TP] > 1 && wants;
    }
    int64_t once = nd_layout_data_ranks(layout) * layout->micro_batch;
    if (!given(changed, ND_LAYOUT_KEY_GRAD_ACCUM) && once > 0 && s->train.global_batch_seqs % once == 0) {
        layout->grad_accum = s->train.global_batch_seqs / once;
    }
}

static void copy_keys(const nd_layout *from, uint32_t keys, nd_layout *to)
{
    static const nd_axis axes[] = {ND_AXIS_PP, ND_AXIS_DP_REPLICATE, ND_AXIS_DP_SHARD, ND_AXIS_CP, ND_AXIS_TP};
    for (int key = ND_LAYOUT_KEY_PP; key <= ND_LAYOUT_KEY_TP; key++) {
        to->size[axes[key]] = given(keys, (nd_layout_key)key) ? from->size[axes[key]] : to->size[axes[key]];
    }
    to->ep = given(keys, ND_LAYOUT_KEY_EP) ? from->ep : to->ep;
    to->vpp = given(keys, ND_LAYOUT_KEY_VPP) ? from->vpp : to->vpp;
    to->micro_batch = given(keys, ND_LAYOUT_KEY_MICRO_BATCH) ? from->micro_batch : to->micro_batch;
    to->grad_accum = given(keys, ND_LAYOUT_KEY_GRAD_ACCUM) ? from->grad_accum : to->grad_accum;
    to->sequence_parallel = given(keys, ND_LAYOUT_KEY_SP) ? from->sequence_parallel : to->sequence_parallel;
    to->cp_method = given(keys, ND_LAYOUT_KEY_CP_METHOD) ? from->cp_method : to->cp_method;
    to->schedule = given(keys, ND_LAYOUT_KEY_SCHEDULE) ? from->schedule : to->schedule;
    to->split = given(keys, ND_LAYOUT_KEY_SPLIT) ? from->split : to->split;
    to->sharding = given(keys, ND_LAYOUT_KEY_SHARDING) ? from->sharding : to->sharding;
    to->offload = given(keys, ND_LAYOUT_KEY_OFFLOAD) ? from->offload : to->offload;
    if (given(keys, ND_LAYOUT_KEY_RECOMPUTE)) {
        to->recompute = from->recompute;
        to->recompute_every = from->recompute_every;
    }
}

static bool set_option(const char *option, const char *value, nd_train_spec *train)
{
    nd_error err;
    if (strcmp(option, "--seq-len") == 0) {
        return nd_text_int(value, option, 1, INT64_C(1) << 30, &train->seq_len_tokens, &err) == ND_OK;
    }
    if (strcmp(option, "--global-batch") == 0) {
        return nd_text_int(value, option, 1, INT64_C(1) << 40, &train->global_batch_seqs, &err) == ND_OK;
    }
    return strcmp(option, "--attention") == 0 && nd_attention_parse(value, &train->attention, &err) == ND_OK;
}

/* One alternative of a refusal: layout keys, "--option value", or a bare value of the last option named. */
static bool apply(const walk *w, const state *from, const char *text, char option[ND_REPAIR_TEXT_MAX], choice *out)
{
    nd_layout parsed;
    nd_error err;
    uint32_t keys = 0;
    out->after = *from;
    if (strcmp(text, "dp_replicate for dp_shard") == 0) {
        parsed = from->layout;
        parsed.size[ND_AXIS_DP_REPLICATE] *= parsed.size[ND_AXIS_DP_SHARD];
        parsed.size[ND_AXIS_DP_SHARD] = 1;
        keys = 1u << ND_LAYOUT_KEY_DP_REPLICATE | 1u << ND_LAYOUT_KEY_DP_SHARD;
    } else if (strncmp(text, "--", 2) == 0 || strchr(text, '=') == NULL) {
        const char *space = strchr(text, ' ');
        if (space != NULL) {
            (void)snprintf(option, ND_REPAIR_TEXT_MAX, "%.*s", (int)(space - text), text);
        }
        const char *value = space != NULL ? space + 1 : text;
        if (!set_option(option, value, &out->after.train)) {
            return false;
        }
        settle(w, 0, &out->after);
        (void)snprintf(out->change, sizeof out->change, "%.60s %.60s", option, value);
        return true;
    } else if (nd_layout_parse(text, &parsed, &keys, &err) != ND_OK) {
        return false;
    }
    copy_keys(&parsed, keys, &out->after.layout);
    settle(w, keys, &out->after);
    nd_fix_layout_keys(&from->layout, &out->after.layout, out->change);
    return out->change[0] != '\0';
}

/* Where the ranks are not the GPUs and dp_shard alone cannot help: one other degree less. */
static int32_t lower_a_degree(const walk *w, const state *from, int32_t count, choice out[CHOICES_MAX])
{
    static const nd_axis axes[] = {ND_AXIS_DP_REPLICATE, ND_AXIS_TP, ND_AXIS_CP, ND_AXIS_PP};
    static const nd_layout_key keys[] = {ND_LAYOUT_KEY_DP_REPLICATE, ND_LAYOUT_KEY_TP, ND_LAYOUT_KEY_CP,
                                         ND_LAYOUT_KEY_PP};
    for (size_t i = 0; i < sizeof axes / sizeof axes[0] && count < CHOICES_MAX; i++) {
        choice *c = &out[count];
        c->after = *from;
        nd_layout *layout = &c->after.layout;
        bool divides = false;
        int32_t degree = layout->size[axes[i]];
        degree = degree <= w->base->cluster->gpus ? degree : (int32_t)w->base->cluster->gpus + 1;
        while (!divides && --degree >= 1) {
            layout->size[axes[i]] = degree;
            divides = take_rest(w->base, layout, ND_AXIS_DP_SHARD);
        }
        if (divides) {
            settle(w, 1u << keys[i] | 1u << ND_LAYOUT_KEY_DP_SHARD, &c->after);
            nd_fix_layout_keys(&from->layout, layout, c->change);
            count++;
        }
    }
    return count;
}

/* A smaller micro-batch keeps the global batch where another batch would train something else. */
static int32_t lower_micro_batch(const walk *w, const state *from, int32_t count, choice out[CHOICES_MAX])
{
    int64_t ranks = nd_layout_data_ranks(&from->layout);
    int64_t batch = from->train.global_batch_seqs;
    int32_t micro_batch = from->layout.micro_batch - 1;
    while (micro_batch >= 1 && batch % (ranks * micro_batch) != 0) {
        micro_batch--;
    }
    if (micro_batch >= 1 && count < CHOICES_MAX) {
        choice *c = &out[count++];
        c->after = *from;
        c->after.layout.micro_batch = micro_batch;
        settle(w, 1u << ND_LAYOUT_KEY_MICRO_BATCH, &c->after);
        nd_fix_layout_keys(&from->layout, &c->after.layout, c->change);
    }
    return count;
}

static int32_t choices_of(const walk *w, const state *from, const nd_refusal *refusal, choice out[CHOICES_MAX])
{
    static const char separator[] = " or ";
    char text[sizeof refusal->nearest];
    char option[ND_REPAIR_TEXT_MAX] = "";
    int32_t count = 0;
    (void)snprintf(text, sizeof text, "%s", refusal->nearest);
    for (char *piece = text; piece != NULL && piece[0] != '\0' && count < CHOICES_MAX;) {
        char *end = strstr(piece, separator);
        if (end != NULL) {
            *end = '\0';
        }
        count += apply(w, from, piece, option, &out[count]);
        piece = end != NULL ? end + strlen(separator) : NULL;
    }
    if (strcmp(refusal->rule, "global-batch") == 0) {
        count = lower_micro_batch(w, from, count, out);
    }
    bool ranks = strcmp(refusal->rule, "ranks-equal-gpus") == 0;
    return ranks && count == 0 ? lower_a_degree(w, from, count, out) : count;
}

/* The context of a training that a repair changed; false when it cannot be. */
static bool context_of(const walk *w, const nd_train_spec *train, nd_cost_context *out)
{
    const nd_cost_context *base = w->base;
    nd_error err;
    if (nd_train_spec_check(train, &err) != ND_OK ||
        nd_cost_context_like(base, base->cluster, train, base->stack, out, &err) != ND_OK) {
        return false;
    }
    return true;
}

static bool keeps_training(const walk *w, const nd_train_spec *train)
{
    const nd_train_spec *before = w->base->train;
    return train->seq_len_tokens == before->seq_len_tokens && train->global_batch_seqs == before->global_batch_seqs &&
           train->attention == before->attention;
}

/* Of two layouts reached in as many steps: the same training, then one that fits, then the faster one. */
static void arrive(const walk *w, const nd_cost_context *context, const state *at, int32_t depth)
{
    nd_repair *out = w->out;
    nd_estimate estimate;
    nd_estimate_layout(context, &at->layout, &estimate);
    bool keeps = keeps_training(w, &at->train);
    bool better = !out->found;
    if (!better && keeps != keeps_training(w, &out->train)) {
        better = keeps;
    } else if (!better && estimate.memory.verdict != out->estimate.memory.verdict) {
        better = estimate.memory.verdict < out->estimate.memory.verdict;
    } else if (!better) {
        better = estimate.tokens_per_s > out->estimate.tokens_per_s;
    }
    if (better) {
        out->found = true;
        out->count = depth;
        memcpy(out->steps, w->path, sizeof out->steps);
        out->layout = at->layout;
        out->train = at->train;
        out->estimate = estimate;
    }
}

/* Sequence parallelism that nobody wrote is no rule broken: it goes where the software has it. */
static bool broken_as_written(const walk *w, const nd_cost_context *context, state *at, nd_refusal *refusal)
{
    if (!nd_layout_broken(context, w->framework, &at->layout, refusal)) {
        return false;
    }
    const char *wanted = at->layout.sequence_parallel ? "sp=off" : "sp=on";
    if (given(w->given, ND_LAYOUT_KEY_SP) || strcmp(refusal->nearest, wanted) != 0) {
        return true;
    }
    at->layout.sequence_parallel = !at->layout.sequence_parallel;
    return nd_layout_broken(context, w->framework, &at->layout, refusal);
}

/* Depth first, to a bound that grows; the rules of a layout are few and so are their nearest values. */
static void walk_from(walk *w, const state *from, int32_t depth) // NOLINT(misc-no-recursion): bounded by depth_max
{
    nd_cost_context context;
    nd_refusal refusal;
    choice choices[CHOICES_MAX];
    state start = *from;
    if (!context_of(w, &start.train, &context)) {
        return;
    }
    if (!broken_as_written(w, &context, &start, &refusal)) {
        arrive(w, &context, &start, depth);
        return;
    }
    if (depth == w->depth_max) {
        return;
    }
    w->path[depth].refusal = refusal;
    int32_t count = choices_of(w, &start, &refusal, choices);
    for (int32_t i = 0; i < count; i++) {
        w->path[depth].refusal = refusal;
        memcpy(w->path[depth].change, choices[i].change, sizeof choices[i].change);
        walk_from(w, &choices[i].after, depth + 1);
    }
}

void nd_layout_repair(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                      uint32_t given_keys, nd_repair *out)
{
    state start = {*layout, *context->train};
    walk w = {.base = context, .framework = framework, .given = given_keys, .out = out};
    memset(out, 0, sizeof *out);
    out->layout = *layout;
    out->train = *context->train;
    if (!nd_layout_broken(context, framework, layout, &out->steps[0].refusal)) {
        return;
    }
    out->count = 1;
    for (int32_t depth = 1; !out->found && depth <= ND_REPAIR_STEPS_MAX; depth++) {
        w.depth_max = depth;
        walk_from(&w, &start, 0);
    }
}
