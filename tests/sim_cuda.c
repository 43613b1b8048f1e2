// SPDX-License-Identifier: Apache-2.0
// A GPU driver whose one GPU, of compute capability 9.0, is the simulator: the fake driver
// (fake_cuda.c), with what it leaves out done. Built as a libcuda.so.1 of its own, so that programs
// that know nothing of tests run on it. A kernel that does something wrong fails as on a GPU, at
// the next synchronisation, and the simulator's words go to standard error.
#include "sim/program.h"
#include "sim/sim.h"
#include "tests/fake_cuda.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct code {
    tk_guard guard;
    tk_arena arena;
    tk_sim_program *program;
} code;

static const tk_allocator plain;

static int read_module(code *c, const char *ptx) {
    tk_sim_note why;
    if (setjmp(c->guard.jump) != 0) {
        return 2; // out of memory
    }
    c->program = tk_sim_read(&c->arena, ptx, strlen(ptx), &why);
    return c->program ? 0 : 218; // invalid PTX
}

// Machine code is for GPUs.
static void *load(const void *image, int *error) {
    *error = 209; // no binary for this GPU
    if (memcmp(image, "\177ELF", 4) == 0) {
        return NULL;
    }
    code *c = calloc(1, sizeof *c);
    *error = 2;
    if (!c) {
        return NULL;
    }
    tk_arena_init(&c->arena, &plain, &c->guard);
    *error = read_module(c, image);
    if (*error) {
        tk_arena_release(&c->arena);
        free(c);
        return NULL;
    }
    return c;
}

static void unload(void *p) {
    code *c = p;
    tk_arena_release(&c->arena);
    free(c);
}

static size_t gather(void *p, const char *kernel, void **params, unsigned char *to) {
    const code *c = p;
    for (size_t i = 0; i < c->program->entries.n; i++) {
        const tk_sim_entry *e = c->program->entries.at[i];
        if (strcmp(e->name, kernel) != 0 || e->param_bytes > FAKE_PARAMS) {
            continue;
        }
        for (size_t k = 0; k < e->params.n; k++) {
            memcpy(to + e->params.at[k].offset, params[k], e->params.at[k].bytes);
        }
        return e->param_bytes;
    }
    return 0;
}

enum { REGIONS = 256 };

static void run_guarded(tk_guard *guard, tk_arena *arena, const code *c, const tk_sim_launch *l,
                        tk_sim_result *r) {
    if (setjmp(guard->jump) == 0) {
        tk_sim_run(arena, c->program, l, r);
    }
}

static void run(fake_cuda_state *f) {
    tk_guard guard;
    tk_arena arena;
    tk_sim_region region[REGIONS];
    tk_sim_launch l = {.entry = f->launch.kernel,
                       .shared = f->launch.shared,
                       .params = f->launch.params,
                       .param_bytes = f->launch.params_size,
                       .region = region};
    memcpy(l.grid, f->launch.grid, sizeof l.grid);
    memcpy(l.block, f->launch.block, sizeof l.block);
    void *at;
    size_t bytes;
    for (; l.nregion < REGIONS && fake_cuda_memory(l.nregion, &at, &bytes); l.nregion++) {
        region[l.nregion] = (tk_sim_region){(uint64_t)(uintptr_t)at, bytes, false, "memory"};
    }
    tk_sim_result r = {.ok = false, .fault = {.id = "memory", .text = "out of memory"}};
    tk_arena_init(&arena, &plain, &guard);
    run_guarded(&guard, &arena, f->launch.code, &l, &r);
    if (!r.ok) {
        fprintf(stderr, "simulated GPU: kernel '%s': [%s] %s\n", l.entry, r.fault.id, r.fault.text);
        f->pending = 719; // launch failed
    }
    tk_arena_release(&arena);
}

static void encode_guarded(tk_guard *guard, tk_arena *arena, const tk_sim_map_spec *s, void *map,
                           const char **problem) {
    if (setjmp(guard->jump) == 0) {
        *problem = tk_sim_tensor_map_encode(arena, map, s);
    }
}

static int encode(const fake_map *m, void *map) {
    tk_guard guard;
    tk_arena arena;
    tk_sim_map_spec s = {.type = (tk_sim_map_type)m->type,
                         .rank = m->rank,
                         .address = (uint64_t)(uintptr_t)m->address,
                         .interleave = (uint32_t)m->interleave,
                         .swizzle = (tk_sim_map_swizzle)m->swizzle,
                         .l2 = (uint32_t)m->l2,
                         .fill = (uint32_t)m->fill};
    memcpy(s.dim, m->dim, sizeof s.dim);
    memcpy(s.stride, m->stride, sizeof s.stride);
    memcpy(s.box, m->box, sizeof s.box);
    memcpy(s.step, m->step, sizeof s.step);
    tk_arena_init(&arena, &plain, &guard);
    const char *problem = "out of memory";
    encode_guarded(&guard, &arena, &s, map, &problem);
    if (problem) {
        fprintf(stderr, "simulated GPU: a tensor map: %s\n", problem);
    }
    tk_arena_release(&arena);
    return problem ? 1 : 0; // invalid value
}

__attribute__((constructor)) static void start(void) {
    fake_cuda_state *f = fake_cuda();
    f->devices = 1;
    f->name = "Simulated GPU";
    f->on_load = load;
    f->on_unload = unload;
    f->on_params = gather;
    f->on_launch = run;
    f->on_map = encode;
}
