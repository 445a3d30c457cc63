#include "program/placement.h"

#include <stdio.h>
#include <stdlib.h>

#include "program/program.h"
#include "tests/nd_test.h"

enum { TOKENS = 64, RANKS_MAX = 64, LAYOUTS = 150 };

/** One model of the executor's tests and, per element of every parameter, how many primary shards hold it. */
typedef struct fixture {
    nd_model_spec model;
    nd_param_list params;
    int64_t *first; /* of each parameter in `held` */
    int64_t total;
    uint8_t *held;
    uint32_t random;
} fixture;

static void fixture_open(fixture *f, const char *file)
{
    nd_error err = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", ND_TINY_MODELS, file);
    *f = (fixture){.random = 1};
    ND_ASSERT_OK(nd_model_load(path, false, &f->model, &err));
    nd_status status = nd_param_list_create(&f->model, &f->params, &err);
    CU_ASSERT_EQUAL_FATAL(status, ND_OK);
    f->first = calloc((size_t)f->params.count, sizeof *f->first);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->first);
    for (int32_t i = 0; i < f->params.count; i++) {
        f->first[i] = f->total;
        f->total += f->params.params[i].rows * f->params.params[i].cols;
    }
    f->held = calloc((size_t)f->total, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->held);
}

static void fixture_close(fixture *f)
{
    free(f->first);
    free(f->held);
    nd_param_list_free(&f->params);
}

static uint32_t draw(fixture *f, uint32_t choices)
{
    f->random = f->random * 1664525U + 1013904223U;
    return (f->random >> 8) % choices;
}

/* A layout that a program can be built for, by rejection; false when this try is none. */
static bool random_layout(fixture *f, nd_layout *layout)
{
    nd_error err;
    nd_layout l = nd_layout_single();
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        l.size[axis] = 1 + (int32_t)draw(f, axis == ND_AXIS_DP_REPLICATE ? 2 : axis == ND_AXIS_PP ? 3 : 8);
    }
    l.sharding = (nd_sharding)draw(f, ND_SHARDING_COUNT);
    l.cp_method = (nd_cp_method)draw(f, ND_CP_METHOD_COUNT);
    l.ep = f->model.experts > 0 ? 1 << draw(f, 4) : 1;
    if (l.size[ND_AXIS_PP] > 1 && draw(f, 3) == 0) {
        l.schedule = ND_SCHEDULE_INTERLEAVED;
        l.vpp = 2;
        l.grad_accum = l.size[ND_AXIS_PP];
    }
    nd_train_spec train = {.seq_len_tokens = TOKENS,
                           .global_batch_seqs = nd_layout_global_batch_seqs(&l),
                           .optimizer = ND_OPTIMIZER_ADAMW,
                           .base_bits = 16};
    *layout = l;
    return nd_layout_ranks(&l) <= RANKS_MAX && nd_program_supports(&f->model, &l, &train, &err) == ND_OK;
}

/** The runs of one unit as they arrive. */
typedef struct walk {
    fixture *f;
    const nd_unit *unit;
    int64_t first, end; /* flat elements asked for */
    int64_t next;       /* where the next run may start at the earliest */
    int64_t seen;
    bool count;
    bool good;
} walk;

static void see_run(void *user, const nd_piece *piece, int64_t flat, int64_t row, int64_t col, int64_t elements)
{
    walk *w = user;
    const nd_param *param = &w->f->params.params[piece->param];
    bool inside = flat >= w->next && flat >= w->first && flat + elements <= w->end && elements > 0;
    bool real = row >= 0 && row < param->rows && col >= 0 && col + elements <= param->cols;
    bool placed = flat - piece->offset == (row - piece->row_first) * piece->cols + (col - piece->col_first);
    w->good = w->good && inside && real && placed;
    w->next = flat + elements;
    w->seen += elements;
    for (int64_t i = 0; i < elements && w->count && piece->primary && w->good; i++) {
        w->f->held[w->f->first[piece->param] + row * param->cols + col + i]++;
    }
}

static int64_t valid_elements(const nd_placement *placement, const nd_unit *unit)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < unit->pieces; i++) {
        const nd_piece *piece = &placement->pieces[unit->first_piece + i];
        sum += piece->valid_rows * piece->cols;
    }
    return sum;
}

/* Every run of all shards once, in order; then this rank's own shard into the counts. */
static bool walk_unit(fixture *f, const nd_placement *placement, const nd_unit *unit, bool counts)
{
    walk w = {.f = f, .unit = unit, .good = true};
    for (int32_t s = 0; s < unit->shards; s++) {
        w.first = s * unit->shard_elements;
        w.end = w.first + unit->shard_elements;
        w.count = counts && s == unit->shard_index;
        nd_placement_runs(placement, unit, w.first, unit->shard_elements, see_run, &w);
    }
    bool whole = unit->shards * unit->shard_elements >= unit->elements && unit->shard_elements % 16 == 0;
    return w.good && whole && w.seen == valid_elements(placement, unit);
}

/* Pieces lie one after the other; the experts of one role too, as grouped products need them. */
static bool pieces_touch(const nd_placement *placement, const nd_unit *unit)
{
    int64_t at = 0;
    for (int32_t i = 0; i < unit->pieces; i++) {
        const nd_piece *piece = &placement->pieces[unit->first_piece + i];
        if (piece->offset != at) {
            return false;
        }
        at += piece->rows * piece->cols;
    }
    return at == unit->elements;
}

static bool experts_are_stacked(const fixture *f, const nd_placement *placement, const nd_unit *unit)
{
    for (int32_t i = 1; i < unit->pieces && unit->kind == ND_UNIT_EXPERTS; i++) {
        const nd_piece *pieces = &placement->pieces[unit->first_piece];
        const nd_param *before = &f->params.params[pieces[i - 1].param];
        const nd_param *now = &f->params.params[pieces[i].param];
        bool next_expert = now->role == before->role && now->expert == before->expert + 1 &&
                           pieces[i].rows == pieces[i - 1].rows && pieces[i].cols == pieces[i - 1].cols;
        if (!next_expert && !(now->role > before->role && now->expert <= before->expert)) {
            return false;
        }
    }
    return true;
}

static bool kv_heads_are_right(const fixture *f, const nd_layout *layout, const nd_placement *placement)
{
    int32_t coords[ND_AXIS_COUNT];
    nd_mesh_coords(layout, placement->rank, coords);
    int64_t tp = layout->size[ND_AXIS_TP];
    int64_t heads = f->model.kv_heads;
    int64_t first = coords[ND_AXIS_TP] * heads / tp;
    for (int32_t i = 0; i < placement->pieces_count; i++) {
        const nd_piece *piece = &placement->pieces[i];
        const nd_param *param = &f->params.params[piece->param];
        if (param->split == ND_PARAM_KV_HEADS && param->rows > 1 &&
            (piece->row_first != first * f->model.head_dim ||
             piece->rows != (tp > heads ? 1 : heads / tp) * f->model.head_dim)) {
            return false;
        }
    }
    return true;
}

/* With whole states the ranks of the shard group are copies: callers take the first. */
static bool counted(const fixture *f, const nd_layout *layout, const nd_unit *unit, int64_t rank)
{
    int32_t coords[ND_AXIS_COUNT];
    nd_mesh_coords(layout, rank, coords);
    nd_members group = nd_members_of(layout, f->model.kv_heads, unit->shard, rank);
    return coords[ND_AXIS_DP_REPLICATE] == 0 && (unit->shards > 1 || group.index == 0);
}

static bool place_rank(fixture *f, const nd_layout *layout, const nd_chunk_map *chunks, int64_t rank)
{
    nd_error err = {0};
    nd_placement placement;
    if (nd_placement_create(&f->model, &f->params, layout, chunks, rank, &placement, &err) != ND_OK) {
        return false;
    }
    bool good = kv_heads_are_right(f, layout, &placement);
    for (int32_t i = 0; i < placement.units_count; i++) {
        const nd_unit *unit = &placement.units[i];
        good = good && pieces_touch(&placement, unit) && experts_are_stacked(f, &placement, unit) &&
               walk_unit(f, &placement, unit, counted(f, layout, unit, rank));
    }
    nd_placement_free(&placement);
    return good;
}

static bool covers(fixture *f, const nd_layout *layout)
{
    nd_chunk_map chunks = nd_chunk_map_even(&f->model, layout);
    bool good = true;
    for (int64_t i = 0; i < f->total; i++) {
        f->held[i] = 0;
    }
    for (int64_t rank = 0; rank < nd_layout_ranks(layout); rank++) {
        good = good && place_rank(f, layout, &chunks, rank);
    }
    for (int64_t i = 0; i < f->total; i++) {
        good = good && f->held[i] == 1;
    }
    if (!good) {
        char text[256];
        (void)nd_layout_format(layout, text, sizeof text);
        (void)fprintf(stderr, "%s: %s\n", f->model.family, text);
    }
    return good;
}

static void test_every_element_has_one_primary_holder(void)
{
    static const char *const files[] = {"dense.json",   "tied.json", "gpt2.json", "gemma3.json",
                                        "mixtral.json", "moe.json",  "mla.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        fixture f;
        int placed = 0;
        fixture_open(&f, files[i]);
        for (int tries = 0; tries < 200000 && placed < LAYOUTS; tries++) {
            nd_layout layout;
            if (random_layout(&f, &layout)) {
                CU_ASSERT_TRUE(covers(&f, &layout));
                placed++;
            }
        }
        CU_ASSERT_EQUAL(placed, LAYOUTS);
        fixture_close(&f);
    }
}

static const nd_piece *piece_on(const fixture *f, const char *text, int64_t rank, nd_unit_kind kind, nd_role role,
                                nd_placement *placement, nd_layout *layout)
{
    nd_error err = {0};
    ND_ASSERT_OK(nd_layout_parse(text, layout, NULL, &err));
    nd_chunk_map chunks = nd_chunk_map_even(&f->model, layout);
    ND_ASSERT_OK(nd_placement_create(&f->model, &f->params, layout, &chunks, rank, placement, &err));
    const nd_unit *unit = nd_placement_unit(placement, kind, kind == ND_UNIT_EXPERTS ? 1 : -1);
    return unit == NULL ? NULL : nd_placement_piece(placement, &f->params, unit, role);
}

static void test_a_tied_embedding_is_on_both_ends_and_counts_on_the_first(void)
{
    fixture f;
    nd_placement placement;
    nd_layout layout;
    fixture_open(&f, "tied.json");
    const nd_piece *piece = piece_on(&f, "pp=4,sharding=none", 0, ND_UNIT_EMBED, ND_ROLE_EMBED, &placement, &layout);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    CU_ASSERT_TRUE(piece->primary);
    nd_placement_free(&placement);
    piece = piece_on(&f, "pp=4,sharding=none", 1, ND_UNIT_EMBED, ND_ROLE_EMBED, &placement, &layout);
    CU_ASSERT_PTR_NULL(piece);
    nd_placement_free(&placement);
    piece = piece_on(&f, "pp=4,sharding=none", 3, ND_UNIT_EMBED, ND_ROLE_EMBED, &placement, &layout);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    CU_ASSERT_FALSE(piece->primary);
    nd_placement_free(&placement);
    piece = piece_on(&f, "pp=4,sharding=none", 3, ND_UNIT_HEAD, ND_ROLE_HEAD, &placement, &layout);
    CU_ASSERT_PTR_NULL(piece);
    nd_placement_free(&placement);
    fixture_close(&f);
}

static void test_the_vocabulary_is_padded_to_a_multiple_of_tp(void)
{
    fixture f;
    nd_placement placement;
    nd_layout layout;
    fixture_open(&f, "dense.json"); /* 53 tokens: 4 x 14 = 56 rows */
    const nd_piece *piece = piece_on(&f, "tp=4", 3, ND_UNIT_HEAD, ND_ROLE_HEAD, &placement, &layout);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    CU_ASSERT_EQUAL(piece->row_first, 42);
    CU_ASSERT_EQUAL(piece->rows, 14);
    CU_ASSERT_EQUAL(piece->valid_rows, 11);
    nd_placement_free(&placement);
    fixture_close(&f);
}

static void test_an_ep_member_holds_its_experts_whole(void)
{
    fixture f;
    nd_placement placement;
    nd_layout layout;
    fixture_open(&f, "mla.json"); /* 8 experts of 16 x 32 */
    const nd_piece *piece = piece_on(&f, "dp_shard=4,tp=2,ep=4,sharding=zero3", 6, ND_UNIT_EXPERTS, ND_ROLE_EXPERT_GATE,
                                     &placement, &layout);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    CU_ASSERT_EQUAL(f.params.params[piece->param].expert, 4); /* rank 6 is member 2 of its four */
    CU_ASSERT_EQUAL(piece->rows, 16);
    CU_ASSERT_EQUAL(piece->cols, 32);
    const nd_unit *unit = nd_placement_unit(&placement, ND_UNIT_EXPERTS, 1);
    CU_ASSERT_EQUAL(unit->pieces, 2 * 3);
    CU_ASSERT_EQUAL(unit->shard, ND_MEMBERS_EXPERT_SHARD);
    CU_ASSERT_EQUAL(unit->shards, 2);
    nd_placement_free(&placement);
    fixture_close(&f);
}

static void test_chunks_take_the_layers_evenly_and_the_middle_ones_take_more(void)
{
    nd_error err = {0};
    nd_model_spec model;
    nd_layout layout;
    ND_ASSERT_OK(nd_model_load("llama-3.1-8b", false, &model, &err));
    ND_ASSERT_OK(nd_layout_parse("pp=5", &layout, NULL, &err));
    nd_chunk_map map = nd_chunk_map_even(&model, &layout);
    static const int32_t expected[] = {0, 6, 13, 20, 26, 32};
    CU_ASSERT_EQUAL_FATAL(map.chunks, 5);
    for (int i = 0; i <= 5; i++) {
        CU_ASSERT_EQUAL(map.first[i], expected[i]);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_element_has_one_primary_holder),
        ND_TEST(test_a_tied_embedding_is_on_both_ends_and_counts_on_the_first),
        ND_TEST(test_the_vocabulary_is_padded_to_a_multiple_of_tp),
        ND_TEST(test_an_ep_member_holds_its_experts_whole),
        ND_TEST(test_chunks_take_the_layers_evenly_and_the_middle_ones_take_more),
        {NULL, NULL},
    };
    return nd_test_main("program/placement", cases);
}
