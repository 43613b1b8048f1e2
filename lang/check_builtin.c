// SPDX-License-Identifier: Apache-2.0
// Calls of built-in functions: the tables made from builtins.def, and which rule checks which call.
#include "lang/check_builtin.h"

// The names of element-wise rows, which are those of numops.def, as constants.
static const struct {
#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE) char ID[sizeof #NAME];
#include "lang/numops.def"
} num_name = {
#define TK_NUMOP(ID, NAME, ARITY, B, I, W, N, RESULT, RULE) #NAME,
#include "lang/numops.def"
};

static const char *const all_names[] = {
#define TK_BUILTIN(ID, NAME, RULE, SIGNATURE, DOC) #NAME,
#define TK_BUILTIN_ELEM(ID, SIGNATURE, DOC)        num_name.ID,
#include "lang/builtins.def"
};

typedef struct row {
    const char *name;
    const char *signature;
    tk_rule rule;
    tk_builtin id;
    tk_numop elem;
} row;

static const row rows[] = {
#define TK_BUILTIN(ID, NAME, RULE, SIGNATURE, DOC)                                                 \
    {#NAME, SIGNATURE, TK_RULE_##RULE, TK_BI_##ID, TK_NUM_COUNT},
#define TK_BUILTIN_ELEM(ID, SIGNATURE, DOC)                                                        \
    {num_name.ID, SIGNATURE, TK_RULE_ELEM, TK_BI_COUNT, TK_NUM_##ID},
#include "lang/builtins.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

const char *const *tk_builtin_names(size_t *n) {
    *n = ROWS;
    return all_names;
}

tk_builtin tk_find_builtin(const char *name, tk_numop *elem) {
    *elem = TK_NUM_COUNT;
    for (uint32_t i = 0; i < ROWS; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            *elem = rows[i].elem;
            return rows[i].id;
        }
    }
    return TK_BI_COUNT;
}

static const row *row_of(tk_builtin id, tk_numop elem) {
    for (uint32_t i = 0; i < ROWS; i++) {
        if (rows[i].id == id && rows[i].elem == elem) {
            return &rows[i];
        }
    }
    return NULL;
}

typedef enum { MATCH_SIG, MATCH_OWN } match;
typedef enum { PLACE_ANY, PLACE_TILE } place;

typedef struct rule_info {
    tk_value (*check)(tk_bcall *b);
    match match;
    place place;
} rule_info;

static const rule_info rules[] = {
#define RULE_INFO(RULE, FUNCTION, MATCH, PLACE)                                                    \
    [TK_RULE_##RULE] = {tk_rule_##FUNCTION, MATCH_##MATCH, PLACE_##PLACE},
    TK_RULES(RULE_INFO)};

tk_value tk_check_builtin(tk_checker *c, const tk_expr *call, tk_builtin id, tk_numop elem) {
    const row *r = row_of(id, elem);
    TK_CHECK(tk_checker_arena(c), r != NULL);
    const rule_info *rule = &rules[r->rule];
    tk_bcall b = {.c = c, .call = call, .id = id, .elem = elem};
    b.rule = r->rule;
    b.name = r->name;
    b.signature = r->signature;
    if (rule->place == PLACE_TILE && tk_checker_lifted(c)) {
        return tk_err(c, call->span, "whole-tile-built-in",
                      "'%s' works on whole tiles: it cannot stand in a function that is applied to "
                      "each element of a tile",
                      b.name);
    }
    if (rule->match == MATCH_SIG && !tk_bi_match(&b, b.signature)) {
        return tk_bi_error(&b);
    }
    return rule->check(&b);
}
