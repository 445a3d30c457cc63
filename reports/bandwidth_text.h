/** What link rates a layout needs, in words and in JSON. */
#ifndef ND_REPORTS_BANDWIDTH_TEXT_H
#define ND_REPORTS_BANDWIDTH_TEXT_H

#include "core/json_writer.h"
#include "planner/bandwidth.h"
#include "reports/format.h"
#include "reports/report.h"

ND_BEGIN_DECLS

/** The fastest rate of one GPU over links of this class, one direction, sold or announced: a need beyond it is nothing
 * that one can buy, and its number would mislead. */
double nd_fastest_link_bytes_per_s(nd_link_class link_class);

/** A link rate as people write it: NICs in Gb/s, links of GPUs in GB/s; with the unit. */
nd_text nd_format_link_rate(const nd_bandwidth_need *need, double bytes_per_s);

/** One paragraph for each class of links. */
void nd_report_bandwidth(FILE *stream, const nd_report_context *context, const nd_bandwidth_need *needs, int32_t count);

/** "bandwidth": [{...}] of the open object. */
void nd_json_put_bandwidth(nd_json_writer *json, const nd_bandwidth_need *needs, int32_t count);

ND_END_DECLS

#endif
