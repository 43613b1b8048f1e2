// SPDX-License-Identifier: Apache-2.0
// What of a text is well-formed UTF-8 that may be shown as it is.
#ifndef TK_LANG_UTF8_H
#define TK_LANG_UTF8_H

#include <stddef.h>
#include <stdint.h>

// The bytes (1 to 4) of the well-formed UTF-8 character at s, of n bytes left; 0 where there is
// none. The character itself goes to *out where that is not NULL.
unsigned tk_utf8_at(const char *s, size_t n, uint32_t *out);

// The same, but 0 too for what would not show as itself: control characters (a tab included) and
// the characters that change the direction of the text round them.
unsigned tk_utf8_printable(const char *s, size_t n);

#endif
