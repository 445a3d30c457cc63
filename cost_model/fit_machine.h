/** Constants of this machine's processor from timed instructions (nd_fit: log errors, Huber weights, priors). The
 * measuring loop is executor/measure.h; docs/MODEL.md, "Time of instructions". */
#ifndef ND_COST_MODEL_FIT_MACHINE_H
#define ND_COST_MODEL_FIT_MACHINE_H

#include "cost_model/machine.h"

ND_BEGIN_DECLS

/** What was measured so far of one compute type. */
typedef struct nd_machine_fit nd_machine_fit;

nd_machine_fit *nd_machine_fit_create(void); /* NULL: out of memory */
void nd_machine_fit_free(nd_machine_fit *fit);

/** Add a timed step. Everything is copied but `programs`, which are read until nd_machine_fit_add() returns.
 *
 * \param[in] seconds  [rank][instruction], waiting for others not counted
 * \param[in] step_s   of the whole step */
nd_status nd_machine_fit_add(nd_machine_fit *fit, const nd_program *const programs[], int32_t ranks, int64_t kv_heads,
                             const double *const seconds[], double step_s, nd_error *err) ND_NODISCARD;

/** Fit the constants of compute type `real` in machine->rates; machine->processors is filled in.
 * \return ND_EINVAL when nothing was added; ND_ENOMEM */
nd_status nd_machine_fit_solve(nd_machine_fit *fit, nd_elem real, nd_machine *machine, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
