/* Streams in random order give the bits of the list in order, because the list says who waits for whom. */
#include <math.h>
#include <stdlib.h>

#include "tests/executor/fuzz.h"
#include "tests/executor/parity.h"
#include "tests/nd_test.h"

enum { SEEDS = 40 };

static const struct {
    const char *model;
    const char *layout;
} runs[] = {
    {"dense.json", "dp_shard=2,cp=2,sharding=zero3,recompute=full"},
    {"dense.json", "dp_shard=4,sharding=zero2"},
    {"dense.json", "dp_replicate=2,dp_shard=2,sharding=zero1"},
    {"dense.json", "pp=2,tp=2,sp=on,schedule=zero_bubble"},
    {"dense.json", "pp=2,tp=2,schedule=gpipe"},
    {"dense.json", "pp=2,vpp=2,schedule=interleaved,dp_shard=2,sharding=zero3"},
    {"moe.json", "dp_shard=2,tp=2,sp=on,ep=4,sharding=zero3"},
    {"tied.json", "pp=2,cp=2,cp_method=ulysses"},
    {"tied.json", "cp=4,cp_method=allgather,sharding=zero3"},
};

static nd_run *open_run(const parity *p, const nd_layout *layout)
{
    nd_error err = {.message = ""};
    nd_run *run = NULL;
    nd_run_options options = p->options;
    options.poison = false; /* streams that run ahead begin a buffer before its place in the list */
    ND_ASSERT_OK(nd_run_create(&p->model, layout, &p->train, &options, &run, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    return run;
}

/* Parameters after one step in order. */
static void in_order(const parity *p, const nd_layout *layout, double *out)
{
    nd_error err = {.message = ""};
    nd_run *run = open_run(p, layout);
    ND_ASSERT_OK(nd_run_steps(run, 1, NULL, NULL, &err));
    nd_run_read_params(run, out);
    nd_run_free(run);
}

static bool equal(const parity *p, const double *a, const double *b)
{
    for (int64_t i = 0; i < p->params; i++) {
        if (!(a[i] == b[i])) {
            return false;
        }
    }
    return true;
}

/* How many of the orders differ from the one in order. */
static int differing(const parity *p, const nd_layout *layout, bool obeys_waits)
{
    double *expected = calloc((size_t)p->params, sizeof *expected);
    double *found = calloc((size_t)p->params, sizeof *found);
    int different = 0;
    in_order(p, layout, expected);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        nd_run *run = open_run(p, layout);
        nd_step step = p->options.step;
        step.step = 1;
        fuzz_result result = fuzz_step(run, p->model.kv_heads, &step, seed, obeys_waits);
        nd_run_read_params(run, found);
        different += result != FUZZ_DONE || !equal(p, expected, found);
        nd_run_free(run);
    }
    free(expected);
    free(found);
    return different;
}

static void test_any_order_gives_the_same_bits(void)
{
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        parity p;
        parity_open(&p, runs[i].model, ND_ELEM_F32, 8);
        nd_layout layout = parity_layout(&p, runs[i].layout);
        CU_ASSERT_EQUAL(differing(&p, &layout, true), 0);
        parity_close(&p);
    }
}

static void test_without_waits_most_orders_are_wrong(void)
{
    for (size_t i = 0; i < 3; i++) {
        parity p;
        parity_open(&p, runs[i].model, ND_ELEM_F32, 8);
        nd_layout layout = parity_layout(&p, runs[i].layout);
        CU_ASSERT_TRUE(differing(&p, &layout, false) > SEEDS / 2);
        parity_close(&p);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_any_order_gives_the_same_bits), ND_TEST(test_without_waits_most_orders_are_wrong), {0}};
    return nd_test_main("streams in any order", cases);
}
