// SPDX-License-Identifier: Apache-2.0
// An allocator of which one allocation fails, and that counts what is live.
#ifndef TK_TESTS_BUDGET_H
#define TK_TESTS_BUDGET_H

#include <stdlib.h>

typedef struct budget {
    long left; // allocations until one fails, only that one; negative: none does
    long live;
    long made;
} budget;

static inline void *budget_take(void *user, size_t size) {
    budget *b = user;
    if (b->left == 0) {
        b->left = -1;
        return NULL;
    }
    b->left -= b->left > 0;
    b->made++;
    b->live++;
    return malloc(size);
}

static inline void budget_give(void *user, void *block) {
    budget *b = user;
    b->live--;
    free(block);
}

#endif
