// SPDX-License-Identifier: Apache-2.0
// The lists of instructions put together.
#include "sim/exec.h"

static const tk_sim_row rows[] = {
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS)                                                     \
    {PATTERN, SHAPE, tk_sim_bind_##BIND, TK_SIM_CLASS_##CLASS},
#include "sim/ops.def"
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS)                                                     \
    {PATTERN, SHAPE, tk_sim_bind_##BIND, TK_SIM_CLASS_##CLASS},
#include "sim/ops_async.def"
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS)                                                     \
    {PATTERN, SHAPE, tk_sim_bind_##BIND, TK_SIM_CLASS_##CLASS},
#include "sim/ops_bulk.def"
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS)                                                     \
    {PATTERN, SHAPE, tk_sim_bind_##BIND, TK_SIM_CLASS_##CLASS},
#include "sim/ops_wgmma.def"
};

const tk_sim_row *tk_sim_rows(size_t *n) {
    *n = sizeof rows / sizeof *rows;
    return rows;
}

const char *tk_sim_class_name(tk_sim_class c) {
    static const char *const name[TK_SIM_CLASS_COUNT] = {
#define TK_SIM_CLASS(ID, NAME) NAME,
#include "sim/classes.def"
    };
    return name[c];
}
