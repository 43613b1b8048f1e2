// SPDX-License-Identifier: Apache-2.0
// Types as values: made, compared, broadcast and printed. See type.h.
#include "lang/type.h"

#include <string.h>

static tk_type *make(tk_arena *a, tk_tkind kind, tk_dtype t, unsigned rank, const int64_t *dim) {
    tk_type *x = TK_NEW(a, tk_type);
    x->kind = kind;
    x->dtype = t;
    x->rank = (uint8_t)rank;
    if (rank) {
        memcpy(x->dim, dim, rank * sizeof *dim);
    }
    return x;
}

const tk_type *tk_type_scalar(tk_arena *a, tk_dtype t) { return make(a, TK_T_VALUE, t, 0, NULL); }

const tk_type *tk_type_tile(tk_arena *a, tk_dtype t, unsigned rank, const int64_t *dim) {
    TK_CHECK(a, rank <= TK_MAX_RANK);
    return make(a, TK_T_VALUE, t, rank, dim);
}

const tk_type *tk_type_tensor(tk_arena *a, tk_dtype t, tk_access acc, unsigned rank,
                              const int64_t *dim) {
    TK_CHECK(a, rank <= TK_MAX_TENSOR_RANK);
    tk_type *x = make(a, TK_T_TENSOR, t, rank, dim);
    x->access = acc;
    return x;
}

const tk_type *tk_type_tuple(tk_arena *a, uint32_t n, const tk_type *const *elem) {
    tk_type *x = TK_NEW(a, tk_type);
    const tk_type **copy = TK_NEW_ARRAY(a, const tk_type *, n);
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = elem[i];
    }
    x->kind = TK_T_TUPLE;
    x->n = n;
    x->elem = copy;
    return x;
}

const tk_type *tk_type_void(void) {
    static const tk_type t = {.kind = TK_T_VOID};
    return &t;
}

const tk_type *tk_type_error(void) {
    static const tk_type t = {.kind = TK_T_ERROR};
    return &t;
}

const tk_type *tk_type_with_dtype(tk_arena *a, const tk_type *t, tk_dtype d) {
    tk_type *x = TK_NEW(a, tk_type);
    *x = *t;
    x->dtype = d;
    return x;
}

const tk_type *tk_type_with_shape(tk_arena *a, const tk_type *t, unsigned rank,
                                  const int64_t *dim) {
    TK_CHECK(a, rank <= (t->kind == TK_T_TENSOR ? TK_MAX_TENSOR_RANK : TK_MAX_RANK));
    tk_type *x = make(a, t->kind, t->dtype, rank, dim);
    x->access = t->access;
    return x;
}

bool tk_type_eq(const tk_type *a, const tk_type *b) {
    if (a == b) {
        return true;
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case TK_T_VOID:
    case TK_T_ERROR:
        return true;
    case TK_T_TUPLE:
        if (a->n != b->n) {
            return false;
        }
        for (uint32_t i = 0; i < a->n; i++) {
            if (!tk_type_eq(a->elem[i], b->elem[i])) {
                return false;
            }
        }
        return true;
    case TK_T_VALUE:
    case TK_T_TENSOR:
        break;
    }
    return a->dtype == b->dtype && a->access == b->access && a->rank == b->rank &&
           memcmp(a->dim, b->dim, a->rank * sizeof a->dim[0]) == 0;
}

bool tk_type_is_scalar(const tk_type *t) { return t->kind == TK_T_VALUE && t->rank == 0; }

bool tk_type_is_tile(const tk_type *t) { return t->kind == TK_T_VALUE && t->rank > 0; }

bool tk_type_is_dep(const tk_type *t) {
    if (t->kind == TK_T_TUPLE) {
        for (uint32_t i = 0; i < t->n; i++) {
            if (tk_type_is_dep(t->elem[i])) {
                return true;
            }
        }
        return false;
    }
    if (t->kind != TK_T_VALUE && t->kind != TK_T_TENSOR) {
        return false;
    }
    for (unsigned i = 0; i < t->rank; i++) {
        if (t->dim[i] == TK_DIM_DEP) {
            return true;
        }
    }
    return t->dtype == TK_DTYPE_DEP;
}

// The product saturates, so that a shape past every limit compares as such.
int64_t tk_type_elems(const tk_type *t) {
    int64_t n = 1;
    for (unsigned i = 0; i < t->rank; i++) {
        int64_t d = t->dim[i];
        if (d <= 0) {
            return d;
        }
        n = n > INT64_MAX / d ? INT64_MAX : n * d;
    }
    return n;
}

static bool broadcast_dim(int64_t x, int64_t y, int64_t *out) {
    if (x == y || y == 1) {
        *out = x;
        return true;
    }
    if (x == 1 || x == TK_DIM_DEP) {
        *out = y;
        return true;
    }
    *out = x;
    return y == TK_DIM_DEP;
}

bool tk_broadcast(const tk_type *a, const tk_type *b, unsigned *rank, int64_t *dim) {
    static const tk_type scalar = {.kind = TK_T_VALUE};
    a = a->kind == TK_T_ERROR ? &scalar : a; // reported already: takes the other's shape
    b = b->kind == TK_T_ERROR ? &scalar : b;
    if (a->kind != TK_T_VALUE || b->kind != TK_T_VALUE) {
        return false;
    }
    unsigned n = a->rank > b->rank ? a->rank : b->rank;
    for (unsigned i = 0; i < n; i++) { // i counts from the right
        int64_t x = i < a->rank ? a->dim[a->rank - 1 - i] : 1;
        int64_t y = i < b->rank ? b->dim[b->rank - 1 - i] : 1;
        if (!broadcast_dim(x, y, &dim[n - 1 - i])) {
            return false;
        }
    }
    *rank = n;
    return true;
}

static void print_shape(tk_buf *out, unsigned rank, const int64_t *dim) {
    tk_buf_str(out, "[");
    for (unsigned i = 0; i < rank; i++) {
        tk_buf_str(out, i ? ", " : "");
        if (dim[i] < 0) {
            tk_buf_str(out, "?");
        } else {
            tk_buf_fmt(out, "%lld", (long long)dim[i]);
        }
    }
    tk_buf_str(out, "]");
}

void tk_type_print(tk_buf *out, const tk_type *t) {
    switch (t->kind) {
    case TK_T_VOID:
        tk_buf_str(out, "no value");
        return;
    case TK_T_ERROR:
        tk_buf_str(out, "?");
        return;
    case TK_T_TUPLE:
        tk_buf_str(out, "(");
        for (uint32_t i = 0; i < t->n; i++) {
            tk_buf_str(out, i ? ", " : "");
            tk_type_print(out, t->elem[i]);
        }
        tk_buf_str(out, ")");
        return;
    case TK_T_TENSOR:
        tk_buf_str(out, t->access == TK_IN ? "in " : t->access == TK_OUT ? "out " : "inout ");
        tk_buf_str(out, tk_dtype_name(t->dtype));
        print_shape(out, t->rank, t->dim);
        return;
    case TK_T_VALUE:
        tk_buf_str(out, tk_dtype_name(t->dtype));
        if (t->rank) {
            print_shape(out, t->rank, t->dim);
        }
        return;
    }
}

const char *tk_type_text(tk_arena *a, const tk_type *t) {
    tk_buf b;
    tk_buf_init(&b, a);
    tk_type_print(&b, t);
    return tk_buf_text(&b);
}

const char *tk_shape_text(tk_arena *a, unsigned rank, const int64_t *dim) {
    tk_buf b;
    tk_buf_init(&b, a);
    print_shape(&b, rank, dim);
    return tk_buf_text(&b);
}
