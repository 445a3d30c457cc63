/* A change as one types it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/fixes_internal.h"

static void append(char out[ND_FIX_TEXT_MAX], const char *separator, const char *format, ...) ND_PRINTF(3, 4);
static void append(char out[ND_FIX_TEXT_MAX], const char *separator, const char *format, ...)
{
    size_t used = strlen(out);
    if (used > 0 && used + 1 < ND_FIX_TEXT_MAX) {
        (void)snprintf(out + used, ND_FIX_TEXT_MAX - used, "%s", separator);
        used = strlen(out);
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(out + used, ND_FIX_TEXT_MAX - used, format, args);
    va_end(args);
}

static void describe_modes(const nd_layout *a, const nd_layout *b, char out[ND_FIX_TEXT_MAX])
{
    if (a->sequence_parallel != b->sequence_parallel) {
        append(out, ",", "sp=%s", b->sequence_parallel ? "on" : "off");
    }
    if (b->size[ND_AXIS_CP] > 1 && a->cp_method != b->cp_method) {
        append(out, ",", "cp_method=%s", nd_cp_method_name(b->cp_method));
    }
    if (b->size[ND_AXIS_PP] > 1 && a->schedule != b->schedule) {
        append(out, ",", "schedule=%s", nd_schedule_name(b->schedule));
    }
    if (b->size[ND_AXIS_PP] > 1 && a->split != b->split) {
        append(out, ",", "split=%s", nd_split_name(b->split));
    }
    if (a->sharding != b->sharding) {
        append(out, ",", "sharding=%s", nd_sharding_name(b->sharding));
    }
    if (b->recompute == ND_RECOMPUTE_EVERY &&
        (a->recompute != b->recompute || a->recompute_every != b->recompute_every)) {
        append(out, ",", "recompute=every:%" PRId32, b->recompute_every);
    } else if (a->recompute != b->recompute) {
        append(out, ",", "recompute=%s", nd_recompute_name(b->recompute));
    }
    if (a->offload != b->offload) {
        append(out, ",", "offload=%s", nd_offload_name(b->offload));
    }
}

void nd_fix_layout_keys(const nd_layout *a, const nd_layout *b, char out[ND_FIX_TEXT_MAX])
{
    const struct {
        const char *key;
        int64_t before, after;
    } counts[] = {
        {"ep", a->ep, b->ep},
        {"vpp", a->vpp, b->vpp},
        {"micro_batch", a->micro_batch, b->micro_batch},
        {"grad_accum", a->grad_accum, b->grad_accum},
    };
    out[0] = '\0';
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        if (a->size[axis] != b->size[axis]) {
            append(out, ",", "%s=%" PRId32, nd_axis_name((nd_axis)axis), b->size[axis]);
        }
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].before != counts[i].after) {
            append(out, ",", "%s=%" PRId64, counts[i].key, counts[i].after);
        }
    }
    describe_modes(a, b, out);
}

/* A cluster from a file has no name with another count. */
static bool can_be_named(const nd_cluster_spec *cluster)
{
    bool known = cluster->base_name[0] == '\0';
    for (size_t i = 0; !known && i < nd_cluster_builtin_count(); i++) {
        known = strcmp(cluster->base_name, nd_cluster_builtin_name(i)) == 0;
    }
    return known;
}

static void describe_nodes(const nd_cost_context *context, int64_t nodes, char out[ND_FIX_TEXT_MAX])
{
    nd_cluster_spec cluster;
    nd_error err;
    if (can_be_named(context->cluster) && nd_cluster_resize(context->cluster, nodes, &cluster, &err) == ND_OK) {
        append(out, " ", "--cluster %s", cluster.name);
    } else {
        append(out, " ", "%" PRId64 " nodes", nodes);
    }
}

void nd_fix_describe(const nd_cost_context *context, const nd_fix_state *from, const nd_fix_state *to, nd_fix *out)
{
    const nd_train_spec *a = &from->train;
    const nd_train_spec *b = &to->train;
    nd_fix_layout_keys(&from->layout, &to->layout, out->layout_keys);
    out->options[0] = '\0';
    if (a->optimizer != b->optimizer) {
        append(out->options, " ", "--optimizer %s", nd_optimizer_name(b->optimizer));
    }
    if (a->seq_len_tokens != b->seq_len_tokens) {
        append(out->options, " ", "--seq-len %" PRId64, b->seq_len_tokens);
    }
    if (b->lora_rank > 0 && (a->lora_rank != b->lora_rank || a->base_bits != b->base_bits)) {
        append(out->options, " ", b->base_bits < 16 ? "--lora r=%" PRId32 ",bits=%" PRId32 : "--lora r=%" PRId32,
               b->lora_rank, b->base_bits);
    }
    if (from->nodes != to->nodes) {
        describe_nodes(context, to->nodes, out->options);
    }
    if (from->loss_chunks < to->loss_chunks) {
        append(out->options, " ", "a loss in %.0f chunks (Liger's fused-linear or a chunked cross-entropy)",
               to->loss_chunks);
    }
}

void nd_fix_change(const nd_fix *fix, char *out, size_t out_bytes)
{
    bool both = fix->layout_keys[0] != '\0' && fix->options[0] != '\0';
    (void)snprintf(out, out_bytes, "%s%s%s", fix->layout_keys, both ? " with " : "", fix->options);
}
