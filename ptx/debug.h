// SPDX-License-Identifier: Apache-2.0
// What a kernel compiled for debugging leaves behind for the host: failed asserts and assumes, and
// what it prints.
//
// Such a kernel has one parameter more (TK_SLOT_DEBUG): the address of a block of memory that
// begins with a tk_debug_head; records follow it. A record is a tk_debug_record, then the values of
// the print, each aligned to its elements: of a tile the entries that are shown (ir/show.h),
// row-major and without gaps. A print takes its record's bytes from `used` by one atomic addition,
// so records of one program stand in the order in which it made them.
//
// A claim that fails ends its program: the rest goes on, and the least word of all that failed
// stays.
#ifndef TK_PTX_DEBUG_H
#define TK_PTX_DEBUG_H

#include "ptx/image.h"

// What the host writes before a launch is in brackets.
typedef struct tk_debug_head {
    uint64_t fault; // [all ones: none] tk_debug_fault of the first program that failed
    uint64_t used;  // [0] bytes asked for
    uint64_t end;   // [room] where the first record stands that did not fit
    uint64_t lost;  // [0] records that did not fit
    uint64_t room;  // [bytes] for records
    uint64_t unused[3];
} tk_debug_head;

typedef struct tk_debug_record {
    uint32_t site;
    uint32_t program; // its number, axis 0 fastest
} tk_debug_record;

// A fault in one word: program, site, element of the condition in row-major order.
enum { TK_DEBUG_ELEMENT_BITS = 18, TK_DEBUG_SITE_BITS = 15, TK_DEBUG_RECORD_ALIGN = 8 };
#define TK_DEBUG_NO_FAULT UINT64_MAX

// The debug ops of a kernel in the order of the text. Ops in functions that combine elements have
// none: they run an unknown number of times on elements that need not be a program's.
typedef struct tk_debug_sites {
    TK_VEC(tk_debug_site) list;
    TK_VEC(const tk_op *) op; // beside each
    bool claims;              // asserts or assumes are among them
} tk_debug_sites;
tk_debug_sites tk_debug_sites_of(tk_arena *arena, const tk_func *f);

#endif
