// SPDX-License-Identifier: Apache-2.0
// Axis analysis: ranges of results. Where the exact result may leave the type, the range is the
// type's and the operation counts as one that wraps.
#include "lower/axis_internal.h"

typedef tk_axis_range range;

range tk_axis_type_range(tk_dtype t) {
    if (t == TK_BOOL) {
        return (range){true, false, 0, 1};
    }
    if (t == TK_U64) {
        return (range){false, false, 0, 0};
    }
    unsigned bits = tk_dtype_bits(t);
    if (tk_dtype_is_signed(t)) {
        int64_t top = (int64_t)(UINT64_MAX >> (65 - bits));
        return (range){true, false, -top - 1, top};
    }
    return (range){true, false, 0, (int64_t)((UINT64_C(1) << bits) - 1)};
}

range tk_axis_range_of(const tk_axis_value *v) { return (range){v->ranged, false, v->lo, v->hi}; }

bool tk_axis_not_negative(const tk_axis_value *v, tk_dtype t) {
    return !tk_dtype_is_signed(t) || v->lo >= 0;
}

static range wrapped(tk_dtype t) {
    range r = tk_axis_type_range(t);
    r.wraps = true;
    return r;
}

// lo..hi in type t, where `over` says that one of them is beyond i64.
static range within(tk_dtype t, bool over, int64_t lo, int64_t hi) {
    range all = tk_axis_type_range(t);
    int64_t least = all.ranged ? all.lo : 0, most = all.ranged ? all.hi : INT64_MAX;
    return over || lo < least || hi > most ? wrapped(t) : (range){true, false, lo, hi};
}

static range exactly(int64_t lo, int64_t hi) { return (range){true, false, lo, hi}; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// ---- Arithmetic

static range add(tk_dtype t, range a, range b, bool minus) {
    if (!a.ranged || !b.ranged) {
        return wrapped(t);
    }
    int64_t lo, hi;
    bool over =
        minus ? __builtin_sub_overflow(a.lo, b.hi, &lo) : __builtin_add_overflow(a.lo, b.lo, &lo);
    over = (minus ? __builtin_sub_overflow(a.hi, b.lo, &hi)
                  : __builtin_add_overflow(a.hi, b.hi, &hi)) ||
           over;
    return within(t, over, lo, hi);
}

static range multiply(tk_dtype t, range a, range b) {
    if (!a.ranged || !b.ranged) {
        return wrapped(t);
    }
    int64_t x[2] = {a.lo, a.hi}, y[2] = {b.lo, b.hi}, lo = INT64_MAX, hi = INT64_MIN;
    bool over = false;
    for (unsigned i = 0; i < 4; i++) {
        int64_t p = 0;
        over = __builtin_mul_overflow(x[i & 1], y[i >> 1], &p) || over;
        lo = least(lo, p);
        hi = most(hi, p);
    }
    return within(t, over, lo, hi);
}

static int64_t ceiling(int64_t a, int64_t b) { // b > 0
    return a / b + (a % b > 0 ? 1 : 0);
}

// Quotients towards zero or, with `up`, rounded up.
static range divide(tk_dtype t, range a, range b, bool up) {
    bool is_signed = tk_dtype_is_signed(t);
    if (!a.ranged || (b.ranged && b.lo <= 0 && is_signed)) {
        return wrapped(t); // also the least value by -1
    }
    if (!b.ranged || b.lo <= 0) { // unsigned, and perhaps by 0, which gives 0
        return exactly(0, a.hi);
    }
    int64_t by_lo = a.lo >= 0 ? b.hi : b.lo, by_hi = a.hi >= 0 ? b.lo : b.hi;
    return up ? exactly(ceiling(a.lo, by_lo), ceiling(a.hi, by_hi))
              : exactly(a.lo / by_lo, a.hi / by_hi);
}

// The remainder has the sign of a, and no greater magnitude; by 0 it is a.
static range remainder_of(tk_dtype t, range a, range b) {
    if (!a.ranged) {
        bool known = b.ranged && b.lo >= 1;
        return known ? exactly(0, b.hi - 1) : tk_axis_type_range(t);
    }
    range r = exactly(least(a.lo, 0), most(a.hi, 0));
    if (b.ranged && b.lo >= 1) {
        r.lo = most(r.lo, 1 - b.hi);
        r.hi = least(r.hi, b.hi - 1);
    }
    return r;
}

static range smaller(range a, range b, tk_dtype t) {
    if (!a.ranged || !b.ranged) { // u64
        range known = a.ranged ? a : b;
        return known.ranged ? exactly(0, known.hi) : tk_axis_type_range(t);
    }
    return exactly(least(a.lo, b.lo), least(a.hi, b.hi));
}

static range greater(range a, range b, tk_dtype t) {
    return a.ranged && b.ranged ? exactly(most(a.lo, b.lo), most(a.hi, b.hi))
                                : tk_axis_type_range(t);
}

// ---- Bits

static int64_t ones_above(int64_t x) { // x >= 0: the least 2^k - 1 that is not below it
    uint64_t u = (uint64_t)x;
    for (unsigned s = 1; s < 64; s *= 2) {
        u |= u >> s;
    }
    return (int64_t)u;
}

static bool is_natural(range a) { return a.ranged && a.lo >= 0; }

static range bit_and(tk_dtype t, range a, range b) {
    if (is_natural(a) && is_natural(b)) {
        return exactly(0, least(a.hi, b.hi));
    }
    return is_natural(a)   ? exactly(0, a.hi)
           : is_natural(b) ? exactly(0, b.hi)
                           : tk_axis_type_range(t);
}

static range bit_or(tk_dtype t, range a, range b, bool exclusive) {
    if (!is_natural(a) || !is_natural(b)) {
        return tk_axis_type_range(t);
    }
    return exactly(exclusive ? 0 : most(a.lo, b.lo), ones_above(a.hi | b.hi));
}

static range shift_left(tk_dtype t, range a, range n) {
    unsigned bits = tk_dtype_bits(t);
    if (!n.ranged || n.lo != n.hi) {
        return wrapped(t);
    }
    if (n.lo < 0 || n.lo >= bits) {
        return exactly(0, 0);
    }
    if (n.lo >= 62) {
        return wrapped(t);
    }
    int64_t by = (int64_t)1 << n.lo;
    return multiply(t, a, exactly(by, by));
}

static range shift_right(tk_dtype t, range a, range n) {
    int64_t bits = tk_dtype_bits(t);
    bool known = n.ranged && n.lo == n.hi, beyond = known && (n.lo < 0 || n.lo >= bits);
    if (beyond && !tk_dtype_is_signed(t)) {
        return exactly(0, 0);
    }
    unsigned by = beyond ? (unsigned)bits - 1 : known ? (unsigned)n.lo : 0;
    if (!a.ranged) { // u64
        return known && by > 0 ? exactly(0, (int64_t)(UINT64_MAX >> by)) : tk_axis_type_range(t);
    }
    // By an unknown count: towards 0 or, from below it, -1.
    return known ? exactly(a.lo >> by, a.hi >> by)
                 : exactly(least(a.lo, 0), most(a.hi, a.lo < 0 ? -1 : 0));
}

static range all_ones_less(tk_dtype t, range a) { // ~a
    if (!a.ranged) {
        return wrapped(t);
    }
    if (tk_dtype_is_signed(t)) {
        return exactly(-1 - a.hi, -1 - a.lo);
    }
    range all = tk_axis_type_range(t);
    return all.ranged ? exactly(all.hi - a.hi, all.hi - a.lo) : wrapped(t);
}

static range next_power(tk_dtype t, range a) {
    if (!a.ranged) {
        return tk_axis_type_range(t);
    }
    unsigned top = tk_dtype_bits(t) - (tk_dtype_is_signed(t) ? 2 : 1);
    top = top > 62 ? 62 : top;
    if (a.hi > (int64_t)1 << top) { // a power that does not fit is 0
        return tk_axis_type_range(t);
    }
    return exactly(a.lo > 1 ? a.lo : 1, a.hi > 1 ? ones_above(a.hi - 1) + 1 : 1);
}

static range product_high(tk_dtype t, range a, range b) {
    if (!is_natural(a) || !is_natural(b)) {
        return tk_axis_type_range(t);
    }
    return exactly(0, least(a.hi, b.hi)); // the other factor is below 2^bits
}

// ---- Comparisons

static range truth(bool yes, bool no) { return exactly(yes ? 1 : 0, no ? 0 : 1); }

static range compare(tk_numop op, range a, range b) {
    if (!a.ranged || !b.ranged) {
        return exactly(0, 1);
    }
    bool less = a.hi<b.lo, more = a.lo> b.hi, same = a.lo == a.hi && b.lo == b.hi && a.lo == b.lo;
    switch ((int)op) { // the caller's six
    case TK_NUM_EQ:
        return truth(same, less || more);
    case TK_NUM_NE:
        return truth(less || more, same);
    case TK_NUM_LT:
        return truth(less, a.lo >= b.hi);
    case TK_NUM_LE:
        return truth(a.hi <= b.lo, more);
    case TK_NUM_GT:
        return truth(more, a.hi <= b.lo);
    }
    return truth(a.lo >= b.hi, less); // GE
}

// ---- All

static range binary(tk_numop op, tk_dtype t, range a, range b) {
    switch ((int)op) { // the rest is not for integers, or handled by the callers
    case TK_NUM_ADD:
        return add(t, a, b, false);
    case TK_NUM_SUB:
        return add(t, a, b, true);
    case TK_NUM_MUL:
        return multiply(t, a, b);
    case TK_NUM_DIV:
        return divide(t, a, b, false);
    case TK_NUM_CDIV:
        return divide(t, a, b, true);
    case TK_NUM_REM:
        return remainder_of(t, a, b);
    case TK_NUM_MIN:
    case TK_NUM_FMIN:
        return smaller(a, b, t);
    case TK_NUM_MAX:
    case TK_NUM_FMAX:
        return greater(a, b, t);
    case TK_NUM_AND:
        return bit_and(t, a, b);
    case TK_NUM_OR:
        return bit_or(t, a, b, false);
    case TK_NUM_XOR:
        return bit_or(t, a, b, true);
    case TK_NUM_SHL:
        return shift_left(t, a, b);
    case TK_NUM_SHR:
        return shift_right(t, a, b);
    case TK_NUM_MULHI:
        return product_high(t, a, b);
    case TK_NUM_EQ:
    case TK_NUM_NE:
    case TK_NUM_LT:
    case TK_NUM_LE:
    case TK_NUM_GT:
    case TK_NUM_GE:
        return compare(op, a, b);
    }
    return wrapped(t);
}

static range unary(tk_numop op, tk_dtype t, range a) {
    switch ((int)op) { // the rest is not for integers
    case TK_NUM_NEG:
        return add(t, exactly(0, 0), a, true);
    case TK_NUM_NOT:
        return exactly(1 - a.hi, 1 - a.lo);
    case TK_NUM_BNOT:
        return all_ones_less(t, a);
    case TK_NUM_ABS: {
        range minus = add(t, exactly(0, 0), a, true);
        if (!tk_dtype_is_signed(t) || a.lo >= 0) {
            return a;
        }
        return minus.wraps ? minus : exactly(a.hi < 0 ? -a.hi : 0, most(a.hi, minus.hi));
    }
    case TK_NUM_POPCOUNT:
    case TK_NUM_CLZ:
        return exactly(0, tk_dtype_bits(t));
    case TK_NUM_NEXT_POW2:
        return next_power(t, a);
    }
    return wrapped(t);
}

range tk_axis_op_range(tk_numop op, tk_dtype t, const tk_axis_value *const *v) {
    range a = tk_axis_range_of(v[0]);
    if (op == TK_NUM_CLAMP) {
        range lo = tk_axis_range_of(v[1]), hi = tk_axis_range_of(v[2]);
        return smaller(greater(a, lo, t), hi, t);
    }
    if (op == TK_NUM_SELECT) {
        tk_axis_value j = tk_axis_join(v[1], v[2]);
        return tk_axis_range_of(&j);
    }
    return tk_numop_arity(op) == 1 ? unary(op, t, a) : binary(op, t, a, tk_axis_range_of(v[1]));
}

range tk_axis_cast_range(const tk_axis_value *v, tk_dtype to) {
    range a = tk_axis_range_of(v);
    if (to == TK_BOOL) {
        bool zero = a.ranged && a.lo == 0 && a.hi == 0;
        return truth(a.ranged && (a.lo > 0 || a.hi < 0), zero);
    }
    return a.ranged ? within(to, false, a.lo, a.hi) : wrapped(to);
}
