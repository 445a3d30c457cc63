/** Programs for tests: of all ranks of a layout of a tiny model, and written by hand. */
#ifndef ND_TESTS_PROGRAM_PROGRAMS_H
#define ND_TESTS_PROGRAM_PROGRAMS_H

#include "program/program.h"

enum { TINY_MODELS = 7, TINY_LAYOUTS = 16 };

/** Files of tests/executor/data. */
extern const char *const tiny_models[TINY_MODELS];

/** Layouts with every kind of collective and message; not every model supports all. */
extern const char *const tiny_layouts[TINY_LAYOUTS];

typedef struct program_set {
    nd_model_spec model;
    nd_train_spec train;
    int32_t ranks;
    const nd_program **programs;
} program_set;

/** Build the programs of all ranks, the batch as the layout says.
 * \return false, and nothing to close, when the layout is not executable with this model */
bool programs_open(program_set *set, const char *file, const char *layout, int64_t seq_len, nd_elem real);
void programs_close(program_set *set);

enum { HAND_RANKS = 4, HAND_INS = 24 };

/** Up to 4 ranks with a few instructions. Buffer 1 is 1 MiB of fp32. */
typedef struct hand_set {
    int32_t ranks;
    nd_buffer buffers[2];
    nd_ins ins[HAND_RANKS][HAND_INS];
    nd_program program[HAND_RANKS];
    const nd_program *programs[HAND_RANKS];
} hand_set;

/** `tp` x `pp` ranks without instructions. Not copied: it points into itself. */
void hand_open(hand_set *set, int32_t pp, int32_t tp);

/** Append to a rank's program. \return index of the instruction */
int32_t hand_add(hand_set *set, int32_t rank, nd_ins ins);

#endif
