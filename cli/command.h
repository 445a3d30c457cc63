/** What main() and the commands agree on. */
#ifndef ND_CLI_COMMAND_H
#define ND_CLI_COMMAND_H

#include "cli/options.h"
#include "reports/list_report.h"

/** Exit status of the program; docs/CLI.md. */
enum { ND_EXIT_DONE = 0, ND_EXIT_NO = 1, ND_EXIT_USAGE = 2, ND_EXIT_FAILED = 3, ND_EXIT_INTERRUPTED = 130 };

typedef struct nd_command {
    const nd_command_syntax *syntax;
    /** \param[out] exit_status  set on success; ND_EXIT_FAILED by a command that failed in what it did, not because of
     *                          what it was given
     * \return a failure becomes one line on stderr and exit status 2, or that 3 */
    nd_status (*run)(const nd_options *options, int *exit_status, nd_error *err);
} nd_command;

extern const nd_command nd_command_suggest;
extern const nd_command nd_command_estimate;
extern const nd_command nd_command_why;
extern const nd_command nd_command_max;
extern const nd_command nd_command_sweep;
extern const nd_command nd_command_run;
extern const nd_command nd_command_list;
extern const nd_command nd_command_calibrate;
extern const nd_command nd_command_validate;

/** --json and --csv; both at once are refused. */
nd_status nd_command_format(const nd_options *options, nd_report_format *out, nd_error *err) ND_NODISCARD;

/** Width and colour of stdout: COLUMNS, else the terminal, else 80; colour on a terminal without NO_COLOR. */
nd_report_style nd_command_style(void);

#endif
