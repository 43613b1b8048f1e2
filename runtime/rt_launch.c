// SPDX-License-Identifier: Apache-2.0
// Launches of kernels compiled ahead: arguments checked, the variant chosen, parameters packed, one
// call of the driver.
#include "runtime/rt.h"

#include "ptx/image.h"
#include "runtime/tensor_map.h"

#include <string.h>

// ---- The variant

// Whether tensor maps can be made is left open before the driver is there.
static uint32_t choose(const rt_args *a, bool maps) {
    const tk_bundle *b = a->bundle;
    const uint32_t *need = tk_bundle_at(b, b->fact);
    const tk_tensor_facts use = ~(maps ? 0 : (tk_tensor_facts)TK_FACT_MAP);
    tk_tensor_facts now[TK_BUNDLE_PARAMS];
    for (uint32_t i = 0; i < b->nparam; i++) {
        now[i] = a->param[i].is_tensor ? tensor_facts(a->tensor[i]) & use : 0;
    }
    for (uint32_t v = 0; v < b->nvariant; v++, need += b->nparam) {
        bool hold = true;
        for (uint32_t i = 0; i < b->nparam; i++) {
            hold = hold && (now[i] & need[i]) == need[i];
        }
        if (hold) {
            return v;
        }
    }
    return UINT32_MAX;
}

// ---- Parameters

static void store_i32(unsigned char *at, int64_t x) {
    int32_t y = (int32_t)x;
    memcpy(at, &y, sizeof y);
}

// Blocks along a grid axis: along the first, one may run several programs.
static int64_t blocks_along(const rt_args *a, const tk_bundle_image *i, uint32_t axis) {
    const int64_t n = axis == 0 ? i->packed : 1;
    return n > 1 ? (a->count[axis] + n - 1) / n : a->count[axis];
}

static void store_slot(const rt_args *a, const tk_bundle_image *i, const tk_bundle_slot *s,
                       unsigned char *block) {
    unsigned char *at = block + s->offset;
    switch ((tk_slot_kind)s->kind) {
    case TK_SLOT_ADDRESS:
        memcpy(at, &a->tensor[s->param]->data, sizeof(void *));
        return;
    case TK_SLOT_SIZE:
        store_i32(at, a->tensor[s->param]->dim[s->axis]);
        return;
    case TK_SLOT_STRIDE:
        memcpy(at, &a->tensor[s->param]->stride[s->axis], sizeof(int64_t));
        return;
    case TK_SLOT_SCALAR:
        tk_const_store(a->scalar[s->param], at);
        return;
    case TK_SLOT_GRID:
        store_i32(at, blocks_along(a, i, s->param));
        return;
    case TK_SLOT_DEBUG: // code compiled ahead is never for debugging
    case TK_SLOT_MAP:   // make_maps
        return;
    }
}

static cu_result make_maps(const rt_args *a, const cuda_driver *d, const tk_bundle_image *i,
                           unsigned char *block) {
    const tk_bundle_map *map = tk_bundle_at(a->bundle, i->map);
    const tk_bundle_slot *slot = tk_bundle_at(a->bundle, i->slot);
    cu_result r = 0;
    for (uint32_t k = 0; i->nmap && k < i->nslot && r == 0; k++) {
        if ((tk_slot_kind)slot[k].kind == TK_SLOT_MAP) {
            const tk_bundle_map *m = &map[slot[k].param];
            tk_map_spec s = {.param = m->param,
                             .rank = m->rank,
                             .dtype = (tk_dtype)m->dtype,
                             .span = m->span,
                             .tf32 = m->tf32};
            memcpy(s.box, m->box, sizeof s.box);
            r = tensor_map_encode(d, a->tensor[m->param], &s, block + slot[k].offset);
        }
    }
    return r;
}

static cu_result run(const rt_args *a, const rt_scope *scope, const rt_code *code, void *stream) {
    const tk_bundle_image *i = code->image;
    const tk_bundle_slot *slot = tk_bundle_at(a->bundle, i->slot);
    _Alignas(TK_MAP_ALIGN) unsigned char block[TK_BUNDLE_BLOCK];
    memset(block, 0, i->param_bytes);
    for (uint32_t k = 0; k < i->nslot; k++) {
        store_slot(a, i, &slot[k], block);
    }
    cu_result r = make_maps(a, scope->driver, i, block);
    if (r != 0) {
        return r;
    }
    size_t bytes = i->param_bytes;
    void *extra[] = {(void *)(uintptr_t)CU_EXTRA_BUFFER, block, (void *)(uintptr_t)CU_EXTRA_SIZE,
                     &bytes, (void *)(uintptr_t)CU_EXTRA_END};
    void *each[TK_MOST_SLOTS + 1]; // as in cuda_launch.c
    uint32_t n = 0;
    for (; i->nmap && n < i->nslot; n++) {
        each[n] = block + slot[n].offset;
    }
    each[n] = NULL;
    uint32_t blocks = a->programs;
    if (blocks && i->packed > 1) {
        blocks = (uint32_t)(blocks / a->count[0] * blocks_along(a, i, 0));
    }
    if (i->persistent && blocks > code->resident) {
        blocks = code->resident;
    }
    cu_function f = atomic_load_explicit(&code->function, memory_order_relaxed);
    return scope->driver->launch(f, blocks, 1, 1, i->threads, 1, 1, i->shared, stream,
                                 i->nmap ? each : NULL, i->nmap ? NULL : extra);
}

// ---- The launch

static tkc_status no_variant(const tk_bundle *b, tkc_error *error) {
    return rt_fail(error, TKC_ERROR_LAUNCH, "tensor-layout",
                   "kernel '%s' was compiled only for tensors with more than these have: a last "
                   "stride of 1, an alignment of 16 bytes, rows of whole 16 bytes, offsets of 32 "
                   "bits or strides for tensor maps (from CUDA 12.0 on)",
                   (const char *)tk_bundle_at(b, b->name));
}

// In the scope. Of a driver that makes no tensor maps: the best variant without.
static tkc_status launch(const rt_args *a, rt_state *s, uint32_t variant, const rt_scope *scope,
                         void *stream, tkc_error *error) {
    const rt_code *code = NULL;
    if (!scope->driver->map_encode) {
        variant = choose(a, false);
    }
    if (variant == UINT32_MAX) {
        return no_variant(a->bundle, error);
    }
    tkc_status status = rt_code_get(a->bundle, s, scope, variant, &code, error);
    cu_result r = status == TKC_OK && a->programs ? run(a, scope, code, stream) : 0;
    if (r != 0) {
        status = rt_fail_driver(error, scope->driver, r, "kernel '%s' cannot be launched",
                                (const char *)tk_bundle_at(a->bundle, a->bundle->name));
    }
    return status;
}

tkc_status tkc_rt_launch(const void *kernel, tkc_rt_state *state, const void *const *argument,
                         void *stream, tkc_error *error) {
    rt_args a;
    rt_scope scope;
    rt_state *s = (rt_state *)(void *)state;
    const tk_bundle *b = rt_bundle(kernel, error);
    if (!b || !state || !argument) {
        return TKC_ERROR_ARGUMENT;
    }
    tkc_status status = rt_check(b, argument, &a, error);
    if (status != TKC_OK) {
        return status;
    }
    uint32_t variant = choose(&a, true);
    if (variant == UINT32_MAX) {
        return no_variant(b, error);
    }
    status = rt_enter(s, stream, &scope, error);
    if (status == TKC_OK) {
        status = launch(&a, s, variant, &scope, stream, error);
    }
    rt_leave(&scope);
    return status;
}

tkc_status tkc_rt_load(const void *kernel, tkc_rt_state *state, tkc_error *error) {
    const tk_bundle *b = rt_bundle(kernel, error);
    rt_state *s = (rt_state *)(void *)state;
    if (!b || !s) {
        return TKC_ERROR_ARGUMENT;
    }
    rt_scope scope;
    const rt_code *code;
    tkc_status status = rt_enter(s, NULL, &scope, error);
    for (uint32_t v = 0; v < b->nvariant && status == TKC_OK; v++) {
        status = rt_code_get(b, s, &scope, v, &code, error);
    }
    rt_leave(&scope);
    return status;
}
