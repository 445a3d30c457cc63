/* One run of each kind on 16 ranks, from building the lists to a checkpoint and the end of all threads: what the thread
 * and address sanitizers and valgrind (valgrind.sh) look at. That the numbers are right is for test_parity_*. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/executor/rank_threads.h"
#include "tests/executor/state.h"
#include "tests/nd_test.h"

static const char *const directory = "test_whole_runs.dir";

enum { RANKS = 16, STEPS = 2, SEQUENCES = 8 };

static const struct {
    const char *model, *layout;
    nd_elem real;
} runs[] = {
    {"dense.json", "dp_replicate=2,dp_shard=2,cp=2,tp=2,sp=on,sharding=zero3,recompute=full", ND_ELEM_F32},
    {"dense.json", "dp_replicate=2,pp=2,dp_shard=4,sharding=zero2,schedule=zero_bubble", ND_ELEM_BF16},
    {"tied.json", "pp=2,vpp=2,schedule=interleaved,cp=4,cp_method=ulysses,dp_shard=2,sharding=zero1", ND_ELEM_F64},
    {"gemma3.json", "dp_replicate=2,cp=4,cp_method=allgather,tp=2,sharding=none", ND_ELEM_F32},
    {"gpt2.json", "pp=2,dp_replicate=2,tp=4,sp=off,sharding=none,recompute=selective", ND_ELEM_BF16},
    {"mixtral.json", "dp_shard=4,pp=2,tp=2,ep=4,sharding=zero3", ND_ELEM_F32},
    {"moe.json", "dp_shard=4,cp=2,tp=2,ep=8,sharding=zero3,recompute=every:2", ND_ELEM_BF16},
    {"mla.json", "dp_shard=2,dp_replicate=2,tp=4,sp=on,ep=2,sharding=zero2", ND_ELEM_F32},
};
enum { RUNS = sizeof runs / sizeof runs[0] };

static nd_run *open_run(size_t which, bool check_nan)
{
    nd_error err = {.message = ""};
    nd_model_spec model;
    nd_layout layout;
    nd_run *run = NULL;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", ND_TEST_DATA, runs[which].model);
    ND_ASSERT_OK(nd_model_load(path, false, &model, &err));
    ND_ASSERT_OK(nd_layout_parse(runs[which].layout, &layout, NULL, &err));
    CU_ASSERT_EQUAL_FATAL(nd_layout_ranks(&layout), RANKS);
    layout.grad_accum = SEQUENCES / (nd_layout_data_ranks(&layout) * layout.micro_batch);
    const nd_train_spec train = {.seq_len_tokens = 32, .global_batch_seqs = SEQUENCES, .base_bits = 16};
    nd_run_options options = nd_run_options_default();
    options.program.real = runs[which].real;
    options.init = (nd_init_options){.seed = 7, .std = 0.15, .noise = 0.1};
    options.data = (nd_data_options){.seed = 11, .masked_frac = 0.3};
    options.checks = true;
    options.check_nan = check_nan;
    options.poison = true;
    ND_ASSERT_OK(nd_run_create(&model, &layout, &train, &options, &run, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(run);
    return run;
}

/* ---- a checkpoint, by all ranks at once ---- */

typedef struct saving {
    const nd_run *run;
    nd_checkpoint_writer *writer;
    const nd_checkpoint *checkpoint;
    const double *expected; /* of every parameter */
} saving;

static void fill(void *user, int32_t unit, nd_checkpoint_part part, void *out)
{
    nd_rank *rank = user;
    const nd_program *program = nd_rank_program(rank);
    const nd_unit_state *state = &program->states[unit];
    int64_t count = program->placement.units[unit].shard_elements;
    nd_ref from = part == ND_CHECKPOINT_MASTER ? state->master
                                               : (nd_ref){.buffer = part == ND_CHECKPOINT_M ? state->m : state->v};
    if (nd_wide_elem(program->options.real) == ND_ELEM_F64) {
        nd_rank_read(rank, from, count, out);
        return;
    }
    double *numbers = malloc((size_t)count * sizeof *numbers);
    CU_ASSERT_PTR_NOT_NULL_FATAL(numbers);
    nd_rank_read(rank, from, count, numbers);
    for (int64_t i = 0; i < count; i++) {
        ((float *)out)[i] = (float)numbers[i];
    }
    free(numbers);
}

static void put(rank_thread *self)
{
    const saving *s = self->user;
    nd_rank *rank = nd_run_rank(s->run, self->rank);
    self->status = nd_checkpoint_put(s->writer, &nd_rank_program(rank)->placement, fill, rank, &self->err);
}

/* Every rank reads some of the parameters. */
static void read_back(rank_thread *self)
{
    const saving *s = self->user;
    const nd_param_list *params = nd_run_params(s->run);
    bool f64 = nd_checkpoint_info_get(s->checkpoint)->wide == ND_ELEM_F64;
    for (int32_t i = self->rank; i < params->count; i += self->ranks) {
        int64_t rows = params->params[i].rows;
        int64_t count = rows * params->params[i].cols;
        const double *expected = s->expected + nd_param_first(params, i);
        double *found = malloc((size_t)count * sizeof *found);
        self->status = nd_checkpoint_read_param(s->checkpoint, i, ND_CHECKPOINT_MASTER, 0, rows, found, &self->err);
        for (int64_t k = 0; k < count && self->status == ND_OK; k++) {
            double number = f64 ? found[k] : (double)((const float *)(const void *)found)[k];
            self->wrong += number != expected[k];
        }
        free(found);
    }
}

static bool all_good(const rank_thread *threads)
{
    for (int32_t i = 0; i < RANKS; i++) {
        if (threads[i].status != ND_OK || threads[i].wrong != 0) {
            (void)fprintf(stderr, "rank %d: %s; %lld numbers differ\n", (int)i, threads[i].err.message,
                          (long long)threads[i].wrong);
            return false;
        }
    }
    return true;
}

static void check_checkpoint(const nd_run *run)
{
    nd_error err = {.message = ""};
    static rank_thread threads[RANKS];
    const nd_program *program = nd_rank_program(nd_run_rank(run, 0));
    const nd_checkpoint_info info = {.layout = program->layout,
                                     .settings = {.seq_len_tokens = 32, .global_batch_seqs = SEQUENCES},
                                     .chunks = program->chunks,
                                     .step = nd_run_steps_done(run),
                                     .wide = nd_wide_elem(program->options.real)};
    double *expected = calloc((size_t)nd_model_params(nd_run_model(run)).total, sizeof *expected);
    nd_checkpoint *checkpoint = NULL;
    saving s = {.run = run, .expected = expected};
    nd_run_read_params(run, expected);
    state_remove(directory);
    ND_ASSERT_OK(nd_checkpoint_create(directory, nd_run_model(run), nd_run_params(run), &info, 0, &s.writer, &err));
    rank_threads_run(threads, NULL, RANKS, put, &s);
    CU_ASSERT_TRUE(all_good(threads));
    ND_ASSERT_OK(nd_checkpoint_finish(s.writer, &err));
    ND_ASSERT_OK(nd_checkpoint_open(directory, nd_run_model(run), nd_run_params(run), info.wide, &checkpoint, &err));
    s.checkpoint = checkpoint;
    rank_threads_run(threads, NULL, RANKS, read_back, &s);
    CU_ASSERT_TRUE(all_good(threads));
    nd_checkpoint_close(checkpoint);
    state_remove(directory);
    free(expected);
}

static bool keep_step(void *user, const nd_run_step *step)
{
    nd_run_step *last = user;
    *last = *step;
    return true;
}

static void test_a_run_of_each_kind(void)
{
    for (size_t i = 0; i < RUNS; i++) {
        nd_error err = {.message = ""};
        nd_run_step last = {0};
        nd_run *run = open_run(i, false);
        ND_ASSERT_OK(nd_run_steps(run, STEPS, keep_step, &last, &err));
        CU_ASSERT_EQUAL(last.step, STEPS);
        CU_ASSERT_TRUE(isfinite(last.loss) && last.loss > 0.0 && isfinite(last.grad_norm) && last.grad_norm > 0.0);
        check_checkpoint(run);
        nd_run_free(run);
    }
}

/* Rank 5 finds a NaN in the middle of the second step, while others are anywhere. */
static void test_a_rank_that_fails_in_mid_step(void)
{
    for (size_t i = 0; i < RUNS; i += 2) { /* half of them: valgrind is slow */
        nd_error err = {.message = ""};
        nd_run *run = open_run(i, true);
        ND_ASSERT_OK(nd_run_steps(run, 1, NULL, NULL, &err));
        nd_rank *rank = nd_run_rank(run, 5);
        const nd_program *program = nd_rank_program(rank);
        const nd_unit_state *state = &program->states[program->placement.units_count / 2];
        int64_t count = program->buffers[state->weights].elements;
        double *numbers = malloc((size_t)count * sizeof *numbers);
        for (int64_t k = 0; k < count; k++) {
            numbers[k] = (double)NAN;
        }
        nd_rank_write(rank, (nd_ref){.buffer = state->weights}, count, numbers);
        free(numbers);
        CU_ASSERT_EQUAL(nd_run_steps(run, 1, NULL, NULL, &err), ND_EINVAL);
        ND_ASSERT_CONTAINS(err.message, "NaN");
        ND_ASSERT_CONTAINS(err.message, ", instruction ");
        nd_run_free(run);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_a_run_of_each_kind),
        ND_TEST(test_a_rank_that_fails_in_mid_step),
        {NULL, NULL},
    };
    return nd_test_main("executor/whole_runs", cases);
}
