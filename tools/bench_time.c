// SPDX-License-Identifier: Apache-2.0
// Launches between events, and what is made of their times.
#include "bench.h"

#include <stdlib.h>

// Of launches that are not counted; of a cache whose size is not known.
enum { WARM = 10, USUAL_CACHE = 64 << 20 };

static uint64_t cache_of(const bench *b) { return b->gpu.cache ? b->gpu.cache : USUAL_CACHE; }

bool bench_time_open(bench *b) {
    tkc_report *report = NULL;
    tkc_status s = TKC_OK;
    size_t n = 2 * (size_t)b->s->launches;
    b->event = TOOL_NEW(b->t, tkc_event *, n);
    for (; b->nevent < n && s == TKC_OK; b->nevent += s == TKC_OK) {
        s = tkc_event_create(b->device, &b->event[b->nevent], &report);
    }
    for (int i = 0; i < 2 && s == TKC_OK; i++) {
        s = tkc_device_alloc(b->device, (size_t)cache_of(b), &b->flush[i], &report);
    }
    return tool_report(b->t, s, report);
}

void bench_time_close(bench *b) {
    for (size_t i = 0; i < b->nevent; i++) {
        tkc_event_destroy(b->event[i]);
    }
    for (int i = 0; i < 2 && b->device; i++) {
        tkc_device_free(b->device, b->flush[i]);
    }
}

bool bench_flushes(const bench *b, uint64_t bytes) { return bytes < cache_of(b); }

static int ascending(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double quantile(const double *sorted, size_t n, double q) {
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

figure figure_of(double *sample, size_t n) {
    qsort(sample, n, sizeof *sample, ascending);
    return (figure){quantile(sample, n, 0.5), quantile(sample, n, 0.25), quantile(sample, n, 0.75),
                    sample[0]};
}

double per_second(double amount, const figure *f) {
    return f->median > 0 ? amount / (f->median * 1e-6) : 0;
}

// Leaves what a launch would: lines to be written back. It takes longer than the host needs for a
// launch, so that the GPU does not wait for the host between the events.
static tkc_status flush_cache(const bench *b, tkc_report **report) {
    return tkc_device_copy_async(b->device, b->flush[1], b->flush[0], (size_t)cache_of(b), NULL,
                                 report);
}

bool bench_time(bench *b, bench_launch launch, void *user, bool flush, figure *out,
                gpu_state *state) {
    tkc_report *report = NULL;
    tkc_status s = TKC_OK;
    size_t n = b->nevent / 2;
    double *sample = TOOL_NEW(b->t, double, n);
    for (size_t i = 0; i < n + WARM && s == TKC_OK; i++) {
        tkc_event **timed = i < WARM ? NULL : &b->event[2 * (i - WARM)];
        s = flush ? flush_cache(b, &report) : TKC_OK;
        s = s || !timed ? s : tkc_event_record(timed[0], NULL, &report);
        s = s ? s : launch(user, (unsigned)(i % BENCH_SETS), &report);
        s = s || !timed ? s : tkc_event_record(timed[1], NULL, &report);
    }
    if (state) {
        *state = gpu_monitor_read(&b->monitor); // what was launched is still running
    }
    for (size_t i = 0; i < n && s == TKC_OK; i++) {
        double ms = 0;
        s = tkc_event_elapsed(b->event[2 * i], b->event[2 * i + 1], &ms, &report);
        sample[i] = 1e3 * ms;
    }
    *out = figure_of(sample, n);
    return tool_report(b->t, s, report);
}
