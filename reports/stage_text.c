#include "reports/stage_text.h"

#include <stdio.h>

void nd_stage_runs_text(const nd_stage_runs *runs, char *buffer, size_t buffer_bytes)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (int32_t i = 0; i < runs->count && used < buffer_bytes; i++) {
        int length = snprintf(buffer + used, buffer_bytes - used, "%s%d", i == 0 ? "" : ",", (int)runs->runs[i].layers);
        used += length > 0 ? (size_t)length : 0;
        if (runs->runs[i].stages > 1 && used < buffer_bytes) {
            length = snprintf(buffer + used, buffer_bytes - used, " x%d", (int)runs->runs[i].stages);
            used += length > 0 ? (size_t)length : 0;
        }
    }
    if (runs->more && used < buffer_bytes) {
        (void)snprintf(buffer + used, buffer_bytes - used, ",...");
    }
}
