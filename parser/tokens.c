// SPDX-License-Identifier: Apache-2.0
// The array of tokens: words that are keywords only in their place, the '}' that a text lacks, and
// the limit on nesting.
#include "parser/parse_internal.h"

#include "parser/parse.tab.h"

#include <string.h>

tk_span tk_token_span(const tk_parser *p, const tk_token *t) {
    return (tk_span){p->file, t->begin, t->end};
}

uint32_t tk_line_of(const tk_parser *p, uint32_t offset) {
    uint32_t line, col;
    tk_line_col(p->source, offset, &line, &col);
    return line;
}

bool tk_ends_operand(int kind) {
    return kind == TOK_NAME || kind == TOK_INT || kind == TOK_FLOAT || kind == TOK_STRING ||
           kind == TOK_TRUE || kind == TOK_FALSE || kind == TOK_INF || kind == TOK_NAN ||
           kind == TOK_NEWAXIS || kind == TOK_RPAREN || kind == TOK_RBRACKET;
}

bool tk_starts_item(const tk_parser *p, uint32_t i) {
    const tk_token *t = &p->tokens.at[i];
    if (t->kind == TOK_FN) { // an anonymous function and a function type have no name
        return p->tokens.at[i + 1].kind == TOK_NAME;
    }
    return t->kind == TOK_KERNEL || t->kind == TOK_IMPORT || t->kind == TOK_CONST ||
           t->kind == TOK_AT;
}

static void take(tk_parser *p, tk_token *t) {
    if (t->kind == TK_KIND_COMMENT) {
        tk_comment c = {t->begin, t->end, p->tokens.n};
        tk_vec_push(p->arena, &p->comments, c);
    } else if (t->kind != TK_KIND_SKIP) {
        t->bad = t->bad || p->bad_before;
        p->bad_before = false;
        tk_vec_push(p->arena, &p->tokens, *t);
    }
}

// ---- Words ------------------------------------------------------------------------------------

// No operand follows an operand, so a word that stands after one can only be the keyword.
static int word_kind(const char *s) {
    static const struct {
        const char *text;
        int kind;
    } words[] = {{"step", TOK_STEP},
                 {"where", TOK_WHERE},
                 {"grid", TOK_GRID},
                 {"pipeline", TOK_PIPELINE},
                 {"unroll", TOK_UNROLL}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(s, words[i].text) == 0) {
            return words[i].kind;
        }
    }
    return TOK_NAME;
}

static void classify_words(tk_parser *p) {
    uint32_t in_attr = 0; // open brackets since '@' NAME
    tk_token *t = p->tokens.at;
    for (uint32_t i = 0; i + 1 < p->tokens.n; i++) {
        int before = i ? t[i - 1].kind : 0;
        bool opens = t[i].kind == TOK_LPAREN;
        bool attr = opens && i > 1 && before == TOK_NAME && t[i - 2].kind == TOK_AT;
        if (opens && (attr || in_attr)) {
            in_attr = attr ? 1 : in_attr + 1;
        } else if (in_attr && (t[i].kind == TOK_RPAREN || tk_starts_item(p, i))) {
            in_attr = t[i].kind == TOK_RPAREN ? in_attr - 1 : 0;
        }
        if (t[i].kind == TOK_INT && t[i].shift && !in_attr) {
            tk_diag *d = tk_error(p->diags, tk_token_span(p, &t[i]), "bad-number",
                                  "a size such as 100KB stands only in an attribute");
            tk_help(p->diags, d, (tk_span){0}, "1KB is 1024, 1MB is 1048576");
        }
        if (t[i].kind != TOK_NAME) {
            continue;
        }
        const char *s = t[i].u.name;
        if (tk_ends_operand(before)) {
            t[i].kind = word_kind(s);
        } else if (before == TOK_COLON && t[i + 1].kind == TOK_NAME) {
            t[i].kind = strcmp(s, "out") == 0     ? TOK_OUT
                        : strcmp(s, "inout") == 0 ? TOK_INOUT
                                                  : TOK_NAME;
        } else if (in_attr && before == TOK_SEMI && strcmp(s, "key") == 0) {
            t[i].kind = TOK_KEY;
        }
    }
}

// ---- Braces -----------------------------------------------------------------------------------

typedef struct {
    uint32_t token;
    uint32_t indent; // of the line on which it stands
} open_brace;

typedef struct {
    TK_VEC(open_brace) open;
    uint32_t suspect; // a brace whose '}' is indented less than its line, as a token index + 1
} braces;

static uint32_t indent_of(const tk_parser *p, uint32_t offset) {
    const char *line = p->source->text + p->source->line[tk_line_of(p, offset) - 1];
    uint32_t n = 0;
    while (n < 1000 && (line[n] == ' ' || line[n] == '\t')) {
        n++;
    }
    return n;
}

static bool first_on_line(const tk_parser *p, const tk_token *t) {
    return p->source->line[tk_line_of(p, t->begin) - 1] + indent_of(p, t->begin) == t->begin;
}

static void close_brace(tk_parser *p, braces *b, const tk_token *t) {
    if (b->open.n == 0) {
        return; // the grammar says so
    }
    open_brace o = b->open.at[--b->open.n];
    if (!b->suspect && first_on_line(p, t) && indent_of(p, t->begin) < o.indent) {
        b->suspect = o.token + 1;
    }
}

// At an item's start or the end: what is open is never closed. The '}' are made up, so that the
// grammar goes on with the item and nothing else is reported.
static void close_all(tk_parser *p, braces *b, const tk_token *old, tk_token *at) {
    if (b->open.n && at->bad && at->kind == 0) {
        b->open.n = 0; // the text was cut off, and that was said
    }
    if (b->open.n) {
        uint32_t end = p->tokens.n ? p->tokens.at[p->tokens.n - 1].end : 0;
        uint32_t guess = b->suspect ? b->suspect - 1 : b->open.at[b->open.n - 1].token;
        tk_span place = {p->file, end, end};
        tk_diag *d = tk_error(p->diags, place, "missing-brace", "a '}' is missing here");
        tk_note(p->diags, d, tk_token_span(p, &old[guess]), "'{' opened here");
        for (uint32_t i = 0; i < b->open.n; i++) {
            tk_token made = {
                .kind = TOK_RBRACE, .begin = end, .end = end, .bad = true, .made = true};
            tk_vec_push(p->arena, &p->tokens, made);
        }
        at->bad = true;
    }
    b->open.n = 0;
    b->suspect = 0;
}

static void balance_braces(tk_parser *p) {
    uint32_t n = p->tokens.n, comment = 0;
    tk_token *old = p->tokens.at;
    tk_parser ask = *p; // tk_starts_item looks at the old array
    braces b = {.suspect = 0};
    memset(&p->tokens, 0, sizeof p->tokens);
    for (uint32_t i = 0; i < n; i++) {
        tk_token *t = &old[i];
        bool set = t->kind == TOK_LBRACE && i && old[i - 1].kind == TOK_IN;
        if (set) { // of an attribute: closed by the next '}' or not at all
            uint32_t j = i + 1;
            while (j < n && old[j].kind != TOK_RBRACE && old[j].kind != TOK_LBRACE &&
                   old[j].kind != TOK_SEMI && !tk_starts_item(&ask, j) && old[j].kind != 0) {
                j++;
            }
            if (old[j].kind == TOK_RBRACE) {
                old[j].role = TK_ROLE_SET;
            }
        } else if (t->kind == TOK_LBRACE) {
            open_brace o = {i, indent_of(p, t->begin)};
            tk_vec_push(p->arena, &b.open, o);
        } else if (t->kind == TOK_RBRACE && t->role != TK_ROLE_SET) {
            close_brace(p, &b, t);
        } else if (t->kind == 0 || tk_starts_item(&ask, i)) {
            close_all(p, &b, old, t);
        }
        for (; comment < p->comments.n && p->comments.at[comment].next <= i; comment++) {
            p->comments.at[comment].next = p->tokens.n;
        }
        tk_vec_push(p->arena, &p->tokens, *t);
    }
}

// ---- Nesting ----------------------------------------------------------------------------------

// Ends the array at the bracket that is one too deep.
static void limit_nesting(tk_parser *p) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < p->tokens.n; i++) {
        tk_token *t = &p->tokens.at[i];
        if (t->kind == TOK_LPAREN || t->kind == TOK_LBRACKET || t->kind == TOK_LBRACE) {
            depth++;
        } else if ((t->kind == TOK_RPAREN || t->kind == TOK_RBRACKET || t->kind == TOK_RBRACE) &&
                   depth) {
            depth--;
        }
        if (depth > TK_MAX_NESTING) {
            (void)tk_error(p->diags, tk_token_span(p, t), "too-deep",
                           "nested too deeply: brackets nest at most %d deep", TK_MAX_NESTING);
            t->kind = 0;
            t->bad = true;
            p->tokens.n = i + 1;
            return;
        }
    }
}

void tk_tokenize(tk_parser *p) {
    tk_scan_all(p, take);
    classify_words(p);
    limit_nesting(p);
    balance_braces(p);
}
