/* What a run may change when it goes on from a checkpoint, and what not. */
#include <stdio.h>
#include <string.h>

#include "tests/executor/state.h"
#include "tests/nd_test.h"

static const char *const directory = "test_settings.dir";
static const char *const text_path = "test_settings.txt";

static nd_settings usual(void)
{
    return (nd_settings){.seed = 7,
                         .seq_len_tokens = 128,
                         .global_batch_seqs = 8,
                         .warmup_steps = 10,
                         .decay_steps = 100,
                         .masked_frac = 0.25,
                         .beta1 = 0.9,
                         .beta2 = 0.95,
                         .eps = 1e-8,
                         .lr = 1e-3,
                         .weight_decay = 0.1,
                         .clip_norm = 1.0};
}

static void expect_refused(const nd_settings *now, const char *saved_text, const char *now_text)
{
    nd_error err = {0};
    nd_setting_change changes[ND_SETTINGS_CHANGES_MAX];
    int32_t count = 99;
    char part[128];
    const nd_settings saved = usual();
    CU_ASSERT_EQUAL(nd_settings_compare(&saved, now, "dir/step-0000000003", changes, &count, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(count, 99);
    (void)snprintf(part, sizeof part, "dir/step-0000000003 was trained with %s, and this run has %s: ", saved_text,
                   now_text);
    ND_ASSERT_CONTAINS(err.message, part);
    (void)snprintf(part, sizeof part, "; go on with %s, or begin anew", saved_text);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void test_other_data_is_refused(void)
{
    nd_settings now = usual();
    now.seed = 8;
    expect_refused(&now, "data seed 7", "8");
    now = usual();
    now.data_bytes = 5000;
    now.data_checksum = 0xabcU;
    expect_refused(&now, "synthetic tokens", "a data file of 5000 bytes (checksum 0000000000000abc)");
    now = usual();
    now.seq_len_tokens = 64;
    expect_refused(&now, "a sequence length of 128", "64");
    now = usual();
    now.global_batch_seqs = 16;
    expect_refused(&now, "a global batch of 8", "16");
    now = usual();
    now.masked_frac = 0.0;
    expect_refused(&now, "a share of masked labels of 0.25", "0");
}

static void test_another_course_of_the_optimizer_is_refused(void)
{
    nd_settings now = usual();
    now.warmup_steps = 0;
    expect_refused(&now, "a warm-up of 10", "0");
    now = usual();
    now.decay_steps = 200;
    expect_refused(&now, "a decay until step of 100", "200");
    now = usual();
    now.beta1 = 0.8;
    expect_refused(&now, "a first beta of 0.9", "0.8");
    now = usual();
    now.beta2 = 0.999;
    expect_refused(&now, "a second beta of 0.95", "0.999");
    now = usual();
    now.eps = 1e-6;
    expect_refused(&now, "an epsilon of 1e-08", "1e-06");
}

static void test_what_is_changed_on_purpose_is_listed(void)
{
    nd_error err = {0};
    nd_setting_change changes[ND_SETTINGS_CHANGES_MAX];
    int32_t count = -1;
    const nd_settings saved = usual();
    nd_settings now = usual();
    ND_ASSERT_OK(nd_settings_compare(&saved, &now, "x", changes, &count, &err));
    CU_ASSERT_EQUAL(count, 0);
    now.lr = 5e-4;
    now.weight_decay = 0.0;
    now.clip_norm = 2.0;
    ND_ASSERT_OK(nd_settings_compare(&saved, &now, "x", changes, &count, &err));
    CU_ASSERT_EQUAL_FATAL(count, 3);
    CU_ASSERT_STRING_EQUAL(changes[0].name, "lr");
    CU_ASSERT_EQUAL(changes[0].before, 1e-3);
    CU_ASSERT_EQUAL(changes[0].now, 5e-4);
    CU_ASSERT_STRING_EQUAL(changes[1].name, "weight_decay");
    CU_ASSERT_EQUAL(changes[1].before, 0.1);
    CU_ASSERT_STRING_EQUAL(changes[2].name, "clip_norm");
    CU_ASSERT_EQUAL(changes[2].now, 2.0);
}

static void write_text(char first)
{
    FILE *stream = fopen(text_path, "wb");
    state_need(stream);
    for (int i = 0; i < 500; i++) {
        (void)fputc(i == 0 ? first : 'a' + i * i % 26, stream);
    }
    CU_ASSERT_EQUAL(fclose(stream), 0);
}

/* A new run with these options goes on from the checkpoint. */
static nd_status resume_with(const nd_run_options *options, const char *layout, nd_resumed *out, nd_error *err)
{
    nd_run *run = NULL;
    nd_error create_err = {0};
    CU_ASSERT_EQUAL_FATAL(state_create("gpt2.json", layout, options, &run, &create_err), ND_OK);
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    nd_status status = nd_run_resume(run, directory, out, err);
    CU_ASSERT_EQUAL(nd_run_steps_done(run), status == ND_OK ? 1 : 0);
    nd_run_free(run);
    return status;
}

/* Through a manifest and back every number is the same, whatever the layout. */
static void test_a_checkpoint_keeps_them(void)
{
    nd_error err = {0};
    nd_resumed resumed;
    nd_run *run = NULL;
    nd_run_options options = state_options(ND_ELEM_F32);
    options.data.seed = UINT64_MAX - 5;
    options.data.masked_frac = 1.0 / 3.0;
    options.step.beta2 = 1.0 - 1.0 / 7.0;
    ND_ASSERT_OK(state_create("gpt2.json", "dp_shard=2,tp=2,sharding=zero2", &options, &run, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    state_remove(directory);
    state_steps(run, 1);
    ND_ASSERT_OK(nd_run_save(run, directory, 0, &err));
    ND_ASSERT_OK(resume_with(&options, "pp=3,micro_batch=2", &resumed, &err));
    CU_ASSERT_EQUAL(resumed.step, 1);
    CU_ASSERT_EQUAL(resumed.changes_count, 0);
    options.step.lr = 1e-4;
    ND_ASSERT_OK(resume_with(&options, "tp=2", &resumed, &err));
    CU_ASSERT_EQUAL_FATAL(resumed.changes_count, 1);
    CU_ASSERT_EQUAL(resumed.changes[0].before, 1e-2);
    options.data.seed--;
    CU_ASSERT_EQUAL(resume_with(&options, "tp=2", &resumed, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "was trained with data seed 18446744073709551610, and this run has ");
    nd_run_free(run);
    state_remove(directory);
}

static void identity(const char *path, int64_t *bytes, uint64_t *checksum)
{
    nd_error err = {0};
    nd_data *data = NULL;
    const nd_data_options options = {.path = path, .seq_len = 32, .vocab = 256};
    ND_ASSERT_OK(nd_data_open(&options, &data, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    nd_data_identity(data, bytes, checksum);
    nd_data_free(data);
}

static void test_a_data_file_is_known_by_its_bytes(void)
{
    int64_t bytes[3];
    uint64_t checksum[3];
    write_text('x');
    identity(text_path, &bytes[0], &checksum[0]);
    write_text('y');
    identity(text_path, &bytes[1], &checksum[1]);
    identity(NULL, &bytes[2], &checksum[2]);
    CU_ASSERT_EQUAL(bytes[0], 500);
    CU_ASSERT_EQUAL(bytes[1], 500);
    CU_ASSERT_NOT_EQUAL(checksum[0], checksum[1]);
    CU_ASSERT_EQUAL(bytes[2], 0);
    CU_ASSERT_EQUAL(checksum[2], 0);
    (void)remove(text_path);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_other_data_is_refused),
        ND_TEST(test_another_course_of_the_optimizer_is_refused),
        ND_TEST(test_what_is_changed_on_purpose_is_listed),
        ND_TEST(test_a_checkpoint_keeps_them),
        ND_TEST(test_a_data_file_is_known_by_its_bytes),
        {NULL, NULL},
    };
    return nd_test_main("executor/settings", cases);
}
