/* Runs the lists against each other without computing: each rank goes on until it needs somebody else. */
#include "program/check.h"

#include <inttypes.h>

#include "program/walk.h"

static nd_elem elem_of(const nd_program *program, nd_ref ref)
{
    return program->buffers[ref.buffer].elem;
}

static nd_status compare(const nd_program *const programs[], nd_walk_place a, nd_walk_place b, nd_error *err)
{
    const nd_ins *x = &programs[a.rank]->ins[a.ins];
    const nd_ins *y = &programs[b.rank]->ins[b.ins];
    nd_elem ex = elem_of(programs[a.rank], x->out[0]);
    nd_elem ey = elem_of(programs[b.rank], y->out[0]);
    bool varies = x->op == ND_INS_ALL_TO_ALL_ROWS; /* sizes are known only while running */
    if (x->op == y->op && x->max == y->max && ex == ey && (varies || x->rows * x->cols == y->rows * y->cols)) {
        return ND_OK;
    }
    return nd_fail(err, ND_EINVAL,
                   "group %s: rank %" PRId64 " calls %s of %" PRId64 " x %s (instruction %d, %s) where rank %" PRId64
                   " calls %s of %" PRId64 " x %s (instruction %d, %s)",
                   nd_members_name(x->group), a.rank, nd_ins_name(x->op), x->rows * x->cols, nd_elem_name(ex), a.ins,
                   x->tag, b.rank, nd_ins_name(y->op), y->rows * y->cols, nd_elem_name(ey), b.ins, y->tag);
}

typedef struct checked {
    const nd_program *const *programs;
} checked;

static nd_status visit(void *user, const nd_walk_step *step, nd_error *err)
{
    const checked *c = user;
    for (int32_t i = 1; i < step->members_count; i++) {
        ND_TRY(compare(c->programs, step->members[0], step->members[i], err));
    }
    return ND_OK;
}

nd_status nd_programs_check(const nd_program *const programs[], int32_t ranks, int64_t kv_heads, nd_error *err)
{
    checked c = {.programs = programs};
    return nd_programs_walk(programs, ranks, kv_heads, visit, &c, err);
}
