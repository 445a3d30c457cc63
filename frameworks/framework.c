#include "frameworks/framework.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "frameworks/frameworks_internal.h"

enum { VERSION_MAX = 64, NAME_MAX_BYTES = 64 };

/* Of one name, the version that is meant when none is given comes first. */
static const nd_framework *const frameworks[] = {
    &nd_framework_accelerate,      &nd_framework_axolotl,     &nd_framework_torchtitan,
    &nd_framework_torchtitan_main, &nd_framework_megatron,    &nd_framework_deepspeed,
    &nd_framework_nanotron,        &nd_framework_pytorch_ddp, &nd_framework_ndplan,
};

enum { FRAMEWORKS_COUNT = sizeof frameworks / sizeof frameworks[0] };

static bool same_name(const char *a, const char *b)
{
    char canonical[2][NAME_MAX_BYTES];
    nd_text_canonical(a, canonical[0], sizeof canonical[0]);
    nd_text_canonical(b, canonical[1], sizeof canonical[1]);
    return strcmp(canonical[0], canonical[1]) == 0;
}

static nd_status unknown_name(const char *name, nd_error *err)
{
    const char *names[FRAMEWORKS_COUNT];
    for (size_t i = 0; i < FRAMEWORKS_COUNT; i++) {
        names[i] = frameworks[i]->name;
    }
    const char *nearest = nd_text_nearest(name, names, FRAMEWORKS_COUNT);
    if (nearest != NULL) {
        return nd_fail(err, ND_ENOTFOUND, "no framework is called '%.64s', did you mean '%s'?", name, nearest);
    }
    return nd_fail(err, ND_ENOTFOUND, "no framework is called '%.64s'; see `ndplan list frameworks`", name);
}

static nd_status unknown_version(const char *name, const char *version, nd_error *err)
{
    char known[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < FRAMEWORKS_COUNT && used < sizeof known; i++) {
        if (same_name(frameworks[i]->name, name)) {
            int length =
                snprintf(known + used, sizeof known - used, "%s%s", used == 0 ? "" : ", ", frameworks[i]->version);
            used += length > 0 ? (size_t)length : 0;
        }
    }
    return nd_fail(err, ND_ENOTFOUND, "the rules of %.64s %.64s are not known; known versions: %s", name, version,
                   known);
}

/* "v0.2.2" and "0.2.2" are the same version. */
static bool same_version(const char *known, const char *wanted)
{
    return strcmp(known, wanted) == 0 || (wanted[0] == 'v' && strcmp(known, wanted + 1) == 0);
}

nd_status nd_framework_find(const char *name, const nd_framework **out, nd_error *err)
{
    char word[NAME_MAX_BYTES];
    const char *at = strchr(name, '@');
    size_t length = at != NULL ? (size_t)(at - name) : strlen(name);
    if (length == 0 || length >= sizeof word) {
        return unknown_name(name, err);
    }
    memcpy(word, name, length);
    word[length] = '\0';
    bool known = false;
    for (size_t i = 0; i < FRAMEWORKS_COUNT; i++) {
        if (!same_name(frameworks[i]->name, word)) {
            continue;
        }
        known = true;
        if (at == NULL || same_version(frameworks[i]->version, at + 1)) {
            *out = frameworks[i];
            return ND_OK;
        }
    }
    return known ? unknown_version(word, at + 1, err) : unknown_name(word, err);
}

size_t nd_framework_count(void)
{
    return FRAMEWORKS_COUNT;
}

const nd_framework *nd_framework_at(size_t index)
{
    return frameworks[index];
}

bool nd_framework_apply(const nd_framework_rule *rules, const nd_model_spec *model, const nd_layout *layout,
                        const nd_train_spec *train, const char **rule, nd_refusal *refusal)
{
    for (; *rules != NULL; rules++) {
        if (!(*rules)(model, layout, train, rule, refusal)) {
            return false;
        }
    }
    return true;
}

bool nd_refuse_nearest_divisor(nd_refusal *refusal, const char *key, int64_t value, int64_t count, int64_t max)
{
    if (refusal == NULL) {
        return false;
    }
    int64_t below = value < count ? value : count;
    while (below > 1 && (below >= value || count % below != 0)) {
        below--;
    }
    int64_t limit = max < count ? max : count;
    for (int64_t above = value + 1; above <= limit; above++) {
        if (count % above == 0) {
            return nd_refuse_nearest(refusal, "%s=%lld or %s=%lld", key, (long long)below, key, (long long)above);
        }
    }
    return nd_refuse_nearest(refusal, "%s=%lld", key, (long long)below);
}
