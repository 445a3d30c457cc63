/* What the planner may suggest can be built into programs: the rules of both agree. */
#include <stdio.h>
#include <string.h>

#include "cost_model/split.h"
#include "planner/constraints.h"
#include "program/program.h"
#include "tests/nd_test.h"
#include "tests/planner/planner_fixture.h"

enum { DRAWS = 60000, BUILT_EVERY = 50 };

static planner_fixture fixture;
static int uneven_slices;

/* A fixed linear congruential generator: the same layouts on every machine. */
static int32_t draw(uint32_t *state, int32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (int32_t)((*state >> 16) % (uint32_t)below);
}

/* Degrees whose product is the number of GPUs: each prime factor goes to one axis. */
static void draw_mesh(uint32_t *state, nd_layout *layout)
{
    int64_t rest = fixture.cluster.gpus;
    for (int32_t factor = 2; rest > 1; factor++) {
        for (; rest % factor == 0; rest /= factor) {
            layout->size[draw(state, ND_AXIS_COUNT)] *= factor;
        }
    }
}

static nd_layout draw_layout(uint32_t *state)
{
    nd_layout layout = nd_layout_single();
    draw_mesh(state, &layout);
    layout.ep = fixture.model.experts > 0 ? 1 << draw(state, 4) : 1;
    layout.schedule = (nd_schedule)draw(state, ND_SCHEDULE_COUNT);
    layout.vpp = layout.schedule == ND_SCHEDULE_INTERLEAVED ? 2 + draw(state, 2) : 1;
    layout.split = (nd_split)draw(state, ND_SPLIT_COUNT);
    layout.micro_batch = 1 + draw(state, 3);
    int64_t once = layout.micro_batch * nd_layout_data_ranks(&layout);
    layout.grad_accum = fixture.train.global_batch_seqs / once > 0 ? fixture.train.global_batch_seqs / once : 1;
    layout.sequence_parallel = draw(state, 2) == 1;
    layout.cp_method = (nd_cp_method)draw(state, ND_CP_METHOD_COUNT);
    layout.sharding = (nd_sharding)draw(state, ND_SHARDING_COUNT);
    layout.recompute = (nd_recompute)draw(state, ND_RECOMPUTE_COUNT);
    layout.recompute_every = layout.recompute == ND_RECOMPUTE_EVERY ? 2 : 1;
    return layout;
}

static bool builds(const nd_layout *layout, nd_error *err)
{
    nd_program_options options = nd_program_options_default();
    nd_program *program = NULL;
    nd_block_prices prices;
    nd_stage_split split;
    nd_price_blocks(&fixture.context, layout, &prices);
    nd_split_stages(&fixture.context, layout, &prices, &split);
    options.chunks = nd_stage_split_chunks(&split);
    int64_t rank = nd_layout_ranks(layout) - 1;
    bool good = nd_program_create(&fixture.model, layout, &fixture.train, &options, rank, &program, err) == ND_OK;
    nd_program_free(program);
    return good;
}

/* What is legal and has no program: slices of tokens for the experts that are not equal (docs/EXECUTOR.md). */
static bool slices_unevenly(const nd_layout *layout)
{
    int64_t tokens = fixture.train.seq_len_tokens / layout->size[ND_AXIS_CP];
    return layout->ep > 1 && tokens % layout->size[ND_AXIS_TP] != 0;
}

static void check_model(const char *model, const char *cluster, int64_t seq_len_tokens, int64_t batch, int least)
{
    uint32_t state = 3;
    int legal = 0;
    fixture_init(&fixture, model, cluster, "ndplan", seq_len_tokens, batch);
    for (int i = 0; i < DRAWS; i++) {
        nd_error err = {0};
        nd_layout layout = draw_layout(&state);
        if (!nd_layout_allowed(&fixture.context, NULL, &layout, NULL, NULL)) {
            continue;
        }
        nd_status status = nd_program_supports(&fixture.model, &layout, &fixture.train, &err);
        if (slices_unevenly(&layout)) {
            CU_ASSERT_EQUAL(status, ND_EUNSUPPORTED);
            ND_ASSERT_CONTAINS(err.message, "a slice of the tokens");
            uneven_slices++;
            continue;
        }
        bool good = status == ND_OK;
        good = good && (legal++ % BUILT_EVERY != 0 || builds(&layout, &err));
        if (!good) {
            char text[256];
            (void)nd_layout_format(&layout, text, sizeof text);
            (void)fprintf(stderr, "%s %s: %s\n", fixture.model.name, text, err.message);
        }
        CU_ASSERT_TRUE(good);
    }
    if (legal < least) {
        (void)fprintf(stderr, "%s: %d legal layouts\n", fixture.model.name, legal);
    }
    CU_ASSERT_TRUE(legal >= least);
}

static void test_every_legal_layout_has_a_program_but_for_uneven_slices(void)
{
    check_model(fixture_dense, "2x8xh100", 256, 48, 100);
    check_model(fixture_dense, "3x4xh100", 240, 48, 100);
    check_model(fixture_moe, "2x8xh100", 256, 48, 100);
    check_model(fixture_moe, "3x4xh100", 90, 48, 100);
    CU_ASSERT_TRUE(uneven_slices > 0);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_every_legal_layout_has_a_program_but_for_uneven_slices),
                                         {NULL, NULL}};
    return nd_test_main("planner/executable", cases);
}
