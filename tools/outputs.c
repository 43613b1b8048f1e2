// SPDX-License-Identifier: Apache-2.0
// Outputs before a launch: sizes that follow from the rest, and elements that tell what nobody
// wrote.
#include "element.h"
#include "program.h"

#include <math.h>
#include <string.h>

// NaN, true, or the greatest integer in each element, so that what nobody writes can be seen.
static void fill_unwritten(tkc_tensor *x, size_t count) {
    enum { CHUNK = 1024 };
    size_t elem = tkc_dtype_size(x->dtype);
    double nan[CHUNK];
    int64_t one[CHUNK];
    for (size_t i = 0; i < CHUNK; i++) {
        nan[i] = NAN;
        one[i] = 1;
    }
    for (size_t i = 0; i < count; i += CHUNK) {
        size_t n = count - i < CHUNK ? count - i : CHUNK;
        char *at = (char *)x->data + i * elem;
        if (dtype_is_float(x->dtype)) {
            tkc_convert(x->dtype, at, TKC_F64, nan, n);
        } else if (x->dtype == TKC_BOOL) {
            tkc_convert(x->dtype, at, TKC_I64, one, n);
        } else {
            memset(at, 0xff, n * elem);
        }
    }
    bool is_signed =
        x->dtype == TKC_I8 || x->dtype == TKC_I16 || x->dtype == TKC_I32 || x->dtype == TKC_I64;
    for (size_t i = 0; i < count && is_signed; i++) {
        ((unsigned char *)x->data)[(i + 1) * elem - 1] = 0x7f; // little endian
    }
}

bool arguments_outputs(tool *t, const session *lib, arguments *a) {
    tkc_arg *resolved = TOOL_NEW(t, tkc_arg, a->n + 1);
    tkc_report *report = NULL;
    tkc_status status =
        tkc_resolve(lib->kernel, a->arg, a->n, a->size, a->nsize, resolved, &report);
    if (!tool_report(t, status, report)) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->arg[i].kind != TKC_ARG_UNKNOWN) {
            continue;
        }
        tkc_tensor *x = &resolved[i].tensor;
        size_t count, bytes;
        const char *what = tool_format(t, "output '%s', %s,", a->param[i]->name, shape_text(t, x));
        if (!tensor_size(x->rank, x->dim, tkc_dtype_size(x->dtype), &count, &bytes)) {
            tool_error(t, CODE_ENVIRONMENT, NULL, "out of memory: %s is too large", what);
            return false;
        }
        x->data = tool_array(t, bytes, what);
        if (!x->data) {
            return false;
        }
        fill_unwritten(x, count);
        a->arg[i] = resolved[i];
    }
    return true;
}
