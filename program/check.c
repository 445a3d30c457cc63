/* Runs the lists against each other without computing: each rank goes on until it needs somebody else. */
#include "program/check.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct checker {
    const nd_program *const *programs;
    int32_t ranks;
    int64_t kv_heads;
    int32_t *at;       /* [rank]: the next instruction */
    int64_t *sent;     /* [sender][receiver][channel] */
    int64_t *received; /* the same */
} checker;

static const nd_ins *next(const checker *c, int64_t rank)
{
    const nd_program *program = c->programs[rank];
    return c->at[rank] < program->ins_count ? &program->ins[c->at[rank]] : NULL;
}

static int64_t *lane(const checker *c, int64_t *table, int64_t from, int64_t to, int32_t channel)
{
    return &table[(from * c->ranks + to) * 2 + channel];
}

static bool is_collective(nd_ins_op op)
{
    return nd_ins_communicates(op) && op != ND_INS_SEND && op != ND_INS_SEND_WAIT && op != ND_INS_RECV;
}

static nd_elem elem_of(const nd_program *program, nd_ref ref)
{
    return program->buffers[ref.buffer].elem;
}

static nd_status compare(const checker *c, int64_t a, int64_t b, nd_error *err)
{
    const nd_ins *x = next(c, a);
    const nd_ins *y = next(c, b);
    nd_elem ex = elem_of(c->programs[a], x->out[0]);
    nd_elem ey = elem_of(c->programs[b], y->out[0]);
    bool varies = x->op == ND_INS_ALL_TO_ALL_ROWS; /* sizes are known only while running */
    if (x->op == y->op && x->max == y->max && ex == ey && (varies || x->rows * x->cols == y->rows * y->cols)) {
        return ND_OK;
    }
    return nd_fail(err, ND_EINVAL,
                   "group %s: rank %" PRId64 " calls %s of %" PRId64 " x %s (instruction %d, %s) where rank %" PRId64
                   " calls %s of %" PRId64 " x %s (instruction %d, %s)",
                   nd_members_name(x->group), a, nd_ins_name(x->op), x->rows * x->cols, nd_elem_name(ex), c->at[a],
                   x->tag, b, nd_ins_name(y->op), y->rows * y->cols, nd_elem_name(ey), c->at[b], y->tag);
}

/* When all members of the collective that `rank` is at have come to it, all go on. */
static nd_status try_collective(checker *c, int64_t rank, bool *moved, nd_error *err)
{
    const nd_ins *ins = next(c, rank);
    const nd_layout *layout = &c->programs[rank]->layout;
    nd_members members = nd_members_of(layout, c->kv_heads, ins->group, rank);
    for (int32_t i = 0; i < members.count; i++) {
        int64_t peer = members.first + i * members.stride;
        const nd_ins *other = next(c, peer);
        if (other == NULL || !is_collective(other->op) || other->group != ins->group) {
            return ND_OK; /* not there yet */
        }
    }
    for (int32_t i = 1; i < members.count; i++) {
        ND_TRY(compare(c, members.first, members.first + i * members.stride, err));
    }
    for (int32_t i = 0; i < members.count; i++) {
        c->at[members.first + i * members.stride]++;
    }
    *moved = true;
    return ND_OK;
}

static bool can_pass(checker *c, int64_t rank, const nd_ins *ins)
{
    if (ins->op == ND_INS_SEND) {
        ++*lane(c, c->sent, rank, ins->peer, ins->channel);
        return true;
    }
    if (ins->op == ND_INS_RECV) {
        int64_t *got = lane(c, c->received, ins->peer, rank, ins->channel);
        if (*got >= *lane(c, c->sent, ins->peer, rank, ins->channel)) {
            return false;
        }
        ++*got;
        return true;
    }
    if (ins->op == ND_INS_SEND_WAIT) {
        return *lane(c, c->received, rank, ins->peer, ins->channel) == *lane(c, c->sent, rank, ins->peer, ins->channel);
    }
    return true;
}

static nd_status advance(checker *c, int64_t rank, bool *moved, nd_error *err)
{
    for (const nd_ins *ins = next(c, rank); ins != NULL; ins = next(c, rank)) {
        if (is_collective(ins->op)) {
            bool together = false;
            ND_TRY(try_collective(c, rank, &together, err));
            if (!together) {
                return ND_OK;
            }
            *moved = true;
            continue;
        }
        if (!can_pass(c, rank, ins)) {
            return ND_OK;
        }
        c->at[rank]++;
        *moved = true;
    }
    return ND_OK;
}

static nd_status report_stuck(const checker *c, nd_error *err)
{
    for (int64_t rank = 0; rank < c->ranks; rank++) {
        const nd_ins *ins = next(c, rank);
        if (ins != NULL) {
            return nd_fail(err, ND_EINVAL,
                           "rank %" PRId64 " waits for ever at instruction %d: %s (%s), group %s, layer %d, "
                           "micro-batch %d",
                           rank, c->at[rank], nd_ins_name(ins->op), ins->tag, nd_members_name(ins->group), ins->layer,
                           ins->micro);
        }
    }
    for (int64_t i = 0; i < (int64_t)c->ranks * c->ranks * 2; i++) {
        if (c->sent[i] != c->received[i]) {
            return nd_fail(err, ND_EINVAL,
                           "rank %" PRId64 " sends %" PRId64 " times to rank %" PRId64 ", which receives %" PRId64
                           " times",
                           i / 2 / c->ranks, c->sent[i], i / 2 % c->ranks, c->received[i]);
        }
    }
    return ND_OK;
}

static nd_status run(checker *c, nd_error *err)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (int64_t rank = 0; rank < c->ranks; rank++) {
            ND_TRY(advance(c, rank, &moved, err));
        }
    }
    return report_stuck(c, err);
}

nd_status nd_programs_check(const nd_program *const programs[], int32_t ranks, int64_t kv_heads, nd_error *err)
{
    size_t lanes = (size_t)ranks * (size_t)ranks * 2;
    checker c = {.programs = programs, .ranks = ranks, .kv_heads = kv_heads};
    c.at = calloc((size_t)ranks, sizeof *c.at);
    c.sent = calloc(lanes, sizeof *c.sent);
    c.received = calloc(lanes, sizeof *c.received);
    nd_status status = c.at == NULL || c.sent == NULL || c.received == NULL
                           ? nd_fail(err, ND_ENOMEM, "out of memory to check %d programs", ranks)
                           : run(&c, err);
    free(c.at);
    free(c.sent);
    free(c.received);
    return status;
}
