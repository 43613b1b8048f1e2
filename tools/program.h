// SPDX-License-Identifier: Apache-2.0
// From options to a program, a kernel and its arguments; what `run` and `--emit` share.
#ifndef TKC_TOOLS_PROGRAM_H
#define TKC_TOOLS_PROGRAM_H

#include "array.h"
#include "options.h"

// What says which kernel, and with what. Part of the settings of a command.
typedef struct kernel_settings {
    const char *kernel;
    pair_list define, in, scalar, dim;
    text_list given;  // optional parameters that are there, whatever they are
    text_list wanted; // parameters that are outputs of the command line (--out, --expect)
    bool debug, werror;
    bool no_cache; // compiled GPU kernels are neither read from the disk nor kept
    uint64_t threads;
    uint64_t seed;
} kernel_settings;

// Everything that is open. Closed by session_close, also after a failure.
typedef struct session {
    tkc_context *context;
    tkc_program *program;
    tkc_kernel *kernel;
} session;

// Arguments of a kernel, by parameter.
typedef struct arguments {
    size_t n;
    const tkc_param_info **param;
    array *array; // of those that --in gives: name set
    tkc_arg *arg; // what is known; TKC_ARG_UNKNOWN for the rest
    tkc_size *size;
    size_t nsize;
} arguments;

bool session_open(tool *t, session *s, const kernel_settings *k);
bool session_load(tool *t, session *s, const char *path); // "-": standard input
bool session_kernel(tool *t, session *s, const kernel_settings *k);
void session_close(session *s);

// Whether --arch may name this target (NULL: none is named); false after an error of usage.
bool target_known(tool *t, const char *arch);

// `whole`: for a launch, so that what the command line must give is there, and arrays have their
// elements.
bool arguments_make(tool *t, const session *s, const kernel_settings *k, bool whole, arguments *a);
// With parameters alone.
void arguments_open(tool *t, const session *s, arguments *a);
// The names of --given are parameters.
bool arguments_are_given(tool *t, const kernel_settings *k, const arguments *a);
// Memory for the outputs, whose types and sizes follow from the rest; before a launch their
// elements are NaN, true, or the greatest integer. False after a message.
bool arguments_outputs(tool *t, const session *s, arguments *a);
// Whether a parameter is a tensor that the kernel writes; else an error of usage.
bool arguments_is_output(tool *t, const arguments *a, const char *flag, const char *name);
// The index of a parameter by name; after an error of usage: n.
size_t arguments_find(tool *t, const arguments *a, const char *flag, const char *name);

#endif
