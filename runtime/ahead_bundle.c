// SPDX-License-Identifier: Apache-2.0
// A kernel as a bundle (runtime/bundle.h): compiled for each promise and target, by the same calls
// as a launch makes, and written down with what a launch must know.
#include "runtime/ahead.h"

#include <string.h>

// ---- Promises

// Each variant promises the same of all tensors that can hold it, but for whole rows: these count
// for the tensors whose last size is the last of a tensor of the greatest rank (of layernorm's x[M,
// N], gamma[N], mean[M] not for mean); and for tensor maps: only what an image has a map of counts.
static const tk_tensor_facts promises[] = {
    TK_FACT_UNIT | TK_FACT_ALIGNED | TK_FACT_WHOLE | TK_FACT_NEAR | TK_FACT_MAP,
    TK_FACT_UNIT | TK_FACT_ALIGNED | TK_FACT_NEAR | TK_FACT_MAP,
    TK_FACT_UNIT | TK_FACT_ALIGNED | TK_FACT_NEAR, // where there are maps
    TK_FACT_UNIT | TK_FACT_NEAR,
    0,
};
enum { NPROMISE = sizeof promises / sizeof *promises };

// The parameters of the IR kernel: those that are given.
typedef struct params {
    uint32_t n;
    const tk_kparam **p;
    const tk_type **type;
} params;

static params params_of(tk_work *w, const ahead_add *a) {
    const tk_kernel_info *info = a->kernel->info;
    params s = {0, TK_NEW_ARRAY(&w->arena, const tk_kparam *, info->nparam + 1),
                TK_NEW_ARRAY(&w->arena, const tk_type *, info->nparam + 1)};
    for (uint32_t i = 0; i < info->nparam; i++) {
        if (a->bound->param[i]) {
            s.p[s.n] = &info->param[i];
            s.type[s.n++] = a->bound->param[i];
        }
    }
    return s;
}

static const char *last_size(const tk_kparam *p) { return p->dim[p->rank - 1]; }

static bool is_row(const params *s, uint32_t i) {
    uint32_t rank = 0;
    for (uint32_t k = 0; k < s->n; k++) {
        rank = s->p[k]->is_tensor && s->p[k]->rank > rank ? s->p[k]->rank : rank;
    }
    bool row = false;
    for (uint32_t k = 0; k < s->n; k++) {
        row = row || (s->p[k]->is_tensor && s->p[k]->rank == rank &&
                      strcmp(last_size(s->p[k]), last_size(s->p[i])) == 0);
    }
    return row;
}

// As much of a promise as tensor i can hold and as is of use: what tensor_facts may say of it.
static tk_tensor_facts promise_for(const params *s, uint32_t i, tk_tensor_facts f) {
    const tk_type *t = s->type[i];
    if (!s->p[i]->is_tensor) {
        return 0;
    }
    if (t->rank == 0) {
        return f & TK_FACT_NEAR;
    }
    int64_t last = t->dim[t->rank - 1];
    bool never = last >= 0 && (uint64_t)last * tk_dtype_size(t->dtype) % 16 != 0;
    f &= never || !is_row(s, i) ? ~(tk_tensor_facts)TK_FACT_WHOLE : ~0U;
    return f & (t->rank > TK_MAP_RANK ? ~(tk_tensor_facts)TK_FACT_MAP : ~0U);
}

// ---- Writing

// An image, what of its variant's promises its target has a use for, and what it made use of.
typedef struct written {
    tk_bundle_image image;
    const tk_target *target;
    tk_tensor_facts *promised, *fact;
} written;

typedef struct writer {
    tk_work *w;
    const ahead_add *a;
    params s;
    tk_buf *out;
    tk_bundle head;
    bool assembled;                 // all of it
    TK_VEC(tk_tensor_facts *) fact; // of each variant, one a parameter
    TK_VEC(written) image;
} writer;

static uint32_t put(writer *x, const void *data, size_t size, size_t align) {
    static const char zeros[TK_BUNDLE_ALIGN];
    tk_buf_add(x->out, zeros, (align - x->out->n % align) % align);
    size_t at = x->out->n;
    TK_CHECK(&x->w->arena, size <= INT32_MAX && at <= INT32_MAX);
    if (size) {
        tk_buf_add(x->out, data, size);
    }
    return (uint32_t)at;
}

static uint32_t put_text(writer *x, const char *s) { return put(x, s, strlen(s) + 1, 1); }

static void put_params(writer *x) {
    const tk_kernel_info *info = x->a->kernel->info;
    const params *s = &x->s;
    tk_bundle_dim *dim = TK_NEW_ARRAY(&x->w->arena, tk_bundle_dim, info->ndim + 1);
    tk_bundle_param *param = TK_NEW_ARRAY(&x->w->arena, tk_bundle_param, s->n + 1);
    for (uint32_t k = 0; k < info->ndim; k++) {
        dim[k] = (tk_bundle_dim){put_text(x, info->dim[k]), 0, x->a->bound->dim[k]};
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const tk_kparam *p = s->p[i];
        param[i] = (tk_bundle_param){.name = put_text(x, p->name),
                                     .is_tensor = p->is_tensor,
                                     .dtype = (uint32_t)s->type[i]->dtype,
                                     .rank = p->is_tensor ? p->rank : 0,
                                     .written = p->is_tensor && p->access != TK_IN};
        for (uint32_t d = 0; d < param[i].rank; d++) {
            uint32_t k = 0;
            while (k < info->ndim && strcmp(info->dim[k], p->dim[d]) != 0) {
                k++;
            }
            param[i].dim[d] = k < info->ndim ? -1 - (int64_t)k : s->type[i]->dim[d];
            TK_CHECK(&x->w->arena, k < info->ndim || param[i].dim[d] >= 0);
        }
    }
    x->head.ndim = info->ndim;
    x->head.dim = put(x, dim, info->ndim * sizeof *dim, 8);
    x->head.nparam = s->n;
    x->head.param = put(x, param, s->n * sizeof *param, 8);
}

static bool put_grid(writer *x, const tk_module *m) {
    const tk_kernel_info *info = x->a->kernel->info;
    ahead_grid g;
    memset(&g, 0, sizeof g);
    if (!ahead_grid_make(x->w, m, &g)) {
        return false;
    }
    uint32_t axis[TK_MAX_GRID];
    for (uint32_t k = 0; k < g.count.n; k++) {
        axis[k] = put_text(x, k < info->ngrid ? info->grid[k] : "?");
    }
    x->head.cluster = m->attrs.cluster > 1 ? (uint32_t)m->attrs.cluster : 1;
    x->head.nstep = g.step.n;
    x->head.step = put(x, g.step.at, g.step.n * sizeof *g.step.at, 8);
    x->head.ngrid = g.count.n;
    x->head.grid = put(x, g.count.at, g.count.n * sizeof *g.count.at, 8);
    x->head.naxis = g.count.n;
    x->head.axis = put(x, axis, g.count.n * sizeof *axis, 8);
    return true;
}

static void put_facts(writer *x) {
    x->head.nvariant = x->fact.n;
    x->head.fact = put(x, NULL, 0, 8);
    for (uint32_t v = 0; v < x->fact.n; v++) {
        for (uint32_t i = 0; i < x->s.n; i++) {
            uint32_t word = x->fact.at[v][i];
            put(x, &word, sizeof word, 4);
        }
    }
}

static uint32_t put_maps(writer *x, const tk_image *i) {
    tk_bundle_map *map = TK_NEW_ARRAY(&x->w->arena, tk_bundle_map, i->nmap + 1);
    for (uint32_t k = 0; k < i->nmap; k++) {
        const tk_map_spec *s = &i->map[k];
        map[k] = (tk_bundle_map){.param = s->param,
                                 .rank = s->rank,
                                 .dtype = (uint32_t)s->dtype,
                                 .span = s->span,
                                 .tf32 = s->tf32};
        memcpy(map[k].box, s->box, sizeof map[k].box);
    }
    return put(x, map, i->nmap * sizeof *map, 8);
}

static tk_bundle_image put_image(writer *x, const tk_target *t, uint32_t which, const tk_image *i) {
    tk_bundle_image out = {.arch = put_text(x, i->arch),
                           .cc = t->cc,
                           .exact = t->name[strlen(t->name) - 1] == 'a',
                           .kernel = put_text(x, i->kernel),
                           .variant = which,
                           .threads = i->threads,
                           .shared = i->shared,
                           .packed = i->packed,
                           .persistent = i->persistent,
                           .cluster = i->cluster,
                           .param_bytes = i->param_bytes,
                           .nslot = i->nslot,
                           .nmap = i->nmap};
    tk_bundle_slot *slot = TK_NEW_ARRAY(&x->w->arena, tk_bundle_slot, i->nslot + 1);
    for (uint32_t k = 0; k < i->nslot; k++) {
        const tk_param_slot *s = &i->slot[k];
        slot[k] = (tk_bundle_slot){(uint32_t)s->kind, s->param, s->axis, s->offset, s->size};
    }
    out.slot = put(x, slot, i->nslot * sizeof *slot, 8);
    out.map = put_maps(x, i);
    if (i->cubin) {
        out.cubin = put(x, i->cubin, i->cubin_size, TK_BUNDLE_ALIGN);
        out.cubin_size = (uint32_t)i->cubin_size;
    }
    if (i->ptx) {
        out.ptx = put(x, i->ptx, i->ptx_size, 8);
        out.ptx_size = (uint32_t)i->ptx_size;
        put(x, "", 1, 1);
    }
    x->assembled = x->assembled && i->cubin;
    return out;
}

// ---- Compiling

// A module is changed by its way to code, so that each image starts anew.
static const tk_image *compile(writer *x, const tk_target *t, const tk_tensor_facts *fact) {
    tk_module *m = compile_module(x->w, &x->w->arena, x->a->unit, x->a->bound, NULL);
    if (!m) {
        return NULL;
    }
    tk_ptx_opts o = {.arch = t->name, .facts = fact};
    const char *notes;
    const tk_image *i = gpu_compile(x->w, &x->w->arena, m, x->s.n, &o, &notes);
    return x->w->diags.errors ? NULL : i;
}

static bool block_fits(const writer *x, const tk_image *i) {
    if (i->param_bytes > TK_BUNDLE_BLOCK) {
        tk_error(&x->w->diags, x->a->kernel->info->item->span, "too-large-ahead",
                 "the parameters of kernel '%s' take %u bytes; a GPU takes %d",
                 x->a->kernel->info->name, i->param_bytes, TK_BUNDLE_BLOCK);
        return false;
    }
    return true;
}

static tk_tensor_facts *facts_for(writer *x, const tk_target *t, const tk_tensor_facts *fact) {
    tk_tensor_facts *out = TK_NEW_ARRAY(&x->w->arena, tk_tensor_facts, x->s.n + 1);
    for (uint32_t i = 0; i < x->s.n; i++) {
        out[i] = t ? facts_of_use(t, fact[i]) : fact[i];
    }
    return out;
}

// Leaves of the promise of maps what an image has maps of.
static void keep_used(writer *x, tk_tensor_facts *fact, const tk_image *i) {
    for (uint32_t p = 0; p < x->s.n; p++) {
        bool used = false;
        for (uint32_t k = 0; k < i->nmap; k++) {
            used = used || i->map[k].param == p;
        }
        fact[p] &= used ? ~0U : ~(tk_tensor_facts)TK_FACT_MAP;
    }
}

static bool same_facts(const writer *x, const tk_tensor_facts *a, const tk_tensor_facts *b) {
    return memcmp(a, b, x->s.n * sizeof *a) == 0;
}

// The image for a target that is there already, of another variant; NULL.
static const written *find_written(const writer *x, const tk_target *t,
                                   const tk_tensor_facts *fact) {
    for (uint32_t k = 0; k < x->image.n; k++) {
        const written *o = &x->image.at[k];
        if (o->target == t && (same_facts(x, o->promised, fact) || same_facts(x, o->fact, fact))) {
            return o;
        }
    }
    return NULL;
}

// Adds the image of a variant for a target: compiled, or what there is already.
static bool add_image(writer *x, const tk_target *t, const tk_tensor_facts *promised) {
    tk_tensor_facts *fact = facts_for(x, t, promised);
    const written *there = find_written(x, t, fact);
    written new = {.target = t, .promised = fact};
    if (there) {
        new.image = there->image;
        new.image.variant = x->fact.n;
        new.fact = there->fact;
    } else {
        const tk_image *i = compile(x, t, fact);
        if (!i || !block_fits(x, i)) {
            return false;
        }
        new.image = put_image(x, t, x->fact.n, i);
        new.fact = facts_for(x, t, fact);
        keep_used(x, new.fact, i);
    }
    tk_vec_push(&x->w->arena, &x->image, new);
    return true;
}

// Adds a variant for tensors of which `f` holds, where its images are not all there.
static bool add_variant(writer *x, tk_tensor_facts f) {
    const tkc_ahead *h = x->a->ahead;
    const uint32_t first = x->image.n;
    tk_tensor_facts *promised = TK_NEW_ARRAY(&x->w->arena, tk_tensor_facts, x->s.n + 1);
    for (uint32_t i = 0; i < x->s.n; i++) {
        promised[i] = promise_for(&x->s, i, f);
    }
    for (size_t k = 0; k < h->ntarget; k++) {
        if (!add_image(x, h->target[k], promised)) {
            return false;
        }
    }
    tk_tensor_facts *all = facts_for(x, NULL, x->image.at[first].fact);
    for (uint32_t k = first; k < x->image.n; k++) {
        for (uint32_t i = 0; i < x->s.n; i++) {
            all[i] |= x->image.at[k].fact[i];
        }
    }
    for (uint32_t v = 0; v < x->fact.n; v++) {
        if (same_facts(x, x->fact.at[v], all)) {
            x->image.n = first;
            return true;
        }
    }
    tk_vec_push(&x->w->arena, &x->fact, all);
    return true;
}

static bool add_variants(writer *x) {
    if (x->a->ahead->promised) {
        return add_variant(x, x->a->ahead->promised);
    }
    for (uint32_t k = 0; k < NPROMISE; k++) {
        if (!add_variant(x, promises[k])) {
            return false;
        }
    }
    return true;
}

static void put_images(writer *x) {
    tk_bundle_image *image = TK_NEW_ARRAY(&x->w->arena, tk_bundle_image, x->image.n + 1);
    for (uint32_t k = 0; k < x->image.n; k++) {
        image[k] = x->image.at[k].image;
    }
    x->head.nimage = x->image.n;
    x->head.image = put(x, image, x->image.n * sizeof *image, 8);
}

// What the run time has room for.
static bool fits(const writer *x) {
    const tk_kernel_info *info = x->a->kernel->info;
    if (x->s.n > TK_BUNDLE_PARAMS || info->ndim > TK_BUNDLE_DIMS) {
        tk_error(&x->w->diags, info->item->span, "too-large-ahead",
                 "kernel '%s' has %u parameters and %u sizes; compiled ahead it may have %d and %d",
                 info->name, x->s.n, info->ndim, TK_BUNDLE_PARAMS, TK_BUNDLE_DIMS);
        return false;
    }
    return true;
}

bool ahead_bundle(tk_work *w, const ahead_add *a, tk_buf *out) {
    writer x = {.w = w, .a = a, .s = params_of(w, a), .out = out, .assembled = true};
    memcpy(x.head.magic, TK_BUNDLE_MAGIC, sizeof x.head.magic);
    x.head.version = TK_BUNDLE_VERSION;
    put(&x, &x.head, sizeof x.head, TK_BUNDLE_ALIGN);
    x.head.name = put_text(&x, a->name);
    tk_module *m = compile_module(w, &w->arena, a->unit, a->bound, NULL);
    if (!m || !fits(&x)) {
        return false;
    }
    put_params(&x);
    if (!put_grid(&x, m) || !add_variants(&x)) {
        return false;
    }
    put_facts(&x);
    put_images(&x);
    put(&x, NULL, 0, TK_BUNDLE_ALIGN);
    x.head.size = (uint32_t)out->n;
    memcpy(out->at, &x.head, sizeof x.head);
    if (!x.assembled) {
        tk_span none = {0, 0, 0};
        tk_diag *d = tk_warning(&w->diags, none, "no-assembler",
                                "'%s' holds PTX alone for a target: no assembler for it is found, "
                                "so that the driver assembles when the kernel is first loaded",
                                a->name);
        tk_help(&w->diags, d, none,
                "'ptxas' (by TKC_PTXAS, on PATH, in CUDA_HOME/bin or /usr/local/cuda/bin) or "
                "libnvJitLink");
    }
    return true;
}
