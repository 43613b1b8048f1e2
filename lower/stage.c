// SPDX-License-Identifier: Apache-2.0
// What a staged access moves. See stage.h.
#include "lower/stage.h"

#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "lower/lower.h"
#include "lower/views.h"

typedef struct planner {
    const tk_axis *x;
    const tk_func *f;
    const tk_op *op;
    tk_view_axes axes;
    const tk_type *tile;
    tk_stage_plan out;
} planner;

bool tk_stage_useful(tk_tensor_facts f) { return (f & TK_FACT_UNIT) && !(f & TK_FACT_ALIGNED); }

static bool refuse(planner *p, const char *why) {
    p->out.why = p->out.why ? p->out.why : why;
    return false;
}

static unsigned log2_of(int64_t n) {
    return n > 1 ? 63U - (unsigned)__builtin_clzll((uint64_t)n) : 0;
}

// An i32 that is not negative, or what is as good.
static bool plain(const tk_axis_value *v) {
    return v && v->ranged && v->lo >= 0 && v->hi <= INT32_MAX;
}

// ---- Rows ---------------------------------------------------------------------------------------

// The one axis along which a tile has more than one element; -1: none; -2: several.
static int long_axis(const tk_type *t) {
    int found = -1;
    for (unsigned i = 0; i < t->rank; i++) {
        found = t->dim[i] == 1 ? found : found == -1 ? (int)i : -2;
    }
    return found;
}

// Dimension d, whose index is a tile: the rows walk it where it counts up.
static bool row_of_tile(planner *p, uint32_t d, const tk_axis_value *v) {
    const tk_type *t = tk_value_type(p->f, p->op->opnd[1 + d]);
    const int k = long_axis(t);
    if (k == -2) {
        return refuse(p, "its rows are not in a line");
    }
    if (k == -1) {
        return refuse(p, "an index is a tile of one element");
    }
    if (v->dim[k].contig < log2_of(t->dim[k])) {
        return refuse(p, "its rows are not known to follow one another");
    }
    p->out.row_axis = (unsigned)p->axes.first[d] + p->axes.count[d] - t->rank + (unsigned)k;
    p->out.rows = t->dim[k];
    return true;
}

static bool rows(planner *p) {
    for (uint32_t d = 0; d + 1 < p->axes.n; d++) {
        const int64_t kind = p->op->at.index[d];
        const tk_axis_value *v = tk_axis_of(p->x, p->op->opnd[1 + d]);
        if (!plain(v)) {
            return refuse(p, "an index may be negative");
        }
        if (kind == 0 || kind == 1) {
            continue;
        }
        if (p->out.row >= 0) {
            return refuse(p, "its rows are not in a line");
        }
        p->out.row = (int)d;
        if (kind > 0) {
            p->out.row_axis = p->axes.first[d];
            p->out.rows = kind;
        } else if (!row_of_tile(p, d, v)) {
            return false;
        }
    }
    return true;
}

// ---- The mask -----------------------------------------------------------------------------------

// What v is a repetition of along the axis, which becomes that of the result; 0 where it is
// something else.
static tk_vid line_of(const planner *p, tk_vid v, unsigned *axis) {
    const tk_op *op = tk_value_def(p->f, v);
    while (op && (op->code == TK_OP_BROADCAST || op->code == TK_OP_RESHAPE)) {
        const tk_type *to = tk_value_type(p->f, v), *from = tk_value_type(p->f, op->opnd[0]);
        if (from->rank == 0) {
            return op->opnd[0];
        }
        if (op->code == TK_OP_RESHAPE) {
            const int was = long_axis(from);
            if (long_axis(to) != (int)*axis || was < 0) {
                return v;
            }
            *axis = (unsigned)was;
        } else if (*axis + from->rank < to->rank) {
            return v; // the same along it
        } else {
            *axis -= to->rank - from->rank;
        }
        v = op->opnd[0];
        op = tk_value_def(p->f, v);
    }
    return v;
}

static bool same_along(const planner *p, tk_vid v, unsigned axis, int64_t n) {
    const tk_axis_value *a = tk_axis_of(p->x, v);
    const tk_type *t = tk_value_type(p->f, v);
    return t->rank == 0 || (a && a->dim[axis].same >= log2_of(n));
}

// The comparison m, of two lines of n elements along the axis: whether it is x < y where x counts
// up and y is the same in all.
static bool counts_below(const planner *p, const tk_op *m, unsigned axis, int64_t n) {
    if (!m || m->code != TK_OP_LT || tk_value_type(p->f, m->opnd[0])->dtype != TK_I32 ||
        long_axis(tk_value_type(p->f, m->res[0])) != (int)axis) {
        return false;
    }
    const tk_axis_value *x = tk_axis_of(p->x, m->opnd[0]);
    return plain(x) && x->dim[axis].contig >= log2_of(n) && same_along(p, m->opnd[1], axis, n) &&
           plain(tk_axis_of(p->x, m->opnd[1]));
}

static bool bound_of_rows(planner *p, const tk_op *m, unsigned axis) {
    if (p->out.nbound == TK_STAGE_BOUNDS || !counts_below(p, m, axis, p->out.rows)) {
        return false;
    }
    p->out.bound[p->out.nbound++] = (tk_stage_bound){m->opnd[0], m->opnd[1]};
    return true;
}

// A bound of columns is known, as that of a tile's padding is.
static bool bound_of_columns(planner *p, const tk_op *m, unsigned axis) {
    if (!counts_below(p, m, axis, p->out.extent)) {
        return false;
    }
    const tk_axis_value *x = tk_axis_of(p->x, m->opnd[0]), *y = tk_axis_of(p->x, m->opnd[1]);
    if (x->hi - x->lo != p->out.extent - 1 || y->lo != y->hi || y->lo < x->lo) {
        return false;
    }
    const int64_t limit = y->lo - x->lo;
    p->out.limit = limit < p->out.limit ? limit : p->out.limit;
    return true;
}

// m, along the axis of rows or of columns, says that those below some one are moved; or it is two
// masks that do, both of which must hold.
static bool line_bounds(planner *p, tk_vid m, unsigned axis, bool rows) {
    m = line_of(p, m, &axis);
    const tk_op *op = tk_value_def(p->f, m);
    if (op && op->code == TK_OP_AND) {
        return line_bounds(p, op->opnd[0], axis, rows) && line_bounds(p, op->opnd[1], axis, rows);
    }
    return rows ? bound_of_rows(p, op, axis) : bound_of_columns(p, op, axis);
}

static bool bounds(planner *p, tk_vid m) {
    const uint32_t n = p->out.nbound;
    if (p->out.rows > 1 && line_bounds(p, m, p->out.row_axis, true)) {
        return true;
    }
    p->out.nbound = n;
    if (line_bounds(p, m, p->out.axis, false)) {
        return true;
    }
    const tk_op *op = tk_value_def(p->f, m);
    return op && op->code == TK_OP_AND && bounds(p, op->opnd[0]) && bounds(p, op->opnd[1]);
}

// A load tests any other mask element by element.
static bool mask(planner *p) {
    if (!p->op->at.masked) {
        return true;
    }
    const bool load = p->op->code == TK_OP_LOAD;
    p->out.bounded = bounds(p, p->op->opnd[p->axes.n + (load ? 1 : 2)]);
    if (!p->out.bounded) {
        p->out.nbound = 0;
        p->out.limit = p->out.extent;
    }
    return p->out.bounded || load ||
           refuse(p, "its mask is no bound of its rows, nor of its columns by a constant");
}

// ---- The plan -----------------------------------------------------------------------------------

static void plan(planner *p) {
    const uint32_t last = p->axes.n - 1;
    if (p->axes.n == 0 || p->tile->rank == 0) {
        refuse(p, "it is one element");
    } else if (p->op->at.index[last] <= 0) {
        refuse(p, "the last dimension's index is no range");
    } else if (!plain(tk_axis_of(p->x, p->op->opnd[1 + last]))) {
        refuse(p, "its place in the row may be negative");
    } else if (rows(p)) {
        p->out.axis = p->axes.first[last];
        p->out.extent = p->out.limit = p->op->at.index[last];
        if (p->out.rows * p->out.extent != tk_type_elems(p->tile)) {
            refuse(p, "its rows are not in a line");
        } else {
            mask(p);
        }
    }
}

tk_stage_plan tk_stage_plan_of(const tk_axis *x, const tk_op *op) {
    planner p = {.x = x, .f = x->func, .op = op};
    p.out = (tk_stage_plan){.row = -1, .rows = 1, .param = x->func->value.at[op->opnd[0]].index};
    p.axes = tk_view_axes_of(p.f, op);
    p.tile = tk_view_type(p.f, op);
    plan(&p);
    return p.out;
}

const char *tk_stage_why_not(const tk_axis *x, const tk_target *t, const tk_op *op,
                             const tk_stage_plan *p) {
    enum { SHORT = 128, MOST = 80 * 1024 }; // bytes: of a row, of a tile
    const tk_type *tile = tk_view_type(x->func, op);
    if (p->why) {
        return p->why;
    }
    if (p->extent * (int64_t)tk_dtype_size(tile->dtype) < SHORT) {
        return "they are short";
    }
    const uint64_t bytes = tk_staged_bytes(tile, p->rows);
    return bytes > MOST || bytes > t->shared_max ? "their tile takes too much of it" : NULL;
}

bool tk_stage_concerns(const tk_axis *x, const tk_op *op) {
    return (op->code == TK_OP_LOAD || op->code == TK_OP_STORE) && !tk_op_in_combine(op) &&
           !tk_is_common_load(x->func, op) && x->facts &&
           tk_stage_useful(x->facts[x->func->value.at[op->opnd[0]].index]) &&
           tk_view_type(x->func, op)->rank > 0;
}

// ---- Bulk copies --------------------------------------------------------------------------------

typedef struct writers {
    tk_vid tensor;
    unsigned n;
} writers;

static void count_writer(void *user, tk_op *op) {
    writers *w = user;
    const bool writes =
        op->code == TK_OP_STORE || op->code == TK_OP_ATOMIC_RMW || op->code == TK_OP_ATOMIC_CAS;
    w->n += writes && op->opnd[0] == w->tensor;
}

static bool nobody_waits(const tk_op *op) {
    const tk_func *f = op->in->func;
    writers w = {.tensor = op->opnd[0]};
    tk_func_walk((tk_func *)(uintptr_t)f, count_writer, &w);
    return op->code == TK_OP_LOAD ? w.n == 0
                                  : w.n == 1 && tk_value_type(f, w.tensor)->access == TK_OUT;
}

static bool runs_once(const tk_op *op) {
    for (const tk_region *r = op->in; r->owner; r = r->owner->in) {
        if (r->owner->code != TK_OP_IF) {
            return false;
        }
    }
    return true;
}

bool tk_stage_is_bulk(const tk_target *t, const tk_op *op) {
    return t->bulk && runs_once(op) && nobody_waits(op);
}

// ---- Groups -------------------------------------------------------------------------------------

static uint32_t of_register(const tk_layout *l, uint32_t r, unsigned axis) {
    return tk_layout_eval(l, r, 0, 0) >> tk_layout_shift(l, axis) & ((1U << l->log_dim[axis]) - 1);
}

tk_stage_group tk_stage_group_of(const tk_stage_plan *p, const tk_layout *l, uint32_t from) {
    const uint32_t all = 1U << l->regs;
    const bool apart = tk_layout_apart(l);
    tk_stage_group g = {.from = from, .n = all < TK_STAGE_GROUP ? all : TK_STAGE_GROUP};
    g.in_row = apart;
    for (uint32_t i = 0; i < g.n; i++) {
        g.column[i] = apart ? of_register(l, from + i, p->axis) : 0;
        const bool live = g.column[i] < p->limit;
        g.live |= (uint32_t)live << i;
        g.last = live && g.column[i] > g.last ? g.column[i] : g.last;
        g.in_row = g.in_row && (p->rows == 1 || of_register(l, from + i, p->row_axis) ==
                                                    of_register(l, from, p->row_axis));
    }
    return g;
}
