/* The outer loops of a search: tp, cp, ep and their modes, micro-batch. */
#include <inttypes.h>
#include <stdlib.h>

#include "cost_model/floors.h"
#include "planner/constraints_internal.h"
#include "planner/search_internal.h"

typedef struct unit_list {
    const nd_search_scene *scene;
    nd_search_unit *units;
    int64_t count, capacity;
    int64_t order, searched;
    nd_rejections *rejections;
    bool failed; /* out of memory */
} unit_list;

static void add_unit(unit_list *list, const nd_search_unit *unit)
{
    if (list->count == list->capacity) {
        int64_t capacity = list->capacity == 0 ? 256 : 2 * list->capacity;
        nd_search_unit *units = realloc(list->units, (size_t)capacity * sizeof *units);
        if (units == NULL) {
            list->failed = true;
            return;
        }
        list->units = units;
        list->capacity = capacity;
    }
    list->units[list->count++] = *unit;
}

/* One unit, or what a rule of the block forbids: that is counted without pricing. */
static void take_micro_batch(unit_list *list, const nd_layout *layout, int32_t index, const char *broken)
{
    const nd_search_space *space = &list->scene->space;
    nd_layout first = *layout;
    int64_t layouts = nd_count_below_unit(space, index, *layout, broken != NULL ? &first : NULL);
    nd_search_unit unit = {.layout = *layout, .micro_batch_index = index, .order = list->order++};
    if (layouts == 0) {
        return;
    }
    unit.layout.micro_batch = space->micro_batches[index];
    unit.layouts = layouts * space->recomputes_count;
    list->searched += unit.layouts;
    if (broken == NULL) {
        add_unit(list, &unit);
        return;
    }
    first.recompute = space->recomputes[0].mode;
    first.recompute_every = space->recomputes[0].every;
    nd_rejections_count(list->rejections, broken, unit.layouts, unit.order, &first);
}

/* ep and the modes of tp and cp. */
static void take_blocks(unit_list *list, nd_layout layout)
{
    const nd_search_space *space = &list->scene->space;
    nd_cp_method methods[ND_CP_METHOD_COUNT];
    bool sequence_parallel[2];
    int32_t degrees[ND_DIVISORS_MAX];
    int32_t methods_count = nd_space_cp_methods(space, layout.size[ND_AXIS_CP], methods);
    int32_t sp_count = nd_space_sequence_parallel(space, layout.size[ND_AXIS_TP], sequence_parallel);
    int32_t degrees_count = nd_space_expert_degrees(space, degrees);
    for (int32_t m = 0; m < methods_count; m++) {
        for (int32_t s = 0; s < sp_count; s++) {
            for (int32_t e = 0; e < degrees_count; e++) {
                const char *broken = NULL;
                layout.cp_method = methods[m];
                layout.sequence_parallel = sequence_parallel[s];
                layout.ep = degrees[e];
                (void)nd_rules_block(list->scene->context, &layout, &broken, NULL);
                for (int32_t i = 0; i < space->micro_batches_count; i++) {
                    take_micro_batch(list, &layout, i, broken);
                }
            }
        }
    }
}

nd_status nd_search_units(const nd_search_scene *scene, nd_search_unit **out, int64_t *count, int64_t *searched,
                          nd_rejections *rejections, nd_error *err)
{
    const nd_search_space *space = &scene->space;
    int32_t gpus = (int32_t)scene->context->cluster->gpus;
    unit_list list = {.scene = scene, .rejections = rejections};
    nd_layout layout = scene->base;
    for (int32_t t = 0; t < space->divisors_count; t++) {
        int32_t tp = space->divisors[t];
        if (!nd_space_has_degree(space, ND_LAYOUT_KEY_TP, tp)) {
            continue;
        }
        for (int32_t c = 0; c < space->divisors_count; c++) {
            int32_t cp = space->divisors[c];
            if (gpus / tp % cp == 0 && nd_space_has_degree(space, ND_LAYOUT_KEY_CP, cp)) {
                layout.size[ND_AXIS_TP] = tp;
                layout.size[ND_AXIS_CP] = cp;
                take_blocks(&list, layout);
            }
        }
    }
    *out = list.units;
    *count = list.count;
    *searched = list.searched;
    return list.failed ? nd_fail(err, ND_ENOMEM, "out of memory for a search of %" PRId64 " blocks", list.count)
                       : ND_OK;
}

void nd_search_bound_unit(const nd_search_scene *scene, nd_search_unit *unit)
{
    nd_block_prices prices;
    nd_layout layout = unit->layout;
    layout.recompute = ND_RECOMPUTE_NONE;
    nd_price_blocks(scene->context, &layout, &prices);
    unit->floor_s = nd_unit_floor_s(scene->context, &layout, &prices);
}
