// SPDX-License-Identifier: Apache-2.0
// Options from tables: parsing, and the help made of the same table.
#include "options.h"
#include "number.h"

#include <stdio.h>
#include <string.h>

enum { MAX_OPTIONS = 64 };

typedef struct parse {
    tool *t;
    const command *c;
    char *settings;
    bool seen[MAX_OPTIONS];
} parse;

static void list_add(tool *t, text_list *list, const char *s) {
    // Grown by doubling; the old array stays until the end.
    if ((list->n & (list->n + 1)) == 0) {
        const char **grown = TOOL_NEW(t, const char *, 2 * list->n + 2);
        if (list->n) {
            memcpy(grown, list->at, list->n * sizeof *grown);
        }
        list->at = grown;
    }
    list->at[list->n++] = s;
}

static bool is_long(const char *name) { return name[0] == '-' && name[1] == '-'; }

// One letter: its value may follow at once.
static bool is_letter(const char *name) {
    return name && name[0] == '-' && name[1] != '-' && name[2] == 0;
}

static bool spelt(const char *name, const char *word, size_t n) {
    return name && strlen(name) == n && memcmp(name, word, n) == 0;
}

static const option *find(const command *c, const char *word, size_t n) {
    for (size_t i = 0; i < c->noption; i++) {
        if (spelt(c->option[i].name, word, n) || spelt(c->option[i].alias, word, n)) {
            return &c->option[i];
        }
    }
    return NULL;
}

static bool unknown(parse *p, const char *word, size_t n) {
    const char *name[2 * MAX_OPTIONS];
    size_t count = 0;
    for (size_t i = 0; i < p->c->noption; i++) {
        name[count++] = p->c->option[i].name;
        if (p->c->option[i].alias) {
            name[count++] = p->c->option[i].alias;
        }
    }
    const char *given = tool_strndup(p->t, word, n);
    tool_usage(p->t, "unknown option '%s'%s", given, tool_nearest(p->t, given, name, count));
    return false;
}

static bool take_choice(parse *p, const option *o, const char *value) {
    int index = 0;
    for (const char *s = o->value; s; s = strchr(s, '|')) {
        s += *s == '|';
        size_t n = strcspn(s, "|");
        if (spelt(value, s, n)) {
            *(int *)(void *)(p->settings + o->at) = index;
            return true;
        }
        index++;
    }
    tool_usage(p->t, "option %s takes %s, not '%s'", o->name, o->value, value);
    return false;
}

static bool take_count(parse *p, const option *o, const char *value) {
    integer v;
    if (!integer_parse(value, strlen(value), &v) || v.negative) {
        tool_usage(p->t, "option %s takes a whole number from 0, not '%s'", o->name, value);
        return false;
    }
    *(uint64_t *)(void *)(p->settings + o->at) = v.magnitude;
    return true;
}

static bool take_name(parse *p, const option *o, const char *value) {
    text_list *list = (text_list *)(void *)(p->settings + o->at);
    if (!*value) {
        tool_usage(p->t, "option %s takes a name, which is empty", o->name);
        return false;
    }
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i], value) == 0) {
            tool_usage(p->t, "%s %s is given twice", o->name, value);
            return false;
        }
    }
    list_add(p->t, list, value);
    return true;
}

static bool take_pair(parse *p, const option *o, const char *value) {
    pair_list *list = (pair_list *)(void *)(p->settings + o->at);
    const char *equals = strchr(value, '=');
    if (!equals || equals == value) {
        tool_usage(p->t, "option %s takes %s, not '%s'", o->name, o->value, value);
        return false;
    }
    pair added = {tool_strndup(p->t, value, (size_t)(equals - value)), equals + 1};
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->at[i].name, added.name) == 0) {
            tool_usage(p->t, "%s %s is given twice", o->name, added.name);
            return false;
        }
    }
    if ((list->n & (list->n + 1)) == 0) {
        pair *grown = TOOL_NEW(p->t, pair, 2 * list->n + 2);
        if (list->n) {
            memcpy(grown, list->at, list->n * sizeof *grown);
        }
        list->at = grown;
    }
    list->at[list->n++] = added;
    return true;
}

static bool take(parse *p, const option *o, const char *value) {
    size_t index = (size_t)(o - p->c->option);
    bool once = o->kind == OPTION_TEXT || o->kind == OPTION_COUNT || o->kind == OPTION_CHOICE ||
                o->kind == OPTION_MAYBE;
    if (once && p->seen[index]) {
        tool_usage(p->t, "option %s is given twice", o->name);
        return false;
    }
    p->seen[index] = true;
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)(p->settings + o->at) = true;
        return true;
    case OPTION_TEXT:
        *(const char **)(void *)(p->settings + o->at) = value;
        if (!*value) {
            tool_usage(p->t, "option %s takes %s, which is empty", o->name, o->value);
        }
        return *value != 0;
    case OPTION_COUNT:
        return take_count(p, o, value);
    case OPTION_CHOICE:
        return take_choice(p, o, value);
    case OPTION_MAYBE: {
        int *out = (int *)(void *)(p->settings + o->at);
        bool ok = !value || take_choice(p, o, value);
        *out = value ? *out + 1 : 1;
        return ok;
    }
    case OPTION_NAMES:
        return take_name(p, o, value);
    case OPTION_PAIRS:
        return take_pair(p, o, value);
    case OPTION_CALL:
        return o->take(p->t, p->settings, value);
    }
    return false;
}

// argv[*i] starts with '-' and is more than that.
static bool parse_option(parse *p, int argc, char **argv, int *i) {
    const char *word = argv[*i];
    size_t n = is_long(word) ? strcspn(word, "=") : strlen(word);
    const char *value = word[n] == '=' ? word + n + 1 : NULL;
    const option *o = find(p->c, word, n);
    if (!o && !is_long(word) && n > 2) { // -Dname=value, -ofile
        o = find(p->c, word, 2);
        value = word + 2;
        if (o && (o->kind == OPTION_FLAG || !(is_letter(o->name) || is_letter(o->alias)))) {
            o = NULL;
        }
    }
    if (!o) {
        return unknown(p, word, n);
    }
    if (o->kind == OPTION_FLAG && value) {
        tool_usage(p->t, "option %s takes no value", o->name);
        return false;
    }
    if (o->kind != OPTION_FLAG && o->kind != OPTION_MAYBE && !value) {
        if (*i + 1 >= argc) {
            tool_usage(p->t, "option %s needs a value, %s", o->name, o->value);
            return false;
        }
        value = argv[++*i];
    }
    return take(p, o, value);
}

bool options_parse(tool *t, const command *c, int argc, char **argv, void *settings) {
    parse p = {.t = t, .c = c, .settings = settings};
    common_settings *common = settings;
    bool only_files = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!only_files && strcmp(word, "--") == 0) {
            only_files = true;
        } else if (!only_files && word[0] == '-' && word[1]) {
            if (!parse_option(&p, argc, argv, &i)) {
                return false;
            }
        } else if (!word[0]) {
            tool_usage(t, "the name of a file is empty");
            return false;
        } else {
            list_add(t, &common->files, word);
        }
    }
    tool_set_output(t, common->diagnostics == 1, common->colour);
    return true;
}

// Wraps at 80 columns, lines after the first starting at `indent`.
static void put_wrapped(const char *s, int column, int indent) {
    for (bool space = false; *s; space = true) {
        int n = (int)strcspn(s, " ");
        if (space && column + 1 + n > 79) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (space) {
            putchar(' ');
            column++;
        }
        printf("%.*s", n, s);
        column += n;
        s += n;
        s += *s == ' ';
    }
    putchar('\n');
}

static void put_option(const option *o) {
    enum { COLUMN = 26 };
    char head[128];
    snprintf(head, sizeof head, "  %s%s%s%s%s%s", o->alias && is_letter(o->alias) ? o->alias : "",
             o->alias && is_letter(o->alias) ? ", " : "", o->name,
             o->kind == OPTION_MAYBE                        ? "[="
             : is_long(o->name) && o->kind == OPTION_CHOICE ? "="
             : o->value                                     ? " "
                                                            : "",
             o->value ? o->value : "", o->kind == OPTION_MAYBE ? "]" : "");
    int n = printf("%s", head);
    if (n >= COLUMN - 1) {
        putchar('\n');
        n = 0;
    }
    printf("%*s", COLUMN - n, "");
    put_wrapped(o->help, COLUMN, COLUMN);
}

void options_help(const command *c) {
    const char *line = c->usage;
    for (const char *lead = "usage: "; *line; lead = "       ") {
        int n = (int)strcspn(line, "\n");
        printf("%stkc %.*s\n", lead, n, line);
        line += n + (line[n] == '\n');
    }
    putchar('\n');
    put_wrapped(c->what, 0, 0);
    printf("\nOptions:\n");
    for (size_t i = 0; i < c->noption; i++) {
        put_option(&c->option[i]);
    }
    if (c->more) {
        printf("\n%s", c->more);
    }
    printf("\nExit codes: 0 fine; 1 errors in the program, a refused launch, a failed check or\n"
           "expectation; 2 a wrong command line; 3 input, output or environment. Of several\n"
           "the greatest.\n");
}
