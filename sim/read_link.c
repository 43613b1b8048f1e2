// SPDX-License-Identifier: Apache-2.0
// What is known only once the whole module is read.
#include "sim/read.h"

#include "sim/wgmma.h"

// ---- Registers of wgmmas: instructions that name one are tracked

static bool is_wgmma(const tk_sim_inst *i) { return strncmp(i->name, "wgmma.mma_async", 15) == 0; }

static void mark_operand(const tk_sim_inst *i, unsigned operand, bool *used) {
    for (unsigned k = 0; k < tk_sim_count_of(i, operand); k++) {
        used[tk_sim_operand(i, operand)[k].slot] = true;
    }
}

// The code of an entry or of all functions, from `first` to `end`.
static void track(tk_sim_inst *first, tk_sim_inst *end, bool *used) {
    bool any = false;
    for (const tk_sim_inst *i = first; i < end; i++) {
        if (is_wgmma(i)) {
            any = true;
            mark_operand(i, 0, used);
            if (tk_sim_wgmma_in_registers(i)) {
                mark_operand(i, 1, used);
            }
        }
    }
    for (tk_sim_inst *i = first; any && i < end; i++) {
        for (uint32_t a = 0; !is_wgmma(i) && a < i->narg; a++) {
            bool reg = i->arg[a].kind == TK_SIM_ARG_REG || i->arg[a].kind == TK_SIM_ARG_ADDRESS;
            i->tracked = i->tracked || (reg && used[i->arg[a].slot]);
        }
    }
}

static void track_body(tk_sim_reader *r, const tk_sim_entry *e, bool *used) {
    tk_sim_inst *first = r->program->code.at + e->first;
    track(first, first + e->ninst, used);
}

static void track_all(tk_sim_reader *r) {
    tk_sim_program *p = r->program;
    for (uint32_t k = 0; k < p->entries.n; k++) {
        const tk_sim_entry *e = p->entries.at[k];
        track_body(r, e, TK_NEW_ARRAY(r->arena, bool, e->nreg + 1));
    }
    bool *used = TK_NEW_ARRAY(r->arena, bool, p->nreg + 1);
    for (uint32_t k = 0; k < p->functions.n; k++) {
        if (p->functions.at[k]->body) {
            track_body(r, p->functions.at[k]->body, used);
        }
    }
}

// ---- Slots: those of all functions first, then those of an entry

static void move_slot(tk_sim_arg *a, uint32_t regs, uint32_t preds) {
    bool pred = a->kind == TK_SIM_ARG_PRED || (a->kind == TK_SIM_ARG_SINK && a->bytes == 0);
    if (a->kind != TK_SIM_ARG_LABEL) {
        a->slot += pred ? preds : regs;
    }
}

static void move_body(tk_sim_program *p, tk_sim_entry *e, uint32_t regs, uint32_t preds) {
    e->reg0 = regs;
    e->pred0 = preds;
    for (uint32_t k = e->first; k < e->first + e->ninst; k++) {
        tk_sim_inst *i = &p->code.at[k];
        i->guard_slot += i->guard ? preds : 0;
        for (uint32_t a = 0; a < i->narg; a++) {
            move_slot(&i->arg[a], regs, preds);
        }
    }
    for (uint32_t k = 0; k < e->fills.n; k++) {
        e->fills.at[k].slot += tk_sim_fill_is_pred(&e->fills.at[k]) ? preds : regs;
    }
}

// What a call finds in registers that it has not written is of no use.
static void list_own(tk_sim_reader *r, tk_sim_entry *e) {
    bool *reg = TK_NEW_ARRAY(r->arena, bool, e->nreg + 1);
    bool *pred = TK_NEW_ARRAY(r->arena, bool, e->npred + 1);
    for (uint32_t k = 0; k < e->fills.n; k++) {
        const tk_sim_fill *f = &e->fills.at[k];
        const bool is_pred = tk_sim_fill_is_pred(f);
        (is_pred ? pred : reg)[f->slot - (is_pred ? e->pred0 : e->reg0)] = true;
    }
    for (uint32_t k = 0; k < e->nreg; k++) {
        if (!reg[k]) {
            tk_vec_push(r->arena, &e->own, e->reg0 + k);
        }
    }
    for (uint32_t k = 0; k < e->npred; k++) {
        if (!pred[k]) {
            tk_vec_push(r->arena, &e->own_pred, e->pred0 + k);
        }
    }
}

static void place_function(tk_sim_reader *r, tk_sim_function *f) {
    tk_sim_program *p = r->program;
    tk_sim_entry *e = f->body;
    move_body(p, e, p->nreg, p->npred);
    list_own(r, e);
    p->nreg += e->nreg;
    p->npred += e->npred;
    for (uint32_t k = 0; k < e->fills.n; k++) {
        tk_vec_push(r->arena, &p->fills, e->fills.at[k]);
    }
    for (uint32_t k = 0; k < f->results.n; k++) {
        f->results.at[k].slot += e->reg0;
    }
    for (uint32_t k = 0; k < f->formals.n; k++) {
        f->formals.at[k].slot += e->reg0;
    }
    p->frame_bytes = e->local_bytes > p->frame_bytes ? e->local_bytes : p->frame_bytes;
    p->recursive = p->recursive || f->early;
}

// ---- Functions of the system

static bool sizes_are(const tk_sim_formal *x, uint32_t n, const char *sizes) {
    bool are = n == strlen(sizes);
    for (uint32_t k = 0; are && k < n; k++) {
        are = x[k].bytes == (uint32_t)(sizes[k] - '0');
    }
    return are;
}

static void find_builtin(tk_sim_reader *r, tk_sim_function *f) {
    static const struct {
        const char *name, *results, *formals;
        tk_sim_builtin builtin;
    } known[] = {{"vprintf", "4", "88", TK_SIM_BUILTIN_VPRINTF},
                 {"__assertfail", "", "88488", TK_SIM_BUILTIN_ASSERTFAIL}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (strcmp(known[k].name, f->name) == 0 &&
            sizes_are(f->results.at, f->results.n, known[k].results) &&
            sizes_are(f->formals.at, f->formals.n, known[k].formals)) {
            f->builtin = known[k].builtin;
        }
    }
    if (!f->external || (f->called && f->builtin == TK_SIM_BUILTIN_NONE)) {
        tk_sim_refuse_at(r, f->called ? f->called : f->declared,
                         "function '%s' is not in the module", f->name);
    }
}

// ---- Short loops that look at what other threads do

static bool looks(const tk_sim_inst *i) {
    return i->strong || strncmp(i->name, "mbarrier.test_", 14) == 0 ||
           strncmp(i->name, "mbarrier.try_", 13) == 0;
}

static void find_polling(tk_sim_program *p) {
    enum { SHORT = 64 };
    uint32_t last = 0, call = 0; // the last one that looks, or calls: its index + 1
    for (uint32_t k = 0; k < p->code.n; k++) {
        tk_sim_inst *i = &p->code.at[k];
        last = looks(i) ? k + 1 : last;
        call = i->call ? k + 1 : call;
        if (strncmp(i->name, "bra", 3) == 0) {
            const uint32_t to = i->arg[0].slot;
            i->polls = to <= k && k - to < SHORT && last > to && call <= to;
        }
    }
}

void tk_sim_link(tk_sim_reader *r) {
    tk_sim_program *p = r->program;
    for (uint32_t k = 0; k < p->functions.n; k++) {
        if (p->functions.at[k]->body) {
            place_function(r, p->functions.at[k]);
        } else {
            find_builtin(r, p->functions.at[k]);
        }
    }
    if (p->entries.n != r->entries) {
        tk_sim_refuse(r, "an entry is declared and not defined");
    }
    for (uint32_t k = 0; k < p->entries.n; k++) {
        tk_sim_entry *e = p->entries.at[k];
        if (p->nreg || p->npred) {
            move_body(p, e, p->nreg, p->npred);
        }
        e->nreg += p->nreg;
        e->npred += p->npred;
        tk_sim_reconverge(r, e, false);
    }
    for (uint32_t k = 0; k < p->functions.n; k++) {
        if (p->functions.at[k]->body) {
            tk_sim_reconverge(r, p->functions.at[k]->body, true);
        }
    }
    find_polling(p);
    if (p->warpgroups) {
        track_all(r);
    }
}
