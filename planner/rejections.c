#include "planner/rejections_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

nd_rejection *nd_rejections_entry(nd_rejections *rejections, const char *rule, bool *is_new)
{
    *is_new = false;
    for (int32_t i = 0; i < rejections->count; i++) {
        if (rejections->entries[i].rule == rule) { /* ids are static: this finds almost all */
            return &rejections->entries[i];
        }
    }
    for (int32_t i = 0; i < rejections->count; i++) {
        if (strcmp(rejections->entries[i].rule, rule) == 0) {
            return &rejections->entries[i];
        }
    }
    nd_rejection *entry = &rejections->entries[rejections->count];
    if (rejections->count == ND_REJECTIONS_MAX) {
        entry--;
        if (strcmp(entry->rule, "other") != 0) {
            entry->rule = "other";
            entry->nearest[0] = '\0';
            (void)snprintf(entry->message, sizeof entry->message, "broke one of many further rules");
        }
        return entry;
    }
    memset(entry, 0, sizeof *entry);
    entry->rule = rule;
    rejections->count++;
    *is_new = true;
    return entry;
}

static int by_count(const void *left, const void *right)
{
    const nd_rejection *a = left;
    const nd_rejection *b = right;
    if (a->count != b->count) {
        return a->count < b->count ? 1 : -1;
    }
    return strcmp(a->rule, b->rule);
}

void nd_rejections_sort(nd_rejections *rejections)
{
    qsort(rejections->entries, (size_t)rejections->count, sizeof rejections->entries[0], by_count);
}
