// SPDX-License-Identifier: Apache-2.0
// One point: arguments of its sizes, their copies on the GPU, launches, and whether the outputs are
// right.
#include "bench.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

typedef struct running {
    bench *b;
    bench_point *p;
    arguments a;
    device_arguments on[BENCH_SETS];
    tkc_prepared *launch[BENCH_SETS];
    unsigned made; // of on
} running;

static bool fail(running *r, const char *wrong) {
    tool_error(r->b->t, CODE_REFUSED, NULL, "%s", wrong);
    r->p->wrong = wrong;
    return false;
}

static bool is_written(const running *r, size_t i) {
    return r->a.arg[i].kind == TKC_ARG_TENSOR && r->a.param[i]->access != TKC_IN;
}

static size_t bytes_of(const tkc_tensor *x) {
    size_t count, bytes;
    return tensor_size(x->rank, x->dim, tkc_dtype_size(x->dtype), &count, &bytes) ? bytes : 0;
}

// ---- Arguments

// "randn(M,N)" with the point's sizes; NULL where one is not among them.
static const char *usual_array(const bench *b, size_t point, const tkc_param_info *p) {
    const char *text = "randn(";
    for (uint32_t d = 0; d < p->rank; d++) {
        const char *dim = p->dim[d];
        size_t axis = sweep_find(&b->sizes, dim, strlen(dim));
        const char *comma = d ? "," : "";
        if (axis < b->sizes.naxis) {
            text = tool_format(b->t, "%s%s%lld", text, comma,
                               (long long)sweep_value(&b->sizes, point, axis));
        } else if (dim[strspn(dim, "0123456789")] == 0) {
            text = tool_format(b->t, "%s%s%s", text, comma, dim);
        } else {
            return NULL;
        }
    }
    return tool_format(b->t, "%s)", text);
}

static bool is_given(const kernel_settings *k, const tkc_param_info *p) {
    bool given = !p->optional;
    for (size_t i = 0; i < k->given.n; i++) {
        given = given || strcmp(k->given.at[i], p->name) == 0;
    }
    for (size_t i = 0; i < k->in.n; i++) { // --in says already
        given = given && strcmp(k->in.at[i].name, p->name) != 0;
    }
    return given && p->is_tensor && p->access != TKC_OUT;
}

static bool is_dim(const bench *b, const char *name) {
    for (size_t i = 0; i < tkc_kernel_dim_count(b->lib.kernel); i++) {
        if (strcmp(tkc_kernel_dim(b->lib.kernel, i), name) == 0) {
            return true;
        }
    }
    return false;
}

// The settings of the command line with the point's sizes in them.
static kernel_settings settings_at(const bench *b, size_t point) {
    kernel_settings k = b->s->k;
    size_t n = tkc_kernel_param_count(b->lib.kernel), naxis = b->sizes.naxis;
    k.in.at = TOOL_NEW(b->t, pair, k.in.n + n + 1);
    for (size_t i = 0; i < k.in.n; i++) {
        const pair *p = &b->s->k.in.at[i];
        k.in.at[i] = (pair){p->name, sweep_replace(b->t, &b->sizes, point, p->value)};
    }
    for (size_t i = 0; i < n && naxis; i++) {
        const tkc_param_info *p = tkc_kernel_param(b->lib.kernel, i);
        const char *text = is_given(&b->s->k, p) ? usual_array(b, point, p) : NULL;
        if (text) {
            k.in.at[k.in.n++] = (pair){p->name, text};
        }
    }
    k.dim.at = TOOL_NEW(b->t, pair, k.dim.n + naxis + 1);
    if (k.dim.n) {
        memcpy(k.dim.at, b->s->k.dim.at, k.dim.n * sizeof *k.dim.at);
    }
    for (size_t i = b->sweeps_warps; i < naxis; i++) {
        const char *name = b->sizes.axis[i].name;
        if (is_dim(b, name)) {
            long long value = (long long)sweep_value(&b->sizes, point, i);
            k.dim.at[k.dim.n++] = (pair){name, tool_format(b->t, "%lld", value)};
        }
    }
    return k;
}

static bool make_arguments(running *r) {
    bench *b = r->b;
    kernel_settings k = settings_at(b, r->p->number);
    bool ok = arguments_make(b->t, &b->lib, &k, true, &r->a) &&
              expect_check(b->t, &b->s->x, &r->a) && arguments_outputs(b->t, &b->lib, &r->a);
    for (size_t i = 0; i < r->a.n && ok; i++) {
        if (r->a.arg[i].kind == TKC_ARG_TENSOR) {
            uint64_t bytes = bytes_of(&r->a.arg[i].tensor);
            r->p->bytes += bytes * (r->a.param[i]->access == TKC_INOUT ? 2 : 1);
            r->p->largest = bytes > r->p->largest ? bytes : r->p->largest;
        }
    }
    if (!ok) {
        r->p->wrong = "its arguments cannot be made";
    } else if (r->p->bytes == 0) {
        return fail(r, "nothing to time: no tensor has elements");
    }
    return ok;
}

static bool make_sets(running *r) {
    bench *b = r->b;
    tkc_report *report = NULL;
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->a.n; i++) {
        bytes += r->a.arg[i].kind == TKC_ARG_TENSOR ? bytes_of(&r->a.arg[i].tensor) : 0;
    }
    r->p->flushed = bench_flushes(b, bytes);
    for (unsigned i = 0; i < BENCH_SETS; i++) {
        r->made = i + 1;
        if (!device_arguments_make(b->t, b->device, &r->a, &r->on[i])) {
            r->p->wrong = "its tensors do not get onto the device";
            return false;
        }
        tkc_status s = tkc_prepared_create(b->lib.kernel, b->device, r->on[i].arg, r->a.n,
                                           &r->launch[i], &report);
        if (!tool_report(b->t, s, report)) {
            r->p->wrong = "the launch was refused";
            return false;
        }
    }
    return true;
}

static tkc_status launch(void *user, unsigned set, tkc_report **report) {
    const running *r = user;
    return tkc_prepared_launch(r->launch[set], NULL, report);
}

// ---- What the program computes in products, from what the compiler notes

static double number_of(const json_t *notes, const char *id, const char *name) {
    size_t i;
    json_t *note;
    json_array_foreach(notes, i, note) {
        const char *is = json_string_value(json_object_get(note, "id"));
        if (is && strcmp(is, id) == 0) {
            return json_number_value(json_object_get(json_object_get(note, "numbers"), name));
        }
    }
    return 0;
}

static double products_of(running *r) {
    bench *b = r->b;
    const tkc_explain_options o = {
        .size = sizeof o, .arch = b->gpu.target, .format = TKC_EXPLAIN_JSON};
    tkc_text text = {NULL, 0};
    tkc_status s =
        tkc_kernel_explain(b->lib.kernel, &o, r->a.arg, r->a.n, r->a.size, r->a.nsize, &text, NULL);
    json_t *found = s == TKC_OK ? json_loadb(text.at, text.size, 0, NULL) : NULL;
    const json_t *notes = json_object_get(found, "notes");
    double n = number_of(notes, "work", "in_products") * number_of(notes, "launch", "programs");
    json_decref(found);
    tkc_text_free(&text);
    return n;
}

// ---- Outputs

// A set's output into memory of the host.
static bool bring(running *r, unsigned set, size_t i, tkc_tensor *to) {
    tkc_report *report = NULL;
    tkc_status s = tkc_device_copy(r->b->device, to->data, r->on[set].arg[i].tensor.data,
                                   bytes_of(to), TKC_FROM_DEVICE, &report);
    if (!tool_report(r->b->t, s, report)) {
        r->p->wrong = "its outputs cannot be had";
        return false;
    }
    return true;
}

static bool check_nans(running *r, size_t i, const tkc_tensor *got) {
    if (!dtype_is_float(got->dtype)) {
        return true;
    }
    cursor c = cursor_make(got);
    for (; c.at < c.count; cursor_next(&c)) {
        if (isnan(cursor_value(&c))) {
            return fail(r,
                        tool_format(r->b->t, "output '%s' has NaN at %s: no figure is given",
                                    r->a.param[i]->name, index_text(r->b->t, got->rank, c.index)));
        }
    }
    return true;
}

static bool check_values(running *r, size_t i, const tkc_tensor *got) {
    bench *b = r->b;
    expect_settings *x = (expect_settings *)&b->s->x;
    expectation *e = expect_find(x, r->a.param[i]->name);
    if (!e && b->s->no_check) {
        return true;
    }
    if (e && !expect_fits(b->t, e, got)) {
        r->p->wrong = "an output has another shape than is expected";
        return false;
    }
    const tkc_tensor *want = e ? &e->file.tensor : &r->a.arg[i].tensor;
    comparison c = tensor_compare(got, want,
                                  e             ? e->rtol
                                  : x->has_rtol ? x->rtol
                                                : -1,
                                  e             ? e->atol
                                  : x->has_atol ? x->atol
                                                : -1);
    r->p->checked = e ? "file" : "cpu";
    r->p->absolute = fmax(r->p->absolute, (double)c.absolute.error);
    if (c.bad) {
        char was[VALUE_ROOM], should[VALUE_ROOM];
        const worst_place *w = &c.absolute;
        return fail(r, tool_format(b->t,
                                   "output '%s' is wrong: %zu of %zu elements out of tolerance, "
                                   "rtol %g, atol %g; at %s it is %s, expected %s",
                                   r->a.param[i]->name, c.bad, c.count, c.rtol, c.atol,
                                   index_text(b->t, got->rank, w->index),
                                   value_text(was, got->dtype, w->got),
                                   value_text(should, want->dtype, w->expected)));
    }
    return true;
}

// The first set's outputs by values, the others' by their bits.
static bool check_output(running *r, size_t i, tkc_tensor *got, void *first) {
    size_t bytes = bytes_of(got);
    for (unsigned set = 0; set < BENCH_SETS; set++) {
        if (!bring(r, set, i, got)) {
            return false;
        }
        if (set && memcmp(got->data, first, bytes) == 0) {
            continue;
        }
        if (!check_nans(r, i, got) || !check_values(r, i, got)) {
            return false;
        }
        if (!set) {
            memcpy(first, got->data, bytes);
        }
    }
    return true;
}

static bool check_outputs(running *r) {
    tool *t = r->b->t;
    bool ok = true;
    for (size_t i = 0; i < r->a.n && ok; i++) {
        if (!is_written(r, i)) {
            continue;
        }
        tkc_tensor got = r->a.arg[i].tensor;
        size_t bytes = bytes_of(&got);
        void *first = tool_array(t, bytes, "an output");
        got.data = first ? tool_array(t, bytes, "an output") : NULL;
        ok = got.data && check_output(r, i, &got, first);
        tool_array_free(t, got.data, bytes);
        tool_array_free(t, first, bytes);
    }
    return ok;
}

// The arrays of the command line become what the CPU makes of them.
static bool compute_expected(running *r) {
    bench *b = r->b;
    tkc_report *report = NULL;
    bool all = true;
    for (size_t i = 0; i < r->a.n; i++) {
        all = all &&
              (!is_written(r, i) || expect_find((expect_settings *)&b->s->x, r->a.param[i]->name));
    }
    if (all || b->s->no_check) {
        return true;
    }
    tkc_status s = tkc_launch(b->lib.kernel, b->cpu, r->a.arg, r->a.n, NULL, &report);
    if (!tool_report(b->t, s, report)) {
        r->p->wrong = "the CPU refused the launch";
    }
    return s == TKC_OK;
}

// ---- The point

static const void *largest_on_device(const running *r) {
    size_t best = 0;
    for (size_t i = 0; i < r->a.n; i++) {
        if (r->a.arg[i].kind == TKC_ARG_TENSOR && bytes_of(&r->a.arg[i].tensor) == r->p->largest) {
            best = i;
        }
    }
    return r->on[0].arg[best].tensor.data;
}

// Each set once: what a kernel adds to (inout) is judged after that.
static bool launch_once(running *r) {
    tkc_report *report = NULL;
    tkc_status s = TKC_OK;
    for (unsigned i = 0; i < BENCH_SETS && s == TKC_OK; i++) {
        s = launch(r, i, &report);
    }
    s = s ? s : tkc_device_synchronize(r->b->device, &report);
    if (!tool_report(r->b->t, s, report)) {
        r->p->wrong = "a launch failed";
    }
    return s == TKC_OK;
}

static bool adds(const running *r) {
    for (size_t i = 0; i < r->a.n; i++) {
        if (is_written(r, i) && r->a.param[i]->access == TKC_INOUT) {
            return true;
        }
    }
    return false;
}

static void measure(running *r) {
    bench *b = r->b;
    bench_point *p = r->p;
    if (!make_sets(r) || !launch_once(r) || !compute_expected(r) ||
        (adds(r) && !check_outputs(r))) {
        return;
    }
    const void *largest = largest_on_device(r);
    bool timed = bench_ceilings(b, p, largest) &&
                 bench_time(b, launch, r, p->flushed, &p->time, &p->state) &&
                 bench_ceilings(b, p, largest);
    if (!timed) {
        p->wrong = "timing failed";
    } else if (!adds(r)) {
        check_outputs(r);
    }
}

// A kernel of the point's number of warps.
static bool choose_warps(running *r) {
    bench *b = r->b;
    if (!b->sweeps_warps) {
        return true;
    }
    tkc_kernel *old = b->lib.kernel;
    bool ok = session_kernel(b->t, &b->lib, &b->s->k);
    if (ok) {
        tkc_kernel_destroy(old);
        tkc_kernel_set_warps(b->lib.kernel, (unsigned)sweep_value(&b->sizes, r->p->number, 0));
    }
    return ok;
}

bool bench_run_point(bench *b, size_t number, bench_point *p) {
    running r = {.b = b, .p = p};
    *p = (bench_point){.number = number};
    if (!choose_warps(&r)) {
        p->wrong = "the kernel cannot be made";
    } else if (make_arguments(&r)) {
        p->products = products_of(&r);
        measure(&r);
    }
    for (unsigned i = 0; i < r.made; i++) {
        tkc_prepared_destroy(r.launch[i]);
        device_arguments_free(&r.on[i]);
    }
    for (size_t i = 0; i < r.a.n; i++) {
        if (r.a.arg[i].kind == TKC_ARG_TENSOR) {
            tool_array_free(b->t, r.a.arg[i].tensor.data, bytes_of(&r.a.arg[i].tensor));
        }
    }
    // After an error of the device nothing more can be had from it.
    return tkc_device_synchronize(b->device, NULL) == TKC_OK;
}
