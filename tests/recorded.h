// SPDX-License-Identifier: Apache-2.0
// Probes that ran on a GPU, read from tests/data (its README.md says how they are written), and run
// on the simulator.
#ifndef TK_TESTS_RECORDED_H
#define TK_TESTS_RECORDED_H

#include "sim/sim.h"

enum { RECORDED_PARAMS = 32, RECORDED_MAP = 24 };

typedef enum recorded_kind { RECORDED_IN, RECORDED_OUT, RECORDED_U32, RECORDED_MAP_ } recorded_kind;

typedef struct recorded_bytes {
    const unsigned char *at;
    size_t n;
} recorded_bytes;

typedef struct recorded_param {
    recorded_kind kind;
    uint64_t value; // an offset or the number
} recorded_param;

typedef struct recorded {
    const char *name, *entry;
    recorded_bytes text, inst; // the module's text; its "$$" stands for inst
    uint32_t launch[7];        // grid, block, shared memory
    uint32_t nparam, nmap;
    recorded_param param[RECORDED_PARAMS];
    bool map_of_out;
    int64_t map[RECORDED_MAP]; // type, rank, dims, strides, box, steps, swizzle, fill, base
    recorded_bytes in, out;    // out.at is NULL where nothing is recorded
    size_t scratch;            // bytes after `in`, zero
} recorded;

typedef struct recorded_file {
    TK_VEC(recorded) probes;
    TK_VEC(recorded_bytes) texts, datas;
} recorded_file;

// Fails the test where the file cannot be read.
const recorded_file *recorded_read(tk_arena *arena, const char *path);
// A file as a text.
const char *recorded_text(tk_arena *arena, const char *path);
// The module's text, with an end.
const char *recorded_ptx(tk_arena *arena, const recorded *r);
typedef struct recorded_result {
    const unsigned char *out; // NULL: `why`: the reader refuses it, or there is a fault
    const char *why;
    const tk_sim_program *program;
    tk_sim_result run;
} recorded_result;

// What the simulator gives.
recorded_result recorded_run(tk_arena *arena, const recorded *r, uint64_t seed);

#endif
