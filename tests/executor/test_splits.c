/* Stages of unequal numbers of layers against one rank, and checkpoints that move between splits. */
#include <stdio.h>
#include <string.h>

#include "tests/executor/parity.h"
#include "tests/executor/state.h"
#include "tests/nd_test.h"

static bool holds(const parity *p, const nd_layout *layout, const nd_chunk_map *chunks)
{
    nd_error err = {0};
    parity_difference d = {0};
    nd_program_options program = p->options.program;
    program.chunks = *chunks;
    bool good = parity_compare(p, layout, &program, &d, &err) && parity_holds(&d) && d.peaks_equal;
    if (!good) {
        char text[256];
        (void)nd_layout_format(layout, text, sizeof text);
        (void)fprintf(stderr, "%s: %s loss %.1e parameter %.1e (%s)\n", text, err.message, d.loss_abs, d.param_abs,
                      d.param);
    }
    return good;
}

/* Every way to cut the layers into the chunks of a layout, each with a layer at least. \return how many */
static int try_all(const parity *p, const nd_layout *layout, nd_chunk_map *chunks, int32_t chunk)
{
    int32_t layers = (int32_t)p->model.layers;
    if (chunk == chunks->chunks) {
        chunks->first[chunk] = layers;
        CU_ASSERT_TRUE(holds(p, layout, chunks));
        return 1;
    }
    int tried = 0;
    int32_t first = chunk == 0 ? 0 : chunks->first[chunk - 1] + 1;
    int32_t last = chunk == 0 ? 0 : layers - (chunks->chunks - chunk);
    for (int32_t start = first; start <= last; start++) {
        chunks->first[chunk] = start;
        tried += try_all(p, layout, chunks, chunk + 1);
    }
    return tried;
}

static void check_all(const parity *p, const char *text, int expected)
{
    nd_layout layout = parity_layout(p, text);
    nd_chunk_map chunks = {.chunks = layout.size[ND_AXIS_PP] * layout.vpp};
    CU_ASSERT_EQUAL(try_all(p, &layout, &chunks, 0), expected);
}

static void test_any_split_gives_what_one_rank_gives(void)
{
    parity p;
    parity_open(&p, "deep.json", ND_ELEM_F64, 8);
    check_all(&p, "pp=2,dp_shard=2,sharding=zero3", 6);
    check_all(&p, "pp=2,schedule=zero_bubble,dp_replicate=2", 6);
    check_all(&p, "pp=3,schedule=gpipe,tp=2,sp=on", 15);
    check_all(&p, "pp=2,vpp=2,schedule=interleaved,recompute=every:2", 20);
    check_all(&p, "pp=2,vpp=3,schedule=interleaved,dp_shard=2,sharding=zero2", 6);
    parity_close(&p);
}

/* What `ndplan run` makes of split=balanced. */
static void test_balanced_splits_give_what_one_rank_gives(void)
{
    static const char *const texts[] = {
        "pp=3,split=balanced,cp=2,sharding=none",
        "pp=4,split=balanced,dp_shard=2,sharding=zero3",
        "pp=5,split=balanced,schedule=gpipe",
        "pp=6,split=balanced,schedule=zero_bubble,recompute=full",
        "pp=2,vpp=2,schedule=interleaved,split=balanced,tp=2",
        "pp=2,vpp=3,schedule=interleaved,split=balanced,cp=2,sharding=zero1",
        "pp=3,vpp=2,schedule=interleaved,split=balanced,dp_shard=2,sharding=zero3",
    };
    parity p;
    parity_open(&p, "deep.json", ND_ELEM_F64, 6);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        nd_layout layout = parity_layout(&p, texts[i]);
        nd_chunk_map chunks = split_of(&p.model, &layout, &p.train);
        CU_ASSERT_EQUAL_FATAL(chunks.chunks, layout.size[ND_AXIS_PP] * layout.vpp);
        CU_ASSERT_TRUE(holds(&p, &layout, &chunks));
    }
    parity_close(&p);
}

static void check_move(const char *from, const char *to)
{
    static const char *const directory = "test_splits.dir";
    nd_error err = {0};
    state_remove(directory);
    nd_run *saved = state_run("deep.json", from, ND_ELEM_F64);
    nd_run *moved = state_run("deep.json", to, ND_ELEM_F64);
    CU_ASSERT_FATAL(saved != NULL && moved != NULL);
    state_steps(saved, 2);
    ND_ASSERT_OK(nd_run_save(saved, directory, 0, &err));
    ND_ASSERT_OK(nd_run_resume(moved, directory, NULL, &err));
    CU_ASSERT_TRUE(state_near(saved, moved, 0.0, NULL));
    state_steps(saved, 2);
    state_steps(moved, 2);
    CU_ASSERT_TRUE(state_near(saved, moved, 1e-11, NULL));
    nd_run_free(saved);
    nd_run_free(moved);
    state_remove(directory);
}

static void test_checkpoints_move_between_splits(void)
{
    check_move("pp=3,split=balanced", "pp=3");
    check_move("pp=5,split=balanced", "dp_shard=4,sharding=zero3");
    check_move("dp_shard=2,tp=2,sharding=zero2", "pp=4,split=balanced,schedule=gpipe");
    check_move("pp=2,vpp=2,schedule=interleaved,split=balanced", "pp=3,split=balanced,dp_shard=2,sharding=zero1");
    check_move("pp=3,split=balanced", "pp=2,vpp=3,schedule=interleaved,split=balanced");
}

/* The splits of these tests must differ from the even ones to prove anything. */
static void test_the_splits_are_uneven(void)
{
    static const char *const texts[] = {"pp=3,split=balanced", "pp=3,vpp=2,schedule=interleaved,split=balanced"};
    parity p;
    int differ = 0;
    parity_open(&p, "deep.json", ND_ELEM_F64, 6);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        nd_layout layout = parity_layout(&p, texts[i]);
        nd_chunk_map even = nd_chunk_map_even(&p.model, &layout);
        nd_chunk_map balanced = split_of(&p.model, &layout, &p.train);
        differ += memcmp(even.first, balanced.first, (size_t)(even.chunks + 1) * sizeof even.first[0]) != 0;
    }
    CU_ASSERT_EQUAL(differ, 2);
    parity_close(&p);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_any_split_gives_what_one_rank_gives),
        ND_TEST(test_balanced_splits_give_what_one_rank_gives),
        ND_TEST(test_checkpoints_move_between_splits),
        ND_TEST(test_the_splits_are_uneven),
        {NULL, NULL},
    };
    return nd_test_main("executor/splits", cases);
}
