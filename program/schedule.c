#include "program/schedule.h"

#include <string.h>

nd_work_order nd_work_order_start(const nd_layout *layout, int32_t stage)
{
    nd_work_order order;
    memset(&order, 0, sizeof order);
    order.pp = layout->size[ND_AXIS_PP];
    order.vpp = layout->vpp;
    int64_t groups = layout->grad_accum / order.pp > 1 ? layout->grad_accum / order.pp : 1;
    order.group = layout->grad_accum / groups;
    order.long_groups = layout->grad_accum % groups;
    order.total = layout->grad_accum * layout->vpp;
    int64_t after = order.pp - stage - 1;
    int64_t longest = order.group + (order.long_groups > 0);
    order.warm_up = order.vpp > 1 ? 2 * after + (order.vpp - 1) * longest : after;
    bool gpipe = layout->schedule == ND_SCHEDULE_GPIPE && order.pp > 1;
    order.warm_up = order.warm_up < order.total && !gpipe ? order.warm_up : order.total;
    /* the later the stage, the fewer micro-batches wait for their backward pass and the more for weight gradients */
    order.lag = layout->schedule == ND_SCHEDULE_ZERO_BUBBLE ? stage + 1 : -1;
    return order;
}

/* The index-th pass of one direction. */
static nd_work_item item_at(const nd_work_order *order, nd_work_kind kind, int64_t index)
{
    int64_t long_passes = order->long_groups * (order->group + 1) * order->vpp;
    bool in_long = index < long_passes;
    int64_t group = order->group + (in_long ? 1 : 0);
    int64_t skipped = in_long ? 0 : order->long_groups * (order->group + 1); /* micro-batches of other groups */
    int64_t within = in_long ? index : index - long_passes;
    int64_t first = skipped + within / (group * order->vpp) * group;
    within %= group * order->vpp;
    int32_t chunk = (int32_t)(within / group);
    return (nd_work_item){
        .kind = kind,
        .chunk = kind == ND_WORK_FORWARD ? chunk : order->vpp - 1 - chunk,
        .micro_batch = first + within % group,
    };
}

nd_work_item nd_work_order_next(const nd_work_order *order)
{
    bool apart = order->lag >= 0;
    if (order->forwards < order->warm_up) {
        return item_at(order, ND_WORK_FORWARD, order->forwards);
    }
    if (order->backwards < order->total) {
        if (apart && order->weight_gradients <= order->backwards - order->lag) {
            return item_at(order, ND_WORK_WEIGHT_GRADIENT, order->weight_gradients);
        }
        if (order->forwards < order->total && order->forwards == order->backwards + order->warm_up) {
            return item_at(order, ND_WORK_FORWARD, order->forwards);
        }
        return item_at(order, ND_WORK_BACKWARD, order->backwards);
    }
    if (apart && order->weight_gradients < order->total) {
        return item_at(order, ND_WORK_WEIGHT_GRADIENT, order->weight_gradients);
    }
    return (nd_work_item){.kind = ND_WORK_NONE};
}

void nd_work_order_done(nd_work_order *order, nd_work_kind kind)
{
    order->forwards += kind == ND_WORK_FORWARD;
    order->backwards += kind == ND_WORK_BACKWARD;
    order->weight_gradients += kind == ND_WORK_WEIGHT_GRADIENT;
}
