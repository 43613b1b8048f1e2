// SPDX-License-Identifier: Apache-2.0
// Syntax errors: what is said, in the reader's words, and where the parse goes on.
//
// The grammar has two rules with `error`, for a statement and for an item, both followed by SYNC.
// After an error the next token asked for is SYNC, and the array's place has moved to where the
// statement or item ends.
#include "parser/parse_internal.h"

#include "parser/parse.tab.h"

#include <string.h>

enum { MOST_ERRORS = 1000, MOST_EXPECTED = 5 };

void tk_too_deep(tk_parser *p, tk_span at) {
    if (!p->fatal) {
        (void)tk_error(p->diags, at, "too-deep",
                       "nested too deeply: a program's tree is at most %d levels high",
                       TK_MAX_HEIGHT);
    }
    p->fatal = true;
}

// ---- Where to go on ---------------------------------------------------------------------------

static bool on_new_line(const tk_parser *p, uint32_t i) {
    return i == 0 || tk_line_of(p, p->tokens.at[i].begin) != tk_line_of(p, p->tokens.at[i - 1].end);
}

static bool starts_statement(int kind) {
    return kind == TOK_LET || kind == TOK_VAR || kind == TOK_IF || kind == TOK_FOR ||
           kind == TOK_WHILE || kind == TOK_BREAK || kind == TOK_CONTINUE || kind == TOK_RETURN;
}

// The token after the '}' of the '{' at i, or the end.
static uint32_t after_block(const tk_parser *p, uint32_t i) {
    uint32_t depth = 0;
    for (; p->tokens.at[i].kind; i++) {
        int kind = p->tokens.at[i].kind;
        depth += kind == TOK_LBRACE;
        if (kind == TOK_RBRACE && --depth == 0) {
            return i + 1;
        }
    }
    return i;
}

// Whether a statement that had a block in it goes on at this token.
static bool goes_on(int kind) {
    return kind == TOK_ELSE || kind == TOK_COMMA || kind == TOK_RPAREN || kind == TOK_RBRACKET ||
           kind == TOK_SEMI || kind == TOK_STAR || kind == TOK_PLUS || kind == TOK_SLASH;
}

static uint32_t statement_end(const tk_parser *p, uint32_t i) {
    uint32_t begin = i;
    for (;;) {
        int kind = p->tokens.at[i].kind;
        if (kind == 0 || kind == TOK_RBRACE) {
            return i;
        }
        if (i > begin && (tk_starts_item(p, i) || (starts_statement(kind) && on_new_line(p, i)))) {
            return i;
        }
        i++;
        if (kind == TOK_SEMI) {
            return i;
        }
        if (kind == TOK_LBRACE) {
            i = after_block(p, i - 1);
            if (!goes_on(p->tokens.at[i].kind)) {
                return i;
            }
        }
    }
}

static uint32_t sync_place(const tk_parser *p) {
    uint32_t i = p->now;
    bool again = i == p->synced; // no progress since the last time
    if (p->missing && !again) {
        return i;
    }
    if (p->tokens.at[i].kind == 0) {
        return i;
    }
    if (p->depth > 0) {
        uint32_t end = statement_end(p, i);
        return end == i && again ? i + 1 : end;
    }
    i += again;
    while (p->tokens.at[i].kind && !tk_starts_item(p, i)) {
        if (p->tokens.at[i].kind != TOK_LBRACE) {
            i++;
            continue;
        }
        i = after_block(p, i);
        if (p->tokens.at[i].kind == TOK_NAME && on_new_line(p, i)) {
            return i; // a misspelt item
        }
    }
    return i;
}

tk_token *tk_next_token(tk_parser *p) {
    tk_token *end = &p->tokens.at[p->tokens.n - 1];
    if (p->start) {
        tk_token *t = TK_NEW(p->arena, tk_token);
        t->kind = p->start;
        p->start = 0;
        return t;
    }
    if (p->fatal) {
        return end;
    }
    if (p->resync) {
        p->resync = false;
        p->next = sync_place(p);
        p->synced = p->next;
        tk_token *t = TK_NEW(p->arena, tk_token);
        *t = p->tokens.at[p->next];
        t->kind = TOK_SYNC;
        t->end = t->begin;
        return t;
    }
    p->now = p->next;
    tk_token *t = &p->tokens.at[p->next];
    p->next += t != end;
    return t;
}

// ---- What is expected -------------------------------------------------------------------------

typedef struct {
    const char *const *at;
    uint32_t n;
} names;

static bool has(names e, const char *name) {
    for (uint32_t i = 0; i < e.n; i++) {
        if (strcmp(e.at[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_one_of(const char *name, const char *const *list) {
    for (; *list; list++) {
        if (strcmp(name, *list) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const expression_starts[] = {
    "a name",  "an integer", "a float", "a string", "true", "false", "inf", "nan",
    "newaxis", "(",          "[",       "fn",       "-",    "!",     "~",   NULL};
static const char *const type_starts[] = {"a name", "in", "out", "inout", "fn", "(", NULL};
static const char *const operators[] = {
    "*",  "/",  "%", "+", "-", "<<", ">>", "<", "<=", ">", ">=",
    "==", "!=", "&", "^", "|", "&&", "||", "(", "[",  "?", "an assignment",
    NULL};
static const char *const statement_keeps[] = {"}", NULL};
static const char *const item_starts[] = {
    "kernel", "fn", "const", "import", "@", ";", "the end of the text", NULL};
static const char *const internal[] = {"a place to go on", "the start of a file",
                                       "the start of an expression", "error", NULL};

// The expected tokens as the reader names them: what starts an expression is "an expression", and
// so on.
static uint32_t grouped(names e, const char **out) {
    uint32_t n = 0;
    const char *const *group = NULL;
    bool keep_only = false;
    if (has(e, "let")) {
        out[n++] = "a statement";
        group = statement_keeps;
        keep_only = true;
    } else if (has(e, "an integer")) {
        out[n++] = "an expression";
        group = expression_starts;
    } else if (has(e, "in") && has(e, "fn")) {
        out[n++] = "a type";
        group = type_starts;
    } else if (has(e, "import")) {
        out[n++] = "'kernel', 'fn', 'const' or 'import'";
        group = item_starts;
    } else if (has(e, "*")) {
        group = operators;
    }
    for (uint32_t i = 0; i < e.n && n < MOST_EXPECTED; i++) {
        bool in_group = group && is_one_of(e.at[i], group);
        if (!is_one_of(e.at[i], internal) && in_group == keep_only) {
            out[n++] = e.at[i];
        }
    }
    if (n == 0 && group == operators) {
        out[n++] = "an operator";
    }
    return n;
}

static void add_expected(tk_buf *b, names e) {
    const char *list[MOST_EXPECTED + 1];
    uint32_t n = grouped(e, list);
    for (uint32_t i = 0; i < n; i++) {
        bool words = strchr(list[i], ' ') != NULL;
        tk_buf_str(b, i == 0 ? ", expected " : i + 1 == n ? " or " : ", ");
        tk_buf_fmt(b, words ? "%s" : "'%s'", list[i]);
    }
}

// ---- What is said -----------------------------------------------------------------------------

static const char *token_text(const tk_parser *p, const tk_token *t) {
    if (t->kind == 0) {
        return "end of the text";
    }
    if (t->kind == TOK_STRING) {
        return "a string";
    }
    uint32_t n = t->end - t->begin;
    return tk_format(p->arena, n > 40 ? "'%.*s...'" : "'%.*s'", (int)(n > 40 ? 40 : n),
                     p->source->text + t->begin);
}

static bool is_keyword(const tk_parser *p, const tk_token *t) {
    char c = p->source->text[t->begin];
    return t->kind && t->kind != TOK_NAME && c >= 'a' && c <= 'z';
}

// Words of other languages, as the token that does not fit or as the one before it.
static const char *word_help(const tk_token *t) {
    static const struct {
        const char *word, *help;
    } words[] = {
        {"and", "'and' is written '&&'"},
        {"or", "'or' is written '||'"},
        {"not", "'not' is written '!'"},
        {"elif", "'elif' is written 'else if'"},
        {"elseif", "'elseif' is written 'else if'"},
        {"def", "a function starts with 'fn'"},
        {"func", "a function starts with 'fn'"},
        {"function", "a function starts with 'fn'"},
        {"mut", "a variable is declared by 'var'"},
    };
    for (size_t i = 0; t->kind == TOK_NAME && i < sizeof words / sizeof *words; i++) {
        if (strcmp(t->u.name, words[i].word) == 0) {
            return words[i].help;
        }
    }
    return NULL;
}

// `int x = 3;`: two names at the start of a statement.
static bool starts_with_name(const tk_token *before) {
    int kind = before && before->kind == TOK_NAME ? before[-1].kind : 0;
    return kind == TOK_SEMI || kind == TOK_LBRACE || kind == TOK_RBRACE;
}

static bool declares_as_in_c(const tk_token *t, const tk_token *before) {
    return t->kind == TOK_NAME && starts_with_name(before);
}

// A misspelt keyword: `kernal k(`, `retrun x;`.
static const char *keyword_help(const tk_parser *p, names e, const tk_token *t,
                                const tk_token *before) {
    static const char *const item[] = {"kernel", "fn", "const", "import"};
    static const char *const statement[] = {"let",   "var",   "if",       "for",
                                            "while", "break", "continue", "return"};
    bool items = has(e, "import") && t->kind == TOK_NAME;
    bool value = t->kind == TOK_NAME || t->kind == TOK_INT || t->kind == TOK_FLOAT;
    bool statements = !items && value && p->now > 1 && starts_with_name(before) &&
                      before->end - before->begin > 2;
    const char *near = items        ? tk_nearest(p->arena, t->u.name, item, 4)
                       : statements ? tk_nearest(p->arena, before->u.name, statement, 8)
                                    : NULL;
    return near ? tk_format(p->arena, "did you mean '%s'?", near) : NULL;
}

static const char *help_for(const tk_parser *p, names e, const tk_token *t,
                            const tk_token *before) {
    const char *word = word_help(t);
    word = word || !before ? word : word_help(before);
    if (word) {
        return word;
    }
    const char *keyword = keyword_help(p, e, t, before);
    if (keyword) {
        return keyword;
    }
    if (p->now > 1 && has(e, "=") && declares_as_in_c(t, before)) {
        return "a new name is bound by 'let x = ...', a variable by 'var x = ...'";
    }
    switch (t->kind) {
    case TOK_PLUSPLUS:
        return "write 'x += 1'";
    case TOK_MINUSMINUS:
        return "write 'x -= 1'; a number that is negated twice is '-(-x)'";
    case TOK_COLON:
        return has(e, "+:") ? "a range in an index is written 'start +: length'" : NULL;
    case TOK_DOT:
        return "'.' stands only in numbers";
    case TOK_RBRACE:
        return has(e, "import") ? "this '}' closes nothing" : NULL;
    case TOK_ELSE:
        return has(e, "let") ? "this 'else' follows no 'if'" : NULL;
    case TOK_LBRACE:
        return has(e, "..") ? "a loop runs over a range: 'for i in 0 .. n step s { ... }'" : NULL;
    case TOK_ASSIGN:
    case TOK_OPASSIGN:
        return has(e, "*") ? "an assignment is a statement; '==' compares" : NULL;
    case TOK_LET:
    case TOK_VAR:
        return has(e, "import") ? "at the top level a value is bound by 'const'" : NULL;
    case TOK_PLUS:
        return has(e, "an integer") ? "there is no unary '+'" : NULL;
    default:
        break;
    }
    if (before && before->kind == TOK_GT && has(e, "(") && !has(e, "an integer")) {
        return "between '<' and '>' a comparison stands in parentheses";
    }
    return has(e, "a name") && !has(e, "an integer") && is_keyword(p, t)
               ? "this word is a keyword of the language"
               : NULL;
}

// Where the set that ends at token i begins, as that of '@tune(BM in {64, 128})'; i: it is none.
static uint32_t set_begin(const tk_parser *p, uint32_t i) {
    uint32_t at = i;
    do {
        at--;
    } while (at > 0 && p->tokens.at[at].kind != TOK_LBRACE && p->tokens.at[at].kind != TOK_RBRACE);
    const bool set =
        at > 0 && p->tokens.at[at].kind == TOK_LBRACE && p->tokens.at[at - 1].kind == TOK_IN;
    return set ? at : i;
}

// The bracket that is open at token i within its statement, or NULL.
static const tk_token *open_bracket(const tk_parser *p, uint32_t i, bool paren) {
    uint32_t depth = 0;
    while (i-- > 0) {
        const tk_token *t = &p->tokens.at[i];
        if (t->kind == TOK_RPAREN || t->kind == TOK_RBRACKET) {
            depth++;
        } else if (t->kind == TOK_LPAREN || t->kind == TOK_LBRACKET) {
            if (depth == 0) {
                return (t->kind == TOK_LPAREN) == paren ? t : NULL;
            }
            depth--;
        } else if (i > 0 && t->kind == TOK_RBRACE && set_begin(p, i) < i) {
            i = set_begin(p, i);
        } else if (t->kind == TOK_SEMI || t->kind == TOK_LBRACE || t->kind == TOK_RBRACE) {
            return NULL;
        }
    }
    return NULL;
}

static bool lacks_semicolon(const tk_parser *p, names e, const tk_token *t) {
    if (!has(e, ";") || has(e, "let") || has(e, "import") || p->now == 0) {
        return false;
    }
    const tk_token *before = t - 1;
    if (open_bracket(p, p->now, true) || open_bracket(p, p->now, false)) {
        return false; // that comes first
    }
    bool ends = tk_ends_operand(before->kind) || before->kind == TOK_BREAK ||
                before->kind == TOK_CONTINUE || before->kind == TOK_RETURN ||
                before->kind == TOK_RBRACE;
    return ends && (on_new_line(p, p->now) || t->kind == TOK_RBRACE || starts_statement(t->kind));
}

void tk_syntax_error(tk_parser *p, const char *const *expected, uint32_t n) {
    names e = {expected, n};
    const tk_token *t = &p->tokens.at[p->now];
    const tk_token *before = p->now ? t - 1 : NULL;
    p->resync = true;
    p->missing = lacks_semicolon(p, e, t);
    if (p->fatal || t->bad || (before && before->bad)) {
        return; // reported already
    }
    if (p->diags->errors >= MOST_ERRORS) {
        p->fatal = true;
    }
    if (p->missing) {
        tk_span at = {p->file, before->end, before->end};
        tk_diag *d = tk_error(p->diags, at, "missing-semicolon", "a ';' is missing here");
        tk_help(p->diags, d, (tk_span){0}, "a statement ends in ';'");
        return;
    }
    tk_buf b;
    tk_buf_init(&b, p->arena);
    tk_buf_fmt(&b, "unexpected %s", token_text(p, t));
    add_expected(&b, e);
    tk_span at = tk_token_span(p, t);
    if (t->kind == 0 && before) {
        at = (tk_span){p->file, before->end, before->end};
    }
    tk_diag *d = tk_error(p->diags, at, "syntax", "%s", tk_buf_text(&b));
    bool paren = has(e, ")");
    const tk_token *open = paren || has(e, "]") ? open_bracket(p, p->now, paren) : NULL;
    bool far = open && tk_line_of(p, open->begin) != tk_line_of(p, t->begin);
    bool ends = t->kind == 0 || t->kind == TOK_SEMI || t->kind == TOK_LBRACE ||
                t->kind == TOK_RBRACE || starts_statement(t->kind);
    if (open && (ends || far)) {
        tk_note(p->diags, d, tk_token_span(p, open), "'%c' opened here", paren ? '(' : '[');
        return;
    }
    const char *help = help_for(p, e, t, before);
    if (help) {
        tk_help(p->diags, d, (tk_span){0}, "%s", help);
    }
}
