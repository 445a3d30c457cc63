#include "executor/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/nd_test.h"

static const char *const path = "test_safetensors.file";

static void write_raw(const char *header, size_t data)
{
    FILE *stream = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++) {
        (void)fputc((int)((uint64_t)length >> 8 * i & 0xff), stream);
    }
    (void)fputs(header, stream);
    for (size_t i = 0; i < data; i++) {
        (void)fputc((int)i, stream);
    }
    CU_ASSERT_EQUAL(fclose(stream), 0);
}

static void expect_refused(nd_status status, const char *part)
{
    nd_error err = {0};
    nd_safetensors *file = NULL;
    CU_ASSERT_EQUAL(nd_safetensors_open(path, &file, &err), status);
    ND_ASSERT_CONTAINS(err.message, part);
    CU_ASSERT_PTR_NULL(file);
}

static void test_what_is_written_is_read(void)
{
    nd_error err = {0};
    const nd_safetensor tensors[] = {{.name = "a.weight", .elem = ND_ELEM_F32, .dims = 2, .shape = {2, 3}},
                                     {.name = "b", .elem = ND_ELEM_BF16, .dims = 1, .shape = {5, 1}},
                                     {.name = "c \"quoted\"", .elem = ND_ELEM_F64, .dims = 1, .shape = {1, 1}}};
    const char *const metadata[] = {"format", "pt", NULL};
    const float a[] = {1.0F, -2.5F, 3.0F, 4.0F, 5.0F, 1e-30F};
    const uint16_t b[] = {0x3f80, 0xbf80, 0x4000, 0, 0x7f80};
    const double c = 0.1;
    nd_safetensors_writer *writer = NULL;
    nd_safetensors *file = NULL;
    double x[6];
    ND_ASSERT_OK(nd_safetensors_create(path, tensors, 3, metadata, &writer, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(writer);
    ND_ASSERT_OK(nd_safetensors_put(writer, a, sizeof a, &err));
    ND_ASSERT_OK(nd_safetensors_put(writer, b, sizeof b, &err));
    CU_ASSERT_EQUAL(access(path, F_OK), -1); /* not before it is complete */
    ND_ASSERT_OK(nd_safetensors_put(writer, &c, sizeof c, &err));
    CU_ASSERT_EQUAL(nd_safetensors_put(writer, &c, 1, &err), ND_EINVAL);
    ND_ASSERT_OK(nd_safetensors_finish(writer, &err));
    ND_ASSERT_OK(nd_safetensors_open(path, &file, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(nd_safetensors_count(file), 3);
    CU_ASSERT_EQUAL(nd_safetensors_find(file, "c \"quoted\""), 2);
    ND_ASSERT_OK(nd_safetensors_read(file, 0, 1, 5, x, &err));
    CU_ASSERT_EQUAL(x[0], -2.5);
    CU_ASSERT_EQUAL(x[4], (double)1e-30F);
    ND_ASSERT_OK(nd_safetensors_read(file, 1, 0, 3, x, &err));
    CU_ASSERT_TRUE(x[0] == 1.0 && x[1] == -1.0 && x[2] == 2.0);
    ND_ASSERT_OK(nd_safetensors_read(file, 2, 0, 1, x, &err));
    CU_ASSERT_EQUAL(x[0], 0.1);
    CU_ASSERT_EQUAL(nd_safetensors_read(file, 0, 2, 5, x, &err), ND_EINVAL);
    nd_safetensors_close(file);
    CU_ASSERT_EQUAL(truncate(path, 100), 0);
    expect_refused(ND_EPARSE, path);
    (void)remove(path);
}

static void test_an_incomplete_file_does_not_appear(void)
{
    nd_error err = {0};
    const nd_safetensor tensor = {.name = "a", .elem = ND_ELEM_F32, .dims = 1, .shape = {2, 1}};
    const float half = 1.0F;
    nd_safetensors_writer *writer = NULL;
    ND_ASSERT_OK(nd_safetensors_create(path, &tensor, 1, NULL, &writer, &err));
    ND_ASSERT_OK(nd_safetensors_put(writer, &half, sizeof half, &err));
    CU_ASSERT_EQUAL(nd_safetensors_finish(writer, &err), ND_EINVAL);
    ND_ASSERT_CONTAINS(err.message, "lacks 4 bytes");
    CU_ASSERT_EQUAL(access(path, F_OK), -1);
    CU_ASSERT_EQUAL(nd_safetensors_create("no/such/dir/file", &tensor, 1, NULL, &writer, &err), ND_EIO);
    ND_ASSERT_CONTAINS(err.message, "no/such/dir/file");
}

static void test_malformed_files_are_refused(void)
{
    (void)remove(path);
    expect_refused(ND_EIO, "No such file");
    static const struct {
        const char *header, *part;
        size_t data;
        nd_status status;
    } files[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "data_offsets", 4, ND_EPARSE},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "end at", 12, ND_EPARSE},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "does not take", 8, ND_EPARSE},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", "begins at", 8, ND_EPARSE},
        {"{\"a\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}}", "I8", 8, ND_EUNSUPPORTED},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,2],\"data_offsets\":[0,8]}}", "3 dimensions", 8, ND_EUNSUPPORTED},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "data_offsets", 8, ND_EPARSE},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "data_offsets", 8, ND_EPARSE},
        {"{\"a\":", "test_safetensors.file", 0, ND_EPARSE},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        write_raw(files[i].header, files[i].data);
        nd_error err = {0};
        nd_safetensors *file = NULL;
        CU_ASSERT_EQUAL(nd_safetensors_open(path, &file, &err), files[i].status);
        ND_ASSERT_CONTAINS(err.message, files[i].part);
        CU_ASSERT_PTR_NULL(file);
    }
    FILE *stream = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    (void)fputs("this is no such file", stream);
    CU_ASSERT_EQUAL(fclose(stream), 0);
    expect_refused(ND_EPARSE, "no safetensors file");
    (void)remove(path);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_what_is_written_is_read),
        ND_TEST(test_an_incomplete_file_does_not_appear),
        ND_TEST(test_malformed_files_are_refused),
        {NULL, NULL},
    };
    return nd_test_main("executor/safetensors", cases);
}
