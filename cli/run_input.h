/** From options to the whole run: tokens, price, failures, checkpoints. */
#ifndef ND_CLI_RUN_INPUT_H
#define ND_CLI_RUN_INPUT_H

#include "cli/inputs.h"
#include "cost_model/run_cost.h"

/** \param[in]  asked  the command needs a run whatever the options say (--objective cost)
 * \param[out] given  false when nothing asks for a run: then `out` is the default
 * Defaults of what was asked become assumptions; --price replaces the cluster's price with its source and date. */
nd_status nd_run_input_load(const nd_options *options, nd_inputs *inputs, bool asked, nd_run_spec *out, bool *given,
                            nd_error *err) ND_NODISCARD;

/** Refuse a --checkpoint-interval that the run of `plan` never reaches. */
nd_status nd_run_input_check(const nd_inputs *inputs, const nd_run_spec *run, const nd_plan *plan,
                             nd_error *err) ND_NODISCARD;

#endif
