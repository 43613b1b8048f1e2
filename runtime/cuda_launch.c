// SPDX-License-Identifier: Apache-2.0
// A launch on a GPU: the grid counted on the host, the parameters packed as the image says, one
// call of the driver.
#include "runtime/cuda_driver.h"
#include "runtime/tensor_map.h"

#include <limits.h>
#include <string.h>

// ---- The grid

static tk_exec_tensor *shapes(const launch *l) {
    tk_exec_tensor *t = TK_NEW_ARRAY(&l->work->arena, tk_exec_tensor, l->narg + 1);
    for (uint32_t i = 0; i < l->narg; i++) {
        memcpy(t[i].dim, l->tensor[i].dim, sizeof t[i].dim);
        memcpy(t[i].stride, l->tensor[i].stride, sizeof t[i].stride);
    }
    return t;
}

// Programs are blocks of one dimension, of which there may be 2^31 - 1; a block may have several
// along axis 0, whose count is then that of blocks.
static bool count_programs(const launch *l, const gpu_variant *v, tk_exec_env *env,
                           uint32_t *programs) {
    tk_work *w = l->work;
    const tk_kernel_info *info = l->kernel->info;
    int64_t total;
    memset(env, 0, sizeof *env);
    env->narg = l->narg;
    env->tensor = shapes(l);
    env->scalar = l->scalar;
    if (!grid_counts(w, info, v->module, v->grid, env, &total)) {
        return false;
    }
    if (total > INT32_MAX) {
        tk_buf b;
        tk_buf_init(&b, &w->arena);
        for (uint32_t a = 0; a < env->ngrid; a++) {
            tk_buf_fmt(&b, "%s%s = %lld", a ? ", " : "", a < info->ngrid ? info->grid[a] : "?",
                       (long long)env->grid[a]);
        }
        work_fail(w, TKC_ERROR_LAUNCH, "grid-too-large",
                  "the grid has %lld programs (%s); a GPU takes at most %d", (long long)total,
                  tk_buf_text(&b), INT32_MAX);
        return false;
    }
    if (total && v->image->packed > 1) {
        const int64_t n = v->image->packed, blocks = (env->grid[0] + n - 1) / n;
        total = total / env->grid[0] * blocks;
        env->grid[0] = blocks;
    }
    *programs = (uint32_t)total;
    return true;
}

// ---- Parameters

static void store_u64(unsigned char *at, uint64_t x) { memcpy(at, &x, sizeof x); }

static void store_i32(unsigned char *at, int64_t x) {
    int32_t y = (int32_t)x;
    memcpy(at, &y, sizeof y);
}

static void store_slot(const launch *l, const tk_exec_env *env, uint64_t debug,
                       const tk_param_slot *s, unsigned char *block) {
    unsigned char *at = block + s->offset;
    switch (s->kind) {
    case TK_SLOT_ADDRESS:
        store_u64(at, (uint64_t)(uintptr_t)l->tensor[s->param].data);
        return;
    case TK_SLOT_SIZE:
        store_i32(at, l->tensor[s->param].dim[s->axis]);
        return;
    case TK_SLOT_STRIDE:
        store_u64(at, (uint64_t)l->tensor[s->param].stride[s->axis]);
        return;
    case TK_SLOT_SCALAR:
        TK_CHECK(&l->work->arena, tk_dtype_size(l->scalar[s->param].dtype) == s->size);
        tk_const_store(l->scalar[s->param], at);
        return;
    case TK_SLOT_GRID:
        store_i32(at, env->grid[s->param]);
        return;
    case TK_SLOT_DEBUG:
        store_u64(at, debug);
        return;
    case TK_SLOT_MAP: // the device's own
        return;
    }
}

bool gpu_pack_variant(const launch *l, const gpu_variant *v, uint64_t debug, tk_arena *arena,
                      gpu_packed *out) {
    const tk_image *i = v->image;
    tk_exec_env env;
    memset(out, 0, sizeof *out);
    if (!count_programs(l, v, &env, &out->programs)) {
        return false;
    }
    TK_CHECK(&l->work->arena, i->ngrid == env.ngrid);
    out->debug = i->ndebug > 0;
    out->ngrid = env.ngrid;
    memcpy(out->grid, env.grid, sizeof out->grid);
    out->bytes = i->param_bytes;
    out->block = tk_alloc(arena, i->param_bytes);
    for (uint32_t k = 0; k < i->nslot; k++) {
        store_slot(l, &env, debug, &i->slot[k], out->block);
    }
    return true;
}

const tk_map_spec *gpu_map_slot(const tk_image *i, uint32_t k, uint32_t *offset) {
    *offset = i->slot[k].offset;
    return i->slot[k].kind == TK_SLOT_MAP ? &i->map[i->slot[k].param] : NULL;
}

// With the device's context. *at: the map that the driver did not make.
static cu_result encode_maps(const cuda_device *d, const launch *l, const tk_image *i,
                             unsigned char *block, const tk_map_spec **at) {
    cu_result r = 0;
    for (uint32_t k = 0; k < i->nslot && r == 0; k++) {
        _Alignas(TK_MAP_ALIGN) unsigned char map[TK_MAP_BYTES];
        uint32_t offset;
        const tk_map_spec *s = gpu_map_slot(i, k, &offset);
        if (s) {
            *at = s;
            r = tensor_map_encode(d->driver, &l->tensor[s->param], s, map);
            memcpy(block + offset, map, sizeof map);
        }
    }
    return r;
}

static bool make_maps(const cuda_device *d, const launch *l, const tk_image *i,
                      unsigned char *block) {
    const tk_kernel_info *info = l->kernel->info;
    const tk_map_spec *at = NULL;
    cuda_scope scope;
    if (i->nmap == 0) {
        return true;
    }
    cu_result r = cuda_enter(d, &scope);
    if (r == 0) {
        r = encode_maps(d, l, i, block, &at);
        cuda_leave(d, &scope);
    }
    if (r != 0) {
        cuda_fail(l->work, d->driver, r, info->item->span, "kernel '%s' needs a tensor map of '%s'",
                  info->name, at ? info->param[l->param[at->param]].name : "its tensors");
    }
    return r == 0;
}

bool gpu_pack(tkc_device *device, const launch *l, tk_arena *arena, gpu_packed *out) {
    const gpu_variant *v = l->loaded->variant;
    if (!gpu_pack_variant(l, v, l->loaded->debug, arena, out) ||
        !make_maps(device->state, l, v->image, out->block)) {
        return false;
    }
    out->loaded = l->loaded;
    if (v->image->persistent && out->programs > l->loaded->resident) {
        out->programs = l->loaded->resident; // each block runs several
    }
    return true;
}

// ---- The launch

// A tensor map must be at a multiple of 64 where the GPU keeps parameters, which does not begin at
// one: the assembler leaves room in front of the first. So where there are maps the driver is told
// of each parameter, and else of all as one block, which takes it less time.
cu_result gpu_run(const cuda_device *d, const gpu_packed *p, void *stream) {
    const tk_image *i = p->loaded->variant->image;
    size_t bytes = p->bytes;
    void *extra[] = {(void *)(uintptr_t)CU_EXTRA_BUFFER, p->block, (void *)(uintptr_t)CU_EXTRA_SIZE,
                     &bytes, (void *)(uintptr_t)CU_EXTRA_END};
    void *each[TK_MOST_SLOTS + 1];
    uint32_t n = 0;
    for (; i->nmap && n < i->nslot; n++) {
        each[n] = p->block + i->slot[n].offset;
    }
    each[n] = NULL;
    cuda_scope scope;
    if (p->programs == 0) {
        return 0;
    }
    cu_result r = cuda_enter(d, &scope);
    if (r == 0) {
        r = d->driver->launch(p->loaded->function, p->programs, 1, 1, i->threads, 1, 1, i->shared,
                              stream, i->nmap ? each : NULL, i->nmap ? NULL : extra);
        cuda_leave(d, &scope);
    }
    return r;
}

void gpu_run_failed(tk_work *w, const cuda_device *d, const gpu_packed *p, cu_result r) {
    const tk_image *i = p->loaded->variant->image;
    tk_span none = {0, 0, 0};
    tk_diag *diag = cuda_fail(w, d->driver, r, p->loaded->span,
                              "kernel '%s' cannot be launched on %s", p->loaded->name, d->label);
    tk_note(&w->diags, diag, none,
            "%u blocks of %u threads, %u registers a thread, %u bytes of shared memory",
            p->programs, i->threads, p->loaded->registers, i->shared);
}
