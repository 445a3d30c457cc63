#include "cli/execution_input.h"

#include <inttypes.h>
#include <string.h>

#include "cli/layout_input.h"
#include "core/text.h"
#include "cost_model/split.h"
#include "reports/stage_text.h"

/* KEEP_DEFAULT: as keep_latest_k of torchtitan. */
enum { SEQ_LEN_DEFAULT = 128, STEPS_DEFAULT = 10, STEPS_MAX = 1000000, KEEP_DEFAULT = 10 };

static const double lr_max = 1e6; /* beyond any that trains: weights overflow, which --check-nan shows */
static const double clip_max = 1e30;
static const double masked_max = 0.999; /* some label must count */

typedef enum backend { BACKEND_CPU, BACKEND_CUDA, BACKEND_COUNT } backend;

static const char *backend_name(int value)
{
    return value == BACKEND_CPU ? "cpu" : "cuda";
}

static nd_status load_backend(const nd_options *options, nd_execution_input *input, nd_error *err)
{
    const char *text = options->value[ND_OPTION_BACKEND];
    int found = BACKEND_CPU;
    if (text != NULL) {
        ND_TRY(nd_text_choice(text, "--backend", backend_name, BACKEND_COUNT, &found, err));
    }
    if (found == BACKEND_CUDA) {
        return nd_fail(err, ND_EUNSUPPORTED,
                       "--backend cuda is not built into this ndplan (" NDPLAN_VERSION
                       "); --backend cpu runs everywhere");
    }
    input->run.backend = nd_backend_cpu();
    return ND_OK;
}

static const char *real_name(int value)
{
    static const nd_elem reals[] = {ND_ELEM_F64, ND_ELEM_F32, ND_ELEM_BF16};
    return nd_elem_name(reals[value]);
}

nd_status nd_input_dtype(const char *text, nd_elem *out, nd_error *err)
{
    static const nd_elem reals[] = {ND_ELEM_F64, ND_ELEM_F32, ND_ELEM_BF16};
    int found = 0;
    ND_TRY(nd_text_choice(text, "--dtype", real_name, 3, &found, err));
    *out = reals[found];
    return ND_OK;
}

/* In fp64 only mistakes stand out: the rounding of two layouts differs by 1e-15, of fp32 by 1e-6 and more. */
static nd_status load_dtype(const nd_options *options, nd_execution_input *input, nd_error *err)
{
    const char *text = options->value[ND_OPTION_DTYPE];
    if (text != NULL) {
        ND_TRY(nd_input_dtype(text, &input->run.program.real, err));
    } else if (input->verify) {
        input->run.program.real = ND_ELEM_F64;
        nd_inputs_assume(&input->inputs, "--dtype", "fp64", "--verify: so precise that every mistake stands out");
    } else {
        input->run.program.real = ND_ELEM_F32;
        nd_inputs_assume(&input->inputs, "--dtype", "fp32", "precise and fast on processors; bf16 is emulated");
    }
    input->inputs.train.precision = input->run.program.real == ND_ELEM_BF16 ? ND_DTYPE_BF16 : ND_DTYPE_FP32;
    return ND_OK;
}

/* --ranks only says again what the layout says: for scripts that must not be surprised. */
static nd_status load_ranks(const nd_options *options, const nd_layout *layout, nd_error *err)
{
    const char *text = options->value[ND_OPTION_RANKS];
    int64_t ranks = nd_layout_ranks(layout);
    int64_t asked = ranks;
    if (text != NULL) {
        ND_TRY(nd_text_int(text, "--ranks", 1, ND_MEMBERS_MAX, &asked, err));
    }
    if (asked != ranks && !nd_options_has(options, ND_OPTION_LAYOUT)) {
        return nd_fail(err, ND_EINVAL,
                       "--ranks %" PRId64 " needs a layout that has them: add --layout, for example dp_shard=%" PRId64,
                       asked, asked);
    }
    if (asked != ranks) {
        return nd_fail(err, ND_EINVAL,
                       "--ranks %" PRId64 " and the layout has %" PRId64 " (pp x dp_replicate x dp_shard x cp x tp = "
                       "%d x %d x %d x %d x %d); change one of them, or leave --ranks out",
                       asked, ranks, (int)layout->size[ND_AXIS_PP], (int)layout->size[ND_AXIS_DP_REPLICATE],
                       (int)layout->size[ND_AXIS_DP_SHARD], (int)layout->size[ND_AXIS_CP],
                       (int)layout->size[ND_AXIS_TP]);
    }
    return ND_OK;
}

static nd_status load_int(const nd_options *options, nd_option_id id, int64_t min, int64_t max, int64_t *out,
                          nd_error *err)
{
    const char *text = options->value[id];
    return text == NULL ? ND_OK : nd_text_int(text, nd_option_name(id), min, max, out, err);
}

static nd_status load_double(const nd_options *options, nd_option_id id, double max, double *out, nd_error *err)
{
    const char *text = options->value[id];
    return text == NULL ? ND_OK : nd_text_double(text, nd_option_name(id), 0.0, max, out, err);
}

static nd_status load_training(const nd_options *options, nd_execution_input *input, nd_error *err)
{
    nd_run_options *run = &input->run;
    int64_t seed = 0;
    input->steps = STEPS_DEFAULT;
    ND_TRY(load_int(options, ND_OPTION_RUN_STEPS, 1, STEPS_MAX, &input->steps, err));
    ND_TRY(load_int(options, ND_OPTION_SEED, 0, INT64_MAX, &seed, err));
    ND_TRY(load_int(options, ND_OPTION_WARMUP, 0, STEPS_MAX, &run->warmup_steps, err));
    ND_TRY(load_double(options, ND_OPTION_LR, lr_max, &run->step.lr, err));
    ND_TRY(load_double(options, ND_OPTION_CLIP, clip_max, &run->program.clip_norm, err));
    ND_TRY(load_double(options, ND_OPTION_MASKED_FRAC, masked_max, &run->data.masked_frac, err));
    run->init.seed = (uint64_t)seed;
    run->data.seed = (uint64_t)seed;
    run->data.path = options->value[ND_OPTION_DATA];
    run->check_nan = nd_options_has(options, ND_OPTION_CHECK_NAN);
    return ND_OK;
}

/* What says how --save saves means nothing without it. */
static nd_status check_save_options(const nd_options *options, nd_error *err)
{
    static const nd_option_id with_save[] = {ND_OPTION_SAVE_EVERY, ND_OPTION_KEEP};
    for (size_t i = 0; i < sizeof with_save / sizeof with_save[0]; i++) {
        if (nd_options_has(options, with_save[i]) && !nd_options_has(options, ND_OPTION_SAVE)) {
            return nd_fail(err, ND_EINVAL, "%s %s needs --save DIR: where checkpoints go", nd_option_name(with_save[i]),
                           options->value[with_save[i]]);
        }
    }
    return ND_OK;
}

static nd_status load_checkpoints(const nd_options *options, nd_execution_input *input, nd_error *err)
{
    input->save = options->value[ND_OPTION_SAVE];
    input->resume = options->value[ND_OPTION_RESUME];
    input->save_weights = options->value[ND_OPTION_SAVE_WEIGHTS];
    input->keep = KEEP_DEFAULT;
    ND_TRY(load_int(options, ND_OPTION_SAVE_EVERY, 1, STEPS_MAX, &input->save_every, err));
    ND_TRY(load_int(options, ND_OPTION_KEEP, 0, STEPS_MAX, &input->keep, err));
    ND_TRY(check_save_options(options, err));
    if (input->verify && input->resume != NULL) {
        return nd_fail(
            err, ND_EINVAL,
            "--verify compares with one rank from the first step on, and --resume starts later: leave out one");
    }
    if (input->save_weights != NULL && input->save == NULL) {
        return nd_fail(err, ND_EINVAL,
                       "--save-weights %s puts a checkpoint together, and there is none without --save DIR",
                       input->save_weights);
    }
    return ND_OK;
}

/* What is to be said about time. */
static nd_status load_timing(const nd_options *options, nd_execution_input *input, nd_error *err)
{
    const char *path = options->value[ND_OPTION_RUN_CALIBRATION];
    nd_elem real = input->run.program.real;
    input->profile = nd_options_has(options, ND_OPTION_PROFILE);
    input->trace = options->value[ND_OPTION_RUN_TRACE];
    input->run.profile = input->profile || input->trace != NULL;
    if (path == NULL) {
        return ND_OK;
    }
    ND_TRY(nd_machine_load(path, &input->machine, err));
    if (!input->machine.rates[real].measured) {
        return nd_fail(err, ND_EINVAL,
                       "--calibration %s has nothing about %s: `ndplan calibrate --machine` measures it", path,
                       nd_elem_name(real));
    }
    input->has_machine = true;
    return ND_OK;
}

/* Which layers a stage holds: what time they take is not known, what they compute is. */
static void load_split(nd_execution_input *input)
{
    char stages[128];
    nd_stage_split split;
    nd_inputs *inputs = &input->inputs;
    if (input->layout.size[ND_AXIS_PP] == 1 || input->layout.split == ND_SPLIT_EVEN) {
        return;
    }
    nd_split_stages_by_flops(&inputs->model, &input->layout, &inputs->train, &inputs->stack, &split);
    nd_stage_runs runs = nd_stage_runs_of(&split);
    nd_stage_runs_text(&runs, stages, sizeof stages);
    input->run.program.chunks = nd_stage_split_chunks(&split);
    nd_inputs_assume(inputs, "--layout", "split=balanced",
                     "layers per stage %s: FLOPs as equal as can be, head included, since a run has no cluster",
                     stages);
}

nd_status nd_execution_input_load(const nd_options *options, nd_execution_input *out, nd_error *err)
{
    const char *layout = options->value[ND_OPTION_LAYOUT];
    memset(out, 0, sizeof *out);
    out->run = nd_run_options_default();
    out->verify = nd_options_has(options, ND_OPTION_VERIFY);
    out->lines = nd_options_has(options, ND_OPTION_RUN_VERBOSE);
    ND_TRY(load_backend(options, out, err));
    ND_TRY(nd_inputs_load_training(options, SEQ_LEN_DEFAULT, "short, so that a step takes little time", &out->inputs,
                                   err));
    ND_TRY(load_training(options, out, err));
    ND_TRY(load_dtype(options, out, err));
    ND_TRY(load_timing(options, out, err));
    ND_TRY(load_checkpoints(options, out, err));
    ND_TRY(nd_layout_input_executed(&out->inputs, layout != NULL ? layout : "tp=1", &out->layout, err));
    ND_TRY(load_ranks(options, &out->layout, err));
    load_split(out);
    return ND_OK;
}
