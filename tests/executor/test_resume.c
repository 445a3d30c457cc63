#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/bf16.h"
#include "executor/safetensors.h"
#include "tests/executor/state.h"
#include "tests/nd_test.h"

static const char *const directory = "test_resume.dir";

/* Two steps, saved; a fresh run takes up there and both go on. */
static bool resumes_to_the_same_bits(const char *file, const char *layout, nd_elem real)
{
    nd_error err = {0};
    state_remove(directory);
    nd_run *whole = state_run(file, layout, real);
    nd_run *second = state_run(file, layout, real);
    CU_ASSERT_FATAL(whole != NULL && second != NULL);
    state_steps(whole, 2);
    ND_ASSERT_OK(nd_run_save(whole, directory, 0, &err));
    ND_ASSERT_OK(nd_run_resume(second, directory, NULL, &err));
    bool equal = state_equal(whole, second);
    state_steps(whole, 2);
    state_steps(second, 2);
    equal = equal && state_equal(whole, second);
    nd_run_free(whole);
    nd_run_free(second);
    state_remove(directory);
    if (!equal) {
        (void)fprintf(stderr, "%s %s %s differs after resuming\n", file, layout, nd_elem_name(real));
    }
    return equal;
}

static void test_the_same_layout_goes_on_with_the_same_bits(void)
{
    static const struct {
        const char *file, *layout;
        nd_elem real;
    } runs[] = {
        {"dense.json", "micro_batch=1", ND_ELEM_F64},
        {"dense.json", "dp_shard=2,cp=2,sharding=zero3", ND_ELEM_F32},
        {"dense.json", "dp_replicate=2,dp_shard=2,sharding=zero2", ND_ELEM_BF16},
        {"dense.json", "tp=8,sp=on", ND_ELEM_F32}, /* copied key-value heads, padded vocabulary */
        {"dense.json", "dp_replicate=2,tp=2,sharding=none", ND_ELEM_BF16},
        {"tied.json", "pp=2,dp_shard=2,sharding=zero1", ND_ELEM_F32},
        {"tied.json", "pp=2,vpp=2,schedule=interleaved", ND_ELEM_BF16},
        {"gpt2.json", "tp=2,dp_shard=2,sharding=zero3", ND_ELEM_F32},
        {"mixtral.json", "dp_shard=4,ep=4,sharding=zero3", ND_ELEM_BF16},
        {"moe.json", "tp=2,cp=2,ep=2,sharding=none", ND_ELEM_F32},
        {"mla.json", "dp_shard=2,tp=2,ep=2,sharding=zero3", ND_ELEM_BF16},
    };
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        CU_ASSERT_TRUE(resumes_to_the_same_bits(runs[i].file, runs[i].layout, runs[i].real));
    }
}

/* Softmax does not see what is added to all keys alike: without rotary positions the gradient of a key bias is nothing
 * but rounding (1e-17), which Adam divides by its epsilon of 1e-8 and multiplies by the learning rate of 1e-2. So it
 * differs by about 1e-11 where all other parameters differ by 4e-16. */
static const char *const key_bias = "k_proj.bias";

/* Saved by `from`, taken up by `to`: the parameters are the same numbers, and after more steps differ by rounding. */
static void check_move(const char *file, const char *from, const char *to)
{
    nd_error err = {0};
    state_remove(directory);
    nd_run *saved = state_run(file, from, ND_ELEM_F64);
    nd_run *moved = state_run(file, to, ND_ELEM_F64);
    CU_ASSERT_FATAL(saved != NULL && moved != NULL);
    state_steps(saved, 2);
    ND_ASSERT_OK(nd_run_save(saved, directory, 0, &err));
    ND_ASSERT_OK(nd_run_resume(moved, directory, NULL, &err));
    CU_ASSERT_TRUE(state_near(saved, moved, 0.0, NULL));
    state_steps(saved, 2);
    state_steps(moved, 2);
    bool near = state_near(saved, moved, 1e-12, key_bias) && state_near(saved, moved, 1e-11, NULL);
    CU_ASSERT_TRUE(near);
    if (!near) {
        (void)fprintf(stderr, "%s: %s to %s\n", file, from, to);
    }
    nd_run_free(saved);
    nd_run_free(moved);
    state_remove(directory);
}

static void test_another_layout_goes_on_with_the_same_numbers(void)
{
    check_move("dense.json", "dp_shard=8,sharding=zero3", "micro_batch=1");
    check_move("dense.json", "micro_batch=1", "dp_replicate=2,dp_shard=2,tp=2,sp=on,sharding=zero3");
    check_move("dense.json", "tp=8,sp=on", "pp=4,tp=2,sharding=none");
    check_move("dense.json", "cp=4,tp=2,sharding=none", "pp=2,dp_shard=2,micro_batch=2,sharding=zero2");
    check_move("tied.json", "pp=4,dp_shard=2,sharding=zero1", "tp=4,cp=2,sharding=zero3");
    check_move("gemma3.json", "tp=4,pp=2", "dp_shard=4,cp=2,sharding=zero3");
    check_move("gpt2.json", "tp=4,sp=on", "pp=3,dp_shard=2,sharding=zero3");
    check_move("moe.json", "dp_shard=4,tp=2,ep=8,sharding=zero3", "tp=4,ep=1");
    check_move("mla.json", "tp=4", "dp_shard=4,ep=4,sharding=zero3");
    check_move("mixtral.json", "dp_replicate=2,cp=2,ep=2,sharding=none", "dp_shard=2,tp=2,ep=4,sharding=zero2");
}

/* Every tensor of the merged file is the parameter, rounded to the type that was asked for. */
static void check_merged(const nd_run *run, nd_elem type, const char *path)
{
    nd_error err = {0};
    nd_safetensors *file = NULL;
    const nd_param_list *params = nd_run_params(run);
    int64_t total = nd_model_params(nd_run_model(run)).total;
    double *expected = calloc((size_t)total, sizeof *expected);
    double *found = calloc((size_t)total, sizeof *found);
    state_need(expected);
    state_need(found);
    nd_run_read_params(run, expected);
    ND_ASSERT_OK(nd_safetensors_open(path, &file, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(nd_safetensors_count(file), (size_t)params->count);
    int64_t at = 0;
    for (int32_t i = 0; i < params->count; i++) {
        int64_t elements = params->params[i].rows * params->params[i].cols;
        CU_ASSERT_EQUAL(nd_safetensors_at(file, (size_t)i)->elem, type);
        ND_ASSERT_OK(nd_safetensors_read(file, (size_t)i, 0, elements, found + at, &err));
        at += elements;
    }
    int64_t wrong = 0;
    for (int64_t i = 0; i < total; i++) {
        double rounded = type == ND_ELEM_F64   ? expected[i]
                         : type == ND_ELEM_F32 ? (double)(float)expected[i]
                                               : (double)nd_from_bf16(nd_to_bf16((float)expected[i]));
        wrong += found[i] != rounded;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    nd_safetensors_close(file);
    free(expected);
    free(found);
}

static void test_shards_merge_to_one_file(void)
{
    static const char *const path = "test_resume.safetensors";
    static const nd_elem types[] = {ND_ELEM_F64, ND_ELEM_F32, ND_ELEM_BF16};
    static const char *const files[] = {"dense.json", "mixtral.json", "tied.json"};
    static const char *const layouts[] = {"dp_shard=2,tp=4,sp=on,sharding=zero3", "dp_shard=2,tp=2,ep=4,sharding=zero2",
                                          "pp=2,cp=2,sharding=none"};
    for (size_t f = 0; f < 3; f++) {
        nd_error err = {0};
        nd_checkpoint *checkpoint = NULL;
        nd_run *run = state_run(files[f], layouts[f], ND_ELEM_F64);
        CU_ASSERT_PTR_NOT_NULL_FATAL(run);
        state_remove(directory);
        ND_ASSERT_OK(nd_run_save(run, directory, 0, &err));
        ND_ASSERT_OK(
            nd_checkpoint_open(directory, nd_run_model(run), nd_run_params(run), ND_ELEM_COUNT, &checkpoint, &err));
        CU_ASSERT_PTR_NOT_NULL_FATAL(checkpoint);
        for (size_t t = 0; t < 3; t++) {
            ND_ASSERT_OK(nd_checkpoint_merge(checkpoint, nd_run_model(run), types[t], path, &err));
            check_merged(run, types[t], path);
        }
        nd_checkpoint_close(checkpoint);
        nd_run_free(run);
        (void)remove(path);
        state_remove(directory);
    }
}

static void test_merged_names_are_those_of_the_family(void)
{
    static const char *const path = "test_resume.names";
    nd_error err = {0};
    nd_checkpoint *checkpoint = NULL;
    nd_safetensors *file = NULL;
    nd_run *run = state_run("mixtral.json", "micro_batch=1", ND_ELEM_F32);
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    state_remove(directory);
    ND_ASSERT_OK(nd_run_save(run, directory, 0, &err));
    ND_ASSERT_OK(nd_checkpoint_open(directory, nd_run_model(run), nd_run_params(run), ND_ELEM_F32, &checkpoint, &err));
    ND_ASSERT_OK(nd_checkpoint_merge(checkpoint, nd_run_model(run), ND_ELEM_BF16, path, &err));
    ND_ASSERT_OK(nd_safetensors_open(path, &file, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_TRUE(nd_safetensors_find(file, "model.layers.1.block_sparse_moe.experts.3.w2.weight") >= 0);
    CU_ASSERT_TRUE(nd_safetensors_find(file, "model.layers.0.block_sparse_moe.gate.weight") >= 0);
    CU_ASSERT_EQUAL(nd_safetensors_find(file, "model.layers.0.mlp.gate.weight"), -1);
    int64_t norm = nd_safetensors_find(file, "model.norm.weight");
    CU_ASSERT_TRUE_FATAL(norm >= 0);
    CU_ASSERT_EQUAL(nd_safetensors_at(file, (size_t)norm)->dims, 1);
    nd_safetensors_close(file);
    nd_checkpoint_close(checkpoint);
    nd_run_free(run);
    (void)remove(path);
    state_remove(directory);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_the_same_layout_goes_on_with_the_same_bits),
        ND_TEST(test_another_layout_goes_on_with_the_same_numbers),
        ND_TEST(test_shards_merge_to_one_file),
        ND_TEST(test_merged_names_are_those_of_the_family),
        {NULL, NULL},
    };
    return nd_test_main("executor/resume", cases);
}
