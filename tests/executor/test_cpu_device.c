/* The processor as a device: memory, what it refuses, threads beside each other, one thread in the matrix library. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "executor/bf16.h"
#include "tests/executor/attention_case.h"

extern int openblas_get_num_threads(void) __attribute__((weak));

static nd_device *opened(nd_elem real)
{
    nd_error err;
    nd_device *device = NULL;
    ND_ASSERT_OK(nd_backend_cpu()->open(0, real, &device, &err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(device);
    return device;
}

static void memory_is_aligned_and_holds_what_is_written(void)
{
    const nd_backend *cpu = nd_backend_cpu();
    static const int64_t sizes[] = {0, 1, 63, 64, 1000003};
    static char from[1000003];
    static char to[1000003];
    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (char)(i * 7);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        nd_error err;
        nd_device *device = opened(ND_ELEM_F32);
        void *arena = NULL;
        ND_ASSERT_OK(cpu->reserve(device, sizes[i], &arena, &err));
        CU_ASSERT_PTR_NOT_NULL_FATAL(arena);
        CU_ASSERT_EQUAL((uintptr_t)arena % 64, 0);
        ND_ASSERT_OK(cpu->write(device, arena, from, sizes[i], &err));
        ND_ASSERT_OK(cpu->synchronise(device, &err));
        memset(to, 0, sizeof to);
        ND_ASSERT_OK(cpu->read(device, to, arena, sizes[i], &err));
        CU_ASSERT_EQUAL(memcmp(from, to, (size_t)sizes[i]), 0);
        cpu->close(device);
    }
    cpu->close(NULL);
}

static void more_memory_than_exists_is_refused(void)
{
    nd_error err;
    nd_device *device = opened(ND_ELEM_F32);
    void *arena = NULL;
    CU_ASSERT_EQUAL(nd_backend_cpu()->reserve(device, INT64_MAX / 2, &arena, &err), ND_ENOMEM);
    ND_ASSERT_CONTAINS(err.message, "memory");
    nd_backend_cpu()->close(device);
}

static void it_does_not_compute_in_indices(void)
{
    nd_error err;
    nd_device *device = NULL;
    CU_ASSERT_EQUAL(nd_backend_cpu()->open(0, ND_ELEM_I32, &device, &err), ND_EUNSUPPORTED);
    CU_ASSERT_PTR_NULL(device);
}

/* Memory, waits and communication are not its work. That all others run is what the tests beside this one show. */
static void what_it_cannot_run_is_named(void)
{
    for (nd_elem real = ND_ELEM_F64; real <= ND_ELEM_BF16; real++) {
        for (nd_ins_op op = ND_INS_ALLOC; op < ND_INS_COUNT; op++) {
            nd_device *device = opened(real);
            nd_ins ins = {.op = op};
            nd_call call = {.ins = &ins};
            if (op <= ND_INS_WAIT || nd_ins_communicates(op)) {
                nd_error err;
                CU_ASSERT_EQUAL(nd_backend_cpu()->execute(device, &call, &err), ND_EUNSUPPORTED);
                ND_ASSERT_CONTAINS(err.message, nd_ins_name(op));
            }
            nd_backend_cpu()->close(device);
        }
    }
}

/* A rank without rows of its own (an expert's, a padded stage's): operands of size 0 are neither read nor
 * written (seen by the address sanitizer). */
static void no_rows_are_no_work(void)
{
    static const nd_ins_op ops[] = {
        ND_INS_ROPE,
        ND_INS_ATTENTION_DELTA,
        ND_INS_SPLIT_LATENT,
        ND_INS_SPLIT_LATENT_GRAD,
        ND_INS_GLU,
        ND_INS_GLU_GRAD,
        ND_INS_ACTIVATION,
        ND_INS_ACTIVATION_GRAD,
        ND_INS_EMBED,
        ND_INS_POSITIONS,
        ND_INS_LOSS_MAX,
        ND_INS_LOSS_SUM,
        ND_INS_ROUTE,
        ND_INS_ROUTE_GRAD,
        ND_INS_ROWS_SCATTER,
        ND_INS_ROWS_COMBINE,
        ND_INS_ROWS_COMBINE_GRAD,
        ND_INS_ROW_GATE,
        ND_INS_ROW_GATE_GRAD,
        ND_INS_PACK,
        ND_INS_UNPACK,
        ND_INS_ADAMW,
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        op_begin();
        op_call call = {.ins = {.op = ops[i], .cols = 4, .heads = 2, .dim = 4, .v_dim = 3, .rot_dim = 2, .copies = 2}};
        call.ins.parts = call.ins.micro_batch = 2;
        call.ins.vocab = call.ins.vocab_rows = 4;
        call.ins.theta = 1e4;
        call.ins.q_map = attention_map(8, 2, 1, true);
        call.ins.q_map.positions = 0;
        for (int32_t o = 0; o < ND_INS_OUT_MAX; o++) {
            call.in[o] = op_real(op_numbers(0), 0);
            call.out[o] = op_out_real(0);
        }
        if (ops[i] == ND_INS_ADAMW) {
            call.in[1] = op_f64(op_numbers(1), 1); /* the scale, always there */
        }
        op_check(&call, 0.0);
    }
}

/* The results of no rows that are not empty themselves. */
static void no_rows_give_zeros_and_keep_sums(void)
{
    op_begin();
    op_call loss = {.ins = {.op = ND_INS_LOSS, .vocab = 4, .vocab_rows = 4, .loss_weight = 1.0},
                    .out = {op_out_real(0), op_f64(op_random(1, 1), 1)}};
    loss.in[4] = op_f64(op_numbers(1), 1);
    loss.expected[1] = loss.out[1].x;
    op_check(&loss, 0.0);
    op_call grad = {.ins = {.op = ND_INS_EMBED_GRAD, .cols = 2, .vocab_rows = 3},
                    .in = {op_i32(op_numbers(0), 0), op_real(op_numbers(0), 0)},
                    .out = {op_wide(op_random(2, 6), 6)}};
    grad.expected[0] = grad.out[0].x;
    op_check(&grad, 0.0);
    op_call count = {.ins = {.op = ND_INS_COUNT_LABELS},
                     .in = {op_i32(op_numbers(0), 0)},
                     .out = {op_out_f64(1)},
                     .expected = {op_numbers(1)}};
    op_check(&count, 0.0);
    op_call sort = {.ins = {.op = ND_INS_SORT, .cols = 4, .copies = 2},
                    .in = {op_i32(op_numbers(0), 0)},
                    .out = {op_out_i32(0), op_out_i32(5), op_out_i32(4)},
                    .expected = {NULL, op_numbers(5), op_numbers(4)}};
    op_check(&sort, 0.0);
    op_call regroup = {.ins = {.op = ND_INS_REGROUP, .cols = 4, .parts = 2},
                       .in = {op_i32(op_numbers(4), 4), op_i32(op_numbers(4), 4)},
                       .out = {op_out_i32(0), op_out_i32(3), op_out_i32(2), op_out_i32(2)},
                       .expected = {NULL, op_numbers(3), op_numbers(2), op_numbers(2)}};
    op_check(&regroup, 0.0);
}

typedef struct loaded {
    int32_t micro, micro_batch;
    nd_seq_map map;
} loaded;

static void fill(void *user, int32_t micro, const nd_seq_map *map, int32_t micro_batch, int32_t *tokens,
                 int32_t *labels)
{
    *(loaded *)user = (loaded){.micro = micro, .micro_batch = micro_batch, .map = *map};
    if (tokens != NULL) {
        tokens[0] = 11;
    }
    if (labels != NULL) {
        labels[0] = 12;
    }
}

static void tokens_and_labels_are_loaded(void)
{
    nd_error err;
    nd_device *device = opened(ND_ELEM_F32);
    int32_t tokens = 0;
    int32_t labels = 0;
    loaded seen = {0};
    nd_ins ins = {.op = ND_INS_LOAD, .micro = 3, .micro_batch = 2, .q_map = {.seq_len = 8, .cp = 2, .member = 1}};
    nd_call call = {.ins = &ins, .out = {{&tokens, ND_ELEM_I32}}, .load = fill, .load_user = &seen};
    ND_ASSERT_OK(nd_backend_cpu()->execute(device, &call, &err));
    CU_ASSERT_EQUAL(tokens, 11);
    CU_ASSERT_EQUAL(seen.micro, 3);
    CU_ASSERT_EQUAL(seen.micro_batch, 2);
    CU_ASSERT_EQUAL(seen.map.seq_len, 8);
    CU_ASSERT_EQUAL(seen.map.member, 1);
    call.out[0] = (nd_operand){0};
    call.out[1] = (nd_operand){&labels, ND_ELEM_I32};
    ND_ASSERT_OK(nd_backend_cpu()->execute(device, &call, &err));
    CU_ASSERT_EQUAL(labels, 12);
    nd_backend_cpu()->close(device);
}

enum { THREADS = 8, M = 65, N = 130, K = 96, TIMES = 20 };

typedef struct worker {
    const float *a, *b;
    float c[M * N];
    nd_status status;
} worker;

/* Bits, not values: 0 and -0 differ. */
static bool same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static void *multiply(void *user)
{
    worker *w = user;
    nd_error err;
    nd_device *device = NULL;
    w->status = nd_backend_cpu()->open(0, ND_ELEM_F32, &device, &err);
    nd_ins ins = {.op = ND_INS_GEMM, .m = M, .n = N, .k = K, .trans_b = true};
    nd_call call = {
        .ins = &ins, .in = {{(void *)w->a, ND_ELEM_F32}, {(void *)w->b, ND_ELEM_F32}}, .out = {{w->c, ND_ELEM_F32}}};
    for (int i = 0; i < TIMES && w->status == ND_OK; i++) {
        w->status = nd_backend_cpu()->execute(device, &call, &err);
    }
    nd_backend_cpu()->close(device);
    return NULL;
}

static void threads_beside_each_other_get_the_same_bits(void)
{
    static float a[M * K];
    static float b[N * K];
    static worker workers[THREADS + 1];
    for (int i = 0; i < M * K; i++) {
        a[i] = (float)(i % 101) / 101.0F - 0.4F;
    }
    for (int i = 0; i < N * K; i++) {
        b[i] = (float)(i % 97) / 97.0F - 0.6F;
    }
    pthread_t threads[THREADS];
    for (int i = 0; i <= THREADS; i++) {
        workers[i] = (worker){.a = a, .b = b};
    }
    (void)multiply(&workers[THREADS]); /* alone */
    for (int i = 0; i < THREADS; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, multiply, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i <= THREADS; i++) {
        CU_ASSERT_EQUAL(workers[i].status, ND_OK);
        CU_ASSERT_TRUE(same_bits(workers[i].c, workers[THREADS].c, sizeof workers[i].c));
    }
    if (openblas_get_num_threads != NULL) {
        CU_ASSERT_EQUAL(openblas_get_num_threads(), 1);
    }
}

/* Scratch memory (here of bf16 made fp32) grows with the calls of a device: the address sanitizer sees when not. */
static void later_calls_may_be_larger(void)
{
    static uint16_t a[M * K];
    static uint16_t b[K * N];
    static uint16_t c[2][M * N];
    for (int i = 0; i < M * K; i++) {
        a[i] = nd_to_bf16((float)(i % 31) / 16.0F - 1.0F);
    }
    for (int i = 0; i < K * N; i++) {
        b[i] = nd_to_bf16((float)(i % 29) / 16.0F - 1.0F);
    }
    nd_error err;
    for (int first = 0; first < 2; first++) { /* a large call after a small one, and alone */
        nd_device *device = opened(ND_ELEM_BF16);
        nd_ins ins = {.op = ND_INS_GEMM, .m = 1, .n = 1, .k = 1};
        nd_call call = {.ins = &ins, .in = {{a, ND_ELEM_BF16}, {b, ND_ELEM_BF16}}, .out = {{c[first], ND_ELEM_BF16}}};
        if (first == 0) {
            ND_ASSERT_OK(nd_backend_cpu()->execute(device, &call, &err));
        }
        ins.m = M;
        ins.n = N;
        ins.k = K;
        ND_ASSERT_OK(nd_backend_cpu()->execute(device, &call, &err));
        nd_backend_cpu()->close(device);
    }
    CU_ASSERT_TRUE(same_bits(c[0], c[1], sizeof c[0]));
}

/* Parts of buffers start at any element: the same bits wherever operands lie. */
static void results_do_not_depend_on_addresses(void)
{
    enum { SHIFTS = 16 };
    static float memory[3][M * K + N * K + M * N + SHIFTS];
    static float first[M * N];
    nd_device *device = opened(ND_ELEM_F32);
    for (int shift = 0; shift < SHIFTS; shift++) {
        float *at[3] = {memory[0] + shift, memory[1] + (shift * 5) % SHIFTS, memory[2] + (shift * 3) % SHIFTS};
        for (int i = 0; i < M * K + N * K; i++) {
            at[i < M * K ? 0 : 1][i < M * K ? i : i - M * K] = (float)(i % 89) / 89.0F - 0.5F;
        }
        nd_error err;
        nd_ins ins = {.op = ND_INS_GEMM, .m = M, .n = N, .k = K};
        nd_call call = {.ins = &ins, .in = {{at[0], ND_ELEM_F32}, {at[1], ND_ELEM_F32}}, .out = {{at[2], ND_ELEM_F32}}};
        ND_ASSERT_OK(nd_backend_cpu()->execute(device, &call, &err));
        if (shift == 0) {
            memcpy(first, at[2], sizeof first);
        }
        CU_ASSERT_TRUE(same_bits(first, at[2], sizeof first));
    }
    nd_backend_cpu()->close(device);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(memory_is_aligned_and_holds_what_is_written),
                                         ND_TEST(more_memory_than_exists_is_refused),
                                         ND_TEST(it_does_not_compute_in_indices),
                                         ND_TEST(what_it_cannot_run_is_named),
                                         ND_TEST(no_rows_are_no_work),
                                         ND_TEST(no_rows_give_zeros_and_keep_sums),
                                         ND_TEST(tokens_and_labels_are_loaded),
                                         ND_TEST(threads_beside_each_other_get_the_same_bits),
                                         ND_TEST(later_calls_may_be_larger),
                                         ND_TEST(results_do_not_depend_on_addresses),
                                         {NULL, NULL}};
    return nd_test_main("cpu device", cases);
}
