// SPDX-License-Identifier: Apache-2.0
// Sources and the collecting of diagnostics; diag_text.c shows them. See diag.h.
#include "lang/diag.h"

#include <string.h>

enum { LIMIT_DEFAULT = 100 };

void tk_sources_init(tk_sources *s, tk_arena *a) {
    memset(s, 0, sizeof *s);
    s->arena = a;
}

uint32_t tk_sources_add(tk_sources *s, const char *name, const char *text, size_t size) {
    TK_CHECK(s->arena, size < (size_t)1 << 31);
    tk_source f = {.name = tk_strdup(s->arena, name),
                   .text = tk_strndup(s->arena, text, size),
                   .size = (uint32_t)size,
                   .lines = 1};
    for (size_t i = 0; i < size; i++) {
        f.lines += text[i] == '\n';
    }
    f.line = TK_NEW_ARRAY(s->arena, uint32_t, f.lines);
    uint32_t n = 1;
    for (uint32_t i = 0; i < f.size; i++) {
        if (text[i] == '\n') {
            f.line[n++] = i + 1;
        }
    }
    tk_vec_push(s->arena, &s->files, f);
    return s->files.n;
}

const tk_source *tk_source_of(const tk_sources *s, uint32_t file) {
    return file == 0 || file > s->files.n ? NULL : &s->files.at[file - 1];
}

void tk_line_col(const tk_source *s, uint32_t offset, uint32_t *line, uint32_t *col) {
    if (offset > s->size) {
        offset = s->size;
    }
    uint32_t low = 0, high = s->lines; // line[low] <= offset < line[high]
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (s->line[mid] <= offset) {
            low = mid;
        } else {
            high = mid;
        }
    }
    *line = low + 1;
    *col = offset - s->line[low] + 1;
}

void tk_diags_init(tk_diags *d, tk_arena *a) {
    memset(d, 0, sizeof *d);
    d->arena = a;
}

static bool is_known(const tk_diags *d, const tk_diag *x) {
    for (uint32_t i = 0; i < d->list.n; i++) {
        const tk_diag *y = d->list.at[i];
        if (x->span.begin == y->span.begin && x->span.end == y->span.end &&
            x->span.file == y->span.file && strcmp(x->id, y->id) == 0 &&
            strcmp(x->text, y->text) == 0) {
            return true;
        }
    }
    return false;
}

// What is not kept (known already, or past the limit, which holds for warnings as well) is still a
// diagnostic of its own, to which the caller may add notes.
static tk_diag *add(tk_diags *d, tk_severity severity, tk_span at, const char *id, const char *fmt,
                    va_list args) {
    tk_diag *x = TK_NEW(d->arena, tk_diag);
    x->severity = severity == TK_WARNING && !d->werror ? TK_WARNING : TK_ERROR;
    x->id = id;
    x->span = at;
    x->text = tk_vformat(d->arena, fmt, args);
    if (is_known(d, x)) {
        return x;
    }
    uint32_t *count = x->severity == TK_ERROR ? &d->errors : &d->warnings;
    if (*count < (d->limit ? d->limit : LIMIT_DEFAULT)) {
        tk_vec_push(d->arena, &d->list, x);
    }
    *count += *count < UINT32_MAX;
    return x;
}

tk_diag *tk_error(tk_diags *d, tk_span at, const char *id, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    tk_diag *x = add(d, TK_ERROR, at, id, fmt, args);
    va_end(args);
    return x;
}

tk_diag *tk_warning(tk_diags *d, tk_span at, const char *id, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    tk_diag *x = add(d, TK_WARNING, at, id, fmt, args);
    va_end(args);
    return x;
}

void tk_note(tk_diags *d, tk_diag *to, tk_span at, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    tk_diag_part part = {.span = at, .text = tk_vformat(d->arena, fmt, args)};
    va_end(args);
    tk_vec_push(d->arena, &to->notes, part);
}

void tk_help(tk_diags *d, tk_diag *to, tk_span at, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    tk_diag_part part = {.span = at, .text = tk_vformat(d->arena, fmt, args)};
    va_end(args);
    tk_vec_push(d->arena, &to->helps, part);
}
