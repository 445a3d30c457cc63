/** Built-in GPU and cluster files, found by name or alias. */
#ifndef ND_TOPOLOGIES_CATALOG_INTERNAL_H
#define ND_TOPOLOGIES_CATALOG_INTERNAL_H

#include "core/json.h"
#include "core/resource.h"

extern const nd_resource nd_gpu_resources[];
extern const nd_resource nd_cluster_resources[];

/** The entry whose name or one of whose "aliases" is `name` in canonical form, or NULL. */
const nd_resource *nd_catalog_find(const nd_resource *table, const char *name);

/** The nearest name of a table, or NULL when none is near. */
const char *nd_catalog_nearest(const nd_resource *table, const char *name);

/** Parse an entry; the caller frees the document. */
nd_status nd_catalog_open(const nd_resource *entry, nd_json_doc **out, nd_error *err) ND_NODISCARD;

#endif
