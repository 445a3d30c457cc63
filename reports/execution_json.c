#include "reports/execution_profile.h"
#include "reports/execution_report.h"
#include "reports/json_report_internal.h"

/* null when the run began anew. */
static void put_resumed(nd_json_writer *json, const nd_execution_view *view)
{
    nd_json_key(json, "resumed");
    if (view->resume == NULL) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_string(json, "directory", view->resume);
    nd_json_put_int(json, "step", view->resumed_step);
    nd_json_key(json, "changed");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < view->changes_count; i++) {
        nd_json_begin_object(json);
        nd_json_put_string(json, "name", view->changes[i].name);
        nd_json_put_double(json, "before", view->changes[i].before);
        nd_json_put_double(json, "now", view->changes[i].now);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_end_object(json);
}

static void put_head(nd_json_writer *json, const nd_execution_view *view)
{
    nd_param_counts params = nd_model_params(view->model);
    nd_json_put_string(json, "schema", "ndplan/run/1");
    nd_json_key(json, "model");
    nd_json_begin_object(json);
    nd_json_put_string(json, "name", view->model->name);
    nd_json_put_int(json, "params_count", params.total);
    nd_json_put_int(json, "active_params_count", params.active);
    nd_json_put_string(json, "note", view->model->note);
    nd_json_end_object(json);
    nd_json_put_layout(json, view->layout);
    nd_json_put_int(json, "ranks_count", view->ranks_count);
    nd_json_put_int(json, "processors", view->processors);
    nd_json_put_string(json, "backend", view->backend);
    nd_json_put_string(json, "dtype", nd_elem_name(view->real));
    nd_json_key(json, "training");
    nd_json_begin_object(json);
    nd_json_put_int(json, "seq_len_tokens", view->train->seq_len_tokens);
    nd_json_put_int(json, "global_batch_seqs", view->train->global_batch_seqs);
    nd_json_put_string(json, "optimizer", nd_optimizer_name(view->train->optimizer));
    nd_json_put_string(json, "data", view->data != NULL ? view->data : "synthetic");
    nd_json_put_int(json, "seed", view->seed);
    nd_json_end_object(json);
    put_resumed(json, view);
    nd_json_put_assumed(json, view->assumptions, view->assumptions_count);
}

static void put_steps(nd_json_writer *json, const nd_execution_view *view)
{
    nd_json_key(json, "steps");
    nd_json_begin_array(json);
    for (int64_t i = 0; i < view->steps_count; i++) {
        const nd_execution_step *step = &view->steps[i];
        nd_json_begin_object(json);
        nd_json_put_int(json, "step", step->step);
        nd_json_put_double(json, "loss", step->loss);
        nd_json_put_double(json, "grad_norm", step->grad_norm);
        nd_json_put_double(json, "lr", step->lr);
        nd_json_put_double(json, "seconds", step->seconds);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_put_bool(json, "interrupted", view->interrupted);
    nd_json_put_double(json, "step_s", view->step_s);
    nd_json_put_double(json, "tokens_per_s", view->tokens_per_s);
    nd_json_put_bool(json, "timing_meaningful", view->ranks_count <= view->processors);
}

static void put_classes(nd_json_writer *json, const char *key, const int64_t bytes[ND_MEMORY_CLASS_COUNT])
{
    nd_json_key(json, key);
    nd_json_begin_object(json);
    for (int c = 0; c < ND_MEMORY_CLASS_COUNT; c++) {
        nd_json_put_int(json, nd_memory_class_name((nd_memory_class)c), bytes[c]);
    }
    nd_json_end_object(json);
}

static void put_ranks(nd_json_writer *json, const nd_execution_view *view)
{
    nd_json_key(json, "ranks");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < view->ranks_count; i++) {
        const nd_execution_rank *rank = &view->ranks[i];
        nd_json_begin_object(json);
        nd_json_put_int(json, "rank", i);
        nd_json_put_int(json, "peak_bytes", rank->peak_bytes);
        nd_json_put_int(json, "replayed_bytes", rank->replayed_bytes);
        put_classes(json, "peak_class_bytes", rank->peak_class_bytes);
        put_classes(json, "replayed_class_bytes", rank->replayed_class_bytes);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_put_bool(json, "memory_equal", view->memory_equal);
}

static void put_collectives(nd_json_writer *json, const nd_execution_view *view)
{
    nd_json_key(json, "collectives");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < view->traffic_count; i++) {
        const nd_execution_traffic *traffic = &view->traffic[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, "group", traffic->group);
        nd_json_put_int(json, "group_ranks", traffic->group_ranks);
        nd_json_put_string(json, "operation", nd_ins_name(traffic->op));
        nd_json_put_int(json, "program_calls", traffic->program_calls);
        nd_json_put_int(json, "program_bytes", traffic->program_bytes);
        nd_json_put_int(json, "calls", traffic->calls);
        nd_json_put_int(json, "bytes", traffic->bytes);
        nd_json_put_double(json, "seconds", traffic->seconds);
        nd_json_put_double(json, "wait_s", traffic->wait_s);
        nd_json_put_bool(json, "equal", traffic->equal);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_put_bool(json, "collectives_equal", view->traffic_equal);
}

/* null when it was not asked for, or when Ctrl-C came first. */
static void put_verify(nd_json_writer *json, const nd_execution_verify *verify)
{
    nd_json_key(json, "verify");
    if (!verify->done) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_double(json, "loss_abs", verify->loss_abs);
    nd_json_put_double(json, "grad_norm_rel", verify->grad_norm_rel);
    nd_json_put_double(json, "param_abs", verify->param_abs);
    nd_json_put_string(json, "worst_param", verify->worst_param);
    nd_json_key(json, "tolerances");
    nd_json_begin_object(json);
    nd_json_put_double(json, "loss_abs", verify->loss_bound);
    nd_json_put_double(json, "grad_norm_rel", verify->grad_norm_bound);
    nd_json_put_double(json, "param_abs", verify->param_bound);
    nd_json_put_string(json, "why", verify->why);
    nd_json_end_object(json);
    nd_json_put_bool(json, "passed", verify->passed);
    nd_json_end_object(json);
}

void nd_json_execution(FILE *stream, const nd_execution_view *view)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    put_head(&json, view);
    put_steps(&json, view);
    nd_json_put_execution_time(&json, view);
    put_ranks(&json, view);
    put_collectives(&json, view);
    put_verify(&json, &view->verify);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}
