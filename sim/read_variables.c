// SPDX-License-Identifier: Apache-2.0
// Declarations of memory: variables of the module with their initial values, a thread's own memory,
// and what parameters share with them.
#include "sim/read.h"

#include <string.h>

// ---- Declarations

// Behind the number of elements of one dimension, or [].
static void read_dimension(tk_sim_reader *r, tk_sim_declared *d, uint64_t most) {
    if (d->dims == TK_SIM_MAX_DIMENSIONS) {
        tk_sim_refuse(r, "'%s' has more than %d dimensions", d->name, TK_SIM_MAX_DIMENSIONS);
    }
    d->dim[d->dims++] = UINT64_MAX;
    if (d->dims == 1 && tk_sim_accept(r, "]")) {
        d->unsized = true;
        return;
    }
    d->dim[d->dims - 1] = tk_sim_read_integer(r, most, "a number of elements");
    d->count *= d->dim[d->dims - 1];
    if (d->count > most) {
        tk_sim_refuse(r, "'%s' is larger than %llu bytes", d->name, (unsigned long long)most);
    }
    tk_sim_expect(r, "]");
}

static void read_align(tk_sim_reader *r, uint64_t *align) {
    *align = tk_sim_read_integer(r, 4096, "an alignment");
    if (*align == 0 || (*align & (*align - 1))) {
        tk_sim_refuse(r, "an alignment must be a power of two");
    }
}

bool tk_sim_read_type(tk_sim_reader *r, tk_sim_type *out) {
    const tk_sim_token *t = &r->token;
    bool is = t->kind == TK_SIM_TOKEN_WORD && t->n > 1 && t->at[0] == '.' &&
              tk_sim_type_of(t->at + 1, t->n - 1, out);
    if (is) {
        tk_sim_next(r);
    }
    return is;
}

// Other types are of instructions only.
bool tk_sim_is_declarable(tk_sim_type t) {
    return t <= TK_SIM_B64 || t == TK_SIM_PRED || t == TK_SIM_F16 || t == TK_SIM_F16X2 ||
           t == TK_SIM_F32 || t == TK_SIM_F64;
}

// .ptr, with the space and the alignment of what it points to.
static void read_pointer(tk_sim_reader *r) {
    uint64_t pointee;
    while (tk_sim_accept(r, ".global") || tk_sim_accept(r, ".shared") ||
           tk_sim_accept(r, ".const") || tk_sim_accept(r, ".local")) {
    }
    if (tk_sim_accept(r, ".align")) {
        read_align(r, &pointee);
    }
}

// .attribute(.managed): the CPU sees it as well.
static void read_attribute(tk_sim_reader *r, tk_sim_declared *d) {
    tk_sim_expect(r, "(");
    if (!tk_sim_accept(r, ".managed")) {
        tk_sim_refuse(r, "unknown attribute %s of a declaration", tk_sim_token_text(r));
    }
    tk_sim_expect(r, ")");
    d->managed = true;
}

static bool read_before_type(tk_sim_reader *r, tk_sim_declared *d) {
    if (tk_sim_accept(r, ".align")) {
        read_align(r, &d->align);
    } else if (tk_sim_accept(r, ".attribute")) {
        read_attribute(r, d);
    } else if (tk_sim_accept(r, ".v2")) {
        d->vector = 2;
    } else if (tk_sim_accept(r, ".v4")) {
        d->vector = 4;
    } else {
        return false;
    }
    return true;
}

static void read_head(tk_sim_reader *r, tk_sim_declared *d) {
    static const char *const handles[] = {".texref", ".surfref", ".samplerref"};
    memset(d, 0, sizeof *d);
    d->vector = 1;
    while (read_before_type(r, d)) {
    }
    for (size_t k = 0; k < sizeof handles / sizeof *handles; k++) {
        if (tk_sim_is(r, handles[k])) {
            tk_sim_refuse(r, "%s is not supported by the simulator", handles[k]);
        }
    }
    if (!tk_sim_read_type(r, &d->type)) {
        tk_sim_refuse(r, "unknown attribute %s of a declaration", tk_sim_token_text(r));
    }
    if (!tk_sim_is_declarable(d->type) && d->type != TK_SIM_B128) {
        tk_sim_refuse(r, "type .%s is of instructions only", tk_sim_types[d->type].name);
    }
    if (d->vector * tk_sim_types[d->type].bits > 128) {
        tk_sim_refuse(r, "a vector has 16 bytes at most");
    }
    while (tk_sim_accept(r, ".ptr")) {
        read_pointer(r);
    }
}

// What is declared with the same type, behind a comma.
static void read_name(tk_sim_reader *r, tk_sim_declared *d, uint64_t most) {
    d->count = 1;
    d->dims = 0;
    d->unsized = false;
    d->name = tk_sim_word(r, "a name");
    while (tk_sim_accept(r, "[")) {
        read_dimension(r, d, most);
    }
}

void tk_sim_read_parameter(tk_sim_reader *r, tk_sim_declared *d, uint64_t most) {
    read_head(r, d);
    if (d->vector > 1 || d->type == TK_SIM_F16X2 || d->managed) {
        tk_sim_refuse(r, "a parameter has no such type");
    }
    read_name(r, d, most);
    if (d->dims > 1 || d->unsized) {
        tk_sim_refuse(r, "a parameter is one array of a known size at most");
    }
}

static uint64_t element_bytes(const tk_sim_declared *d) { return tk_sim_types[d->type].bits / 8u; }

uint64_t tk_sim_declared_align(const tk_sim_declared *d) {
    uint64_t natural = element_bytes(d) * d->vector;
    return d->align ? d->align : natural ? natural : 1;
}

uint64_t tk_sim_declared_bytes(tk_sim_reader *r, const tk_sim_declared *d, uint64_t most) {
    uint64_t bytes = element_bytes(d) * d->vector * d->count;
    if (d->type == TK_SIM_PRED || bytes > most) {
        tk_sim_refuse(r, "'%s' is larger than %llu bytes, or a predicate", d->name,
                      (unsigned long long)most);
    }
    if (bytes == 0) {
        tk_sim_refuse(r, "'%s' has no size", d->name);
    }
    return bytes;
}

uint64_t tk_sim_put_behind(uint64_t *used, uint64_t n, uint64_t align) {
    uint64_t at = (*used + align - 1) / align * align;
    *used = at + n;
    return at;
}

// ---- Initialisers

typedef struct bytes {
    TK_VEC(unsigned char) data;
} bytes;

static void push_value(tk_sim_reader *r, bytes *b, uint64_t value, uint64_t size) {
    for (uint64_t k = 0; k < size; k++) {
        tk_vec_push(r->arena, &b->data, (unsigned char)(value >> (8 * k)));
    }
}

static void read_address_value(tk_sim_reader *r, bytes *b, const tk_sim_declared *d, uint32_t in) {
    tk_sim_reloc x = {.in = in, .at = b->data.n};
    x.generic = tk_sim_accept(r, "generic");
    if (x.generic) {
        tk_sim_expect(r, "(");
    }
    const char *name = tk_sim_word(r, "a variable");
    const tk_sim_symbol *s = tk_sim_lookup(r, name);
    if (s && s->kind == TK_SIM_SYMBOL_FUNCTION) {
        tk_sim_refuse(
            r,
            "'%s': the address of a function as an initial value is not supported by the simulator",
            name);
    }
    if (!s || s->kind != TK_SIM_SYMBOL_VARIABLE || d->type != TK_SIM_U64) {
        tk_sim_refuse(r, "'%s' is no variable whose address fits here", name);
    }
    x.of = s->value;
    if (x.generic) {
        tk_sim_expect(r, ")");
    }
    if (tk_sim_accept(r, "+")) {
        tk_sim_number plus = tk_sim_read_constant(r);
        if (plus.is_float) {
            tk_sim_refuse(r, "behind '%s+' stands an integer", name);
        }
        x.plus = (int64_t)plus.bits;
    }
    tk_vec_push(r->arena, &r->program->relocs, x);
    push_value(r, b, 0, element_bytes(d));
}

// Floats are values of .b too, and those written as bits stay these bits: as ptxas has it.
static bool initial_bits(const tk_sim_number *x, tk_sim_type type, uint64_t *out) {
    const bool bits = tk_sim_types[type].kind == 'b' && x->is_float;
    if (type == TK_SIM_B32 && bits) {
        type = TK_SIM_F32;
    } else if (bits || (type == TK_SIM_F64 && x->pattern == 4)) {
        *out = x->bits;
        return true;
    }
    return tk_sim_number_bits(x, type, out);
}

static void read_value(tk_sim_reader *r, bytes *b, const tk_sim_declared *d, uint32_t in) {
    if (!tk_sim_constant_begins(r)) {
        read_address_value(r, b, d, in);
        return;
    }
    uint64_t bits;
    tk_sim_number x = tk_sim_read_constant(r);
    if (!initial_bits(&x, d->type, &bits)) {
        tk_sim_refuse(r, "this number does not fit the type");
    }
    push_value(r, b, bits, element_bytes(d));
}

// Braces for each dimension, and for vectors. What they hold lies one behind the other, also where
// it is less than a row.
static void read_values(tk_sim_reader *r, bytes *b, const tk_sim_declared *d, uint32_t in,
                        unsigned level) {
    const bool vector = level == d->dims && d->vector > 1;
    const bool one = level == d->dims || (d->unsized && d->dims == 1 && !tk_sim_is(r, "{"));
    if (!vector && one) {
        if (tk_sim_is(r, "{")) {
            tk_sim_refuse(r, "'%s' takes one value here, without braces", d->name);
        }
        read_value(r, b, d, in);
        return;
    }
    const uint64_t most = vector ? d->vector : d->dim[level];
    uint64_t n = 0;
    tk_sim_expect(r, "{");
    while (!(n == 0 && tk_sim_is(r, "}"))) {
        if (++n > most) {
            tk_sim_refuse(r, "'%s' has more values than room", d->name);
        }
        if (vector) {
            read_value(r, b, d, in);
        } else {
            read_values(r, b, d, in, level + 1);
        }
        if (!tk_sim_accept(r, ",")) {
            break;
        }
    }
    tk_sim_expect(r, "}");
    if (vector && n != most) {
        tk_sim_refuse(r, "a vector of '%s' has %u values", d->name, d->vector);
    }
}

static void read_initialiser(tk_sim_reader *r, const tk_sim_declared *d, uint32_t index) {
    bytes b = {{0}};
    uint64_t most = r->program->variables.at[index].bytes;
    read_values(r, &b, d, index, 0);
    if (d->unsized) {
        r->program->variables.at[index].bytes = b.data.n;
    } else if (b.data.n > most) {
        tk_sim_refuse(r, "'%s' has more values than room", d->name);
    }
    uint64_t size = r->program->variables.at[index].bytes;
    if (size == 0) {
        tk_sim_refuse(r, "'%s' has no size", d->name);
    }
    unsigned char *data = tk_alloc(r->arena, size);
    if (b.data.n) {
        memcpy(data, b.data.at, b.data.n);
    }
    r->program->variables.at[index].data = data;
}

// ---- Variables of the module

// Constants have 64 KiB.
static uint64_t most_of(tk_sim_space space) {
    return space == TK_SIM_SHARED  ? TK_SIM_MAX_SHARED
           : space == TK_SIM_CONST ? TK_SIM_MAX_CONST
                                   : TK_SIM_MAX_VARIABLES;
}

static void read_one(tk_sim_reader *r, const tk_sim_declared *d, tk_sim_space space,
                     bool external) {
    const uint64_t most = most_of(space);
    tk_sim_program *p = r->program;
    uint32_t index = p->variables.n;
    tk_sim_declare(r, d->name, TK_SIM_SYMBOL_VARIABLE)->value = index;
    tk_sim_variable v = {.name = d->name, .space = space};
    v.dynamic = space == TK_SIM_SHARED && external && d->unsized;
    v.bytes = d->unsized ? 0 : tk_sim_declared_bytes(r, d, most);
    tk_vec_push(r->arena, &p->variables, v);
    if (tk_sim_accept(r, "=")) {
        if (space == TK_SIM_SHARED) {
            tk_sim_refuse(r, "shared memory has no initial values");
        }
        read_initialiser(r, d, index);
    } else if (d->unsized && !v.dynamic) {
        tk_sim_refuse(r, "'%s' has no size", d->name);
    } else if (external && !v.dynamic) {
        tk_sim_refuse(r, "'%s' is of another module", d->name);
    }
    const uint64_t align = tk_sim_declared_align(d);
    uint64_t shared = p->shared_bytes;
    uint64_t *used = space == TK_SIM_SHARED   ? &shared
                     : space == TK_SIM_GLOBAL ? &p->global_bytes
                                              : &p->const_bytes;
    p->variables.at[index].offset = // dynamic: its alignment, until all others have their places
        v.dynamic ? align : tk_sim_put_behind(used, p->variables.at[index].bytes, align);
    if (*used > most) {
        tk_sim_refuse(r, "variables of more than %llu bytes", (unsigned long long)most);
    }
    p->shared_bytes = (uint32_t)shared;
}

void tk_sim_read_variables(tk_sim_reader *r, tk_sim_space space, bool external) {
    tk_sim_declared d;
    read_head(r, &d);
    if (d.managed && space != TK_SIM_GLOBAL) {
        tk_sim_refuse(r, ".managed is of global memory");
    }
    do {
        read_name(r, &d, most_of(space));
        read_one(r, &d, space, external);
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ";");
}

// ---- A thread's own memory: .local, and the .param in which calls hand over arguments

void tk_sim_read_locals(tk_sim_reader *r, tk_sim_role role) {
    tk_sim_declared d;
    read_head(r, &d);
    do {
        read_name(r, &d, TK_SIM_MAX_LOCAL);
        uint64_t used = r->entry->local_bytes;
        uint64_t n = tk_sim_declared_bytes(r, &d, TK_SIM_MAX_LOCAL);
        uint64_t at = tk_sim_put_behind(&used, n, tk_sim_declared_align(&d));
        if (used > TK_SIM_MAX_LOCAL) {
            tk_sim_refuse(r, "a thread's own memory of more than %d bytes", TK_SIM_MAX_LOCAL);
        }
        r->entry->local_bytes = (uint32_t)used;
        tk_sim_symbol *s = tk_sim_declare(r, d.name, TK_SIM_SYMBOL_LOCAL);
        s->value = (uint32_t)at;
        s->bytes = (uint32_t)(used - at);
        s->role = role;
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ";");
}
