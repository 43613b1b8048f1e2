// SPDX-License-Identifier: Apache-2.0
// Built-in calls that multiply matrices.
//
// dot_scaled takes operands of which 32 elements along K share a scale: a [M, K] with sa [M, K/32],
// b [K, N] with sb [K/32, N]. The operands are f8e4m3, f8e5m2, f16 or bf16; a scale is the code s
// of an E8M0 exponent in u8 and stands for 2^(s - 127), 255 for NaN. K is a multiple of 32. The
// result is f32 [M, N].
#include "lang/check_builtin.h"

enum { SCALE_BLOCK = 32 };

static bool is_f8(tk_dtype t) { return t == TK_F8E4M3 || t == TK_F8E5M2; }

// The result's element type; false where the operands' is none of those that dot takes.
static bool dot_result(tk_dtype t, tk_dtype *out) {
    switch (tk_dtype_class(t)) {
    case TK_CLASS_FLOAT:
        *out = t == TK_F64 ? TK_F64 : TK_F32;
        return true;
    case TK_CLASS_SINT:
    case TK_CLASS_UINT:
        *out = TK_I32;
        return tk_dtype_bits(t) == 8;
    case TK_CLASS_NONE:
        *out = TK_DTYPE_DEP;
        return true;
    case TK_CLASS_BOOL:
        break;
    }
    return false;
}

tk_value tk_rule_dot_type(tk_bcall *b) {
    tk_dtype t, of;
    if (!tk_bi_type(b, 0, &t)) {
        return tk_bi_error(b);
    }
    if (!dot_result(t, &of)) {
        return tk_err(b->c, b->arg[0]->span, "type-mismatch",
                      "'dot' multiplies floats, i8 and u8, not %s", tk_dtype_name(t));
    }
    return tk_type_value(b->call->span, of);
}

// Whether the operands' element types go together; reported where not.
static bool same_dtype(tk_bcall *b, uint32_t i, tk_value x, uint32_t j, tk_value y) {
    tk_dtype s = x.type->dtype;
    tk_dtype t = y.type->dtype;
    if (s == t || s == TK_DTYPE_DEP || t == TK_DTYPE_DEP || (is_f8(s) && is_f8(t))) {
        return true;
    }
    tk_diag *d = tk_err_diag(b->c, b->call->span, "type-mismatch",
                             "the operands of '%s' must have one element type: %s is %s, %s is %s",
                             b->name, tk_bi_arg_text(b, i), tk_bi_type_text(b, x),
                             tk_bi_arg_text(b, j), tk_bi_type_text(b, y));
    bool first = tk_dtype_bits(t) > tk_dtype_bits(s); // the narrower one, else the second
    tk_bi_help(b, d, "write '%s(%s)'", tk_dtype_name(first ? t : s),
               tk_bi_arg_source(b, first ? i : j));
    return false;
}

static tk_value shapes_differ(tk_bcall *b, tk_value x, tk_value y, const char *text) {
    tk_arena *a = tk_checker_arena(b->c);
    return tk_err(b->c, b->call->span, "shape-mismatch", "'%s' of %s and %s: %s", b->name,
                  tk_shape_text(a, x.type->rank, x.type->dim),
                  tk_shape_text(a, y.type->rank, y.type->dim), text);
}

// The shape of the product; false after an error.
static bool product_shape(tk_bcall *b, tk_value x, tk_value y, unsigned *rank, int64_t *dim) {
    unsigned r = x.type->rank;
    if (r != y.type->rank || r < 2 || r > 3) {
        shapes_differ(b, x, y, "both must have rank 2, or 3 with one batch axis in front");
        return false;
    }
    const int64_t *p = x.type->dim;
    const int64_t *q = y.type->dim;
    if (!tk_bi_dim_eq(p[r - 1], q[r - 2])) {
        shapes_differ(b, x, y, "the inner extents must be equal ([M, K] by [K, N])");
        return false;
    }
    if (r == 3 && !tk_bi_dim_eq(p[0], q[0])) {
        shapes_differ(b, x, y, "the batch extents must be equal");
        return false;
    }
    *rank = r;
    dim[0] = r == 3 && p[0] == TK_DIM_DEP ? q[0] : p[0];
    dim[r - 2] = r == 3 ? p[1] : p[0];
    dim[r - 1] = q[r - 1];
    return tk_bi_fits(b, r, dim);
}

// acc must have the result's type exactly.
static bool acc_fits(tk_bcall *b, uint32_t i, tk_value acc, const tk_type *type) {
    tk_dtype t = acc.type->dtype;
    bool dtype_ok = t == type->dtype || t == TK_DTYPE_DEP || type->dtype == TK_DTYPE_DEP;
    if (dtype_ok && tk_bi_shape_eq(acc.type, type)) {
        return true;
    }
    tk_arena *a = tk_checker_arena(b->c);
    tk_diag *d = tk_err_diag(b->c, b->arg[i]->span, dtype_ok ? "shape-mismatch" : "type-mismatch",
                             "'acc' of this '%s' must be %s; %s is %s", b->name,
                             tk_type_text(a, type), tk_bi_arg_text(b, i), tk_bi_type_text(b, acc));
    tk_bi_help(b, d, "write 'zeros(%s, %s)'", tk_shape_text(a, type->rank, type->dim),
               tk_dtype_name(type->dtype));
    return false;
}

static const char *const precisions[] = {"ieee", "tf32", "tf32x3"};

static bool read_precision(tk_bcall *b, uint32_t i, tk_dtype t, tk_precision *out) {
    uint32_t k;
    if (!tk_bi_choice(b, i, 3, precisions, &k)) {
        return false;
    }
    *out = k == 0 ? TK_PREC_IEEE : k == 1 ? TK_PREC_TF32 : TK_PREC_TF32X3;
    if (k == 0 || t == TK_F32 || t == TK_DTYPE_DEP) {
        return true;
    }
    tk_err(b->c, b->arg[i]->span, "type-mismatch",
           "precision = %s is for operands of f32; these are %s", precisions[k], tk_dtype_name(t));
    return false;
}

// dot(a, b, acc, precision)
tk_value tk_rule_dot(tk_bcall *b) {
    tk_value v[3];
    bool ok = tk_bi_tile(b, 0, "multiplies", &v[0]);
    ok = tk_bi_tile(b, 1, "multiplies", &v[1]) && ok;
    bool acc_ok = !b->arg[2] || tk_bi_value(b, 2, &v[2]);
    tk_dtype dtype = ok ? v[0].type->dtype : TK_DTYPE_DEP;
    if (dtype == TK_DTYPE_DEP && ok) {
        dtype = v[1].type->dtype;
    }
    tk_precision precision = TK_PREC_IEEE;
    acc_ok = read_precision(b, 3, dtype, &precision) && acc_ok;
    tk_dtype result;
    if (ok && !dot_result(dtype, &result)) {
        tk_err(b->c, b->call->span, "type-mismatch",
               "'dot' takes f8e4m3, f8e5m2, f16, bf16, f32, f64, i8 or u8; %s is %s",
               tk_bi_arg_text(b, 0), tk_bi_type_text(b, v[0]));
        ok = false;
    }
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    ok = ok && same_dtype(b, 0, v[0], 1, v[1]) && product_shape(b, v[0], v[1], &rank, dim);
    if (!ok || !acc_ok) {
        return tk_bi_error(b);
    }
    const tk_type *type = tk_bi_make_type(b, result, rank, dim);
    if (b->arg[2] && !acc_fits(b, 2, v[2], type)) {
        return tk_bi_error(b);
    }
    uint32_t n = b->arg[2] ? 3 : 2;
    tk_x *x = tk_bi_node(b, type, n);
    for (uint32_t i = 0; i < n; i++) {
        tk_bi_operand(b, x, i, v[i]);
    }
    x->u.builtin.attr.precision = precision;
    return tk_bi_result(b, x);
}

// ---- dot_scaled
static bool scaled_dtype(tk_bcall *b, uint32_t i, tk_value v) {
    tk_dtype t = v.type->dtype;
    if (t == TK_DTYPE_DEP || tk_dtype_is_narrow_float(t)) {
        return true;
    }
    tk_err(b->c, b->arg[i]->span, "type-mismatch",
           "'dot_scaled' multiplies f8e4m3, f8e5m2, f16 or bf16; %s is %s", tk_bi_arg_text(b, i),
           tk_bi_type_text(b, v));
    return false;
}

// The scales of operand v: u8, with the extent of axis k divided by the block.
static bool scale_fits(tk_bcall *b, uint32_t i, tk_value scale, tk_value v, unsigned k) {
    tk_dtype t = scale.type->dtype;
    if (t != TK_U8 && t != TK_DTYPE_DEP) {
        tk_err(b->c, b->arg[i]->span, "type-mismatch",
               "scales are u8 that hold E8M0 exponents; %s is %s", tk_bi_arg_text(b, i),
               tk_bi_type_text(b, scale));
        return false;
    }
    int64_t dim[TK_MAX_RANK];
    memcpy(dim, v.type->dim, sizeof dim);
    dim[k] = dim[k] == TK_DIM_DEP ? dim[k] : dim[k] / SCALE_BLOCK;
    const tk_type *want = tk_bi_make_type(b, TK_U8, 2, dim);
    if (tk_bi_shape_eq(want, scale.type)) {
        return true;
    }
    tk_err(b->c, b->arg[i]->span, "shape-mismatch",
           "the scales of %s must be %s, one for %d elements along axis %u; %s is %s",
           tk_bi_arg_text(b, i - 1), tk_type_text(tk_checker_arena(b->c), want), SCALE_BLOCK, k,
           tk_bi_arg_text(b, i), tk_bi_type_text(b, scale));
    return false;
}

// The inner extent must be a whole number of blocks.
static bool whole_blocks(tk_bcall *b, tk_value x, tk_value y) {
    int64_t k = x.type->dim[1] == TK_DIM_DEP ? y.type->dim[0] : x.type->dim[1];
    if (k == TK_DIM_DEP || k % SCALE_BLOCK == 0) {
        return true;
    }
    tk_err(b->c, b->call->span, "shape-mismatch",
           "the inner extent of 'dot_scaled' must be a multiple of %d; it is %lld", SCALE_BLOCK,
           (long long)k);
    return false;
}

// dot_scaled(a, sa, b, sb, acc)
tk_value tk_rule_dot_scaled(tk_bcall *b) {
    tk_value v[5];
    bool ok = true;
    for (uint32_t i = 0; i < 4; i++) {
        ok = tk_bi_tile(b, i, "multiplies", &v[i]) && ok;
    }
    ok = (!b->arg[4] || tk_bi_value(b, 4, &v[4])) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    ok = scaled_dtype(b, 0, v[0]);
    ok = scaled_dtype(b, 2, v[2]) && ok;
    ok = ok && same_dtype(b, 0, v[0], 2, v[2]);
    if (v[0].type->rank != 2 || v[2].type->rank != 2) {
        return shapes_differ(b, v[0], v[2], "both must have rank 2");
    }
    unsigned rank;
    int64_t dim[TK_MAX_RANK];
    bool shape = product_shape(b, v[0], v[2], &rank, dim) && whole_blocks(b, v[0], v[2]);
    ok = shape && ok;
    ok = (!shape || scale_fits(b, 1, v[1], v[0], 1)) && ok;
    ok = (!shape || scale_fits(b, 3, v[3], v[2], 0)) && ok;
    if (!ok) {
        return tk_bi_error(b);
    }
    const tk_type *type = tk_bi_make_type(b, TK_F32, rank, dim);
    if (b->arg[4] && !acc_fits(b, 4, v[4], type)) {
        return tk_bi_error(b);
    }
    uint32_t n = b->arg[4] ? 5 : 4;
    tk_x *x = tk_bi_node(b, type, n);
    for (uint32_t i = 0; i < n; i++) {
        tk_bi_operand(b, x, i, v[i]);
    }
    return tk_bi_result(b, x);
}
