#include "reports/trace.h"

#include <string.h>

#include "core/json.h"
#include "tests/cost_model/fixture.h"
#include "tests/nd_test.h"
#include "tests/reports/capture.h"

static fixture llama;

static void test_the_fixture_loads(void)
{
    fixture_make(&llama, "llama-3.1-8b", "1x8xh100", "ndplan", 4096, 64);
}

static nd_json member(nd_json object, const char *key)
{
    nd_json value = {0};
    CU_ASSERT_TRUE_FATAL(nd_json_find(object, key, &value));
    return value;
}

static double number(nd_json object, const char *key)
{
    nd_error err;
    double value = -1.0;
    ND_ASSERT_OK(nd_json_need_double(object, key, 0.0, 1e18, &value, &err));
    return value;
}

static const char *text(nd_json object, const char *key)
{
    nd_error err;
    const char *value = "";
    ND_ASSERT_OK(nd_json_need_string(object, key, &value, &err));
    return value;
}

static nd_json_doc *trace(const char *layout_text, capture *c)
{
    nd_error err;
    nd_json_doc *doc = NULL;
    nd_layout layout = fixture_layout(&llama, layout_text);
    capture_begin(c);
    ND_ASSERT_OK(nd_trace_step(c->stream, &llama.context, &layout, &err));
    (void)capture_end(c);
    ND_ASSERT_OK(nd_json_parse(c->text, c->length, "trace", &doc, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
    return doc;
}

enum { STAGES = 4, THREADS = 4 };

/* A viewer draws the events of a thread as one row: they may not overlap. Times are written to a nanosecond. */
static void test_events_of_a_thread_do_not_overlap(void)
{
    static const char *const layouts[] = {
        "pp=4,dp_shard=2,sharding=zero1,grad_accum=8",
        "pp=4,vpp=2,dp_shard=2,sharding=zero3,grad_accum=8",
        "pp=4,dp_shard=2,sharding=zero2,grad_accum=8,schedule=zero_bubble",
    };
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++) {
        capture c;
        double free_us[STAGES][THREADS] = {{0.0}};
        double latest_us = 0.0;
        int passes = 0;
        nd_json_doc *doc = trace(layouts[l], &c);
        nd_json events = member(nd_json_root(doc), "traceEvents");
        for (size_t i = 0; i < nd_json_size(events); i++) {
            nd_json event = nd_json_at(events, i);
            if (strcmp(text(event, "ph"), "X") != 0) {
                continue;
            }
            int stage = (int)number(event, "pid");
            int thread = (int)number(event, "tid");
            CU_ASSERT_TRUE_FATAL(stage < STAGES && thread < THREADS);
            double start_us = number(event, "ts");
            CU_ASSERT_TRUE(start_us >= free_us[stage][thread] - 0.002);
            free_us[stage][thread] = start_us + number(event, "dur");
            latest_us = free_us[stage][thread] > latest_us ? free_us[stage][thread] : latest_us;
            passes +=
                strncmp(text(event, "name"), "forward", 7) == 0 || strncmp(text(event, "name"), "backward", 8) == 0;
        }
        CU_ASSERT_EQUAL(passes, (l == 1 ? 2 : 1) * STAGES * 8 * 2);
        nd_json other = member(nd_json_root(doc), "otherData");
        ND_ASSERT_REL(latest_us * 1e-6, number(other, "simulated_step_s"), 1e-6);
        CU_ASSERT_STRING_EQUAL(text(other, "model"), "llama-3.1-8b");
        nd_json_free(doc);
        capture_free(&c);
    }
}

static void test_every_stage_is_a_named_process(void)
{
    capture c;
    nd_json_doc *doc = trace("pp=4,dp_shard=2,sharding=zero1,grad_accum=8", &c);
    ND_ASSERT_CONTAINS(c.text, "\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"stage 0\"}");
    ND_ASSERT_CONTAINS(c.text, "\"name\":\"process_name\",\"pid\":3,\"args\":{\"name\":\"stage 3\"}");
    ND_ASSERT_CONTAINS(c.text, "\"name\":\"forward 7\",\"pid\":3,\"tid\":0");
    ND_ASSERT_CONTAINS(c.text, "\"name\":\"send activations 0\",\"pid\":0,\"tid\":1");
    ND_ASSERT_CONTAINS(c.text, "\"name\":\"send gradients 0\",\"pid\":3,\"tid\":2");
    CU_ASSERT_PTR_NULL(strstr(c.text, "\"name\":\"send activations 0\",\"pid\":3")); /* the loss is there */
    nd_json_free(doc);
    capture_free(&c);
}

static void test_too_many_passes_are_no_trace(void)
{
    nd_error err = {.message = ""};
    capture c;
    nd_layout layout = fixture_layout(&llama, "pp=8,grad_accum=1000000");
    capture_begin(&c);
    CU_ASSERT_EQUAL(nd_trace_step(c.stream, &llama.context, &layout, &err), ND_EUNSUPPORTED);
    (void)capture_end(&c);
    ND_ASSERT_CONTAINS(err.message, "1000000 micro-batches");
    capture_free(&c);
}

static const nd_test_case cases[] = {
    ND_TEST(test_the_fixture_loads),
    ND_TEST(test_events_of_a_thread_do_not_overlap),
    ND_TEST(test_every_stage_is_a_named_process),
    ND_TEST(test_too_many_passes_are_no_trace),
    {NULL, NULL},
};

int main(void)
{
    return nd_test_main("reports/trace", cases);
}
