// SPDX-License-Identifier: Apache-2.0
// Reads and writes under a condition, as instructions with a predicate.
//
// LLVM has no such instruction: a branch around a load ends in a phi, into which its optimiser
// draws what is done to the value (eight bf16 in four registers become eight f32 in eight), and
// each branch is a block more for everybody. So a guarded access is inline PTX, words of 32 bits
// and whole for less.
#include "ptx/llvm_build.h"
#include "ptx/llvm_bulk.h"
#include "ptx/llvm_internal.h"

enum { MAX_WORDS = 4 };

// What an access is in PTX: elements of 32 and 64 bits as they are, smaller ones in words of 32
// bits and what is less than a word as an integer.
typedef struct shape {
    unsigned words, bits;     // of a word in a register
    LLVMTypeRef type, memory; // of a word in a register; of all of it in memory
    const char *ptx;
    char reg; // its constraint
} shape;

static shape shape_of(tk_emit *e, LLVMTypeRef type, unsigned bytes) {
    const bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
    LLVMTypeRef of = vector ? LLVMGetElementType(type) : type;
    const unsigned n = vector ? LLVMGetVectorSize(type) : 1, size = bytes / n;
    const LLVMTypeKind kind = LLVMGetTypeKind(of);
    if (size == 8) {
        return (shape){n, 64, of, type, "b64", kind == LLVMDoubleTypeKind ? 'd' : 'l'};
    }
    if (size == 4) {
        return (shape){n, 32, of, type, "b32", kind == LLVMFloatTypeKind ? 'f' : 'r'};
    }
    LLVMTypeRef i32 = tk_ll_int(e, 32), i16 = tk_ll_int(e, 16);
    if (bytes > 4) {
        return (shape){bytes / 4, 32, i32, LLVMVectorType(i32, bytes / 4), "b32", 'r'};
    }
    if (bytes == 4) {
        return (shape){1, 32, i32, i32, "b32", 'r'};
    }
    // No registers are smaller than 16 bits.
    return (shape){1, 16, i16, tk_ll_int(e, 8 * bytes), bytes == 2 ? "b16" : "b8", 'h'};
}

// What is in shared memory has an address of 32 bits, what is in global memory a pointer.
static bool is_shared(LLVMValueRef at) {
    return LLVMGetTypeKind(LLVMTypeOf(at)) == LLVMIntegerTypeKind;
}
static const char *space_of(LLVMValueRef at) { return is_shared(at) ? "shared" : "global"; }
static const char *conditions_of(LLVMValueRef at) { return is_shared(at) ? "b,r" : "b,l"; }

static void to_words(tk_emit *e, const shape *s, LLVMValueRef x, LLVMValueRef *word) {
    x = tk_ll_bits(e, x, s->memory);
    for (unsigned i = 0; i < s->words && s->words > 1; i++) {
        word[i] = LLVMBuildExtractElement(e->b, x, tk_emit_i32(e, i), "");
    }
    if (s->words == 1) {
        word[0] = s->memory == s->type ? x : tk_ll_resize(e, x, s->bits, false);
    }
}

// The code generator takes what inline PTX gives for an integer and turns abs and neg of it into
// operations on bits, which the assembler does not make modifiers of operands. A fence, which is no
// instruction, keeps it a float.
static LLVMValueRef as_float(tk_emit *e, const shape *s, LLVMValueRef x) {
    return s->reg == 'f'   ? tk_emit_intrinsic(e, "llvm.arithmetic.fence.f32", s->type, 1, &x)
           : s->reg == 'd' ? tk_emit_intrinsic(e, "llvm.arithmetic.fence.f64", s->type, 1, &x)
                           : x;
}

static LLVMValueRef from_words(tk_emit *e, const shape *s, LLVMValueRef made, LLVMTypeRef type) {
    if (s->words == 1) {
        made =
            s->memory == s->type ? as_float(e, s, made) : LLVMBuildTrunc(e->b, made, s->memory, "");
        return tk_ll_bits(e, made, type);
    }
    LLVMValueRef all = LLVMGetUndef(s->memory);
    for (unsigned i = 0; i < s->words; i++) {
        LLVMValueRef word = as_float(e, s, LLVMBuildExtractValue(e->b, made, i, ""));
        all = LLVMBuildInsertElement(e->b, all, word, tk_emit_i32(e, i), "");
    }
    return tk_ll_bits(e, all, type);
}

static const char *vector_of(const shape *s) {
    return s->words == 4 ? ".v4" : s->words == 2 ? ".v2" : "";
}

// "{$2, $3}" from 2, or "$2".
static void operands(tk_buf *b, const shape *s, unsigned from) {
    tk_buf_str(b, s->words > 1 ? "{" : "");
    for (unsigned i = 0; i < s->words; i++) {
        tk_buf_fmt(b, "%s$%u", i ? ", " : "", from + i);
    }
    tk_buf_str(b, s->words > 1 ? "}" : "");
}

LLVMValueRef tk_emit_guarded_read(tk_emit *e, LLVMValueRef cond, tk_emit_place p, LLVMTypeRef type,
                                  unsigned bytes, LLVMValueRef other) {
    if (!cond) {
        LLVMValueRef x = LLVMBuildLoad2(e->b, type, tk_emit_place_ptr(e, p), "");
        LLVMSetAlignment(x, bytes);
        return x;
    }
    const shape s = shape_of(e, type, bytes);
    LLVMValueRef arg[2 + MAX_WORDS] = {cond, p.at};
    LLVMTypeRef types[MAX_WORDS];
    const bool zero = LLVMIsNull(other);
    tk_buf text, constraints;
    tk_buf_init(&text, e->arena);
    tk_buf_init(&constraints, e->arena);
    to_words(e, &s, other, arg + 2);
    for (unsigned i = 0; i < s.words; i++) {
        types[i] = s.type;
        tk_buf_fmt(&constraints, "=&%c,", s.reg); // set before the operands are read
        if (zero) {
            tk_buf_fmt(&text, "mov.b%u $%u, 0;\n\t", s.bits, i);
        } else {
            tk_buf_fmt(&text, "mov.b%u $%u, $%u;\n\t", s.bits, i, s.words + 2 + i);
        }
    }
    tk_buf_str(&constraints, conditions_of(p.at));
    for (unsigned i = 0; i < s.words && !zero; i++) {
        tk_buf_fmt(&constraints, ",%c", s.reg);
    }
    tk_buf_fmt(&text, "@$%u ld.%s%s.%s ", s.words, space_of(p.at), vector_of(&s), s.ptx);
    operands(&text, &s, 0);
    tk_buf_fmt(&text, ", [$%u+%lld];", s.words + 1, (long long)p.bytes);
    LLVMTypeRef result =
        s.words > 1 ? LLVMStructTypeInContext(e->ctx, types, s.words, 0) : types[0];
    LLVMValueRef x = tk_emit_asm(e, result, tk_buf_text(&text), tk_buf_text(&constraints),
                                 zero ? 2 : 2 + s.words, arg);
    return from_words(e, &s, x, type);
}

void tk_emit_guarded_write(tk_emit *e, LLVMValueRef cond, tk_emit_place p, LLVMValueRef x,
                           unsigned bytes) {
    if (!cond) {
        LLVMValueRef w = LLVMBuildStore(e->b, x, tk_emit_place_ptr(e, p));
        LLVMSetAlignment(w, bytes);
        return;
    }
    const shape s = shape_of(e, LLVMTypeOf(x), bytes);
    LLVMValueRef arg[2 + MAX_WORDS] = {cond, p.at};
    tk_buf text, constraints;
    tk_buf_init(&text, e->arena);
    tk_buf_init(&constraints, e->arena);
    to_words(e, &s, x, arg + 2);
    tk_buf_str(&constraints, conditions_of(p.at));
    for (unsigned i = 0; i < s.words; i++) {
        tk_buf_fmt(&constraints, ",%c", s.reg);
    }
    tk_buf_fmt(&text, "@$0 st.%s%s.%s [$1+%lld], ", space_of(p.at), vector_of(&s), s.ptx,
               (long long)p.bytes);
    operands(&text, &s, 2);
    tk_buf_str(&text, ";");
    (void)tk_emit_asm(e, LLVMVoidTypeInContext(e->ctx), tk_buf_text(&text),
                      tk_buf_text(&constraints), 2 + s.words, arg);
}
