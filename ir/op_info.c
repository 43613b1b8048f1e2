// SPDX-License-Identifier: Apache-2.0
// What is known of each op: the table made from ops.def, and which attributes an op uses.
#include "ir/ir.h"

#include <string.h>

// The words of the LEVELS column of ops.def.
enum {
    TILE = TK_LEVEL_TILE,
    LAID = TK_LEVEL_LAID,
    STAGED = TK_LEVEL_STAGED,
    ALL = TK_LEVEL_TILE | TK_LEVEL_LAID | TK_LEVEL_STAGED,
};
enum { RULE_EXACT = true, RULE_BOUND = false };

static const tk_opinfo info[TK_OP_COUNT] = {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)                           \
    [TK_OP_##ID] = {.name = #NAME,                                                                 \
                    .operands = OPERANDS,                                                          \
                    .results = RESULTS,                                                            \
                    .regions = REGIONS,                                                            \
                    .effect = TK_FX_##EFFECT,                                                      \
                    .levels = (LEVELS),                                                            \
                    .doc = DOC},
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE)                                                  \
    [TK_OP_##ID] = {.name = #NAME,                                                                 \
                    .operands = ARITY,                                                             \
                    .results = 1,                                                                  \
                    .effect = TK_FX_PURE,                                                          \
                    .levels = ALL,                                                                 \
                    .elementwise = true,                                                           \
                    .num = TK_NUM_##ID,                                                            \
                    .exact = RULE_##RULE,                                                          \
                    .doc = "element-wise"},
#include "ir/ops.def"
};

const tk_opinfo *tk_op_info(tk_opcode code) { return &info[code]; }

bool tk_op_from_name(const char *name, size_t n, tk_opcode *out) {
    for (int i = 0; i < TK_OP_COUNT; i++) {
        if (strncmp(info[i].name, name, n) == 0 && info[i].name[n] == '\0') {
            *out = (tk_opcode)i;
            return true;
        }
    }
    return false;
}

bool tk_op_legal(tk_opcode code, tk_level level) {
    return (info[code].levels & (unsigned)level) != 0;
}

static tk_attr_bits structural_attrs(tk_opcode code) {
    enum {
        SHARED = TK_A_SHARED, // what works across elements
        ATOMIC = TK_A_INDEX | TK_A_MASKED | TK_A_ORDER | TK_A_SCOPE | SHARED,
    };
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC)
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE) case TK_OP_##ID:
    switch (code) {
#include "ir/ops.def"
    case TK_OP_IOTA:
    case TK_OP_EMPTY:
    case TK_OP_INSERT:
    case TK_OP_EXTRACT:
    case TK_OP_BROADCAST:
    case TK_OP_RESHAPE:
    case TK_OP_CAST:
    case TK_OP_BITCAST:
    case TK_OP_PHILOX:
    case TK_OP_TAKE:
    case TK_OP_PROGRAMS:
    case TK_OP_RELEASE:
    case TK_OP_WAIT:
    case TK_OP_BARRIER:
    case TK_OP_IF:
    case TK_OP_YIELD:
    case TK_OP_RETURN:
        return 0;
    case TK_OP_INTERLEAVE:
    case TK_OP_DEINTERLEAVE:
    case TK_OP_CONVERT:
    case TK_OP_HISTOGRAM:
    case TK_OP_DOT_SCALED:
        return SHARED;
    case TK_OP_CONST:
        return TK_A_VALUE;
    case TK_OP_PERMUTE:
        return TK_A_PERM;
    case TK_OP_CONCAT:
    case TK_OP_FLIP:
    case TK_OP_GATHER:
    case TK_OP_REDUCE_FN:
    case TK_OP_TOPK:
        return TK_A_AXIS | SHARED;
    case TK_OP_DIM:
    case TK_OP_PROGRAM_ID:
    case TK_OP_NUM_PROGRAMS:
        return TK_A_AXIS;
    case TK_OP_SLICE:
        return TK_A_AXIS | TK_A_START | SHARED;
    case TK_OP_REDUCE:
    case TK_OP_ARG_REDUCE:
        return TK_A_KIND | TK_A_AXIS | SHARED;
    case TK_OP_SCAN:
        return TK_A_KIND | TK_A_AXIS | TK_A_REVERSE | TK_A_EXCLUSIVE | SHARED;
    case TK_OP_SCAN_FN:
        return TK_A_AXIS | TK_A_REVERSE | TK_A_EXCLUSIVE | SHARED;
    case TK_OP_SORT:
        return TK_A_AXIS | TK_A_DESCENDING | SHARED;
    case TK_OP_DOT:
        return TK_A_PRECISION | TK_A_UNIT | TK_A_OPEN | SHARED;
    case TK_OP_LOAD:
        return TK_A_INDEX | TK_A_MASKED | TK_A_OTHER | TK_A_STAGED | TK_A_HOLD | TK_A_HELD | SHARED;
    case TK_OP_STORE:
        return TK_A_INDEX | TK_A_MASKED | TK_A_STAGED | TK_A_HOW | TK_A_SLOTS | TK_A_PIECES |
               SHARED;
    case TK_OP_RING:
        return TK_A_SLOTS | TK_A_CLUSTER | TK_A_LIKE | TK_A_PRECISION | SHARED;
    case TK_OP_PARTITION:
        return TK_A_PRODUCERS;
    case TK_OP_FETCH:
        return TK_A_INDEX | TK_A_HOW;
    case TK_OP_ATOMIC_RMW:
        return TK_A_KIND | ATOMIC;
    case TK_OP_ATOMIC_CAS:
        return ATOMIC;
    case TK_OP_ASSERT:
    case TK_OP_ASSUME:
        return TK_A_TEXT | TK_A_PART;
    case TK_OP_PRINT:
        return TK_A_TEXT | TK_A_SHOWN | SHARED;
    case TK_OP_CALL:
        return TK_A_CALLEE;
    case TK_OP_FOR:
        return TK_A_PIPELINE | TK_A_UNROLL | TK_A_REVERSE;
    case TK_OP_WHILE:
        return TK_A_PIPELINE | TK_A_UNROLL;
    case TK_OP_COUNT:
        break;
    }
    return 0;
}

tk_attr_bits tk_op_attrs(tk_opcode code) {
    return info[code].elementwise ? 0 : structural_attrs(code);
}

tk_const tk_kind_identity(tk_kindattr kind, tk_dtype t) {
    switch (kind) {
    case TK_K_PROD:
        return tk_const_i64(t, 1);
    case TK_K_MIN:
        return tk_const_greatest(t);
    case TK_K_MAX:
        return tk_const_least(t);
    case TK_K_ALL:
    case TK_K_AND:
        return tk_const_bool(true);
    case TK_K_SUM:
    case TK_K_ADD:
    case TK_K_ANY:
    case TK_K_OR:
    case TK_K_XOR:
    case TK_K_XCHG:
        break;
    }
    return tk_dtype_is_float(t) ? tk_const_f64(t, -0.0) : (tk_const){t, 0};
}
