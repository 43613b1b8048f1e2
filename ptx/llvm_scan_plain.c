// SPDX-License-Identifier: Apache-2.0
// scan and scan_fn where the place in a line is bits of registers, lanes and warps (tk_scan_of),
// from the lowest bit on.
//
// Each thread scans the registers of its lowest places one after the other and has the total of
// each such run. From then on a step joins neighbouring blocks of a line: the total of the one that
// comes first goes in front of the other's prefix, and the total of both is known to all threads
// that hold a part. Between lanes by a shuffle, between warps through scratch, all warps of a line
// at once. At the end each register gets its run's prefix. `reverse` scans from the highest place:
// what comes first is then the right operand.
#include "ptx/llvm_across.h"
#include "ptx/llvm_scan.h"

typedef struct prefix { // of a run: all that the scan has passed before it
    LLVMValueRef *v;    // NULL: nothing yet
    LLVMValueRef has;   // i1: whether this thread's is there; NULL: it is, from an identity on
} prefix;

typedef struct plain {
    tk_emit *e;
    const tk_emit_scan *s;
    tk_scan how;
    uint32_t n;           // registers
    uint32_t run, done;   // bits of a register's number: of the runs; of all steps so far
    LLVMValueRef **x;     // by register, then operand: scanned in its run
    LLVMValueRef **total; // by register without the bits done
    prefix *before;       // by register without the bits of runs
} plain;

static LLVMValueRef *values(const plain *p) {
    return TK_NEW_ARRAY(p->e->arena, LLVMValueRef, p->s->m);
}

static bool of_kind(const plain *p) { return p->s->op->code == TK_OP_SCAN; }

static LLVMValueRef *joined(const plain *p, LLVMValueRef *left, LLVMValueRef *right) {
    const uint32_t m = p->s->m;
    LLVMValueRef *arg = TK_NEW_ARRAY(p->e->arena, LLVMValueRef, 2 * m), *out = values(p);
    for (uint32_t k = 0; k < m; k++) {
        arg[k] = left[k];
        arg[m + k] = right[k];
    }
    tk_emit_scan_combine(p->e, p->s, arg, out);
    return out;
}

// What the scan passes first, and what later.
static LLVMValueRef *in_order(const plain *p, LLVMValueRef *first, LLVMValueRef *then) {
    return p->s->op->at.reverse ? joined(p, then, first) : joined(p, first, then);
}

static LLVMValueRef *chosen(const plain *p, LLVMValueRef c, LLVMValueRef *a, LLVMValueRef *b) {
    LLVMValueRef *out = values(p);
    for (uint32_t k = 0; k < p->s->m; k++) {
        out[k] = tk_ll_sel(p->e, c, a[k], b[k]);
    }
    return out;
}

// Where c holds (NULL: everywhere) `first` goes in front of the prefix.
static void go_before(const plain *p, prefix *b, LLVMValueRef c, LLVMValueRef *first) {
    if (!b->v) {
        *b = (prefix){first, c ? c : LLVMConstInt(tk_ll_int(p->e, 1), 1, 0)};
        return;
    }
    LLVMValueRef *v = in_order(p, first, b->v);
    v = b->has ? chosen(p, b->has, v, first) : v;
    b->v = c ? chosen(p, c, v, b->v) : v;
    b->has = !b->has ? NULL
             : c     ? tk_ll_or(p->e, b->has, c)
                     : LLVMConstInt(LLVMTypeOf(b->has), 1, 0);
}

// For each run whose total is that of register r.
static void go_before_all(const plain *p, uint32_t r, LLVMValueRef c, LLVMValueRef *first) {
    for (uint32_t q = 0; q < p->n; q++) {
        if ((q & p->run) == 0 && (q & ~p->done) == r) {
            go_before(p, &p->before[q], c, first);
        }
    }
}

// ---- Steps --------------------------------------------------------------------------------------

// The register of place i of the run that begins at r.
static uint32_t in_run(const plain *p, uint32_t r, uint32_t i) {
    for (unsigned k = 0; i >> k; k++) {
        r |= i >> k & 1 ? 1U << p->how.bit[k].i : 0;
    }
    return r;
}

static uint32_t run_length(const plain *p) { return 1U << __builtin_popcount(p->run); }

// Registers in the order of the scan.
static uint32_t nth_in_run(const plain *p, uint32_t r, uint32_t i) {
    return in_run(p, r, p->s->op->at.reverse ? run_length(p) - 1 - i : i);
}

static void runs(plain *p) {
    unsigned k = 0;
    for (; k < p->how.log && p->how.bit[k].kind == TK_SCAN_REG; k++) {
        p->run |= 1U << p->how.bit[k].i;
    }
    p->done = p->run;
    for (uint32_t r = 0; r < p->n; r++) {
        if (r & p->run) {
            continue;
        }
        LLVMValueRef *last = p->x[nth_in_run(p, r, 0)];
        for (uint32_t i = 1; i < run_length(p); i++) {
            const uint32_t at = nth_in_run(p, r, i);
            last = p->x[at] = in_order(p, last, p->x[at]);
        }
        p->total[r] = last;
    }
}

static void registers(plain *p, unsigned i) {
    const uint32_t bit = 1U << i;
    const bool reverse = p->s->op->at.reverse;
    for (uint32_t r = 0; r < p->n; r++) {
        if (r & (p->done | bit)) {
            continue;
        }
        LLVMValueRef *low = p->total[r], *high = p->total[r | bit];
        go_before_all(p, reverse ? r : r | bit, NULL, reverse ? high : low);
        p->total[r] = joined(p, low, high);
    }
    p->done |= bit;
}

static void lanes(plain *p, unsigned i) {
    tk_emit *e = p->e;
    LLVMValueRef low = tk_ll_is(e, tk_ll_mask(e, e->lane, 1U << i), 0);
    LLVMValueRef later = p->s->op->at.reverse ? low : LLVMBuildNot(e->b, low, "");
    for (uint32_t r = 0; r < p->n; r++) {
        if (r & p->done) {
            continue;
        }
        LLVMValueRef *own = p->total[r], *other = values(p);
        for (uint32_t k = 0; k < p->s->m; k++) {
            other[k] = tk_emit_shuffle_xor(e, own[k], 1U << i);
        }
        go_before_all(p, r, later, other);
        p->total[r] = of_kind(p) // in either order the same
                          ? joined(p, own, other)
                          : joined(p, chosen(p, low, own, other), chosen(p, low, other, own));
    }
}

// ---- Between warps

// The bits of i at the places of warp bits [from, to) of the line.
static uint32_t warp_bits(const plain *p, unsigned from, unsigned to, uint32_t i) {
    uint32_t w = 0;
    for (unsigned k = from; k < to; k++) {
        w |= (i >> (k - from) & 1) << p->how.bit[k].i;
    }
    return w;
}

// Each thread's totals side by side: number r of warp w.
static LLVMValueRef place_of(const plain *p, uint32_t r, LLVMValueRef w) {
    tk_emit *e = p->e;
    LLVMValueRef row = tk_ll_add(e, w, tk_emit_i32(e, (int64_t)r * e->warps));
    return tk_ll_add(e, tk_ll_shl(e, row, TK_LANE_BITS), e->lane);
}

static void to_scratch(const plain *p) {
    uint32_t nth = 0;
    for (uint32_t r = 0; r < p->n; r++) {
        for (uint32_t k = 0; k < p->s->m && !(r & p->done); k++) {
            tk_emit_put(p->e, p->s->op, p->s->base[k], p->s->t[k], place_of(p, nth, p->e->warp),
                        p->total[r][k]);
        }
        nth += !(r & p->done);
    }
    tk_emit_barrier(p->e);
}

static void warps(plain *p, unsigned from, unsigned to) {
    tk_emit *e = p->e;
    const uint32_t count = 1U << (to - from), all = warp_bits(p, from, to, count - 1);
    const bool reverse = p->s->op->at.reverse;
    LLVMValueRef others = tk_ll_mask(e, e->warp, ~(uint64_t)all), own = tk_ll_mask(e, e->warp, all);
    uint32_t nth = 0;
    to_scratch(p);
    for (uint32_t r = 0; r < p->n; r++) {
        if (r & p->done) {
            continue;
        }
        LLVMValueRef *sum = NULL, *mine = NULL, first = NULL;
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t w = warp_bits(p, from, to, reverse ? count - 1 - i : i);
            LLVMValueRef here = tk_ll_is(e, own, w), *v = values(p);
            LLVMValueRef at = place_of(p, nth, tk_ll_or(e, others, tk_emit_i32(e, w)));
            for (uint32_t k = 0; k < p->s->m; k++) {
                v[k] = tk_emit_fetch(e, p->s->op, p->s->base[k], p->s->t[k], at);
            }
            first = i ? first : LLVMBuildNot(e->b, here, "");
            mine = i > 1 ? chosen(p, here, sum, mine) : sum;
            sum = i ? in_order(p, sum, v) : v;
        }
        go_before_all(p, r, first, mine);
        p->total[r] = sum;
        nth++;
    }
}

// ---- Results ------------------------------------------------------------------------------------

// The kinds need not ask what is there. The sum of an exclusive scan's first element is 0, which is
// not its identity: that is -0.
static void start(plain *p) {
    for (uint32_t q = 0; of_kind(p) && !p->s->op->at.exclusive && q < p->n; q++) {
        p->before[q].v = values(p);
        p->before[q].v[0] = tk_emit_scan_identity(p->e, p->s);
    }
}

// Initial values come before all else.
static void initial(plain *p) {
    LLVMValueRef *v = values(p);
    for (uint32_t k = 0; k < p->s->m; k++) {
        v[k] = tk_emit_get(p->e, p->s->op->opnd[p->s->m + k])[0];
    }
    for (uint32_t q = 0; q < p->n; q++) {
        if ((q & p->run) == 0) {
            go_before(p, &p->before[q], NULL, v);
        }
    }
}

// Of an exclusive scan: the element whose prefix is a run's.
static LLVMValueRef *prefix_alone(const plain *p, const prefix *b) {
    if (!of_kind(p)) {
        return b->v; // the initial value at least
    }
    LLVMValueRef *first = values(p);
    first[0] = tk_emit_scan_first(p->e, p->s);
    return !b->v ? first : chosen(p, b->has, b->v, first);
}

static LLVMValueRef *after_prefix(const plain *p, const prefix *b, LLVMValueRef *v) {
    if (!b->v) {
        return v;
    }
    LLVMValueRef *both = in_order(p, b->v, v);
    return b->has ? chosen(p, b->has, both, v) : both;
}

static void results(const plain *p, LLVMValueRef **out) {
    const bool exclusive = p->s->op->at.exclusive;
    for (uint32_t r = 0; r < p->n; r++) {
        if (r & p->run) {
            continue;
        }
        const prefix *b = &p->before[r];
        for (uint32_t i = 0; i < run_length(p); i++) {
            const uint32_t at = nth_in_run(p, r, i);
            LLVMValueRef *v = !exclusive ? after_prefix(p, b, p->x[at])
                              : i        ? after_prefix(p, b, p->x[nth_in_run(p, r, i - 1)])
                                         : prefix_alone(p, b);
            for (uint32_t k = 0; k < p->s->m; k++) {
                out[k][at] = v[k];
            }
        }
    }
}

void tk_emit_scan_plain(tk_emit *e, const tk_emit_scan *s, const tk_scan *how) {
    const uint32_t n = tk_emit_regs(e, s->op->res[0]);
    plain p = {.e = e, .s = s, .how = *how, .n = n};
    p.x = TK_NEW_ARRAY(e->arena, LLVMValueRef *, n);
    p.total = TK_NEW_ARRAY(e->arena, LLVMValueRef *, n);
    p.before = TK_NEW_ARRAY(e->arena, prefix, n);
    LLVMValueRef **out = TK_NEW_ARRAY(e->arena, LLVMValueRef *, s->m);
    for (uint32_t r = 0; r < n; r++) {
        p.x[r] = values(&p);
    }
    for (uint32_t k = 0; k < s->m; k++) {
        LLVMValueRef *x = tk_emit_get(e, s->op->opnd[k]);
        out[k] = tk_emit_new(e, s->op->res[k]);
        for (uint32_t r = 0; r < n; r++) {
            p.x[r][k] = x[r];
        }
    }
    start(&p);
    runs(&p);
    for (unsigned k = (unsigned)__builtin_popcount(p.run); k < how->log; k++) {
        const tk_scan_bit bit = how->bit[k];
        unsigned end = k + 1;
        switch (bit.kind) {
        case TK_SCAN_REG:
            registers(&p, bit.i);
            break;
        case TK_SCAN_LANE:
            lanes(&p, bit.i);
            break;
        case TK_SCAN_WARP:
            while (end < how->log && how->bit[end].kind == TK_SCAN_WARP) {
                end++;
            }
            warps(&p, k, end);
            k = end - 1;
            break;
        }
    }
    if (s->op->code == TK_OP_SCAN_FN && s->op->at.exclusive) {
        initial(&p);
    }
    results(&p, out);
}
