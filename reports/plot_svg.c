/* Text, markers and colours of the charts. */
#include <string.h>

#include "reports/plot_internal.h"
#include "reports/text_width.h"

enum { COLOURS = 7, MARKS = 16, DASHES = 6 };

/* Okabe and Ito's palette without yellow and black, the pale ones darkened to show on white; lighter on dark. */
static const char *const colours[COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#b65c93",
                                             "#a87400", "#3a9fd8", "#666666"};
static const char *const dark_colours[COLOURS] = {"#4aa3e0", "#ff8c42", "#2fc79a", "#e29ac6",
                                                  "#f0c040", "#a6dcff", "#b8b8b8"};

/* Path around the centre, from which it starts. Filled first, so that few series look plain. */
static const struct {
    const char *path;
    bool filled;
} marks[MARKS] = {
    {"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", true},  /* circle */
    {"m0 -4l4 7h-8z", true},                                  /* triangle */
    {"m-3 -3h6v6h-6z", true},                                 /* square */
    {"m-4 0h8m-4 -4v8", false},                               /* plus */
    {"m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z", true},            /* diamond */
    {"m-3.2 -3.2l6.4 6.4m0 -6.4l-6.4 6.4", false},            /* cross */
    {"m0 4l4 -7h-8z", true},                                  /* triangle, down */
    {"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", false}, /* the same, hollow */
    {"m-3 -3h6v6h-6z", false},
    {"m0 -4l4 7h-8z", false},
    {"m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z", false},
    {"m-4 0h8m-4 -4v8m-3 -7l6 6m0 -6l-6 6", false}, /* asterisk */
    {"m0 4l4 -7h-8z", false},
    {"m-3.5 -4h7l-7 8h7z", true}, /* hourglass */
    {"m-3.5 -4h7l-7 8h7z", false},
    {"m-4 -1.5h8m0 3h-8", false}, /* equals sign */
};

static const char *const dashes[DASHES] = {"",
                                           " stroke-dasharray='8 4'",
                                           " stroke-dasharray='2 3'",
                                           " stroke-dasharray='10 3 2 3'",
                                           " stroke-dasharray='14 4'",
                                           " stroke-dasharray='5 2 1 2 1 2'"};

int32_t nd_plot_colour(int32_t index)
{
    return index % COLOURS;
}

const char *nd_plot_dash(int32_t index)
{
    return dashes[index % DASHES];
}

const char *nd_plot_mark_paint(int32_t index)
{
    return marks[index % MARKS].filled ? "fill='currentColor' stroke='none'"
                                       : "fill='none' stroke='currentColor' stroke-width='1.4'";
}

void nd_plot_mark(FILE *out, int32_t index, double x, double y)
{
    fprintf(out, "M%.1f %.1f%s\n", x, y, marks[index % MARKS].path);
}

static void theme(FILE *out, const char *background, const char *text, const char *line, const char *grid,
                  const char *const series[COLOURS])
{
    fprintf(out, ".nd-bg{fill:%s}.nd-text{fill:%s}.nd-line{stroke:%s}.nd-grid{stroke:%s}.nd-band{fill:%s}", background,
            text, line, grid, line);
    for (int i = 0; i < COLOURS; i++) {
        fprintf(out, ".nd-c%d{color:%s}", i, series[i]);
    }
}

void nd_plot_style(FILE *out)
{
    fputs("<style>", out);
    theme(out, "#ffffff", "#222222", "#555555", "#e4e4e4", colours);
    fputs("\n@media (prefers-color-scheme: dark){", out);
    theme(out, "#15181c", "#e2e2e2", "#a0a0a0", "#33383e", dark_colours);
    fputs("}</style>\n", out);
}

/* Bytes of the character at `s` that XML 1.0 may hold, or 0: no UTF-8, a surrogate, a noncharacter. */
static size_t character_bytes(const unsigned char *s, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (length <= 1 || length > left) {
        return length <= left ? length : 0;
    }
    uint32_t code = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (s[i] & 0x3fu);
    }
    bool allowed = code >= least[length] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) &&
                   (code & 0xfffe) != 0xfffe && code >= 0xa0; /* 0x80 to 0x9f are control characters */
    return allowed ? length : 0;
}

static void put_character(FILE *out, const char *s, size_t bytes)
{
    switch (bytes == 1 ? *s : 'a') {
    case '&':
        fputs("&amp;", out);
        break;
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '"':
        fputs("&quot;", out);
        break;
    case '\'':
        fputs("&apos;", out);
        break;
    default:
        if (bytes == 0) {
            fputs("\xEF\xBF\xBD", out); /* U+FFFD stands for what is no character */
        } else if (bytes == 1 && ((unsigned char)*s < 0x20 || *s == 0x7f)) {
            fputc(' ', out);
        } else {
            (void)fwrite(s, 1, bytes, out);
        }
        break;
    }
}

void nd_plot_text(FILE *out, const char *text, int32_t columns)
{
    size_t length = nd_text_prefix(text, columns);
    size_t bytes_max = 8 * (size_t)columns; /* combining marks take no column, but not for ever */
    bool cut = text[length] != '\0' || length > bytes_max;
    length = cut ? nd_text_prefix(text, columns - 3) : length;
    for (length = length < bytes_max ? length : bytes_max; cut && length > 0 && (text[length] & 0xc0) == 0x80;) {
        length--;
    }
    for (size_t i = 0; i < length;) {
        size_t bytes = character_bytes((const unsigned char *)text + i, length - i);
        put_character(out, text + i, bytes);
        i += bytes > 0 ? bytes : 1;
    }
    fputs(cut ? "..." : "", out);
}
