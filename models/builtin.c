/* The built-in models and the ways of writing their names. */
#include <ctype.h>
#include <string.h>

#include "core/text.h"
#include "models/reader_internal.h"

enum { NAME_MAX_BYTES = 128 };

size_t nd_model_builtin_count(void)
{
    return nd_resource_count(nd_model_resources);
}

const char *nd_model_builtin_name(size_t index)
{
    return nd_model_resources[index].name;
}

/* Names in use for the same shapes, after the words below are dropped. */
static const struct {
    const char *alias;
    const char *builtin;
} aliases[] = {
    {"llama-4-scout-17b-16e", "llama-4-scout"},
    {"llama-4-maverick-17b-128e", "llama-4-maverick"},
    {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
    {"mixtral-8x22b-v0.1", "mixtral-8x22b"},
    {"olmo-2-1124-7b", "olmo-2-7b"},
    {"olmo-2-1124-13b", "olmo-2-13b"},
    {"olmo-2-0325-32b", "olmo-2-32b"},
    {"gpt2-small", "gpt2"},
    {"gpt-3", "gpt3-175b"},
    {"megatron-175b", "gpt3-175b"},
    {"deepseek-r1", "deepseek-v3"},
    {"phi-3-mini-4k", "phi-3-mini"},
    {"phi-3-medium-4k", "phi-3-medium"},
    {"mistral-7b", "mistral-7b-v0.3"},
    {"tinyllama-1.1b-chat-v1.0", "tinyllama-1.1b"},
};

/* Words that say how a checkpoint was trained or stored, not what shape it has. */
static const char *const shapeless_words[] = {"instruct", "chat",    "hf",   "it",   "base", "pt",   "meta", "deduped",
                                              "bf16",     "fp8",     "sft",  "dpo",  "2407", "2410", "2412", "2507",
                                              "0324",     "preview", "text", "0528", "bnb",  "4bit"};

/* Lower case, no organisation, no separators; dots stay, since opt-1.3b and opt-13b differ by one. */
static void strict_form(const char *text, char *out, size_t out_bytes)
{
    const char *slash = strrchr(text, '/');
    size_t used = 0;
    for (const char *c = slash != NULL ? slash + 1 : text; *c != '\0' && used + 1 < out_bytes; c++) {
        if (*c != '-' && *c != '_' && *c != ' ') {
            out[used++] = (char)tolower((unsigned char)*c);
        }
    }
    out[used] = '\0';
}

static const nd_resource *find_strict(const char *name)
{
    char wanted[NAME_MAX_BYTES];
    char form[NAME_MAX_BYTES];
    strict_form(name, wanted, sizeof wanted);
    for (const nd_resource *entry = nd_model_resources; entry->name != NULL; entry++) {
        strict_form(entry->name, form, sizeof form);
        if (strcmp(form, wanted) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* Without dots too, when that leaves no doubt. */
static const nd_resource *find_loose(const char *name)
{
    char wanted[NAME_MAX_BYTES];
    char form[NAME_MAX_BYTES];
    const nd_resource *found = NULL;
    nd_text_canonical(name, wanted, sizeof wanted);
    for (const nd_resource *entry = nd_model_resources; entry->name != NULL; entry++) {
        nd_text_canonical(entry->name, form, sizeof form);
        if (strcmp(form, wanted) == 0) {
            if (found != NULL) {
                return NULL;
            }
            found = entry;
        }
    }
    return found;
}

static const nd_resource *find_alias(const char *name)
{
    char wanted[NAME_MAX_BYTES];
    char form[NAME_MAX_BYTES];
    strict_form(name, wanted, sizeof wanted);
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        strict_form(aliases[i].alias, form, sizeof form);
        if (strcmp(form, wanted) == 0) {
            return find_strict(aliases[i].builtin);
        }
    }
    return NULL;
}

static const nd_resource *find_whole(const char *name)
{
    const nd_resource *found = find_strict(name);
    found = found != NULL ? found : find_alias(name);
    return found != NULL ? found : find_loose(name);
}

static bool is_shapeless(const char *word)
{
    for (size_t i = 0; i < sizeof shapeless_words / sizeof shapeless_words[0]; i++) {
        if (strcmp(word, shapeless_words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The words come from a name that fits, so they fit too. */
static void append_word(char *out, const char *word, size_t length)
{
    size_t used = strlen(out);
    if (used > 0) {
        out[used++] = '-';
    }
    memcpy(out + used, word, length);
    out[used + length] = '\0';
}

/* Split at separators into the words that tell shapes and those that do not. */
static void split_words(const char *name, char *kept, char *dropped)
{
    const char *slash = strrchr(name, '/');
    const char *c = slash != NULL ? slash + 1 : name;
    kept[0] = '\0';
    dropped[0] = '\0';
    while (*c != '\0') {
        char word[NAME_MAX_BYTES];
        size_t length = strcspn(c, "-_ ");
        for (size_t i = 0; i < length; i++) {
            word[i] = (char)tolower((unsigned char)c[i]);
        }
        word[length] = '\0';
        append_word(is_shapeless(word) ? dropped : kept, word, length);
        c += length;
        c += *c != '\0' ? 1 : 0;
    }
}

static const nd_resource *find_without_words(const char *name, char *dropped, size_t dropped_bytes)
{
    char kept[NAME_MAX_BYTES];
    char words[NAME_MAX_BYTES];
    split_words(name, kept, words);
    if (words[0] == '\0' || kept[0] == '\0') {
        return NULL;
    }
    const nd_resource *found = find_whole(kept);
    if (found != NULL) {
        (void)snprintf(dropped, dropped_bytes, "%s", words);
    }
    return found;
}

const nd_resource *nd_builtin_find(const char *name, char *dropped, size_t dropped_bytes)
{
    dropped[0] = '\0';
    if (strlen(name) >= NAME_MAX_BYTES) {
        return NULL;
    }
    const nd_resource *found = find_whole(name);
    return found != NULL ? found : find_without_words(name, dropped, dropped_bytes);
}
