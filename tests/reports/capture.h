/** What a report printed, as text. */
#ifndef ND_TESTS_REPORTS_CAPTURE_H
#define ND_TESTS_REPORTS_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>

typedef struct capture {
    FILE *stream;
    char *text; /* valid after capture_end() */
    size_t length;
} capture;

static inline void capture_begin(capture *c)
{
    c->text = NULL;
    c->length = 0;
    c->stream = open_memstream(&c->text, &c->length);
    if (c->stream == NULL) {
        abort();
    }
}

static inline const char *capture_end(capture *c)
{
    (void)fclose(c->stream);
    return c->text;
}

static inline void capture_free(capture *c)
{
    free(c->text);
}

#endif
