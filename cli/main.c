/* Finds the command, runs it, turns its result into an exit status. The only file that ends the process. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "core/text.h"

static const nd_command *const commands[] = {&nd_command_suggest,   &nd_command_estimate, &nd_command_why,
                                             &nd_command_max,       &nd_command_sweep,    &nd_command_list,
                                             &nd_command_calibrate, &nd_command_validate, &nd_command_run};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

/* Commands of the design that this version does not have, and what comes nearest to each. */
typedef struct absent_command {
    const char *name;
    const char *instead;
} absent_command;
static const absent_command absent_commands[] = {
    {"check", "ndplan estimate --framework F --layout L"},
    {"export", "ndplan suggest --framework F"},
    {"diagram", "ndplan estimate --layout L"},
    {"topology", "ndplan list clusters"},
};

static void print_help(FILE *stream)
{
    fputs("Example:\n  ndplan suggest --model llama-3.1-8b --cluster 2x8xh100\n\n"
          "ndplan finds, explains and prices parallel layouts for training large models.\n\n"
          "Usage: ndplan COMMAND [options]\n\n",
          stream);
    for (size_t i = 0; i < COMMANDS; i++) {
        const nd_command_syntax *syntax = commands[i]->syntax;
        int first_line = (int)strcspn(syntax->summary, ":\n");
        fprintf(stream, "  %-10s %.*s\n", syntax->name, first_line, syntax->summary);
    }
    fputs("  help       Show what a command does: ndplan help suggest\n\n"
          "  --version  Print the version\n"
          "  --help     This text\n\n"
          "Exit status: 0 done, 1 the answer is no (nothing fits, not legal, a bound is\nmissed), 2 usage or input "
          "error, 3 a run failed.\n",
          stream);
}

static const nd_command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->syntax->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static nd_status fail_unknown_command(const char *name, nd_error *err)
{
    for (size_t i = 0; i < sizeof absent_commands / sizeof absent_commands[0]; i++) {
        if (strcmp(absent_commands[i].name, name) == 0) {
            return nd_fail(err, ND_EUNSUPPORTED,
                           "command '%s' is not available in this version (" NDPLAN_VERSION "); nearest: `%s`", name,
                           absent_commands[i].instead);
        }
    }
    const char *names[COMMANDS + 1];
    for (size_t i = 0; i < COMMANDS; i++) {
        names[i] = commands[i]->syntax->name;
    }
    names[COMMANDS] = "help";
    const char *nearest = nd_text_nearest(name, names, COMMANDS + 1);
    if (nearest != NULL) {
        return nd_fail(err, ND_ENOTFOUND, "unknown command '%s'; did you mean '%s'?", name, nearest);
    }
    return nd_fail(err, ND_ENOTFOUND, "unknown command '%s'; `ndplan --help` lists the commands", name);
}

static nd_status run_help(int argc, char *const *argv, nd_error *err)
{
    if (argc == 0) {
        print_help(stdout);
        return ND_OK;
    }
    if (argc > 1) {
        return nd_fail(err, ND_EINVAL, "unexpected argument '%s'; `ndplan help COMMAND` takes one", argv[1]);
    }
    const nd_command *command = find_command(argv[0]);
    if (command == NULL) {
        return fail_unknown_command(argv[0], err);
    }
    nd_options_help(stdout, command->syntax);
    return ND_OK;
}

static nd_status run_command(const nd_command *command, int argc, char *const *argv, int *exit_status, nd_error *err)
{
    nd_options options;
    ND_TRY(nd_options_parse(command->syntax, argc, argv, &options, err));
    if (nd_options_has(&options, ND_OPTION_HELP)) {
        nd_options_help(stdout, command->syntax);
        return ND_OK;
    }
    return command->run(&options, exit_status, err);
}

static nd_status dispatch(int argc, char *const *argv, int *exit_status, nd_error *err)
{
    if (argc < 2) {
        return nd_fail(
            err, ND_EINVAL,
            "a command is missing: suggest, estimate, why, max or sweep, for example; `ndplan --help` shows all");
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_help(stdout);
        return ND_OK;
    }
    if (strcmp(name, "--version") == 0) {
        puts("ndplan " NDPLAN_VERSION);
        return ND_OK;
    }
    if (strcmp(name, "help") == 0) {
        return run_help(argc - 2, argv + 2, err);
    }
    const nd_command *command = find_command(name);
    if (command != NULL) {
        return run_command(command, argc - 2, argv + 2, exit_status, err);
    }
    if (name[0] == '-') {
        return nd_fail(err, ND_EINVAL, "option '%s' before a command; write `ndplan COMMAND %s`", name, name);
    }
    return fail_unknown_command(name, err);
}

int main(int argc, char **argv)
{
    /* A reader that goes away must show up as a failed write, not kill the process. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);

    nd_error err = {0};
    int exit_status = ND_EXIT_DONE;
    nd_status status = dispatch(argc, argv, &exit_status, &err);
    if (status != ND_OK) {
        fprintf(stderr, "ndplan: %s\n", err.message);
        exit_status = status == ND_EINTERRUPTED       ? ND_EXIT_INTERRUPTED
                      : exit_status == ND_EXIT_FAILED ? ND_EXIT_FAILED
                                                      : ND_EXIT_USAGE;
    }
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (fclose(stdout) != 0 || failed) {
        fprintf(stderr, "ndplan: cannot write the output: %s\n", errno != 0 ? strerror(errno) : "write error");
        exit_status = ND_EXIT_USAGE;
    }
    return exit_status;
}
