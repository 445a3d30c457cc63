/** Small text helpers: numbers from user input, and the nearest name for a typo. */
#ifndef ND_CORE_TEXT_H
#define ND_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

ND_BEGIN_DECLS

/** Parse a whole decimal integer in [min, max]; no sign tricks, no trailing text. The message about "8k" says what to
 * write instead.
 * \param[in] what  how the message calls the value, e.g. "--seq-len" */
nd_status nd_text_int(const char *text, const char *what, int64_t min, int64_t max, int64_t *out,
                      nd_error *err) ND_NODISCARD;

/** Parse a finite decimal number in [min, max]. */
nd_status nd_text_double(const char *text, const char *what, double min, double max, double *out,
                         nd_error *err) ND_NODISCARD;

/** "" for 1, else "s": "%s GPU%s". */
const char *nd_text_plural(int64_t count);

/** Which of the `count` names `text` is, exactly.
 * \param[in] what  how the message calls the value, e.g. "layout key sharding"
 * \param[in] name  the name of each value from 0 to count - 1
 * \return ND_OK, or ND_EINVAL that lists what is allowed. */
nd_status nd_text_choice(const char *text, const char *what, const char *(*name)(int value), int count, int *out,
                         nd_error *err) ND_NODISCARD;

/** Lower-case `text`, drop what comes before the last '/', and drop '.', '-', '_' and blanks:
 * the form in which names are compared ("meta-llama/Llama-3.1-8B" -> "llama318b"). Always terminated. */
void nd_text_canonical(const char *text, char *out, size_t out_bytes);

enum { ND_TEXT_DISTANCE_MAX = 40 };

/** Levenshtein distance, capped at `limit` + 1 (0 <= limit <= ND_TEXT_DISTANCE_MAX). Time: length x limit. */
int nd_text_distance(const char *a, const char *b, int limit);

/** The name of `names` (count entries) nearest to `text` in canonical form, or NULL when none is near. */
const char *nd_text_nearest(const char *text, const char *const *names, size_t count);

ND_END_DECLS

#endif
