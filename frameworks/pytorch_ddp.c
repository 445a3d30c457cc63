/* Plain DistributedDataParallel: whole copies on every rank and nothing else; and ndplan's own executor, which runs
 * whatever its stack can. */
#include <inttypes.h>
#include <stddef.h>

#include "frameworks/frameworks_internal.h"

static const char name[] = "PyTorch DDP";

static bool ddp_allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                       const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)train;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        if (axis == ND_AXIS_DP_REPLICATE || layout->size[axis] == 1) {
            continue;
        }
        nd_refuse(rule, refusal, "pytorch-ddp.one-axis", "%s has dp_replicate only: %s=%" PRId32 " cannot run", name,
                  nd_axis_name((nd_axis)axis), layout->size[axis]);
        return nd_refuse_nearest(refusal, "dp_replicate=%" PRId64, nd_layout_ranks(layout));
    }
    if (layout->ep > 1) {
        nd_refuse(rule, refusal, "pytorch-ddp.no-ep", "%s has no expert axis: ep=%" PRId32 " cannot run", name,
                  layout->ep);
        return nd_refuse_nearest(refusal, "ep=1");
    }
    if (layout->sharding != ND_SHARDING_NONE) {
        nd_refuse(rule, refusal, "pytorch-ddp.no-sharding", "%s keeps whole copies: sharding=%s cannot run", name,
                  nd_sharding_name(layout->sharding));
        return nd_refuse_nearest(refusal, "sharding=none");
    }
    return true;
}

static bool ndplan_allows(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                          const char **rule, nd_refusal *refusal)
{
    (void)model;
    (void)layout;
    (void)train;
    (void)rule;
    (void)refusal;
    return true;
}

const nd_framework nd_framework_pytorch_ddp = {
    .name = "pytorch-ddp",
    .title = "PyTorch DistributedDataParallel",
    .version = "2.7",
    .stack = "torch-ddp",
    .source = "pytorch/pytorch torch/nn/parallel/distributed.py: one replica per rank, gradients all-reduced",
    .allows = ddp_allows,
};

const nd_framework nd_framework_ndplan = {
    .name = "ndplan",
    .title = "ndplan's own executor",
    .version = NDPLAN_VERSION,
    .stack = "ndplan",
    .source = "this program",
    .allows = ndplan_allows,
};
