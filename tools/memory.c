// SPDX-License-Identifier: Apache-2.0
// Memory of the command: kept until its end, but for arrays that are given back.
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 64 };

// Stands before each block, padded to ALIGN.
typedef struct block {
    void *next;
} block;

static void *take(tool *t, size_t bytes) {
    void *p = NULL;
    if (bytes > SIZE_MAX - 2 * ALIGN || posix_memalign(&p, ALIGN, bytes + ALIGN) != 0) {
        return NULL;
    }
    block *b = p;
    b->next = t->blocks;
    t->blocks = b;
    return (char *)p + ALIGN;
}

void *tool_alloc(tool *t, size_t count, size_t size) {
    size_t bytes = 0;
    void *p = __builtin_mul_overflow(count, size, &bytes) ? NULL : take(t, bytes);
    if (!p) {
        fputs("tkc: error: out of memory\n", stderr);
        exit(CODE_ENVIRONMENT);
    }
    return memset(p, 0, bytes);
}

char *tool_strndup(tool *t, const char *s, size_t n) {
    char *copy = tool_alloc(t, n + 1, 1);
    memcpy(copy, s, n);
    return copy;
}

static void put_size(char *to, size_t room, size_t bytes) {
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double n = (double)bytes;
    size_t u = 0;
    while (n >= 1024 && u < 6) {
        n /= 1024;
        u++;
    }
    snprintf(to, room, "%.4g %s", n, unit[u]);
}

// Of the machine; SIZE_MAX where that is unknown.
static size_t memory_size(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t bytes = 0;
    if (pages <= 0 || page <= 0 || __builtin_mul_overflow((size_t)pages, (size_t)page, &bytes)) {
        return SIZE_MAX;
    }
    return bytes;
}

void *tool_array(tool *t, size_t bytes, const char *what) {
    size_t have = memory_size();
    char need[32], all[32];
    put_size(need, sizeof need, bytes);
    put_size(all, sizeof all, have);
    // Systems hand out more than there is, and then kill whoever uses it.
    if (bytes > have || t->array_bytes > have - bytes) {
        tool_error(t, CODE_ENVIRONMENT, NULL, "out of memory: %s takes %s, this machine has %s%s",
                   what, need, all, t->array_bytes ? " for all arrays together" : "");
        return NULL;
    }
    void *p = take(t, bytes ? bytes : 1);
    if (!p) {
        tool_error(t, CODE_ENVIRONMENT, NULL, "out of memory: %s takes %s", what, need);
        return NULL;
    }
    t->array_bytes += bytes;
    return p;
}

void tool_array_free(tool *t, void *p, size_t bytes) {
    void **at = &t->blocks;
    while (p && *at && (char *)*at + ALIGN != (char *)p) {
        at = &((block *)*at)->next;
    }
    if (p && *at) {
        block *b = *at;
        *at = b->next;
        t->array_bytes -= bytes;
        free(b);
    }
}

void tool_release(tool *t) {
    block *b = t->blocks;
    while (b) {
        block *next = b->next;
        free(b);
        b = next;
    }
    t->blocks = NULL;
}
