// SPDX-License-Identifier: Apache-2.0
// Reads a zlib stream (RFC 1950, 1951), for data of tests that are kept compressed.
#ifndef TK_TESTS_INFLATE_H
#define TK_TESTS_INFLATE_H

#include "lang/base.h"

// What the stream holds, *size bytes; NULL: it is none. Its checksum is compared.
const unsigned char *inflate(tk_arena *arena, const unsigned char *in, size_t n, size_t *size);

#endif
