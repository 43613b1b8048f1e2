// SPDX-License-Identifier: Apache-2.0
// Axis analysis: claims as values, their join, and bounds. See axis.h.
#include "lower/axis_internal.h"

#include <string.h>

#define BOUND_LIMIT ((int64_t)1 << 44) // of mul and add: their products stay in 64 bits

bool tk_axis_follows(const tk_type *t) {
    return t->kind == TK_T_VALUE && (tk_dtype_is_int(t->dtype) || t->dtype == TK_BOOL);
}

unsigned tk_axis_trailing(int64_t x) {
    return x == 0 ? TK_AXIS_ZERO
                  : tk_axis_min((unsigned)__builtin_ctzll((uint64_t)x), TK_AXIS_ZERO - 1);
}

unsigned tk_axis_full(int64_t extent) { return extent > 0 ? tk_axis_trailing(extent) : 0; }

static int64_t extent_of(const tk_type *t, unsigned d) { return t->rank ? t->dim[d] : 1; }

tk_axis_value tk_axis_top(const tk_type *t) {
    tk_axis_range r = tk_axis_type_range(t->dtype);
    tk_axis_value v;
    memset(&v, 0, sizeof v);
    v.rank = (uint8_t)(t->rank ? t->rank : 1);
    v.ranged = r.ranged;
    v.lo = r.lo;
    v.hi = r.hi;
    return v;
}

tk_axis_value tk_axis_const(const tk_type *t, tk_const k) {
    tk_axis_value v = tk_axis_top(t);
    bool fits = k.dtype != TK_U64 || k.bits <= INT64_MAX;
    int64_t bits = k.dtype == TK_BOOL ? (int64_t)k.bits
                   : fits             ? tk_const_as_i64(k)
                                      : (int64_t)k.bits; // the low zeros are the same
    v.ranged = fits;
    v.lo = v.hi = fits ? bits : 0;
    for (unsigned d = 0; d < v.rank; d++) {
        v.dim[d] = (tk_axis_dim){0, (uint8_t)tk_axis_full(extent_of(t, d)),
                                 (uint8_t)tk_axis_trailing(bits)};
    }
    return v;
}

tk_axis_dim tk_axis_rebase(tk_axis_dim d, unsigned contig) {
    if (contig < d.contig) {
        d.contig = (uint8_t)contig;
        d.div = (uint8_t)tk_axis_min(d.div, contig);
    }
    return d;
}

unsigned tk_axis_every(const tk_axis_value *v) {
    unsigned most = 0;
    for (unsigned d = 0; d < v->rank; d++) {
        most = tk_axis_max(most, tk_axis_each(v->dim[d]));
    }
    return most;
}

bool tk_axis_constant(const tk_axis_value *v, int64_t *out) {
    *out = v->lo;
    return v->ranged && v->lo == v->hi;
}

void tk_axis_settle(tk_axis *x, tk_axis_value *v, const tk_type *t, bool wraps) {
    unsigned bits = t->dtype == TK_BOOL ? 1 : tk_dtype_bits(t->dtype);
    for (unsigned d = 0; d < v->rank; d++) {
        tk_axis_dim *a = &v->dim[d];
        unsigned full = tk_axis_full(extent_of(t, d));
        *a = tk_axis_rebase(*a, full);
        a->same = (uint8_t)tk_axis_min(a->same, full);
        if (wraps) {
            unsigned whole = tk_axis_min(a->div, bits - 1);
            tk_axis_fire(x, TK_AXIS_TORN, whole < a->contig);
            *a = tk_axis_rebase(*a, whole);
        }
    }
    int64_t k;
    bool known = tk_axis_constant(v, &k);
    for (unsigned d = 0; known && d < v->rank; d++) {
        v->dim[d] =
            (tk_axis_dim){0, (uint8_t)tk_axis_full(extent_of(t, d)), (uint8_t)tk_axis_trailing(k)};
    }
    unsigned every = tk_axis_every(v);
    for (unsigned d = 0; d < v->rank; d++) {
        v->dim[d].div = (uint8_t)tk_axis_max(v->dim[d].div, every);
    }
}

// ---- Bounds

void tk_axis_add_bound(tk_axis_value *v, tk_axis_bound b) {
    if (b.mul <= 0 || b.mul > BOUND_LIMIT || b.add > BOUND_LIMIT || b.add < -BOUND_LIMIT) {
        return;
    }
    for (unsigned i = 0; i < v->nbound; i++) {
        tk_axis_bound *o = &v->bound[i];
        if (o->param == b.param && o->axis == b.axis && o->mul == b.mul) {
            o->add = o->add > b.add ? o->add : b.add;
            return;
        }
    }
    if (v->nbound < TK_AXIS_BOUNDS) {
        v->bound[v->nbound++] = b;
    }
}

void tk_axis_copy_bounds(tk_axis_value *out, const tk_axis_value *a) {
    for (unsigned i = 0; i < a->nbound; i++) {
        tk_axis_add_bound(out, a->bound[i]);
    }
}

bool tk_axis_shift_bounds(tk_axis_value *out, const tk_axis_value *a, int64_t scale,
                          int64_t shift) {
    for (unsigned i = 0; i < a->nbound; i++) {
        tk_axis_bound b = a->bound[i];
        int64_t by;
        if (!__builtin_mul_overflow(b.mul, shift, &by) && by >= -BOUND_LIMIT && by <= BOUND_LIMIT &&
            !__builtin_mul_overflow(b.mul, scale, &b.mul)) {
            b.add += by;
            tk_axis_add_bound(out, b);
        }
    }
    return a->nbound > 0;
}

// A bound that holds for v: its own, or one that is true of so small a value whatever the size.
static bool has_bound(const tk_axis_value *v, tk_axis_bound b, int64_t *add) {
    for (unsigned i = 0; i < v->nbound; i++) {
        const tk_axis_bound *o = &v->bound[i];
        if (o->param == b.param && o->axis == b.axis && o->mul == b.mul) {
            *add = o->add < b.add ? o->add : b.add;
            return true;
        }
    }
    int64_t most;
    *add = b.add;
    return v->ranged && !__builtin_mul_overflow(v->hi, b.mul, &most) && most <= -b.add;
}

void tk_axis_meet_bounds(tk_axis_value *out, const tk_axis_value *a, const tk_axis_value *b) {
    const tk_axis_value *side[2] = {a, b};
    for (unsigned s = 0; s < 2; s++) {
        for (unsigned i = 0; i < side[s]->nbound; i++) {
            tk_axis_bound k = side[s]->bound[i];
            if (has_bound(side[1 - s], k, &k.add)) {
                tk_axis_add_bound(out, k);
            }
        }
    }
}

// ---- Join

tk_axis_value tk_axis_join(const tk_axis_value *a, const tk_axis_value *b) {
    tk_axis_value v = *a;
    v.ranged = a->ranged && b->ranged;
    v.lo = !v.ranged ? 0 : a->lo < b->lo ? a->lo : b->lo;
    v.hi = !v.ranged ? 0 : a->hi > b->hi ? a->hi : b->hi;
    for (unsigned d = 0; d < v.rank; d++) {
        unsigned contig = tk_axis_min(a->dim[d].contig, b->dim[d].contig);
        tk_axis_dim p = tk_axis_rebase(a->dim[d], contig), q = tk_axis_rebase(b->dim[d], contig);
        v.dim[d] = (tk_axis_dim){(uint8_t)contig, (uint8_t)tk_axis_min(p.same, q.same),
                                 (uint8_t)tk_axis_min(p.div, q.div)};
    }
    v.nbound = 0;
    memset(v.bound, 0, sizeof v.bound);
    tk_axis_meet_bounds(&v, a, b);
    return v;
}

bool tk_axis_equal(const tk_axis_value *a, const tk_axis_value *b) {
    bool equal = a->ranged == b->ranged && a->lo == b->lo && a->hi == b->hi &&
                 a->nbound == b->nbound && memcmp(a->dim, b->dim, sizeof a->dim) == 0;
    for (unsigned i = 0; equal && i < a->nbound; i++) {
        const tk_axis_bound *p = &a->bound[i], *q = &b->bound[i];
        equal = p->param == q->param && p->axis == q->axis && p->mul == q->mul && p->add == q->add;
    }
    return equal;
}

// ---- Text

void tk_axis_print(tk_buf *out, const tk_axis_value *v) {
    for (unsigned d = 0; d < v->rank; d++) {
        const tk_axis_dim *a = &v->dim[d];
        tk_buf_fmt(out, "%scontig %llu same %llu div ", d ? "; " : "", 1ULL << a->contig,
                   1ULL << a->same);
        if (a->div == TK_AXIS_ZERO) {
            tk_buf_str(out, "any");
        } else {
            tk_buf_fmt(out, "%llu", 1ULL << a->div);
        }
    }
    if (v->ranged) {
        tk_buf_fmt(out, " [%lld, %lld]", (long long)v->lo, (long long)v->hi);
    }
    for (unsigned i = 0; i < v->nbound; i++) {
        const tk_axis_bound *b = &v->bound[i];
        tk_buf_fmt(out, ", %lld * x + %lld <= size(%u, %u)", (long long)b->mul, (long long)b->add,
                   b->param, b->axis);
    }
}

const char *tk_axis_rule_name(tk_axis_rule r) {
    static const char *const name[] = {
#define TK_AXIS_RULE(NAME) #NAME,
        TK_AXIS_RULES(TK_AXIS_RULE)
#undef TK_AXIS_RULE
    };
    return name[r];
}
