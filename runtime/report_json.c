// SPDX-License-Identifier: Apache-2.0
// Diagnostics as JSON.
#include "runtime/json.h"

#include <stdlib.h>
#include <string.h>

json_t *json_text(tk_arena *a, const char *s) {
    json_t *j = json_string(s);
    if (j) {
        return j;
    }
    tk_buf b;
    tk_buf_init(&b, a);
    for (const char *p = s; *p; p++) {
        if ((unsigned char)*p < 0x80) {
            tk_buf_add(&b, p, 1);
        } else {
            tk_buf_fmt(&b, "\\x%02x", (unsigned char)*p);
        }
    }
    return json_string(tk_buf_text(&b));
}

void json_set(json_t *o, const char *key, json_t *value, bool *ok) {
    if (!value || json_object_set_new(o, key, value) != 0) {
        *ok = false;
    }
}

void json_place(tk_arena *a, json_t *o, const tk_sources *s, tk_span at, bool *ok) {
    const tk_source *src = tk_source_of(s, at.file);
    if (!src) {
        return;
    }
    uint32_t line, col;
    json_set(o, "file", json_text(a, src->name), ok);
    tk_line_col(src, at.begin, &line, &col);
    json_set(o, "line", json_integer(line), ok);
    json_set(o, "column", json_integer(col), ok);
    tk_line_col(src, at.end, &line, &col);
    json_set(o, "end_line", json_integer(line), ok);
    json_set(o, "end_column", json_integer(col), ok);
}

static json_t *parts_json(tk_arena *a, const tk_sources *s, const tk_diag_part *part, uint32_t n,
                          bool *ok) {
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++) {
        json_t *o = json_object();
        if (!o || json_array_append_new(list, o) != 0) {
            *ok = false;
            break;
        }
        json_place(a, o, s, part[i].span, ok);
        json_set(o, "text", json_text(a, part[i].text), ok);
    }
    return list;
}

const char *json_dumped(tk_arena *a, json_t *value, bool ok) {
    char *text = value && ok ? json_dumps(value, JSON_INDENT(2)) : NULL;
    json_decref(value);
    if (!text) {
        return NULL;
    }
    // The copy may longjmp on exhaustion, so it is sized first and the text freed in either case.
    size_t n = strlen(text);
    tk_guard guard, *outer = a->guard;
    char *copy = NULL;
    memset(&guard, 0, sizeof guard);
    a->guard = &guard;
    if (setjmp(guard.jump) == 0) {
        copy = tk_strndup(a, text, n);
    }
    a->guard = outer;
    free(text);
    return copy;
}

const char *diags_json(tk_arena *a, const tk_sources *s, const tk_diags *d) {
    bool ok = true;
    json_t *list = json_array();
    for (uint32_t i = 0; list && ok && i < d->list.n; i++) {
        const tk_diag *g = d->list.at[i];
        json_t *o = json_object();
        if (!o || json_array_append_new(list, o) != 0) {
            ok = false;
            break;
        }
        json_set(o, "severity", json_string(g->severity == TK_ERROR ? "error" : "warning"), &ok);
        json_set(o, "id", json_string(g->id), &ok);
        json_place(a, o, s, g->span, &ok);
        json_set(o, "text", json_text(a, g->text), &ok);
        json_set(o, "notes", parts_json(a, s, g->notes.at, g->notes.n, &ok), &ok);
        json_set(o, "helps", parts_json(a, s, g->helps.at, g->helps.n, &ok), &ok);
    }
    return json_dumped(a, list, ok);
}
