// SPDX-License-Identifier: Apache-2.0
// What the compiler made of a kernel, from its notes alone: sorted by place, with the least time of
// a launch.
#include "lower/cost.h"
#include "lower/lower.h"
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct explain_call {
    tkc_kernel *kernel;
    const tkc_explain_options *options;
    const tkc_arg *args;
    size_t nargs;
    const tkc_size *sizes;
    size_t nsizes;
    tkc_text *out;
} explain_call;

const char *tkc_explain_gpu(size_t i) { return i < UINT32_MAX ? tk_gpu_name((unsigned)i) : NULL; }

double explain_number(const tk_note_rec *r, const char *name) {
    const double *n = tk_note_number_of(r, name);
    return n ? *n : 0;
}

// ---- What is compiled ---------------------------------------------------------------------------

static const tk_gpu *find_gpu(tk_work *w, const char *name) {
    const tk_gpu *gpu = tk_gpu_find(name);
    if (!gpu) {
        tk_buf all;
        tk_buf_init(&all, &w->arena);
        for (unsigned i = 0; tk_gpu_name(i); i++) {
            tk_buf_fmt(&all, "%s%s", i ? ", " : "", tk_gpu_name(i));
        }
        work_fail(w, TKC_ERROR_ARGUMENT, "unknown-gpu", "there is no GPU '%s'; there are: %s", name,
                  tk_buf_text(&all));
    }
    return gpu;
}

// Code whose target ends in a letter runs on its compute capability alone.
static bool runs_on(const tk_target *t, const tk_gpu *gpu) {
    bool alone = t->name[strlen(t->name) - 1] == 'a';
    return alone ? t->cc == gpu->cc : t->cc <= gpu->cc;
}

// The target and the GPU, of which one may follow from the other.
static bool find_both(tk_work *w, const tkc_explain_options *o, explained *x) {
    tk_span none = {0, 0, 0};
    if ((o->arch && !target_known(w, o->arch)) ||
        (o->gpu && (x->gpu = find_gpu(w, o->gpu)) == NULL)) {
        return false;
    }
    x->target = o->arch ? tk_target_find(o->arch) : tk_target_for(x->gpu->cc / 10, x->gpu->cc % 10);
    x->gpu = x->gpu ? x->gpu : tk_gpu_of(x->target);
    if (!runs_on(x->target, x->gpu)) {
        tk_warning(&w->diags, none, "other-gpu",
                   "%s does not run code for %s: the least time is that of no machine",
                   x->gpu->name, x->target->name);
    }
    return true;
}

static tk_func *kernel_of(const tk_module *m) {
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (m->funcs.at[i]->is_kernel) {
            return m->funcs.at[i];
        }
    }
    return NULL;
}

// What is promised of a tensor: what a launch finds where its size is known.
static tk_tensor_facts promised(const tkc_explain_options *o, const tk_type *t) {
    tkc_tensor x = {.dtype = (tkc_dtype)t->dtype, .rank = t->rank};
    bool known = t->rank <= TKC_MAX_RANK;
    for (uint32_t d = 0; known && d < t->rank; d++) {
        x.dim[d] = t->dim[d];
        known = t->dim[d] >= 0;
    }
    if (known) {
        x = tkc_tensor_make(NULL, x.dtype, x.rank, x.dim);
        return tensor_facts(&x);
    }
    const bool map = t->rank >= 1 && t->rank <= TK_MAP_RANK;
    return FACTS_PROMISED(o) & ~(map ? 0 : (tk_tensor_facts)TK_FACT_MAP);
}

// Scalars that are given; NULL: not known, or none.
static const tk_const *scalar_of(tk_work *w, const explain_call *c, const tk_bound *b, uint32_t i) {
    static const tkc_arg none = {.kind = TKC_ARG_NONE};
    const tkc_arg *arg = i < c->nargs ? &c->args[i] : &none;
    tk_const *x = TK_NEW(&w->arena, tk_const);
    const bool is = b->param[i]->kind == TK_T_VALUE && arg->kind != TKC_ARG_UNKNOWN;
    return is && launch_scalar(w, &b->info->param[i], b->param[i]->dtype, arg, x) ? x : NULL;
}

// Sizes, scalars and promises of the IR's parameters: those of the kernel that are given, in order.
static tk_ptx_opts options_for(tk_work *w, const explain_call *c, const tk_target *target,
                               const tk_func *f, const tk_bound *b) {
    const uint32_t n = f->params.n;
    tk_tensor_facts *fact = TK_NEW_ARRAY(&w->arena, tk_tensor_facts, n + 1);
    const tk_const **scalar = TK_NEW_ARRAY(&w->arena, const tk_const *, n + 1);
    int64_t *size = TK_NEW_ARRAY(&w->arena, int64_t, (size_t)(n + 1) * TK_MAX_TENSOR_RANK);
    for (uint32_t i = 0, at = 0; i < b->info->nparam && at < n; i++) {
        const tk_type *t = b->param[i];
        if (!t) {
            continue;
        }
        for (uint32_t d = 0; d < TK_MAX_TENSOR_RANK; d++) {
            const bool has = t->kind == TK_T_TENSOR && d < t->rank;
            size[at * TK_MAX_TENSOR_RANK + d] = has ? t->dim[d] : -1;
        }
        scalar[at] = scalar_of(w, c, b, i);
        fact[at++] = t->kind == TK_T_TENSOR ? facts_of_use(target, promised(c->options, t)) : 0;
    }
    return (tk_ptx_opts){.arch = target->name,
                         .facts = fact,
                         .debug = w->config->debug,
                         .counts = true,
                         .size = size,
                         .scalar = scalar,
                         .keep_failed = true};
}

// ---- In order -----------------------------------------------------------------------------------

typedef struct place {
    const tk_note_rec *note;
    uint32_t order;
    bool whole, home; // of the kernel as a whole; in the kernel's file
} place;

static int compare(uint32_t a, uint32_t b) { return a < b ? -1 : a > b; }

static int by_place(const void *x, const void *y) {
    const place *a = x, *b = y;
    const tk_span *s = &a->note->span, *t = &b->note->span;
    int c = compare(b->whole, a->whole);
    c = c ? c : a->whole ? 0 : compare(b->home, a->home);
    c = c ? c : a->whole ? 0 : compare(s->file, t->file);
    c = c ? c : a->whole ? 0 : compare(s->begin, t->begin);
    return c ? c : compare(a->order, b->order);
}

static void sort_notes(tk_arena *a, const tk_module *m, explained *x) {
    const tk_span home = m->locs.at[x->f->loc].span;
    place *p = TK_NEW_ARRAY(a, place, m->notes.list.n + 1);
    x->kernel = home;
    x->nwhole = 0;
    x->n = m->notes.list.n;
    for (uint32_t i = 0; i < x->n; i++) {
        const tk_note_rec *r = m->notes.list.at[i];
        const bool whole = r->span.file == 0 || memcmp(&r->span, &home, sizeof home) == 0;
        p[i] = (place){r, i, whole, r->span.file == home.file};
        x->nwhole += whole;
    }
    qsort(p, x->n, sizeof *p, by_place);
    x->note = TK_NEW_ARRAY(a, const tk_note_rec *, x->n + 1);
    for (uint32_t i = 0; i < x->n; i++) {
        x->note[i] = p[i].note;
    }
}

// ---- The least time -----------------------------------------------------------------------------

static bool is(const tk_note_rec *r, const char *id) { return strcmp(r->id, id) == 0; }

static void find_times(explained *x) {
    x->programs = -1;
    for (uint32_t i = 0; i < x->n; i++) {
        const tk_note_rec *r = x->note[i];
        if (is(r, "launch")) {
            x->programs = explain_number(r, "programs");
        } else if (is(r, "work")) {
            x->flops = explain_number(r, "flops");
            x->flops64 = explain_number(r, "flops in f64");
            x->matrix = explain_number(r, "on tensor cores");
            x->as_f16 = explain_number(r, "as of f16");
        } else if (is(r, "traffic") && tk_note_number_of(r, "least") && x->bytes >= 0) {
            x->bytes += explain_number(r, "read by all") + explain_number(r, "written by all");
            x->least_bytes += explain_number(r, "least");
        } else if (is(r, "traffic")) {
            x->bytes = -1;
        }
    }
    x->bytes = x->programs < 0 ? -1 : x->bytes;
    if (x->bytes >= 0) {
        x->memory_seconds = x->least_bytes / x->gpu->bandwidth;
        x->compute_seconds =
            x->programs *
            (x->flops / x->gpu->flops + x->flops64 / x->gpu->flops64 + x->as_f16 / x->gpu->matrix);
    }
}

// ---- The time that the model predicts -----------------------------------------------------------

static const tk_note_rec *note_of(const tk_module *m, const char *id) {
    const tk_note_rec *found = NULL;
    for (uint32_t i = 0; i < m->notes.list.n; i++) {
        found = is(m->notes.list.at[i], id) ? m->notes.list.at[i] : found;
    }
    return found;
}

static bool is_done(const tk_module *m, const char *id) {
    const tk_note_rec *r = note_of(m, id);
    return r && r->verdict == TK_NOTE_DONE;
}

static double stored_bytes(const explained *x) {
    double n = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        n += is(x->note[i], "traffic") ? explain_number(x->note[i], "written") : 0;
    }
    return n;
}

static void add_prediction(tk_module *m, const explained *x, const tk_prediction *p,
                           const tk_launch *l, double tiles) {
    tk_notes *notes = &m->notes;
    const double flops = x->programs * (x->flops + x->flops64 + x->matrix);
    const char *speed = "";
    if (flops > 0) { // integers are none
        speed = tk_format(notes->arena, ", %.4g TFLOP/s with what pads its tiles",
                          flops / p->seconds / 1e12);
    }
    tk_note_rec *n = tk_note_add(notes, "predict", "predicted", x->kernel, TK_NOTE_INFO,
                                 "on %s about %.4g us%s; bound by %s", x->gpu->name,
                                 p->seconds * 1e6, speed, p->bound);
    tk_note_number_add(notes, n, "seconds", p->seconds);
    tk_note_number_add(notes, n, "waves", p->waves);
    tk_note_number_add(notes, n, "blocks at once", l->blocks * x->gpu->multiprocessors);
    tk_note_number_add(notes, n, "matrix cycles a tile", p->matrix / tiles);
    tk_note_number_add(notes, n, "shared cycles a tile", p->shared / tiles);
    tk_note_number_add(notes, n, "cache cycles a tile", p->cache / tiles);
    tk_note_number_add(notes, n, "threads cycles a tile", p->threads / tiles);
    tk_note_number_add(notes, n, "begin cycles", p->begin);
    tk_note_number_add(notes, n, "loop cycles", p->main);
    tk_note_number_add(notes, n, "end cycles", p->end);
}

// Blocks that a multiprocessor holds, as far as is known.
static double blocks_of(const tk_note_rec *occupancy) {
    const double blocks = explain_number(occupancy, "blocks");
    return blocks > 0 ? blocks : 1;
}

// How many blocks run all programs, where both are known.
static void add_blocks(tk_module *m, const explained *x) {
    const tk_note_rec *o = note_of(m, "occupancy");
    const double most = o ? blocks_of(o) * x->gpu->multiprocessors : 0;
    for (uint32_t i = 0; i < m->notes.list.n && o && x->programs >= 0; i++) {
        tk_note_rec *r = m->notes.list.at[i];
        if (is(r, "persistent") && r->verdict == TK_NOTE_DONE) {
            tk_note_number_add(&m->notes, r, "programs", x->programs);
            tk_note_number_add(&m->notes, r, "blocks", x->programs < most ? x->programs : most);
        }
    }
}

// Where the sizes are known, of a kernel with products on tensor cores.
static bool predict(tk_module *m, const explained *x) {
    const tk_note_rec *r = note_of(m, "demand"), *o = note_of(m, "occupancy");
    if (!r || !o || x->programs <= 0 || x->bytes < 0) {
        return false;
    }
    const tk_demand d = {.tiles = explain_number(r, "tiles"),
                         .matrix = explain_number(r, "matrix cycles"),
                         .read = explain_number(r, "shared read"),
                         .written = explain_number(r, "shared written"),
                         .fetched = explain_number(r, "fetched"),
                         .requests = explain_number(r, "requests not ahead"),
                         .lifted = explain_number(r, "requests of fetches"),
                         .flops = x->flops,
                         .stored = stored_bytes(x)};
    const tk_launch l = {.programs = x->programs,
                         .blocks = blocks_of(o),
                         .least_bytes = x->least_bytes,
                         .apart = is_done(m, "specialized"),
                         .persistent = is_done(m, "persistent"),
                         .copied_out = is_done(m, "copied-out")};
    const tk_prediction p = tk_predict(x->gpu, x->target, &d, &l);
    add_prediction(m, x, &p, &l, d.tiles > 0 ? d.tiles : 1);
    return true;
}

// ---- The call -----------------------------------------------------------------------------------

static const char *formatted(tk_work *w, const explained *x, tkc_explain_format format) {
    switch (format) {
    case TKC_EXPLAIN_TEXT:
        return explain_text(&w->arena, x);
    case TKC_EXPLAIN_JSON:
        return explain_json(&w->arena, x);
    case TKC_EXPLAIN_SARIF:
        return explain_sarif(&w->arena, x);
    }
    return NULL;
}

static void explain(tk_work *w, void *arg) {
    const explain_call *c = arg;
    explained x = {.sources = NULL};
    if (!find_both(w, c->options, &x)) {
        return;
    }
    if (!gpu_backend(w->config)) {
        work_fail(w, TKC_ERROR_DEVICE, "no-gpu-backend", "this build has no GPU code generator");
        return;
    }
    tk_unit *unit = unit_view(w, c->kernel);
    tk_bound *b = bind_args(w, c->kernel, unit, c->args, c->nargs, c->sizes, c->nsizes, false);
    tk_module *m = b ? compile_module(w, &w->arena, unit, b, NULL) : NULL;
    if (!m) {
        return;
    }
    tk_func *f = kernel_of(m);
    const tk_ptx_opts o = options_for(w, c, x.target, f, b);
    if (w->diags.errors) {
        return;
    }
    x.image = gpu_image(w, &w->arena, m, &o);
    if (!x.image) {
        TK_CHECK(&w->arena, w->diags.errors);
        return;
    }
    x.sources = m->sources;
    x.info = b->info;
    x.f = f;
    x.fact = o.facts;
    sort_notes(&w->arena, m, &x);
    find_times(&x);
    add_blocks(m, &x);
    if (predict(m, &x)) {
        sort_notes(&w->arena, m, &x);
    }
    const char *text = formatted(w, &x, c->options->format);
    if (!text || !text_copy(w->config, text, strlen(text), c->out)) {
        tk_fail_memory(&w->guard);
    }
}

tkc_status tkc_kernel_explain(tkc_kernel *kernel, const tkc_explain_options *options,
                              const tkc_arg *args, size_t nargs, const tkc_size *sizes,
                              size_t nsizes, tkc_text *out, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!kernel || !options || options->size < sizeof *options ||
        (!options->arch && !options->gpu) || (unsigned)options->format > TKC_EXPLAIN_SARIF ||
        (!args && nargs) || (!sizes && nsizes) || !out || nargs == SIZE_MAX) {
        return TKC_ERROR_ARGUMENT;
    }
    out->at = NULL;
    out->size = 0;
    tk_work w;
    work_init(&w, &kernel->program->context->config);
    w.said = &kernel->program->said;
    explain_call c = {kernel, options, args, nargs, sizes, nsizes, out};
    tkc_status s = work_run(&w, explain, &c);
    if (s != TKC_OK && s != TKC_ERROR_SOURCE) {
        tkc_text_free(out);
    }
    return work_end(&w, s, report);
}
