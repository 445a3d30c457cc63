#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const status_texts[ND_STATUS_COUNT] = {
#define ND_STATUS_TEXT(name, text) [name] = (text),
    ND_STATUS_LIST(ND_STATUS_TEXT)
#undef ND_STATUS_TEXT
};

const char *nd_status_text(nd_status status)
{
    if ((int)status < 0 || status >= ND_STATUS_COUNT) {
        return "unknown status";
    }
    return status_texts[status];
}

/* User text can end up in a message; a terminal must not obey what it contains. */
static void replace_control_bytes(char *text)
{
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
}

nd_status(nd_fail)(nd_error *err, nd_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        err->status = status;
        (void)vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
        replace_control_bytes(err->message);
    }
    return status;
}
