// SPDX-License-Identifier: Apache-2.0
// tkc completion bash|zsh: scripts that complete command lines, made from the tables of options.
#include "commands.h"

#include <stdio.h>
#include <string.h>

typedef struct completion_settings {
    common_settings common;
} completion_settings;

// ---- What a value can be

typedef enum value_kind {
    VALUE_NONE,
    VALUE_CHOICE,
    VALUE_TARGET,
    VALUE_FILE,
    VALUE_ANY
} value_kind;

static value_kind value_kind_of(const option *o) {
    if (!o->value) {
        return VALUE_NONE;
    }
    if (strcmp(o->name, "--arch") == 0) {
        return VALUE_TARGET;
    }
    if (strchr(o->value, '|')) {
        return VALUE_CHOICE;
    }
    return strstr(o->value, "FILE") || strstr(o->value, "ARRAY") || strstr(o->value, "DIR")
               ? VALUE_FILE
               : VALUE_ANY;
}

static void put_values(const option *o) {
    tkc_target target;
    if (value_kind_of(o) == VALUE_TARGET) {
        for (size_t i = 0; tkc_target_info(i, &target); i++) {
            printf("%s%s", i ? " " : "", target.name);
        }
        return;
    }
    for (const char *s = o->value; *s; s++) {
        putchar(*s == '|' ? ' ' : *s);
    }
}

// Its value is only taken behind a '='.
static bool value_is_joined(const option *o) { return o->kind == OPTION_MAYBE; }

// ---- bash

static void put_bash_options(const command *c) {
    printf("        %s) options='", c->name);
    for (size_t i = 0; i < c->noption; i++) {
        printf("%s%s", i ? " " : "", c->option[i].name);
        if (c->option[i].alias) {
            printf(" %s", c->option[i].alias);
        }
    }
    puts("' ;;");
}

static void put_bash_value(const command *c, const option *o) {
    value_kind kind = value_kind_of(o);
    if (kind == VALUE_NONE) {
        return;
    }
    printf("        %s:%s", c->name, o->name);
    if (o->alias) {
        printf("|%s:%s", c->name, o->alias);
    }
    printf(") ");
    if (value_is_joined(o)) {
        printf("[[ $joined ]] && ");
    }
    if (kind == VALUE_FILE || kind == VALUE_ANY) {
        printf("kind=%s ;;\n", kind == VALUE_FILE ? "file" : "any");
        return;
    }
    printf("kind=word words='");
    put_values(o);
    puts("' ;;");
}

static const char bash_head[] =
    "# bash completion for tkc, made by 'tkc completion bash'\n"
    "_tkc() {\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} joined=\n"
    "    local command=emit kind=none words= options=\n"
    "    COMPREPLY=()\n"
    "    # bash takes --option=value apart\n"
    "    if [[ $current == = ]]; then\n"
    "        current= joined=1\n"
    "    elif [[ $before == = ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD-2]} joined=1\n"
    "    fi\n";

static const char bash_tail[] =
    "    if [[ $kind == word ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
    "    elif [[ $kind == file ]]; then\n"
    "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
    "    elif [[ $kind == none && $current == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
    "    elif [[ $kind == none ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
    "    fi\n"
    "}\n"
    "complete -o filenames -F _tkc tkc\n";

static void put_command_names(void) {
    for (size_t i = 0; all_commands[i]; i++) {
        if (all_commands[i] != &command_emit) {
            printf("%s ", all_commands[i]->name);
        }
    }
    printf("help");
}

static void put_bash(void) {
    fputs(bash_head, stdout);
    printf("    case ${COMP_WORDS[1]} in\n        ");
    for (size_t i = 0; all_commands[i]; i++) {
        printf("%s%s", i ? "|" : "", all_commands[i]->name);
    }
    puts("|help) (( COMP_CWORD > 1 )) && command=${COMP_WORDS[1]} ;;\n    esac");
    printf("    if (( COMP_CWORD == 1 )); then\n        words='");
    put_command_names();
    printf("'\n    elif [[ $command == help ]]; then\n        kind=word words='");
    put_command_names();
    puts(" emit'\n    fi\n    case $command in");
    for (size_t i = 0; all_commands[i]; i++) {
        put_bash_options(all_commands[i]);
    }
    puts("    esac\n    case $command:$before in");
    for (size_t i = 0; all_commands[i]; i++) {
        for (size_t k = 0; k < all_commands[i]->noption; k++) {
            put_bash_value(all_commands[i], &all_commands[i]->option[k]);
        }
    }
    puts("    esac");
    fputs(bash_tail, stdout);
}

// ---- zsh

// Inside '...' and [...] of _arguments.
static void put_zsh_text(const char *s) {
    for (; *s; s++) {
        if (*s == '\'') {
            printf("'\\''");
        } else if (strchr("[]:\\", *s)) {
            printf("\\%c", *s);
        } else {
            putchar(*s);
        }
    }
}

static void put_zsh_option(const option *o, const char *name) {
    value_kind kind = value_kind_of(o);
    bool often = o->kind == OPTION_NAMES || o->kind == OPTION_PAIRS || o->kind == OPTION_CALL;
    bool is_long = name[1] == '-';
    printf("            '%s%s%s[", often ? "*" : "", name,
           kind == VALUE_NONE   ? ""
           : value_is_joined(o) ? "=-"
           : is_long            ? "="
                                : "+");
    put_zsh_text(o->help);
    putchar(']');
    if (kind != VALUE_NONE) {
        putchar(value_is_joined(o) ? ':' : ':');
        if (value_is_joined(o)) {
            putchar(':');
        }
        put_zsh_text(kind == VALUE_CHOICE ? "value" : o->value);
        putchar(':');
        if (kind == VALUE_CHOICE || kind == VALUE_TARGET) {
            putchar('(');
            put_values(o);
            putchar(')');
        } else if (kind == VALUE_FILE) {
            printf("_files");
        }
    }
    puts("' \\");
}

static void put_zsh(void) {
    fputs("#compdef tkc\n# zsh completion for tkc, made by 'tkc completion zsh'\n"
          "_tkc() {\n    local command=emit\n    if (( CURRENT == 2 )); then\n"
          "        compadd -- ",
          stdout);
    put_command_names();
    printf("\n    fi\n    case $words[2] in\n        ");
    for (size_t i = 0; all_commands[i]; i++) {
        printf("%s%s", i ? "|" : "", all_commands[i]->name);
    }
    puts("|help)\n            if (( CURRENT > 2 )); then\n                command=$words[2]\n"
         "                shift words\n                (( CURRENT-- ))\n            fi ;;\n    "
         "esac\n"
         "    case $command in");
    for (size_t i = 0; all_commands[i]; i++) {
        const command *c = all_commands[i];
        printf("        %s) _arguments \\\n", c->name);
        for (size_t k = 0; k < c->noption; k++) {
            put_zsh_option(&c->option[k], c->option[k].name);
            if (c->option[k].alias) {
                put_zsh_option(&c->option[k], c->option[k].alias);
            }
        }
        puts("            '*:file:_files' ;;");
    }
    printf("        help) compadd -- ");
    put_command_names();
    puts(" emit ;;\n    esac\n}\n_tkc \"$@\"");
}

static void run(tool *t, void *settings) {
    const completion_settings *s = settings;
    const char *shell = s->common.files.n == 1 ? s->common.files.at[0] : "";
    if (strcmp(shell, "bash") == 0) {
        put_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        put_zsh();
    } else {
        tool_usage(t, "which shell? Write 'tkc completion bash' or 'tkc completion zsh'");
    }
}

static const option options[] = {COMMON_OPTIONS(completion_settings)};

const command command_completion = {
    .name = "completion",
    .usage = "completion bash|zsh",
    .what = "Prints a script that completes the command lines of tkc in this shell.",
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(completion_settings),
    .run = run,
};
