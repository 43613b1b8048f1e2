// SPDX-License-Identifier: Apache-2.0
// Tiles that shared memory holds. See hold.h.
#include "ir/hold.h"
#include "ir/pass_util.h"

enum { LANES = 32 };

uint64_t tk_held_bytes(const tk_func *f, const tk_op *load) {
    const tk_layout *l = tk_value_layout(f, load->res[0]);
    const uint64_t threads = LANES * (uint64_t)f->module->attrs.warps;
    return l ? (threads << l->regs) * tk_dtype_size(tk_value_type(f, load->res[0])->dtype) : 0;
}

typedef struct search {
    int64_t left;
    const tk_op *found;
} search;

static void look(void *user, tk_op *op) {
    search *s = user;
    if (op->code == TK_OP_LOAD && op->at.hold && --s->left == 0) {
        s->found = op;
    }
}

const tk_op *tk_holder_of(const tk_func *f, const tk_op *load) {
    search s = {.left = load->at.held};
    if (load->code == TK_OP_LOAD && load->at.held > 0) {
        tk_func_walk((tk_func *)(uintptr_t)f, look, &s);
    }
    return s.found;
}
