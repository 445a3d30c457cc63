#include "topologies/catalog_internal.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/nd_test.h"

enum { FORMS_MAX = 1024, FORM_BYTES = 96 };

typedef struct name_set {
    char forms[FORMS_MAX][FORM_BYTES];
    size_t count;
} name_set;

static void add_unique(name_set *set, const char *name)
{
    char form[FORM_BYTES];
    nd_text_canonical(name, form, sizeof form);
    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->forms[i], form) == 0) {
            fprintf(stderr, "'%s' names two things\n", name);
            CU_FAIL("ambiguous name");
        }
    }
    CU_ASSERT_TRUE_FATAL(set->count < FORMS_MAX);
    memcpy(set->forms[set->count++], form, sizeof form);
}

static void add_table(name_set *set, const nd_resource *table)
{
    for (const nd_resource *entry = table; entry->name != NULL; entry++) {
        nd_json_doc *doc = NULL;
        nd_json aliases;
        nd_json name;
        const char *text = NULL;
        nd_error err;
        add_unique(set, entry->name);
        ND_ASSERT_OK(nd_catalog_open(entry, &doc, &err));
        CU_ASSERT_TRUE(nd_json_find(nd_json_root(doc), "name", &name));
        ND_ASSERT_OK(nd_json_as_string(name, "name", &text, &err));
        CU_ASSERT_STRING_EQUAL(text, entry->name);
        CU_ASSERT_TRUE(nd_json_find(nd_json_root(doc), "aliases", &aliases));
        CU_ASSERT_EQUAL(nd_json_typeof(aliases), ND_JSON_ARRAY);
        for (size_t i = 0; i < nd_json_size(aliases); i++) {
            ND_ASSERT_OK(nd_json_as_string(nd_json_at(aliases, i), "aliases", &text, &err));
            add_unique(set, text);
            CU_ASSERT_PTR_EQUAL(nd_catalog_find(table, text), entry);
        }
        nd_json_free(doc);
    }
}

static void every_name_and_alias_means_one_thing(void)
{
    static name_set set;
    add_table(&set, nd_gpu_resources);
    add_table(&set, nd_cluster_resources);
    CU_ASSERT_TRUE(set.count > 150);
}

static void what_is_not_there_is_not_found(void)
{
    char name[300];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CU_ASSERT_PTR_NULL(nd_catalog_find(nd_gpu_resources, name));
    CU_ASSERT_PTR_NULL(nd_catalog_find(nd_gpu_resources, ""));
    CU_ASSERT_PTR_NULL(nd_catalog_find(nd_gpu_resources, "-._ "));
    CU_ASSERT_PTR_NULL(nd_catalog_find(nd_gpu_resources, "h10"));
    CU_ASSERT_PTR_NULL(nd_catalog_nearest(nd_gpu_resources, "something-quite-different"));
    CU_ASSERT_STRING_EQUAL(nd_catalog_nearest(nd_gpu_resources, "h10O"), "h100");
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(every_name_and_alias_means_one_thing),
        ND_TEST(what_is_not_there_is_not_found),
        {NULL, NULL},
    };
    return nd_test_main("topologies/catalog", cases);
}
