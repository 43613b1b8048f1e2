// SPDX-License-Identifier: Apache-2.0
// Device "sim": the PTX of the GPU back end, run on the CPU by the simulator. "sim" is a GPU of
// compute capability 9.0, "sim:80" one of 8.0, and so on. Its memory is the host's.
#include "runtime/cuda_driver.h"
#include "runtime/matmul.h"
#include "runtime/tensor_map.h"

#include <stdlib.h>
#include <string.h>

static bool sim_open(tk_work *w, tkc_device *d, unsigned ordinal) {
    unsigned cc = ordinal ? ordinal : 90;
    if (!gpu_backend(w->config)) {
        work_fail(w, TKC_ERROR_DEVICE, "no-gpu-backend",
                  "no device '%s': this build has no GPU code generator", d->name);
        return false;
    }
    const tk_target *t = tk_target_for(cc / 10, cc % 10);
    if (!t || t->cc != cc || cc >= 100) {
        work_fail(w, TKC_ERROR_DEVICE, "unknown-device",
                  "there is no device '%s': what is simulated is sim:80, sim:86, sim:89 and sim:90",
                  d->name);
        return false;
    }
    d->state = (void *)(uintptr_t)t;
    return true;
}

static void sim_close(tkc_device *d) { (void)d; }

static bool sim_ready(tkc_device *device, launch *l) {
    tk_work *w = l->work;
    if (l->options && l->options->check) {
        work_fail(w, TKC_ERROR_LAUNCH, "check-on-gpu",
                  "device '%s' has no check mode; device cpu has it", device->name);
        return false;
    }
    l->simulated = gpu_simulated(w, device->state, l);
    return l->simulated && !w->diags.errors;
}

// ---- Regions: what a launch may touch

static void add_region(const launch *l, uint32_t i, tk_sim_region *region, size_t *n) {
    const tkc_tensor *t = &l->tensor[i];
    const tk_kparam *p = &l->kernel->info->param[l->param[i]];
    int64_t size = (int64_t)tkc_dtype_size(t->dtype), least = 0, most = 0;
    for (uint32_t a = 0; a < t->rank; a++) {
        int64_t reach = (t->dim[a] - 1) * t->stride[a];
        if (t->dim[a] == 0) {
            return;
        }
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
    }
    region[(*n)++] = (tk_sim_region){(uint64_t)(uintptr_t)t->data + (uint64_t)(least * size),
                                     (uint64_t)((most - least + 1) * size), p->access == TK_IN,
                                     tk_format(&l->work->arena, "tensor '%s'", p->name)};
}

// ---- Faults

// The span that a .loc means, among the kernel's sources.
static tk_span span_of(const tk_sources *s, const tk_sim_place *at) {
    const char *name = source_name(at->file);
    for (uint32_t file = 1; name && file <= s->files.n; file++) {
        const tk_source *f = tk_source_of(s, file);
        if (strcmp(f->name, name) == 0 && at->line >= 1 && at->line <= f->lines) {
            uint32_t begin = f->line[at->line - 1] + (at->column ? at->column - 1 : 0);
            begin = begin < f->size ? begin : f->size;
            return (tk_span){file, begin, begin < f->size ? begin + 1 : begin};
        }
    }
    return (tk_span){0, 0, 0};
}

static const char *ptx_place(tk_arena *a, const tk_sim_place *at) {
    return at->ptx_line ? tk_format(a, " (line %u of the PTX)", at->ptx_line) : "";
}

static void report_fault(const launch *l, const tk_sim_fault *f) {
    tk_work *w = l->work;
    const tk_sources *s = &l->kernel->sources;
    tk_diag *d = tk_error(&w->diags, span_of(s, &f->at), f->id, "%s%s", f->text,
                          ptx_place(&w->arena, &f->at));
    for (uint32_t k = 0; k < f->notes.n; k++) {
        const tk_sim_note *n = &f->notes.at[k];
        tk_note(&w->diags, d, span_of(s, &n->at), "%s%s", n->text, ptx_place(&w->arena, &n->at));
    }
    w->status = TKC_ERROR_CHECK;
}

// ---- Launch

// Tensors may lie between each other's elements: what is written there is no fault.
static void allow_between(tk_sim_region *region, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            if (!region[k].read_only && region[i].begin < region[k].begin + region[k].size &&
                region[k].begin < region[i].begin + region[i].size) {
                region[i].read_only = false;
            }
        }
    }
}

// What a launch may touch: its tensors, and where a debug image leaves something behind.
static void set_regions(const launch *l, void *debug, size_t debug_bytes, tk_sim_launch *sl) {
    tk_sim_region *region = TK_NEW_ARRAY(&l->work->arena, tk_sim_region, l->narg + 1);
    sl->region = region;
    for (uint32_t k = 0; k < l->narg; k++) {
        if (l->is_tensor[k]) {
            add_region(l, k, region, &sl->nregion);
        }
    }
    allow_between(region, sl->nregion);
    if (debug_bytes) {
        region[sl->nregion++] = (tk_sim_region){(uint64_t)(uintptr_t)debug, debug_bytes, false,
                                                "the memory of prints and asserts"};
    }
}

// Maps in the simulator's form; false after an error.
static bool make_maps(const launch *l, const tk_image *i, unsigned char *block) {
    tk_work *w = l->work;
    for (uint32_t k = 0; k < i->nslot; k++) {
        _Alignas(TK_MAP_ALIGN) unsigned char map[TK_MAP_BYTES];
        uint32_t offset;
        const tk_map_spec *s = gpu_map_slot(i, k, &offset);
        if (!s) {
            continue;
        }
        const tensor_map m = tensor_map_of(&l->tensor[s->param], s);
        tk_sim_map_spec of = {.type = (tk_sim_map_type)m.type,
                              .rank = m.rank,
                              .address = m.address,
                              .swizzle = (tk_sim_map_swizzle)m.swizzle,
                              .l2 = m.l2};
        memcpy(of.dim, m.dim, sizeof of.dim);
        memcpy(of.stride, m.stride, sizeof of.stride);
        memcpy(of.box, m.box, sizeof of.box);
        memcpy(of.step, m.step, sizeof of.step);
        const char *problem = tk_sim_tensor_map_encode(&w->arena, map, &of);
        if (problem) {
            work_fail(w, TKC_ERROR_DEVICE, "tensor-map",
                      "kernel '%s' needs a tensor map of '%s': %s", l->kernel->info->name,
                      l->kernel->info->param[l->param[s->param]].name, problem);
            return false;
        }
        memcpy(block + offset, map, sizeof map);
    }
    return true;
}

static void tell_counters(const launch *l, const tk_sim_result *result) {
    tk_arena *a = &l->work->arena;
    const char *entry = l->simulated->image->kernel;
    if (l->options->counters && result->count) {
        tk_sim_counters c;
        tk_sim_sum(a, l->simulated->simulated, entry, result, &c);
        l->options->counters(l->options->counters_user, sim_counters_plain(a, &c),
                             sim_counters_json(a, entry, &c));
    }
}

// Of a persistent kernel: few, so that each runs several programs.
enum { RESIDENT = 2 };

static void sim_launch(tkc_device *device, const launch *l) {
    tk_work *w = l->work;
    const tk_image *i = l->simulated->image;
    size_t debug_bytes = gpu_debug_bytes(w->config, i);
    void *debug = tk_alloc(&w->arena, debug_bytes);
    gpu_packed p;
    if (!gpu_pack_variant(l, l->simulated, (uint64_t)(uintptr_t)debug, &w->arena, &p) ||
        p.programs == 0 || !make_maps(l, i, p.block)) {
        return;
    }
    const uint32_t cluster = i->cluster > 1 ? i->cluster : 1;
    const uint32_t resident = cluster > RESIDENT ? cluster : RESIDENT / cluster * cluster;
    const uint32_t blocks = i->persistent && p.programs > resident ? resident : p.programs;
    tk_sim_launch sl = {.entry = i->kernel,
                        .grid = {blocks, 1, 1},
                        .block = {i->threads, 1, 1},
                        .shared = i->shared,
                        .params = p.block,
                        .param_bytes = p.bytes,
                        .seed = l->options->seed,
                        .stop = l->options->stop};
    set_regions(l, debug, debug_bytes, &sl);
    if (debug_bytes) {
        gpu_debug_begin(w->config, debug);
    }
    tk_sim_result result;
    tk_sim_run(&w->arena, l->simulated->simulated, &sl, &result);
    if (debug_bytes) {
        gpu_debug_end(w, device->context, l->kernel, i, &p, debug);
    }
    if (!result.ok) {
        report_fault(l, &result.fault);
    }
    tell_counters(l, &result);
}

// ---- Memory

// A block is aligned as a GPU's are, so that sectors count as they would there. What was taken for
// it stands before it.
enum { BLOCK_ALIGN = 256 };

static bool sim_alloc(tk_work *w, tkc_device *d, size_t bytes, void **p) {
    void *taken;
    if (!device_cpu.alloc(w, d, bytes > SIZE_MAX - BLOCK_ALIGN ? bytes : bytes + BLOCK_ALIGN,
                          &taken)) {
        return false;
    }
    char *at = taken; // aligned for any type, so that there is room for a pointer
    at += BLOCK_ALIGN - (uintptr_t)at % BLOCK_ALIGN;
    memcpy(at - sizeof taken, &taken, sizeof taken);
    *p = at;
    return true;
}

static bool sim_release(tk_work *w, tkc_device *d, void *p) {
    void *taken = NULL;
    if (p) {
        memcpy(&taken, (char *)p - sizeof taken, sizeof taken);
    }
    return device_cpu.release(w, d, taken);
}

static bool sim_copy(tk_work *w, tkc_device *d, void *to, const void *from, size_t bytes,
                     tkc_direction direction) {
    return device_cpu.copy(w, d, to, from, bytes, direction);
}

static bool sim_synchronize(tk_work *w, tkc_device *d) { return device_cpu.synchronize(w, d); }

const device_table device_sim = {
    .name = "sim",
    .numbered = true,
    .by_name = true,
    .open = sim_open,
    .close = sim_close,
    .ready = sim_ready,
    .launch = sim_launch,
    .alloc = sim_alloc,
    .release = sim_release,
    .copy = sim_copy,
    .synchronize = sim_synchronize,
    .matmul = matmul_host,
};
