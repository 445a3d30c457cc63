#include "reports/rejections.h"

#include "reports/format.h"

enum { SHORT_LIST = 5 };

nd_status nd_report_rejections(FILE *stream, const nd_report_context *context, const nd_plan_list *list, nd_error *err)
{
    static const nd_column columns[] = {
        {"layouts", NULL, ND_ALIGN_RIGHT, 0, false},
        {"refused by", NULL, ND_ALIGN_LEFT, 0, false},
        {"example", NULL, ND_ALIGN_LEFT, 0, true},
        {"nearest", NULL, ND_ALIGN_LEFT, 1, false},
    };
    nd_report_paragraph(stream, &context->style, 0, 2, "Searched %s layouts in %s: %s legal, %s fit.",
                        nd_format_count(list->searched).text, nd_format_seconds(list->elapsed_s).text,
                        nd_format_count(list->evaluated).text, nd_format_count(list->fitting).text);
    if (list->rejections_count == 0) {
        return ND_OK;
    }
    bool all = context->verbose || list->count == 0;
    int32_t shown = all || list->rejections_count < SHORT_LIST ? list->rejections_count : SHORT_LIST;
    nd_table *table = nd_table_create(columns, 4);
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory while laying out the rejections");
    }
    for (int32_t i = 0; i < shown; i++) {
        const nd_rejection *rejection = &list->rejections[i];
        nd_table_add(table, nd_format_count(rejection->count).text);
        nd_table_add(table, rejection->rule);
        nd_table_add(table, rejection->message);
        nd_table_add(table, rejection->nearest[0] != '\0' ? rejection->nearest : "-");
    }
    nd_status status = nd_table_print(table, stream, &context->style, 2, err);
    nd_table_free(table);
    if (status == ND_OK && shown < list->rejections_count) {
        nd_report_paragraph(stream, &context->style, 2, 2, "and %d more rules: -v shows them all",
                            (int)(list->rejections_count - shown));
    }
    return status;
}
