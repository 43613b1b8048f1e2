// SPDX-License-Identifier: Apache-2.0
// The fake GPU driver's other side: what tests set and see. The library that tests/fake_cuda.c
// makes exports the driver's functions and `struct fake_cuda *fake_cuda(void)`.
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_DEVICES = 4, FAKE_LOG = 1 << 16, FAKE_PARAMS = 32768, FAKE_MAPS = 16 };

typedef struct fake_map { // arguments of cuTensorMapEncodeTiled
    int type;
    unsigned rank;
    const void *address;
    uint64_t dim[5], stride[4];
    uint32_t box[5], step[5];
    int interleave, swizzle, l2, fill;
} fake_map;

typedef struct fake_cuda {
    // Set by tests.
    int devices;
    int major[FAKE_DEVICES], minor[FAKE_DEVICES];
    long fail_at; // the n-th call from now on fails (1 is the next); 0: none
    int fail_code;
    const char *fail_name;                  // each call of this function fails
    int pending;                            // an error that shows at the next synchronisation
    bool capturing;                         // what may not be done during a stream's capture fails
    const char *jit_log;                    // what the assembler says
    int shared_static;                      // of every function
    int stream_device;                      // of every stream but the default one
    void (*on_launch)(struct fake_cuda *f); // what the kernel does; NULL: nothing
    void *(*on_load)(const void *image, int *error); // its code; NULL: what it is does not matter
    void (*on_unload)(void *code);
    // Copies a kernel's parameters, given one by one, to where the kernel has them; returns the
    // size of all. NULL: they stand in one block, the last is of 4 bytes, and a NULL ends the list.
    size_t (*on_params)(void *code, const char *kernel, void **params, unsigned char *to);
    const char *name; // of each GPU; NULL: "Fake GPU 0", ...
    double launch_ms; // that a launch takes by the clock of events; 0: 0.01
    // Makes a tensor map's 128 bytes from its arguments; NULL: they are the same where those are.
    int (*on_map)(const struct fake_map *m, void *map);

    // Seen by tests.
    long calls;
    char log[FAKE_LOG]; // names of the calls, with a space after each
    size_t log_size;
    long modules, memories, retains, events; // live
    double clock;                            // of events, in milliseconds
    long pushed;                             // pushes less pops, of all threads
    struct {
        char kernel[64];
        int device;
        unsigned grid[3], block[3], shared;
        void *stream;
        unsigned char params[FAKE_PARAMS];
        size_t params_size;
        long count;
        void *code;          // what on_load made
    } launch;                // the last
    char image[256];         // begin of the last that was loaded
    int dynamic_max;         // last set
    fake_map map[FAKE_MAPS]; // the last that were asked for: number n is at n % FAKE_MAPS
    long maps;
} fake_cuda_state;

// Within the library: the state, and block i of what is allocated; false past the end.
fake_cuda_state *fake_cuda(void);
bool fake_cuda_memory(size_t i, void **at, size_t *bytes);

#endif
