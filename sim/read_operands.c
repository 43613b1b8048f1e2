// SPDX-License-Identifier: Apache-2.0
// The operands of an instruction as they are written, before it is known what they must be.
#include "sim/read.h"

#include <string.h>

enum { MAX_ITEMS = 320 };

static void read_item(tk_sim_reader *r, tk_sim_item *out) {
    memset(out, 0, sizeof *out);
    const bool no = tk_sim_accept(r, "!");
    if (tk_sim_constant_begins(r)) {
        out->kind = TK_SIM_ITEM_NUMBER;
        out->number = no ? tk_sim_read_constant_not(r) : tk_sim_read_constant(r);
        return;
    }
    out->negated = no;
    out->kind = TK_SIM_ITEM_SYMBOL;
    out->name = tk_sim_word(r, "an operand");
    if (strcmp(out->name, "_") == 0) {
        out->kind = TK_SIM_ITEM_SINK;
    } else if (tk_sim_is(r, "-")) {
        tk_sim_refuse(r, "behind '%s' stands '+' and a number, which may be negative", out->name);
    } else if (tk_sim_accept(r, "+")) {
        tk_sim_number x = tk_sim_read_constant(r);
        if (x.is_float) {
            tk_sim_refuse(r, "behind '%s+' stands an integer", out->name);
        }
        out->sum = true;
        out->plus = (int64_t)x.bits;
    }
}

typedef struct item_list {
    TK_VEC(tk_sim_item) items;
} item_list;

static void push_item(tk_sim_reader *r, item_list *l) {
    if (l->items.n == MAX_ITEMS) {
        tk_sim_refuse(r, "more than %d operands in one list", MAX_ITEMS);
    }
    tk_sim_item x;
    read_item(r, &x);
    tk_vec_push(r->arena, &l->items, x);
}

static void read_list(tk_sim_reader *r, item_list *l, const char *close) {
    if (tk_sim_accept(r, close)) {
        return;
    }
    do {
        push_item(r, l);
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, close);
}

// groups: a parenthesis opens a list of a call, not a constant expression.
static void read_operand(tk_sim_reader *r, tk_sim_operand_text *out, bool groups) {
    item_list l = {{0}};
    if (tk_sim_accept(r, "{")) {
        out->kind = TK_SIM_OPERAND_LIST;
        read_list(r, &l, "}");
    } else if (groups && tk_sim_accept(r, "(")) {
        out->kind = TK_SIM_OPERAND_GROUP;
        read_list(r, &l, ")");
    } else if (tk_sim_accept(r, "[")) {
        out->kind = TK_SIM_OPERAND_ADDRESS;
        push_item(r, &l);
        if (tk_sim_accept(r, ",")) {
            tk_sim_expect(r, "{");
            read_list(r, &l, "}");
        }
        tk_sim_expect(r, "]");
    } else {
        push_item(r, &l);
        if (tk_sim_accept(r, "|")) {
            out->kind = TK_SIM_OPERAND_PAIR;
            push_item(r, &l);
        }
    }
    out->n = l.items.n;
    out->item = l.items.at;
}

unsigned tk_sim_read_operands(tk_sim_reader *r, tk_sim_operand_text *o, bool groups) {
    unsigned n = 0;
    memset(o, 0, TK_SIM_OPERANDS * sizeof *o);
    if (tk_sim_accept(r, ";")) {
        return 0;
    }
    do {
        if (n == TK_SIM_OPERANDS) {
            tk_sim_refuse(r, "more than %d operands", TK_SIM_OPERANDS);
        }
        read_operand(r, &o[n++], groups);
    } while (tk_sim_accept(r, ","));
    tk_sim_expect(r, ";");
    return n;
}
