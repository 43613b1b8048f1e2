// SPDX-License-Identifier: Apache-2.0
// What registers hold before a block runs: immediates, addresses of variables, special registers.
#include "sim/machine.h"

static uint32_t lane_mask(tk_sim_special s, uint32_t lane) {
    uint32_t eq = 1u << lane, lt = eq - 1;
    return s == TK_SIM_SPECIAL_LANEMASK_EQ   ? eq
           : s == TK_SIM_SPECIAL_LANEMASK_LT ? lt
           : s == TK_SIM_SPECIAL_LANEMASK_LE ? lt | eq
           : s == TK_SIM_SPECIAL_LANEMASK_GT ? ~(lt | eq)
                                             : ~lt;
}

// Of one thread.
static uint64_t special(const tk_sim_block *b, tk_sim_special s, uint32_t warp, uint32_t lane) {
    const tk_sim_grid *g = b->grid;
    const tk_sim_launch *l = g->launch;
    uint32_t t = warp * TK_SIM_LANES + lane;
    switch (s) {
    case TK_SIM_SPECIAL_TID_X:
        return t % l->block[0];
    case TK_SIM_SPECIAL_TID_Y:
        return t / l->block[0] % l->block[1];
    case TK_SIM_SPECIAL_TID_Z:
        return t / l->block[0] / l->block[1];
    case TK_SIM_SPECIAL_NTID_X:
    case TK_SIM_SPECIAL_NTID_Y:
    case TK_SIM_SPECIAL_NTID_Z:
        return l->block[s - TK_SIM_SPECIAL_NTID_X];
    case TK_SIM_SPECIAL_CTAID_X:
    case TK_SIM_SPECIAL_CTAID_Y:
    case TK_SIM_SPECIAL_CTAID_Z:
        return b->at[s - TK_SIM_SPECIAL_CTAID_X];
    case TK_SIM_SPECIAL_NCTAID_X:
    case TK_SIM_SPECIAL_NCTAID_Y:
    case TK_SIM_SPECIAL_NCTAID_Z:
        return g->extent[s - TK_SIM_SPECIAL_NCTAID_X];
    case TK_SIM_SPECIAL_LANEID:
        return lane;
    case TK_SIM_SPECIAL_WARPID:
        return warp;
    case TK_SIM_SPECIAL_NWARPID:
        return b->nwarp;
    case TK_SIM_SPECIAL_SMID:
        return b->number % TK_SIM_SMS;
    case TK_SIM_SPECIAL_NSMID:
        return TK_SIM_SMS;
    case TK_SIM_SPECIAL_LANEMASK_EQ:
    case TK_SIM_SPECIAL_LANEMASK_LE:
    case TK_SIM_SPECIAL_LANEMASK_LT:
    case TK_SIM_SPECIAL_LANEMASK_GE:
    case TK_SIM_SPECIAL_LANEMASK_GT:
        return lane_mask(s, lane);
    case TK_SIM_SPECIAL_CLOCK:
    case TK_SIM_SPECIAL_GLOBALTIMER_LO:
        return (uint32_t)g->clock;
    case TK_SIM_SPECIAL_CLOCK_HI:
    case TK_SIM_SPECIAL_GLOBALTIMER_HI:
        return g->clock >> 32;
    case TK_SIM_SPECIAL_CLOCK64:
    case TK_SIM_SPECIAL_GLOBALTIMER:
        return g->clock;
    case TK_SIM_SPECIAL_TOTAL_SMEM_SIZE:
        return g->shared_bytes;
    case TK_SIM_SPECIAL_AGGR_SMEM_SIZE: // with what the system has
        return g->shared_bytes + TK_SIM_SHARED_BASE;
    case TK_SIM_SPECIAL_DYNAMIC_SMEM_SIZE:
        return l->shared;
    case TK_SIM_SPECIAL_CLUSTERID_X:
    case TK_SIM_SPECIAL_CLUSTERID_Y:
    case TK_SIM_SPECIAL_CLUSTERID_Z:
        return b->at[s - TK_SIM_SPECIAL_CLUSTERID_X] / g->cluster[s - TK_SIM_SPECIAL_CLUSTERID_X];
    case TK_SIM_SPECIAL_NCLUSTERID_X:
    case TK_SIM_SPECIAL_NCLUSTERID_Y:
    case TK_SIM_SPECIAL_NCLUSTERID_Z:
        return g->extent[s - TK_SIM_SPECIAL_NCLUSTERID_X] /
               g->cluster[s - TK_SIM_SPECIAL_NCLUSTERID_X];
    case TK_SIM_SPECIAL_CLUSTER_NCTAID_X:
    case TK_SIM_SPECIAL_CLUSTER_NCTAID_Y:
    case TK_SIM_SPECIAL_CLUSTER_NCTAID_Z:
        return g->cluster[s - TK_SIM_SPECIAL_CLUSTER_NCTAID_X];
    case TK_SIM_SPECIAL_CLUSTER_NCTARANK:
        return b->cluster->nblock;
    case TK_SIM_SPECIAL_CLUSTER_CTAID_X:
    case TK_SIM_SPECIAL_CLUSTER_CTAID_Y:
    case TK_SIM_SPECIAL_CLUSTER_CTAID_Z:
        return b->in[s - TK_SIM_SPECIAL_CLUSTER_CTAID_X];
    case TK_SIM_SPECIAL_CLUSTER_CTARANK:
        return b->rank;
    case TK_SIM_SPECIAL_RESERVED_END:
    case TK_SIM_SPECIAL_RESERVED_CAP:
        return TK_SIM_SHARED_BASE;
    case TK_SIM_SPECIAL_RESERVED_1:
        return TK_SIM_RESERVED_BASE;
    case TK_SIM_SPECIAL_RESERVED_BEGIN:
    case TK_SIM_SPECIAL_RESERVED_0:
    case TK_SIM_SPECIAL_CURRENT_GRAPH_EXEC:
    case TK_SIM_SPECIAL_GRIDID:
    case TK_SIM_SPECIAL_IS_EXPLICIT_CLUSTER:
    case TK_SIM_SPECIAL_COUNT:
        break;
    }
    return 0;
}

static bool is_clock(const tk_sim_fill *f) {
    return f->kind == TK_SIM_FILL_SPECIAL && f->index >= TK_SIM_SPECIAL_CLOCK &&
           f->index <= TK_SIM_SPECIAL_GLOBALTIMER_HI;
}

static void fill(tk_sim_warp *w, const tk_sim_fill *f) {
    uint64_t *d = w->reg[f->slot];
    switch (f->kind) {
    case TK_SIM_FILL_PRED:
        w->pred[f->slot] = f->bits ? ~0u : 0;
        return;
    case TK_SIM_FILL_SPECIAL:
        if (f->index == TK_SIM_SPECIAL_IS_EXPLICIT_CLUSTER) {
            w->pred[f->slot] = w->grid->explicit_cluster ? ~0u : 0;
            return;
        }
        for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
            d[l] = special(w->block, (tk_sim_special)f->index, w->index, l);
        }
        return;
    case TK_SIM_FILL_BITS:
    case TK_SIM_FILL_LOCAL:
    case TK_SIM_FILL_VARIABLE: {
        uint64_t x = f->bits + (f->kind == TK_SIM_FILL_VARIABLE
                                    ? tk_sim_variable_address(w->grid, f->index, false)
                                : f->kind == TK_SIM_FILL_LOCAL ? TK_SIM_LOCAL_BASE
                                                               : 0);
        for (uint32_t l = 0; l < TK_SIM_LANES; l++) {
            d[l] = x;
        }
        return;
    }
    }
}

static void fill_clocks(tk_sim_warp *w, const tk_sim_fill *at, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        if (is_clock(&at[k])) {
            fill(w, &at[k]);
        }
    }
}

void tk_sim_fill_clocks(tk_sim_warp *w) {
    const tk_sim_entry *e = w->grid->entry;
    const tk_sim_program *p = w->grid->program;
    fill_clocks(w, e->fills.at, e->fills.n);
    fill_clocks(w, p->fills.at, p->fills.n);
}

void tk_sim_fill_registers(tk_sim_block *b) {
    const tk_sim_entry *e = b->grid->entry;
    const tk_sim_program *p = b->grid->program;
    for (uint32_t k = 0; k < b->nwarp; k++) {
        for (uint32_t f = 0; f < e->fills.n; f++) {
            fill(&b->warp[k], &e->fills.at[f]);
        }
        for (uint32_t f = 0; f < p->fills.n; f++) {
            fill(&b->warp[k], &p->fills.at[f]);
        }
    }
}

void tk_sim_fill_frame(tk_sim_warp *w, const tk_sim_entry *body, uint32_t lane, uint32_t base) {
    for (uint32_t k = 0; k < body->fills.n; k++) {
        const tk_sim_fill *f = &body->fills.at[k];
        if (f->kind == TK_SIM_FILL_LOCAL) {
            w->reg[f->slot][lane] = TK_SIM_LOCAL_BASE + base + f->bits;
        }
    }
}
