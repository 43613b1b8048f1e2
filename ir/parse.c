// SPDX-License-Identifier: Apache-2.0
// The parser of the text form: modules, functions, types and places; parse_layout.c reads
// layouts, parse_op.c ops.
//
// It is written by hand, unlike the language's: the text is a list of lines, each of which starts
// with the word that says how the rest reads (by ops.def), so that one token decides everywhere;
// what a line may hold comes from tables, not from a grammar; and after an error the next line is
// the place to go on.
#include "ir/parse_internal.h"

#include <string.h>

// ---- Names of values ----------------------------------------------------------------------------

static uint32_t slot_of(const tk_irparse *p, const char *name) {
    uint32_t k = (uint32_t)(((uintptr_t)name >> 4) * 2654435761u) & (p->room - 1);
    while (p->slot[k].name && p->slot[k].name != name) {
        k = (k + 1) & (p->room - 1);
    }
    return k;
}

tk_vid tk_irp_lookup(tk_irparse *p, const char *name) {
    return p->room ? p->slot[slot_of(p, name)].value : 0;
}

static void room_for_one(tk_irparse *p) {
    if (p->nslot < p->room / 2) {
        return;
    }
    struct tk_irname *old = p->slot;
    uint32_t n = p->room;
    TK_CHECK(p->a, n < UINT32_MAX / 2);
    p->room = n ? n * 2 : 64;
    p->slot = TK_NEW_ARRAY(p->a, struct tk_irname, p->room);
    for (uint32_t i = 0; i < n; i++) {
        if (old[i].name) {
            p->slot[slot_of(p, old[i].name)] = old[i];
        }
    }
}

void tk_irp_define(tk_irparse *p, const tk_itoken *name, tk_vid v) {
    room_for_one(p);
    struct tk_irname *s = &p->slot[slot_of(p, name->text)];
    if (s->name && tk_value_type(p->f, s->value)->kind == TK_T_ERROR) {
        s->value = v; // what came before was a fault reported already
        return;
    }
    if (s->name) {
        tk_error(p->diags, tk_irp_span(p, name->begin, name->end), "ir-name",
                 "'%%%s' is defined twice", name->text);
        return;
    }
    s->name = name->text;
    s->value = v;
    p->nslot++;
}

const char *tk_irp_hint(tk_irparse *p, const char *name) {
    const char *dot = strchr(name, '.');
    const char *hint = dot ? tk_intern(&p->names, name, (size_t)(dot - name)) : name;
    return tk_text_is_ident(hint) ? hint : NULL;
}

tk_vid tk_irp_poison(tk_irparse *p) {
    const tk_type *type = tk_type_error();
    return tk_op_new(p->f, TK_OP_CONST, 0, 0, NULL, 1, &type, 0)->res[0];
}

bool tk_irp_name(tk_irparse *p, const char **out) {
    if (!tk_irp_expect(p, "@")) {
        return false;
    }
    if (p->tok.kind != TK_IT_WORD && p->tok.kind != TK_IT_STRING) {
        return tk_irp_unexpected(p, "a name");
    }
    *out = p->tok.text;
    tk_irp_next(p);
    return true;
}

// ---- Places -------------------------------------------------------------------------------------

static uint32_t file_named(tk_irparse *p, const char *name) {
    for (uint32_t i = p->sources->files.n; i > 0; i--) {
        if (strcmp(p->sources->files.at[i - 1].name, name) == 0) {
            return i;
        }
    }
    return tk_sources_add(p->sources, name, "", 0); // known by name only
}

// @? or @"file":begin-end
static bool span(tk_irparse *p, tk_span *out) {
    memset(out, 0, sizeof *out);
    if (!tk_irp_expect(p, "@")) {
        return false;
    }
    if (tk_irp_accept(p, "?")) {
        return true;
    }
    if (p->tok.kind != TK_IT_STRING) {
        return tk_irp_unexpected(p, "a file's name or '?'");
    }
    const char *name = p->tok.text;
    uint64_t begin, end;
    tk_irp_next(p);
    if (!tk_irp_expect(p, ":") || !tk_irp_u64(p, &begin) || !tk_irp_expect(p, "-")) {
        return false;
    }
    tk_itoken last = p->tok;
    if (!tk_irp_u64(p, &end)) {
        return false;
    }
    if (begin > end || end > INT32_MAX) {
        tk_error(p->diags, tk_irp_span(p, last.begin, last.end), "ir-syntax",
                 "a place ends before it begins, or beyond 2^31");
        return false;
    }
    *out = (tk_span){file_named(p, name), (uint32_t)begin, (uint32_t)end};
    return true;
}

bool tk_irp_loc(tk_irparse *p, uint32_t begin, tk_loc *out) {
    if (!tk_irp_is(p, "@") || p->tok.first) {
        *out = tk_loc_new(p->m, tk_irp_span(p, begin, p->before), 0);
        return true;
    }
    TK_VEC(tk_span) chain = {0};
    do {
        tk_span s;
        if (!span(p, &s)) {
            return false;
        }
        tk_vec_push(p->a, &chain, s);
    } while (tk_irp_accept(p, "from"));
    *out = 0;
    for (uint32_t i = chain.n; i > 0; i--) {
        bool known = chain.at[i - 1].file != 0 || *out != 0;
        *out = known ? tk_loc_new(p->m, chain.at[i - 1], *out) : 0;
    }
    return true;
}

// ---- Types --------------------------------------------------------------------------------------

static bool dims(tk_irparse *p, bool tensor, unsigned *rank, int64_t *dim) {
    unsigned most = tensor ? TK_MAX_TENSOR_RANK : TK_MAX_RANK;
    *rank = 0;
    if (tk_irp_accept(p, "]")) {
        return true;
    }
    do {
        if (*rank == most) {
            return tk_irp_unexpected(p, tk_format(p->a, "at most %u dimensions", most));
        }
        if (tensor && tk_irp_accept(p, "?")) {
            dim[(*rank)++] = TK_DIM_DYN;
            continue;
        }
        tk_itoken at = p->tok;
        if (!tk_irp_int(p, &dim[*rank])) {
            return false;
        }
        if (dim[*rank] < (tensor ? 0 : 1) || dim[*rank] > INT32_MAX) {
            tk_error(p->diags, tk_irp_span(p, at.begin, at.end), "ir-type",
                     "an extent is from %d to 2147483647", tensor ? 0 : 1);
            return false;
        }
        (*rank)++;
    } while (tk_irp_accept(p, ","));
    return tk_irp_expect(p, "]");
}

bool tk_irp_type(tk_irparse *p, const tk_type **out) {
    tk_itoken start = p->tok;
    int access = 0;
    access = tk_irp_accept(p, "in") ? TK_IN : access;
    access = !access && tk_irp_accept(p, "out") ? TK_OUT : access;
    access = !access && tk_irp_accept(p, "inout") ? TK_INOUT : access;
    tk_dtype t;
    if (p->tok.kind != TK_IT_WORD || !tk_dtype_from_name(p->tok.text, strlen(p->tok.text), &t)) {
        return tk_irp_unexpected(p, "a type");
    }
    tk_irp_next(p);
    int64_t dim[TK_MAX_TENSOR_RANK];
    unsigned rank = 0;
    bool has_dims = tk_irp_accept(p, "[");
    if (has_dims && !dims(p, access != 0, &rank, dim)) {
        return false;
    }
    if (has_dims != (access != 0 || rank > 0)) {
        tk_error(p->diags, tk_irp_span(p, start.begin, p->before), "ir-type",
                 access ? "a tensor has its dimensions in brackets"
                        : "a tile has a dimension at least; a scalar has no brackets");
        return false;
    }
    if (access) {
        *out = tk_type_tensor(p->a, t, (tk_access)access, rank, dim);
        return true;
    }
    *out = tk_type_tile(p->a, t, rank, dim);
    if (tk_type_elems(*out) > TK_MAX_TILE_ELEMS) {
        tk_error(p->diags, tk_irp_span(p, start.begin, p->before), "ir-type",
                 "a tile of more than %lld elements", (long long)TK_MAX_TILE_ELEMS);
        return false;
    }
    return true;
}

bool tk_irp_typed_values(tk_irparse *p, tk_region *r) {
    if (!tk_irp_expect(p, "(")) {
        return false;
    }
    if (tk_irp_accept(p, ")")) {
        return true;
    }
    do {
        tk_itoken name = p->tok;
        const tk_type *type;
        const tk_layout *layout;
        if (name.kind != TK_IT_VALUE) {
            return tk_irp_unexpected(p, "a value");
        }
        tk_irp_next(p);
        if (!tk_irp_expect(p, ":") || !tk_irp_type(p, &type) || !tk_irp_layout_of(p, &layout)) {
            return false;
        }
        const char *hint = tk_irp_hint(p, name.text);
        tk_vid v = r ? tk_region_arg(r, type, hint) : tk_func_param(p->f, type, hint);
        tk_value_lay(p->f, v, layout);
        tk_irp_define(p, &name, v);
    } while (tk_irp_accept(p, ","));
    return tk_irp_expect(p, ")");
}

// ---- Functions ----------------------------------------------------------------------------------

// Ops up to the closing brace, which is taken. Each bad op is reported and left out.
static bool ops(tk_irparse *p, tk_region *r) {
    while (!tk_irp_is(p, "}")) {
        if (p->tok.kind == TK_IT_END) {
            return tk_irp_unexpected(p, "'}'");
        }
        uint32_t start = p->tok.begin;
        if (!tk_irp_op(p, r) && !(p->tok.first && p->tok.begin != start)) {
            tk_irp_skip_line(p);
        }
    }
    tk_irp_next(p);
    return true;
}

bool tk_irp_region(tk_irparse *p, tk_region *r) {
    if (p->depth == TK_MAX_REGION_DEPTH) {
        return tk_irp_unexpected(p, "fewer regions within each other");
    }
    p->depth++;
    bool good = tk_irp_expect(p, "{") && ops(p, r);
    p->depth--;
    return good;
}

// %x[0]
static bool size(tk_irparse *p, tk_size_ref *out) {
    const tk_itoken name = p->tok;
    const tk_vid v = name.kind == TK_IT_VALUE ? tk_irp_lookup(p, name.text) : 0;
    int64_t axis;
    if (!v) {
        return tk_irp_unexpected(p, "a parameter");
    }
    tk_irp_next(p);
    if (!tk_irp_expect(p, "[") || !tk_irp_int(p, &axis) || !tk_irp_expect(p, "]")) {
        return false;
    }
    const bool none = axis < 0 || axis >= TK_MAX_TENSOR_RANK; // which the verifier says
    *out = (tk_size_ref){p->f->value.at[v].index, none ? TK_MAX_TENSOR_RANK : (uint32_t)axis};
    return true;
}

static bool sizes(tk_irparse *p) {
    if (!tk_irp_accept(p, "sizes")) {
        return true;
    }
    if (!tk_irp_expect(p, "(")) {
        return false;
    }
    do {
        tk_same_size s;
        if (!size(p, &s.of) || !tk_irp_expect(p, "=") || !size(p, &s.is)) {
            return false;
        }
        tk_vec_push(p->a, &p->f->sizes, s);
    } while (tk_irp_accept(p, ","));
    return tk_irp_expect(p, ")");
}

static bool results(tk_irparse *p) {
    if (!tk_irp_accept(p, "->")) {
        return true;
    }
    do {
        const tk_type *type;
        if (!tk_irp_type(p, &type)) {
            return false;
        }
        tk_vec_push(p->a, &p->f->results, type);
    } while (tk_irp_accept(p, ","));
    return true;
}

static bool function(tk_irparse *p) {
    uint32_t begin = p->tok.begin;
    bool is_kernel = tk_irp_is(p, "kernel");
    if (!is_kernel && !tk_irp_is(p, "func")) {
        return tk_irp_unexpected(p, "'func' or 'kernel'");
    }
    tk_irp_next(p);
    const char *name = NULL;
    if (!tk_irp_name(p, &name)) {
        return false;
    }
    p->f = tk_func_new(p->m, name, is_kernel);
    p->slot = NULL;
    p->nslot = p->room = p->depth = 0;
    if (!tk_irp_typed_values(p, NULL) || !sizes(p) || !results(p) ||
        !tk_irp_loc(p, begin, &p->f->loc) || !tk_irp_expect(p, "{")) {
        return false;
    }
    if (tk_irp_accept(p, "grid")) {
        p->f->grid = tk_region_new(p->f, NULL);
        if (!tk_irp_region(p, p->f->grid)) {
            return false;
        }
    }
    return ops(p, p->f->body);
}

// ---- Modules ------------------------------------------------------------------------------------

static bool require(tk_irparse *p) {
    tk_kernel_attrs *a = &p->m->attrs;
    uint32_t begin = p->tok.begin;
    if (p->tok.kind != TK_IT_WORD && p->tok.kind != TK_IT_STRING) {
        return tk_irp_unexpected(p, "what is required");
    }
    const char *name = p->tok.text;
    int64_t arg = -1;
    tk_irp_next(p);
    if (!p->tok.first && tk_irp_accept(p, "(")) {
        if (!tk_irp_int(p, &arg) || !tk_irp_expect(p, ")")) {
            return false;
        }
    }
    tk_span at = tk_irp_span(p, begin, p->before);
    if (tk_irp_is(p, "@") && !p->tok.first && !span(p, &at)) {
        return false;
    }
    tk_vec_push(p->a, &a->require, name);
    tk_vec_push(p->a, &a->require_arg, arg);
    tk_vec_push(p->a, &a->require_span, at);
    return true;
}

// What follows an attribute's number: its place, else the text just read is.
static bool attr_place(tk_irparse *p, uint32_t begin, tk_span *at) {
    if (!at) {
        return true;
    }
    *at = tk_irp_span(p, begin, p->before);
    return p->tok.first || !tk_irp_is(p, "@") || span(p, at);
}

static bool module_attr(tk_irparse *p) {
    tk_kernel_attrs *a = &p->m->attrs;
    struct {
        const char *name;
        int64_t *to;
        tk_span *at; // where it is said to be written; NULL: nowhere
    } number[] = {{"warps", &a->warps, NULL},
                  {"stages", &a->stages, &a->stages_span},
                  {"cluster", &a->cluster, &a->cluster_span},
                  {"producers", &a->producers, &a->specialize_span},
                  {"consumers", &a->consumers, &a->specialize_span},
                  {"packed", &p->m->packed, NULL},
                  {"live", &p->m->live, NULL},
                  {"group", &p->m->group, NULL},
                  {"shared", &p->m->shared, NULL}};
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        const uint32_t begin = p->tok.begin;
        if (tk_irp_accept(p, number[i].name)) {
            return tk_irp_expect(p, "=") && tk_irp_int(p, number[i].to) &&
                   attr_place(p, begin, number[i].at);
        }
    }
    if (tk_irp_accept(p, "persistent")) {
        a->persistent = true;
        return true;
    }
    if (tk_irp_accept(p, "tuned_stages")) {
        a->stages_tuned = true;
        return true;
    }
    if (tk_irp_accept(p, "require")) {
        return tk_irp_expect(p, "=") && require(p);
    }
    return tk_irp_unexpected(p, "an attribute of the module or the end of the line");
}

static bool module_head(tk_irparse *p) {
    if (!tk_irp_expect(p, "module")) {
        return false;
    }
    if (p->tok.kind != TK_IT_WORD || !tk_level_from_name(p->tok.text, &p->m->level)) {
        return tk_irp_unexpected(p, "'tile', 'laid' or 'staged'");
    }
    tk_irp_next(p);
    while (!p->tok.first) {
        if (!module_attr(p)) {
            return false;
        }
    }
    return true;
}

static void skip_to_function(tk_irparse *p) {
    while (p->tok.kind != TK_IT_END &&
           !(p->tok.first && (tk_irp_is(p, "func") || tk_irp_is(p, "kernel")))) {
        tk_irp_next(p);
    }
}

tk_module *tk_ir_parse(tk_arena *arena, tk_sources *sources, uint32_t source, tk_diags *diags) {
    const tk_source *file = tk_source_of(sources, source);
    TK_CHECK(arena, file != NULL);
    uint32_t errors = diags->errors;
    tk_irparse p = {.a = arena,
                    .sources = sources,
                    .diags = diags,
                    .source = source,
                    .text = file->text,
                    .size = file->size,
                    .m = tk_module_new(arena, sources)};
    tk_names_init(&p.names, arena);
    tk_irp_next(&p);
    bool good = module_head(&p);
    while (good && tk_irp_is(&p, "layout")) {
        good = tk_irp_layout(&p);
    }
    if (!good) {
        skip_to_function(&p);
    }
    while (p.tok.kind != TK_IT_END) {
        if (!function(&p)) {
            skip_to_function(&p);
        }
    }
    return diags->errors == errors ? p.m : NULL;
}
