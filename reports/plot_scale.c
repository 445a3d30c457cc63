/* Bounds and ticks of a chart's axis. */
#include <math.h>
#include <string.h>

#include "core/units.h"
#include "reports/format.h"
#include "reports/plot_internal.h"

static const double shown_max = 1e120; /* ratios and pads of it do not overflow */
static const double pad = 0.05;        /* of the range, free at both ends */

enum { LABEL_GAP_PX = 14, LINE_GAP_PX = 32, STRIDE_MAX = 2, THINNED_MIN = 4 };

bool nd_plot_can_show(const nd_plot_scale *scale, double value)
{
    return isfinite(value) && fabs(value) <= shown_max && (!scale->log || value >= 1.0 / shown_max);
}

static void log_bounds(nd_plot_scale *scale, double low, double high)
{
    double factor = fmax(pow(high / low, pad), 1.1);
    scale->min = low / factor;
    scale->max = high * factor;
}

static void linear_bounds(nd_plot_scale *scale, double low, double high)
{
    double room = pad * (high - low);
    bool from_zero = low >= 0.0 && low <= 0.7 * high; /* a chart that comes near zero shows it */
    scale->min = from_zero ? 0.0 : low - room;
    scale->max = high + (from_zero ? pad * high : room);
}

void nd_plot_scale_bounds(nd_plot_scale *scale, const nd_plot_axis *axis, double low, double high)
{
    scale->unit = axis->unit;
    scale->tick_at = axis->tick_at;
    scale->tick_at_count = axis->tick_at_count;
    scale->log = axis->log;
    scale->min = axis->min;
    scale->max = axis->max;
    if (axis->min != 0.0 || axis->max != 0.0) {
        return;
    }
    if (low > high) {
        low = 1.0;
        high = axis->log ? 10.0 : 1.0;
    }
    if (axis->log) {
        bool flat = high / low < 1.0 + 1e-9;
        log_bounds(scale, flat ? low / 2.0 : low, flat ? high * 2.0 : high);
    } else if (high - low <= 1e-9 * fmax(fabs(low), fabs(high))) { /* all equal */
        linear_bounds(scale, fmin(low, 0.0), low == 0.0 ? 1.0 : fmax(high, 0.0));
    } else {
        linear_bounds(scale, low, high);
    }
}

double nd_plot_scale_px(const nd_plot_scale *scale, double value)
{
    double at = scale->log ? log(value / scale->min) / log(scale->max / scale->min)
                           : (value - scale->min) / (scale->max - scale->min);
    return scale->from_px + fmax(-1e3, fmin(1e3, at)) * (scale->to_px - scale->from_px);
}

typedef struct unit_step {
    double from; /* used for values of at least this size */
    double size;
    const char *suffix;
} unit_step;

static const unit_step number_steps[] = {
    {1e18, 1.0, ""}, {1e12, 1e12, " T"}, {1e9, 1e9, " B"}, {1e6, 1e6, " M"}, {0.0, 1.0, ""}};
static const unit_step rate_steps[] = {
    {1e18, 1.0, "/s"}, {1e12, 1e12, " T/s"}, {1e9, 1e9, " B/s"}, {1e6, 1e6, " M/s"}, {0.0, 1.0, "/s"}};
static const unit_step byte_steps[] = {{1048576.0 * ND_GIB, 1048576.0 * ND_GIB, " PiB"},
                                       {1024.0 * ND_GIB, 1024.0 * ND_GIB, " TiB"},
                                       {ND_GIB, ND_GIB, " GiB"},
                                       {ND_MIB, ND_MIB, " MiB"},
                                       {ND_KIB, ND_KIB, " KiB"},
                                       {0.0, 1.0, " B"}};
static const unit_step second_steps[] = {{259200.0, 86400.0, " days"}, {7200.0, 3600.0, " h"},      {1.0, 1.0, " s"},
                                         {ND_MILLI, ND_MILLI, " ms"},  {ND_MICRO, ND_MICRO, " us"}, {0.0, 1e-9, " ns"}};
static const unit_step percent_steps[] = {{0.0, 0.01, " %"}};

/* The step of a unit for values up to `size`. On a logarithmic axis seconds do not become hours: 10,000 s is a tick,
 * 2.78 h is none. */
static unit_step step_for(const nd_plot_scale *scale, double size)
{
    const unit_step *step = number_steps;
    switch (scale->unit) {
    case ND_PLOT_SECONDS:
        step = second_steps + (scale->log ? 2 : 0);
        break;
    case ND_PLOT_BYTES:
        step = byte_steps;
        break;
    case ND_PLOT_PER_SECOND:
        step = rate_steps;
        break;
    case ND_PLOT_PERCENT:
        step = percent_steps;
        break;
    case ND_PLOT_NUMBER:
    case ND_PLOT_WHOLE:
    case ND_PLOT_UNIT_COUNT:
        break;
    }
    while (step->from > size * (1.0 + 1e-9)) {
        step++;
    }
    return *step;
}

static bool has_wide_range(const nd_plot_scale *scale)
{
    return scale->log && scale->max / scale->min >= 10.0;
}

/* `spacing`: to the next tick, which says how many digits a label needs. */
static bool add_tick(nd_plot_scale *scale, double value, double spacing)
{
    double slack = 1e-9 * (has_wide_range(scale) ? value : fmin(spacing, scale->max - scale->min));
    if (value < scale->min - slack || value > scale->max + slack) {
        return true;
    }
    if (scale->ticks_count == ND_PLOT_TICKS_MAX) {
        return false;
    }
    double size = has_wide_range(scale) ? value : fmax(fabs(scale->min), fabs(scale->max));
    unit_step step = step_for(scale, size);
    double shown = fabs(value) < 1e-9 * spacing ? 0.0 : value / step.size;
    double digits = ceil(-log10(spacing / step.size) - 1e-9);
    nd_plot_tick *tick = &scale->ticks[scale->ticks_count++];
    tick->value = value;
    if (fabs(shown) >= 1e6 || digits > 6.0) {
        (void)snprintf(tick->label, sizeof tick->label, "%.6g%s", shown, step.suffix);
    } else if (digits <= 0.0) {
        (void)snprintf(tick->label, sizeof tick->label, "%.20s%s", nd_format_count(llround(shown)).text, step.suffix);
    } else {
        (void)snprintf(tick->label, sizeof tick->label, "%.*f%s", (int)digits, shown, step.suffix);
    }
    return true;
}

/* Candidate `level` of a linear axis: 1, 2 or 5 times a power of ten, coarser with each level. */
static bool linear_ticks(nd_plot_scale *scale, int level)
{
    static const double mantissas[] = {1.0, 2.0, 5.0};
    double unit = scale->unit == ND_PLOT_BYTES || scale->unit == ND_PLOT_SECONDS
                      ? step_for(scale, fmax(fabs(scale->min), fabs(scale->max))).size
                      : 1.0;
    double finest = (scale->max - scale->min) / unit / ND_PLOT_TICKS_MAX;
    int decade = level / 3;
    double step = unit * pow(10.0, floor(log10(finest)) + decade) * mantissas[level % 3];
    if (step < unit * finest || (scale->unit == ND_PLOT_WHOLE && step < 0.999)) {
        return false; /* too many, or between whole numbers: the next level */
    }
    double first = ceil(scale->min / step - 1e-9);
    for (int i = 0; i <= ND_PLOT_TICKS_MAX && (first + i) * step <= scale->max + 1e-9 * step; i++) {
        if (!add_tick(scale, (first + i) * step, step)) {
            return false;
        }
    }
    return true;
}

/* Candidates of a logarithmic axis: 1-2-5, then 1-3, then every decade, every second one and so on; for bytes powers of
 * two. */
static bool log_ticks(nd_plot_scale *scale, int level)
{
    static const double all[] = {1.0, 2.0, 5.0};
    static const double some[] = {1.0, 3.0};
    static const double strides[] = {1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 300.0};
    enum { STRIDES = sizeof strides / sizeof strides[0] };
    bool binary = scale->unit == ND_PLOT_BYTES;
    double base = binary ? 2.0 : 10.0;
    const double *mantissas = level == 0 ? all : some;
    int count = binary || level > 1 ? 1 : level == 0 ? 3 : 2;
    int sparse = binary ? level : level < 2 ? 0 : level - 2;
    double stride = strides[sparse < STRIDES ? sparse : STRIDES - 1];
    double first = floor(log(scale->min) / log(base) / stride + 1e-9) * stride;
    double last = log(scale->max) / log(base) + 1e-9;
    for (int step = 0; first + step * stride <= last; step++) {
        for (int i = 0; i < count; i++) {
            double value = pow(base, first + step * stride) * mantissas[i];
            if ((scale->unit == ND_PLOT_WHOLE && value < 0.999) || add_tick(scale, value, value)) {
                continue;
            }
            return false;
        }
    }
    return true;
}

/* What the label of a value that need not be round must show: four significant digits, whole numbers as they are. */
static double last_digit(double value)
{
    double size = fabs(value);
    double digit = size > 0.0 ? pow(10.0, floor(log10(size)) - 3.0) : 1.0;
    while (digit < 1.0 && fabs(value / (10.0 * digit) - round(value / (10.0 * digit))) < 1e-9) {
        digit *= 10.0;
    }
    return fmin(digit, 1.0);
}

static bool keep_apart(const nd_plot_scale *scale, bool along)
{
    for (int32_t i = 1; i < scale->ticks_count; i++) {
        const nd_plot_tick *a = &scale->ticks[i - 1];
        const nd_plot_tick *b = &scale->ticks[i];
        double apart = fabs(nd_plot_scale_px(scale, b->value) - nd_plot_scale_px(scale, a->value));
        double wide = ND_PLOT_CHAR_PX * (double)(strlen(a->label) + strlen(b->label)) / 2.0;
        if (apart < (along ? wide + LABEL_GAP_PX : LINE_GAP_PX)) {
            return false;
        }
    }
    return true;
}

/* The preferred values, every `stride`-th; false when they are too many or on one another. */
static bool given_ticks(nd_plot_scale *scale, bool along, int32_t stride)
{
    scale->ticks_count = 0;
    for (int32_t i = 0; i < scale->tick_at_count; i += stride) {
        double value = scale->tick_at[i];
        if (!nd_plot_can_show(scale, value) || !add_tick(scale, value, last_digit(value))) {
            return false;
        }
    }
    int32_t least = stride > 1 ? THINNED_MIN : 1; /* a few of many say less than round numbers */
    return scale->ticks_count >= least && keep_apart(scale, along);
}

void nd_plot_scale_ticks(nd_plot_scale *scale, bool along)
{
    enum { LEVELS_MAX = 60 }; /* twenty decades of steps, or more strides than there are: hardly a tick is left */
    bool wide = has_wide_range(scale);
    for (int32_t stride = 1; stride <= STRIDE_MAX && scale->tick_at_count > 0; stride++) {
        if (given_ticks(scale, along, stride)) {
            return;
        }
    }
    for (int level = 0; level < LEVELS_MAX; level++) {
        scale->ticks_count = 0;
        bool done = wide ? log_ticks(scale, level) : linear_ticks(scale, level);
        if (done && keep_apart(scale, along)) {
            return;
        }
    }
    scale->ticks_count = 0;
}
