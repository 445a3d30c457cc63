#include "program/traffic.h"

static int64_t payload_bytes(const nd_program *program, const nd_ins *ins, int32_t members)
{
    bool sends = ins->op == ND_INS_SEND;
    nd_ref data = sends ? ins->in[0] : ins->out[0];
    int64_t row_bytes = ins->cols * nd_elem_bytes(program->buffers[data.buffer].elem);
    switch ((int)ins->op) {
    case ND_INS_ALL_GATHER:
    case ND_INS_REDUCE_SCATTER:
    case ND_INS_ALL_TO_ALL:
        return ins->rows * row_bytes * members; /* the instruction has the size of one part */
    case ND_INS_ALL_TO_ALL_ROWS:
        return ins->copies * row_bytes;
    case ND_INS_SEND_WAIT:
        return 0;
    default:
        return ins->rows * row_bytes;
    }
}

static bool is_message(nd_ins_op op)
{
    return op == ND_INS_SEND || op == ND_INS_SEND_WAIT || op == ND_INS_RECV;
}

void nd_program_traffic(const nd_program *program, int64_t kv_heads, nd_traffic *sum)
{
    for (int32_t i = 0; i < program->ins_count; i++) {
        const nd_ins *ins = &program->ins[i];
        if (!nd_ins_communicates(ins->op)) {
            continue;
        }
        int32_t members = 2;
        nd_members_kind kind = ND_MEMBERS_WORLD;
        if (!is_message(ins->op)) {
            kind = ins->group;
            members = nd_members_of(&program->layout, kv_heads, kind, program->rank).count;
        }
        if (members > 1) {
            sum->count[kind][ins->op].calls++;
            sum->count[kind][ins->op].bytes += payload_bytes(program, ins, members);
        }
    }
}

bool nd_traffic_is_routed(nd_ins_op op)
{
    return op == ND_INS_ALL_TO_ALL_ROWS;
}
