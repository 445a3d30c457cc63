/* Three steps of every tiny model against another implementation: data/golden.csv was printed by a program in Python
 * over torch 1.13 in fp64 that shares nothing with this project: plain autograd over the whole model, F.cross_entropy
 * with ignore_index, clip_grad_norm_ (0.5), torch.optim.AdamW (lr 0.01, betas 0.9 and 0.95, eps 1e-8, decay 0.1 of
 * matrices), experts as a loop over masks, attention over the whole score matrix. It read the initial weights and the
 * tokens of parity_open() from a file. Rows: loss and gradient norm of each step; sum and sum of squares of each
 * parameter after the last. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/executor/parity.h"
#include "tests/nd_test.h"

/* Both add up in orders of their own; seen: 1e-13 of a sum. */
static const double tolerance = 1e-11;

typedef struct golden {
    parity p;
    nd_run *run; /* for the names of its parameters */
    char model[32];
    int rows, wrong;
} golden;

static void expect(golden *g, const char *what, double value, double expected, double scale)
{
    g->rows++;
    if (!(fabs(value - expected) <= tolerance * (scale > 1.0 ? scale : 1.0))) {
        g->wrong++;
        (void)fprintf(stderr, "%s %s: %.17g instead of %.17g\n", g->model, what, value, expected);
    }
}

static void close_model(golden *g)
{
    if (g->run != NULL) {
        nd_run_free(g->run);
        parity_close(&g->p);
        g->run = NULL;
    }
}

static void open_model(golden *g, const char *model)
{
    nd_error err = {.message = ""};
    char file[64];
    nd_layout one = nd_layout_single();
    close_model(g);
    (void)snprintf(g->model, sizeof g->model, "%s", model);
    (void)snprintf(file, sizeof file, "%s.json", model);
    parity_open(&g->p, file, ND_ELEM_F64, 8);
    one.grad_accum = 8;
    ND_ASSERT_OK(nd_run_create(&g->p.model, &one, &g->p.train, &g->p.options, &g->run, &err));
}

static void check_param(golden *g, const char *name, int64_t count, double sum, double squares)
{
    const nd_param_list *params = nd_run_params(g->run);
    for (int32_t i = 0; i < params->count; i++) {
        if (strcmp(params->params[i].name, name) != 0) {
            continue;
        }
        const double *x = g->p.expected + nd_param_first(params, i);
        double found = 0.0;
        double found_squares = 0.0;
        double size = 0.0;
        CU_ASSERT_EQUAL(params->params[i].rows * params->params[i].cols, count);
        for (int64_t k = 0; k < count; k++) {
            found += x[k];
            found_squares += x[k] * x[k];
            size += fabs(x[k]);
        }
        expect(g, name, found, sum, size);
        expect(g, name, found_squares, squares, squares);
        return;
    }
    (void)fprintf(stderr, "%s has no %s\n", g->model, name);
    g->wrong++;
}

static void check_row(golden *g, char *line)
{
    char *rest = NULL;
    const char *model = strtok_r(line, ",", &rest);
    const char *what = strtok_r(NULL, ",", &rest);
    long long count = strtoll(strtok_r(NULL, ",", &rest), NULL, 10);
    double first = strtod(strtok_r(NULL, ",", &rest), NULL);
    double second = strtod(strtok_r(NULL, ",\n", &rest), NULL);
    if (strcmp(model, g->model) != 0) {
        open_model(g, model);
    }
    if (strcmp(what, "step") == 0) {
        expect(g, "loss", g->p.loss[count - 1], first, first);
        expect(g, "gradient norm", g->p.grad_norm[count - 1], second, second);
    } else {
        check_param(g, what, count, first, second);
    }
}

static void test_every_model_trains_as_another_implementation_does(void)
{
    static golden g;
    char line[256];
    FILE *file = fopen(ND_TEST_DATA "/golden.csv", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    (void)fgets(line, sizeof line, file); /* names of the columns */
    while (fgets(line, sizeof line, file) != NULL) {
        check_row(&g, line);
    }
    (void)fclose(file);
    close_model(&g);
    CU_ASSERT_EQUAL(g.wrong, 0);
    CU_ASSERT_TRUE(g.rows > 400);
}

int main(void)
{
    static const nd_test_case cases[] = {ND_TEST(test_every_model_trains_as_another_implementation_does), {0}};
    return nd_test_main("golden numbers", cases);
}
