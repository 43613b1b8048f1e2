// SPDX-License-Identifier: Apache-2.0
// ARRAY on the command line: its grammar and its element type. array_make.c makes the elements.
#include "array.h"

#include <string.h>

typedef struct generator {
    const char *name;
    array_kind kind;
    const char *form;
} generator;

static const generator generators[] = {
    {"randn", ARRAY_RANDN, "randn(SIZE,...)"},
    {"rand", ARRAY_RAND, "rand(SIZE,...)"},
    {"randint", ARRAY_RANDINT, "randint(LOW,HIGH,SIZE,...)"},
    {"zeros", ARRAY_ZEROS, "zeros(SIZE,...)"},
    {"ones", ARRAY_ONES, "ones(SIZE,...)"},
    {"full", ARRAY_FULL, "full(VALUE,SIZE,...)"},
    {"iota", ARRAY_IOTA, "iota(SIZE,...)"},
};
enum { NGENERATOR = sizeof generators / sizeof *generators };

// ---- Element types

int dtype_digits(tkc_dtype t) {
    switch (t) {
    case TKC_F8E4M3:
        return 4;
    case TKC_F8E5M2:
        return 3;
    case TKC_F16:
        return 11;
    case TKC_BF16:
        return 8;
    case TKC_F32:
        return 24;
    case TKC_F64:
        return 53;
    case TKC_BOOL:
    case TKC_I8:
    case TKC_I16:
    case TKC_I32:
    case TKC_I64:
    case TKC_U8:
    case TKC_U16:
    case TKC_U32:
    case TKC_U64:
        return 0;
    }
    return 0;
}

bool dtype_is_float(tkc_dtype t) { return dtype_digits(t) != 0; }

static bool is_signed(tkc_dtype t) {
    return t == TKC_I8 || t == TKC_I16 || t == TKC_I32 || t == TKC_I64;
}

bool dtype_holds(tkc_dtype t, integer v) {
    if (dtype_is_float(t)) {
        // Of f16 and f8 also the greatest values matter.
        uint64_t top = t == TKC_F16      ? 65504
                       : t == TKC_F8E4M3 ? 448
                       : t == TKC_F8E5M2 ? 57344
                                         : UINT64_MAX;
        uint64_t m = v.magnitude;
        while (m && m % 2 == 0) {
            m /= 2;
        }
        return v.magnitude <= top && m >> dtype_digits(t) == 0;
    }
    if (t == TKC_BOOL) {
        return !v.negative && v.magnitude <= 1;
    }
    unsigned bits = 8 * (unsigned)tkc_dtype_size(t) - is_signed(t);
    uint64_t most = UINT64_MAX >> (64 - bits);
    return v.negative ? is_signed(t) && v.magnitude <= most + 1 : v.magnitude <= most;
}

// The greatest value of randint and iota.
static integer last_value(const array *a) {
    if (a->kind == ARRAY_IOTA) {
        return (integer){false, a->count ? a->count - 1 : 0};
    }
    integer last = a->high; // which is outside
    if (last.magnitude == 0) {
        return (integer){true, 1};
    }
    last.negative ? last.magnitude++ : last.magnitude--;
    return last;
}

static bool holds_values(tkc_dtype dtype, const array *a) {
    if (a->kind == ARRAY_FULL) {
        return dtype_is_float(dtype) || (a->is_integer && dtype_holds(dtype, a->low));
    }
    if (a->kind != ARRAY_RANDINT && a->kind != ARRAY_IOTA) {
        return true;
    }
    integer last = last_value(a);
    if (!dtype_holds(dtype, a->low) || !dtype_holds(dtype, last)) {
        return false;
    }
    // Between ends that a float holds lie integers that it does not.
    uint64_t most = last.magnitude > a->low.magnitude ? last.magnitude : a->low.magnitude;
    return !dtype_is_float(dtype) || most <= UINT64_C(1) << dtype_digits(dtype);
}

static bool choose_f8(tool *t, array *a, tkc_dtype dtype) {
    if (dtype != TKC_F8E4M3 && dtype != TKC_F8E5M2) {
        tool_error(t, CODE_REFUSED,
                   tool_format(t, "write %s:f8e4m3 or %s:f8e5m2", a->text, a->text),
                   "'%s' holds f8 values of a form that the file does not name, '%s' has %s",
                   a->text, a->name, tkc_dtype_name(dtype));
        return false;
    }
    a->stored = dtype;
    a->some_f8 = false;
    return true;
}

bool array_set_dtype(tool *t, array *a, tkc_dtype dtype) {
    const char *name = tkc_dtype_name(dtype);
    if (a->some_f8 && !choose_f8(t, a, dtype)) {
        return false;
    }
    if ((a->kind == ARRAY_RAND || a->kind == ARRAY_RANDN) && !dtype_is_float(dtype)) {
        tool_error(t, CODE_USAGE, "randint(LOW,HIGH,SIZE,...) makes integers",
                   "--in %s: %s makes floats, not %s", a->name, a->text, name);
        return false;
    }
    if (!holds_values(dtype, a)) {
        tool_error(t, CODE_USAGE, NULL, "--in %s: %s does not hold all values of %s", a->name, name,
                   a->text);
        return false;
    }
    a->tensor.dtype = dtype;
    a->has_dtype = true;
    return true;
}

// ---- Grammar

static bool wrong(tool *t, const array *a, const char *why) {
    tool_usage(t, "--in %s=%s: %s", a->name, a->text, why);
    return false;
}

// The next of the comma-separated arguments, without spaces around. False at the end.
static bool next_argument(const char **s, const char **at, size_t *n) {
    if (!*s) {
        return false;
    }
    *at = *s + strspn(*s, " ");
    *n = strcspn(*at, ",");
    *s = (*at)[*n] ? *at + *n + 1 : NULL;
    while (*n && (*at)[*n - 1] == ' ') {
        --*n;
    }
    return true;
}

static bool parse_value(array *a, const char *at, size_t n) {
    a->is_integer = integer_parse(at, n, &a->low);
    if (n == 4 && memcmp(at, "true", 4) == 0) {
        a->low = (integer){false, 1};
        a->is_integer = true;
    } else if (n == 5 && memcmp(at, "false", 5) == 0) {
        a->low = (integer){false, 0};
        a->is_integer = true;
    }
    return a->is_integer || real_parse(at, n, &a->real);
}

static bool parse_sizes(tool *t, array *a, const generator *g, const char *s) {
    const char *at;
    size_t n;
    while (next_argument(&s, &at, &n)) {
        integer v;
        const bool number = integer_parse(at, n, &v) && !v.negative;
        if (!number || v.magnitude > INT32_MAX) {
            const char *form = tool_format(t, "the form is %s", g->form);
            return wrong(t, a,
                         tool_format(t, "'%.*s' is no size; %s", (int)n, at,
                                     number ? "the greatest is 2147483647" : form));
        }
        if (a->tensor.rank == TKC_MAX_RANK) {
            return wrong(t, a, tool_format(t, "more than %d sizes", TKC_MAX_RANK));
        }
        a->tensor.dim[a->tensor.rank++] = (int64_t)v.magnitude;
    }
    if (a->tensor.rank == 0) {
        return wrong(t, a, tool_format(t, "sizes are missing; the form is %s", g->form));
    }
    size_t bytes;
    if (!tensor_size(a->tensor.rank, a->tensor.dim, 8, &a->count, &bytes)) {
        return wrong(t, a, "too large");
    }
    a->tensor = tkc_tensor_make(NULL, TKC_F32, a->tensor.rank, a->tensor.dim);
    return true;
}

// `s`: what stands between the parentheses.
static bool parse_arguments(tool *t, array *a, const generator *g, const char *s) {
    const char *at;
    size_t n;
    if (g->kind == ARRAY_FULL && (!next_argument(&s, &at, &n) || !parse_value(a, at, n))) {
        return wrong(t, a, tool_format(t, "the value is no number; the form is %s", g->form));
    }
    if (g->kind == ARRAY_RANDINT) {
        int64_t low, high;
        if (!next_argument(&s, &at, &n) || !integer_parse(at, n, &a->low) ||
            !next_argument(&s, &at, &n) || !integer_parse(at, n, &a->high)) {
            return wrong(t, a, tool_format(t, "the form is %s", g->form));
        }
        if (!integer_i64(a->low, &low) || !integer_i64(a->high, &high) || low >= high) {
            return wrong(t, a, "LOW must be less than HIGH, both within 64 bits");
        }
    }
    return parse_sizes(t, a, g, s);
}

static bool parse_generator(tool *t, array *a, size_t name) {
    for (size_t i = 0; i < NGENERATOR; i++) {
        const generator *g = &generators[i];
        if (strlen(g->name) == name && memcmp(g->name, a->text, name) == 0) {
            a->kind = g->kind;
            const char *inside = a->text + name + 1;
            size_t n = strlen(inside) - 1;
            const char *rest =
                n && inside[strspn(inside, " ")] != ')' ? tool_strndup(t, inside, n) : NULL;
            return parse_arguments(t, a, g, rest);
        }
    }
    const char *names[NGENERATOR];
    for (size_t i = 0; i < NGENERATOR; i++) {
        names[i] = generators[i].name;
    }
    const char *given = tool_strndup(t, a->text, name);
    const char *nearest = tool_nearest(t, given, names, NGENERATOR);
    return wrong(t, a,
                 tool_format(t, "there is no '%s'%s", given,
                             *nearest ? nearest : "; a file is written ./NAME"));
}

static bool read_file(tool *t, array *a, bool data) {
    npy file;
    if (!npy_read(t, a->text, data, &file)) {
        return false;
    }
    a->tensor = file.tensor;
    a->stored = file.tensor.dtype;
    a->count = file.count;
    a->some_f8 = file.some_f8;
    return true;
}

bool array_parse(tool *t, const char *name, const char *text, bool data, array *a) {
    *a = (array){.name = name, .text = text};
    const char *colon = strrchr(text, ':');
    tkc_dtype dtype = TKC_F32;
    bool typed = colon && tkc_dtype_from_name(colon + 1, &dtype);
    if (typed) {
        a->text = tool_strndup(t, text, (size_t)(colon - text));
    } else if (colon && colon > text && colon[-1] == ')') {
        return wrong(t, a, tool_format(t, "'%s' is no element type", colon + 1));
    }
    size_t letters = strspn(a->text, "abcdefghijklmnopqrstuvwxyz_"), n = strlen(a->text);
    if (n == 0) {
        return wrong(t, a, "an array is missing");
    }
    bool call = letters && a->text[letters] == '(' && a->text[n - 1] == ')';
    if (!call && letters && a->text[letters] == '(' && !strstr(a->text, ".npy")) {
        return wrong(t, a, "')' is missing at its end");
    }
    if (!(call ? parse_generator(t, a, letters) : read_file(t, a, data))) {
        return false;
    }
    if (typed) {
        return array_set_dtype(t, a, dtype);
    }
    a->has_dtype = !call && !a->some_f8;
    return true;
}
