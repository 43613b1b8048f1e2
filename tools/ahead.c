// SPDX-License-Identifier: Apache-2.0
// tkc FILE -o k.o --header k.h: kernels as functions of C.
#include "ahead.h"
#include "io.h"

#include <string.h>

// ---- Targets

// The parts of a list with commas outside brackets.
static text_list split(tool *t, const char *s) {
    text_list list = {TOOL_NEW(t, const char *, strlen(s) + 2), 0};
    int depth = 0;
    const char *from = s;
    for (;; s++) {
        depth += *s == '(' || *s == '[';
        depth -= *s == ')' || *s == ']';
        if (*s == 0 || (*s == ',' && depth <= 0)) {
            list.at[list.n++] = tool_strndup(t, from, (size_t)(s - from));
            from = s + 1;
        }
        if (*s == 0) {
            return list;
        }
    }
}

static tkc_ahead *ahead_open(tool *t, session *lib, const ahead_request *r) {
    tkc_target oldest = {0};
    tkc_target_info(0, &oldest);
    text_list arch = split(t, r->arch ? r->arch : oldest.name);
    if (arch.n > TKC_AHEAD_MAX_ARCH) {
        tool_usage(t, "--arch names %zu targets; there may be %d", arch.n, TKC_AHEAD_MAX_ARCH);
        return NULL;
    }
    for (size_t i = 0; i < arch.n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(arch.at[k], arch.at[i]) == 0) {
                tool_usage(t, "option --arch: '%s' is named twice", arch.at[i]);
                return NULL;
            }
        }
        if (!target_known(t, arch.at[i])) {
            return NULL;
        }
    }
    tkc_ahead_options o = {.size = sizeof o,
                           .arch = arch.at,
                           .narch = arch.n,
                           .contiguous = r->contiguous,
                           .whole_rows = r->whole_rows,
                           .near = r->near,
                           .unit_stride = r->unit_stride,
                           .mapped = r->mapped};
    tkc_ahead *a = NULL;
    tkc_report *report = NULL;
    tool_report(t, tkc_ahead_create(lib->context, &o, &a, &report), report);
    return a;
}

// ---- Instances

typedef struct instance {
    const char *name; // of the function
    kernel_settings k;
} instance;

static void add_pair(tool *t, pair_list *list, const char *name, const char *value) {
    pair *grown = TOOL_NEW(t, pair, list->n + 1);
    if (list->n) {
        memcpy(grown, list->at, list->n * sizeof *grown);
    }
    grown[list->n++] = (pair){name, value};
    list->at = grown;
}

static void add_name(tool *t, text_list *list, const char *name) {
    const char **grown = TOOL_NEW(t, const char *, list->n + 1);
    if (list->n) {
        memcpy(grown, list->at, list->n * sizeof *grown);
    }
    grown[list->n++] = name;
    list->at = grown;
}

// A name is a size where the kernel has one so called, else a compile-time parameter, for the
// library to judge.
static bool is_size(tool *t, session *lib, const char *kernel, const char *name) {
    kernel_settings plain = {.kernel = kernel};
    bool found = false;
    if (!lib->kernel && !session_kernel(t, lib, &plain)) {
        return false;
    }
    for (size_t i = 0; i < tkc_kernel_dim_count(lib->kernel); i++) {
        found = found || strcmp(tkc_kernel_dim(lib->kernel, i), name) == 0;
    }
    for (size_t i = 0; i < tkc_kernel_cparam_count(lib->kernel); i++) {
        found = found && strcmp(tkc_kernel_cparam(lib->kernel, i)->name, name) != 0;
    }
    return found;
}

static void close_kernel(session *lib) {
    tkc_kernel_destroy(lib->kernel);
    lib->kernel = NULL;
}

// "softmax,T=f32,N=1000,bias"
static bool take_instance(tool *t, session *lib, const pair *p, instance *i) {
    text_list part = split(t, p->value);
    i->name = p->name;
    i->k.kernel = part.at[0];
    for (size_t n = 0; n < part.n; n++) {
        const char *equals = strchr(part.at[n], '=');
        if (!part.at[n][0] || equals == part.at[n] || (n == 0 && equals)) {
            tool_usage(t, "option --instance takes NAME=KERNEL[,P=VALUE]..., not '%s=%s'", p->name,
                       p->value);
            return false;
        }
        if (n > 0 && equals) {
            const char *name = tool_strndup(t, part.at[n], (size_t)(equals - part.at[n]));
            bool size = is_size(t, lib, i->k.kernel, name);
            add_pair(t, size ? &i->k.dim : &i->k.define, name, equals + 1);
        } else if (n > 0) {
            add_name(t, &i->k.given, part.at[n]);
        }
    }
    close_kernel(lib);
    return t->code == CODE_FINE;
}

static size_t list_instances(tool *t, session *lib, const ahead_request *r, instance **list) {
    size_t all = tkc_program_kernel_count(lib->program), n = 0;
    *list = TOOL_NEW(t, instance, r->instance.n + all + 1);
    for (size_t k = 0; k < r->instance.n; k++) {
        (*list)[n].k = *r->k;
        if (!take_instance(t, lib, &r->instance.at[k], &(*list)[n++])) {
            return 0;
        }
    }
    for (size_t k = 0; k < all && !r->instance.n && !r->k->kernel; k++) {
        (*list)[n].k = *r->k;
        (*list)[n++].k.kernel = tkc_program_kernel_name(lib->program, k);
    }
    if (n == 0 && r->k->kernel) {
        (*list)[n++].k = *r->k;
    }
    if (n == 0) {
        tool_error(t, CODE_REFUSED, NULL, "%s has no kernel", tkc_program_file(lib->program, 0));
    }
    return n;
}

static bool add_instance(tool *t, session *lib, tkc_ahead *a, const instance *i) {
    arguments args;
    bool ok = session_kernel(t, lib, &i->k) && arguments_make(t, lib, &i->k, false, &args);
    if (ok) {
        tkc_report *report = NULL;
        tkc_status s = tkc_ahead_add(a, i->name, lib->kernel, args.arg, args.n, args.size,
                                     args.nsize, &report);
        ok = tool_report(t, s, report);
    }
    close_kernel(lib);
    return ok;
}

// ---- Files

typedef struct product {
    const char *path;
    const char *at;
    size_t size;
    file_output file;
} product;

// A name in a rule of make.
static const char *rule_name(tool *t, const char *s) {
    char *out = TOOL_NEW(t, char, 2 * strlen(s) + 1), *to = out;
    for (; *s; s++) {
        if (*s == ' ' || *s == '#' || *s == '\\') {
            *to++ = '\\';
        } else if (*s == '$') {
            *to++ = '$';
        }
        *to++ = *s;
    }
    return out;
}

static const char *rule(tool *t, const session *lib, const char *output) {
    const char *text = tool_format(t, "%s:", rule_name(t, output));
    for (size_t i = 0; tkc_program_file(lib->program, i); i++) {
        text = tool_format(t, "%s \\\n  %s", text, rule_name(t, tkc_program_file(lib->program, i)));
    }
    return tool_format(t, "%s\n", text);
}

// The one that builds go by comes last, so that it is there only where the others are.
static void write_products(tool *t, product *p, size_t n) {
    size_t open = 0;
    bool ok = true;
    for (; open < n && ok; open++) {
        ok = file_create(t, p[open].path, &p[open].file);
        if (ok) {
            fwrite(p[open].at, 1, p[open].size, p[open].file.stream);
        } else {
            break;
        }
    }
    for (size_t i = 0; i < open; i++) {
        if (ok) {
            ok = file_finish(t, &p[i].file);
        } else {
            file_discard(&p[i].file);
        }
    }
}

static bool same_file(const char *a, const char *b) {
    return a && b && strcmp(a, "-") != 0 && strcmp(a, b) == 0;
}

static void write_all(tool *t, session *lib, const ahead_request *r, const tkc_ahead *a) {
    tkc_text text[2] = {{NULL, 0}, {NULL, 0}};
    tkc_report *report = NULL;
    product p[3];
    size_t n = 0;
    bool ok = true;
    if (r->header) {
        ok = tool_report(t, tkc_ahead_write(a, TKC_AHEAD_HEADER, r->header, &text[0], &report),
                         report);
        p[n++] = (product){.path = r->header, .at = text[0].at, .size = text[0].size};
    }
    if (r->depfile) {
        const char *s = rule(t, lib, r->output);
        p[n++] = (product){.path = r->depfile, .at = s, .size = strlen(s)};
    }
    report = NULL;
    ok = ok &&
         tool_report(
             t, tkc_ahead_write(a, r->c ? TKC_AHEAD_C : TKC_AHEAD_OBJECT, NULL, &text[1], &report),
             report);
    p[n++] = (product){.path = r->output ? r->output : "-", .at = text[1].at, .size = text[1].size};
    if (ok) {
        write_products(t, p, n);
    }
    tkc_text_free(&text[0]);
    tkc_text_free(&text[1]);
}

void ahead_build(tool *t, session *lib, const ahead_request *r) {
    if (same_file(r->output, r->header) || same_file(r->output, r->depfile) ||
        same_file(r->header, r->depfile)) {
        tool_usage(t, "two of -o, --header and --depfile name the same file");
        return;
    }
    instance *list;
    tkc_ahead *a = ahead_open(t, lib, r);
    size_t n = a ? list_instances(t, lib, r, &list) : 0;
    bool ok = n > 0;
    for (size_t i = 0; i < n; i++) {
        ok = add_instance(t, lib, a, &list[i]) && ok;
    }
    if (ok) {
        write_all(t, lib, r, a);
    }
    tkc_ahead_destroy(a);
}
