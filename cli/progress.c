#include "cli/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/pool.h"
#include "core/text.h"
#include "reports/format.h"

enum { BAR_CELLS = 30, SHOW_AFTER_S = 2, LINE_COLUMNS = 80 };

/* A bar of a run is drawn no more often than this: a step of a small model takes less than writing to a terminal. */
static const double redraw_s = 0.1;

/* One per process, since signals are. */
static volatile sig_atomic_t interrupted;

typedef struct progress {
    double start_s;
    bool on_terminal, shown;
    int percent; /* shown last */
    /* of a run */
    const char *what;
    int64_t steps;
    double tokens_per_step;
    double shown_s; /* when the bar was drawn */
    bool lines;
} progress;
static progress state;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void fill_bar(char bar[BAR_CELLS + 1], int cells, int percent)
{
    for (int i = 0; i < cells; i++) {
        bar[i] = i * 100 < percent * cells ? '#' : '.';
    }
    bar[cells] = '\0';
}

static void draw(int percent)
{
    char bar[BAR_CELLS + 1];
    fill_bar(bar, BAR_CELLS, percent);
    if (state.what != NULL) {
        fprintf(stderr, "\r%s [%s] %3d %%", state.what, bar, percent);
    } else {
        fprintf(stderr, "\rsearching [%s] %3d %%, Ctrl-C shows what is known", bar, percent);
    }
    (void)fflush(stderr);
    state.shown = true;
    state.percent = percent;
}

static bool go_on(void *data, double done_frac)
{
    (void)data;
    int percent = (int)(100.0 * done_frac);
    if (state.on_terminal && nd_monotonic_s() - state.start_s > SHOW_AFTER_S &&
        (!state.shown || percent != state.percent)) {
        draw(percent);
    }
    return interrupted == 0;
}

/* From now on SIGINT asks to end, and a second one has its usual effect. */
static void answer_interrupts(void)
{
    struct sigaction stop = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &stop, NULL);
    state.start_s = nd_monotonic_s();
    state.on_terminal = isatty(STDERR_FILENO) != 0;
}

nd_status nd_progress_start(const nd_options *options, nd_search_control *out, nd_error *err)
{
    int64_t threads = 0;
    if (nd_options_has(options, ND_OPTION_THREADS)) {
        ND_TRY(nd_text_int(options->value[ND_OPTION_THREADS], "--threads", 1, ND_THREADS_MAX, &threads, err));
    }
    answer_interrupts();
    *out = (nd_search_control){.threads = (int32_t)threads, .progress = go_on};
    return ND_OK;
}

void nd_progress_start_measuring(void)
{
    answer_interrupts();
    state.what = "measuring";
}

bool nd_progress_measuring(double done_frac)
{
    int percent = (int)(100.0 * done_frac);
    if (state.on_terminal && (!state.shown || percent != state.percent)) {
        draw(percent);
    }
    return interrupted == 0;
}

void nd_progress_end(void)
{
    if (state.shown) {
        fprintf(stderr, "\r%*s\r", LINE_COLUMNS - 1, "");
        (void)fflush(stderr);
        state.shown = false;
    }
}

static void draw_run(int64_t step, double loss, double seconds)
{
    enum { CELLS = 12 }; /* the figures beside it need the line */
    char bar[BAR_CELLS + 1];
    double now_s = nd_monotonic_s();
    if (state.shown && step < state.steps && now_s - state.shown_s < redraw_s) {
        return;
    }
    fill_bar(bar, CELLS, state.steps > 0 ? (int)(100 * step / state.steps) : 100);
    char line[256];
    if (step == 0) {
        (void)snprintf(line, sizeof line, "%s 0/%" PRId64 " [%s]", state.what, state.steps, bar);
    } else {
        double left_s = (now_s - state.start_s) / (double)step * (double)(state.steps - step);
        (void)snprintf(line, sizeof line, "%s %" PRId64 "/%" PRId64 " [%s] loss %.4f, %s tokens/s, %s left", state.what,
                       step, state.steps, bar, loss, nd_format_number(state.tokens_per_step / seconds).text,
                       nd_format_seconds(left_s).text);
    }
    fprintf(stderr, "\r%-*.*s", LINE_COLUMNS - 1, LINE_COLUMNS - 1, line);
    (void)fflush(stderr);
    state.shown = true;
    state.shown_s = now_s;
}

void nd_progress_start_run(const char *what, int64_t steps, double tokens_per_step, bool lines)
{
    answer_interrupts();
    state.what = what;
    state.steps = steps;
    state.tokens_per_step = tokens_per_step;
    state.lines = lines;
    if (state.on_terminal && !lines) {
        draw_run(0, 0.0, 0.0);
    }
}

bool nd_progress_step(int64_t step, double loss, double grad_norm, double seconds)
{
    if (state.lines) {
        fprintf(stderr, "%s %" PRId64 "/%" PRId64 ": loss %.6f, gradient norm %.6g, %s, %s tokens/s\n", state.what,
                step, state.steps, loss, grad_norm, nd_format_seconds(seconds).text,
                nd_format_number(state.tokens_per_step / seconds).text);
    } else if (state.on_terminal) {
        draw_run(step, loss, seconds);
    }
    return interrupted == 0;
}

bool nd_progress_interrupted(void)
{
    return interrupted != 0;
}
