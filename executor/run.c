#include "executor/run.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"
#include "program/check.h"

struct nd_run {
    nd_model_spec model;
    nd_run_options options;
    int32_t ranks;
    nd_program **programs;
    nd_rank **rank;
    nd_comm *comm;
    nd_data *data;
    int64_t steps_done;
    bool spoiled;
};

nd_run_options nd_run_options_default(void)
{
    return (nd_run_options){
        .program = nd_program_options_default(),
        .backend = nd_backend_cpu(),
        .init = nd_init_options_default(),
        .step = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1},
    };
}

double nd_run_lr(const nd_run_options *options, int64_t step)
{
    static const double final_frac = 0.1; /* of the peak, at the end of the cosine */
    static const double pi = 3.14159265358979323846;
    double lr = options->step.lr;
    if (step <= options->warmup_steps) {
        return lr * (double)step / (double)options->warmup_steps;
    }
    if (options->decay_steps <= options->warmup_steps) {
        return lr;
    }
    double done = (double)(step - options->warmup_steps) / (double)(options->decay_steps - options->warmup_steps);
    done = done < 1.0 ? done : 1.0;
    return lr * (final_frac + (1.0 - final_frac) * 0.5 * (1.0 + cos(pi * done)));
}

static nd_status build_programs(nd_run *run, const nd_layout *layout, const nd_train_spec *train, nd_error *err)
{
    for (int32_t i = 0; i < run->ranks; i++) {
        ND_TRY(nd_program_create(&run->model, layout, train, &run->options.program, i, &run->programs[i], err));
    }
    return nd_programs_check((const nd_program *const *)run->programs, run->ranks, run->model.kv_heads, err);
}

/* Memory that is only promised ends in a killed process: ask before anything is reserved. */
static nd_status check_memory(const nd_run *run, nd_error *err)
{
    double bytes = 0.0;
    double has = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    for (int32_t i = 0; i < run->ranks; i++) {
        bytes += (double)run->programs[i]->arena_bytes;
    }
    if (has > 0.0 && bytes > has) {
        return nd_fail(err, ND_EINVAL,
                       "the run needs %.1f GiB for %d rank%s and this machine has %.1f GiB; a smaller model, sequence "
                       "or micro-batch, or recompute=full, needs less",
                       bytes / ND_GIB, run->ranks, run->ranks == 1 ? "" : "s", has / ND_GIB);
    }
    return ND_OK;
}

static nd_status open_ranks(nd_run *run, nd_error *err)
{
    ND_TRY(check_memory(run, err));
    ND_TRY(nd_comm_thread_open(run->ranks, run->options.checks, &run->comm, err));
    ND_TRY(nd_data_open(&run->options.data, &run->data, err));
    const nd_rank_options options = {.backend = run->options.backend,
                                     .comm = run->comm,
                                     .data = run->data,
                                     .kv_heads = run->model.kv_heads,
                                     .check_nan = run->options.check_nan,
                                     .profile = run->options.profile,
                                     .poison = run->options.poison};
    for (int32_t i = 0; i < run->ranks; i++) {
        nd_error why = {0};
        nd_status status = nd_rank_open(run->programs[i], &options, &run->rank[i], &why);
        if (status == ND_OK) {
            status = nd_rank_init(run->rank[i], &run->options.init, &why);
        }
        if (status != ND_OK) {
            return nd_fail(err, status, "rank %d of %d cannot start: %.900s", i, run->ranks, why.message);
        }
    }
    return ND_OK;
}

nd_status nd_run_create(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train,
                        const nd_run_options *options, nd_run **out, nd_error *err)
{
    int64_t ranks = nd_layout_ranks(layout);
    if (ranks > 1024) {
        return nd_fail(err, ND_EINVAL, "a run has one thread a rank and at most 1024; the layout has %lld",
                       (long long)ranks);
    }
    nd_run *run = calloc(1, sizeof *run);
    if (run == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    run->model = *model;
    run->options = *options;
    run->options.data.seq_len = train->seq_len_tokens;
    run->options.data.vocab = model->vocab;
    run->ranks = (int32_t)ranks;
    run->programs = calloc((size_t)ranks, sizeof(nd_program *));
    run->rank = calloc((size_t)ranks, sizeof(nd_rank *));
    nd_status status = run->programs == NULL || run->rank == NULL ? nd_fail(err, ND_ENOMEM, "out of memory")
                                                                  : build_programs(run, layout, train, err);
    if (status == ND_OK) {
        status = open_ranks(run, err);
    }
    if (status != ND_OK) {
        nd_run_free(run);
        return status;
    }
    *out = run;
    return ND_OK;
}

void nd_run_free(nd_run *run)
{
    if (run == NULL) {
        return;
    }
    for (int32_t i = 0; i < run->ranks; i++) {
        if (run->rank != NULL) {
            nd_rank_close(run->rank[i]);
        }
        if (run->programs != NULL) {
            nd_program_free(run->programs[i]);
        }
    }
    if (run->comm != NULL) {
        run->comm->table->close(run->comm);
    }
    nd_data_free(run->data);
    free(run->rank);
    free(run->programs);
    free(run);
}

/** What the threads of a call of nd_run_steps() share. */
typedef struct team {
    nd_run *run;
    int64_t count;
    nd_run_observer observer;
    void *user;
    atomic_llong last; /* the step after which all stop */
} team;

typedef struct member {
    team *team;
    int32_t rank;
    nd_status status;
    nd_error err;
} member;

static nd_run_step report(nd_run *run, int64_t step, double start_s)
{
    nd_rank *rank = run->rank[0];
    return (nd_run_step){.step = step,
                         .loss = nd_rank_loss(rank),
                         .grad_norm = nd_rank_grad_norm(rank),
                         .lr = nd_run_lr(&run->options, step),
                         .seconds = nd_monotonic_s() - start_s};
}

static void step_by_step(member *m)
{
    team *t = m->team;
    nd_run *run = t->run;
    for (int64_t i = 1; i <= t->count; i++) {
        nd_step step = run->options.step;
        double start_s = nd_monotonic_s();
        step.step = run->steps_done + i;
        step.lr = nd_run_lr(&run->options, step.step);
        m->status = nd_rank_step(run->rank[m->rank], &step, &m->err);
        if (m->status != ND_OK) {
            run->comm->table->abort(run->comm, m->rank, &m->err);
            return;
        }
        if (m->rank == 0 && t->observer != NULL) {
            nd_run_step result = report(run, step.step, start_s);
            /* Others may have begun the next step, but cannot end it without rank 0: the loss is summed over all. Asked
             * again after that step, it is the last already. */
            int64_t last = run->ranks > 1 ? i + 1 : i;
            if (!t->observer(t->user, &result) && last < atomic_load(&t->last)) {
                atomic_store(&t->last, last);
            }
        }
        if (i >= atomic_load(&t->last)) {
            return;
        }
    }
}

/* The thread ends in the middle of its steps: whoever waits for this rank must not wait for ever. */
static void leave(void *user)
{
    member *m = user;
    nd_run *run = m->team->run;
    char where[ND_RANK_WHERE_MAX];
    nd_rank_where(run->rank[m->rank], where);
    m->status = nd_fail(&m->err, ND_EIO, "%s: its thread ended", where);
    run->comm->table->abort(run->comm, m->rank, &m->err);
}

static void *work(void *user)
{
    member *m = user;
    pthread_cleanup_push(leave, m);
    step_by_step(m);
    pthread_cleanup_pop(0);
    return NULL;
}

/* The first failure that is a reason and not a consequence. */
static nd_status first_failure(const member *members, int32_t count, nd_error *err)
{
    const member *found = NULL;
    for (int32_t i = 0; i < count; i++) {
        bool better = members[i].status != ND_OK &&
                      (found == NULL || (found->status == ND_EINTERRUPTED && members[i].status != ND_EINTERRUPTED));
        found = better ? &members[i] : found;
    }
    return found == NULL ? ND_OK : nd_fail(err, found->status, "%s", found->err.message);
}

static nd_status run_team(team *t, member *members, pthread_t *threads, nd_error *err)
{
    int32_t ranks = t->run->ranks;
    int32_t started = 0;
    nd_status status = ND_OK;
    for (; started < ranks; started++) {
        if (pthread_create(&threads[started], NULL, work, &members[started]) != 0) {
            status = nd_fail(err, ND_ENOMEM, "the system gives no thread for rank %d", started);
            nd_error why = {.status = status, .message = "not all ranks could be started"};
            t->run->comm->table->abort(t->run->comm, started, &why);
            break;
        }
    }
    for (int32_t i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return status != ND_OK ? status : first_failure(members, ranks, err);
}

nd_status nd_run_steps(nd_run *run, int64_t count, nd_run_observer observer, void *user, nd_error *err)
{
    int32_t ranks = run->ranks;
    assert(ranks >= 1);
    ND_TRY(nd_run_usable(run, err));
    team t = {.run = run, .count = count, .observer = observer, .user = user};
    atomic_init(&t.last, (long long)count);
    member *members = calloc((size_t)ranks, sizeof *members);
    pthread_t *threads = calloc((size_t)ranks, sizeof *threads);
    if (members == NULL || threads == NULL) {
        free(members);
        free(threads);
        return nd_fail(err, ND_ENOMEM, "out of memory for %d threads", ranks);
    }
    for (int32_t i = 0; i < ranks; i++) {
        members[i] = (member){.team = &t, .rank = i};
    }
    nd_status status = run_team(&t, members, threads, err);
    free(members);
    free(threads);
    if (status == ND_OK) {
        run->steps_done += atomic_load(&t.last) < count ? atomic_load(&t.last) : count;
    } else {
        nd_run_spoil(run);
    }
    return status;
}

nd_status nd_run_usable(const nd_run *run, nd_error *err)
{
    if (run->spoiled) {
        return nd_fail(err, ND_EINVAL,
                       "a step or a load of this run failed half-way, so its ranks do not fit together; create "
                       "another run and resume from the last checkpoint");
    }
    return ND_OK;
}

void nd_run_spoil(nd_run *run)
{
    run->spoiled = true;
}

int32_t nd_run_ranks(const nd_run *run)
{
    return run->ranks;
}

nd_rank *nd_run_rank(const nd_run *run, int32_t rank)
{
    return run->rank[rank];
}

const nd_comm_counters *nd_run_counters(const nd_run *run, int32_t rank)
{
    return run->comm->table->counters(run->comm, rank);
}

const nd_param_list *nd_run_params(const nd_run *run)
{
    return &run->programs[0]->params;
}

int64_t nd_run_steps_done(const nd_run *run)
{
    return run->steps_done;
}

const nd_model_spec *nd_run_model(const nd_run *run)
{
    return &run->model;
}

const nd_data *nd_run_data(const nd_run *run)
{
    return run->data;
}

const nd_run_options *nd_run_options_get(const nd_run *run)
{
    return &run->options;
}

void nd_run_set_steps_done(nd_run *run, int64_t steps)
{
    run->steps_done = steps;
}
