// SPDX-License-Identifier: Apache-2.0
// Reports: diagnostics rendered once, so that they outlive the sources that they speak of.
#include "runtime/internal.h"

#include <string.h>

static void render_all(tkc_report *r, const tk_sources *s, const tk_diags *d) {
    tk_buf plain, colour;
    tk_buf_init(&plain, &r->arena);
    tk_diags_print(&plain, s, d, false);
    r->plain = tk_buf_text(&plain);
    tk_buf_init(&colour, &r->arena);
    tk_diags_print(&colour, s, d, true);
    r->colour = tk_buf_text(&colour);
    r->json = diags_json(&r->arena, s, d);
}

static bool render(tkc_report *r, tk_guard *guard, const tk_sources *s, const tk_diags *d) {
    static const tk_sources none; // no file has a text
    if (setjmp(guard->jump) != 0) {
        return false;
    }
    render_all(r, s ? s : &none, d);
    return r->json != NULL;
}

tkc_report *report_make(const tkc_config *c, const tk_sources *s, const tk_diags *d) {
    tkc_report *r = mem_alloc(c, sizeof *r);
    if (!r) {
        return NULL;
    }
    tk_guard guard;
    memset(&guard, 0, sizeof guard);
    tk_arena_init(&r->arena, &c->from, &guard);
    if (!render(r, &guard, s, d)) {
        tk_arena_release(&r->arena);
        mem_free(c, r);
        return NULL;
    }
    r->arena.guard = NULL;
    r->errors = d->errors;
    r->warnings = d->warnings;
    return r;
}

void tkc_report_destroy(tkc_report *r) {
    if (!r) {
        return;
    }
    tkc_config c;
    memset(&c, 0, sizeof c);
    c.from = r->arena.from;
    tk_arena_release(&r->arena);
    mem_free(&c, r);
}

size_t tkc_report_errors(const tkc_report *r) { return r ? r->errors : 0; }

size_t tkc_report_warnings(const tkc_report *r) { return r ? r->warnings : 0; }

const char *tkc_report_text(tkc_report *r, bool colour) {
    return !r ? "" : colour ? r->colour : r->plain;
}

const char *tkc_report_json(tkc_report *r) { return r ? r->json : "[]"; }
