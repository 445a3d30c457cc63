/* The file format of fitted constants; docs/ACCURACY.md shows one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/json_writer.h"
#include "core/resource.h"
#include "cost_model/fitted.h"

extern const nd_resource nd_fitted_resources[];

static const char schema[] = "ndplan-fitted-1";
static const char shipped_name[] = "runs";

static nd_status read_owner(nd_json entry, nd_run_constant *out, nd_error *err)
{
    const char *text = NULL;
    ND_TRY(nd_json_need_string(entry, "kind", &text, err));
    out->of_stack = strcmp(text, "stack") == 0;
    if (!out->of_stack && strcmp(text, "gpu") != 0) {
        return nd_json_fail(entry, err, "kind must be 'gpu' or 'stack', got '%.40s'", text);
    }
    ND_TRY(nd_json_need_string(entry, "owner", &text, err));
    (void)snprintf(out->owner, sizeof out->owner, "%s", text);
    ND_TRY(nd_json_need_string(entry, "key", &text, err));
    (void)snprintf(out->key, sizeof out->key, "%s", text);
    double min = 0.0;
    double max = 0.0;
    return nd_run_constant_bounds(out->of_stack, out->key, &min, &max)
               ? ND_OK
               : nd_json_fail(entry, err, "'%.40s' is no constant of a %s that runs can tell", out->key,
                              out->of_stack ? "stack" : "GPU");
}

static bool is_same(const nd_run_constant *a, const nd_run_constant *b)
{
    return a->of_stack == b->of_stack && strcmp(a->owner, b->owner) == 0 && strcmp(a->key, b->key) == 0;
}

static nd_status read_constant(nd_json entry, nd_fitted *out, int32_t index, nd_error *err)
{
    nd_run_constant *constant = &out->constants[index];
    nd_json identified;
    ND_TRY(read_owner(entry, constant, err));
    for (int32_t i = 0; i < index; i++) {
        if (is_same(&out->constants[i], constant)) {
            return nd_json_fail(entry, err, "%s of '%s' is there twice", constant->key, constant->owner);
        }
    }
    (void)nd_run_constant_bounds(constant->of_stack, constant->key, &constant->min, &constant->max);
    ND_TRY(nd_json_need_double(entry, "prior", constant->min, constant->max, &constant->prior, err));
    ND_TRY(nd_json_need_double(entry, "fitted", constant->min, constant->max, &out->value[index], err));
    ND_TRY(nd_json_need_double(entry, "log_sd", 0.0, 10.0, &out->log_sd[index], err));
    ND_TRY(nd_json_need(entry, "identified", &identified, err));
    return nd_json_as_bool(identified, "identified", &out->identified[index], err);
}

/* A member that must be an array: elements of anything else have no place. */
static nd_status need_array(nd_json object, const char *key, nd_json *out, nd_error *err)
{
    ND_TRY(nd_json_need(object, key, out, err));
    nd_json_type type = nd_json_typeof(*out);
    return type == ND_JSON_ARRAY
               ? ND_OK
               : nd_json_fail(*out, err, "'%s' must be an array, got %s", key, nd_json_type_name(type));
}

/* Row i holds the covariances of constant i with constants 0 to i. */
static nd_status read_covariance(nd_json root, nd_fitted *out, nd_error *err)
{
    nd_json rows;
    ND_TRY(need_array(root, "covariance", &rows, err));
    if (nd_json_size(rows) != (size_t)out->constants_count) {
        return nd_json_fail(rows, err, "covariance needs a row for each of the %d constants, got %zu",
                            (int)out->constants_count, nd_json_size(rows));
    }
    for (int32_t i = 0; i < out->constants_count; i++) {
        nd_json row = nd_json_at(rows, (size_t)i);
        if (nd_json_typeof(row) != ND_JSON_ARRAY || nd_json_size(row) != (size_t)i + 1) {
            return nd_json_fail(row, err, "row %d of the covariance needs %d numbers, got %zu", (int)i + 1, (int)i + 1,
                                nd_json_size(row));
        }
        for (int32_t j = 0; j <= i; j++) {
            ND_TRY(nd_json_as_double(nd_json_at(row, (size_t)j), "covariance", i == j ? 0.0 : -100.0, 100.0,
                                     &out->covariance[i][j], err));
            out->covariance[j][i] = out->covariance[i][j];
        }
    }
    return ND_OK;
}

static nd_status read_head(nd_json root, nd_fitted *out, nd_error *err)
{
    const char *text = "missing";
    ND_TRY(nd_json_opt_string(root, "schema", &text, err));
    if (strcmp(text, schema) != 0) {
        return nd_json_fail(root, err,
                            "no file of fitted constants: schema is %.60s, not '%s'; `ndplan calibrate` "
                            "writes such files",
                            text, schema);
    }
    ND_TRY(nd_json_need_string(root, "source", &text, err));
    (void)snprintf(out->source, sizeof out->source, "%s", text);
    ND_TRY(nd_json_need_string(root, "fingerprint", &text, err));
    (void)snprintf(out->fingerprint, sizeof out->fingerprint, "%s", text);
    ND_TRY(nd_json_need_int(root, "runs", 0, INT64_C(1) << 40, &out->runs, err));
    ND_TRY(nd_json_need_double(root, "reduced_chi2", 0.0, 1e9, &out->reduced_chi2, err));
    ND_TRY(nd_json_need_double(root, "rcond", 0.0, 1.0, &out->rcond, err));
    ND_TRY(nd_json_need_double(root, "form_log_sd", 0.0, 10.0, &out->form_log_sd, err));
    return nd_json_need_double(root, "hard_form_log_sd", 0.0, 10.0, &out->hard_form_log_sd, err);
}

static nd_status read_fitted(nd_json root, nd_fitted *out, nd_error *err)
{
    nd_json constants;
    ND_TRY(read_head(root, out, err));
    ND_TRY(need_array(root, "constants", &constants, err));
    size_t count = nd_json_size(constants);
    if (count > ND_FIT_PARAMETERS_MAX) {
        return nd_json_fail(constants, err, "more than %d constants", (int)ND_FIT_PARAMETERS_MAX);
    }
    out->constants_count = (int32_t)count;
    for (int32_t i = 0; i < out->constants_count; i++) {
        ND_TRY(read_constant(nd_json_at(constants, (size_t)i), out, i, err));
    }
    return read_covariance(root, out, err);
}

static nd_status read_doc(nd_json_doc *doc, const char *name, nd_fitted *out, nd_error *err)
{
    nd_fitted fitted;
    memset(&fitted, 0, sizeof fitted);
    (void)snprintf(fitted.name, sizeof fitted.name, "%s", name);
    nd_status status = read_fitted(nd_json_root(doc), &fitted, err);
    nd_json_free(doc);
    if (status == ND_OK) {
        *out = fitted;
    }
    return status;
}

nd_status nd_fitted_shipped(nd_fitted *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    const nd_resource *resource = nd_resource_find(nd_fitted_resources, shipped_name);
    if (resource == NULL) {
        return nd_fail(err, ND_ENOTFOUND, "no fitted constants were built in");
    }
    ND_TRY(nd_json_parse(resource->text, resource->length, resource->name, &doc, err));
    return read_doc(doc, resource->name, out, err);
}

nd_status nd_fitted_load(const char *path, nd_fitted *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_load(path, &doc, err));
    return read_doc(doc, path, out, err);
}

/* Six digits: more would change with the compiler and say nothing. */
static double rounded(double value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.6g", value);
    return strtod(text, NULL);
}

static void write_constants(nd_json_writer *json, const nd_fitted *fitted)
{
    nd_json_key(json, "constants");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < fitted->constants_count; i++) {
        const nd_run_constant *constant = &fitted->constants[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, "kind", constant->of_stack ? "stack" : "gpu");
        nd_json_put_string(json, "owner", constant->owner);
        nd_json_put_string(json, "key", constant->key);
        nd_json_put_double(json, "prior", rounded(constant->prior));
        nd_json_put_double(json, "fitted", rounded(fitted->value[i]));
        nd_json_put_double(json, "log_sd", rounded(fitted->log_sd[i]));
        nd_json_put_bool(json, "identified", fitted->identified[i]);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

static void write_covariance(nd_json_writer *json, const nd_fitted *fitted)
{
    nd_json_key(json, "covariance");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < fitted->constants_count; i++) {
        nd_json_begin_array(json);
        for (int32_t j = 0; j <= i; j++) {
            nd_json_double(json, rounded(fitted->covariance[i][j]));
        }
        nd_json_end_array(json);
    }
    nd_json_end_array(json);
}

static void write_residuals(nd_json_writer *json, const nd_fitted_residual *residuals, int64_t count)
{
    nd_json_key(json, "residuals");
    nd_json_begin_array(json);
    for (int64_t i = 0; i < count; i++) {
        nd_json_begin_object(json);
        nd_json_put_string(json, "id", residuals[i].id);
        nd_json_put_double(json, "log_error", rounded(residuals[i].log_error));
        nd_json_put_double(json, "left_out_log_error", rounded(residuals[i].left_out_log_error));
        nd_json_put_double(json, "weight", rounded(residuals[i].weight));
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}

void nd_fitted_write(FILE *out, const nd_fitted *fitted, const nd_fitted_residual *residuals, int64_t residuals_count)
{
    nd_json_writer json = nd_json_writer_start(out);
    nd_json_begin_object(&json);
    nd_json_put_string(&json, "schema", schema);
    nd_json_put_string(&json, "source", fitted->source);
    nd_json_put_string(&json, "fingerprint", fitted->fingerprint);
    nd_json_put_int(&json, "runs", fitted->runs);
    nd_json_put_double(&json, "reduced_chi2", rounded(fitted->reduced_chi2));
    nd_json_put_double(&json, "rcond", rounded(fitted->rcond));
    nd_json_put_double(&json, "form_log_sd", rounded(fitted->form_log_sd));
    nd_json_put_double(&json, "hard_form_log_sd", rounded(fitted->hard_form_log_sd));
    write_constants(&json, fitted);
    write_covariance(&json, fitted);
    write_residuals(&json, residuals, residuals_count);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}
