#include "cost_model/machine.h"

static const nd_compute_rates *rates_of(const nd_machine *machine, const nd_program *program)
{
    return &machine->rates[program->options.real];
}

/* 1 for one rank, the measured factor when all processors are busy, linear between; beyond, ranks take turns. */
static double crowding(const nd_machine *machine, const nd_op_rate *rate, int32_t ranks)
{
    if (ranks <= 1) {
        return 1.0;
    }
    if (ranks > machine->processors) {
        return rate->crowd * (double)ranks / (double)machine->processors;
    }
    return 1.0 + (rate->crowd - 1.0) * (double)(ranks - 1) / (double)(machine->processors - 1);
}

double nd_machine_seconds(const void *user, const nd_program *program, const nd_ins *ins, int32_t members)
{
    const nd_machine_share *share = user;
    const nd_compute_rates *rates = rates_of(share->machine, program);
    const nd_op_rate *rate = &rates->op[ins->op];
    nd_ins_work work = nd_ins_work_of(program, ins, members);
    double seconds = 0.0;
    for (int i = 0; i < ND_WORK_TERMS; i++) {
        seconds += rate->term_s[i] * work.term[i];
    }
    seconds *= crowding(share->machine, rate, share->ranks);
    if (members > 1) {
        seconds += rates->skew_s;
    }
    return seconds + rates->gap_s;
}

nd_status nd_machine_time(const nd_machine *machine, const nd_program *const programs[], int32_t ranks,
                          int64_t kv_heads, nd_program_time *out, nd_error *err)
{
    nd_elem real = programs[0]->options.real;
    if ((int)real >= ND_MACHINE_ELEMS || !machine->rates[(int)real].measured) {
        return nd_fail(err, ND_EINVAL, "the calibration of this machine has nothing about %s", nd_elem_name(real));
    }
    nd_machine_share share = {.machine = machine, .ranks = ranks};
    return nd_program_time_create(programs, ranks, kv_heads, ND_ISSUE_IN_ORDER, nd_machine_seconds, &share, out, err);
}

nd_ins_op nd_machine_lacks(const nd_machine *machine, const nd_program *program)
{
    const nd_compute_rates *rates = rates_of(machine, program);
    for (int32_t i = 0; i < program->ins_count; i++) {
        nd_ins_op op = program->ins[i].op;
        if (nd_work_term_name(op, 0)[0] != '\0' && rates->op[op].rows == 0) {
            return op;
        }
    }
    return ND_INS_COUNT;
}
