#include "reports/answer.h"

#include <string.h>

#include "reports/format.h"

static void append_degree(char out[ND_SHORT_LAYOUT_MAX], const char *name, int32_t degree)
{
    size_t used = strlen(out);
    if (degree > 1) {
        (void)snprintf(out + used, ND_SHORT_LAYOUT_MAX - used, "%s%s=%d", used > 0 ? "," : "", name, (int)degree);
    }
}

void nd_layout_degrees_text(const nd_layout *layout, char out[ND_SHORT_LAYOUT_MAX])
{
    out[0] = '\0';
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        append_degree(out, nd_axis_name((nd_axis)axis), layout->size[axis]);
    }
    append_degree(out, "ep", layout->ep);
    if (out[0] == '\0') {
        (void)snprintf(out, ND_SHORT_LAYOUT_MAX, "1 GPU");
    }
}

void nd_step_interval_text(const nd_time_breakdown *time, char out[ND_INTERVAL_TEXT_MAX])
{
    nd_text low = nd_format_seconds(time->step_low_s);
    nd_text high = nd_format_seconds(time->step_high_s);
    char *low_unit = strchr(low.text, ' ');
    const char *high_unit = strchr(high.text, ' ');
    if (low_unit != NULL && high_unit != NULL && strcmp(low_unit, high_unit) == 0) {
        *low_unit = '\0';
    }
    (void)snprintf(out, ND_INTERVAL_TEXT_MAX, "%.15s (80 %%: %.15s to %.15s)", nd_format_seconds(time->step_s).text,
                   low.text, high.text);
}

const char *nd_verdict_words(nd_verdict verdict)
{
    return verdict == ND_VERDICT_NO ? "does not fit" : nd_verdict_name(verdict);
}

void nd_report_plan_answer(FILE *stream, const nd_report_context *context, const char *label, const nd_plan *plan)
{
    char degrees[ND_SHORT_LAYOUT_MAX];
    char step[ND_INTERVAL_TEXT_MAX];
    nd_layout_degrees_text(&plan->layout, degrees);
    nd_step_interval_text(&plan->estimate.time, step);
    nd_report_paragraph(stream, &context->style, 0, 2, "%s: %s, step %s, %s", label, degrees, step,
                        nd_verdict_words(plan->estimate.memory.verdict));
}
