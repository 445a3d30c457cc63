/** Files embedded at build time (built-in models, GPUs, clusters, calibrations, stacks).
 *
 * CMake's nd_embed() turns a folder of JSON files into one table of these; a table ends in {NULL, NULL, 0}.
 */
#ifndef ND_CORE_RESOURCE_H
#define ND_CORE_RESOURCE_H

#include <stddef.h>

#include "core/decls.h"

ND_BEGIN_DECLS

typedef struct nd_resource {
    const char *name; /* file name without folder and extension */
    const char *text; /* terminated */
    size_t length;    /* without the terminator */
} nd_resource;

/** Entries of a table. */
size_t nd_resource_count(const nd_resource *table);

/** The entry whose name is `name` in canonical form (core/text.h), or NULL. */
const nd_resource *nd_resource_find(const nd_resource *table, const char *name);

ND_END_DECLS

#endif
