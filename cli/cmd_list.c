#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "core/text.h"

static const nd_option_id list_options[] = {ND_OPTION_JSON, ND_OPTION_CSV, ND_OPTION_HELP};

static const nd_command_syntax list_syntax = {
    .name = "list",
    .summary = "Show the built-in models, GPUs, clusters, frameworks or software stacks",
    .example = "ndplan list models",
    .usage = "ndplan list models|gpus|clusters|frameworks|stacks [options]",
    .options = list_options,
    .options_count = sizeof list_options / sizeof list_options[0],
    .operand = "KIND",
    .notes = "JSON: {\"schema\":\"ndplan/list/1\",\"kind\":...,\"items\":[...]}. Sources are in --json and --csv.",
};

static nd_status find_kind(const char *name, nd_list_kind *out, nd_error *err)
{
    const char *names[ND_LIST_KIND_COUNT];
    for (int kind = 0; kind < ND_LIST_KIND_COUNT; kind++) {
        names[kind] = nd_list_kind_name((nd_list_kind)kind);
        if (name != NULL && strcmp(name, names[kind]) == 0) {
            *out = (nd_list_kind)kind;
            return ND_OK;
        }
    }
    if (name == NULL) {
        return nd_fail(err, ND_EINVAL, "list what? models, gpus, clusters, frameworks or stacks");
    }
    const char *nearest = nd_text_nearest(name, names, ND_LIST_KIND_COUNT);
    if (nearest != NULL) {
        return nd_fail(err, ND_ENOTFOUND, "nothing to list is called '%s'; did you mean '%s'?", name, nearest);
    }
    return nd_fail(err, ND_ENOTFOUND,
                   "nothing to list is called '%s'; there are models, gpus, clusters, frameworks, stacks", name);
}

static nd_status run_list(const nd_options *options, int *exit_status, nd_error *err)
{
    nd_list_kind kind = ND_LIST_MODELS;
    nd_report_format format = ND_REPORT_TEXT;
    ND_TRY(find_kind(options->operand, &kind, err));
    ND_TRY(nd_command_format(options, &format, err));
    nd_report_style style = nd_command_style();
    ND_TRY(nd_report_list(stdout, kind, format, &style, err));
    *exit_status = ND_EXIT_DONE;
    return ND_OK;
}

const nd_command nd_command_list = {&list_syntax, run_list};
