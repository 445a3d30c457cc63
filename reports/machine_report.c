#include "reports/machine_report.h"

#include "core/units.h"
#include "reports/format.h"

/* What a step of most models is made of. */
static const nd_ins_op shown[] = {
    ND_INS_GEMM,
    ND_INS_GEMM_GROUPED,
    ND_INS_ATTENTION,
    ND_INS_ATTENTION_GRAD,
    ND_INS_NORM,
    ND_INS_NORM_GRAD,
    ND_INS_GLU,
    ND_INS_GLU_GRAD,
    ND_INS_LOSS,
    ND_INS_ADD,
    ND_INS_ZERO,
    ND_INS_ADAMW,
    ND_INS_ALL_REDUCE,
    ND_INS_ALL_GATHER,
    ND_INS_REDUCE_SCATTER,
    ND_INS_ALL_TO_ALL_ROWS,
    ND_INS_SHIFT,
    ND_INS_RECV,
};

/* The constant that says most about an operation, in a unit for people. */
static void rate_text(nd_ins_op op, const nd_op_rate *rate, char *text, size_t text_bytes)
{
    const char *term = nd_work_term_name(op, 1);
    double unit_s = rate->term_s[1];
    if (term[0] == '\0' || !(unit_s > 0.0)) {
        (void)snprintf(text, text_bytes, "%s a call", nd_format_seconds(rate->term_s[0]).text);
    } else if (term[0] == 'f') {
        (void)snprintf(text, text_bytes, "%s GFLOP/s", nd_format_number(1e-9 / unit_s).text);
    } else if (term[0] == 'b') {
        (void)snprintf(text, text_bytes, "%s GB/s", nd_format_number(1e-9 / unit_s).text);
    } else {
        (void)snprintf(text, text_bytes, "%s M elements/s", nd_format_number(1e-6 / unit_s).text);
    }
}

static void add_op(nd_table *table, nd_ins_op op, const nd_op_rate *rate)
{
    char text[64];
    nd_table_add(table, nd_ins_name(op));
    rate_text(op, rate, text, sizeof text);
    nd_table_add(table, text);
    nd_table_add(table, nd_format_seconds(rate->term_s[0]).text);
    (void)snprintf(text, sizeof text, "%.2f", rate->crowd);
    nd_table_add(table, text);
    nd_table_add(table, nd_format_count(rate->rows).text);
    nd_table_add(table, nd_format_percent(rate->error_frac).text);
}

static nd_status print_rates(FILE *stream, const nd_report_style *style, nd_elem real, const nd_compute_rates *rates,
                             nd_error *err)
{
    static const nd_column columns[] = {
        {"operation", NULL, ND_ALIGN_LEFT, 0, 0}, {"rate", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"a call", NULL, ND_ALIGN_RIGHT, 1, 0},   {"crowded", "x", ND_ALIGN_RIGHT, 3, 0},
        {"times", NULL, ND_ALIGN_RIGHT, 2, 0},    {"error", "%", ND_ALIGN_RIGHT, 0, 0},
    };
    char heading[64];
    nd_table *table = nd_table_create(columns, 6);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the report");
    }
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        if (rates->op[shown[i]].rows > 0) {
            add_op(table, shown[i], &rates->op[shown[i]]);
        }
    }
    (void)snprintf(heading, sizeof heading, "Compute in %s", nd_elem_name(real));
    nd_report_heading(stream, style, heading);
    nd_status status = nd_table_print(table, stream, style, 2, err);
    nd_table_free(table);
    nd_report_paragraph(stream, style, 2, 2, "%s between two instructions; members of a collective come %s apart.",
                        nd_format_seconds(rates->gap_s).text, nd_format_seconds(rates->skew_s).text);
    return status;
}

nd_status nd_report_machine(FILE *stream, const nd_report_style *style, const nd_machine *machine, nd_error *err)
{
    nd_report_paragraph(stream, style, 0, 2, "%s, %s processor%s, measured on %s.", machine->processor,
                        nd_format_count(machine->processors).text, machine->processors == 1 ? "" : "s", machine->date);
    for (int elem = 0; elem < ND_MACHINE_ELEMS; elem++) {
        if (machine->rates[elem].measured) {
            ND_TRY(print_rates(stream, style, (nd_elem)elem, &machine->rates[elem], err));
        }
    }
    nd_report_paragraph(stream, style, 0, 2,
                        "rate: of the largest term; crowded: how much longer with all processors busy; error: median "
                        "over the timed instructions. --json has all operations.");
    return ND_OK;
}
