// SPDX-License-Identifier: Apache-2.0
// The line that a print makes, for the executor and for what a GPU leaves behind.
//
// It is "[3, 0] text": the program's place in the grid, where there is one, then the text with a
// value for each {}; values that the text has no place for follow it. Numbers have as few digits as
// tell them apart from their neighbours in their type, but whole ones below 10^7 have all of
// theirs. Tiles are nested lists; of a tile of more than TK_SHOW_ALL elements, axes longer than 2 *
// TK_SHOW_EDGE show their first and last TK_SHOW_EDGE entries.
#ifndef TK_IR_SHOW_H
#define TK_IR_SHOW_H

#include "lang/num.h"
#include "lang/type.h"

enum { TK_SHOW_ALL = 256, TK_SHOW_EDGE = 3 };

typedef struct tk_show_value {
    tk_dtype dtype;
    uint32_t rank;
    int64_t dim[TK_MAX_RANK];
    int64_t stride[TK_MAX_RANK]; // bytes
    bool packed;                 // memory has only the entries that are shown, as the axis of a
                                 // tile of that extent would
} tk_show_value;

// Whether only the ends of the axis are shown, and how many entries that makes.
bool tk_show_is_cut(uint32_t rank, const int64_t *dim, uint32_t axis);
int64_t tk_show_extent(uint32_t rank, const int64_t *dim, uint32_t axis);

// A line in the making. It is cut off rather than overrun.
typedef struct tk_show {
    char *at;
    size_t n, room;
    const char *text; // what is left of it
} tk_show;

// Bytes that a line of this text takes at most, without its values; and a value.
size_t tk_show_room(const char *text);
size_t tk_show_value_room(const tk_show_value *v);

// begin, the values in order, end: which terminates the line.
tk_show tk_show_begin(char *at, size_t room, const char *text, uint32_t ngrid,
                      const int64_t *program);
void tk_show_next(tk_show *s, const tk_show_value *v, const unsigned char *memory);
void tk_show_end(tk_show *s);

#endif
