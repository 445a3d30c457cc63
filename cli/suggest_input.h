/** From the options of `ndplan suggest` to what is searched and for which goal. */
#ifndef ND_CLI_SUGGEST_INPUT_H
#define ND_CLI_SUGGEST_INPUT_H

#include "cli/options.h"
#include "planner/scale.h"
#include "reports/list_report.h"

typedef struct nd_suggest_input {
    nd_search_options search;
    bool over_sizes;    /* parts of the cluster are searched, too, for `goal` */
    nd_scale_goal goal; /* meaningless otherwise */
} nd_suggest_input;

nd_status nd_suggest_input_load(const nd_options *options, nd_report_format format, nd_suggest_input *out,
                                nd_error *err) ND_NODISCARD;

#endif
