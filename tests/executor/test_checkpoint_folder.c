/* A folder of checkpoints over many saves: what stays, what goes, and what is seen before the first step. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/executor/state.h"
#include "tests/nd_test.h"

static const char *const directory = "test_checkpoint_folder.dir";
static const char *const weights = "test_checkpoint_folder.safetensors";

static nd_run *fresh_run(void)
{
    nd_run *run = state_run("dense.json", "dp_shard=2,tp=2,sharding=zero3", ND_ELEM_F32);
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    return run;
}

static void save_step(nd_run *run, int64_t step, int64_t keep)
{
    nd_error err = {0};
    nd_run_set_steps_done(run, step);
    ND_ASSERT_OK(nd_run_save(run, directory, keep, &err));
}

static bool exists(const char *name)
{
    char path[256];
    struct stat info;
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return stat(path, &info) == 0;
}

static int entries(const char *part)
{
    int count = 0;
    DIR *stream = opendir(directory);
    state_need(stream);
    for (const struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        count += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
    }
    (void)closedir(stream);
    return count;
}

static void put_file(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *stream = fopen(path, "wb");
    state_need(stream);
    (void)fputs(text, stream);
    CU_ASSERT_EQUAL(fclose(stream), 0);
}

static void put_directory(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    CU_ASSERT_EQUAL(mkdir(path, 0777), 0);
}

static int64_t latest_step(const nd_run *run)
{
    nd_error err = {0};
    nd_checkpoint *checkpoint = NULL;
    ND_ASSERT_OK(nd_checkpoint_open(directory, nd_run_model(run), nd_run_params(run), ND_ELEM_F32, &checkpoint, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(checkpoint);
    int64_t step = nd_checkpoint_info_get(checkpoint)->step;
    nd_checkpoint_close(checkpoint);
    return step;
}

static void test_the_newest_stay(void)
{
    nd_run *run = fresh_run();
    state_remove(directory);
    for (int64_t step = 1; step <= 5; step++) {
        save_step(run, step, 3);
        CU_ASSERT_EQUAL(entries("step-"), step < 3 ? (int)step : 3);
    }
    CU_ASSERT_TRUE(exists("step-0000000003") && exists("step-0000000004") && exists("step-0000000005"));
    save_step(run, 6, 0); /* all */
    CU_ASSERT_EQUAL(entries("step-"), 4);
    save_step(run, 7, 1);
    CU_ASSERT_EQUAL(entries("step-"), 1);
    CU_ASSERT_EQUAL(latest_step(run), 7);
    CU_ASSERT_EQUAL(entries("tmp"), 0);
    nd_run_free(run);
    state_remove(directory);
}

/* Newest means saved last: whoever goes back to step 2 and on from there does not lose its checkpoints to later steps
 * of the attempt that was given up. */
static void test_newest_is_what_was_saved_last(void)
{
    nd_run *run = fresh_run();
    state_remove(directory);
    save_step(run, 2, 2);
    save_step(run, 30, 2);
    save_step(run, 3, 2);
    CU_ASSERT_TRUE(exists("step-0000000030") && exists("step-0000000003"));
    save_step(run, 4, 2);
    CU_ASSERT_TRUE(exists("step-0000000003") && exists("step-0000000004"));
    CU_ASSERT_EQUAL(entries("step-"), 2);
    CU_ASSERT_EQUAL(latest_step(run), 4);
    nd_run_free(run);
    state_remove(directory);
}

/* Only what is a checkpoint of this model goes. */
static void test_what_is_no_checkpoint_stays(void)
{
    nd_run *run = fresh_run();
    state_remove(directory);
    save_step(run, 1, 1);
    put_file("notes.txt", "mine");
    put_directory("step-5");                /* another program's */
    put_directory("step-0000000009x");      /* nobody's */
    put_directory("step-0000000000.tmp-1"); /* of process 1, which lives */
    save_step(run, 2, 1);
    save_step(run, 3, 1);
    CU_ASSERT_TRUE(exists("notes.txt") && exists("step-5") && exists("step-0000000009x"));
    CU_ASSERT_TRUE(exists("step-0000000000.tmp-1"));
    CU_ASSERT_TRUE(exists("step-0000000003") && !exists("step-0000000002") && !exists("step-0000000001"));
    nd_run_free(run);
    state_remove(directory);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The only checkpoint, from which the run went on, goes when the next one is complete, not before. */
static void test_a_full_disk_does_not_cost_the_one_that_was_resumed(void)
{
    nd_error err = {0};
    nd_run *run = fresh_run();
    state_remove(directory);
    save_step(run, 1, 1);
    ND_ASSERT_OK(nd_run_resume(run, directory, NULL, &err));
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    const rlim_t limits[] = {0, 3, 1000, 30000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        nd_run_set_steps_done(run, 2);
        limit_files(limits[i]);
        nd_status status = nd_run_save(run, directory, 1, &err);
        limit_files(RLIM_INFINITY);
        CU_ASSERT_EQUAL(status, ND_EIO);
        CU_ASSERT_EQUAL(latest_step(run), 1);
        CU_ASSERT_EQUAL(entries(""), 2);
    }
    (void)signal(SIGXFSZ, handler);
    save_step(run, 2, 1);
    CU_ASSERT_EQUAL(entries(""), 2);
    CU_ASSERT_EQUAL(latest_step(run), 2);
    nd_run_free(run);
    state_remove(directory);
}

/* Where SIGXFSZ is not ignored, a file that reaches the limit kills the process there: in the middle of a write. */
static void save_until_killed(const nd_run *run, int64_t limit)
{
    const struct rlimit no_core = {0, 0};
    struct rlimit files = {0, 0};
    if (setrlimit(RLIMIT_CORE, &no_core) != 0 || getrlimit(RLIMIT_FSIZE, &files) != 0) {
        _exit(1);
    }
    files.rlim_cur = (rlim_t)limit;
    if (setrlimit(RLIMIT_FSIZE, &files) != 0) {
        _exit(1);
    }
    (void)signal(SIGXFSZ, SIG_DFL);
    _exit(nd_run_save(run, directory, 0, NULL) == ND_OK ? 2 : 3);
}

static void test_what_a_killed_save_left_goes_with_the_next(void)
{
    nd_run *run = fresh_run();
    state_remove(directory);
    save_step(run, 1, 0);
    nd_run_set_steps_done(run, 2);
    for (int64_t limit = 0; limit < 100000; limit += 20000) {
        pid_t child = fork();
        CU_ASSERT_TRUE_FATAL(child >= 0);
        if (child == 0) {
            save_until_killed(run, limit);
        }
        int status = 0;
        CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
        CU_ASSERT_TRUE(WIFSIGNALED(status));
        CU_ASSERT_EQUAL(entries("step-0000000002.tmp-"), 1); /* of this kill: the one before is gone */
        CU_ASSERT_EQUAL(latest_step(run), 1);
    }
    put_file("LATEST.tmp-4194305", "step-0000000001\n"); /* above the largest process number of Linux */
    put_directory("step-0000000001.tmp-4194305");
    save_step(run, 2, 0);
    CU_ASSERT_EQUAL(entries("tmp"), 0);
    CU_ASSERT_EQUAL(entries(""), 3);
    nd_run_free(run);
    state_remove(directory);
}

static void expect_check(const nd_run *run, const char *to, const char *weights_to, nd_status status, const char *part)
{
    nd_error err = {0};
    const nd_save_target target = {
        .directory = to, .keep = 2, .saves = 5, .weights = weights_to, .weights_elem = ND_ELEM_F32};
    CU_ASSERT_EQUAL(nd_run_save_check(run, &target, &err), status);
    ND_ASSERT_CONTAINS(err.message, part);
}

static void test_where_nothing_can_be_saved_is_seen_before_the_first_step(void)
{
    nd_error err = {0};
    nd_run *run = fresh_run();
    nd_run *other = state_run("tied.json", "tp=2", ND_ELEM_F32);
    struct stat info;
    state_remove(directory);
    expect_check(run, directory, NULL, ND_OK, "");
    CU_ASSERT_NOT_EQUAL(stat(directory, &info), 0); /* nothing is left behind */
    expect_check(run, "test_checkpoint_folder.dir/a/b", NULL, ND_EIO, "cannot make the directory");
    expect_check(run, "/proc/nothing", NULL, ND_EIO, "/proc/nothing");
    save_step(run, 1, 0);
    expect_check(run, directory, NULL, ND_OK, "");
    CU_ASSERT_EQUAL(entries(""), 2);
    expect_check(run, "test_checkpoint_folder.dir/LATEST", NULL, ND_EINVAL, "is a file, not a directory");
    expect_check(run, "test_checkpoint_folder.dir/step-0000000001", NULL, ND_EINVAL, "is itself a checkpoint");
    expect_check(other, directory, NULL, ND_EINVAL, "is a checkpoint of the model");
    CU_ASSERT_EQUAL(nd_run_save(other, "test_checkpoint_folder.dir/step-0000000001", 0, &err), ND_EINVAL);
    put_file("LATEST", "epoch=3.ckpt\n");
    expect_check(run, directory, NULL, ND_EINVAL, "remove that file or name another directory");
    CU_ASSERT_EQUAL(nd_run_save(run, directory, 0, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(entries(""), 2);
    nd_run_free(run);
    nd_run_free(other);
    state_remove(directory);
}

static void test_a_file_of_weights_is_seen_before_the_first_step(void)
{
    nd_error err = {0};
    nd_checkpoint *checkpoint = NULL;
    nd_run *run = fresh_run();
    struct stat info;
    state_remove(directory);
    (void)remove(weights);
    save_step(run, 1, 0);
    expect_check(run, directory, weights, ND_OK, "");
    CU_ASSERT_NOT_EQUAL(stat(weights, &info), 0);
    expect_check(run, directory, "test_checkpoint_folder.dir/a/w.safetensors", ND_EIO, "test_checkpoint_folder.dir/a");
    expect_check(run, directory, directory, ND_EINVAL, "no safetensors file");
    put_file("config.json", "{}");
    expect_check(run, directory, "test_checkpoint_folder.dir/config.json", ND_EINVAL, "it is not written over");
    ND_ASSERT_OK(nd_checkpoint_open(directory, nd_run_model(run), nd_run_params(run), ND_ELEM_F32, &checkpoint, &err));
    ND_ASSERT_OK(nd_checkpoint_merge(checkpoint, nd_run_model(run), ND_ELEM_F32, weights, &err));
    expect_check(run, directory, weights, ND_OK, ""); /* its own kind is replaced */
    nd_checkpoint_close(checkpoint);
    nd_run_free(run);
    (void)remove(weights);
    state_remove(directory);
}

/* As many as are there at one time: `keep` and the one that is being written. */
static void test_room_is_asked_for_all_that_is_there_at_once(void)
{
    static const int64_t tib = (int64_t)1 << 40;
    nd_error err = {0};
    nd_run *run = fresh_run();
    const nd_model_spec *model = nd_run_model(run);
    const nd_param_list *params = nd_run_params(run);
    state_remove(directory);
    CU_ASSERT_EQUAL(nd_checkpoint_check(directory, model, params, 4096 * tib, 1, 0, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "and 1 checkpoint of ");
    CU_ASSERT_EQUAL(nd_checkpoint_check(directory, model, params, 4096 * tib, 5, 2, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "and 3 checkpoints of ");
    CU_ASSERT_EQUAL(nd_checkpoint_check(directory, model, params, 4096 * tib, 5, 0, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "and 5 checkpoints of ");
    save_step(run, 1, 0);
    save_step(run, 2, 0);
    CU_ASSERT_EQUAL(nd_checkpoint_check(directory, model, params, 4096 * tib, 5, 2, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "and 1 checkpoint of ");
    struct stat info;
    int64_t files = 0;
    int64_t said = 0;
    for (int32_t i = 0; i < nd_run_ranks(run); i++) {
        const nd_program *program = nd_rank_program(nd_run_rank(run, i));
        char path[128];
        (void)snprintf(path, sizeof path, "%s/step-0000000002/rank-%05d.bin", directory, i);
        files += stat(path, &info) == 0 ? (int64_t)info.st_size : 0;
        said += nd_checkpoint_rank_bytes(model, &program->placement, &program->layout, ND_ELEM_F32);
    }
    CU_ASSERT_TRUE(files > 0);
    CU_ASSERT_EQUAL(said, files);
    nd_run_free(run);
    state_remove(directory);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_newest_stay),
        ND_TEST(test_newest_is_what_was_saved_last),
        ND_TEST(test_what_is_no_checkpoint_stays),
        ND_TEST(test_a_full_disk_does_not_cost_the_one_that_was_resumed),
        ND_TEST(test_what_a_killed_save_left_goes_with_the_next),
        ND_TEST(test_where_nothing_can_be_saved_is_seen_before_the_first_step),
        ND_TEST(test_a_file_of_weights_is_seen_before_the_first_step),
        ND_TEST(test_room_is_asked_for_all_that_is_there_at_once),
        {NULL, NULL},
    };
    return nd_test_main("executor/checkpoint_folder", cases);
}
