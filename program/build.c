/* nd_program_create(): sizes of the rank, then states, passes, update; then places and waits. */
#include <stdlib.h>
#include <string.h>

#include "program/builder_internal.h"

static const char *const mutation_names[ND_MUTATION_COUNT] = {
#define ND_MUTATION_NAME(name, text) [name] = (text),
    ND_MUTATION_LIST(ND_MUTATION_NAME)
#undef ND_MUTATION_NAME
};

const char *nd_mutation_name(nd_mutation mutation)
{
    return mutation_names[mutation];
}

nd_elem nd_wide_elem(nd_elem real)
{
    return real == ND_ELEM_F64 ? ND_ELEM_F64 : ND_ELEM_F32;
}

nd_program_options nd_program_options_default(void)
{
    return (nd_program_options){
        .real = ND_ELEM_F32, .clip_norm = 1.0, .norm_eps = 1e-5, .rope_theta = 10000.0, .mutation = ND_MUTATION_NONE};
}

static void set_sizes(nd_builder *b)
{
    const nd_layout *layout = &b->layout;
    const nd_program *program = b->program;
    b->real = program->options.real;
    b->wide = nd_wide_elem(b->real);
    nd_mesh_coords(layout, program->rank, b->coords);
    b->tp = layout->size[ND_AXIS_TP];
    b->cp = layout->size[ND_AXIS_CP];
    b->pp = layout->size[ND_AXIS_PP];
    b->micro_batch = layout->micro_batch;
    b->sp = layout->sequence_parallel && b->tp > 1;
    b->region_rows = program->train.seq_len_tokens / b->cp * b->micro_batch;
    b->stream_rows = b->sp ? b->region_rows / b->tp : b->region_rows;
    b->heads = b->model->heads / b->tp;
    bool latent = b->model->attention == ND_ATTENTION_MLA;
    int64_t kv_heads = latent ? b->model->heads : b->model->kv_heads;
    b->kv_heads = kv_heads / b->tp > 0 ? kv_heads / b->tp : 1;
    b->qk_dim = nd_model_qk_dim(b->model);
    b->v_dim = nd_model_v_dim(b->model);
}

static void build(nd_builder *b)
{
    nd_program *program = b->program;
    b->layer = -1;
    b->micro = -1;
    (void)nd_buffer_persistent(b, 0, b->real, ND_MEMORY_WORKSPACE, "none"); /* buffer 0 stands for "absent" */
    program->loss = nd_buffer_persistent(b, 1, ND_ELEM_F64, ND_MEMORY_WORKSPACE, "loss");
    program->grad_norm = nd_buffer_persistent(b, 1, ND_ELEM_F64, ND_MEMORY_WORKSPACE, "gradient norm");
    nd_build_states(b);
    int32_t count = 0;
    nd_build_step_start(b, &count);
    nd_build_passes(b, count);
    nd_release(b, &count);
    nd_build_update(b);
}

static nd_status prepare(nd_builder *b, nd_program *program, nd_error *err)
{
    ND_TRY(nd_param_list_create(b->model, &program->params, err));
    ND_TRY(nd_placement_create(b->model, &program->params, &program->layout, &program->chunks, program->rank,
                               &program->placement, err));
    size_t units = (size_t)program->placement.units_count;
    program->states = calloc(units, sizeof *program->states);
    b->uses = calloc(units, sizeof *b->uses);
    if (program->states == NULL || b->uses == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    return ND_OK;
}

static nd_status fill(nd_program *program, const nd_model_spec *model, nd_error *err)
{
    nd_builder b = {.program = program, .model = model, .layout = program->layout};
    nd_status status = prepare(&b, program, err);
    if (status == ND_OK) {
        set_sizes(&b);
        build(&b);
        status = b.failed
                     ? nd_fail(err, ND_ENOMEM, "out of memory for the program of rank %lld", (long long)program->rank)
                     : nd_place_buffers(program, err);
    }
    if (status == ND_OK) {
        status = nd_insert_waits(program, err);
    }
    free(b.uses);
    free(b.refs);
    free(b.deferred);
    return status;
}

/* Each row of the group picks experts_topk of all experts, and at most every one that a rank holds. */
static double expert_rows_frac(const nd_model_spec *model, const nd_layout *layout)
{
    if (layout->ep <= 1) {
        return 1.0;
    }
    int64_t held = model->experts / layout->ep;
    int64_t most = model->experts_topk < held ? model->experts_topk : held;
    return (double)model->experts_topk / (double)(layout->ep * most);
}

nd_status nd_program_create(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                            const nd_program_options *options, int64_t rank, nd_program **out, nd_error *err)
{
    ND_TRY(nd_program_supports(model, layout, train, err));
    nd_program *program = calloc(1, sizeof *program);
    if (program == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    program->rank = rank;
    program->layout = *layout;
    program->train = *train;
    program->options = *options;
    program->expert_rows_frac = expert_rows_frac(model, layout);
    program->chunks = options->chunks.chunks > 0 ? options->chunks : nd_chunk_map_even(model, layout);
    nd_status status = fill(program, model, err);
    if (status != ND_OK) {
        nd_program_free(program);
        return status;
    }
    *out = program;
    return ND_OK;
}

void nd_program_free(nd_program *program)
{
    if (program == NULL) {
        return;
    }
    nd_placement_free(&program->placement);
    nd_param_list_free(&program->params);
    free(program->states);
    free(program->ins);
    free(program->buffers);
    free(program);
}
