/* Layouts of up to 16 ranks over gpt2.json against one rank, in fp64. */
#include "tests/executor/parity.h"
#include "tests/nd_test.h"

static void test_every_mesh_gives_what_one_rank_gives(void)
{
    parity_sweep("gpt2.json", 99);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_every_mesh_gives_what_one_rank_gives), {0}};
    return nd_test_main("layouts of gpt2", cases);
}
