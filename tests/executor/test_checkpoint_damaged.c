/* Checkpoints that are cut off, changed or of something else: refused by name before the run is changed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor/checksum.h"
#include "executor/random.h"
#include "tests/executor/state.h"
#include "tests/nd_test.h"

static const char *const directory = "test_checkpoint_damaged.dir";
static const char *const manifest = "test_checkpoint_damaged.dir/step-0000000001/manifest.json";
static const char *const latest = "test_checkpoint_damaged.dir/LATEST";
static const char *const layout = "dp_shard=2,tp=2,sharding=zero3";

/* What is asked to resume, and what it must still be afterwards. */
static nd_run *run, *untouched;

static void set_up(void)
{
    nd_error err = {0};
    state_remove(directory);
    nd_run *saved = state_run("dense.json", layout, ND_ELEM_F32);
    run = state_run("dense.json", "cp=2", ND_ELEM_F32);
    untouched = state_run("dense.json", "cp=2", ND_ELEM_F32);
    CU_ASSERT_FATAL(saved != NULL && run != NULL && untouched != NULL);
    state_steps(saved, 1);
    ND_ASSERT_OK(nd_run_save(saved, directory, 0, &err));
    nd_run_free(saved);
}

/* The run is as it was, and what was damaged is whole again: it loads. */
static void tear_down(void)
{
    nd_error err = {0};
    CU_ASSERT_TRUE(state_equal(run, untouched));
    ND_ASSERT_OK(nd_run_resume(run, directory, NULL, &err));
    CU_ASSERT_EQUAL(nd_run_steps_done(run), 1);
    nd_run_free(run);
    nd_run_free(untouched);
    state_remove(directory);
}

static void expect_refused(nd_status status, const char *part, const char *other)
{
    nd_error err = {0};
    CU_ASSERT_EQUAL(nd_run_resume(run, directory, NULL, &err), status);
    ND_ASSERT_CONTAINS(err.message, part);
    ND_ASSERT_CONTAINS(err.message, other);
}

static char *read_file(const char *path, size_t *length)
{
    enum { MOST = 1 << 20 };
    char *bytes = calloc(1, MOST);
    FILE *stream = fopen(path, "rb");
    state_need(bytes);
    state_need(stream);
    *length = fread(bytes, 1, MOST - 1, stream);
    CU_ASSERT_EQUAL(fclose(stream), 0);
    return bytes;
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *stream = fopen(path, "wb");
    state_need(stream);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, length, stream), length);
    CU_ASSERT_EQUAL(fclose(stream), 0);
}

static void test_a_manifest_of_any_length_but_its_own(void)
{
    size_t length = 0;
    set_up();
    char *text = read_file(manifest, &length);
    CU_ASSERT_TRUE(length > 500);
    for (size_t kept = 0; kept < length; kept++) {
        write_file(manifest, text, kept);
        expect_refused(ND_EPARSE, manifest, "damaged");
    }
    text[length] = '\n';
    write_file(manifest, text, length + 1);
    expect_refused(ND_EPARSE, manifest, "damaged");
    write_file(manifest, text, length);
    free(text);
    tear_down();
}

static void test_a_manifest_with_any_byte_changed(void)
{
    size_t length = 0;
    set_up();
    char *text = read_file(manifest, &length);
    for (size_t at = 0; at < length; at++) {
        text[at] = (char)(text[at] ^ 1 << at % 7);
        write_file(manifest, text, length);
        expect_refused(ND_EPARSE, manifest, "damaged");
        text[at] = (char)(text[at] ^ 1 << at % 7);
    }
    write_file(manifest, text, length);
    free(text);
    tear_down();
}

static void test_files_of_ranks_cut_anywhere(void)
{
    uint64_t draws = 0;
    set_up();
    for (int rank = 0; rank < 4; rank++) {
        char path[128];
        size_t length = 0;
        (void)snprintf(path, sizeof path, "%s/step-0000000001/rank-%05d.bin", directory, rank);
        char *bytes = read_file(path, &length);
        for (int i = 0; i < 20; i++) {
            size_t kept = i == 0 ? 0 : i == 1 ? length - 1 : (size_t)(nd_random_bits(1, 2, draws++) % length);
            char found[64];
            (void)snprintf(found, sizeof found, "it has %zu bytes, and the manifest says %zu", kept, length);
            write_file(path, bytes, kept);
            expect_refused(ND_EPARSE, path, found);
        }
        write_file(path, bytes, length + 1);
        expect_refused(ND_EPARSE, path, "bytes, and the manifest says");
        write_file(path, bytes, length);
        free(bytes);
    }
    tear_down();
}

/* The right size, and other numbers. */
static void test_a_file_of_another_step(void)
{
    nd_error err = {0};
    size_t length = 0;
    static const char *const other = "test_checkpoint_damaged.other";
    static const char *const path = "test_checkpoint_damaged.dir/step-0000000001/rank-00002.bin";
    set_up();
    nd_run *later = state_run("dense.json", layout, ND_ELEM_F32);
    CU_ASSERT_PTR_NOT_NULL_FATAL(later);
    state_steps(later, 2);
    state_remove(other);
    ND_ASSERT_OK(nd_run_save(later, other, 0, &err));
    char *own = read_file(path, &length);
    char *foreign = read_file("test_checkpoint_damaged.other/step-0000000002/rank-00002.bin", &length);
    write_file(path, foreign, length);
    expect_refused(ND_EPARSE, path, "checksum");
    write_file(path, own, length);
    free(own);
    free(foreign);
    nd_run_free(later);
    state_remove(other);
    tear_down();
}

/* The text with the first `from` replaced, and its checksum made right again: what no checksum can find. */
static void rewrite(const char *text, const char *from, const char *to)
{
    static const char *const key = ",\n  \"checksum\": \"";
    size_t room = strlen(text) + strlen(to) + 1;
    char *changed = calloc(1, room);
    char digits[ND_CHECKSUM_TEXT];
    const char *at = strstr(text, from);
    state_need(changed);
    state_need(at);
    (void)snprintf(changed, room, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    char *end = strstr(changed, key);
    for (char *next = end; next != NULL; next = strstr(next + 1, key)) {
        end = next; /* the last one */
    }
    state_need(end);
    nd_checksum sum = nd_checksum_start();
    nd_checksum_add(&sum, changed, (size_t)(end - changed));
    nd_checksum_text(nd_checksum_value(&sum), digits);
    for (size_t i = 0; digits[i] != '\0'; i++) {
        end[strlen(key) + i] = digits[i];
    }
    write_file(manifest, changed, strlen(changed));
    free(changed);
}

static void test_a_manifest_that_does_not_fit_together(void)
{
    static const struct {
        const char *from, *to, *part;
    } cases[] = {
        {"ndplan/checkpoint/1", "ndplan/checkpoint/2", "schema must be ndplan/checkpoint/1, got 'ndplan/checkpoint/2'"},
        {"ndplan/checkpoint/1", "someone/else", "got 'someone/else'"},
        {"tp=2", "tp=4", "bytes, and its layout"},
        {"tp=2", "tp=3", "bytes, and its layout"},
        {"tp=2", "tp=64", "bytes, and its layout"},
        {"dp_shard=2", "dp_shard=2,cp=3", "bytes, and its layout"},
        {"tp=2", "tp=1", "'rank' must be"},
        {"dp_shard=2", "dp_shard=400000", "ranks, more than"},
        {"dp_shard=2", "dp_shard=1", "must be"},
        {"dp_shard=2", "dp_shard=2,ep=3", "ep=3"},
        {"sharding=zero3", "sharding=zero9", "zero9"},
        {"\"layout\": \"", "\"layout\": \"pp=2,", "chunks of layers"},
        {"\"chunks\": [\n    0,\n    4\n", "\"chunks\": [\n    0,\n    3\n", "chunks"},
        {"\"step\": 1", "\"step\": -1", "'step' must be"},
        {"\"number\": 1", "\"number\": 0", "'number' must be"},
        {"\"dtype\": \"fp32\"", "\"dtype\": \"fp16\"", "dtype must be fp32 or fp64"},
        {"\"rank\": 1", "\"rank\": 7", "'rank' must be"},
        {"\"rank\": 1", "\"rank\": 0", "bytes, and its layout"},
        {"\"seed\": \"", "\"seed\": \"x", "seed must be digits"},
        {"\"seq_len_tokens\": 32", "\"seq_len_tokens\": \"32\"", "'seq_len_tokens' must be"},
        {"\"lr\": 0.01", "\"lr\": null", "'lr' must be"},
        {"\"checksum\": \"mix64:", "\"checksum\": \"sha1:", "checksum must be mix64:"},
        {"\"training\"", "\"trained\"", "missing key 'training'"},
    };
    size_t length = 0;
    set_up();
    char *text = read_file(manifest, &length);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nd_error err = {0};
        rewrite(text, cases[i].from, cases[i].to);
        CU_ASSERT_NOT_EQUAL(nd_run_resume(run, directory, NULL, &err), ND_OK);
        ND_ASSERT_CONTAINS(err.message, cases[i].part);
    }
    write_file(manifest, text, length);
    free(text);
    tear_down();
}

static void test_a_damaged_latest(void)
{
    static const char *const bad[] = {"", "\n", "hello\n", "step-\n", "../step-0000000001\n", "step-1/../x\n"};
    size_t length = 0;
    set_up();
    char *text = read_file(latest, &length);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(latest, bad[i], strlen(bad[i]));
        expect_refused(ND_EPARSE, latest, "damaged");
    }
    write_file(latest, "step-0000000001\0\n", 17);
    expect_refused(ND_EPARSE, latest, "damaged");
    write_file(latest, "step-0000000007\n", 16);
    expect_refused(ND_EIO, "step-0000000007", "No such file");
    char long_name[300];
    int length_of_name = snprintf(long_name, sizeof long_name, "step-%0294d", 1);
    write_file(latest, long_name, (size_t)length_of_name);
    expect_refused(ND_EIO, latest, "299 bytes, more than");
    write_file(latest, text, length - 1); /* as an editor may leave it */
    free(text);
    tear_down();
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_a_manifest_of_any_length_but_its_own),
        ND_TEST(test_a_manifest_with_any_byte_changed),
        ND_TEST(test_files_of_ranks_cut_anywhere),
        ND_TEST(test_a_file_of_another_step),
        ND_TEST(test_a_manifest_that_does_not_fit_together),
        ND_TEST(test_a_damaged_latest),
        {NULL, NULL},
    };
    return nd_test_main("executor/checkpoint_damaged", cases);
}
