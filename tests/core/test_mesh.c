#include "core/mesh.h"

#include <string.h>

#include "tests/nd_test.h"

static nd_layout sized(int32_t pp, int32_t replicate, int32_t shard, int32_t cp, int32_t tp, int32_t ep)
{
    nd_layout layout = nd_layout_single();
    layout.size[ND_AXIS_PP] = pp;
    layout.size[ND_AXIS_DP_REPLICATE] = replicate;
    layout.size[ND_AXIS_DP_SHARD] = shard;
    layout.size[ND_AXIS_CP] = cp;
    layout.size[ND_AXIS_TP] = tp;
    layout.ep = ep;
    return layout;
}

static void check_group(const nd_layout *layout, nd_group_kind kind, int64_t ranks, int64_t stride)
{
    nd_group group = nd_mesh_group(layout, kind);
    CU_ASSERT_EQUAL(group.ranks, ranks);
    CU_ASSERT_EQUAL(group.stride, stride);
}

static void test_groups_of_a_five_dimensional_layout(void)
{
    nd_layout layout = sized(2, 3, 4, 2, 8, 16);
    check_group(&layout, ND_GROUP_TP, 8, 1);
    check_group(&layout, ND_GROUP_CP, 2, 8);
    check_group(&layout, ND_GROUP_SHARD, 8, 8);
    check_group(&layout, ND_GROUP_REPLICATE, 3, 64);
    check_group(&layout, ND_GROUP_GRAD, 24, 8);
    check_group(&layout, ND_GROUP_PP, 2, 192);
    check_group(&layout, ND_GROUP_EP, 16, 1);
    check_group(&layout, ND_GROUP_EXPERT_SHARD, 4, 16);
    check_group(&layout, ND_GROUP_EXPERT_GRAD, 12, 16);
}

static void test_without_ep_experts_follow_the_other_weights(void)
{
    nd_layout layout = sized(1, 2, 4, 2, 8, 1);
    nd_group shard = nd_mesh_group(&layout, ND_GROUP_SHARD);
    nd_group grad = nd_mesh_group(&layout, ND_GROUP_GRAD);
    check_group(&layout, ND_GROUP_EP, 1, 1);
    check_group(&layout, ND_GROUP_EXPERT_SHARD, shard.ranks, shard.stride);
    check_group(&layout, ND_GROUP_EXPERT_GRAD, grad.ranks, grad.stride);
}

static void test_ep_over_everything_leaves_one_copy_of_an_expert(void)
{
    nd_layout layout = sized(1, 2, 4, 2, 8, 64);
    check_group(&layout, ND_GROUP_EXPERT_SHARD, 1, 64);
    check_group(&layout, ND_GROUP_EXPERT_GRAD, 2, 64);
}

static void test_an_illegal_ep_still_gives_a_group(void)
{
    nd_layout layout = sized(1, 1, 2, 1, 1, 64);
    CU_ASSERT_TRUE(nd_mesh_group(&layout, ND_GROUP_EXPERT_SHARD).ranks >= 1);
}

static void test_tp_varies_fastest_and_pp_slowest(void)
{
    nd_layout layout = sized(2, 3, 4, 5, 6, 1);
    int32_t coords[ND_AXIS_COUNT];
    nd_mesh_coords(&layout, 1, coords);
    CU_ASSERT_EQUAL(coords[ND_AXIS_TP], 1);
    nd_mesh_coords(&layout, 6, coords);
    CU_ASSERT_EQUAL(coords[ND_AXIS_CP], 1);
    nd_mesh_coords(&layout, 360, coords);
    CU_ASSERT_EQUAL(coords[ND_AXIS_PP], 1);
    CU_ASSERT_EQUAL(coords[ND_AXIS_TP], 0);
}

static void test_every_rank_has_its_own_coordinates(void)
{
    nd_layout layout = sized(2, 3, 4, 5, 6, 1);
    for (int64_t rank = 0; rank < nd_layout_ranks(&layout); rank++) {
        int32_t coords[ND_AXIS_COUNT];
        nd_mesh_coords(&layout, rank, coords);
        CU_ASSERT_EQUAL(nd_mesh_rank(&layout, coords), rank);
    }
}

/* Enumerate the ranks that differ from rank 0 only along `axes` and compare with the arithmetic progression. */
static void check_members(const nd_layout *layout, nd_group_kind kind, uint32_t axes)
{
    nd_group group = nd_mesh_group(layout, kind);
    int64_t found = 0;
    for (int64_t rank = 0; rank < nd_layout_ranks(layout); rank++) {
        int32_t coords[ND_AXIS_COUNT];
        nd_mesh_coords(layout, rank, coords);
        bool member = true;
        for (unsigned axis = 0; axis < ND_AXIS_COUNT; axis++) {
            member = member && (coords[axis] == 0 || (axes & 1u << axis) != 0);
        }
        if (member) {
            CU_ASSERT_EQUAL(rank, found * group.stride);
            found++;
        }
    }
    CU_ASSERT_EQUAL(found, group.ranks);
}

static void test_groups_are_the_ranks_that_differ_along_their_axes(void)
{
    nd_layout layout = sized(2, 3, 4, 5, 2, 1);
    check_members(&layout, ND_GROUP_TP, 1u << ND_AXIS_TP);
    check_members(&layout, ND_GROUP_CP, 1u << ND_AXIS_CP);
    check_members(&layout, ND_GROUP_SHARD, 1u << ND_AXIS_DP_SHARD | 1u << ND_AXIS_CP);
    check_members(&layout, ND_GROUP_REPLICATE, 1u << ND_AXIS_DP_REPLICATE);
    check_members(&layout, ND_GROUP_GRAD, 1u << ND_AXIS_DP_REPLICATE | 1u << ND_AXIS_DP_SHARD | 1u << ND_AXIS_CP);
    check_members(&layout, ND_GROUP_PP, 1u << ND_AXIS_PP);
}

static void test_group_names_are_distinct(void)
{
    for (int a = 0; a < ND_GROUP_COUNT; a++) {
        for (int b = 0; b < a; b++) {
            CU_ASSERT_STRING_NOT_EQUAL(nd_group_kind_name((nd_group_kind)a), nd_group_kind_name((nd_group_kind)b));
        }
    }
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_groups_of_a_five_dimensional_layout),
        ND_TEST(test_without_ep_experts_follow_the_other_weights),
        ND_TEST(test_ep_over_everything_leaves_one_copy_of_an_expert),
        ND_TEST(test_an_illegal_ep_still_gives_a_group),
        ND_TEST(test_tp_varies_fastest_and_pp_slowest),
        ND_TEST(test_every_rank_has_its_own_coordinates),
        ND_TEST(test_groups_are_the_ranks_that_differ_along_their_axes),
        ND_TEST(test_group_names_are_distinct),
        {NULL, NULL},
    };
    return nd_test_main("core.mesh", cases);
}
