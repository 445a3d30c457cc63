#include "cost_model/goodput.h"

#include <math.h>

double nd_young_interval_s(double blocking_s, double mtbf_s)
{
    return sqrt(2.0 * blocking_s * mtbf_s);
}

double nd_daly_interval_s(double blocking_s, double mtbf_s)
{
    if (isinf(mtbf_s)) {
        return HUGE_VAL;
    }
    if (blocking_s >= 2.0 * mtbf_s) {
        return mtbf_s;
    }
    double ratio = blocking_s / (2.0 * mtbf_s);
    double series = 1.0 + sqrt(ratio) / 3.0 + ratio / 9.0;
    return nd_young_interval_s(blocking_s, mtbf_s) * series - blocking_s;
}

double nd_best_interval_s(const nd_failure_costs *costs, double step_s)
{
    double interval_s = nd_daly_interval_s(costs->blocking_s, costs->mtbf_s);
    return fmax(fmax(interval_s, costs->hidden_s - costs->blocking_s), step_s);
}

double nd_goodput_frac(const nd_failure_costs *costs, double interval_s)
{
    double mtbf_s = costs->mtbf_s;
    if (isinf(mtbf_s)) {
        return isinf(interval_s) ? 1.0 : interval_s / (interval_s + costs->blocking_s);
    }
    if (isinf(interval_s)) {
        return 0.0; /* it fails, and nothing is ever saved */
    }
    double restarts = exp((costs->restart_s + costs->hidden_s) / mtbf_s);
    double segment = mtbf_s * expm1((interval_s + costs->blocking_s) / mtbf_s);
    return fmin(1.0, interval_s / (restarts * segment));
}
