#include "tests/program/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/nd_test.h"

const char *const tiny_models[TINY_MODELS] = {"dense", "gemma3", "gpt2", "mixtral", "mla", "moe", "tied"};

const char *const tiny_layouts[TINY_LAYOUTS] = {
    "micro_batch=2,grad_accum=2",
    "micro_batch=1,recompute=full",
    "dp_replicate=2",
    "dp_shard=2,sharding=zero1,grad_accum=2",
    "dp_shard=4,sharding=zero2",
    "dp_shard=2,sharding=zero3,grad_accum=2",
    "tp=2",
    "tp=2,sp=on,micro_batch=2",
    "cp=2,cp_method=ring,sharding=zero3",
    "cp=2,cp_method=allgather,sharding=zero1",
    "cp=2,cp_method=ulysses,sharding=zero2",
    "pp=2,grad_accum=4",
    "pp=2,vpp=2,grad_accum=4",
    "pp=2,schedule=zero_bubble,grad_accum=4",
    "dp_shard=4,ep=4,sharding=zero2",
    "pp=2,dp_shard=2,tp=2,sharding=zero3,grad_accum=2",
};

static bool build_all(program_set *set, const nd_layout *layout, nd_elem real, nd_error *err)
{
    nd_program_options options = nd_program_options_default();
    options.real = real;
    for (int32_t i = 0; i < set->ranks; i++) {
        nd_program *program = NULL;
        if (nd_program_create(&set->model, layout, &set->train, &options, i, &program, err) != ND_OK) {
            return false;
        }
        set->programs[i] = program;
    }
    return true;
}

bool programs_open(program_set *set, const char *file, const char *layout_text, int64_t seq_len, nd_elem real)
{
    nd_error err = {.message = ""};
    nd_layout layout;
    char path[512];
    memset(set, 0, sizeof *set);
    (void)snprintf(path, sizeof path, "%s/%s.json", ND_TINY_MODELS, file);
    ND_ASSERT_OK(nd_model_load(path, false, &set->model, &err));
    ND_ASSERT_OK(nd_layout_parse(layout_text, &layout, NULL, &err));
    set->train =
        (nd_train_spec){.seq_len_tokens = seq_len,
                        .global_batch_seqs = nd_layout_data_ranks(&layout) * layout.micro_batch * layout.grad_accum,
                        .base_bits = 16};
    set->ranks = (int32_t)nd_layout_ranks(&layout);
    set->programs = calloc((size_t)set->ranks, sizeof(const nd_program *));
    CU_ASSERT_PTR_NOT_NULL_FATAL(set->programs);
    if (!build_all(set, &layout, real, &err)) {
        programs_close(set);
        return false;
    }
    return true;
}

void programs_close(program_set *set)
{
    for (int32_t i = 0; i < set->ranks; i++) {
        nd_program_free((nd_program *)set->programs[i]);
    }
    free(set->programs);
    set->programs = NULL;
    set->ranks = 0;
}

void hand_open(hand_set *set, int32_t pp, int32_t tp)
{
    memset(set, 0, sizeof *set);
    set->ranks = pp * tp;
    CU_ASSERT_TRUE_FATAL(set->ranks <= HAND_RANKS);
    set->buffers[1] = (nd_buffer){.elements = 1 << 18, .elem = ND_ELEM_F32, .born = -1, .dies = -1, .tag = "hand"};
    for (int32_t i = 0; i < set->ranks; i++) {
        nd_program *program = &set->program[i];
        *program = (nd_program){.rank = i, .layout = nd_layout_single(), .expert_rows_frac = 1.0};
        program->layout.size[ND_AXIS_PP] = pp;
        program->layout.size[ND_AXIS_TP] = tp;
        program->options = nd_program_options_default();
        program->ins = set->ins[i];
        program->buffers = set->buffers;
        program->buffers_count = 2;
        set->programs[i] = program;
    }
}

int32_t hand_add(hand_set *set, int32_t rank, nd_ins ins)
{
    nd_program *program = &set->program[rank];
    CU_ASSERT_TRUE_FATAL(program->ins_count < HAND_INS);
    ins.tag = ins.tag != NULL ? ins.tag : "by hand";
    program->ins[program->ins_count] = ins;
    return program->ins_count++;
}
