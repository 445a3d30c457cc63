#include "topologies/catalog_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"

enum { CATALOG_MAX = 256, NAME_MAX_BYTES = 128 };

static bool aliases_contain(const nd_resource *entry, const char *canonical)
{
    nd_json_doc *doc = NULL;
    nd_json aliases;
    bool found = false;
    if (nd_catalog_open(entry, &doc, NULL) != ND_OK) {
        return false;
    }
    if (nd_json_find(nd_json_root(doc), "aliases", &aliases)) {
        size_t count = nd_json_size(aliases);
        for (size_t i = 0; i < count && !found; i++) {
            const char *alias = NULL;
            char form[NAME_MAX_BYTES];
            if (nd_json_as_string(nd_json_at(aliases, i), "aliases", &alias, NULL) == ND_OK) {
                nd_text_canonical(alias, form, sizeof form);
                found = strcmp(form, canonical) == 0;
            }
        }
    }
    nd_json_free(doc);
    return found;
}

const nd_resource *nd_catalog_find(const nd_resource *table, const char *name)
{
    char canonical[NAME_MAX_BYTES];
    if (strlen(name) >= sizeof canonical) {
        return NULL; /* cut short, it could equal another name */
    }
    nd_text_canonical(name, canonical, sizeof canonical);
    if (canonical[0] == '\0') {
        return NULL;
    }
    const nd_resource *entry = nd_resource_find(table, name);
    for (size_t i = 0; entry == NULL && table[i].name != NULL; i++) {
        if (aliases_contain(&table[i], canonical)) {
            entry = &table[i];
        }
    }
    return entry;
}

const char *nd_catalog_nearest(const nd_resource *table, const char *name)
{
    const char *names[CATALOG_MAX];
    size_t count = 0;
    while (count < CATALOG_MAX && table[count].name != NULL) {
        names[count] = table[count].name;
        count++;
    }
    return nd_text_nearest(name, names, count);
}

nd_status nd_catalog_open(const nd_resource *entry, nd_json_doc **out, nd_error *err)
{
    char origin[NAME_MAX_BYTES];
    (void)snprintf(origin, sizeof origin, "built-in %s.json", entry->name);
    return nd_json_parse(entry->text, entry->length, origin, out, err);
}
