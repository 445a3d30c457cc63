/** The terms of memory and time in the order in which they are shown, with their JSON keys and their words. */
#ifndef ND_REPORTS_TERMS_H
#define ND_REPORTS_TERMS_H

#include <stdbool.h>
#include <stddef.h>

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

typedef struct nd_term {
    const char *key;   /* JSON and CSV */
    const char *label; /* text */
    size_t offset;     /* of the double in its breakdown */
    bool part;         /* part of the last term that is not one */
} nd_term;

extern const nd_term nd_memory_terms[]; /* of nd_memory_breakdown; add up to peak_bytes; ends with a NULL key */
extern const nd_term nd_time_terms[];   /* of nd_time_breakdown; those that are no part add up to step_s */

double nd_memory_term(const nd_memory_breakdown *memory, const nd_term *term);
double nd_time_term(const nd_time_breakdown *time, const nd_term *term);

/** The finest time term (a part, or a term without parts) in which `a` is ahead of `b` most.
 * \return NULL when it is ahead in none by more than `least_s`. */
const nd_term *nd_time_terms_largest_difference(const nd_time_breakdown *a, const nd_time_breakdown *b, double least_s);

ND_END_DECLS

#endif
