/** A run of a layout in this process: one thread a rank, all ranks of the layout.
 *
 * A run is created with the programs of all ranks (checked against each other), then steps are taken, then results are
 * read. The same run with the layout of one rank is what a layout is compared with. */
#ifndef ND_EXECUTOR_RUN_H
#define ND_EXECUTOR_RUN_H

#include "executor/rank.h"

ND_BEGIN_DECLS

typedef struct nd_run nd_run;

typedef struct nd_run_options {
    nd_program_options program;
    const nd_backend *backend;
    nd_init_options init;
    nd_data_options data; /* seq_len and vocab are filled in by the run */
    nd_step step;         /* lr, betas, eps, weight decay; `step` is counted by the run */
    int64_t warmup_steps; /* of the learning rate, linear from 0 */
    int64_t decay_steps;  /* cosine to a tenth of lr until this step; 0: constant */
    bool checks;          /* compare the calls of all members of every collective */
    bool check_nan;
    bool profile;
    bool poison; /* executor/rank.h */
} nd_run_options;

/** CPU, fp32, lr 1e-3, betas 0.9 and 0.95, eps 1e-8, decay 0.1, clip at 1. */
nd_run_options nd_run_options_default(void);

/** Learning rate of step `step` (from 1). */
double nd_run_lr(const nd_run_options *options, int64_t step);

/** What a step left. */
typedef struct nd_run_step {
    int64_t step;
    double loss, grad_norm, lr;
    double seconds; /* from the first rank's start to rank 0's end */
} nd_run_step;

/** Called after every step, in the thread of rank 0. \return false: stop after this step, or after the next, which
 * other ranks may have begun */
typedef bool (*nd_run_observer)(void *user, const nd_run_step *step);

/** Build and check the programs of all ranks, open their devices, fill in the weights.
 * \return ND_EINVAL, ND_EUNSUPPORTED, ND_EIO (data file), ND_ENOMEM. Free with nd_run_free(). */
nd_status nd_run_create(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                        const nd_run_options *options, nd_run **out, nd_error *err) ND_NODISCARD;
void nd_run_free(nd_run *run); /* NULL is fine */

/** Take `count` steps, each rank in a thread of its own. When a rank fails or its thread ends, all stop; the message
 * names rank, instruction and layer, and the run is spoiled: its ranks are in the middle of different instructions. */
nd_status nd_run_steps(nd_run *run, int64_t count, nd_run_observer observer, void *user, nd_error *err) ND_NODISCARD;

int32_t nd_run_ranks(const nd_run *run);
nd_rank *nd_run_rank(const nd_run *run, int32_t rank);
const nd_comm_counters *nd_run_counters(const nd_run *run, int32_t rank);
const nd_param_list *nd_run_params(const nd_run *run);
int64_t nd_run_steps_done(const nd_run *run);
const nd_model_spec *nd_run_model(const nd_run *run);
const nd_run_options *nd_run_options_get(const nd_run *run);

/** Of the data that the run trains on. */
const nd_data *nd_run_data(const nd_run *run);

/** Whether the run can take steps, be saved and go on from a checkpoint. \return ND_EINVAL when it is spoiled */
nd_status nd_run_usable(const nd_run *run, nd_error *err) ND_NODISCARD;

/** Its state is part old, part new: it takes no more steps. */
void nd_run_spoil(nd_run *run);

/** Go on counting from here: the state of the ranks was loaded (executor/run_state.h). */
void nd_run_set_steps_done(nd_run *run, int64_t steps);

/** Every parameter whole, one after the other in the order of nd_run_params(), as fp64: nd_model_params().total
 * numbers. Needs memory for the whole model; for comparisons of small ones. */
void nd_run_read_params(const nd_run *run, double *out);

/** The number of elements of parameters before `param` in that order. */
int64_t nd_param_first(const nd_param_list *params, int32_t param);

ND_END_DECLS

#endif
