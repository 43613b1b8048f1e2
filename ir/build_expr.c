// SPDX-License-Identifier: Apache-2.0
// Expressions: constants, variables, element-wise operations, short-circuit logic, calls.
#include "ir/build_internal.h"

static const tk_opcode opcode_of[TK_NUM_COUNT] = {
#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE) [TK_NUM_##ID] = TK_OP_##ID,
#include "lang/numops.def"
};

uint32_t tk_build_count(const tk_x *x) {
    switch (x->type->kind) {
    case TK_T_VOID:
        return 0;
    case TK_T_TUPLE:
        return x->type->n;
    case TK_T_VALUE:
    case TK_T_TENSOR:
    case TK_T_ERROR:
        break;
    }
    return 1;
}

const tk_type *tk_build_part(tk_bfn *f, const tk_x *x, uint32_t i) {
    const tk_type *t = x->type->kind == TK_T_TUPLE ? x->type->elem[i] : x->type;
    return tk_build_lift(f, t, x->varying);
}

// ---- Variables
static tk_vid build_var(tk_bfn *f, const tk_x *x) {
    const tk_var *v = x->u.var;
    const tk_bslot *s = tk_bmap_get(&f->vars, v);
    if (s && s->bound) {
        return tk_build_read(f, x->span, s);
    }
    if (v->kind == TK_VAR_GRID) {
        tk_op *op = tk_build_emit1(f, x->span, TK_OP_PROGRAM_ID, 0, NULL, v->type);
        op->at.axis = (int)v->index;
        return op->res[0];
    }
    TK_ICE(f->arena, "'%s' has no value in '%s'", v->name, f->fn->name);
}

tk_vid tk_build_tensor(tk_bfn *f, const tk_var *v) {
    const tk_bslot *s = tk_bmap_get(&f->vars, v);
    if (!s || !s->cur) {
        TK_ICE(f->arena, "tensor '%s' is not passed to '%s'", v->name, f->fn->name);
    }
    return s->cur;
}

static tk_vid build_dim(tk_bfn *f, const tk_x *x) {
    tk_vid tensor = tk_build_tensor(f, x->u.dim.tensor);
    int64_t size = tk_build_typeof(f, tensor)->dim[x->u.dim.axis];
    if (size >= 0) {
        return tk_build_const(f, x->span, x->type, tk_const_i64(x->type->dtype, size));
    }
    tk_op *op = tk_build_emit1(f, x->span, TK_OP_DIM, 1, &tensor, x->type);
    op->at.axis = (int)x->u.dim.axis;
    return op->res[0];
}

// ---- Operations
static tk_vid build_elem(tk_bfn *f, const tk_x *x) {
    tk_vid v[3] = {0};
    TK_CHECK(f->arena, x->n <= 3 && x->n == tk_numop_arity(x->u.elem));
    for (uint32_t i = 0; i < x->n; i++) {
        v[i] = tk_build_x(f, x->arg[i]);
    }
    const tk_type *t = tk_build_part(f, x, 0);
    for (uint32_t i = 0; i < x->n; i++) {
        v[i] = tk_build_stretch(f, x->span, v[i], t);
    }
    return tk_build_op(f, x->span, opcode_of[x->u.elem], t, x->n, v);
}

bool tk_build_is_cheap(const tk_x *x) {
    switch (x->kind) {
    case TK_X_CONST:
    case TK_X_VAR:
    case TK_X_DIM:
        return true;
    case TK_X_ELEM:
    case TK_X_CAST:
    case TK_X_LOGIC:
        break;
    case TK_X_BUILTIN:
    case TK_X_CALL:
    case TK_X_LOAD:
    case TK_X_ATOMIC:
        return false;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        if (x->type->rank > 0 || !tk_build_is_cheap(x->arg[i])) {
            return false;
        }
    }
    return true;
}

static tk_vid build_logic(tk_bfn *f, const tk_x *x) {
    tk_vid a = tk_build_x(f, x->arg[0]);
    if (x->varying || tk_build_is_cheap(x->arg[1])) {
        const tk_type *t = tk_build_part(f, x, 0);
        a = tk_build_stretch(f, x->span, a, t);
        tk_vid b = tk_build_stretch(f, x->span, tk_build_x(f, x->arg[1]), t);
        return TK_BUILD_OPS(f, x->span, x->u.is_or ? TK_OP_OR : TK_OP_AND, t, a, b);
    }
    const tk_type *t = x->type;
    tk_op *op = tk_build_emit(f, x->span, TK_OP_IF, 1, &a, 1, &t, 2);
    tk_region *outer = f->at;
    for (uint32_t i = 0; i < 2; i++) {
        f->at = op->reg[i];
        bool decided = x->u.is_or == (i == 0);
        tk_vid v = decided ? tk_build_const(f, x->span, t, tk_const_bool(x->u.is_or))
                           : tk_build_x(f, x->arg[1]);
        tk_build_yield(f, x->span, 1, &v);
    }
    f->at = outer;
    return op->res[0];
}

// ---- Calls

// The
// mask as a lifted callee wants it: of the callee's shape.
static tk_vid callee_mask(tk_bfn *f, tk_span at, const tk_type *want) {
    tk_vid active = tk_build_active(f, at);
    if (!active) {
        return tk_build_const(f, at, want, tk_const_bool(true));
    }
    if (tk_type_eq(tk_build_typeof(f, active), want)) {
        return active;
    }
    return tk_build_stretch(f, at, tk_build_any(f, at, active), want);
}

static void emit_call(tk_bfn *f, tk_span at, const tk_func *callee, uint32_t n, const tk_vid *arg,
                      tk_vid *out) {
    for (uint32_t i = 0; i < n; i++) {
        const tk_type *want = tk_value_type(callee, callee->params.at[i]);
        if (want->kind == TK_T_VALUE && !tk_type_eq(tk_build_typeof(f, arg[i]), want)) {
            TK_ICE(f->arena, "argument %u of '%s' has another type", i, callee->name);
        }
    }
    tk_op *op = tk_build_emit(f, at, TK_OP_CALL, n, arg, callee->results.n, callee->results.at, 0);
    op->at.callee = callee->name;
    for (uint32_t i = 0; i < op->nres; i++) {
        out[i] = op->res[i];
    }
}

// A function with effects that is called for all elements at once, where only some of them may get
// there.
static void emit_call_if(tk_bfn *f, tk_span at, tk_vid active, const tk_func *callee, uint32_t n,
                         const tk_vid *arg, tk_vid *out) {
    tk_vid any = tk_build_any(f, at, active);
    uint32_t nres = callee->results.n;
    tk_op *op = tk_build_emit(f, at, TK_OP_IF, 1, &any, nres, callee->results.at, 2);
    tk_region *outer = f->at;
    f->at = op->reg[0];
    emit_call(f, at, callee, n, arg, out);
    tk_build_yield(f, at, nres, out);
    f->at = op->reg[1];
    for (uint32_t i = 0; i < nres; i++) {
        tk_const zero = {callee->results.at[i]->dtype, 0};
        out[i] = tk_build_const(f, at, callee->results.at[i], zero);
    }
    tk_build_yield(f, at, nres, out);
    f->at = outer;
    for (uint32_t i = 0; i < nres; i++) {
        out[i] = op->res[i];
    }
}

bool tk_build_is_passed(const tk_var *v) { return v->kind != TK_VAR_PARAM || v->is_given; }

void tk_build_call_values(tk_bfn *f, tk_span at, const tk_inst *callee, const tk_vid *arg,
                          uint32_t nres, tk_vid *out) {
    const tk_binst *in = tk_bmap_get(&f->b->insts, callee);
    TK_CHECK(f->arena, in && nres == callee->nresult);
    bool masked = in->effects && callee->lifted && f->inst->lifted;
    const tk_func *fn = masked ? in->func_masked : in->func;
    TK_CHECK(f->arena, fn != NULL);
    uint32_t n = 0;
    tk_vid *v = TK_NEW_ARRAY(f->arena, tk_vid, fn->params.n);
    for (uint32_t i = 0; i < callee->params.n; i++) {
        if (!tk_build_is_passed(callee->params.at[i])) {
            continue;
        }
        const tk_type *want = tk_value_type(fn, fn->params.at[n]);
        v[n] = want->kind == TK_T_VALUE ? tk_build_stretch(f, at, arg[n], want) : arg[n];
        n++;
    }
    for (uint32_t i = 0; i < callee->captures.n; i++) {
        const tk_var *captured = callee->captures.at[i];
        if (!tk_build_is_passed(captured)) {
            continue;
        }
        const tk_bslot *s = tk_bmap_get(&f->vars, captured);
        if (!s || !s->bound) {
            TK_ICE(f->arena, "'%s' is not passed to '%s'", captured->name, f->fn->name);
        }
        v[n++] = s->cur;
    }
    if (masked) {
        v[n] = callee_mask(f, at, tk_value_type(fn, fn->params.at[n]));
        n++;
    }
    TK_CHECK(f->arena, n == fn->params.n);
    tk_vid active = in->effects && !masked ? tk_build_active(f, at) : 0;
    if (active) {
        emit_call_if(f, at, active, fn, n, v, out);
    } else {
        emit_call(f, at, fn, n, v, out);
    }
}

static void build_call(tk_bfn *f, const tk_x *x, uint32_t n, tk_vid *out) {
    const tk_inst *callee = x->u.call.inst;
    tk_vid *arg = TK_NEW_ARRAY(f->arena, tk_vid, callee->params.n);
    uint32_t used = 0;
    uint32_t k = 0;
    for (uint32_t i = 0; i < callee->params.n; i++) {
        if (!tk_build_is_passed(callee->params.at[i])) {
            continue;
        }
        const tk_var *tensor = x->u.call.tensor ? x->u.call.tensor[i] : NULL;
        TK_CHECK(f->arena, tensor || used < x->n);
        arg[k++] = tensor ? tk_build_tensor(f, tensor) : tk_build_x(f, x->arg[used++]);
    }
    tk_build_call_values(f, x->span, callee, arg, n, out);
}

// ---- All
static tk_vid build_value(tk_bfn *f, const tk_x *x) {
    tk_vid v = 0;
    switch (x->kind) {
    case TK_X_CONST:
        return tk_build_const(f, x->span, x->type, x->u.konst);
    case TK_X_VAR:
        return build_var(f, x);
    case TK_X_DIM:
        return build_dim(f, x);
    case TK_X_ELEM:
        return build_elem(f, x);
    case TK_X_CAST:
        return tk_build_cast(f, x->span, tk_build_x(f, x->arg[0]), x->type->dtype);
    case TK_X_LOGIC:
        return build_logic(f, x);
    case TK_X_BUILTIN:
        tk_build_builtin(f, x, 1, &v);
        return v;
    case TK_X_CALL:
        build_call(f, x, 1, &v);
        return v;
    case TK_X_LOAD:
        return tk_build_load(f, x);
    case TK_X_ATOMIC:
        return tk_build_atomic(f, x);
    }
    return v;
}

tk_vid tk_build_x(tk_bfn *f, const tk_x *x) {
    TK_CHECK(f->arena, x->type->kind == TK_T_VALUE);
    tk_vid v = tk_build_stretch(f, x->span, build_value(f, x), tk_build_part(f, x, 0));
    if (!tk_type_eq(tk_build_typeof(f, v), tk_build_part(f, x, 0))) {
        tk_arena *a = f->arena;
        TK_ICE(a, "expression of kind %d gives %s, not %s, in '%s'", (int)x->kind,
               tk_type_text(a, tk_build_typeof(f, v)), tk_type_text(a, tk_build_part(f, x, 0)),
               f->fn->name);
    }
    return v;
}

void tk_build_multi(tk_bfn *f, const tk_x *x, uint32_t n, tk_vid *out) {
    TK_CHECK(f->arena, n == tk_build_count(x));
    if (x->type->kind == TK_T_VALUE) {
        out[0] = tk_build_x(f, x);
    } else if (x->kind == TK_X_CALL) {
        build_call(f, x, n, out);
    } else if (x->kind == TK_X_BUILTIN) {
        tk_build_builtin(f, x, n, out);
    } else {
        TK_ICE(f->arena, "expression of kind %d has %u values", (int)x->kind, n);
    }
}
