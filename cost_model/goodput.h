/** What failures and checkpoints leave of a long run: the models of Young (1974) and Daly (2006).
 *
 * A job that fails at random (exponentially, on average every `mtbf_s`) saves every `interval_s` of work. A failure
 * costs the restart and the work since the last complete checkpoint. Equations: docs/MODEL.md, "Runs".
 */
#ifndef ND_COST_MODEL_GOODPUT_H
#define ND_COST_MODEL_GOODPUT_H

#include "core/decls.h"

ND_BEGIN_DECLS

/** What one checkpoint and one failure cost. */
typedef struct nd_failure_costs {
    double mtbf_s;     /* mean time between failures of the whole job, > 0; HUGE_VAL: it never fails */
    double blocking_s; /* training stands still for so long at every save, >= 0 */
    double hidden_s;   /* the save goes on for so long behind training; until then the one before is the last, >= 0 */
    double restart_s;  /* from a failure until training goes on from the checkpoint, >= 0 */
} nd_failure_costs;

/** Young's first-order optimum of the work between two saves, sqrt(2 x blocking_s x mtbf_s). */
double nd_young_interval_s(double blocking_s, double mtbf_s);

/** Daly's higher-order optimum: Young's times a series in sqrt(blocking_s / (2 mtbf_s)), less the save; mtbf_s when a
 * save takes longer than two mean times between failures. HUGE_VAL when the job never fails. */
double nd_daly_interval_s(double blocking_s, double mtbf_s);

/** Daly's optimum, but not shorter than what the hidden part of a save takes: the next would wait for it. At least
 * `step_s`, since one saves between steps. HUGE_VAL when the job never fails. */
double nd_best_interval_s(const nd_failure_costs *costs, double step_s);

/** The part of the time that becomes lasting progress, in [0, 1]: Daly's complete form
 * interval_s / (mtbf_s e^(restart / mtbf_s) (e^((interval_s + blocking_s) / mtbf_s) - 1)), where the hidden part of a
 * save, lost at every failure, counts with the restart. 1 when the job never fails and never saves.
 * \param[in] interval_s  seconds of work between two saves, > 0; HUGE_VAL: none is made */
double nd_goodput_frac(const nd_failure_costs *costs, double interval_s);

ND_END_DECLS

#endif
