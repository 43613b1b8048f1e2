// SPDX-License-Identifier: Apache-2.0
// See gpu_env.h.
#include "tests/gpu_env.h"

#include "ptx/debug.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

fake_backend the_backend;

// ---- The back end

typedef struct layout {
    tk_arena *arena;
    tk_image *i;
    TK_VEC(tk_param_slot) slots;
    uint32_t at;
} layout;

static void add_slot(layout *l, tk_slot_kind kind, uint32_t param, uint32_t axis, uint32_t size) {
    l->at = (l->at + size - 1) / size * size;
    tk_param_slot s = {kind, param, axis, l->at, size};
    tk_vec_push(l->arena, &l->slots, s);
    l->at += size;
}

static void add_param(layout *l, uint32_t p, const tk_type *t) {
    if (t->kind != TK_T_TENSOR) {
        add_slot(l, TK_SLOT_SCALAR, p, 0, (uint32_t)tk_dtype_size(t->dtype));
        return;
    }
    add_slot(l, TK_SLOT_ADDRESS, p, 0, 8);
    for (uint32_t a = 0; a < t->rank; a++) {
        add_slot(l, TK_SLOT_SIZE, p, a, 4);
    }
    for (uint32_t a = 0; a < t->rank; a++) {
        add_slot(l, TK_SLOT_STRIDE, p, a, 8);
    }
}

// A box of 32 elements of the last dimension, of 8 of the one before it, then of 9 and so on.
static void add_maps(layout *l, const tk_func *f, const tk_ptx_opts *o) {
    TK_VEC(tk_map_spec) maps = {0};
    for (uint32_t p = 0; p < f->params.n && maps.n < the_backend.maps; p++) {
        const tk_type *t = f->value.at[f->params.at[p]].type;
        if (t->kind != TK_T_TENSOR || !(o->facts[p] & TK_FACT_MAP)) {
            continue;
        }
        tk_map_spec s = {.param = p, .rank = t->rank, .dtype = t->dtype, .box = {32}, .span = 128};
        for (uint32_t d = 1; d < t->rank; d++) {
            s.box[d] = 7 + d;
        }
        add_slot(l, TK_SLOT_MAP, maps.n, 0, TK_MAP_BYTES);
        tk_vec_push(l->arena, &maps, s);
    }
    l->i->nmap = maps.n;
    l->i->map = maps.at;
}

static const tk_func *kernel_of(const tk_module *m) {
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (m->funcs.at[i]->is_kernel) {
            return m->funcs.at[i];
        }
    }
    return NULL;
}

// Kernels may be compiled by many threads at once.
static void record(uint32_t n, const tk_ptx_opts *o) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    for (uint32_t p = 0; p < n && p < 8; p++) {
        the_backend.facts[p] = o->facts[p];
    }
    snprintf(the_backend.arch, sizeof the_backend.arch, "%s", o->arch);
    pthread_mutex_unlock(&lock);
}

tk_image *fake_ptx_compile(tk_arena *arena, tk_module *m, const tk_ptx_opts *o, tk_diags *diags) {
    const tk_func *f = kernel_of(m);
    atomic_fetch_add(&the_backend.compiled, 1);
    if (the_backend.refuse) {
        tk_error(diags, m->locs.at[f->loc].span, "no-gpu-code", "the fake refuses");
        return NULL;
    }
    layout l = {.arena = arena, .i = TK_NEW(arena, tk_image)};
    add_maps(&l, f, o);
    for (uint32_t p = 0; p < f->params.n; p++) {
        add_param(&l, p, f->value.at[f->params.at[p]].type);
    }
    l.i->ngrid = f->grid ? f->grid->last->nopnd : 0;
    for (uint32_t a = 0; a < l.i->ngrid; a++) {
        add_slot(&l, TK_SLOT_GRID, a, 0, 4);
    }
    if (o->debug) {
        tk_debug_sites sites = tk_debug_sites_of(arena, f);
        l.i->ndebug = sites.list.n;
        l.i->debug = sites.list.at;
    }
    if (l.i->ndebug) {
        add_slot(&l, TK_SLOT_DEBUG, 0, 0, 8);
    }
    l.i->kernel = tk_strdup(arena, f->name);
    l.i->ptx = tk_format(arena, "// entry %s for %s", f->name, o->arch);
    l.i->ptx_size = strlen(l.i->ptx);
    if (the_backend.cubin) {
        l.i->cubin = tk_strdup(arena, "cubin");
        l.i->cubin_size = 6;
    }
    l.i->arch = o->arch;
    record(f->params.n, o);
    tk_note_add(&m->notes, "fake", "resources", m->locs.at[f->loc].span, TK_NOTE_INFO, "%s",
                the_backend.note ? the_backend.note : "made");
    l.i->demand = the_backend.demand;
    l.i->unassembled = the_backend.unassembled;
    l.i->threads = 128;
    l.i->packed = the_backend.packed ? the_backend.packed : 1;
    l.i->shared = the_backend.shared;
    l.i->nslot = l.slots.n;
    l.i->slot = l.slots.at;
    l.i->param_bytes = l.at;
    return l.i;
}

// ---- The environment

gpu_env gpu_config(const char *driver) {
    gpu_env e;
    memset(&e, 0, sizeof e);
    void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    void *symbol = dlsym(library, "fake_cuda");
    fake_cuda_state *(*get)(void);
    memcpy(&get, &symbol, sizeof get);
    e.fake = get();
    e.config = tkc_config_create();
    e.config->gpu_driver = driver;
    e.config->gpu_compile = fake_ptx_compile;
    return e;
}

void gpu_program(gpu_env *e, const char *text) {
    cr_assert_eq(tkc_context_create(e->config, &e->context), TKC_OK);
    tkc_status s =
        tkc_program_from_string(e->context, "k.tk", text, strlen(text), &e->program, &e->report);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(e->report, false));
    s = tkc_kernel_create(e->program, NULL, NULL, 0, &e->kernel, &e->report);
    cr_assert_eq(s, TKC_OK, "%s", tkc_report_text(e->report, false));
}

gpu_env gpu_open(const char *driver, const char *text) {
    gpu_env e = gpu_config(driver);
    gpu_program(&e, text);
    tkc_status s = tkc_device_open(e.context, "cuda", &e.device, &e.report);
    cr_assert_eq(s, TKC_OK, "%s", gpu_said(&e));
    return e;
}

void gpu_close(gpu_env *e) {
    tkc_report_destroy(e->report);
    tkc_device_close(e->device);
    tkc_kernel_destroy(e->kernel);
    tkc_program_destroy(e->program);
    tkc_context_destroy(e->context);
    tkc_config_destroy(e->config);
    gpu_no_leaks(e->fake);
}

void gpu_no_leaks(const fake_cuda_state *f) {
    cr_expect_eq(f->modules, 0, "%ld modules are left", f->modules);
    cr_expect_eq(f->memories, 0, "%ld blocks of memory are left", f->memories);
    cr_expect_eq(f->retains, 0, "%ld contexts are retained", f->retains);
    cr_expect_eq(f->pushed, 0, "%ld contexts stay pushed", f->pushed);
}

void gpu_clear_log(fake_cuda_state *f) {
    f->log_size = 0;
    f->log[0] = 0;
}

tkc_arg gpu_tensor(void *data, tkc_dtype t, uint32_t rank, const int64_t *dim) {
    tkc_arg a = {.kind = TKC_ARG_TENSOR};
    a.tensor = tkc_tensor_make(data, t, rank, dim);
    return a;
}

const char *gpu_said(gpu_env *e) { return e->report ? tkc_report_text(e->report, false) : ""; }

tkc_status gpu_launch(gpu_env *e, const tkc_arg *args, size_t n, void *stream) {
    tkc_launch_options o = {.size = sizeof o, .stream = stream};
    tkc_report_destroy(e->report);
    e->report = NULL;
    return tkc_launch(e->kernel, e->device, args, n, &o, &e->report);
}
