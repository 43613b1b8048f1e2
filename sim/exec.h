// SPDX-License-Identifier: Apache-2.0
// What the files of executors share: how an executor over lanes is written, and how one is picked
// by type.
#ifndef TK_SIM_EXEC_H
#define TK_SIM_EXEC_H

#include "sim/machine.h"

// Declares the binders, so that each file's definitions are checked against the list.
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS) tk_sim_bind tk_sim_bind_##BIND;
#include "sim/ops.def"
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS) tk_sim_bind tk_sim_bind_##BIND;
#include "sim/ops_async.def"
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS) tk_sim_bind tk_sim_bind_##BIND;
#include "sim/ops_bulk.def"
#define TK_SIM_OP(PATTERN, SHAPE, BIND, CLASS) tk_sim_bind tk_sim_bind_##BIND;
#include "sim/ops_wgmma.def"

tk_sim_exec tk_sim_exit; // the threads end

// An executor of one, two, three sources: lanes' values x, y, z of type T; EXPR is the result, of
// which the bits of U are kept.
#define TK_SIM_UNARY(NAME, T, U, EXPR)                                                             \
    static tk_sim_flow NAME(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {                 \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]);                                             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) {                                                                     \
            T x = (T)a[l];                                                                         \
            d[l] = (U)(EXPR);                                                                      \
        }                                                                                          \
        return TK_SIM_NEXT;                                                                        \
    }
#define TK_SIM_BINARY(NAME, T, U, EXPR)                                                            \
    static tk_sim_flow NAME(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {                 \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]);             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) {                                                                     \
            T x = (T)a[l], y = (T)b[l];                                                            \
            d[l] = (U)(EXPR);                                                                      \
        }                                                                                          \
        return TK_SIM_NEXT;                                                                        \
    }
#define TK_SIM_TERNARY(NAME, T, U, EXPR)                                                           \
    static tk_sim_flow NAME(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {                 \
        const uint64_t *a = tk_sim_get(w, &i->arg[1]), *b = tk_sim_get(w, &i->arg[2]),             \
                       *c = tk_sim_get(w, &i->arg[3]);                                             \
        uint64_t *d = tk_sim_put(w, &i->arg[0]);                                                   \
        TK_SIM_EACH(l, mask) {                                                                     \
            T x = (T)a[l], y = (T)b[l], z = (T)c[l];                                               \
            d[l] = (U)(EXPR);                                                                      \
        }                                                                                          \
        return TK_SIM_NEXT;                                                                        \
    }

// A binder that picks by the first type, and one of a single executor.
#define TK_SIM_BIND_TYPES(BIND, ...)                                                               \
    tk_sim_exec *tk_sim_bind_##BIND(const tk_sim_inst *i) {                                        \
        static tk_sim_exec *const table[TK_SIM_TYPE_COUNT] = {__VA_ARGS__};                        \
        return table[i->type[0]];                                                                  \
    }
#define TK_SIM_BIND_ONE(BIND, EXEC)                                                                \
    tk_sim_exec *tk_sim_bind_##BIND(const tk_sim_inst *i) {                                        \
        (void)i;                                                                                   \
        return EXEC;                                                                               \
    }

#endif
