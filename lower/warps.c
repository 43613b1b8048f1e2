// SPDX-License-Identifier: Apache-2.0
// How many warps run a program whose author does not say.
#include "lower/lower.h"
#include "lower/pad.h"

enum { ELEMENTS_A_THREAD = 16, LANES = 32, MAX_WARPS = 16 };

// Elements once the extents are powers of two.
static int64_t elements(const tk_type *t) {
    int64_t n = 1;
    for (unsigned i = 0; t->kind == TK_T_VALUE && i < t->rank; i++) {
        n *= tk_pad_extent(t->dim[i]);
    }
    return n;
}

static void largest(void *user, tk_op *op) {
    int64_t *most = user;
    const tk_func *f = op->in->func;
    for (uint32_t i = 0; i < op->nres; i++) {
        const int64_t n = elements(tk_value_type(f, op->res[i]));
        *most = n > *most ? n : *most;
    }
}

unsigned tk_default_warps(const tk_func *f) {
    int64_t most = 1;
    tk_func_walk((tk_func *)(uintptr_t)f, largest, &most);
    unsigned warps = 1;
    while (warps < MAX_WARPS && (int64_t)warps * LANES * ELEMENTS_A_THREAD < most) {
        warps *= 2;
    }
    return warps;
}
