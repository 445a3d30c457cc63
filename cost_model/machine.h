/** The machine that ndplan itself runs on: what one unit of every operation's work costs on its processor.
 * `ndplan calibrate --machine` measures and writes it, `ndplan run --calibration` predicts with it. docs/MODEL.md,
 * "Time of instructions".
 *
 * seconds = crowd x sum over terms of (constant x work term), program/work.h. `crowd` grows from 1 for one rank to the
 * measured factor when there are as many ranks as processors. */
#ifndef ND_COST_MODEL_MACHINE_H
#define ND_COST_MODEL_MACHINE_H

#include <stdio.h>

#include "program/program_time.h"
#include "program/work.h"

ND_BEGIN_DECLS

enum { ND_MACHINE_ELEMS = 3 }; /* ND_ELEM_F64, ND_ELEM_F32, ND_ELEM_BF16: compute types */

/** Constants of one operation. */
typedef struct nd_op_rate {
    double term_s[ND_WORK_TERMS]; /* seconds of a unit of each term */
    double crowd;                 /* times longer with all processors busy; measured, so a little below 1 too */
    int64_t rows;                 /* measurements behind it; 0: not measured, nothing is known */
    double error_frac;            /* median |predicted / measured - 1| over them */
} nd_op_rate;

typedef struct nd_compute_rates {
    bool measured;
    nd_op_rate op[ND_INS_COUNT];
    double gap_s;  /* between two instructions */
    double skew_s; /* by which members of a collective arrive apart when their programs say that they come together */
} nd_compute_rates;

typedef struct nd_machine {
    char processor[96]; /* "AMD EPYC" */
    char date[16];      /* "2026-12-02" */
    int32_t processors;
    nd_compute_rates rates[ND_MACHINE_ELEMS]; /* by nd_elem */
} nd_machine;

/** How one of `ranks` ranks sees the machine: the `user` of nd_machine_seconds(). */
typedef struct nd_machine_share {
    const nd_machine *machine;
    int32_t ranks;
} nd_machine_share;

/** An nd_ins_seconds. `user` is an nd_machine_share. An operation that was not measured takes no time. */
double nd_machine_seconds(const void *user, const nd_program *program, const nd_ins *ins, int32_t members);

/** Time one step of a run of this layout: nd_program_time_create() with the machine's constants, in order. More ranks
 * than processors take turns: their times grow by ranks / processors.
 * \return ND_EINVAL when the machine has no constants for the programs' compute type; what nd_programs_walk() returns
 */
nd_status nd_machine_time(const nd_machine *machine, const nd_program *const programs[], int32_t ranks,
                          int64_t kv_heads, nd_program_time *out, nd_error *err) ND_NODISCARD;

/** The first operation of a program that the machine has no constants for; ND_INS_COUNT: it has all. */
nd_ins_op nd_machine_lacks(const nd_machine *machine, const nd_program *program);

/** As JSON, "schema": "ndplan-machine-1". \return of reading ND_EIO, ND_EPARSE "FILE:LINE:COL: ..." */
void nd_machine_write(FILE *stream, const nd_machine *machine);
nd_status nd_machine_load(const char *path, nd_machine *out, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
