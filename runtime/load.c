// SPDX-License-Identifier: Apache-2.0
// Loading: a root text and what it imports become one unit. Paths in "std/" are the library's own
// files; others are joined to the importing file's folder and come from the caller's callback or
// from disk. One path is loaded once.
#include "runtime/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SOURCE = 64 << 20, MAX_FILES = 1000 };

// Appends what is read to a growing block; the arena's failure must not leak the stream.
static char *read_stream(tk_arena *a, FILE *f, size_t *size, const char **why) {
    tk_guard guard, *outer = a->guard;
    char *volatile text = NULL;
    memset(&guard, 0, sizeof guard);
    a->guard = &guard;
    if (setjmp(guard.jump) == 0) {
        tk_buf b;
        char block[8192];
        size_t n;
        tk_buf_init(&b, a);
        errno = 0;
        while ((n = fread(block, 1, sizeof block, f)) > 0 && b.n + n <= MAX_SOURCE) {
            tk_buf_add(&b, block, n);
        }
        if (n > 0) {
            *why = "larger than 64 MB";
        } else if (ferror(f)) {
            *why = strerror(errno ? errno : EIO);
        } else {
            tk_buf_add(&b, "", 0);
            text = b.at ? b.at : tk_strdup(a, "");
            *size = b.n;
        }
    }
    a->guard = outer;
    if (guard.fail != TK_FAIL_NONE) {
        *why = NULL; // out of memory: the caller fails through its own guard
    }
    return text;
}

char *read_file(tk_arena *a, const char *path, size_t *size, const char **why) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        *why = strerror(errno);
        return NULL;
    }
    *why = NULL;
    char *text = read_stream(a, f, size, why);
    fclose(f);
    if (!text && !*why) {
        tk_fail_memory(a->guard);
    }
    return text;
}

static bool is_std(const char *path) { return strncmp(path, "std/", 4) == 0; }

const struct tk_embedded *stdlib_find(const char *path) {
    for (size_t i = 0; is_std(path) && i < tk_stdlib_count; i++) {
        if (strcmp(tk_stdlib_files[i].name, path + 4) == 0) {
            return &tk_stdlib_files[i];
        }
    }
    return NULL;
}

// Joins `path` to the folder of `from` and takes out "." and "..": "a/b/k.tk" + "../c.tk" =
// "a/c.tk".
static const char *join(tk_arena *a, const char *from, const char *path) {
    const char *slash = strrchr(from, '/');
    char *full = path[0] == '/' || !slash
                     ? tk_strdup(a, path)
                     : tk_format(a, "%.*s/%s", (int)(slash - from), from, path);
    bool absolute = full[0] == '/';
    TK_VEC(const char *) part = {0};
    for (char *p = full, *end; *p; p = end) {
        while (*p == '/') {
            p++;
        }
        for (end = p; *end && *end != '/'; end++) {
        }
        const char *one = tk_strndup(a, p, (size_t)(end - p));
        if (!*one || strcmp(one, ".") == 0) {
            continue;
        }
        bool up = strcmp(one, "..") == 0;
        if (up && part.n && strcmp(part.at[part.n - 1], "..") != 0) {
            part.n--;
        } else if (!(up && absolute)) {
            tk_vec_push(a, &part, one);
        }
    }
    tk_buf b;
    tk_buf_init(&b, a);
    for (uint32_t i = 0; i < part.n; i++) {
        tk_buf_str(&b, i || absolute ? "/" : "");
        tk_buf_str(&b, part.at[i]);
    }
    return tk_buf_text(&b);
}

struct tkc_import {
    const tkc_config *config;
    char *text;
    size_t size;
    bool given, failed;
};

void tkc_import_text(tkc_import *import, const char *text, size_t size) {
    if (!import || (!text && size)) {
        return;
    }
    mem_free(import->config, import->text);
    import->text = mem_alloc(import->config, size + 1);
    import->failed = !import->text;
    import->given = true;
    import->size = size;
    if (import->text && size) {
        memcpy(import->text, text, size);
    }
}

static uint32_t add_source(tk_work *w, tkc_program *p, const char *name, const char *text,
                           size_t size) {
    (void)w;
    return tk_sources_add(&p->sources, name, text, size);
}

static uint32_t add_from_callback(tk_work *w, tkc_program *p, const char *path, const char **why) {
    tkc_import in = {w->config, NULL, 0, false, false};
    bool found = w->config->import(w->config->import_user, path, &in);
    // Copied under a guard of its own, as the callback's block is not in an arena.
    tk_guard guard, *outer = p->arena.guard;
    volatile uint32_t source = 0;
    memset(&guard, 0, sizeof guard);
    p->arena.guard = &guard;
    if (found && in.given && !in.failed && in.size <= MAX_SOURCE && setjmp(guard.jump) == 0) {
        source = add_source(w, p, path, in.text, in.size);
    }
    p->arena.guard = outer;
    mem_free(w->config, in.text);
    if (in.failed || guard.fail != TK_FAIL_NONE) {
        tk_fail_memory(outer);
    }
    if (!source) {
        *why = !found     ? "the program's import callback does not have it"
               : in.given ? "larger than 64 MB"
                          : "the program's import callback gave no text";
    }
    return source;
}

static uint32_t load_source(tk_work *w, tkc_program *p, const char *path, const char **why) {
    if (is_std(path)) {
        const struct tk_embedded *e = stdlib_find(path);
        if (!e) {
            *why = "the library has no such file";
            return 0;
        }
        return add_source(w, p, path, e->text, e->size);
    }
    if (w->config->import) {
        return add_from_callback(w, p, path, why);
    }
    size_t size;
    char *text = read_file(&p->arena, path, &size, why);
    return text ? add_source(w, p, path, text, size) : 0;
}

typedef struct loader {
    tk_work *w;
    tkc_program *p;
    TK_VEC(uint32_t) stack;    // files being loaded, root first
    TK_VEC(const char *) path; // of each file of the unit
} loader;

static uint32_t parse_file(loader *l, const char *path, uint32_t source) {
    tkc_program *p = l->p;
    tk_unit_file f;
    memset(&f, 0, sizeof f);
    f.ast = tk_parse(&p->arena, &p->names, &p->sources, source, &l->w->diags);
    tk_vec_push(&p->arena, &p->unit.files, f);
    tk_vec_push(&l->w->arena, &l->path, path);
    return p->unit.files.n - 1;
}

static const char *cycle_text(loader *l, uint32_t from) {
    tk_buf b;
    tk_buf_init(&b, &l->w->arena);
    bool on = false;
    for (uint32_t i = 0; i < l->stack.n; i++) {
        on = on || l->stack.at[i] == from;
        if (on) {
            tk_buf_fmt(&b, "'%s' imports ", l->path.at[l->stack.at[i]]);
        }
    }
    tk_buf_fmt(&b, "'%s'", l->path.at[from]);
    return tk_buf_text(&b);
}

static void load_imports(loader *l, uint32_t file);

void stdlib_suggest(tk_work *w, tk_diag *d, const char *path) {
    const char **name = TK_NEW_ARRAY(&w->arena, const char *, tk_stdlib_count + 1);
    for (size_t i = 0; i < tk_stdlib_count; i++) {
        name[i] = tk_format(&w->arena, "std/%s", tk_stdlib_files[i].name);
    }
    const char *near = tk_nearest(&w->arena, path, name, tk_stdlib_count);
    if (near) {
        tk_help(&w->diags, d, (tk_span){0, 0, 0}, "did you mean '%s'?", near);
    }
}

static void load_import(loader *l, uint32_t file, const tk_item *item) {
    tkc_program *p = l->p;
    const char *written = item->name.name;
    const char *path = is_std(written) ? written : join(&p->arena, l->path.at[file], written);
    for (uint32_t i = 0; i < p->unit.files.n; i++) {
        if (strcmp(l->path.at[i], path) != 0) {
            continue;
        }
        for (uint32_t k = 0; k < l->stack.n; k++) {
            if (l->stack.at[k] == i) {
                tk_error(&l->w->diags, item->span, "import-cycle", "imports form a cycle: %s",
                         cycle_text(l, i));
                break;
            }
        }
        tk_import again = {item->span, i};
        tk_vec_push(&p->arena, &p->unit.files.at[file].imports, again);
        return;
    }
    const char *why = NULL;
    uint32_t source = p->unit.files.n < MAX_FILES ? load_source(l->w, p, path, &why) : 0;
    if (!source) {
        tk_diag *d = tk_error(&l->w->diags, item->span, "import-missing", "cannot import '%s': %s",
                              path, why ? why : "the program has more than 1000 files");
        stdlib_suggest(l->w, d, path);
        p->unit.files.at[file].open = true;
        return;
    }
    uint32_t i = parse_file(l, path, source);
    tk_import im = {item->span, i};
    tk_vec_push(&p->arena, &p->unit.files.at[file].imports, im);
    load_imports(l, i);
}

// Depth is bounded by TK_MAX_NESTING: a longer chain of imports is refused.
static void load_imports(loader *l, uint32_t file) {
    const tk_file *ast = l->p->unit.files.at[file].ast;
    tk_vec_push(&l->w->arena, &l->stack, file);
    for (uint32_t i = 0; i < ast->items.n; i++) {
        const tk_item *item = ast->items.at[i];
        if (item->kind == TK_ITEM_IMPORT && item->broken) {
            l->p->unit.files.at[file].open = true;
        }
        if (item->kind != TK_ITEM_IMPORT || item->broken) {
            continue;
        }
        if (l->stack.n > TK_MAX_NESTING) {
            tk_error(&l->w->diags, item->span, "import-depth", "imports nest deeper than %d files",
                     TK_MAX_NESTING);
            l->p->unit.files.at[file].open = true;
            break;
        }
        load_import(l, file, item);
    }
    l->stack.n--;
}

void load_unit(tk_work *w, tkc_program *p, const char *name, const char *text, size_t size) {
    loader l;
    memset(&l, 0, sizeof l);
    l.w = w;
    l.p = p;
    tk_sources_init(&p->sources, &p->arena);
    tk_names_init(&p->names, &p->arena);
    w->sources = &p->sources;
    p->unit.sources = &p->sources;
    p->unit.names = &p->names;
    if (size > MAX_SOURCE) {
        work_fail(w, TKC_ERROR_IO, "too-large", "'%s' is larger than 64 MB", name);
        return;
    }
    const char *path = is_std(name) ? tk_strdup(&p->arena, name) : join(&p->arena, "", name);
    uint32_t source = tk_sources_add(&p->sources, name, text, size);
    load_imports(&l, parse_file(&l, path, source));
    tk_check_unit(&p->arena, &p->unit, &w->diags);
}
