#include "planner/rejections_internal.h"

#include <stdlib.h>
#include <string.h>

static const char other_rule[] = "other";

static nd_tally *find_entry(nd_rejections *rejections, const char *rule)
{
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
    if (rejections->count == ND_REJECTIONS_MAX) {
        nd_tally *last = &rejections->entries[ND_REJECTIONS_MAX - 1];
        last->rule = other_rule;
        return last;
    }
    nd_tally *entry = &rejections->entries[rejections->count++];
    *entry = (nd_tally){.rule = rule, .order = INT64_MAX};
    return entry;
}

void nd_rejections_count(nd_rejections *rejections, const char *rule, int64_t count, int64_t order,
                         const nd_layout *example)
{
    nd_tally *entry = find_entry(rejections, rule);
    entry->count += count;
    if (order < entry->order) {
        entry->order = order;
        entry->example = *example;
    }
}

void nd_rejections_merge(nd_rejections *rejections, const nd_rejections *other)
{
    for (int32_t i = 0; i < other->count; i++) {
        const nd_tally *entry = &other->entries[i];
        nd_rejections_count(rejections, entry->rule, entry->count, entry->order, &entry->example);
    }
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

void nd_rejections_sort(nd_rejection *entries, int32_t count)
{
    qsort(entries, (size_t)count, sizeof entries[0], by_count);
}
