// SPDX-License-Identifier: Apache-2.0
// Products by mma.sync: each warp by itself.
//
// Along K, step by step: the fragments that the warp's tiles need, each once, then their products.
// Fragments come by ldmatrix where that will do, those of the next step before the products of this
// one. Where there are many products, steps become a loop over 128 bytes of K.
//
// tf32x3: each operand is the sum of two of tf32, a = a1 + a2, and a b is a1 b1 + (a1 b2 + a2 b1),
// the small ones first. What is not finite stays whole in a1.
#include "ptx/llvm_across.h"
#include "ptx/llvm_matrix.h"

#include "ir/move.h"

#include <string.h>

enum { MOST_REGS = 4, MOST_UNROLLED = 256, COLUMN_LOG = 3 };

// One operand's fragments: registers by tile, for one step.
typedef struct source {
    const tk_emit_operand *from;
    bool is_a;
    tk_fragment f;
    uint32_t touched;     // bits of a place that threads differ in
    LLVMValueRef thread;  // i32: the thread's part of a place, in elements
    uint32_t n, *tile;    // numbers of the first elements of the tiles
    unsigned regs;        // of a tile
    uint32_t k;           // number of an element of K 1
    LLVMValueRef further; // i32: bytes, by the loop over K; NULL: none
} source;

typedef struct mma {
    tk_emit_matrix *s;
    source a, b;
    unsigned low; // bits of a result's register that are one tile's or one of columns side by side
    uint32_t ntile; // of 8 columns, side by side
    uint32_t steps;
} mma;

typedef struct registers { // of a tile; NULL: zero
    LLVMValueRef r[MOST_REGS];
} registers;

// ---- Fragments ----------------------------------------------------------------------------------

static bool in_memory(const source *x) { return x->from->x->where != TK_OPERAND_REGISTERS; }

static uint32_t bases_of(const source *x, const uint32_t *from, unsigned n, uint32_t *to) {
    uint32_t all = 0;
    for (unsigned i = 0; i < n; i++) {
        to[i] = from[i] ? tk_layout_place(&x->from->x->place, from[i]) : 0;
        all |= to[i];
    }
    return all;
}

static void find_thread(const mma *m, source *x) {
    tk_emit *e = m->s->e;
    const tk_layout *l = m->s->l;
    uint32_t lane[TK_LANE_BITS], warp[TK_MAX_WARP_BITS], base[TK_MAX_WARP_BITS];
    for (unsigned i = 0; i < l->warps; i++) {
        base[i] = x->is_a ? tk_emit_in_a(m->s, l->warp[i]) : tk_emit_in_b(m->s, l->warp[i]);
    }
    x->touched = bases_of(x, x->f.lane, TK_LANE_BITS, lane) | bases_of(x, base, l->warps, warp);
    x->thread = tk_emit_bases(e, e->lane, lane, TK_LANE_BITS, NULL);
    x->thread = tk_emit_bases(e, e->warp, warp, l->warps, x->thread);
}

// Pointer to the place of element number n, for this thread.
static LLVMValueRef pointer(const mma *m, const source *x, uint32_t n) {
    tk_emit *e = m->s->e;
    const uint32_t at = tk_layout_place(&x->from->x->place, n), bytes = x->from->x->bytes;
    LLVMTypeRef i8 = tk_ll_int(e, 8);
    LLVMValueRef from = tk_ll_xor(e, x->thread, tk_emit_i32(e, at & x->touched));
    from = tk_ll_add(e, tk_ll_mul(e, from, tk_emit_i32(e, bytes)), x->from->base);
    from = x->further ? tk_ll_add(e, from, x->further) : from;
    LLVMValueRef p = LLVMBuildInBoundsGEP2(e->b, i8, e->shared, &from, 1, "");
    LLVMValueRef rest = tk_emit_i32(e, (int64_t)(at & ~x->touched) * bytes);
    return LLVMBuildInBoundsGEP2(e->b, i8, p, &rest, 1, "");
}

static void by_ldmatrix(const mma *m, const source *x, uint32_t n, LLVMValueRef *out) {
    tk_emit *e = m->s->e;
    const unsigned regs = 1U << x->f.bits;
    LLVMTypeRef i32 = tk_ll_int(e, 32), all[MOST_REGS] = {i32, i32, i32, i32};
    LLVMTypeRef type = regs > 1 ? LLVMStructTypeInContext(e->ctx, all, regs, 0) : i32;
    const char *name = tk_format(e->arena, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%u%s.b16.p3",
                                 regs, x->f.how == TK_FRAGMENT_TRANSPOSED ? ".trans" : "");
    LLVMValueRef p = pointer(m, x, n), v = tk_emit_intrinsic(e, name, type, 1, &p);
    for (unsigned i = 0; i < regs; i++) {
        out[i] = regs > 1 ? LLVMBuildExtractValue(e->b, v, i, "") : v;
    }
}

static LLVMValueRef element(const mma *m, const source *x, uint32_t n, LLVMTypeRef type) {
    LLVMValueRef v = LLVMBuildLoad2(m->s->e->b, type, pointer(m, x, n), "");
    LLVMSetAlignment(v, x->from->x->bytes);
    return v;
}

// Elements of K lie apart: one by one.
static void by_elements(const mma *m, const source *x, uint32_t n, LLVMValueRef *out) {
    tk_emit *e = m->s->e;
    const unsigned pack = 1U << m->s->p.m.pack, bits = 8 * x->from->x->bytes;
    const bool f64 = m->s->p.m.sum == TK_F64;
    LLVMTypeRef type = f64 ? LLVMDoubleTypeInContext(e->ctx) : tk_ll_int(e, bits);
    for (unsigned r = 0; r < 1U << x->f.bits; r++) {
        uint32_t of = n;
        for (unsigned i = 0; i < x->f.bits; i++) {
            of ^= r >> i & 1 ? x->f.reg[i] : 0;
        }
        out[r] = element(m, x, of, type);
        for (unsigned i = 1; i < pack; i++) {
            uint32_t at = of;
            for (unsigned k = 0; k < m->s->p.m.pack; k++) {
                at ^= i >> k & 1 ? x->f.in_reg[k] : 0;
            }
            LLVMValueRef y = tk_ll_resize(e, element(m, x, at, type), 32, false);
            out[r] = tk_ll_or(e, tk_ll_resize(e, out[r], 32, false), tk_ll_shl(e, y, i * bits));
        }
    }
}

// A that is in registers: of the first row of a tile, and of the eighth behind it.
static void by_registers(const mma *m, const source *x, uint32_t n, LLVMValueRef *out) {
    const tk_matrix *t = &m->s->p.m;
    const uint32_t eight = 8U << t->log_k, upper = 4U << t->pack;
    for (unsigned r = 0; r < x->regs; r++) {
        const uint32_t at = n ^ (r & 1 ? eight : 0) ^ (r & 2 ? upper : 0);
        out[r] = t->log_k < t->k && (r & 2) ? NULL : tk_emit_packed(m->s, at, 1U << t->pack);
    }
}

// Of tf32 what was not rounded on its way to shared memory; of registers the bits.
static void finish(const mma *m, const source *x, LLVMValueRef *r) {
    tk_emit *e = m->s->e;
    LLVMTypeRef i32 = tk_ll_int(e, 32), f32 = LLVMFloatTypeInContext(e->ctx);
    const bool tf32 = x->from->x->type == TK_F32;
    const bool round = m->s->p.m.precision == TK_PREC_TF32 &&
                       x->from->x->where != TK_OPERAND_STAGED && !x->from->x->rounded;
    for (unsigned i = 0; tf32 && i < x->regs; i++) {
        if (r[i] && round) {
            r[i] = tk_emit_tf32(e, tk_ll_bits(e, r[i], f32));
        }
        r[i] = r[i] ? tk_ll_bits(e, r[i], i32) : NULL;
    }
}

// The registers of a tile of A, or of one or two tiles of B, in instructions' order.
static void load(const mma *m, const source *x, uint32_t n, registers *out) {
    LLVMValueRef r[2 * MOST_REGS] = {NULL};
    const unsigned per = x->f.half ? x->regs / 2 : x->regs, tiles = (1U << x->f.bits) / per;
    if (!in_memory(x)) {
        by_registers(m, x, n, out->r);
        finish(m, x, out->r);
        return;
    }
    if (x->f.how == TK_FRAGMENT_ELEMENTS) {
        by_elements(m, x, n, r);
    } else {
        by_ldmatrix(m, x, n, r);
    }
    for (unsigned i = 0; i < tiles; i++) {
        out[i] = (registers){{NULL}};
        memcpy(out[i].r, r + i * per, per * sizeof *r);
        finish(m, x, out[i].r);
    }
}

static registers *load_all(const mma *m, const source *x, uint32_t step) {
    tk_emit *e = m->s->e;
    registers *r = TK_NEW_ARRAY(e->arena, registers, x->n + 1);
    const unsigned at_once = x->is_a || m->ntile == 1 || m->s->p.m.sum == TK_F64 ? 1 : 2;
    for (uint32_t i = 0; i < x->n; i += at_once) {
        load(m, x, x->tile[i] ^ (x->k * (step << m->s->p.m.k)), r + i);
    }
    return r;
}

// ---- Instructions -------------------------------------------------------------------------------

static const char *f8_name(tk_dtype t) { return t == TK_F8E4M3 ? "e4m3" : "e5m2"; }

static const char *name_of(tk_emit *e, const tk_matrix *t) {
    switch ((int)t->a) { // that mma.sync multiplies
    case TK_F16:
        return "llvm.nvvm.mma.m16n8k16.row.col.f32.f32";
    case TK_BF16:
        return "llvm.nvvm.mma.m16n8k16.row.col.bf16";
    case TK_F32:
        return "llvm.nvvm.mma.m16n8k8.row.col.tf32";
    case TK_I8:
        return "llvm.nvvm.mma.m16n8k32.row.col.s8";
    case TK_U8:
        return "llvm.nvvm.mma.m16n8k32.row.col.u8";
    case TK_F64:
        return "llvm.nvvm.mma.m8n8k4.row.col.f64";
    }
    return tk_format(e->arena, "llvm.nvvm.mma.m16n8k32.row.col.f32.%s.%s.f32", f8_name(t->a),
                     f8_name(t->b));
}

// acc += a b.
static void instruction(const mma *m, const LLVMValueRef *a, const LLVMValueRef *b,
                        LLVMValueRef *acc) {
    tk_emit *e = m->s->e;
    const tk_matrix *t = &m->s->p.m;
    LLVMValueRef arg[3 * MOST_REGS];
    LLVMTypeRef as = t->a == TK_F16   ? LLVMVectorType(LLVMHalfTypeInContext(e->ctx), 2)
                     : t->a == TK_F64 ? LLVMDoubleTypeInContext(e->ctx)
                                      : tk_ll_int(e, 32);
    uint32_t n = 0;
    for (unsigned i = 0; i < m->a.regs + m->b.regs; i++) {
        LLVMValueRef x = i < m->a.regs ? a[i] : b[i - m->a.regs];
        arg[n++] = x ? tk_ll_bits(e, x, as) : LLVMConstNull(as);
    }
    const unsigned sums = t->sum == TK_F64 ? 2 : 4;
    LLVMTypeRef one = tk_emit_type(e, t->sum), all[MOST_REGS] = {one, one, one, one};
    for (unsigned i = 0; i < sums; i++) {
        arg[n++] = acc[i];
    }
    LLVMTypeRef type = LLVMStructTypeInContext(e->ctx, all, sums, 0);
    LLVMValueRef r = tk_emit_intrinsic(e, name_of(e, t), type, n, arg);
    for (unsigned i = 0; i < sums; i++) {
        acc[i] = LLVMBuildExtractValue(e->b, r, i, "");
    }
}

// The two parts of n registers of f32.
static void split(const mma *m, const LLVMValueRef *x, unsigned n, LLVMValueRef *high,
                  LLVMValueRef *low) {
    tk_emit *e = m->s->e;
    LLVMTypeRef f32 = LLVMFloatTypeInContext(e->ctx);
    for (unsigned i = 0; i < n; i++) {
        high[i] = low[i] = NULL;
        if (x[i]) {
            LLVMValueRef inf = tk_ll_k(x[i], 0x7f800000);
            LLVMValueRef finite = tk_ll_icmp(e, LLVMIntNE, tk_ll_and(e, x[i], inf), inf);
            LLVMValueRef cut = tk_ll_mask(e, x[i], 0xffffe000);
            LLVMValueRef rest =
                LLVMBuildFSub(e->b, tk_ll_bits(e, x[i], f32), tk_ll_bits(e, cut, f32), "");
            LLVMValueRef whole = tk_emit_tf32(e, tk_ll_bits(e, x[i], f32)); // keeps NaN
            high[i] = tk_ll_sel(e, finite, cut, whole);
            low[i] = tk_ll_sel(e, finite, tk_emit_tf32(e, rest), tk_ll_k(x[i], 0));
        }
    }
}

static void product(const mma *m, const LLVMValueRef *a, const LLVMValueRef *b, LLVMValueRef *acc) {
    if (m->s->p.m.precision != TK_PREC_TF32X3 || m->s->p.m.a != TK_F32) {
        instruction(m, a, b, acc);
        return;
    }
    LLVMValueRef x[2][MOST_REGS], y[2][MOST_REGS];
    split(m, a, m->a.regs, x[0], x[1]);
    split(m, b, m->b.regs, y[0], y[1]);
    instruction(m, x[0], y[1], acc);
    instruction(m, x[1], y[0], acc);
    instruction(m, x[0], y[0], acc);
}

// ---- A block of K -------------------------------------------------------------------------------

static uint32_t tile_number(const source *x, uint32_t n) {
    uint32_t i = 0;
    while (x->tile[i] != n) {
        i++;
    }
    return i;
}

static uint32_t add_tile(source *x, uint32_t n) {
    uint32_t i = 0;
    while (i < x->n && x->tile[i] != n) {
        i++;
    }
    x->tile[i] = n;
    x->n += i == x->n;
    return i;
}

// The element of the result that is the first of tile `j` of 8 columns, of registers `high`.
static uint32_t first_of(const mma *m, uint32_t high, uint32_t j) {
    return tk_layout_eval(m->s->l, high << m->low, 0, 0) + (j << COLUMN_LOG);
}

static uint32_t a_number(const mma *m, uint32_t e) {
    return in_memory(&m->a) ? tk_emit_in_a(m->s, e)
                            : e >> m->s->l->log_dim[m->s->l->rank - 1U] << m->s->p.m.log_k;
}

static uint32_t highs(const mma *m) { return m->s->regs >> m->low; }

static void find_tiles(mma *m) {
    tk_emit *e = m->s->e;
    const uint32_t most = highs(m) * m->ntile;
    m->a.tile = TK_NEW_ARRAY(e->arena, uint32_t, most + 1);
    m->b.tile = TK_NEW_ARRAY(e->arena, uint32_t, most + 1);
    for (uint32_t h = 0; h < highs(m); h++) {
        add_tile(&m->a, a_number(m, first_of(m, h, 0)));
        for (uint32_t j = 0; j < m->ntile; j++) {
            add_tile(&m->b, tk_emit_in_b(m->s, first_of(m, h, j)));
        }
    }
}

// All products of one step.
static void step(const mma *m, const registers *a, const registers *b) {
    const unsigned each = m->s->p.m.sum == TK_F64 ? 2 : 4;
    for (uint32_t h = 0; h < highs(m); h++) {
        const uint32_t row = tile_number(&m->a, a_number(m, first_of(m, h, 0)));
        for (uint32_t j = 0; j < m->ntile; j++) {
            const uint32_t column = tile_number(&m->b, tk_emit_in_b(m->s, first_of(m, h, j)));
            product(m, a[row].r, b[column].r, m->s->acc + (h << m->low) + j * each);
        }
    }
}

static void steps(const mma *m, uint32_t n) {
    registers *a = load_all(m, &m->a, 0), *b = load_all(m, &m->b, 0);
    for (uint32_t i = 0; i < n; i++) {
        registers *next_a = i + 1 < n ? load_all(m, &m->a, i + 1) : NULL;
        registers *next_b = i + 1 < n ? load_all(m, &m->b, i + 1) : NULL;
        step(m, a, b);
        a = next_a;
        b = next_b;
    }
}

// Elements of K of which places follow from the number of 128 bytes by multiplication; 0: none.
static uint32_t part_of_k(const mma *m) {
    const uint32_t part = TK_SPAN_BYTES / m->s->p.b.bytes;
    const bool loops = in_memory(&m->a) && part < m->s->p.block && part >= 1U << m->s->p.m.k &&
                       m->steps * highs(m) * m->ntile > MOST_UNROLLED;
    return loops ? part : 0;
}

static LLVMValueRef distance(const mma *m, const source *x, uint32_t part, LLVMValueRef i) {
    const uint32_t at = tk_layout_place(&x->from->x->place, x->k * part) * x->from->x->bytes;
    return tk_ll_mul(m->s->e, i, tk_emit_i32(m->s->e, at));
}

static source source_of(const mma *m, const tk_emit_operand *from, bool is_a) {
    const tk_matrix_plan *p = &m->s->p;
    source x = {.from = from, .is_a = is_a};
    const bool f64 = p->m.sum == TK_F64;
    x.regs = f64 ? 1 : is_a ? 4 : 2;
    if (in_memory(&x)) {
        x.f = tk_fragment_of(&p->m, from->x, is_a, p->columns);
        x.k = 1U << tk_layout_shift(&from->x->place, from->x->k_axis);
        find_thread(m, &x);
    } else {
        x.k = 1;
    }
    return x;
}

void tk_emit_mma(tk_emit_matrix *s) {
    tk_emit *e = s->e;
    mma m = {.s = s};
    m.ntile = 1U << (s->p.columns - COLUMN_LOG);
    m.low = s->p.columns - COLUMN_LOG + (s->p.m.sum == TK_F64 ? 1 : 2);
    m.steps = s->p.block >> s->p.m.k ? s->p.block >> s->p.m.k : 1;
    m.a = source_of(&m, &s->a, true);
    m.b = source_of(&m, &s->b, false);
    find_tiles(&m);
    const uint32_t part = part_of_k(&m);
    if (!part) {
        steps(&m, m.steps);
        return;
    }
    tk_emit_carried c = tk_emit_carry_begin(e, s->p.block / part, s->regs, s->acc);
    m.a.further = distance(&m, &m.a, part, c.loop.i);
    m.b.further = distance(&m, &m.b, part, c.loop.i);
    steps(&m, part >> s->p.m.k);
    tk_emit_carry_end(e, &c, s->acc, false);
}
