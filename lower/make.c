// SPDX-License-Identifier: Apache-2.0
// See make.h.
#include "lower/make.h"

tk_vid tk_maker_op(const tk_maker *m, tk_op *before, tk_opcode code, uint32_t n, const tk_vid *opnd,
                   const tk_type *t) {
    tk_op *op = tk_op_new(m->f, code, m->loc, n, opnd, 1, &t, 0);
    tk_op_insert_before(before, op);
    return op->res[0];
}

const tk_type *tk_maker_scalar(const tk_maker *m, tk_dtype t) {
    return tk_type_scalar(m->arena, t);
}

tk_vid tk_maker_number(const tk_maker *m, tk_op *before, tk_dtype t, int64_t x) {
    const tk_vid v = tk_maker_op(m, before, TK_OP_CONST, 0, NULL, tk_maker_scalar(m, t));
    tk_value_def(m->f, v)->at.value = tk_const_i64(t, x);
    return v;
}

tk_vid tk_maker_two(const tk_maker *m, tk_op *before, tk_opcode code, tk_vid a, tk_vid b) {
    const tk_vid v[2] = {a, b};
    const tk_type *t = tk_value_type(m->f, a);
    return tk_maker_op(m, before, code, 2, v, code == TK_OP_LT ? tk_maker_scalar(m, TK_BOOL) : t);
}

tk_dtype tk_unsigned_of(tk_dtype t) {
    switch (tk_dtype_bits(t)) {
    case 8:
        return TK_U8;
    case 16:
        return TK_U16;
    case 32:
        return TK_U32;
    }
    return TK_U64;
}
