#include "core/resource.h"

#include <string.h>

#include "core/text.h"

enum { NAME_MAX_BYTES = 256 };

size_t nd_resource_count(const nd_resource *table)
{
    size_t count = 0;
    while (table[count].name != NULL) {
        count++;
    }
    return count;
}

const nd_resource *nd_resource_find(const nd_resource *table, const char *name)
{
    char wanted[NAME_MAX_BYTES];
    nd_text_canonical(name, wanted, sizeof wanted);
    for (const nd_resource *entry = table; entry->name != NULL; entry++) {
        char candidate[NAME_MAX_BYTES];
        nd_text_canonical(entry->name, candidate, sizeof candidate);
        if (strcmp(wanted, candidate) == 0) {
            return entry;
        }
    }
    return NULL;
}
