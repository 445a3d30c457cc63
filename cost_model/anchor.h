/** One measured step scales the model to a machine and its software. docs/MODEL.md, "Anchor". */
#ifndef ND_COST_MODEL_ANCHOR_H
#define ND_COST_MODEL_ANCHOR_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** Scale the rates of GEMMs, attention and memory and the host's launches by one factor, so that `layout` takes
 * `step_s`; links stay.
 *
 * \param[in,out] context      its uncertainty is narrowed: what one anchored run says of the next
 * \param[in,out] calibration  the context's own (it borrows a const one)
 * \param[in,out] stack        the context's own
 * \param[out] factor          how much slower than predicted the machine computes; may be NULL
 * \return ND_EINVAL when the step is no positive time, or no factor from 1/8 to 8 explains it (links alone take longer,
 * or the machine is no such machine); nothing is changed then.
 */
nd_status nd_anchor(nd_cost_context *context, nd_calibration *calibration, nd_stack *stack, const nd_layout *layout,
                    double step_s, double *factor, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
