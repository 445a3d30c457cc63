#include "executor/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "executor/measure_internal.h"
#include "program/walk.h"
#include "program/work.h"
#include "tests/executor/parity.h"
#include "tests/nd_test.h"
#include "tests/program/programs.h"

/* Builds with sanitizers set it: they are ten times slower. */
static bool is_short(void)
{
    return getenv("ND_PARITY_RANKS") != NULL;
}

typedef struct operations {
    bool used[ND_INS_COUNT];
} operations;

/* Operations that constants are needed for. A collective among one rank is a copy and proves nothing. */
static void note(const nd_program *program, int64_t kv_heads, bool only_met, operations *out)
{
    for (int32_t i = 0; i < program->ins_count; i++) {
        const nd_ins *ins = &program->ins[i];
        bool alone = nd_ins_is_collective(ins->op) &&
                     nd_members_of(&program->layout, kv_heads, ins->group, program->rank).count < 2;
        if (nd_work_term_name(ins->op, 0)[0] != '\0' && !(alone && only_met)) {
            out->used[ins->op] = true;
        }
    }
}

/* \return false when the layout is not executable */
static bool note_layout(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, bool only_met,
                        operations *out)
{
    nd_error err = {.message = ""};
    nd_program_options options = nd_program_options_default();
    options.real = ND_ELEM_BF16; /* with masters of another type: all copies are there */
    for (int32_t rank = 0; rank < nd_layout_ranks(layout); rank++) {
        nd_program *program = NULL;
        if (nd_program_create(model, layout, train, &options, rank, &program, &err) != ND_OK) {
            return false;
        }
        note(program, model->kv_heads, only_met, out);
        nd_program_free(program);
    }
    return true;
}

static operations of_probes(int32_t processors)
{
    operations all = {{false}};
    for (int32_t i = 0; i < nd_probes_count(processors); i++) {
        nd_probe probe;
        nd_error err = {.message = ""};
        ND_ASSERT_OK(nd_probe_make(i, processors, &probe, &err));
        const nd_layout *layout = &probe.layout;
        CU_ASSERT_TRUE(nd_layout_ranks(layout) <= (processors > 2 ? processors : 2));
        nd_train_spec train = {.seq_len_tokens = probe.seq_len,
                               .global_batch_seqs =
                                   nd_layout_data_ranks(layout) * layout->micro_batch * layout->grad_accum,
                               .base_bits = 16};
        CU_ASSERT_TRUE(note_layout(&probe.model, layout, &train, true, &all));
    }
    return all;
}

static void expect_covered(const operations *probes, const operations *needed, const char *model, const char *layout)
{
    for (int op = 0; op < ND_INS_COUNT; op++) {
        if (needed->used[op] && !probes->used[op]) {
            (void)fprintf(stderr, "%s %s: no probe has %s\n", model, layout, nd_ins_name((nd_ins_op)op));
        }
        CU_ASSERT_TRUE(!needed->used[op] || probes->used[op]);
    }
}

/* Every mesh of powers of two, run in one of the ways that the comparison with one rank runs it in. */
static int cover_meshes(const operations *probes, const parity *p, const char *name)
{
    int built = 0;
    int64_t most = is_short() ? 2 : 8;
    for (int index = 0; index < 4 * 4 * 4 * 4 * 4; index++) {
        nd_layout layout = nd_layout_single();
        int64_t ranks = 1;
        for (int axis = 0, rest = index; axis < ND_AXIS_COUNT; axis++, rest /= 4) {
            layout.size[axis] = 1 << rest % 4;
            ranks *= layout.size[axis];
        }
        operations needed = {{false}};
        char text[256];
        if (ranks <= most && parity_variant(p, &layout, (uint64_t)index) &&
            note_layout(&p->model, &layout, &p->train, false, &needed)) {
            (void)nd_layout_format(&layout, text, sizeof text);
            expect_covered(probes, &needed, name, text);
            built++;
        }
    }
    return built;
}

static void cover_model(const operations *probes, const char *name)
{
    static parity p;
    nd_error err = {.message = ""};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s.json", ND_TEST_DATA, name);
    memset(&p, 0, sizeof p);
    ND_ASSERT_OK(nd_model_load(path, false, &p.model, &err));
    p.train = (nd_train_spec){.seq_len_tokens = 32, .global_batch_seqs = 16, .base_bits = 16};
    CU_ASSERT_TRUE(cover_meshes(probes, &p, name) >= (is_short() ? 3 : 20));
    for (int l = 0; l < TINY_LAYOUTS; l++) {
        program_set set;
        operations needed = {{false}};
        if (programs_open(&set, name, tiny_layouts[l], 32, ND_ELEM_F32)) {
            for (int32_t rank = 0; rank < set.ranks; rank++) {
                note(set.programs[rank], set.model.kv_heads, false, &needed);
            }
            expect_covered(probes, &needed, name, tiny_layouts[l]);
            programs_close(&set);
        }
    }
}

static void test_probes_have_every_operation_that_programs_use(void)
{
    operations one = of_probes(1);
    operations two = of_probes(2);
    operations four = of_probes(4);
    expect_covered(&one, &two, "probes", "of two processors");
    expect_covered(&one, &four, "probes", "of four processors");
    expect_covered(&two, &one, "probes", "of one processor");
    expect_covered(&four, &one, "probes", "of one processor");
    for (int m = 0; m < TINY_MODELS; m++) {
        cover_model(&one, tiny_models[m]);
    }
}

static void test_each_operation_is_measured_in_several_sizes_or_calls(void)
{
    static double least[ND_INS_COUNT], most[ND_INS_COUNT];
    for (int32_t i = 0; i < nd_probes_count(2); i++) {
        nd_probe probe;
        nd_program *program = NULL;
        nd_error err = {.message = ""};
        nd_program_options options = nd_program_options_default();
        ND_ASSERT_OK(nd_probe_make(i, 2, &probe, &err));
        nd_train_spec train = {.seq_len_tokens = probe.seq_len,
                               .global_batch_seqs = nd_layout_data_ranks(&probe.layout) * probe.layout.micro_batch *
                                                    probe.layout.grad_accum,
                               .base_bits = 16};
        ND_ASSERT_OK(nd_program_create(&probe.model, &probe.layout, &train, &options, 0, &program, &err));
        for (int32_t k = 0; k < program->ins_count; k++) {
            nd_ins_op op = program->ins[k].op;
            double work = nd_ins_work_of(program, &program->ins[k], 2).term[1];
            least[op] = least[op] == 0.0 ? work : fmin(least[op], work);
            most[op] = fmax(most[op], work);
        }
        nd_program_free(program);
    }
    for (int op = 0; op < ND_INS_COUNT; op++) {
        bool sized = nd_work_term_name((nd_ins_op)op, 1)[0] != '\0' && most[op] > 0.0;
        if (sized && most[op] < 3.0 * least[op]) {
            (void)fprintf(stderr, "%s: from %g to %g\n", nd_ins_name((nd_ins_op)op), least[op], most[op]);
        }
        CU_ASSERT_TRUE(!sized || most[op] >= 3.0 * least[op]); /* a line through two points needs distance */
    }
}

/** What a measurement handed over and told. */
typedef struct received {
    int steps, with_two;
    int64_t wrong;
    int calls; /* of progress */
    double last_frac;
    int stop_at; /* call that says stop; 0: none */
    bool refuse;
} received;

static bool progress(void *user, double done_frac)
{
    received *r = user;
    r->calls++;
    r->wrong += !(done_frac >= r->last_frac && done_frac <= 1.0); /* NaN too */
    r->last_frac = done_frac;
    return r->calls != r->stop_at;
}

/* Whether every instruction that computes took time, and the step about as long as its busiest rank. The step and its
 * instructions are medians over three rounds, each on its own: on a machine where others run too they need not come
 * from the same round, so that half of the sum is asked for, which a step that forgets a rank or a pass does not reach.
 */
static void look(received *r, const nd_measured_step *step)
{
    double busiest_s = 0.0;
    for (int32_t i = 0; i < step->ranks; i++) {
        double sum_s = 0.0;
        for (int32_t k = 0; k < step->programs[i]->ins_count; k++) {
            nd_ins_op op = step->programs[i]->ins[k].op;
            double seconds = step->seconds[i][k];
            bool computes = nd_work_term_name(op, 0)[0] != '\0' && !nd_ins_communicates(op);
            r->wrong += computes ? !(seconds > 0.0) : !(seconds >= 0.0);
            sum_s += seconds;
        }
        busiest_s = fmax(busiest_s, sum_s);
    }
    r->wrong += !(step->step_s >= 0.5 * busiest_s) || !(busiest_s > 0.0);
}

static nd_status keep(void *user, const nd_measured_step *step, nd_error *err)
{
    received *r = user;
    r->steps++;
    r->with_two += step->ranks == 2;
    r->wrong += step->rounds != 3;
    look(r, step);
    return r->refuse ? nd_fail(err, ND_EIO, "no more") : ND_OK;
}

static int32_t first_pair(void)
{
    for (int32_t i = 0;; i++) {
        nd_probe probe;
        nd_error err = {.message = ""};
        ND_ASSERT_OK(nd_probe_make(i, 1, &probe, &err));
        if (nd_layout_ranks(&probe.layout) == 2) {
            return i;
        }
    }
}

static void test_every_probe_is_handed_over_with_its_times(void)
{
    nd_measure_options options = {.real = ND_ELEM_F32, .budget_s = 0.0, .processors = 2};
    nd_error err = {.message = ""};
    received r = {.steps = 0};
    int32_t all = nd_probes_count(2);
    if (is_short()) {
        all = 2; /* the last of one rank and the first of two */
        ND_ASSERT_OK(nd_measure_probes(&options, first_pair() - 1, all, progress, keep, &r, &err));
    } else {
        ND_ASSERT_OK(nd_measure_machine(&options, progress, keep, &r, &err));
    }
    CU_ASSERT_EQUAL(r.steps, all);
    CU_ASSERT_EQUAL(r.with_two, is_short() ? 1 : all - first_pair());
    CU_ASSERT_EQUAL(r.calls, 3);
    CU_ASSERT_EQUAL(r.wrong, 0);
}

static void test_one_processor_and_every_type_can_be_measured(void)
{
    nd_error err = {.message = ""};
    for (int real = ND_ELEM_F64; real <= ND_ELEM_BF16; real++) {
        nd_measure_options options = {.real = (nd_elem)real, .budget_s = 1e-9, .processors = 1};
        received r = {.steps = 0};
        ND_ASSERT_OK(nd_measure_probes(&options, 0, 1, NULL, keep, &r, &err));
        ND_ASSERT_OK(nd_measure_probes(&options, first_pair(), 1, progress, keep, &r, &err));
        CU_ASSERT_EQUAL(r.steps, 2);
        CU_ASSERT_EQUAL(r.wrong, 0);
        CU_ASSERT_EQUAL(r.calls, 3);
    }
}

static void test_progress_and_sink_can_end_it(void)
{
    nd_measure_options options = {.real = ND_ELEM_F32, .budget_s = 100.0, .processors = 1};
    for (int stop_at = 1; stop_at <= 3; stop_at++) {
        nd_error err = {.message = ""};
        received r = {.stop_at = stop_at};
        CU_ASSERT_EQUAL(nd_measure_probes(&options, 0, 1, progress, keep, &r, &err), ND_EINTERRUPTED);
        CU_ASSERT_EQUAL(r.calls, stop_at);
        CU_ASSERT_EQUAL(r.steps, 0); /* half a measurement is none */
        CU_ASSERT_EQUAL(r.wrong, 0);
    }
    nd_error err = {.message = ""};
    received r = {.refuse = true};
    options.budget_s = 0.0;
    CU_ASSERT_EQUAL(nd_measure_probes(&options, 0, 2, NULL, keep, &r, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "no more");
    CU_ASSERT_EQUAL(r.steps, 1);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_probes_have_every_operation_that_programs_use),
                                         ND_TEST(test_each_operation_is_measured_in_several_sizes_or_calls),
                                         ND_TEST(test_every_probe_is_handed_over_with_its_times),
                                         ND_TEST(test_one_processor_and_every_type_can_be_measured),
                                         ND_TEST(test_progress_and_sink_can_end_it),
                                         {0}};
    return nd_test_main("measuring a machine", cases);
}
