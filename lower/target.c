// SPDX-License-Identifier: Apache-2.0
// The table of GPUs. Each row is one that LLVM 22 and ptxas 13.0 both take.
#include "lower/target.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { KB = 1024, THREADS_MAX = 1024 };

// In rising order of compute capability; of two with the same, the one with more features last.
static const tk_target targets[] = {
    {"sm_80", 80, "+ptx71", 163 * KB, THREADS_MAX, 2048, 32, false, false, false, false, 1024,
     NULL},
    {"sm_86", 86, "+ptx71", 99 * KB, THREADS_MAX, 1536, 16, false, false, false, false, 512, NULL},
    {"sm_89", 89, "+ptx78", 99 * KB, THREADS_MAX, 1536, 24, false, false, false, false, 512, NULL},
    {"sm_90", 90, "+ptx78", 227 * KB, THREADS_MAX, 2048, 32, true, false, false, true, 2048,
     "wgmma"},
    {"sm_90a", 90, "+ptx80", 227 * KB, THREADS_MAX, 2048, 32, true, true, true, true, 2048,
     "wgmma"},
    {"sm_100", 100, "+ptx86", 227 * KB, THREADS_MAX, 2048, 32, true, false, true, true, 4096,
     "tcgen05"},
    {"sm_120", 120, "+ptx87", 99 * KB, THREADS_MAX, 1536, 24, true, false, true, true, 256, NULL},
};
enum { NTARGETS = sizeof targets / sizeof *targets };

const tk_target *tk_target_find(const char *name) {
    for (size_t i = 0; i < NTARGETS; i++) {
        if (strcmp(targets[i].name, name) == 0) {
            return &targets[i];
        }
    }
    return NULL;
}

const char *tk_target_name(unsigned i) { return i < NTARGETS ? targets[i].name : NULL; }

// What ends in `a` runs on no other device than its own; the others on all later ones.
static bool only_itself(const tk_target *t) { return t->name[strlen(t->name) - 1] == 'a'; }

const tk_target *tk_target_for(unsigned major, unsigned minor) {
    const tk_target *best = NULL;
    for (size_t i = 0; i < NTARGETS; i++) {
        const tk_target *t = &targets[i];
        unsigned tmajor = t->cc / 10, tminor = t->cc % 10;
        bool same = tmajor == major && tminor == minor;
        bool older = tmajor < major || (tmajor == major && tminor <= minor);
        if (same || (older && !only_itself(t))) {
            best = t;
        }
    }
    return best;
}

enum {
    REGISTERS = 64 << 10,      // of a multiprocessor
    SHARED_OF_SYSTEM = 1 << 10 // bytes that the hardware keeps for each block
};

uint32_t tk_registers_for(uint32_t blocks, uint32_t threads) {
    return REGISTERS / (blocks * threads) & ~7U;
}

static void limit(tk_occupancy *o, uint32_t blocks, const char *by) {
    if (blocks < o->blocks) {
        o->blocks = blocks;
        o->limit = by;
    }
}

tk_occupancy tk_occupancy_of(const tk_target *t, uint32_t threads, uint32_t registers,
                             uint32_t shared) {
    tk_occupancy o = {.by_registers = UINT32_MAX, .blocks = UINT32_MAX, .limit = ""};
    if (registers) {
        o.by_registers = REGISTERS / (((registers + 7) & ~7U) * threads);
    }
    o.by_shared = (t->shared_max + SHARED_OF_SYSTEM) / (shared + SHARED_OF_SYSTEM);
    o.by_threads = t->threads_at_once / threads;
    o.by_count = t->blocks_at_once;
    limit(&o, o.by_count, "blocks");
    limit(&o, o.by_threads, "threads");
    limit(&o, o.by_shared, "shared memory");
    limit(&o, o.by_registers, "registers");
    return o;
}

// ---- GPUs by name

// The last of a compute capability is what a target means where none is named.
static const tk_gpu gpus[] = {
    {"A100", 80, 108, 2039e9, 19.5e12, 9.7e12, 312e12},
    {"A10", 86, 72, 600e9, 31.2e12, 0.49e12, 125e12},
    {"L40S", 89, 142, 864e9, 91.6e12, 1.43e12, 362e12},
    {"H100", 90, 132, 3350e9, 66.9e12, 33.5e12, 989.4e12},
    {"H200", 90, 132, 4800e9, 66.9e12, 33.5e12, 989.4e12},
    {"B200", 100, 148, 8000e9, 75e12, 37e12, 2250e12},
    {"RTX5090", 120, 170, 1792e9, 104.8e12, 1.64e12, 209.5e12},
};
enum { NGPUS = sizeof gpus / sizeof *gpus };

const char *tk_gpu_name(unsigned i) { return i < NGPUS ? gpus[i].name : NULL; }

const tk_gpu *tk_gpu_find(const char *name) {
    for (size_t i = 0; i < NGPUS; i++) {
        if (strcasecmp(gpus[i].name, name) == 0) {
            return &gpus[i];
        }
    }
    return NULL;
}

const tk_gpu *tk_gpu_of(const tk_target *t) {
    const tk_gpu *found = NULL;
    for (size_t i = 0; i < NGPUS; i++) {
        found = gpus[i].cc == t->cc ? &gpus[i] : found;
    }
    return found;
}
