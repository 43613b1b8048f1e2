// SPDX-License-Identifier: Apache-2.0
// The pipeline: the one table of passes, and the driver that runs, verifies and times them.
#include "ir/pass.h"

#include <string.h>
#include <time.h>

// PASS(name, what it does, why it stands here): its entry point is tk_pass_<name>, alone in
// ir/pass_<name>.c.
#define PIPELINE(PASS)                                                                             \
    PASS(inline, "puts the bodies of called functions in place of the calls",                      \
         "first: a call hides its arguments from all passes that follow")                          \
    PASS(fold, "replaces what is known at compile time and what an identity makes simpler",        \
         "after inline, where constants given as arguments meet their uses; before all else, as "  \
         "whole branches go")                                                                      \
    PASS(cse, "computes equal expressions once", "after fold, which makes more of them equal")     \
    PASS(dce, "removes what nothing uses",                                                         \
         "before licm, so that nothing dead is moved and reported")                                \
    PASS(licm, "moves out of loops what is the same in each iteration",                            \
         "after cse, so that each expression moves once")                                          \
    PASS(cse, "computes equal expressions once",                                                   \
         "again: what came out of several loops now stands side by side")                          \
    PASS(dce, "removes what nothing uses", "last: the others only disconnect")

#define DECLARE(NAME, WHAT, WHY) void tk_pass_##NAME(tk_pass_ctx *c);
#define ROW(NAME, WHAT, WHY)     {#NAME, tk_pass_##NAME, WHAT, WHY, TK_TAKES_NOT_GIVEN},
PIPELINE(DECLARE)
static const tk_pass table[] = {PIPELINE(ROW)};
enum { ROWS = sizeof table / sizeof table[0] };

const tk_pass *tk_passes(size_t *n) {
    *n = ROWS;
    return table;
}

const tk_pass *tk_pass_find_in(const tk_pass *rows, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

const tk_pass *tk_pass_find(const char *name) { return tk_pass_find_in(table, ROWS, name); }

// ---- One step, under a guard of its own ---------------------------------------------------------

// A failure in the middle of a pass must not leak the scratch arena: all arenas in use jump to the
// step's guard, which releases the scratch and passes the failure on. It lives in the driver's
// frame, which a jump leaves alone.
typedef struct step {
    tk_module *m;
    tk_diags *diags;
    tk_arena scratch;
    tk_guard guard;
    tk_guard *outer[3]; // of the module, the diagnostics and the notes
    bool debug;
    const struct tk_target *target;
    const unsigned *facts;
} step;

static void guards_in(step *s) {
    s->outer[0] = s->m->arena->guard;
    s->m->arena->guard = &s->guard;
    s->outer[1] = s->diags->arena->guard;
    s->diags->arena->guard = &s->guard;
    s->outer[2] = s->m->notes.arena->guard;
    s->m->notes.arena->guard = &s->guard;
}

static void guards_out(step *s) { // backwards: they may be one arena
    s->m->notes.arena->guard = s->outer[2];
    s->diags->arena->guard = s->outer[1];
    s->m->arena->guard = s->outer[0];
}

TK_NORETURN static void pass_on(step *s) {
    guards_out(s);
    tk_arena_release(&s->scratch);
    tk_guard *outer = s->m->arena->guard;
    if (!outer || s->guard.fail == TK_FAIL_MEMORY) {
        tk_fail_memory(outer);
    }
    outer->fail = s->guard.fail;
    memcpy(outer->text, s->guard.text, sizeof outer->text);
    longjmp(outer->jump, 1);
}

static void run_and_verify(step *s, const tk_pass *p) {
    if (p) {
        tk_pass_ctx c = {s->m, &s->scratch, s->diags, s->debug, s->target, s->facts};
        p->run(&c);
    }
    const char *why;
    if (s->diags->errors == 0 && !tk_ir_verify(&s->scratch, s->m, &why)) {
        TK_ICE(s->m->arena, "after %s%s: %s", p ? "pass " : "build", p ? p->name : "", why);
    }
}

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// p NULL: only verifies. The seconds are those of the pass and the verifier.
static double run_step(step *s, const tk_allocator *from, const tk_pass *p) {
    double start = now();
    memset(&s->guard, 0, sizeof s->guard);
    tk_arena_init(&s->scratch, from, &s->guard);
    guards_in(s);
    if (setjmp(s->guard.jump) != 0) {
        pass_on(s);
    }
    run_and_verify(s, p);
    guards_out(s);
    tk_arena_release(&s->scratch);
    return now() - start;
}

static bool applies(const step *s, const tk_pass *p) {
    static const char *const want[] = {
        [TK_TAKES_TILE] = "of level 'tile'",
        [TK_TAKES_NOT_GIVEN] = "whose shared memory is not given out",
        [TK_TAKES_LAID] = "of level 'laid'",
        [TK_TAKES_STAGED] = "of level 'staged'",
    };
    const tk_module *m = s->m;
    const bool good = p->takes == TK_TAKES_TILE     ? m->level == TK_LEVEL_TILE
                      : p->takes == TK_TAKES_LAID   ? m->level == TK_LEVEL_LAID
                      : p->takes == TK_TAKES_STAGED ? m->level == TK_LEVEL_STAGED
                                                    : m->level != TK_LEVEL_STAGED && !m->shared;
    if (!good) {
        tk_error(s->diags, (tk_span){0, 0, 0}, "pass-needs", "pass '%s' takes a module %s", p->name,
                 want[p->takes]);
    }
    return good;
}

// ---- The driver ---------------------------------------------------------------------------------

bool tk_pipeline_run(tk_module *m, const tk_allocator *from, tk_diags *diags,
                     const tk_pipeline_opts *o) {
    step s = {.m = m, .diags = diags, .debug = o->debug, .target = o->target, .facts = o->facts};
    if (diags->errors > 0) {
        return false;
    }
    (void)run_step(&s, from, NULL);
    if (!o->only && o->after && strcmp(o->after, "build") == 0) {
        return true;
    }
    const tk_pass *rows = o->table ? o->table : table;
    const size_t n = o->table ? o->rows : ROWS;
    const tk_pass *only = o->only ? tk_pass_find_in(rows, n, o->only) : NULL;
    TK_CHECK(m->arena, !o->only || only);
    TK_CHECK(m->arena, o->only || !o->after || tk_pass_find_in(rows, n, o->after));
    for (size_t i = 0; i < n; i++) {
        const tk_pass *p = &rows[i];
        if (only && p != only) {
            continue;
        }
        if (!applies(&s, p)) {
            return false;
        }
        double seconds = run_step(&s, from, p);
        if (diags->errors > 0) {
            return false;
        }
        if (o->done) {
            o->done(o->user, p, m, seconds);
        }
        if (!only && o->after && strcmp(o->after, p->name) == 0) {
            break; // the first row of that name
        }
    }
    return true;
}
