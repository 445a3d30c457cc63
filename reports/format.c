#include "reports/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"

nd_text nd_format_count(int64_t count)
{
    char digits[24];
    nd_text out = {{0}};
    int length = snprintf(digits, sizeof digits, "%" PRId64, count);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        int left = length - i;
        if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') {
            out.text[at++] = ',';
        }
        out.text[at++] = digits[i];
    }
    out.text[at] = '\0';
    return out;
}

nd_text nd_format_number(double value)
{
    nd_text out = {{0}};
    double size = fabs(value);
    if (!isfinite(value)) {
        (void)snprintf(out.text, sizeof out.text, "n/a");
    } else if (size < 0.0005) {
        (void)snprintf(out.text, sizeof out.text, "0");
    } else if (size >= 9.2e18) { /* beyond int64_t */
        (void)snprintf(out.text, sizeof out.text, "%.3g", value);
    } else if (size >= 999.5) {
        return nd_format_count(llround(value));
    } else {
        int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
        (void)snprintf(out.text, sizeof out.text, "%.*f", decimals, value);
    }
    return out;
}

nd_text nd_format_gib(double bytes)
{
    return nd_format_number(bytes / ND_GIB);
}

typedef struct unit_step {
    double size;
    const char *name;
} unit_step;

/* The largest unit of which `value` holds at least one; the steps go from large to small. */
static nd_text format_with_unit(double value, const unit_step *steps, size_t count)
{
    size_t i = 0;
    while (i + 1 < count && fabs(value) < 0.9995 * steps[i].size) { /* 999.6 M reads 1.00 B, not 1,000 M */
        i++;
    }
    nd_text number = nd_format_number(value / steps[i].size);
    nd_text out = {{0}};
    (void)snprintf(out.text, sizeof out.text, "%.30s %s", number.text, steps[i].name);
    return out;
}

nd_text nd_format_bytes(double bytes)
{
    static const unit_step steps[] = {
        {1024.0 * ND_GIB, "TiB"}, {ND_GIB, "GiB"}, {ND_MIB, "MiB"}, {ND_KIB, "KiB"}, {1.0, "B"}};
    return format_with_unit(bytes, steps, sizeof steps / sizeof steps[0]);
}

nd_text nd_format_seconds(double seconds)
{
    if (seconds == 0.0) {
        return (nd_text){"0 s"};
    }
    static const unit_step steps[] = {{86400.0, "days"}, {3600.0, "h"}, {1.0, "s"}, {ND_MILLI, "ms"}, {ND_MICRO, "us"}};
    return format_with_unit(seconds, steps, sizeof steps / sizeof steps[0]);
}

nd_text nd_format_percent(double fraction)
{
    nd_text out = {{0}};
    if (isfinite(fraction)) {
        (void)snprintf(out.text, sizeof out.text, "%.1f", fraction * 100.0);
    } else {
        (void)snprintf(out.text, sizeof out.text, "n/a");
    }
    return out;
}

nd_text nd_format_params(int64_t params)
{
    static const unit_step steps[] = {{1e9, "B"}, {1e6, "M"}, {1e3, "k"}, {1.0, ""}};
    return format_with_unit((double)params, steps, sizeof steps / sizeof steps[0]);
}

nd_text nd_format_tokens(double tokens)
{
    static const unit_step steps[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
    return tokens < 1e3 ? nd_format_number(tokens) : format_with_unit(tokens, steps, sizeof steps / sizeof steps[0]);
}

nd_text nd_format_usd(double usd)
{
    static const unit_step steps[] = {{1e9, "B"}, {1e6, "M"}};
    return usd < 0.9995e6 ? nd_format_number(usd) : format_with_unit(usd, steps, sizeof steps / sizeof steps[0]);
}

nd_text nd_format_energy(double joule)
{
    static const unit_step steps[] = {{3.6e12, "GWh"}, {3.6e9, "MWh"}, {3.6e6, "kWh"}, {3.6e3, "Wh"}};
    return format_with_unit(joule, steps, sizeof steps / sizeof steps[0]);
}

nd_text nd_format_gb_per_s(double bytes_per_s)
{
    return nd_format_number(bytes_per_s / ND_GIGA);
}

nd_text nd_format_tflops(double flops_per_s)
{
    return nd_format_number(flops_per_s / ND_TERA);
}
