// SPDX-License-Identifier: Apache-2.0
// tkc fmt FILE...: the canonical layout.
#include "commands.h"
#include "io.h"

#include <stdio.h>
#include <string.h>

typedef struct fmt_settings {
    common_settings common;
    bool check, in_place;
} fmt_settings;

static void format_file(tool *t, const fmt_settings *s, tkc_context *context, const char *path) {
    file_text text;
    if (!file_read(t, path, &text)) {
        return;
    }
    tkc_text out = {NULL, 0};
    tkc_report *report = NULL;
    tkc_status status = tkc_format(context, text.name, text.at, text.size, &out, &report);
    if (!tool_report(t, status, report)) {
        return;
    }
    bool same = out.size == text.size && memcmp(out.at, text.at, out.size) == 0;
    if (s->check) {
        if (!same) {
            puts(text.name);
            tool_raise(t, CODE_REFUSED);
        }
    } else if (!s->in_place) {
        file_write(t, NULL, out.at, out.size);
    } else if (!same) {
        file_write(t, path, out.at, out.size);
    }
    tkc_text_free(&out);
}

static void run(tool *t, void *settings) {
    fmt_settings *s = settings;
    const text_list *files = &s->common.files;
    if (files->n == 0) {
        tool_usage(t, "no FILE is given (\"-\" is standard input)");
        return;
    }
    if (s->check && s->in_place) {
        tool_usage(t, "--check and -i exclude each other");
        return;
    }
    for (size_t i = 0; i < files->n && s->in_place; i++) {
        if (strcmp(files->at[i], "-") == 0) {
            tool_usage(t, "-i takes files, not standard input");
            return;
        }
    }
    session lib;
    if (session_open(t, &lib, NULL)) {
        for (size_t i = 0; i < files->n; i++) {
            format_file(t, s, lib.context, files->at[i]);
        }
    }
    session_close(&lib);
}

static const option options[] = {
    {"--check", NULL, OPTION_FLAG, NULL, offsetof(fmt_settings, check),
     "write nothing; list the files whose layout is another, and exit with 1 if there are any",
     NULL},
    {"--in-place", "-i", OPTION_FLAG, NULL, offsetof(fmt_settings, in_place),
     "rewrite the files whose layout is another", NULL},
    COMMON_OPTIONS(fmt_settings),
};

const command command_fmt = {
    .name = "fmt",
    .usage = "fmt FILE... [OPTION]...",
    .what = "Prints each FILE (\"-\" is standard input) in the canonical layout; comments stay. A "
            "file that does not "
            "parse is reported and left alone.",
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(fmt_settings),
    .run = run,
};
