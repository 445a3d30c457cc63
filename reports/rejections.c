#include "reports/rejections.h"

#include "reports/format.h"

#include <string.h>

enum { SHORT_LIST = 5 };

const nd_rejection *nd_rejection_telling(const nd_plan_list *list)
{
    for (int32_t i = 0; i < list->rejections_count; i++) {
        if (strncmp(list->rejections[i].nearest, "--", 2) == 0) {
            return &list->rejections[i];
        }
    }
    return list->rejections_count > 0 ? &list->rejections[0] : NULL;
}

static void add_rejection(nd_table *table, const nd_rejection *rejection)
{
    char message[sizeof rejection->message + sizeof rejection->nearest + 16];
    (void)snprintf(message, sizeof message, "%s%s%s", rejection->message,
                   rejection->nearest[0] != '\0' ? "; nearest: " : "", rejection->nearest);
    nd_table_add(table, nd_format_count(rejection->count).text);
    nd_table_add(table, rejection->rule);
    nd_table_add(table, message);
}

nd_status nd_report_rejections(FILE *stream, const nd_report_context *context, const nd_plan_list *list, nd_error *err)
{
    static const nd_column columns[] = {
        {"layouts", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"refused by", NULL, ND_ALIGN_LEFT, 0, 0},
        {"example", NULL, ND_ALIGN_LEFT, 0, 28},
    };
    nd_report_paragraph(stream, &context->style, 0, 2, "Searched %s layout%s in %s: %s fit%s.",
                        nd_format_count(list->searched).text, list->searched == 1 ? "" : "s",
                        nd_format_seconds(list->elapsed_s).text, nd_format_count(list->fitting).text,
                        list->fitting == 1 ? "s" : "");
    if (list->rejections_count == 0) {
        return ND_OK;
    }
    bool all = context->verbose || list->count == 0;
    int32_t shown = all || list->rejections_count < SHORT_LIST ? list->rejections_count : SHORT_LIST;
    nd_table *table = nd_table_create(columns, 3);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the rejections");
    }
    const nd_rejection *first = list->count == 0 && !list->has_closest ? nd_rejection_telling(list) : NULL;
    if (first != NULL) {
        add_rejection(table, first);
    }
    for (int32_t i = 0; i < shown; i++) { /* `first` is set only where all are shown */
        if (&list->rejections[i] != first) {
            add_rejection(table, &list->rejections[i]);
        }
    }
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    if (status == ND_OK && shown < list->rejections_count) {
        nd_report_paragraph(stream, &context->style, 2, 2, "and %d more rule%s: -v shows them all",
                            (int)(list->rejections_count - shown), list->rejections_count - shown == 1 ? "" : "s");
    }
    return status;
}
