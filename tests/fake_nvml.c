// SPDX-License-Identifier: Apache-2.0
// A library of NVIDIA's for managing GPUs that knows the fake driver's first one and tells always
// the same of it. Built as a libnvidia-ml.so.1 beside the simulated driver.
#include <string.h>

#define API(name, ...)                                                                             \
    __attribute__((visibility("default"))) int name(__VA_ARGS__);                                  \
    int name(__VA_ARGS__)

static int started;

API(nvmlInit_v2, void) {
    started = 1;
    return 0;
}

API(nvmlShutdown, void) {
    started = 0;
    return 0;
}

API(nvmlDeviceGetHandleByPciBusId_v2, const char *bus, void **device) {
    *device = &started;
    return started && strcmp(bus, "0000:01:00.0") == 0 ? 0 : 6;
}

API(nvmlDeviceGetClockInfo, void *device, int kind, unsigned *mhz) {
    *mhz = kind == 1 ? 1980 : 3201;
    return device == &started ? 0 : 2;
}

API(nvmlDeviceGetPowerUsage, void *device, unsigned *milliwatts) {
    *milliwatts = 512500;
    return device == &started ? 0 : 2;
}

API(nvmlDeviceGetTemperature, void *device, int sensor, unsigned *celsius) {
    *celsius = 41;
    return device == &started && sensor == 0 ? 0 : 2;
}

API(nvmlDeviceGetCurrentClocksThrottleReasons, void *device, unsigned long long *reasons) {
    *reasons = 0x4 | 0x20;
    return device == &started ? 0 : 2;
}
