/* Counts against the published totals of data/param_counts.csv, exactly. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/models/model_fixture.h"

enum { COLUMNS = 6, LINE_BYTES = 512 };
enum { MODEL, TOTAL, ACTIVE, PUBLISHED, EXPLAINED };

typedef struct count_row {
    char text[LINE_BYTES];
    const char *field[COLUMNS];
} count_row;

static void split_row(count_row *row)
{
    char *cursor = row->text;
    cursor[strcspn(cursor, "\n")] = '\0';
    for (int i = 0; i < COLUMNS; i++) {
        row->field[i] = cursor;
        cursor += strcspn(cursor, ",");
        if (*cursor == ',') {
            *cursor++ = '\0';
        }
    }
}

/* Calls `check` for each row; the number of rows. */
static int each_row(void (*check)(const count_row *row))
{
    FILE *file = fopen(ND_TEST_DATA "/param_counts.csv", "r");
    count_row row;
    int rows = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_PTR_NOT_NULL(fgets(row.text, sizeof row.text, file)); /* header */
    while (fgets(row.text, sizeof row.text, file) != NULL) {
        split_row(&row);
        check(&row);
        rows++;
    }
    fclose(file);
    return rows;
}

static nd_model_spec load_row(const count_row *row)
{
    char path[LINE_BYTES + sizeof ND_TEST_DATA];
    bool own_config = strncmp(row->field[MODEL], "configs/", 8) == 0;
    (void)snprintf(path, sizeof path, "%s%s", own_config ? ND_TEST_DATA "/" : "", row->field[MODEL]);
    return load_or_fail(path);
}

static void assert_count(const char *model, const char *what, int64_t got, int64_t expected)
{
    if (got != expected) {
        fprintf(stderr, "%s: %s is %lld, expected %lld\n", model, what, (long long)got, (long long)expected);
    }
    CU_ASSERT_EQUAL(got, expected);
}

static void check_total(const count_row *row)
{
    nd_model_spec spec = load_row(row);
    nd_param_counts n = nd_model_params(&spec);
    assert_count(row->field[MODEL], "total", n.total, strtoll(row->field[TOTAL], NULL, 10));
    if (row->field[ACTIVE][0] != '\0') {
        assert_count(row->field[MODEL], "active", n.active, strtoll(row->field[ACTIVE], NULL, 10));
    } else {
        assert_count(row->field[MODEL], "active", n.active, n.total);
    }
}

/* What the published checkpoint has beyond the model that trains. */
static int64_t explained_surplus(const char *why, const nd_model_spec *spec)
{
    if (strcmp(why, "inv_freq") == 0) {
        return spec->layers * spec->head_dim / 2; /* rotary frequencies saved as buffers */
    }
    if (strcmp(why, "head_stored") == 0) {
        return spec->vocab * spec->hidden; /* the tied head saved again */
    }
    if (strcmp(why, "gemma3_vision") == 0) {
        return INT64_C(416866032) + 1152 * (spec->hidden + 1); /* vision tower, projector */
    }
    if (strcmp(why, "llama4_vision") == 0) {
        return INT64_C(871932416); /* the same in Scout and Maverick */
    }
    CU_ASSERT_STRING_EQUAL(why, "exact");
    return 0;
}

static int published_rows;

static void check_published(const count_row *row)
{
    if (strcmp(row->field[EXPLAINED], "unpublished") == 0) {
        CU_ASSERT_STRING_EQUAL(row->field[PUBLISHED], "");
        return;
    }
    nd_model_spec spec = load_row(row);
    int64_t surplus = explained_surplus(row->field[EXPLAINED], &spec);
    assert_count(row->field[MODEL], "published total", nd_model_params(&spec).total + surplus,
                 strtoll(row->field[PUBLISHED], NULL, 10));
    published_rows++;
}

static void every_row_has_its_total_and_active_count(void)
{
    CU_ASSERT_EQUAL(each_row(check_total), 71);
}

static void published_totals_differ_only_by_what_explains_them(void)
{
    published_rows = 0;
    CU_ASSERT_EQUAL(each_row(check_published), 71);
    CU_ASSERT_EQUAL(published_rows, 60);
}

static void deepseek_v3_is_its_published_count_without_correction_values(void)
{
    nd_model_spec spec = load_or_fail("deepseek-v3");
    nd_param_counts n = nd_model_params(&spec);
    CU_ASSERT_EQUAL(n.total, INT64_C(671026404352));
    CU_ASSERT_EQUAL(n.total + n.moe_layers * spec.experts, INT64_C(671026419200));
}

static void parts_of_every_builtin_add_up(void)
{
    CU_ASSERT_TRUE(nd_model_builtin_count() >= 50);
    for (size_t i = 0; i < nd_model_builtin_count(); i++) {
        nd_model_spec spec = load_or_fail(nd_model_builtin_name(i));
        nd_param_counts n = nd_model_params(&spec);
        int64_t dense_layers = spec.layers - n.moe_layers;
        int64_t sum = n.input_embedding + n.positions + n.head + n.final_norm +
                      spec.layers * (n.attention_layer + n.norms_layer) + dense_layers * n.dense_ffn_layer +
                      n.moe_layers * (n.router_layer + n.shared_layer + spec.experts * n.expert);
        assert_count(spec.name, "sum of parts", sum, n.total);
        CU_ASSERT_TRUE(n.active <= n.total && n.active > 0);
    }
}

static void a_tiny_llama_counts_as_by_hand(void)
{
    nd_model_spec spec = parse_or_fail(TINY("llama", ",\"num_key_value_heads\":2,\"attention_bias\":true,"
                                                     "\"mlp_bias\":true"));
    nd_param_counts n = nd_model_params(&spec);
    CU_ASSERT_EQUAL(n.attention_layer, 4096 + 2048 + 4096 + 64 + 32 + 64);
    CU_ASSERT_EQUAL(n.dense_ffn_layer, 3 * 64 * 128 + 2 * 128 + 64);
    CU_ASSERT_EQUAL(n.norms_layer, 128);
    CU_ASSERT_EQUAL(n.total, 128064 + 4 * (n.attention_layer + n.dense_ffn_layer + n.norms_layer));
}

static void check_refuses_inconsistent_specs(void)
{
    nd_error err = {0};
    nd_model_spec good = load_or_fail("qwen3-30b-a3b");
    CU_ASSERT_EQUAL(nd_model_check(&good, &err), ND_OK);
    nd_model_spec bad = good;
    bad.kv_heads = 3;
    CU_ASSERT_EQUAL(nd_model_check(&bad, &err), ND_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.message, "heads 32 is no multiple of kv_heads 3");
    bad = good;
    bad.experts_topk = 129;
    CU_ASSERT_EQUAL(nd_model_check(&bad, &err), ND_EINVAL);
    CU_ASSERT_STRING_EQUAL(err.message, "experts_topk is 129; it must be from 1 to 128");
    bad = good;
    bad.layer_kinds[0].layers = 47;
    CU_ASSERT_EQUAL(nd_model_check(&bad, &err), ND_EINVAL);
    bad = good;
    bad.kind_of_layer[5] = 7;
    CU_ASSERT_EQUAL(nd_model_check(&bad, &err), ND_EINVAL);
    bad = good;
    bad.hidden = 0;
    CU_ASSERT_EQUAL(nd_model_check(&bad, NULL), ND_EINVAL);
    bad = good;
    bad.experts = 65536;
    bad.moe_ffn_hidden = 10000000;
    bad.hidden = 1000000;
    CU_ASSERT_EQUAL(nd_model_check(&bad, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "parameters, more than the 1e+15 allowed");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(every_row_has_its_total_and_active_count),
        ND_TEST(published_totals_differ_only_by_what_explains_them),
        ND_TEST(deepseek_v3_is_its_published_count_without_correction_values),
        ND_TEST(parts_of_every_builtin_add_up),
        ND_TEST(a_tiny_llama_counts_as_by_hand),
        ND_TEST(check_refuses_inconsistent_specs),
        {NULL, NULL},
    };
    return nd_test_main("models.params", cases);
}
