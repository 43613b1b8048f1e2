// SPDX-License-Identifier: Apache-2.0
// Fetches through registers (lower/ring.h). A thread loads the aligned 16 bytes that each of its
// chunks begins in and ends in, some chunks before it stores the first of them, and shifts them to
// their place: by words, then by bytes. All that it must know of a chunk follows from its place in
// the tensor; so the loads may stand in another op, of which only what was loaded is kept.
//
// Most tiles are whole: all of them, and the 16 bytes around, lies inside the tensor. Nothing is
// tested then, and where a warp's chunks all begin at the same place in 16 bytes it branches there,
// so that no word is moved: two loads, four shifts and a store bring 16 bytes. Fetches that follow
// one another are one stream then: what one stores makes room for loads of the next, and what wgmma
// reads is made visible to it once for all of them.
//
// The first and the last 16 bytes of the tensor may begin before it or end behind it. Then they are
// not read at once, and the chunk's elements are moved one by one behind the others.
#include "ptx/llvm_ring.h"

#include "lower/ring.h"
#include "lower/views.h"
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_internal.h"

#include <string.h>

enum { PIECE = TK_FETCH_BYTES, WORD = 4, WORDS = PIECE / WORD, SHARED = 3 };
// Values of a thread that are loaded before the first is stored: beside the program's own, and at
// most; registers that all else takes.
enum { ON_THE_WAY = 32, MOST_ON_THE_WAY = 96, BESIDE = 56 };

typedef struct fetch {
    tk_emit *e;
    tk_emit_view v;
    tk_layout places;
    unsigned size, n;         // bytes of an element; elements of a chunk
    bool pieces;              // it is read by 16 aligned bytes
    uint32_t chunks;          // of a thread
    uint32_t values;          // that a chunk has in registers
    uint32_t at_once;         // chunks on the way
    LLVMTypeRef type;         // of a value
    LLVMValueRef first;       // i64: the tensor's first byte
    LLVMValueRef pieces_in;   // i64: 16 bytes that begin so many bytes behind it, or more, are not
                              // inside the tensor as a whole
    LLVMValueRef slot;        // i32
    LLVMValueRef *on_the_way; // places of the values of at_once chunks
    uint32_t offset;          // chunks of the stream before its first
    uint32_t *order;          // of chunks: those that begin at the same place in 16 bytes together
    LLVMValueRef whole;       // i1: the tile is, and a warp's chunks begin alike; NULL: not known
} fetch;

static LLVMValueRef two(tk_emit *e, const char *name, LLVMValueRef a, LLVMValueRef b) {
    LLVMValueRef arg[2] = {a, b};
    return tk_emit_intrinsic(e, name, LLVMTypeOf(a), 2, arg);
}

static LLVMValueRef as_int(tk_emit *e, LLVMValueRef p) {
    return LLVMBuildPtrToInt(e->b, p, tk_ll_int(e, 64), "");
}

static LLVMValueRef less(tk_emit *e, LLVMValueRef a, LLVMValueRef b) {
    return tk_ll_icmp(e, LLVMIntULT, a, b);
}

// The bytes of the tensor, from its least address on, whatever signs its strides have. Its sizes
// are none of them 0 where anything is read.
static void find_bounds(fetch *s) {
    tk_emit *e = s->e;
    const tk_tensor_args *t = &e->tensor[s->v.param];
    LLVMValueRef zero = tk_emit_i64(e, 0), below = zero, above = tk_emit_i64(e, 1);
    for (uint32_t d = 0; d < s->v.rank; d++) {
        LLVMValueRef last = tk_ll_sub(e, tk_ll_resize(e, t->dim[d], 64, false), tk_emit_i64(e, 1));
        LLVMValueRef far = tk_ll_mul(e, last, t->stride[d]);
        below = tk_ll_add(e, below, two(e, "llvm.smin.i64", far, zero));
        above = tk_ll_add(e, above, two(e, "llvm.smax.i64", far, zero));
    }
    LLVMValueRef size = tk_emit_i64(e, s->size);
    s->first = tk_ll_add(e, as_int(e, t->base), tk_ll_mul(e, below, size));
    LLVMValueRef bytes = tk_ll_mul(e, tk_ll_sub(e, above, below), size);
    s->pieces_in = two(e, "llvm.smax.i64", tk_ll_sub(e, bytes, tk_emit_i64(e, PIECE - 1)), zero);
}

// Whether nothing of the tile nor of the 16 bytes that its chunks begin and end in is outside of
// the tensor: by the two corners that are furthest from each other.
static LLVMValueRef is_whole(const fetch *s) {
    tk_emit *e = s->e;
    const tk_emit_view *v = &s->v;
    const tk_tensor_args *t = &e->tensor[v->param];
    LLVMValueRef in = NULL, zero = tk_emit_i64(e, 0), below = zero, above = zero, at = zero;
    for (uint32_t d = 0; d < v->rank; d++) {
        const int64_t n = v->axis[d] >= 0 ? (int64_t)1 << v->l->log_dim[v->axis[d]] : 1;
        if (v->plan.low[d] || v->plan.high[d]) {
            LLVMValueRef last = tk_ll_sub(e, t->dim[d], tk_emit_i32(e, n));
            in = tk_emit_and(e, in, tk_ll_icmp(e, LLVMIntSLE, v->start[d], last));
        }
        if (v->plan.low[d]) {
            in = tk_emit_and(e, in, tk_ll_icmp(e, LLVMIntSGE, v->start[d], tk_emit_i32(e, 0)));
        }
        LLVMValueRef far = tk_ll_mul(e, t->stride[d], tk_emit_i64(e, n - 1));
        below = tk_ll_add(e, below, two(e, "llvm.smin.i64", far, zero));
        above = tk_ll_add(e, above, two(e, "llvm.smax.i64", far, zero));
        at = tk_ll_add(e, at, tk_ll_mul(e, tk_ll_resize(e, v->start[d], 64, true), t->stride[d]));
    }
    // The last chunk's second 16 bytes, in which it need not end.
    LLVMValueRef size = tk_emit_i64(e, s->size), base = as_int(e, t->base);
    LLVMValueRef mask = tk_emit_i64(e, -PIECE);
    LLVMValueRef first = tk_ll_add(e, base, tk_ll_mul(e, tk_ll_add(e, at, below), size));
    LLVMValueRef last = tk_ll_add(e, base, tk_ll_mul(e, tk_ll_add(e, at, above), size));
    last = tk_ll_sub(e, last, tk_emit_i64(e, PIECE - (int64_t)s->size));
    last = tk_ll_sub(e, tk_ll_and(e, last, mask), s->first);
    first = tk_ll_and(e, first, mask);
    in = tk_emit_and(e, in, tk_ll_icmp(e, LLVMIntUGE, first, s->first));
    return tk_emit_and(e, in, less(e, tk_ll_add(e, last, tk_emit_i64(e, PIECE)), s->pieces_in));
}

// Whether chunks a and b of a thread begin at the same place in 16 bytes, whatever the strides.
static bool alike(const fetch *s, uint32_t a, uint32_t b) {
    const tk_layout *l = s->v.l;
    const uint32_t x = tk_layout_eval(l, a * s->n, 0, 0), y = tk_layout_eval(l, b * s->n, 0, 0);
    for (unsigned d = 0; d < l->rank; d++) {
        const unsigned shift = tk_layout_shift(l, d);
        const uint32_t mask = PIECE / s->size - 1, all = (1U << l->log_dim[d]) - 1;
        if (((x >> shift ^ y >> shift) & all & mask) != 0) {
            return false;
        }
    }
    return true;
}

static void put_in_order(fetch *s) {
    s->order = TK_NEW_ARRAY(s->e->arena, uint32_t, s->chunks);
    bool *done = TK_NEW_ARRAY(s->e->arena, bool, s->chunks);
    memset(done, 0, s->chunks * sizeof *done);
    for (uint32_t i = 0, n = 0; i < s->chunks; i++) {
        for (uint32_t k = i; k < s->chunks && !done[i]; k++) {
            if (!done[k] && alike(s, i, k) && k != i) {
                s->order[n++] = k;
                done[k] = true;
            } else if (k == i) {
                s->order[n++] = i;
            }
        }
        done[i] = true;
    }
}

static uint32_t values_at_once(const tk_emit *e) {
    if (e->side != TK_SIDE_PRODUCERS || e->producer_registers < BESIDE + ON_THE_WAY) {
        return ON_THE_WAY;
    }
    const uint32_t n = e->producer_registers - BESIDE;
    return n < MOST_ON_THE_WAY ? n : MOST_ON_THE_WAY;
}

static fetch fetch_of(tk_emit *e, const tk_op *op, const tk_emit_ring *r) {
    const tk_type *t = tk_view_type(e->f, op);
    const tk_layout *l =
        tk_layout_new(e->arena, tk_fetch_layout(e->f, op, (unsigned)__builtin_ctz(e->warps)));
    fetch s = {.e = e, .v = tk_emit_view_make(e, op, t, l)};
    s.places = tk_layout_places(l, tk_emit_layout(e, r->v));
    s.size = (unsigned)tk_dtype_size(t->dtype);
    s.n = tk_fetch_chunk(e->f, op);
    s.pieces = tk_fetch_in_pieces(e->axis, op);
    s.chunks = (1U << l->regs) / s.n;
    s.values = s.pieces ? 2 * WORDS : s.n;
    s.at_once = values_at_once(e) / s.values;
    s.at_once = s.at_once < s.chunks ? s.at_once : s.chunks;
    s.type = tk_ll_int(e, s.pieces ? 8 * WORD : 8 * s.size);
    put_in_order(&s);
    if (s.pieces) {
        find_bounds(&s);
    }
    if (s.pieces && tk_fetch_alike(l, s.size)) {
        s.whole = is_whole(&s);
    }
    return s;
}

// ---- Where a chunk is ---------------------------------------------------------------------------

typedef struct chunk {
    LLVMValueRef at;    // of its first element in global memory
    LLVMValueRef skew;  // i32: in which of 16 bytes that is
    LLVMValueRef piece; // where these begin
    LLVMValueRef row;   // i1: the row is inside the tensor; NULL: always
    LLVMValueRef from,
        to; // i32: bytes that are inside of the row; NULL: from its first, to its last
    LLVMValueRef read[2]; // i1: the first and second 16 bytes have some of these, and are read
    LLVMValueRef apart;   // i1: they have, and are not all inside of the tensor
} chunk;

// From which of its bytes to which the chunk at register r is inside of its row.
static void find_columns(const fetch *s, uint32_t r, chunk *c) {
    tk_emit *e = s->e;
    const uint32_t last = s->v.rank - 1;
    const tk_view_plan *p = &s->v.plan;
    LLVMValueRef at = tk_emit_coord(e, s->v.l, r, (unsigned)s->v.axis[last]);
    LLVMValueRef n = tk_emit_i32(e, s->n), zero = tk_emit_i32(e, 0),
                 bytes = tk_emit_i32(e, s->size);
    if (p->low[last]) { // neither sum nor difference leaves 32 bits
        LLVMValueRef size = e->tensor[s->v.param].dim[last];
        at = two(e, "llvm.smax.i32", tk_ll_add(e, s->v.start[last], at),
                 tk_emit_i32(e, -(int64_t)s->n));
        LLVMValueRef room = tk_ll_sub(e, size, two(e, "llvm.smin.i32", at, size));
        c->from = tk_ll_mul(e, two(e, "llvm.smax.i32", tk_ll_sub(e, zero, at), zero), bytes);
        c->to = tk_ll_mul(e, two(e, "llvm.umin.i32", room, n), bytes);
    } else if (p->high[last]) {
        LLVMValueRef room = two(e, "llvm.smax.i32", tk_ll_sub(e, s->v.room[last], at), zero);
        c->to = tk_ll_mul(e, two(e, "llvm.smin.i32", room, n), bytes);
    }
}

// The place of the chunk in 16 bytes: what a register adds to it where that is no multiple of 16,
// so that it is one number for most chunks of a thread.
static LLVMValueRef skew_of(const fetch *s, uint32_t r) {
    tk_emit *e = s->e;
    const tk_tensor_args *t = &e->tensor[s->v.param];
    LLVMValueRef at = tk_emit_i32(e, 0);
    for (uint32_t d = 0; d < s->v.rank; d++) {
        LLVMValueRef i = s->v.start[d];
        if (s->v.axis[d] >= 0) {
            const unsigned axis = (unsigned)s->v.axis[d];
            const tk_emit_coord_parts p = tk_emit_coord_of(e, s->v.l, r, axis);
            const bool falls_away = p.disjoint && p.constant * s->size % PIECE == 0;
            i = tk_ll_add(e, i, falls_away ? p.thread : tk_emit_coord(e, s->v.l, r, axis));
        }
        at = tk_ll_add(e, at, tk_ll_mul(e, i, tk_ll_resize(e, t->stride[d], 32, false)));
    }
    at = tk_ll_mul(e, at, tk_emit_i32(e, s->size));
    at = tk_ll_add(e, at, tk_ll_resize(e, as_int(e, t->base), 32, false));
    return tk_ll_mask(e, at, PIECE - 1);
}

static LLVMValueRef ahead(tk_emit *e, LLVMValueRef p, LLVMValueRef bytes) {
    bytes = tk_ll_resize(e, bytes, 64, true);
    return LLVMBuildGEP2(e->b, tk_ll_int(e, 8), p, &bytes, 1, "");
}

static chunk chunk_of(const fetch *s, uint32_t k) {
    tk_emit *e = s->e;
    const uint32_t r = k * s->n;
    LLVMValueRef sixteen = tk_emit_i32(e, PIECE);
    chunk c = {.row = tk_emit_view_row_inside(e, &s->v, r), .skew = skew_of(s, r)};
    find_columns(s, r, &c);
    c.at = tk_emit_place_ptr(e, tk_emit_view_place(e, &s->v, r));
    c.piece = ahead(e, c.at, tk_ll_sub(e, tk_emit_i32(e, 0), c.skew));
    LLVMValueRef to = c.to ? c.to : sixteen, need[2];
    LLVMValueRef some = c.from ? less(e, c.from, to) : c.to ? less(e, tk_emit_i32(e, 0), to) : NULL;
    some = tk_emit_and(e, c.row, some);
    need[0] = c.from ? less(e, tk_ll_add(e, c.skew, c.from), sixteen) : NULL;
    need[1] = tk_emit_and(e, some, less(e, sixteen, tk_ll_add(e, c.skew, to)));
    need[0] = tk_emit_and(e, some, need[0]);
    LLVMValueRef far = tk_ll_sub(e, as_int(e, c.piece), s->first);
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef in =
            less(e, tk_ll_add(e, far, tk_emit_i64(e, (int64_t)i * PIECE)), s->pieces_in);
        LLVMValueRef out = tk_emit_and(e, need[i], LLVMBuildNot(e->b, in, ""));
        c.read[i] = tk_emit_and(e, need[i], in);
        c.apart = c.apart ? tk_ll_or(e, c.apart, out) : out;
    }
    return c;
}

// ---- Loads --------------------------------------------------------------------------------------

// Where value i of a chunk waits to be stored: the places are those of the chunk that was stored
// at_once chunks before.
static LLVMValueRef *place_of_value(const fetch *s, uint32_t at, uint32_t i) {
    return &s->on_the_way[(size_t)((s->offset + at) % s->at_once) * s->values + i];
}

static void keep_piece(const fetch *s, uint32_t at, unsigned piece, LLVMValueRef x) {
    tk_emit *e = s->e;
    for (unsigned w = 0; w < WORDS; w++) {
        LLVMBuildStore(e->b, LLVMBuildExtractElement(e->b, x, tk_emit_i32(e, w), ""),
                       *place_of_value(s, at, piece * WORDS + w));
    }
}

// Of a whole tile.
static void load_whole(const fetch *s, uint32_t at) {
    tk_emit *e = s->e;
    const uint32_t r = s->order[at] * s->n;
    LLVMTypeRef type = LLVMVectorType(s->type, WORDS);
    tk_emit_place from = tk_emit_view_place(e, &s->v, r);
    from.at = ahead(e, from.at, tk_ll_sub(e, tk_emit_i32(e, 0), skew_of(s, r)));
    for (unsigned i = 0; i < 2; i++, from.bytes += PIECE) {
        keep_piece(s, at, i, tk_emit_guarded_read(e, NULL, from, type, PIECE, LLVMConstNull(type)));
    }
}

static void load_pieces(const fetch *s, uint32_t at) {
    tk_emit *e = s->e;
    const chunk c = chunk_of(s, s->order[at]);
    LLVMTypeRef type = LLVMVectorType(s->type, WORDS);
    for (unsigned i = 0; i < 2; i++) {
        const tk_emit_place from = {c.piece, (int64_t)i * PIECE};
        keep_piece(s, at, i,
                   tk_emit_guarded_read(e, c.read[i], from, type, PIECE, LLVMConstNull(type)));
    }
}

// The chunk that comes `at`-th.
static void load(const fetch *s, uint32_t at, bool whole) {
    if (whole) {
        load_whole(s, at);
        return;
    }
    if (s->pieces) {
        load_pieces(s, at);
        return;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t r = s->order[at] * s->n + i;
        LLVMValueRef in = tk_emit_view_inside(s->e, &s->v, r, 1, NULL);
        LLVMValueRef x = tk_emit_guarded_read(s->e, in, tk_emit_view_place(s->e, &s->v, r), s->type,
                                              s->size, LLVMConstNull(s->type));
        LLVMBuildStore(s->e->b, x, *place_of_value(s, at, i));
    }
}

// The same by itself, with as few on the way as need few registers: what is tested needs some.
static fetch apart(const fetch *s) {
    fetch f = *s;
    const uint32_t most = ON_THE_WAY / f.values < f.chunks ? ON_THE_WAY / f.values : f.chunks;
    f.offset = 0;
    f.at_once = most < f.at_once ? most : f.at_once;
    return f;
}

static void load_first(const fetch *s) {
    for (uint32_t at = 0; at < s->at_once; at++) {
        load(s, at, false);
    }
}

// ---- Stores -------------------------------------------------------------------------------------

// Four words from byte `skew` of eight on. It is a multiple of the element's size.
static void shift(const fetch *s, LLVMValueRef skew, LLVMValueRef *x) {
    tk_emit *e = s->e;
    for (unsigned by = WORDS / 2; by > 0; by /= 2) { // words
        if (s->size > by * WORD) {
            continue;
        }
        LLVMValueRef far = LLVMBuildNot(e->b, tk_ll_is(e, tk_ll_mask(e, skew, by * WORD), 0), "");
        for (unsigned w = 0; w < WORDS + by; w++) {
            if (w + by < 2 * WORDS) {
                x[w] = tk_ll_sel(e, far, x[w + by], x[w]);
            }
        }
    }
    if (s->size >= WORD) {
        return;
    }
    LLVMValueRef bits = tk_ll_shl(e, tk_ll_mask(e, skew, WORD - 1), 3);
    for (unsigned w = 0; w < WORDS; w++) {
        LLVMValueRef arg[3] = {x[w + 1], x[w], bits};
        x[w] = tk_emit_intrinsic(e, "llvm.fshr.i32", tk_ll_int(e, 32), 3, arg);
    }
}

// The bits of word w that come before byte `end` of the chunk.
static LLVMValueRef bits_before(tk_emit *e, LLVMValueRef end, unsigned w) {
    LLVMValueRef n = tk_ll_sub(e, end, tk_emit_i32(e, (int64_t)w * WORD));
    n = two(e, "llvm.smin.i32", n, tk_emit_i32(e, WORD));
    n = two(e, "llvm.smax.i32", n, tk_emit_i32(e, 0));
    LLVMValueRef bits = tk_ll_resize(e, tk_ll_shl(e, n, 3), 64, false);
    bits = LLVMBuildShl(e->b, tk_emit_i64(e, 1), bits, "");
    return tk_ll_resize(e, tk_ll_sub(e, bits, tk_emit_i64(e, 1)), 32, false);
}

// What the chunk has outside of its row becomes 0: few chunks have any.
static void cut(const fetch *s, const chunk *c, LLVMValueRef *x) {
    tk_emit *e = s->e;
    if (!c->to) {
        return;
    }
    LLVMValueRef is_cut = less(e, c->to, tk_emit_i32(e, PIECE)), were[WORDS], out[WORDS];
    if (c->from) {
        is_cut = tk_ll_or(e, is_cut, LLVMBuildNot(e->b, tk_ll_is(e, c->from, 0), ""));
    }
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
    tk_emit_cond if_cut = tk_emit_if(e, is_cut);
    for (unsigned w = 0; w < WORDS; w++) {
        LLVMValueRef bits = bits_before(e, c->to, w);
        bits =
            c->from ? tk_ll_and(e, bits, LLVMBuildNot(e->b, bits_before(e, c->from, w), "")) : bits;
        were[w] = x[w];
        out[w] = tk_ll_and(e, x[w], bits);
    }
    LLVMBasicBlockRef from[2] = {before, LLVMGetInsertBlock(e->b)};
    tk_emit_end(e, &if_cut);
    for (unsigned w = 0; w < WORDS; w++) {
        LLVMValueRef value[2] = {were[w], out[w]};
        x[w] = LLVMBuildPhi(e->b, tk_ll_int(e, 32), "");
        LLVMAddIncoming(x[w], value, from, 2);
    }
}

// Not by tk_emit_linear: of fewer places with offsets ptxas keeps more in local memory, 23 numbers
// a step of the product of bench/NOTES.md rather than 11.
static LLVMValueRef place_of(const fetch *s, uint32_t r) {
    tk_emit *e = s->e;
    LLVMValueRef turn = tk_emit_i32(e, tk_layout_eval(&s->places, r, 0, 0));
    LLVMValueRef at = tk_ll_xor(e, tk_emit_element(e, &s->places, 0), turn);
    at = tk_ll_mul(e, at, tk_emit_i32(e, s->size));
    return tk_ll_add(e, s->slot, at);
}

static void put(const fetch *s, uint32_t k, LLVMTypeRef of, unsigned n, LLVMValueRef *x) {
    tk_emit *e = s->e;
    LLVMValueRef all = LLVMGetUndef(LLVMVectorType(of, n));
    for (unsigned i = 0; i < n; i++) {
        all = LLVMBuildInsertElement(e->b, all, x[i], tk_emit_i32(e, i), "");
    }
    LLVMValueRef at = LLVMBuildIntToPtr(e->b, place_of(s, k * s->n),
                                        LLVMPointerTypeInContext(e->ctx, SHARED), "");
    LLVMSetAlignment(LLVMBuildStore(e->b, all, at), s->n * s->size);
}

// Elements that stand in 16 bytes that are not all inside of the tensor.
static void patch(const fetch *s, uint32_t k, const chunk *c) {
    tk_emit *e = s->e;
    tk_emit_cond apart = tk_emit_if(e, c->apart);
    tk_emit_loop loop = tk_emit_for(e, tk_emit_i32(e, s->n));
    LLVMValueRef at = tk_ll_mul(e, loop.i, tk_emit_i32(e, s->size));
    LLVMValueRef in = c->to ? less(e, at, c->to) : LLVMConstInt(tk_ll_int(e, 1), 1, 0);
    in = c->from ? tk_ll_and(e, in, LLVMBuildNot(e->b, less(e, at, c->from), "")) : in;
    LLVMTypeRef type = tk_ll_int(e, 8 * s->size);
    LLVMValueRef x = tk_emit_guarded_read(e, in, (tk_emit_place){ahead(e, c->at, at), 0}, type,
                                          s->size, LLVMConstNull(type));
    LLVMValueRef to = tk_ll_add(e, place_of(s, k * s->n), at);
    tk_emit_guarded_write(e, in, (tk_emit_place){to, 0}, x, s->size);
    tk_emit_for_end_short(e, &loop);
    tk_emit_end(e, &apart);
}

static void store(const fetch *s, uint32_t at) {
    const uint32_t k = s->order[at];
    LLVMValueRef *x = TK_NEW_ARRAY(s->e->arena, LLVMValueRef, s->values);
    for (uint32_t i = 0; i < s->values; i++) {
        x[i] = LLVMBuildLoad2(s->e->b, s->type, *place_of_value(s, at, i), "");
    }
    if (!s->pieces) {
        put(s, k, s->type, s->n, x);
        return;
    }
    const chunk c = chunk_of(s, k);
    shift(s, c.skew, x);
    cut(s, &c, x);
    put(s, k, s->type, WORDS, x);
    patch(s, k, &c);
}

static void store_all(const fetch *s) {
    for (uint32_t at = 0; at < s->chunks; at++) {
        store(s, at);
        if (at + s->at_once < s->chunks) {
            load(s, at + s->at_once, false);
        }
    }
}

// ---- Streams of whole tiles ---------------------------------------------------------------------

enum { MOST_FETCHES = 16 };

typedef struct stream {
    fetch of[MOST_FETCHES];
    tk_emit_ring *ring[MOST_FETCHES];
    uint32_t n, chunks;
    LLVMValueRef whole; // i1: all tiles are; NULL: not known
} stream;

// The chunk that comes `at`-th, if there is one.
static void load_next(const stream *s, uint32_t at) {
    for (uint32_t i = 0; i < s->n; i++) {
        if (at >= s->of[i].offset && at - s->of[i].offset < s->of[i].chunks) {
            load(&s->of[i], at - s->of[i].offset, true);
        }
    }
}

typedef struct run { // of chunks from .. to - 1 of a fetch, which begin alike
    const stream *s;
    const fetch *f;
    uint32_t from, to;
    LLVMValueRef skew;
} run;

// They begin in word `word` of 16 bytes and so many bits behind it.
static void store_alike(const run *u, unsigned word, LLVMValueRef bits) {
    const fetch *s = u->f;
    tk_emit *e = s->e;
    const unsigned more = s->size < WORD;
    for (uint32_t at = u->from; at < u->to; at++) {
        LLVMValueRef x[WORDS + 1];
        for (unsigned w = 0; w < WORDS + more; w++) {
            x[w] = LLVMBuildLoad2(e->b, s->type, *place_of_value(s, at, word + w), "");
        }
        for (unsigned w = 0; w < WORDS && more; w++) {
            LLVMValueRef arg[3] = {x[w + 1], x[w], bits};
            x[w] = tk_emit_intrinsic(e, "llvm.fshr.i32", tk_ll_int(e, 32), 3, arg);
        }
        put(s, s->order[at], s->type, WORDS, x);
        load_next(u->s, s->offset + at + s->at_once);
    }
}

// A branch for each of `n` words from `first` on that they may begin in.
static void store_by_word(const run *u, unsigned first, unsigned n) {
    tk_emit *e = u->f->e;
    if (n == 1 || u->f->size > n / 2 * WORD) {
        store_alike(u, first, tk_ll_shl(e, tk_ll_mask(e, u->skew, WORD - 1), 3));
        return;
    }
    LLVMValueRef near = tk_ll_is(e, tk_ll_mask(e, u->skew, n / 2 * WORD), 0);
    tk_emit_cond c = tk_emit_if(e, near);
    store_by_word(u, first, n / 2);
    tk_emit_else(e, &c);
    store_by_word(u, first + n / 2, n / 2);
    tk_emit_end(e, &c);
}

static void store_whole(const stream *s, const fetch *f) {
    for (run u = {s, f, 0, 0, NULL}; u.from < f->chunks; u.from = u.to) {
        for (u.to = u.from + 1; u.to < f->chunks && alike(f, f->order[u.from], f->order[u.to]);) {
            u.to++;
        }
        u.skew = skew_of(f, f->order[u.from] * f->n);
        store_by_word(&u, 0, WORDS);
    }
}

// ---- The ops ------------------------------------------------------------------------------------

static LLVMValueRef *places_of(const fetch *s) {
    tk_emit *e = s->e;
    const uint32_t n = s->at_once * s->values;
    LLVMValueRef *at = TK_NEW_ARRAY(e->arena, LLVMValueRef, n);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    tk_emit_before(e, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(e->fn)));
    for (uint32_t i = 0; i < n; i++) {
        at[i] = LLVMBuildAlloca(e->b, s->type, "on_the_way");
    }
    LLVMPositionBuilderAtEnd(e->b, here);
    return at;
}

// The first loads, whether the tiles are whole or not.
static void load_stream(const stream *s) {
    tk_emit_cond c = {NULL, NULL, NULL};
    if (s->whole) {
        c = tk_emit_if(s->of[0].e, s->whole);
        for (uint32_t at = 0; at < s->of[0].at_once; at++) {
            load_next(s, at);
        }
        tk_emit_else(s->of[0].e, &c);
    }
    const fetch first = apart(&s->of[0]);
    load_first(&first);
    tk_emit_end(s->of[0].e, &c);
}

void tk_emit_fetch_begin(tk_emit *e, const tk_op *op, tk_emit_ring *r) {
    stream s = {.of = {fetch_of(e, op, r)}, .ring = {r}, .n = 1};
    r->begun = s.of[0].on_the_way = places_of(&s.of[0]);
    s.whole = s.of[0].whole;
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, s.of[0].v.l));
    load_stream(&s);
    tk_emit_end(e, &own);
}

static void find_wgmma(void *user, tk_op *op) {
    bool *found = user;
    *found = *found || (op->code == TK_OP_DOT && op->at.unit == TK_UNIT_WGMMA);
}

// What wgmma reads it reads by another way than threads write.
static void make_visible(tk_emit *e) {
    LLVMValueRef all = tk_emit_i32(e, -1);
    bool wgmma = false;
    tk_func_walk((tk_func *)(uintptr_t)e->f, find_wgmma, &wgmma); // changes nothing
    if (wgmma) {
        tk_emit_async_fence(e);
    }
    (void)tk_emit_intrinsic(e, "llvm.nvvm.bar.warp.sync", LLVMVoidTypeInContext(e->ctx), 1, &all);
}

// One lane arrives for its warp, when all of it have stored. A warp that owns nothing has not
// waited for the slot either, and may be ahead of the others.
static void arrive(const stream *s, LLVMValueRef own) {
    tk_emit *e = s->of[0].e;
    make_visible(e);
    for (uint32_t i = 0; i < s->n; i++) {
        const tk_emit_ring *r = s->ring[i];
        tk_emit_mbarrier_arrive_by(e, tk_emit_and(e, tk_ll_is(e, e->lane, 0), own),
                                   tk_emit_ring_barrier(e, r->full, &r->fetch));
    }
}

static void wait_for_slots(const stream *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        const tk_emit_ring *r = s->ring[i];
        LLVMValueRef barrier = tk_emit_ring_barrier(s->of[i].e, r->empty, &r->fetch);
        tk_emit_ring_wait(s->of[i].e, barrier, &r->fetch, 1);
    }
}

static void add(stream *s, tk_emit *e, const tk_op *op) {
    tk_emit_ring *r = tk_emit_ring_of(e, op->opnd[op->nopnd - 1]);
    fetch f = fetch_of(e, op, r);
    TK_CHECK(e->arena, s->n < MOST_FETCHES);
    f.slot = tk_emit_ring_slot(e, r, &r->fetch);
    f.offset = s->chunks;
    s->whole = s->n > 0 ? tk_emit_and(e, s->whole, f.whole) : f.whole;
    s->of[s->n] = f;
    s->ring[s->n++] = r;
    s->chunks += f.chunks;
}

// A fetch and those behind it.
static void make_stream(stream *s, tk_emit *e, const tk_op *op) {
    add(s, e, op);
    LLVMValueRef *begun = s->ring[0]->begun;
    while (op->next && tk_fetch_joins(e->axis, op->next)) {
        op = op->next;
        add(s, e, op);
    }
    fetch *first = &s->of[0];
    const uint32_t most = values_at_once(e) / first->values;
    first->at_once = most < s->chunks ? most : s->chunks;
    first->on_the_way = begun ? begun : places_of(first);
    for (uint32_t i = 1; i < s->n; i++) {
        s->of[i].at_once = first->at_once;
        s->of[i].on_the_way = first->on_the_way;
    }
}

// Whole tiles as a stream, others one after the other.
static void bring(const stream *s) {
    tk_emit *e = s->of[0].e;
    tk_emit_cond c = {NULL, NULL, NULL};
    if (!s->ring[0]->begun) {
        load_stream(s);
    }
    wait_for_slots(s);
    if (s->whole) {
        c = tk_emit_if(e, s->whole);
        for (uint32_t i = 0; i < s->n; i++) {
            store_whole(s, &s->of[i]);
        }
        tk_emit_else(e, &c);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const fetch one = apart(&s->of[i]);
        if (i > 0) {
            load_first(&one);
        }
        store_all(&one);
    }
    tk_emit_end(e, &c);
}

void tk_emit_fetch_registers(tk_emit *e, const tk_op *op, tk_emit_ring *r) {
    stream s = {.n = 0};
    if (tk_fetch_joins(e->axis, op)) { // it was brought with that before it
        return;
    }
    make_stream(&s, e, op);
    LLVMValueRef own = tk_emit_owner(e, s.of[0].v.l);
    tk_emit_cond if_own = tk_emit_if(e, own);
    bring(&s);
    tk_emit_end(e, &if_own);
    arrive(&s, own);
    r->begun = NULL;
}
