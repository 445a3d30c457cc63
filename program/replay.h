/** Peak memory of a program: its allocations and frees, without running anything. */
#ifndef ND_PROGRAM_REPLAY_H
#define ND_PROGRAM_REPLAY_H

#include "program/program.h"

ND_BEGIN_DECLS

typedef struct nd_replay {
    int64_t peak_bytes;                              /* most bytes alive at once, in whole blocks of the arena */
    int64_t at_peak_bytes[ND_MEMORY_CLASS_COUNT];    /* of that, by class; they add up to peak_bytes */
    int64_t class_peak_bytes[ND_MEMORY_CLASS_COUNT]; /* each class at its own peak */
    int32_t peak_ins;    /* the instruction that reaches the peak; -1: what lives as long as the run */
    int64_t arena_bytes; /* what the buffers span: peak and gaps */
} nd_replay;

nd_replay nd_program_replay(const nd_program *program);

ND_END_DECLS

#endif
