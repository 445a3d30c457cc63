#include "reports/rejections.h"

#include "reports/format.h"

enum { SHORT_LIST = 5 };

nd_status nd_report_rejections(FILE *stream, const nd_report_context *context, const nd_plan_list *list, nd_error *err)
{
    static const nd_column columns[] = {
        {"layouts", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"refused by", NULL, ND_ALIGN_LEFT, 0, 0},
        {"example", NULL, ND_ALIGN_LEFT, 0, 28},
    };
    nd_report_paragraph(stream, &context->style, 0, 2, "Searched %s layouts in %s: %s fit.",
                        nd_format_count(list->searched).text, nd_format_seconds(list->elapsed_s).text,
                        nd_format_count(list->fitting).text);
    if (list->rejections_count == 0) {
        return ND_OK;
    }
    bool all = context->verbose || list->count == 0;
    int32_t shown = all || list->rejections_count < SHORT_LIST ? list->rejections_count : SHORT_LIST;
    nd_table *table = nd_table_create(columns, 3);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the rejections");
    }
    for (int32_t i = 0; i < shown; i++) {
        const nd_rejection *rejection = &list->rejections[i];
        nd_table_add(table, nd_format_count(rejection->count).text);
        nd_table_add(table, rejection->rule);
        char message[sizeof rejection->message + sizeof rejection->nearest + 16];
        (void)snprintf(message, sizeof message, "%s%s%s", rejection->message,
                       rejection->nearest[0] != '\0' ? "; nearest: " : "", rejection->nearest);
        nd_table_add(table, message);
    }
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    if (status == ND_OK && shown < list->rejections_count) {
        nd_report_paragraph(stream, &context->style, 2, 2, "and %d more rules: -v shows them all",
                            (int)(list->rejections_count - shown));
    }
    return status;
}
