// SPDX-License-Identifier: Apache-2.0
// Files: read whole, written whole or not at all.
#ifndef TKC_TOOLS_IO_H
#define TKC_TOOLS_IO_H

#include "tool.h"

#include <stdio.h>

typedef struct file_text {
    const char *name; // the path, "<stdin>" for "-"
    char *at;
    size_t size;
} file_text;

// "-" is standard input. False after a message.
bool file_read(tool *t, const char *path, file_text *out);

// A file that appears under its name only when it is complete: written beside it, then renamed.
// What is no regular file (a pipe, a device) is written to directly; "-" is standard output.
typedef struct file_output {
    const char *path; // as given
    const char *real; // where symbolic links lead
    char *temporary;  // NULL: written directly
    FILE *stream;
} file_output;
bool file_create(tool *t, const char *path, file_output *out); // false after a message
bool file_finish(tool *t, file_output *out); // closes in any case; false after a message

void file_discard(file_output *out); // instead of file_finish: leaves what was there

// All of it at once. path NULL or "-": standard output.
bool file_write(tool *t, const char *path, const char *text, size_t size);

#endif
