/* Which degree divides which term: the answer to "why do more GPUs not reduce memory". */
#include "planner/divisions.h"

#include <string.h>

#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture; /* large: not on the stack */
static nd_divisions divisions;

static void divide(const char *text)
{
    nd_error err;
    nd_layout layout = nd_layout_single();
    ND_ASSERT_OK(nd_layout_parse(text, &layout, NULL, &err));
    nd_divide_memory(&fixture.context, NULL, &layout, &divisions);
}

static const nd_division *axis(const char *name)
{
    for (int i = 0; i < ND_DIVISION_AXES; i++) {
        if (strcmp(divisions.axis[i].axis, name) == 0) {
            return &divisions.axis[i];
        }
    }
    CU_FAIL_FATAL("no such axis");
    return NULL;
}

static void test_replicas_do_not_reduce_memory(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "1x8xh100", "ndplan", 4096, 8);
    divide("dp_replicate=8");
    const nd_division *division = axis("dp_replicate");
    CU_ASSERT_PTR_NULL_FATAL(division->rule);
    CU_ASSERT_EQUAL(division->memory.weights_bytes, divisions.memory.weights_bytes);
    CU_ASSERT_EQUAL(division->memory.optimizer_bytes, divisions.memory.optimizer_bytes);
    CU_ASSERT_EQUAL(division->memory.activations_bytes, divisions.memory.activations_bytes);
}

static void test_shards_halve_states_and_leave_activations(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "1x8xh100", "ndplan", 4096, 8);
    divide("dp_shard=8,sharding=zero3");
    const nd_division *division = axis("dp_shard");
    CU_ASSERT_PTR_NULL_FATAL(division->rule);
    ND_ASSERT_REL(division->memory.optimizer_bytes, divisions.memory.optimizer_bytes / 2.0, 1e-12);
    CU_ASSERT_EQUAL(division->memory.activations_bytes, divisions.memory.activations_bytes);
    division = axis("cp");
    CU_ASSERT_PTR_NULL_FATAL(division->rule);
    ND_ASSERT_REL(division->memory.activations_bytes, divisions.memory.activations_bytes / 2.0, 0.02); /* k, v whole */
}

/* The terms stay those of one phase, or a term that is not alive in another would look divided away. */
static void test_terms_are_of_one_phase(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "1x8xh100", "ndplan", 4096, 8);
    divide("dp_shard=8,sharding=zero3");
    CU_ASSERT_TRUE(divisions.memory.activations_bytes > 0.0);
    for (int i = 0; i < ND_DIVISION_AXES; i++) {
        if (divisions.axis[i].rule == NULL) {
            CU_ASSERT_EQUAL(divisions.axis[i].memory.phase, divisions.memory.phase);
            CU_ASSERT_TRUE(divisions.axis[i].memory.activations_bytes > 0.0);
        }
    }
}

static void test_what_a_rule_forbids_is_not_estimated(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "1x8xh100", "torch-ddp", 4096, 8);
    divide("dp_replicate=8");
    CU_ASSERT_PTR_NOT_NULL(axis("tp")->rule);
    CU_ASSERT_PTR_NOT_NULL(axis("ep")->rule);
    CU_ASSERT_EQUAL(axis("tp")->memory.peak_bytes, 0.0);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_replicas_do_not_reduce_memory),
        ND_TEST(test_shards_halve_states_and_leave_activations),
        ND_TEST(test_terms_are_of_one_phase),
        ND_TEST(test_what_a_rule_forbids_is_not_estimated),
        {NULL, NULL},
    };
    return nd_test_main("planner.divisions", cases);
}
