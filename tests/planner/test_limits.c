/* Limits are tight: the value is reached, the next one is not, and brute force finds the same. */
#include <stdlib.h>
#include <string.h>

#include "planner/limits.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

static planner_fixture fixture;
static nd_limit limit; /* too large for the stack to be sure of it */

static nd_task task_of(const char *pins)
{
    nd_error err;
    nd_task task = {.context = &fixture.context, .pin = nd_layout_single()};
    if (pins[0] != '\0') {
        ND_ASSERT_OK(nd_layout_parse(pins, &task.pin, &task.pinned, &err));
    }
    return task;
}

static nd_task whole_layout(const char *text)
{
    nd_task task = task_of(text);
    bool accum = (task.pinned & nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM)) != 0;
    task.whole_layout = true;
    task.pinned = (1u << ND_LAYOUT_KEY_COUNT) - 1u;
    task.pinned &= accum ? ~0u : ~nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM);
    return task;
}

/* One search of everything, on its own path: does something fit as far as can be expected, and surely? */
typedef struct outcome {
    bool fits, surely;
} outcome;

static outcome search_all(const nd_cluster_spec *cluster, const nd_train_spec *train, uint32_t pinned,
                          const nd_layout *pin)
{
    nd_error err;
    nd_cost_context context;
    nd_plan_list list = {0};
    nd_search_options options = nd_search_options_default();
    outcome out = {false, false};
    options.pinned = pinned;
    options.pin = *pin;
    options.top = ND_PLANS_MAX;
    ND_ASSERT_OK(
        nd_cost_context_init(&fixture.model, cluster, train, &fixture.stack, &fixture.calibration, &context, &err));
    if (nd_search(&context, NULL, &options, &list, &err) != ND_OK) {
        return out;
    }
    for (int32_t i = 0; i < list.count; i++) {
        const nd_memory_breakdown *memory = &list.plans[i].estimate.memory;
        out.fits = out.fits || (memory->verdict != ND_VERDICT_NO && memory->peak_bytes <= memory->capacity_bytes);
        out.surely = out.surely || list.plans[i].estimate.memory.verdict == ND_VERDICT_FITS;
    }
    nd_plan_list_free(&list);
    return out;
}

static outcome at_seq_len(int64_t tokens, uint32_t pinned, nd_layout pin)
{
    nd_train_spec train = fixture.train;
    train.seq_len_tokens = tokens;
    pin.micro_batch = 1;
    return search_all(&fixture.cluster, &train, pinned | nd_layout_key_bit(ND_LAYOUT_KEY_MICRO_BATCH), &pin);
}

static outcome at_micro_batch(int64_t value, int64_t batch)
{
    nd_train_spec train = fixture.train;
    nd_layout pin = nd_layout_single();
    train.global_batch_seqs = batch;
    pin.micro_batch = (int32_t)value;
    return search_all(&fixture.cluster, &train, nd_layout_key_bit(ND_LAYOUT_KEY_MICRO_BATCH), &pin);
}

static outcome at_gpus(int64_t gpus, int64_t batch)
{
    nd_error err;
    nd_cluster_spec cluster;
    nd_train_spec train = fixture.train;
    nd_layout pin = nd_layout_single();
    train.global_batch_seqs = batch;
    if (nd_cluster_resize_gpus(&fixture.cluster, gpus, &cluster, &err) != ND_OK) {
        return (outcome){false, false};
    }
    return search_all(&cluster, &train, 0, &pin);
}

static void check_plan(const nd_point *point, const nd_plan *plan, bool surely)
{
    nd_error err;
    nd_cost_context context;
    nd_estimate estimate;
    nd_task task = task_of("");
    ND_ASSERT_OK(nd_point_context(&task, point, &context, &err));
    CU_ASSERT_TRUE(nd_layout_allowed(&context, NULL, &plan->layout, NULL, NULL));
    nd_estimate_layout(&context, &plan->layout, &estimate);
    ND_ASSERT_REL(estimate.memory.peak_bytes, plan->estimate.memory.peak_bytes, 1e-12);
    CU_ASSERT_TRUE(estimate.memory.verdict != ND_VERDICT_NO);
    CU_ASSERT_EQUAL(estimate.memory.verdict == ND_VERDICT_FITS, surely);
}

static void check_seq_len(const char *pins)
{
    nd_error err;
    nd_task task = task_of(pins);
    ND_ASSERT_OK(nd_limit_seq_len(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_sure && limit.has_possible && limit.has_beyond);
    check_plan(&limit.sure, &limit.sure.sure, true);
    check_plan(&limit.possible, &limit.possible.best, false);
    CU_ASSERT_TRUE(at_seq_len(limit.sure.value, task.pinned, task.pin).surely);
    CU_ASSERT_FALSE(at_seq_len(limit.sure.value + limit.step, task.pinned, task.pin).surely);
    CU_ASSERT_TRUE(at_seq_len(limit.possible.value, task.pinned, task.pin).fits);
    CU_ASSERT_FALSE(at_seq_len(limit.possible.value + limit.step, task.pinned, task.pin).fits);
    CU_ASSERT_EQUAL(limit.beyond.value, limit.possible.value + limit.step);
    CU_ASSERT_TRUE(limit.beyond.has_closest);
    CU_ASSERT_EQUAL(limit.sure.value % ND_LIMIT_SEQ_LEN_STEP, 0);
}

static void test_the_longest_sequence_fits_and_one_step_more_does_not(void)
{
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 4096, 8);
    check_seq_len("");
    check_seq_len("tp=2");
    check_seq_len("cp=4,recompute=none");
}

static void test_a_whole_layout_stays_as_it_is(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 4096, 8);
    nd_task task = whole_layout("dp_shard=8,micro_batch=1,sharding=zero3,recompute=full");
    ND_ASSERT_OK(nd_limit_seq_len(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_sure);
    nd_layout found = limit.sure.sure.layout;
    CU_ASSERT_EQUAL(found.grad_accum, 1);
    CU_ASSERT_EQUAL(found.size[ND_AXIS_DP_SHARD], 8);
    CU_ASSERT_EQUAL(found.recompute, ND_RECOMPUTE_FULL);
    CU_ASSERT_TRUE(at_seq_len(limit.sure.value, task.pinned, task.pin).surely);
    CU_ASSERT_FALSE(at_seq_len(limit.sure.value + limit.step, task.pinned, task.pin).surely);
    ND_ASSERT_OK(nd_limit_gpus(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_sure);
    CU_ASSERT_EQUAL(limit.sure.sure.layout.size[ND_AXIS_DP_SHARD], limit.sure.value);
    CU_ASSERT_EQUAL(limit.sure.sure.layout.sharding, ND_SHARDING_ZERO3);
}

static void test_a_step_is_what_cp_divides(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "3x8xh100", "ndplan", 4096, 24);
    nd_task task = task_of("cp=3");
    ND_ASSERT_OK(nd_limit_seq_len(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_sure);
    CU_ASSERT_EQUAL(limit.step % 3072, 0);
    CU_ASSERT_EQUAL(limit.sure.value % limit.step, 0);
}

static void test_short_sequences_are_found_where_1024_tokens_do_not_fit(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "8xa100-40gb", "ndplan", 4096, 8);
    nd_task task = task_of("tp=1,pp=1,cp=1,sharding=zero3,recompute=none,micro_batch=16");
    fixture.train.global_batch_seqs = 128;
    fixture_refresh(&fixture);
    ND_ASSERT_OK(nd_limit_seq_len(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_possible || limit.has_sure);
    const nd_point *found = limit.has_possible ? &limit.possible : &limit.sure;
    CU_ASSERT_TRUE(found->value < ND_LIMIT_SEQ_LEN_STEP);
    CU_ASSERT_EQUAL(limit.step, ND_LIMIT_SEQ_LEN_FINE_STEP);
}

static void test_the_largest_micro_batch_fits_and_one_more_does_not(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 8192, 8);
    nd_task task = task_of("");
    ND_ASSERT_OK(nd_limit_micro_batch(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_sure && limit.has_possible);
    int64_t gpus = fixture.cluster.gpus;
    int64_t value = limit.sure.value;
    check_plan(&limit.sure, &limit.sure.sure, true);
    CU_ASSERT_TRUE(at_micro_batch(value, value * gpus).surely);
    CU_ASSERT_FALSE(at_micro_batch(value + 1, (value + 1) * gpus).surely);
    CU_ASSERT_FALSE(at_micro_batch(limit.possible.value + 1, (limit.possible.value + 1) * gpus).fits);
    CU_ASSERT_TRUE_FATAL(limit.has_fastest);
    CU_ASSERT_NOT_EQUAL(limit.fastest.value, value);
    CU_ASSERT_TRUE(limit.fastest.best.estimate.time.step_s < limit.sure.sure.estimate.time.step_s);
    CU_ASSERT_EQUAL(nd_layout_global_batch_seqs(&limit.fastest.best.layout),
                    nd_layout_global_batch_seqs(&limit.sure.sure.layout));
}

static void test_with_a_given_batch_only_its_divisors_count(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 8192, 96);
    nd_task task = task_of("");
    task.batch_given = true;
    ND_ASSERT_OK(nd_limit_micro_batch(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_sure);
    for (int64_t value = limit.sure.value + 1; value <= 96; value++) {
        CU_ASSERT_FALSE(96 % value == 0 && at_micro_batch(value, 96).surely);
    }
    CU_ASSERT_TRUE(at_micro_batch(limit.sure.value, 96).surely);
}

/* The fewest GPUs by trying them all. */
static int64_t fewest_by_force(bool surely, int64_t fixed_batch, int64_t most)
{
    for (int64_t gpus = 1; gpus <= most; gpus++) {
        outcome found = at_gpus(gpus, fixed_batch > 0 ? fixed_batch : gpus);
        if (surely ? found.surely : found.fits) {
            return gpus;
        }
    }
    return 0;
}

static void check_gpus(const char *model, const char *cluster, int64_t seq_len_tokens, int64_t fixed_batch)
{
    nd_error err;
    fixture_init(&fixture, model, cluster, "ndplan", seq_len_tokens, fixed_batch > 0 ? fixed_batch : 8);
    nd_task task = task_of("");
    task.batch_given = fixed_batch > 0;
    ND_ASSERT_OK(nd_limit_gpus(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_sure);
    CU_ASSERT_EQUAL(limit.sure.value, fewest_by_force(true, fixed_batch, limit.sure.value));
    const nd_point *possible = limit.has_possible ? &limit.possible : &limit.sure;
    CU_ASSERT_EQUAL(possible->value, fewest_by_force(false, fixed_batch, limit.sure.value));
    check_plan(&limit.sure, &limit.sure.sure, true);
    CU_ASSERT_TRUE(!limit.has_beyond || limit.beyond.value < possible->value);
}

static void test_the_fewest_gpus_are_those_of_brute_force(void)
{
    check_gpus("llama-3.1-8b", "8xh100", 4096, 0);
    check_gpus("llama-3.1-8b", "4xa100-40gb", 8192, 0);
    check_gpus("llama-3.1-70b", "8xh100", 4096, 0);
    check_gpus("llama-3.1-70b", "8xh100", 4096, 10);
    check_gpus("llama-3.1-70b", "a100-40gb", 2048, 0);
}

static void test_more_gpus_do_not_help_where_nothing_divides(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 4000001, 8);
    nd_task task = task_of("");
    ND_ASSERT_OK(nd_limit_gpus(&task, &limit, &err));
    CU_ASSERT_FALSE(limit.has_sure || limit.has_possible);
    CU_ASSERT_TRUE_FATAL(limit.has_beyond && limit.has_earlier && limit.beyond.has_closest);
    CU_ASSERT_TRUE(limit.beyond.value >= 4 * limit.earlier.value);
    CU_ASSERT_TRUE(limit.beyond.closest.estimate.memory.peak_bytes >
                   0.99 * limit.earlier.closest.estimate.memory.peak_bytes);
}

static void test_a_node_without_a_known_network_is_not_multiplied(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-70b", "4xa100", "ndplan", 4096, 4);
    fixture.cluster.facts.nics_per_node = 0;
    nd_task task = task_of("");
    ND_ASSERT_OK(nd_limit_gpus(&task, &limit, &err));
    CU_ASSERT_FALSE(limit.has_sure || limit.has_possible);
    CU_ASSERT_TRUE_FATAL(limit.has_beyond && limit.beyond.has_closest);
    CU_ASSERT_EQUAL(limit.beyond.value, 4);
    ND_ASSERT_CONTAINS(limit.beyond.reason, "network");
}

static void test_contradictory_pins_are_an_error(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "8xh100", "ndplan", 4096, 8);
    nd_task task = task_of("tp=3");
    CU_ASSERT_EQUAL(nd_limit_seq_len(&task, &limit, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "tp=3 does not divide the 8 GPUs");
    CU_ASSERT_EQUAL(nd_limit_micro_batch(&task, &limit, &err), ND_EINVAL);
}

/* Far above the limit layouts may still fit at the low end of their interval: that is no value to start from. */
static void test_a_borderline_value_is_expected_to_fit(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-8b", "1x8xh100", "ndplan", 8192, 8);
    nd_task task = whole_layout("dp_shard=8,sharding=zero3");
    ND_ASSERT_OK(nd_limit_seq_len(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_possible && limit.has_beyond);
    const nd_memory_breakdown *possible = &limit.possible.best.estimate.memory;
    const nd_memory_breakdown *beyond = &limit.beyond.closest.estimate.memory;
    CU_ASSERT_EQUAL(possible->verdict, ND_VERDICT_BORDERLINE);
    CU_ASSERT_TRUE(possible->peak_bytes <= possible->capacity_bytes);
    CU_ASSERT_TRUE(limit.beyond.has_closest);
    CU_ASSERT_EQUAL(beyond->verdict, ND_VERDICT_BORDERLINE);
    CU_ASSERT_TRUE(beyond->peak_bytes > beyond->capacity_bytes);
}

static void test_nothing_that_fits_names_the_closest(void)
{
    nd_error err;
    fixture_init(&fixture, "llama-3.1-70b", "h100", "ndplan", 4096, 1);
    nd_task task = task_of("");
    ND_ASSERT_OK(nd_limit_seq_len(&task, &limit, &err));
    CU_ASSERT_FALSE(limit.has_sure || limit.has_possible);
    CU_ASSERT_TRUE_FATAL(limit.has_beyond && limit.beyond.has_closest);
    CU_ASSERT_EQUAL(limit.beyond.value, ND_LIMIT_SEQ_LEN_STEP);
    ND_ASSERT_OK(nd_limit_micro_batch(&task, &limit, &err));
    CU_ASSERT_TRUE_FATAL(limit.has_beyond && limit.beyond.has_closest);
    CU_ASSERT_EQUAL(limit.beyond.value, 1);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_longest_sequence_fits_and_one_step_more_does_not),
        ND_TEST(test_a_whole_layout_stays_as_it_is),
        ND_TEST(test_a_step_is_what_cp_divides),
        ND_TEST(test_short_sequences_are_found_where_1024_tokens_do_not_fit),
        ND_TEST(test_the_largest_micro_batch_fits_and_one_more_does_not),
        ND_TEST(test_with_a_given_batch_only_its_divisors_count),
        ND_TEST(test_the_fewest_gpus_are_those_of_brute_force),
        ND_TEST(test_more_gpus_do_not_help_where_nothing_divides),
        ND_TEST(test_a_node_without_a_known_network_is_not_multiplied),
        ND_TEST(test_contradictory_pins_are_an_error),
        ND_TEST(test_a_borderline_value_is_expected_to_fit),
        ND_TEST(test_nothing_that_fits_names_the_closest),
        {NULL, NULL},
    };
    return nd_test_main("planner/limits", cases);
}
