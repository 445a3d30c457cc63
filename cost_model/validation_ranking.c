/* Ranking of layouts: does the model put competing layouts in the order that was measured? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/validation.h"

/* Closer runs are not told apart: the same run differs by about as much between two starts (own choice, below the
 * 5 % by which releases of one stack differ). */
static const double clear_gap = 0.03;

typedef const nd_validation_row *row_pointer;

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* What competing runs agree in. */
static int compare_task(const nd_measured_run *a, const nd_measured_run *b)
{
    const int orders[] = {
        strcmp(a->source, b->source),
        strcmp(a->model.name, b->model.name),
        order(a->model.layers, b->model.layers),
        order(a->model.hidden, b->model.hidden),
        strcmp(a->cluster.gpu.name, b->cluster.gpu.name),
        order(a->cluster.gpus, b->cluster.gpus),
        order(a->train.seq_len_tokens, b->train.seq_len_tokens),
        order(a->train.global_batch_seqs, b->train.global_batch_seqs),
    };
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        if (orders[i] != 0) {
            return orders[i];
        }
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    row_pointer x = *(const row_pointer *)a;
    row_pointer y = *(const row_pointer *)b;
    int task = compare_task(x->run, y->run);
    return task != 0 ? task : (x > y) - (x < y);
}

static bool same_layout(const nd_measured_run *a, const nd_measured_run *b)
{
    const nd_layout *x = &a->layout;
    const nd_layout *y = &b->layout;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        if (x->size[axis] != y->size[axis]) {
            return false;
        }
    }
    return x->ep == y->ep && x->vpp == y->vpp && x->micro_batch == y->micro_batch && x->grad_accum == y->grad_accum &&
           x->sequence_parallel == y->sequence_parallel && x->cp_method == y->cp_method && x->schedule == y->schedule &&
           x->sharding == y->sharding && x->recompute == y->recompute && x->recompute_every == y->recompute_every &&
           x->offload == y->offload;
}

static void rank_pairs(const row_pointer *rows, int64_t count, nd_ranking_score *score)
{
    for (int64_t i = 1; i < count; i++) {
        for (int64_t j = 0; j < i; j++) {
            double measured = log(rows[i]->run->step_s / rows[j]->run->step_s);
            double predicted = rows[i]->predicted_s - rows[j]->predicted_s;
            if (fabs(measured) > log(1.0 + clear_gap) && !same_layout(rows[i]->run, rows[j]->run)) {
                score->pairs++;
                score->pairs_right += measured * predicted > 0.0;
            }
        }
    }
}

static bool has_choice(const row_pointer *rows, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        if (!same_layout(rows[0]->run, rows[i]->run)) {
            return true;
        }
    }
    return false;
}

/* Index of the row that is predicted fastest; of equals, the one measured slowest, so that order cannot help. */
static int64_t first_choice(const row_pointer *rows, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++) {
        double gain = rows[best]->predicted_s - rows[i]->predicted_s;
        if (gain > 0.0 || (gain == 0.0 && rows[i]->run->step_s > rows[best]->run->step_s)) {
            best = i;
        }
    }
    return best;
}

static void add_regret(const row_pointer *rows, int64_t count, double *regrets, nd_ranking_score *score)
{
    if (!has_choice(rows, count)) {
        return;
    }
    const nd_measured_run *chosen = rows[first_choice(rows, count)]->run;
    double fastest_s = chosen->step_s;
    for (int64_t i = 0; i < count; i++) {
        fastest_s = fmin(fastest_s, rows[i]->run->step_s);
    }
    double regret = chosen->step_s / fastest_s - 1.0;
    regrets[score->groups++] = regret;
    score->regret_mean += regret;
    if (score->worst == NULL || regret > score->regret_worst) {
        score->regret_worst = regret;
        score->worst = chosen;
    }
}

static int64_t collect(const nd_validation *validation, row_pointer *rows)
{
    int64_t count = 0;
    for (int64_t i = 0; i < validation->count; i++) {
        const nd_validation_row *row = &validation->rows[i];
        if (row->scored && row->run->step_s > 0.0) {
            rows[count++] = row;
        }
    }
    qsort((void *)rows, (size_t)count, sizeof(row_pointer), compare);
    return count;
}

static nd_ranking_score rank(const row_pointer *rows, int64_t count, double *regrets)
{
    nd_ranking_score score = {0};
    for (int64_t first = 0, end = 0; first < count; first = end) {
        for (end = first; end < count && compare_task(rows[first]->run, rows[end]->run) == 0; end++) {
        }
        rank_pairs(&rows[first], end - first, &score);
        add_regret(&rows[first], end - first, regrets, &score);
    }
    bool any = score.groups > 0;
    score.regret_mean = any ? score.regret_mean / (double)score.groups : (double)NAN;
    score.regret_worst = any ? score.regret_worst : (double)NAN;
    score.regret_median = nd_values_quantile(regrets, score.groups, 0.5);
    return score;
}

nd_status nd_validation_rank(const nd_validation *validation, nd_ranking_score *out, nd_error *err)
{
    row_pointer *rows = calloc((size_t)validation->count + 1, sizeof(row_pointer));
    double *regrets = calloc((size_t)validation->count + 1, sizeof regrets[0]);
    nd_status status = ND_OK;
    if (rows == NULL || regrets == NULL) {
        status = nd_fail(err, ND_ENOMEM, "out of memory for the ranking of %lld runs", (long long)validation->count);
    } else {
        int64_t count = collect(validation, rows);
        *out = rank(rows, count, regrets);
    }
    free((void *)rows);
    free(regrets);
    return status;
}
