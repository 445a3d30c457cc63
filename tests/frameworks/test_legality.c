/* The legality study, row by row: data/legality.txt says where each verdict comes from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frameworks/framework.h"
#include "tests/nd_test.h"

enum { FIELDS = 13, LINE_MAX_BYTES = 512 };

enum {
    FIELD_ID,
    FIELD_FRAMEWORK,
    FIELD_LAYOUT,
    FIELD_HEADS,
    FIELD_KV_HEADS,
    FIELD_LAYERS,
    FIELD_EXPERTS,
    FIELD_TIED,
    FIELD_SEQ,
    FIELD_ATTENTION,
    FIELD_VERDICT,
    FIELD_RULE
};

static int64_t number(const char *text)
{
    return strtoll(text, NULL, 10); /* our own data file */
}

static void split(char *line, char *fields[FIELDS])
{
    int count = 0;
    line[strcspn(line, "\n")] = '\0';
    for (char *at = line; count < FIELDS && at != NULL;) {
        fields[count++] = at;
        at = strchr(at, '|');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    CU_ASSERT_EQUAL_FATAL(count, FIELDS);
}

static nd_model_spec model_of(char *const fields[FIELDS])
{
    nd_model_spec model;
    memset(&model, 0, sizeof model);
    (void)snprintf(model.name, sizeof model.name, "example");
    (void)snprintf(model.family, sizeof model.family, "llama");
    model.heads = number(fields[FIELD_HEADS]);
    model.kv_heads = number(fields[FIELD_KV_HEADS]);
    model.layers = number(fields[FIELD_LAYERS]);
    model.experts = number(fields[FIELD_EXPERTS]);
    model.tied_embeddings = strcmp(fields[FIELD_TIED], "yes") == 0;
    model.tp_plan = ND_TP_PLAN_FULL;
    return model;
}

static void check_row(char *const fields[FIELDS])
{
    nd_error err;
    const nd_framework *framework = NULL;
    nd_layout layout;
    nd_train_spec train = {.seq_len_tokens = number(fields[FIELD_SEQ]), .global_batch_seqs = 64, .base_bits = 16};
    nd_model_spec model = model_of(fields);
    ND_ASSERT_OK(nd_framework_find(fields[FIELD_FRAMEWORK], &framework, &err));
    ND_ASSERT_OK(nd_layout_parse(fields[FIELD_LAYOUT], &layout, NULL, &err));
    ND_ASSERT_OK(nd_attention_parse(fields[FIELD_ATTENTION], &train.attention, &err));
    const char *rule = "";
    nd_refusal refusal;
    bool legal = framework->allows(&model, &layout, &train, &rule, &refusal);
    bool expected = strcmp(fields[FIELD_VERDICT], "legal") == 0;
    if (legal != expected || (!legal && strcmp(rule, fields[FIELD_RULE]) != 0)) {
        fprintf(stderr, "%s: got %s %s\n", fields[FIELD_ID], legal ? "legal" : "illegal", legal ? "" : rule);
        CU_FAIL("another verdict or rule than the study's");
    }
    if (!legal) {
        CU_ASSERT_STRING_EQUAL(refusal.rule, fields[FIELD_RULE]);
        CU_ASSERT_TRUE(strlen(refusal.message) > 20);
        CU_ASSERT_TRUE(strlen(refusal.nearest) > 0);
    }
}

static void test_every_row_of_the_study_gets_its_verdict_and_rule(void)
{
    FILE *file = fopen(ND_TEST_DATA "/legality.txt", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    char line[LINE_MAX_BYTES];
    int rows = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[FIELDS] = {NULL};
        if (line[0] == '#') {
            continue;
        }
        split(line, fields);
        check_row(fields);
        rows++;
    }
    (void)fclose(file);
    CU_ASSERT_EQUAL(rows, 40);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_every_row_of_the_study_gets_its_verdict_and_rule),
        {NULL, NULL},
    };
    return nd_test_main("frameworks.legality", cases);
}
