// SPDX-License-Identifier: Apache-2.0
// What no kernel goes much above: the driver's copy of the largest tensor, and a kernel that only
// reads that.
#include "bench.h"

enum { WIDTH = 4096 };

typedef struct buffers {
    const bench *b;
    size_t bytes;
    void *from[BENCH_SETS], *to[BENCH_SETS];
    tkc_prepared *reading[BENCH_SETS];
} buffers;

static tkc_status copy(void *user, unsigned set, tkc_report **report) {
    const buffers *x = user;
    return tkc_device_copy_async(x->b->device, x->to[set], x->from[set], x->bytes, NULL, report);
}

static tkc_status read_all(void *user, unsigned set, tkc_report **report) {
    const buffers *x = user;
    return tkc_prepared_launch(x->reading[set], NULL, report);
}

// Rows of i32, one value left of each; `to` has room for these.
static tkc_status prepare(buffers *x, unsigned set, tkc_report **report) {
    int64_t dim[2] = {(int64_t)(x->bytes / (4 * WIDTH)), WIDTH};
    tkc_arg arg[2] = {{.kind = TKC_ARG_TENSOR}, {.kind = TKC_ARG_TENSOR}};
    arg[0].tensor = tkc_tensor_make(x->from[set], TKC_I32, 2, dim);
    arg[1].tensor = tkc_tensor_make(x->to[set], TKC_I32, 1, dim);
    return tkc_prepared_create(x->b->reader, x->b->device, arg, 2, &x->reading[set], report);
}

// The contents are the tensor's own: of zeros a GPU would need less power.
static tkc_status make(buffers *x, const void *like, size_t bytes, tkc_report **report) {
    tkc_device *d = x->b->device;
    tkc_status s = TKC_OK;
    for (unsigned i = 0; i < BENCH_SETS && s == TKC_OK; i++) {
        s = tkc_device_alloc(d, x->bytes, &x->from[i], report);
        s = s ? s : tkc_device_alloc(d, x->bytes, &x->to[i], report);
        s = s ? s : tkc_device_copy(d, x->from[i], like, bytes, TKC_WITHIN_DEVICE, report);
        for (size_t at = bytes; at < x->bytes && s == TKC_OK; at += bytes) { // up to whole rows
            size_t rest = x->bytes - at < bytes ? x->bytes - at : bytes;
            s = tkc_device_copy(d, (char *)x->from[i] + at, like, rest, TKC_WITHIN_DEVICE, report);
        }
        s = s ? s : prepare(x, i, report);
    }
    return s;
}

static void release(buffers *x) {
    for (unsigned i = 0; i < BENCH_SETS; i++) {
        tkc_prepared_destroy(x->reading[i]);
        tkc_device_free(x->b->device, x->from[i]);
        tkc_device_free(x->b->device, x->to[i]);
    }
}

static void keep_better(figure *best, const figure *found) {
    if (best->median == 0 || found->median < best->median) {
        *best = *found;
    }
}

bool bench_ceilings(bench *b, bench_point *p, const void *like) {
    size_t row = 4 * WIDTH, bytes = (size_t)p->largest;
    buffers x = {.b = b, .bytes = (bytes + row - 1) / row * row};
    tkc_report *report = NULL;
    figure found;
    bool ok = tool_report(b->t, make(&x, like, bytes, &report), report);
    p->ceiling_bytes = x.bytes;
    ok = ok && bench_time(b, copy, &x, bench_flushes(b, 2 * x.bytes), &found, NULL);
    if (ok) {
        keep_better(&p->copy, &found);
        ok = bench_time(b, read_all, &x, bench_flushes(b, x.bytes), &found, NULL);
    }
    if (ok) {
        keep_better(&p->read, &found);
    }
    release(&x);
    return ok;
}
