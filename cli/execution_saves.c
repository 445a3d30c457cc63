#include "cli/execution_saves.h"

#include "cli/progress.h"

_Static_assert((int)ND_EXECUTION_CHANGES_MAX >= (int)ND_SETTINGS_CHANGES_MAX, "changed settings in the view");

static nd_status check_saves(const nd_execution_input *input, const nd_run *run, nd_error *err)
{
    if (input->save == NULL) {
        return ND_OK;
    }
    const nd_save_target target = {.directory = input->save,
                                   .keep = input->keep,
                                   .saves = input->save_every > 0 ? 1 + input->steps / input->save_every : 1,
                                   .weights = input->save_weights,
                                   .weights_elem = input->run.program.real};
    return nd_run_save_check(run, &target, err);
}

nd_status nd_execution_begin(const nd_execution_input *input, nd_run *run, nd_resumed *resumed, nd_error *err)
{
    if (input->resume != NULL) {
        ND_TRY(nd_run_resume(run, input->resume, resumed, err));
    }
    return check_saves(input, run, err);
}

nd_status nd_execution_take(const nd_execution_input *input, nd_run *run, nd_run_observer observer, void *user,
                            nd_error *err)
{
    int64_t end = nd_run_steps_done(run) + input->steps;
    while (nd_run_steps_done(run) < end) {
        int64_t done = nd_run_steps_done(run);
        int64_t next = input->save_every > 0 ? (done / input->save_every + 1) * input->save_every : end;
        next = next < end ? next : end;
        ND_TRY(nd_run_steps(run, next - done, observer, user, err));
        if (nd_run_steps_done(run) < next || nd_progress_interrupted()) {
            return ND_OK;
        }
        if (next < end) {
            ND_TRY(nd_run_save(run, input->save, input->keep, err));
        }
    }
    return ND_OK;
}

nd_status nd_execution_save(const nd_execution_input *input, const nd_run *run, bool *failed, nd_error *err)
{
    nd_checkpoint *checkpoint = NULL;
    if (input->save == NULL) {
        return ND_OK;
    }
    nd_status status = nd_run_save(run, input->save, input->keep, err);
    if (status == ND_OK && input->save_weights != NULL) {
        status =
            nd_checkpoint_open(input->save, &input->inputs.model, nd_run_params(run), ND_ELEM_COUNT, &checkpoint, err);
        if (status == ND_OK) {
            status = nd_checkpoint_merge(checkpoint, &input->inputs.model, input->run.program.real, input->save_weights,
                                         err);
        }
        nd_checkpoint_close(checkpoint);
    }
    *failed = status == ND_EIO;
    return status;
}

void nd_execution_note_resumed(const nd_resumed *resumed, nd_execution_view *view)
{
    view->resumed_step = resumed->step;
    view->changes_count = resumed->changes_count;
    for (int32_t i = 0; i < resumed->changes_count; i++) {
        const nd_setting_change *change = &resumed->changes[i];
        view->changes[i] = (nd_execution_change){.name = change->name, .before = change->before, .now = change->now};
    }
}
