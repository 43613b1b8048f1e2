// SPDX-License-Identifier: Apache-2.0
// tkc FILE --emit=..., tkc FILE --arch A -o k.ptx, tkc --from=ir FILE, tkc --passes: looking inside
// the compiler, and code for GPUs; what goes into C programs is ahead.c's.
#include "ahead.h"
#include "commands.h"
#include "io.h"

#include <stdio.h>
#include <string.h>

enum {
    EMIT_NOTHING,
    EMIT_AST,
    EMIT_IR,
    EMIT_NOTES,
    EMIT_LAYOUT,
    EMIT_STAGED,
    EMIT_LLVM,
    EMIT_PTX,
    EMIT_CUBIN,
    EMIT_OBJECT,
    EMIT_C,
};
static const char *const emit_names[] = {"ast",  "ir",  "notes", "layout", "staged",
                                         "llvm", "ptx", "cubin", "object", "c"};
#define EMIT_LIST "ast|ir|notes|layout|staged|llvm|ptx|cubin|object|c"
enum { NEMIT = sizeof emit_names / sizeof *emit_names };

typedef struct emit_settings {
    common_settings common;
    kernel_settings k;
    int from; // 0: tk, 1: ir
    int emit; // EMIT_...
    const char *after, *only, *output, *arch, *header, *depfile;
    pair_list instance;
    bool locs, passes, contiguous, whole_rows, near, unit_stride, mapped;
} emit_settings;

static bool take_emit(tool *t, void *settings, const char *value) {
    emit_settings *s = settings;
    if (s->emit != EMIT_NOTHING) {
        tool_usage(t, "option --emit is given twice");
        return false;
    }
    for (int i = 0; i < NEMIT; i++) {
        if (strcmp(value, emit_names[i]) == 0) {
            s->emit = EMIT_AST + i;
            return true;
        }
    }
    tool_usage(t, "option --emit takes " EMIT_LIST ", not '%s'%s", value,
               tool_nearest(t, value, emit_names, NEMIT));
    return false;
}

static void list_passes(void) {
    const char *name, *what;
    int width = 0;
    for (size_t i = 0; tkc_pass_info(i, &name, &what); i++) {
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    }
    for (size_t i = 0; tkc_pass_info(i, &name, &what); i++) {
        printf("%-*s  %s\n", width, name, what);
    }
}

static bool known_pass(tool *t, const char *flag, const char *pass, bool build) {
    const char *names[64], *name, *what;
    size_t n = 0;
    if (build) {
        names[n++] = "build";
    }
    for (size_t i = 0; n < 64 && tkc_pass_info(i, &name, &what); i++) {
        names[n++] = name;
    }
    for (size_t i = 0; i < n; i++) {
        if (!pass || strcmp(names[i], pass) == 0) {
            return true;
        }
    }
    tool_usage(t, "%s: there is no pass '%s'%s ('tkc --passes' lists them)", flag, pass,
               tool_nearest(t, pass, names, n));
    return false;
}

static bool is_ahead(const emit_settings *s) { return s->emit == EMIT_OBJECT || s->emit == EMIT_C; }

static void put(tool *t, const emit_settings *s, tkc_status status, tkc_report *report,
                tkc_text *text) {
    if (tool_report(t, status, report)) {
        file_write(t, s->output, text->at, text->size);
    }
    tkc_text_free(text);
}

static bool for_gpu(const emit_settings *s) {
    return s->emit >= EMIT_LAYOUT || (s->emit == EMIT_NOTES && s->arch);
}

static tkc_compile_options compile_options(const emit_settings *s) {
    tkc_target oldest = {0};
    tkc_target_info(0, &oldest);
    tkc_code what = s->emit == EMIT_CUBIN    ? TKC_CODE_CUBIN
                    : s->emit == EMIT_LLVM   ? TKC_CODE_LLVM
                    : s->emit == EMIT_LAYOUT ? TKC_CODE_LAYOUT
                    : s->emit == EMIT_STAGED ? TKC_CODE_STAGED
                    : s->emit == EMIT_NOTES  ? TKC_CODE_NOTES
                                             : TKC_CODE_PTX;
    return (tkc_compile_options){.size = sizeof(tkc_compile_options),
                                 .arch = s->arch ? s->arch : oldest.name,
                                 .what = what,
                                 .contiguous = s->contiguous,
                                 .whole_rows = s->whole_rows,
                                 .near = s->near,
                                 .unit_stride = s->unit_stride,
                                 .mapped = s->mapped};
}

static void emit_kernel(tool *t, session *lib, const emit_settings *s) {
    arguments a;
    if (!session_kernel(t, lib, &s->k) || !arguments_make(t, lib, &s->k, false, &a)) {
        return;
    }
    tkc_text text = {NULL, 0};
    tkc_report *report = NULL;
    tkc_status status;
    if (for_gpu(s)) {
        tkc_compile_options o = compile_options(s);
        status = tkc_kernel_compile(lib->kernel, &o, a.arg, a.n, a.size, a.nsize, &text, &report);
    } else if (s->emit == EMIT_IR) {
        status = tkc_kernel_dump_ir(lib->kernel, a.arg, a.n, a.size, a.nsize, s->after, s->locs,
                                    &text, &report);
    } else {
        status = tkc_kernel_dump_notes(lib->kernel, a.arg, a.n, a.size, a.nsize, &text, &report);
    }
    put(t, s, status, report, &text);
}

static void emit_source(tool *t, const emit_settings *s, const char *path) {
    session lib;
    if (session_open(t, &lib, &s->k) && session_load(t, &lib, path)) {
        if (is_ahead(s)) {
            ahead_request r = {.k = &s->k,
                               .arch = s->arch,
                               .output = s->output,
                               .c = s->emit == EMIT_C,
                               .header = s->header,
                               .depfile = s->depfile,
                               .instance = s->instance,
                               .contiguous = s->contiguous,
                               .whole_rows = s->whole_rows,
                               .near = s->near,
                               .unit_stride = s->unit_stride,
                               .mapped = s->mapped};
            ahead_build(t, &lib, &r);
        } else if (s->emit == EMIT_AST) {
            tkc_text text = {NULL, 0};
            put(t, s, tkc_program_dump_ast(lib.program, &text), NULL, &text);
        } else {
            emit_kernel(t, &lib, s);
        }
    }
    session_close(&lib);
}

static void emit_from_ir(tool *t, const emit_settings *s, const char *path) {
    session lib;
    file_text in;
    if (session_open(t, &lib, &s->k) && file_read(t, path, &in)) {
        tkc_text text = {NULL, 0};
        tkc_report *report = NULL;
        tkc_status status =
            tkc_ir_run(lib.context, in.name, in.at, in.size, s->only, s->locs, &text, &report);
        put(t, s, status, report, &text);
    }
    session_close(&lib);
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

// -o k.ptx says what is wanted.
static void emit_by_output(emit_settings *s) {
    if (s->emit == EMIT_NOTHING && s->from == 0 && s->output) {
        s->emit = ends_in(s->output, ".ptx")     ? EMIT_PTX
                  : ends_in(s->output, ".cubin") ? EMIT_CUBIN
                  : ends_in(s->output, ".o")     ? EMIT_OBJECT
                  : ends_in(s->output, ".c")     ? EMIT_C
                                                 : EMIT_NOTHING;
    }
}

// An option that is for GPUs only; NULL: none is given.
static const char *gpu_flag(const emit_settings *s) {
    return s->arch          ? "--arch"
           : s->contiguous  ? "--contiguous"
           : s->whole_rows  ? "--whole-rows"
           : s->near        ? "--near"
           : s->unit_stride ? "--unit-stride"
           : s->mapped      ? "--mapped"
                            : NULL;
}

static bool consistent_for_gpu(tool *t, const emit_settings *s) {
    const char *flag = gpu_flag(s);
    if (flag && s->emit == EMIT_NOTHING) {
        tool_usage(
            t,
            "%s: what is to be made? Write -o FILE.ptx, FILE.cubin or FILE.o, or --emit=" EMIT_LIST,
            flag);
    } else if (flag && !for_gpu(s)) {
        tool_usage(t, "%s goes with --emit=layout|staged|llvm|ptx|cubin|object|c%s", flag,
                   s->arch ? " and notes" : ", and notes with --arch");
    } else if ((s->emit == EMIT_CUBIN || s->emit == EMIT_OBJECT) && !s->output) {
        tool_usage(t, "--emit=%s writes bytes: name a file by -o FILE (\"-\": standard output)",
                   s->emit == EMIT_CUBIN ? "cubin" : "object");
    } else if (!is_ahead(s) && (s->header || s->depfile || s->instance.n)) {
        tool_usage(t, "%s goes with -o FILE.o or FILE.c",
                   s->header    ? "--header"
                   : s->depfile ? "--depfile"
                                : "--instance");
    } else if (is_ahead(s) && s->k.debug) {
        tool_usage(t, "--debug: asserts and prints are not for code in a C program");
    } else if (s->instance.n && s->k.kernel) {
        tool_usage(t, "--kernel and --instance: an instance names its kernel");
    } else if (s->depfile && (!s->output || strcmp(s->output, "-") == 0)) {
        tool_usage(t, "--depfile says what the file of -o depends on, and there is none");
    }
    return t->code == CODE_FINE && (is_ahead(s) || target_known(t, s->arch));
}

// The options that go together.
static bool consistent(tool *t, const emit_settings *s) {
    bool kernel =
        s->k.kernel || s->k.define.n || s->k.in.n || s->k.scalar.n || s->k.dim.n || s->k.given.n;
    if (s->from == 1) {
        if ((s->emit != EMIT_NOTHING && s->emit != EMIT_IR) || gpu_flag(s)) {
            tool_usage(t, "--from=ir goes with --emit=ir");
        } else if (kernel || s->after) {
            tool_usage(t, "--from=ir takes no %s",
                       s->after ? "--after; write --run=PASS" : "kernel and arguments");
        }
        return t->code == CODE_FINE && known_pass(t, "--run", s->only, false);
    }
    if (!consistent_for_gpu(t, s)) {
        return false;
    }
    if (s->only) {
        tool_usage(t, "--run=PASS goes with --from=ir; write --after=PASS");
    } else if (s->emit == EMIT_NOTHING) {
        tool_usage(
            t, "what is to be done with '%s'? Write --emit=" EMIT_LIST ", 'tkc check' or 'tkc run'",
            s->common.files.at[0]);
    } else if (s->emit != EMIT_IR && (s->after || s->locs)) {
        tool_usage(t, "%s goes with --emit=ir", s->after ? "--after" : "--locs");
    } else if (s->emit == EMIT_AST && kernel) {
        tool_usage(t, "--emit=ast shows the whole file; it takes no kernel and arguments");
    }
    return t->code == CODE_FINE && known_pass(t, "--after", s->after, true);
}

static void run(tool *t, void *settings) {
    emit_settings *s = settings;
    if (s->passes) {
        list_passes();
        return;
    }
    if (s->common.files.n != 1) {
        tool_usage(
            t, "%s",
            s->common.files.n
                ? "one FILE is wanted here; a command (check, run, fmt) stands before its options"
                : "no FILE is given");
        return;
    }
    emit_by_output(s);
    if (!consistent(t, s)) {
        return;
    }
    if (s->from == 1) {
        emit_from_ir(t, s, s->common.files.at[0]);
    } else {
        emit_source(t, s, s->common.files.at[0]);
    }
}

static const option options[] = {
    {"--emit", NULL, OPTION_CALL, EMIT_LIST, 0,
     "what to print: the syntax tree, the tile IR of a kernel, what each pass decided; for a GPU "
     "the IR with layouts, with shared memory and barriers, LLVM IR, PTX or machine code; for a C "
     "program an object file, or the same as C",
     take_emit},
    {"--arch", NULL, OPTION_TEXT, "TARGET", offsetof(emit_settings, arch),
     "the GPU to compile for, as sm_90a; sm_80 where none is named. 'tkc info' lists them. For "
     "-o FILE.o and FILE.c several, as sm_80,sm_90a",
     NULL},
    {"--header", NULL, OPTION_TEXT, "FILE.h", offsetof(emit_settings, header),
     "with -o FILE.o or FILE.c: declares its functions there", NULL},
    {"--instance", NULL, OPTION_PAIRS, "NAME=KERNEL[,P=VALUE]...",
     offsetof(emit_settings, instance),
     "with these: a function NAME of C, with these compile-time parameters and sizes and given "
     "these optional parameters (P alone); any number. Without: a function for each kernel",
     NULL},
    {"--depfile", NULL, OPTION_TEXT, "FILE.d", offsetof(emit_settings, depfile),
     "with these: the files that were read, as a rule of make", NULL},
    {"--contiguous", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, contiguous),
     "for tensors with a last stride of 1 and 16-byte alignment only", NULL},
    {"--whole-rows", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, whole_rows),
     "for such whose last size is a multiple of 16 bytes only", NULL},
    {"--unit-stride", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, unit_stride),
     "for tensors with a last stride of 1 only, aligned or not", NULL},
    {"--mapped", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, mapped),
     "for such as --contiguous with at most 5 dimensions and strides above 0 only: tensor maps",
     NULL},
    {"--near", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, near),
     "for tensors without elements 2^31 from the first only: offsets of 32 bits", NULL},
    {"--after", NULL, OPTION_TEXT, "PASS", offsetof(emit_settings, after),
     "the IR after this pass; \"build\": before the first", NULL},
    {"--from", NULL, OPTION_CHOICE, "tk|ir", offsetof(emit_settings, from), "what FILE is", NULL},
    {"--run", NULL, OPTION_TEXT, "PASS", offsetof(emit_settings, only),
     "with --from=ir: run this pass", NULL},
    {"--passes", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, passes),
     "list the passes in their order", NULL},
    {"--locs", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, locs),
     "IR with the places in the source", NULL},
    {"--output", "-o", OPTION_TEXT, "FILE", offsetof(emit_settings, output),
     "write there; FILE.ptx, FILE.cubin, FILE.o and FILE.c need no --emit", NULL},
    KERNEL_OPTIONS(emit_settings),
    {"--given", NULL, OPTION_NAMES, "NAME", offsetof(emit_settings, k.given),
     "an optional parameter is there, whatever it is", NULL},
    {"--debug", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, k.debug),
     "keep asserts, on a GPU prints and assumes too", NULL},
    {"-Werror", NULL, OPTION_FLAG, NULL, offsetof(emit_settings, k.werror), "warnings are errors",
     NULL},
    COMMON_OPTIONS(emit_settings),
};

const command command_emit = {
    .name = "emit",
    .usage = "FILE --emit=" EMIT_LIST " [OPTION]...\nFILE --arch TARGET -o FILE.ptx|FILE.cubin "
             "[OPTION]...\nFILE --arch TARGET,... -o FILE.o|FILE.c --header FILE.h [OPTION]...\n"
             "--from=ir FILE [--run=PASS] [OPTION]...\n--passes",
    .what = "Shows what the compiler makes of FILE (\"-\" is standard input). Of the kernel's "
            "parameters nothing is "
            "known but what --in, --dim and -D say: the same code takes any value of a scalar, so "
            "--scalar "
            "says only that it is there. Optional ones are left out unless named.",
    .more = ARRAY_HELP,
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(emit_settings),
    .run = run,
};
