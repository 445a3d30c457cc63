/** How many terminal columns a UTF-8 text takes. Independent of the locale. */
#ifndef ND_REPORTS_TEXT_WIDTH_H
#define ND_REPORTS_TEXT_WIDTH_H

#include <stddef.h>
#include <stdint.h>

#include "core/decls.h"

ND_BEGIN_DECLS

/** Columns of `text`: combining marks count 0, East Asian wide characters 2, a byte that is no UTF-8 counts 1. */
int32_t nd_text_width(const char *text);

/** Bytes of the longest prefix of `text` that takes at most `columns` columns; never splits a character. */
size_t nd_text_prefix(const char *text, int32_t columns);

/** Bytes of the prefix to print on one line of at most `columns` columns: breaks after a blank or a comma
 * where there is one, and takes at least one character. The blanks at the break are not part of it. */
size_t nd_text_line(const char *text, int32_t columns);

/** The same for prose with parts to copy: a list of KEY=VALUE and an option with its value stay in one line, which is
 * then wider than `columns` when they are. */
size_t nd_text_copyable_line(const char *text, int32_t columns);

ND_END_DECLS

#endif
