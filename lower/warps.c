// SPDX-License-Identifier: Apache-2.0
// How many warps run a program whose author does not say.
//
// What a thread costs whatever its part of a tile, such as the steps of a reduction through lanes
// and warps, should be little beside that part, which must fit its registers. So a thread has 32
// elements of the largest tile where threads work together, 64 of one of more than 10240 where a
// program reads but one of its own, 16 where each works for itself; up to a fourth more where
// threads work together, as tiles need not be powers of two until they are padded. Of elements
// wider than 2 bytes it has as many bytes as that is of 2. Of a product, whose operands and
// accumulator are there at the same time, it has 16 elements of any type. bench/NOTES.md has what
// it is worth.
//
// A program that reads again what a loop of it read before lives from the shared memory and the
// caches, which all that run at once share. So few of them should, with many threads each: there
// may be twice as many warps as else.
#include "lower/lower.h"
#include "lower/pad.h"
#include "lower/walk.h"

enum { TOGETHER = 32, ALONE = 16, BYTES = 2, LANES = 32, MAX_WARPS = 16, MOST_TWICE = 32 };
enum { LARGE = 10240 }; // elements
enum { MORE = 4 };      // a fourth more is no more

typedef struct extent {
    int64_t elements, bytes; // of the largest tile, of the largest that is loaded or stored
    unsigned streams;        // tiles that are loaded, but those that all programs read
    bool dot, together;
} extent;

static int64_t greater(int64_t a, int64_t b) { return a > b ? a : b; }

// Elements once the extents are powers of two.
static int64_t elements(const tk_type *t) {
    int64_t n = 1;
    for (unsigned i = 0; t->kind == TK_T_VALUE && i < t->rank; i++) {
        n *= tk_pad_extent(t->dim[i]);
    }
    return n;
}

static void moved(extent *x, const tk_type *t) {
    x->bytes = greater(x->bytes, elements(t) * (int64_t)tk_dtype_size(t->dtype));
}

static bool works_together(tk_opcode code) {
    switch ((int)code) { // of many
    case TK_OP_PERMUTE:
    case TK_OP_GATHER:
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
    case TK_OP_REDUCE_FN:
    case TK_OP_SCAN:
    case TK_OP_SCAN_FN:
    case TK_OP_SORT:
    case TK_OP_TOPK:
    case TK_OP_HISTOGRAM:
        return true;
    }
    return false;
}

static void largest(void *user, tk_op *op) {
    extent *x = user;
    const tk_func *f = op->in->func;
    x->dot = x->dot || op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED;
    x->together = x->together || works_together(op->code);
    for (uint32_t i = 0; i < op->nres; i++) {
        x->elements = greater(x->elements, elements(tk_value_type(f, op->res[i])));
    }
    if (op->code == TK_OP_LOAD) {
        x->streams += tk_value_type(f, op->res[0])->rank > 0 && !tk_is_common_load(f, op);
        moved(x, tk_value_type(f, op->res[0]));
    } else if (op->code == TK_OP_STORE) {
        moved(x, tk_value_type(f, op->opnd[op->nopnd - (op->at.masked ? 2 : 1)]));
    }
}

// What pads the largest tile is nobody's work.
static void leave_padding(extent *x, const tk_module *m) {
    if (m->live > 0 && m->live < x->elements && m->packed <= 1 && !x->dot) {
        x->bytes = x->bytes * m->live / x->elements;
        x->elements = m->live;
    }
}

unsigned tk_default_warps(const tk_func *f) {
    extent x = {.elements = 1};
    tk_func_walk((tk_func *)(uintptr_t)f, largest, &x);
    leave_padding(&x, f->module);
    const bool twice = !x.dot && tk_reads_twice(f), together = x.together && !x.dot;
    const bool large = x.elements > LARGE && x.streams <= 1 && !twice;
    const int64_t its = !together ? ALONE : large ? 2 * TOGETHER : TOGETHER;
    const int64_t each = its * LANES + (together ? its * LANES / MORE : 0);
    unsigned warps = 1;
    while (warps < (twice ? MOST_TWICE : MAX_WARPS) &&
           (warps * each < x.elements || (!x.dot && warps * each * BYTES < x.bytes))) {
        warps *= 2;
    }
    return warps;
}

unsigned tk_log_warps(const tk_func *f) {
    const int64_t said = f->module->attrs.warps, warps = said > 0 ? said : tk_default_warps(f);
    unsigned n = 0;
    while ((int64_t)1 << n < warps) {
        n++;
    }
    return n;
}
