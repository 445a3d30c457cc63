/* Pins and limits of a search, held against one layout. */
#include "planner/mixed_internal.h"

bool nd_mixed_admits(const nd_search_options *options, const nd_layout *layout, uint32_t keys)
{
    if (layout->size[ND_AXIS_CP] == 1) {
        keys &= ~(1u << ND_LAYOUT_KEY_CP_METHOD); /* means nothing */
    }
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        uint32_t bit = keys & 1u << key;
        int64_t value = nd_layout_key_value(layout, (nd_layout_key)key);
        bool off_pin = (options->pinned & bit) != 0 && value != nd_layout_key_value(&options->pin, (nd_layout_key)key);
        bool above = (options->limited & bit) != 0 && value > nd_layout_key_value(&options->max, (nd_layout_key)key);
        if (off_pin || above) {
            return false;
        }
    }
    return true;
}
