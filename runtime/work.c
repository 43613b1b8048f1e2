// SPDX-License-Identifier: Apache-2.0
// One call's work: arena, guard, diagnostics; memory of the config's allocator.
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

void *mem_alloc(const tkc_config *c, size_t size) {
    void *p =
        c->from.alloc ? c->from.alloc(c->from.user, size ? size : 1) : malloc(size ? size : 1);
    if (p) {
        memset(p, 0, size);
    }
    return p;
}

void mem_free(const tkc_config *c, void *p) {
    if (!p) {
        return;
    }
    if (c->from.release) {
        c->from.release(c->from.user, p);
    } else {
        free(p);
    }
}

bool text_copy(const tkc_config *c, const char *s, size_t n, tkc_text *out) {
    // Texts are released without a context, so they come from malloc.
    (void)c;
    char *p = malloc(n + 1);
    if (!p) {
        return false;
    }
    memcpy(p, s, n);
    p[n] = 0;
    out->at = p;
    out->size = n;
    return true;
}

void work_init(tk_work *w, const tkc_config *c) {
    memset(w, 0, sizeof *w);
    w->config = c;
    tk_arena_init(&w->arena, &c->from, &w->guard);
    tk_diags_init(&w->diags, &w->arena);
    w->diags.werror = c->werror;
}

void work_guard_arena(tk_work *w, tk_arena *a) { a->guard = &w->guard; }

tkc_status work_run(tk_work *w, void (*body)(tk_work *w, void *arg), void *arg) {
    if (setjmp(w->guard.jump) == 0) {
        body(w, arg);
        if (w->diags.errors) {
            return w->status != TKC_OK ? w->status : TKC_ERROR_SOURCE;
        }
        return w->status;
    }
    return w->guard.fail == TK_FAIL_MEMORY ? TKC_ERROR_MEMORY : TKC_ERROR_INTERNAL;
}

bool work_try(tk_work *w, bool (*body)(tk_work *w, void *arg), void *arg, bool *failed) {
    jmp_buf outer;
    memcpy(&outer, &w->guard.jump, sizeof outer);
    bool volatile ok = false;
    bool volatile jumped = true;
    if (setjmp(w->guard.jump) == 0) {
        ok = body(w, arg);
        jumped = false;
    }
    memcpy(&w->guard.jump, &outer, sizeof outer);
    *failed = jumped;
    return ok;
}

void work_fail_again(tk_work *w) { longjmp(w->guard.jump, 1); }

// A report of one message that needs no arena of the failed work.
static void report_failure(const tk_work *w, tkc_status s, tkc_report **report) {
    tk_guard guard;
    tk_arena arena;
    tk_diags d;
    memset(&guard, 0, sizeof guard);
    tk_arena_init(&arena, &w->config->from, &guard);
    if (setjmp(guard.jump) == 0) {
        tk_diags_init(&d, &arena);
        tk_span none = {0, 0, 0};
        if (s == TKC_ERROR_MEMORY) {
            tk_error(&d, none, "out-of-memory", "out of memory");
        } else {
            tk_error(&d, none, "internal", "internal error of tkc: %s", w->guard.text);
        }
        *report = report_make(w->config, NULL, &d);
    }
    tk_arena_release(&arena);
}

static bool same_diag(const tk_diag *a, const tk_diag *b) {
    return a->span.file == b->span.file && a->span.begin == b->span.begin &&
           strcmp(a->id, b->id) == 0 && strcmp(a->text, b->text) == 0;
}

static void drop_said(tk_work *w) {
    uint32_t kept = 0;
    for (uint32_t i = 0; w->said && i < w->diags.list.n; i++) {
        tk_diag *d = w->diags.list.at[i];
        bool said = false;
        for (uint32_t k = 0; k < w->said->list.n && d->severity == TK_WARNING; k++) {
            said = said || same_diag(d, w->said->list.at[k]);
        }
        if (said) {
            w->diags.warnings--;
        } else {
            w->diags.list.at[kept++] = d;
        }
    }
    if (w->said) {
        w->diags.list.n = kept;
    }
}

tkc_status work_end(tk_work *w, tkc_status s, tkc_report **report) {
    drop_said(w);
    if (report) {
        *report = NULL;
        if (s == TKC_ERROR_MEMORY || s == TKC_ERROR_INTERNAL) {
            report_failure(w, s, report);
        } else if (w->diags.list.n) {
            *report = report_make(w->config, w->sources, &w->diags);
            if (!*report) {
                s = s == TKC_OK ? TKC_ERROR_MEMORY : s;
            }
        }
    }
    tk_arena_release(&w->arena);
    return s;
}

void work_fail(tk_work *w, tkc_status s, const char *id, const char *fmt, ...) {
    tk_span none = {0, 0, 0};
    va_list args;
    va_start(args, fmt);
    const char *text = tk_vformat(&w->arena, fmt, args);
    va_end(args);
    tk_error(&w->diags, none, id, "%s", text);
    if (w->status == TKC_OK) {
        w->status = s;
    }
}
