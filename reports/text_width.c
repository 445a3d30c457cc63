#include "reports/text_width.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* The ranges that model, cluster and file names can plausibly hold; Unicode Standard Annex 11 (wide and full
 * width) and the general category Mn (combining). */
static const code_range zero_width[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f}, {0x0e34, 0x0e3a},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};
static const code_range double_width[] = {
    {0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

static bool in_ranges(uint32_t code, const code_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

static int32_t code_width(uint32_t code)
{
    if (in_ranges(code, zero_width, sizeof zero_width / sizeof zero_width[0])) {
        return 0;
    }
    return in_ranges(code, double_width, sizeof double_width / sizeof double_width[0]) ? 2 : 1;
}

/* Decode one character; a byte that starts no valid sequence is a character of its own. */
static size_t decode(const unsigned char *s, uint32_t *code)
{
    size_t length = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
    if (length <= 1) {
        *code = s[0];
        return 1;
    }
    uint32_t value = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) { /* the terminator ends here too */
            *code = s[0];
            return 1;
        }
        value = value << 6 | (s[i] & 0x3fu);
    }
    *code = value;
    return length;
}

int32_t nd_text_width(const char *text)
{
    int32_t width = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s != '\0';) {
        uint32_t code = 0;
        s += decode(s, &code);
        width += code_width(code);
    }
    return width;
}

size_t nd_text_prefix(const char *text, int32_t columns)
{
    const unsigned char *s = (const unsigned char *)text;
    int32_t width = 0;
    while (*s != '\0') {
        uint32_t code = 0;
        size_t bytes = decode(s, &code);
        width += code_width(code);
        if (width > columns) {
            break;
        }
        s += bytes;
    }
    return (size_t)((const char *)s - text);
}

/* After a blank, or after a comma that does not group the digits of a number. */
static bool can_break_before(const char *text, size_t end)
{
    bool in_number = end > 1 && isdigit((unsigned char)text[end]) && isdigit((unsigned char)text[end - 2]);
    return text[end - 1] == ' ' || (text[end - 1] == ',' && !in_number);
}

/* Where the word that ends before `end` begins. */
static size_t word_start(const char *text, size_t end)
{
    while (end > 0 && text[end - 1] != ' ') {
        end--;
    }
    return end;
}

/* Whether a break before `end` would part what people copy: the keys of a layout, or an option from its value. */
static bool parts_a_copy(const char *text, size_t end)
{
    if (text[end - 1] == ',') {
        size_t start = word_start(text, end);
        return memchr(text + start, '=', strcspn(text + start, " ")) != NULL;
    }
    size_t blank = end;
    while (blank > 0 && text[blank - 1] == ' ') {
        blank--;
    }
    return strncmp(text + word_start(text, blank), "--", 2) == 0;
}

/* Without the blanks before `end`. */
static size_t trimmed(const char *text, size_t end)
{
    while (end > 0 && text[end - 1] == ' ') {
        end--;
    }
    return end;
}

size_t nd_text_line(const char *text, int32_t columns)
{
    size_t bytes = nd_text_prefix(text, columns);
    if (text[bytes] == '\0' || text[bytes] == ' ') {
        return bytes;
    }
    size_t end = bytes;
    while (end > 0 && !can_break_before(text, end)) {
        end--;
    }
    end = trimmed(text, end);
    if (end > 0) {
        return end;
    }
    uint32_t code = 0;
    return bytes > 0 ? bytes : decode((const unsigned char *)text, &code);
}

size_t nd_text_copyable_line(const char *text, int32_t columns)
{
    size_t bytes = nd_text_prefix(text, columns);
    if (text[bytes] == '\0') {
        return bytes;
    }
    size_t end = text[bytes] == ' ' ? bytes + 1 : bytes;
    while (end > 0 && !(can_break_before(text, end) && !parts_a_copy(text, end))) {
        end--;
    }
    if (trimmed(text, end) > 0) {
        return trimmed(text, end);
    }
    for (end = bytes; text[end] != '\0'; end++) { /* too wide for any line: to the first break behind it */
        if (end > 0 && can_break_before(text, end) && !parts_a_copy(text, end) && trimmed(text, end) > 0) {
            break;
        }
    }
    bool copied = memchr(text, '=', end) != NULL;
    return copied ? trimmed(text, end) : nd_text_line(text, columns);
}
