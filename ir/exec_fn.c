// SPDX-License-Identifier: Apache-2.0
//
// reduce_fn and scan_fn: reductions and scans whose combining function is a region.
//
// The operands are brought into rows: row i holds element i of every line across the axis. The
// region is planned with a block of lanes for each of its scalars, so that one run combines up to
// TK_BLOCK pairs; where it holds other ops than element-wise ones it runs once a pair.
//
// reduce_fn combines neighbouring rows, 2i with 2i + 1, until one is left. scan_fn goes row by row
// where there are many lines, and with doubling distance where there are few. The earlier element
// is always the first argument. An exclusive scan is the scan of the initial value and all elements
// but the last (reverse: all but the first, and the initial value).
#include "ir/exec_internal.h"

#include <string.h>

enum { FEW_LINES = 16 };

typedef struct fn_step {
    tk_step h;
    uint32_t m;
    int64_t len, width; // rows, elements of a row
    bool lanes, reverse;
    size_t *row;               // by operand: the rows
    tk_place *earlier, *later; // the region's arguments
    tk_place *yield;
    bool *same; // what is yielded is the same in all lanes
    tk_steps body;
} fn_step;

bool tk_region_has_lanes(const tk_region *region) {
    const tk_func *f = region->func;
    for (const tk_op *op = region->first; op; op = op->next) {
        const bool plain = tk_op_info(op->code)->elementwise || op->code == TK_OP_CAST ||
                           op->code == TK_OP_BITCAST || op->code == TK_OP_CONST ||
                           op->code == TK_OP_YIELD;
        for (uint32_t i = 0; i < op->nres; i++) {
            if (f->value.at[op->res[i]].type->rank != 0) {
                return false;
            }
        }
        if (!plain) {
            return false;
        }
    }
    return true;
}

// ---- Combining ----------------------------------------------------------------------------------

// Elements are numbered through all rows. A combination has the number of its result.

// Runs the region on n combinations whose arguments are in place; the results go to elements
// `to` .. of the rows.
static tk_exec_code combine(const fn_step *s, tk_run *r, size_t n, int64_t to) {
    r->lanes = n;
    const tk_exec_code code = tk_run_steps(&s->body, r);
    for (uint32_t k = 0; k < s->m && code == TK_EXEC_OK; k++) {
        const tk_place *y = &s->yield[k];
        tk_copy_run(r->base + s->row[k] + (size_t)to * y->size, y->size, r->base + y->off,
                    s->same[k] ? 0 : y->size, n, y->size);
    }
    return code;
}

// n elements from number `from` on become arguments.
static void put(const fn_step *s, tk_run *r, const tk_place *arg, size_t n, int64_t from) {
    for (uint32_t k = 0; k < s->m; k++) {
        memcpy(r->base + arg[k].off, r->base + s->row[k] + (size_t)from * arg[k].size,
               n * arg[k].size);
    }
}

// The same, but of every second row: of the rows 2i + odd, the n elements from number `from` on.
static void put_alternate(const fn_step *s, tk_run *r, const tk_place *arg, size_t n, int64_t from,
                          int64_t odd) {
    const int64_t w = s->width;
    for (uint32_t k = 0; k < s->m; k++) {
        const size_t size = arg[k].size;
        unsigned char *d = r->base + arg[k].off;
        const unsigned char *rows = r->base + s->row[k];
        if (w == 1) {
            tk_copy_run(d, (int64_t)size, rows + (size_t)(2 * from + odd) * size,
                        (int64_t)(2 * size), n, (uint32_t)size);
            continue;
        }
        for (int64_t c = from, end = from + (int64_t)n, run; c < end; c += run) {
            const int64_t at = c % w;
            run = w - at < end - c ? w - at : end - c;
            memcpy(d, rows + (size_t)((2 * (c / w) + odd) * w + at) * size, (size_t)run * size);
            d += (size_t)run * size;
        }
    }
}

static int64_t at_most(const fn_step *s) { return s->lanes ? TK_BLOCK : 1; }

static tk_exec_code run_reduce(const tk_step *h, tk_run *r) {
    const fn_step *s = (const fn_step *)h;
    for (int64_t len = s->len; len > 1; len = (len + 1) / 2) {
        const int64_t n = len / 2 * s->width;
        for (int64_t c = 0, run; c < n; c += run) {
            run = n - c < at_most(s) ? n - c : at_most(s);
            put_alternate(s, r, s->earlier, (size_t)run, c, 0);
            put_alternate(s, r, s->later, (size_t)run, c, 1);
            const tk_exec_code code = combine(s, r, (size_t)run, c);
            if (code != TK_EXEC_OK) {
                return code;
            }
        }
        for (uint32_t k = 0; k < s->m && len % 2 == 1; k++) { // the last row has no neighbour
            const size_t row = (size_t)s->width * s->earlier[k].size;
            unsigned char *rows = r->base + s->row[k];
            memmove(rows + (size_t)(len / 2) * row, rows + (size_t)(len - 1) * row, row);
        }
    }
    return TK_EXEC_OK;
}

// Combines each of the n elements from number `at` on with the one `distance` before it (reverse:
// after it).
static tk_exec_code combine_at(const fn_step *s, tk_run *r, int64_t at, int64_t n,
                               int64_t distance) {
    put(s, r, s->earlier, (size_t)n, s->reverse ? at : at - distance);
    put(s, r, s->later, (size_t)n, s->reverse ? at + distance : at);
    return combine(s, r, (size_t)n, at);
}

// Where one row needs the row before it finished: in row order. Where it must not be changed yet:
// against it.
static tk_exec_code combine_all(const fn_step *s, tk_run *r, int64_t distance, int64_t n,
                                bool upward) {
    const int64_t first = s->reverse ? 0 : distance;
    for (int64_t done = 0, run; done < n; done += run) {
        run = n - done < at_most(s) ? n - done : at_most(s);
        const int64_t at = upward ? first + done : first + n - done - run;
        const tk_exec_code code = combine_at(s, r, at, run, distance);
        if (code != TK_EXEC_OK) {
            return code;
        }
    }
    return TK_EXEC_OK;
}

static tk_exec_code scan_doubling(const fn_step *s, tk_run *r) {
    tk_exec_code code = TK_EXEC_OK;
    for (int64_t d = 1; d < s->len && code == TK_EXEC_OK; d *= 2) {
        code = combine_all(s, r, d * s->width, (s->len - d) * s->width, s->reverse);
    }
    return code;
}

static tk_exec_code run_scan(const tk_step *h, tk_run *r) {
    const fn_step *s = (const fn_step *)h;
    if (s->lanes && s->width < FEW_LINES) {
        return scan_doubling(s, r);
    }
    for (int64_t i = 1; i < s->len; i++) {
        const int64_t row = s->reverse ? s->len - 1 - i : i;
        for (int64_t c = 0, run; c < s->width; c += run) {
            run = s->width - c < at_most(s) ? s->width - c : at_most(s);
            const tk_exec_code code = combine_at(s, r, row * s->width + c, run, s->width);
            if (code != TK_EXEC_OK) {
                return code;
            }
        }
    }
    return TK_EXEC_OK;
}

// ---- Planning -----------------------------------------------------------------------------------

// The operand's shape laid over rows: along the axis from row to row, the others within a row.
static tk_place rows_of(const tk_place *x, int axis, size_t off) {
    tk_place r = tk_place_of(x->dtype, x->rank, x->dim);
    r.off = off;
    if (axis < 0) {
        return r;
    }
    int64_t stride = x->size;
    for (uint32_t i = x->rank; i-- > 0;) {
        if (i != (uint32_t)axis) {
            r.stride[i] = stride;
            stride *= x->dim[i];
        }
    }
    r.stride[axis] = stride;
    return r;
}

// Part of a place: n elements along an axis from `start`.
static tk_place part_of(tk_place x, int axis, int64_t start, int64_t n) {
    x.off = (size_t)((int64_t)x.off + start * x.stride[axis]);
    x.dim[axis] = n;
    return x;
}

// The rows of operand k: its elements, or for an exclusive scan moved by one after `init`.
static void fill_rows(tk_planner *p, tk_place rows, uint32_t k) {
    const tk_op *op = p->op;
    const int axis = op->at.axis;
    const tk_place x = tk_plan_place(p, op->opnd[k]);
    if (op->code != TK_OP_SCAN_FN || !op->at.exclusive) {
        tk_plan_copy(p, rows, x);
        return;
    }
    const int64_t n = x.dim[axis] - 1;
    const bool rev = op->at.reverse;
    const tk_place end = part_of(rows, axis, rev ? n : 0, 1);
    const tk_place init = tk_plan_place(p, op->opnd[op->nres + k]);
    tk_plan_copy(p, end, tk_place_stretch(init, end.rank, end.dim));
    if (n > 0) {
        tk_plan_copy(p, part_of(rows, axis, rev ? 0 : 1, n), part_of(x, axis, rev ? 1 : 0, n));
    }
}

static void plan_body(tk_planner *p, fn_step *s) {
    const tk_region *body = p->op->reg[0];
    tk_steps *out = p->out;
    const tk_vid *carry = p->carry;
    const bool lane = p->lane;
    for (uint32_t i = 0; i < 2 * s->m; i++) {
        tk_plan_store(p, body->args.at[i]);
        (i < s->m ? s->earlier : s->later)[i % s->m] = tk_plan_place(p, body->args.at[i]);
    }
    p->out = &s->body;
    p->carry = NULL;
    p->lane = s->lanes;
    tk_plan_region(p, body);
    p->out = out;
    p->carry = carry;
    p->lane = lane;
    for (uint32_t k = 0; k < s->m; k++) {
        const tk_vid v = body->last->opnd[k];
        s->yield[k] = tk_plan_place(p, v);
        s->same[k] = !p->val[p->val[v].root].lane;
    }
}

// Copies the operands to rows, plans the step, and gives the rows' places.
static tk_place *emit_fn(tk_planner *p, tk_exec_code (*run)(const tk_step *, tk_run *)) {
    const tk_op *op = p->op;
    const uint32_t m = op->nres;
    tk_place *rows = TK_NEW_ARRAY(p->arena, tk_place, m);
    size_t *off = TK_NEW_ARRAY(p->arena, size_t, m);
    tk_place x = tk_plan_place(p, op->opnd[0]);
    const tk_split3 split = tk_place_split(&x, op->at.axis);
    for (uint32_t k = 0; k < m; k++) {
        x = tk_plan_place(p, op->opnd[k]);
        off[k] = tk_plan_temp(p, (size_t)tk_place_elems(&x) * x.size);
        rows[k] = rows_of(&x, op->at.axis, off[k]);
        fill_rows(p, rows[k], k);
    }
    fn_step *s = tk_plan_step(p, sizeof *s, run);
    s->m = m;
    s->len = split.len;
    s->width = split.outer * split.inner;
    s->lanes = tk_region_has_lanes(op->reg[0]);
    s->reverse = op->at.reverse;
    s->row = off;
    s->earlier = TK_NEW_ARRAY(p->arena, tk_place, m);
    s->later = TK_NEW_ARRAY(p->arena, tk_place, m);
    s->yield = TK_NEW_ARRAY(p->arena, tk_place, m);
    s->same = TK_NEW_ARRAY(p->arena, bool, m);
    plan_body(p, s);
    return rows;
}

void tk_exec_emit_reduce_fn(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place *rows = emit_fn(p, run_reduce);
    for (uint32_t k = 0; k < op->nres; k++) {
        const tk_place dst = tk_plan_place(p, op->res[k]);
        tk_place src = rows[k];
        if (op->at.axis < 0) {
            src.rank = 0;
        } else {
            src = part_of(src, op->at.axis, 0, 1);
        }
        tk_plan_copy(p, dst, src);
    }
}

void tk_exec_emit_scan_fn(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place *rows = emit_fn(p, run_scan);
    for (uint32_t k = 0; k < op->nres; k++) {
        tk_plan_copy(p, tk_plan_place(p, op->res[k]), rows[k]);
    }
}
