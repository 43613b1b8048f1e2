// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library as we use it: five functions and their numbers, declared here and
// found at run time.
#include "gpu_state.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

static bool find(void *library, const char *name, void *function, size_t size) {
    void *p = dlsym(library, name);
    memcpy(function, &p, size);
    return p != NULL;
}

static bool find_all(gpu_monitor *m) {
    void *l = m->library;
    return find(l, "nvmlDeviceGetClockInfo", &m->clock, sizeof m->clock) &&
           find(l, "nvmlDeviceGetPowerUsage", &m->power, sizeof m->power) &&
           find(l, "nvmlDeviceGetTemperature", &m->temperature, sizeof m->temperature) &&
           find(l, "nvmlDeviceGetCurrentClocksThrottleReasons", &m->limits, sizeof m->limits);
}

void gpu_monitor_open(gpu_monitor *m, const char *bus) {
    memset(m, 0, sizeof *m);
    int (*start)(void), (*by_bus)(const char *, void **);
    m->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!m->library) {
        m->why = LIBRARY " is not found";
        return;
    }
    if (!find_all(m) || !find(m->library, "nvmlInit_v2", &start, sizeof start) ||
        !find(m->library, "nvmlDeviceGetHandleByPciBusId_v2", &by_bus, sizeof by_bus)) {
        m->why = LIBRARY " is too old";
    } else if (start() != 0) {
        m->why = LIBRARY " does not start";
    } else if (by_bus(bus, &m->device) != 0) {
        m->device = NULL;
        m->why = LIBRARY " does not know this GPU";
    }
}

gpu_state gpu_monitor_read(const gpu_monitor *m) {
    gpu_state s = {.known = false};
    unsigned milliwatts = 0;
    if (!m->device) {
        return s;
    }
    s.known = m->clock(m->device, CLOCK_SM, &s.sm_mhz) == 0 &&
              m->clock(m->device, CLOCK_MEMORY, &s.memory_mhz) == 0 &&
              m->power(m->device, &milliwatts) == 0 &&
              m->temperature(m->device, SENSOR_GPU, &s.celsius) == 0;
    s.watts = milliwatts / 1e3;
    if (m->limits(m->device, &s.limits) != 0) {
        s.limits = 0;
    }
    return s;
}

void gpu_monitor_close(gpu_monitor *m) {
    int (*stop)(void);
    if (m->library && m->device && find(m->library, "nvmlShutdown", &stop, sizeof stop)) {
        stop();
    }
    if (m->library) {
        dlclose(m->library);
    }
    memset(m, 0, sizeof *m);
}

const char *gpu_limits_text(tool *t, unsigned long long limits) {
    static const struct {
        unsigned long long bit;
        const char *what;
    } known[] = {{0x2, "clocks that were set"},
                 {0x4, "power"},
                 {0x8, "the board"},
                 {0x20, "temperature"},
                 {0x40, "temperature of the board"},
                 {0x80, "power brake of the board"}};
    const char *text = "";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (limits & known[i].bit) {
            text = tool_format(t, "%s%s%s", text, *text ? ", " : "", known[i].what);
        }
    }
    return text;
}
