// SPDX-License-Identifier: Apache-2.0
// Arenas, growable arrays, growing text, interned names and the two ways to fail. See base.h.
#include "lang/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_FIRST = 4096, CHUNK_MOST = 1 << 20, ALIGN = 16 };

typedef struct tk_chunk {
    struct tk_chunk *next;
    char *at;  // the next free byte, aligned
    char *end; // one past the last byte
} tk_chunk;

void tk_fail_memory(tk_guard *g) {
    if (!g) {
        abort(); // an arena without a guard: the owner's fault, and there is nowhere to go
    }
    g->fail = TK_FAIL_MEMORY;
    g->text[0] = '\0';
    longjmp(g->jump, 1);
}

void tk_fail_internal(tk_guard *g, const char *file, int line, const char *fmt, ...) {
    if (!g) {
        abort();
    }
    g->fail = TK_FAIL_INTERNAL;
    int n = snprintf(g->text, sizeof g->text, "%s:%d: ", file, line);
    if (n > 0 && (size_t)n < sizeof g->text) {
        va_list args;
        va_start(args, fmt);
        (void)vsnprintf(g->text + n, sizeof g->text - (size_t)n, fmt, args);
        va_end(args);
    }
    longjmp(g->jump, 1);
}

// ---- Arenas -----------------------------------------------------------------------------------

void tk_arena_init(tk_arena *a, const tk_allocator *from, tk_guard *guard) {
    memset(a, 0, sizeof *a);
    if (from) {
        a->from = *from;
    }
    a->guard = guard;
}

void tk_arena_release(tk_arena *a) {
    tk_chunk *c = a->chunk;
    while (c) {
        tk_chunk *next = c->next;
        if (a->from.alloc) {
            if (a->from.release) {
                a->from.release(a->from.user, c);
            }
        } else {
            free(c);
        }
        c = next;
    }
    a->chunk = NULL;
    a->total = 0;
}

static char *align_up(char *p) {
    uintptr_t rest = (uintptr_t)p % ALIGN;
    return rest ? p + (ALIGN - rest) : p;
}

// A chunk with room for `need` bytes. One made for a single large block goes behind the newest,
// whose rest stays in use.
static tk_chunk *chunk_new(tk_arena *a, size_t need) {
    size_t usual = CHUNK_FIRST;
    while (usual < CHUNK_MOST && usual < a->total) {
        usual *= 2;
    }
    size_t head = sizeof(tk_chunk) + ALIGN;
    size_t want = need > usual / 4 ? need : usual;
    if (want > SIZE_MAX / 2 - head) {
        tk_fail_memory(a->guard);
    }
    size_t size = head + want;
    if (a->limit && (size > a->limit || a->total > a->limit - size)) {
        size = head + need;
        if (size > a->limit || a->total > a->limit - size) {
            tk_fail_memory(a->guard);
        }
    }
    tk_chunk *c = a->from.alloc ? a->from.alloc(a->from.user, size) : malloc(size);
    if (!c) {
        tk_fail_memory(a->guard);
    }
    a->total += size;
    c->at = align_up((char *)(c + 1));
    c->end = (char *)c + size;
    if (a->chunk && (size_t)(a->chunk->end - a->chunk->at) > (size_t)(c->end - c->at) - need) {
        c->next = a->chunk->next;
        a->chunk->next = c;
    } else {
        c->next = a->chunk;
        a->chunk = c;
    }
    return c;
}

void *tk_alloc(tk_arena *a, size_t size) {
    if (size > SIZE_MAX / 4) {
        tk_fail_memory(a->guard);
    }
    size_t need = size ? (size + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    tk_chunk *c = a->chunk;
    if (!c || (size_t)(c->end - c->at) < need) {
        c = chunk_new(a, need);
    }
    char *p = c->at;
    c->at = p + need;
    return memset(p, 0, need);
}

void *tk_alloc_array(tk_arena *a, size_t count, size_t size) {
    if (size && count > SIZE_MAX / 4 / size) {
        tk_fail_memory(a->guard);
    }
    return tk_alloc(a, count * size);
}

char *tk_strndup(tk_arena *a, const char *s, size_t n) {
    if (n == SIZE_MAX) {
        tk_fail_memory(a->guard);
    }
    char *p = tk_alloc(a, n + 1);
    if (n) {
        memcpy(p, s, n);
    }
    return p;
}

char *tk_strdup(tk_arena *a, const char *s) { return tk_strndup(a, s, strlen(s)); }

char *tk_vformat(tk_arena *a, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0) {
        va_end(again);
        tk_fail_internal(a->guard, __FILE__, __LINE__, "a format that cannot be printed");
    }
    char *p = tk_alloc(a, (size_t)n + 1);
    (void)vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *tk_format(tk_arena *a, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    char *p = tk_vformat(a, fmt, args);
    va_end(args);
    return p;
}

void *tk_vec_grow(tk_arena *a, void *old, uint32_t n, uint32_t *room, size_t size) {
    if (*room > UINT32_MAX / 2) {
        tk_fail_memory(a->guard);
    }
    uint32_t more = *room ? *room * 2 : 4;
    void *p = tk_alloc_array(a, more, size);
    if (n) {
        memcpy(p, old, n * size);
    }
    *room = more;
    return p;
}

// ---- Growing text -----------------------------------------------------------------------------

void tk_buf_init(tk_buf *b, tk_arena *a) {
    memset(b, 0, sizeof *b);
    b->arena = a;
}

void tk_buf_add(tk_buf *b, const char *s, size_t n) {
    if (n >= SIZE_MAX / 4 || b->n >= SIZE_MAX / 4) {
        tk_fail_memory(b->arena->guard);
    }
    if (!b->at || b->room - b->n <= n) {
        size_t room = b->room ? b->room * 2 : 64;
        while (room - b->n <= n) {
            room *= 2;
        }
        char *p = tk_alloc(b->arena, room);
        if (b->n) {
            memcpy(p, b->at, b->n);
        }
        b->at = p;
        b->room = room;
    }
    if (n) {
        memcpy(b->at + b->n, s, n);
    }
    b->n += n;
    b->at[b->n] = '\0';
}

void tk_buf_str(tk_buf *b, const char *s) { tk_buf_add(b, s, strlen(s)); }

void tk_buf_fmt(tk_buf *b, const char *fmt, ...) {
    char small[256];
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof small) {
        va_end(again);
        tk_buf_add(b, small, (size_t)n);
        return;
    }
    char *p = tk_vformat(b->arena, fmt, again);
    va_end(again);
    tk_buf_str(b, p);
}

const char *tk_buf_text(tk_buf *b) { return b->at ? b->at : ""; }

// ---- Interned names ---------------------------------------------------------------------------

static uint32_t hash_of(const char *s, size_t n) {
    uint32_t h = 2166136261u; // FNV-1a
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    }
    return h;
}

void tk_names_init(tk_names *t, tk_arena *a) {
    memset(t, 0, sizeof *t);
    t->arena = a;
}

static void names_grow(tk_names *t) {
    if (t->room > UINT32_MAX / 2) {
        tk_fail_memory(t->arena->guard);
    }
    uint32_t room = t->room ? t->room * 2 : 64;
    const char **slot = TK_NEW_ARRAY(t->arena, const char *, room);
    for (uint32_t i = 0; i < t->room; i++) {
        const char *s = t->slot[i];
        if (s) {
            uint32_t k = hash_of(s, strlen(s)) & (room - 1);
            while (slot[k]) {
                k = (k + 1) & (room - 1);
            }
            slot[k] = s;
        }
    }
    t->slot = slot;
    t->room = room;
}

const char *tk_intern(tk_names *t, const char *s, size_t n) {
    const char *nul = n ? memchr(s, '\0', n) : NULL;
    if (nul) {
        n = (size_t)(nul - s); // a name is a C string
    }
    if (t->n >= t->room / 2) {
        names_grow(t);
    }
    uint32_t k = hash_of(s, n) & (t->room - 1);
    while (t->slot[k]) {
        if (strncmp(t->slot[k], s, n) == 0 && t->slot[k][n] == '\0') {
            return t->slot[k];
        }
        k = (k + 1) & (t->room - 1);
    }
    t->slot[k] = tk_strndup(t->arena, s, n);
    t->n++;
    return t->slot[k];
}

// ---- Did you mean -----------------------------------------------------------------------------

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

// Edits (insert, delete, replace, swap of neighbours) from a to b. `row` has three rows of nb + 1.
static size_t edits(const char *a, size_t na, const char *b, size_t nb, size_t *row) {
    size_t *before = row, *last = row + nb + 1, *now = row + 2 * (nb + 1);
    for (size_t j = 0; j <= nb; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = least(d, least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d = least(d, before[j - 2] + 1);
            }
            now[j] = d;
        }
        size_t *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[nb];
}

// Of one letter each, which differ in case.
static bool other_case(const char *a, const char *b) {
    const bool letter = (*a >= 'a' && *a <= 'z') || (*a >= 'A' && *a <= 'Z');
    return letter && (*a ^ *b) == ('a' ^ 'A') && !a[1] && !b[1];
}

const char *tk_nearest(tk_arena *scratch, const char *name, const char *const *candidates,
                       size_t n) {
    enum { LONGEST = 100 };
    size_t len = strlen(name);
    if (len == 0 || len > LONGEST) {
        return NULL;
    }
    size_t cutoff = len / 3 > 1 ? len / 3 : 1;
    size_t *row = TK_NEW_ARRAY(scratch, size_t, 3 * (len + cutoff + 1));
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = strlen(candidates[i]);
        if (other > len + cutoff || other + cutoff < len) {
            continue;
        }
        size_t d = edits(name, len, candidates[i], other, row);
        // Something of the name must be left: `x` is not near `y`, but `n` is near `N`.
        const bool left = d < (len > other ? len : other) || other_case(name, candidates[i]);
        if (d > 0 && d <= cutoff && left) {
            best = candidates[i];
            cutoff = d - 1;
            if (cutoff == 0) {
                break;
            }
        }
    }
    return best;
}
