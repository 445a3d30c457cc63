/* Each planted mistake must be seen by the comparison with one rank: a comparison that passes everything proves
 * nothing. */
#include "tests/executor/parity.h"
#include "tests/nd_test.h"

static const struct {
    nd_mutation mutation;
    const char *model;
    const char *layout;
} planted[] = {
    {ND_MUTATION_ROPE_POSITIONS, "dense.json", "cp=2"},
    {ND_MUTATION_MEAN_OF_MEANS, "dense.json", "dp_replicate=4"},
    {ND_MUTATION_MEAN_OF_MEANS, "dense.json", "cp=2"},
    {ND_MUTATION_SP_NORM_SUM, "dense.json", "tp=2,sp=on"},
    {ND_MUTATION_SP_NORM_SUM, "gpt2.json", "tp=2,sp=on"},
    {ND_MUTATION_KV_REPLICA_SUM, "dense.json", "tp=4,sp=on"},
    {ND_MUTATION_NORM_DOUBLE_COUNT, "dense.json", "tp=4,sp=off"},
    {ND_MUTATION_NORM_DOUBLE_COUNT, "tied.json", "pp=2"},
    {ND_MUTATION_TIED_SUM, "tied.json", "pp=2"},
    {ND_MUTATION_RING_LAST_HOP, "dense.json", "cp=4"},
    {ND_MUTATION_ROUTER_SUM, "moe.json", "tp=2,sp=on"},
    {ND_MUTATION_ROUTER_SUM, "moe.json", "tp=2,sp=off,ep=2"},
    {ND_MUTATION_REPLICA_SUM, "dense.json", "dp_replicate=2"},
    {ND_MUTATION_REPLICA_SUM, "dense.json", "dp_replicate=2,dp_shard=2,sharding=zero3"},
};

static void test_every_mistake_is_planted_somewhere(void)
{
    for (int m = ND_MUTATION_NONE + 1; m < ND_MUTATION_COUNT; m++) {
        bool found = false;
        for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
            found = found || planted[i].mutation == (nd_mutation)m;
        }
        CU_ASSERT_TRUE(found);
    }
}

static void test_every_mistake_is_seen(void)
{
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        nd_error err = {.message = ""};
        parity p;
        parity_difference with = {0};
        parity_difference without = {0};
        parity_open(&p, planted[i].model, ND_ELEM_F64, 8);
        nd_layout layout = parity_layout(&p, planted[i].layout);
        nd_program_options program = p.options.program;
        CU_ASSERT_TRUE(parity_compare(&p, &layout, &program, &without, &err));
        program.mutation = planted[i].mutation;
        CU_ASSERT_TRUE(parity_compare(&p, &layout, &program, &with, &err));
        CU_ASSERT_TRUE(parity_holds(&without));
        CU_ASSERT_FALSE(parity_holds(&with));
        parity_close(&p);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_mistake_is_planted_somewhere), ND_TEST(test_every_mistake_is_seen), {0}};
    return nd_test_main("planted mistakes", cases);
}
