// SPDX-License-Identifier: Apache-2.0
// The module around the instructions: directives, variables, entries and their bodies.
//
// By hand rather than with flex and bison: what PTX has of grammar is a list of statements, and
// what it has of difficulty (which operands a mnemonic with its suffixes takes) is the table of
// instructions, which a grammar would repeat.
#include "sim/read.h"

#include <string.h>

// ---- Statements of a body

static void read_registers(tk_sim_reader *r) {
    tk_sim_type type;
    if (tk_sim_is(r, ".b128") || tk_sim_is(r, ".v2") || tk_sim_is(r, ".v4")) {
        tk_sim_refuse(r, "registers of type %s are not supported by the simulator",
                      tk_sim_token_text(r));
    }
    if (!tk_sim_read_type(r, &type) || !tk_sim_is_declarable(type)) {
        tk_sim_refuse(r, "registers of type %s are not known", tk_sim_token_text(r));
    }
    do {
        const char *name = tk_sim_word(r, "a register");
        bool range = tk_sim_accept(r, "<");
        tk_sim_symbol *s = tk_sim_declare(r, name, range ? TK_SIM_SYMBOL_RANGE : TK_SIM_SYMBOL_REG);
        s->type = type;
        if (range) {
            s->value = (uint32_t)tk_sim_read_integer(r, 99999999, "a number of registers");
            if (s->least < s->value) {
                tk_sim_refuse(r, "'%s%u' is declared twice", name, s->least);
            }
            tk_sim_expect(r, ">");
        }
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ";");
}

static void read_loc(tk_sim_reader *r) {
    uint32_t number[3];
    for (unsigned k = 0; k < 3; k++) {
        number[k] = (uint32_t)tk_sim_read_integer(r, UINT32_MAX, "a number of .loc");
    }
    while (tk_sim_accept(r, ",")) { // function_name L [+ n], inlined_at F L C
        tk_sim_word(r, "an attribute of .loc");
        while (r->token.kind == TK_SIM_TOKEN_NUMBER || tk_sim_is(r, "+") ||
               (r->token.kind == TK_SIM_TOKEN_WORD && r->token.at[0] == '$')) {
            tk_sim_next(r);
        }
    }
    const tk_sim_program *p = r->program;
    const tk_sim_loc *last = &p->locs.at[r->loc];
    if (number[1] == 0) {
        return; // line 0: of no line; the one before stays
    }
    if (last->file != number[0] || last->line != number[1] || last->column != number[2]) {
        tk_sim_loc l = {number[0], number[1], number[2]};
        tk_vec_push(r->arena, &r->program->locs, l);
        r->loc = r->program->locs.n - 1;
    }
}

static void read_pragma(tk_sim_reader *r) {
    do {
        if (r->token.kind != TK_SIM_TOKEN_STRING) {
            tk_sim_refuse(r, "expected a pragma, not %s", tk_sim_token_text(r));
        }
        tk_sim_next(r);
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ";");
}

static bool read_body_directive(tk_sim_reader *r) {
    if (tk_sim_accept(r, ".reg")) {
        read_registers(r);
    } else if (tk_sim_accept(r, ".local")) {
        tk_sim_read_locals(r, TK_SIM_ROLE_NONE);
    } else if (tk_sim_accept(r, ".param")) {
        tk_sim_read_locals(r, TK_SIM_ROLE_CALL);
    } else if (tk_sim_accept(r, ".shared")) {
        tk_sim_read_variables(r, TK_SIM_SHARED, false);
    } else if (tk_sim_accept(r, ".global")) {
        tk_sim_read_variables(r, TK_SIM_GLOBAL, false);
    } else if (tk_sim_accept(r, ".const")) {
        tk_sim_read_variables(r, TK_SIM_CONST, false);
    } else if (tk_sim_accept(r, ".loc")) {
        read_loc(r);
    } else if (tk_sim_accept(r, ".pragma")) {
        read_pragma(r);
    } else {
        return false;
    }
    return true;
}

static void read_targets(tk_sim_reader *r, const char *name) {
    TK_VEC(const char *) labels = {0};
    tk_sim_symbol *s = tk_sim_declare(r, name, TK_SIM_SYMBOL_TARGETS);
    do {
        const char *label = tk_sim_word(r, "a label");
        if (labels.n == 4096) {
            tk_sim_refuse(r, "more than 4096 branch targets");
        }
        tk_vec_push(r->arena, &labels, label);
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ";");
    s->labels = labels.at;
    s->value = labels.n;
}

// A label, or an instruction with or without a guard.
static void read_statement(tk_sim_reader *r) {
    uint8_t guard = 0;
    uint32_t slot = 0;
    if (r->token.kind == TK_SIM_TOKEN_WORD && r->at < r->end && *r->at == ':') {
        const char *name = tk_sim_word(r, "a label");
        tk_sim_expect(r, ":");
        if (tk_sim_accept(r, ".branchtargets")) {
            read_targets(r, name);
            return;
        }
        tk_sim_declare(r, name, TK_SIM_SYMBOL_LABEL)->value = r->program->code.n;
        return;
    }
    if (tk_sim_accept(r, "@")) {
        guard = tk_sim_accept(r, "!") ? 2 : 1;
        const char *name = tk_sim_word(r, "a predicate");
        const tk_sim_symbol *s = tk_sim_lookup(r, name);
        if (!s || s->kind != TK_SIM_SYMBOL_REG || s->type != TK_SIM_PRED) {
            tk_sim_refuse(r, "'%s' is no predicate", name);
        }
        slot = s->value;
    }
    if (r->token.kind == TK_SIM_TOKEN_WORD && r->token.at[0] == '.') {
        tk_sim_refuse(r, "unknown directive %s", tk_sim_token_text(r));
    }
    tk_sim_read_inst(r, guard, slot);
}

// Up to the brace that ends it, and with it the scope of the parameters, which is its own.
static void read_body(tk_sim_reader *r) {
    const uint32_t own = r->depth;
    while (r->depth >= own) {
        if (tk_sim_accept(r, "{")) {
            tk_sim_scope_open(r);
        } else if (tk_sim_accept(r, "}")) {
            tk_sim_scope_close(r);
        } else if (!read_body_directive(r)) {
            read_statement(r);
        }
    }
}

// ---- Entries

static void read_params(tk_sim_reader *r) {
    tk_sim_entry *e = r->entry;
    uint64_t used = 0;
    if (!tk_sim_accept(r, "(") || tk_sim_accept(r, ")")) {
        return;
    }
    do {
        tk_sim_declared d;
        tk_sim_expect(r, ".param");
        tk_sim_read_parameter(r, &d, 32764);
        uint64_t n = tk_sim_declared_bytes(r, &d, 32764);
        uint64_t at = tk_sim_put_behind(&used, n, tk_sim_declared_align(&d));
        tk_sim_param p = {d.name, (uint32_t)at, (uint32_t)n};
        if (used > 32764) {
            tk_sim_refuse(r, "parameters of more than 32764 bytes");
        }
        tk_vec_push(r->arena, &e->params, p);
        tk_sim_declare(r, d.name, TK_SIM_SYMBOL_PARAM)->value = p.offset;
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ")");
    e->param_bytes = (uint32_t)used;
}

static uint32_t read_count(tk_sim_reader *r, uint32_t most, const char *what) {
    const uint32_t n = (uint32_t)tk_sim_read_integer(r, most, what);
    if (n == 0) {
        tk_sim_refuse(r, "%s must be greater than 0", what);
    }
    return n;
}

static void read_three(tk_sim_reader *r, uint32_t *out, const char *what) {
    out[1] = out[2] = 1;
    for (unsigned k = 0; k < 3; k++) {
        out[k] = read_count(r, UINT32_MAX, what);
        if (k < 2 && !tk_sim_accept(r, ",")) {
            return;
        }
    }
}

static void check_bounds(tk_sim_reader *r) {
    const tk_sim_entry *e = r->entry;
    if (e->reqntid[0] && e->maxntid[0]) {
        tk_sim_refuse(r, ".reqntid and .maxntid exclude each other");
    }
    if (e->cluster[0] && e->maxclusterrank) {
        tk_sim_refuse(r, ".reqnctapercluster and .maxclusterrank exclude each other");
    }
    if (e->blocks_are_clusters && (!e->reqntid[0] || !e->cluster[0])) {
        tk_sim_refuse(r, ".blocksareclusters needs .reqntid and .reqnctapercluster");
    }
}

static void read_bounds(tk_sim_reader *r) {
    tk_sim_entry *e = r->entry;
    for (;;) {
        if (tk_sim_accept(r, ".reqntid")) {
            read_three(r, e->reqntid, "a number of threads");
        } else if (tk_sim_accept(r, ".maxntid")) {
            read_three(r, e->maxntid, "a number of threads");
        } else if (tk_sim_accept(r, ".reqnctapercluster")) {
            read_three(r, e->cluster, "a number of blocks");
        } else if (tk_sim_accept(r, ".minnctapersm")) {
            e->minnctapersm = read_count(r, UINT32_MAX, "a number of blocks");
        } else if (tk_sim_accept(r, ".maxnreg")) {
            e->maxnreg = read_count(r, UINT32_MAX, "a number of registers");
        } else if (tk_sim_accept(r, ".maxclusterrank")) {
            e->maxclusterrank = read_count(r, UINT32_MAX, "a number of blocks");
        } else if (tk_sim_accept(r, ".pragma")) {
            read_pragma(r);
        } else if (tk_sim_accept(r, ".blocksareclusters")) {
            e->blocks_are_clusters = true;
        } else if (!tk_sim_accept(r, ".explicitcluster")) {
            check_bounds(r);
            return;
        }
    }
}

static void begin_body(tk_sim_reader *r, tk_sim_entry *e) {
    r->entry = e;
    r->loc = 0;
    r->fill_table = NULL;
    r->fill_room = 0;
    r->sink[0] = r->sink[1] = 0;
    e->first = r->program->code.n;
    tk_sim_scope_open(r);
}

// What stands between the braces, and how the body ends.
static void read_code(tk_sim_reader *r) {
    tk_sim_entry *e = r->entry;
    tk_sim_expect(r, "{");
    read_body(r);
    e->ninst = r->program->code.n - e->first;
    tk_sim_inst past = {.exec = tk_sim_exec_past,
                        .name = "the end",
                        .line = r->token.line,
                        .klass = TK_SIM_CLASS_CONTROL};
    tk_vec_push(r->arena, &r->program->code, past);
    r->entry = NULL;
}

static void read_entry(tk_sim_reader *r) {
    tk_sim_entry *e = TK_NEW(r->arena, tk_sim_entry);
    e->line = r->line;
    e->name = tk_sim_word(r, "a name");
    tk_sim_symbol *s = tk_sim_lookup(r, e->name);
    if (!s || s->kind != TK_SIM_SYMBOL_ENTRY || s->placed) {
        s = tk_sim_declare(r, e->name, TK_SIM_SYMBOL_ENTRY);
        s->value = r->entries++;
    }
    begin_body(r, e);
    read_params(r);
    if (tk_sim_is(r, ";")) {
        tk_sim_scope_close(r); // of its parameters
        tk_sim_next(r);
        r->entry = NULL;
        return;
    }
    s->placed = true;
    read_bounds(r);
    read_code(r);
    tk_vec_push(r->arena, &r->program->entries, e);
}

// ---- Functions

typedef TK_VEC(tk_sim_formal) formals;

static void read_formals(tk_sim_reader *r, formals *list) {
    if (tk_sim_accept(r, ")")) {
        return;
    }
    do {
        tk_sim_formal x = {.is_register = tk_sim_accept(r, ".reg"), .align = 1};
        if (x.is_register) {
            const char *named = tk_sim_token_text(r);
            if (!tk_sim_read_type(r, &x.type) || x.type == TK_SIM_PRED ||
                !tk_sim_is_declarable(x.type)) {
                tk_sim_refuse(r, "parameters of type %s are not known", named);
            }
            x.bytes = tk_sim_types[x.type].bits / 8u;
            x.name = tk_sim_word(r, "a name");
        } else {
            tk_sim_declared d;
            tk_sim_expect(r, ".param");
            tk_sim_read_parameter(r, &d, 32764);
            x.name = d.name;
            x.type = d.type;
            x.bytes = (uint32_t)tk_sim_declared_bytes(r, &d, 32764);
            x.align = (uint32_t)tk_sim_declared_align(&d);
        }
        if (list->n == TK_SIM_MAX_FORMALS) {
            tk_sim_refuse(r, "more than %d parameters", TK_SIM_MAX_FORMALS);
        }
        tk_vec_push(r->arena, list, x);
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ")");
}

static bool same_formals(const formals *x, const tk_sim_formal *y, uint32_t n) {
    bool same = x->n == n;
    for (uint32_t k = 0; same && k < n; k++) {
        same = x->at[k].is_register == y[k].is_register && x->at[k].bytes == y[k].bytes &&
               x->at[k].type == y[k].type;
    }
    return same;
}

static void declare_formals(tk_sim_reader *r, tk_sim_formal *x, uint32_t n, tk_sim_role role) {
    uint64_t used = r->entry->local_bytes;
    for (uint32_t k = 0; k < n; k++) {
        if (x[k].is_register) {
            tk_sim_symbol *s = tk_sim_declare(r, x[k].name, TK_SIM_SYMBOL_REG);
            s->type = x[k].type;
            s->placed = true;
            s->value = x[k].slot = tk_sim_new_slot(r, false);
            continue;
        }
        x[k].offset = (uint32_t)tk_sim_put_behind(&used, x[k].bytes, x[k].align);
        if (used > TK_SIM_MAX_LOCAL) {
            tk_sim_refuse(r, "parameters of more than %d bytes", TK_SIM_MAX_LOCAL);
        }
        tk_sim_symbol *s = tk_sim_declare(r, x[k].name, TK_SIM_SYMBOL_LOCAL);
        s->value = x[k].offset;
        s->bytes = x[k].bytes;
        s->role = role;
    }
    r->entry->local_bytes = (uint32_t)used;
}

static tk_sim_function *announce(tk_sim_reader *r, const char *name, const formals *results,
                                 const formals *arguments) {
    const tk_sim_symbol *s = tk_sim_lookup(r, name);
    tk_sim_function *f;
    if (!s) {
        f = TK_NEW(r->arena, tk_sim_function);
        f->name = name;
        tk_sim_declare(r, name, TK_SIM_SYMBOL_FUNCTION)->value = r->program->functions.n;
        tk_vec_push(r->arena, &r->program->functions, f);
    } else {
        f = s->kind == TK_SIM_SYMBOL_FUNCTION ? r->program->functions.at[s->value] : NULL;
        if (!f || !same_formals(results, f->results.at, f->results.n) ||
            !same_formals(arguments, f->formals.at, f->formals.n)) {
            tk_sim_refuse(r, "'%s' is declared as something else before", name);
        }
    }
    f->results.at = results->at;
    f->results.n = results->n;
    f->formals.at = arguments->at;
    f->formals.n = arguments->n;
    return f;
}

// Whether a function is known to others, as it is written before it.
typedef struct linking {
    bool external, visible, common;
} linking;

static void read_function(tk_sim_reader *r, linking l) {
    formals results = {0}, arguments = {0};
    if (tk_sim_accept(r, "(")) {
        read_formals(r, &results);
    }
    const char *name = tk_sim_word(r, "a name");
    const uint32_t line = r->token.line;
    if (tk_sim_accept(r, "(")) {
        read_formals(r, &arguments);
    }
    for (uint32_t k = 0; results.n > 1 && k < results.n; k++) {
        if (!results.at[k].is_register) {
            tk_sim_refuse(r, "several results are in registers");
        }
    }
    while (tk_sim_accept(r, ".noreturn")) {
    }
    const bool first = !tk_sim_lookup(r, name), body = !tk_sim_is(r, ";");
    tk_sim_function *f = announce(r, name, &results, &arguments);
    if (f->body) {
        tk_sim_refuse(r, "'%s' is defined before", name);
    }
    if (body &&
        (l.external || (!first && (l.visible ? !f->visible && !f->external : f->external)))) {
        tk_sim_refuse(r, "'%s' is declared as something else before, or is of another module",
                      name);
    }
    f->external = first ? l.external : f->external;
    f->visible = first ? l.visible : f->visible;
    f->declared = line;
    if (!body) {
        tk_sim_next(r);
        return;
    }
    tk_sim_entry *e = TK_NEW(r->arena, tk_sim_entry);
    e->name = name;
    begin_body(r, e);
    declare_formals(r, results.at, results.n, TK_SIM_ROLE_OUTPUT);
    declare_formals(r, arguments.at, arguments.n, TK_SIM_ROLE_INPUT);
    r->in_function = true;
    read_code(r);
    r->in_function = false;
    f->body = e;
}

// ---- The module

static void read_version(tk_sim_reader *r) {
    unsigned major = 0, minor = 0;
    const tk_sim_token *t = &r->token;
    bool ok = t->kind == TK_SIM_TOKEN_NUMBER && t->n == 3 && t->at[1] == '.';
    if (ok) {
        major = (unsigned)(t->at[0] - '0');
        minor = (unsigned)(t->at[2] - '0');
    }
    if (!ok || major > 9 || minor > 9) {
        tk_sim_refuse(r, "expected a version, not %s", tk_sim_token_text(r));
    }
    r->program->version = major * 10 + minor;
    tk_sim_next(r);
}

static void skip_section(tk_sim_reader *r) {
    tk_sim_word(r, "a section");
    tk_sim_expect(r, "{");
    while (!tk_sim_accept(r, "}")) {
        if (r->token.kind == TK_SIM_TOKEN_END) {
            tk_sim_refuse(r, "a section without an end");
        }
        tk_sim_next(r);
    }
}

static void read_file(tk_sim_reader *r) {
    uint32_t number = (uint32_t)tk_sim_read_integer(r, 65535, "a file's number");
    if (r->token.kind != TK_SIM_TOKEN_STRING) {
        tk_sim_refuse(r, "expected a file's name, not %s", tk_sim_token_text(r));
    }
    while (r->program->files.n <= number) {
        tk_vec_push(r->arena, &r->program->files, (const char *)NULL);
    }
    r->program->files.at[number] = tk_strndup(r->arena, r->token.at, r->token.n);
    tk_sim_next(r);
    while (tk_sim_accept(r, ",")) {
        tk_sim_read_integer(r, UINT64_MAX, "a number of .file");
    }
}

static void read_linked(tk_sim_reader *r) {
    linking l = {.external = tk_sim_accept(r, ".extern")};
    l.visible = !l.external && (tk_sim_accept(r, ".visible") || tk_sim_accept(r, ".weak"));
    l.common = !l.external && !l.visible && tk_sim_accept(r, ".common");
    if (tk_sim_is(r, ".alias")) {
        tk_sim_refuse(r, ".alias is not supported by the simulator");
    }
    if (!l.common && tk_sim_accept(r, ".entry")) {
        read_entry(r);
    } else if (!l.common && tk_sim_accept(r, ".func")) {
        read_function(r, l);
    } else if (!l.common && tk_sim_accept(r, ".shared")) {
        tk_sim_read_variables(r, TK_SIM_SHARED, l.external);
    } else if (tk_sim_accept(r, ".global")) {
        tk_sim_read_variables(r, TK_SIM_GLOBAL, l.external);
    } else if (!l.common && tk_sim_accept(r, ".const")) {
        tk_sim_read_variables(r, TK_SIM_CONST, l.external);
    } else {
        tk_sim_refuse(r, "unknown directive %s", tk_sim_token_text(r));
    }
}

static void read_module(tk_sim_reader *r) {
    tk_sim_next(r);
    while (r->token.kind != TK_SIM_TOKEN_END) {
        if (!r->program->version && tk_sim_accept(r, ".version")) {
            read_version(r);
        } else if (!r->program->target && tk_sim_accept(r, ".target")) {
            tk_sim_read_target(r);
        } else if (!r->sized && tk_sim_accept(r, ".address_size")) {
            r->sized = true;
            if (tk_sim_read_integer(r, 64, "an address's size") != 64) {
                tk_sim_refuse(r, "addresses of 32 bits are not known");
            }
        } else if (tk_sim_accept(r, ".file")) {
            read_file(r);
        } else if (tk_sim_accept(r, ".section")) {
            skip_section(r);
        } else if (tk_sim_accept(r, ".pragma")) {
            read_pragma(r);
        } else {
            read_linked(r);
        }
    }
    if (!r->program->target || !r->program->version) {
        tk_sim_refuse(r, "a module without .version and .target");
    }
}

// Dynamic shared memory lies behind all that has a size; all of it begins at one place.
static void place_dynamic(tk_sim_program *p) {
    uint64_t align = 1;
    for (uint32_t k = 0; k < p->variables.n; k++) {
        const tk_sim_variable *v = &p->variables.at[k];
        align = v->dynamic && v->offset > align ? v->offset : align;
    }
    for (uint32_t k = 0; k < p->variables.n; k++) {
        tk_sim_variable *v = &p->variables.at[k];
        if (v->dynamic) {
            uint64_t used = TK_SIM_SHARED_BASE + p->shared_bytes;
            v->offset = tk_sim_put_behind(&used, 0, align) - TK_SIM_SHARED_BASE;
        }
    }
}

tk_sim_program *tk_sim_read(tk_arena *arena, const char *ptx, size_t size, tk_sim_note *error) {
    tk_sim_reader *r = TK_NEW(arena, tk_sim_reader);
    memset(error, 0, sizeof *error);
    r->arena = arena;
    r->error = error;
    r->at = ptx;
    r->end = ptx + size;
    r->line = 1;
    tk_names_init(&r->names, arena);
    r->program = TK_NEW(arena, tk_sim_program);
    tk_vec_push(arena, &r->program->locs, ((tk_sim_loc){0, 0, 0}));
    if (setjmp(r->jump) != 0) {
        return NULL;
    }
    read_module(r);
    place_dynamic(r->program);
    tk_sim_link(r);
    return r->program;
}
