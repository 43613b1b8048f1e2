// SPDX-License-Identifier: Apache-2.0
// The header of kernels compiled ahead, and their bytes as C.
#include "runtime/ahead.h"

#include <ctype.h>
#include <string.h>

// ---- The header

static const char *c_type(tk_dtype t) {
    switch (t) {
    case TK_BOOL:
        return "bool";
    case TK_I8:
        return "int8_t";
    case TK_I16:
        return "int16_t";
    case TK_I32:
        return "int32_t";
    case TK_I64:
        return "int64_t";
    case TK_U8:
        return "uint8_t";
    case TK_U16:
        return "uint16_t";
    case TK_U32:
        return "uint32_t";
    case TK_U64:
        return "uint64_t";
    case TK_F8E4M3:
    case TK_F8E5M2:
    case TK_F16:
    case TK_BF16:
    case TK_F32:
        return "float";
    case TK_F64:
        return "double";
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return "void";
}

static const tk_type *given(const ahead_add *a, uint32_t i) { return a->bound->param[i]; }

// "x: in f32[M, 64]", and what a size must be.
static void describe(const ahead_add *a, uint32_t i, tk_buf *out) {
    static const char *const access[] = {[TK_IN] = "in", [TK_OUT] = "out", [TK_INOUT] = "inout"};
    const tk_kernel_info *info = a->kernel->info;
    const tk_kparam *p = &info->param[i];
    tk_buf_fmt(out, "     %s: ", p->name);
    if (!p->is_tensor) {
        tk_buf_fmt(out, "%s\n", tk_dtype_name(given(a, i)->dtype));
        return;
    }
    tk_buf_fmt(out, "%s %s[", access[p->access], tk_dtype_name(given(a, i)->dtype));
    for (uint32_t d = 0; d < p->rank; d++) {
        tk_buf_fmt(out, "%s%s", d ? ", " : "", p->dim[d]);
        if (given(a, i)->dim[d] >= 0 && (p->dim[d][0] < '0' || p->dim[d][0] > '9')) {
            tk_buf_fmt(out, " = %lld", (long long)given(a, i)->dim[d]);
        }
    }
    tk_buf_str(out, "]\n");
}

// A name of ours that no parameter has.
static const char *free_name(const ahead_add *a, tk_arena *arena, const char *name) {
    const tk_kernel_info *info = a->kernel->info;
    for (uint32_t i = 0; i < info->nparam;) {
        bool same = strcmp(info->param[i].name, name) == 0;
        name = same ? tk_format(arena, "%s_", name) : name;
        i = same ? 0 : i + 1;
    }
    return name;
}

static void put_prototype(const ahead_add *a, const char *stream, const char *error, tk_buf *out) {
    const tk_kernel_info *info = a->kernel->info;
    tk_buf_fmt(out, "static inline tkc_status %s(", a->name);
    for (uint32_t i = 0; i < info->nparam; i++) {
        const char *name = info->param[i].name;
        if (given(a, i) && info->param[i].is_tensor) {
            tk_buf_fmt(out, "const tkc_tensor *%s, ", name);
        } else if (given(a, i)) {
            tk_buf_fmt(out, "%s %s, ", c_type(given(a, i)->dtype), name);
        }
    }
    tk_buf_fmt(out, "void *%s, tkc_error *%s) {\n", stream, error);
}

void ahead_declare(const ahead_add *a, tk_buf *out) {
    const tk_kernel_info *info = a->kernel->info;
    const char *stream = free_name(a, out->arena, "stream");
    const char *error = free_name(a, out->arena, "error");
    const char *argument = free_name(a, out->arena, "argument");
    tk_buf_fmt(out, "/* %s: kernel '%s' with %s\n", a->name, info->name,
               a->bound->key[0] ? a->bound->key : "no compile-time parameters");
    for (uint32_t i = 0; i < info->nparam; i++) {
        if (given(a, i)) {
            describe(a, i, out);
        }
    }
    tk_buf_fmt(out, "*/\nextern const unsigned char %s_bundle[];\nextern tkc_rt_state %s_state;\n",
               a->name, a->name);
    put_prototype(a, stream, error, out);
    tk_buf_fmt(out, "    const void *const %s[] = {", argument);
    for (uint32_t i = 0; i < info->nparam; i++) {
        if (given(a, i)) {
            tk_buf_fmt(out, "%s%s, ", info->param[i].is_tensor ? "" : "&", info->param[i].name);
        }
    }
    tk_buf_fmt(out, "0};\n    return tkc_rt_launch(%s_bundle, &%s_state, %s, %s, %s);\n}\n",
               a->name, a->name, argument, stream, error);
    tk_buf_fmt(out,
               "static inline tkc_status %s_load(tkc_error *error) {\n"
               "    return tkc_rt_load(%s_bundle, &%s_state, error);\n}\n"
               "static inline void %s_unload(void) {\n"
               "    tkc_rt_unload(%s_bundle, &%s_state);\n}\n\n",
               a->name, a->name, a->name, a->name, a->name, a->name);
}

void ahead_header(const tkc_ahead *h, const char *name, tk_buf *out) {
    const char *slash = strrchr(name, '/');
    char *guard = tk_format(out->arena, "TKC_AHEAD_%s", slash ? slash + 1 : name);
    for (char *s = guard; *s; s++) {
        *s = isalnum((unsigned char)*s) ? (char)toupper((unsigned char)*s) : '_';
    }
    tk_buf_fmt(out,
               "/* Made by tkc %s; do not edit. Kernels compiled ahead of time; tkc_rt.h says how "
               "to call them. */\n"
               "#ifndef %s\n#define %s\n\n#include <tkc_rt.h>\n\n"
               "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
               tkc_version(), guard, guard);
    for (const ahead_kernel *k = h->first; k; k = k->next) {
        tk_buf_add(out, k->declaration.at, k->declaration.size);
    }
    tk_buf_str(out, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

// ---- C

static void put_bytes(const ahead_kernel *k, tk_buf *out) {
    static const char digits[] = "0123456789abcdef";
    enum { LINE = 20 };
    tk_buf_fmt(out, "_Alignas(%d) const unsigned char %s_bundle[%zu] = {\n", TK_BUNDLE_ALIGN,
               k->name.at, k->bundle.size);
    for (size_t i = 0; i < k->bundle.size; i++) {
        unsigned char c = (unsigned char)k->bundle.at[i];
        char byte[6] = {'0',
                        'x',
                        digits[c >> 4],
                        digits[c & 15],
                        ',',
                        i % LINE == LINE - 1 || i + 1 == k->bundle.size ? '\n' : ' '};
        tk_buf_add(out, byte, sizeof byte);
    }
    tk_buf_fmt(out, "};\ntkc_rt_state %s_state;\n", k->name.at);
}

void ahead_source(const tkc_ahead *h, tk_buf *out) {
    tk_buf_fmt(out,
               "/* Made by tkc %s; do not edit. Kernels compiled ahead of time, as bytes. */\n"
               "#include <tkc_rt.h>\n\n",
               tkc_version());
    for (const ahead_kernel *k = h->first; k; k = k->next) {
        tk_buf_fmt(out, "extern const unsigned char %s_bundle[];\nextern tkc_rt_state %s_state;\n",
                   k->name.at, k->name.at);
        put_bytes(k, out);
    }
}
