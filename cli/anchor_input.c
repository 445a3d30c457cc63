/* --anchor step_s=1.92[,LAYOUT]: one measured step. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/inputs.h"
#include "cli/layout_input.h"
#include "core/text.h"
#include "cost_model/anchor.h"
#include "planner/constraints.h"

/* A judgement, not a fit: further off, a wrong input is likelier than such a machine. Reported, never refused. */
static const double slow_machine = 0.6;
static const double fast_machine = 1.6;

static nd_status read_step(const char *text, double *step_s, const char **rest, nd_error *err)
{
    char number[64];
    size_t key = strlen("step_s=");
    if (strncmp(text, "step_s=", key) != 0) {
        return nd_fail(err, ND_EINVAL, "--anchor must begin with step_s=SECONDS, got '%.80s'", text);
    }
    size_t length = strcspn(text + key, ",");
    if (length >= sizeof number) {
        return nd_fail(err, ND_EINVAL, "--anchor step_s has %zu characters; write the seconds shorter", length);
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)length, text + key);
    *rest = text[key + length] == ',' ? text + key + length + 1 : "";
    return nd_text_double(number, "--anchor step_s", 1e-6, 1e6, step_s, err);
}

nd_status nd_inputs_anchor(const nd_options *options, nd_inputs *inputs, const nd_layout *layout, nd_error *err)
{
    const char *text = options->value[ND_OPTION_ANCHOR];
    const char *rest = "";
    double step_s = 0.0;
    double factor = 1.0;
    nd_layout measured;
    if (text == NULL) {
        return ND_OK;
    }
    ND_TRY(read_step(text, &step_s, &rest, err));
    if (rest[0] != '\0') {
        ND_TRY(nd_layout_input_measured(inputs, "--anchor", rest, &measured, err));
    } else if (layout != NULL) {
        measured = *layout;
        if (!nd_layout_allowed(&inputs->cost, inputs->framework, layout, NULL, NULL)) {
            return ND_OK; /* nothing to scale: the report says why the layout cannot run */
        }
    } else {
        return nd_fail(err, ND_EINVAL,
                       "--anchor needs the layout that was measured: --anchor step_s=%.4g,dp_shard=%" PRId64
                       ",micro_batch=1",
                       step_s, inputs->cluster.gpus);
    }
    nd_error why;
    nd_status status = nd_anchor(&inputs->cost, &inputs->calibration, &inputs->stack, &measured, step_s, &factor, &why);
    if (status != ND_OK) {
        return nd_fail(err, status, "--anchor: %.900s", why.message);
    }
    char value[32];
    double speed = 1.0 / factor;
    (void)snprintf(value, sizeof value, "step_s=%.4g", step_s);
    nd_inputs_assume(inputs, "--anchor", value, "this machine computes %.2f times as fast as the %s say%s", speed,
                     options->value[ND_OPTION_CALIBRATION] != NULL ? "calibrated constants" : "built-in constants",
                     speed < slow_machine || speed > fast_machine
                         ? "; few machines are that far off: check the step, the batch, --seq-len and what was "
                           "recomputed"
                         : "");
    return ND_OK;
}
