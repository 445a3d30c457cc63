/** From options to what the executor needs. Everything left out gets a default that is recorded as an assumption. */
#ifndef ND_CLI_EXECUTION_INPUT_H
#define ND_CLI_EXECUTION_INPUT_H

#include "cli/inputs.h"
#include "cost_model/machine.h"
#include "executor/run.h"

typedef struct nd_execution_input {
    nd_inputs inputs; /* model, training, assumptions; no cluster */
    nd_layout layout;
    nd_run_options run;
    int64_t steps;
    const char *save, *resume; /* directories of checkpoints; NULL: none */
    int64_t save_every;        /* steps between checkpoints; 0: only after the last */
    int64_t keep;              /* newest checkpoints that stay; 0: all */
    const char *save_weights;  /* .safetensors file; NULL: none */
    const char *trace;         /* file; NULL: none */
    bool has_machine;          /* constants to predict with */
    nd_machine machine;
    bool profile; /* report on instructions */
    bool verify;
    bool lines; /* a line on stderr for every step */
} nd_execution_input;

/** --dtype: fp64, fp32 or bf16 */
nd_status nd_input_dtype(const char *text, nd_elem *out, nd_error *err) ND_NODISCARD;

/** \return ND_EINVAL, ND_EUNSUPPORTED, ND_EIO: one line, and nothing was started */
nd_status nd_execution_input_load(const nd_options *options, nd_execution_input *out, nd_error *err) ND_NODISCARD;

#endif
