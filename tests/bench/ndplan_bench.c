/* How fast a search and one estimate are. Prints figures; judges nothing (a loaded machine would make it lie).
 *
 *   ndplan_bench [MODEL [GPU [MAX_GPUS [FRAMEWORK]]]]
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

static double cpu_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
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

static nd_status bench_search(setting *s, int64_t gpus, nd_layout *best, nd_error *err)
{
    nd_search_options options = nd_search_options_default();
    nd_plan_list list;
    double start = cpu_s();
    ND_TRY(nd_search(&s->context, s->framework, &options, &list, err));
    double used = cpu_s() - start;
    printf("%8" PRId64 " %12" PRId64 " %10" PRId64 " %10" PRId64 " %12.0f %8.3f %8.1f\n", gpus, list.searched,
           list.fitting, list.evaluated, (double)list.searched / used, used, peak_rss_mib());
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

static nd_status run(const char *model, const char *gpu, int64_t max_gpus, const char *framework, setting *s,
                     nd_error *err)
{
    nd_layout best = nd_layout_single();
    ND_TRY(nd_model_load(model, false, &s->model, err));
    ND_TRY(nd_framework_find(framework, &s->framework, err));
    ND_TRY(nd_stack_find(s->framework->stack, &s->stack, err));
    printf("%s on %s, %s, everything searched, top 10\n", s->model.name, gpu, framework);
    printf("%8s %12s %10s %10s %12s %8s %8s\n", "GPUs", "searched", "fitting", "evaluated", "layouts/s", "CPU s",
           "RSS MiB");
    for (int64_t gpus = GPUS_PER_NODE; gpus <= max_gpus; gpus *= 2) {
        ND_TRY(set_gpus(s, gpu, gpus, err));
        ND_TRY(bench_search(s, gpus, &best, err));
        (void)fflush(stdout);
    }
    bench_estimate(s, &best);
    return ND_OK;
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
    nd_status status = run(model, gpu, max_gpus, framework, s, &err);
    free(s);
    if (status != ND_OK) {
        fprintf(stderr, "ndplan_bench: %s\n", err.message);
        return 2;
    }
    return 0;
}
