/* Every figure about the world has its source beside it: the JSON files of topologies/ and cost_model/. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/json.h"
#include "tests/nd_test.h"

/* A non-empty string, or a non-empty array of them. */
static bool is_source(nd_json value)
{
    const char *text = NULL;
    if (nd_json_typeof(value) == ND_JSON_STRING) {
        return nd_json_as_string(value, "source", &text, NULL) == ND_OK && text[0] != '\0';
    }
    bool sourced = nd_json_typeof(value) == ND_JSON_ARRAY && nd_json_size(value) > 0;
    for (size_t i = 0; i < nd_json_size(value) && sourced; i++) {
        sourced = nd_json_typeof(nd_json_at(value, i)) == ND_JSON_STRING && is_source(nd_json_at(value, i));
    }
    return sourced;
}

static bool has_source(nd_json object)
{
    nd_json source;
    return (nd_json_find(object, "source", &source) || nd_json_find(object, "sources", &source)) && is_source(source);
}

/* Whether each {"value": ...} below `value` has its source. */
static nd_status check_figures(nd_json value, nd_error *err)
{
    nd_json figure;
    if (nd_json_find(value, "value", &figure) && !has_source(value)) {
        return nd_json_fail(value, err, "a figure without a source");
    }
    bool is_array = nd_json_typeof(value) == ND_JSON_ARRAY;
    for (size_t i = 0; i < nd_json_size(value); i++) {
        nd_json child;
        if (is_array) {
            child = nd_json_at(value, i);
        } else {
            (void)nd_json_member(value, i, &child);
        }
        ND_TRY(check_figures(child, err));
    }
    return ND_OK;
}

static nd_status check_document(const nd_json_doc *doc, nd_error *err)
{
    nd_json root = nd_json_root(doc);
    if (!has_source(root)) {
        return nd_json_fail(root, err, "the file has no 'source' or 'sources'");
    }
    return check_figures(root, err);
}

static nd_status check_text(const char *text, nd_error *err)
{
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_parse(text, strlen(text), "sample", &doc, err));
    nd_status status = check_document(doc, err);
    nd_json_free(doc);
    return status;
}

static bool ends_in_json(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static int check_folder(const char *folder)
{
    int checked = 0;
    DIR *entries = opendir(folder);
    CU_ASSERT_PTR_NOT_NULL_FATAL(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        char path[4096];
        struct stat info;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || length >= (int)sizeof path || stat(path, &info) != 0) {
            continue;
        }
        if (S_ISDIR(info.st_mode)) {
            checked += check_folder(path);
        } else if (ends_in_json(entry->d_name)) {
            nd_error err;
            nd_json_doc *doc = NULL;
            ND_ASSERT_OK(nd_json_load(path, &doc, &err));
            if (doc != NULL) {
                ND_ASSERT_OK(check_document(doc, &err));
            }
            nd_json_free(doc);
            checked++;
        }
    }
    (void)closedir(entries);
    return checked;
}

static void test_every_figure_of_topologies_has_a_source(void)
{
    CU_ASSERT_TRUE(check_folder(ND_SOURCE_ROOT "/topologies") > 0);
}

static void test_every_figure_of_cost_model_has_a_source(void)
{
    CU_ASSERT_TRUE(check_folder(ND_SOURCE_ROOT "/cost_model") > 0);
}

static void test_a_missing_source_is_found(void)
{
    nd_error err;
    ND_ASSERT_OK(check_text("{\"source\": \"a paper\", \"x\": {\"value\": 1, \"source\": \"its table 2\"}}", &err));
    ND_ASSERT_OK(check_text("{\"sources\": [\"a\", \"b\"]}", &err));
    static const char *const bad[] = {
        "{\"value\": 1}",
        "{\"source\": \"\"}",
        "{\"source\": null}",
        "{\"sources\": []}",
        "{\"sources\": [\"a\", \"\"]}",
        "{\"source\": \"a\", \"x\": [{\"y\": {\"value\": 1}}]}",
        "{\"source\": \"a\", \"x\": {\"value\": 1, \"source\": \"\"}}",
        "[]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(check_text(bad[i], &err), ND_EPARSE);
        ND_ASSERT_CONTAINS(err.message, "source");
    }
}

int main(void)
{
    const nd_test_case cases[] = {
        ND_TEST(test_every_figure_of_topologies_has_a_source),
        ND_TEST(test_every_figure_of_cost_model_has_a_source),
        ND_TEST(test_a_missing_source_is_found),
        {NULL, NULL},
    };
    return nd_test_main("house.sources", cases);
}
