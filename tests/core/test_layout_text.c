#include <stdlib.h>
#include <string.h>

#include "core/layout.h"
#include "tests/nd_test.h"

static void test_the_documented_example(void)
{
    nd_error err;
    nd_layout layout;
    uint32_t given = 0;
    ND_ASSERT_OK(
        nd_layout_parse("dp_replicate=2,dp_shard=2,cp=2,tp=2,micro_batch=1,recompute=full", &layout, &given, &err));
    CU_ASSERT_EQUAL(nd_layout_ranks(&layout), 16);
    CU_ASSERT_EQUAL(layout.size[ND_AXIS_PP], 1);
    CU_ASSERT_EQUAL(layout.recompute, ND_RECOMPUTE_FULL);
    CU_ASSERT_EQUAL(layout.sharding, ND_SHARDING_NONE);
    CU_ASSERT_EQUAL(given, 1u << ND_LAYOUT_KEY_DP_REPLICATE | 1u << ND_LAYOUT_KEY_DP_SHARD | 1u << ND_LAYOUT_KEY_CP |
                               1u << ND_LAYOUT_KEY_TP | 1u << ND_LAYOUT_KEY_MICRO_BATCH |
                               1u << ND_LAYOUT_KEY_RECOMPUTE);
}

static void test_every_key_reaches_its_field(void)
{
    nd_error err;
    nd_layout layout;
    uint32_t given = 0;
    ND_ASSERT_OK(nd_layout_parse("pp=2,dp_replicate=3,dp_shard=4,cp=5,tp=6,ep=8,vpp=7,sp=on,cp_method=ulysses,"
                                 "schedule=interleaved,micro_batch=9,grad_accum=10,sharding=zero2,recompute=every:4,"
                                 "offload=optimizer,split=balanced",
                                 &layout, &given, &err));
    CU_ASSERT_EQUAL(layout.size[ND_AXIS_PP], 2);
    CU_ASSERT_EQUAL(layout.size[ND_AXIS_DP_REPLICATE], 3);
    CU_ASSERT_EQUAL(layout.size[ND_AXIS_DP_SHARD], 4);
    CU_ASSERT_EQUAL(layout.size[ND_AXIS_CP], 5);
    CU_ASSERT_EQUAL(layout.size[ND_AXIS_TP], 6);
    CU_ASSERT_EQUAL(layout.ep, 8);
    CU_ASSERT_EQUAL(layout.vpp, 7);
    CU_ASSERT_TRUE(layout.sequence_parallel);
    CU_ASSERT_EQUAL(layout.cp_method, ND_CP_METHOD_ULYSSES);
    CU_ASSERT_EQUAL(layout.schedule, ND_SCHEDULE_INTERLEAVED);
    CU_ASSERT_EQUAL(layout.micro_batch, 9);
    CU_ASSERT_EQUAL(layout.grad_accum, 10);
    CU_ASSERT_EQUAL(layout.sharding, ND_SHARDING_ZERO2);
    CU_ASSERT_EQUAL(layout.recompute, ND_RECOMPUTE_EVERY);
    CU_ASSERT_EQUAL(layout.recompute_every, 4);
    CU_ASSERT_EQUAL(layout.offload, ND_OFFLOAD_OPTIMIZER);
    CU_ASSERT_EQUAL(layout.split, ND_SPLIT_BALANCED);
    CU_ASSERT_EQUAL(given, (1u << ND_LAYOUT_KEY_COUNT) - 1u);
}

static void test_blanks_and_the_short_form_of_every(void)
{
    nd_error err;
    nd_layout layout;
    ND_ASSERT_OK(nd_layout_parse(" tp = 8 , every:2", &layout, NULL, &err));
    CU_ASSERT_EQUAL(layout.size[ND_AXIS_TP], 8);
    CU_ASSERT_EQUAL(layout.recompute, ND_RECOMPUTE_EVERY);
    CU_ASSERT_EQUAL(layout.recompute_every, 2);
}

static void test_several_chunks_imply_the_interleaved_schedule(void)
{
    nd_error err;
    nd_layout layout;
    ND_ASSERT_OK(nd_layout_parse("pp=4,vpp=2", &layout, NULL, &err));
    CU_ASSERT_EQUAL(layout.schedule, ND_SCHEDULE_INTERLEAVED);
    CU_ASSERT_EQUAL(nd_layout_parse("pp=4,vpp=2,schedule=1f1b", &layout, NULL, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "vpp=2 contradicts schedule=1f1b");
    ND_ASSERT_OK(nd_layout_parse("pp=4,vpp=2,schedule=zero_bubble", &layout, NULL, &err));
    CU_ASSERT_EQUAL(layout.schedule, ND_SCHEDULE_ZERO_BUBBLE);
    ND_ASSERT_OK(nd_layout_parse("pp=4,schedule=gpipe", &layout, NULL, &err));
    CU_ASSERT_EQUAL(layout.schedule, ND_SCHEDULE_GPIPE);
}

static void test_bad_layouts_are_refused_with_the_reason(void)
{
    static const struct {
        const char *text;
        const char *message;
    } bad[] = {
        {"", "the layout is empty"},
        {"   ", "the layout is empty"},
        {"tp", "layout entry 'tp' is not key=value"},
        {"tp=", "layout entry 'tp=' is not key=value"},
        {"=8", "layout entry '=8' is not key=value"},
        {"tp=8,", "layout entry '' is not key=value"},
        {",tp=8", "layout entry '' is not key=value"},
        {"tp=8,,cp=2", "layout entry '' is not key=value"},
        {"tp=8 cp=2", "layout key tp must be a whole number"},
        {"tp=8;cp=2", "layout key tp must be a whole number"},
        {"tp=8=8", "layout key tp must be a whole number"},
        {"tp=0", "layout key tp must be from 1 to 1048576, got 0"},
        {"tp=-2", "layout key tp must be from 1 to 1048576, got -2"},
        {"pp=99999999999999999999", "layout key pp must be from 1 to 1048576, got 99999999999999999999"},
        {"cp=1.5", "layout key cp must be a whole number"},
        {"cp=nan", "layout key cp must be a whole number"},
        {"micro_batch=0", "layout key micro_batch must be from 1"},
        {"grad_accum=0", "layout key grad_accum must be from 1"},
        {"tp=8,tp=8", "layout key tp is given twice"},
        {"recompute=full,every:2", "layout key recompute is given twice"},
        {"dp_shrad=8", "did you mean 'dp_shard'?"},
        {"micro_batchs=8", "did you mean 'micro_batch'?"},
        {"TP=8", "unknown layout key 'TP'; did you mean 'tp'?"},
        {"dp=8", "unknown layout key 'dp'; use dp_replicate (whole copies) or dp_shard"},
        {"fsdp=8", "unknown layout key 'fsdp'; use dp_shard"},
        {"gradient_accumulation_steps=8", "use grad_accum"},
        {"banana=8", "the keys are pp, dp_replicate, dp_shard"},
        {"sp=yes", "layout key sp must be on or off, got 'yes'"},
        {"sharding=zero4", "layout key sharding must be one of none, zero1, zero2, zero3, got 'zero4'"},
        {"cp_method=rings", "layout key cp_method must be one of ring, allgather, ulysses, got 'rings'"},
        {"schedule=dualpipe",
         "layout key schedule must be one of 1f1b, interleaved, zero_bubble, gpipe, got 'dualpipe'"},
        {"split=equal", "layout key split must be one of even, balanced, got 'equal'"},
        {"offload=all", "layout key offload must be one of none, optimizer, params, activations, got 'all'"},
        {"recompute=every", "every:N (as every:4), got 'every'"},
        {"recompute=every:", "recompute=every:N must be a whole number"},
        {"recompute=every:0", "recompute=every:N must be from 1"},
        {"recompute=partial", "recompute must be none, selective, full or every:N"},
        {"dp_shard=1048576,dp_replicate=1048576", "the layout has more than 1073741824 ranks"},
        {"pp=1048576,tp=1048576,cp=1048576,dp_shard=1048576,dp_replicate=1048576", "more than 1073741824 ranks"},
        {"micro_batch=1048576,grad_accum=1099511627776,dp_shard=1024", "more than 1099511627776 sequences"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        nd_error err = {0};
        nd_layout layout = nd_layout_single();
        layout.ep = 42;
        uint32_t given = 42;
        CU_ASSERT_EQUAL(nd_layout_parse(bad[i].text, &layout, &given, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, bad[i].message);
        CU_ASSERT_EQUAL(layout.ep, 42);
        CU_ASSERT_EQUAL(given, 42);
    }
}

static void test_a_long_entry_is_refused_in_a_short_message(void)
{
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES + 1);
    CU_ASSERT_FATAL(text != NULL);
    memset(text, 'a', BYTES);
    text[BYTES] = '\0';
    nd_error err;
    nd_layout layout;
    CU_ASSERT_EQUAL(nd_layout_parse(text, &layout, NULL, &err), ND_EINVAL);
    text[1000] = '=';
    CU_ASSERT_EQUAL(nd_layout_parse(text, &layout, NULL, &err), ND_EINVAL);
    CU_ASSERT_TRUE(strlen(err.message) < 200);
    free(text);
}

static void test_format_leaves_out_what_is_one(void)
{
    nd_layout layout = nd_layout_single();
    char text[256];
    size_t length = nd_layout_format(&layout, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "micro_batch=1,grad_accum=1");
    CU_ASSERT_EQUAL(length, strlen(text));
    layout.size[ND_AXIS_DP_SHARD] = 8;
    layout.size[ND_AXIS_TP] = 2;
    layout.sequence_parallel = true;
    layout.sharding = ND_SHARDING_ZERO3;
    layout.recompute = ND_RECOMPUTE_EVERY;
    layout.recompute_every = 3;
    (void)nd_layout_format(&layout, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "dp_shard=8,tp=2,sp=on,micro_batch=1,grad_accum=1,sharding=zero3,recompute=every:3");
}

static void test_format_into_a_small_buffer_tells_the_length_needed(void)
{
    nd_layout layout = nd_layout_single();
    char text[8] = "???????";
    CU_ASSERT_EQUAL(nd_layout_format(&layout, text, sizeof text), strlen("micro_batch=1,grad_accum=1"));
    CU_ASSERT_STRING_EQUAL(text, "micro_b");
    CU_ASSERT_EQUAL(nd_layout_format(&layout, NULL, 0), strlen("micro_batch=1,grad_accum=1"));
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static int32_t random_size(unsigned *state, int32_t max)
{
    return next_random(state) % 2 == 0 ? 1 : (int32_t)(1 + next_random(state) % (unsigned)max);
}

static nd_layout random_layout(unsigned *state)
{
    nd_layout layout = nd_layout_single();
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        layout.size[axis] = random_size(state, 60);
    }
    layout.ep = random_size(state, 64);
    layout.vpp = random_size(state, 8);
    layout.micro_batch = random_size(state, 64);
    layout.grad_accum = random_size(state, 4096);
    layout.sequence_parallel = next_random(state) % 2 == 0;
    layout.cp_method = (nd_cp_method)(next_random(state) % ND_CP_METHOD_COUNT);
    layout.split = (nd_split)(next_random(state) % ND_SPLIT_COUNT);
    layout.schedule = layout.vpp > 1 ? (nd_schedule)(1 + next_random(state) % (ND_SCHEDULE_COUNT - 1))
                                     : (nd_schedule)(next_random(state) % ND_SCHEDULE_COUNT);
    layout.sharding = (nd_sharding)(next_random(state) % ND_SHARDING_COUNT);
    layout.recompute = (nd_recompute)(next_random(state) % ND_RECOMPUTE_COUNT);
    layout.recompute_every = layout.recompute == ND_RECOMPUTE_EVERY ? random_size(state, 8) : 1;
    layout.offload = (nd_offload)(next_random(state) % ND_OFFLOAD_COUNT);
    return layout;
}

static bool same_layout(const nd_layout *a, const nd_layout *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0 && a->ep == b->ep && a->vpp == b->vpp &&
           a->micro_batch == b->micro_batch && a->grad_accum == b->grad_accum &&
           a->sequence_parallel == b->sequence_parallel && a->cp_method == b->cp_method && a->schedule == b->schedule &&
           a->split == b->split && a->sharding == b->sharding && a->recompute == b->recompute &&
           a->recompute_every == b->recompute_every && a->offload == b->offload;
}

static void test_what_format_writes_parse_reads_back(void)
{
    unsigned state = 20240817;
    for (int round = 0; round < 5000; round++) {
        nd_error err;
        nd_layout layout = random_layout(&state);
        nd_layout back;
        char text[512];
        CU_ASSERT_TRUE_FATAL(nd_layout_format(&layout, text, sizeof text) < sizeof text);
        ND_ASSERT_OK(nd_layout_parse(text, &back, NULL, &err));
        CU_ASSERT_TRUE_FATAL(same_layout(&layout, &back));
    }
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_the_documented_example),
        ND_TEST(test_every_key_reaches_its_field),
        ND_TEST(test_blanks_and_the_short_form_of_every),
        ND_TEST(test_several_chunks_imply_the_interleaved_schedule),
        ND_TEST(test_bad_layouts_are_refused_with_the_reason),
        ND_TEST(test_a_long_entry_is_refused_in_a_short_message),
        ND_TEST(test_format_leaves_out_what_is_one),
        ND_TEST(test_format_into_a_small_buffer_tells_the_length_needed),
        ND_TEST(test_what_format_writes_parse_reads_back),
        {NULL, NULL},
    };
    return nd_test_main("core.layout_text", cases);
}
