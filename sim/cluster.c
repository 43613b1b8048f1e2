// SPDX-License-Identifier: Apache-2.0
// The barrier of a cluster. A phase is complete when every thread of the cluster has arrived or
// ended; a thread that has arrived waits for its phase before it arrives again.
#include "sim/machine.h"

// One thread less to wait for.
static void came(tk_sim_cluster *c, uint32_t n) {
    c->missing -= n;
    if (c->missing > 0) {
        return;
    }
    c->phase++;
    tk_sim_shadow_clear(c->shadow, tk_sim_point_of_cluster(c, c->phase));
    for (uint32_t k = 0; k < c->nwarp; k++) {
        tk_sim_warp *w = tk_sim_warp_of(c, k);
        c->missing += (uint32_t)__builtin_popcount(w->alive);
        TK_SIM_EACH(l, w->waiting) {
            if (w->wait[l] == TK_SIM_WAIT_CLUSTER) {
                w->wait[l] = TK_SIM_WAIT_NONE;
                w->waiting &= ~(1u << l);
            }
        }
    }
}

tk_sim_flow tk_sim_cluster_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes,
                                  bool releases) {
    tk_sim_cluster *c = w->cluster;
    uint32_t twice = lanes & w->came;
    if (twice) {
        return tk_sim_fail(w, i, (uint32_t)__builtin_ctz(twice), "barrier-operands",
                           "arrives at the barrier of the cluster again, without a wait between");
    }
    (releases ? tk_sim_shadow_release
              : tk_sim_shadow_release_relaxed)(w, lanes, tk_sim_point_of_cluster(c, c->phase));
    w->came |= lanes;
    w->phase = (w->phase & ~lanes) | (c->phase & 1 ? lanes : 0);
    came(c, (uint32_t)__builtin_popcount(lanes));
    return TK_SIM_NEXT;
}

bool tk_sim_cluster_passed(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lanes, uint32_t *passed) {
    tk_sim_cluster *c = w->cluster;
    uint32_t never = lanes & ~w->came;
    if (never) {
        tk_sim_fail(w, i, (uint32_t)__builtin_ctz(never), "barrier-operands",
                    "waits at the barrier of the cluster without having arrived there");
        return false;
    }
    *passed = lanes & (c->phase & 1 ? ~w->phase : w->phase);
    tk_sim_shadow_acquire(w, *passed, tk_sim_point_of_cluster(c, c->phase - 1));
    w->came &= ~*passed;
    return true;
}

void tk_sim_cluster_left(tk_sim_warp *w, uint32_t lanes) {
    uint32_t here = w->cluster->phase & 1 ? w->phase : ~w->phase;
    uint32_t arrived = lanes & w->came & here;
    if (lanes & ~arrived) {
        came(w->cluster, (uint32_t)__builtin_popcount(lanes & ~arrived));
    }
}
