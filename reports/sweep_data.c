/* "ndplan/sweep/1" and the CSV of a sweep. */
#include <math.h>

#include "reports/bandwidth_text.h"
#include "reports/csv_report.h"
#include "reports/json_report_internal.h"
#include "reports/sweep_report.h"

static void put_point(nd_json_writer *json, const nd_sweep_point *point)
{
    const nd_cluster_spec *cluster = &point->point.cluster;
    nd_json_begin_object(json);
    nd_json_put_double(json, "value", point->value);
    nd_json_put_int(json, "gpus", cluster->gpus);
    nd_json_put_int(json, "nodes", cluster->nodes);
    nd_json_put_int(json, "seq_len_tokens", point->point.train.seq_len_tokens);
    nd_json_put_int(json, "global_batch_seqs", point->point.train.global_batch_seqs);
    nd_json_put_double(json, "nic_bytes_per_s", cluster->nic_bytes_per_s);
    nd_json_put_int(json, "nvlink_domain_gpus", cluster->nvlink_domain);
    nd_json_put_bool(json, "fits", point->point.fits);
    nd_json_put_bool(json, "changed", point->changed);
    nd_json_put_string(json, "changes", point->changes);
    if (point->point.fits) {
        nd_json_put_double(json, "efficiency_frac", point->efficiency_frac);
        nd_json_put_layout(json, &point->point.best.layout);
        nd_json_put_estimate(json, &point->point.best.estimate);
        nd_json_put_bandwidth(json, point->needs, point->needs_count);
    } else if (point->point.has_closest) {
        nd_json_key(json, "closest");
        nd_json_begin_object(json);
        nd_json_put_layout(json, &point->point.closest.layout);
        nd_json_put_estimate(json, &point->point.closest.estimate);
        nd_json_end_object(json);
    } else {
        nd_json_put_string(json, "reason", point->point.reason);
    }
    nd_json_end_object(json);
}

void nd_json_sweep(FILE *stream, const nd_report_context *context, const nd_sweep_view *view)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_head(&json, context, "ndplan/sweep/1");
    nd_json_put_string(&json, "over", nd_sweep_quantity_name(view->quantity));
    nd_json_key(&json, "points");
    nd_json_begin_array(&json);
    for (int32_t i = 0; i < view->count; i++) {
        put_point(&json, &view->points[i]);
    }
    nd_json_end_array(&json);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}

static const char *const columns[] = {
    "over",
    "value",
    "gpus",
    "nodes",
    "seq_len_tokens",
    "global_batch_seqs",
    "nic_bytes_per_s",
    "nvlink_domain_gpus",
    "changed",
    "changes",
    "layout",
    "verdict",
    "peak_bytes",
    "capacity_bytes",
    "step_s",
    "step_low_s",
    "step_high_s",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "efficiency_frac",
    "mfu_frac",
    "bound_by",
    "link",
    "link_has_bytes_per_s",
    "link_needed_bytes_per_s",
    "pcie_has_bytes_per_s",
    "pcie_needed_bytes_per_s",
    "network_has_bytes_per_s",
    "network_needed_bytes_per_s",
};

static void write_inputs(nd_csv_writer *csv, const nd_sweep_view *view, const nd_sweep_point *point)
{
    const nd_cluster_spec *cluster = &point->point.cluster;
    nd_csv_writer_text(csv, nd_sweep_quantity_name(view->quantity));
    nd_csv_writer_double(csv, point->value);
    nd_csv_writer_int(csv, cluster->gpus);
    nd_csv_writer_int(csv, cluster->nodes);
    nd_csv_writer_int(csv, point->point.train.seq_len_tokens);
    nd_csv_writer_int(csv, point->point.train.global_batch_seqs);
    nd_csv_writer_double(csv, cluster->nic_bytes_per_s);
    nd_csv_writer_int(csv, cluster->nvlink_domain);
    nd_csv_writer_text(csv, point->changed ? "true" : "false");
    nd_csv_writer_text(csv, point->changes);
}

/* Figures of the best plan; of the closest one only what it needs; empty fields for the rest. */
static void write_plan(nd_csv_writer *csv, const nd_sweep_point *point)
{
    const nd_point *p = &point->point;
    const nd_plan *plan = p->fits ? &p->best : p->has_closest ? &p->closest : NULL;
    char layout[512] = "";
    double none = (double)NAN;
    if (plan != NULL) {
        (void)nd_layout_format(&plan->layout, layout, sizeof layout);
    }
    const nd_estimate *e = plan != NULL ? &plan->estimate : NULL;
    nd_csv_writer_text(csv, layout);
    nd_csv_writer_text(csv, e != NULL ? nd_verdict_name(e->memory.verdict) : "illegal");
    nd_csv_writer_double(csv, e != NULL ? e->memory.peak_bytes : none);
    nd_csv_writer_double(csv, e != NULL ? e->memory.capacity_bytes : none);
    nd_csv_writer_double(csv, p->fits ? e->time.step_s : none);
    nd_csv_writer_double(csv, p->fits ? e->time.step_low_s : none);
    nd_csv_writer_double(csv, p->fits ? e->time.step_high_s : none);
    nd_csv_writer_double(csv, p->fits ? e->tokens_per_s : none);
    nd_csv_writer_double(csv, p->fits ? e->tokens_per_s_per_gpu : none);
    nd_csv_writer_double(csv, p->fits ? point->efficiency_frac : none);
    nd_csv_writer_double(csv, p->fits ? e->mfu_frac : none);
    nd_csv_writer_text(csv, p->fits ? e->bound_by : "");
}

static void write_needs(nd_csv_writer *csv, const nd_sweep_point *point)
{
    const nd_bandwidth_need *by_class[ND_LINK_CLASS_COUNT] = {NULL};
    double none = (double)NAN;
    for (int32_t i = 0; i < point->needs_count; i++) {
        by_class[point->needs[i].link_class] = &point->needs[i];
    }
    for (int c = 0; c < ND_LINK_CLASS_COUNT; c++) {
        const nd_bandwidth_need *need = by_class[c];
        if (c == ND_LINK_CLASS_GPU) {
            nd_csv_writer_text(csv, need != NULL ? nd_tier_kind_name(need->kind) : "");
        }
        nd_csv_writer_double(csv, need != NULL ? need->has_bytes_per_s : none);
        nd_csv_writer_double(csv, need != NULL && need->needed_bytes_per_s > 0.0 ? need->needed_bytes_per_s : none);
    }
}

void nd_csv_sweep(FILE *stream, const nd_sweep_view *view)
{
    nd_csv_writer csv = {stream, false};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        nd_csv_writer_text(&csv, columns[i]);
    }
    nd_csv_writer_end_row(&csv);
    for (int32_t i = 0; i < view->count; i++) {
        write_inputs(&csv, view, &view->points[i]);
        write_plan(&csv, &view->points[i]);
        write_needs(&csv, &view->points[i]);
        nd_csv_writer_end_row(&csv);
    }
}
