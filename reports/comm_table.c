#include "reports/comm_table.h"

#include <inttypes.h>

#include "core/units.h"
#include "reports/bandwidth_text.h"
#include "reports/format.h"

static void add_line(nd_table *table, const nd_comm_line *line)
{
    char group[48];
    (void)snprintf(group, sizeof group, "%s %" PRId64, nd_group_kind_name(line->group_kind), line->group.ranks);
    nd_table_add(table, line->name);
    nd_table_add(table, group);
    nd_table_add(table, line->link);
    nd_table_add(table, nd_format_number(line->bytes / ND_MIB).text);
    nd_table_add(table, nd_format_number(line->calls_per_step).text);
    nd_table_add(table, nd_format_number(line->call_s / ND_MILLI).text);
    nd_table_add(table, nd_format_number(line->total_s / ND_MILLI).text);
    nd_table_add(table, nd_format_number(line->exposed_s / ND_MILLI).text);
    if (line->exposed_s <= 0.0) {
        nd_table_add(table, "hidden");
    } else if (line->needed_bytes_per_s > nd_fastest_link_bytes_per_s(nd_link_class_of_line(line))) {
        nd_table_add(table, ">");
    } else if (line->needed_bytes_per_s > 0.0) {
        nd_table_add(table, nd_format_gb_per_s(line->needed_bytes_per_s).text);
    } else {
        nd_table_add(table, "-");
    }
}

nd_status nd_report_comm(FILE *stream, const nd_report_context *context, const nd_comm_breakdown *comm, nd_error *err)
{
    static const nd_column columns[] = {
        {"collective", NULL, ND_ALIGN_LEFT, 0, 16}, {"group", "ranks", ND_ALIGN_LEFT, 0, 0},
        {"link", NULL, ND_ALIGN_LEFT, 2, 0},        {"size", "MiB", ND_ALIGN_RIGHT, 0, 0},
        {"calls", NULL, ND_ALIGN_RIGHT, 4, 0},      {"each", "ms", ND_ALIGN_RIGHT, 3, 0},
        {"total", "ms", ND_ALIGN_RIGHT, 0, 0},      {"exposed", "ms", ND_ALIGN_RIGHT, 0, 0},
        {"to hide", "GB/s", ND_ALIGN_RIGHT, 0, 0},
    };
    nd_report_heading(stream, &context->style, "Communication of one step");
    if (comm->count == 0) {
        nd_report_paragraph(stream, &context->style, 2, 2, "None: nothing is divided between GPUs.");
        return ND_OK;
    }
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the collectives");
    }
    for (int32_t i = 0; i < comm->count; i++) {
        add_line(table, &comm->lines[i]);
    }
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    if (status == ND_OK) {
        nd_report_paragraph(stream, &context->style, 2, 2,
                            "to hide: the link rate per GPU at which the exposed part would vanish; >: more than the "
                            "fastest link there is; -: no rate hides it.");
    }
    return status;
}
