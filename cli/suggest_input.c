#include "cli/suggest_input.h"

#include <string.h>

#include "core/text.h"

/* The layout keys that --max understands: those that are degrees. */
static const uint32_t degree_keys = 1u << ND_LAYOUT_KEY_PP | 1u << ND_LAYOUT_KEY_DP_REPLICATE |
                                    1u << ND_LAYOUT_KEY_DP_SHARD | 1u << ND_LAYOUT_KEY_CP | 1u << ND_LAYOUT_KEY_TP |
                                    1u << ND_LAYOUT_KEY_EP | 1u << ND_LAYOUT_KEY_VPP | 1u << ND_LAYOUT_KEY_MICRO_BATCH;

/* A layout string behind an option: the message begins with the option's name. */
static nd_status parse_layout_option(const nd_options *options, nd_option_id id, nd_layout *layout, uint32_t *given,
                                     nd_error *err)
{
    const char *text = options->value[id];
    if (text == NULL) {
        return ND_OK;
    }
    nd_error inner;
    nd_status status = nd_layout_parse(text, layout, given, &inner);
    return status == ND_OK ? ND_OK : nd_fail(err, status, "%s: %.900s", nd_option_name(id), inner.message);
}

static nd_status check_limits(uint32_t limited, nd_error *err)
{
    for (int key = 0; key < ND_LAYOUT_KEY_COUNT; key++) {
        if ((limited & ~degree_keys) >> key & 1u) {
            return nd_fail(err, ND_EINVAL, "--max: %s is no degree; --pin %s=VALUE fixes it",
                           nd_layout_key_name((nd_layout_key)key), nd_layout_key_name((nd_layout_key)key));
        }
    }
    return ND_OK;
}

typedef struct objective {
    const char *name;
    nd_objective order;
    bool over_sizes;
    nd_scale_goal goal;
} objective;

static const objective objectives[] = {
    {"throughput", ND_OBJECTIVE_THROUGHPUT, false, ND_SCALE_PARETO},
    {"memory", ND_OBJECTIVE_MEMORY, false, ND_SCALE_PARETO},
    {"cost", ND_OBJECTIVE_THROUGHPUT, true, ND_SCALE_COST},
    {"gpus", ND_OBJECTIVE_THROUGHPUT, true, ND_SCALE_GPUS},
};
enum { OBJECTIVES = sizeof objectives / sizeof objectives[0] };

static nd_status fail_objective(const char *text, nd_error *err)
{
    const char *names[OBJECTIVES];
    for (size_t i = 0; i < OBJECTIVES; i++) {
        names[i] = objectives[i].name;
    }
    const char *nearest = nd_text_nearest(text, names, OBJECTIVES);
    return nd_fail(err, ND_EINVAL, "--objective must be throughput, memory, cost or gpus, got '%.60s'%s%s%s", text,
                   nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                   nearest != NULL ? "'?" : "");
}

static nd_status parse_objective(const nd_options *options, nd_suggest_input *out, nd_error *err)
{
    const char *text = options->value[ND_OPTION_OBJECTIVE];
    const objective *chosen = text == NULL ? &objectives[0] : NULL;
    for (size_t i = 0; i < OBJECTIVES && chosen == NULL; i++) {
        chosen = strcmp(text, objectives[i].name) == 0 ? &objectives[i] : NULL;
    }
    if (chosen == NULL) {
        return fail_objective(text, err);
    }
    bool pareto = nd_options_has(options, ND_OPTION_PARETO);
    if (pareto && text != NULL) {
        return nd_fail(err, ND_EINVAL, "--pareto weighs step time, memory and GPUs itself; leave out --objective %s",
                       text);
    }
    out->search.objective = chosen->order;
    out->over_sizes = chosen->over_sizes || pareto;
    out->goal = chosen->goal;
    return ND_OK;
}

/* A person reads ten plans; a program looks for the one it has in mind. */
enum { MACHINE_TOP = 100 };

nd_status nd_suggest_input_load(const nd_options *options, nd_report_format format, nd_suggest_input *out,
                                nd_error *err)
{
    nd_suggest_input input = {.search = nd_search_options_default()};
    nd_search_options *search = &input.search;
    search->top = format == ND_REPORT_TEXT ? search->top : MACHINE_TOP;
    ND_TRY(parse_objective(options, &input, err));
    if (nd_options_has(options, ND_OPTION_TOP)) {
        int64_t top = 0;
        ND_TRY(nd_text_int(options->value[ND_OPTION_TOP], "--top", 1, ND_PLANS_MAX, &top, err));
        search->top = (int32_t)top;
    }
    ND_TRY(parse_layout_option(options, ND_OPTION_PIN, &search->pin, &search->pinned, err));
    ND_TRY(parse_layout_option(options, ND_OPTION_MAX, &search->max, &search->limited, err));
    ND_TRY(check_limits(search->limited, err));
    search->include_unfit = nd_options_has(options, ND_OPTION_ALL);
    *out = input;
    return ND_OK;
}
