#include "reports/json_report_internal.h"

void nd_json_put_fix(nd_json_writer *json, const nd_fix *fix)
{
    char change[2 * ND_FIX_TEXT_MAX];
    nd_fix_change(fix, change, sizeof change);
    nd_json_begin_object(json);
    nd_json_put_string(json, "kind", nd_fix_kind_name(fix->kind));
    if (fix->second != ND_FIX_COUNT) {
        nd_json_put_string(json, "second_kind", nd_fix_kind_name(fix->second));
    }
    nd_json_put_string(json, "change", change);
    nd_json_put_double(json, "saved_bytes", fix->saved_bytes);
    nd_json_put_double(json, "slower_frac", fix->slower_frac);
    nd_json_put_double(json, "peak_bytes", fix->estimate.memory.peak_bytes);
    nd_json_put_string(json, "verdict", nd_verdict_name(fix->estimate.memory.verdict));
    nd_json_put_bool(json, "host_fits", fix->host_fits);
    nd_json_put_double(json, "step_s", fix->estimate.time.step_s);
    nd_json_put_layout(json, &fix->layout);
    nd_json_end_object(json);
}
