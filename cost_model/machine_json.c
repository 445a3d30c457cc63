/* The file format of a machine's constants; docs/EXECUTOR.md shows one. */
#include <string.h>

#include "core/json.h"
#include "core/json_writer.h"
#include "cost_model/machine.h"

static const char schema[] = "ndplan-machine-1";

static void write_op(nd_json_writer *json, nd_ins_op op, const nd_op_rate *rate)
{
    nd_json_key(json, nd_ins_name(op));
    nd_json_begin_object(json);
    for (int32_t i = 0; i < ND_WORK_TERMS; i++) {
        const char *term = nd_work_term_name(op, i);
        if (term[0] != '\0') {
            char key[32];
            (void)snprintf(key, sizeof key, "%s_s", term);
            nd_json_put_double(json, key, rate->term_s[i]);
        }
    }
    nd_json_put_double(json, "crowd", rate->crowd);
    nd_json_put_int(json, "rows", rate->rows);
    nd_json_put_double(json, "error_frac", rate->error_frac);
    nd_json_end_object(json);
}

static void write_rates(nd_json_writer *json, const nd_compute_rates *rates)
{
    nd_json_begin_object(json);
    nd_json_put_double(json, "gap_s", rates->gap_s);
    nd_json_put_double(json, "skew_s", rates->skew_s);
    nd_json_key(json, "operations");
    nd_json_begin_object(json);
    for (int op = 0; op < ND_INS_COUNT; op++) {
        if (rates->op[op].rows > 0) {
            write_op(json, (nd_ins_op)op, &rates->op[op]);
        }
    }
    nd_json_end_object(json);
    nd_json_end_object(json);
}

void nd_machine_write(FILE *stream, const nd_machine *machine)
{
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_string(&json, "schema", schema);
    nd_json_put_string(&json, "processor", machine->processor);
    nd_json_put_string(&json, "date", machine->date);
    nd_json_put_int(&json, "processors", machine->processors);
    nd_json_key(&json, "compute");
    nd_json_begin_object(&json);
    for (int elem = 0; elem < ND_MACHINE_ELEMS; elem++) {
        if (machine->rates[elem].measured) {
            nd_json_key(&json, nd_elem_name((nd_elem)elem));
            write_rates(&json, &machine->rates[elem]);
        }
    }
    nd_json_end_object(&json);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}

static const double longest_s = 10.0; /* a unit of work takes less on anything that computes */

static nd_status read_op(nd_json entry, nd_ins_op op, nd_op_rate *out, nd_error *err)
{
    for (int32_t i = 0; i < ND_WORK_TERMS; i++) {
        const char *term = nd_work_term_name(op, i);
        if (term[0] != '\0') {
            char key[32];
            (void)snprintf(key, sizeof key, "%s_s", term);
            ND_TRY(nd_json_need_double(entry, key, 0.0, longest_s, &out->term_s[i], err));
        }
    }
    ND_TRY(nd_json_need_double(entry, "crowd", 0.1, 100.0, &out->crowd, err));
    ND_TRY(nd_json_need_int(entry, "rows", 1, INT64_MAX, &out->rows, err));
    return nd_json_need_double(entry, "error_frac", 0.0, 1e6, &out->error_frac, err);
}

static nd_status need_object(nd_json object, const char *key, nd_json *out, nd_error *err)
{
    ND_TRY(nd_json_need(object, key, out, err));
    nd_json_type type = nd_json_typeof(*out);
    return type == ND_JSON_OBJECT
               ? ND_OK
               : nd_json_fail(*out, err, "'%s' must be an object, got %s", key, nd_json_type_name(type));
}

static nd_status read_rates(nd_json entry, nd_compute_rates *out, nd_error *err)
{
    nd_json operations;
    ND_TRY(nd_json_need_double(entry, "gap_s", 0.0, longest_s, &out->gap_s, err));
    ND_TRY(nd_json_need_double(entry, "skew_s", 0.0, longest_s, &out->skew_s, err));
    ND_TRY(need_object(entry, "operations", &operations, err));
    for (size_t i = 0; i < nd_json_size(operations); i++) {
        nd_json member;
        const char *name = nd_json_member(operations, i, &member);
        int op = 0;
        while (op < ND_INS_COUNT && strcmp(nd_ins_name((nd_ins_op)op), name) != 0) {
            op++;
        }
        if (op == ND_INS_COUNT) {
            return nd_json_fail(member, err, "'%.40s' is no operation of a program", name);
        }
        ND_TRY(read_op(member, (nd_ins_op)op, &out->op[op], err));
    }
    out->measured = true;
    return ND_OK;
}

static nd_status read_compute(nd_json compute, nd_machine *out, nd_error *err)
{
    for (size_t i = 0; i < nd_json_size(compute); i++) {
        nd_json member;
        const char *name = nd_json_member(compute, i, &member);
        int elem = 0;
        while (elem < ND_MACHINE_ELEMS && strcmp(nd_elem_name((nd_elem)elem), name) != 0) {
            elem++;
        }
        if (elem == ND_MACHINE_ELEMS) {
            return nd_json_fail(member, err, "'%.40s' is no compute type; there are fp64, fp32 and bf16", name);
        }
        ND_TRY(read_rates(member, &out->rates[elem], err));
    }
    return ND_OK;
}

static nd_status read_text(nd_json root, const char *key, char *out, size_t out_bytes, nd_error *err)
{
    const char *text = NULL;
    ND_TRY(nd_json_need_string(root, key, &text, err));
    (void)snprintf(out, out_bytes, "%s", text);
    return ND_OK;
}

static nd_status read_machine(nd_json root, nd_machine *out, nd_error *err)
{
    const char *text = NULL;
    int64_t processors = 0;
    nd_json compute;
    ND_TRY(nd_json_need_string(root, "schema", &text, err));
    if (strcmp(text, schema) != 0) {
        return nd_json_fail(root, err,
                            "schema is '%.40s', and the constants of a machine are '%s': `ndplan calibrate --machine` "
                            "writes them",
                            text, schema);
    }
    ND_TRY(read_text(root, "processor", out->processor, sizeof out->processor, err));
    ND_TRY(read_text(root, "date", out->date, sizeof out->date, err));
    ND_TRY(nd_json_need_int(root, "processors", 1, 65536, &processors, err));
    out->processors = (int32_t)processors;
    ND_TRY(need_object(root, "compute", &compute, err));
    return read_compute(compute, out, err);
}

nd_status nd_machine_load(const char *path, nd_machine *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    nd_machine machine = {.processors = 1};
    ND_TRY(nd_json_load(path, &doc, err));
    nd_status status = read_machine(nd_json_root(doc), &machine, err);
    nd_json_free(doc);
    if (status == ND_OK) {
        *out = machine;
    }
    return status;
}
