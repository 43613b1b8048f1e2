// SPDX-License-Identifier: Apache-2.0
// tkc: finds the command and runs it.
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const command *const all_commands[] = {
    &command_check, &command_run,  &command_explain,    &command_bench, &command_fmt,
    &command_cache, &command_info, &command_completion, &command_emit,  NULL,
};

static const command *find_command(const char *name) {
    for (size_t i = 0; all_commands[i]; i++) {
        if (strcmp(all_commands[i]->name, name) == 0) {
            return all_commands[i];
        }
    }
    return NULL;
}

static void main_help(void) {
    puts("tkc: compiler and run time for tile kernels\n\n"
         "usage: tkc check FILE...                  report errors and warnings\n"
         "       tkc run FILE [OPTION]...           run a kernel on arrays\n"
         "       tkc explain FILE [OPTION]...       what the compiler made of a kernel, by line\n"
         "       tkc bench FILE [OPTION]...         how fast a kernel is on a GPU\n"
         "       tkc fmt FILE... [OPTION]...        print or rewrite in the canonical layout\n"
         "       tkc cache [show|clear]             what is kept of compiled GPU kernels\n"
         "       tkc info                           what this build and this machine have\n"
         "       tkc FILE --arch TARGET -o k.ptx    compile a kernel for a GPU (or -o k.cubin)\n"
         "       tkc FILE --arch A -o k.o --header k.h   functions for a C program\n"
         "       tkc FILE --emit=ast|ir|notes|...   show what the compiler makes of a file\n"
         "       tkc --from=ir FILE [--run=PASS]    read IR, run a pass, print it\n"
         "       tkc --passes                       list the passes\n"
         "       tkc completion bash|zsh            completes command lines in this shell\n"
         "       tkc help COMMAND                   the options of a command, or of 'emit'\n"
         "       tkc --version\n\n"
         "Exit codes: 0 fine; 1 errors in the program, a refused launch, a failed check or\n"
         "expectation; 2 a wrong command line; 3 input, output or environment. Of several\n"
         "the greatest. A file named like a command is written ./check.");
}

static void help_on(tool *t, const char *name) {
    const command *c = find_command(name);
    if (c) {
        options_help(c);
        return;
    }
    const char *names[16];
    size_t n = 0;
    for (; all_commands[n]; n++) {
        names[n] = all_commands[n]->name;
    }
    tool_usage(t, "there is no command '%s'%s", name, tool_nearest(t, name, names, n));
}

static void run_command(tool *t, const command *c, int argc, char **argv) {
    t->command = c->name;
    void *settings = tool_alloc(t, 1, c->settings);
    if (!options_parse(t, c, argc, argv, settings)) {
        return;
    }
    if (((common_settings *)settings)->help) {
        options_help(c);
        return;
    }
    c->run(t, settings);
}

// A word that names no file may be a misspelt command.
static bool misspelt(tool *t, const char *word) {
    static const char *const names[] = {"check", "run",  "explain", "bench",     "fmt",
                                        "cache", "info", "help",    "completion"};
    if (word[0] == '-' || strpbrk(word, "./") || access(word, F_OK) == 0) {
        return false;
    }
    tool_usage(t, "'%s' is no command, nor is there such a file%s", word,
               tool_nearest(t, word, names, sizeof names / sizeof *names));
    return true;
}

static void dispatch(tool *t, int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    if (argc < 2) {
        tool_usage(t, "nothing to do");
    } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
               (strcmp(word, "help") == 0 && argc == 2)) {
        main_help();
    } else if (strcmp(word, "--version") == 0) {
        printf("tkc %s\n", tkc_version());
    } else if (strcmp(word, "help") == 0) {
        help_on(t, argv[2]);
    } else if (strcmp(word, "emit") != 0 && find_command(word)) {
        run_command(t, find_command(word), argc - 2, argv + 2);
    } else if (!misspelt(t, word)) {
        run_command(t, &command_emit, argc - 1, argv + 1);
    }
}

// A file that is opened must not become standard output because that was closed. Writing to these
// fails.
static void occupy_standard_streams(void) {
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) {
            return;
        }
    }
}

int main(int argc, char **argv) {
    static tool the_tool; // static: its memory is reachable also where exit ends the process
    occupy_standard_streams();
    the_tool.text = stdout;
    tool_set_output(&the_tool, false, 0);
    dispatch(&the_tool, argc, argv);
    return tool_end(&the_tool);
}
