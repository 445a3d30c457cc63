#include "cost_model/fit_collectives.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/nd_test.h"

static const char header[] = "cluster,gpus,nodes,collective,message_bytes,time_us,group,condition,note\n";

/* A table under construction. */
typedef struct table {
    char *text;
    size_t length, capacity;
} table;

static void append(table *t, const char *text)
{
    size_t length = strlen(text);
    if (t->length + length + 1 > t->capacity) {
        t->capacity = 2 * (t->length + length + 1);
        char *grown = realloc(t->text, t->capacity);
        CU_ASSERT_PTR_NOT_NULL_FATAL(grown);
        t->text = grown;
    }
    memcpy(t->text + t->length, text, length + 1);
    t->length += length;
}

/* Sizes by powers of two on one group; the times are set later. */
static void append_series(table *t, const char *cluster, int gpus, int nodes, const char *collective, const char *group)
{
    for (double bytes = 512.0; bytes <= 1073741824.0; bytes *= 2.0) {
        char row[256];
        (void)snprintf(row, sizeof row, "%s,%d,%d,%s,%.0f,1,%s,ok,\n", cluster, gpus, nodes, collective, bytes, group);
        append(t, row);
    }
}

static nd_status read_text(const char *text, nd_collective_data **out, nd_error *err)
{
    nd_csv *csv = NULL;
    nd_status status = nd_csv_parse(text, strlen(text), "points.csv", &csv, err);
    if (status == ND_OK) {
        status = nd_collective_data_read(csv, out, err);
        nd_csv_free(csv);
    }
    return status;
}

static nd_collective_data *read_table(table *t)
{
    nd_collective_data *data = NULL;
    nd_error err = {.message = ""};
    ND_ASSERT_OK(read_text(t->text, &data, &err));
    free(t->text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    return data;
}

static nd_collective_data *read_shipped(void)
{
    nd_csv *csv = NULL;
    nd_collective_data *data = NULL;
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_csv_load(ND_MEASUREMENTS "/collectives.csv", &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    ND_ASSERT_OK(nd_collective_data_read(csv, &data, &err));
    nd_csv_free(csv);
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    return data;
}

static void fails(const char *rows, nd_status status, const char *part)
{
    char text[1024];
    nd_collective_data *data = NULL;
    nd_error err = {.message = ""};
    (void)snprintf(text, sizeof text, "%s%s", header, rows);
    CU_ASSERT_EQUAL(read_text(text, &data, &err), status);
    CU_ASSERT_PTR_NULL(data);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void test_bad_tables_are_refused_with_file_and_line(void)
{
    fails("8xH100,8,1,all_swap,1024,10,a,ok,\n", ND_EPARSE, "points.csv:2: collective 'all_swap'");
    fails("8xH100,8,1,all_reduce,1024,fast,a,ok,\n", ND_EPARSE, "points.csv:2:");
    fails("8xH100,8,1,all_reduce,1024,-3,a,ok,\n", ND_EPARSE, "points.csv:2:");
    fails("8xH100,1,1,all_reduce,1024,10,a,ok,\n", ND_EPARSE, "points.csv:2:");
    fails("8xH100,8,1,all_reduce,1024,,a,ok,\n", ND_EPARSE, "points.csv:2:");
    fails("8xH100,8,1,all_reduce,1024,10,,ok,\n", ND_EPARSE, "group");
    fails("", ND_EPARSE, "none of 0 rows");
    fails("a machine of ours,8,1,all_reduce,1024,10,a,ok,\n", ND_EPARSE, "none of 1 rows");
    nd_collective_data *data = NULL;
    nd_error err = {.message = ""};
    CU_ASSERT_EQUAL(read_text("cluster,gpus\nh100,8\n", &data, &err), ND_EPARSE);
    ND_ASSERT_CONTAINS(err.message, "nodes");
}

static void resolves(const char *text, int64_t gpus, int64_t nodes, const char *gpu, const char *network)
{
    nd_cluster_spec cluster;
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_collective_cluster(text, gpus, nodes, &cluster, &err));
    CU_ASSERT_STRING_EQUAL(cluster.gpu.name, gpu);
    CU_ASSERT_EQUAL(cluster.nodes, nodes);
    if (network != NULL) {
        CU_ASSERT_STRING_EQUAL(cluster.network, network);
    }
}

static void test_free_texts_name_their_clusters(void)
{
    resolves("GCP a3-megagpu-8g (H100)", 16, 2, "h100", "tcpxo");
    resolves("ALCF Polaris: 4xA100-40/node, Slingshot", 8, 2, "a100-40gb", "slingshot");
    resolves("CSCS Alps: 4xGH200/node, Slingshot-11 4x200G", 8, 2, "gh200-96gb", "slingshot");
    resolves("CoreWeave GB200 NVL72 x2 racks", 144, 36, "gb200", NULL);
    resolves("8xH100-SXM5/node example-cluster01 (network not stated)", 10, 10, "h100", "ib-ndr");
    resolves("8xRTX PRO 6000 Server PCIe", 8, 1, "rtx-pro-6000", NULL);
    resolves("2xH100 PCIe with NVLink bridge", 2, 1, "h100-pcie", NULL);
}

static void does_not_resolve(const char *text, int64_t gpus, int64_t nodes, const char *part)
{
    nd_cluster_spec cluster;
    nd_error err = {.message = ""};
    CU_ASSERT_EQUAL(nd_collective_cluster(text, gpus, nodes, &cluster, &err), ND_ENOTFOUND);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void test_what_a_text_does_not_tell_is_not_guessed(void)
{
    does_not_resolve("2x DGX Spark GB10, one 200G QSFP cable", 2, 2, "names no known"); /* DGX alone is no cluster */
    does_not_resolve("8 NVLink GPUs", 8, 1, "names no known");
    does_not_resolve("", 8, 1, "names no known");
    does_not_resolve("8xH100", 9, 2, "do not spread");
    does_not_resolve("AWS p5.48xlarge", 32, 2, "8 GPUs per node, not 16");
}

static void test_rows_of_no_use_are_counted_by_reason(void)
{
    char text[1024];
    nd_collective_data *data = NULL;
    nd_error err = {.message = ""};
    (void)snprintf(text, sizeof text,
                   "%s8xH100,8,1,all_reduce,1024,10,a,ok,\n8xH100,8,1,all_reduce,2048,90,a,degraded,\n"
                   "8xH100,8,1,all_reduce,4096,11,a,degraded,\n8xH100,8,1,all_reduce,4096,12,a,,NCCL_NVLS_ENABLE=0\n"
                   "unknown,8,1,sendrecv,4096,11,b,ok,\n",
                   header);
    ND_ASSERT_OK(read_text(text, &data, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    CU_ASSERT_EQUAL(data->points_count, 1);
    CU_ASSERT_EQUAL(data->skips_count, 3);
    CU_ASSERT_STRING_EQUAL(data->skips[0].reason, "degraded");
    CU_ASSERT_EQUAL(data->skips[0].rows, 2);
    nd_collective_data_free(data);
    nd_collective_data_free(NULL);
}

/* One GPU of eight on each of ten nodes: members lie eight ranks apart. */
static void test_groups_spread_evenly_over_their_nodes(void)
{
    table t = {NULL, 0, 0};
    append(&t, header);
    append_series(&t, "8xH100", 10, 10, "all_reduce", "a");
    append_series(&t, "8xH100", 20, 10, "all_reduce", "a");
    append_series(&t, "8xH100", 4, 1, "all_reduce", "b");
    nd_collective_data *data = read_table(&t);
    CU_ASSERT_EQUAL(data->series_count, 3);
    CU_ASSERT_EQUAL(data->systems_count, 2);
    CU_ASSERT_EQUAL(data->series[0].group.stride, 8);
    CU_ASSERT_EQUAL(data->series[1].group.stride, 4);
    CU_ASSERT_EQUAL(data->series[2].group.stride, 1);
    CU_ASSERT_EQUAL(data->series[2].first, data->series[0].count + data->series[1].count);
    nd_collective_data_free(data);
}

static const char *const ring_operations[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall"};

static void append_node(table *t, const char *cluster, const char *group)
{
    for (size_t i = 0; i < 4; i++) {
        for (int gpus = 2; gpus <= 8; gpus *= 2) {
            append_series(t, cluster, gpus, 1, ring_operations[i], group);
        }
    }
}

/* Constants unlike the shipped ones and the priors. */
static void set_truth(nd_collective_model *model)
{
    for (int i = 0; i < ND_SEND_RECV; i++) {
        nd_collective_constants *c = &model->families[0].collective[i];
        *c = (nd_collective_constants){.efficiency2_frac = 0.55,
                                       .efficiency4_frac = 0.66,
                                       .efficiency8_frac = 0.72,
                                       .base_s = 9e-6,
                                       .step_s = 1.4e-6,
                                       .small_loss_frac = 0.9,
                                       .large_base_s = 22e-6,
                                       .large_step_s = 4e-6,
                                       .ramp_s = 5e-6};
    }
}

static void measure(nd_collective_data *data, const nd_collective_model *truth)
{
    nd_error err = {.message = ""};
    double *seconds = calloc((size_t)data->points_count, sizeof *seconds);
    CU_ASSERT_PTR_NOT_NULL_FATAL(seconds);
    ND_ASSERT_OK(nd_collective_model_predict(data, truth, seconds, &err));
    for (int64_t i = 0; i < data->points_count; i++) {
        double scatter = 1.0 + 0.01 * (double)(i % 5 - 2); /* a deterministic 2 % */
        data->points[i].seconds = seconds[i] * scatter;
    }
    free(seconds);
}

static void test_constants_of_a_family_are_recovered(void)
{
    static nd_collective_model truth, fitted;
    nd_error err = {.message = ""};
    table t = {NULL, 0, 0};
    append(&t, header);
    append_node(&t, "8xA100", "a");
    nd_collective_data *data = read_table(&t);
    ND_ASSERT_OK(nd_collective_model_shipped(data, &truth, &err));
    fitted = truth;
    set_truth(&truth);
    measure(data, &truth);
    ND_ASSERT_OK(nd_collective_fit(data, &fitted, &err));
    for (int i = 0; i < ND_SEND_RECV; i++) {
        const nd_collective_constants *f = &fitted.families[0].collective[i];
        ND_ASSERT_REL(f->efficiency2_frac, 0.55, 0.05);
        ND_ASSERT_REL(f->efficiency4_frac, 0.66, 0.05);
        ND_ASSERT_REL(f->efficiency8_frac, 0.72, 0.05);
        ND_ASSERT_REL(f->base_s, 9e-6, 0.05);
        ND_ASSERT_REL(f->step_s, 1.4e-6, 0.08);
        ND_ASSERT_REL(f->large_step_s, 4e-6, 0.30);
    }
    CU_ASSERT_EQUAL(fitted.families[0].collective[ND_SEND_RECV].base_s,
                    truth.families[0].collective[ND_SEND_RECV].base_s); /* no sends: left alone */
    CU_ASSERT_EQUAL(fitted.fitted_count, 4 * 9);
    for (int32_t i = 0; i < fitted.fitted_count; i++) {
        CU_ASSERT_TRUE(fitted.fitted[i].log_sd > 0.0 && isfinite(fitted.fitted[i].log_sd));
    }
    nd_collective_data_free(data);
}

static void test_constants_of_a_network_are_recovered(void)
{
    static nd_collective_model truth, fitted;
    nd_error err = {.message = ""};
    table t = {NULL, 0, 0};
    append(&t, header);
    for (int nodes = 2; nodes <= 32; nodes *= 2) {
        for (size_t i = 0; i < 4; i++) {
            append_series(&t, "8xH100", nodes, nodes, ring_operations[i], "a");
            append_series(&t, "8xH100", 8 * nodes, nodes, ring_operations[i], "a");
        }
    }
    nd_collective_data *data = read_table(&t);
    ND_ASSERT_OK(nd_collective_model_shipped(data, &truth, &err));
    CU_ASSERT_EQUAL_FATAL(truth.links_count, 1);
    CU_ASSERT_STRING_EQUAL(truth.links[0].type, "ib-ndr");
    fitted = truth;
    nd_link_constants *link = &truth.links[0];
    link->efficiency_frac = 0.90;
    link->step_latency_s = 17e-6;
    link->costs.ring_step_s = 25e-6;
    link->costs.large_step_s = 40e-6;
    link->costs.peer_s = 9e-6;
    link->costs.exchange_frac = 0.7;
    measure(data, &truth);
    ND_ASSERT_OK(nd_collective_fit_link(data, 0, -1, &fitted, &err));
    const nd_link_constants *f = &fitted.links[0];
    ND_ASSERT_REL(f->efficiency_frac, 0.90, 0.04);
    ND_ASSERT_REL(f->step_latency_s, 17e-6, 0.06);
    ND_ASSERT_REL(f->costs.ring_step_s, 25e-6, 0.06);
    ND_ASSERT_REL(f->costs.large_step_s, 40e-6, 0.10);
    ND_ASSERT_REL(f->costs.peer_s, 9e-6, 0.10);
    ND_ASSERT_REL(f->costs.exchange_frac, 0.7, 0.06);
    CU_ASSERT_EQUAL(f->costs.send_frac, link->costs.send_frac); /* not measured */
    nd_collective_data_free(data);
}

/* Without small messages nothing tells one hop's latency; the shipped figure stays. */
static void test_hop_latencies_need_small_messages(void)
{
    static nd_collective_model shipped, fitted;
    nd_error err = {.message = ""};
    table t = {NULL, 0, 0};
    append(&t, header);
    append_series(&t, "8xH100", 16, 2, "all_reduce", "a");
    nd_collective_data *data = read_table(&t);
    ND_ASSERT_OK(nd_collective_model_shipped(data, &shipped, &err));
    measure(data, &shipped);
    for (int64_t i = 0; i < data->points_count; i++) {
        data->points[i].bytes *= 1048576.0;
        data->points[i].seconds *= 1000.0;
    }
    fitted = shipped;
    ND_ASSERT_OK(nd_collective_fit_link(data, 0, -1, &fitted, &err));
    CU_ASSERT_EQUAL(fitted.links[0].step_latency_s, shipped.links[0].step_latency_s);
    CU_ASSERT_EQUAL(fitted.links[0].costs.ring_step_s, shipped.links[0].costs.ring_step_s);
    nd_collective_data_free(data);
}

/* Two equal systems predict each other; a third that measured alone is not covered. */
static void test_a_system_is_predicted_from_the_others(void)
{
    static nd_collective_model truth;
    nd_error err = {.message = ""};
    double median = nan("");
    double p90 = nan("");
    table t = {NULL, 0, 0};
    append(&t, header);
    append_node(&t, "8xA100", "a");
    append_node(&t, "8xA100", "b");
    append_series(&t, "8xB200", 8, 1, "all_reduce", "c");
    nd_collective_data *data = read_table(&t);
    ND_ASSERT_OK(nd_collective_model_shipped(data, &truth, &err));
    static nd_collective_model start;
    start = truth;
    set_truth(&truth);
    measure(data, &truth);
    double *seconds = calloc((size_t)data->points_count, sizeof *seconds);
    bool *covered = calloc((size_t)data->points_count, sizeof *covered);
    CU_ASSERT_PTR_NOT_NULL_FATAL(seconds);
    CU_ASSERT_PTR_NOT_NULL_FATAL(covered);
    ND_ASSERT_OK(nd_collective_leave_one_out(data, &start, seconds, covered, &err));
    for (int64_t i = 0; i < data->points_count; i++) {
        CU_ASSERT_EQUAL(covered[i], data->series[data->points[i].series].system != 2);
    }
    CU_ASSERT_EQUAL(nd_collective_errors(data, seconds, NULL, NULL, &median, &p90), data->points_count);
    CU_ASSERT_TRUE(median < 0.03);
    CU_ASSERT_TRUE(p90 < 0.08);
    free(seconds);
    free(covered);
    nd_collective_data_free(data);
}

/* What the shipped rows are scored by. */
typedef struct choice {
    const nd_collective_model *model;
    const bool *covered;
    const char *family;
    bool own_links;
    double min_bytes;
} choice;

static bool chosen(const nd_collective_data *data, int64_t point, const void *user)
{
    const choice *c = user;
    int32_t series = data->points[point].series;
    bool own = nd_collective_series_link(data, c->model, series) < 0;
    return (c->covered == NULL || c->covered[point]) && (!c->own_links || own) &&
           data->points[point].bytes >= c->min_bytes &&
           strcmp(c->model->families[data->series[series].family].name, c->family) == 0;
}

/* Figures of docs/MODEL.md, "Collectives", with some room. */
static void test_shipped_measurements_are_met(void)
{
    static nd_collective_model shipped;
    nd_error err = {.message = ""};
    double median = nan("");
    double p90 = nan("");
    nd_collective_data *data = read_shipped();
    ND_ASSERT_OK(nd_collective_model_shipped(data, &shipped, &err));
    double *seconds = calloc((size_t)data->points_count, sizeof *seconds);
    bool *covered = calloc((size_t)data->points_count, sizeof *covered);
    CU_ASSERT_PTR_NOT_NULL_FATAL(seconds);
    CU_ASSERT_PTR_NOT_NULL_FATAL(covered);
    ND_ASSERT_OK(nd_collective_model_predict(data, &shipped, seconds, &err));
    choice c = {&shipped, NULL, "h100", true, 0.0};
    CU_ASSERT_TRUE(nd_collective_errors(data, seconds, chosen, &c, &median, &p90) > 400);
    CU_ASSERT_TRUE(median <= 0.05);
    ND_ASSERT_OK(nd_collective_leave_one_out(data, &shipped, seconds, covered, &err));
    c = (choice){&shipped, covered, "h100", true, 1048576.0};
    CU_ASSERT_TRUE(nd_collective_errors(data, seconds, chosen, &c, &median, &p90) > 200);
    CU_ASSERT_TRUE(median <= 0.06);
    c.own_links = false;
    (void)nd_collective_errors(data, seconds, chosen, &c, &median, &p90);
    CU_ASSERT_TRUE(median <= 0.10);
    free(seconds);
    free(covered);
    nd_collective_data_free(data);
}

/* The shipped table holds no degraded rows and names the source of each. */
static void test_shipped_rows_have_sources(void)
{
    nd_csv *csv = NULL;
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_csv_load(ND_MEASUREMENTS "/collectives.csv", &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    CU_ASSERT_TRUE(nd_csv_rows(csv) > 2000);
    for (size_t row = 0; row < nd_csv_rows(csv); row++) {
        CU_ASSERT_TRUE(strlen(nd_csv_text(csv, row, "source")) > 8);
        CU_ASSERT_STRING_EQUAL(nd_csv_text(csv, row, "condition"), "ok");
    }
    nd_csv_free(csv);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_bad_tables_are_refused_with_file_and_line),
        ND_TEST(test_free_texts_name_their_clusters),
        ND_TEST(test_what_a_text_does_not_tell_is_not_guessed),
        ND_TEST(test_rows_of_no_use_are_counted_by_reason),
        ND_TEST(test_groups_spread_evenly_over_their_nodes),
        ND_TEST(test_constants_of_a_family_are_recovered),
        ND_TEST(test_constants_of_a_network_are_recovered),
        ND_TEST(test_hop_latencies_need_small_messages),
        ND_TEST(test_a_system_is_predicted_from_the_others),
        ND_TEST(test_shipped_measurements_are_met),
        ND_TEST(test_shipped_rows_have_sources),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/fit_collectives", cases);
}
