// SPDX-License-Identifier: Apache-2.0
// Conversions between layouts through shared memory.
//
// The tile lies in scratch row-major, with a swizzle: the bits of an element's number above a
// vector of 16 bytes are exclusive-ored with three higher ones, so that lanes that are far apart
// meet different banks. Which three, and which side (writing or reading) moves vectors, is chosen
// by counting wavefronts of the two layouts' first access: the map is linear, so all accesses of a
// layout conflict alike. A candidate without swizzle is among those compared.
#include "ptx/llvm_internal.h"

enum { BANKS = 32, BANK_BYTES = 4, VECTOR_BYTES = 16, XOR_BITS = 3 };

typedef struct swizzle {
    unsigned from, to; // bits [from, from + 3) go into [to, to + 3); from 0: none
} swizzle;

static uint32_t apply(swizzle s, uint32_t e) {
    return s.from ? e ^ (e >> s.from & ((1U << XOR_BITS) - 1)) << s.to : e;
}

// How many low register bits walk consecutive elements of the tile's memory, at most `most`.
static unsigned run_of(const tk_layout *l, unsigned most) {
    unsigned n = 0;
    while (n < most && n < l->regs && l->reg[n] == 1U << n) {
        n++;
    }
    return n;
}

// Wavefronts of one access by a warp, each lane moving `run` elements (as a power of two) of `size`
// bytes.
static unsigned wavefronts(const tk_layout *l, swizzle s, unsigned run, unsigned size) {
    unsigned bytes = size << run, words = bytes < BANK_BYTES ? 1 : bytes / BANK_BYTES, total = 0;
    unsigned together = BANKS / words; // lanes that one wavefront can serve
    for (unsigned first = 0; first < BANKS; first += together) {
        uint32_t seen[BANKS][BANKS];
        unsigned count[BANKS] = {0}, most = 1;
        for (unsigned lane = first; lane < first + together; lane++) {
            uint32_t word = apply(s, tk_layout_eval(l, 0, lane, 0)) * size / BANK_BYTES;
            for (unsigned w = 0; w < words; w++) {
                unsigned bank = (word + w) % BANKS, i = 0;
                while (i < count[bank] && seen[bank][i] != word + w) {
                    i++;
                }
                if (i == count[bank]) { // one word read by several lanes is read once
                    seen[bank][count[bank]++] = word + w;
                }
                most = count[bank] > most ? count[bank] : most;
            }
        }
        total += most;
    }
    return total;
}

// All wavefronts of writing a and reading b.
static unsigned cost(const tk_layout *a, const tk_layout *b, swizzle s, unsigned run_a,
                     unsigned run_b, unsigned size) {
    return (wavefronts(a, s, run_a, size) << (a->regs - run_a)) +
           (wavefronts(b, s, run_b, size) << (b->regs - run_b));
}

static swizzle choose(const tk_layout *a, const tk_layout *b, unsigned run_a, unsigned run_b,
                      unsigned size) {
    swizzle best = {0, 0};
    unsigned least = cost(a, b, best, run_a, run_b, size), bits = tk_layout_bits(a), to = 0;
    while ((size << to) < VECTOR_BYTES) {
        to++;
    }
    for (unsigned from = to + XOR_BITS; from + XOR_BITS <= bits; from++) {
        swizzle s = {from, to};
        unsigned c = cost(a, b, s, run_a, run_b, size);
        if (c < least) {
            least = c;
            best = s;
        }
    }
    return best;
}

// The place in scratch of the element in register r: linear, so the thread's part is found once.
static LLVMValueRef place(tk_emit *e, const tk_op *op, const tk_layout *l, swizzle s, uint32_t r,
                          unsigned size) {
    LLVMValueRef at = tk_emit_element(e, l, 0);
    if (s.from) {
        LLVMValueRef high = LLVMBuildAnd(e->b, LLVMBuildLShr(e->b, at, tk_emit_i32(e, s.from), ""),
                                         tk_emit_i32(e, (1 << XOR_BITS) - 1), "");
        at = LLVMBuildXor(e->b, at, LLVMBuildShl(e->b, high, tk_emit_i32(e, s.to), ""), "");
    }
    at = LLVMBuildXor(e->b, at, tk_emit_i32(e, apply(s, tk_layout_eval(l, r, 0, 0))), "");
    return tk_emit_shared_at(e, op, 0, LLVMBuildMul(e->b, at, tk_emit_i32(e, size), ""));
}

static void write_all(tk_emit *e, const tk_op *op, const tk_layout *l, swizzle s, unsigned run,
                      tk_dtype t, LLVMValueRef *x) {
    unsigned size = (unsigned)tk_dtype_size(t), n = 1U << run;
    tk_emit_cond own = tk_emit_if(e, tk_emit_owner(e, l));
    for (uint32_t r = 0; r < 1U << l->regs; r += n) {
        LLVMValueRef v = tk_emit_to_mem(e, t, x[r]);
        if (n > 1) {
            v = LLVMGetUndef(LLVMVectorType(tk_emit_mem_type(e, t), n));
            for (unsigned i = 0; i < n; i++) {
                v = LLVMBuildInsertElement(e->b, v, tk_emit_to_mem(e, t, x[r + i]),
                                           tk_emit_i32(e, i), "");
            }
        }
        LLVMSetAlignment(LLVMBuildStore(e->b, v, place(e, op, l, s, r, size)), size * n);
    }
    tk_emit_end(e, &own);
}

static void read_all(tk_emit *e, const tk_op *op, const tk_layout *l, swizzle s, unsigned run,
                     tk_dtype t, LLVMValueRef *out) {
    unsigned size = (unsigned)tk_dtype_size(t), n = 1U << run;
    LLVMTypeRef type = tk_emit_mem_type(e, t);
    for (uint32_t r = 0; r < 1U << l->regs; r += n) {
        LLVMValueRef v = LLVMBuildLoad2(e->b, n > 1 ? LLVMVectorType(type, n) : type,
                                        place(e, op, l, s, r, size), "");
        LLVMSetAlignment(v, size * n);
        for (unsigned i = 0; i < n; i++) {
            LLVMValueRef y = n > 1 ? LLVMBuildExtractElement(e->b, v, tk_emit_i32(e, i), "") : v;
            out[r + i] = tk_emit_from_mem(e, t, y);
        }
    }
}

void tk_emit_exchange(tk_emit *e, const tk_op *op, const tk_layout *a, const tk_layout *b,
                      tk_dtype t, LLVMValueRef *x, LLVMValueRef *out) {
    unsigned size = (unsigned)tk_dtype_size(t), most = 0;
    while ((size << most) < VECTOR_BYTES) {
        most++;
    }
    unsigned run_a = run_of(a, most), run_b = run_of(b, most);
    swizzle s = choose(a, b, run_a, run_b, size);
    write_all(e, op, a, s, run_a, t, x);
    tk_emit_barrier(e);
    read_all(e, op, b, s, run_b, t, out);
}
