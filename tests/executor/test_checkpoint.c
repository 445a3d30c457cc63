#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "executor/checksum.h"
#include "tests/executor/state.h"
#include "tests/nd_test.h"

static const char *const directory = "test_checkpoint.dir";
static const char *const first_step = "test_checkpoint.dir/step-0000000001";
static const char *const first_file = "test_checkpoint.dir/step-0000000001/rank-00000.bin";
static const char *const manifest = "test_checkpoint.dir/step-0000000001/manifest.json";
static const char *const latest = "test_checkpoint.dir/LATEST";

static nd_run *saved_run(void)
{
    nd_error err = {0};
    state_remove(directory);
    nd_run *run = state_run("dense.json", "dp_shard=2,tp=2,sharding=zero3", ND_ELEM_F32);
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    state_steps(run, 1);
    ND_ASSERT_OK(nd_run_save(run, directory, 0, &err));
    return run;
}

/* A fresh run refuses the checkpoint, says why, and is not changed. */
static void expect_refused(nd_status status, const char *part, const char *other)
{
    nd_error err = {0};
    nd_run *run = state_run("dense.json", "cp=2,tp=2,sharding=zero3", ND_ELEM_F32);
    nd_run *untouched = state_run("dense.json", "cp=2,tp=2,sharding=zero3", ND_ELEM_F32);
    CU_ASSERT_FATAL(run != NULL && untouched != NULL);
    CU_ASSERT_EQUAL(nd_run_resume(run, directory, NULL, &err), status);
    ND_ASSERT_CONTAINS(err.message, part);
    ND_ASSERT_CONTAINS(err.message, other);
    CU_ASSERT_TRUE(state_equal(run, untouched));
    nd_run_free(run);
    nd_run_free(untouched);
}

static void test_a_checksum_does_not_depend_on_how_bytes_are_split(void)
{
    unsigned char bytes[100];
    for (int i = 0; i < 100; i++) {
        bytes[i] = (unsigned char)(i * 37);
    }
    for (size_t length = 0; length <= 100; length += 7) {
        nd_checksum whole = nd_checksum_start();
        nd_checksum_add(&whole, bytes, length);
        for (size_t split = 0; split <= length; split++) {
            nd_checksum parts = nd_checksum_start();
            nd_checksum_add(&parts, bytes, split / 2);
            nd_checksum_add(&parts, bytes + split / 2, split - split / 2);
            nd_checksum_add(&parts, bytes + split, length - split);
            CU_ASSERT_EQUAL(nd_checksum_value(&parts), nd_checksum_value(&whole));
        }
    }
}

static void test_a_checksum_sees_every_bit_and_the_length(void)
{
    unsigned char bytes[40] = {0};
    nd_checksum sum = nd_checksum_start();
    nd_checksum_add(&sum, bytes, 40);
    for (int bit = 0; bit < 40 * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        nd_checksum changed = nd_checksum_start();
        nd_checksum_add(&changed, bytes, 40);
        CU_ASSERT_NOT_EQUAL(nd_checksum_value(&changed), nd_checksum_value(&sum));
        bytes[bit / 8] = 0;
    }
    nd_checksum shorter = nd_checksum_start();
    nd_checksum_add(&shorter, bytes, 39);
    CU_ASSERT_NOT_EQUAL(nd_checksum_value(&shorter), nd_checksum_value(&sum));
}

static void test_a_changed_byte_anywhere_is_found(void)
{
    struct stat info;
    nd_run_free(saved_run());
    CU_ASSERT_EQUAL_FATAL(stat(first_file, &info), 0);
    const int64_t places[] = {0, info.st_size / 2, info.st_size - 1};
    for (size_t i = 0; i < 3; i++) {
        state_flip_byte(first_file, places[i]);
        expect_refused(ND_EPARSE, first_file, "checksum");
        state_flip_byte(first_file, places[i]);
    }
    state_remove(directory);
}

static void test_a_changed_manifest_is_found(void)
{
    struct stat info;
    nd_run_free(saved_run());
    CU_ASSERT_EQUAL_FATAL(stat(manifest, &info), 0);
    for (int64_t at = 0; at < info.st_size - 4; at += 23) {
        nd_error err = {0};
        nd_checkpoint *checkpoint = NULL;
        nd_run *run = state_run("dense.json", "tp=2", ND_ELEM_F32);
        CU_ASSERT_PTR_NOT_NULL_FATAL(run);
        state_flip_byte(manifest, at);
        CU_ASSERT_EQUAL(
            nd_checkpoint_open(directory, nd_run_model(run), nd_run_params(run), ND_ELEM_F32, &checkpoint, &err),
            ND_EPARSE);
        ND_ASSERT_CONTAINS(err.message, manifest);
        state_flip_byte(manifest, at);
        nd_run_free(run);
    }
    state_remove(directory);
}

static void test_short_missing_and_unfinished_checkpoints_are_refused(void)
{
    nd_run_free(saved_run());
    state_cut(first_file, 4);
    expect_refused(ND_EPARSE, first_file, "bytes, and the manifest says");
    CU_ASSERT_EQUAL(remove(first_file), 0);
    expect_refused(ND_EIO, first_file, "No such file");
    state_cut(manifest, 40);
    expect_refused(ND_EPARSE, manifest, "damaged");
    CU_ASSERT_EQUAL(remove(manifest), 0);
    expect_refused(ND_EIO, manifest, "No such file");
    state_flip_byte(latest, 0);
    expect_refused(ND_EPARSE, latest, "does not name a checkpoint");
    CU_ASSERT_EQUAL(remove(latest), 0);
    expect_refused(ND_EIO, directory, "no complete checkpoint");
    state_remove(directory);
    expect_refused(ND_EIO, directory, "no complete checkpoint");
}

static void test_foreign_checkpoints_are_refused_and_not_written_over(void)
{
    nd_error err = {0};
    nd_run_free(saved_run());
    nd_run *other = state_run("tied.json", "tp=2", ND_ELEM_F32);
    nd_run *wider = state_run("dense.json", "tp=2", ND_ELEM_F64);
    nd_run *same = state_run("dense.json", "tp=2", ND_ELEM_F32);
    CU_ASSERT_FATAL(other != NULL && wider != NULL && same != NULL);
    CU_ASSERT_EQUAL(nd_run_resume(other, directory, NULL, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "is a checkpoint of the model");
    ND_ASSERT_CONTAINS(err.message, nd_run_model(other)->name);
    CU_ASSERT_EQUAL(nd_run_save(other, directory, 0, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "is a checkpoint of the model");
    CU_ASSERT_EQUAL(nd_run_resume(wider, directory, NULL, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "fp32");
    ND_ASSERT_CONTAINS(err.message, "fp64");
    ND_ASSERT_OK(nd_run_resume(same, directory, NULL, &err));
    ND_ASSERT_OK(nd_run_resume(same, first_step, NULL, &err)); /* one checkpoint by its own name */
    CU_ASSERT_EQUAL(nd_run_steps_done(same), 1);
    nd_run_free(other);
    nd_run_free(wider);
    nd_run_free(same);
    state_remove(directory);
}

static int entries(const char *part)
{
    int count = 0;
    DIR *stream = opendir(directory);
    state_need(stream);
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        count += strstr(entry->d_name, part) != NULL;
    }
    (void)closedir(stream);
    return count;
}

static void test_steps_stay_and_the_same_step_is_replaced(void)
{
    nd_error err = {0};
    nd_run *run = saved_run();
    nd_run *again = state_run("dense.json", "tp=2", ND_ELEM_F32);
    CU_ASSERT_PTR_NOT_NULL_FATAL(again);
    state_steps(run, 1);
    ND_ASSERT_OK(nd_run_save(run, directory, 0, &err));
    CU_ASSERT_EQUAL(entries("step-"), 2);
    for (int i = 0; i < 3; i++) { /* of step 2, from another layout */
        ND_ASSERT_OK(nd_run_resume(again, directory, NULL, &err));
        CU_ASSERT_EQUAL(nd_run_steps_done(again), 2);
        ND_ASSERT_OK(nd_run_save(again, directory, 0, &err));
        CU_ASSERT_EQUAL(entries("step-"), 2);
    }
    CU_ASSERT_TRUE(state_near(run, again, 0.0, NULL));
    CU_ASSERT_EQUAL(entries("tmp"), 0);
    nd_run_free(run);
    nd_run_free(again);
    state_remove(directory);
}

/* A limit on file sizes fails as a full disk does: in the middle of a write. */
static void test_a_full_disk_leaves_the_checkpoint_before(void)
{
    nd_run *run = saved_run();
    nd_run *loaded = state_run("dense.json", "dp_shard=2,tp=2,sharding=zero3", ND_ELEM_F32);
    nd_run *expected = state_run("dense.json", "dp_shard=2,tp=2,sharding=zero3", ND_ELEM_F32);
    CU_ASSERT_FATAL(loaded != NULL && expected != NULL);
    nd_error err = {0};
    struct rlimit before;
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    state_steps(run, 1);
    state_steps(expected, 1);
    const rlim_t limits[] = {0, 1, 5, 100, 1000, 10000, 60000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct rlimit limit = {.rlim_cur = limits[i], .rlim_max = before.rlim_max};
        CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
        nd_status status = nd_run_save(run, directory, 0, &err);
        CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
        CU_ASSERT_EQUAL(status, ND_EIO);
        ND_ASSERT_CONTAINS(err.message, "cannot write");
        CU_ASSERT_EQUAL(entries("step-"), 1);
        CU_ASSERT_EQUAL(entries("tmp"), 0);
    }
    (void)signal(SIGXFSZ, handler);
    ND_ASSERT_OK(nd_run_resume(loaded, directory, NULL, &err));
    CU_ASSERT_TRUE(state_equal(loaded, expected));
    ND_ASSERT_OK(nd_run_save(run, directory, 0, &err)); /* and with room again it works */
    nd_run_free(run);
    nd_run_free(loaded);
    nd_run_free(expected);
    state_remove(directory);
}

/* Saves step after step until it is killed. */
static void save_for_ever(nd_run *run, int64_t step)
{
    nd_error err = {0};
    for (nd_status status = ND_OK; status == ND_OK; step++) {
        nd_run_set_steps_done(run, step);
        status = nd_run_save(run, directory, 0, &err);
    }
    _exit(1);
}

static pid_t start_saving(nd_run *run, int64_t first_step_saved)
{
    pid_t child = fork();
    CU_ASSERT_TRUE_FATAL(child >= 0);
    if (child == 0) {
        save_for_ever(run, first_step_saved);
    }
    return child;
}

static void stop_saving(pid_t child)
{
    int status = 0;
    CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE(WIFSIGNALED(status)); /* and not ended by a failure */
}

static void sleep_s(double seconds)
{
    struct timespec wait = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    (void)nanosleep(&wait, NULL);
}

static int64_t step_in(const nd_run *run)
{
    nd_error err = {0};
    nd_checkpoint *checkpoint = NULL;
    ND_ASSERT_OK(nd_checkpoint_open(directory, nd_run_model(run), nd_run_params(run), ND_ELEM_F32, &checkpoint, &err));
    if (checkpoint == NULL) {
        return -1;
    }
    int64_t step = nd_checkpoint_info_get(checkpoint)->step;
    nd_checkpoint_close(checkpoint);
    return step;
}

static void test_a_run_killed_at_any_time_leaves_a_checkpoint(void)
{
    enum { KILLS = 40 };
    nd_error err = {0};
    nd_run *run = saved_run();
    double start_s = nd_monotonic_s();
    ND_ASSERT_OK(nd_run_save(run, directory, 0, &err));
    double save_s = nd_monotonic_s() - start_s;
    int64_t before = step_in(run);
    for (int i = 0; i < KILLS; i++) { /* spread over two and a half saves; the first replaces the step that is there */
        pid_t child = start_saving(run, before);
        sleep_s(2.5 * save_s * i / KILLS);
        stop_saving(child);
        int64_t now = step_in(run);
        CU_ASSERT_TRUE(now >= before);
        before = now;
    }
    pid_t child = start_saving(run, before + 1);
    for (int tries = 0; tries < 1000 && step_in(run) < before + 2; tries++) {
        sleep_s(0.02);
    }
    stop_saving(child);
    CU_ASSERT_TRUE(step_in(run) >= before + 2); /* such a child does save */
    nd_run_free(run);
    state_remove(directory);
}

static void fill_nothing(void *user, int32_t unit, nd_checkpoint_part part, void *out)
{
    (void)user;
    (void)unit;
    (void)part;
    (void)out;
}

static void test_a_checkpoint_without_a_rank_is_not_finished(void)
{
    nd_error err = {0};
    nd_run *run = saved_run();
    const nd_program *program = nd_rank_program(nd_run_rank(run, 0));
    const nd_checkpoint_info info = {
        .layout = program->layout, .chunks = program->chunks, .step = 9, .wide = ND_ELEM_F32};
    nd_checkpoint_writer *writer = NULL;
    state_remove(directory);
    ND_ASSERT_OK(nd_checkpoint_create(directory, nd_run_model(run), nd_run_params(run), &info, 0, &writer, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
    ND_ASSERT_OK(nd_checkpoint_put(writer, &program->placement, fill_nothing, NULL, &err));
    CU_ASSERT_EQUAL(nd_checkpoint_finish(writer, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "lacks rank 1");
    CU_ASSERT_EQUAL(entries("step-"), 0);
    nd_run_free(run);
    state_remove(directory);
}

/* A file that stands where the directory should be. */
static void test_a_path_that_is_no_directory_is_refused(void)
{
    nd_error err = {0};
    nd_run *run = saved_run();
    CU_ASSERT_EQUAL(nd_run_save(run, first_file, 0, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, first_file);
    nd_run_free(run);
    state_remove(directory);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_a_checksum_does_not_depend_on_how_bytes_are_split),
        ND_TEST(test_a_checksum_sees_every_bit_and_the_length),
        ND_TEST(test_a_changed_byte_anywhere_is_found),
        ND_TEST(test_a_changed_manifest_is_found),
        ND_TEST(test_short_missing_and_unfinished_checkpoints_are_refused),
        ND_TEST(test_foreign_checkpoints_are_refused_and_not_written_over),
        ND_TEST(test_steps_stay_and_the_same_step_is_replaced),
        ND_TEST(test_a_full_disk_leaves_the_checkpoint_before),
        ND_TEST(test_a_run_killed_at_any_time_leaves_a_checkpoint),
        ND_TEST(test_a_checkpoint_without_a_rank_is_not_finished),
        ND_TEST(test_a_path_that_is_no_directory_is_refused),
        {NULL, NULL},
    };
    return nd_test_main("executor/checkpoint", cases);
}
