#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command.h"
#include "core/text.h"

enum { WIDTH_MIN = 60, WIDTH_MAX = 400 };

nd_status nd_command_format(const nd_options *options, nd_report_format *out, nd_error *err)
{
    bool json = nd_options_has(options, ND_OPTION_JSON);
    bool csv = nd_options_has(options, ND_OPTION_CSV);
    if (json && csv) {
        return nd_fail(err, ND_EINVAL, "--json and --csv exclude each other; give one");
    }
    *out = json ? ND_REPORT_JSON : csv ? ND_REPORT_CSV : ND_REPORT_TEXT;
    return ND_OK;
}

static int32_t terminal_width(void)
{
    const char *columns = getenv("COLUMNS");
    int64_t width = 0;
    if (columns != NULL && nd_text_int(columns, "COLUMNS", WIDTH_MIN, WIDTH_MAX, &width, NULL) == ND_OK) {
        return (int32_t)width;
    }
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col > WIDTH_MAX ? WIDTH_MAX : (int32_t)size.ws_col;
    }
    return ND_REPORT_WIDTH_DEFAULT;
}

nd_report_style nd_command_style(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    bool dumb = term == NULL || strcmp(term, "dumb") == 0;
    bool color = isatty(STDOUT_FILENO) && !dumb && (no_color == NULL || no_color[0] == '\0');
    return (nd_report_style){.width = terminal_width(), .color = color};
}
