/** Figures of GPU and topology files: a number, or {"value": number, "source": text}. */
#ifndef ND_TOPOLOGIES_FIGURE_INTERNAL_H
#define ND_TOPOLOGIES_FIGURE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/json.h"

/** Refuse members of `object` that are not in `allowed` (ends with NULL): a typo must not be ignored.
 * \param[in] what  how the message calls the object, e.g. "the network" */
nd_status nd_figure_check_keys(nd_json object, const char *what, const char *const *allowed,
                               nd_error *err) ND_NODISCARD;

/** Optional figure: absent leaves `out` and `source` as they are. `source` (may be NULL) gets the figure's own
 * source when it has one. */
nd_status nd_figure_double(nd_json object, const char *key, double min, double max, double *out, char *source,
                           size_t source_bytes, nd_error *err) ND_NODISCARD;
nd_status nd_figure_int(nd_json object, const char *key, int64_t min, int64_t max, int64_t *out, char *source,
                        size_t source_bytes, nd_error *err) ND_NODISCARD;

/** Optional string into a buffer. Names must fit (`cut` false); long sources are cut at a character. */
nd_status nd_figure_text(nd_json object, const char *key, char *out, size_t out_bytes, bool cut,
                         nd_error *err) ND_NODISCARD;

/** Optional nested object; `found` says whether it was there. */
nd_status nd_figure_object(nd_json object, const char *key, nd_json *out, bool *found, nd_error *err) ND_NODISCARD;

/** Copy as much of `text` as fits, whole UTF-8 characters only. */
void nd_figure_copy(char *out, size_t out_bytes, const char *text);

#endif
