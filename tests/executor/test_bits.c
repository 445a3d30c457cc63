/* fp32, one sequence a micro-batch, sums as a binary tree over the global batch: every split of the batch gives the
 * same bits, at fixed pp, cp and tp; and so does recompute. */
#include "tests/executor/parity.h"
#include "tests/nd_test.h"

typedef struct bit_class {
    const char *model;
    const char *first; /* the layout that the others must equal */
    const char *others[10];
} bit_class;

static const bit_class classes[] = {
    {"dense.json",
     "grad_accum=8",
     {"dp_replicate=2", "dp_replicate=4", "dp_replicate=8", "dp_shard=2,sharding=zero3", "dp_shard=4,sharding=zero2",
      "dp_shard=8,sharding=zero1", "dp_replicate=2,dp_shard=2,sharding=zero3", "recompute=full",
      "dp_shard=2,sharding=zero3,recompute=selective"}},
    {"tied.json",
     "cp=2,tp=2,sp=on",
     {"cp=2,tp=2,sp=on,dp_replicate=2", "cp=2,tp=2,sp=on,dp_replicate=4", "cp=2,tp=2,sp=on,dp_shard=2,sharding=zero3",
      "cp=2,tp=2,sp=on,dp_shard=4,sharding=zero1", "cp=2,tp=2,sp=on,dp_replicate=2,dp_shard=2,sharding=zero2",
      "cp=2,tp=2,sp=on,sharding=zero3", "cp=2,tp=2,sp=on,recompute=full"}},
    {"gpt2.json",
     "pp=2,tp=2,sp=off",
     {"pp=2,tp=2,sp=off,dp_replicate=2", "pp=2,tp=2,sp=off,dp_shard=4,sharding=zero3",
      "pp=2,tp=2,sp=off,recompute=selective"}},
    {"mixtral.json", "tp=2,sp=on", {"tp=2,sp=on,dp_replicate=2", "tp=2,sp=on,dp_shard=2,sharding=zero3"}},
};

static void open_first(parity *p, const bit_class *c)
{
    nd_error err = {.message = ""};
    nd_run *run = NULL;
    parity_open(p, c->model, ND_ELEM_F32, 8);
    p->options.program.batch_first = true;
    nd_layout layout = parity_layout(p, c->first);
    ND_ASSERT_OK(nd_run_create(&p->model, &layout, &p->train, &p->options, &run, &err));
    ND_ASSERT_OK(nd_run_steps(run, PARITY_STEPS, NULL, NULL, &err));
    nd_run_read_params(run, p->expected);
    nd_run_free(run);
}

static void test_splits_of_the_batch_give_the_same_bits(void)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        parity p;
        open_first(&p, &classes[i]);
        for (size_t k = 0; k < 10 && classes[i].others[k] != NULL; k++) {
            nd_error err = {.message = ""};
            parity_difference d = {0};
            nd_layout layout = parity_layout(&p, classes[i].others[k]);
            CU_ASSERT_TRUE(parity_compare(&p, &layout, NULL, &d, &err));
            CU_ASSERT_EQUAL(d.param_abs, 0.0);
        }
        parity_close(&p);
    }
}

static void test_without_the_tree_bits_differ(void)
{
    nd_error err = {.message = ""};
    parity p;
    parity_difference d = {0};
    open_first(&p, &classes[0]);
    p.options.program.batch_first = false;
    nd_layout layout = parity_layout(&p, "dp_replicate=4");
    CU_ASSERT_TRUE(parity_compare(&p, &layout, NULL, &d, &err));
    CU_ASSERT_TRUE(d.param_abs > 0.0);
    parity_close(&p);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_splits_of_the_batch_give_the_same_bits), ND_TEST(test_without_the_tree_bits_differ), {0}};
    return nd_test_main("bit equality", cases);
}
