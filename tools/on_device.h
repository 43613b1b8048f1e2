// SPDX-License-Identifier: Apache-2.0
// Arrays of the command line in a device's memory.
#ifndef TKC_TOOLS_ON_DEVICE_H
#define TKC_TOOLS_ON_DEVICE_H

#include "program.h"

// The arguments as the device takes them: on cpu they are a's own, else copies.
typedef struct device_arguments {
    tkc_device *device;
    const arguments *a;
    tkc_arg *arg;
    bool copied;
} device_arguments;

// False after a message; device_arguments_free is due either way.
bool device_arguments_make(tool *t, tkc_device *device, const arguments *a, device_arguments *out);
// Waits for the device, then brings outputs back to a's arrays. False after a message.
bool device_arguments_finish(tool *t, device_arguments *d);
void device_arguments_free(device_arguments *d);

#endif
