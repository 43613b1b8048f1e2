// SPDX-License-Identifier: Apache-2.0
// Tensor maps that a kernel changes, and the fences between such changes and their use.
//
// A map in global memory that was changed may be used by a thread that has executed
// fence.proxy.tensormap with .acquire for it since, or that comes in an order after another thread
// of its block that has; that was after the one who changed it had executed the one with .release
// (tensormap.cp_fenceproxy does both). A copy reads its map until it is done, or until its thread
// has waited for its reads: until then nobody may change it. Changes by plain stores are not
// watched.
#include "sim/exec.h"
#include "sim/tensor.h"

typedef struct changed {
    uint64_t address;
    uint32_t version;
    bool released;
    const tk_sim_inst *by;
    uint64_t block; // who changed it
} changed;

// By threads of a warp.
typedef struct acquired {
    uint64_t address, block;
    uint32_t version, warp, lanes;
    tk_sim_moment at[TK_SIM_LANES];
} acquired;

struct tk_sim_maps {
    TK_VEC(changed) changed;
    TK_VEC(acquired) acquired;
};

static changed *find_changed(const tk_sim_grid *g, uint64_t address) {
    for (uint32_t k = 0; g->maps && k < g->maps->changed.n; k++) {
        if (g->maps->changed.at[k].address == address) {
            return &g->maps->changed.at[k];
        }
    }
    return NULL;
}

// False after a fault.
static bool note_change(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address,
                        bool released) {
    tk_sim_grid *g = w->grid;
    const tk_sim_inst *user = tk_sim_bulk_map_user(g, address);
    if (user) {
        tk_sim_fail(w, i, lane, "race",
                    "changes a tensor map that '%s' uses; nobody has waited for that", user->name);
        tk_sim_fail_note(g, user, "it is issued here");
        return false;
    }
    g->maps = g->maps ? g->maps : TK_NEW(g->arena, struct tk_sim_maps);
    changed *c = find_changed(g, address);
    if (!c) {
        tk_vec_push(g->arena, &g->maps->changed, ((changed){.address = address}));
        c = &g->maps->changed.at[g->maps->changed.n - 1];
    }
    c->version++;
    c->released = released;
    c->by = i;
    c->block = w->block->number;
    return true;
}

static acquired *find_acquired(const tk_sim_warp *w, uint64_t address) {
    const struct tk_sim_maps *m = w->grid->maps;
    for (uint32_t k = 0; k < m->acquired.n; k++) {
        acquired *a = &m->acquired.at[k];
        if (a->address == address && a->block == w->block->number && a->warp == w->index) {
            return a;
        }
    }
    return NULL;
}

// Whether the lane comes after an acquire of this version by a thread of its block. *other: a warp
// of the block has one.
static bool comes_after(const tk_sim_warp *w, uint32_t lane, const changed *c, bool *other) {
    const struct tk_sim_maps *m = w->grid->maps;
    bool after = false;
    for (uint32_t k = 0; k < m->acquired.n && !after; k++) {
        const acquired *a = &m->acquired.at[k];
        if (a->address == c->address && a->block == w->block->number && a->version == c->version) {
            *other = true;
            TK_SIM_EACH(l, a->lanes) { after = after || tk_sim_shadow_after(w, lane, a->at[l]); }
        }
    }
    return after;
}

bool tk_sim_maps_known(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, uint64_t address) {
    const changed *c = find_changed(w->grid, address);
    bool other = false;
    if (!c || comes_after(w, lane, c, &other)) {
        return true;
    }
    tk_sim_fail(w, i, lane, "proxy",
                other ? "uses a tensor map that was changed; another thread executed "
                        "fence.proxy.tensormap with .acquire, and nothing orders that before this"
                      : "uses a tensor map that was changed; there is no fence.proxy.tensormap%s "
                        "between",
                c->released ? " with .acquire" : " with .release");
    tk_sim_fail_note(w->grid, c->by, "it was changed here");
    return false;
}

static tk_sim_flow run_release(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)i, (void)mask;
    for (uint32_t k = 0; w->grid->maps && k < w->grid->maps->changed.n; k++) {
        changed *c = &w->grid->maps->changed.at[k];
        c->released = c->released || c->block == w->block->number;
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(map_release, run_release)

static void note_acquired(tk_sim_warp *w, uint32_t lane, const changed *c) {
    struct tk_sim_maps *m = w->grid->maps;
    acquired *a = find_acquired(w, c->address);
    if (!a) {
        acquired fresh = {.address = c->address, .block = w->block->number, .warp = w->index};
        tk_vec_push(w->grid->arena, &m->acquired, fresh);
        a = &m->acquired.at[m->acquired.n - 1];
    }
    a->lanes = a->version == c->version ? a->lanes : 0;
    a->version = c->version;
    if (!(a->lanes >> lane & 1)) { // else the first time is as good
        a->lanes |= 1u << lane;
        a->at[lane] = tk_sim_shadow_now(w, lane);
    }
}

static tk_sim_flow run_acquire(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t address[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, address);
    TK_SIM_EACH(l, mask) {
        if ((uint32_t)tk_sim_get(w, tk_sim_operand(i, 1))[l] != TK_SIM_MAP_BYTES) {
            return tk_sim_fail(w, i, l, "async-operands", "a tensor map has %d bytes",
                               TK_SIM_MAP_BYTES);
        }
        const changed *c = find_changed(w->grid, address[l]);
        if (!c || !c->released) {
            continue;
        }
        note_acquired(w, l, c);
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(map_acquire, run_acquire)

// ---- Changes

// The instructions' numbers of types, which are not the driver's.
static bool type_of(uint64_t number, uint8_t *type) {
    static const uint8_t order[TK_SIM_MAP_TYPE_COUNT] = {
        TK_SIM_MAP_U8,   TK_SIM_MAP_U16,  TK_SIM_MAP_U32,     TK_SIM_MAP_S32,     TK_SIM_MAP_U64,
        TK_SIM_MAP_S64,  TK_SIM_MAP_F16,  TK_SIM_MAP_F32,     TK_SIM_MAP_F32_FTZ, TK_SIM_MAP_F64,
        TK_SIM_MAP_BF16, TK_SIM_MAP_TF32, TK_SIM_MAP_TF32_FTZ};
    if (number >= TK_SIM_MAP_TYPE_COUNT) {
        return false;
    }
    *type = order[number];
    return true;
}

// Sets a field that has an ordinal.
static bool set_dimension(const tk_sim_inst *i, tk_sim_map_fields *f, uint32_t k, uint64_t x) {
    if (tk_sim_has(i, TK_SIM_MOD_GLOBAL_STRIDE)) {
        if (k < TK_SIM_MAP_RANK - 1) {
            f->stride[k] = x;
        }
        return k < TK_SIM_MAP_RANK - 1;
    }
    bool no_extent = tk_sim_has(i, TK_SIM_MOD_GLOBAL_DIM) && (uint32_t)x == 0;
    if (k >= TK_SIM_MAP_RANK || no_extent) {
        return false;
    }
    if (tk_sim_has(i, TK_SIM_MOD_BOX_DIM)) {
        f->box[k] = (uint16_t)(x > UINT16_MAX ? UINT16_MAX : x);
    } else if (tk_sim_has(i, TK_SIM_MOD_GLOBAL_DIM)) {
        f->last[k] = (uint32_t)x - 1;
    } else {
        f->step[k] = (uint8_t)(x > UINT8_MAX ? UINT8_MAX : x);
    }
    return true;
}

static bool set_field(const tk_sim_inst *i, tk_sim_map_fields *f, uint64_t x) {
    if (tk_sim_has(i, TK_SIM_MOD_GLOBAL_ADDRESS)) {
        f->address = x;
    } else if (tk_sim_has(i, TK_SIM_MOD_RANK)) {
        f->rank = (uint8_t)(x < TK_SIM_MAP_RANK ? x + 1 : 0);
    } else if (tk_sim_has(i, TK_SIM_MOD_ELEMTYPE)) {
        return type_of(x, &f->type);
    } else if (tk_sim_has(i, TK_SIM_MOD_INTERLEAVE_LAYOUT)) {
        f->interleave = (uint8_t)(x & 0xff);
    } else if (tk_sim_has(i, TK_SIM_MOD_SWIZZLE_MODE)) {
        f->swizzle = (uint8_t)(x & 0xff);
    } else {
        f->fill = (uint8_t)(x & 0xff);
    }
    return true;
}

// Checks the map's 128 bytes of any space, as this access; NULL after a fault.
static unsigned char *map_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                             tk_sim_space space, uint64_t address, tk_sim_access access) {
    unsigned char *first = NULL;
    if (address % 64) {
        tk_sim_fail(w, i, lane, "misaligned", "a tensor map at 0x%llx, which is no multiple of 64",
                    (unsigned long long)address);
        return NULL;
    }
    for (uint32_t k = 0; k < TK_SIM_MAP_BYTES; k += 16) {
        unsigned char *p = tk_sim_at(w, i, lane, space, address + k, 16, access, NULL);
        if (!p) {
            return NULL;
        }
        first = k ? first : p;
    }
    return first;
}

static tk_sim_flow run_replace(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    bool ordinal = tk_sim_count_of(i, 2) > 0;
    uint64_t address[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, address);
    TK_SIM_EACH(l, mask) {
        uint64_t a = address[l], x = tk_sim_get(w, tk_sim_operand(i, ordinal ? 2 : 1))[l];
        tk_sim_space s = tk_sim_resolve(tk_sim_space_of(i, tk_sim_operand(i, 0)), &a);
        unsigned char *p = map_at(w, i, l, s, a, TK_SIM_READ);
        p = p ? map_at(w, i, l, s, a, TK_SIM_WRITE) : NULL;
        if (!p) {
            return TK_SIM_FAULT;
        }
        tk_sim_map_fields f;
        memcpy(&f, p, sizeof f);
        bool ok = ordinal
                      ? set_dimension(i, &f, (uint32_t)tk_sim_get(w, tk_sim_operand(i, 1))[l], x)
                      : set_field(i, &f, x);
        if (!ok) {
            return tk_sim_fail(w, i, l, "tensor-map", "'%s' of a field or value that is not there",
                               i->name);
        }
        memcpy(p, &f, sizeof f);
        if (s == TK_SIM_GLOBAL && !note_change(w, i, l, a, false)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(map_replace, run_replace)

// A map that was made in shared memory is published. The warp does it together; its addresses are
// those of the first lane.
static tk_sim_flow run_copy(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    tk_sim_flow flow;
    if (!tk_sim_whole_warp(w, i, mask, &flow)) {
        return flow;
    }
    uint64_t to[TK_SIM_LANES] = {0}, from[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), 1, to);
    tk_sim_addresses(w, tk_sim_operand(i, 1), 1, from);
    if ((uint32_t)tk_sim_get(w, tk_sim_operand(i, 2))[0] != TK_SIM_MAP_BYTES) {
        return tk_sim_fail(w, i, 0, "async-operands", "a tensor map has %d bytes",
                           TK_SIM_MAP_BYTES);
    }
    const unsigned char *p = map_at(w, i, 0, TK_SIM_SHARED, from[0], TK_SIM_READ);
    unsigned char *q = p ? map_at(w, i, 0, TK_SIM_GLOBAL, to[0], TK_SIM_WRITE) : NULL;
    if (!q) {
        return TK_SIM_FAULT;
    }
    memcpy(q, p, TK_SIM_MAP_BYTES);
    return note_change(w, i, 0, to[0], true) ? flow : TK_SIM_FAULT;
}
TK_SIM_BIND_ONE(map_copy, run_copy)

// ---- prefetch.tensormap

static tk_sim_flow run_prefetch(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)w, (void)i, (void)mask;
    return TK_SIM_NEXT;
}

static tk_sim_flow run_refused(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    return tk_sim_fail(w, i, (uint32_t)__builtin_ctz(mask), "illegal-instruction",
                       "'%s' can be assembled, but a GPU refuses it; the form without .param works",
                       i->name);
}

tk_sim_exec *tk_sim_bind_map_prefetch(const tk_sim_inst *i) {
    return tk_sim_has(i, TK_SIM_MOD_PARAM) ? run_refused : run_prefetch;
}
