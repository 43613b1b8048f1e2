// SPDX-License-Identifier: Apache-2.0
// The verifier: what holds for every op whatever it is (links, ids, counts, levels, definitions
// before uses, terminators). The rules by op are in verify_op.c, verify_across.c, verify_access.c
// verify_control.c and verify_layout.c; that of the staged level in verify_order.c.
#include "ir/ir_text.h"
#include "ir/verify_internal.h"

enum { UNSEEN, VISIBLE, PAST }; // PAST: its region has ended

bool tk_vbad(tk_verifier *v, const char *fmt, ...) {
    tk_buf b;
    tk_buf_init(&b, v->a);
    if (v->f) {
        tk_buf_fmt(&b, "%s '%s': ", v->f->is_kernel ? "kernel" : "function",
                   v->f->name ? v->f->name : "?");
    }
    if (v->op) {
        bool known = (unsigned)v->op->code < TK_OP_COUNT;
        tk_buf_fmt(&b, "'%s'", known ? tk_op_info(v->op->code)->name : "?");
        tk_loc loc = v->op->loc < v->m->locs.n ? v->op->loc : 0;
        tk_span at = v->m->locs.n ? v->m->locs.at[loc].span : (tk_span){0, 0, 0};
        const tk_source *s = v->m->sources ? tk_source_of(v->m->sources, at.file) : NULL;
        if (s) {
            uint32_t line, col;
            tk_line_col(s, at.begin, &line, &col);
            tk_buf_fmt(&b, " at %s:%u:%u", s->name, line, col);
        }
        tk_buf_str(&b, ": ");
    }
    va_list args;
    va_start(args, fmt);
    tk_buf_str(&b, tk_vformat(v->a, fmt, args));
    va_end(args);
    *v->why = tk_buf_text(&b);
    return false;
}

bool tk_vaxis(tk_verifier *v, const tk_type *t) {
    int axis = v->op->at.axis;
    return tk_vneed(v, axis >= 0 && axis < (int)t->rank, "axis %d of %s", axis,
                    tk_type_text(v->a, t));
}

bool tk_vsame(tk_verifier *v, const tk_type *x, const tk_type *y, const char *what) {
    return tk_vneed(v, tk_type_eq(x, y), "%s must be %s, not %s", what, tk_type_text(v->a, y),
                    tk_type_text(v->a, x));
}

bool tk_vshape(tk_verifier *v, const tk_type *x, unsigned rank, const int64_t *dim) {
    bool same = x->rank == rank;
    for (unsigned i = 0; same && i < rank; i++) {
        same = x->dim[i] == dim[i];
    }
    return tk_vneed(v, same, "%s where the shape must be %s", tk_type_text(v->a, x),
                    tk_shape_text(v->a, rank, dim));
}

// ---- Types and definitions ----------------------------------------------------------------------

static bool value_type(tk_verifier *v, const tk_type *t) {
    if (!tk_vneed(v, t && t->kind == TK_T_VALUE, "a value that is neither scalar nor tile")) {
        return false;
    }
    if (!tk_vneed(v, (unsigned)t->dtype < TK_DTYPE_COUNT, "no element type") ||
        !tk_vneed(v, t->rank <= TK_MAX_RANK, "rank %u of a tile", t->rank)) {
        return false;
    }
    for (unsigned i = 0; i < t->rank; i++) {
        if (!tk_vneed(v, t->dim[i] >= 1, "an extent below 1")) {
            return false;
        }
    }
    return tk_vneed(v, tk_type_elems(t) <= TK_MAX_TILE_ELEMS, "a tile of more than %lld elements",
                    (long long)TK_MAX_TILE_ELEMS);
}

static bool param_type(tk_verifier *v, const tk_type *t) {
    if (!t || t->kind != TK_T_TENSOR) {
        return value_type(v, t);
    }
    if (!tk_vneed(v, (unsigned)t->dtype < TK_DTYPE_COUNT, "no element type") ||
        !tk_vneed(v, t->rank <= TK_MAX_TENSOR_RANK, "rank %u of a tensor", t->rank) ||
        !tk_vneed(v, t->access == TK_IN || t->access == TK_OUT || t->access == TK_INOUT,
                  "a tensor that is none of in, out, inout")) {
        return false;
    }
    for (unsigned i = 0; i < t->rank; i++) {
        if (!tk_vneed(v, t->dim[i] >= TK_DIM_DYN && t->dim[i] <= INT32_MAX,
                      "a dimension out of range")) {
            return false;
        }
    }
    return true;
}

// Value id is made here, by `def` as its index-th result, or as an argument of `r`.
static bool define(tk_verifier *v, tk_vid id, const tk_op *def, const tk_region *r,
                   uint32_t index) {
    if (!tk_vneed(v, id != 0 && id < v->f->value.n, "value %u does not exist", id) ||
        !tk_vneed(v, v->state[id] == UNSEEN, "value %u is defined twice", id)) {
        return false;
    }
    const tk_irvalue *x = &v->f->value.at[id];
    v->state[id] = VISIBLE;
    return tk_vneed(v, x->def == def && x->region == r && x->index == index,
                    "value %u is recorded as defined elsewhere", id) &&
           (def || r ? value_type(v, x->type) : param_type(v, x->type)) && tk_verify_layout(v, x);
}

static bool takes_tensor(tk_opcode code, uint32_t i) {
    return code == TK_OP_CALL || (i == 0 && (tk_op_attrs(code) & TK_A_INDEX)) || code == TK_OP_DIM;
}

static bool operands(tk_verifier *v, const tk_op *op) {
    for (uint32_t i = 0; i < op->nopnd; i++) {
        tk_vid id = op->opnd[i];
        if (!tk_vneed(v, id != 0 && id < v->f->value.n, "operand %u does not exist", i) ||
            !tk_vneed(v, v->state[id] == VISIBLE, "operand %u is not defined before it is used%s",
                      i, v->state[id] == PAST ? ": its region has ended" : "")) {
            return false;
        }
        bool tensor = v->f->value.at[id].type->kind == TK_T_TENSOR;
        if (!tk_vneed(v, !tensor || takes_tensor(op->code, i), "operand %u is a tensor", i)) {
            return false;
        }
    }
    return true;
}

// ---- Counts -------------------------------------------------------------------------------------

static bool count_is(int want, uint32_t n) { return want == TK_ANY || (uint32_t)want == n; }

static bool counts(tk_verifier *v, const tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    if (!tk_vneed(v, count_is(info->operands, op->nopnd), "%u operands", op->nopnd) ||
        !tk_vneed(v, count_is(info->results, op->nres), "%u results", op->nres) ||
        !tk_vneed(v, count_is(info->regions, op->nreg), "%u regions", op->nreg)) {
        return false;
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        const tk_region *r = op->reg[i];
        if (!tk_vneed(v, r && r->owner == op && r->func == v->f, "region %u is not its own", i)) {
            return false;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (!tk_vneed(v, op->reg[k] != r, "region %u is also region %u", i, k)) {
                return false;
            }
        }
    }
    return tk_vneed(v, op->fast >> tk_words_fast.n == 0, "unknown fast flags") &&
           tk_vneed(v, op->loc < v->m->locs.n, "a place that does not exist");
}

// Where the op may stand.
static bool position(tk_verifier *v, const tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    if (!tk_vneed(v, tk_op_legal(op->code, v->m->level), "not legal at level %s",
                  tk_level_name(v->m->level))) {
        return false;
    }
    bool is_program = op->code == TK_OP_PROGRAM_ID || op->code == TK_OP_NUM_PROGRAMS;
    if (v->in_grid &&
        !tk_vneed(v, op->code == TK_OP_YIELD || (info->effect == TK_FX_PURE && !is_program),
                  "not in a grid")) {
        return false;
    }
    bool writes =
        info->effect == TK_FX_WRITE || info->effect == TK_FX_ATOMIC || info->effect == TK_FX_RING;
    return tk_vneed(v, !v->combine || !writes, "not in the function of a reduction or scan");
}

// ---- Regions ------------------------------------------------------------------------------------

static bool region(tk_verifier *v, const tk_region *r);

static bool one_op(tk_verifier *v, const tk_op *op) {
    v->op = op;
    if (!tk_vneed(v, (unsigned)op->code < TK_OP_COUNT, "no op has code %d", (int)op->code) ||
        !counts(v, op) || !position(v, op) || !operands(v, op)) {
        return false;
    }
    bool combine = op->code == TK_OP_REDUCE_FN || op->code == TK_OP_SCAN_FN;
    v->combine += combine;
    for (uint32_t i = 0; i < op->nreg; i++) {
        if (!region(v, op->reg[i])) {
            return false;
        }
        v->op = op;
    }
    v->combine -= combine;
    for (uint32_t i = 0; i < op->nres; i++) {
        if (!define(v, op->res[i], op, NULL, i)) {
            return false;
        }
    }
    return tk_verify_op_types(v) && tk_verify_in_shared(v) && tk_verify_layouts(v);
}

static void end_scope(tk_verifier *v, const tk_region *r) {
    for (uint32_t i = 0; i < r->args.n; i++) {
        v->state[r->args.at[i]] = PAST;
    }
    for (const tk_op *op = r->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->nres; i++) {
            v->state[op->res[i]] = PAST;
        }
    }
}

static bool region(tk_verifier *v, const tk_region *r) {
    if (!tk_vneed(v, v->depth < TK_MAX_REGION_DEPTH, "more than %d regions within each other",
                  TK_MAX_REGION_DEPTH)) {
        return false;
    }
    const tk_op *owner = v->op;
    v->depth++;
    for (uint32_t i = 0; i < r->args.n; i++) {
        if (!define(v, r->args.at[i], NULL, r, i)) {
            return false;
        }
    }
    const tk_op *prev = NULL;
    for (const tk_op *op = r->first; op; prev = op, op = op->next) {
        v->op = op;
        if (!tk_vneed(v, op->in == r && op->prev == prev, "not linked into its region") ||
            !one_op(v, op)) {
            return false;
        }
        v->op = op;
        if (!tk_vneed(v, !op->next == tk_op_is_terminator(op),
                      op->next ? "ops behind a terminator"
                               : "a region ends without a terminator")) {
            return false;
        }
    }
    v->op = owner;
    v->depth--;
    if (!tk_vneed(v, prev && r->last == prev, "a region without a terminator")) {
        return false;
    }
    end_scope(v, r);
    return true;
}

// ---- Functions and the module -------------------------------------------------------------------

static bool grid(tk_verifier *v, const tk_region *r) {
    if (!tk_vneed(v, v->f->is_kernel, "a grid, but it is no kernel") ||
        !tk_vneed(v, !r->owner && r->func == v->f && r->args.n == 0 && r != v->f->body,
                  "the grid is not its own")) {
        return false;
    }
    v->in_grid = true;
    bool good = region(v, r);
    v->in_grid = false;
    return good;
}

static bool has_size(const tk_func *f, tk_size_ref s) {
    const tk_type *t = s.param < f->params.n ? tk_value_type(f, f->params.at[s.param]) : NULL;
    return t && t->kind == TK_T_TENSOR && s.axis < t->rank && t->dim[s.axis] == TK_DIM_DYN;
}

static bool sizes(tk_verifier *v, const tk_func *f) {
    for (uint32_t i = 0; i < f->sizes.n; i++) {
        const tk_size_ref of = f->sizes.at[i].of, is = f->sizes.at[i].is;
        const tk_size_ref first = tk_func_size(f, is.param, is.axis);
        const bool before = is.param < of.param || (is.param == of.param && is.axis < of.axis);
        if (!tk_vneed(v, f->is_kernel && has_size(f, of) && has_size(f, is),
                      "a size that is none at run time") ||
            !tk_vneed(v, before && first.param == is.param && first.axis == is.axis,
                      "a size is that of an earlier one, the first that is the same")) {
            return false;
        }
    }
    return true;
}

static bool function(tk_verifier *v, const tk_func *f) {
    v->f = f;
    v->op = NULL;
    v->depth = v->combine = 0;
    if (!tk_vneed(v, f->name && f->module == v->m && f->value.n > 0, "not of this module") ||
        !tk_vneed(v, f->body && !f->body->owner && f->body->func == f && f->body->args.n == 0,
                  "the body is not its own")) {
        return false;
    }
    v->state = TK_NEW_ARRAY(v->a, uint8_t, f->value.n);
    for (uint32_t i = 0; i < f->params.n; i++) {
        if (!define(v, f->params.at[i], NULL, NULL, i)) {
            return false;
        }
    }
    if (!sizes(v, f)) {
        return false;
    }
    for (uint32_t i = 0; i < f->results.n; i++) {
        if (!value_type(v, f->results.at[i])) {
            return false;
        }
    }
    return tk_vneed(v, !f->is_kernel || f->results.n == 0, "a kernel has no results") &&
           tk_vneed(v, f->loc < v->m->locs.n, "a place that does not exist") &&
           (!f->grid || grid(v, f->grid)) && region(v, f->body) &&
           (v->m->level == TK_LEVEL_TILE || (tk_verify_hold(v) && tk_verify_out(v))) &&
           (v->m->level != TK_LEVEL_STAGED || tk_verify_order(v));
}

static bool locations(tk_verifier *v) {
    for (uint32_t i = 0; i < v->m->locs.n; i++) {
        const tk_location *l = &v->m->locs.at[i];
        if (!tk_vneed(v, l->from < i || l->from == 0, "place %u leads to a later one", i)) {
            return false;
        }
    }
    return tk_vneed(v, v->m->locs.n > 0, "no table of places");
}

static bool names(tk_verifier *v, uint32_t i) {
    const tk_func *f = v->m->funcs.at[i];
    if (!tk_vneed(v, f && f->name, "a function without a name")) {
        return false;
    }
    v->f = f;
    const tk_func *first = tk_module_find(v->m, f->name);
    return tk_vneed(v, first == f, "two functions of this name");
}

static bool module(tk_verifier *v) {
    const tk_module *m = v->m;
    uint32_t kernels = 0;
    if (!tk_vneed(v,
                  m->level == TK_LEVEL_TILE || m->level == TK_LEVEL_LAID ||
                      m->level == TK_LEVEL_STAGED,
                  "no level") ||
        !tk_vneed(v, m->packed >= 0 && m->packed <= TK_MAX_TILE_ELEMS, "%lld packed programs",
                  (long long)m->packed) ||
        !tk_vneed(v, m->live >= 0 && m->live <= TK_MAX_TILE_ELEMS, "%lld elements of a tile",
                  (long long)m->live) ||
        !tk_vneed(v, m->group >= 0 && m->group <= INT32_MAX, "groups of %lld programs",
                  (long long)m->group) ||
        !tk_vneed(v, m->shared >= 0 && m->shared <= INT32_MAX, "%lld bytes of shared memory",
                  (long long)m->shared) ||
        !tk_vneed(v, m->shared == 0 || m->level != TK_LEVEL_TILE, "shared memory at level tile") ||
        !locations(v)) {
        return false;
    }
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        v->func_index = i;
        v->op = NULL;
        if (!names(v, i) || !function(v, m->funcs.at[i])) {
            return false;
        }
        kernels += m->funcs.at[i]->is_kernel;
    }
    v->f = NULL;
    v->op = NULL;
    return tk_vneed(v, kernels <= 1, "%u kernels", kernels);
}

bool tk_ir_verify_at(tk_arena *scratch, const tk_module *m, const char **why, tk_span *where) {
    tk_verifier v = {.a = scratch, .m = m, .why = why};
    *why = NULL;
    bool good = module(&v);
    tk_loc loc = good ? 0 : v.op ? v.op->loc : v.f ? v.f->loc : 0;
    *where = loc < m->locs.n ? m->locs.at[loc].span : (tk_span){0, 0, 0};
    return good;
}

bool tk_ir_verify(tk_arena *scratch, const tk_module *m, const char **why) {
    tk_span where;
    return tk_ir_verify_at(scratch, m, why, &where);
}
