#include "tests/executor/state.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/disk.h"
#include "tests/executor/split.h"
#include "tests/nd_test.h"

enum { SEQUENCES = 8 };

nd_run_options state_options(nd_elem real)
{
    nd_run_options options = nd_run_options_default();
    options.program.real = real;
    options.step.lr = 1e-2;
    options.warmup_steps = 3; /* the step's number matters after a resume */
    options.init = (nd_init_options){.seed = 7, .std = 0.15, .noise = 0.1};
    options.data = (nd_data_options){.seed = 11, .masked_frac = 0.3};
    return options;
}

nd_status state_create(const char *file, const char *layout_text, const nd_run_options *options, nd_run **out,
                       nd_error *err)
{
    nd_model_spec model;
    nd_layout layout;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", ND_TEST_DATA, file);
    ND_TRY(nd_model_load(path, false, &model, err));
    ND_TRY(nd_layout_parse(layout_text, &layout, NULL, err));
    layout.grad_accum = SEQUENCES / (nd_layout_data_ranks(&layout) * layout.micro_batch);
    const nd_train_spec train = {.seq_len_tokens = 32, .global_batch_seqs = SEQUENCES, .base_bits = 16};
    nd_run_options cut = *options;
    cut.program.chunks = split_of(&model, &layout, &train);
    return nd_run_create(&model, &layout, &train, &cut, out, err);
}

nd_run *state_run(const char *file, const char *layout_text, nd_elem real)
{
    nd_error err = {0};
    nd_run *run = NULL;
    const nd_run_options options = state_options(real);
    ND_ASSERT_OK(state_create(file, layout_text, &options, &run, &err));
    return run;
}

void state_steps(nd_run *run, int64_t count)
{
    nd_error err = {0};
    ND_ASSERT_OK(nd_run_steps(run, count, NULL, NULL, &err));
}

static bool buffers_equal(nd_rank *a, nd_rank *b, nd_ref ref, int64_t elements)
{
    double *left = calloc((size_t)elements, sizeof *left);
    double *right = calloc((size_t)elements, sizeof *right);
    state_need(left);
    state_need(right);
    nd_rank_read(a, ref, elements, left);
    nd_rank_read(b, ref, elements, right);
    bool equal = memcmp(left, right, (size_t)elements * sizeof *left) == 0;
    free(left);
    free(right);
    return equal;
}

static bool ranks_equal(nd_rank *a, nd_rank *b)
{
    const nd_program *program = nd_rank_program(a);
    bool equal = true;
    for (int32_t i = 0; i < program->placement.units_count; i++) {
        const nd_unit_state *state = &program->states[i];
        int64_t shard = program->placement.units[i].shard_elements;
        equal = equal && buffers_equal(a, b, state->master, shard) &&
                buffers_equal(a, b, (nd_ref){.buffer = state->m}, shard) &&
                buffers_equal(a, b, (nd_ref){.buffer = state->v}, shard) &&
                buffers_equal(a, b, (nd_ref){.buffer = state->weights}, program->buffers[state->weights].elements);
    }
    return equal;
}

bool state_equal(const nd_run *a, const nd_run *b)
{
    bool equal = nd_run_ranks(a) == nd_run_ranks(b) && nd_run_steps_done(a) == nd_run_steps_done(b);
    for (int32_t i = 0; equal && i < nd_run_ranks(a); i++) {
        equal = ranks_equal(nd_run_rank(a, i), nd_run_rank(b, i));
    }
    return equal;
}

bool state_near(const nd_run *a, const nd_run *b, double tolerance, const char *except)
{
    const nd_param_list *params = nd_run_params(a);
    int64_t count = nd_model_params(nd_run_model(a)).total;
    double *left = calloc((size_t)count, sizeof *left);
    double *right = calloc((size_t)count, sizeof *right);
    state_need(left);
    state_need(right);
    nd_run_read_params(a, left);
    nd_run_read_params(b, right);
    double largest = 0.0;
    double magnitude = 0.0;
    const char *where = "";
    int64_t at = 0;
    for (int32_t p = 0; p < params->count; p++) {
        bool watched = except == NULL || strstr(params->params[p].name, except) == NULL;
        for (int64_t end = at + params->params[p].rows * params->params[p].cols; at < end; at++) {
            double difference = fabs(left[at] - right[at]);
            magnitude = fabs(left[at]) > magnitude ? fabs(left[at]) : magnitude;
            if (watched && (difference > largest || isnan(difference))) {
                largest = difference;
                where = params->params[p].name;
            }
        }
    }
    free(left);
    free(right);
    bool near = largest <= tolerance * magnitude;
    if (!near) {
        (void)fprintf(stderr, "%s of parameters of up to %.3g differs by %.3e, allowed %.1e of that\n", where,
                      magnitude, largest, tolerance);
    }
    return near;
}

void state_remove(const char *directory)
{
    DIR *stream = opendir(directory);
    for (const struct dirent *entry = stream == NULL ? NULL : readdir(stream); entry != NULL; entry = readdir(stream)) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.') {
            nd_disk_remove(path);
        }
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
    nd_disk_remove(directory);
}

void state_flip_byte(const char *path, int64_t offset)
{
    FILE *stream = fopen(path, "r+b");
    state_need(stream);
    CU_ASSERT_EQUAL(fseek(stream, (long)offset, SEEK_SET), 0);
    int byte = fgetc(stream);
    CU_ASSERT_NOT_EQUAL(byte, EOF);
    CU_ASSERT_EQUAL(fseek(stream, (long)offset, SEEK_SET), 0);
    (void)fputc(byte ^ 1, stream);
    CU_ASSERT_EQUAL(fclose(stream), 0);
}

void state_cut(const char *path, int64_t bytes)
{
    struct stat info;
    CU_ASSERT_EQUAL(stat(path, &info), 0);
    CU_ASSERT_EQUAL(truncate(path, info.st_size - (off_t)bytes), 0);
}
