// SPDX-License-Identifier: Apache-2.0
// What every part of the command shares: its state, messages, exit codes, memory.
//
// One `tool` lives for the whole run of the process. Memory taken from it is released at its end,
// so nothing is freed in between; running out of memory ends the process with a message. Messages
// go to stderr as they come, or, with
// --diagnostics=json, as one JSON array at the end. The exit code is the greatest that anything
// asked for.
#ifndef TKC_TOOLS_TOOL_H
#define TKC_TOOLS_TOOL_H

#include "tkc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum tool_code {
    CODE_FINE = 0,
    CODE_REFUSED = 1,     // diagnostics, a refused launch, a failed check or expectation
    CODE_USAGE = 2,       // the command line
    CODE_ENVIRONMENT = 3, // input, output, memory, devices, faults of tkc
};

typedef struct tool {
    const char *command; // "run"; NULL before it is known
    bool json;           // diagnostics as JSON
    bool colour;
    FILE *text; // results for a person: stdout, or stderr where that is to be one document
    int code;
    const char *said[16]; // reports of warnings alone
    size_t nsaid;
    void *messages;     // json_t array
    void *blocks;       // all memory taken
    size_t array_bytes; // of that, for tensors
} tool;

#if defined(__GNUC__)
#define TOOL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TOOL_PRINTF(f, a)
#endif

// ---- Memory
void *tool_alloc(tool *t, size_t count, size_t size); // zeroed
char *tool_strndup(tool *t, const char *s, size_t n);
char *tool_format(tool *t, const char *fmt, ...) TOOL_PRINTF(2, 3);
// Uninitialised memory for tensor elements, aligned to 64 bytes; NULL after a message, also where
// the machine has less.
void *tool_array(tool *t, size_t bytes, const char *what);
void tool_array_free(tool *t, void *p, size_t bytes); // one of these, before the end; NULL is fine
void tool_release(tool *t);                           // all of it
#define TOOL_NEW(t, type, count) ((type *)tool_alloc((t), (count), sizeof(type)))

// ---- Messages
void tool_raise(tool *t, int code);
// "tkc: error: ..." and, unless NULL, "help: ...".
void tool_error(tool *t, int code, const char *help, const char *fmt, ...) TOOL_PRINTF(4, 5);
// An error of the command line: tells how to get help.
void tool_usage(tool *t, const char *fmt, ...) TOOL_PRINTF(2, 3);
// Shows and destroys a report (may be NULL) and raises the code of `s`. True if s is TKC_OK.
bool tool_report(tool *t, tkc_status s, tkc_report *report);
// "; did you mean 'x'?" for the name nearest to `name`, or "".
const char *tool_nearest(tool *t, const char *name, const char *const *names, size_t n);
// Sets the language of messages: `colour` is 0 auto, 1 always, 2 never.
void tool_set_output(tool *t, bool json, int colour);
// Prints what is collected, closes stdout, releases all memory. The exit code.
int tool_end(tool *t);

#endif
