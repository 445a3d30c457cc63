/** From options to what the planner needs: model, cluster, software, training. Everything left out gets a default
 * that is recorded as an assumption. */
#ifndef ND_CLI_INPUTS_H
#define ND_CLI_INPUTS_H

#include "cli/options.h"
#include "cost_model/estimate.h"
#include "cost_model/fitted.h"
#include "frameworks/framework.h"
#include "reports/report.h"

typedef struct nd_inputs {
    nd_model_spec model;
    nd_cluster_spec cluster;
    nd_stack stack;
    nd_calibration calibration;
    nd_fitted fitted; /* laid over calibration and stack */
    nd_train_spec train;
    const nd_framework *framework; /* NULL: none chosen */
    bool global_batch_given;
    nd_cost_context cost; /* borrows the members above: an nd_inputs must not be copied */
    nd_assumption assumptions[ND_ASSUMPTIONS_MAX];
    int32_t assumptions_count;
} nd_inputs;

/** Load everything but the default global batch, which depends on the command.
 * \param[out] out  in an unspecified state on failure, but holds nothing that needs freeing */
nd_status nd_inputs_load(const nd_options *options, nd_inputs *out, nd_error *err) ND_NODISCARD;

/** The same on a cluster that is known already; NULL: the one that --cluster names. */
nd_status nd_inputs_load_on(const nd_options *options, const nd_cluster_spec *cluster, nd_inputs *out,
                            nd_error *err) ND_NODISCARD;

/** Only what needs no cluster: model, sequence, batch where one is given, optimizer, LoRA, and the stack of ndplan's
 * own executor. \param[in] seq_len  the default, cut to what the model allows; `why` says what it is good for */
nd_status nd_inputs_load_training(const nd_options *options, int64_t seq_len, const char *why, nd_inputs *out,
                                  nd_error *err) ND_NODISCARD;

/** Set the global batch when the user gave none. */
void nd_inputs_default_batch(nd_inputs *inputs, int64_t global_batch_seqs, const char *why);

/** Last step: check the training and prepare inputs->cost. */
nd_status nd_inputs_finish(nd_inputs *inputs, nd_error *err) ND_NODISCARD;

/** Scale by --anchor when it is given, after nd_inputs_finish().
 * \param[in] layout  what was measured when the anchor names no layout, or NULL: it must */
nd_status nd_inputs_anchor(const nd_options *options, nd_inputs *inputs, const nd_layout *layout,
                           nd_error *err) ND_NODISCARD;

/** Record an assumption; `option` may be empty. */
void nd_inputs_assume(nd_inputs *inputs, const char *option, const char *value, const char *format, ...)
    ND_PRINTF(4, 5);

/** What every report of a command says about its inputs, in the style of stdout and as loud as -v and -q say; the rest
 * is zero. Borrows from `inputs`. */
nd_report_context nd_inputs_report(const nd_options *options, const nd_inputs *inputs);

#endif
