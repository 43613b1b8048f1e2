// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor in tile mode: boxes of a tensor that a map
// describes, to and from shared memory. All of a box in shared memory is written and counts for the
// mbarrier; of the tensor only what lies in it is touched.
#include "sim/exec.h"
#include "sim/tensor.h"

enum { BOX_ALIGN = 128, BOX_ALIGN_GLOBAL = 16 };

// The map at the lane's address, decoded; NULL after a fault. *changes: it lies where it may be
// changed.
static const tk_sim_tensor *find_map(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                     uint64_t address, bool *changes) {
    tk_sim_grid *g = w->grid;
    uint64_t at = address;
    tk_sim_space s = tk_sim_resolve(TK_SIM_GENERIC, &at);
    if (s != TK_SIM_GLOBAL && s != TK_SIM_CONST && s != TK_SIM_PARAM) {
        tk_sim_fail(w, i, lane, "tensor-map",
                    "a tensor map in memory of the block; it must be a parameter, a constant or in "
                    "global memory");
        return NULL;
    }
    const unsigned char *p = tk_sim_at(w, i, lane, s, at, TK_SIM_MAP_BYTES / 2, TK_SIM_READ, NULL);
    if (!p || !tk_sim_at(w, i, lane, s, at + TK_SIM_MAP_BYTES / 2, TK_SIM_MAP_BYTES / 2,
                         TK_SIM_READ, NULL)) {
        return NULL;
    }
    *changes = s == TK_SIM_GLOBAL && !g->region[g->last_region].read_only;
    if (*changes && !tk_sim_maps_used(w, i, lane, at)) {
        return NULL;
    }
    for (uint32_t k = 0; k < g->tensors.n; k++) {
        if (memcmp(g->tensors.at[k]->raw, p, TK_SIM_MAP_BYTES) == 0) {
            return g->tensors.at[k];
        }
    }
    tk_sim_tensor *t = TK_NEW(g->arena, tk_sim_tensor);
    const char *problem = tk_sim_tensor_decode(g->arena, p, t);
    if (problem) {
        tk_sim_fail(w, i, lane, "tensor-map", "%s", problem);
        return NULL;
    }
    tk_vec_push(g->arena, &g->tensors, t);
    return t;
}

static unsigned dims(const tk_sim_inst *i) {
    return tk_sim_has(i, TK_SIM_MOD_D1)   ? 1
           : tk_sim_has(i, TK_SIM_MOD_D2) ? 2
           : tk_sim_has(i, TK_SIM_MOD_D3) ? 3
           : tk_sim_has(i, TK_SIM_MOD_D4) ? 4
                                          : 5;
}

// What a lane's copy says of the tensor: the map and the coordinates. `operand` is where they are.
static bool begin(tk_sim_bulk *x, unsigned operand) {
    const tk_sim_arg *a = tk_sim_operand(x->inst, operand);
    uint64_t map = tk_sim_address(x->warp, a, x->lane);
    bool changes = false;
    const tk_sim_tensor *t = find_map(x->warp, x->inst, x->lane, map, &changes);
    if (!t) {
        return false;
    }
    x->map = changes ? map : 0;
    unsigned n = dims(x->inst);
    if (t->rank != n) {
        tk_sim_fail(x->warp, x->inst, x->lane, "tensor-map",
                    "a tensor of %u dimensions; the instruction is for %u", t->rank, n);
        return false;
    }
    for (unsigned k = 0; k < n; k++) {
        x->at[k] = (int32_t)tk_sim_get(x->warp, &a[1 + k])[x->lane];
    }
    x->tensor = t;
    if ((int64_t)x->at[0] * t->element % BOX_ALIGN_GLOBAL) {
        tk_sim_fail(x->warp, x->inst, x->lane, "misaligned",
                    "a box from column %d on, of elements of %u bytes: no multiple of %d bytes",
                    x->at[0], t->element, BOX_ALIGN_GLOBAL);
        return false;
    }
    return true;
}

static bool find_box(tk_sim_bulk *x, uint64_t shared) {
    if (x->tensor->bytes > x->warp->grid->shared_bytes) {
        tk_sim_fail(x->warp, x->inst, x->lane, "out-of-bounds",
                    "a box of %llu bytes; there are %u bytes of shared memory",
                    (unsigned long long)x->tensor->bytes, x->warp->grid->shared_bytes);
        return false;
    }
    x->bytes = (uint32_t)x->tensor->bytes;
    if (shared % BOX_ALIGN) {
        tk_sim_fail(x->warp, x->inst, x->lane, "misaligned",
                    "a box at 0x%llx of shared memory, which is no multiple of %d",
                    (unsigned long long)shared, BOX_ALIGN);
        return false;
    }
    return true;
}

// Checks that what lies in the tensor lies in memory.
static bool find_rows(const tk_sim_bulk *x, tk_sim_access access) {
    for (uint32_t k = 0; k < tk_sim_tensor_rows(x->tensor); k++) {
        tk_sim_tensor_row r;
        tk_sim_tensor_row_at(x->tensor, x->at, k, &r);
        const uint32_t bytes = r.n * x->tensor->element;
        if (bytes && !tk_sim_global_at(x->warp, x->inst, x->lane, r.address, bytes, access)) {
            return false;
        }
        if (bytes && access != TK_SIM_READ &&
            !tk_sim_maps_stored(x->warp, x->inst, x->lane, r.address, bytes, NULL)) {
            return false;
        }
    }
    return true;
}

static tk_sim_flow run_load(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t to[TK_SIM_LANES] = {0}, bar[TK_SIM_LANES] = {0};
    bool multicast = tk_sim_has(i, TK_SIM_MOD_MULTICAST);
    tk_sim_addresses(w, tk_sim_operand(i, 0), mask, to);
    tk_sim_addresses(w, tk_sim_operand(i, 2), mask, bar);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = {.inst = i, .warp = w, .lane = l, .kind = TK_SIM_BULK_LOAD};
        uint32_t blocks = multicast ? (uint32_t)tk_sim_get(w, tk_sim_operand(i, 3))[l] : 0;
        if (!begin(&x, 1) || !find_box(&x, to[l]) || !find_rows(&x, TK_SIM_READ) ||
            !tk_sim_bulk_load(&x, to[l], bar[l], multicast, blocks)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_tensor_load(const tk_sim_inst *i) {
    return tk_sim_count_of(i, 1) == 1 + dims(i) ? run_load : NULL;
}

// Whether the elements can be reduced as the instruction says.
static bool find_type(tk_sim_bulk *x) {
    const tk_sim_inst *i = x->inst;
    bool logic = tk_sim_has(i, TK_SIM_MOD_AND) || tk_sim_has(i, TK_SIM_MOD_OR) ||
                 tk_sim_has(i, TK_SIM_MOD_XOR);
    x->reduces = tk_sim_has(i, TK_SIM_MOD_REDUCE);
    x->type = tk_sim_tensor_type(x->tensor, logic);
    if (x->reduces && !tk_sim_combines(i, x->type, true)) {
        tk_sim_fail(x->warp, i, x->lane, "tensor-map",
                    "'%s' is not possible with the elements of this tensor", i->name);
        return false;
    }
    return true;
}

// A GPU writes no box that begins before the tensor; one may end behind it.
static bool begins_inside(const tk_sim_bulk *x) {
    for (uint32_t k = 0; k < x->tensor->rank; k++) {
        if (x->at[k] < 0) {
            tk_sim_fail(x->warp, x->inst, x->lane, "illegal-instruction",
                        "writes a box that begins at %d in dimension %u; a GPU refuses that",
                        x->at[k], k);
            return false;
        }
    }
    return true;
}

// What is behind the end of a row is left alone only where no 16 bytes have elements of it: an H200
// writes all of them, whatever is there.
static bool ends_at_16(const tk_sim_bulk *x) {
    const tk_sim_tensor *t = x->tensor;
    const uint64_t row = t->dim[0] * t->element;
    const uint64_t end = (uint64_t)x->at[0] + (uint64_t)t->count[0] * t->step[0];
    if (row % BOX_ALIGN_GLOBAL && (uint64_t)x->at[0] < t->dim[0] && end > t->dim[0]) {
        tk_sim_fail(x->warp, x->inst, x->lane, "out-of-bounds",
                    "writes a box that ends behind the rows of a tensor, which have %llu bytes; a "
                    "GPU writes all of the last %d",
                    (unsigned long long)row, BOX_ALIGN_GLOBAL);
        return false;
    }
    return true;
}

static tk_sim_flow run_store(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    uint64_t from[TK_SIM_LANES] = {0};
    tk_sim_addresses(w, tk_sim_operand(i, 1), mask, from);
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = {.inst = i, .warp = w, .lane = l, .kind = TK_SIM_BULK_STORE};
        if (!begin(&x, 0) || !begins_inside(&x) || !ends_at_16(&x) || !find_type(&x) ||
            !find_box(&x, from[l]) || !find_rows(&x, TK_SIM_WRITE)) {
            return TK_SIM_FAULT;
        }
        x.offset = tk_sim_bulk_source(&x, from[l]);
        if (x.offset == UINT32_MAX) {
            return TK_SIM_FAULT;
        }
        tk_sim_bulk_issue(x);
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_tensor_store(const tk_sim_inst *i) {
    return tk_sim_count_of(i, 0) == 1 + dims(i) ? run_store : NULL;
}

// Has no effect; the map is looked at.
static tk_sim_flow run_prefetch(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask) {
    TK_SIM_EACH(l, mask) {
        tk_sim_bulk x = {.inst = i, .warp = w, .lane = l, .kind = TK_SIM_BULK_LOAD};
        if (!begin(&x, 0)) {
            return TK_SIM_FAULT;
        }
    }
    return TK_SIM_NEXT;
}
tk_sim_exec *tk_sim_bind_tensor_prefetch(const tk_sim_inst *i) {
    return tk_sim_count_of(i, 0) == 1 + dims(i) ? run_prefetch : NULL;
}
