#include "cost_model/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/nd_test.h"
#include "tests/program/programs.h"

enum { ROOM = 65536 };

/** A file of its own for this process. */
static const char *scratch_path(void)
{
    static char path[64];
    (void)snprintf(path, sizeof path, "test_machine.%ld.json", (long)getpid());
    return path;
}

/* Constants that differ in every place. */
static nd_machine make_machine(int first_elem, int last_elem, int ops)
{
    nd_machine machine = {.processor = "Made \"up\" 9000 \xc3\xa4", .date = "2026-12-02", .processors = 4};
    for (int elem = first_elem; elem <= last_elem; elem++) {
        nd_compute_rates *rates = &machine.rates[elem];
        rates->measured = true;
        rates->gap_s = 3e-8 * (elem + 1);
        rates->skew_s = 1.0 / 3.0 * 1e-6;
        for (int op = 0; op < ops; op++) {
            if (nd_work_term_name((nd_ins_op)op, 0)[0] == '\0') {
                continue;
            }
            nd_op_rate *rate = &rates->op[op];
            *rate = (nd_op_rate){.crowd = 1.0 + op / 64.0, .rows = op + 1, .error_frac = 0.1 / (op + 1)};
            for (int i = 0; i < ND_WORK_TERMS; i++) {
                bool named = nd_work_term_name((nd_ins_op)op, i)[0] != '\0';
                rate->term_s[i] = named ? 1e-9 / (3 + op + i + elem) : 0.0;
            }
        }
    }
    return machine;
}

/* \return length of the text */
static size_t write_text(const nd_machine *machine, char *text, size_t room)
{
    FILE *stream = fmemopen(text, room, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    nd_machine_write(stream, machine);
    (void)fclose(stream);
    return strlen(text);
}

static nd_status load_text(const char *text, size_t length, nd_machine *out, nd_error *err)
{
    FILE *file = fopen(scratch_path(), "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(text, 1, length, file), length);
    (void)fclose(file);
    nd_status status = nd_machine_load(scratch_path(), out, err);
    (void)remove(scratch_path());
    return status;
}

static void expect_equal(const nd_machine *a, const nd_machine *b)
{
    CU_ASSERT_STRING_EQUAL(a->processor, b->processor);
    CU_ASSERT_STRING_EQUAL(a->date, b->date);
    CU_ASSERT_EQUAL(a->processors, b->processors);
    for (int elem = 0; elem < ND_MACHINE_ELEMS; elem++) {
        const nd_compute_rates *x = &a->rates[elem];
        const nd_compute_rates *y = &b->rates[elem];
        CU_ASSERT_EQUAL(x->measured, y->measured);
        CU_ASSERT_EQUAL(x->gap_s, y->gap_s);
        CU_ASSERT_EQUAL(x->skew_s, y->skew_s);
        for (int op = 0; op < ND_INS_COUNT; op++) {
            CU_ASSERT_EQUAL(memcmp(x->op[op].term_s, y->op[op].term_s, sizeof x->op[op].term_s), 0);
            CU_ASSERT_EQUAL(x->op[op].crowd, y->op[op].crowd);
            CU_ASSERT_EQUAL(x->op[op].rows, y->op[op].rows);
            CU_ASSERT_EQUAL(x->op[op].error_frac, y->op[op].error_frac);
        }
    }
}

static void test_what_is_written_is_read_again(void)
{
    static char text[ROOM];
    static nd_machine machine, read;
    nd_error err = {.message = ""};
    for (int last = 0; last < ND_MACHINE_ELEMS; last++) {
        machine = make_machine(last == 2 ? 0 : last, last, ND_INS_COUNT);
        size_t length = write_text(&machine, text, sizeof text);
        memset(&read, 0x5a, sizeof read); /* nothing of what was there stays */
        ND_ASSERT_OK(load_text(text, length, &read, &err));
        expect_equal(&machine, &read);
    }
    machine = (nd_machine){.processors = 1};
    size_t length = write_text(&machine, text, sizeof text);
    ND_ASSERT_OK(load_text(text, length, &read, &err));
    expect_equal(&machine, &read);
}

/* A small valid file with the first `old` in it replaced. */
static void expect_refused(const char *old, const char *replacement, const char *part)
{
    static char text[ROOM], changed[ROOM];
    static nd_machine read, untouched;
    nd_error err = {.message = ""};
    nd_machine machine = make_machine(1, 1, ND_INS_NORM);
    write_text(&machine, text, sizeof text);
    const char *at = strstr(text, old);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    int length = snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, replacement, at + strlen(old));
    memset(&read, 0x5a, sizeof read);
    memset(&untouched, 0x5a, sizeof untouched);
    CU_ASSERT_EQUAL(load_text(changed, (size_t)length, &read, &err), ND_EPARSE);
    CU_ASSERT_EQUAL(memcmp(&read, &untouched, sizeof read), 0);
    ND_ASSERT_CONTAINS(err.message, part);
    int line = 0;
    int column = 0;
    CU_ASSERT_EQUAL(strncmp(err.message, scratch_path(), strlen(scratch_path())), 0);
    CU_ASSERT_EQUAL(sscanf(err.message + strlen(scratch_path()), ":%d:%d: ", &line, &column), 2);
    CU_ASSERT_TRUE(line >= 1 && column >= 1);
}

static void test_bad_files_are_refused_with_a_place(void)
{
    static const struct {
        const char *old, *replacement, *part;
    } cases[] = {
        {"\"schema\"", "\"scheme\"", "missing key 'schema'"},
        {"ndplan-machine-1", "ndplan-calibration-1", "`ndplan calibrate --machine` writes them"},
        {"\"ndplan-machine-1\"", "7", "schema"},
        {"\"processor\"", "\"processo\"", "missing key 'processor'"},
        {"\"date\"", "\"day\"", "missing key 'date'"},
        {"\"processors\": 4", "\"processors\": 0", "processors"},
        {"\"processors\": 4", "\"processors\": 1e300", "processors"},
        {"\"processors\": 4", "\"processors\": 2.5", "processors"},
        {"\"compute\"", "\"computes\"", "missing key 'compute'"},
        {"\"compute\": {", "\"compute\": [], \"rest\": {", "'compute' must be an object"},
        {"\"fp32\"", "\"fp8\"", "'fp8' is no compute type"},
        {"\"fp32\"", "\"int32\"", "'int32' is no compute type"},
        {"\"gap_s\"", "\"gap\"", "missing key 'gap_s'"},
        {"\"gap_s\": ", "\"gap_s\": -", "gap_s"},
        {"\"skew_s\": ", "\"skew_s\": 1e9, \"was\": ", "skew_s"},
        {"\"skew_s\"", "\"skew\"", "missing key 'skew_s'"},
        {"\"operations\"", "\"operation\"", "missing key 'operations'"},
        {"\"operations\": {", "\"operations\": null, \"rest\": {", "'operations' must be an object"},
        {"\"gemm\"", "\"gem\"", "'gem' is no operation"},
        {"\"gemm\"", "\"add\"", "add"}, /* twice */
        {"\"flop_s\"", "\"flops\"", "missing key 'flop_s'"},
        {"\"flop_s\": ", "\"flop_s\": -", "flop_s"},
        {"\"flop_s\": ", "\"flop_s\": \"fast\", \"was\": ", "flop_s"},
        {"\"crowd\"", "\"crowded\"", "missing key 'crowd'"},
        {"\"crowd\": ", "\"crowd\": -", "crowd"},
        {"\"rows\": ", "\"rows\": -", "rows"},
        {"\"error_frac\": ", "\"error_frac\": null, \"was\": ", "error_frac"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refused(cases[i].old, cases[i].replacement, cases[i].part);
    }
}

static void test_a_file_that_ends_early_is_refused_everywhere(void)
{
    static char text[ROOM];
    static nd_machine read;
    nd_machine machine = make_machine(1, 1, ND_INS_COPY);
    size_t length = write_text(&machine, text, sizeof text);
    CU_ASSERT_TRUE(length > 300);
    for (size_t end = 0; end < length - 1; end++) { /* the last byte is the end of the line */
        nd_error err = {.message = ""};
        nd_status status = load_text(text, end, &read, &err);
        CU_ASSERT_TRUE(status == ND_EPARSE || status == ND_EIO);
        CU_ASSERT_TRUE(strstr(err.message, scratch_path()) != NULL);
    }
    nd_error err = {.message = ""};
    CU_ASSERT_EQUAL(nd_machine_load("no/such/machine.json", &read, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "no/such/machine.json");
}

static double seconds_of(const nd_machine *machine, const hand_set *h, int32_t ranks, int32_t members)
{
    nd_machine_share share = {.machine = machine, .ranks = ranks};
    return nd_machine_seconds(&share, &h->program[0], &h->ins[0][0], members);
}

static void test_seconds_grow_with_the_ranks(void)
{
    static hand_set h;
    nd_machine machine = {.processors = 5};
    nd_compute_rates *rates = &machine.rates[ND_ELEM_F32];
    rates->op[ND_INS_ADD] = (nd_op_rate){.term_s = {2.0, 0.5}, .crowd = 1.4, .rows = 1};
    rates->op[ND_INS_ALL_REDUCE] = (nd_op_rate){.term_s = {1.0, 0.25, 0.0, 8.0}, .crowd = 1.0, .rows = 1};
    hand_open(&h, 1, 1);
    hand_add(&h, 0, (nd_ins){.op = ND_INS_ADD, .rows = 3, .cols = 2, .out = {{1, 0}}});
    const double alone_s = 2.0 + 0.5 * 6.0;
    ND_ASSERT_REL(seconds_of(&machine, &h, 1, 1), alone_s, 1e-12);
    ND_ASSERT_REL(seconds_of(&machine, &h, 2, 1), alone_s * 1.1, 1e-12);
    ND_ASSERT_REL(seconds_of(&machine, &h, 3, 1), alone_s * 1.2, 1e-12);
    ND_ASSERT_REL(seconds_of(&machine, &h, 5, 1), alone_s * 1.4, 1e-12);
    ND_ASSERT_REL(seconds_of(&machine, &h, 10, 1), alone_s * 1.4 * 2.0, 1e-12); /* two take turns on each */
    rates->gap_s = 0.5;
    rates->skew_s = 3.0;
    ND_ASSERT_REL(seconds_of(&machine, &h, 1, 1), alone_s + 0.5, 1e-12);
    h.ins[0][0] = (nd_ins){.op = ND_INS_ALL_REDUCE, .rows = 4, .cols = 1, .out = {{1, 0}}};
    ND_ASSERT_REL(seconds_of(&machine, &h, 4, 4), 1.0 + 0.25 * 16.0 * 1.75 + 16.0 + 3.5, 1e-12);
    ND_ASSERT_REL(seconds_of(&machine, &h, 4, 1), 1.0 + 0.25 * 16.0 + 0.5, 1e-12); /* alone nobody is late */
    h.ins[0][0] = (nd_ins){.op = ND_INS_GEMM, .m = 4, .n = 1, .k = 3, .out = {{1, 0}}};
    CU_ASSERT_EQUAL(seconds_of(&machine, &h, 1, 1), 0.5); /* not measured */
    machine.processors = 1;
    h.ins[0][0] = (nd_ins){.op = ND_INS_ADD, .rows = 3, .cols = 2, .out = {{1, 0}}};
    ND_ASSERT_REL(seconds_of(&machine, &h, 1, 1), alone_s + 0.5, 1e-12);
    ND_ASSERT_REL(seconds_of(&machine, &h, 3, 1), alone_s * 1.4 * 3.0 + 0.5, 1e-12);
}

static void test_a_step_is_timed_with_the_constants_of_its_type(void)
{
    nd_machine machine = make_machine(ND_ELEM_F64, ND_ELEM_F32, ND_INS_COUNT);
    program_set set;
    nd_program_time time = {.ranks = 77};
    nd_error err = {.message = ""};
    CU_ASSERT_TRUE_FATAL(programs_open(&set, "dense", "tp=2", 32, ND_ELEM_BF16));
    CU_ASSERT_EQUAL(nd_machine_time(&machine, set.programs, 2, set.model.kv_heads, &time, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "nothing about bf16");
    CU_ASSERT_EQUAL(time.ranks, 77);
    programs_close(&set);
    CU_ASSERT_TRUE_FATAL(programs_open(&set, "dense", "tp=2", 32, ND_ELEM_F32));
    ND_ASSERT_OK(nd_machine_time(&machine, set.programs, 2, set.model.kv_heads, &time, &err));
    nd_machine_share share = {.machine = &machine, .ranks = 2};
    double sum_s = 0.0;
    for (int32_t i = 0; i < set.programs[0]->ins_count; i++) { /* both do the same: nobody waits */
        const nd_ins *ins = &set.programs[0]->ins[i];
        int32_t members = nd_ins_is_collective(ins->op)
                              ? nd_members_of(&set.programs[0]->layout, set.model.kv_heads, ins->group, 0).count
                              : 1;
        sum_s += nd_machine_seconds(&share, set.programs[0], ins, members);
    }
    ND_ASSERT_REL(time.step_s, sum_s, 1e-9);
    nd_program_time_free(&time);
    programs_close(&set);
}

static void test_what_a_machine_lacks_is_named(void)
{
    program_set set;
    nd_machine machine = make_machine(ND_ELEM_F32, ND_ELEM_F32, ND_INS_COUNT);
    CU_ASSERT_TRUE_FATAL(programs_open(&set, "moe", "dp_shard=2,ep=2,sharding=zero2", 32, ND_ELEM_F32));
    CU_ASSERT_EQUAL(nd_machine_lacks(&machine, set.programs[0]), ND_INS_COUNT);
    machine.rates[ND_ELEM_F32].op[ND_INS_SHIFT].rows = 0; /* of context parallelism */
    CU_ASSERT_EQUAL(nd_machine_lacks(&machine, set.programs[0]), ND_INS_COUNT);
    machine.rates[ND_ELEM_F32].op[ND_INS_ALL_TO_ALL_ROWS].rows = 0;
    CU_ASSERT_EQUAL(nd_machine_lacks(&machine, set.programs[0]), ND_INS_ALL_TO_ALL_ROWS);
    machine.rates[ND_ELEM_F32].op[ND_INS_LOAD].rows = 0; /* comes before */
    CU_ASSERT_EQUAL(nd_machine_lacks(&machine, set.programs[0]), ND_INS_LOAD);
    programs_close(&set);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_what_is_written_is_read_again),
                                         ND_TEST(test_bad_files_are_refused_with_a_place),
                                         ND_TEST(test_a_file_that_ends_early_is_refused_everywhere),
                                         ND_TEST(test_seconds_grow_with_the_ranks),
                                         ND_TEST(test_a_step_is_timed_with_the_constants_of_its_type),
                                         ND_TEST(test_what_a_machine_lacks_is_named),
                                         {0}};
    return nd_test_main("constants of a machine", cases);
}
