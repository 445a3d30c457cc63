/** Saying no: the rule's id, the words with the numbers, and the nearest legal value. */
#ifndef ND_FRAMEWORKS_REFUSAL_H
#define ND_FRAMEWORKS_REFUSAL_H

#include "frameworks/framework.h"

ND_BEGIN_DECLS

/** Note why a layout is refused; always false, so that a rule reads `return nd_refuse(...)`.
 *
 * \param[out] rule    receives `id` (static storage); may be NULL
 * \param[out] refusal receives id and message, nearest becomes empty; may be NULL, then nothing is formatted
 */
bool nd_refuse(const char **rule, nd_refusal *refusal, const char *id, const char *format, ...) ND_PRINTF(4, 5);

/** Add the nearest legal values to a refusal (may be NULL); always false. */
bool nd_refuse_nearest(nd_refusal *refusal, const char *format, ...) ND_PRINTF(2, 3);

ND_END_DECLS

#endif
