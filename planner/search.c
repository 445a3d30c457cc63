#include "planner/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/pool.h"
#include "core/text.h"
#include "core/units.h"
#include "cost_model/simulate.h"
#include "planner/search_internal.h"

/* At least so many plans are kept for the simulation: 3 x 16 meshes and 16 others are 64. */
enum { RETIMED_LISTS = 16 };
/* Units of one round. Fixed, so that what a round knows does not depend on the number of threads: few at first, when
 * every unit walked teaches the rounds after it, then as many as keep threads busy. */
enum { FIRST_ROUND = 4, ROUND_MAX = 64, ENTRIES_PER_ROUND_MAX = 64 * 1024, THREADS_WORTH_UNITS = 64 };

/* Of a front: the simulated step of a pipeline and the closed form that the search goes by differ by less, where the
 * closed form applies (tests/cost_model/test_simulate.c). */
static const double simulated_margin_frac = 0.05;

typedef struct search {
    nd_search_scene scene;
    nd_board known;        /* after the rounds so far */
    nd_search_unit *units; /* by floor */
    int64_t units_count;
    int64_t searched, walked; /* layouts: of all, of the units that are done with */
    nd_board *boards;         /* of one round */
    int32_t round_max;
    int64_t cursor; /* first unit of the round */
    int32_t kept;   /* entries of a list while searching: what is shown, and what a simulation may bring up */
    nd_ranked *entries;
    nd_front *fronts; /* NULL: not asked for; one for each board, and that of `known` behind them */
    uint32_t *tags, *known_tags;
    nd_pool *pool;
    bool stopped;
} search;

nd_search_options nd_search_options_default(void)
{
    nd_search_options options;
    memset(&options, 0, sizeof options);
    options.top = 10;
    options.pin = nd_layout_single();
    options.max = nd_layout_single();
    return options;
}

static bool goes_on(search *s)
{
    const nd_search_control *control = &s->scene.options->control;
    double done = s->searched > 0 ? (double)s->walked / (double)s->searched : 0.0;
    s->stopped = s->stopped || (control->progress != NULL && !control->progress(control->data, done));
    return !s->stopped;
}

static void bound_turn(void *shared, int64_t index, int32_t worker)
{
    (void)worker;
    search *s = shared;
    nd_search_bound_unit(&s->scene, &s->units[s->cursor + index]);
}

static void walk_turn(void *shared, int64_t index, int32_t worker)
{
    (void)worker;
    search *s = shared;
    nd_search_walk(&s->scene, &s->units[s->cursor + index], &s->boards[index]);
}

static int by_floor(const void *left, const void *right)
{
    const nd_search_unit *a = left;
    const nd_search_unit *b = right;
    if (a->floor_s != b->floor_s) {
        return a->floor_s < b->floor_s ? -1 : 1;
    }
    return (a->order > b->order) - (a->order < b->order);
}

static void bound_units(search *s)
{
    const int64_t share = 1024; /* between two calls of progress */
    for (s->cursor = 0; s->cursor < s->units_count && goes_on(s); s->cursor += share) {
        int64_t left = s->units_count - s->cursor;
        nd_pool_run(s->pool, left < share ? left : share, bound_turn, s);
    }
    if (!s->stopped && s->units_count > 0) { /* a block rule may forbid all */
        qsort(s->units, (size_t)s->units_count, sizeof s->units[0], by_floor);
    }
}

/* None of the units from the cursor on can change the list: they are sorted by their floor. */
static bool rest_is_slower(const search *s)
{
    const nd_cost_context *context = s->scene.context;
    nd_bound bound = {.step_s = s->units[s->cursor].floor_s,
                      .capacity_bytes = (double)context->cluster->gpu.memory_bytes};
    return !s->scene.options->exhaustive && nd_board_is_closed(&s->known, &bound);
}

static void reject_rest(search *s)
{
    const nd_search_unit *next = &s->units[s->cursor];
    nd_layout first = next->layout;
    (void)nd_count_below_unit(&s->scene.space, next->micro_batch_index, next->layout, &first);
    first.recompute = s->scene.space.recomputes[0].mode;
    first.recompute_every = s->scene.space.recomputes[0].every;
    int64_t layouts = 0;
    for (; s->cursor < s->units_count; s->cursor++) {
        layouts += s->units[s->cursor].layouts;
    }
    nd_rejections_count(&s->known.rejections, nd_rule_slower, layouts, next->order, &first);
}

static void walk_units(search *s)
{
    const nd_search_options *options = s->scene.options;
    size_t entries = nd_board_entries(s->kept);
    int64_t round = FIRST_ROUND < s->round_max ? FIRST_ROUND : s->round_max;
    for (s->cursor = 0; s->cursor < s->units_count && goes_on(s); s->cursor += round) {
        if (options->until_sure && s->known.has_safe) {
            return;
        }
        if (rest_is_slower(s)) {
            reject_rest(s);
            return;
        }
        int64_t left = s->units_count - s->cursor;
        round = s->cursor == 0 ? round : 2 * round < s->round_max ? 2 * round : s->round_max;
        round = round < left ? round : left;
        for (int64_t i = 0; i < round; i++) {
            nd_board_init(&s->boards[i], options->objective, s->kept, s->entries + (size_t)i * entries,
                          s->tags + (size_t)i * nd_board_tags(s->kept));
            if (s->fronts != NULL) {
                nd_front_clear(&s->fronts[i]);
                s->boards[i].front = &s->fronts[i];
            }
        }
        nd_pool_run(s->pool, round, walk_turn, s);
        for (int64_t i = 0; i < round; i++) {
            nd_board_merge(&s->known, &s->boards[i]);
            s->walked += s->units[s->cursor + i].layouts;
        }
    }
}

/* The words of "memory": those of the layout that comes nearest when nothing fits. */
static void explain_memory(const search *s, const nd_plan_list *list, nd_rejection *entry)
{
    const nd_memory_breakdown *closest = &list->closest.estimate.memory;
    double capacity_gib = (double)s->scene.context->cluster->gpu.memory_bytes / ND_GIB;
    if (s->known.fitting > 0) {
        (void)snprintf(entry->message, sizeof entry->message,
                       "needs more than the %.1f GiB of a GPU, even at the low end of its interval", capacity_gib);
        return;
    }
    (void)snprintf(entry->message, sizeof entry->message,
                   "needs more than the %.1f GiB of a GPU: even the smallest legal layout needs %.1f GiB (%.1f to "
                   "%.1f) in the %s phase",
                   capacity_gib, closest->peak_bytes / ND_GIB, closest->peak_low_bytes / ND_GIB,
                   closest->peak_high_bytes / ND_GIB, nd_phase_name(closest->phase));
    if (nd_layout_format(&list->closest.layout, entry->nearest, sizeof entry->nearest) >= sizeof entry->nearest) {
        *strrchr(entry->nearest, ',') = '\0'; /* no half a key at the end */
    }
}

static void explain_slower(const search *s, nd_rejection *entry)
{
    if (s->fronts != NULL) {
        (void)snprintf(entry->message, sizeof entry->message,
                       "not looked at: lower bounds of step time and memory say that another plan beats them in both");
        return;
    }
    bool memory = s->scene.options->objective == ND_OBJECTIVE_MEMORY;
    (void)snprintf(entry->message, sizeof entry->message,
                   "not looked at: a lower bound of their %s says that none can be among the plans shown",
                   memory ? "memory" : "step time");
}

static void explain(const search *s, const nd_tally *tally, const nd_plan_list *list, nd_rejection *entry)
{
    memset(entry, 0, sizeof *entry);
    entry->rule = tally->rule;
    entry->count = tally->count;
    if (tally->rule == nd_rule_memory) {
        explain_memory(s, list, entry);
    } else if (tally->rule == nd_rule_slower) {
        explain_slower(s, entry);
    } else if (tally->rule == nd_rule_same_split) {
        (void)snprintf(entry->message, sizeof entry->message,
                       "split=balanced gives every stage the layers that split=even gives it");
    } else {
        nd_refusal refusal;
        memset(&refusal, 0, sizeof refusal);
        (void)nd_layout_allowed(s->scene.context, s->scene.framework, &tally->example, NULL, &refusal);
        memcpy(entry->message, refusal.message, sizeof entry->message);
        memcpy(entry->nearest, refusal.nearest, sizeof entry->nearest);
    }
}

static void fill_rejections(search *s, nd_plan_list *list)
{
    if (s->known.unfit > 0) {
        nd_rejections_count(&s->known.rejections, nd_rule_memory, s->known.unfit, INT64_MAX, &s->scene.base);
    }
    list->rejections_count = s->known.rejections.count;
    for (int32_t i = 0; i < list->rejections_count; i++) {
        explain(s, &s->known.rejections.entries[i], list, &list->rejections[i]);
    }
    nd_rejections_sort(list->rejections, list->rejections_count);
}

/* Steps of pipelines pass by pass: of what the closed form ranks best, which errs by a few percent. */
static void retime(const nd_cost_context *context, nd_ranked *entry)
{
    nd_estimate estimate;
    if (nd_is_simulated(context, &entry->layout)) {
        nd_estimate_layout(context, &entry->layout, &estimate);
        entry->step_s = estimate.time.step_s;
    }
}

static void retime_turn(void *shared, int64_t index, int32_t worker)
{
    (void)worker;
    search *s = shared;
    nd_board *known = &s->known;
    if (known->front != NULL) {
        retime(s->scene.context, &known->front->entries[index]);
        return;
    }
    bool of_meshes = index < known->meshes.count;
    retime(s->scene.context,
           of_meshes ? &known->meshes.entries[index] : &known->all.entries[index - known->meshes.count]);
}

static void refine(search *s)
{
    nd_board *known = &s->known;
    if (!s->scene.context->simulates || s->scene.options->until_sure) { /* nobody asked which is the fastest */
        return;
    }
    int32_t count = known->front != NULL ? known->front->count : known->meshes.count + known->all.count;
    nd_pool_run(s->pool, count, retime_turn, s);
    if (known->has_safe) {
        retime(s->scene.context, &known->safe);
    }
    nd_ranking_sort(&known->meshes);
    nd_ranking_sort(&known->all);
}

/* A list of one may need luck: the best plan that does not. */
static void fill_sure(const nd_board *known, const nd_cost_context *context, nd_plan_list *list)
{
    bool listed = false;
    for (int32_t i = 0; i < list->count; i++) {
        listed = listed || list->plans[i].estimate.memory.verdict == ND_VERDICT_FITS;
    }
    list->has_sure = known->has_safe && !listed;
    if (list->has_sure) {
        list->sure.layout = known->safe.layout;
        nd_estimate_layout(context, &known->safe.layout, &list->sure.estimate);
    }
}

/* Estimates are computed again for the few plans that are returned: the search keeps only what it ranks by. */
static nd_status fill_list(search *s, nd_ranked *chosen, nd_plan_list *list, nd_error *err)
{
    const nd_board *known = &s->known;
    const nd_cost_context *context = s->scene.context;
    if (known->front != NULL) {
        ND_TRY(nd_front_list(known->front, list, err));
        chosen = known->front->entries;
    } else {
        list->count = nd_ranking_choose(&known->meshes, &known->all, known->has_safe ? &known->safe : NULL,
                                        s->scene.options->top, chosen);
    }
    for (int32_t i = 0; i < list->count; i++) {
        list->plans[i].layout = chosen[i].layout;
        nd_estimate_layout(context, &chosen[i].layout, &list->plans[i].estimate);
    }
    fill_sure(known, context, list);
    list->searched = s->searched;
    list->evaluated = known->evaluated;
    list->fitting = known->fitting;
    list->interrupted = s->stopped;
    const nd_ranked *closest = known->fitting == 0 ? nd_board_closest(known) : NULL;
    list->has_closest = closest != NULL;
    if (closest != NULL) {
        list->closest.layout = closest->layout;
        nd_estimate_layout(context, &closest->layout, &list->closest.estimate);
    }
    fill_rejections(s, list);
    return ND_OK;
}

/* A front for every board of a round, and one for what is known. */
static nd_status prepare_fronts(search *s, nd_error *err)
{
    if (!s->scene.options->front) {
        return ND_OK;
    }
    s->fronts = calloc((size_t)s->round_max + 1, sizeof *s->fronts);
    if (s->fronts == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a front");
    }
    for (int32_t i = 0; i <= s->round_max; i++) {
        s->fronts[i].margin_frac = s->scene.context->simulates ? simulated_margin_frac : 0.0;
    }
    s->known.front = &s->fronts[s->round_max];
    return ND_OK;
}

/* Boards of a round, and the threads when there is enough to do for them. */
static nd_status prepare(search *s, nd_error *err)
{
    const nd_search_options *options = s->scene.options;
    size_t entries = nd_board_entries(s->kept);
    int64_t fits = (int64_t)(ENTRIES_PER_ROUND_MAX / entries);
    s->round_max = (int32_t)(fits < 1 ? 1 : fits > ROUND_MAX ? ROUND_MAX : fits);
    int32_t threads = options->control.threads > 0 ? options->control.threads : nd_pool_processors();
    s->pool = nd_pool_create(s->units_count < THREADS_WORTH_UNITS ? 1 : threads);
    s->boards = calloc((size_t)s->round_max, sizeof *s->boards);
    s->entries = calloc((size_t)s->round_max * entries, sizeof *s->entries);
    s->tags = calloc((size_t)s->round_max * nd_board_tags(s->kept), sizeof *s->tags);
    if (s->pool == NULL || s->boards == NULL || s->entries == NULL || s->tags == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a list of %" PRId32 " plans", options->top);
    }
    return prepare_fronts(s, err);
}

static nd_status run_search(search *s, nd_ranked *entries, nd_plan_list *list, nd_error *err)
{
    const nd_search_options *options = s->scene.options;
    nd_board_init(&s->known, options->objective, s->kept, entries, s->known_tags);
    s->scene.known = &s->known;
    nd_search_space_init(s->scene.context, options, &s->scene.space);
    ND_TRY(nd_search_units(&s->scene, &s->units, &s->units_count, &s->searched, &s->known.rejections, err));
    if (s->searched == 0) {
        char keys[256];
        nd_search_options_text(options, keys, sizeof keys);
        return nd_fail(err, ND_EINVAL, "no mesh of %" PRId64 " GPU%s has %s; free or raise one of these",
                       s->scene.context->cluster->gpus, nd_text_plural(s->scene.context->cluster->gpus), keys);
    }
    ND_TRY(prepare(s, err));
    bound_units(s);
    walk_units(s);
    refine(s);
    return fill_list(s, entries + nd_board_entries(s->kept), list, err);
}

nd_status nd_search(const nd_cost_context *context, const nd_framework *framework, const nd_search_options *options,
                    nd_plan_list *out, nd_error *err)
{
    double start_s = nd_monotonic_s();
    ND_TRY(nd_search_options_check(context, options, err));
    nd_status status = ND_ENOMEM;
    size_t top = (size_t)options->top;
    search *s = calloc(1, sizeof *s);
    int32_t kept = context->simulates && options->top < RETIMED_LISTS ? RETIMED_LISTS : options->top;
    nd_ranked *entries = calloc(nd_board_entries(kept) + top, sizeof *entries); /* what is known, and chosen */
    nd_plan_list *list = calloc(1, sizeof *list);
    nd_plan *plans = calloc(top, sizeof *plans);
    if (s == NULL || entries == NULL || list == NULL || plans == NULL) {
        status = nd_fail(err, ND_ENOMEM, "out of memory for a list of %" PRId32 " plans", options->top);
        goto cleanup;
    }
    s->scene = (nd_search_scene){.context = context, .framework = framework, .options = options};
    s->kept = kept;
    s->known_tags = calloc(nd_board_tags(kept), sizeof *s->known_tags);
    if (s->known_tags == NULL) {
        status = nd_fail(err, ND_ENOMEM, "out of memory for a list of %" PRId32 " plans", options->top);
        goto cleanup;
    }
    s->scene.base = nd_layout_single();
    if ((options->pinned >> ND_LAYOUT_KEY_OFFLOAD & 1u) != 0) {
        s->scene.base.offload = options->pin.offload; /* never searched: it trades time for memory on the user's word */
    }
    list->plans = plans;
    plans = NULL;
    status = run_search(s, entries, list, err);
    if (status == ND_OK) {
        list->elapsed_s = nd_monotonic_s() - start_s;
        *out = *list;
        list->plans = NULL;
    }
cleanup:
    if (s != NULL) {
        nd_pool_free(s->pool);
        free(s->units);
        free(s->boards);
        free(s->entries);
        for (int32_t i = 0; s->fronts != NULL && i <= s->round_max; i++) {
            nd_front_free(&s->fronts[i]);
        }
        free(s->fronts);
        free(s->tags);
        free(s->known_tags);
    }
    free(plans);
    nd_plan_list_free(list);
    free(list);
    free(entries);
    free(s);
    return status;
}
