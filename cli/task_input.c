#include "cli/task_input.h"

#include "cli/progress.h"

#include <string.h>

#include "cli/layout_input.h"

enum { EVERY_KEY = (1u << ND_LAYOUT_KEY_COUNT) - 1u };

static nd_status parse_keys(const char *option, const char *text, nd_layout *layout, uint32_t *keys, nd_error *err)
{
    nd_error inner;
    nd_status status = nd_layout_parse(text, layout, keys, &inner);
    return status == ND_OK ? ND_OK : nd_fail(err, status, "%s: %.900s", option, inner.message);
}

/* A whole layout. Its accumulation stays pinned only when the user wrote it: else it follows the batch. */
static nd_status input_layout(const char *text, nd_inputs *inputs, const nd_task_batch *batch, nd_task *task,
                              uint32_t *keys, nd_error *err)
{
    nd_layout first;
    ND_TRY(parse_keys("--layout", text, &first, keys, err));
    if (!task->batch_given && (*keys & nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM)) == 0) {
        nd_inputs_default_batch(inputs, batch->gpus * first.micro_batch, batch->why);
        inputs->global_batch_given = true; /* settled: the layout's accumulation follows from it */
    }
    ND_TRY(nd_layout_input(inputs, text, &task->pin, keys, err));
    task->whole_layout = true;
    task->pinned = EVERY_KEY;
    if ((*keys & nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM)) == 0) {
        task->pinned &= ~nd_layout_key_bit(ND_LAYOUT_KEY_GRAD_ACCUM);
    }
    return ND_OK;
}

nd_status nd_task_input(const nd_options *options, nd_inputs *inputs, const nd_task_batch *batch, nd_task *out,
                        nd_error *err)
{
    const char *layout = options->value[ND_OPTION_LAYOUT];
    const char *pin = options->value[ND_OPTION_PIN];
    uint32_t keys = 0;
    nd_task task = {.framework = inputs->framework, .pin = nd_layout_single()};
    task.batch_given = inputs->global_batch_given;
    if (nd_options_has(options, ND_OPTION_GLOBAL_BATCH_TOKENS)) {
        task.batch_tokens = inputs->train.global_batch_seqs * inputs->train.seq_len_tokens;
    }
    if (layout != NULL && pin != NULL) {
        return nd_fail(err, ND_EINVAL, "--layout fixes every key and --pin some; give one of them");
    }
    if (pin != NULL) {
        ND_TRY(parse_keys("--pin", pin, &task.pin, &task.pinned, err));
    }
    if (layout != NULL) {
        ND_TRY(input_layout(layout, inputs, batch, &task, &keys, err));
    } else if (!task.batch_given) {
        nd_inputs_default_batch(inputs, batch->gpus * task.pin.micro_batch, batch->why);
    }
    ND_TRY(nd_inputs_finish(inputs, err));
    ND_TRY(nd_progress_start(options, &task.control, err));
    if (task.whole_layout) {
        nd_layout_input_sequence_parallel(inputs, &task.pin, keys);
    }
    ND_TRY(nd_inputs_anchor(options, inputs, task.whole_layout ? &task.pin : NULL, err));
    task.context = &inputs->cost;
    *out = task;
    return ND_OK;
}
