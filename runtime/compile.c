// SPDX-License-Identifier: Apache-2.0
// Compiling for a GPU without having one: code, and what the compiler decided, as text or bytes.
#include "lower/lower.h"
#include "ptx/assemble.h"
#include "runtime/internal.h"

#include <string.h>

bool tkc_target_info(size_t i, tkc_target *out) {
    const char *name = i < UINT32_MAX ? tk_target_name((unsigned)i) : NULL;
    if (!name || !out) {
        return false;
    }
    const tk_target *t = tk_target_find(name);
    *out = (tkc_target){t->name, t->cc / 10, t->cc % 10, t->shared_max};
    return true;
}

typedef struct compile_call {
    tkc_kernel *kernel;
    const tkc_compile_options *options;
    const tkc_arg *args;
    size_t nargs;
    const tkc_size *sizes;
    size_t nsizes;
    tkc_text *out;
} compile_call;

bool target_known(tk_work *w, const char *arch) {
    if (tk_target_find(arch)) {
        return true;
    }
    const char *name[32];
    size_t n = 0;
    tk_buf all;
    tk_buf_init(&all, &w->arena);
    for (; n < 32 && tk_target_name((unsigned)n); n++) {
        name[n] = tk_target_name((unsigned)n);
        tk_buf_fmt(&all, "%s%s", n ? ", " : "", name[n]);
    }
    const char *near = tk_nearest(&w->arena, arch, name, n);
    work_fail(w, TKC_ERROR_DEVICE, "unknown-target", "there is no target '%s'%s%s%s; there are: %s",
              arch, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "",
              tk_buf_text(&all));
    return false;
}

static uint32_t parameters(const tk_module *m) {
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (m->funcs.at[i]->is_kernel) {
            return m->funcs.at[i]->params.n;
        }
    }
    return 0;
}

static tk_ptx_opts options_for(tk_work *w, const compile_call *c, const tk_module *m,
                               const char **text) {
    tkc_code what = c->options->what;
    uint32_t n = parameters(m);
    tk_tensor_facts *fact = TK_NEW_ARRAY(&w->arena, tk_tensor_facts, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        fact[i] = FACTS_PROMISED(c->options);
    }
    return (tk_ptx_opts){.arch = c->options->arch,
                         .facts = fact,
                         .debug = w->config->debug,
                         .emit = what == TKC_CODE_LLVM ? "llvm" : NULL,
                         .text = text,
                         .no_cubin = what != TKC_CODE_CUBIN && what != TKC_CODE_NOTES};
}

static void no_cubin(tk_work *w, const char *arch) {
    char name[TK_ASSEMBLER_ROOM];
    if (tk_assembler_find(name)) {
        work_fail(w, TKC_ERROR_DEVICE, "assembler-failed",
                  "'%s' cannot assemble for %s: it is older than the target or the code, or has no "
                  "room for temporary files",
                  name, arch);
    } else {
        work_fail(w, TKC_ERROR_DEVICE, "no-assembler",
                  "no assembler is found: 'ptxas' (by TKC_PTXAS, on PATH, in CUDA_HOME/bin or "
                  "/usr/local/cuda/bin) or libnvJitLink; PTX needs none");
    }
}

static void give(tk_work *w, const compile_call *c, const tk_module *m, const tk_image *image,
                 const char *text) {
    const char *at = text;
    size_t size = 0;
    tk_buf notes;
    switch (c->options->what) {
    case TKC_CODE_PTX:
        at = image->ptx;
        size = image->ptx_size;
        break;
    case TKC_CODE_CUBIN:
        at = image->cubin;
        size = image->cubin_size;
        break;
    case TKC_CODE_LLVM:
    case TKC_CODE_LAYOUT:
    case TKC_CODE_STAGED:
        size = strlen(text);
        break;
    case TKC_CODE_NOTES:
        tk_buf_init(&notes, &w->arena);
        tk_notes_print(&notes, m->sources, &m->notes);
        at = tk_buf_text(&notes);
        size = notes.n;
        break;
    }
    if (!at) {
        no_cubin(w, image->arch);
    } else if (!text_copy(w->config, at, size, c->out)) {
        tk_fail_memory(&w->guard);
    }
}

static const tk_image *image_of(tk_work *w, const compile_call *c, tk_module *m,
                                const char **text) {
    tk_ptx_opts o = options_for(w, c, m, text);
    return gpu_image(w, &w->arena, m, &o);
}

// The IR below the tile level needs no code generator.
static const tk_image *lowered(tk_work *w, const compile_call *c, tk_module *m, const char **text) {
    const char *after = c->options->what == TKC_CODE_LAYOUT ? "layout" : NULL;
    const tk_target *target = tk_target_find(c->options->arch);
    const tk_ptx_opts o = options_for(w, c, m, text);
    if (!tk_lower(m, target, o.facts, &w->config->from, &w->diags, after, w->config->debug)) {
        return NULL;
    }
    tk_buf b;
    tk_buf_init(&b, &w->arena);
    tk_ir_print(&b, m, false);
    *text = tk_buf_text(&b);
    return TK_NEW(&w->arena, tk_image);
}

static void compile(tk_work *w, void *arg) {
    const compile_call *c = arg;
    const bool ir = c->options->what == TKC_CODE_LAYOUT || c->options->what == TKC_CODE_STAGED;
    if (!target_known(w, c->options->arch)) {
        return;
    }
    if (!ir && !gpu_backend(w->config)) {
        work_fail(w, TKC_ERROR_DEVICE, "no-gpu-backend", "this build has no GPU code generator");
        return;
    }
    tk_unit *unit = unit_view(w, c->kernel);
    tk_bound *b = bind_args(w, c->kernel, unit, c->args, c->nargs, c->sizes, c->nsizes, false);
    tk_module *m = b ? compile_module(w, &w->arena, unit, b, NULL) : NULL;
    if (!m) {
        return;
    }
    const char *text = "";
    const tk_image *image = ir ? lowered(w, c, m, &text) : image_of(w, c, m, &text);
    if (!image || w->diags.errors) {
        TK_CHECK(&w->arena, w->diags.errors);
        return;
    }
    give(w, c, m, image, text);
}

tkc_status tkc_kernel_compile(tkc_kernel *kernel, const tkc_compile_options *options,
                              const tkc_arg *args, size_t nargs, const tkc_size *sizes,
                              size_t nsizes, tkc_text *out, tkc_report **report) {
    if (report) {
        *report = NULL;
    }
    if (!kernel || !options || options->size < sizeof *options || !options->arch ||
        (unsigned)options->what > TKC_CODE_STAGED || (!args && nargs) || (!sizes && nsizes) ||
        !out || nargs == SIZE_MAX) {
        return TKC_ERROR_ARGUMENT;
    }
    out->at = NULL;
    out->size = 0;
    tk_work w;
    work_init(&w, &kernel->program->context->config);
    w.said = &kernel->program->said;
    compile_call c = {kernel, options, args, nargs, sizes, nsizes, out};
    tkc_status s = work_run(&w, compile, &c);
    if (s != TKC_OK) {
        tkc_text_free(out);
    }
    return work_end(&w, s, report);
}
