#include "core/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

nd_json_writer nd_json_writer_start(FILE *stream)
{
    return (nd_json_writer){.stream = stream};
}

void nd_json_writer_finish(nd_json_writer *writer)
{
    assert(writer->depth == 0 && !writer->after_key);
    (void)fputc('\n', writer->stream);
}

static void new_line(const nd_json_writer *writer)
{
    (void)fprintf(writer->stream, "\n%*s", 2 * writer->depth, "");
}

/* What stands before a key or an element: the comma of the one before, a line break, the indentation. */
static void separate(nd_json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0) {
        return;
    }
    if (writer->has_members[writer->depth - 1]) {
        (void)fputc(',', writer->stream);
    }
    writer->has_members[writer->depth - 1] = true;
    new_line(writer);
}

static void open_bracket(nd_json_writer *writer, char bracket)
{
    assert(writer->depth < ND_JSON_WRITER_DEPTH_MAX);
    separate(writer);
    (void)fputc(bracket, writer->stream);
    writer->has_members[writer->depth++] = false;
}

static void close_bracket(nd_json_writer *writer, char bracket)
{
    assert(writer->depth > 0 && !writer->after_key);
    writer->depth--;
    if (writer->has_members[writer->depth]) {
        new_line(writer);
    }
    (void)fputc(bracket, writer->stream);
}

void nd_json_begin_object(nd_json_writer *writer)
{
    open_bracket(writer, '{');
}

void nd_json_end_object(nd_json_writer *writer)
{
    close_bracket(writer, '}');
}

void nd_json_begin_array(nd_json_writer *writer)
{
    open_bracket(writer, '[');
}

void nd_json_end_array(nd_json_writer *writer)
{
    close_bracket(writer, ']');
}

/* Bytes of the well-formed UTF-8 character at `text`, or 0: no overlong forms, surrogates or values over U+10FFFF. */
static size_t utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xC2 ? 0 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : 4;
    if (text[0] > 0xF4) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) { /* also stops at the terminator */
            return 0;
        }
    }
    bool bad = (text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
               (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F);
    return bad ? 0 : length;
}

static void put_ascii(FILE *stream, unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        (void)fprintf(stream, "\\%c", c);
        break;
    case '\n':
        (void)fputs("\\n", stream);
        break;
    case '\t':
        (void)fputs("\\t", stream);
        break;
    case '\r':
        (void)fputs("\\r", stream);
        break;
    default:
        if (c < 0x20 || c == 0x7F) { /* DEL is legal JSON, but no terminal should get it */
            (void)fprintf(stream, "\\u%04x", (unsigned)c);
        } else {
            (void)fputc(c, stream);
        }
        break;
    }
}

static void put_quoted(FILE *stream, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    (void)fputc('"', stream);
    while (*at != '\0') {
        size_t length = utf8_length(at);
        if (length == 0) {
            (void)fputs("\xEF\xBF\xBD", stream);
            at++;
        } else if (length == 1) {
            put_ascii(stream, *at++);
        } else {
            (void)fwrite(at, 1, length, stream);
            at += length;
        }
    }
    (void)fputc('"', stream);
}

void nd_json_key(nd_json_writer *writer, const char *key)
{
    assert(writer->depth > 0 && !writer->after_key);
    separate(writer);
    put_quoted(writer->stream, key);
    (void)fputs(": ", writer->stream);
    writer->after_key = true;
}

void nd_json_string(nd_json_writer *writer, const char *text)
{
    separate(writer);
    put_quoted(writer->stream, text);
}

void nd_json_int(nd_json_writer *writer, int64_t value)
{
    separate(writer);
    (void)fprintf(writer->stream, "%" PRId64, value);
}

void nd_json_double(nd_json_writer *writer, double value)
{
    if (!isfinite(value)) {
        nd_json_null(writer);
        return;
    }
    char text[40];
    for (int digits = 6; digits <= 17; digits++) { /* 17 always come back as the same double */
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        double back = strtod(text, NULL);
        if (!(back < value) && !(back > value)) {
            break;
        }
    }
    for (char *c = text; *c != '\0'; c++) { /* the locale of a program that links us may write 0,5 */
        if (strchr("0123456789+-e", *c) == NULL) {
            *c = '.';
        }
    }
    separate(writer);
    (void)fputs(text, writer->stream);
}

void nd_json_bool(nd_json_writer *writer, bool value)
{
    separate(writer);
    (void)fputs(value ? "true" : "false", writer->stream);
}

void nd_json_null(nd_json_writer *writer)
{
    separate(writer);
    (void)fputs("null", writer->stream);
}

void nd_json_put_string(nd_json_writer *writer, const char *key, const char *text)
{
    nd_json_key(writer, key);
    nd_json_string(writer, text);
}

void nd_json_put_int(nd_json_writer *writer, const char *key, int64_t value)
{
    nd_json_key(writer, key);
    nd_json_int(writer, value);
}

void nd_json_put_double(nd_json_writer *writer, const char *key, double value)
{
    nd_json_key(writer, key);
    nd_json_double(writer, value);
}

void nd_json_put_bool(nd_json_writer *writer, const char *key, bool value)
{
    nd_json_key(writer, key);
    nd_json_bool(writer, value);
}
