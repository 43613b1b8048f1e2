// SPDX-License-Identifier: Apache-2.0
// Calls of built-in functions: matching arguments with the signature, reading them, making results.
#include "lang/check_builtin.h"

// ---- Signatures

// One
// parameter of a signature: "x", "axis = ...", "\"text\"", "...".
static void parse_param(tk_bcall *b, const char *s, size_t n) {
    while (n && *s == ' ') {
        s++;
        n--;
    }
    if (n >= 3 && memcmp(s, "...", 3) == 0) {
        return;
    }
    TK_CHECK(tk_checker_arena(b->c), b->n < TK_BI_MAX_PARAMS);
    tk_bparam *p = &b->param[b->n++];
    if (n && *s == '"') {
        p->name = "text";
        p->optional = true;
        return;
    }
    size_t end = 0;
    while (end < n && s[end] != ' ') {
        end++;
    }
    p->name = tk_strndup(tk_checker_arena(b->c), s, end);
    p->by_name = end < n; // " = default" follows
    p->optional = p->by_name || strcmp(p->name, "acc") == 0;
}

static void parse_signature(tk_bcall *b, const char *s) {
    s = strchr(s, '(') + 1;
    int depth = 0;
    const char *from = s;
    for (;; s++) {
        if (depth == 0 && (*s == ',' || *s == ')')) {
            parse_param(b, from, (size_t)(s - from));
            from = s + 1;
            if (*s == ')') {
                return;
            }
        }
        depth += *s == '(' ? 1 : *s == ')' ? -1 : 0;
    }
}

void tk_bi_help(tk_bcall *b, tk_diag *d, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *text = tk_vformat(tk_checker_arena(b->c), fmt, args);
    va_end(args);
    tk_help(tk_checker_diags(b->c), d, (tk_span){0}, "%s", text);
}

void tk_bi_help_signature(tk_bcall *b, tk_diag *d) {
    tk_bi_help(b, d, "the call is '%s'", b->signature);
}

static bool unknown_name(tk_bcall *b, const tk_arg *a) {
    const char *names[TK_BI_MAX_PARAMS];
    for (uint32_t i = 0; i < b->n; i++) {
        names[i] = b->param[i].name;
    }
    tk_diag *d = tk_err_diag(b->c, a->name.span, "unknown-argument", "'%s' has no argument '%s'",
                             b->name, a->name.name);
    const char *near = tk_nearest(tk_checker_arena(b->c), a->name.name, names, b->n);
    if (near) {
        tk_bi_help(b, d, "did you mean '%s'?", near);
    }
    tk_bi_help_signature(b, d);
    return false;
}

static bool match_by_name(tk_bcall *b, const tk_arg *a) {
    for (uint32_t i = 0; i < b->n; i++) {
        if (strcmp(a->name.name, b->param[i].name) != 0) {
            continue;
        }
        if (b->arg[i]) {
            tk_diag *d = tk_err_diag(b->c, a->name.span, "repeated-argument",
                                     "argument '%s' of '%s' is given twice", a->name.name, b->name);
            tk_note(tk_checker_diags(b->c), d, b->arg[i]->span, "the first one is here");
            return false;
        }
        b->arg[i] = a->value;
        return true;
    }
    return unknown_name(b, a);
}

static bool surplus(tk_bcall *b, const tk_arg *a, uint32_t places) {
    tk_diag *d = tk_err_diag(b->c, a->value->span, "surplus-argument",
                             "'%s' takes %u argument%s by position", b->name, places,
                             places == 1 ? "" : "s");
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->param[i].by_name && !b->arg[i]) {
            tk_bi_help(b, d, "'%s' is given by name: '%s = ..'", b->param[i].name,
                       b->param[i].name);
            break;
        }
    }
    tk_bi_help_signature(b, d);
    return false;
}

// The k-th argument by position belongs to the k-th parameter that is not given by name only.
static bool match_by_place(tk_bcall *b, const tk_arg *a, uint32_t k) {
    uint32_t places = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->param[i].by_name) {
            continue;
        }
        if (places++ == k) {
            b->arg[i] = a->value;
            return true;
        }
    }
    return surplus(b, a, places);
}

bool tk_bi_match(tk_bcall *b, const char *signature) {
    b->n = 0;
    parse_signature(b, signature);
    bool ok = true;
    uint32_t k = 0;
    // Places first, so that a name that repeats one is found wherever it stands.
    for (uint32_t i = 0; i < b->call->u.call.args.n && ok; i++) {
        const tk_arg *a = &b->call->u.call.args.at[i];
        ok = a->name.name || match_by_place(b, a, k++);
    }
    for (uint32_t i = 0; i < b->call->u.call.args.n; i++) {
        const tk_arg *a = &b->call->u.call.args.at[i];
        ok = (!a->name.name || match_by_name(b, a)) && ok;
    }
    for (uint32_t i = 0; i < b->n && ok; i++) {
        if (!b->arg[i] && !b->param[i].optional) {
            tk_diag *d = tk_err_diag(b->c, b->call->span, "missing-argument",
                                     "'%s' needs an argument '%s'", b->name, b->param[i].name);
            tk_bi_help_signature(b, d);
            return false;
        }
    }
    return ok;
}

// ---- Texts
const char *tk_bi_arg_text(tk_bcall *b, uint32_t i) {
    enum { LONGEST = 24 };
    const char *text = b->arg[i] ? tk_source_text(b->c, b->arg[i]->span) : NULL;
    bool shown = text && strlen(text) <= LONGEST;
    return tk_format(tk_checker_arena(b->c), shown ? "'%s'" : "argument '%s'",
                     shown ? text : b->param[i].name);
}

const char *tk_bi_arg_source(tk_bcall *b, uint32_t i) {
    const char *text = b->arg[i] ? tk_source_text(b->c, b->arg[i]->span) : NULL;
    return text ? text : b->param[i].name;
}

const char *tk_bi_type_text(tk_bcall *b, tk_value v) {
    return tk_type_text(tk_checker_arena(b->c), v.type);
}

// ---- Reading arguments
bool tk_bi_value(tk_bcall *b, uint32_t i, tk_value *out) {
    *out = tk_check_value(b->c, b->arg[i]);
    return out->kind == TK_V_VALUE;
}

bool tk_bi_typed(tk_bcall *b, uint32_t i, tk_value *out) {
    if (!tk_bi_value(b, i, out)) {
        return false;
    }
    if (out->untyped) {
        const char *what = tk_format(tk_checker_arena(b->c), "argument '%s'", b->param[i].name);
        *out = tk_coerce(b->c, *out, out->type->dtype, what);
    }
    return out->kind == TK_V_VALUE;
}

bool tk_bi_tile_value(tk_bcall *b, uint32_t i, tk_span at, const char *verb, tk_value *v) {
    if (v->kind != TK_V_VALUE) {
        return false;
    }
    if (v->type->rank > 0) {
        return true;
    }
    tk_diag *d = tk_err_diag(b->c, at, "not-a-tile", "'%s' %s a tile; %s is a scalar", b->name,
                             verb, tk_bi_arg_text(b, i));
    if (b->rule == TK_RULE_MINMAX) {
        tk_bi_help(b, d, "of two values: '%s(a, b)'", b->name);
    }
    return false;
}

bool tk_bi_tile(tk_bcall *b, uint32_t i, const char *verb, tk_value *out) {
    *out = tk_check_value(b->c, b->arg[i]);
    return tk_bi_tile_value(b, i, b->arg[i]->span, verb, out);
}

bool tk_bi_int(tk_bcall *b, uint32_t i, int64_t lo, int64_t hi, int64_t *out, bool *dep) {
    const char *what = tk_format(tk_checker_arena(b->c), "argument '%s'", b->param[i].name);
    *out = lo;
    *dep = false;
    tk_value v = tk_check_value(b->c, b->arg[i]);
    if (v.kind != TK_V_VALUE || !tk_const_int(b->c, v, what, out, dep)) {
        *out = lo;
        return false;
    }
    if (*dep) {
        *out = lo;
        return true;
    }
    if (*out < lo || *out > hi) {
        tk_err(b->c, b->arg[i]->span, "out-of-range",
               "argument '%s' of '%s' is %lld; it must be from %lld to %lld", b->param[i].name,
               b->name, (long long)*out, (long long)lo, (long long)hi);
        *out = lo;
        return false;
    }
    return true;
}

bool tk_bi_axis_of(tk_bcall *b, const tk_expr *e, unsigned rank, int *axis, bool *dep) {
    int64_t n = 0;
    *axis = 0;
    *dep = false;
    tk_value v = tk_check_value(b->c, e);
    if (v.kind != TK_V_VALUE || !tk_const_int(b->c, v, "axis", &n, dep)) {
        return false;
    }
    if (*dep) {
        return true;
    }
    if (n < -(int64_t)rank || n >= (int64_t)rank) {
        tk_diag *d = tk_err_diag(b->c, e->span, "bad-axis",
                                 "axis %lld of '%s' is out of range: the tile has rank %u",
                                 (long long)n, b->name, rank);
        tk_bi_help(b, d, "an axis from %d to %u; negative ones count from the end", -(int)rank,
                   rank - 1);
        return false;
    }
    *axis = (int)(n < 0 ? n + (int64_t)rank : n);
    return true;
}

bool tk_bi_axis(tk_bcall *b, uint32_t i, unsigned rank, int *axis, bool *dep) {
    return tk_bi_axis_of(b, b->arg[i], rank, axis, dep);
}

bool tk_bi_flag(tk_bcall *b, uint32_t i, bool *out, bool *dep) {
    *out = false;
    *dep = false;
    if (!b->arg[i]) {
        return true;
    }
    const char *what = tk_format(tk_checker_arena(b->c), "argument '%s'", b->param[i].name);
    tk_value v = tk_check_value(b->c, b->arg[i]);
    return v.kind == TK_V_VALUE && tk_const_truth(b->c, v, what, out, dep);
}

bool tk_bi_choice(tk_bcall *b, uint32_t i, uint32_t n, const char *const *words, uint32_t *out) {
    const tk_expr *e = b->arg[i];
    *out = 0;
    if (!e) {
        return true;
    }
    const char *word = e->kind == TK_E_NAME ? e->u.name : NULL;
    tk_buf all;
    tk_buf_init(&all, tk_checker_arena(b->c));
    for (uint32_t k = 0; k < n; k++) {
        if (word && strcmp(word, words[k]) == 0) {
            *out = k;
            return true;
        }
        tk_buf_fmt(&all, "%s%s", k == 0 ? "" : k + 1 == n ? " or " : ", ", words[k]);
    }
    const char *param = b->param[i].name;
    tk_diag *d;
    if (word) {
        d = tk_err_diag(b->c, e->span, "unknown-choice", "'%s' is no %s of '%s'", word, param,
                        b->name);
    } else {
        d = tk_err_diag(b->c, e->span, "unknown-choice", "argument '%s' of '%s' is a word", param,
                        b->name);
    }
    const char *near = word ? tk_nearest(tk_checker_arena(b->c), word, words, n) : NULL;
    if (near) {
        tk_bi_help(b, d, "did you mean '%s'?", near);
    }
    tk_bi_help(b, d, "%s is %s", param, tk_buf_text(&all));
    return false;
}

bool tk_bi_type(tk_bcall *b, uint32_t i, tk_dtype *out) {
    tk_value v = tk_check_expr(b->c, b->arg[i]);
    *out = TK_DTYPE_DEP;
    if (v.kind == TK_V_NAME) {
        v = tk_read(b->c, v); // unknown
    }
    if (v.kind == TK_V_ERROR) {
        return false;
    }
    if (v.kind != TK_V_TYPE) {
        tk_diag *d =
            tk_err_diag(b->c, b->arg[i]->span, "type-mismatch",
                        "argument '%s' of '%s' must be an element type", b->param[i].name, b->name);
        tk_bi_help_signature(b, d);
        return false;
    }
    *out = v.dep ? TK_DTYPE_DEP : v.dtype;
    return true;
}

bool tk_bi_string(tk_bcall *b, uint32_t i, const char **out) {
    *out = NULL;
    if (!b->arg[i]) {
        return true;
    }
    if (b->arg[i]->kind != TK_E_STRING) {
        tk_diag *d = tk_err_diag(b->c, b->arg[i]->span, "type-mismatch",
                                 "the text of '%s' must be a string literal", b->name);
        tk_bi_help_signature(b, d);
        return false;
    }
    *out = b->arg[i]->u.string.text;
    return true;
}

bool tk_bi_cond(tk_bcall *b, uint32_t i, tk_value *out) {
    if (!tk_bi_value(b, i, out)) {
        return false;
    }
    tk_dtype t = out->type->dtype;
    if (t == TK_BOOL || t == TK_DTYPE_DEP) {
        return true;
    }
    tk_diag *d = tk_err_diag(b->c, b->arg[i]->span, "type-mismatch",
                             "the condition of '%s' must be bool; %s is %s", b->name,
                             tk_bi_arg_text(b, i), tk_bi_type_text(b, *out));
    bool simple = b->arg[i]->kind != TK_E_BINARY;
    tk_bi_help(b, d, simple ? "write '%s != 0'" : "write '(%s) != 0'", tk_bi_arg_source(b, i));
    return false;
}

// ---- Shapes
bool tk_bi_dim_eq(int64_t x, int64_t y) { return x == y || x == TK_DIM_DEP || y == TK_DIM_DEP; }

bool tk_bi_shape_eq(const tk_type *x, const tk_type *y) {
    bool eq = x->rank == y->rank;
    for (unsigned i = 0; eq && i < x->rank; i++) {
        eq = tk_bi_dim_eq(x->dim[i], y->dim[i]);
    }
    return eq;
}

const tk_type *tk_bi_make_type(tk_bcall *b, tk_dtype t, unsigned rank, const int64_t *dim) {
    tk_arena *a = tk_checker_arena(b->c);
    return rank == 0 ? tk_type_scalar(a, t) : tk_type_tile(a, t, rank, dim);
}

bool tk_bi_fits(tk_bcall *b, unsigned rank, const int64_t *dim) {
    int64_t n = 1;
    for (unsigned i = 0; i < rank; i++) {
        if (dim[i] == TK_DIM_DEP) {
            continue;
        }
        n = n > TK_MAX_TILE_ELEMS / dim[i] ? TK_MAX_TILE_ELEMS + 1 : n * dim[i];
        if (n > TK_MAX_TILE_ELEMS) {
            tk_err(b->c, b->call->span, "tile-too-large",
                   "the result of '%s' has shape %s: a tile has at most %lld elements", b->name,
                   tk_shape_text(tk_checker_arena(b->c), rank, dim), (long long)TK_MAX_TILE_ELEMS);
            return false;
        }
    }
    return true;
}

void tk_bi_dims_dep(unsigned rank, int64_t *dim) {
    for (unsigned i = 0; i < rank; i++) {
        dim[i] = TK_DIM_DEP;
    }
}

// ---- Results
tk_value tk_bi_error(const tk_bcall *b) { return tk_error_value(b->call->span); }

tk_x *tk_bi_node(tk_bcall *b, const tk_type *type, uint32_t n) {
    tk_x *x = tk_x_new(b->c, TK_X_BUILTIN, b->call->span, type, n);
    x->u.builtin.id = b->id;
    x->u.builtin.attr.axis = TK_AXIS_ALL;
    return x;
}

void tk_bi_operand(tk_bcall *b, tk_x *x, uint32_t i, tk_value v) {
    x->arg[i] = tk_materialize(b->c, v);
    x->varying |= v.varying;
}

tk_value tk_bi_result(tk_bcall *b, tk_x *x) { return tk_make_value(b->c, x); }

tk_value tk_bi_unary(tk_bcall *b, const tk_type *type, tk_value v) {
    tk_x *x = tk_bi_node(b, type, 1);
    tk_bi_operand(b, x, 0, v);
    return tk_bi_result(b, x);
}

tk_value tk_bi_binary(tk_bcall *b, const tk_type *type, tk_value v, tk_value w) {
    tk_x *x = tk_bi_node(b, type, 2);
    tk_bi_operand(b, x, 0, v);
    tk_bi_operand(b, x, 1, w);
    return tk_bi_result(b, x);
}

const tk_type *tk_bi_pair(tk_bcall *b, const tk_type *x, const tk_type *y) {
    const tk_type *elem[2] = {x, y};
    return tk_type_tuple(tk_checker_arena(b->c), 2, elem);
}
