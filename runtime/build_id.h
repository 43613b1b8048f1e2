// SPDX-License-Identifier: Apache-2.0
// What tells one build of the library from another.
#ifndef TKC_RUNTIME_BUILD_ID_H
#define TKC_RUNTIME_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Bytes that live as long as the library, or NULL where the linker made none.
const void *build_id(size_t *size);

#endif
