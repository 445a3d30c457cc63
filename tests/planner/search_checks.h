/** Searches of a fixture and what must hold for every list that they return. */
#ifndef ND_TESTS_PLANNER_SEARCH_CHECKS_H
#define ND_TESTS_PLANNER_SEARCH_CHECKS_H

#include <string.h>

#include "planner/search.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;

static inline nd_plan_list search_with(const nd_framework *framework, const nd_search_options *options)
{
    nd_error err;
    nd_plan_list list;
    memset(&list, 0, sizeof list);
    ND_ASSERT_OK(nd_search(&fixture.context, framework, options, &list, &err));
    return list;
}

static inline nd_plan_list search(int32_t top)
{
    nd_search_options options = nd_search_options_default();
    options.top = top;
    return search_with(NULL, &options);
}

static inline void pin(nd_search_options *options, const char *text)
{
    nd_error err;
    ND_ASSERT_OK(nd_layout_parse(text, &options->pin, &options->pinned, &err));
}

static inline bool same_mesh(const nd_layout *a, const nd_layout *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0 && a->ep == b->ep;
}

static inline int64_t rejected(const nd_plan_list *list)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < list->rejections_count; i++) {
        sum += list->rejections[i].count;
    }
    return sum;
}

static inline const nd_rejection *rejection(const nd_plan_list *list, const char *rule)
{
    for (int32_t i = 0; i < list->rejections_count; i++) {
        if (strcmp(list->rejections[i].rule, rule) == 0) {
            return &list->rejections[i];
        }
    }
    return NULL;
}

/* Whether it will rather run out of memory than not. */
static inline bool in_doubt(const nd_plan *plan)
{
    return plan->estimate.memory.peak_bytes > plan->estimate.memory.capacity_bytes;
}

static bool expects_safe; /* set where some layout surely fits */

static inline void check_list(const nd_plan_list *list)
{
    int surely = 0;
    for (int32_t i = 0; i < list->count; i++) {
        const nd_plan *plan = &list->plans[i];
        CU_ASSERT_EQUAL(nd_layout_ranks(&plan->layout), fixture.cluster.gpus);
        CU_ASSERT_EQUAL(nd_layout_global_batch_seqs(&plan->layout), fixture.train.global_batch_seqs);
        CU_ASSERT_TRUE(nd_layout_allowed(&fixture.context, NULL, &plan->layout, NULL, NULL));
        CU_ASSERT_TRUE(plan->estimate.memory.verdict != ND_VERDICT_NO);
        CU_ASSERT_TRUE(plan->estimate.time.step_s > 0.0);
        CU_ASSERT_TRUE(i == 0 || in_doubt(&list->plans[i - 1]) < in_doubt(plan) ||
                       (in_doubt(&list->plans[i - 1]) == in_doubt(plan) &&
                        list->plans[i - 1].estimate.time.step_s <= plan->estimate.time.step_s));
        surely += plan->estimate.memory.verdict == ND_VERDICT_FITS;
    }
    CU_ASSERT_TRUE(list->count < 2 || surely > 0 || !expects_safe);
    for (int32_t i = 0; i < list->rejections_count; i++) {
        const nd_rejection *entry = &list->rejections[i];
        CU_ASSERT_TRUE(entry->count > 0 && strlen(entry->rule) > 0 && strlen(entry->message) > 10);
        CU_ASSERT_TRUE(i == 0 || list->rejections[i - 1].count >= entry->count);
    }
    CU_ASSERT_EQUAL(list->fitting + rejected(list), list->searched);
    CU_ASSERT_TRUE(list->evaluated <= list->fitting);
    CU_ASSERT_TRUE(list->fitting == 0 || list->count > 0);
    CU_ASSERT_EQUAL(list->has_closest, list->fitting == 0 && rejection(list, "memory") != NULL);
}

#endif
