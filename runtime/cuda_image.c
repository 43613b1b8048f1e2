// SPDX-License-Identifier: Apache-2.0
// From a module to an image: the back end, with the disk cache before it.
//
// An entry of the cache holds an image in this build's own byte order and layout; its key includes
// the build, so nothing else ever reads it.
#include "ptx/assemble.h"
#include "runtime/cuda_driver.h"

#include <string.h>

// ---- An image as bytes

// The fixed part: sizes of the parts that follow, and numbers.
typedef struct head {
    uint32_t kernel, arch; // lengths
    uint32_t threads, shared, ngrid, packed, persistent, cluster, nslot, param_bytes, nmap, ndebug;
    uint32_t has_cubin;
    uint64_t ptx, cubin, notes; // sizes
    tk_image_report report;
    tk_load_demand demand;
} head;

// Places are those of the sources, which the key holds.
static void write_site(tk_buf *b, const tk_debug_site *s) {
    const uint32_t length = (uint32_t)strlen(s->text);
    uint32_t word[5] = {(uint32_t)s->kind, length, s->nvalue, s->bytes, s->nplace};
    tk_buf_add(b, (const char *)word, sizeof word);
    tk_buf_add(b, s->text, length);
    if (s->nvalue) {
        tk_buf_add(b, (const char *)s->value, s->nvalue * sizeof *s->value);
    }
    if (s->nplace) {
        tk_buf_add(b, (const char *)s->place, s->nplace * sizeof *s->place);
    }
}

static void write_image(tk_buf *b, const tk_image *i, const char *notes) {
    head h;
    memset(&h, 0, sizeof h);
    h.kernel = (uint32_t)strlen(i->kernel);
    h.arch = (uint32_t)strlen(i->arch);
    h.threads = i->threads;
    h.shared = i->shared;
    h.ngrid = i->ngrid;
    h.packed = i->packed;
    h.persistent = i->persistent;
    h.cluster = i->cluster;
    h.nslot = i->nslot;
    h.param_bytes = i->param_bytes;
    h.nmap = i->nmap;
    h.ndebug = i->ndebug;
    h.has_cubin = i->cubin != NULL;
    h.ptx = i->ptx ? i->ptx_size : 0;
    h.cubin = i->cubin ? i->cubin_size : 0;
    h.notes = strlen(notes);
    h.report = i->report;
    h.demand = i->demand;
    tk_buf_add(b, (const char *)&h, sizeof h);
    for (uint32_t k = 0; k < i->nslot; k++) {
        const tk_param_slot *s = &i->slot[k];
        uint32_t word[5] = {(uint32_t)s->kind, s->param, s->axis, s->offset, s->size};
        tk_buf_add(b, (const char *)word, sizeof word);
    }
    if (h.nmap) {
        tk_buf_add(b, (const char *)i->map, h.nmap * sizeof *i->map);
    }
    for (uint32_t k = 0; k < i->ndebug; k++) {
        write_site(b, &i->debug[k]);
    }
    tk_buf_add(b, i->kernel, h.kernel);
    tk_buf_add(b, i->arch, h.arch);
    if (h.ptx) {
        tk_buf_add(b, i->ptx, h.ptx);
    }
    if (h.cubin) {
        tk_buf_add(b, i->cubin, h.cubin);
    }
    tk_buf_add(b, notes, (size_t)h.notes);
}

typedef struct reader {
    const char *at;
    size_t left;
    bool bad;
} reader;

static const char *take(reader *r, uint64_t n) {
    if (n > r->left) {
        r->bad = true;
        return NULL;
    }
    const char *p = r->at;
    r->at += n;
    r->left -= (size_t)n;
    return p;
}

static const char *take_text(reader *r, tk_arena *a, uint64_t n) {
    const char *p = take(r, n);
    return p ? tk_strndup(a, p, (size_t)n) : NULL;
}

static bool take_slots(reader *r, tk_arena *a, tk_image *i) {
    const char *words = take(r, (uint64_t)i->nslot * 5 * sizeof(uint32_t));
    if (!words) {
        return false;
    }
    i->slot = TK_NEW_ARRAY(a, tk_param_slot, i->nslot + 1);
    for (uint32_t k = 0; k < i->nslot; k++) {
        uint32_t word[5];
        memcpy(word, words + k * sizeof word, sizeof word);
        i->slot[k] = (tk_param_slot){(tk_slot_kind)word[0], word[1], word[2], word[3], word[4]};
    }
    return true;
}

static bool take_maps(reader *r, tk_arena *a, tk_image *i) {
    const char *maps = take(r, (uint64_t)i->nmap * sizeof *i->map);
    if (!maps) {
        return false;
    }
    i->map = TK_NEW_ARRAY(a, tk_map_spec, i->nmap + 1);
    memcpy(i->map, maps, i->nmap * sizeof *i->map);
    return true;
}

static bool take_site(reader *r, tk_arena *a, tk_debug_site *s) {
    uint32_t word[5];
    const char *p = take(r, sizeof word);
    if (!p) {
        return false;
    }
    memcpy(word, p, sizeof word);
    s->kind = (tk_debug_kind)word[0];
    s->bytes = word[3];
    s->text = take_text(r, a, word[1]);
    const char *value = take(r, (uint64_t)word[2] * sizeof *s->value);
    const char *place = take(r, (uint64_t)word[4] * sizeof *s->place);
    if (!s->text || !value || !place) {
        return false;
    }
    s->nvalue = word[2];
    s->nplace = word[4];
    s->value = TK_NEW_ARRAY(a, tk_debug_value, s->nvalue + 1);
    s->place = TK_NEW_ARRAY(a, tk_span, s->nplace + 1);
    memcpy(s->value, value, s->nvalue * sizeof *s->value);
    memcpy(s->place, place, s->nplace * sizeof *s->place);
    return true;
}

static bool take_sites(reader *r, tk_arena *a, tk_image *i) {
    if (i->ndebug > r->left) { // a site is longer than a byte
        return false;
    }
    i->debug = TK_NEW_ARRAY(a, tk_debug_site, i->ndebug + 1);
    bool ok = true;
    for (uint32_t k = 0; k < i->ndebug && ok; k++) {
        ok = take_site(r, a, &i->debug[k]);
    }
    return ok;
}

static const tk_image *read_image(tk_arena *a, const void *data, size_t size, const char **notes) {
    reader r = {data, size, false};
    head h;
    const char *p = take(&r, sizeof h);
    if (!p) {
        return NULL;
    }
    memcpy(&h, p, sizeof h);
    tk_image *i = TK_NEW(a, tk_image);
    i->threads = h.threads;
    i->shared = h.shared;
    i->ngrid = h.ngrid;
    i->packed = h.packed;
    i->persistent = h.persistent != 0;
    i->cluster = h.cluster;
    i->nslot = h.nslot;
    i->param_bytes = h.param_bytes;
    i->report = h.report;
    i->demand = h.demand;
    i->nmap = h.nmap;
    i->ndebug = h.ndebug;
    if (!take_slots(&r, a, i) || !take_maps(&r, a, i) || !take_sites(&r, a, i)) {
        return NULL;
    }
    i->kernel = take_text(&r, a, h.kernel);
    i->arch = take_text(&r, a, h.arch);
    i->ptx = h.ptx ? take_text(&r, a, h.ptx) : NULL;
    i->ptx_size = (size_t)h.ptx;
    p = take(&r, h.cubin);
    if (h.has_cubin && p) {
        void *copy = tk_alloc(a, (size_t)h.cubin); // aligned, as the driver expects
        memcpy(copy, p, (size_t)h.cubin);
        i->cubin = copy;
        i->cubin_size = (size_t)h.cubin;
    }
    *notes = take_text(&r, a, h.notes);
    return r.bad || r.left || (!i->ptx && !i->cubin) ? NULL : i;
}

// ---- What the back end and the driver agreed on

// Numbers that a slot's `param` may have, and the bytes that it has; 0: a scalar's.
static void slot_limits(const tk_image *i, uint32_t n, tk_slot_kind kind, uint32_t *most,
                        uint32_t *size) {
    *most = n;
    *size = 4;
    switch (kind) {
    case TK_SLOT_ADDRESS:
    case TK_SLOT_STRIDE:
        *size = 8;
        return;
    case TK_SLOT_SIZE:
        return;
    case TK_SLOT_SCALAR:
        *size = 0;
        return;
    case TK_SLOT_GRID:
        *most = i->ngrid;
        return;
    case TK_SLOT_DEBUG:
        *most = i->ndebug ? 1 : 0;
        *size = 8;
        return;
    case TK_SLOT_MAP:
        *most = i->nmap;
        *size = TK_MAP_BYTES;
        return;
    }
    *most = 0;
}

// A slot that points nowhere would be our own fault, and silent.
static void check_image(tk_work *w, const tk_image *i, uint32_t n) {
    TK_CHECK(&w->arena,
             i->kernel && i->arch && (i->ptx || i->cubin) && i->threads > 0 && i->packed > 0);
    TK_CHECK(&w->arena, i->ngrid <= TK_MAX_GRID);
    for (uint32_t k = 0; k < i->nslot; k++) {
        const tk_param_slot *s = &i->slot[k];
        uint32_t most, size;
        slot_limits(i, n, s->kind, &most, &size);
        TK_CHECK(&w->arena, s->offset <= i->param_bytes && s->size <= i->param_bytes - s->offset);
        TK_CHECK(&w->arena, s->param < most && s->axis < TKC_MAX_RANK);
        TK_CHECK(&w->arena, size ? s->size == size : s->size >= 1 && s->size <= 8);
        TK_CHECK(&w->arena, s->kind != TK_SLOT_MAP || s->offset % TK_MAP_ALIGN == 0);
    }
    for (uint32_t k = 0; k < i->nmap; k++) {
        TK_CHECK(&w->arena,
                 i->map[k].param < n && i->map[k].rank >= 1 && i->map[k].rank <= TK_MAP_RANK);
    }
}

// The compiler and the assembler. The build's own identity is added by the cache.
static const char *tools(tk_work *w) {
    char assembler[TK_ASSEMBLER_ROOM];
    unsigned llvm[3] = {0, 0, 0};
#ifdef TKC_HAVE_LLVM
    tk_llvm_running(llvm);
#endif
    // An image made where no assembler was must not stay when one comes.
    tk_assembler_identity(assembler);
    return tk_format(&w->arena, "LLVM %u.%u.%u, assembler %s", llvm[0], llvm[1], llvm[2],
                     assembler);
}

typedef struct key_parts {
    TK_VEC(const char *) at;
    TK_VEC(size_t) size;
} key_parts;

static void add_part(tk_work *w, key_parts *k, const char *at, size_t size) {
    tk_vec_push(&w->arena, &k->at, at);
    tk_vec_push(&w->arena, &k->size, size);
}

static void add_text(tk_work *w, key_parts *k, const char *text) {
    add_part(w, k, text, strlen(text));
}

// What is compiled, and the sources: places in them are in the code, in notes and in messages.
static bool make_key(tk_work *w, const tk_module *m, uint32_t n, const tk_ptx_opts *o,
                     cache_key *key) {
    if (!w->config->cache) {
        return false;
    }
    key_parts k;
    memset(&k, 0, sizeof k);
    tk_buf ir, fact;
    tk_buf_init(&ir, &w->arena);
    tk_buf_init(&fact, &w->arena);
    tk_ir_print(&ir, m, true);
    for (uint32_t i = 0; i < n; i++) {
        tk_buf_fmt(&fact, "%x,", o->facts[i]);
    }
    add_text(w, &k, tk_buf_text(&ir));
    add_text(w, &k, tk_buf_text(&fact));
    add_text(w, &k, o->arch);
    add_text(w, &k, o->debug ? "debug" : "");
    add_text(w, &k, o->no_cubin ? "ptx" : "");
    add_text(w, &k, tools(w));
    for (uint32_t i = 0; m->sources && i < m->sources->files.n; i++) {
        const tk_source *s = &m->sources->files.at[i];
        add_text(w, &k, s->name);
        add_part(w, &k, s->text, s->size);
    }
    return cache_key_make(w->config, k.at.at, k.size.at, k.at.n, key);
}

static const char *notes_of(tk_arena *a, const tk_module *m) {
    tk_buf b;
    tk_buf_init(&b, a);
    tk_notes_print(&b, m->sources, &m->notes);
    return tk_buf_text(&b);
}

// An assembler that says that all is well and leaves behind what it should not is not to be worked
// around in silence.
tk_image *gpu_image(tk_work *w, tk_arena *arena, tk_module *m, const tk_ptx_opts *o) {
    tk_image *i = gpu_backend(w->config)(arena, m, o, &w->diags);
    if (i && i->garbled) {
        tk_span none = {0, 0, 0};
        tk_diag *d = tk_error(&w->diags, none, "assembler-output",
                              "the assembler made no machine code for %s: %s", i->arch, i->garbled);
        tk_help(&w->diags, d, none,
                "TKC_PTXAS may name another; set and empty, none is used and the driver assembles");
        w->status = TKC_ERROR_DEVICE;
        return NULL;
    }
    return i;
}

const tk_image *gpu_compile(tk_work *w, tk_arena *arena, tk_module *m, uint32_t n,
                            const tk_ptx_opts *o, const char **notes) {
    cache_key key;
    bool cached = make_key(w, m, n, o, &key);
    const void *data;
    size_t size;
    if (cached && cache_get(w->config, &key, &w->arena, &data, &size)) {
        const tk_image *i = read_image(arena, data, size, notes);
        if (i) {
            check_image(w, i, n);
            return i;
        }
    }
    uint32_t warnings = w->diags.warnings;
    const tk_image *i = gpu_image(w, arena, m, o);
    if (!i || w->diags.errors) {
        TK_CHECK(&w->arena, w->diags.errors);
        return NULL;
    }
    check_image(w, i, n);
    *notes = notes_of(arena, m);
    // Warnings would be said only once.
    if (cached && w->diags.warnings == warnings && !i->unassembled) {
        tk_buf b;
        tk_buf_init(&b, &w->arena);
        write_image(&b, i, *notes);
        cache_put(w->config, &key, b.at, b.n);
    }
    return i;
}
