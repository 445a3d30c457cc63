/* How fast a search and one estimate are. Prints figures; judges nothing (a loaded machine would make it lie).
 *
 *   ndplan_bench [MODEL [GPU [MAX_GPUS [FRAMEWORK [PLOT.svg]]]]]
 *
 * One search per GPU count 8, 16, ... MAX_GPUS, everything open, with 4 sequences a GPU (at most 4096) of 8192 tokens;
 * then the median time of one nd_estimate_layout(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/text.h"
#include "frameworks/framework.h"
#include "planner/search.h"
#include "reports/plot.h"

enum { BATCHES = 21, ESTIMATES_PER_BATCH = 200, GPUS_PER_NODE = 8 };

typedef struct setting {
    nd_model_spec model;
    nd_cluster_spec cluster;
    nd_train_spec train;
    nd_stack stack;
    nd_calibration calibration;
    const nd_framework *framework;
    nd_cost_context context;
} setting;

static double seconds(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double cpu_s(void)
{
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

static double peak_rss_mib(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0; /* Linux counts KiB */
}

static nd_status set_gpus(setting *s, const char *gpu, int64_t gpus, nd_error *err)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%" PRId64 "x%dx%s", gpus / GPUS_PER_NODE, (int)GPUS_PER_NODE, gpu);
    ND_TRY(nd_cluster_load(text, &s->cluster, err));
    ND_TRY(nd_calibration_for_gpu(&s->cluster.gpu, &s->calibration, err));
    int64_t batch = 4 * gpus;
    s->train = (nd_train_spec){
        .seq_len_tokens = 8192,
        .global_batch_seqs = batch < 4096 ? batch : 4096,
        .precision = ND_DTYPE_BF16,
        .optimizer = ND_OPTIMIZER_ADAMW,
        .attention = s->stack.default_attention,
        .base_bits = 16,
    };
    return nd_cost_context_init(&s->model, &s->cluster, &s->train, &s->stack, &s->calibration, &s->context, err);
}

/* What grows with the number of GPUs. */
enum { CURVE_POINTS_MAX = 32 };
typedef struct curves {
    nd_plot_point layouts[CURVE_POINTS_MAX], microseconds[CURVE_POINTS_MAX];
    int32_t count;
} curves;

static void note(curves *c, int64_t gpus, int64_t layouts, double wall_s)
{
    if (c->count < CURVE_POINTS_MAX) {
        c->layouts[c->count] = (nd_plot_point){.x = (double)gpus, .y = (double)layouts};
        c->microseconds[c->count++] = (nd_plot_point){.x = (double)gpus, .y = 1e6 * wall_s};
    }
}

static nd_status draw(const char *path, const char *model, const curves *c, nd_error *err)
{
    char title[128];
    (void)snprintf(title, sizeof title, "Searches of %.60s: layouts, and microseconds for all of them", model);
    const nd_plot_series series[] = {
        {.label = "layouts", .points = c->layouts, .count = c->count, .kind = ND_PLOT_LINE},
        {.label = "microseconds", .points = c->microseconds, .count = c->count, .kind = ND_PLOT_LINE},
    };
    const nd_plot plot = {.title = title,
                          .x = {.title = "GPUs", .unit = ND_PLOT_WHOLE, .log = true},
                          .y = {.title = "layouts; microseconds", .unit = ND_PLOT_NUMBER, .log = true},
                          .series = series,
                          .series_count = 2};
    FILE *out = fopen(path, "w");
    if (out == NULL) {
        return nd_fail(err, ND_EIO, "cannot write '%s'", path);
    }
    nd_status status = nd_plot_write(&plot, out, err);
    bool failed = fclose(out) != 0;
    return status == ND_OK && failed ? nd_fail(err, ND_EIO, "cannot write '%s'", path) : status;
}

static nd_status bench_search(setting *s, int64_t gpus, nd_layout *best, curves *grown, nd_error *err)
{
    nd_search_options options = nd_search_options_default();
    nd_plan_list list;
    double start = cpu_s();
    double wall = seconds(CLOCK_MONOTONIC);
    ND_TRY(nd_search(&s->context, s->framework, &options, &list, err));
    double used = cpu_s() - start;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    printf("%8" PRId64 " %12" PRId64 " %10" PRId64 " %10" PRId64 " %12.0f %8.3f %8.3f %8.1f\n", gpus, list.searched,
           list.fitting, list.evaluated, (double)list.searched / used, used, wall, peak_rss_mib());
    note(grown, gpus, list.searched, wall);
    if (list.count > 0) {
        *best = list.plans[0].layout;
    } else if (list.has_closest) {
        *best = list.closest.layout;
    }
    nd_plan_list_free(&list);
    return ND_OK;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void bench_estimate(const setting *s, const nd_layout *layout)
{
    double times[BATCHES];
    nd_estimate estimate;
    double sum = 0.0; /* printed, so that no call can be left out */
    char text[256];
    for (int batch = 0; batch < BATCHES; batch++) {
        double start = cpu_s();
        for (int i = 0; i < ESTIMATES_PER_BATCH; i++) {
            nd_estimate_layout(&s->context, layout, &estimate);
            sum += estimate.time.step_s;
        }
        times[batch] = (cpu_s() - start) / ESTIMATES_PER_BATCH;
    }
    qsort(times, BATCHES, sizeof times[0], by_value);
    (void)nd_layout_format(layout, text, sizeof text);
    printf("one nd_estimate_layout: median %.2f us, fastest %.2f us, slowest %.2f us (%d batches of %d)\n",
           times[BATCHES / 2] * 1e6, times[0] * 1e6, times[BATCHES - 1] * 1e6, (int)BATCHES, (int)ESTIMATES_PER_BATCH);
    printf("  of %s, step %.3f s\n", text, sum / ((double)BATCHES * ESTIMATES_PER_BATCH));
}

static nd_status run(const char *model, const char *gpu, int64_t max_gpus, const char *framework, const char *plot,
                     setting *s, nd_error *err)
{
    curves grown = {.count = 0};
    nd_layout best = nd_layout_single();
    ND_TRY(nd_model_load(model, false, &s->model, err));
    ND_TRY(nd_framework_find(framework, &s->framework, err));
    ND_TRY(nd_stack_find(s->framework->stack, &s->stack, err));
    printf("%s on %s, %s, everything searched, top 10\n", s->model.name, gpu, framework);
    printf("%8s %12s %10s %10s %12s %8s %8s %8s\n", "GPUs", "searched", "fitting", "evaluated", "layouts/s", "CPU s",
           "wall s", "RSS MiB");
    for (int64_t gpus = GPUS_PER_NODE; gpus <= max_gpus; gpus *= 2) {
        ND_TRY(set_gpus(s, gpu, gpus, err));
        ND_TRY(bench_search(s, gpus, &best, &grown, err));
        (void)fflush(stdout);
    }
    bench_estimate(s, &best);
    return plot == NULL ? ND_OK : draw(plot, s->model.name, &grown, err);
}

int main(int argc, char **argv)
{
    const char *model = argc > 1 ? argv[1] : "llama-3.1-70b";
    const char *gpu = argc > 2 ? argv[2] : "h100";
    const char *framework = argc > 4 ? argv[4] : "ndplan";
    int64_t max_gpus = 131072;
    nd_error err;
    if (argc > 3 && nd_text_int(argv[3], "MAX_GPUS", GPUS_PER_NODE, 524288, &max_gpus, &err) != ND_OK) {
        fprintf(stderr, "ndplan_bench: %s\n", err.message);
        return 2;
    }
    setting *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return 2;
    }
    nd_status status = run(model, gpu, max_gpus, framework, argc > 5 ? argv[5] : NULL, s, &err);
    free(s);
    if (status != ND_OK) {
        fprintf(stderr, "ndplan_bench: %s\n", err.message);
        return 2;
    }
    return 0;
}
