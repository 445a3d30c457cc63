#include "tests/executor/split.h"

#include "cost_model/split.h"
#include "tests/nd_test.h"

nd_chunk_map split_of(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train)
{
    nd_error err = {0};
    nd_stack stack;
    nd_stage_split split;
    if (layout->split == ND_SPLIT_EVEN || layout->size[ND_AXIS_PP] == 1) {
        return (nd_chunk_map){.chunks = 0};
    }
    ND_ASSERT_OK(nd_stack_find("ndplan", &stack, &err));
    nd_split_stages_by_flops(model, layout, train, &stack, &split);
    return nd_stage_split_chunks(&split);
}
