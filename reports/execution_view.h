/** What an executed layout did, measured beside what its program said: filled in by the command line, printed by
 * execution_report.h. */
#ifndef ND_REPORTS_EXECUTION_VIEW_H
#define ND_REPORTS_EXECUTION_VIEW_H

#include "core/train_spec.h"
#include "cost_model/machine.h"
#include "program/instruction.h"
#include "program/params.h"
#include "reports/report.h"

ND_BEGIN_DECLS

typedef struct nd_execution_step {
    int64_t step; /* from 1 */
    double loss, grad_norm, lr, seconds;
} nd_execution_step;

/** Memory of one rank: what the program's allocations add up to, and what was counted while running. */
typedef struct nd_execution_rank {
    int64_t replayed_bytes, peak_bytes;
    int64_t replayed_class_bytes[ND_MEMORY_CLASS_COUNT], peak_class_bytes[ND_MEMORY_CLASS_COUNT]; /* each at its peak */
} nd_execution_rank;

/** One kind of call in one kind of group: one step of all ranks together. */
typedef struct nd_execution_traffic {
    const char *group;   /* "tp"; "pp" for sends and receives */
    int32_t group_ranks; /* of one group */
    nd_ins_op op;
    int64_t program_calls, program_bytes; /* program/traffic.h */
    int64_t calls, bytes;                 /* counted */
    double seconds, wait_s;               /* of all ranks, in the calls; of that until the last member came */
    bool equal;                           /* on every rank, and of what follows the routing in sum */
} nd_execution_traffic;

/** The same steps on one rank. */
typedef struct nd_execution_verify {
    bool asked, done;
    double loss_abs, grad_norm_rel, param_abs; /* largest differences, of any step and any parameter */
    double loss_bound, grad_norm_bound, param_bound;
    const char *why; /* these bounds */
    char worst_param[ND_PARAM_NAME_MAX];
    bool passed;
} nd_execution_verify;

/** All instructions of one operation in one step, of all ranks together; what they wait for others is not in it. */
typedef struct nd_execution_op {
    nd_ins_op op;
    int64_t calls;
    double measured_s, predicted_s;
} nd_execution_op;

/** Times beside what the machine's constants say. */
typedef struct nd_execution_time {
    const nd_machine *machine; /* NULL: nothing is predicted */
    bool other_processor;      /* than the one that the constants are of */
    nd_ins_op lacks;           /* an operation that they are not of; ND_INS_COUNT: none */
    double predicted_s;        /* of the step */
    bool profiled;             /* the rest is of the last step */
    nd_execution_op *ops;      /* by falling time, predicted where it is */
    int32_t ops_count;
    double measured_wait_s, predicted_wait_s; /* of all ranks, for others */
} nd_execution_time;

/** A setting that is not what the checkpoint's steps were taken with. */
typedef struct nd_execution_change {
    const char *name; /* "lr" */
    double before, now;
} nd_execution_change;

enum { ND_EXECUTION_CHANGES_MAX = 4 };

typedef struct nd_execution_view {
    const nd_model_spec *model;
    const nd_layout *layout;
    const nd_train_spec *train;
    const nd_assumption *assumptions;
    int32_t assumptions_count;
    const char *backend, *data; /* data: path, or NULL for synthetic tokens */
    int64_t seed;
    const char *resume; /* directory that the run went on from; NULL: it began anew */
    int64_t resumed_step;
    int32_t changes_count;
    nd_execution_change changes[ND_EXECUTION_CHANGES_MAX];
    nd_elem real;
    int32_t ranks_count, processors;
    int64_t steps_asked, steps_count;
    nd_execution_step *steps;
    double step_s; /* median */
    double tokens_per_s;
    bool interrupted;
    nd_execution_rank *ranks;
    bool memory_equal; /* to the byte, on every rank */
    nd_execution_traffic *traffic;
    int32_t traffic_count;
    bool traffic_equal;
    nd_execution_time time;
    nd_execution_verify verify;
} nd_execution_view;

ND_END_DECLS

#endif
