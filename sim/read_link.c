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

static void track(tk_sim_reader *r, tk_sim_entry *e) {
    bool *used = TK_NEW_ARRAY(r->arena, bool, e->nreg + 1);
    bool any = false;
    for (uint32_t k = 0; k < e->code.n; k++) {
        const tk_sim_inst *i = &e->code.at[k];
        if (is_wgmma(i)) {
            any = true;
            mark_operand(i, 0, used);
            if (tk_sim_wgmma_in_registers(i)) {
                mark_operand(i, 1, used);
            }
        }
    }
    for (uint32_t k = 0; any && k < e->code.n; k++) {
        tk_sim_inst *i = &e->code.at[k];
        for (uint32_t a = 0; !is_wgmma(i) && a < i->narg; a++) {
            bool reg = i->arg[a].kind == TK_SIM_ARG_REG || i->arg[a].kind == TK_SIM_ARG_ADDRESS;
            i->tracked = i->tracked || (reg && used[i->arg[a].slot]);
        }
    }
}

void tk_sim_link(tk_sim_reader *r) {
    for (uint32_t k = 0; r->program->warpgroups && k < r->program->entries.n; k++) {
        track(r, r->program->entries.at[k]);
    }
}
