// SPDX-License-Identifier: Apache-2.0
// Numbers on the command line.
#ifndef TKC_TOOLS_NUMBER_H
#define TKC_TOOLS_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Any of i64 and u64.
typedef struct integer {
    bool negative; // then magnitude > 0
    uint64_t magnitude;
} integer;

// Decimal, 0x, 0b, `_` between digits, a sign before. False where the n bytes are no such thing or
// too large.
bool integer_parse(const char *s, size_t n, integer *out);
bool integer_i64(integer v, int64_t *out); // false: does not fit
double integer_real(integer v);
// As strtod, all of the n bytes: also inf, nan.
bool real_parse(const char *s, size_t n, double *out);

#endif
