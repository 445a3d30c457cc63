#include "cost_model/collective_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double seconds_per_us = 1e-6;

/* Names of nccl-tests. */
static const char *const collective_texts[ND_COLLECTIVE_COUNT] = {
    [ND_ALL_REDUCE] = "all_reduce", [ND_ALL_GATHER] = "all_gather", [ND_REDUCE_SCATTER] = "reduce_scatter",
    [ND_ALL_TO_ALL] = "alltoall",   [ND_SEND_RECV] = "sendrecv",
};

/* What one row says, before it joins its series. */
typedef struct row_facts {
    const char *cluster, *system, *version;
    int64_t gpus, nodes;
    nd_collective collective;
    double bytes, us;
} row_facts;

/* A text that the rows name again and again, and what it resolved to. */
typedef struct resolved {
    const char *text;
    int64_t gpus, nodes;
    int32_t cluster; /* -1: not resolved */
    char reason[ND_SYSTEM_TEXT_MAX];
} resolved;

typedef struct reader {
    const nd_csv *csv;
    nd_collective_data *data;
    resolved *texts;
    int64_t texts_count;
    nd_error *err;
} reader;

static nd_status read_collective(const nd_csv *csv, size_t row, nd_collective *out, nd_error *err)
{
    const char *text = nd_csv_text(csv, row, "collective");
    for (int i = 0; i < ND_COLLECTIVE_COUNT; i++) {
        if (strcmp(text, collective_texts[i]) == 0 || strcmp(text, nd_collective_name((nd_collective)i)) == 0) {
            *out = (nd_collective)i;
            return ND_OK;
        }
    }
    return nd_csv_fail(
        csv, row, err,
        "collective '%.40s' is unknown; use all_reduce, all_gather, reduce_scatter, alltoall or sendrecv", text);
}

static nd_status read_row(const nd_csv *csv, size_t row, row_facts *out, nd_error *err)
{
    row_facts facts = {.cluster = nd_csv_text(csv, row, "cluster"),
                       .system = nd_csv_text(csv, row, "group"),
                       .version = nd_csv_text(csv, row, "nccl_version")};
    ND_TRY(nd_csv_int(csv, row, "gpus", 1, 1048576, &facts.gpus, err));
    ND_TRY(nd_csv_int(csv, row, "nodes", 1, 65536, &facts.nodes, err));
    ND_TRY(read_collective(csv, row, &facts.collective, err));
    ND_TRY(nd_csv_double(csv, row, "message_bytes", 1.0, 1e15, &facts.bytes, err));
    ND_TRY(nd_csv_double(csv, row, "time_us", 1e-3, 1e12, &facts.us, err));
    if (facts.gpus < 2 || facts.nodes < 1 || !(facts.bytes > 0.0) || !(facts.us > 0.0) || facts.system[0] == '\0') {
        return nd_csv_fail(csv, row, err,
                           "a measured collective needs gpus (2 or more), nodes, message_bytes, time_us and group");
    }
    *out = facts;
    return ND_OK;
}

static void skip(nd_collective_data *data, const char *cluster, const char *reason)
{
    char text[ND_SYSTEM_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, cluster);
    for (int32_t i = 0; i < data->skips_count; i++) {
        if (strcmp(data->skips[i].cluster, text) == 0 && strcmp(data->skips[i].reason, reason) == 0) {
            data->skips[i].rows++;
            return;
        }
    }
    nd_collective_skip *entry = &data->skips[data->skips_count++];
    (void)snprintf(entry->cluster, sizeof entry->cluster, "%s", text);
    (void)snprintf(entry->reason, sizeof entry->reason, "%.*s", (int)sizeof entry->reason - 1, reason);
    entry->rows = 1;
}

/* The links of an architecture are the same on all its GPUs, so its calibration stands for all. */
static nd_status find_family(nd_collective_data *data, const nd_gpu_spec *gpu, int32_t *out, nd_error *err)
{
    const char *name = nd_calibration_family(gpu);
    for (int32_t i = 0; i < data->families_count; i++) {
        if (strcmp(data->families[i].name, name) == 0) {
            *out = i;
            return ND_OK;
        }
    }
    nd_gpu_spec owner = *gpu;
    (void)snprintf(owner.name, sizeof owner.name, "%s", name);
    ND_TRY(nd_calibration_for_gpu(&owner, &data->families[data->families_count], err));
    *out = data->families_count++;
    return ND_OK;
}

static resolved *resolve(reader *r, const row_facts *facts)
{
    for (int64_t i = 0; i < r->texts_count; i++) {
        resolved *known = &r->texts[i];
        if (known->gpus == facts->gpus && known->nodes == facts->nodes && strcmp(known->text, facts->cluster) == 0) {
            return known;
        }
    }
    resolved *entry = &r->texts[r->texts_count++];
    nd_error why = {.message = ""};
    *entry = (resolved){.text = facts->cluster, .gpus = facts->gpus, .nodes = facts->nodes, .cluster = -1};
    nd_cluster_spec *cluster = &r->data->clusters[r->data->clusters_count];
    if (nd_collective_cluster(facts->cluster, facts->gpus, facts->nodes, cluster, &why) == ND_OK) {
        entry->cluster = r->data->clusters_count++;
    }
    (void)snprintf(entry->reason, sizeof entry->reason, "%.*s", (int)sizeof entry->reason - 1, why.message);
    return entry;
}

static int32_t find_system(nd_collective_data *data, const char *name)
{
    char text[ND_SYSTEM_TEXT_MAX];
    (void)snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, name);
    for (int32_t i = 0; i < data->systems_count; i++) {
        if (strcmp(data->systems[i].name, text) == 0) {
            return i;
        }
    }
    (void)snprintf(data->systems[data->systems_count].name, ND_SYSTEM_TEXT_MAX, "%s", text);
    return data->systems_count++;
}

static nd_status find_series(nd_collective_data *data, const row_facts *facts, int32_t cluster, int32_t *out,
                             nd_error *err)
{
    const nd_cluster_spec *spec = &data->clusters[cluster];
    int64_t per_node = facts->gpus / facts->nodes;
    nd_collective_series wanted = {.system = find_system(data, facts->system),
                                   .cluster = cluster,
                                   .collective = facts->collective,
                                   .group = {facts->gpus, facts->nodes > 1 ? spec->gpus_per_node / per_node : 1},
                                   .nodes = facts->nodes};
    (void)snprintf(wanted.version, sizeof wanted.version, "%.23s", facts->version);
    for (int32_t i = 0; i < data->series_count; i++) {
        const nd_collective_series *s = &data->series[i];
        if (s->system == wanted.system && s->cluster == cluster && s->collective == wanted.collective &&
            strcmp(s->version, wanted.version) == 0) {
            *out = i;
            return ND_OK;
        }
    }
    ND_TRY(find_family(data, &spec->gpu, &wanted.family, err));
    data->series[data->series_count] = wanted;
    *out = data->series_count++;
    return ND_OK;
}

/* Why a row is of no use whatever its cluster, or NULL. */
static const char *unusable(const nd_csv *csv, size_t row)
{
    const char *condition = nd_csv_text(csv, row, "condition");
    if (condition[0] != '\0' && strcmp(condition, "ok") != 0) {
        return condition;
    }
    return strstr(nd_csv_text(csv, row, "note"), "NVLS_ENABLE=0") != NULL ? "in-switch reduction was off" : NULL;
}

static nd_status take_row(reader *r, size_t row)
{
    row_facts facts;
    int32_t series = 0;
    ND_TRY(read_row(r->csv, row, &facts, r->err));
    const char *reason = unusable(r->csv, row);
    const resolved *place = reason == NULL ? resolve(r, &facts) : NULL;
    if (place == NULL || place->cluster < 0) {
        skip(r->data, facts.cluster, reason != NULL ? reason : place->reason);
        return ND_OK;
    }
    ND_TRY(find_series(r->data, &facts, place->cluster, &series, r->err));
    r->data->points[r->data->points_count++] =
        (nd_collective_point){.bytes = facts.bytes, .seconds = facts.us * seconds_per_us, .series = series, .row = row};
    r->data->series[series].count++;
    r->data->systems[r->data->series[series].system].points++;
    return ND_OK;
}

static int by_series(const void *a, const void *b)
{
    const nd_collective_point *x = a;
    const nd_collective_point *y = b;
    if (x->series != y->series) {
        return x->series < y->series ? -1 : 1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

/* Room for the worst case: every row its own system, cluster and series. Tables have thousands of rows, not millions.
 */
static nd_collective_data *allocate(size_t rows)
{
    nd_collective_data *data = calloc(1, sizeof *data);
    if (data != NULL) {
        data->systems = calloc(rows, sizeof *data->systems);
        data->clusters = calloc(rows, sizeof *data->clusters);
        data->families = calloc(rows, sizeof *data->families);
        data->series = calloc(rows, sizeof *data->series);
        data->points = calloc(rows, sizeof *data->points);
        data->skips = calloc(rows, sizeof *data->skips);
        if (!data->systems || !data->clusters || !data->families || !data->series || !data->points || !data->skips) {
            nd_collective_data_free(data);
            data = NULL;
        }
    }
    return data;
}

static nd_status read_rows(reader *r)
{
    static const char *const needed[] = {"cluster", "gpus", "nodes", "collective", "message_bytes", "time_us", "group"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        ND_TRY(nd_csv_need_column(r->csv, needed[i], r->err));
    }
    for (size_t row = 0; row < nd_csv_rows(r->csv); row++) {
        ND_TRY(take_row(r, row));
    }
    if (r->data->points_count == 0) {
        return nd_fail(r->err, ND_EPARSE, "%s: none of %zu rows is a usable measurement", nd_csv_origin(r->csv),
                       nd_csv_rows(r->csv));
    }
    qsort(r->data->points, (size_t)r->data->points_count, sizeof r->data->points[0], by_series);
    int64_t first = 0;
    for (int32_t i = 0; i < r->data->series_count; i++) {
        r->data->series[i].first = first;
        first += r->data->series[i].count;
    }
    return ND_OK;
}

nd_status nd_collective_data_read(const nd_csv *csv, nd_collective_data **out, nd_error *err)
{
    size_t rows = nd_csv_rows(csv) > 0 ? nd_csv_rows(csv) : 1;
    reader r = {.csv = csv, .data = allocate(rows), .texts = calloc(rows, sizeof(resolved)), .err = err};
    nd_status status = r.data == NULL || r.texts == NULL
                           ? nd_fail(err, ND_ENOMEM, "out of memory for %zu measured collectives", rows)
                           : read_rows(&r);
    free(r.texts);
    if (status != ND_OK) {
        nd_collective_data_free(r.data);
        return status;
    }
    *out = r.data;
    return ND_OK;
}

void nd_collective_data_free(nd_collective_data *data)
{
    if (data == NULL) {
        return;
    }
    free(data->systems);
    free(data->clusters);
    free(data->families);
    free(data->series);
    free(data->points);
    free(data->skips);
    free(data);
}
