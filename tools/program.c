// SPDX-License-Identifier: Apache-2.0
// From options to a program and a kernel.
#include "program.h"
#include "cache.h"
#include "io.h"

#include <stdio.h>
#include <string.h>

static void print_line(void *user, const char *line) {
    const tool *t = user;
    fprintf(t->text, "%s\n", line);
}

bool session_open(tool *t, session *s, const kernel_settings *k) {
    memset(s, 0, sizeof *s);
    tkc_config *c = tkc_config_create();
    if (!c) {
        return tool_report(t, TKC_ERROR_MEMORY, NULL);
    }
    if (k) {
        tkc_config_debug(c, k->debug);
        tkc_config_werror(c, k->werror);
        tkc_config_threads(c, (unsigned)k->threads);
    }
    tkc_config_print(c, print_line, t);
    tkc_status status =
        tkc_config_cache(c, k && k->no_cache ? NULL : cache_folder(t), CACHE_MAX_BYTES);
    if (status == TKC_OK) {
        status = tkc_context_create(c, &s->context);
    }
    tkc_config_destroy(c);
    return tool_report(t, status, NULL);
}

bool session_load(tool *t, session *s, const char *path) {
    tkc_report *report = NULL;
    tkc_status status;
    if (strcmp(path, "-") == 0) {
        file_text text;
        if (!file_read(t, path, &text)) {
            return false;
        }
        status = tkc_program_from_string(s->context, text.name, text.at, text.size, &s->program,
                                         &report);
    } else {
        status = tkc_program_from_file(s->context, path, &s->program, &report);
    }
    return tool_report(t, status, report);
}

bool session_kernel(tool *t, session *s, const kernel_settings *k) {
    tkc_define *define = TOOL_NEW(t, tkc_define, k->define.n + 1);
    for (size_t i = 0; i < k->define.n; i++) {
        define[i] = (tkc_define){k->define.at[i].name, k->define.at[i].value};
    }
    tkc_report *report = NULL;
    tkc_status status =
        tkc_kernel_create(s->program, k->kernel, define, k->define.n, &s->kernel, &report);
    return tool_report(t, status, report);
}

bool target_known(tool *t, const char *arch) {
    const char *names[64];
    const char *list = "";
    size_t n = 0;
    tkc_target target;
    for (; n < 64 && tkc_target_info(n, &target); n++) {
        names[n] = target.name;
        list = tool_format(t, "%s%s%s", list, n ? ", " : "there are: ", target.name);
    }
    for (size_t i = 0; i < n; i++) {
        if (!arch || strcmp(names[i], arch) == 0) {
            return true;
        }
    }
    if (strchr(arch, ',')) {
        tool_error(t, CODE_USAGE, NULL,
                   "option --arch: several targets are for -o FILE.o and -o FILE.c alone");
        return false;
    }
    tool_error(t, CODE_USAGE, list, "option --arch: there is no target '%s'%s", arch,
               tool_nearest(t, arch, names, n));
    return false;
}

void session_close(session *s) {
    tkc_kernel_destroy(s->kernel);
    tkc_program_destroy(s->program);
    tkc_context_destroy(s->context);
    memset(s, 0, sizeof *s);
}
