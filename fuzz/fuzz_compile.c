// SPDX-License-Identifier: Apache-2.0
// Any bytes go through the whole compiler: parsed, checked, and each kernel bound, instantiated,
// built, verified, passed and planned. An internal error or an error without a place is a fault.
#include "tests/whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static whole w;
    if (!w.context && !whole_open(&w)) {
        abort();
    }
    if (!whole_compile(&w, (const char *)data, size)) {
        (void)fprintf(stderr, "%s\n", w.fault);
        abort();
    }
    return 0;
}
