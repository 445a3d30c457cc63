/** What every report needs to know besides its subject. */
#ifndef ND_REPORTS_REPORT_H
#define ND_REPORTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cost_model/estimate.h"
#include "frameworks/framework.h"
#include "planner/plan.h"
#include "planner/scale.h"
#include "reports/table.h"
#include "topologies/mixed_cluster.h"

ND_BEGIN_DECLS

enum { ND_ASSUMPTIONS_MAX = 24 };

/** A default that stands for something the user left out, or a fact about the input worth knowing. */
typedef struct nd_assumption {
    char option[32]; /* the option that changes it ("--seq-len"), or empty */
    char value[96];
    char why[320];
} nd_assumption;

typedef struct nd_report_context {
    const nd_cost_context *cost;
    const nd_mixed_cluster *mixed; /* NULL: cost->cluster is all there is; otherwise that is its first part */
    const nd_framework *framework; /* NULL: the stack's abilities alone decided */
    const nd_assumption *assumptions;
    int32_t assumptions_count;
    nd_report_style style;
    bool verbose;                    /* every rejection with its message */
    bool quiet;                      /* results only: no assumptions, no explanations */
    const nd_run_spec *run;          /* NULL: nobody asked what a whole run costs */
    const nd_scale_list *scale;      /* the plans are of parts of the cluster; NULL: all of the whole */
    nd_scale_goal scale_goal;        /* what `scale` was searched for */
    bool batch_assumed;              /* the global batch is a default */
    const nd_search_options *search; /* pins and limits of the search; NULL: none */
} nd_report_context;

/** Model, cluster, training and the assumptions: the first lines of every text report. */
void nd_report_preamble(FILE *stream, const nd_report_context *context);

/** The "Layout" line below it: never wrapped, since people copy it. */
void nd_report_layout(FILE *stream, const nd_layout *layout);

/** Where `cluster` has several nodes and the user's has one: which network between them is counted with, in one line.
 */
void nd_report_grown_network(FILE *stream, const nd_report_context *context, const nd_cluster_spec *cluster);

/** Remarks on one plan, shown under a table and as "notes" in JSON: `index` from 0 until it returns false.
 * \param[out] buffer  one sentence */
bool nd_plan_note(const nd_plan *plan, int32_t index, char *buffer, size_t buffer_bytes);

ND_END_DECLS

#endif
