/** Attention written out: every query against every key, positions from a list of chunks. */
#ifndef ND_TESTS_EXECUTOR_ATTENTION_CASE_H
#define ND_TESTS_EXECUTOR_ATTENTION_CASE_H

#include "tests/executor/cpu_fixture.h"

typedef struct attention_case {
    nd_seq_map q_map, kv_map;
    int64_t heads, kv_heads, dim, v_dim, window;
    int32_t micro_batch;
    bool chunked;
} attention_case;

/** 4 query heads on 2 of keys, dim 6 (v 6), 2 sequences, all `seq_len` positions against all. */
attention_case attention_case_default(int64_t seq_len);

/** The part of member `member` (-1: all members, one after the other) of `cp`. */
nd_seq_map attention_map(int64_t seq_len, int32_t cp, int32_t member, bool zigzag);

/** Position of entry `index`, from the definition of the map. */
int64_t attention_position(const nd_seq_map *map, int64_t index);

int64_t attention_q_rows(const attention_case *c);
int64_t attention_kv_rows(const attention_case *c);

/** q, k, v of a case; `seed` of the keys and values. The same positions have the same numbers whatever the map, so that
 * parts can be compared with the whole. */
typedef struct attention_inputs {
    double *q, *k, *v, *dout;
} attention_inputs;
attention_inputs attention_inputs_of(const attention_case *c);

/** Output and log-sum-exp; when `merge` they hold the result over other keys before. */
void attention_naive(const attention_case *c, const attention_inputs *in, bool merge, double *o, double *lse);

/** Gradients of sum(dout x output) of this case alone, by the Jacobian of softmax; all overwritten. */
void attention_naive_grad(const attention_case *c, const attention_inputs *in, double *dq, double *dk, double *dv);

/** The forward call, outputs garbage; o wide or real. */
op_call attention_call(const attention_case *c, const attention_inputs *in, op_kind o);

#endif
