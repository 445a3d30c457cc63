#include "program/program_time.h"

#include <stdlib.h>

typedef double stream_clocks[ND_STREAM_COUNT];

/** Messages of a lane: when each was sent and when it was taken. */
typedef struct lane {
    double *sent_s, *taken_s;
    int64_t capacity;
} lane;

typedef struct timer {
    const nd_program *const *programs;
    nd_issue issue;
    nd_ins_seconds seconds;
    const void *user;
    const double *const *start_s, *const *end_s; /* measured; then `seconds` is not asked */
    double origin_s;
    nd_rank_time *rank;
    stream_clocks *clock; /* [rank]; in order all use the first */
    lane *lanes;
    int64_t lanes_count;
} timer;

static double *clock_of(const timer *t, int64_t rank, const nd_ins *ins)
{
    return &t->clock[rank][t->issue == ND_ISSUE_STREAMS ? ins->stream : ND_STREAM_COMPUTE];
}

/* When the rank reaches the instruction. */
static double reached_at(const timer *t, nd_walk_place at)
{
    return t->start_s != NULL ? t->start_s[at.rank][at.ins] - t->origin_s
                              : *clock_of(t, at.rank, &t->programs[at.rank]->ins[at.ins]);
}

static bool grow(double **times, int64_t capacity)
{
    double *moved = realloc(*times, (size_t)capacity * sizeof *moved);
    if (moved == NULL) {
        return false;
    }
    *times = moved;
    return true;
}

static nd_status reach(lane *l, int64_t message, nd_error *err)
{
    if (message < l->capacity) {
        return ND_OK;
    }
    int64_t capacity = 2 * message + 16;
    if (!grow(&l->sent_s, capacity) || !grow(&l->taken_s, capacity)) {
        return nd_fail(err, ND_ENOMEM, "out of memory to time messages");
    }
    l->capacity = capacity;
    return ND_OK;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* `begin_s`: when nothing was waited for any longer. A measured instruction may have ended before: a short message is
 * taken before its sender has noted the end of the send. */
static void record(const timer *t, nd_walk_place at, double begin_s, int32_t members)
{
    const nd_program *program = t->programs[at.rank];
    const nd_ins *ins = &program->ins[at.ins];
    nd_rank_time *rank = &t->rank[at.rank];
    double start_s = reached_at(t, at);
    double end_s = 0.0;
    if (t->start_s != NULL) {
        end_s = t->end_s[at.rank][at.ins] - t->origin_s;
        begin_s = begin_s < end_s ? begin_s : end_s;
    } else {
        end_s = begin_s + t->seconds(t->user, program, ins, members);
    }
    rank->start_s[at.ins] = start_s;
    rank->begin_s[at.ins] = begin_s;
    rank->end_s[at.ins] = end_s;
    rank->wait_s += begin_s - start_s;
    rank->busy_s += end_s - begin_s;
    *clock_of(t, at.rank, ins) = end_s;
}

/* When a message or another stream lets the instruction begin. */
static nd_status released_at(timer *t, const nd_walk_step *step, double *out, nd_error *err)
{
    nd_walk_place at = step->members[0];
    const nd_ins *ins = &t->programs[at.rank]->ins[at.ins];
    if (ins->op == ND_INS_WAIT && t->issue == ND_ISSUE_STREAMS) {
        *out = later(*out, t->rank[at.rank].end_s[ins->waits_for]);
    }
    if (step->lane < 0) {
        return ND_OK;
    }
    lane *l = &t->lanes[step->lane];
    ND_TRY(reach(l, step->message, err));
    if (ins->op == ND_INS_RECV) {
        *out = later(*out, l->sent_s[step->message]);
    } else if (ins->op == ND_INS_SEND_WAIT && step->message > 0) {
        *out = later(*out, l->taken_s[step->message - 1]);
    }
    return ND_OK;
}

static nd_status time_alone(timer *t, const nd_walk_step *step, nd_error *err)
{
    nd_walk_place at = step->members[0];
    const nd_program *program = t->programs[at.rank];
    const nd_ins *ins = &program->ins[at.ins];
    double begin_s = reached_at(t, at);
    ND_TRY(released_at(t, step, &begin_s, err));
    record(t, at, begin_s, 1);
    double end_s = t->rank[at.rank].end_s[at.ins];
    if (ins->op == ND_INS_SEND) {
        t->lanes[step->lane].sent_s[step->message] = end_s;
    } else if (ins->op == ND_INS_RECV) {
        t->lanes[step->lane].taken_s[step->message] = end_s;
    }
    return ND_OK;
}

static nd_status visit(void *user, const nd_walk_step *step, nd_error *err)
{
    timer *t = user;
    const nd_program *program = t->programs[step->members[0].rank];
    if (!nd_ins_is_collective(program->ins[step->members[0].ins].op)) {
        return time_alone(t, step, err);
    }
    double begin_s = 0.0;
    for (int32_t i = 0; i < step->members_count; i++) {
        begin_s = later(begin_s, reached_at(t, step->members[i]));
    }
    for (int32_t i = 0; i < step->members_count; i++) {
        record(t, step->members[i], begin_s, step->members_count);
    }
    return ND_OK;
}

static nd_status open_timer(timer *t, int32_t ranks, nd_error *err)
{
    t->lanes_count = nd_walk_lanes(ranks);
    t->rank = calloc((size_t)ranks, sizeof *t->rank);
    t->clock = calloc((size_t)ranks, sizeof *t->clock);
    t->lanes = calloc((size_t)t->lanes_count, sizeof *t->lanes);
    bool enough = t->rank != NULL && t->clock != NULL && t->lanes != NULL;
    for (int32_t i = 0; i < ranks && enough; i++) {
        size_t count = (size_t)t->programs[i]->ins_count;
        t->rank[i].start_s = calloc(3 * count + 1, sizeof(double)); /* one piece of memory for all three */
        enough = t->rank[i].start_s != NULL;
        if (enough) {
            t->rank[i].begin_s = t->rank[i].start_s + count;
            t->rank[i].end_s = t->rank[i].begin_s + count;
        }
    }
    return enough ? ND_OK : nd_fail(err, ND_ENOMEM, "out of memory to time %d programs", ranks);
}

void nd_program_time_free(nd_program_time *time)
{
    for (int32_t i = 0; i < time->ranks && time->rank != NULL; i++) {
        free(time->rank[i].start_s);
    }
    free(time->rank);
    *time = (nd_program_time){0};
}

static void close_timer(timer *t)
{
    for (int64_t i = 0; i < t->lanes_count && t->lanes != NULL; i++) {
        free(t->lanes[i].sent_s);
        free(t->lanes[i].taken_s);
    }
    free(t->lanes);
    free(t->clock);
}

static nd_status run(timer *t, int32_t ranks, int64_t kv_heads, nd_program_time *out, nd_error *err)
{
    nd_status status = open_timer(t, ranks, err);
    if (status == ND_OK) {
        status = nd_programs_walk(t->programs, ranks, kv_heads, visit, t, err);
    }
    nd_program_time result = {.ranks = ranks, .rank = t->rank};
    for (int32_t i = 0; i < ranks && status == ND_OK; i++) {
        for (int s = 0; s < ND_STREAM_COUNT; s++) {
            result.step_s = later(result.step_s, t->clock[i][s]);
        }
    }
    close_timer(t);
    if (status != ND_OK) {
        nd_program_time_free(&result);
        return status;
    }
    *out = result;
    return ND_OK;
}

nd_status nd_program_time_create(const nd_program *const programs[], int32_t ranks, int64_t kv_heads, nd_issue issue,
                                 nd_ins_seconds seconds, const void *user, nd_program_time *out, nd_error *err)
{
    timer t = {.programs = programs, .issue = issue, .seconds = seconds, .user = user};
    return run(&t, ranks, kv_heads, out, err);
}

nd_status nd_program_time_measured(const nd_program *const programs[], int32_t ranks, int64_t kv_heads,
                                   const double *const start_s[], const double *const end_s[], nd_program_time *out,
                                   nd_error *err)
{
    timer t = {.programs = programs, .start_s = start_s, .end_s = end_s, .origin_s = start_s[0][0]};
    for (int32_t i = 1; i < ranks; i++) {
        t.origin_s = start_s[i][0] < t.origin_s ? start_s[i][0] : t.origin_s;
    }
    return run(&t, ranks, kv_heads, out, err);
}
