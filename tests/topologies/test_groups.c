#include <stdlib.h>

#include "tests/topologies/topology_check.h"

static void check_members(const char *text, int64_t ranks, int64_t stride, int64_t first, int64_t second)
{
    int64_t members[ND_TIERS_MAX];
    nd_cluster_spec cluster = loaded(text);
    nd_cluster_group_members(&cluster, ranks, stride, members);
    if (members[0] != first || members[1] != second) {
        fprintf(stderr, "%s: %lld ranks %lld apart: %lld, %lld members, expected %lld, %lld\n", text, (long long)ranks,
                (long long)stride, (long long)members[0], (long long)members[1], (long long)first, (long long)second);
        CU_FAIL("members");
    }
}

static void groups_inside_a_node_stay_there(void)
{
    check_members("2x8xh100", 8, 1, 8, 8);
    check_members("2x8xh100", 2, 4, 2, 2);
    check_members("2x8xh100", 4, 2, 4, 4);
    check_members("2x8xh100", 1, 1, 1, 1);
}

static void groups_across_nodes_have_members_on_each(void)
{
    check_members("2x8xh100", 16, 1, 8, 16);
    check_members("2x8xh100", 2, 8, 1, 2); /* one rail each */
    check_members("2x8xh100", 4, 4, 2, 4);
    check_members("16x8xh100", 16, 8, 1, 16);
    check_members("16x8xh100", 8, 16, 1, 8); /* every second node */
    check_members("1024x8xh100", 512, 2, 4, 512);
}

static void racks_hold_more_of_a_group(void)
{
    check_members("36x4xgb200", 72, 1, 72, 72);
    check_members("36x4xgb200", 36, 4, 18, 36);
    check_members("36x4xgb200", 9, 8, 9, 9);
    check_members("36x4xgb200", 2, 72, 1, 2);
}

static void the_worst_placed_group_counts(void)
{
    /* 100 nodes in racks of 72: blocks of 16 start at 0, 16, 32, 48, 64; the last one is cut 8 + 8 */
    check_members("100x4xgb200", 16, 1, 8, 16);
    check_members("100x4xgb200", 8, 1, 8, 8); /* 72 is a multiple of 8 */
    check_members("3x6xh100", 9, 1, 3, 9);    /* 6 + 3 */
}

static void three_tiers_count_each(void)
{
    int64_t members[ND_TIERS_MAX];
    nd_cluster_spec cluster = loaded("2x8xl4");
    nd_cluster_group_members(&cluster, 16, 1, members);
    CU_ASSERT_EQUAL(members[0], 4);
    CU_ASSERT_EQUAL(members[1], 8);
    CU_ASSERT_EQUAL(members[2], 16);
    CU_ASSERT_EQUAL(members[ND_TIERS_MAX - 1], 16);
    nd_cluster_group_members(&cluster, 2, 4, members);
    CU_ASSERT_EQUAL(members[0], 1);
    CU_ASSERT_EQUAL(members[1], 2);
}

static void senseless_groups_do_no_harm(void)
{
    int64_t members[ND_TIERS_MAX];
    nd_cluster_spec cluster = loaded("2x8xh100");
    nd_cluster_group_members(&cluster, 0, 0, members);
    CU_ASSERT_EQUAL(members[0], 1);
    nd_cluster_group_members(&cluster, -3, -3, members);
    CU_ASSERT_EQUAL(members[0], 1);
    nd_cluster_group_members(&cluster, 64, 1, members); /* more than there are */
    CU_ASSERT_EQUAL(members[0], 8);
    CU_ASSERT_EQUAL(members[1], 64);
}

/* Count members per domain of every group, rank by rank. */
static int64_t counted(int64_t gpus, int64_t ranks, int64_t stride, int64_t domain)
{
    int64_t fewest = ranks;
    int64_t block = ranks * stride;
    for (int64_t start = 0; start + block <= gpus; start += block) {
        for (int64_t shift = 0; shift < stride; shift++) {
            int64_t here = 0;
            int64_t current = -1;
            for (int64_t i = 0; i <= ranks; i++) {
                int64_t at = i < ranks ? (start + shift + i * stride) / domain : -2;
                if (at != current && current >= 0 && here < fewest) {
                    fewest = here;
                }
                here = at == current ? here + 1 : 1;
                current = at;
            }
        }
    }
    return fewest;
}

static void members_agree_with_counting_rank_by_rank(void)
{
    uint64_t state = 20260607;
    for (int round = 0; round < 20000; round++) {
        nd_cluster_spec cluster;
        int64_t numbers[4];
        int64_t members[ND_TIERS_MAX];
        for (int i = 0; i < 4; i++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            numbers[i] = (int64_t)(state >> 33);
        }
        memset(&cluster, 0, sizeof cluster);
        int64_t ranks = 1 + numbers[0] % 24;
        int64_t stride = 1 + numbers[1] % 12;
        int64_t domain = 1 + numbers[2] % 80;
        cluster.gpus = ranks * stride * (1 + numbers[3] % 12);
        cluster.tiers_count = 2;
        cluster.tiers[0].span_gpus = domain;
        cluster.tiers[1].span_gpus = cluster.gpus;
        nd_cluster_group_members(&cluster, ranks, stride, members);
        int64_t expected = counted(cluster.gpus, ranks, stride, domain);
        if (members[0] != expected) {
            fprintf(stderr, "%lld GPUs, %lld ranks %lld apart, domain %lld: %lld, counted %lld\n",
                    (long long)cluster.gpus, (long long)ranks, (long long)stride, (long long)domain,
                    (long long)members[0], (long long)expected);
            CU_FAIL("members");
            return;
        }
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(groups_inside_a_node_stay_there),
        ND_TEST(groups_across_nodes_have_members_on_each),
        ND_TEST(racks_hold_more_of_a_group),
        ND_TEST(the_worst_placed_group_counts),
        ND_TEST(three_tiers_count_each),
        ND_TEST(senseless_groups_do_no_harm),
        ND_TEST(members_agree_with_counting_rank_by_rank),
        {NULL, NULL},
    };
    return nd_test_main("topologies/groups", cases);
}
