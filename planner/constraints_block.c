/* Rules of what happens inside a layer: tp, sequence parallelism, cp and ep against heads, widths and sequence. */
#include <inttypes.h>

#include "frameworks/refusal.h"
#include "planner/constraints_internal.h"

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool heads_divide(const nd_model_spec *model, int64_t tp)
{
    return model->heads % tp == 0;
}

/* Below one key-value head per rank the heads are copied, which needs tp to be a multiple of them. */
static bool kv_heads_divide(const nd_model_spec *model, int64_t tp)
{
    return model->attention != ND_ATTENTION_GQA || model->kv_heads % tp == 0 || tp % model->kv_heads == 0;
}

/* The width that tp does not divide, or 0. Routed experts are divided over tp only without ep. */
static int64_t uneven_width(const nd_model_spec *model, int64_t tp, int64_t ep)
{
    if (model->ffn_hidden % tp != 0) {
        return model->ffn_hidden;
    }
    if (model->experts > 0 && model->shared_ffn_hidden % tp != 0) {
        return model->shared_ffn_hidden;
    }
    return model->experts > 0 && ep == 1 && model->moe_ffn_hidden % tp != 0 ? model->moe_ffn_hidden : 0;
}

static bool legal_tp(const nd_cost_context *context, const nd_layout *layout, int64_t tp)
{
    const nd_model_spec *model = context->model;
    return heads_divide(model, tp) && kv_heads_divide(model, tp) && uneven_width(model, tp, layout->ep) == 0 &&
           (tp == 1 || context->stack->axis[ND_AXIS_TP]);
}

static bool refuse_tp_neighbours(const nd_cost_context *context, const nd_layout *layout, nd_refusal *refusal)
{
    return nd_nearest_degree(context, layout, "tp", layout->size[ND_AXIS_TP], context->cluster->gpus,
                             context->model->heads, legal_tp, refusal);
}

static bool check_tp(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    const nd_model_spec *model = context->model;
    int32_t tp = layout->size[ND_AXIS_TP];
    if (tp == 1) {
        return true;
    }
    if (!context->stack->axis[ND_AXIS_TP]) {
        nd_refuse(rule, refusal, "stack-tp", "%s has no tensor parallelism: tp=%" PRId32, context->stack->name, tp);
        return nd_refuse_nearest(refusal, "tp=1");
    }
    if (!heads_divide(model, tp)) {
        nd_refuse(rule, refusal, "tp-divides-heads",
                  "tp=%" PRId32 " does not divide the %" PRId64 " attention heads of %s", tp, model->heads,
                  model->name);
        return refuse_tp_neighbours(context, layout, refusal);
    }
    if (!kv_heads_divide(model, tp)) {
        nd_refuse(rule, refusal, "tp-kv-heads",
                  "of tp=%" PRId32 " and the %" PRId64 " key-value heads of %s one must divide the other", tp,
                  model->kv_heads, model->name);
        return refuse_tp_neighbours(context, layout, refusal);
    }
    int64_t width = uneven_width(model, tp, layout->ep);
    if (width > 0) {
        nd_refuse(rule, refusal, "tp-divides-ffn",
                  "tp=%" PRId32 " does not divide the feed-forward width %" PRId64 " of %s", tp, width, model->name);
        return refuse_tp_neighbours(context, layout, refusal);
    }
    return true;
}

static bool check_sp(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    const nd_stack *stack = context->stack;
    int32_t tp = layout->size[ND_AXIS_TP];
    if (tp == 1 && layout->sequence_parallel) {
        nd_refuse(rule, refusal, "sp-needs-tp", "sequence parallelism divides the residual over tp, and tp is 1");
        return nd_refuse_nearest(refusal, "sp=off or tp=2");
    }
    if (tp > 1 && !layout->sequence_parallel && (stack->tp_implies_sp || !stack->tp_without_sp)) {
        nd_refuse(rule, refusal, "stack-tp-implies-sp", "%s always uses sequence parallelism with tp=%" PRId32,
                  stack->name, tp);
        return nd_refuse_nearest(refusal, "sp=on");
    }
    return true;
}

static bool zigzag(const nd_layout *layout)
{
    return layout->cp_method != ND_CP_METHOD_ULYSSES;
}

/* Ring and all-gather cut the sequence into 2 cp pieces and give every rank an early and a late one; Ulysses cuts it
 * into cp pieces. */
static bool sequence_divides(const nd_cost_context *context, const nd_layout *layout, int64_t cp)
{
    int64_t pieces = cp == 1 ? 1 : zigzag(layout) ? 2 * cp : cp;
    return context->train->seq_len_tokens % pieces == 0;
}

/* Ulysses divides the heads of a tp rank over cp; key-value heads below cp are copied. */
static bool ulysses_heads_divide(const nd_cost_context *context, const nd_layout *layout, int64_t cp)
{
    if (cp == 1 || zigzag(layout)) {
        return true;
    }
    const nd_model_spec *model = context->model;
    int64_t tp = layout->size[ND_AXIS_TP];
    int64_t heads = max_of(model->heads / tp, 1);
    int64_t kv_heads = model->attention == ND_ATTENTION_GQA ? max_of(model->kv_heads / tp, 1) : heads;
    return heads % cp == 0 && (kv_heads % cp == 0 || cp % kv_heads == 0);
}

static bool sp_divides(const nd_cost_context *context, const nd_layout *layout, int64_t cp)
{
    return !layout->sequence_parallel || context->train->seq_len_tokens / cp % layout->size[ND_AXIS_TP] == 0;
}

static bool legal_cp(const nd_cost_context *context, const nd_layout *layout, int64_t cp)
{
    return sequence_divides(context, layout, cp) && ulysses_heads_divide(context, layout, cp) &&
           sp_divides(context, layout, cp);
}

static bool refuse_cp_neighbours(const nd_cost_context *context, const nd_layout *layout, nd_refusal *refusal)
{
    return nd_nearest_degree(context, layout, "cp", layout->size[ND_AXIS_CP], context->cluster->gpus,
                             context->cluster->gpus, legal_cp, refusal);
}

static bool check_cp_stack(const nd_cost_context *context, const nd_layout *layout, const char **rule,
                           nd_refusal *refusal)
{
    const nd_stack *stack = context->stack;
    int32_t cp = layout->size[ND_AXIS_CP];
    if (!stack->axis[ND_AXIS_CP]) {
        nd_refuse(rule, refusal, "stack-cp", "%s has no context parallelism: cp=%" PRId32, stack->name, cp);
        return nd_refuse_nearest(refusal, "cp=1");
    }
    if (nd_mask_has(stack->cp_methods, (int)layout->cp_method)) {
        return true;
    }
    nd_refuse(rule, refusal, "stack-cp-method", "%s has no cp_method=%s", stack->name,
              nd_cp_method_name(layout->cp_method));
    for (int method = 0; method < ND_CP_METHOD_COUNT; method++) {
        if (nd_mask_has(stack->cp_methods, method)) {
            return nd_refuse_nearest(refusal, "cp_method=%s", nd_cp_method_name((nd_cp_method)method));
        }
    }
    return false;
}

static bool check_cp(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    int32_t cp = layout->size[ND_AXIS_CP];
    int64_t seq = context->train->seq_len_tokens;
    if (cp > 1 && !check_cp_stack(context, layout, rule, refusal)) {
        return false;
    }
    if (!sequence_divides(context, layout, cp)) {
        int64_t pieces = zigzag(layout) ? INT64_C(2) * cp : cp;
        nd_refuse(rule, refusal, "cp-divides-seq",
                  "cp=%" PRId32 " (%s) cuts the sequence into %" PRId64 " pieces, which do not divide %" PRId64
                  " tokens (%" PRId64 " would)",
                  cp, nd_cp_method_name(layout->cp_method), pieces, seq, (seq / pieces + 1) * pieces);
        return refuse_cp_neighbours(context, layout, refusal);
    }
    if (!ulysses_heads_divide(context, layout, cp)) {
        nd_refuse(rule, refusal, "ulysses-heads",
                  "Ulysses divides the heads of a tp rank over cp: cp=%" PRId32 " does not fit %" PRId64
                  " heads and %" PRId64 " key-value heads at tp=%" PRId32,
                  cp, context->model->heads, context->model->kv_heads, layout->size[ND_AXIS_TP]);
        return refuse_cp_neighbours(context, layout, refusal);
    }
    return true;
}

static bool check_sp_sequence(const nd_cost_context *context, const nd_layout *layout, const char **rule,
                              nd_refusal *refusal)
{
    int32_t tp = layout->size[ND_AXIS_TP];
    int32_t cp = layout->size[ND_AXIS_CP];
    if (sp_divides(context, layout, cp)) {
        return true;
    }
    int64_t seq = context->train->seq_len_tokens;
    nd_refuse(rule, refusal, "sp-divides-seq",
              "sequence parallelism divides the %" PRId64 " tokens of a cp rank over tp=%" PRId32
              ": not without remainder (sequence %" PRId64 ", cp=%" PRId32 ")",
              seq / cp, tp, seq, cp);
    bool can_be_off = context->stack->tp_without_sp && !context->stack->tp_implies_sp;
    return nd_refuse_nearest(refusal, "%s", can_be_off ? "sp=off" : "tp=1");
}

static bool legal_ep(const nd_cost_context *context, const nd_layout *layout, int64_t ep)
{
    (void)layout;
    return context->model->experts % ep == 0;
}

static bool check_ep(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    const nd_model_spec *model = context->model;
    if (layout->ep == 1) {
        return true;
    }
    if (model->experts == 0) {
        nd_refuse(rule, refusal, "ep-needs-experts", "ep=%" PRId32 " needs experts, and %s has none", layout->ep,
                  model->name);
        return nd_refuse_nearest(refusal, "ep=1");
    }
    if (!context->stack->expert_parallel) {
        nd_refuse(rule, refusal, "stack-ep", "%s has no expert parallelism: ep=%" PRId32, context->stack->name,
                  layout->ep);
        return nd_refuse_nearest(refusal, "ep=1");
    }
    if (model->experts % layout->ep != 0) {
        nd_refuse(rule, refusal, "ep-divides-experts", "ep=%" PRId32 " does not divide the %" PRId64 " experts of %s",
                  layout->ep, model->experts, model->name);
        return nd_nearest_degree(context, layout, "ep", layout->ep, 0, model->experts, legal_ep, refusal);
    }
    return true;
}

bool nd_rules_block(const nd_cost_context *context, const nd_layout *layout, const char **rule, nd_refusal *refusal)
{
    return check_tp(context, layout, rule, refusal) && check_sp(context, layout, rule, refusal) &&
           check_cp(context, layout, rule, refusal) && check_sp_sequence(context, layout, rule, refusal) &&
           check_ep(context, layout, rule, refusal);
}
