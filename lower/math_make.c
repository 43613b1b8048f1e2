// SPDX-License-Identifier: Apache-2.0
// Making the ops of mathematical functions: constants made once, coefficients, and the parts that
// several functions share. See math.h.
#include "lower/math_ops.h"

// ---- Ops ----------------------------------------------------------------------------------------

void tk_math_open(tk_math *m, tk_func *f, tk_arena *scratch, tk_op *before, tk_dtype t) {
    TK_CHECK(scratch, t == TK_F32 || t == TK_F64);
    const bool narrow = t == TK_F32;
    *m = (tk_math){.f = f,
                   .scratch = scratch,
                   .before = before,
                   .loc = before->loc,
                   .t = t,
                   .it = narrow ? TK_I32 : TK_I64,
                   .ut = narrow ? TK_U32 : TK_U64,
                   .shape = tk_value_type(f, before->res[0]),
                   .man = narrow ? 23 : 52,
                   .bits = narrow ? 32 : 64,
                   .bias = narrow ? 127 : 1023};
}

static void place(tk_math *m, tk_op *op) {
    m->ops++;
    if (m->before) {
        tk_op_insert_before(m->before, op);
    } else {
        tk_op_append(m->into, op);
    }
}

tk_vid tk_math_op(tk_math *m, tk_opcode code, tk_dtype result, uint32_t n, const tk_vid *opnd) {
    const tk_type *type = tk_type_with_dtype(m->f->module->arena, m->shape, result);
    tk_op *op = tk_op_new(m->f, code, m->loc, n, opnd, 1, &type, 0);
    place(m, op);
    return op->res[0];
}

tk_vid tk_math_const_of(tk_math *m, tk_const c) {
    for (size_t i = 0; i < m->consts.n; i++) {
        if (tk_const_same(m->consts.at[i].value, c)) {
            return m->consts.at[i].v;
        }
    }
    const tk_vid v = tk_math_op(m, TK_OP_CONST, c.dtype, 0, NULL);
    tk_value_def(m->f, v)->at.value = c;
    const tk_math_const made = {c, v};
    tk_vec_push(m->scratch, &m->consts, made);
    return v;
}

tk_dtype tk_math_dtype(const tk_math *m, tk_vid v) { return tk_value_type(m->f, v)->dtype; }

tk_vid tk_math_cast(tk_math *m, tk_vid v, tk_dtype to) {
    return tk_math_dtype(m, v) == to ? v : tk_math_op(m, TK_OP_CAST, to, 1, &v);
}

tk_vid tk_math_bits(tk_math *m, tk_vid v, tk_dtype to) {
    return tk_math_dtype(m, v) == to ? v : tk_math_op(m, TK_OP_BITCAST, to, 1, &v);
}

// ---- Coefficients -------------------------------------------------------------------------------

#define TK_POLY(NAME, TYPE, ...)  static const double poly_##NAME##_##TYPE[] = {__VA_ARGS__};
#define TK_WORDS(NAME, TYPE, ...) static const uint64_t words_##NAME##_##TYPE[] = {__VA_ARGS__};
#include "lower/math_coeff.def"

typedef struct row {
    const double *c;
    size_t n;
} row;

static const row f32_rows[TK_POLY_COUNT] = {
#define TK_POLY(NAME, TYPE, ...) TK_POLY_ROW_##TYPE(NAME)
#define TK_POLY_ROW_F32(NAME)                                                                      \
    [TK_POLY_##NAME] = {poly_##NAME##_F32, sizeof poly_##NAME##_F32 / sizeof(double)},
#define TK_POLY_ROW_F64(NAME)
#define TK_WORDS(NAME, TYPE, ...)
#include "lower/math_coeff.def"
#undef TK_POLY_ROW_F32
#undef TK_POLY_ROW_F64
};

static const row f64_rows[TK_POLY_COUNT] = {
#define TK_POLY(NAME, TYPE, ...) TK_POLY_ROW_##TYPE(NAME)
#define TK_POLY_ROW_F64(NAME)                                                                      \
    [TK_POLY_##NAME] = {poly_##NAME##_F64, sizeof poly_##NAME##_F64 / sizeof(double)},
#define TK_POLY_ROW_F32(NAME)
#define TK_WORDS(NAME, TYPE, ...)
#include "lower/math_coeff.def"
#undef TK_POLY_ROW_F32
#undef TK_POLY_ROW_F64
};

const double *tk_poly(tk_poly_id id, tk_dtype t, size_t *n) {
    const row *r = t == TK_F32 ? &f32_rows[id] : &f64_rows[id];
    *n = r->n;
    return r->c;
}

const uint64_t *tk_two_over_pi(tk_dtype t, size_t *n) {
    const bool narrow = t == TK_F32;
    *n = (narrow ? sizeof words_TWO_OVER_PI_F32 : sizeof words_TWO_OVER_PI_F64) / sizeof(uint64_t);
    return narrow ? words_TWO_OVER_PI_F32 : words_TWO_OVER_PI_F64;
}

tk_vid tk_math_poly(tk_math *m, tk_poly_id id, tk_vid x) {
    size_t n;
    const double *c = tk_poly(id, m->t, &n);
    TK_CHECK(m->scratch, n > 0);
    tk_vid p = num(m, c[n - 1]);
    for (size_t i = n - 1; i-- > 0;) {
        p = mfma(m, p, x, num(m, c[i]));
    }
    return p;
}

// ---- Shared parts -------------------------------------------------------------------------------

tk_vid tk_math_pow2(tk_math *m, tk_vid n) {
    return tk_math_bits(m, shl_c(m, addi_c(m, n, m->bias), m->man), m->t);
}

// Half of the exponent at a time: the first product is exact, so that a subnormal result is rounded
// once.
tk_vid tk_math_scale(tk_math *m, tk_vid y, tk_vid n) {
    const tk_vid half = shr_c(m, n, 1);
    const tk_vid first = mul(m, y, tk_math_pow2(m, half));
    return mul(m, first, tk_math_pow2(m, sub(m, n, half)));
}

tk_vid tk_math_with_sign(tk_math *m, tk_vid v, tk_vid sign_of) {
    const tk_vid top = tk_math_const_of(m, (tk_const){m->ut, (uint64_t)1 << (m->bits - 1)});
    const tk_vid sign = and(m, tk_math_bits(m, sign_of, m->ut), top);
    return tk_math_bits(m, or (m, tk_math_bits(m, v, m->ut), sign), m->t);
}

// |r| is at most log(2) / 2 and a little; the first fma is exact for the arguments that matter.
tk_math_exponent tk_math_exp_reduce(tk_math *m, tk_vid x) {
    const tk_vid k = mrint(m, mul(m, x, coeff(m, TK_POLY_LOG2E, 0)));
    size_t n;
    const double *ln2 = tk_poly(TK_POLY_LN2, m->t, &n);
    const tk_vid first = mfma(m, k, num(m, -ln2[0]), x);
    const tk_vid r = mfma(m, k, num(m, -ln2[1]), first);
    return (tk_math_exponent){tk_math_cast(m, k, m->it), r};
}

// Subnormals are made normal first. The integer between the pattern of x and that of sqrt(1/2) has
// the exponent in its upper part.
tk_math_mantissa tk_math_split(tk_math *m, tk_vid x) {
    const uint64_t root = m->t == TK_F32 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
    const int up = m->t == TK_F32 ? 25 : 54;
    const tk_vid small = lt(m, x, num(m, ldexp(1, 1 - m->bias)));
    const tk_vid normal = choose(m, small, mul_c(m, x, ldexp(1, up)), x);
    const tk_vid above = addi_c(m, tk_math_bits(m, normal, m->it), -(int64_t)root);
    const tk_vid e =
        sub(m, shr_c(m, above, m->man), choose(m, small, whole(m, m->it, up), whole(m, m->it, 0)));
    const tk_vid low = and_c(m, above, ((int64_t)1 << m->man) - 1);
    const tk_vid one_f = tk_math_bits(m, addi_c(m, low, (int64_t)root), m->t);
    return (tk_math_mantissa){tk_math_cast(m, e, m->t), add_c(m, one_f, -1)};
}
