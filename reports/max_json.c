/* "ndplan/max/1" */
#include "reports/json_report_internal.h"
#include "reports/max_report.h"

static void put_point(nd_json_writer *json, const char *key, bool present, const nd_point *point, const nd_plan *plan)
{
    nd_json_key(json, key);
    if (!present) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_int(json, "value", point->value);
    nd_json_put_int(json, "gpus", point->cluster.gpus);
    nd_json_put_int(json, "nodes", point->cluster.nodes);
    nd_json_put_int(json, "seq_len_tokens", point->train.seq_len_tokens);
    nd_json_put_int(json, "global_batch_seqs", point->train.global_batch_seqs);
    if (plan != NULL) {
        nd_json_put_layout(json, &plan->layout);
        nd_json_put_estimate(json, &plan->estimate);
    }
    if (point->reason[0] != '\0') {
        nd_json_put_string(json, "reason", point->reason);
    }
    nd_json_end_object(json);
}

static void put_limit(nd_json_writer *json, const nd_limit_view *view)
{
    const nd_limit *limit = view->limit;
    nd_json_begin_object(json);
    nd_json_put_string(json, "of", nd_limit_quantity_name(limit->quantity));
    nd_json_put_int(json, "step", limit->step);
    nd_json_put_int(json, "ceiling", limit->ceiling);
    nd_json_put_bool(json, "at_ceiling", limit->at_ceiling);
    put_point(json, "sure", limit->has_sure, &limit->sure, &limit->sure.sure);
    put_point(json, "possible", limit->has_possible, &limit->possible, &limit->possible.best);
    put_point(json, "fastest", limit->has_fastest, &limit->fastest, &limit->fastest.best);
    put_point(json, "beyond", limit->has_beyond, &limit->beyond,
              limit->beyond.has_closest ? &limit->beyond.closest : NULL);
    nd_json_put_bool(json, "changes_suffice", view->fixes_suffice);
    nd_json_key(json, "changes");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < view->fixes_count; i++) {
        nd_json_put_fix(json, &view->fixes[i]);
    }
    nd_json_end_array(json);
    nd_json_put_int(json, "searches", limit->searches);
    nd_json_end_object(json);
}

void nd_json_limits(FILE *stream, const nd_report_context *context, const nd_limit_view *views, int32_t count)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_head(&json, context, "ndplan/max/1");
    nd_json_key(&json, "limits");
    nd_json_begin_array(&json);
    for (int32_t i = 0; i < count; i++) {
        put_limit(&json, &views[i]);
    }
    nd_json_end_array(&json);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}
