/* All stages of a pipeline for one micro-batch: who is busiest, what the others add. docs/MODEL.md, "Step time". */
#include <math.h>
#include <string.h>

#include "cost_model/collectives.h"
#include "cost_model/stages.h"
#include "cost_model/time.h"

/* Stages with the same layers and ends do the same work. With one layer kind four differ: both ends, and in the middle
 * those with and without an extra layer; more kinds have more mixtures, and what finds no place here is priced again.
 */
enum { KNOWN_MAX = 16 };

typedef struct known_stage {
    int64_t counts[ND_LAYER_KINDS_MAX];
    bool first, last;
    nd_stage_work work;
} known_stage;

typedef struct known_stages {
    int32_t count;
    known_stage entries[KNOWN_MAX];
    known_stage spare; /* of a stage that found no place */
} known_stages;

static const known_stage *find_stage(const nd_cost_context *context, const nd_layout *layout,
                                     const nd_block_prices *prices, const nd_stage_split *split, int32_t stage,
                                     known_stages *known)
{
    int64_t counts[ND_LAYER_KINDS_MAX];
    bool first = stage == 0;
    bool last = stage == layout->size[ND_AXIS_PP] - 1;
    nd_stage_layers(context, split, stage, counts);
    for (int32_t i = known->count - 1; i >= 0; i--) { /* neighbours are alike */
        const known_stage *entry = &known->entries[i];
        if (entry->first == first && entry->last == last && memcmp(entry->counts, counts, sizeof counts) == 0) {
            return entry;
        }
    }
    known_stage *entry = known->count < KNOWN_MAX ? &known->entries[known->count++] : &known->spare;
    memcpy(entry->counts, counts, sizeof counts);
    entry->first = first;
    entry->last = last;
    entry->work = nd_stage_work_of(context, layout, prices, counts, first, last);
    return entry;
}

double nd_stage_send_s(const nd_cost_context *context, const nd_layout *layout)
{
    if (layout->size[ND_AXIS_PP] == 1) {
        return 0.0;
    }
    nd_group group = {.ranks = 2, .stride = nd_mesh_group(layout, ND_GROUP_PP).stride};
    nd_group_placement place = nd_group_place_for(context->cluster, context->calibration, group, ND_SEND_RECV);
    return nd_collective_s(&place, ND_SEND_RECV, nd_stage_send_bytes(context, layout));
}

/* Idle time of the busiest stage. Filling and draining take every other stage's time once; interleaving divides that
 * by vpp, a zero-bubble schedule fills it with weight gradients (ZB-1P: (p-1)(f + b - 2w)). */
static double bubble_s(const nd_layout *layout, const nd_pipeline *p)
{
    double pp = (double)layout->size[ND_AXIS_PP];
    if (layout->size[ND_AXIS_PP] == 1) {
        return 0.0;
    }
    double others = p->sum_s - nd_stage_work_s(&p->busiest);
    double bubble = others / (double)layout->vpp;
    if (layout->schedule == ND_SCHEDULE_ZERO_BUBBLE) {
        bubble = fmax(0.0, others - 2.0 * (pp - 1.0) * p->busiest.weight_gradient_s);
    }
    return bubble + 2.0 * (pp - 1.0) * (p->send_s + p->send_host_s);
}

void nd_price_pipeline_split(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                             const nd_stage_split *split, nd_pipeline *out)
{
    known_stages known;
    known.count = 0;
    memset(out, 0, sizeof *out);
    double busiest_s = -1.0;
    for (int32_t stage = 0; stage < layout->size[ND_AXIS_PP]; stage++) {
        const known_stage *entry = find_stage(context, layout, prices, split, stage, &known);
        double work_s = nd_stage_work_s(&entry->work);
        out->sum_s += work_s;
        if (work_s > busiest_s) {
            busiest_s = work_s;
            out->busiest = entry->work;
            out->busiest_stage = stage;
            memcpy(out->counts, entry->counts, sizeof out->counts);
        }
    }
    out->send_s = nd_stage_send_s(context, layout);
    out->send_host_s = layout->size[ND_AXIS_PP] > 1 ? context->stack->send_host_s : 0.0;
    out->bubble_s = bubble_s(layout, out);
}

void nd_price_pipeline(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                       nd_pipeline *out)
{
    nd_stage_split split;
    nd_split_stages(context, layout, prices, &split);
    nd_price_pipeline_split(context, layout, prices, &split, out);
}
