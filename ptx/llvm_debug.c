// SPDX-License-Identifier: Apache-2.0
// assert, assume and print: only in debug compiles; elsewhere they make nothing.
#include "ptx/llvm_internal.h"

static const char *place(const tk_emit *e, const tk_op *op, uint32_t *line) {
    tk_span at = op->loc < e->m->locs.n ? e->m->locs.at[op->loc].span : (tk_span){0, 0, 0};
    const tk_source *s = e->m->sources ? tk_source_of(e->m->sources, at.file) : NULL;
    uint32_t col;
    *line = 0;
    if (!s) {
        return "?";
    }
    tk_line_col(s, at.begin, line, &col);
    return s->name;
}

static LLVMValueRef text(tk_emit *e, const char *s) {
    LLVMValueRef g = LLVMBuildGlobalString(e->b, s, "text");
    return LLVMBuildAddrSpaceCast(e->b, g, LLVMPointerTypeInContext(e->ctx, 0), "");
}

static void check(tk_emit *e, const tk_op *op) {
    LLVMValueRef *x = tk_emit_get(e, op->opnd[0]), all = x[0];
    for (uint32_t r = 1; r < tk_emit_regs(e, op->opnd[0]); r++) {
        all = LLVMBuildAnd(e->b, all, x[r], "");
    }
    uint32_t line;
    const char *file = place(e, op, &line);
    tk_emit_cond c = tk_emit_if(e, LLVMBuildNot(e->b, all, ""));
    LLVMTypeRef p = LLVMPointerTypeInContext(e->ctx, 0), i32 = LLVMInt32TypeInContext(e->ctx);
    LLVMTypeRef type[5] = {p, p, i32, p, LLVMInt64TypeInContext(e->ctx)};
    LLVMTypeRef ft = LLVMFunctionType(LLVMVoidTypeInContext(e->ctx), type, 5, 0);
    LLVMValueRef f = LLVMGetNamedFunction(e->mod, "__assertfail");
    f = f ? f : LLVMAddFunction(e->mod, "__assertfail", ft);
    const char *what = op->at.text ? op->at.text : op->code == TK_OP_ASSUME ? "assume" : "assert";
    LLVMValueRef arg[5] = {text(e, what), text(e, file), tk_emit_i32(e, line), text(e, e->f->name),
                           tk_emit_i64(e, 1)};
    LLVMBuildCall2(e->b, ft, f, arg, 5, "");
    tk_emit_end(e, &c);
}

void tk_emit_debug_op(tk_emit *e, tk_op *op) {
    if (!e->opts->debug) {
        return;
    }
    if (op->code == TK_OP_PRINT) {
        tk_emit_refuse(e, op, "print does not run on a GPU yet: use the device 'cpu'");
        return;
    }
    check(e, op);
}
