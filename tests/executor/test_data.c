#include "executor/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/run.h"
#include "tests/nd_test.h"

enum { SEQ = 48, VOCAB = 300, SEQUENCES = 400 };

static const char *const file = "test_data.bytes";

static void write_file(size_t bytes)
{
    FILE *stream = fopen(file, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(stream);
    for (size_t i = 0; i < bytes; i++) {
        (void)fputc((int)(i * 7 + i / 256) & 0xff, stream); /* all values: binary files are fine */
    }
    CU_ASSERT_EQUAL(fclose(stream), 0);
}

static nd_data *open_data(const nd_data_options *options)
{
    nd_error err = {0};
    nd_data *data = NULL;
    ND_ASSERT_OK(nd_data_open(options, &data, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(data);
    return data;
}

static nd_seq_map whole_map(void)
{
    return (nd_seq_map){.seq_len = SEQ, .cp = 1, .positions = SEQ};
}

static void read_sequence(const nd_data *data, int64_t sequence, int32_t *tokens, int32_t *labels)
{
    nd_seq_map map = whole_map();
    nd_data_rows(data, sequence, 1, &map, tokens, labels);
}

static void test_labels_are_the_next_tokens_of_the_uncut_sequence(void)
{
    write_file(5000);
    const nd_data_options sources[] = {{.seq_len = SEQ, .vocab = VOCAB, .seed = 1},
                                       {.path = file, .seq_len = SEQ, .vocab = VOCAB, .seed = 1}};
    for (size_t s = 0; s < 2; s++) {
        nd_data *data = open_data(&sources[s]);
        int32_t tokens[SEQ];
        int32_t labels[SEQ];
        for (int64_t sequence = 0; sequence < SEQUENCES; sequence++) {
            read_sequence(data, sequence, tokens, labels);
            for (int i = 0; i < SEQ; i++) {
                CU_ASSERT_TRUE(tokens[i] >= 0 && tokens[i] < VOCAB);
                CU_ASSERT_TRUE(labels[i] >= 0 && labels[i] < VOCAB);
                CU_ASSERT_TRUE(i == SEQ - 1 || labels[i] == tokens[i + 1]);
            }
        }
        nd_data_free(data);
    }
    (void)remove(file);
}

static void test_cut_rows_are_those_of_the_whole_sequence(void)
{
    const nd_data_options options = {.seq_len = SEQ, .vocab = VOCAB, .seed = 2, .masked_frac = 0.3};
    nd_data *data = open_data(&options);
    int32_t tokens[3][SEQ];
    int32_t labels[3][SEQ];
    for (int s = 0; s < 3; s++) {
        read_sequence(data, 20 + s, tokens[s], labels[s]);
    }
    for (int32_t member = 0; member < 4; member++) {
        nd_seq_map map = {.seq_len = SEQ, .cp = 4, .member = member, .zigzag = true, .positions = SEQ / 4};
        int32_t cut_tokens[SEQ / 4 * 3];
        int32_t cut_labels[SEQ / 4 * 3];
        nd_data_rows(data, 20, 3, &map, cut_tokens, cut_labels);
        for (int64_t i = 0; i < SEQ / 4; i++) {
            int64_t position = nd_seq_map_position(&map, i);
            for (int s = 0; s < 3; s++) {
                CU_ASSERT_EQUAL(cut_tokens[i * 3 + s], tokens[s][position]);
                CU_ASSERT_EQUAL(cut_labels[i * 3 + s], labels[s][position]);
            }
        }
    }
    nd_data_free(data);
}

static void test_masked_labels_are_the_asked_share_and_half_of_sequence_zero(void)
{
    const nd_data_options options = {.seq_len = SEQ, .vocab = VOCAB, .seed = 3, .masked_frac = 0.3};
    nd_data *data = open_data(&options);
    int32_t tokens[SEQ];
    int32_t labels[SEQ];
    int masked = 0;
    for (int64_t sequence = 1; sequence <= SEQUENCES; sequence++) {
        read_sequence(data, sequence, tokens, labels);
        for (int i = 0; i < SEQ; i++) {
            masked += labels[i] < 0;
        }
    }
    ND_ASSERT_REL(masked, 0.3 * SEQ * SEQUENCES, 0.05);
    read_sequence(data, 0, tokens, labels);
    for (int i = 0; i < SEQ / 2; i++) {
        CU_ASSERT_EQUAL(labels[i], -1);
    }
    nd_data_free(data);
}

/* Three of four synthetic tokens follow from the one before: the commonest successor must be a good guess. */
static void test_synthetic_tokens_can_be_learned(void)
{
    const nd_data_options options = {.seq_len = SEQ, .vocab = 53, .seed = 4};
    nd_data *data = open_data(&options);
    static int pairs[53][53];
    int32_t tokens[SEQ];
    int32_t labels[SEQ];
    int guessed = 0;
    for (int64_t sequence = 0; sequence < SEQUENCES; sequence++) {
        read_sequence(data, sequence, tokens, labels);
        for (int i = 0; i < SEQ; i++) {
            pairs[tokens[i]][labels[i]]++;
        }
    }
    for (int t = 0; t < 53; t++) {
        int best = 0;
        for (int n = 0; n < 53; n++) {
            best = pairs[t][n] > best ? pairs[t][n] : best;
        }
        guessed += best;
    }
    ND_ASSERT_REL(guessed, 0.75 * SEQ * SEQUENCES, 0.05);
    nd_data_free(data);
}

static void test_sequences_differ_by_number_and_seed(void)
{
    nd_data_options options = {.seq_len = SEQ, .vocab = VOCAB, .seed = 5};
    nd_data *data = open_data(&options);
    options.seed = 6;
    nd_data *other = open_data(&options);
    int32_t a[SEQ];
    int32_t b[SEQ];
    nd_seq_map map = whole_map();
    nd_data_rows(data, 8, 1, &map, a, NULL);
    nd_data_rows(data, 9, 1, &map, b, NULL);
    CU_ASSERT_TRUE(memcmp(a, b, sizeof a) != 0);
    nd_data_rows(other, 8, 1, &map, b, NULL);
    CU_ASSERT_TRUE(memcmp(a, b, sizeof a) != 0);
    nd_data_rows(data, 8, 1, &map, b, NULL);
    CU_ASSERT_TRUE(memcmp(a, b, sizeof a) == 0);
    nd_data_free(data);
    nd_data_free(other);
}

static void expect_refused(const nd_data_options *options, nd_status status, const char *part)
{
    nd_error err = {0};
    nd_data *data = NULL;
    CU_ASSERT_EQUAL(nd_data_open(options, &data, &err), status);
    ND_ASSERT_CONTAINS(err.message, part);
    CU_ASSERT_PTR_NULL(data);
}

static void test_files_that_cannot_serve_are_refused(void)
{
    nd_data_options options = {.path = file, .seq_len = SEQ, .vocab = VOCAB};
    (void)remove(file);
    expect_refused(&options, ND_EIO, file);
    write_file(SEQ);
    expect_refused(&options, ND_EINVAL, "48 bytes");
    write_file(SEQ + 1); /* exactly one sequence and its last label */
    nd_data *data = open_data(&options);
    int32_t tokens[SEQ];
    int32_t labels[SEQ];
    read_sequence(data, 77, tokens, labels);
    CU_ASSERT_EQUAL(tokens[0], 0);
    CU_ASSERT_EQUAL(labels[SEQ - 1], (SEQ * 7) & 0xff);
    nd_data_free(data);
    options.vocab = 255;
    expect_refused(&options, ND_EINVAL, "at least 256");
    (void)remove(file);
}

static void test_the_learning_rate_warms_up_and_falls_to_a_tenth(void)
{
    nd_run_options options = nd_run_options_default();
    options.step.lr = 2.0;
    CU_ASSERT_EQUAL(nd_run_lr(&options, 1), 2.0);
    CU_ASSERT_EQUAL(nd_run_lr(&options, 1000000), 2.0);
    options.warmup_steps = 10;
    options.decay_steps = 110;
    ND_ASSERT_REL(nd_run_lr(&options, 1), 0.2, 1e-12);
    ND_ASSERT_REL(nd_run_lr(&options, 10), 2.0, 1e-12);
    ND_ASSERT_REL(nd_run_lr(&options, 60), 1.1, 1e-12);
    ND_ASSERT_REL(nd_run_lr(&options, 110), 0.2, 1e-12);
    ND_ASSERT_REL(nd_run_lr(&options, 500), 0.2, 1e-12);
}

int main(void)
{
    static const nd_test_case cases[] = {
        ND_TEST(test_labels_are_the_next_tokens_of_the_uncut_sequence),
        ND_TEST(test_cut_rows_are_those_of_the_whole_sequence),
        ND_TEST(test_masked_labels_are_the_asked_share_and_half_of_sequence_zero),
        ND_TEST(test_synthetic_tokens_can_be_learned),
        ND_TEST(test_sequences_differ_by_number_and_seed),
        ND_TEST(test_files_that_cannot_serve_are_refused),
        ND_TEST(test_the_learning_rate_warms_up_and_falls_to_a_tenth),
        {NULL, NULL},
    };
    return nd_test_main("executor/data", cases);
}
