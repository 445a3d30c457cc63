#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "cost_model/collective_data.h"

enum { WORDS_MAX = 24, WORD_MAX = 48, JOINED_MAX = 3 };

/* One word of the text; "8xH100" is H100 with a count. */
typedef struct word {
    char text[WORD_MAX];
    int64_t count; /* 0: none in front */
} word;

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-';
}

static void take_count(const char *text, size_t length, word *out)
{
    size_t digits = 0;
    while (digits < length && digits < 3 && isdigit((unsigned char)text[digits])) {
        digits++;
    }
    out->count = 0;
    if (digits > 0 && digits + 1 < length && text[digits] == 'x') {
        for (size_t i = 0; i < digits; i++) {
            out->count = 10 * out->count + (text[i] - '0');
        }
        text += digits + 1;
        length -= digits + 1;
    }
    (void)snprintf(out->text, sizeof out->text, "%.*s", (int)(length < WORD_MAX ? length : WORD_MAX - 1), text);
}

static size_t split(const char *text, word words[WORDS_MAX])
{
    size_t count = 0;
    while (*text != '\0' && count < WORDS_MAX) {
        size_t length = 0;
        while (in_word(text[length])) {
            length++;
        }
        if (length > 0) {
            take_count(text, length, &words[count]);
            count++;
        }
        text += length + (text[length] != '\0' ? 1 : 0);
    }
    return count;
}

/* Words [first, first + joined) with hyphens between: "RTX PRO 6000" is rtx-pro-6000. */
static void join(const word *words, size_t first, size_t joined, char out[JOINED_MAX * WORD_MAX])
{
    out[0] = '\0';
    for (size_t i = 0; i < joined; i++) {
        size_t used = strlen(out);
        (void)snprintf(out + used, (size_t)JOINED_MAX * WORD_MAX - used, "%s%.*s", i > 0 ? "-" : "", WORD_MAX - 2,
                       words[first + i].text);
    }
}

/* A built-in cluster by its whole name or alias: a name that is only begun ("DGX") could be any of several. */
static bool is_cluster(const char *name, int64_t nodes, nd_cluster_spec *out)
{
    char text[JOINED_MAX * WORD_MAX + 24], asked[ND_CLUSTER_NAME_MAX], found[ND_CLUSTER_NAME_MAX];
    nd_cluster_spec spec;
    (void)snprintf(text, sizeof text, "%s:%lld", name, (long long)nodes);
    if (strlen(name) >= ND_CLUSTER_NAME_MAX || nd_cluster_load(text, &spec, NULL) != ND_OK) {
        return false;
    }
    nd_text_canonical(name, asked, sizeof asked);
    nd_text_canonical(spec.base_name, found, sizeof found);
    bool only_begun = strlen(found) > strlen(asked) && strncmp(found, asked, strlen(asked)) == 0;
    if (asked[0] == '\0' || found[0] == '\0' || only_begun) {
        return false;
    }
    *out = spec;
    return true;
}

static bool is_gpu_node(const char *name, int64_t gpus_per_node, int64_t nodes, nd_cluster_spec *out)
{
    nd_gpu_spec gpu;
    char text[JOINED_MAX * WORD_MAX + 48];
    if (nd_gpu_find(name, &gpu, NULL) != ND_OK) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%lldx%lldx%s", (long long)nodes, (long long)gpus_per_node, gpu.name);
    return nd_cluster_load(text, out, NULL) == ND_OK;
}

/* More words first: "H100 PCIe" is not an H100. */
static bool find(const word *words, size_t count, int64_t per_node, int64_t nodes, nd_cluster_spec *out)
{
    char name[JOINED_MAX * WORD_MAX];
    for (int pass = 0; pass < 2; pass++) {
        for (size_t joined = JOINED_MAX; joined >= 1; joined--) {
            for (size_t i = 0; i + joined <= count; i++) {
                join(words, i, joined, name);
                int64_t gpus = words[i].count > per_node ? words[i].count : per_node;
                if (pass == 0 ? is_cluster(name, nodes, out) : is_gpu_node(name, gpus, nodes, out)) {
                    return true;
                }
            }
        }
    }
    return false;
}

nd_status nd_collective_cluster(const char *text, int64_t gpus, int64_t nodes, nd_cluster_spec *out, nd_error *err)
{
    word words[WORDS_MAX];
    nd_cluster_spec spec;
    if (nodes < 1 || gpus < nodes || gpus % nodes != 0) {
        return nd_fail(err, ND_ENOTFOUND, "%lld GPUs do not spread over %lld nodes", (long long)gpus, (long long)nodes);
    }
    int64_t per_node = gpus / nodes;
    if (!find(words, split(text, words), per_node, nodes, &spec)) {
        return nd_fail(err, ND_ENOTFOUND, "'%.60s' names no known cluster or GPU", text);
    }
    if (spec.gpus_per_node < per_node || (nodes > 1 && spec.gpus_per_node % per_node != 0)) {
        return nd_fail(err, ND_ENOTFOUND, "'%.60s' has %lld GPUs per node, not %lld", text,
                       (long long)spec.gpus_per_node, (long long)per_node);
    }
    *out = spec;
    return ND_OK;
}
