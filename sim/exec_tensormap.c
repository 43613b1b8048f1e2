// SPDX-License-Identifier: Apache-2.0
// Tensor maps that a kernel changes, and the fences between such changes and their use.
#include "sim/exec.h"
#include "sim/tensor.h"

// Like a fence of its direction, it releases, or acquires, what strong accesses hand over.
static void release(const tk_sim_warp *w, uint32_t mask) {
    if (w->grid->program->flags) {
        tk_sim_shadow_fence_release(w, mask, false);
    }
}

static void acquire(const tk_sim_warp *w, uint32_t mask) {
    if (w->grid->program->flags) {
        tk_sim_shadow_fence_acquire(w, mask, false);
    }
}

static tk_sim_flow run_release(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    (void)i;
    tk_sim_maps_release(w, mask);
    release(w, mask);
    return TK_SIM_NEXT;
}
TK_SIM_BIND_ONE(map_release, run_release)

static tk_sim_flow run_acquire(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t address[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, address);
    acquire(w, mask);
    TK_SIM_EACH(l, mask) {
        if ((uint32_t)tk_sim_get(w, tk_sim_operand(i, 1))[l] != TK_SIM_MAP_BYTES) {
            return tk_sim_fail(w, i, l, "async-operands", "a tensor map has %d bytes",
                               TK_SIM_MAP_BYTES);
        }
        tk_sim_maps_acquired(w, l, address[l]);
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
        if (s == TK_SIM_GLOBAL && !tk_sim_maps_changed(w, i, 1u << l, a, false)) {
            return TK_SIM_FAULT;
        }
        memcpy(p, &f, sizeof f);
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
    if (!tk_sim_maps_changed(w, i, w->alive, to[0], true)) {
        return TK_SIM_FAULT;
    }
    memcpy(q, p, TK_SIM_MAP_BYTES);
    release(w, w->alive);
    return flow;
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
