// SPDX-License-Identifier: Apache-2.0
// The parser of the text form: one op, which is one line and the blocks that open on it. What it
// may say comes from ops.def and tk_op_attrs; whether it makes sense is the verifier's question.
#include "ir/parse_internal.h"

#include <string.h>

// An op while its line is read; made when its result types are known.
typedef struct pending {
    tk_opcode code;
    uint32_t begin;
    TK_VEC(tk_itoken) result; // names on the left
    TK_VEC(tk_vid) opnd;
    TK_VEC(const tk_type *) type;
    TK_VEC(const tk_layout *) layout; // by type
    TK_VEC(tk_itoken) arg;            // names of a loop's index and carried values
    tk_attrs at;
    tk_attr_bits given; // TK_A_* bits written
    uint32_t nperm;
    tk_itoken perm, literal;
    bool negative, is_bits;
    uint64_t bits;
    uint8_t fast;
    bool has_fast;
    tk_loc loc;
} pending;

static bool complain(tk_irparse *p, const tk_itoken *at, const char *text) {
    tk_error(p->diags, tk_irp_span(p, at->begin, at->end), "ir-syntax", "%s", text);
    return false;
}

// ---- Operands -----------------------------------------------------------------------------------

static bool is_value(const tk_irparse *p) { return p->tok.kind == TK_IT_VALUE && !p->tok.first; }

static bool operand(tk_irparse *p, pending *o) {
    if (p->tok.kind != TK_IT_VALUE) {
        return tk_irp_unexpected(p, "a value");
    }
    tk_itoken name = p->tok;
    tk_irp_next(p);
    tk_vid v = tk_irp_lookup(p, name.text);
    if (!v) {
        tk_error(p->diags, tk_irp_span(p, name.begin, name.end), "ir-name",
                 "unknown value '%%%s'; a value is defined before it is used", name.text);
        v = tk_irp_poison(p);
        tk_irp_define(p, &name, v); // so that it is reported once
    }
    tk_vec_push(p->a, &o->opnd, v);
    return true;
}

static bool operand_list(tk_irparse *p, pending *o) {
    do {
        if (!operand(p, o)) {
            return false;
        }
    } while (tk_irp_accept(p, ","));
    return true;
}

static bool word(tk_irparse *p, const tk_words *w, const char *what, uint32_t *out) {
    if (p->tok.kind == TK_IT_WORD && tk_word_find(w, p->tok.text, out)) {
        tk_irp_next(p);
        return true;
    }
    tk_buf b;
    tk_buf_init(&b, p->a);
    tk_buf_fmt(&b, "%s:", what);
    for (uint32_t i = 0; i < w->n; i++) {
        tk_buf_fmt(&b, " %s", w->word[i]);
    }
    return tk_irp_unexpected(p, tk_buf_text(&b));
}

static bool kind(tk_irparse *p, pending *o) {
    uint32_t i;
    if (!word(p, &tk_words_kind, "a kind", &i)) {
        return false;
    }
    o->at.kind = (tk_kindattr)i;
    return true;
}

// %i, %i +: 64, tile %t
static bool index_entry(tk_irparse *p, pending *o, uint32_t d) {
    if (d == TK_MAX_TENSOR_RANK) {
        return tk_irp_unexpected(p, "at most 8 indices");
    }
    bool tile = tk_irp_accept(p, "tile");
    if (!operand(p, o)) {
        return false;
    }
    o->at.index[d] = tile ? -1 : 0;
    tk_itoken at = p->tok;
    if (!tile && tk_irp_accept(p, "+:")) {
        if (!tk_irp_int(p, &o->at.index[d])) {
            return false;
        }
        if (o->at.index[d] < 1) {
            return complain(p, &at, "a range has an element at least");
        }
    }
    return true;
}

// %x[..]   %x[..] = %v   %x[..], %v   %x[..], %e, %v; then mask and else
static bool view(tk_irparse *p, pending *o) {
    if ((o->code == TK_OP_ATOMIC_RMW && !kind(p, o)) || !operand(p, o) || !tk_irp_expect(p, "[")) {
        return false;
    }
    uint32_t d = 0;
    if (!tk_irp_accept(p, "]")) {
        do {
            if (!index_entry(p, o, d++)) {
                return false;
            }
        } while (tk_irp_accept(p, ","));
        if (!tk_irp_expect(p, "]")) {
            return false;
        }
    }
    uint32_t more = o->code == TK_OP_LOAD ? 0 : o->code == TK_OP_ATOMIC_CAS ? 2 : 1;
    for (uint32_t i = 0; i < more; i++) {
        if (!tk_irp_expect(p, o->code == TK_OP_STORE ? "=" : ",") || !operand(p, o)) {
            return false;
        }
    }
    if (!p->tok.first && tk_irp_accept(p, "mask")) {
        o->at.masked = true;
        if (!operand(p, o)) {
            return false;
        }
    }
    if (o->code == TK_OP_LOAD && !p->tok.first && tk_irp_accept(p, "else")) {
        o->at.other = true;
        return operand(p, o);
    }
    return true;
}

// true, -1, 0.5, inf, bits(0x7fc00001); its type is read later
static bool literal(tk_irparse *p, pending *o) {
    o->negative = tk_irp_accept(p, "-");
    o->literal = p->tok;
    if (p->tok.first || (p->tok.kind != TK_IT_NUMBER && p->tok.kind != TK_IT_WORD)) {
        return tk_irp_unexpected(p, "a constant");
    }
    tk_irp_next(p);
    if (strcmp(o->literal.text, "bits") == 0) {
        o->is_bits = true;
        return tk_irp_expect(p, "(") && tk_irp_u64(p, &o->bits) && tk_irp_expect(p, ")");
    }
    return true;
}

static bool call(tk_irparse *p, pending *o) {
    if (!tk_irp_name(p, &o->at.callee) || !tk_irp_expect(p, "(")) {
        return false;
    }
    return tk_irp_accept(p, ")") || (operand_list(p, o) && tk_irp_expect(p, ")"));
}

static bool loop_name(tk_irparse *p, pending *o) {
    if (p->tok.kind != TK_IT_VALUE) {
        return tk_irp_unexpected(p, "a value");
    }
    tk_vec_push(p->a, &o->arg, p->tok);
    tk_irp_next(p);
    return true;
}

// carry (%a = %x, %b = %y)
static bool carry(tk_irparse *p, pending *o) {
    if (p->tok.first || !tk_irp_accept(p, "carry")) {
        return true;
    }
    if (!tk_irp_expect(p, "(")) {
        return false;
    }
    do {
        if (!loop_name(p, o) || !tk_irp_expect(p, "=") || !operand(p, o)) {
            return false;
        }
    } while (tk_irp_accept(p, ","));
    return tk_irp_expect(p, ")");
}

static bool operands(tk_irparse *p, pending *o) {
    tk_attr_bits has = tk_op_attrs(o->code);
    if (has & TK_A_INDEX) {
        return view(p, o);
    }
    if (o->code == TK_OP_CONST) {
        return literal(p, o);
    }
    if (o->code == TK_OP_CALL) {
        return call(p, o);
    }
    if (o->code == TK_OP_WHILE) {
        return carry(p, o);
    }
    if (o->code == TK_OP_FOR) {
        return loop_name(p, o) && tk_irp_expect(p, "=") && operand(p, o) &&
               tk_irp_expect(p, "to") && operand(p, o) && tk_irp_expect(p, "step") &&
               operand(p, o) && carry(p, o);
    }
    if ((has & TK_A_KIND) && !kind(p, o)) {
        return false;
    }
    return !is_value(p) || operand_list(p, o);
}

// ---- Attributes ---------------------------------------------------------------------------------

static bool fast_flags(tk_irparse *p, pending *o) {
    do {
        uint32_t i;
        if (!word(p, &tk_words_fast, "a freedom", &i)) {
            return false;
        }
        o->fast = (uint8_t)(o->fast | 1u << i);
    } while (tk_irp_accept(p, "+"));
    return true;
}

static bool permutation(tk_irparse *p, pending *o) {
    o->perm = p->tok;
    if (!tk_irp_expect(p, "[")) {
        return false;
    }
    do {
        int64_t x;
        tk_itoken at = p->tok;
        if (!tk_irp_int(p, &x)) {
            return false;
        }
        if (x < 0 || x >= TK_MAX_RANK || o->nperm == TK_MAX_RANK) {
            return complain(p, &at, "a permutation names each of at most 5 axes once");
        }
        o->at.perm[o->nperm++] = (uint8_t)x;
    } while (tk_irp_accept(p, ","));
    return tk_irp_expect(p, "]");
}

static bool shown(tk_irparse *p, pending *o) {
    TK_VEC(int64_t) list = {0};
    if (!tk_irp_expect(p, "[")) {
        return false;
    }
    do {
        int64_t x;
        if (!tk_irp_int(p, &x)) {
            return false;
        }
        tk_vec_push(p->a, &list, x);
    } while (tk_irp_accept(p, ","));
    o->at.shown = list.at;
    o->at.nshown = list.n;
    return tk_irp_expect(p, "]");
}

static bool axis(tk_irparse *p, pending *o) {
    int64_t x;
    tk_itoken at = p->tok;
    if (!tk_irp_int(p, &x)) {
        return false;
    }
    if (x < 0 || x >= TK_MAX_TENSOR_RANK) {
        return complain(p, &at, "an axis is from 0 to 7");
    }
    o->at.axis = (int)x;
    return true;
}

static bool text(tk_irparse *p, pending *o) {
    if (p->tok.kind != TK_IT_STRING) {
        return tk_irp_unexpected(p, "a string");
    }
    o->at.text = p->tok.text;
    tk_irp_next(p);
    return true;
}

static bool attr_value(tk_irparse *p, pending *o, tk_attr_bits bit) {
    uint32_t i = 0;
    switch (bit) {
    case TK_A_AXIS:
        return axis(p, o);
    case TK_A_START:
        return tk_irp_int(p, &o->at.start);
    case TK_A_PERM:
        return permutation(p, o);
    case TK_A_SHOWN:
        return shown(p, o);
    case TK_A_PIPELINE:
        return tk_irp_int(p, &o->at.pipeline);
    case TK_A_UNROLL:
        return tk_irp_int(p, &o->at.unroll);
    case TK_A_SHARED:
        return tk_irp_int(p, &o->at.shared);
    case TK_A_STAGED:
        return tk_irp_int(p, &o->at.staged);
    case TK_A_PRODUCERS:
        return tk_irp_int(p, &o->at.producers);
    case TK_A_SLOTS:
        return tk_irp_int(p, &o->at.slots);
    case TK_A_CLUSTER:
        return tk_irp_int(p, &o->at.cluster);
    case TK_A_PIECES:
        return tk_irp_int(p, &o->at.pieces);
    case TK_A_HOW:
        if (!word(p, &tk_words_how, "a way", &i)) {
            return false;
        }
        o->at.how = (tk_how)i;
        return true;
    case TK_A_LIKE:
        if (!word(p, &tk_words_like, "a load", &i)) {
            return false;
        }
        o->at.like = (tk_like)i;
        return true;
    case TK_A_HOLD:
        return tk_irp_int(p, &o->at.hold);
    case TK_A_HELD:
        return tk_irp_int(p, &o->at.held);
    case TK_A_TEXT:
        return text(p, o);
    case TK_A_PRECISION:
        if (!word(p, &tk_words_precision, "a precision", &i)) {
            return false;
        }
        o->at.precision = (tk_precision)i;
        return true;
    case TK_A_UNIT:
        if (!word(p, &tk_words_unit, "a unit", &i)) {
            return false;
        }
        o->at.unit = (tk_dot_unit)i;
        return true;
    case TK_A_ORDER:
        if (!word(p, &tk_words_order, "an order", &i)) {
            return false;
        }
        o->at.order = (tk_order)i;
        return true;
    case TK_A_SCOPE:
        if (!word(p, &tk_words_scope, "a scope", &i)) {
            return false;
        }
        o->at.scope = (tk_memscope)i;
        return true;
    }
    return fast_flags(p, o);
}

#define FAST (UINT64_C(1) << 63) // as a bit beside TK_A_*

static tk_attr_bits attr_named(const char *name) {
    static const struct {
        const char *name;
        tk_attr_bits bit;
    } all[] = {{"axis", TK_A_AXIS},
               {"start", TK_A_START},
               {"perm", TK_A_PERM},
               {"reverse", TK_A_REVERSE},
               {"exclusive", TK_A_EXCLUSIVE},
               {"descending", TK_A_DESCENDING},
               {"part", TK_A_PART},
               {"precision", TK_A_PRECISION},
               {"unit", TK_A_UNIT},
               {"open", TK_A_OPEN},
               {"order", TK_A_ORDER},
               {"scope", TK_A_SCOPE},
               {"pipeline", TK_A_PIPELINE},
               {"unroll", TK_A_UNROLL},
               {"shared", TK_A_SHARED},
               {"text", TK_A_TEXT},
               {"shown", TK_A_SHOWN},
               {"staged", TK_A_STAGED},
               {"slots", TK_A_SLOTS},
               {"pieces", TK_A_PIECES},
               {"cluster", TK_A_CLUSTER},
               {"producers", TK_A_PRODUCERS},
               {"how", TK_A_HOW},
               {"hold", TK_A_HOLD},
               {"held", TK_A_HELD},
               {"like", TK_A_LIKE},
               {"fast", FAST}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].bit;
        }
    }
    return 0;
}

static bool attr(tk_irparse *p, pending *o) {
    tk_itoken name = p->tok;
    tk_attr_bits bit = attr_named(name.text);
    if (!(bit & (tk_op_attrs(o->code) | FAST))) {
        return complain(
            p, &name,
            tk_format(p->a, "'%s' has no attribute '%s'", tk_op_info(o->code)->name, name.text));
    }
    if (o->given & bit) {
        return complain(p, &name, tk_format(p->a, "'%s' is given twice", name.text));
    }
    o->given |= bit;
    tk_irp_next(p);
    if (bit & (TK_A_REVERSE | TK_A_EXCLUSIVE | TK_A_DESCENDING | TK_A_PART | TK_A_OPEN)) {
        o->at.reverse = o->at.reverse || bit == TK_A_REVERSE;
        o->at.exclusive = o->at.exclusive || bit == TK_A_EXCLUSIVE;
        o->at.descending = o->at.descending || bit == TK_A_DESCENDING;
        o->at.part = o->at.part || bit == TK_A_PART;
        o->at.open = o->at.open || bit == TK_A_OPEN;
        return true;
    }
    return tk_irp_expect(p, "=") && attr_value(p, o, bit);
}

// ---- Regions ------------------------------------------------------------------------------------

// What a loop carries has the type and layout of the operand that it starts with.
static void carried_arg(tk_irparse *p, tk_region *r, const tk_itoken *name, tk_vid from) {
    tk_vid v = tk_region_arg(r, tk_value_type(p->f, from), tk_irp_hint(p, name->text));
    tk_value_lay(p->f, v, tk_value_layout(p->f, from));
    tk_irp_define(p, name, v);
}

static bool loop_regions(tk_irparse *p, pending *o, tk_op *op) {
    tk_region *r = op->reg[0];
    bool is_for = o->code == TK_OP_FOR;
    for (uint32_t i = 0; i < o->arg.n; i++) {
        uint32_t of = is_for ? (i == 0 ? 0 : i + 2) : i; // the operand whose type it has
        carried_arg(p, r, &o->arg.at[i], o->opnd.at[of]);
    }
    if (!tk_irp_region(p, r)) {
        return false;
    }
    if (is_for) {
        return true;
    }
    if (!tk_irp_expect(p, "do") || !tk_irp_expect(p, "(")) {
        return false;
    }
    for (uint32_t i = 0; i < o->arg.n; i++) {
        tk_itoken name = p->tok;
        if ((i && !tk_irp_expect(p, ",")) || (name = p->tok, name.kind != TK_IT_VALUE)) {
            return tk_irp_unexpected(p, "a value");
        }
        tk_irp_next(p);
        carried_arg(p, op->reg[1], &name, o->opnd.at[i]);
    }
    return tk_irp_expect(p, ")") && tk_irp_region(p, op->reg[1]);
}

static bool regions(tk_irparse *p, pending *o, tk_op *op) {
    for (uint32_t i = 0; i < op->nreg; i++) {
        op->reg[i] = tk_region_new(p->f, op);
    }
    if (o->code == TK_OP_FOR || o->code == TK_OP_WHILE) {
        return loop_regions(p, o, op);
    }
    for (uint32_t i = 0; i < op->nreg; i++) {
        const bool plain =
            o->code == TK_OP_IF || o->code == TK_OP_PARTITION || o->code == TK_OP_PROGRAMS;
        if (plain ? i > 0 && !tk_irp_expect(p, "else") : !tk_irp_typed_values(p, op->reg[i])) {
            return false;
        }
        if (!tk_irp_region(p, op->reg[i])) {
            return false;
        }
    }
    return true;
}

// ---- The op -------------------------------------------------------------------------------------

static bool mnemonic(tk_irparse *p, pending *o) {
    if (p->tok.kind != TK_IT_WORD) {
        return tk_irp_unexpected(p, "an op");
    }
    if (!tk_op_from_name(p->tok.text, strlen(p->tok.text), &o->code)) {
        const char *known[TK_OP_COUNT];
        for (int i = 0; i < TK_OP_COUNT; i++) {
            known[i] = tk_op_info((tk_opcode)i)->name;
        }
        const char *near = tk_nearest(p->a, p->tok.text, known, TK_OP_COUNT);
        tk_span at = tk_irp_span(p, p->tok.begin, p->tok.end);
        tk_diag *d = tk_error(p->diags, at, "ir-op", "unknown op '%s'", p->tok.text);
        if (near) {
            tk_help(p->diags, d, at, "did you mean '%s'?", near);
        }
        return false;
    }
    tk_irp_next(p);
    return true;
}

// The constant and the permutation, which need the result's type.
static bool finish_attrs(tk_irparse *p, pending *o) {
    if (o->given & TK_A_PERM && (o->type.n != 1 || o->type.at[0]->rank != o->nperm)) {
        return complain(p, &o->perm, "as many axes as the result has");
    }
    if (o->code != TK_OP_CONST) {
        return true;
    }
    tk_const *c = &o->at.value;
    c->dtype = o->type.n ? o->type.at[0]->dtype : TK_I32;
    unsigned width = tk_dtype_bits(c->dtype);
    const char *s = o->literal.text;
    if (o->is_bits) {
        c->bits = o->bits;
        if (o->negative || (width < 64 && o->bits >> width) ||
            (c->dtype == TK_BOOL && c->bits > 1)) {
            return complain(p, &o->literal, "bits beyond the type");
        }
    } else if (c->dtype == TK_BOOL && !o->negative && !strcmp(s, "true")) {
        *c = tk_const_bool(true);
    } else if (c->dtype == TK_BOOL && !o->negative && !strcmp(s, "false")) {
        *c = tk_const_bool(false);
    } else if (!tk_text_number(s, o->negative, c->dtype, c)) {
        return complain(p, &o->literal,
                        tk_format(p->a, "no constant of type %s", tk_dtype_name(c->dtype)));
    }
    return true;
}

static bool type_list(tk_irparse *p, pending *o) {
    if (p->tok.first || !tk_irp_accept(p, ":")) {
        return true;
    }
    do {
        const tk_type *t;
        const tk_layout *l;
        if (!tk_irp_type(p, &t) || !tk_irp_layout_of(p, &l)) {
            return false;
        }
        tk_vec_push(p->a, &o->type, t);
        tk_vec_push(p->a, &o->layout, l);
    } while (tk_irp_accept(p, ","));
    return true;
}

// The line up to its blocks.
static bool line(tk_irparse *p, pending *o) {
    if ((o->result.n && !tk_irp_expect(p, "=")) || !mnemonic(p, o) || !operands(p, o)) {
        return false;
    }
    while (p->tok.kind == TK_IT_WORD && !p->tok.first) {
        if (!attr(p, o)) {
            return false;
        }
    }
    if (!type_list(p, o) || !tk_irp_loc(p, o->begin, &o->loc)) {
        return false;
    }
    if (o->type.n != o->result.n) {
        tk_error(p->diags, tk_irp_span(p, o->begin, p->before), "ir-syntax",
                 "%u result%s and %u type%s", o->result.n, o->result.n == 1 ? "" : "s", o->type.n,
                 o->type.n == 1 ? "" : "s");
        return false;
    }
    return finish_attrs(p, o);
}

static bool whole(tk_irparse *p, pending *o, tk_region *r) {
    if (!line(p, o)) {
        return false;
    }
    tk_op *op = tk_op_new(p->f, o->code, o->loc, o->opnd.n, o->opnd.at, o->result.n, o->type.at,
                          (uint32_t)tk_op_info(o->code)->regions);
    op->at = o->at;
    op->fast = o->fast;
    for (uint32_t i = 0; i < op->nres; i++) {
        tk_value_lay(p->f, op->res[i], o->layout.at[i]);
    }
    if (!regions(p, o, op)) {
        return false;
    }
    tk_op_append(r, op);
    for (uint32_t i = 0; i < op->nres; i++) {
        const char *hint = tk_irp_hint(p, o->result.at[i].text);
        p->f->value.at[op->res[i]].name = hint;
        tk_irp_define(p, &o->result.at[i], op->res[i]);
    }
    if (!p->tok.first && !tk_irp_is(p, "}")) {
        return tk_irp_unexpected(p, "the end of the line");
    }
    return true;
}

bool tk_irp_op(tk_irparse *p, tk_region *r) {
    pending o = {.begin = p->tok.begin};
    o.at.axis = TK_AXIS_ALL;
    o.at.shared = -1;
    while (p->tok.kind == TK_IT_VALUE) {
        tk_vec_push(p->a, &o.result, p->tok);
        tk_irp_next(p);
        if (!tk_irp_accept(p, ",")) {
            break;
        }
    }
    if (whole(p, &o, r)) {
        return true;
    }
    for (uint32_t i = 0; i < o.result.n; i++) { // no later complaint about these
        if (!tk_irp_lookup(p, o.result.at[i].text)) {
            tk_irp_define(p, &o.result.at[i], tk_irp_poison(p));
        }
    }
    return false;
}
