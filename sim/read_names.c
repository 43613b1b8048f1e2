// SPDX-License-Identifier: Apache-2.0
// Names in scope, slots of registers and of constants, labels.
//
// A register gets its slot when an instruction first names it, so what a module costs is bounded by
// its text and not by the numbers in its declarations.
#include "sim/read.h"

#include <string.h>

// ---- The table

static uint32_t hash_pointer(const char *name) {
    uint64_t x = (uint64_t)(uintptr_t)name * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(x >> 32);
}

static tk_sim_symbol **find(tk_sim_reader *r, const char *name) {
    uint32_t at = hash_pointer(name) & (r->room - 1);
    while (r->table[at] && r->table[at]->name != name) {
        at = (at + 1) & (r->room - 1);
    }
    return &r->table[at];
}

// Names whose symbols are gone stay as entries without a scope (placed by `gone`), so that probing
// goes on past them.
static const uint32_t gone = UINT32_MAX;

static void grow(tk_sim_reader *r) {
    tk_sim_symbol **old = r->table;
    uint32_t room = r->room;
    r->room = room ? room * 2 : 256;
    r->table = TK_NEW_ARRAY(r->arena, tk_sim_symbol *, r->room);
    for (uint32_t i = 0; i < room; i++) {
        if (old[i]) {
            *find(r, old[i]->name) = old[i];
        }
    }
}

static tk_sim_symbol *add(tk_sim_reader *r, const char *name, tk_sim_symbol_kind kind,
                          uint32_t depth) {
    if (r->nsymbol * 2 >= r->room) {
        grow(r);
    }
    tk_sim_symbol **at = find(r, name);
    if (*at && (*at)->depth == depth) {
        tk_sim_refuse(r, "'%.*s' is declared twice", (int)strcspn(name, "<"),
                      name); // see range_name
    }
    tk_sim_symbol *s = TK_NEW(r->arena, tk_sim_symbol);
    s->name = name;
    s->kind = kind;
    s->depth = depth;
    s->shadowed = *at && (*at)->depth != gone ? *at : NULL;
    r->nsymbol += *at == NULL;
    *at = s;
    s->next = r->scope[depth].symbols;
    r->scope[depth].symbols = s;
    return s;
}

void tk_sim_scope_open(tk_sim_reader *r) {
    if (r->depth + 1 == TK_SIM_MAX_DEPTH) {
        tk_sim_refuse(r, "blocks are nested deeper than %d", TK_SIM_MAX_DEPTH);
    }
    r->scope[++r->depth] = (tk_sim_scope){NULL, NULL};
}

void tk_sim_scope_close(tk_sim_reader *r) {
    tk_sim_scope *s = &r->scope[r->depth];
    for (tk_sim_pending *p = s->pending, *next; p; p = next) {
        next = p->next;
        const tk_sim_symbol *label = r->room ? *find(r, p->name) : NULL;
        if (label && label->depth == r->depth && label->kind == TK_SIM_SYMBOL_LABEL) {
            p->arg->slot = label->value;
        } else if (r->depth <= 1) {
            tk_sim_refuse_at(r, p->line, "no label '%s'", p->name);
        } else {
            p->next = r->scope[r->depth - 1].pending;
            r->scope[r->depth - 1].pending = p;
        }
    }
    for (tk_sim_symbol *x = s->symbols; x; x = x->next) {
        tk_sim_symbol **at = find(r, x->name);
        if (x->shadowed) {
            *at = x->shadowed;
        } else {
            x->depth = gone;
        }
    }
    r->depth--;
}

// Ranges have names of their own: beside %r<8> there may be a %r.
static const char *key_name(tk_sim_reader *r, const char *prefix, size_t n, char mark) {
    char *name = TK_NEW_ARRAY(r->arena, char, n + 1);
    memcpy(name, prefix, n);
    name[n] = mark;
    return tk_intern(&r->names, name, n + 1);
}

static const char *range_name(tk_sim_reader *r, const char *prefix, size_t n) {
    return key_name(r, prefix, n, '<');
}

// %r7 of a declared %r<8>: a symbol of the range's scope, which is `from` or one inside it. least:
// how many digits the number has at least.
static tk_sim_symbol *in_range(tk_sim_reader *r, const char *name, uint32_t from, size_t least) {
    size_t n = strlen(name), digits = 0;
    while (digits < n && name[n - 1 - digits] >= '0' && name[n - 1 - digits] <= '9') {
        digits++;
    }
    // A prefix may end in digits itself: the longest number that fits a declared range.
    for (; digits > 0 && digits >= least; digits--) {
        size_t prefix = n - digits;
        bool leading = name[prefix] == '0' && digits > 1;
        if (digits > 8 || leading || prefix == 0) {
            continue;
        }
        uint32_t number = 0;
        for (size_t i = prefix; i < n; i++) {
            number = number * 10 + (uint32_t)(name[i] - '0');
        }
        // An inner range hides of an outer one what it has itself.
        const tk_sim_symbol *range = *find(r, range_name(r, name, prefix));
        while (range && range->depth != gone && range->depth >= from) {
            if (number < range->value) {
                tk_sim_symbol *s = add(r, name, TK_SIM_SYMBOL_REG, range->depth);
                s->type = range->type;
                s->digits = (uint8_t)digits;
                return s;
            }
            range = range->shadowed;
        }
    }
    return NULL;
}

// How many digits a name ends in that may be its number in a range.
static size_t number_of(const char *name, uint32_t *number) {
    size_t n = strlen(name), digits = 0;
    *number = 0;
    while (digits < n && name[n - 1 - digits] >= '0' && name[n - 1 - digits] <= '9') {
        digits++;
    }
    if (digits == 0 || digits == n || digits > 8 || (digits > 1 && name[n - digits] == '0')) {
        return 0;
    }
    for (size_t i = n - digits; i < n; i++) {
        *number = *number * 10 + (uint32_t)(name[i] - '0');
    }
    return digits;
}

// The smallest number of such names in this scope, so that a range which comes later finds it. What
// it is kept under is no name.
static void note_number(tk_sim_reader *r, const char *name, size_t digits, uint32_t number) {
    const char *key = key_name(r, name, strlen(name) - digits, '>');
    tk_sim_symbol *s = r->room ? *find(r, key) : NULL;
    s = s && s->depth == r->depth ? s : add(r, key, TK_SIM_SYMBOL_NUMBERED, r->depth);
    s->value = s->placed && s->value < number ? s->value : number;
    s->placed = true;
}

static tk_sim_symbol *declare_range(tk_sim_reader *r, const char *name) {
    const tk_sim_symbol *s = r->room ? *find(r, key_name(r, name, strlen(name), '>')) : NULL;
    tk_sim_symbol *range = add(r, range_name(r, name, strlen(name)), TK_SIM_SYMBOL_RANGE, r->depth);
    range->least = s && s->depth == r->depth ? s->value : UINT32_MAX;
    return range;
}

tk_sim_symbol *tk_sim_declare(tk_sim_reader *r, const char *name, tk_sim_symbol_kind kind) {
    if (name[1] == 0 && strchr("_%$", name[0]) && kind != TK_SIM_SYMBOL_PARAM) {
        tk_sim_refuse(r, "'%s' is no name", name);
    }
    if (kind == TK_SIM_SYMBOL_RANGE) {
        return declare_range(r, name);
    }
    uint32_t number;
    const size_t digits = kind == TK_SIM_SYMBOL_LABEL ? 0 : number_of(name, &number);
    if (digits && number) { // 0 may stand beside a range that comes later: as ptxas has it
        note_number(r, name, digits, number);
    }
    const tk_sim_symbol *s = r->room ? *find(r, name) : NULL;
    if (digits && r->room && (!s || s->depth != r->depth)) {
        in_range(r, name, r->depth, digits); // where it is one of a range of this scope
    }
    return add(r, name, kind, r->depth);
}

tk_sim_symbol *tk_sim_lookup(tk_sim_reader *r, const char *name) {
    if (!r->room) {
        return NULL;
    }
    tk_sim_symbol *s = *find(r, name);
    if (!s || s->depth == gone) {
        s = in_range(r, name, 0, 0);
    } else if (s->depth < r->depth) {
        tk_sim_symbol *inner = in_range(r, name, s->depth + 1, s->digits);
        s = inner ? inner : s;
    }
    if (s && s->kind == TK_SIM_SYMBOL_REG && !s->placed) {
        s->placed = true;
        s->value = tk_sim_new_slot(r, s->type == TK_SIM_PRED);
    }
    return s;
}

void tk_sim_label_ref(tk_sim_reader *r, const char *name, uint32_t line, tk_sim_arg *arg) {
    tk_sim_pending *p = TK_NEW(r->arena, tk_sim_pending);
    p->name = name;
    p->arg = arg;
    p->line = line;
    p->next = r->scope[r->depth].pending;
    r->scope[r->depth].pending = p;
}

// ---- Slots

uint32_t tk_sim_new_slot(tk_sim_reader *r, bool pred) {
    return pred ? r->entry->npred++ : r->entry->nreg++;
}

static uint32_t hash_fill(const tk_sim_fill *f) {
    uint64_t x = f->bits * UINT64_C(0x9E3779B97F4A7C15) ^
                 ((uint64_t)f->index << 8 | (uint64_t)f->kind) * UINT64_C(0xC2B2AE3D27D4EB4F);
    return (uint32_t)(x >> 32);
}

static uint32_t *find_fill(tk_sim_reader *r, const tk_sim_fill *f) {
    uint32_t at = hash_fill(f) & (r->fill_room - 1);
    while (r->fill_table[at]) {
        const tk_sim_fill *x = &r->entry->fills.at[r->fill_table[at] - 1];
        if (x->kind == f->kind && x->index == f->index && x->bits == f->bits) {
            break;
        }
        at = (at + 1) & (r->fill_room - 1);
    }
    return &r->fill_table[at];
}

uint32_t tk_sim_fill_slot(tk_sim_reader *r, tk_sim_fill_kind kind, uint32_t index, uint64_t bits) {
    tk_sim_entry *e = r->entry;
    if (e->fills.n * 2 >= r->fill_room) {
        r->fill_room = r->fill_room ? r->fill_room * 2 : 64;
        r->fill_table = TK_NEW_ARRAY(r->arena, uint32_t, r->fill_room);
        for (uint32_t i = 0; i < e->fills.n; i++) {
            *find_fill(r, &e->fills.at[i]) = i + 1;
        }
    }
    tk_sim_fill f = {0, kind, index, bits};
    uint32_t *at = find_fill(r, &f);
    if (!*at) {
        f.slot = tk_sim_new_slot(r, tk_sim_fill_is_pred(&f));
        tk_vec_push(r->arena, &e->fills, f);
        *at = e->fills.n;
    }
    return e->fills.at[*at - 1].slot;
}
