// SPDX-License-Identifier: Apache-2.0
// One instruction: its operands as written, then fitted to the shape of a row that its mnemonic
// matches. Several rows may match; the first whose shape fits is taken.
#include "sim/read.h"

#include <stdlib.h>
#include <string.h>

// ---- Fitting

// One operand of a shape: see ops.def.
typedef struct spec {
    bool optional, dest, pred, pair, list, wider, address, coordinates, label, targets, any;
    bool number, listed, bits_only; // bits_only: w and the like, which take no floats
    bool inside;                    // of an element of a list
    bool loose;                     // registers of any type of its size: in lists and calls
    bool integers;                  // also where the type is a float: in lists of accesses
    unsigned bits, place;           // place: which operand
    tk_sim_type type;               // of immediates
} spec;

typedef struct fitting {
    tk_sim_reader *r;
    tk_sim_inst *inst;
    TK_VEC(tk_sim_arg) args;
    TK_VEC(int64_t) numbers; // what is written, where an argument is a number
    uint32_t first_label;    // the argument from which on labels stand, named here
    TK_VEC(const char *) labels;
    const char *why;
} fitting;

// Says least of what may be wrong.
static const char another_form[] = "an operand has another form";
static const char not_an_address[] = "a register is needed; mov gives the address of a variable";

static bool misfit(fitting *f, const char *why) {
    f->why = why;
    return false;
}

static tk_sim_type bits_type(unsigned bits) {
    return bits == 16 ? TK_SIM_B16 : bits == 64 ? TK_SIM_B64 : TK_SIM_B32;
}

static const char *read_spec(const char *s, const tk_sim_inst *i, spec *out) {
    memset(out, 0, sizeof *out);
    if (*s == '?') {
        out->optional = true;
        s++;
    }
    if (*s == 'a' || *s == 'c' || *s == 'L' || *s == 'T') {
        out->address = *s == 'a' || *s == 'c';
        out->coordinates = *s == 'c';
        out->label = *s == 'L';
        out->targets = *s == 'T';
    } else {
        out->dest = *s++ == 'd';
        switch (*s) {
        case 'p':
            out->pred = true;
            break;
        case 'h':
            out->bits = 16;
            break;
        case 'i':
            out->number = true;
            out->bits = 32;
            break;
        case 'w':
            out->bits = 32;
            break;
        case 'l':
            out->bits = 64;
            break;
        case 'W':
            out->bits = 2u * tk_sim_types[i->type[0]].bits;
            break;
        case 'f':
            out->bits = 32;
            break;
        case 'r':
            out->any = true;
            break;
        default:
            out->type = (tk_sim_type)i->type[*s - '0'];
            out->bits = tk_sim_types[out->type].bits;
            out->pred = out->type == TK_SIM_PRED;
            break;
        }
        if (*s < '0' || *s > '3') {
            out->type = *s == 'f' ? TK_SIM_F32 : bits_type(out->bits);
            out->bits_only = out->type != TK_SIM_F32 && !out->any;
        }
    }
    for (s++; *s && *s != ' '; s++) {
        out->list = out->list || *s == '*' || *s == '+';
        out->listed = out->listed || *s == '+';
        out->wider = out->wider || *s == '~';
        out->pair = out->pair || *s == '|';
    }
    return s;
}

static void push_arg(fitting *f, tk_sim_arg a) {
    tk_vec_push(f->r->arena, &f->args, a);
    tk_vec_push(f->r->arena, &f->numbers, a.offset);
}

// mov, and cvt between integers.
static bool takes_special(const fitting *f, const spec *s) {
    const tk_sim_inst *i = f->inst;
    const bool mov = strncmp(i->name, "mov.", 4) == 0 && tk_sim_types[s->type].kind != 'f';
    const bool cvt = strncmp(i->name, "cvt.", 4) == 0 && strncmp(i->name, "cvt.pack.", 9) &&
                     i->ntype == 2 && tk_sim_types[i->type[0]].kind != 'f' &&
                     tk_sim_types[i->type[1]].kind != 'f';
    return !s->dest && !s->inside && (mov || cvt);
}

static bool fit_special(fitting *f, const tk_sim_item *x, const spec *s) {
    // The fourth component of %tid and the like is 0.
    const size_t n = strlen(x->name);
    const bool fourth = n > 2 && strcmp(x->name + n - 2, ".w") == 0;
    const char *name = fourth ? tk_format(f->r->arena, "%.*s.x", (int)(n - 2), x->name) : x->name;
    tk_sim_special k;
    unsigned bytes;
    const char *why = tk_sim_find_special(f->r, f->inst, name, &k, &bytes);
    if (why) {
        return misfit(f, why);
    }
    if (k < TK_SIM_SPECIAL_COUNT) {
        if (!takes_special(f, s)) {
            return misfit(f, "a special register is an operand of mov only");
        }
        if ((bytes == 0) != s->pred ||
            (bytes && !s->any && !tk_sim_special_fits(f->inst, k, bytes, s->bits))) {
            return misfit(f, "a special register does not fit here");
        }
        const tk_sim_fill_kind kind = fourth ? TK_SIM_FILL_BITS : TK_SIM_FILL_SPECIAL;
        push_arg(f, (tk_sim_arg){tk_sim_fill_slot(f->r, kind, fourth ? 0 : k, 0), 0,
                                 bytes ? TK_SIM_ARG_REG : TK_SIM_ARG_PRED, (uint8_t)bytes,
                                 x->negated, 0});
        return true;
    }
    return misfit(f, tk_format(f->r->arena, "nothing is named '%s'", x->name));
}

static tk_sim_arg constant(fitting *f, uint64_t bits, unsigned bytes) {
    return (tk_sim_arg){tk_sim_fill_slot(f->r, TK_SIM_FILL_BITS, 0, bits),
                        (int32_t)(uint32_t)bits,
                        TK_SIM_ARG_CONST,
                        (uint8_t)bytes,
                        false,
                        0};
}

// The slot of the address of a parameter or of the thread's own memory.
static uint32_t own_address(fitting *f, const tk_sim_symbol *y, int64_t plus) {
    return tk_sim_fill_slot(f->r,
                            y->kind == TK_SIM_SYMBOL_LOCAL ? TK_SIM_FILL_LOCAL : TK_SIM_FILL_BITS,
                            0, (uint64_t)(y->value + plus));
}

// Addresses of variables are operands of few instructions; with something added, of all that take
// integers.
static bool takes_address(const fitting *f, const tk_sim_item *x, const tk_sim_symbol *y,
                          const spec *s) {
    static const char *const begin[] = {"mov.", "cvta.", "mapa.", "getctarank."};
    const char *name = f->inst->name;
    bool takes = false;
    for (size_t k = 0; k < sizeof begin / sizeof *begin; k++) {
        takes = takes || strncmp(name, begin[k], strlen(begin[k])) == 0;
    }
    takes = takes && !s->any && s->place == 1 && !tk_sim_has(f->inst, TK_SIM_MOD_TO);
    const bool call = y->kind == TK_SIM_SYMBOL_LOCAL &&
                      (y->role == TK_SIM_ROLE_CALL ||
                       (y->role != TK_SIM_ROLE_NONE && strncmp(name, "cvta.", 5) == 0));
    return (takes || (x->sum && !s->inside)) && !call && !s->dest && !s->pred &&
           tk_sim_types[s->type].kind != 'f';
}

// Of functions and entries: what differs from all others, and is no address of memory.
static uint64_t code_address(const tk_sim_symbol *y) {
    return (UINT64_C(1) << 56) + 128 * (2 * (uint64_t)y->value + (y->kind == TK_SIM_SYMBOL_ENTRY));
}

static tk_sim_space space_of_symbol(const fitting *f, const tk_sim_symbol *y) {
    return y->kind == TK_SIM_SYMBOL_VARIABLE ? f->r->program->variables.at[y->value].space
           : y->kind == TK_SIM_SYMBOL_LOCAL  ? TK_SIM_LOCAL
                                             : TK_SIM_PARAM;
}

static bool fit_symbol(fitting *f, const tk_sim_item *x, const spec *s) {
    const tk_sim_symbol *y = tk_sim_lookup(f->r, x->name);
    if (!y) {
        return fit_special(f, x, s);
    }
    unsigned bytes = tk_sim_types[y->type].bits / 8u;
    switch (y->kind) {
    case TK_SIM_SYMBOL_REG:
        if (x->plus) {
            return misfit(f, "a register and a number stand together in addresses only");
        }
        if ((y->type == TK_SIM_PRED) != s->pred) {
            return misfit(f, s->pred ? "a predicate is needed" : "a predicate stands here");
        }
        if (!s->pred && !s->any && bytes * 8 != s->bits && !(s->wider && bytes * 8 >= s->bits)) {
            return misfit(f, tk_format(f->r->arena, "'%s' has %u bits; %u are needed", x->name,
                                       bytes * 8, s->bits));
        }
        if (!s->pred && !s->any && !s->loose &&
            !(s->integers && tk_sim_types[y->type].kind != 'f' && bytes * 8 == s->bits) &&
            !tk_sim_register_fits(f->inst, s->place, y->type, s->type, s->bits_only)) {
            return misfit(f, tk_format(f->r->arena, "'%s' is of .%s, which does not go with %s",
                                       x->name, tk_sim_types[y->type].name,
                                       s->bits_only ? "this operand" : tk_sim_types[s->type].name));
        }
        push_arg(f, (tk_sim_arg){y->value, 0, s->pred ? TK_SIM_ARG_PRED : TK_SIM_ARG_REG,
                                 (uint8_t)bytes, x->negated, (uint8_t)(y->type + 1)});
        return true;
    case TK_SIM_SYMBOL_VARIABLE:
        if (!takes_address(f, x, y, s) || !tk_sim_converts(f->inst, space_of_symbol(f, y))) {
            return misfit(f, takes_address(f, x, y, s) ? "the variable is of another space"
                                                       : not_an_address);
        }
        push_arg(f, (tk_sim_arg){
                        tk_sim_fill_slot(f->r, TK_SIM_FILL_VARIABLE, y->value, (uint64_t)x->plus),
                        0, TK_SIM_ARG_CONST, 8, false, 0});
        return true;
    case TK_SIM_SYMBOL_LOCAL:
    case TK_SIM_SYMBOL_PARAM:
        if (!takes_address(f, x, y, s) || !tk_sim_converts(f->inst, space_of_symbol(f, y))) {
            return misfit(f, takes_address(f, x, y, s) ? "the variable is of another space"
                                                       : not_an_address);
        }
        push_arg(f, (tk_sim_arg){own_address(f, y, x->plus), 0, TK_SIM_ARG_CONST, 8, false, 0});
        return true;
    case TK_SIM_SYMBOL_FUNCTION:
    case TK_SIM_SYMBOL_ENTRY:
        if (!takes_address(f, x, y, s) || strncmp(f->inst->name, "mov.", 4) != 0 || s->bits != 64) {
            break;
        }
        push_arg(f, (tk_sim_arg){tk_sim_fill_slot(f->r, TK_SIM_FILL_BITS, 0, code_address(y)), 0,
                                 TK_SIM_ARG_CONST, 8, false, 0});
        return true;
    case TK_SIM_SYMBOL_RANGE:
    case TK_SIM_SYMBOL_LABEL:
    case TK_SIM_SYMBOL_TARGETS:
    case TK_SIM_SYMBOL_NUMBERED:
        break;
    }
    return misfit(f, tk_format(f->r->arena, "'%s' does not fit here", x->name));
}

static bool fit_sink(fitting *f, const spec *s) {
    if (!s->dest) {
        return misfit(f, "'_' is no source");
    }
    uint32_t *sink = &f->r->sink[s->pred];
    if (!*sink) {
        *sink = tk_sim_new_slot(f->r, s->pred) + 1;
    }
    push_arg(f, (tk_sim_arg){*sink - 1, 0, TK_SIM_ARG_SINK, s->pred ? 0 : 8, false, 0});
    return true;
}

static bool fit_item(fitting *f, const tk_sim_item *x, const spec *s) {
    if (x->negated && (!s->pred || s->dest)) {
        return misfit(f, "'!' needs a predicate");
    }
    if (x->kind == TK_SIM_ITEM_SINK) {
        return fit_sink(f, s);
    }
    if (x->kind == TK_SIM_ITEM_SYMBOL) {
        return s->number ? misfit(f, "a number is needed") : fit_symbol(f, x, s);
    }
    if (s->dest) {
        return misfit(f, "a number is no destination");
    }
    if (x->number.is_float &&
        (s->pred || !tk_sim_float_fits(f->inst, s->place, &x->number, s->bits_only))) {
        return misfit(f, "an integer is needed");
    }
    if (s->pred && !tk_sim_truth_fits(f->inst)) {
        return misfit(f, "a predicate is needed");
    }
    if (s->pred) {
        bool set = x->number.bits != 0;
        push_arg(f, (tk_sim_arg){tk_sim_fill_slot(f->r, TK_SIM_FILL_PRED, 0, set), 0,
                                 TK_SIM_ARG_PRED, 0, x->negated, 0});
        return true;
    }
    uint64_t bits;
    const bool registers = (s->listed && s->bits_only) || (s->inside && !tk_sim_list_fits(f->inst));
    if (registers || !tk_sim_number_bits(&x->number, s->any ? TK_SIM_B64 : s->type, &bits)) {
        return misfit(f, registers ? "registers are needed in this list"
                                   : "this number does not fit the type");
    }
    push_arg(f, constant(f, bits, s->any ? 8 : s->bits / 8));
    if (!x->number.is_float) {
        f->numbers.at[f->numbers.n - 1] = (int64_t)x->number.bits;
    }
    return true;
}

static bool fit_address(fitting *f, const tk_sim_operand_text *o, bool coordinates) {
    if (o->kind != TK_SIM_OPERAND_ADDRESS || (o->n > 1) != coordinates) {
        return misfit(f, coordinates ? "an address with coordinates in brackets is needed"
                                     : "an address in brackets is needed");
    }
    const tk_sim_item *x = &o->item[0];
    const tk_sim_symbol *y = x->kind == TK_SIM_ITEM_SYMBOL ? tk_sim_lookup(f->r, x->name) : NULL;
    tk_sim_arg a = {0, 0, TK_SIM_ARG_ADDRESS, 8, false, TK_SIM_GENERIC};
    if (x->negated || x->kind == TK_SIM_ITEM_SINK) {
        return misfit(f, "this is no address");
    }
    if (coordinates && x->sum) {
        return misfit(f, "nothing is added to the address of a tensor map");
    }
    if (x->plus != (int32_t)x->plus) {
        bool narrow = y && y->kind == TK_SIM_SYMBOL_REG && tk_sim_types[y->type].bits == 32;
        if (!narrow || x->plus != (uint32_t)x->plus) {
            return misfit(f, "what is added to an address has 32 bits");
        }
    }
    if (x->kind == TK_SIM_ITEM_NUMBER) {
        if (x->number.is_float || !tk_sim_has(f->inst, TK_SIM_MOD_LOCAL)) {
            return misfit(f, "an address that is a number is of .local only");
        }
        a.slot = tk_sim_fill_slot(f->r, TK_SIM_FILL_BITS, 0, x->number.bits);
    } else if (!y) {
        return misfit(f, tk_format(f->r->arena, "nothing is named '%s'", x->name));
    } else if (y->kind == TK_SIM_SYMBOL_REG && tk_sim_types[y->type].kind == 'f') {
        return misfit(f, tk_format(f->r->arena, "'%s' is of .%s; an address is an integer", x->name,
                                   tk_sim_types[y->type].name));
    } else if (y->kind == TK_SIM_SYMBOL_REG && y->type != TK_SIM_PRED) {
        a.slot = y->value;
        a.offset = (int32_t)(uint32_t)x->plus; // in a register of 32 bits it wraps
        a.bytes = (uint8_t)(tk_sim_types[y->type].bits / 8u);
    } else if (y->kind == TK_SIM_SYMBOL_VARIABLE) {
        a.slot = tk_sim_fill_slot(f->r, TK_SIM_FILL_VARIABLE, y->value, (uint64_t)x->plus);
        a.space = (uint8_t)f->r->program->variables.at[y->value].space;
    } else if (y->kind == TK_SIM_SYMBOL_PARAM || y->kind == TK_SIM_SYMBOL_LOCAL) {
        const bool own = y->kind == TK_SIM_SYMBOL_LOCAL;
        const char *why = own ? tk_sim_role_problem(f->inst, y->role) : NULL;
        if (why) {
            return misfit(f, why);
        }
        a.slot = own_address(f, y, x->plus);
        a.space = y->kind == TK_SIM_SYMBOL_PARAM ? TK_SIM_PARAM : TK_SIM_LOCAL;
    } else {
        return misfit(f, tk_format(f->r->arena, "'%s' is no address", x->name));
    }
    push_arg(f, a);
    for (uint32_t k = 1; k < o->n; k++) { // coordinates
        spec word = {.bits = 32, .type = TK_SIM_S32};
        if (!fit_item(f, &o->item[k], &word)) {
            return false;
        }
    }
    return true;
}

static void push_label(fitting *f, const char *name) {
    f->first_label = f->labels.n ? f->first_label : f->args.n;
    tk_vec_push(f->r->arena, &f->labels, name);
    push_arg(f, (tk_sim_arg){0, 0, TK_SIM_ARG_LABEL, 0, false, 0});
}

static bool fit_label(fitting *f, const tk_sim_operand_text *o) {
    if (o->kind != TK_SIM_OPERAND_ONE || o->item[0].kind != TK_SIM_ITEM_SYMBOL || o->item[0].plus ||
        o->item[0].negated) {
        return misfit(f, "a label is needed");
    }
    push_label(f, o->item[0].name);
    return true;
}

static bool fit_targets(fitting *f, const tk_sim_operand_text *o) {
    bool named = o->kind == TK_SIM_OPERAND_ONE && o->item[0].kind == TK_SIM_ITEM_SYMBOL;
    tk_sim_symbol *s = named ? tk_sim_lookup(f->r, o->item[0].name) : NULL;
    if (!s || s->kind != TK_SIM_SYMBOL_TARGETS || s->placed) {
        return misfit(f, "a list of .branchtargets of its own is needed");
    }
    s->placed = true;
    for (uint32_t k = 0; k < s->value; k++) {
        push_label(f, s->labels[k]);
    }
    return true;
}

// As what numbers count in a list, by the registers there: as a register that has a type of its
// own; else floats as floats, and integers as bits, of the registers' size.
static spec numbers_in_list(const fitting *f, const tk_sim_operand_text *o, const spec *s) {
    spec out = *s;
    tk_sim_type type = TK_SIM_PRED; // of a register
    bool floats = false, decimals = false;
    for (uint32_t k = 0; k < o->n; k++) {
        const tk_sim_item *x = &o->item[k];
        const bool symbol = x->kind == TK_SIM_ITEM_SYMBOL;
        const tk_sim_symbol *y = symbol ? tk_sim_lookup(f->r, x->name) : NULL;
        if (y && y->kind == TK_SIM_SYMBOL_REG &&
            (type == TK_SIM_PRED || tk_sim_types[type].kind == 'b')) {
            type = y->type;
        }
        floats = floats || (x->kind == TK_SIM_ITEM_NUMBER && x->number.is_float);
        decimals = decimals ||
                   (x->kind == TK_SIM_ITEM_NUMBER && x->number.is_float && x->number.pattern != 4);
    }
    if (type == TK_SIM_PRED) { // numbers alone: written as decimals, they are of f64
        const unsigned all = s->any ? tk_sim_types[f->inst->type[0]].bits : 0;
        if (all && (o->n == 1 || all / o->n >= 16)) { // parts of the instruction's bits
            out.any = false;
            out.bits = all / o->n;
            out.type = bits_type(out.bits);
            return out;
        }
        const bool narrow = s->type == TK_SIM_F32 && strncmp(f->inst->name, "mma.", 4) == 0;
        out.type = narrow && decimals ? TK_SIM_B32 : s->type;
        return out;
    }
    out.bits = s->any ? tk_sim_types[type].bits : s->bits;
    out.any = false;
    out.type = tk_sim_types[type].kind != 'b' ? type
               : out.bits < 16                ? s->type
               : !floats                      ? bits_type(out.bits)
               : out.bits == 64               ? TK_SIM_F64
               : out.bits == 32               ? TK_SIM_F32
                                              : s->type;
    return out;
}

// Accesses of memory take registers in lists as they do alone, unless one is of .b: then these are
// bits. Of matrices see read_forms.c.
static bool is_access(const tk_sim_inst *i) {
    static const char *const begin[] = {"ld.", "st.", "ldu.", "atom.", "red."};
    bool is = false;
    for (size_t k = 0; k < sizeof begin / sizeof *begin; k++) {
        is = is || strncmp(i->name, begin[k], strlen(begin[k])) == 0;
    }
    return is;
}

static bool has_bits(const fitting *f, const tk_sim_operand_text *o) {
    bool has = false;
    for (uint32_t k = 0; k < o->n; k++) {
        const tk_sim_item *x = &o->item[k];
        const bool symbol = x->kind == TK_SIM_ITEM_SYMBOL;
        const tk_sim_symbol *y = symbol ? tk_sim_lookup(f->r, x->name) : NULL;
        has = has || (y && y->kind == TK_SIM_SYMBOL_REG && tk_sim_types[y->type].kind == 'b');
    }
    return has;
}

// Numbers alone, of which some are floats.
static bool is_mixed(const tk_sim_operand_text *o) {
    uint32_t floats = 0, numbers = 0;
    for (uint32_t k = 0; k < o->n; k++) {
        numbers += o->item[k].kind == TK_SIM_ITEM_NUMBER;
        floats += o->item[k].kind == TK_SIM_ITEM_NUMBER && o->item[k].number.is_float;
    }
    return numbers == o->n && floats && floats != numbers;
}

static bool fit_one(fitting *f, const tk_sim_operand_text *o, const spec *s) {
    if (s->address) {
        return fit_address(f, o, s->coordinates);
    }
    if (s->label || s->targets) {
        return s->label ? fit_label(f, o) : fit_targets(f, o);
    }
    if (o->kind == TK_SIM_OPERAND_PAIR && s->pair && o->n == 2) {
        spec second = {.dest = true, .pred = true};
        return fit_item(f, &o->item[0], s) && fit_item(f, &o->item[1], &second);
    }
    if (o->kind == TK_SIM_OPERAND_PAIR && (s->dest || s->place == 0) && o->n == 2 &&
        o->item[0].kind == TK_SIM_ITEM_SYMBOL && o->item[1].kind == TK_SIM_ITEM_SINK) {
        return fit_item(f, &o->item[0], s); // there is no second result, and nobody wants it
    }
    if (o->kind == TK_SIM_OPERAND_LIST && s->list) {
        bool ok = o->n > 0 || misfit(f, "an empty list");
        ok = ok && (!s->any || !is_mixed(o) || misfit(f, "numbers of one list are of one kind"));
        spec each = *s;
        each.inside = true;
        each.loose = !is_access(f->inst) || has_bits(f, o);
        each.integers = !each.loose && (s->type == TK_SIM_F32 || s->type == TK_SIM_F64);
        const spec number = numbers_in_list(f, o, &each);
        for (uint32_t k = 0; ok && k < o->n; k++) {
            const bool is = o->item[k].kind == TK_SIM_ITEM_NUMBER;
            ok = fit_item(f, &o->item[k], is ? &number : &each);
        }
        return ok;
    }
    if (o->kind != TK_SIM_OPERAND_ONE || s->listed) {
        return misfit(f, s->listed ? "a list in braces is needed" : another_form);
    }
    return fit_item(f, &o->item[0], s);
}

static bool fit(fitting *f, const char *shape, const tk_sim_operand_text *o, unsigned n) {
    unsigned used = 0, place = 0;
    for (const char *s = shape; *s; place++) {
        spec x;
        s = read_spec(s, f->inst, &x);
        s += *s == ' ';
        x.place = place;
        TK_CHECK(f->r->arena, place < TK_SIM_OPERANDS);
        f->inst->at[place] = (uint16_t)f->args.n;
        if (used == n) {
            if (!x.optional) {
                return misfit(f, "an operand is missing");
            }
            continue;
        }
        if (!fit_one(f, &o[used], &x)) {
            return false;
        }
        used++;
    }
    for (; place <= TK_SIM_OPERANDS; place++) {
        f->inst->at[place] = (uint16_t)f->args.n;
    }
    return used == n || misfit(f, "there are more operands than it takes");
}

// ---- The instruction

typedef struct written {
    const char *name;
    uint32_t line;
    unsigned n;
    tk_sim_operand_text operand[TK_SIM_OPERANDS];
} written;

static const char *no_executor(const tk_sim_row *row) {
    return strpbrk(row->shape, "*+")
               ? "these suffixes do not go together, or not with lists of this length"
               : "these suffixes do not go together";
}

// name: the mnemonic, with its words in the row's order.
static bool try_row(tk_sim_reader *r, const tk_sim_row *row, const char *name, const written *x,
                    tk_sim_inst *out, const char **why) {
    memset(out, 0, sizeof *out);
    out->name = name;
    out->line = x->line;
    if (!name || !tk_sim_match(row, name, out)) {
        return false;
    }
    fitting f = {.r = r, .inst = out};
    if (!fit(&f, row->shape, x->operand, x->n)) {
        *why = *why && *why != another_form ? *why : f.why;
        return false;
    }
    out->klass = (uint8_t)row->klass;
    // Never NULL: the operands of an instruction without arguments point there.
    out->arg = f.args.n ? f.args.at : TK_NEW(r->arena, tk_sim_arg);
    out->narg = f.args.n;
    f.why = tk_sim_list_problem(r, row, out);
    out->exec = f.why ? NULL : row->bind(out);
    if (!f.why) {
        f.why = out->exec ? tk_sim_form_problem(r, row, out) : no_executor(row);
    }
    if (f.why) {
        *why = *why && *why != another_form ? *why : f.why;
        return false;
    }
    const char *range = tk_sim_range_problem(r->arena, out, f.numbers.at); // no other form is meant
    if (range) {
        tk_sim_refuse_at(r, x->line, "instruction '%s': %s", x->name, range);
    }
    for (uint32_t k = 0; k < f.labels.n; k++) {
        tk_sim_label_ref(r, f.labels.at[k], out->line, &f.args.at[f.first_label + k]);
    }
    return true;
}

// Accesses by which threads tell each other something.
static void note_strong(tk_sim_reader *r, tk_sim_inst *i) {
    static const tk_sim_mod says[] = {TK_SIM_MOD_RELAXED, TK_SIM_MOD_ACQUIRE, TK_SIM_MOD_RELEASE,
                                      TK_SIM_MOD_VOLATILE, TK_SIM_MOD_MMIO};
    i->strong = i->klass == TK_SIM_CLASS_ATOMIC;
    for (size_t k = 0; i->klass == TK_SIM_CLASS_MEMORY && k < sizeof says / sizeof *says; k++) {
        i->strong = i->strong || tk_sim_has(i, says[k]);
    }
    bool relaxed = i->klass == TK_SIM_CLASS_BARRIER && tk_sim_has(i, TK_SIM_MOD_RELAXED);
    r->program->flags = r->program->flags || relaxed || i->strong;
}

// Polling an mbarrier changes nothing; nor does what is only of a warp.
static bool tells(const tk_sim_inst *i) {
    static const char *const not_at_all[] = {"mbarrier.test_", "mbarrier.try_", "mbarrier.pending_",
                                             "bar.warp.", "fence."};
    static const char *const others[] = {"wgmma.", "setmaxnreg.", "stmatrix."};
    bool is = i->klass == TK_SIM_CLASS_ASYNC || i->klass == TK_SIM_CLASS_BARRIER;
    for (size_t k = 0; k < sizeof not_at_all / sizeof *not_at_all; k++) {
        is = is && strncmp(i->name, not_at_all[k], strlen(not_at_all[k])) != 0;
    }
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        is = is || strncmp(i->name, others[k], strlen(others[k])) == 0;
    }
    return is;
}

static void push_inst(tk_sim_reader *r, tk_sim_inst i, uint8_t guard, uint32_t guard_slot) {
    i.guard = guard;
    i.guard_slot = guard_slot;
    i.loc = r->loc;
    note_strong(r, &i);
    i.meets = strncmp(i.name, "bar.warp.", 9) == 0 ||
              (i.klass == TK_SIM_CLASS_WARP && strstr(i.name, ".sync") &&
               !tk_sim_has(&i, TK_SIM_MOD_ALIGNED));
    i.tells = tells(&i);
    if (r->program->code.n == TK_SIM_MAX_INSTS) {
        tk_sim_refuse_at(r, i.line, "more than %d instructions", TK_SIM_MAX_INSTS);
    }
    tk_vec_push(r->arena, &r->program->code, i);
}

// ---- Calls: call.uni (results), function, (arguments);

static bool fit_actual(fitting *f, const tk_sim_formal *formal, const tk_sim_item *x, bool dest) {
    const tk_sim_symbol *y = x->kind == TK_SIM_ITEM_SYMBOL ? tk_sim_lookup(f->r, x->name) : NULL;
    if (y && y->kind == TK_SIM_SYMBOL_LOCAL && !x->plus && !x->negated) {
        if (formal->is_register || y->bytes != formal->bytes) {
            return misfit(f,
                          tk_format(f->r->arena, "'%s' has %u bytes; %s of %u is needed", x->name,
                                    y->bytes, formal->is_register ? "a register" : "a parameter",
                                    formal->bytes));
        }
        push_arg(f,
                 (tk_sim_arg){own_address(f, y, 0), 0, TK_SIM_ARG_ADDRESS, 8, false, TK_SIM_LOCAL});
        return true;
    }
    if (formal->bytes > 8) {
        return misfit(f, "a .param variable is needed");
    }
    spec s = {.dest = dest, .bits = formal->bytes * 8, .loose = true};
    s.bits = s.bits < 16 ? 16 : s.bits;
    s.type = formal->is_register && formal->bytes > 1 ? formal->type : bits_type(s.bits);
    return fit_item(f, x, &s);
}

static bool fit_actuals(fitting *f, const tk_sim_formal *formal, uint32_t n,
                        const tk_sim_operand_text *o, bool dest) {
    if ((o ? o->n : 0) != n) {
        return misfit(
            f, tk_format(f->r->arena, "%u %s are needed", n, dest ? "results" : "arguments"));
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!fit_actual(f, &formal[k], &o->item[k], dest)) {
            return false;
        }
    }
    return true;
}

static bool is_group(const written *x, unsigned k) {
    return k < x->n && x->operand[k].kind == TK_SIM_OPERAND_GROUP;
}

static tk_sim_function *callee(tk_sim_reader *r, const written *x, unsigned k) {
    const tk_sim_operand_text *o = &x->operand[k];
    bool named = k < x->n && o->kind == TK_SIM_OPERAND_ONE &&
                 o->item[0].kind == TK_SIM_ITEM_SYMBOL && !o->item[0].plus && !o->item[0].negated;
    const tk_sim_symbol *y = named ? tk_sim_lookup(r, o->item[0].name) : NULL;
    if (y && y->kind == TK_SIM_SYMBOL_REG) {
        tk_sim_refuse_at(r, x->line, "instruction '%s': indirect calls are not known", x->name);
    }
    if (!y || y->kind != TK_SIM_SYMBOL_FUNCTION) {
        tk_sim_refuse_at(r, x->line, "instruction '%s': '%s' is no function", x->name,
                         named ? o->item[0].name : "");
    }
    return r->program->functions.at[y->value];
}

static void read_call(tk_sim_reader *r, const written *x, uint8_t guard, uint32_t guard_slot) {
    tk_sim_inst i = {.exec = tk_sim_exec_call, .name = x->name, .line = x->line};
    fitting f = {.r = r, .inst = &i};
    unsigned at = is_group(x, 0), behind = at + 1u;
    tk_sim_function *called = callee(r, x, at);
    bool arguments = is_group(x, behind);
    bool ok =
        fit_actuals(&f, called->results.at, called->results.n, at ? &x->operand[0] : NULL, true);
    i.at[1] = (uint16_t)f.args.n;
    ok = ok && fit_actuals(&f, called->formals.at, called->formals.n,
                           arguments ? &x->operand[behind] : NULL, false);
    if (!ok || behind + arguments != x->n) {
        tk_sim_refuse_at(r, x->line, "instruction '%s' of '%s': %s", x->name, called->name,
                         ok ? "there are more operands than it takes" : f.why);
    }
    for (unsigned k = 2; k <= TK_SIM_OPERANDS; k++) {
        i.at[k] = (uint16_t)f.args.n;
    }
    i.arg = f.args.n ? f.args.at : TK_NEW(r->arena, tk_sim_arg);
    i.narg = f.args.n;
    i.klass = TK_SIM_CLASS_CONTROL;
    i.call = called;
    called->called = called->called ? called->called : x->line;
    r->entry->calls = true;
    called->early = called->early || (r->in_function && !called->body);
    push_inst(r, i, guard, guard_slot);
}

// The first row that the instruction fits. any: with its words in any order.
static bool find_row(tk_sim_reader *r, const written *x, bool any, tk_sim_inst *out,
                     const char **why, bool *known) {
    size_t rows, root = strcspn(x->name, ".");
    const tk_sim_row *row = tk_sim_rows(&rows);
    for (size_t k = 0; k < rows; k++) {
        if (!tk_sim_root_is(&row[k], x->name, root)) {
            continue;
        }
        *known = true;
        const char *name = any ? tk_sim_in_order(r->arena, &row[k], x->name) : x->name;
        if (try_row(r, &row[k], name, x, out, why)) {
            return true;
        }
    }
    return false;
}

// A word, and what follows it with a dot.
static const char *read_mnemonic(tk_sim_reader *r) {
    const char *name = tk_sim_word(r, "an instruction");
    while (r->token.kind == TK_SIM_TOKEN_WORD && *r->token.at == '.') {
        const char *both = tk_format(r->arena, "%s%.*s", name, (int)r->token.n, r->token.at);
        name = tk_intern(&r->names, both, strlen(both));
        tk_sim_next(r);
    }
    return name;
}

void tk_sim_read_inst(tk_sim_reader *r, uint8_t guard, uint32_t guard_slot) {
    written x;
    x.line = r->token.line;
    x.name = read_mnemonic(r);
    const bool call = strcmp(x.name, "call") == 0 || strcmp(x.name, "call.uni") == 0;
    x.n = tk_sim_read_operands(r, x.operand, call);
    if (call) {
        read_call(r, &x, guard, guard_slot);
        return;
    }
    const char *why = NULL;
    tk_sim_inst i;
    bool known = false;
    if (find_row(r, &x, false, &i, &why, &known) || find_row(r, &x, true, &i, &why, &known)) {
        tk_sim_check_target(r, x.name, x.line);
        push_inst(r, i, guard, guard_slot);
        return;
    }
    if (why) {
        tk_sim_refuse_at(r, x.line, "instruction '%s': %s", x.name, why);
    }
    if (tk_sim_unsupported(x.name)) {
        tk_sim_refuse_at(r, x.line, "instruction '%s' is not supported by the simulator", x.name);
    }
    tk_sim_refuse_at(r, x.line,
                     known ? "unknown form of an instruction: '%s'" : "unknown instruction '%s'",
                     x.name);
}
