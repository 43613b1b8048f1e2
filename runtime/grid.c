// SPDX-License-Identifier: Apache-2.0
// How many programs a launch has: the grid region evaluated on the host.
#include "runtime/internal.h"

enum { FRAME_ALIGN = 64 };

void *frame_alloc(tk_work *w, const tk_plan *plan) {
    char *p = tk_alloc(&w->arena, tk_plan_frame_size(plan) + FRAME_ALIGN);
    return p + (FRAME_ALIGN - (uintptr_t)p % FRAME_ALIGN) % FRAME_ALIGN;
}

// A cluster is of programs next to each other along axis 0.
static bool in_clusters(tk_work *w, const tk_kernel_info *info, const tk_module *m,
                        const tk_exec_env *env) {
    const int64_t n = m->attrs.cluster, count = env->ngrid ? env->grid[0] : 1;
    if (n > 1 && count % n != 0) {
        work_fail(w, TKC_ERROR_LAUNCH, "grid-not-in-clusters",
                  "grid axis '%s' has %lld programs, which are not in clusters of %lld",
                  info->ngrid ? info->grid[0] : "?", (long long)count, (long long)n);
        return false;
    }
    return true;
}

bool grid_counts(tk_work *w, const tk_kernel_info *info, const tk_module *m, const tk_plan *plan,
                 tk_exec_env *env, int64_t *total) {
    tk_frame *frame = tk_frame_make(plan, frame_alloc(w, plan));
    env->ngrid = tk_plan_grid_axes(plan);
    tk_exec_grid(plan, frame, env, env->grid);
    *total = 1;
    for (uint32_t a = 0; a < env->ngrid; a++) {
        const char *name = a < info->ngrid ? info->grid[a] : "?";
        if (env->grid[a] < 0) {
            work_fail(w, TKC_ERROR_LAUNCH, "grid-negative", "grid axis '%s' has %lld programs",
                      name, (long long)env->grid[a]);
            return false;
        }
    }
    for (uint32_t a = 0; a < env->ngrid; a++) {
        *total = env->grid[a] == 0 ? 0 : *total;
    }
    for (uint32_t a = 0; a < env->ngrid && *total; a++) {
        if (__builtin_mul_overflow(*total, env->grid[a], total)) {
            work_fail(w, TKC_ERROR_LAUNCH, "grid-too-large",
                      "the grid has more than 2^63 - 1 programs");
            return false;
        }
    }
    return in_clusters(w, info, m, env);
}
