#include "planner/why.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "planner/ranking_internal.h"
#include "planner/search.h"

static const char *const answer_names[] = {
    [ND_WHY_ILLEGAL] = "illegal",       [ND_WHY_UNFIT] = "unfit",         [ND_WHY_HOST_UNFIT] = "host_unfit",
    [ND_WHY_BORDERLINE] = "borderline", [ND_WHY_NOT_FIRST] = "not_first", [ND_WHY_FIRST] = "first",
};

/* Plans in which a layout's place is looked for. A place beyond them is told as a lower bound; a longer list takes
 * seconds on thousands of GPUs, since each of its plans is simulated. */
enum { LISTED = 200 };

/* Steps that differ by less are equal: the same kernels added up in another order. */
static const double equal_frac = 1e-9;
/* Distance of two layouts: a doubled degree counts 1, another mode half of that (own choice; only the order counts). */
static const double mode_distance = 0.5;

const char *nd_why_answer_name(nd_why_answer answer)
{
    return answer_names[answer];
}

static double ratio(int64_t a, int64_t b)
{
    return fabs(log2((double)a / (double)b));
}

static double distance(const nd_layout *a, const nd_layout *b)
{
    double sum = ratio(a->ep, b->ep) + ratio(a->vpp, b->vpp) + ratio(a->micro_batch, b->micro_batch);
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        sum += ratio(a->size[axis], b->size[axis]);
    }
    int modes = (a->sequence_parallel != b->sequence_parallel) + (a->cp_method != b->cp_method) +
                (a->schedule != b->schedule) + (a->sharding != b->sharding) + (a->recompute != b->recompute) +
                (a->offload != b->offload);
    return sum + mode_distance * (double)modes;
}

static bool comes_before(const nd_estimate *a, const nd_estimate *b)
{
    int class_a = nd_memory_doubt(&a->memory);
    int class_b = nd_memory_doubt(&b->memory);
    return class_a != class_b ? class_a < class_b : a->time.step_s < b->time.step_s * (1.0 - equal_frac);
}

/* Is plan `index` the first of its mesh in the list? */
static bool leads_mesh(const nd_plan_list *list, int32_t index)
{
    for (int32_t i = 0; i < index; i++) {
        if (nd_same_mesh(&list->plans[i].layout, &list->plans[index].layout)) {
            return false;
        }
    }
    return true;
}

static void find_place(const nd_plan_list *list, nd_why *out)
{
    nd_why_place *place = &out->place;
    const nd_plan *first = NULL; /* of the others that come before this layout */
    const nd_plan *next = NULL;  /* of those that come after it, another mesh before another variant */
    *place = (nd_why_place){.rank = 1, .meshes = 1, .searched = list->searched, .fitting = list->fitting};
    assert(list->plans != NULL || list->count == 0);
    for (int32_t i = 0; i < list->count; i++) {
        const nd_plan *plan = &list->plans[i];
        bool mine = nd_same_mesh(&plan->layout, &out->layout);
        if (nd_same_layout(&plan->layout, &out->layout)) {
            continue;
        }
        bool before = comes_before(&plan->estimate, &out->estimate);
        if (before && first == NULL) {
            first = plan;
        }
        if (!before && (next == NULL || (!mine && nd_same_mesh(&next->layout, &out->layout)))) {
            next = plan;
        }
        if (mine && before && !place->has_variant) {
            place->has_variant = true;
            place->variant = *plan;
        }
        if (!mine && leads_mesh(list, i)) {
            place->meshes++;
            place->rank += before;
        }
    }
    /* a full list has at most two plans of a mesh, unless it has all meshes and others of their variants */
    place->at_least = list->count == LISTED && 2 * place->meshes >= list->count;
    const nd_plan *other = first != NULL ? first : next;
    place->has_other = other != NULL;
    if (other != NULL) {
        place->other = *other;
    }
    if (out->answer != ND_WHY_BORDERLINE) {
        out->answer = first != NULL ? ND_WHY_NOT_FIRST : ND_WHY_FIRST;
    }
}

static nd_status search(const nd_cost_context *context, const nd_framework *framework, nd_plan_list *list,
                        nd_error *err)
{
    nd_search_options options = nd_search_options_default();
    options.top = LISTED;
    options.plans_only = true;
    return nd_search(context, framework, &options, list, err);
}

/* Every legal layout, as many as there is room for. */
static nd_status search_legal(const nd_cost_context *context, const nd_framework *framework, nd_plan_list *list,
                              nd_error *err)
{
    nd_search_options options = nd_search_options_default();
    options.top = ND_PLANS_MAX;
    options.plans_only = true;
    options.include_unfit = true;
    return nd_search(context, framework, &options, list, err);
}

/* The best other variant of the layout's mesh, when it comes before the layout. */
static nd_status find_variant(const nd_cost_context *context, const nd_framework *framework, nd_why *out, nd_error *err)
{
    nd_plan_list list = {0};
    nd_search_options options = nd_search_options_default();
    options.top = 1;
    options.plans_only = true;
    options.pin = out->layout;
    options.pinned = 1u << ND_LAYOUT_KEY_PP | 1u << ND_LAYOUT_KEY_DP_REPLICATE | 1u << ND_LAYOUT_KEY_DP_SHARD |
                     1u << ND_LAYOUT_KEY_CP | 1u << ND_LAYOUT_KEY_TP | 1u << ND_LAYOUT_KEY_EP;
    ND_TRY(nd_search(context, framework, &options, &list, err));
    if (list.count > 0 && !nd_same_layout(&list.plans[0].layout, &out->layout) &&
        comes_before(&list.plans[0].estimate, &out->estimate)) {
        out->place.has_variant = true;
        out->place.variant = list.plans[0];
    }
    nd_plan_list_free(&list);
    return ND_OK;
}

static nd_status explain_illegal(const nd_cost_context *context, const nd_framework *framework, nd_why *out,
                                 nd_error *err)
{
    out->answer = ND_WHY_ILLEGAL;
    if (out->repair.found) {
        return ND_OK;
    }
    nd_plan_list list = {0};
    ND_TRY(search_legal(context, framework, &list, err));
    double least = HUGE_VAL;
    for (int32_t i = 0; i < list.count; i++) {
        double away = distance(&list.plans[i].layout, &out->layout);
        if (away < least) {
            least = away;
            out->has_legal = true;
            out->legal = list.plans[i];
        }
    }
    nd_plan_list_free(&list);
    return ND_OK;
}

/* The same training on the same GPUs. */
static bool keeps_training(const nd_fix *fix)
{
    return nd_fix_kind_class(fix->kind) <= ND_FIX_CLASS_SOFTWARE &&
           (fix->second == ND_FIX_COUNT || nd_fix_kind_class(fix->second) <= ND_FIX_CLASS_SOFTWARE);
}

static nd_status explain_memory(const nd_cost_context *context, const nd_framework *framework, nd_why *out,
                                nd_error *err)
{
    out->has_sure = nd_fixes_smallest_that_fits(context, framework, &out->layout, ND_VERDICT_FITS, &out->sure);
    bool expected = out->answer == ND_WHY_BORDERLINE && nd_memory_doubt(&out->estimate.memory) == 0;
    if (!expected) {
        out->has_likely =
            nd_fixes_smallest_that_fits(context, framework, &out->layout, ND_VERDICT_BORDERLINE, &out->likely);
    }
    bool same = (out->has_sure && keeps_training(&out->sure)) || (out->has_likely && keeps_training(&out->likely));
    if (same || out->answer == ND_WHY_BORDERLINE) {
        return ND_OK;
    }
    nd_plan_list list = {0};
    ND_TRY(search(context, framework, &list, err));
    out->has_search_fit = list.count > 0;
    if (list.count > 0) {
        out->search_fit = list.plans[0];
    }
    nd_plan_list_free(&list);
    return ND_OK;
}

static nd_status explain_place(const nd_cost_context *context, const nd_framework *framework, nd_why *out,
                               nd_error *err)
{
    nd_plan_list list = {0};
    ND_TRY(search(context, framework, &list, err));
    find_place(&list, out);
    bool full = list.count == LISTED;
    nd_plan_list_free(&list);
    if (full && !out->place.has_variant) { /* its mesh may come after the list */
        ND_TRY(find_variant(context, framework, out, err));
    }
    out->has_comparison = out->place.has_other;
    if (out->has_comparison) {
        nd_compare_layouts(context, &out->layout, context, &out->place.other.layout, &out->comparison);
    }
    return ND_OK;
}

static nd_why_answer judge_memory(const nd_memory_breakdown *memory, double host_bytes)
{
    if (memory->verdict == ND_VERDICT_NO) {
        return ND_WHY_UNFIT;
    }
    if (host_bytes > 0.0 && memory->host_bytes > host_bytes) {
        return ND_WHY_HOST_UNFIT;
    }
    return memory->verdict == ND_VERDICT_BORDERLINE ? ND_WHY_BORDERLINE : ND_WHY_FIRST;
}

nd_status nd_why_layout(const nd_cost_context *context, const nd_framework *framework, const nd_layout *layout,
                        uint32_t given, const nd_why_against *against, nd_why *out, nd_error *err)
{
    memset(out, 0, sizeof *out);
    out->layout = *layout;
    nd_layout_repair(context, framework, layout, given, &out->repair);
    if (out->repair.count > 0) {
        return explain_illegal(context, framework, out, err);
    }
    nd_estimate_layout(context, layout, &out->estimate);
    nd_divide_memory(context, framework, layout, &out->divisions);
    out->host_memory_bytes = (double)context->cluster->host_memory_bytes;
    out->answer = judge_memory(&out->estimate.memory, out->host_memory_bytes);
    if (out->answer != ND_WHY_FIRST) {
        ND_TRY(explain_memory(context, framework, out, err));
    }
    if (against != NULL) {
        nd_compare_layouts(context, layout, against->context, against->layout, &out->comparison);
        out->has_comparison = true;
        if (out->answer == ND_WHY_FIRST && out->comparison.slower.was_asked && out->comparison.explaining > 0) {
            out->answer = ND_WHY_NOT_FIRST;
        }
        return ND_OK;
    }
    bool fits = out->answer == ND_WHY_FIRST || out->answer == ND_WHY_BORDERLINE;
    return fits ? explain_place(context, framework, out, err) : ND_OK;
}
