#include "tests/executor/attention_case.h"

#include <math.h>
#include <string.h>

attention_case attention_case_default(int64_t seq_len)
{
    return (attention_case){.q_map = attention_map(seq_len, 1, 0, false),
                            .kv_map = attention_map(seq_len, 1, 0, false),
                            .heads = 4,
                            .kv_heads = 2,
                            .dim = 6,
                            .v_dim = 6,
                            .micro_batch = 2};
}

nd_seq_map attention_map(int64_t seq_len, int32_t cp, int32_t member, bool zigzag)
{
    return (nd_seq_map){.seq_len = seq_len,
                        .cp = cp,
                        .member = member,
                        .zigzag = zigzag,
                        .positions = member < 0 ? seq_len : seq_len / cp};
}

int64_t attention_position(const nd_seq_map *map, int64_t index)
{
    int64_t left = map->first + index;
    for (int32_t member = map->member < 0 ? 0 : map->member; member < map->cp; member++) {
        int64_t pieces = map->zigzag ? 2 * map->cp : map->cp;
        int64_t chunks[2] = {member, map->zigzag ? pieces - 1 - member : -1};
        int64_t length = map->seq_len / pieces;
        for (int32_t c = 0; c < 2 && chunks[c] >= 0; c++) {
            if (left < length) {
                return chunks[c] * length + left;
            }
            left -= length;
        }
    }
    CU_FAIL_FATAL("the map has no such entry");
    return -1;
}

int64_t attention_q_rows(const attention_case *c)
{
    return c->q_map.positions * c->micro_batch;
}

int64_t attention_kv_rows(const attention_case *c)
{
    return c->kv_map.positions * c->micro_batch;
}

static double *by_position(const nd_seq_map *map, int32_t micro_batch, int64_t cols, uint64_t seed)
{
    double *x = op_numbers(map->positions * micro_batch * cols);
    for (int64_t i = 0; i < map->positions; i++) {
        uint64_t position = (uint64_t)attention_position(map, i);
        const double *own = op_random(seed + 16 * position, micro_batch * cols);
        memcpy(x + i * micro_batch * cols, own, (size_t)(micro_batch * cols) * sizeof *x);
    }
    return x;
}

attention_inputs attention_inputs_of(const attention_case *c)
{
    return (attention_inputs){.q = by_position(&c->q_map, c->micro_batch, c->heads * c->dim, 1),
                              .k = by_position(&c->kv_map, c->micro_batch, c->kv_heads * c->dim, 2),
                              .v = by_position(&c->kv_map, c->micro_batch, c->kv_heads * c->v_dim, 3),
                              .dout = by_position(&c->q_map, c->micro_batch, c->heads * c->v_dim, 4)};
}

static bool sees(const attention_case *c, int64_t query, int64_t key)
{
    if (key > query || c->window == 0) {
        return key <= query;
    }
    return c->chunked ? key / c->window == query / c->window : query - key < c->window;
}

static double scale_of(const attention_case *c)
{
    return 1.0 / sqrt((double)c->dim);
}

/** One query of one head: where its numbers and those of entry j of the keys are. */
typedef struct query {
    int64_t position, row; /* row of [rows x heads] */
    const double *q;
    int64_t sequence, kv_head;
} query;

static query query_of(const attention_case *c, const attention_inputs *in, int64_t index, int64_t sequence,
                      int64_t head)
{
    int64_t row = (index * c->micro_batch + sequence) * c->heads + head;
    return (query){.position = attention_position(&c->q_map, index),
                   .row = row,
                   .q = in->q + row * c->dim,
                   .sequence = sequence,
                   .kv_head = head / (c->heads / c->kv_heads)};
}

static int64_t key_row(const attention_case *c, const query *at, int64_t j)
{
    return (j * c->micro_batch + at->sequence) * c->kv_heads + at->kv_head;
}

/* e^score, 0 of keys that are not seen; scores of these tests are small. */
static double power_of(const attention_case *c, const attention_inputs *in, const query *at, int64_t j)
{
    if (!sees(c, at->position, attention_position(&c->kv_map, j))) {
        return 0.0;
    }
    double score = 0.0;
    for (int64_t i = 0; i < c->dim; i++) {
        score += at->q[i] * in->k[key_row(c, at, j) * c->dim + i];
    }
    return exp(score * scale_of(c));
}

static void attend(const attention_case *c, const attention_inputs *in, const query *at, bool merge, double *o,
                   double *lse)
{
    double sum = merge ? exp(*lse) : 0.0;
    for (int64_t i = 0; i < c->v_dim; i++) {
        o[i] = merge ? o[i] * sum : 0.0;
    }
    for (int64_t j = 0; j < c->kv_map.positions; j++) {
        double power = power_of(c, in, at, j);
        sum += power;
        for (int64_t i = 0; i < c->v_dim; i++) {
            o[i] += power * in->v[key_row(c, at, j) * c->v_dim + i];
        }
    }
    for (int64_t i = 0; i < c->v_dim && sum > 0.0; i++) {
        o[i] /= sum;
    }
    *lse = log(sum);
}

void attention_naive(const attention_case *c, const attention_inputs *in, bool merge, double *o, double *lse)
{
    for (int64_t index = 0; index < c->q_map.positions; index++) {
        for (int64_t rest = 0; rest < c->micro_batch * c->heads; rest++) {
            query at = query_of(c, in, index, rest / c->heads, rest % c->heads);
            attend(c, in, &at, merge, o + at.row * c->v_dim, lse + at.row);
        }
    }
}

/* Sum over i of dout x value j, and the share of key j. */
static double slope_of(const attention_case *c, const attention_inputs *in, const query *at, int64_t j)
{
    double slope = 0.0;
    for (int64_t i = 0; i < c->v_dim; i++) {
        slope += in->dout[at->row * c->v_dim + i] * in->v[key_row(c, at, j) * c->v_dim + i];
    }
    return slope;
}

static void attend_back(const attention_case *c, const attention_inputs *in, const query *at, double *dq, double *dk,
                        double *dv)
{
    double sum = 0.0;
    double mean = 0.0;
    for (int64_t j = 0; j < c->kv_map.positions; j++) {
        double power = power_of(c, in, at, j);
        sum += power;
        mean += power * slope_of(c, in, at, j);
    }
    for (int64_t j = 0; j < c->kv_map.positions && sum > 0.0; j++) {
        double share = power_of(c, in, at, j) / sum;
        double dscore = share * (slope_of(c, in, at, j) - mean / sum) * scale_of(c);
        int64_t row = key_row(c, at, j);
        for (int64_t i = 0; i < c->dim; i++) {
            dq[at->row * c->dim + i] += dscore * in->k[row * c->dim + i];
            dk[row * c->dim + i] += dscore * at->q[i];
        }
        for (int64_t i = 0; i < c->v_dim; i++) {
            dv[row * c->v_dim + i] += share * in->dout[at->row * c->v_dim + i];
        }
    }
}

void attention_naive_grad(const attention_case *c, const attention_inputs *in, double *dq, double *dk, double *dv)
{
    memset(dq, 0, (size_t)(attention_q_rows(c) * c->heads * c->dim) * sizeof *dq);
    memset(dk, 0, (size_t)(attention_kv_rows(c) * c->kv_heads * c->dim) * sizeof *dk);
    memset(dv, 0, (size_t)(attention_kv_rows(c) * c->kv_heads * c->v_dim) * sizeof *dv);
    for (int64_t index = 0; index < c->q_map.positions; index++) {
        for (int64_t rest = 0; rest < c->micro_batch * c->heads; rest++) {
            query at = query_of(c, in, index, rest / c->heads, rest % c->heads);
            attend_back(c, in, &at, dq, dk, dv);
        }
    }
}

op_call attention_call(const attention_case *c, const attention_inputs *in, op_kind o)
{
    int64_t q_rows = attention_q_rows(c);
    int64_t kv_rows = attention_kv_rows(c);
    int64_t o_count = q_rows * c->heads * c->v_dim;
    return (op_call){
        .ins = {.op = ND_INS_ATTENTION,
                .rows = q_rows,
                .heads = c->heads,
                .kv_heads = c->kv_heads,
                .dim = c->dim,
                .v_dim = c->v_dim,
                .window = c->window,
                .chunked = c->chunked,
                .micro_batch = c->micro_batch,
                .q_map = c->q_map,
                .kv_map = c->kv_map,
                .scale = scale_of(c)},
        .in = {op_real(in->q, q_rows * c->heads * c->dim), op_real(in->k, kv_rows * c->kv_heads * c->dim),
               op_real(in->v, kv_rows * c->kv_heads * c->v_dim)},
        .out = {{.kind = o, .count = o_count, .x = op_garbage(o, o_count)}, op_out_wide(q_rows * c->heads)}};
}
