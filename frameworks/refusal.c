#include "frameworks/refusal.h"

#include <stdarg.h>
#include <stdio.h>

bool nd_refuse(const char **rule, nd_refusal *refusal, const char *id, const char *format, ...)
{
    if (rule != NULL) {
        *rule = id;
    }
    if (refusal != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(refusal->message, sizeof refusal->message, format, args);
        va_end(args);
        refusal->rule = id;
        refusal->nearest[0] = '\0';
    }
    return false;
}

bool nd_refuse_nearest(nd_refusal *refusal, const char *format, ...)
{
    if (refusal != NULL) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(refusal->nearest, sizeof refusal->nearest, format, args);
        va_end(args);
    }
    return false;
}
