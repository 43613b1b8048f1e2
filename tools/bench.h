// SPDX-License-Identifier: Apache-2.0
// tkc bench: a kernel's speed on a GPU over sizes, beside ceilings of the same run.
//
// A point is one combination of sizes. Its figures are of launches timed one by one between two
// events, on three sets of buffers that take turns, so that nothing is left in the cache; where a
// set is smaller than that, the cache is flushed before each launch.
#ifndef TKC_TOOLS_BENCH_H
#define TKC_TOOLS_BENCH_H

#include "expect.h"
#include "gpu_state.h"
#include "on_device.h"
#include "sweep.h"

enum { BENCH_SETS = 3 };

typedef struct bench_settings {
    common_settings common;
    expect_settings x;
    kernel_settings k;
    const char *device, *sizes, *warps, *json, *plot;
    uint64_t launches;
    bool no_check;
} bench_settings;

typedef struct figure { // microseconds of one launch; median 0: not measured
    double median, low, high, least;
} figure;

typedef struct bench_point {
    size_t number;           // of the sweep
    const char *wrong;       // what keeps it from having figures; or NULL
    uint64_t bytes, largest; // moved: each tensor read once, written once; the largest tensor
    uint64_t ceiling_bytes;  // what the ceilings copied, or read
    double products;         // operations in matrix products; 0: none
    bool flushed;
    figure time, copy, read;
    const char *checked; // "cpu", "file"; NULL: not
    double absolute;     // greatest error of an output
    gpu_state state;     // while launches ran
} bench_point;

typedef struct bench {
    tool *t;
    const bench_settings *s;
    sweep sizes;
    bool sweeps_warps;  // as the first axis
    session lib;        // its kernel: the point's
    tkc_kernel *reader; // std/reduce.tk's: what only reads
    tkc_program *reader_program;
    tkc_device *device, *cpu;
    tkc_gpu gpu;
    uint32_t driver;
    gpu_monitor monitor;
    tkc_event **event; // two a launch
    size_t nevent;
    void *flush[2]; // a buffer of the cache's size, and where it is copied
    bench_point *point;
    size_t npoint;
} bench;

// ---- Time (bench_time.c)
// Something that is put on the device's default stream; `set`: whose turn it is.
typedef tkc_status (*bench_launch)(void *user, unsigned set, tkc_report **report);
bool bench_time_open(bench *b); // events, and what the cache is flushed with
void bench_time_close(bench *b);
// Whether sets of so many bytes leave something in the cache.
bool bench_flushes(const bench *b, uint64_t bytes);
// False after a message. state: of the GPU meanwhile; may be NULL.
bool bench_time(bench *b, bench_launch launch, void *user, bool flush, figure *out,
                gpu_state *state);
figure figure_of(double *sample, size_t n);        // sorts; n > 0
double per_second(double amount, const figure *f); // amount a second; 0 where not measured

// ---- Ceilings (bench_ceiling.c): the better one of what was found before and is found now
// like: the largest tensor on the device.
bool bench_ceilings(bench *b, bench_point *p, const void *like);

// ---- A point (bench_point.c): its arguments, launches, outputs. False: nothing more can be done.
bool bench_run_point(bench *b, size_t number, bench_point *p);

// ---- What is shown (bench_report.c, bench_plot.c)
double bench_ceiling(const bench_point *p, bool read); // GB/s of a copy, or of a read
void bench_show_head(const bench *b);
void bench_show_point(const bench *b, const bench_point *p);
void bench_show_end(const bench *b);
void bench_write_json(const bench *b, const char *path);
void bench_write_plot(const bench *b, const char *path);

#endif
