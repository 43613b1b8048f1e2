// SPDX-License-Identifier: Apache-2.0
// The checked tree: names of built-in functions, walking expressions.
#include "lang/tree.h"

const char *tk_builtin_name(tk_builtin b) {
    static const char *const name[] = {
#define TK_BUILTIN(ID, NAME, RULE, SIGNATURE, DOC) #NAME,
#define TK_BUILTIN_ELEM(ID, SIGNATURE, DOC)
#include "lang/builtins.def"
    };
    return b < TK_BI_COUNT ? name[b] : "?";
}

const char *tk_builtin_signature(tk_builtin b) {
    static const char *const text[] = {
#define TK_BUILTIN(ID, NAME, RULE, SIGNATURE, DOC) SIGNATURE,
#define TK_BUILTIN_ELEM(ID, SIGNATURE, DOC)
#include "lang/builtins.def"
    };
    return b < TK_BI_COUNT ? text[b] : "?";
}

static void walk_view(const tk_view *v, void (*f)(void *user, tk_x *x), void *user) {
    for (uint32_t i = 0; i < v->n; i++) {
        tk_x_walk(v->entry[i].at, f, user);
        tk_x_walk(v->entry[i].mask, f, user);
    }
}

void tk_x_walk(tk_x *x, void (*f)(void *user, tk_x *x), void *user) {
    if (!x) {
        return;
    }
    if (x->kind == TK_X_LOAD) {
        walk_view(x->u.load.view, f, user);
        tk_x_walk(x->u.load.other, f, user);
    }
    if (x->kind == TK_X_ATOMIC) {
        walk_view(x->u.atomic.view, f, user);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        tk_x_walk(x->arg[i], f, user);
    }
    f(user, x);
}
