// SPDX-License-Identifier: Apache-2.0
// The commands: one file each.
#ifndef TKC_TOOLS_COMMANDS_H
#define TKC_TOOLS_COMMANDS_H

#include "options.h"
#include "program.h"

extern const command command_bench;
extern const command command_cache;
extern const command command_check;
extern const command command_completion;
extern const command command_emit; // tkc FILE --emit=..., --from=ir, --passes
extern const command command_explain;
extern const command command_fmt;
extern const command command_info;
extern const command command_run;
extern const command *const all_commands[]; // ends in NULL

// The options that name a kernel and its arguments. S has `common` and a kernel_settings `k`.
#define KERNEL_OPTIONS(S)                                                                          \
    {"--kernel",                                                                                   \
     NULL,                                                                                         \
     OPTION_TEXT,                                                                                  \
     "NAME",                                                                                       \
     offsetof(S, k.kernel),                                                                        \
     "the kernel; needed where the file has several",                                              \
     NULL},                                                                                        \
        {"-D",                                                                                     \
         NULL,                                                                                     \
         OPTION_PAIRS,                                                                             \
         "NAME=VALUE",                                                                             \
         offsetof(S, k.define),                                                                    \
         "set a compile-time parameter: -D BM=64, -D T=f16, -D mask=causal",                       \
         NULL},                                                                                    \
        {"--in",                                                                                   \
         NULL,                                                                                     \
         OPTION_PAIRS,                                                                             \
         "NAME=ARRAY",                                                                             \
         offsetof(S, k.in),                                                                        \
         "an input, or the first value of an inout tensor",                                        \
         NULL},                                                                                    \
        {"--scalar",           NULL, OPTION_PAIRS, "NAME=VALUE", offsetof(S, k.scalar),            \
         "a scalar parameter", NULL},                                                              \
    {                                                                                              \
        "--dim", NULL, OPTION_PAIRS, "NAME=N", offsetof(S, k.dim),                                 \
            "the size of a dimension that no input has", NULL                                      \
    }

#define ARRAY_HELP                                                                                 \
    "ARRAY is FILE.npy, or randn(SIZE,...), rand(SIZE,...), randint(LOW,HIGH,SIZE,...)\n"          \
    "(LOW <= x < HIGH), zeros(SIZE,...), ones(SIZE,...), full(VALUE,SIZE,...) or\n"                \
    "iota(SIZE,...) (0, 1, 2, ...), each with an element type behind it or not:\n"                 \
    "randn(64,32):bf16. Without one it is the parameter's type, else f32, for randint\n"           \
    "and iota i32. A type behind FILE.npy converts it, or says which f8 it holds.\n"

#endif
