#include "cli/progress.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/pool.h"
#include "core/text.h"

enum { BAR_CELLS = 30, SHOW_AFTER_S = 2 };

/* One per process, since signals are. */
static volatile sig_atomic_t interrupted;

typedef struct progress {
    double start_s;
    bool on_terminal, shown;
    int percent; /* shown last */
} progress;
static progress state;

static void interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static void draw(int percent)
{
    char bar[BAR_CELLS + 1];
    for (int i = 0; i < BAR_CELLS; i++) {
        bar[i] = i * 100 < percent * BAR_CELLS ? '#' : '.';
    }
    bar[BAR_CELLS] = '\0';
    fprintf(stderr, "\rsearching [%s] %3d %%, Ctrl-C shows what is known", bar, percent);
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

nd_status nd_progress_start(const nd_options *options, nd_search_control *out, nd_error *err)
{
    int64_t threads = 0;
    if (nd_options_has(options, ND_OPTION_THREADS)) {
        ND_TRY(nd_text_int(options->value[ND_OPTION_THREADS], "--threads", 1, ND_THREADS_MAX, &threads, err));
    }
    /* SA_RESETHAND: the second one has its usual effect */
    struct sigaction stop = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigaction(SIGINT, &stop, NULL);
    state.start_s = nd_monotonic_s();
    state.on_terminal = isatty(STDERR_FILENO) != 0;
    *out = (nd_search_control){.threads = (int32_t)threads, .progress = go_on};
    return ND_OK;
}

void nd_progress_end(void)
{
    if (state.shown) {
        fprintf(stderr, "\r%*s\r", BAR_CELLS + 50, "");
        (void)fflush(stderr);
        state.shown = false;
    }
}
