#include "topologies/gpu_spec.h"

#include <stdio.h>
#include <string.h>

#include "core/resource.h"
#include "core/text.h"
#include "core/units.h"
#include "tests/nd_test.h"

extern const nd_resource nd_gpu_resources[];

static nd_gpu_spec found(const char *name)
{
    nd_gpu_spec gpu;
    nd_error err;
    memset(&gpu, 0, sizeof gpu);
    ND_ASSERT_OK(nd_gpu_find(name, &gpu, &err));
    return gpu;
}

static void every_built_in_gpu_is_complete(void)
{
    CU_ASSERT_TRUE(nd_gpu_builtin_count() >= 40);
    for (size_t i = 0; i < nd_gpu_builtin_count(); i++) {
        nd_gpu_spec gpu = found(nd_gpu_builtin_name(i));
        CU_ASSERT_STRING_EQUAL(gpu.name, nd_gpu_builtin_name(i));
        CU_ASSERT_TRUE(gpu.title[0] != '\0' && gpu.arch[0] != '\0' && gpu.source[0] != '\0');
        CU_ASSERT_TRUE(gpu.peak_flops_per_s[ND_DTYPE_BF16] + gpu.peak_flops_per_s[ND_DTYPE_FP16] >
                       gpu.peak_flops_per_s[ND_DTYPE_FP32]);
        CU_ASSERT_TRUE(gpu.memory_bytes > (int64_t)14 << 30);
    }
    CU_ASSERT_PTR_NULL(nd_gpu_builtin_name(nd_gpu_builtin_count()));
}

/* {"value": number, "source": text} everywhere; returns the number of figures. */
static size_t count_sourced(nd_json object, const char *file)
{
    size_t sourced = 0;
    for (size_t i = 0; i < nd_json_size(object); i++) {
        nd_json value;
        nd_json source;
        const char *text = NULL;
        nd_error err;
        const char *key = nd_json_member(object, i, &value);
        bool is_figure = nd_json_typeof(value) == ND_JSON_INT || nd_json_typeof(value) == ND_JSON_REAL;
        if (is_figure || strcmp(key, "reference_node") == 0) {
            CU_ASSERT_FALSE(is_figure);
            continue;
        }
        if (nd_json_typeof(value) != ND_JSON_OBJECT) {
            continue;
        }
        if (!nd_json_find(value, "value", &source)) {
            sourced += count_sourced(value, file);
            continue;
        }
        ND_ASSERT_OK(nd_json_need_string(value, "source", &text, &err));
        if (text == NULL || strlen(text) < 4) {
            fprintf(stderr, "%s: %s has no source\n", file, key);
            CU_FAIL("source");
        }
        sourced++;
    }
    return sourced;
}

static void every_figure_of_a_gpu_has_a_source(void)
{
    for (const nd_resource *entry = nd_gpu_resources; entry->name != NULL; entry++) {
        nd_json_doc *doc = NULL;
        nd_error err;
        ND_ASSERT_OK(nd_json_parse(entry->text, entry->length, entry->name, &doc, &err));
        CU_ASSERT_TRUE(count_sourced(nd_json_root(doc), entry->name) >= 7);
        nd_json_free(doc);
    }
}

static void known_figures_are_those_of_the_data_sheets(void)
{
    nd_gpu_spec h100 = found("h100");
    ND_ASSERT_REL(h100.peak_flops_per_s[ND_DTYPE_BF16], 989e12, 1e-12);
    ND_ASSERT_REL(h100.peak_flops_per_s[ND_DTYPE_FP8], 1979e12, 1e-12);
    ND_ASSERT_REL(h100.hbm_bytes_per_s, 3.35e12, 1e-12);
    ND_ASSERT_REL(h100.nvlink_bytes_per_s, 450e9, 1e-12);
    ND_ASSERT_REL((double)h100.memory_bytes, 79.2 * ND_GIB, 1e-9);
    CU_ASSERT_EQUAL(h100.sm_count, 132);
    CU_ASSERT_STRING_EQUAL(h100.arch, "hopper");
    ND_ASSERT_REL(found("a100").peak_flops_per_s[ND_DTYPE_BF16], 312e12, 1e-12);
    ND_ASSERT_REL(found("a100").hbm_bytes_per_s, 2.039e12, 1e-12);
    ND_ASSERT_REL((double)found("b200").memory_bytes, 179.06 * ND_GIB, 1e-9);
    ND_ASSERT_REL(found("h100-96gb-500w").hbm_bytes_per_s, 2.4e12, 1e-12);
    ND_ASSERT_REL(found("h100-96gb-500w").power_w, 500.0, 1e-12);
    ND_ASSERT_REL(found("a800").nvlink_bytes_per_s, 200e9, 1e-12);
    CU_ASSERT_EQUAL(found("v100").peak_flops_per_s[ND_DTYPE_BF16], 0.0);
    CU_ASSERT_EQUAL(found("rtx4090").nvlink_bytes_per_s, 0.0);
}

static void one_gcd_is_half_an_mi250x(void)
{
    nd_gpu_spec gpu = found("mi250x");
    ND_ASSERT_REL(gpu.peak_flops_per_s[ND_DTYPE_BF16], 191.5e12, 1e-12);
    ND_ASSERT_REL((double)gpu.memory_bytes, 64.0 * 0.99 * ND_GIB, 1e-9);
    CU_ASSERT_EQUAL(gpu.sm_count, 110);
}

static void what_is_only_remembered_still_says_so(void)
{
    size_t marked = 0;
    for (const nd_resource *entry = nd_gpu_resources; entry->name != NULL; entry++) {
        marked += strstr(entry->text, "from memory, unverified") != NULL ? 1U : 0U;
    }
    CU_ASSERT_TRUE(marked >= 20);
    CU_ASSERT_PTR_NOT_NULL(strstr(nd_resource_find(nd_gpu_resources, "h20")->text,
                                  "\"nvlink_bytes_per_s\": {\"value\": 450000000000, \"source\": \"from memory, unv"));
}

static void names_and_aliases_find_the_same_gpu(void)
{
    static const char *const pairs[][2] = {{"H100", "h100"},           {"h100-sxm", "h100"},   {"A100-80GB", "a100"},
                                           {"A100_SXM", "a100"},       {"3090", "rtx3090"},    {"RTX-3090", "rtx3090"},
                                           {"v100", "v100-32gb"},      {"MI300X", "mi300x"},   {"rtx a6000", "a6000"},
                                           {"h100-80gb-hbm3", "h100"}, {"nvidia/H100", "h100"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        CU_ASSERT_STRING_EQUAL(found(pairs[i][0]).name, pairs[i][1]);
    }
}

static void unknown_gpus_suggest_the_nearest(void)
{
    nd_gpu_spec gpu;
    nd_error err;
    CU_ASSERT_EQUAL(nd_gpu_find("h1000", &gpu, &err), ND_ENOTFOUND);
    ND_ASSERT_CONTAINS(err.message, "unknown GPU 'h1000'; did you mean 'h100'?");
    CU_ASSERT_EQUAL(nd_gpu_find("quite-something-else", &gpu, &err), ND_ENOTFOUND);
    ND_ASSERT_CONTAINS(err.message, "`ndplan list gpus` shows what is known");
    CU_ASSERT_EQUAL(nd_gpu_find("", &gpu, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_gpu_find(NULL, &gpu, &err), ND_EINVAL);
    CU_ASSERT_EQUAL(nd_gpu_find("...", &gpu, &err), ND_ENOTFOUND);
}

static nd_status parse_text(const char *text, nd_gpu_spec *out, nd_error *err)
{
    nd_json_doc *doc = NULL;
    nd_status status = nd_json_parse(text, strlen(text), "gpu.json", &doc, err);
    if (status == ND_OK) {
        status = nd_gpu_parse(nd_json_root(doc), out, err);
        nd_json_free(doc);
    }
    return status;
}

static void a_gpu_can_start_from_another(void)
{
    nd_gpu_spec gpu = {0};
    nd_error err;
    ND_ASSERT_OK(parse_text("{\"based_on\": \"H100\", \"name\": \"mine\", \"power_w\": {\"value\": 350}}", &gpu, &err));
    CU_ASSERT_STRING_EQUAL(gpu.name, "mine");
    ND_ASSERT_REL(gpu.power_w, 350.0, 1e-12);
    ND_ASSERT_REL(gpu.hbm_bytes_per_s, 3.35e12, 1e-12);
}

#define WHOLE                                                                                                          \
    "\"name\":\"g\",\"memory_bytes\":1e10,\"hbm_bytes_per_s\":1e12,\"pcie_bytes_per_s\":3e10,\"sm_count\":10,"         \
    "\"peak_flops_per_s\":{\"bf16\":1e14}"

static void a_gpu_can_be_described_whole(void)
{
    nd_gpu_spec gpu = {0};
    nd_error err;
    ND_ASSERT_OK(parse_text("{" WHOLE "}", &gpu, &err));
    CU_ASSERT_STRING_EQUAL(gpu.title, "g");
    CU_ASSERT_STRING_EQUAL(gpu.arch, "unknown");
    CU_ASSERT_EQUAL(gpu.memory_bytes, 10000000000LL);
    CU_ASSERT_EQUAL(gpu.peak_flops_per_s[ND_DTYPE_FP8], 0.0);
}

static void bad_gpu_objects_are_refused_where_they_are_wrong(void)
{
    static const char *const cases[][2] = {
        {"{}", "gpu.json:1:1: missing key 'name' in the GPU; add it, or \"based_on\" a built-in GPU"},
        {"{\"name\":\"g\"}", "missing key 'memory_bytes' in the GPU"},
        {"{\"name\":\"g\",\n \"memory\": 1}", "gpu.json:2:12: unknown key 'memory' in the GPU"},
        {"{" WHOLE ",\"power_W\":1}", "unknown key 'power_W' in the GPU; did you mean 'power_w'?"},
        {"{\"based_on\":\"h1000\"}", "gpu.json:1:13: unknown GPU 'h1000'; did you mean 'h100'?"},
        {"{\"based_on\":\"h100\",\"hbm_bytes_per_s\":3350}", "'hbm_bytes_per_s' must be"},
        {"{\"based_on\":\"h100\",\"hbm_bytes_per_s\":{\"value\":-1}}", "'hbm_bytes_per_s' must be"},
        {"{\"based_on\":\"h100\",\"hbm_bytes_per_s\":{}}", "missing key 'value'"},
        {"{\"based_on\":\"h100\",\"hbm_bytes_per_s\":\"fast\"}", "'hbm_bytes_per_s' must be"},
        {"{\"based_on\":\"h100\",\"sm_count\":1.5}", "'sm_count' must be"},
        {"{\"based_on\":\"h100\",\"peak_flops_per_s\":{\"int8\":1e15}}", "unknown key 'int8' in peak_flops_per_s"},
        {"{\"based_on\":\"h100\",\"peak_flops_per_s\":1e15}", "'peak_flops_per_s' must be an object, got"},
        {"{\"based_on\":\"h100\",\"name\":\"a name that is much too long to be the name of any GPU\"}",
         "'name' must have at most 47 bytes"},
        {"[]", "the GPU must be an object, got an array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nd_gpu_spec gpu;
        nd_error err;
        CU_ASSERT_EQUAL(parse_text(cases[i][0], &gpu, &err), ND_EPARSE);
        ND_ASSERT_CONTAINS(err.message, cases[i][1]);
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(every_built_in_gpu_is_complete),
        ND_TEST(every_figure_of_a_gpu_has_a_source),
        ND_TEST(known_figures_are_those_of_the_data_sheets),
        ND_TEST(one_gcd_is_half_an_mi250x),
        ND_TEST(what_is_only_remembered_still_says_so),
        ND_TEST(names_and_aliases_find_the_same_gpu),
        ND_TEST(unknown_gpus_suggest_the_nearest),
        ND_TEST(a_gpu_can_start_from_another),
        ND_TEST(a_gpu_can_be_described_whole),
        ND_TEST(bad_gpu_objects_are_refused_where_they_are_wrong),
        {NULL, NULL},
    };
    return nd_test_main("topologies/gpu_spec", cases);
}
