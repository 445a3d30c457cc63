/* Seeded random damage to the built-in files: every result is accepted and consistent, or refused in one line. */
#include <stdlib.h>

#include "core/resource.h"
#include "tests/topologies/topology_check.h"

extern const nd_resource nd_gpu_resources[];
extern const nd_resource nd_cluster_resources[];

enum { ROUNDS_PER_FILE = 300, TEXT_MAX = 16384 };

static const char interesting[] = "{}[]\":, \n0123456789-+.eEnull\xff\xc3\x01";

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t below(uint64_t *state, size_t bound)
{
    return (size_t)(next_random(state) % bound);
}

/* Overwrite bytes, change a digit, or delete a stretch. */
static size_t mutate(char *text, size_t length, uint64_t *state)
{
    size_t at = below(state, length);
    switch (below(state, 3)) {
    case 0:
        text[at] = interesting[below(state, sizeof interesting - 1)];
        return length;
    case 1:
        for (size_t i = 0; i < length; i++) {
            char *c = &text[(at + i) % length];
            if (*c >= '0' && *c <= '9') {
                *c = "0123456789-.e"[below(state, 13)];
                break;
            }
        }
        return length;
    default: {
        size_t count = 1 + below(state, 12);
        count = count < length - at ? count : length - at;
        memmove(text + at, text + at + count, length - at - count);
        return length - count;
    }
    }
}

static bool is_one_line(const nd_error *err)
{
    return strlen(err->message) > 5 && strpbrk(err->message, "\n\r") == NULL;
}

static bool try_cluster(const char *text, size_t length)
{
    nd_cluster_spec cluster;
    nd_cluster_spec larger;
    nd_error err;
    if (nd_cluster_parse(text, length, "m.json", &cluster, &err) != ND_OK) {
        return is_one_line(&err);
    }
    if (broken_invariant(&cluster) != NULL) {
        fprintf(stderr, "%s in: %.*s\n", broken_invariant(&cluster), (int)length, text);
        return false;
    }
    if (nd_cluster_resize(&cluster, 37, &larger, &err) != ND_OK) {
        return is_one_line(&err);
    }
    return broken_invariant(&larger) == NULL;
}

static bool try_gpu(const char *text, size_t length)
{
    nd_json_doc *doc = NULL;
    nd_gpu_spec gpu;
    nd_error err;
    nd_status status = nd_json_parse(text, length, "m.json", &doc, &err);
    if (status == ND_OK) {
        status = nd_gpu_parse(nd_json_root(doc), &gpu, &err);
        nd_json_free(doc);
    }
    if (status != ND_OK) {
        return is_one_line(&err);
    }
    return gpu.memory_bytes > 0 && gpu.hbm_bytes_per_s > 0.0 && gpu.sm_count > 0 && isfinite(gpu.power_w);
}

static void damage(const nd_resource *table, bool (*accepts)(const char *, size_t))
{
    static char text[TEXT_MAX];
    uint64_t state = 0x9e3779b97f4a7c15ULL;
    for (const nd_resource *entry = table; entry->name != NULL; entry++) {
        CU_ASSERT_TRUE_FATAL(entry->length < TEXT_MAX && accepts(entry->text, entry->length));
        for (int round = 0; round < ROUNDS_PER_FILE; round++) {
            size_t length = entry->length;
            memcpy(text, entry->text, length);
            for (size_t n = 1 + below(&state, 3); n > 0 && length > 0; n--) {
                length = mutate(text, length, &state);
            }
            CU_ASSERT_TRUE_FATAL(accepts(text, length));
        }
    }
}

static void damaged_clusters_are_consistent_or_refused(void)
{
    damage(nd_cluster_resources, try_cluster);
}

static void damaged_gpus_are_consistent_or_refused(void)
{
    damage(nd_gpu_resources, try_gpu);
}

/* A GPU file inside a topology file: its reference node is read too. */
static bool try_inline(const char *text, size_t length)
{
    static char file[TEXT_MAX + 256];
    int used = snprintf(file, sizeof file, "{\"gpus_per_node\": 6, \"nodes\": 5, \"gpu\": %.*s}", (int)length, text);
    return try_cluster(file, (size_t)used < sizeof file ? (size_t)used : sizeof file - 1);
}

static void damaged_inline_gpus_are_consistent_or_refused(void)
{
    damage(nd_gpu_resources, try_inline);
}

static void damaged_short_forms_are_consistent_or_refused(void)
{
    static const char *const forms[] = {"16x8xh100", "p5.48xlarge:4", "8xmi300x", "32x4xgb200", "dgx-a100:16"};
    static const char letters[] = "0123456789xX:abhp-. %\x01\xff";
    uint64_t state = 0x123456789abcdefULL;
    for (int round = 0; round < 1000; round++) {
        char text[64];
        nd_cluster_spec cluster;
        nd_error err;
        (void)snprintf(text, sizeof text, "%s", forms[below(&state, 5)]);
        for (size_t n = 1 + below(&state, 3); n > 0; n--) {
            text[below(&state, strlen(text))] = letters[below(&state, sizeof letters - 1)];
        }
        if (strchr(text, '/') == NULL && nd_cluster_load(text, &cluster, &err) == ND_OK) {
            CU_ASSERT_PTR_NULL_FATAL(broken_invariant(&cluster));
        } else {
            CU_ASSERT_TRUE_FATAL(is_one_line(&err));
        }
    }
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(damaged_clusters_are_consistent_or_refused),
        ND_TEST(damaged_gpus_are_consistent_or_refused),
        ND_TEST(damaged_inline_gpus_are_consistent_or_refused),
        ND_TEST(damaged_short_forms_are_consistent_or_refused),
        {NULL, NULL},
    };
    return nd_test_main("topologies/mutations", cases);
}
