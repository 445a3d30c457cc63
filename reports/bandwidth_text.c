#include "reports/bandwidth_text.h"

#include "core/units.h"

static const double bits_per_byte = 8.0;

double nd_fastest_link_bytes_per_s(nd_link_class link_class)
{
    static const double fastest[ND_LINK_CLASS_COUNT] = {
        [ND_LINK_CLASS_GPU] = 1.8e12,    /* NVLink 6: 3.6 TB/s in both directions (NVIDIA, Vera Rubin, 2025) */
        [ND_LINK_CLASS_PCIE] = 256e9,    /* PCIe 7.0 x16: 512 GB/s in both directions (PCI-SIG, 2025) */
        [ND_LINK_CLASS_NETWORK] = 200e9, /* ConnectX-9: 1.6 Tb/s a GPU (NVIDIA, 2025) */
    };
    return fastest[link_class];
}

static bool is_network(const nd_bandwidth_need *need)
{
    return need->link_class == ND_LINK_CLASS_NETWORK;
}

nd_text nd_format_link_rate(const nd_bandwidth_need *need, double bytes_per_s)
{
    nd_text out;
    double rate = bytes_per_s / ND_GIGA * (is_network(need) ? bits_per_byte : 1.0);
    (void)snprintf(out.text, sizeof out.text, "%.36s %s", nd_format_number(rate).text,
                   is_network(need) ? "Gb/s" : "GB/s");
    return out;
}

void nd_report_bandwidth(FILE *stream, const nd_report_context *context, const nd_bandwidth_need *needs, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const nd_bandwidth_need *need = &needs[i];
        const char *link = is_network(need) ? "the network" : nd_tier_kind_name(need->kind);
        nd_text has = nd_format_link_rate(need, need->has_bytes_per_s);
        double fastest = nd_fastest_link_bytes_per_s(need->link_class);
        if (need->needed_bytes_per_s > fastest) {
            nd_report_paragraph(stream, &context->style, 2, 2,
                                "Bandwidth cannot hide its communication on %s: that would take more than the %s per "
                                "GPU of the fastest link there is; it has %s; exposed now: %s %% of the step.",
                                link, nd_format_link_rate(need, fastest).text, has.text,
                                nd_format_percent(need->exposed_frac).text);
        } else if (need->needed_bytes_per_s > 0.0) {
            nd_report_paragraph(stream, &context->style, 2, 2,
                                "It needs %s per GPU on %s to hide its communication, has %s; exposed now: %s %% of "
                                "the step.",
                                nd_format_link_rate(need, need->needed_bytes_per_s).text, link, has.text,
                                nd_format_percent(need->exposed_frac).text);
        } else {
            nd_report_paragraph(stream, &context->style, 2, 2,
                                "No rate of %s hides its communication: %s %% of the step is exposed at %s per GPU, "
                                "and %s %% would be at a thousand times that (latency, and the slower links inside).",
                                link, nd_format_percent(need->exposed_frac).text, has.text,
                                nd_format_percent(need->least_frac).text);
        }
    }
    if (count > 0) {
        nd_report_paragraph(stream, &context->style, 2, 2, "Hidden: less than %.3g %% of the step is exposed.",
                            100.0 * nd_hidden_frac);
    }
}

void nd_json_put_bandwidth(nd_json_writer *json, const nd_bandwidth_need *needs, int32_t count)
{
    nd_json_key(json, "bandwidth");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < count; i++) {
        const nd_bandwidth_need *need = &needs[i];
        nd_json_begin_object(json);
        nd_json_put_string(json, "link", nd_tier_kind_name(need->kind));
        nd_json_put_double(json, "has_bytes_per_s", need->has_bytes_per_s);
        nd_json_key(json, "needed_bytes_per_s");
        if (need->needed_bytes_per_s > 0.0) {
            nd_json_double(json, need->needed_bytes_per_s);
        } else {
            nd_json_null(json);
        }
        nd_json_put_double(json, "exposed_s", need->exposed_s);
        nd_json_put_double(json, "exposed_frac", need->exposed_frac);
        nd_json_put_double(json, "least_exposed_frac", need->least_frac);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
}
