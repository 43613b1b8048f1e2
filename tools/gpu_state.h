// SPDX-License-Identifier: Apache-2.0
// A GPU's clocks, power and temperature, from NVIDIA's management library where it is installed.
#ifndef TKC_TOOLS_GPU_STATE_H
#define TKC_TOOLS_GPU_STATE_H

#include "tool.h"

typedef struct gpu_state {
    bool known;
    unsigned sm_mhz, memory_mhz, celsius;
    double watts;
    unsigned long long limits; // what holds the clocks back, as bits of the library's
} gpu_state;

typedef struct gpu_monitor {
    void *library, *device; // NULL: there is none
    int (*clock)(void *device, int kind, unsigned *mhz);
    int (*power)(void *device, unsigned *milliwatts);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*limits)(void *device, unsigned long long *bits);
    const char *why; // there is none
} gpu_monitor;

// bus: the GPU's place, as tkc_gpu tells it.
void gpu_monitor_open(gpu_monitor *m, const char *bus);
gpu_state gpu_monitor_read(const gpu_monitor *m);
void gpu_monitor_close(gpu_monitor *m);
// "power, temperature", "" where nothing holds the clocks back.
const char *gpu_limits_text(tool *t, unsigned long long limits);

#endif
