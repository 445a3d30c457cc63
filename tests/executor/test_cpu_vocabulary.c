/* Embedding tables and the cross-entropy, divided by vocabulary or not. */
#include <math.h>
#include <string.h>

#include "tests/executor/cpu_fixture.h"

#define ROWS  INT64_C(9)
#define COLS  INT64_C(5)
#define VOCAB INT64_C(23)
enum { MASKED = -1 };

/** Rows vocab_first .. + vocab_rows of the table. */
typedef struct shard {
    int64_t first, rows;
} shard;

/* Vocabulary of 23 on 3 ranks, padded to 24, and on one; a rank of padding alone. */
static const shard shards[] = {{0, VOCAB}, {0, 8}, {8, 8}, {16, 8}, {24, 8}};
enum { SHARDS = sizeof shards / sizeof shards[0] };

static double *tokens(uint64_t seed)
{
    double *ids = op_random(seed, ROWS);
    for (int64_t i = 0; i < ROWS; i++) {
        ids[i] = floor((ids[i] + 1.0) / 2.0 * (VOCAB - 1));
    }
    ids[1] = ids[0]; /* a row of the table that several tokens use */
    ids[2] = 8.0;    /* first of a shard */
    ids[3] = 7.0;    /* last of a shard */
    ids[4] = VOCAB - 1;
    return ids;
}

static nd_ins embed_ins(nd_ins_op op, const shard *s)
{
    return (nd_ins){
        .op = op, .rows = ROWS, .cols = COLS, .vocab = VOCAB, .vocab_first = s->first, .vocab_rows = s->rows};
}

static void rows_of_a_table(void)
{
    for (size_t i = 0; i < SHARDS; i++) {
        op_begin();
        const shard *s = &shards[i];
        double *ids = tokens(1);
        double *table = op_random(2, s->rows * COLS);
        double *expected = op_numbers(ROWS * COLS);
        for (int64_t row = 0; row < s->rows; row++) {
            for (int64_t j = 0; j < ROWS * COLS; j++) {
                expected[j] += (int64_t)ids[j / COLS] == s->first + row ? table[row * COLS + j % COLS] : 0.0;
            }
        }
        op_call call = {.ins = embed_ins(ND_INS_EMBED, s),
                        .in = {op_i32(ids, ROWS), op_real(table, s->rows * COLS)},
                        .out = {op_out_real(ROWS * COLS)},
                        .expected = {expected}};
        op_check(&call, 0.0);
    }
}

static void gradients_of_a_table_are_added(void)
{
    for (size_t i = 0; i < SHARDS; i++) {
        op_begin();
        const shard *s = &shards[i];
        double *ids = tokens(1);
        double *dx = op_random(3, ROWS * COLS);
        double *old = op_random(4, s->rows * COLS);
        double *expected = op_numbers(s->rows * COLS);
        memcpy(expected, old, (size_t)(s->rows * COLS) * sizeof *expected);
        for (int64_t row = 0; row < s->rows; row++) {
            for (int64_t j = 0; j < ROWS * COLS; j++) {
                expected[row * COLS + j % COLS] += (int64_t)ids[j / COLS] == s->first + row ? dx[j] : 0.0;
            }
        }
        op_call call = {.ins = embed_ins(ND_INS_EMBED_GRAD, s),
                        .in = {op_i32(ids, ROWS), op_real(dx, ROWS * COLS)},
                        .out = {op_wide(old, s->rows * COLS)},
                        .expected = {expected}};
        op_check(&call, 1.0);
    }
}

/** Logits of the padded vocabulary of `ranks` ranks, `columns` each; NaN in padding, which must not be read. */
typedef struct loss_case {
    int64_t ranks, columns;
    double *logits[4]; /* of each rank, [ROWS x columns] */
    double *labels;
    double *max, *sums; /* over all ranks; sums: exponentials, then targets */
    double count;
} loss_case;

static loss_case loss_case_of(int64_t ranks)
{
    loss_case c = {.ranks = ranks, .columns = (VOCAB + ranks - 1) / ranks, .labels = tokens(5), .count = ROWS + 4};
    if (ranks == 4) {
        c.columns = 8; /* the last rank holds padding alone */
    }
    c.labels[5] = MASKED;
    c.labels[8] = MASKED;
    double *all = op_random(6, ROWS * VOCAB);
    for (int64_t r = 0; r < ranks; r++) {
        c.logits[r] = op_garbage(OP_REAL, ROWS * c.columns);
        for (int64_t i = 0; i < ROWS * c.columns; i++) {
            int64_t column = r * c.columns + i % c.columns;
            if (column < VOCAB) {
                c.logits[r][i] = 8.0 * all[i / c.columns * VOCAB + column];
            }
        }
    }
    c.max = op_numbers(ROWS);
    c.sums = op_numbers(2 * ROWS);
    for (int64_t row = 0; row < ROWS; row++) {
        c.max[row] = -(double)INFINITY;
        for (int64_t column = 0; column < VOCAB; column++) {
            c.max[row] = fmax(c.max[row], 8.0 * all[row * VOCAB + column]);
        }
        for (int64_t column = 0; column < VOCAB; column++) {
            c.sums[row] += exp(8.0 * all[row * VOCAB + column] - c.max[row]);
        }
        c.sums[ROWS + row] = c.labels[row] >= 0.0 ? 8.0 * all[row * VOCAB + (int64_t)c.labels[row]] : 0.0;
    }
    return c;
}

static nd_ins loss_ins(nd_ins_op op, const loss_case *c, int64_t rank)
{
    return (nd_ins){.op = op,
                    .rows = ROWS,
                    .vocab = VOCAB,
                    .vocab_first = rank * c->columns,
                    .vocab_rows = c->columns,
                    .loss_weight = 1.0};
}

/* Each rank's maximum and sums: together those of the whole vocabulary. */
static void maxima_and_sums_of_the_ranks(void)
{
    for (int64_t ranks = 1; ranks <= 4; ranks++) {
        op_begin();
        loss_case c = loss_case_of(ranks);
        double *max = op_numbers(ROWS);
        double *sums = op_numbers(2 * ROWS);
        for (int64_t row = 0; row < ROWS; row++) {
            max[row] = -(double)INFINITY;
        }
        for (int64_t r = 0; r < ranks; r++) {
            double *own = op_numbers(2 * ROWS);
            op_call call = {.ins = loss_ins(ND_INS_LOSS_MAX, &c, r),
                            .in = {op_real(c.logits[r], ROWS * c.columns)},
                            .out = {op_out_wide(ROWS)}};
            op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){own});
            call.expected[0] = own;
            op_check(&call, 0.0);
            for (int64_t row = 0; row < ROWS; row++) {
                max[row] = fmax(max[row], own[row]);
            }
            call = (op_call){.ins = loss_ins(ND_INS_LOSS_SUM, &c, r),
                             .in = {call.in[0], op_wide(c.max, ROWS), op_i32(c.labels, ROWS)},
                             .out = {op_out_wide(2 * ROWS)}};
            op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){own});
            call.expected[0] = own;
            op_check(&call, 4.0);
            for (int64_t i = 0; i < 2 * ROWS; i++) {
                sums[i] += own[i];
            }
        }
        CU_ASSERT_TRUE(op_agree("max", ND_ELEM_F64, max, c.max, ROWS, 0.0));
        CU_ASSERT_TRUE(op_agree("sums", ND_ELEM_F64, sums, c.sums, 2 * ROWS, 1.0));
    }
}

static op_call loss_call(const loss_case *c, int64_t rank, bool in_place)
{
    op_call call = {.ins = loss_ins(ND_INS_LOSS, c, rank),
                    .in = {op_real(c->logits[rank], ROWS * c->columns), op_wide(c->max, ROWS),
                           op_wide(c->sums, 2 * ROWS), op_i32(c->labels, ROWS), op_f64(op_numbers(1), 1)},
                    .out = {op_out_real(ROWS * c->columns), op_f64(op_random(7, 1), 1)},
                    .same_as = {in_place ? 1 : 0}};
    op_in(&call, 4)[0] = c->count;
    return call;
}

/* Mean of -log softmax at the target, in one formula over the whole vocabulary. */
static double naive_loss(const loss_case *c)
{
    double loss = 0.0;
    for (int64_t row = 0; row < ROWS; row++) {
        if (c->labels[row] >= 0.0) {
            loss -= log(exp(c->sums[ROWS + row] - c->max[row]) / c->sums[row]) / c->count;
        }
    }
    return loss;
}

static void loss_and_gradient_of_every_rank(void)
{
    for (int64_t ranks = 1; ranks <= 4; ranks++) {
        for (int64_t i = 0; i < 2 * ranks; i++) {
            op_begin();
            loss_case c = loss_case_of(ranks);
            int64_t rank = i / 2;
            op_call call = loss_call(&c, rank, i % 2 != 0);
            call.ins.loss_weight = 0.25;
            double *gradient = op_numbers(ROWS * c.columns);
            for (int64_t j = 0; j < ROWS * c.columns; j++) {
                int64_t row = j / c.columns;
                int64_t column = rank * c.columns + j % c.columns;
                if (column < VOCAB && c.labels[row] >= 0.0) {
                    double target = (int64_t)c.labels[row] == column ? 1.0 : 0.0;
                    gradient[j] = (exp(c.logits[rank][j] - c.max[row]) / c.sums[row] - target) / c.count;
                }
            }
            double *loss = op_numbers(1);
            loss[0] = op_old(&call, 1)[0] + 0.25 * naive_loss(&c);
            call.expected[0] = gradient;
            call.expected[1] = loss;
            op_check(&call, 4.0);
        }
    }
}

/* The whole chain max -> sums -> loss as one function of the logits. */
static double chain(const loss_case *c)
{
    double *max = op_numbers(ROWS);
    double *sums = op_numbers(2 * ROWS);
    op_call call = {.ins = loss_ins(ND_INS_LOSS_MAX, c, 0),
                    .in = {op_real(c->logits[0], ROWS * c->columns)},
                    .out = {op_out_wide(ROWS)}};
    op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){max});
    call.ins.op = ND_INS_LOSS_SUM;
    call.in[1] = op_wide(max, ROWS);
    call.in[2] = op_i32(c->labels, ROWS);
    call.out[0] = op_out_wide(2 * ROWS);
    op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){sums});
    loss_case own = *c;
    own.max = max;
    own.sums = sums;
    call = loss_call(&own, 0, false);
    double loss = 0.0;
    op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){NULL, &loss});
    return loss - op_old(&call, 1)[0];
}

static void gradient_of_the_loss_is_a_difference(void)
{
    op_begin();
    loss_case c = loss_case_of(1);
    ND_ASSERT_REL(chain(&c), naive_loss(&c), 1e-13);
    op_call call = loss_call(&c, 0, false);
    double *gradient = op_numbers(ROWS * VOCAB);
    op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){gradient});
    for (int64_t i = 0; i < ROWS * VOCAB; i++) {
        double before = c.logits[0][i];
        c.logits[0][i] = before + 1e-5;
        double up = chain(&c);
        c.logits[0][i] = before - 1e-5;
        double down = chain(&c);
        c.logits[0][i] = before;
        CU_ASSERT_DOUBLE_EQUAL((up - down) / 2e-5, gradient[i], 1e-9); /* see op_check_gradient() */
    }
}

static void no_labels_give_zeros(void)
{
    op_begin();
    loss_case c = loss_case_of(1);
    for (int64_t i = 0; i < ROWS; i++) {
        c.labels[i] = MASKED;
    }
    for (int32_t count = 0; count < 2; count++) { /* others may have labels: a count of 0 or not */
        c.count = count;
        op_call call = loss_call(&c, 0, false);
        call.expected[0] = op_numbers(ROWS * VOCAB);
        call.expected[1] = call.out[1].x;
        op_check(&call, 0.0);
    }
    c = loss_case_of(1); /* labels, and still a count of 0 */
    c.count = 0.0;
    op_call call = loss_call(&c, 0, false);
    call.expected[0] = op_numbers(ROWS * VOCAB);
    call.expected[1] = call.out[1].x;
    op_check(&call, 0.0);
}

static void a_nan_among_the_logits_reaches_maximum_and_loss(void)
{
    for (int64_t at = 0; at < VOCAB; at++) {
        op_begin();
        loss_case c = loss_case_of(1);
        c.logits[0][2 * VOCAB + at] = (double)NAN;
        CU_ASSERT_TRUE(isnan(chain(&c)));
        double *max = op_numbers(ROWS);
        op_call call = {.ins = loss_ins(ND_INS_LOSS_MAX, &c, 0),
                        .in = {op_real(c.logits[0], ROWS * c.columns)},
                        .out = {op_out_wide(ROWS)}};
        op_run(&call, ND_ELEM_F64, (double *[ND_INS_OUT_MAX]){max});
        CU_ASSERT_TRUE(isnan(max[2])); /* so that a search for NaN finds the first instruction that has one */
    }
}

static void labels_are_counted(void)
{
    op_begin();
    double *labels = tokens(8);
    labels[0] = MASKED;
    labels[6] = -100.0;
    labels[7] = 0.0; /* a token like others */
    double *expected = op_numbers(1);
    expected[0] = ROWS - 2;
    op_call call = {.ins = {.op = ND_INS_COUNT_LABELS, .rows = ROWS},
                    .in = {op_i32(labels, ROWS)},
                    .out = {op_out_f64(1)},
                    .expected = {expected}};
    op_check(&call, 0.0);
    call.ins.accumulate = true;
    op_old(&call, 0)[0] = 5.0;
    expected[0] += 5.0;
    op_check(&call, 0.0);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(rows_of_a_table),
                                         ND_TEST(gradients_of_a_table_are_added),
                                         ND_TEST(maxima_and_sums_of_the_ranks),
                                         ND_TEST(loss_and_gradient_of_every_rank),
                                         ND_TEST(gradient_of_the_loss_is_a_difference),
                                         ND_TEST(no_labels_give_zeros),
                                         ND_TEST(a_nan_among_the_logits_reaches_maximum_and_loss),
                                         ND_TEST(labels_are_counted),
                                         {NULL, NULL}};
    return nd_test_main("cpu vocabulary", cases);
}
