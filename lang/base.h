// SPDX-License-Identifier: Apache-2.0
// Arenas, growable arrays, strings and internal errors: the ground that everything stands on.
//
// Memory. All compile-time data lives in arenas, one per lifetime (a compile, a pass's scratch, a
// context). An arena hands out zeroed memory and is released as a whole. An allocation never
// returns NULL: when memory runs out (or a test's allocator says so) the arena longjmps to the
// recovery point that the owner of the compile set with tk_guard; the owner then reports "out of
// memory" and releases its arenas. Whatever is not in an arena between the guard and the jump must
// be reachable from the owner.
//
// Threads. Nothing here is global. One arena belongs to one thread at a time.
#ifndef TK_LANG_BASE_H
#define TK_LANG_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TK_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TK_NORETURN     __attribute__((noreturn))
#else
#define TK_PRINTF(f, a)
#define TK_NORETURN
#endif

// The two ways a compile ends early: memory ran out, or tkc itself is at fault.
typedef enum { TK_FAIL_NONE = 0, TK_FAIL_MEMORY = 1, TK_FAIL_INTERNAL = 2 } tk_fail;

// Where a failure lands. The owner does: if (setjmp(g.jump) == 0) { ... } else { g.fail, g.text }.
typedef struct tk_guard {
    jmp_buf jump;
    tk_fail fail;
    char text[256]; // for TK_FAIL_INTERNAL: file, line and what was wrong
} tk_guard;

// Where memory comes from; NULL functions mean malloc and free. Set once by the context's owner.
typedef struct tk_allocator {
    void *(*alloc)(void *user, size_t size); // may return NULL
    void (*release)(void *user, void *block);
    void *user;
} tk_allocator;

typedef struct tk_arena {
    struct tk_chunk *chunk; // newest first
    tk_allocator from;
    tk_guard *guard;
    size_t total; // bytes taken from the allocator
    size_t limit; // greatest total; 0 = none. Passing it counts as memory running out.
} tk_arena;

void tk_arena_init(tk_arena *a, const tk_allocator *from, tk_guard *guard);
void tk_arena_release(tk_arena *a); // frees everything; the arena may be used again
// Zeroed, aligned to 16 bytes. size 0 gives a valid pointer.
void *tk_alloc(tk_arena *a, size_t size);
void *tk_alloc_array(tk_arena *a, size_t count, size_t size); // overflow counts as out of memory
char *tk_strndup(tk_arena *a, const char *s, size_t n);       // 0-terminated
char *tk_strdup(tk_arena *a, const char *s);
char *tk_format(tk_arena *a, const char *fmt, ...) TK_PRINTF(2, 3);
char *tk_vformat(tk_arena *a, const char *fmt, va_list args);
#define TK_NEW(arena, type)          ((type *)tk_alloc((arena), sizeof(type)))
#define TK_NEW_ARRAY(arena, type, n) ((type *)tk_alloc_array((arena), (size_t)(n), sizeof(type)))

TK_NORETURN void tk_fail_memory(tk_guard *g);
TK_NORETURN void tk_fail_internal(tk_guard *g, const char *file, int line, const char *fmt, ...)
    TK_PRINTF(4, 5);
// An internal error: a fault of tkc's own, never of the user's input.
#define TK_ICE(arena, ...) tk_fail_internal((arena)->guard, __FILE__, __LINE__, __VA_ARGS__)
#define TK_CHECK(arena, cond)                                                                      \
    ((cond) ? (void)0 : tk_fail_internal((arena)->guard, __FILE__, __LINE__, "%s", #cond))

// Growable array in an arena: TK_VEC(tk_op *) ops; tk_vec_push(arena, &ops, op);
#define TK_VEC(type)                                                                               \
    struct {                                                                                       \
        type *at;                                                                                  \
        uint32_t n;                                                                                \
        uint32_t room;                                                                             \
    }
#define tk_vec_push(arena, v, x)                                                                   \
    (((v)->n == (v)->room                                                                          \
          ? (void)((v)->at = tk_vec_grow((arena), (v)->at, (v)->n, &(v)->room, sizeof *(v)->at))   \
          : (void)0),                                                                              \
     (v)->at[(v)->n++] = (x))
void *tk_vec_grow(tk_arena *a, void *old, uint32_t n, uint32_t *room, size_t size);

// Text that grows in an arena: what printers write to.
typedef struct tk_buf {
    tk_arena *arena;
    char *at; // 0-terminated once anything was written; NULL before
    size_t n;
    size_t room;
} tk_buf;
void tk_buf_init(tk_buf *b, tk_arena *a);
void tk_buf_add(tk_buf *b, const char *s, size_t n);
void tk_buf_str(tk_buf *b, const char *s);
void tk_buf_fmt(tk_buf *b, const char *fmt, ...) TK_PRINTF(2, 3);
const char *tk_buf_text(tk_buf *b); // never NULL

// Interned names: equal text has equal pointers, so names are compared with ==.
typedef struct tk_names {
    tk_arena *arena;
    const char **slot;
    uint32_t n, room;
} tk_names;
void tk_names_init(tk_names *t, tk_arena *a);
const char *tk_intern(tk_names *t, const char *s, size_t n);

// The nearest of n candidates to `name` by edit distance for "did you mean", or NULL where none is
// near.
const char *tk_nearest(tk_arena *scratch, const char *name, const char *const *candidates,
                       size_t n);

#endif
