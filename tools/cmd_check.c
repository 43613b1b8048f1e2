// SPDX-License-Identifier: Apache-2.0
// tkc check FILE...: all diagnostics of each file.
#include "commands.h"

typedef struct check_settings {
    common_settings common;
    kernel_settings k;
} check_settings;

static void run(tool *t, void *settings) {
    check_settings *s = settings;
    if (s->common.files.n == 0) {
        tool_usage(t, "no FILE is given");
        return;
    }
    session lib;
    if (session_open(t, &lib, &s->k)) {
        for (size_t i = 0; i < s->common.files.n; i++) {
            session_load(t, &lib, s->common.files.at[i]);
            tkc_program_destroy(lib.program);
            lib.program = NULL;
        }
    }
    session_close(&lib);
}

static const option options[] = {
    {"-Werror", NULL, OPTION_FLAG, NULL, offsetof(check_settings, k.werror), "warnings are errors",
     NULL},
    COMMON_OPTIONS(check_settings),
};

const command command_check = {
    .name = "check",
    .usage = "check FILE... [OPTION]...",
    .what = "Parses and checks each FILE (\"-\" is standard input, \"std/NAME.tk\" the library's "
            "own) and "
            "reports all errors and warnings. Silent where there are none.",
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(check_settings),
    .run = run,
};
