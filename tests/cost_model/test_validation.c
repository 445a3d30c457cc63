/* Scores of hand-made sets: measured values are set from the predictions, so every error is known. */
#include "cost_model/validation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/fitted.h"
#include "tests/nd_test.h"

static const char header[] =
    "id,model,gpu,gpus,framework,precision,seq_len,micro_batch,global_batch,dp_shard,zero_stage,"
    "tp,recompute,flash_attn,step_time_s,peak_mem_gib,mem_kind,notes,grade\n";

/* A run of llama-3.1-8b on 8 GPUs; tp, micro_batch and precision tell runs apart. */
static void add_run(char *text, size_t text_bytes, const char *id, int tp, int micro_batch, const char *precision,
                    const char *notes, const char *grade)
{
    size_t used = strlen(text);
    (void)snprintf(text + used, text_bytes - used,
                   "%s,llama-3.1-8b,H100,8,torchtitan FSDP2,%s,4096,%d,64,%d,3,%d,full,1,1,40,peak allocated,%s,%s\n",
                   id, precision, micro_batch, 8 / tp, tp, notes, grade);
}

static nd_run_set *load(const char *text)
{
    static nd_run_set set; /* not to be copied: its entries borrow its calibrations */
    nd_error err = {.message = ""};
    nd_csv *csv = NULL;
    ND_ASSERT_OK(nd_csv_parse(text, strlen(text), "runs.csv", &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    ND_ASSERT_OK(nd_run_set_load(csv, NULL, &set, &err));
    CU_ASSERT_EQUAL(set.skipped_count, 0);
    nd_csv_free(csv);
    return &set;
}

/* Set what was measured so that run `index` has these errors. */
static void set_errors(nd_run_set *set, int64_t index, double error, double memory_error)
{
    nd_estimate estimate;
    nd_measured_run *run = &set->entries[index].run;
    nd_run_set_predict(set, index, &estimate);
    run->step_s = estimate.time.step_s / (1.0 + error);
    run->peak_bytes = nd_measured_memory(run, &estimate.memory) / (1.0 + memory_error);
}

static nd_validation validate(const nd_run_set *set)
{
    nd_validation validation = {0};
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_validation_create(set, &validation, &err));
    return validation;
}

static void test_quantiles_interpolate(void)
{
    double values[] = {4.0, 1.0, 3.0, 2.0};
    CU_ASSERT_EQUAL(nd_values_quantile(values, 4, 0.0), 1.0);
    CU_ASSERT_EQUAL(nd_values_quantile(values, 4, 0.5), 2.5);
    CU_ASSERT_EQUAL(nd_values_quantile(values, 4, 1.0), 4.0);
    ND_ASSERT_REL(nd_values_quantile(values, 4, 0.9), 3.7, 1e-12);
    CU_ASSERT_EQUAL(nd_values_quantile(values, 1, 0.9), 1.0);
    CU_ASSERT_TRUE(isnan(nd_values_quantile(values, 0, 0.5)));
}

static void test_rows_have_the_errors_that_were_put_in(void)
{
    char text[4096] = "";
    (void)snprintf(text, sizeof text, "%s", header);
    add_run(text, sizeof text, "A-1", 1, 1, "bf16", "", "A");
    add_run(text, sizeof text, "A-2", 2, 1, "fp8", "", "B");
    add_run(text, sizeof text, "A-3", 4, 1, "bf16", "FLAG", "A");
    add_run(text, sizeof text, "A-4", 8, 1, "bf16", "", "C");
    add_run(text, sizeof text, "A-5", 8, 2, "bf16", "", "");
    nd_run_set *set = load(text);
    static const double errors[] = {0.25, -0.1, 1.0, 2.0, 0.0};
    for (int i = 0; i < 5; i++) {
        set_errors(set, i, errors[i], -errors[i] / 4.0);
    }
    set->entries[4].run.step_s = 0.0; /* memory alone was measured */
    nd_validation v = validate(set);
    CU_ASSERT_EQUAL(v.count, 5);
    CU_ASSERT_EQUAL(v.scored, 3);
    CU_ASSERT_EQUAL(v.contradictory, 1);
    CU_ASSERT_EQUAL(v.grade_c, 1);
    for (int i = 0; i < 4; i++) {
        ND_ASSERT_REL(v.rows[i].error_frac, errors[i], 1e-9);
        ND_ASSERT_REL(v.rows[i].memory_error_frac, -errors[i] / 4.0, 1e-9);
        CU_ASSERT_EQUAL(v.rows[i].hard, i == 1);
        CU_ASSERT_EQUAL(v.rows[i].scored, i < 2);
        CU_ASSERT_TRUE(v.rows[i].low_s < v.rows[i].predicted_s && v.rows[i].predicted_s < v.rows[i].high_s);
    }
    CU_ASSERT_TRUE(isnan(v.rows[4].error_frac));
    CU_ASSERT_TRUE(v.rows[4].scored);
    nd_validation_free(&v);
    nd_run_set_free(set);
}

/* Sources A (dense: 0.1, -0.2, 0.3), B (dense: 0.5; hard: -0.4). */
static nd_run_set *two_sources(void)
{
    char text[4096] = "";
    (void)snprintf(text, sizeof text, "%s", header);
    add_run(text, sizeof text, "A-1", 1, 1, "bf16", "", "A");
    add_run(text, sizeof text, "A-2", 2, 1, "bf16", "", "A");
    add_run(text, sizeof text, "A-3", 4, 1, "bf16", "", "A");
    add_run(text, sizeof text, "B-1", 2, 1, "bf16", "", "A");
    add_run(text, sizeof text, "B-2", 2, 1, "fp8", "", "A");
    add_run(text, sizeof text, "B-3", 2, 1, "fp8", "FLAG", "A");
    nd_run_set *set = load(text);
    static const double errors[] = {0.1, -0.2, 0.3, 0.5, -0.4, 9.0};
    for (int i = 0; i < 6; i++) {
        set_errors(set, i, errors[i], errors[i] / 10.0);
    }
    return set;
}

static void test_groups_hold_the_scored_rows_by_class(void)
{
    nd_error err = {.message = ""};
    nd_run_set *set = two_sources();
    nd_validation v = validate(set);
    nd_validation_groups groups = {0};
    ND_ASSERT_OK(nd_validation_group_by(&v, ND_VALIDATION_BY_SOURCE, &groups, &err));
    CU_ASSERT_EQUAL_FATAL(groups.count, 2);
    const nd_validation_group *a = &groups.groups[0];
    const nd_validation_group *b = &groups.groups[1];
    CU_ASSERT_STRING_EQUAL(a->name, "A");
    CU_ASSERT_STRING_EQUAL(b->name, "B");
    CU_ASSERT_EQUAL(a->of[ND_RUNS_ALL].rows, 3);
    CU_ASSERT_EQUAL(a->of[ND_RUNS_HARD].rows, 0);
    CU_ASSERT_TRUE(isnan(a->of[ND_RUNS_HARD].median_abs));
    ND_ASSERT_REL(a->of[ND_RUNS_DENSE].median_abs, 0.2, 1e-9);
    ND_ASSERT_REL(a->of[ND_RUNS_DENSE].p90_abs, 0.28, 1e-9); /* 0.2 + 0.8 x 0.1 */
    ND_ASSERT_REL(a->of[ND_RUNS_DENSE].bias, 0.1, 1e-9);
    ND_ASSERT_REL(a->of[ND_RUNS_DENSE].memory_median_abs, 0.02, 1e-9);
    CU_ASSERT_EQUAL(b->of[ND_RUNS_ALL].rows, 2); /* the contradictory one is not there */
    ND_ASSERT_REL(b->of[ND_RUNS_DENSE].median_abs, 0.5, 1e-9);
    ND_ASSERT_REL(b->of[ND_RUNS_HARD].bias, -0.4, 1e-9);
    nd_validation_groups_free(&groups);
    static const struct {
        nd_validation_key key;
        const char *name;
    } others[] = {{ND_VALIDATION_BY_GPU, "h100"},
                  {ND_VALIDATION_BY_FRAMEWORK, "torchtitan FSDP2"},
                  {ND_VALIDATION_BY_MODEL, "llama-3.1-8b"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        ND_ASSERT_OK(nd_validation_group_by(&v, others[i].key, &groups, &err));
        CU_ASSERT_EQUAL(groups.count, 1);
        CU_ASSERT_STRING_EQUAL(groups.groups[0].name, others[i].name);
        CU_ASSERT_EQUAL(groups.groups[0].of[ND_RUNS_ALL].rows, 5);
        nd_validation_groups_free(&groups);
    }
    nd_validation_free(&v);
    nd_run_set_free(set);
}

static void test_the_score_weights_sources_equally(void)
{
    nd_error err = {.message = ""};
    nd_run_set *set = two_sources();
    nd_validation v = validate(set);
    nd_validation_score score;
    ND_ASSERT_OK(nd_validation_score_all(&v, &score, &err));
    CU_ASSERT_EQUAL(score.of[ND_RUNS_DENSE].pooled.rows, 4);
    ND_ASSERT_REL(score.of[ND_RUNS_DENSE].pooled.median_abs, 0.25, 1e-9);
    CU_ASSERT_EQUAL(score.of[ND_RUNS_DENSE].sources, 2);
    ND_ASSERT_REL(score.of[ND_RUNS_DENSE].mean_of_medians, (0.2 + 0.5) / 2.0, 1e-9);
    ND_ASSERT_REL(score.of[ND_RUNS_DENSE].mean_of_p90s, (0.28 + 0.5) / 2.0, 1e-9);
    CU_ASSERT_EQUAL(score.of[ND_RUNS_HARD].sources, 1);
    ND_ASSERT_REL(score.of[ND_RUNS_HARD].mean_of_medians, 0.4, 1e-9);
    ND_ASSERT_REL(score.of[ND_RUNS_ALL].mean_of_medians, (0.2 + 0.45) / 2.0, 1e-9);
    ND_ASSERT_REL(score.of[ND_RUNS_ALL].mean_of_memory_medians, (0.02 + 0.045) / 2.0, 1e-9);
    nd_validation_free(&v);
    nd_run_set_free(set);
}

static void test_coverage_is_the_part_inside_the_interval(void)
{
    nd_error err = {.message = ""};
    nd_run_set *set = two_sources();
    nd_validation v = validate(set);
    for (int i = 0; i < 4; i++) { /* of the dense rows two are inside: exactly at the ends */
        nd_measured_run *run = &set->entries[i].run;
        run->step_s = i == 0   ? v.rows[i].low_s
                      : i == 1 ? v.rows[i].high_s
                      : i == 2 ? v.rows[i].high_s * 1.001
                               : v.rows[i].low_s * 0.999;
        run->peak_bytes = i == 0 ? v.rows[i].peak_low_bytes : v.rows[i].peak_low_bytes * 0.999;
    }
    nd_validation_free(&v);
    v = validate(set);
    nd_validation_score score;
    ND_ASSERT_OK(nd_validation_score_all(&v, &score, &err));
    CU_ASSERT_EQUAL(score.of[ND_RUNS_DENSE].pooled.coverage, 0.5);
    CU_ASSERT_EQUAL(score.of[ND_RUNS_DENSE].pooled.memory_coverage, 0.25);
    nd_validation_free(&v);
    nd_run_set_free(set);
}

/* Five runs of one task, their predictions replaced by 1, 2, 3, 4 s; the last has the layout of the fourth. */
static void rank(const double *measured, nd_ranking_score *score)
{
    char text[4096] = "";
    nd_error err = {.message = ""};
    (void)snprintf(text, sizeof text, "%s", header);
    add_run(text, sizeof text, "A-1", 1, 1, "bf16", "", "A");
    add_run(text, sizeof text, "A-2", 2, 1, "bf16", "", "A");
    add_run(text, sizeof text, "A-3", 4, 1, "bf16", "", "A");
    add_run(text, sizeof text, "A-4", 8, 1, "bf16", "", "A");
    add_run(text, sizeof text, "A-5", 8, 1, "bf16", "", "A");
    add_run(text, sizeof text, "B-1", 8, 1, "bf16", "", "A");     /* another source */
    add_run(text, sizeof text, "A-6", 1, 2, "bf16", "FLAG", "A"); /* not scored */
    nd_run_set *set = load(text);
    nd_validation v = validate(set);
    for (int i = 0; i < 7; i++) {
        v.rows[i].predicted_s = i < 4 ? i + 1.0 : 4.0;
        set->entries[i].run.step_s = i < 5 ? measured[i] : 0.1;
    }
    ND_ASSERT_OK(nd_validation_rank(&v, score, &err));
    if (score->worst != NULL) {
        CU_ASSERT_STRING_EQUAL(score->worst->id, "A-1"); /* predicted fastest */
    }
    score->worst = NULL; /* belongs to the set */
    nd_validation_free(&v);
    nd_run_set_free(set);
}

static void test_pairs_of_layouts_are_counted_when_they_differ_clearly(void)
{
    nd_ranking_score score;
    static const double in_order[] = {1.0, 2.0, 3.0, 4.0, 5.0};
    rank(in_order, &score);
    CU_ASSERT_EQUAL(score.pairs, 9); /* 10 without the pair of equal layouts */
    CU_ASSERT_EQUAL(score.pairs_right, 9);
    CU_ASSERT_EQUAL(score.groups, 1);
    CU_ASSERT_EQUAL(score.regret_worst, 0.0);
    static const double swapped[] = {2.0, 1.0, 3.0, 4.0, 4.0};
    rank(swapped, &score);
    CU_ASSERT_EQUAL(score.pairs, 9);
    CU_ASSERT_EQUAL(score.pairs_right, 8);
    static const double close[] = {1.0, 1.02, 3.0, 3.08, 3.08}; /* 2 %; 2.7 % twice */
    rank(close, &score);
    CU_ASSERT_EQUAL(score.pairs, 6);
    CU_ASSERT_EQUAL(score.pairs_right, 6);
}

static void test_regret_is_what_the_first_choice_loses(void)
{
    nd_ranking_score score;
    static const double measured[] = {3.0, 2.0, 4.0, 5.0, 6.0};
    rank(measured, &score);
    CU_ASSERT_EQUAL(score.groups, 1);
    ND_ASSERT_REL(score.regret_mean, 0.5, 1e-12);
    ND_ASSERT_REL(score.regret_median, 0.5, 1e-12);
    ND_ASSERT_REL(score.regret_worst, 0.5, 1e-12);
}

static void test_an_anchor_takes_the_scale_out_of_a_source(void)
{
    nd_error err = {.message = ""};
    nd_run_set *set = two_sources();
    set_errors(set, 0, 0.5, 0.0);
    set_errors(set, 1, 0.5, 0.0);
    set_errors(set, 2, 0.5, 0.0);
    nd_validation v = validate(set);
    nd_anchored_score score;
    ND_ASSERT_OK(nd_validation_anchor(&v, &score, &err));
    CU_ASSERT_EQUAL(score.sources[ND_RUNS_DENSE], 1); /* B has one dense row */
    CU_ASSERT_EQUAL(score.sources[ND_RUNS_HARD], 0);
    CU_ASSERT_TRUE(isnan(score.median_abs[ND_RUNS_HARD]));
    CU_ASSERT_TRUE(score.median_abs[ND_RUNS_DENSE] < 1e-12); /* all of A is 50 % off */
    nd_validation_free(&v);
    set_errors(set, 0, 0.0, 0.0);
    set_errors(set, 1, 0.25, 0.0);
    set_errors(set, 2, 1.0, 0.0);
    v = validate(set);
    ND_ASSERT_OK(nd_validation_anchor(&v, &score, &err));
    /* anchors 1, 1.25 and 2: errors {0.25, 1}, {0.2, 0.6}, {0.5, 0.375} */
    ND_ASSERT_REL(score.median_abs[ND_RUNS_DENSE], (0.625 + 0.4 + 0.4375) / 3.0, 1e-9);
    ND_ASSERT_REL(score.p90_abs[ND_RUNS_DENSE], (0.925 + 0.56 + 0.4875) / 3.0, 1e-9);
    nd_validation_free(&v);
    nd_run_set_free(set);
}

/* Sources A, B, C with a common error on their 9 runs. */
static nd_run_set *three_sources(double error_of_c)
{
    char text[4096] = "";
    (void)snprintf(text, sizeof text, "%s", header);
    for (int i = 0; i < 9; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%c-%d", 'A' + i / 3, i);
        add_run(text, sizeof text, id, 1 << i % 3, 1, "bf16", "", "A");
    }
    nd_run_set *set = load(text);
    for (int i = 0; i < 9; i++) {
        set_errors(set, i, i < 6 ? 0.2 : error_of_c, 0.0);
    }
    return set;
}

static void count_sources(int64_t done, int64_t sources, void *user)
{
    int64_t *calls = user;
    CU_ASSERT_EQUAL(done, *calls);
    CU_ASSERT_EQUAL(sources, 3);
    ++*calls;
}

static nd_validation leave_one_out(nd_run_set *set)
{
    int64_t calls = 0;
    static const nd_fitted form = {.form_log_sd = 0.1, .hard_form_log_sd = 0.2};
    nd_validation validation = {0};
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_validation_leave_one_out(set, &form, count_sources, &calls, &validation, &err));
    CU_ASSERT_EQUAL(calls, 3);
    CU_ASSERT_PTR_NOT_NULL_FATAL(validation.rows);
    return validation;
}

static void test_a_source_is_predicted_from_the_others_alone(void)
{
    nd_run_set *set = three_sources(0.2);
    nd_validation before = validate(set);
    nd_validation same = leave_one_out(set);
    nd_validation after = validate(set);
    for (int i = 0; i < 9; i++) {
        CU_ASSERT_EQUAL(before.rows[i].predicted_s, after.rows[i].predicted_s); /* the constants are back */
        /* the others are 20 % faster than predicted, so the fit moves down */
        CU_ASSERT_TRUE(same.rows[i].predicted_s < before.rows[i].predicted_s);
        CU_ASSERT_TRUE(fabs(same.rows[i].error_frac) < 0.2);
        CU_ASSERT_EQUAL(same.rows[i].memory_error_frac, before.rows[i].memory_error_frac);
    }
    nd_validation_free(&before);
    nd_validation_free(&after);
    nd_run_set_free(set);
    set = three_sources(-0.3);
    nd_validation other = leave_one_out(set);
    for (int i = 6; i < 9;
         i++) { /* what C measured does not matter for its own predictions, but for where fits begin */
        ND_ASSERT_REL(other.rows[i].predicted_s, same.rows[i].predicted_s, 1e-3);
    }
    CU_ASSERT_TRUE(fabs(other.rows[0].predicted_s / same.rows[0].predicted_s - 1.0) > 0.02);
    nd_validation_free(&same);
    nd_validation_free(&other);
    nd_run_set_free(set);
}

static void test_leaving_one_of_one_source_out_is_refused(void)
{
    char text[4096] = "";
    nd_error err = {.message = ""};
    static const nd_fitted form;
    nd_validation untouched = {.count = -1};
    (void)snprintf(text, sizeof text, "%s", header);
    add_run(text, sizeof text, "A-1", 1, 1, "bf16", "", "A");
    add_run(text, sizeof text, "B-1", 1, 1, "bf16", "", "C");
    nd_run_set *set = load(text);
    CU_ASSERT_EQUAL(nd_validation_leave_one_out(set, &form, NULL, NULL, &untouched, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "needs runs of two sources");
    CU_ASSERT_EQUAL(untouched.count, -1);
    nd_run_set_free(set);
}

static void test_without_scored_rows_every_figure_is_missing(void)
{
    char text[4096] = "";
    nd_error err = {.message = ""};
    (void)snprintf(text, sizeof text, "%s", header);
    add_run(text, sizeof text, "A-1", 1, 1, "bf16", "", "C");
    nd_run_set *set = load(text);
    nd_validation v = validate(set);
    nd_validation_score score;
    nd_anchored_score anchored;
    nd_validation_groups groups = {0};
    ND_ASSERT_OK(nd_validation_score_all(&v, &score, &err));
    ND_ASSERT_OK(nd_validation_anchor(&v, &anchored, &err));
    ND_ASSERT_OK(nd_validation_group_by(&v, ND_VALIDATION_BY_SOURCE, &groups, &err));
    CU_ASSERT_EQUAL(groups.count, 0);
    CU_ASSERT_EQUAL(score.ranking.pairs, 0);
    CU_ASSERT_TRUE(isnan(score.ranking.regret_mean));
    CU_ASSERT_PTR_NULL(score.ranking.worst);
    CU_ASSERT_TRUE(isnan(score.of[ND_RUNS_ALL].mean_of_medians));
    CU_ASSERT_TRUE(isnan(score.of[ND_RUNS_ALL].pooled.coverage));
    CU_ASSERT_TRUE(isnan(anchored.median_abs[ND_RUNS_ALL]));
    nd_validation_groups_free(&groups);
    nd_validation_free(&v);
    nd_run_set_free(set);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_quantiles_interpolate),
        ND_TEST(test_rows_have_the_errors_that_were_put_in),
        ND_TEST(test_groups_hold_the_scored_rows_by_class),
        ND_TEST(test_the_score_weights_sources_equally),
        ND_TEST(test_coverage_is_the_part_inside_the_interval),
        ND_TEST(test_pairs_of_layouts_are_counted_when_they_differ_clearly),
        ND_TEST(test_regret_is_what_the_first_choice_loses),
        ND_TEST(test_an_anchor_takes_the_scale_out_of_a_source),
        ND_TEST(test_a_source_is_predicted_from_the_others_alone),
        ND_TEST(test_leaving_one_of_one_source_out_is_refused),
        ND_TEST(test_without_scored_rows_every_figure_is_missing),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/validation", cases);
}
