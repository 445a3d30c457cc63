#include "tests/executor/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "executor/random.h"

enum { MEMBERS_MAX = 64 };

typedef struct fuzz {
    const nd_run *run;
    const nd_step *step;
    int64_t kv_heads;
    int32_t ranks;
    bool obeys_waits;
    int32_t *head; /* [rank][stream]: the next instruction of the stream; ins_count: none left */
    bool **done;   /* [rank][instruction] */
    int32_t *sent; /* [from][to][channel]: index of the pending send's instruction + 1 */
    uint64_t seed, draws;
} fuzz;

static const nd_program *program_of(const fuzz *f, int32_t rank)
{
    return nd_rank_program(nd_run_rank(f->run, rank));
}

static int32_t *head_of(const fuzz *f, int32_t rank, int stream)
{
    return &f->head[rank * ND_STREAM_COUNT + stream];
}

static void seek(const fuzz *f, int32_t rank, int stream)
{
    const nd_program *program = program_of(f, rank);
    int32_t *head = head_of(f, rank, stream);
    while (*head < program->ins_count) {
        const nd_ins *ins = &program->ins[*head];
        if ((int)ins->stream == stream && ins->op != ND_INS_ALLOC && ins->op != ND_INS_FREE) {
            return;
        }
        ++*head;
    }
}

static void finish(const fuzz *f, int32_t rank, int stream)
{
    int32_t *head = head_of(f, rank, stream);
    f->done[rank][(*head)++] = true;
    seek(f, rank, stream);
}

static const nd_ins *ins_at(const fuzz *f, int32_t rank, int stream)
{
    const nd_program *program = program_of(f, rank);
    int32_t head = *head_of(f, rank, stream);
    return head < program->ins_count ? &program->ins[head] : NULL;
}

static int32_t *lane(const fuzz *f, int32_t from, int32_t to, int32_t channel)
{
    return &f->sent[(from * f->ranks + to) * 2 + channel];
}

static bool is_collective(nd_ins_op op)
{
    return nd_ins_communicates(op) && op != ND_INS_SEND && op != ND_INS_RECV && op != ND_INS_SEND_WAIT;
}

static nd_members members_of(const fuzz *f, int32_t rank, const nd_ins *ins)
{
    return nd_members_of(&program_of(f, rank)->layout, f->kv_heads, ins->group, rank);
}

static bool ready(const fuzz *f, int32_t rank, int stream)
{
    const nd_ins *ins = ins_at(f, rank, stream);
    if (ins == NULL) {
        return false;
    }
    if (ins->op == ND_INS_WAIT) {
        return !f->obeys_waits || f->done[rank][ins->waits_for];
    }
    if (ins->op == ND_INS_SEND) {
        return *lane(f, rank, ins->peer, ins->channel) == 0;
    }
    if (ins->op == ND_INS_RECV) {
        return *lane(f, ins->peer, rank, ins->channel) != 0;
    }
    if (ins->op == ND_INS_SEND_WAIT) {
        return *lane(f, rank, ins->peer, ins->channel) == 0;
    }
    if (!is_collective(ins->op)) {
        return true;
    }
    nd_members members = members_of(f, rank, ins);
    for (int32_t i = 0; i < members.count; i++) {
        const nd_ins *other = ins_at(f, (int32_t)(members.first + i * members.stride), stream);
        if (other == NULL || other->op != ins->op || other->group != ins->group) {
            return false;
        }
    }
    return true;
}

static void run_collective(const fuzz *f, int32_t rank, int stream)
{
    nd_members members = members_of(f, rank, ins_at(f, rank, stream));
    nd_call calls[MEMBERS_MAX];
    const nd_call *pointers[MEMBERS_MAX];
    for (int32_t i = 0; i < members.count; i++) {
        int32_t member = (int32_t)(members.first + i * members.stride);
        calls[i] = nd_rank_call(nd_run_rank(f->run, member), *head_of(f, member, stream), f->step);
        pointers[i] = &calls[i];
    }
    nd_collective_apply(pointers, members.count);
    for (int32_t i = 0; i < members.count; i++) {
        finish(f, (int32_t)(members.first + i * members.stride), stream);
    }
}

static void run_receive(const fuzz *f, int32_t rank, int stream)
{
    const nd_ins *ins = ins_at(f, rank, stream);
    int32_t *pending = lane(f, ins->peer, rank, ins->channel);
    nd_call to = nd_rank_call(nd_run_rank(f->run, rank), *head_of(f, rank, stream), f->step);
    nd_call from = nd_rank_call(nd_run_rank(f->run, ins->peer), *pending - 1, f->step);
    memcpy(to.out[0].data, from.in[0].data, (size_t)(ins->rows * ins->cols * nd_elem_bytes(to.out[0].elem)));
    *pending = 0;
    finish(f, rank, stream);
}

static bool run_one(const fuzz *f, int32_t rank, int stream)
{
    const nd_ins *ins = ins_at(f, rank, stream);
    if (is_collective(ins->op)) {
        run_collective(f, rank, stream);
        return true;
    }
    if (ins->op == ND_INS_RECV) {
        run_receive(f, rank, stream);
        return true;
    }
    if (ins->op == ND_INS_SEND) {
        *lane(f, rank, ins->peer, ins->channel) = *head_of(f, rank, stream) + 1;
    } else if (ins->op != ND_INS_WAIT && ins->op != ND_INS_SEND_WAIT) {
        nd_error err = {.message = ""};
        nd_rank *of = nd_run_rank(f->run, rank);
        nd_call call = nd_rank_call(of, *head_of(f, rank, stream), f->step);
        if (nd_rank_compute(of, &call, &err) != ND_OK) {
            return false;
        }
    }
    finish(f, rank, stream);
    return true;
}

static fuzz_result run_all(fuzz *f)
{
    int32_t heads = f->ranks * ND_STREAM_COUNT;
    for (;;) {
        int32_t left = 0;
        int32_t ready_count = 0;
        int32_t picked = -1;
        for (int32_t i = 0; i < heads; i++) {
            left += ins_at(f, i / ND_STREAM_COUNT, i % ND_STREAM_COUNT) != NULL;
            if (ready(f, i / ND_STREAM_COUNT, i % ND_STREAM_COUNT)) {
                ready_count++;
                /* each of the ready ones with the same chance */
                if (nd_random_bits(f->seed, 0, f->draws++) % (uint64_t)ready_count == 0) {
                    picked = i;
                }
            }
        }
        if (left == 0) {
            return FUZZ_DONE;
        }
        if (picked < 0) {
            return FUZZ_DEADLOCK;
        }
        if (!run_one(f, picked / ND_STREAM_COUNT, picked % ND_STREAM_COUNT)) {
            return FUZZ_FAILED;
        }
    }
}

fuzz_result fuzz_step(const nd_run *run, int64_t kv_heads, const nd_step *step, uint64_t seed, bool obeys_waits)
{
    int32_t ranks = nd_run_ranks(run);
    fuzz f = {.run = run, .step = step, .kv_heads = kv_heads, .ranks = ranks, .obeys_waits = obeys_waits, .seed = seed};
    f.head = calloc((size_t)ranks * ND_STREAM_COUNT, sizeof *f.head);
    f.sent = calloc((size_t)ranks * (size_t)ranks * 2, sizeof *f.sent);
    f.done = calloc((size_t)ranks, sizeof *f.done);
    for (int32_t rank = 0; rank < ranks; rank++) {
        f.done[rank] = calloc((size_t)program_of(&f, rank)->ins_count, sizeof **f.done);
        for (int stream = 0; stream < ND_STREAM_COUNT; stream++) {
            seek(&f, rank, stream);
        }
    }
    fuzz_result result = run_all(&f);
    for (int32_t rank = 0; rank < ranks; rank++) {
        free(f.done[rank]);
    }
    free(f.done);
    free(f.sent);
    free(f.head);
    return result;
}
