#include "reports/json_report.h"

#include "core/json_writer.h"
#include "reports/bandwidth_text.h"
#include "reports/json_report_internal.h"
#include "reports/json_run.h"
#include "reports/terms.h"

void nd_json_put_layout(nd_json_writer *json, const nd_layout *layout)
{
    char text[512];
    (void)nd_layout_format(layout, text, sizeof text);
    nd_json_key(json, "layout");
    nd_json_begin_object(json);
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        nd_json_put_int(json, nd_axis_name((nd_axis)axis), layout->size[axis]);
    }
    nd_json_put_int(json, "ep", layout->ep);
    nd_json_put_int(json, "vpp", layout->vpp);
    nd_json_put_bool(json, "sp", layout->sequence_parallel);
    nd_json_put_string(json, "cp_method", nd_cp_method_name(layout->cp_method));
    nd_json_put_string(json, "schedule", nd_schedule_name(layout->schedule));
    nd_json_put_string(json, "split", nd_split_name(layout->split));
    nd_json_put_int(json, "micro_batch", layout->micro_batch);
    nd_json_put_int(json, "grad_accum", layout->grad_accum);
    nd_json_put_string(json, "sharding", nd_sharding_name(layout->sharding));
    nd_json_put_string(json, "recompute", nd_recompute_name(layout->recompute));
    nd_json_put_int(json, "recompute_every", layout->recompute_every);
    nd_json_put_string(json, "offload", nd_offload_name(layout->offload));
    nd_json_put_string(json, "text", text);
    nd_json_end_object(json);
}

void nd_json_put_memory(nd_json_writer *json, const nd_memory_breakdown *memory)
{
    nd_json_key(json, "memory");
    nd_json_begin_object(json);
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        nd_json_put_double(json, term->key, nd_memory_term(memory, term));
    }
    nd_json_put_double(json, "allocated_bytes", memory->allocated_bytes);
    nd_json_put_double(json, "peak_bytes", memory->peak_bytes);
    nd_json_put_double(json, "peak_low_bytes", memory->peak_low_bytes);
    nd_json_put_double(json, "peak_high_bytes", memory->peak_high_bytes);
    nd_json_put_double(json, "capacity_bytes", memory->capacity_bytes);
    nd_json_put_double(json, "host_bytes", memory->host_bytes);
    nd_json_put_double(json, "host_load_bytes", memory->host_load_bytes);
    nd_json_put_double(json, "load_whole_bytes", memory->load_whole_bytes);
    nd_json_key(json, "phase_bytes");
    nd_json_begin_object(json);
    for (int phase = 0; phase < ND_PHASE_COUNT; phase++) {
        nd_json_put_double(json, nd_phase_name((nd_phase)phase), memory->phase_bytes[phase]);
    }
    nd_json_end_object(json);
    nd_json_put_string(json, "phase", nd_phase_name(memory->phase));
    nd_json_put_int(json, "stage", memory->stage);
    nd_json_put_string(json, "verdict", nd_verdict_name(memory->verdict));
    nd_json_end_object(json);
}

void nd_json_put_time(nd_json_writer *json, const nd_time_breakdown *time)
{
    nd_json_key(json, "time");
    nd_json_begin_object(json);
    nd_json_put_double(json, "step_s", time->step_s);
    nd_json_put_double(json, "step_low_s", time->step_low_s);
    nd_json_put_double(json, "step_high_s", time->step_high_s);
    for (const nd_term *term = nd_time_terms; term->key != NULL; term++) {
        nd_json_put_double(json, term->key, nd_time_term(time, term));
    }
    nd_json_put_double(json, "hidden_comm_s", time->hidden_comm_s);
    nd_json_end_object(json);
}

/* The members of "estimate". */
static void put_estimate_members(nd_json_writer *json, const nd_estimate *estimate)
{
    nd_json_put_memory(json, &estimate->memory);
    nd_json_put_time(json, &estimate->time);
    nd_json_put_double(json, "tokens_per_s", estimate->tokens_per_s);
    nd_json_put_double(json, "tokens_per_s_per_gpu", estimate->tokens_per_s_per_gpu);
    nd_json_put_double(json, "mfu_frac", estimate->mfu_frac);
    nd_json_put_double(json, "hfu_frac", estimate->hfu_frac);
    nd_json_put_double(json, "flops_per_token", estimate->flops_per_token);
    nd_json_put_string(json, "bound_by", estimate->bound_by);
}

void nd_json_put_estimate(nd_json_writer *json, const nd_estimate *estimate)
{
    nd_json_key(json, "estimate");
    nd_json_begin_object(json);
    put_estimate_members(json, estimate);
    nd_json_end_object(json);
}

static void put_estimate_and_run(nd_json_writer *json, const nd_report_context *context, const nd_plan *plan)
{
    nd_json_key(json, "estimate");
    nd_json_begin_object(json);
    put_estimate_members(json, &plan->estimate);
    nd_json_put_run(json, context, plan);
    nd_json_end_object(json);
}

void nd_json_put_assumed(nd_json_writer *json, const nd_assumption *assumptions, int32_t count)
{
    nd_json_key(json, "assumed");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < count; i++) {
        nd_json_begin_object(json);
        nd_json_put_string(json, "option", assumptions[i].option);
        nd_json_put_string(json, "value", assumptions[i].value);
        nd_json_put_string(json, "why", assumptions[i].why);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

static void put_training(nd_json_writer *json, const nd_train_spec *train)
{
    nd_json_key(json, "training");
    nd_json_begin_object(json);
    nd_json_put_int(json, "seq_len_tokens", train->seq_len_tokens);
    nd_json_put_int(json, "global_batch_seqs", train->global_batch_seqs);
    nd_json_put_string(json, "precision", nd_dtype_name(train->precision));
    nd_json_put_string(json, "optimizer", nd_optimizer_name(train->optimizer));
    nd_json_put_string(json, "attention", nd_attention_name(train->attention));
    nd_json_put_int(json, "lora_rank", train->lora_rank);
    nd_json_put_int(json, "base_bits", train->base_bits);
    nd_json_end_object(json);
}

static void put_software(nd_json_writer *json, const nd_report_context *context)
{
    nd_json_key(json, "framework");
    if (context->framework == NULL) {
        nd_json_null(json);
    } else {
        nd_json_begin_object(json);
        nd_json_put_string(json, "name", context->framework->name);
        nd_json_put_string(json, "version", context->framework->version);
        nd_json_end_object(json);
    }
    nd_json_put_string(json, "stack", context->cost->stack->name);
    nd_json_key(json, "calibration");
    nd_json_begin_object(json);
    nd_json_put_string(json, "name", context->cost->calibration->name);
    nd_json_put_string(json, "gpu", context->cost->calibration->gpu);
    nd_json_put_string(json, "source", context->cost->calibration->source);
    nd_json_end_object(json);
}

/* Members of "cluster". Kinds of node are listed with their parts. */
static void put_cluster(nd_json_writer *json, const nd_mixed_cluster *mixed, const nd_cluster_spec *cluster)
{
    nd_json_put_string(json, "name", mixed != NULL ? mixed->name : cluster->name);
    nd_json_put_int(json, "gpus", mixed != NULL ? mixed->gpus : cluster->gpus);
    if (mixed != NULL) {
        nd_json_put_string(json, "note", mixed->note);
        return;
    }
    nd_json_put_int(json, "nodes", cluster->nodes);
    nd_json_put_int(json, "gpus_per_node", cluster->gpus_per_node);
    nd_json_put_string(json, "gpu", cluster->gpu.name);
    nd_json_put_string(json, "note", cluster->note);
}

void nd_json_put_head(nd_json_writer *json, const nd_report_context *context, const char *schema)
{
    const nd_cost_context *cost = context->cost;
    nd_json_put_string(json, "schema", schema);
    nd_json_key(json, "model");
    nd_json_begin_object(json);
    nd_json_put_string(json, "name", cost->model->name);
    nd_json_put_int(json, "params_count", cost->params.total);
    nd_json_put_int(json, "active_params_count", cost->params.active);
    nd_json_put_string(json, "note", cost->model->note);
    nd_json_end_object(json);
    nd_json_key(json, "cluster");
    nd_json_begin_object(json);
    put_cluster(json, context->mixed, cost->cluster);
    nd_json_end_object(json);
    put_training(json, cost->train);
    put_software(json, context);
    nd_json_put_assumed(json, context->assumptions, context->assumptions_count);
}

static void put_plan(nd_json_writer *json, const nd_report_context *context, const nd_plan *plan, int32_t rank)
{
    nd_json_begin_object(json);
    if (rank > 0) {
        nd_json_put_int(json, "rank", rank);
    }
    nd_json_put_int(json, "gpus", nd_layout_ranks(&plan->layout));
    nd_json_put_layout(json, &plan->layout);
    put_estimate_and_run(json, context, plan);
    nd_json_key(json, "notes");
    nd_json_begin_array(json);
    char note[256];
    for (int32_t n = 0; nd_plan_note(plan, n, note, sizeof note); n++) {
        nd_json_string(json, note);
    }
    nd_json_end_array(json);
    nd_json_end_object(json);
}

static void put_rejections(nd_json_writer *json, const nd_plan_list *list)
{
    nd_json_key(json, "rejected");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < list->rejections_count; i++) {
        const nd_rejection *rejection = &list->rejections[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, "reason", rejection->rule);
        nd_json_put_int(json, "count", rejection->count);
        nd_json_put_string(json, "nearest", rejection->nearest);
        nd_json_put_string(json, "message", rejection->message);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

/* Only where sizes were searched; "coarseness_frac" belongs to the front. */
static void put_sizes(nd_json_writer *json, const nd_report_context *context)
{
    const nd_scale_list *scale = context->scale;
    if (scale == NULL) {
        return;
    }
    nd_json_key(json, "sizes");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < scale->sizes_count; i++) {
        nd_json_begin_object(json);
        nd_json_put_int(json, "gpus", scale->sizes[i].gpus);
        nd_json_put_bool(json, "searched", scale->sizes[i].searched);
        nd_json_put_int(json, "fitting", scale->sizes[i].fitting);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_put_double(json, "coarseness_frac", scale->coarseness_frac);
}

void nd_json_plans(FILE *stream, const nd_report_context *context, const nd_plan_list *list)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_head(&json, context, "ndplan/suggest/1");
    nd_json_key(&json, "plans");
    nd_json_begin_array(&json);
    for (int32_t i = 0; i < list->count; i++) {
        put_plan(&json, context, &list->plans[i], i + 1);
    }
    nd_json_end_array(&json);
    nd_json_key(&json, "closest");
    if (list->fitting == 0 && list->has_closest) {
        put_plan(&json, context, &list->closest, 0);
    } else {
        nd_json_null(&json);
    }
    nd_json_put_int(&json, "searched", list->searched);
    nd_json_put_int(&json, "evaluated", list->evaluated);
    nd_json_put_int(&json, "fitting", list->fitting);
    put_rejections(&json, list);
    put_sizes(&json, context);
    nd_json_put_double(&json, "elapsed_s", list->elapsed_s);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}

/* Layers of each pipeline stage, and of each chunk in the order of the model. */
static void put_stages(nd_json_writer *json, const nd_stage_split *split)
{
    nd_json_key(json, "stage_layers");
    nd_json_begin_array(json);
    for (int32_t stage = 0; stage < split->stages; stage++) {
        nd_json_int(json, nd_stage_layers_count(split, stage));
    }
    nd_json_end_array(json);
    nd_json_key(json, "chunk_layers");
    nd_json_begin_array(json);
    for (int32_t chunk = 0; chunk < split->chunks; chunk++) {
        nd_json_int(json, nd_split_start(split, chunk + 1) - nd_split_start(split, chunk));
    }
    nd_json_end_array(json);
}

/* null where there are too many passes to simulate. */
static void put_simulation(nd_json_writer *json, const nd_estimate_view *view)
{
    nd_json_key(json, "simulated_step_s");
    if (view->is_simulated) {
        nd_json_double(json, view->simulation.step_s);
    } else {
        nd_json_null(json);
    }
    nd_json_key(json, "stage_bubble_s");
    nd_json_begin_array(json);
    for (int32_t stage = 0; view->is_simulated && stage < view->simulation.stages; stage++) {
        nd_json_double(json, view->simulation.bubble_s[stage]);
    }
    nd_json_end_array(json);
}

static void put_comm(nd_json_writer *json, const nd_comm_breakdown *comm)
{
    nd_json_key(json, "communication");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < comm->count; i++) {
        const nd_comm_line *line = &comm->lines[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, "name", line->name);
        nd_json_put_string(json, "collective", nd_collective_name(line->collective));
        nd_json_put_string(json, "group", nd_group_kind_name(line->group_kind));
        nd_json_put_int(json, "ranks", line->group.ranks);
        nd_json_put_int(json, "stride", line->group.stride);
        nd_json_put_string(json, "link", line->link);
        nd_json_put_double(json, "bytes", line->bytes);
        nd_json_put_double(json, "calls_per_step", line->calls_per_step);
        nd_json_put_double(json, "call_s", line->call_s);
        nd_json_put_double(json, "total_s", line->total_s);
        nd_json_put_double(json, "exposed_s", line->exposed_s);
        nd_json_put_double(json, "needed_bytes_per_s", line->needed_bytes_per_s);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

static void put_checkpoints(nd_json_writer *json, const nd_estimate_view *view)
{
    nd_json_key(json, "checkpointing");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < ND_CHECKPOINT_ROWS; i++) {
        const nd_checkpoint_row *row = &view->checkpoints[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, "recompute", nd_recompute_name(row->recompute));
        nd_json_put_bool(json, "legal", row->allowed);
        if (!row->allowed) {
            nd_json_put_string(json, "rule", row->rule != NULL ? row->rule : "");
        } else {
            nd_json_put_double(json, "activations_bytes", row->estimate.memory.activations_bytes);
            nd_json_put_double(json, "peak_bytes", row->estimate.memory.peak_bytes);
            nd_json_put_string(json, "verdict", nd_verdict_name(row->estimate.memory.verdict));
            nd_json_put_double(json, "step_s", row->estimate.time.step_s);
        }
        if (row->has_baseline) {
            nd_json_put_double(json, "activations_saved_frac", row->saved_frac);
            nd_json_put_double(json, "slower_frac", row->slower_frac);
        }
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

static void put_batch(nd_json_writer *json, const nd_estimate_view *view)
{
    nd_json_key(json, "batch");
    nd_json_begin_object(json);
    nd_json_put_int(json, "effective_batch_seqs", view->effective_batch_seqs);
    nd_json_put_double(json, "effective_batch_tokens", view->effective_batch_tokens);
    nd_json_put_double(json, "lr_linear_factor", view->lr_linear_factor);
    nd_json_put_double(json, "lr_sqrt_factor", view->lr_sqrt_factor);
    nd_json_end_object(json);
}

void nd_json_estimate(FILE *stream, const nd_report_context *context, const nd_estimate_view *view)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_head(&json, context, "ndplan/estimate/1");
    nd_json_put_bool(&json, "legal", true);
    nd_json_put_layout(&json, &view->layout);
    put_stages(&json, &view->split);
    put_estimate_and_run(&json, context, &(nd_plan){view->layout, view->estimate});
    put_simulation(&json, view);
    put_batch(&json, view);
    put_comm(&json, &view->comm);
    nd_json_put_bandwidth(&json, view->needs, view->needs_count);
    put_checkpoints(&json, view);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}

void nd_json_illegal(FILE *stream, const nd_report_context *context, const nd_layout *layout, const nd_refusal *refusal)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_head(&json, context, "ndplan/estimate/1");
    nd_json_put_bool(&json, "legal", false);
    nd_json_put_layout(&json, layout);
    nd_json_put_string(&json, "rule", refusal->rule);
    nd_json_put_string(&json, "message", refusal->message);
    nd_json_put_string(&json, "nearest", refusal->nearest);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}
