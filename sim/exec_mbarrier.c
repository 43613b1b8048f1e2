// SPDX-License-Identifier: Apache-2.0
// mbarrier instructions. The state that an arrival gives is the phase's number and, below it, the
// arrivals that were left.
//
// try_wait waits until something happens to a barrier; now and then, and where nobody else can go
// on, it gives up and answers false, as its time limit allows.
#include "sim/exec.h"

uint32_t tk_sim_mbarrier_offset(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                tk_sim_space space, uint64_t address, tk_sim_access access) {
    tk_sim_space found = tk_sim_resolve(space, &address);
    if (found != TK_SIM_SHARED && (found != TK_SIM_CLUSTER || space != TK_SIM_CLUSTER)) {
        tk_sim_fail(w, i, lane, "mbarrier", "an mbarrier outside shared memory%s",
                    found == TK_SIM_CLUSTER ? " of the block" : "");
        return UINT32_MAX;
    }
    w->at_barrier = true;
    const unsigned char *p = tk_sim_at(w, i, lane, found, address, 8, access, NULL);
    w->at_barrier = false;
    return p ? (uint32_t)(p - w->cluster->shared) : UINT32_MAX;
}

static uint32_t offset_of(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, const tk_sim_arg *a,
                          tk_sim_access access) {
    uint64_t address = tk_sim_address(w, a, lane);
    return tk_sim_mbarrier_offset(w, i, lane, tk_sim_space_of(i, a), address, access);
}

// Whoever uses a barrier must come after who initialised it, so that a use counts as a read.
static tk_sim_mbarrier *barrier(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                const tk_sim_arg *a) {
    uint32_t offset = offset_of(w, i, lane, a, TK_SIM_READ);
    return offset == UINT32_MAX ? NULL : tk_sim_mbarrier_at(w, i, lane, offset);
}

static tk_sim_flow run_init(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    TK_SIM_EACH(l, mask) {
        uint32_t offset = offset_of(w, i, l, &i->arg[0], TK_SIM_WRITE);
        uint32_t count = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 1))[l];
        if (offset == UINT32_MAX || !tk_sim_mbarrier_init(w, i, l, offset, count)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(mbarrier_init, run_init)

static tk_sim_flow run_inval(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    TK_SIM_EACH(l, mask) {
        uint32_t offset = offset_of(w, i, l, &i->arg[0], TK_SIM_WRITE);
        tk_sim_mbarrier *m = offset == UINT32_MAX ? NULL : tk_sim_mbarrier_at(w, i, l, offset);
        if (!m) {
            return TK_SIM_FAULT;
        }
        m->valid = false;
        tk_sim_async_barrier(w->cluster, m->offset, false);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(mbarrier_inval, run_inval)

static tk_sim_flow run_arrive(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    bool tx = tk_sim_has(i, TK_SIM_MOD_EXPECT_TX), drop = tk_sim_has(i, TK_SIM_MOD_ARRIVE_DROP);
    TK_SIM_EACH(l, mask) {
        tk_sim_mbarrier *m = barrier(w, i, l, tk_sim_operand(i, 1));
        if (!m) {
            return TK_SIM_FAULT;
        }
        uint32_t given = 1;
        if (tk_sim_count_of(i, 2)) {
            given = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 2))[l];
        }
        uint64_t state = (uint64_t)m->phase << 32 | m->left;
        bool ok = (!tx || tk_sim_mbarrier_bytes(w, i, l, m, given)) &&
                  tk_sim_mbarrier_arrive(w, i, l, m, tx ? 1 : given, drop);
        if (!ok) {
            return TK_SIM_FAULT;
        }
        tk_sim_put(w, &i->arg[0])[l] = state;
    }
    return TK_SIM_NEXT;
}
// An arrival at another block's barrier gives no state.
tk_sim_exec *tk_sim_bind_mbarrier_arrive(const tk_sim_inst *i) {
    bool other = tk_sim_has(i, TK_SIM_MOD_SHARED_CLUSTER);
    bool plain = i->arg[0].kind == TK_SIM_ARG_SINK && !tk_sim_has(i, TK_SIM_MOD_NO_COMPLETE);
    return other && !plain ? NULL : run_arrive;
}

// expect_tx, complete_tx
static tk_sim_flow run_expect(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    bool come = tk_sim_has(i, TK_SIM_MOD_COMPLETE);
    TK_SIM_EACH(l, mask) {
        tk_sim_mbarrier *m = barrier(w, i, l, &i->arg[0]);
        uint32_t bytes = (uint32_t)tk_sim_get(w, tk_sim_operand(i, 1))[l];
        if (!m || !tk_sim_mbarrier_bytes(w, i, l, m, come ? -(int64_t)bytes : bytes)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(mbarrier_expect, run_expect)

static tk_sim_flow run_pending(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    const uint64_t *a = tk_sim_get(w, &i->arg[1]);
    uint64_t *d = tk_sim_put(w, &i->arg[0]);
    TK_SIM_EACH(l, mask) { d[l] = (uint32_t)a[l]; }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(mbarrier_pending, run_pending)

// Whether the phase that the operand tells of is complete. It must be the present one or the one
// before, false after a fault.
static bool complete(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, const tk_sim_mbarrier *m,
                     uint64_t x, bool *is) {
    if (tk_sim_has(i, TK_SIM_MOD_PARITY)) {
        *is = (m->phase & 1) != x;
        if ((uint32_t)x > 1) {
            tk_sim_fail(w, i, lane, "mbarrier", "a parity of %u", (uint32_t)x);
        }
        return (uint32_t)x <= 1;
    }
    uint32_t phase = (uint32_t)(x >> 32);
    *is = m->phase != phase;
    if (m->phase - phase > 1) {
        tk_sim_fail(w, i, lane, "mbarrier",
                    "the state is of phase %u of the mbarrier, which is in phase %u", phase,
                    m->phase);
        return false;
    }
    return true;
}

// Which lanes need not wait; false after a fault. Lanes that are done with the same barrier learn
// of it together.
static bool look(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, uint32_t *done) {
    const tk_sim_mbarrier *last = NULL;
    uint32_t lanes = 0;
    *done = 0;
    TK_SIM_EACH(l, mask) {
        const tk_sim_mbarrier *m = barrier(w, i, l, tk_sim_operand(i, 1));
        if (!m) {
            return false;
        }
        bool is;
        if (!complete(w, i, l, m, tk_sim_get(w, tk_sim_operand(i, 2))[l], &is)) {
            return false;
        }
        if (!is) {
            continue;
        }
        if (last && last != m) {
            tk_sim_mbarrier_waited(w, i, lanes, last);
            lanes = 0;
        }
        last = m;
        lanes |= 1u << l;
        *done |= 1u << l;
    }
    if (last) {
        tk_sim_mbarrier_waited(w, i, lanes, last);
    }
    return true;
}

static tk_sim_flow run_wait(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint32_t done;
    if (!look(w, i, mask, &done)) {
        return TK_SIM_FAULT;
    }
    bool blocks = tk_sim_has(i, TK_SIM_MOD_TRY_WAIT) && !done;
    w->polled = done ? w->polled : tk_sim_index(w, i) + 1;
    if (blocks && !w->gives_up && tk_sim_random(w->grid, 8) != 1) {
        w->waiting |= mask;
        TK_SIM_EACH(l, mask) {
            w->wait[l] = TK_SIM_WAIT_ASYNC;
            w->pc[l] = tk_sim_index(w, i);
        }
        return TK_SIM_WAIT;
    }
    w->gives_up = false;
    w->yields = done != mask;
    if (!done && tk_sim_due(w->grid) && tk_sim_step(w->cluster) && w->grid->result->fault.id) {
        return TK_SIM_FAULT;
    }
    tk_sim_put_pred(w, &i->arg[0], done, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(mbarrier_wait, run_wait)

// cp.async.mbarrier.arrive: an arrival once the thread's copies so far are done. Without .noinc it
// is one more than the phase expects, so that the count of those that arrive by hand is the same.
static tk_sim_flow run_arrive_copies(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    TK_SIM_EACH(l, mask) {
        tk_sim_mbarrier *m = barrier(w, i, l, &i->arg[0]);
        if (!m || (!tk_sim_has(i, TK_SIM_MOD_NOINC) && !tk_sim_mbarrier_more(w, i, l, m))) {
            return TK_SIM_FAULT;
        }
        tk_sim_bulk x = {.inst = i, .warp = w, .lane = l, .kind = TK_SIM_BULK_ARRIVE};
        x.barrier = m->offset;
        x.offset = m->offset;
        x.serial = tk_sim_async_announce(w, l);
        x.kept = tk_sim_shadow_keep(w, l);
        tk_sim_bulk_issue(x);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(mbarrier_arrive_copies, run_arrive_copies)

static tk_sim_flow run_fence_init(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)i;
    tk_sim_mbarrier_fence(w, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(fence_mbarrier_init, run_fence_init)
