// SPDX-License-Identifier: Apache-2.0
// Names of functions and parameters in the header of kernels compiled ahead: C and C++ must take
// them.
#include "runtime/ahead.h"

#include <string.h>

// Keywords of C up to C23 and of C++ up to C++20, and what compilers and the headers that ours
// includes define as macros.
static const char *const taken[] = {
    "alignas",     "alignof",
    "and",         "and_eq",
    "asm",         "auto",
    "bitand",      "bitor",
    "bool",        "break",
    "case",        "catch",
    "char",        "char8_t",
    "char16_t",    "char32_t",
    "class",       "co_await",
    "co_return",   "co_yield",
    "compl",       "concept",
    "const",       "const_cast",
    "consteval",   "constexpr",
    "constinit",   "continue",
    "decltype",    "default",
    "delete",      "do",
    "double",      "dynamic_cast",
    "else",        "enum",
    "explicit",    "export",
    "extern",      "false",
    "float",       "for",
    "friend",      "goto",
    "if",          "inline",
    "int",         "linux",
    "long",        "main",
    "mutable",     "namespace",
    "new",         "noexcept",
    "not",         "not_eq",
    "nullptr",     "offsetof",
    "operator",    "or",
    "or_eq",       "private",
    "protected",   "public",
    "register",    "reinterpret_cast",
    "requires",    "restrict",
    "return",      "short",
    "signed",      "sizeof",
    "static",      "static_assert",
    "static_cast", "struct",
    "switch",      "template",
    "this",        "thread_local",
    "throw",       "true",
    "try",         "typedef",
    "typeid",      "typename",
    "typeof",      "typeof_unqual",
    "union",       "unix",
    "unsigned",    "using",
    "virtual",     "void",
    "volatile",    "wchar_t",
    "while",       "xor",
    "xor_eq",      "NULL",
    "INT8_MAX",    "SIZE_MAX",
};

static bool is_taken(const char *name) {
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (strcmp(taken[i], name) == 0) {
            return true;
        }
    }
    // What begins so belongs to the compiler, or to tkc.
    return (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'))) ||
           strncmp(name, "tkc_", 4) == 0 || strncmp(name, "TKC_", 4) == 0;
}

static bool is_identifier(const char *s) {
    static const char all[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    return s[0] && (s[0] < '0' || s[0] > '9') && s[strspn(s, all)] == 0;
}

static void fail(tk_work *w, tk_span at, const char *id, const char *help, const char *text) {
    tk_span none = {0, 0, 0};
    tk_diag *d = tk_error(&w->diags, at, id, "%s", text);
    tk_help(&w->diags, d, none, "%s", help);
}

#define OTHER_NAME "give its function another name (tkc: --instance NAME=KERNEL)"

// What a kernel's name adds to the names of the program.
static const char *const derived[] = {"", "_load", "_unload", "_bundle", "_state"};
enum { NDERIVED = sizeof derived / sizeof *derived };

static bool clash(tk_work *w, const char *a, const char *b) {
    for (size_t i = 0; i < NDERIVED; i++) {
        for (size_t k = 0; k < NDERIVED; k++) {
            const char *x = tk_format(&w->arena, "%s%s", a, derived[i]);
            if (strcmp(x, tk_format(&w->arena, "%s%s", b, derived[k])) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool check_function(tk_work *w, const ahead_add *a) {
    tk_span at = a->kernel->info->item->span;
    if (!is_identifier(a->name)) {
        fail(w, at, "no-c-name", OTHER_NAME,
             tk_format(&w->arena, "'%s' is no identifier of C", a->name));
        return false;
    }
    if (is_taken(a->name)) {
        fail(w, at, "c-keyword", OTHER_NAME,
             tk_format(&w->arena, "'%s' cannot be the name of a function: it is taken in C or C++",
                       a->name));
        return false;
    }
    for (const ahead_kernel *k = a->ahead->first; k; k = k->next) {
        if (clash(w, a->name, k->name.at)) {
            fail(w, at, "name-clash", OTHER_NAME,
                 tk_format(&w->arena,
                           strcmp(a->name, k->name.at) == 0
                               ? "there is a function '%s' already"
                               : "'%s' clashes with '%s': NAME_load, NAME_unload, NAME_bundle and "
                                 "NAME_state belong to a function NAME",
                           a->name, k->name.at));
            return false;
        }
    }
    return true;
}

bool ahead_check_names(tk_work *w, const ahead_add *a) {
    if (!check_function(w, a)) {
        return false;
    }
    const tk_kernel_info *info = a->kernel->info;
    bool ok = true;
    for (uint32_t i = 0; i < info->nparam; i++) {
        const tk_kparam *p = &info->param[i];
        if (is_taken(p->name)) {
            fail(w, p->span, "c-keyword", "give the parameter another name",
                 tk_format(&w->arena,
                           "'%s' cannot be the name of a parameter of a function of C: it is taken "
                           "in C or C++",
                           p->name));
            ok = false;
        }
    }
    return ok;
}
