#include "executor/comm/thread_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "executor/comm/collective_internal.h"

enum { TEXT_MAX = 256 };

/* "all_reduce (max) of 12 fp32 elements (attn.out, call 5)" */
static void describe(const nd_thread_group *group, int32_t index, char text[TEXT_MAX])
{
    const nd_call *call = group->calls[index];
    const nd_ins *ins = call->ins;
    const char *combine = ins->op != ND_INS_ALL_REDUCE && ins->op != ND_INS_REDUCE_SCATTER ? ""
                          : ins->max                                                       ? " (max)"
                                                                                           : " (sum)";
    bool rows = ins->op == ND_INS_ALL_TO_ALL_ROWS;
    (void)snprintf(text, TEXT_MAX, "%s%s of %s%" PRId64 " %s elements (%s, call %" PRId64 ")", nd_ins_name(ins->op),
                   combine, rows ? "rows of " : "", rows ? ins->cols : nd_collective_elements(call),
                   nd_elem_name(call->in[0].elem), ins->tag == NULL ? "no tag" : ins->tag, group->sequence[index]);
}

/* Of all_to_all_rows only the rows' size has to agree: `rows` is what a member has room for. */
static bool same(const nd_thread_group *group, int32_t i, int32_t j)
{
    const nd_call *a = group->calls[i];
    const nd_call *b = group->calls[j];
    bool size = a->ins->op == ND_INS_ALL_TO_ALL_ROWS ? a->ins->cols == b->ins->cols
                                                     : nd_collective_elements(a) == nd_collective_elements(b);
    return a->ins->op == b->ins->op && size && a->in[0].elem == b->in[0].elem && a->ins->max == b->ins->max &&
           group->sequence[i] == group->sequence[j];
}

static int64_t rank_of(const nd_thread_group *group, int32_t index)
{
    return group->first + index * group->stride;
}

static void differ(nd_thread_group *group, int32_t i, int32_t j)
{
    char first[TEXT_MAX];
    char second[TEXT_MAX];
    describe(group, i, first);
    describe(group, j, second);
    group->culprit = (int32_t)rank_of(group, j);
    (void)nd_fail(&group->verdict, ND_EINVAL,
                  "%s group of %" PRId32 " ranks: rank %" PRId64 " calls %s, but rank %" PRId64
                  " calls %s; all members have to make the same calls in the same order",
                  nd_members_name(group->calls[i]->ins->group), group->count, rank_of(group, i), first,
                  rank_of(group, j), second);
}

/* What each member sends is what the receiver expects. */
static void match_rows(nd_thread_group *group)
{
    for (int32_t from = 0; from < group->count; from++) {
        const int32_t *send_rows = group->calls[from]->in[1].data;
        for (int32_t to = 0; to < group->count; to++) {
            const int32_t *receive_rows = group->calls[to]->in[2].data;
            if (send_rows[to] != receive_rows[from]) {
                group->culprit = (int32_t)rank_of(group, to);
                const char *tag = group->calls[to]->ins->tag;
                (void)nd_fail(&group->verdict, ND_EINVAL,
                              "%s group of %" PRId32 " ranks: all_to_all_rows (%s, call %" PRId64 "): rank %" PRId64
                              " sends %" PRId32 " rows to rank %" PRId64 ", which expects %" PRId32
                              "; exchange the numbers of rows first",
                              nd_members_name(group->calls[to]->ins->group), group->count, tag == NULL ? "no tag" : tag,
                              group->sequence[to], rank_of(group, from), send_rows[to], rank_of(group, to),
                              receive_rows[from]);
                return;
            }
        }
    }
}

void nd_thread_match(nd_thread_group *group)
{
    for (int32_t i = 1; i < group->count; i++) {
        if (!same(group, 0, i)) {
            differ(group, 0, i);
            return;
        }
    }
    if (group->calls[0]->ins->op == ND_INS_ALL_TO_ALL_ROWS) {
        match_rows(group);
    }
}
