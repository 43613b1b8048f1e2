// SPDX-License-Identifier: Apache-2.0
// Attributes: known names, argument kinds and ranges.
#include "lang/check_core.h"

#include <string.h>

typedef enum {
    A_WARPS,
    A_STAGES,
    A_CLUSTER,
    A_PERSISTENT,
    A_SPECIALIZE,
    A_FASTMATH,
    A_TUNE,
    A_REQUIRE,
    A_COUNT
} attr_kind;

static const char *const attr_name[A_COUNT] = {"warps",      "stages",   "cluster", "persistent",
                                               "specialize", "fastmath", "tune",    "require"};

static attr_kind kind_of(const tk_attr *a) {
    int k = 0;
    while (k < A_COUNT && strcmp(attr_name[k], a->name.name ? a->name.name : "") != 0) {
        k++;
    }
    return (attr_kind)k;
}

// What is written before a kernel, or before one of its specialisations: NULL where it is not.
typedef struct attr_level {
    const tk_attr *at[A_COUNT];
} attr_level;

static void did_you_mean(tk_checker *c, tk_diag *d, const char *name, const char *const *list,
                         size_t n) {
    const char *near = name ? tk_nearest(c->arena, name, list, n) : NULL;
    if (near) {
        tk_help(c->diags, d, (tk_span){0}, "did you mean '%s'?", near);
        return;
    }
    tk_buf b;
    tk_buf_init(&b, c->arena);
    for (size_t i = 0; i < n; i++) {
        tk_buf_fmt(&b, "%s%s", i ? ", " : "", list[i]);
    }
    tk_help(c->diags, d, (tk_span){0}, "there are %s", tk_buf_text(&b));
}

static void write_it(tk_checker *c, tk_diag *d, const char *what) {
    tk_help(c->diags, d, (tk_span){0}, "write %s", what);
}

// The word of an argument: a name alone, however it was parsed.
static const char *word(const tk_attr_arg *x) {
    if (x->is_set || x->list.n) {
        return NULL;
    }
    if (x->name.name && !x->value) {
        return x->name.name;
    }
    return !x->name.name && x->value && x->value->kind == TK_E_NAME ? x->value->u.name : NULL;
}

// The name of an argument: what stands before '=', 'in' or '(', or alone.
static const char *name_of(const tk_attr_arg *x) { return x->name.name ? x->name.name : word(x); }

static void twice(tk_checker *c, const tk_attr *a, const char *name, tk_span at, tk_span first) {
    tk_diag *d =
        tk_err_diag(c, at, "attribute-argument", "'%s' stands twice in '@%s'", name, a->name.name);
    tk_note(c->diags, d, first, "the first one is here");
}

// Each argument says something else.
static void check_twice(tk_checker *c, const tk_attr *a) {
    for (uint32_t i = 0; i < a->args.n; i++) {
        const char *name = name_of(&a->args.at[i]);
        for (uint32_t k = 0; k < i && name; k++) {
            const char *other = name_of(&a->args.at[k]);
            if (other && strcmp(name, other) == 0) {
                twice(c, a, name, a->args.at[i].span, a->args.at[k].span);
                break;
            }
        }
    }
    for (uint32_t i = 0; i < a->keys.n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (tk_same_name(a->keys.at[i].name, a->keys.at[k].name)) {
                twice(c, a, a->keys.at[i].name, a->keys.at[i].span, a->keys.at[k].span);
                break;
            }
        }
    }
}

// ---- Numbers ----------------------------------------------------------------------------------
static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

// A compile-time integer in [lo, hi]; 0 after an error or where it depends.
static int64_t number(tk_checker *c, const tk_expr *e, const char *what, int64_t lo, int64_t hi,
                      bool power) {
    int64_t n;
    bool dep;
    if (!tk_const_int(c, tk_check_known(c, e), what, &n, &dep) || dep) {
        return 0;
    }
    if (n < lo || n > hi || (power && !is_power_of_two(n))) {
        tk_err(c, e->span, "attribute-range", "%s is %sfrom %lld to %lld, not %lld", what,
               power ? "a power of two " : "", (long long)lo, (long long)hi, (long long)n);
        return 0;
    }
    return n;
}

// @warps(8): one bare value.
static int64_t one_number(tk_checker *c, const tk_attr *a, int64_t lo, int64_t hi, bool power) {
    const tk_attr_arg *x = a->args.n == 1 ? &a->args.at[0] : NULL;
    if (!x || x->name.name || x->is_set || !x->value) {
        tk_diag *d =
            tk_err_diag(c, a->span, "attribute-argument", "'@%s' takes one number", a->name.name);
        tk_help(c->diags, d, (tk_span){0}, "write '@%s(%lld)'", a->name.name,
                (long long)(hi < 4 ? hi : 4));
        return 0;
    }
    return number(c, x->value, tk_format(c->arena, "'@%s'", a->name.name), lo, hi, power);
}

// ---- fastmath -----------------------------------------------------------------------------------

static unsigned fastmath(tk_checker *c, const tk_attr *a) {
    static const char *const names[] = {"contract", "approx", "ftz"};
    unsigned fast = 0;
    if (!a->args.n) {
        tk_diag *d =
            tk_err_diag(c, a->span, "attribute-argument", "'@fastmath' says what it permits");
        write_it(c, d, "'@fastmath(contract)', 'approx' or 'ftz'");
    }
    for (uint32_t i = 0; i < a->args.n; i++) {
        const tk_attr_arg *x = &a->args.at[i];
        const char *w = word(x);
        unsigned k = 0;
        while (w && k < 3 && strcmp(names[k], w) != 0) {
            k++;
        }
        if (w && k < 3) {
            fast |= 1u << k;
            continue;
        }
        tk_diag *d =
            tk_err_diag(c, x->span, "attribute-argument", "'@fastmath' does not take this");
        did_you_mean(c, d, w, names, 3);
    }
    check_twice(c, a);
    return fast;
}

unsigned tk_fn_fast(tk_checker *c, const tk_fn *fn, unsigned outer) {
    for (uint32_t i = 0; i < fn->attrs.n; i++) {
        if (kind_of(&fn->attrs.at[i]) == A_FASTMATH) {
            return fastmath(c, &fn->attrs.at[i]);
        }
    }
    return outer;
}

static void unknown_attr(tk_checker *c, const tk_attr *a) {
    tk_diag *d =
        tk_err_diag(c, a->span, "unknown-attribute", "unknown attribute '@%s'", a->name.name);
    did_you_mean(c, d, a->name.name, attr_name, A_COUNT);
}

// All that stands in one place, by kind. Of an attribute that is written twice the first.
static void read_level(tk_checker *c, const tk_attr *at, uint32_t n, attr_level *out) {
    for (uint32_t i = 0; i < n; i++) {
        const attr_kind k = kind_of(&at[i]);
        if (k == A_COUNT) {
            unknown_attr(c, &at[i]);
        } else if (!out->at[k]) {
            out->at[k] = &at[i];
        } else {
            tk_diag *d = tk_err_diag(c, at[i].span, "repeated-attribute", "'@%s' is written twice",
                                     at[i].name.name);
            tk_note(c->diags, d, out->at[k]->span, "the first one is here");
        }
    }
}

void tk_check_fn_attrs(tk_checker *c, const tk_fn *fn) {
    attr_level here = {0};
    read_level(c, fn->attrs.at, fn->attrs.n, &here);
    for (int k = 0; k < A_COUNT; k++) {
        const tk_attr *a = here.at[k];
        if (a && k != A_FASTMATH) {
            tk_err(c, a->span, "misplaced-attribute", "'@%s' stands only before a kernel",
                   a->name.name);
        } else if (a) {
            (void)fastmath(c, a);
        }
    }
}

// ---- specialize, tune, require

// A block has 32 warps, which are dealt out by fours.
enum { GROUP = 4, BLOCK = 32, GROUPS = BLOCK / GROUP };

static void specialize(tk_checker *c, const tk_attr *a, tk_kernel_attrs *out) {
    static const char *const names[] = {"producers", "consumers"};
    static const char how[] = "'@specialize(producers = 1, consumers = 2)', or one of both";
    int64_t *const to[] = {&out->producers, &out->consumers};
    for (uint32_t i = 0; i < a->args.n; i++) {
        const tk_attr_arg *x = &a->args.at[i];
        const char *name = name_of(x);
        int k = !name ? 2 : strcmp(name, names[0]) == 0 ? 0 : strcmp(name, names[1]) == 0 ? 1 : 2;
        if (k == 2 || !x->name.name || !x->value || x->is_set) {
            tk_diag *d = tk_err_diag(c, x->span, "attribute-argument",
                                     "'@specialize' takes producers = n and consumers = n");
            if (k == 2 && name) {
                did_you_mean(c, d, name, names, 2);
            } else {
                write_it(c, d, how);
            }
            continue;
        }
        // Who computes is a power of two, and there is a group beside.
        *to[k] = number(c, x->value, tk_format(c->arena, "'%s'", names[k]), 1,
                        k == 1 ? GROUPS / 2 : GROUPS - 1, k == 1);
    }
    check_twice(c, a);
    out->specialize_span = a->span;
    if (!a->args.n) {
        tk_diag *d = tk_err_diag(c, a->span, "attribute-argument",
                                 "'@specialize' takes producers = n and consumers = n");
        write_it(c, d, how);
    }
}

static const tk_cparam *cparam_of(const tk_fn *fn, const char *name) {
    for (uint32_t i = 0; i < fn->cparams.n; i++) {
        if (tk_same_name(fn->cparams.at[i].name.name, name)) {
            return &fn->cparams.at[i];
        }
    }
    return NULL;
}

// Numbers of warps or stages that are said elsewhere are not tried. NULL: nothing here says them.
static const tk_attr *said_beside(const attr_level *here, bool warps) {
    const tk_attr *s = here->at[A_SPECIALIZE];
    for (uint32_t i = 0; warps && s && i < s->args.n; i++) {
        const char *name = name_of(&s->args.at[i]);
        if (!here->at[A_WARPS] && name && strcmp(name, "consumers") == 0) {
            return s;
        }
    }
    return here->at[warps ? A_WARPS : A_STAGES];
}

static bool is_tuned(tk_checker *c, const tk_kernel_def *def, const tk_attr_arg *x) {
    const char *name = x->name.name;
    const tk_cparam *p = cparam_of(def->fn, name);
    if (strcmp(name, "warps") == 0 || strcmp(name, "stages") == 0 ||
        (p && tk_cparam_kind(c, p, false) == TK_CK_INT)) {
        return true;
    }
    TK_VEC(const char *) names = {0};
    tk_vec_push(c->arena, &names, "warps");
    tk_vec_push(c->arena, &names, "stages");
    for (uint32_t i = 0; i < def->fn->cparams.n; i++) {
        if (tk_cparam_kind(c, &def->fn->cparams.at[i], false) == TK_CK_INT) {
            tk_vec_push(c->arena, &names, def->fn->cparams.at[i].name.name);
        }
    }
    tk_diag *d = tk_err_diag(c, x->name.span, "attribute-argument",
                             "'@tune' tries values of int parameters, warps and stages, not of "
                             "'%s'",
                             name);
    did_you_mean(c, d, name, names.at, names.n);
    return false;
}

static void tune_set(tk_checker *c, const tk_kernel_def *def, const tk_attr_arg *x,
                     const attr_level *here, tk_kernel_attrs *out) {
    if (!is_tuned(c, def, x)) {
        return;
    }
    const char *name = x->name.name;
    const bool warps = strcmp(name, "warps") == 0, stages = strcmp(name, "stages") == 0;
    const tk_attr *other = warps || stages ? said_beside(here, warps) : NULL;
    if (other) {
        tk_diag *d = tk_err_diag(c, x->span, "attribute-argument",
                                 "'@tune' tries numbers of %s, but '@%s' says how many", name,
                                 other->name.name);
        tk_note(c->diags, d, other->span, "it stands here");
    }
    if (!x->list.n) {
        tk_err(c, x->span, "attribute-argument", "a set of '@tune' has at least one value");
    }
    int64_t *seen = TK_NEW_ARRAY(c->arena, int64_t, x->list.n + 1);
    for (uint32_t i = 0; i < x->list.n; i++) {
        const char *what = tk_format(c->arena, "'%s'", name);
        int64_t n = warps    ? number(c, x->list.at[i], what, 1, BLOCK, true)
                    : stages ? number(c, x->list.at[i], what, 1, 8, false)
                             : number(c, x->list.at[i], what, INT32_MIN, INT32_MAX, false);
        for (uint32_t k = 0; k < i; k++) {
            if (seen[k] == n && n != 0) {
                tk_diag *d = tk_err_diag(c, x->list.at[i]->span, "attribute-argument",
                                         "%lld stands twice in the set of %s", (long long)n, what);
                tk_note(c->diags, d, x->list.at[k]->span, "here");
                break;
            }
        }
        seen[i] = n;
        if (i == 0 && warps && !out->warps && !other) {
            out->warps = n;
            out->warps_span = x->span;
        }
        if (i == 0 && stages && !out->stages) {
            out->stages_tuned = true;
            out->stages = n;
            out->stages_span = x->span;
        }
    }
    tk_vec_push(c->arena, &out->tuned, name);
}

static void tune_keys(tk_checker *c, const tk_kernel_def *def, const tk_attr *a) {
    for (uint32_t i = 0; i < a->keys.n; i++) {
        tk_ident id = a->keys.at[i];
        TK_VEC(const char *) names = {0};
        bool found = false;
        for (uint32_t k = 0; k < def->dim.n; k++) {
            found = found || tk_same_name(def->dim.at[k].name.name, id.name);
            tk_vec_push(c->arena, &names, def->dim.at[k].name.name);
        }
        for (uint32_t k = 0; k < def->param.n; k++) {
            found = found || tk_same_name(def->param.at[k]->name.name, id.name);
            tk_vec_push(c->arena, &names, def->param.at[k]->name.name);
        }
        for (uint32_t k = 0; k < def->fn->cparams.n; k++) {
            found = found || tk_same_name(def->fn->cparams.at[k].name.name, id.name);
            tk_vec_push(c->arena, &names, def->fn->cparams.at[k].name.name);
        }
        if (!found) {
            tk_diag *d =
                tk_err_diag(c, id.span, "attribute-argument",
                            "a key of '@tune' is a dimension or a parameter, not '%s'", id.name);
            did_you_mean(c, d, id.name, names.at, names.n);
        }
    }
}

static void tune(tk_checker *c, const tk_kernel_def *def, const tk_attr *a, const attr_level *here,
                 tk_kernel_attrs *out) {
    static const char what[] = "'@tune' takes sets of values", how[] = "'@tune(BM in {64, 128})'";
    for (uint32_t i = 0; i < a->args.n; i++) {
        const tk_attr_arg *x = &a->args.at[i];
        if (!x->is_set || !x->name.name) {
            write_it(c, tk_err_diag(c, x->span, "attribute-argument", what), how);
            continue;
        }
        tune_set(c, def, x, here, out);
    }
    if (!a->args.n) {
        write_it(c, tk_err_diag(c, a->span, "attribute-argument", what), how);
    }
    out->tune_span = a->span;
    check_twice(c, a);
    tune_keys(c, def, a);
}

static const struct {
    const char *name;
    int64_t lo, hi; // 0, 0: no argument
    const char *example;
} requirement[] = {
    {"tensor_cores", 0, 0, ""},
    {"async_copy", 0, 0, ""},
    {"tma", 0, 0, ""},
    {"vectorized", 0, 0, ""},
    {"no_spills", 0, 0, ""},
    {"no_bank_conflicts", 0, 0, ""},
    {"max_registers", 16, 255, "(128)"},
    {"max_shared", 1, (int64_t)1 << 30, "(48KB)"},
};
enum { REQUIREMENTS = sizeof requirement / sizeof *requirement };

// 100KB is a number only here.
static int64_t size(tk_checker *c, const tk_expr *e, const char *what, int64_t lo, int64_t hi) {
    if (e->kind != TK_E_INT || !e->u.i.shift) {
        return number(c, e, what, lo, hi, false);
    }
    if (e->u.i.value < 1 || e->u.i.value > (uint64_t)(hi >> e->u.i.shift)) {
        tk_err(c, e->span, "attribute-range", "%s is from %lld to %lld", what, (long long)lo,
               (long long)hi);
        return 0;
    }
    return (int64_t)(e->u.i.value << e->u.i.shift);
}

static void require_one(tk_checker *c, const tk_attr_arg *x, tk_kernel_attrs *out) {
    const char *name = name_of(x);
    const char *names[REQUIREMENTS];
    int k = REQUIREMENTS;
    for (int i = 0; i < REQUIREMENTS; i++) {
        names[i] = requirement[i].name;
        k = name && strcmp(name, names[i]) == 0 ? i : k;
    }
    if (k == REQUIREMENTS) {
        tk_diag *d = tk_err_diag(c, x->span, "attribute-argument", "unknown requirement%s%s%s",
                                 name ? " '" : "", name ? name : "", name ? "'" : "");
        did_you_mean(c, d, name, names, REQUIREMENTS);
        return;
    }
    bool wants = requirement[k].hi != 0;
    const tk_expr *arg = x->list.n == 1 ? x->list.at[0] : NULL;
    if (wants != (arg != NULL) || x->list.n > 1 || x->is_set) {
        tk_diag *d = tk_err_diag(c, x->span, "attribute-argument",
                                 wants ? "'%s' takes one number" : "'%s' takes no number", name);
        write_it(c, d, tk_format(c->arena, "'%s%s'", name, requirement[k].example));
        return;
    }
    int64_t n =
        arg ? size(c, arg, tk_format(c->arena, "'%s'", name), requirement[k].lo, requirement[k].hi)
            : -1;
    tk_vec_push(c->arena, &out->require, requirement[k].name);
    tk_vec_push(c->arena, &out->require_arg, n);
    tk_vec_push(c->arena, &out->require_span, x->span);
}

static void require(tk_checker *c, const tk_attr *a, tk_kernel_attrs *out) {
    for (uint32_t i = 0; i < a->args.n; i++) {
        require_one(c, &a->args.at[i], out);
    }
    check_twice(c, a);
    if (!a->args.n) {
        tk_diag *d =
            tk_err_diag(c, a->span, "attribute-argument", "'@require' says what it requires");
        write_it(c, d, "'@require(vectorized)', or what else the code must have");
    }
}

static void kernel_attr(tk_checker *c, const tk_kernel_def *def, const attr_level *here,
                        attr_kind k, tk_kernel_attrs *out) {
    const tk_attr *a = here->at[k];
    switch (k) {
    case A_WARPS:
        out->warps = one_number(c, a, 1, BLOCK, true);
        out->warps_span = a->span;
        return;
    case A_STAGES:
        out->stages = one_number(c, a, 1, 8, false);
        out->stages_span = a->span;
        return;
    case A_CLUSTER:
        out->cluster = one_number(c, a, 1, 16, false);
        out->cluster_span = a->span;
        return;
    case A_PERSISTENT:
        out->persistent = true;
        if (a->args.n) {
            write_it(
                c, tk_err_diag(c, a->span, "attribute-argument", "'@persistent' takes no argument"),
                "'@persistent'");
        }
        return;
    case A_SPECIALIZE:
        specialize(c, a, out);
        return;
    case A_FASTMATH:
        (void)fastmath(c, a);
        return;
    case A_TUNE:
        tune(c, def, a, here, out);
        return;
    case A_REQUIRE:
        require(c, a, out);
        return;
    case A_COUNT:
        return;
    }
}

// Groups of four warps that compute say how many warps there are, and those that fetch are beside.
static void warps_of_groups(tk_checker *c, tk_kernel_attrs *out) {
    const int64_t said = out->warps, own = GROUP * out->consumers;
    if (!out->consumers && !out->producers) {
        return;
    }
    tk_diag *d = NULL;
    if (own > 0 && said > 0 && own != said) {
        d = tk_err_diag(c, out->specialize_span, "attribute-argument",
                        "'consumers = %lld' is %lld warps, but %lld are said",
                        (long long)out->consumers, (long long)own, (long long)said);
    } else if (said > 0 && said < GROUP) {
        d = tk_err_diag(c, out->specialize_span, "attribute-argument",
                        "'@specialize' deals out groups of %d warps, but a program has %lld", GROUP,
                        (long long)said);
    }
    out->warps = own > 0 ? own : said;
    const int64_t fetch = out->producers ? out->producers : 1,
                  compute = out->warps > GROUP ? out->warps : GROUP;
    if (!d && GROUP * fetch + compute > BLOCK) {
        d = tk_err_diag(c, out->specialize_span, "attribute-range",
                        "%lld warps that fetch beside %lld that compute are more than the %d of a "
                        "block",
                        (long long)(GROUP * fetch), (long long)compute, BLOCK);
    }
    if (d && said > 0) {
        tk_note(c->diags, d, out->warps_span, "the number of warps is said here");
    }
}

// Attributes of a specialisation stand in place of the kernel's of the same name; so do the numbers
// of warps and stages, whichever attribute says them.
void tk_check_kernel_attrs(tk_checker *c, const tk_kernel_def *def, tk_kernel_attrs *out) {
    bool done[A_COUNT] = {0};
    for (uint32_t i = 0; i <= def->alias.n; i++) {
        const bool own = i == def->alias.n;
        const tk_item *item = own ? NULL : def->alias.at[i].item;
        const tk_attr *at = own ? def->fn->attrs.at : item->u.alias.attrs.at;
        const uint32_t n = own ? def->fn->attrs.n : item->u.alias.attrs.n;
        attr_level here = {0};
        read_level(c, at, n, &here);
        const tk_kernel_attrs outer = *out;
        for (uint32_t j = 0; j < 2 * n; j++) { // @tune last
            const attr_kind k = kind_of(&at[j % n]);
            if (k != A_COUNT && here.at[k] == &at[j % n] && !done[k] && (k == A_TUNE) == (j >= n)) {
                kernel_attr(c, def, &here, k, out);
                done[k] = true;
            }
        }
        if (outer.warps) {
            out->warps = outer.warps;
            out->warps_span = outer.warps_span;
        }
        if (outer.stages) {
            out->stages = outer.stages;
            out->stages_tuned = outer.stages_tuned;
            out->stages_span = outer.stages_span;
        }
    }
    warps_of_groups(c, out);
}

const tk_expr *tk_tune_first(const tk_kernel_def *def, const char *name) {
    for (uint32_t level = 0; level <= def->alias.n; level++) {
        bool own = level == def->alias.n;
        uint32_t n = own ? def->fn->attrs.n : def->alias.at[level].item->u.alias.attrs.n;
        const tk_attr *at = own ? def->fn->attrs.at : def->alias.at[level].item->u.alias.attrs.at;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t k = 0; kind_of(&at[i]) == A_TUNE && k < at[i].args.n; k++) {
                const tk_attr_arg *x = &at[i].args.at[k];
                if (x->is_set && x->list.n && tk_same_name(x->name.name, name)) {
                    return x->list.at[0];
                }
            }
        }
    }
    return NULL;
}

unsigned tk_kernel_fast(tk_checker *c, const tk_kernel_def *def) {
    for (uint32_t level = 0; level < def->alias.n; level++) {
        const tk_item *item = def->alias.at[level].item;
        for (uint32_t i = 0; i < item->u.alias.attrs.n; i++) {
            if (kind_of(&item->u.alias.attrs.at[i]) == A_FASTMATH) {
                return fastmath(c, &item->u.alias.attrs.at[i]);
            }
        }
    }
    return tk_fn_fast(c, def->fn, 0);
}
