// SPDX-License-Identifier: Apache-2.0
// The table of GPUs. Each row is one that LLVM 22 and ptxas 13.0 both take.
#include "lower/target.h"

#include <stddef.h>
#include <string.h>

enum { KB = 1024, THREADS_MAX = 1024 };

// In rising order of compute capability; of two with the same, the one with more features last.
static const tk_target targets[] = {
    {"sm_80", 80, "+ptx70", 163 * KB, THREADS_MAX, 2048, 32, false},
    {"sm_86", 86, "+ptx71", 99 * KB, THREADS_MAX, 1536, 16, false},
    {"sm_89", 89, "+ptx78", 99 * KB, THREADS_MAX, 1536, 24, false},
    {"sm_90", 90, "+ptx78", 227 * KB, THREADS_MAX, 2048, 32, true},
    {"sm_90a", 90, "+ptx80", 227 * KB, THREADS_MAX, 2048, 32, true},
    {"sm_100", 100, "+ptx86", 227 * KB, THREADS_MAX, 2048, 32, true},
    {"sm_120", 120, "+ptx87", 99 * KB, THREADS_MAX, 1536, 24, true},
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
