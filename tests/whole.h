// SPDX-License-Identifier: Apache-2.0
// The whole compiler on any text, through the public library, for mutation tests and fuzzing: the
// program is parsed and checked, each kernel is made, bound to arguments that fit its parameters
// (every size 16, every open type f32), compiled with all passes, planned, and its launch is
// stopped before the first program. Whatever the text, the only allowed ends are success and
// located errors.
#ifndef TK_TESTS_WHOLE_H
#define TK_TESTS_WHOLE_H

#include "runtime/tkc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE_KERNELS = 8, WHOLE_PARAMS = 24, WHOLE_BYTES = 1 << 22 };

typedef struct whole {
    tkc_context *context;
    tkc_device *device;
    void *memory;      // of the tensors: WHOLE_PARAMS areas
    unsigned compiled; // kernels that came to a launch
    unsigned refused;  // programs with errors
    char fault[4096];  // what must not be; empty where all is well
} whole;

static inline bool whole_no_import(void *user, const char *path, tkc_import *import) {
    (void)user;
    (void)path;
    (void)import;
    return false;
}

static inline bool whole_open(whole *w) {
    memset(w, 0, sizeof *w);
    tkc_config *c = tkc_config_create();
    tkc_config_threads(c, 1);
    tkc_config_debug(c, true);
    tkc_config_import(c, whole_no_import, NULL);
    bool ok = tkc_context_create(c, &w->context) == TKC_OK &&
              tkc_device_open(w->context, "cpu", &w->device, NULL) == TKC_OK;
    tkc_config_destroy(c);
    w->memory = malloc((size_t)WHOLE_PARAMS * 64);
    return ok && w->memory;
}

static inline void whole_close(whole *w) {
    tkc_device_close(w->device);
    tkc_context_destroy(w->context);
    free(w->memory);
}

// A failure must say why, with a place where the source is to blame; an internal error never.
static inline void whole_judge(whole *w, const char *step, tkc_status s, tkc_report *r) {
    const char *text = tkc_report_text(r, false);
    bool bad = s == TKC_ERROR_INTERNAL || s == TKC_ERROR_ARGUMENT || s == TKC_ERROR_MEMORY ||
               s == TKC_ERROR_DEVICE || s == TKC_ERROR_IO;
    if (s != TKC_OK && (tkc_report_errors(r) == 0 || !text || text[0] == '\0')) {
        bad = true;
    }
    if (s == TKC_OK && tkc_report_errors(r) != 0) {
        bad = true;
    }
    if (s == TKC_ERROR_SOURCE && text && strncmp(text, "whole.tk:", 9) != 0 &&
        strncmp(text, "<-D ", 4) != 0 && !strstr(text, "no kernel")) {
        bad = true; // not located
    }
    (void)tkc_report_json(r);
    if (bad && !w->fault[0]) {
        snprintf(w->fault, sizeof w->fault, "%s: %s\n%.3000s", step, tkc_status_text(s),
                 text ? text : "(no text)");
    }
    tkc_report_destroy(r);
}

// Strides 0: any size fits a few bytes. An out tensor whose elements share memory is refused, so
// those are dense in memory that nobody touches (the launch is stopped before).
static inline tkc_tensor whole_tensor(whole *w, const tkc_param_info *p, size_t area) {
    tkc_dtype t = TKC_F32;
    (void)tkc_dtype_from_name(p->dtype, &t);
    int64_t dim[TKC_MAX_RANK];
    for (uint32_t i = 0; i < p->rank && i < TKC_MAX_RANK; i++) {
        char *end;
        long long n = strtoll(p->dim[i], &end, 0);
        dim[i] = end != p->dim[i] && *end == '\0' && n >= 0 && n < 4096 ? n : 16;
    }
    tkc_tensor x = tkc_tensor_make((char *)w->memory + 64 * area, t, p->rank, dim);
    for (uint32_t i = 0; i < p->rank && p->access == TKC_IN; i++) {
        x.stride[i] = 0;
    }
    return x;
}

static inline size_t whole_defines(tkc_kernel *k, tkc_define *define, size_t most) {
    size_t n = 0;
    const tkc_cparam_info *c;
    for (size_t i = 0; (c = tkc_kernel_cparam(k, i)) && n < most; i++) {
        if (c->value || c->fixed || c->deduced) {
            continue;
        }
        const char *v = strncmp(c->kind, "int", 3) == 0     ? "16"
                        : strncmp(c->kind, "type", 4) == 0  ? "f32"
                        : strncmp(c->kind, "bool", 4) == 0  ? "true"
                        : strncmp(c->kind, "float", 5) == 0 ? "1.5"
                        : strstr(c->kind, "bool")           ? "always"
                                                            : "same";
        define[n++] = (tkc_define){c->name, v};
    }
    return n;
}

static inline void whole_launch(whole *w, tkc_kernel *k) {
    size_t n = tkc_kernel_param_count(k);
    if (n > WHOLE_PARAMS) {
        return;
    }
    tkc_arg arg[WHOLE_PARAMS];
    memset(arg, 0, sizeof arg);
    for (size_t i = 0; i < n; i++) {
        const tkc_param_info *p = tkc_kernel_param(k, i);
        if (p->is_tensor) {
            arg[i].kind = TKC_ARG_TENSOR;
            arg[i].tensor = whole_tensor(w, p, i);
        } else {
            arg[i].kind = strchr("fb", p->dtype[0]) && strcmp(p->dtype, "bool") != 0 ? TKC_ARG_FLOAT
                                                                                     : TKC_ARG_INT;
            arg[i].f = 1;
            arg[i].i = 1;
        }
    }
    int stop = 1;
    tkc_launch_options o = {.size = sizeof o, .stop = &stop};
    tkc_report *r = NULL;
    tkc_status s = tkc_launch(k, w->device, arg, n, &o, &r);
    whole_judge(w, "launch", s, r);
    w->compiled += s == TKC_OK || s == TKC_ERROR_CHECK;
    static const char *const pass[] = {"build", NULL};
    for (unsigned i = 0; i < 2 && s != TKC_ERROR_SOURCE; i++) {
        tkc_text out = {NULL, 0};
        s = tkc_kernel_dump_ir(k, arg, n, NULL, 0, pass[i], true, &out, &r);
        whole_judge(w, "dump", s, r);
        tkc_text_free(&out);
    }
}

static inline void whole_kernel(whole *w, tkc_program *p, const char *name) {
    tkc_kernel *k = NULL;
    tkc_report *r = NULL;
    tkc_status s = tkc_kernel_create(p, name, NULL, 0, &k, &r);
    whole_judge(w, "kernel", s, r);
    if (s != TKC_OK) {
        return;
    }
    tkc_define define[WHOLE_PARAMS];
    size_t n = whole_defines(k, define, WHOLE_PARAMS);
    tkc_kernel *open = NULL;
    if (n != 0) {
        s = tkc_kernel_create(p, name, define, n, &open, &r);
        whole_judge(w, "kernel with defines", s, r);
    }
    whole_launch(w, open ? open : k);
    tkc_kernel_destroy(open);
    tkc_kernel_destroy(k);
}

// Whether nothing forbidden happened; else w->fault says what.
static inline bool whole_compile(whole *w, const char *text, size_t size) {
    tkc_program *p = NULL;
    tkc_report *r = NULL;
    tkc_status s = tkc_program_from_string(w->context, "whole.tk", text, size, &p, &r);
    whole_judge(w, "program", s, r);
    w->refused += s != TKC_OK;
    size_t n = s == TKC_OK ? tkc_program_kernel_count(p) : 0;
    for (size_t i = 0; i < n && i < WHOLE_KERNELS; i++) {
        whole_kernel(w, p, tkc_program_kernel_name(p, i));
    }
    tkc_program_destroy(p);
    return w->fault[0] == '\0';
}

#endif
