// SPDX-License-Identifier: Apache-2.0
// Units by rule. See units.h.
#include "lower/units.h"

#include "ir/scratch.h"
#include "lower/pad.h"

enum { GROUP = 4, LEAST_CC = 80, F8_CC = 89 };

static bool is_f8(tk_dtype t) { return t == TK_F8E4M3 || t == TK_F8E5M2; }

static bool by_wgmma(const tk_func *f, const tk_op *op, int64_t warps, const char **why) {
    tk_matrix m;
    if (warps && warps % GROUP != 0) {
        *why = "wgmma takes warps by fours";
        return false;
    }
    return tk_matrix_of(f, op, TK_UNIT_WGMMA, &m, why);
}

static bool by_mma(const tk_target *t, const tk_func *f, const tk_op *op, const char **why) {
    tk_matrix m;
    if (is_f8(tk_value_type(f, op->opnd[0])->dtype) && t->cc < F8_CC) {
        *why = "the target multiplies no f8";
        return false;
    }
    return tk_matrix_of(f, op, TK_UNIT_MMA, &m, why);
}

// What wgmma has no form of is not slower for being done by mma.sync.
static bool wgmma_has(const tk_func *f, const tk_op *op) {
    const tk_dtype t = tk_value_type(f, op->opnd[0])->dtype;
    return t != TK_F64 && !(t == TK_F32 && op->at.precision == TK_PREC_TF32X3);
}

tk_dot_unit_choice tk_dot_unit_of(const tk_target *target, const tk_func *f, const tk_op *op,
                                  int64_t warps) {
    tk_dot_unit_choice c = {TK_UNIT_FMA, "nothing is known of the target"};
    unsigned axis;
    if (!target || target->cc < LEAST_CC) {
        return c;
    }
    if (op->code != TK_OP_DOT) {
        c.why = "scaled operands are multiplied one by one, in f64";
        return c;
    }
    if (!tk_layout_fits(tk_value_type(f, op->opnd[0]), &axis) ||
        !tk_layout_fits(tk_value_type(f, op->opnd[1]), &axis)) {
        c.why = "an extent is no power of two";
        return c;
    }
    c.why = NULL;
    if (target->wgmma && wgmma_has(f, op) && by_wgmma(f, op, warps, &c.why)) {
        return (tk_dot_unit_choice){TK_UNIT_WGMMA, NULL};
    }
    const char *why = NULL;
    if (by_mma(target, f, op, &why)) {
        c.unit = TK_UNIT_MMA;
        if (target->unit && !target->wgmma && wgmma_has(f, op)) {
            c.why = target->cc == 90 ? "only code for sm_90a has it" : "no code is made for it yet";
        }
        return c;
    }
    c.why = why;
    return c;
}

// ---- Who has which rows -------------------------------------------------------------------------

enum { MOST_DEPTH = 16 };

// Whether elements of v come from those of a product's result, row by row.
static bool from_product(const tk_func *f, tk_vid v, unsigned depth) {
    const tk_op *d = tk_value_def(f, v);
    if (!d || depth > MOST_DEPTH || tk_value_type(f, v)->rank < 2) {
        return false;
    }
    if (d->code == TK_OP_DOT) {
        return d->at.unit != TK_UNIT_FMA;
    }
    if (!tk_op_info(d->code)->elementwise && d->code != TK_OP_CAST) {
        return false;
    }
    for (uint32_t i = 0; i < d->nopnd; i++) {
        if (from_product(f, d->opnd[i], depth + 1)) {
            return true;
        }
    }
    return false;
}

typedef struct finder {
    const tk_func *f;
    bool rows;
    int64_t elements, least_rows; // of the largest result; of any
    int64_t operands;             // elements of the largest
    bool any, group, f8;
} finder;

static void find_rows(void *user, tk_op *op) {
    finder *s = user;
    if (op->code == TK_OP_DOT) {
        s->rows = s->rows || from_product(s->f, op->opnd[0], 0);
    } else if (op->code == TK_OP_REDUCE || op->code == TK_OP_ARG_REDUCE) {
        const int last = (int)tk_value_type(s->f, op->opnd[0])->rank - 1;
        s->rows = s->rows || (op->at.axis == last && from_product(s->f, op->opnd[0], 0));
    }
}

bool tk_products_in_rows(const tk_func *f) {
    finder s = {.f = f};
    tk_func_walk((tk_func *)(uintptr_t)f, find_rows, &s);
    return s.rows;
}

static void see_product(void *user, tk_op *op) {
    finder *s = user;
    if (op->code != TK_OP_DOT || op->at.unit == TK_UNIT_FMA) {
        return;
    }
    const tk_product d = tk_product_of(s->f, op);
    const int64_t n = d.batch * d.rows * d.columns;
    const int64_t larger = d.rows > d.columns ? d.rows : d.columns;
    s->least_rows = s->any && s->least_rows < d.rows ? s->least_rows : d.rows;
    s->any = true;
    s->group = s->group || op->at.unit == TK_UNIT_WGMMA;
    s->elements = n > s->elements ? n : s->elements;
    s->operands = d.batch * larger * d.k > s->operands ? d.batch * larger * d.k : s->operands;
    s->f8 = s->f8 || (op->at.unit == TK_UNIT_MMA && is_f8(tk_value_type(s->f, op->opnd[0])->dtype));
}

unsigned tk_warps_of_products(const tk_func *f) {
    enum { LANES = 32, EACH = 64, MOST = 8, MOST_EACH = 256, ROWS = 16 };
    finder s = {.f = f};
    tk_func_walk((tk_func *)(uintptr_t)f, see_product, &s);
    if (!s.any) {
        return 0;
    }
    const bool rows = tk_products_in_rows(f);
    const int64_t n = s.elements > s.operands ? s.elements : s.operands;
    int64_t warps = s.group ? GROUP : 1;
    while (warps < MOST && warps * LANES * (warps < GROUP ? EACH / 2 : EACH) < n) {
        warps *= 2;
    }
    while (rows && warps > (s.group ? GROUP : 1) && warps * ROWS > s.least_rows) {
        warps /= 2;
    }
    while (warps * LANES * MOST_EACH < s.elements && warps < 2 * MOST) {
        warps *= 2;
    }
    return (unsigned)warps;
}

const char *tk_ptx_of_products(const tk_func *f) {
    finder s = {.f = f};
    tk_func_walk((tk_func *)(uintptr_t)f, see_product, &s);
    return s.f8 ? "+ptx84" : NULL;
}
