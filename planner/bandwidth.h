/** What bandwidth a layout needs: the link rate at which its exposed communication is below a percent of the step.
 *
 * Found by bisection with the whole model, not by dividing bytes by time: latencies stay, other links stay as they are,
 * and what hides communication changes with the rate, too.
 */
#ifndef ND_PLANNER_BANDWIDTH_H
#define ND_PLANNER_BANDWIDTH_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/** Links whose rate changes together. */
typedef enum nd_link_class {
    ND_LINK_CLASS_GPU,     /* NVLink, xGMI, on-chip Ethernet */
    ND_LINK_CLASS_PCIE,    /* below and between host bridges */
    ND_LINK_CLASS_NETWORK, /* leaf and spine: the NICs */
    ND_LINK_CLASS_COUNT
} nd_link_class;

/** Exposed communication below this part of the step counts as hidden. */
extern const double nd_hidden_frac;

typedef struct nd_bandwidth_need {
    nd_link_class link_class;
    nd_tier_kind kind;         /* of the narrowest such tier: its name is what users know */
    double has_bytes_per_s;    /* per GPU, one direction, data sheet; of that tier */
    double needed_bytes_per_s; /* the same, at which it is hidden: less than it has where it is hidden already; 0 when
                                * no rate up to 1,024 times the present one hides it */
    double exposed_s;          /* a step, of collectives whose slowest link is of this class */
    double exposed_frac;       /* of the step */
    double least_frac;         /* what stays exposed at the highest rate tried: latency and other links */
} nd_bandwidth_need;

/** The class of the slowest link that a collective crosses. */
nd_link_class nd_link_class_of_line(const nd_comm_line *line);

/** \param[in]  layout  passed nd_layout_allowed()
 * \param[out] out      the classes over which the layout communicates, in their order
 * \return how many; 0 for a layout that sends nothing. Takes about 100 estimates. */
int32_t nd_bandwidth_needs(const nd_cost_context *context, const nd_layout *layout,
                           nd_bandwidth_need out[ND_LINK_CLASS_COUNT]);

ND_END_DECLS

#endif
