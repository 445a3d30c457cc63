/* What users report in public threads as a bound on the verdict: runs that ran out of memory, and runs that did not.
 * tests/cost_model/data/memory_cases.csv has one configuration a line, its source and what was assumed. */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "cost_model/measured_run.h"
#include "tests/nd_test.h"

enum { CASES_MAX = 128 };

typedef enum outcome { RAN, OUT_OF_MEMORY, OUT_OF_HOST_MEMORY, OUT_OF_MEMORY_LOADING, OUTCOME_COUNT } outcome;
static const char *const outcome_names[OUTCOME_COUNT] = {"ran", "oom", "host-oom", "load-oom"};

typedef struct memory_case {
    char id[40];
    outcome outcome;
    double node_bytes; /* host memory of one node; 0 when not stated */
    double peak_bytes; /* reported; 0 when not */
    nd_memory_breakdown memory;
} memory_case;

static memory_case cases[CASES_MAX];
static size_t cases_count;

/* "r=64;bits=4", since commas divide cells. */
static void read_lora(const char *text, nd_train_spec *train)
{
    char option[32];
    nd_error err = {.message = ""};
    if (*text == '\0') {
        return;
    }
    (void)snprintf(option, sizeof option, "%s", text);
    char *separator = strchr(option, ';');
    if (separator != NULL) {
        *separator = ',';
    }
    ND_ASSERT_OK(nd_lora_parse(option, train, &err));
}

static nd_offload offload_of(const char *text)
{
    for (int i = 0; i < ND_OFFLOAD_COUNT; i++) {
        if (strcmp(text, nd_offload_name((nd_offload)i)) == 0) {
            return (nd_offload)i;
        }
    }
    CU_FAIL("unknown offload");
    return ND_OFFLOAD_NONE;
}

static outcome outcome_of(const char *text)
{
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        if (strcmp(text, outcome_names[i]) == 0) {
            return (outcome)i;
        }
    }
    CU_FAIL("unknown outcome");
    return RAN;
}

/* What the columns of measured runs do not have: stack by name, adapters, offload, optimizer. */
static void read_rest(const nd_csv *csv, size_t row, nd_measured_run *run)
{
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_stack_find(nd_csv_text(csv, row, "stack"), &run->stack, &err));
    ND_ASSERT_OK(nd_optimizer_parse(nd_csv_text(csv, row, "optimizer"), &run->train.optimizer, &err));
    bool flash = strcmp(nd_csv_text(csv, row, "flash_attn"), "1") == 0;
    run->train.attention = flash ? run->stack.default_attention : ND_ATTENTION_MATH;
    read_lora(nd_csv_text(csv, row, "lora"), &run->train);
    run->layout.offload = offload_of(nd_csv_text(csv, row, "offload"));
}

static void read_case(const nd_csv *csv, size_t row)
{
    static nd_measured_run run;
    nd_calibration calibration;
    nd_estimate estimate;
    nd_error err = {.message = ""};
    memory_case *c = &cases[cases_count++];
    double host_gib = 0.0;
    double peak_gib = 0.0;
    ND_ASSERT_OK(nd_measured_read(csv, row, &run, &err));
    read_rest(csv, row, &run);
    ND_ASSERT_OK(nd_csv_double(csv, row, "host_gib", 0.0, 1e6, &host_gib, &err));
    ND_ASSERT_OK(nd_csv_double(csv, row, "peak_gib", 0.0, 1e6, &peak_gib, &err));
    ND_ASSERT_OK(nd_calibration_for_gpu(&run.cluster.gpu, &calibration, &err));
    ND_ASSERT_OK(nd_measured_predict(&run, &calibration, &estimate, &err));
    (void)snprintf(c->id, sizeof c->id, "%s", run.id);
    c->outcome = outcome_of(nd_csv_text(csv, row, "outcome"));
    c->node_bytes = host_gib * ND_GIB;
    c->peak_bytes = peak_gib * ND_GIB;
    c->memory = estimate.memory;
}

static void print_case(const memory_case *c)
{
    const nd_memory_breakdown *m = &c->memory;
    printf("%-8s %-8s %-10s %6.1f of %6.1f GiB (%.1f to %.1f, %s)  states %5.1f activations %5.1f logits %4.1f "
           "buffers %4.1f  host %6.0f load %6.0f\n",
           c->id, outcome_names[c->outcome], nd_verdict_name(m->verdict), m->peak_bytes / ND_GIB,
           m->capacity_bytes / ND_GIB, m->peak_low_bytes / ND_GIB, m->peak_high_bytes / ND_GIB, nd_phase_name(m->phase),
           (m->weights_bytes + m->grads_bytes + m->optimizer_bytes) / ND_GIB, m->activations_bytes / ND_GIB,
           m->logits_bytes / ND_GIB, m->gather_buffers_bytes / ND_GIB, m->host_bytes / ND_GIB,
           m->host_load_bytes / ND_GIB);
    if (c->peak_bytes > 0.0) {
        printf("%19s reported %.1f GiB, error %+.0f %%\n", "", c->peak_bytes / ND_GIB,
               100.0 * (m->peak_bytes / c->peak_bytes - 1.0));
    }
}

static void test_every_case_can_be_expressed(void)
{
    nd_csv *csv = NULL;
    nd_error err = {.message = ""};
    ND_ASSERT_OK(nd_csv_load(ND_TEST_DATA "/memory_cases.csv", &csv, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(csv);
    CU_ASSERT_TRUE_FATAL(nd_csv_rows(csv) >= 60 && nd_csv_rows(csv) <= CASES_MAX);
    for (size_t row = 0; row < nd_csv_rows(csv); row++) {
        read_case(csv, row);
        print_case(&cases[row]);
    }
    nd_csv_free(csv);
}

static void test_no_run_that_ran_out_of_memory_is_said_to_fit(void)
{
    size_t seen = 0;
    for (size_t i = 0; i < cases_count; i++) {
        if (cases[i].outcome == OUT_OF_MEMORY) {
            seen++;
            if (cases[i].memory.verdict == ND_VERDICT_FITS) {
                fprintf(stderr, "%s ran out of memory and is said to fit\n", cases[i].id);
                CU_FAIL("said to fit");
            }
        }
    }
    CU_ASSERT_TRUE(seen >= 20);
}

static void test_at_most_one_in_twenty_that_ran_is_refused(void)
{
    size_t ran = 0;
    size_t refused = 0;
    for (size_t i = 0; i < cases_count; i++) {
        if (cases[i].outcome == RAN) {
            ran++;
            if (cases[i].memory.verdict == ND_VERDICT_NO) {
                refused++;
                fprintf(stderr, "%s ran and is refused\n", cases[i].id);
            }
        }
    }
    CU_ASSERT_TRUE(ran >= 20);
    CU_ASSERT_TRUE(20 * refused <= ran);
}

static void test_host_memory_that_ran_out_is_seen(void)
{
    size_t seen = 0;
    for (size_t i = 0; i < cases_count; i++) {
        const memory_case *c = &cases[i];
        double need =
            c->memory.host_bytes > c->memory.host_load_bytes ? c->memory.host_bytes : c->memory.host_load_bytes;
        if (c->node_bytes > 0.0) {
            seen++;
            CU_ASSERT_EQUAL(need > c->node_bytes, c->outcome == OUT_OF_HOST_MEMORY);
        }
    }
    CU_ASSERT_TRUE(seen >= 4);
}

/* A loader's failure is no failure of the layout: the verdict speaks of the run, load_whole_bytes of the loader. */
static void test_a_loader_that_does_not_shard_is_named(void)
{
    size_t seen = 0;
    for (size_t i = 0; i < cases_count; i++) {
        if (cases[i].outcome == OUT_OF_MEMORY_LOADING) {
            seen++;
            CU_ASSERT_TRUE(cases[i].memory.load_whole_bytes > cases[i].memory.capacity_bytes);
        }
    }
    CU_ASSERT_TRUE(seen >= 1);
}

int main(void)
{
    static const nd_test_case tests[] = {
        ND_TEST(test_every_case_can_be_expressed),
        ND_TEST(test_no_run_that_ran_out_of_memory_is_said_to_fit),
        ND_TEST(test_at_most_one_in_twenty_that_ran_is_refused),
        ND_TEST(test_host_memory_that_ran_out_is_seen),
        ND_TEST(test_a_loader_that_does_not_shard_is_named),
        {NULL, NULL},
    };
    return nd_test_main("cost_model/memory_cases", tests);
}
