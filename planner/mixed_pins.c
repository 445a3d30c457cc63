/* Pins and limits of a search, held against one layout. */
#include "planner/mixed_internal.h"

/* The value of one key as a number; modes by their enumerators. */
static int64_t key_value(const nd_layout *layout, nd_layout_key key)
{
    switch (key) {
    case ND_LAYOUT_KEY_PP:
        return layout->size[ND_AXIS_PP];
    case ND_LAYOUT_KEY_DP_REPLICATE:
        return layout->size[ND_AXIS_DP_REPLICATE];
    case ND_LAYOUT_KEY_DP_SHARD:
        return layout->size[ND_AXIS_DP_SHARD];
    case ND_LAYOUT_KEY_CP:
        return layout->size[ND_AXIS_CP];
    case ND_LAYOUT_KEY_TP:
        return layout->size[ND_AXIS_TP];
    case ND_LAYOUT_KEY_EP:
        return layout->ep;
    case ND_LAYOUT_KEY_VPP:
        return layout->vpp;
    case ND_LAYOUT_KEY_SP:
        return layout->sequence_parallel;
    case ND_LAYOUT_KEY_CP_METHOD:
        return (int64_t)layout->cp_method;
    case ND_LAYOUT_KEY_SCHEDULE:
        return (int64_t)layout->schedule;
    case ND_LAYOUT_KEY_SPLIT:
        return (int64_t)layout->split;
    case ND_LAYOUT_KEY_MICRO_BATCH:
        return layout->micro_batch;
    case ND_LAYOUT_KEY_GRAD_ACCUM:
        return layout->grad_accum;
    case ND_LAYOUT_KEY_SHARDING:
        return (int64_t)layout->sharding;
    case ND_LAYOUT_KEY_RECOMPUTE:
        return (int64_t)layout->recompute * 4096 + layout->recompute_every;
    case ND_LAYOUT_KEY_OFFLOAD:
        return (int64_t)layout->offload;
    case ND_LAYOUT_KEY_COUNT:
        break;
    }
    return 0;
}

bool nd_mixed_admits(const nd_search_options *options, const nd_layout *layout, uint32_t keys)
{
    if (layout->size[ND_AXIS_CP] == 1) {
        keys &= ~(1u << ND_LAYOUT_KEY_CP_METHOD); /* means nothing */
    }
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        uint32_t bit = keys & 1u << key;
        int64_t value = key_value(layout, (nd_layout_key)key);
        bool off_pin = (options->pinned & bit) != 0 && value != key_value(&options->pin, (nd_layout_key)key);
        bool above = (options->limited & bit) != 0 && value > key_value(&options->max, (nd_layout_key)key);
        if (off_pin || above) {
            return false;
        }
    }
    return true;
}
