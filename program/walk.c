#include "program/walk.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CHANNELS = 2 };

typedef struct walker {
    const nd_program *const *programs;
    int32_t ranks;
    int64_t kv_heads;
    nd_walk_visitor visit;
    void *user;
    int32_t *at;       /* [rank]: the next instruction */
    int64_t *sent;     /* [lane] */
    int64_t *received; /* [lane] */
    nd_walk_place *members;
} walker;

bool nd_ins_is_collective(nd_ins_op op)
{
    return nd_ins_communicates(op) && op != ND_INS_SEND && op != ND_INS_SEND_WAIT && op != ND_INS_RECV;
}

int64_t nd_walk_lanes(int32_t ranks)
{
    return (int64_t)ranks * ranks * CHANNELS;
}

static const nd_ins *next(const walker *w, int64_t rank)
{
    const nd_program *program = w->programs[rank];
    return w->at[rank] < program->ins_count ? &program->ins[w->at[rank]] : NULL;
}

/* When all members of the collective that `rank` is at have come to it, all go on. */
static nd_status try_collective(walker *w, int64_t rank, bool *together, nd_error *err)
{
    const nd_ins *ins = next(w, rank);
    nd_members members = nd_members_of(&w->programs[rank]->layout, w->kv_heads, ins->group, rank);
    for (int32_t i = 0; i < members.count; i++) {
        int64_t peer = members.first + i * members.stride;
        const nd_ins *other = next(w, peer);
        if (other == NULL || !nd_ins_is_collective(other->op) || other->group != ins->group) {
            return ND_OK; /* not there yet */
        }
        w->members[i] = (nd_walk_place){.rank = peer, .ins = w->at[peer]};
    }
    nd_walk_step step = {.members = w->members, .members_count = members.count, .lane = -1};
    ND_TRY(w->visit(w->user, &step, err));
    for (int32_t i = 0; i < members.count; i++) {
        w->at[w->members[i].rank]++;
    }
    *together = true;
    return ND_OK;
}

static int64_t lane_of(const walker *w, int64_t from, int64_t to, int32_t channel)
{
    return (from * w->ranks + to) * CHANNELS + channel;
}

/* How many messages were on the lane when send `index` of the rank had been made. */
static int64_t messages_until(const walker *w, int64_t rank, int32_t index)
{
    const nd_program *program = w->programs[rank];
    const nd_ins *send = &program->ins[index];
    int64_t later = 0;
    for (int32_t i = index + 1; i < w->at[rank]; i++) {
        const nd_ins *ins = &program->ins[i];
        later += ins->op == ND_INS_SEND && ins->peer == send->peer && ins->channel == send->channel;
    }
    return w->sent[lane_of(w, rank, send->peer, send->channel)] - later;
}

/* Whether the rank can pass a send, send_wait or receive, and what is to be said of it. */
static bool can_pass_message(const walker *w, int64_t rank, const nd_ins *ins, nd_walk_step *step)
{
    if (ins->op == ND_INS_RECV) {
        step->lane = lane_of(w, ins->peer, rank, ins->channel);
        step->message = w->received[step->lane];
        return step->message < w->sent[step->lane];
    }
    step->lane = lane_of(w, rank, ins->peer, ins->channel);
    step->message = w->sent[step->lane];
    if (ins->op == ND_INS_SEND) {
        return true;
    }
    if (w->received[step->lane] != w->sent[step->lane]) {
        return false;
    }
    if (ins->in[0].buffer != 0) {
        step->message = messages_until(w, rank, ins->waits_for);
    }
    return true;
}

static nd_status try_alone(walker *w, int64_t rank, const nd_ins *ins, bool *passed, nd_error *err)
{
    nd_walk_place place = {.rank = rank, .ins = w->at[rank]};
    nd_walk_step step = {.members = &place, .members_count = 1, .lane = -1};
    if (nd_ins_communicates(ins->op) && !can_pass_message(w, rank, ins, &step)) {
        return ND_OK;
    }
    ND_TRY(w->visit(w->user, &step, err));
    if (ins->op == ND_INS_SEND) {
        w->sent[step.lane]++;
    } else if (ins->op == ND_INS_RECV) {
        w->received[step.lane]++;
    }
    w->at[rank]++;
    *passed = true;
    return ND_OK;
}

/* Until the rank needs somebody else. */
static nd_status advance(walker *w, int64_t rank, bool *moved, nd_error *err)
{
    for (const nd_ins *ins = next(w, rank); ins != NULL; ins = next(w, rank)) {
        bool passed = false;
        ND_TRY(nd_ins_is_collective(ins->op) ? try_collective(w, rank, &passed, err)
                                             : try_alone(w, rank, ins, &passed, err));
        if (!passed) {
            return ND_OK;
        }
        *moved = true;
    }
    return ND_OK;
}

static nd_status report_stuck(const walker *w, nd_error *err)
{
    for (int64_t rank = 0; rank < w->ranks; rank++) {
        const nd_ins *ins = next(w, rank);
        if (ins != NULL) {
            return nd_fail(err, ND_EINVAL,
                           "rank %" PRId64 " waits for ever at instruction %d: %s (%s), group %s, layer %d, "
                           "micro-batch %d",
                           rank, w->at[rank], nd_ins_name(ins->op), ins->tag, nd_members_name(ins->group), ins->layer,
                           ins->micro);
        }
    }
    for (int64_t i = 0; i < nd_walk_lanes(w->ranks); i++) {
        if (w->sent[i] != w->received[i]) {
            return nd_fail(err, ND_EINVAL,
                           "rank %" PRId64 " sends %" PRId64 " times to rank %" PRId64 ", which receives %" PRId64
                           " times",
                           i / CHANNELS / w->ranks, w->sent[i], i / CHANNELS % w->ranks, w->received[i]);
        }
    }
    return ND_OK;
}

static nd_status walk(walker *w, nd_error *err)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (int64_t rank = 0; rank < w->ranks; rank++) {
            ND_TRY(advance(w, rank, &moved, err));
        }
    }
    return report_stuck(w, err);
}

nd_status nd_programs_walk(const nd_program *const programs[], int32_t ranks, int64_t kv_heads, nd_walk_visitor visit,
                           void *user, nd_error *err)
{
    walker w = {.programs = programs, .ranks = ranks, .kv_heads = kv_heads, .visit = visit, .user = user};
    size_t lanes = (size_t)nd_walk_lanes(ranks);
    w.at = calloc((size_t)ranks, sizeof *w.at);
    w.members = calloc((size_t)ranks, sizeof *w.members);
    w.sent = calloc(lanes, sizeof *w.sent);
    w.received = calloc(lanes, sizeof *w.received);
    nd_status status = w.at == NULL || w.members == NULL || w.sent == NULL || w.received == NULL
                           ? nd_fail(err, ND_ENOMEM, "out of memory to go through %d programs", ranks)
                           : walk(&w, err);
    free(w.at);
    free(w.members);
    free(w.sent);
    free(w.received);
    return status;
}
