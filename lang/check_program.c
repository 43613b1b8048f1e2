// SPDX-License-Identifier: Apache-2.0
// The checked program of a bound kernel: walks it and puts together the instances that it reaches.
#include "lang/check_core.h"

#include <string.h>

typedef struct {
    tk_checker *c;
    tk_program *p;
    TK_VEC(tk_inst *) seen;
} gatherer;

static void gather_inst(gatherer *g, tk_inst *inst);

static void gather_node(void *user, tk_x *x) {
    gatherer *g = user;
    if (x->kind == TK_X_CALL) {
        gather_inst(g, x->u.call.inst);
    } else if (x->kind == TK_X_BUILTIN && x->u.builtin.attr.fn) {
        gather_inst(g, x->u.builtin.attr.fn);
    }
}

static void gather_view(gatherer *g, const tk_view *v) {
    for (uint32_t i = 0; v && i < v->n; i++) {
        tk_x_walk(v->entry[i].at, gather_node, g);
        tk_x_walk(v->entry[i].mask, gather_node, g);
    }
}

static void gather_block(gatherer *g, const tk_xblock *b) {
    for (uint32_t i = 0; b && i < b->list.n; i++) {
        const tk_xs *s = b->list.at[i];
        tk_x_walk(s->value, gather_node, g);
        tk_x_walk(s->from, gather_node, g);
        tk_x_walk(s->to, gather_node, g);
        tk_x_walk(s->step, gather_node, g);
        gather_view(g, s->view);
        for (uint32_t k = 0; k < s->nresult; k++) {
            tk_x_walk(s->result[k], gather_node, g);
        }
        gather_block(g, s->body);
        gather_block(g, s->other);
    }
}

// Callees first. Names are made unique: "gelu", "gelu.1".
static void gather_inst(gatherer *g, tk_inst *inst) {
    for (uint32_t i = 0; i < g->seen.n; i++) {
        if (g->seen.at[i] == inst) {
            return;
        }
    }
    tk_vec_push(g->c->arena, &g->seen, inst);
    gather_block(g, inst->body);
    tk_vec_push(g->c->arena, &g->p->insts, inst);
}

static void name_insts(tk_checker *c, tk_program *p) {
    const char **plain = TK_NEW_ARRAY(c->arena, const char *, p->insts.n);
    for (uint32_t i = 0; i < p->insts.n; i++) {
        tk_inst *inst = p->insts.at[i];
        uint32_t same = 0;
        plain[i] = inst->name;
        for (uint32_t k = 0; k < i; k++) {
            same += strcmp(plain[k], plain[i]) == 0;
        }
        if (same) {
            inst->name = tk_format(c->arena, "%s.%u", plain[i], same);
        }
    }
}

static bool is_open(tk_checker *c, const tk_bound *bound) {
    const struct tk_bind_env *e = bound->env;
    for (uint32_t j = 0; j < bound->info->ncparam; j++) {
        if (e->fn[j].expr || !tk_cval_dep(e->cval[j])) {
            continue;
        }
        tk_diag *d = tk_err_diag(c, e->def->fn->cparams.at[j].span, "no-value",
                                 "compile-time parameter '%s' of '%s' has no value",
                                 bound->info->cparam[j].name, bound->info->name);
        tk_help_no_value(c, d, bound->info, j);
        return true;
    }
    return false;
}

tk_program *tk_instantiate(tk_arena *arena, const tk_unit *unit, const tk_bound *bound,
                           tk_diags *diags) {
    tk_checker c;
    uint32_t before = diags->errors;
    const struct tk_bind_env *e = bound->env;
    tk_checker_init(&c, arena, unit, diags, false);
    if (is_open(&c, bound)) {
        return NULL;
    }
    tk_value *cval = TK_NEW_ARRAY(arena, tk_value, bound->info->ncparam);
    memcpy(cval, e->cval, bound->info->ncparam * sizeof *cval);
    tk_kenv env;
    tk_kernel_env(&c, e->def, cval, e->fn, e->given, &env);
    tk_program *p = TK_NEW(arena, tk_program);
    if (env.ok) {
        tk_kernel_walk(&c, e->def, &env, p);
    }
    tk_kernel_leave(&c, &env);
    if (!env.ok || c.failed || diags->errors != before) {
        return NULL;
    }
    p->kernel = env.inst;
    p->key = bound->key;
    gatherer g = {.c = &c, .p = p};
    gather_inst(&g, env.inst);
    name_insts(&c, p);
    return p;
}
