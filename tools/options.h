// SPDX-License-Identifier: Apache-2.0
// Options from tables.
//
// A command is a row with a table of options; each option says where in the command's settings its
// value goes. Every settings struct starts with `common_settings`. Long options take their value
// after `=` or as the next word, one-letter ones as the next word or at once; `--` ends the
// options. An option that is not a list may be given once.
#ifndef TKC_TOOLS_OPTIONS_H
#define TKC_TOOLS_OPTIONS_H

#include "tool.h"

typedef struct text_list {
    const char **at;
    size_t n;
} text_list;

typedef struct pair { // NAME=VALUE
    const char *name, *value;
} pair;

typedef struct pair_list {
    pair *at;
    size_t n;
} pair_list;

typedef enum option_kind {
    OPTION_FLAG,   // bool
    OPTION_TEXT,   // const char *
    OPTION_COUNT,  // uint64_t
    OPTION_CHOICE, // int: the index in `value`, which is "a|b|c"
    OPTION_MAYBE,  // int: 1 + the index in `value`, of which the first may be left out with its =
    OPTION_NAMES,  // text_list, each name once
    OPTION_PAIRS,  // pair_list, each name once
    OPTION_CALL,   // take(), any number of times
} option_kind;

typedef struct option {
    const char *name;  // as typed: "--in", "-D", "-Werror"
    const char *alias; // another spelling, or NULL
    option_kind kind;
    const char *value; // what the help calls the value; NULL for flags
    size_t at;         // offset in the settings
    const char *help;
    bool (*take)(tool *t, void *settings, const char *value); // false after a message
} option;

typedef struct common_settings {
    text_list files; // words that are no options
    bool help;
    int diagnostics; // 0 text, 1 json
    int colour;      // 0 auto, 1 always, 2 never
} common_settings;

#define COMMON_OPTIONS(S)                                                                          \
    {"--diagnostics",                                                                              \
     NULL,                                                                                         \
     OPTION_CHOICE,                                                                                \
     "text|json",                                                                                  \
     offsetof(S, common.diagnostics),                                                              \
     "how errors and warnings are written to standard error",                                      \
     NULL},                                                                                        \
        {"--color",                                                                                \
         "--colour",                                                                               \
         OPTION_CHOICE,                                                                            \
         "auto|always|never",                                                                      \
         offsetof(S, common.colour),                                                               \
         "colours in errors; auto: on a terminal, unless NO_COLOR is set",                         \
         NULL},                                                                                    \
    {                                                                                              \
        "--help", "-h", OPTION_FLAG, NULL, offsetof(S, common.help), "show this text", NULL        \
    }

typedef struct command {
    const char *name;  // "run"; NULL for `tkc FILE --emit=...`
    const char *usage; // "run FILE [OPTION]..."; may have several lines
    const char *what;  // one sentence
    const char *more;  // paragraphs after the options; or NULL
    const option *option;
    size_t noption;
    size_t settings; // size of the struct
    void (*run)(tool *t, void *settings);
} command;

// Fills `settings` (zeroed). False after messages.
bool options_parse(tool *t, const command *c, int argc, char **argv, void *settings);
void options_help(const command *c);

#endif
