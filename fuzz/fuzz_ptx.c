// SPDX-License-Identifier: Apache-2.0
// Fuzzes the simulator: bytes are read as PTX; what the reader takes runs as blocks of two
// and of four warps on a small buffer, for a bounded number of instructions, under two schedules.
// The reader's memory and the run's are bounded.
#include "sim/sim.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 256 << 20 };

static void run(tk_arena *arena, const tk_sim_program *p, const char *entry, uint32_t threads,
                uint64_t seed) {
    static const unsigned sizes[] = {0, 4, 8, 16, 20, 24, 32, 40, 48, 56, 64};
    _Alignas(64) uint64_t buffer[128] = {0};
    uint64_t params[8];
    tk_sim_map_spec map = {.type = TK_SIM_MAP_U32,
                           .rank = 2,
                           .address = (uint64_t)(uintptr_t)&buffer[64],
                           .dim = {8, 8},
                           .stride = {32},
                           .box = {8, 4},
                           .step = {1, 1},
                           .swizzle = TK_SIM_MAP_SWIZZLE_32B};
    if (tk_sim_tensor_map_encode(arena, buffer, &map)) {
        __builtin_trap();
    }
    tk_sim_region region = {(uint64_t)(uintptr_t)buffer, sizeof buffer, false, "buffer"};
    for (size_t k = 0; k < 8; k++) {
        params[k] = region.begin;
    }
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        tk_sim_launch l = {.entry = entry,
                           .grid = {2, 1, 1},
                           .block = {threads, 1, 1},
                           .shared = 1024,
                           .params = params,
                           .param_bytes = sizes[k],
                           .region = &region,
                           .nregion = 1,
                           .seed = seed,
                           .limit = 2000};
        tk_sim_result r;
        tk_sim_run(arena, p, &l, &r);
        if (r.count) {
            tk_sim_counters c;
            tk_sim_sum(arena, p, entry, &r, &c);
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tk_guard guard;
    tk_arena arena;
    tk_arena_init(&arena, NULL, &guard);
    arena.limit = MEMORY;
    if (setjmp(guard.jump) == 0) {
        tk_sim_note error;
        const tk_sim_program *p = tk_sim_read(&arena, (const char *)data, size, &error);
        if (p) {
            run(&arena, p, "k", 64, 0);
            run(&arena, p, "k", 64, size);
            run(&arena, p, "k", 128, size);
        }
    } else if (guard.fail == TK_FAIL_INTERNAL) {
        __builtin_trap();
    }
    tk_arena_release(&arena);
    return 0;
}
