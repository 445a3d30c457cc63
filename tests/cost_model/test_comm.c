#include <string.h>

#include "tests/cost_model/fixture.h"

static fixture f;

static void test_the_fixture_loads(void)
{
    fixture_make(&f, "llama-3.1-8b", "2x8xh100", "torch-fsdp2", 8192, 64);
}

static const nd_comm_line *find(const nd_comm_breakdown *comm, const char *part)
{
    for (int32_t i = 0; i < comm->count; i++) {
        if (strstr(comm->lines[i].name, part) != NULL) {
            return &comm->lines[i];
        }
    }
    return NULL;
}

static void test_one_gpu_sends_nothing(void)
{
    nd_comm_breakdown comm;
    nd_layout layout = fixture_layout(&f, "micro_batch=1");
    nd_estimate_comm(&f.context, &layout, &comm);
    CU_ASSERT_EQUAL(comm.count, 0);
}

static void test_fsdp_gathers_two_bytes_a_parameter_twice(void)
{
    nd_comm_breakdown comm;
    nd_layout layout = fixture_layout(&f, "dp_shard=16,sharding=zero3");
    nd_estimate_comm(&f.context, &layout, &comm);
    const nd_comm_line *gather = find(&comm, "weight all-gather");
    CU_ASSERT_PTR_NOT_NULL_FATAL(gather);
    double layer =
        (double)(f.context.params.attention_layer + f.context.params.norms_layer + f.context.params.dense_ffn_layer);
    ND_ASSERT_REL(gather->bytes, 2.0 * layer, 1e-12);
    ND_ASSERT_REL(gather->calls_per_step, 2.0 * 32.0 * (double)layout.grad_accum, 1e-12);
    CU_ASSERT_EQUAL(gather->group.ranks, 16);
    CU_ASSERT_STRING_EQUAL(gather->link, "network");
}

static void test_every_axis_of_the_seeds_layout_communicates(void)
{
    nd_comm_breakdown comm;
    nd_layout layout = fixture_layout(&f, "dp_replicate=2,dp_shard=2,cp=2,tp=2,sp=on,sharding=zero3");
    nd_estimate_comm(&f.context, &layout, &comm);
    const nd_comm_line *tp = find(&comm, "tp all-gather");
    const nd_comm_line *ring = find(&comm, "cp ring");
    const nd_comm_line *replicas = find(&comm, "(replicas)");
    CU_ASSERT_PTR_NOT_NULL_FATAL(tp);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ring);
    CU_ASSERT_PTR_NOT_NULL_FATAL(replicas);
    ND_ASSERT_REL(tp->bytes, 2.0 * 4096.0 * 4096.0, 1e-12); /* T x hidden, bf16 */
    CU_ASSERT_STRING_EQUAL(tp->link, "nvlink");
    CU_ASSERT_STRING_EQUAL(ring->link, "nvlink");
    CU_ASSERT_STRING_EQUAL(replicas->link, "network");
    for (int32_t i = 0; i < comm.count; i++) {
        CU_ASSERT_TRUE(comm.lines[i].exposed_s <= comm.lines[i].total_s * 1.000001);
        CU_ASSERT_TRUE(comm.lines[i].call_s > 0.0);
    }
}

static void test_exposed_lines_add_up_to_the_step_time(void)
{
    const char *const layouts[] = {"dp_replicate=2,dp_shard=2,cp=2,tp=2,sp=on,sharding=zero3",
                                   "dp_shard=16,sharding=zero3", "dp_replicate=2,dp_shard=8,sharding=zero2",
                                   "dp_replicate=16"};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        nd_comm_breakdown comm;
        nd_layout layout = fixture_layout(&f, layouts[i]);
        nd_estimate estimate;
        double exposed = 0.0;
        nd_estimate_comm(&f.context, &layout, &comm);
        nd_estimate_layout(&f.context, &layout, &estimate);
        for (int32_t j = 0; j < comm.count; j++) {
            exposed += comm.lines[j].exposed_s;
        }
        ND_ASSERT_REL(exposed, estimate.time.exposed_comm_s, 1e-9);
    }
}

static void test_recompute_repeats_tensor_parallel_collectives(void)
{
    nd_comm_breakdown none, full;
    nd_layout layout = fixture_layout(&f, "dp_shard=8,tp=2,sp=on,sharding=zero3");
    nd_estimate_comm(&f.context, &layout, &none);
    layout.recompute = ND_RECOMPUTE_FULL;
    nd_estimate_comm(&f.context, &layout, &full);
    const nd_comm_line *before = find(&none, "tp reduce-scatter");
    const nd_comm_line *after = find(&full, "tp reduce-scatter");
    CU_ASSERT_PTR_NOT_NULL_FATAL(before);
    CU_ASSERT_PTR_NOT_NULL_FATAL(after);
    CU_ASSERT_TRUE(after->calls_per_step > before->calls_per_step);
}

/* The lines are those of the stage that sets the pace, and of a balanced pipeline that is not the one with the head. */
static void test_lines_of_a_balanced_pipeline_are_of_the_busiest_stage(void)
{
    static fixture gemma;
    fixture_make(&gemma, "gemma-2-9b", "4x8xh100", "ndplan", 4096, 64);
    nd_comm_breakdown comm;
    nd_layout layout = fixture_layout(&gemma, "pp=4,tp=4,sp=on,dp_shard=2,sharding=zero1,split=balanced");
    nd_estimate estimate;
    double exposed = 0.0;
    nd_estimate_comm(&gemma.context, &layout, &comm);
    nd_estimate_layout(&gemma.context, &layout, &estimate);
    for (int32_t i = 0; i < comm.count; i++) {
        exposed += comm.lines[i].exposed_s;
    }
    ND_ASSERT_REL(exposed, estimate.time.exposed_comm_s, 1e-9);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_fixture_loads),
        ND_TEST(test_one_gpu_sends_nothing),
        ND_TEST(test_fsdp_gathers_two_bytes_a_parameter_twice),
        ND_TEST(test_every_axis_of_the_seeds_layout_communicates),
        ND_TEST(test_exposed_lines_add_up_to_the_step_time),
        ND_TEST(test_recompute_repeats_tensor_parallel_collectives),
        ND_TEST(test_lines_of_a_balanced_pipeline_are_of_the_busiest_stage),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/comm", cases);
}
