/* The order of plans and which of them a bounded list keeps. */
#include <math.h>
#include <string.h>

#include "planner/ranking_internal.h"
#include "planner/rejections_internal.h"
#include "tests/nd_test.h"

static nd_ranked ranked(int32_t tp, int32_t micro_batch, double step_s, double peak_bytes, nd_verdict verdict)
{
    nd_ranked entry;
    memset(&entry, 0, sizeof entry);
    entry.layout = nd_layout_single();
    entry.layout.size[ND_AXIS_TP] = tp;
    entry.layout.micro_batch = micro_batch;
    entry.step_s = step_s;
    entry.peak_bytes = peak_bytes;
    entry.capacity_bytes = 10.0;
    entry.verdict = verdict;
    return entry;
}

static void expect_before(nd_objective objective, nd_ranked first, nd_ranked second)
{
    CU_ASSERT_TRUE(nd_ranked_compare(objective, &first, &second) < 0);
    CU_ASSERT_TRUE(nd_ranked_compare(objective, &second, &first) > 0);
    CU_ASSERT_EQUAL(nd_ranked_compare(objective, &first, &first), 0);
}

static void test_order_is_time_memory_axes_layout(void)
{
    nd_objective time = ND_OBJECTIVE_THROUGHPUT;
    expect_before(time, ranked(4, 1, 1.0, 9.0, ND_VERDICT_FITS), ranked(1, 1, 2.0, 1.0, ND_VERDICT_FITS));
    expect_before(time, ranked(4, 1, 1.0, 8.0, ND_VERDICT_FITS), ranked(1, 1, 1.0, 9.0, ND_VERDICT_FITS));
    expect_before(time, ranked(1, 1, 1.0, 9.0, ND_VERDICT_FITS), ranked(2, 1, 1.0, 9.0, ND_VERDICT_FITS));
    expect_before(time, ranked(2, 1, 1.0, 9.0, ND_VERDICT_FITS), ranked(4, 1, 1.0, 9.0, ND_VERDICT_FITS));
    expect_before(time, ranked(2, 1, 1.0, 9.0, ND_VERDICT_FITS), ranked(2, 2, 1.0, 9.0, ND_VERDICT_FITS));
    expect_before(ND_OBJECTIVE_MEMORY, ranked(1, 1, 2.0, 8.0, ND_VERDICT_FITS),
                  ranked(1, 1, 1.0, 9.0, ND_VERDICT_FITS));
}

static void test_what_does_not_fit_or_has_no_time_comes_last(void)
{
    nd_objective time = ND_OBJECTIVE_THROUGHPUT;
    expect_before(time, ranked(1, 1, 9.0, 1.0, ND_VERDICT_BORDERLINE), ranked(1, 1, 1.0, 1.0, ND_VERDICT_NO));
    expect_before(time, ranked(1, 1, 1.0, 1.0, ND_VERDICT_BORDERLINE), ranked(1, 1, 2.0, 1.0, ND_VERDICT_FITS));
    expect_before(time, ranked(1, 1, 9.0, 9.0, ND_VERDICT_BORDERLINE), ranked(1, 1, 1.0, 11.0, ND_VERDICT_BORDERLINE));
    expect_before(time, ranked(1, 1, 9.0, 11.0, ND_VERDICT_BORDERLINE), ranked(1, 1, 1.0, 12.0, ND_VERDICT_NO));
    expect_before(time, ranked(1, 1, 9.0, 1.0, ND_VERDICT_FITS), ranked(2, 1, (double)NAN, 1.0, ND_VERDICT_FITS));
}

static void test_a_bounded_list_keeps_the_best_of_any_order(void)
{
    nd_ranked entries[4];
    for (int32_t step = 1; step < 31; step++) {
        nd_ranking ranking = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_EVERY_LAYOUT, entries, 4, 0, NULL};
        for (int32_t i = 0; i < 31; i++) { /* 31 is prime: every order visits all values */
            int32_t value = i * step % 31;
            nd_ranked entry = ranked(1, value + 1, value, 0.0, ND_VERDICT_FITS);
            nd_ranking_add(&ranking, &entry);
        }
        CU_ASSERT_EQUAL_FATAL(ranking.count, 4);
        for (int32_t i = 0; i < 4; i++) {
            CU_ASSERT_EQUAL(entries[i].step_s, (double)i);
        }
    }
}

static void test_one_entry_per_mesh_and_verdict(void)
{
    nd_ranked entries[8];
    nd_ranking meshes = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_MESH_AND_VERDICT, entries, 8, 0, NULL};
    for (int32_t i = 0; i < 60; i++) {
        int32_t value = i * 7 % 60;
        nd_verdict verdict = value % 2 == 0 ? ND_VERDICT_FITS : ND_VERDICT_BORDERLINE;
        nd_ranked entry = ranked(1 + value % 3, value, value, 0.0, verdict);
        nd_ranking_add(&meshes, &entry);
    }
    CU_ASSERT_EQUAL_FATAL(meshes.count, 6);
    for (int32_t i = 0; i < 6; i++) {
        CU_ASSERT_EQUAL(entries[i].step_s, (double)i);
    }
}

/* A list with tags is the one without, also past the blocks in which tags are compared and after times changed. */
static void test_tags_change_nothing(void)
{
    enum { ROOM = 45, MESHES = 64, CANDIDATES = 2000 };
    static nd_ranked plain_entries[ROOM], tagged_entries[ROOM];
    uint32_t tags[ROOM] = {0};
    nd_ranking plain = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_MESH_AND_VERDICT, plain_entries, ROOM, 0, NULL};
    nd_ranking tagged = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_MESH_AND_VERDICT, tagged_entries, ROOM, 0, tags};
    uint32_t state = 5;
    for (int32_t i = 0; i < CANDIDATES; i++) {
        state = state * 1664525u + 1013904223u;
        int32_t mesh = 1 + (int32_t)(state >> 8) % MESHES;
        double step_s = (double)((state >> 12) % 4096) * (1.0 - (double)i / (2.0 * CANDIDATES));
        nd_ranked entry = ranked(mesh, i, step_s, 0.0, i % 3 == 0 ? ND_VERDICT_BORDERLINE : ND_VERDICT_FITS);
        CU_ASSERT_EQUAL(nd_ranking_would_take(&plain, &entry), nd_ranking_would_take(&tagged, &entry));
        nd_ranking_add(&plain, &entry);
        nd_ranking_add(&tagged, &entry);
        if (i == CANDIDATES / 2) {
            for (int32_t k = 0; k < plain.count; k++) {
                plain_entries[k].step_s = tagged_entries[k].step_s = (double)((k * 29) % 101);
            }
            nd_ranking_sort(&plain);
            nd_ranking_sort(&tagged);
        }
    }
    CU_ASSERT_EQUAL_FATAL(plain.count, ROOM);
    CU_ASSERT_EQUAL_FATAL(tagged.count, ROOM);
    for (int32_t i = 0; i < ROOM; i++) {
        CU_ASSERT_TRUE(nd_same_layout(&plain_entries[i].layout, &tagged_entries[i].layout));
        CU_ASSERT_EQUAL(plain_entries[i].step_s, tagged_entries[i].step_s);
    }
}

static void test_would_take_agrees_with_add(void)
{
    nd_ranked entries[2];
    nd_ranking meshes = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_MESH_AND_VERDICT, entries, 2, 0, NULL};
    nd_ranked fast = ranked(1, 1, 1.0, 0.0, ND_VERDICT_FITS);
    nd_ranked slow = ranked(2, 1, 5.0, 0.0, ND_VERDICT_FITS);
    nd_ranked slower_variant = ranked(1, 2, 2.0, 0.0, ND_VERDICT_FITS);
    nd_ranked slowest = ranked(4, 1, 6.0, 0.0, ND_VERDICT_FITS);
    CU_ASSERT_TRUE(nd_ranking_would_take(&meshes, &fast));
    CU_ASSERT_EQUAL(meshes.count, 0);
    nd_ranking_add(&meshes, &fast);
    nd_ranking_add(&meshes, &slow);
    CU_ASSERT_FALSE(nd_ranking_would_take(&meshes, &slower_variant));
    CU_ASSERT_FALSE(nd_ranking_would_take(&meshes, &slowest));
    nd_ranking_add(&meshes, &slowest);
    CU_ASSERT_EQUAL(entries[1].step_s, 5.0);
}

static void test_a_borderline_plan_does_not_hide_the_safe_one(void)
{
    nd_ranked mesh_entries[6];
    nd_ranked all_entries[4];
    nd_ranked out[4];
    nd_ranking meshes = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_MESH_AND_VERDICT, mesh_entries, 6, 0, NULL};
    nd_ranking all = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_EVERY_LAYOUT, all_entries, 4, 0, NULL};
    const nd_ranked found[] = {
        ranked(1, 1, 1.0, 0.0, ND_VERDICT_BORDERLINE), ranked(1, 2, 1.5, 0.0, ND_VERDICT_BORDERLINE),
        ranked(1, 4, 2.0, 0.0, ND_VERDICT_FITS),       ranked(2, 1, 3.0, 0.0, ND_VERDICT_FITS),
        ranked(2, 2, 4.0, 0.0, ND_VERDICT_BORDERLINE), /* slower than the safe one of its mesh: pointless */
    };
    for (size_t i = 0; i < 5; i++) {
        nd_ranking_add(&meshes, &found[i]);
        nd_ranking_add(&all, &found[i]);
    }
    CU_ASSERT_EQUAL_FATAL(nd_ranking_choose(&meshes, &all, NULL, 3, out), 3);
    CU_ASSERT_EQUAL(out[0].step_s, 1.0);
    CU_ASSERT_EQUAL(out[1].step_s, 2.0);
    CU_ASSERT_EQUAL(out[2].step_s, 3.0);
    CU_ASSERT_EQUAL_FATAL(nd_ranking_choose(&meshes, &all, NULL, 4, out), 4);
    CU_ASSERT_EQUAL(out[1].step_s, 1.5); /* a variant of the first mesh, not the pointless 4.0 */
    CU_ASSERT_EQUAL(out[3].step_s, 3.0);
}

static void test_a_list_of_two_or_more_holds_a_plan_that_surely_fits(void)
{
    nd_ranked mesh_entries[2];
    nd_ranked all_entries[2];
    nd_ranked out[2];
    nd_ranking meshes = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_MESH_AND_VERDICT, mesh_entries, 2, 0, NULL};
    nd_ranking all = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_EVERY_LAYOUT, all_entries, 2, 0, NULL};
    const nd_ranked fast[] = {ranked(1, 1, 1.0, 9.0, ND_VERDICT_BORDERLINE),
                              ranked(2, 1, 2.0, 9.0, ND_VERDICT_BORDERLINE)};
    const nd_ranked safe = ranked(4, 1, 3.0, 5.0, ND_VERDICT_FITS);
    for (int i = 0; i < 2; i++) {
        nd_ranking_add(&meshes, &fast[i]);
        nd_ranking_add(&all, &fast[i]);
    }
    CU_ASSERT_EQUAL(nd_ranking_choose(&meshes, &all, &safe, 2, out), 2);
    CU_ASSERT_EQUAL(out[0].step_s, 1.0);
    CU_ASSERT_EQUAL(out[1].step_s, 3.0);
    CU_ASSERT_EQUAL(nd_ranking_choose(&meshes, &all, &safe, 1, out), 1);
    CU_ASSERT_EQUAL(out[0].step_s, 1.0);
}

static void test_places_left_go_to_variants(void)
{
    nd_ranked mesh_entries[12];
    nd_ranked all_entries[4];
    nd_ranked out[4];
    nd_ranking meshes = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_MESH_AND_VERDICT, mesh_entries, 12, 0, NULL};
    nd_ranking all = {ND_OBJECTIVE_THROUGHPUT, ND_RANKING_EVERY_LAYOUT, all_entries, 4, 0, NULL};
    for (int32_t i = 1; i <= 6; i++) {
        nd_ranked entry = ranked(i == 6 ? 2 : 1, i, i, 0.0, ND_VERDICT_FITS);
        nd_ranking_add(&meshes, &entry);
        nd_ranking_add(&all, &entry);
    }
    CU_ASSERT_EQUAL_FATAL(nd_ranking_choose(&meshes, &all, NULL, 4, out), 4);
    static const double expected[] = {1.0, 2.0, 3.0, 6.0}; /* the second mesh keeps its place */
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(out[i].step_s, expected[i]);
    }
}

static void test_rejections_count_by_rule_and_never_overflow(void)
{
    static char names[ND_REJECTIONS_MAX + 20][16];
    nd_rejections rejections;
    memset(&rejections, 0, sizeof rejections);
    nd_layout example = nd_layout_single();
    for (int i = 0; i < ND_REJECTIONS_MAX + 20; i++) {
        names[i][0] = (char)('a' + i % 26);
        names[i][1] = (char)('a' + i / 26);
        nd_rejections_count(&rejections, names[i], i == 5 ? 101 : 1, i, &example);
    }
    nd_rejections_count(&rejections, "fa", 1, 3, &example); /* other storage, same words */
    CU_ASSERT_EQUAL(rejections.count, ND_REJECTIONS_MAX);
    CU_ASSERT_STRING_EQUAL(rejections.entries[5].rule, "fa");
    CU_ASSERT_EQUAL(rejections.entries[5].count, 102);
    CU_ASSERT_EQUAL(rejections.entries[5].order, 3);
    CU_ASSERT_STRING_EQUAL(rejections.entries[ND_REJECTIONS_MAX - 1].rule, "other");
    CU_ASSERT_EQUAL(rejections.entries[ND_REJECTIONS_MAX - 1].count, 21);
}

/* Merged in any order, tables give the same sums and the same examples. */
static void test_rejections_merge_in_any_order(void)
{
    nd_rejections parts[2];
    memset(parts, 0, sizeof parts);
    nd_layout first = nd_layout_single();
    nd_layout second = nd_layout_single();
    second.micro_batch = 2;
    nd_rejections_count(&parts[0], "a", 3, 7, &second);
    nd_rejections_count(&parts[1], "a", 4, 2, &first);
    nd_rejections_count(&parts[1], "b", 1, 9, &first);
    for (int i = 0; i < 2; i++) {
        nd_rejections sum = parts[i];
        nd_rejections_merge(&sum, &parts[1 - i]);
        const nd_tally *a = strcmp(sum.entries[0].rule, "a") == 0 ? &sum.entries[0] : &sum.entries[1];
        CU_ASSERT_EQUAL(sum.count, 2);
        CU_ASSERT_EQUAL(a->count, 7);
        CU_ASSERT_EQUAL(a->order, 2);
        CU_ASSERT_EQUAL(a->example.micro_batch, 1);
    }
    nd_rejection sorted[2] = {{.rule = "few", .count = 1}, {.rule = "many", .count = 5}};
    nd_rejections_sort(sorted, 2);
    CU_ASSERT_STRING_EQUAL(sorted[0].rule, "many");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_order_is_time_memory_axes_layout),
        ND_TEST(test_what_does_not_fit_or_has_no_time_comes_last),
        ND_TEST(test_a_bounded_list_keeps_the_best_of_any_order),
        ND_TEST(test_one_entry_per_mesh_and_verdict),
        ND_TEST(test_tags_change_nothing),
        ND_TEST(test_would_take_agrees_with_add),
        ND_TEST(test_a_borderline_plan_does_not_hide_the_safe_one),
        ND_TEST(test_a_list_of_two_or_more_holds_a_plan_that_surely_fits),
        ND_TEST(test_places_left_go_to_variants),
        ND_TEST(test_rejections_count_by_rule_and_never_overflow),
        ND_TEST(test_rejections_merge_in_any_order),
        {NULL, NULL},
    };
    return nd_test_main("planner.ranking", cases);
}
