/** Base units into what people read. The only place where GiB, ms and thousands separators exist.
 *
 * The results are values, so that several can stand in one printf: nd_format_gib(bytes).text.
 */
#ifndef ND_REPORTS_FORMAT_H
#define ND_REPORTS_FORMAT_H

#include <stdint.h>

#include "core/decls.h"

ND_BEGIN_DECLS

typedef struct nd_text {
    char text[48];
} nd_text;

/** 12345 -> "12,345". */
nd_text nd_format_count(int64_t count);

/** Three significant digits or all integer digits, no exponent, at most three decimals: 0.012, 4.21, 61.2, 771, 12,345.
 * Below 0.0005 (zero included): "0"; not finite: "n/a". */
nd_text nd_format_number(double value);

/** Bytes as GiB: the number alone. */
nd_text nd_format_gib(double bytes);
/** Bytes with the unit that suits: "512 B", "1.25 GiB". */
nd_text nd_format_bytes(double bytes);
/** Seconds with the unit that suits: "12.3 us", "4.21 s", "3.4 h". */
nd_text nd_format_seconds(double seconds);
/** 0.412 -> "41.2" (percent without the sign). */
nd_text nd_format_percent(double fraction);
/** Parameters: "8.03 B", "350 M". */
nd_text nd_format_params(int64_t params);
/** Tokens: "15.0 T", "300 B"; dollars without the sign: "3.12 M", "812". */
nd_text nd_format_tokens(double tokens);
nd_text nd_format_usd(double usd);
/** Joule as people pay for it: "812 kWh", "5.31 GWh". */
nd_text nd_format_energy(double joule);
/** Rates: bytes/s as GB/s, FLOP/s as TFLOP/s; the number alone. */
nd_text nd_format_gb_per_s(double bytes_per_s);
nd_text nd_format_tflops(double flops_per_s);

ND_END_DECLS

#endif
