// SPDX-License-Identifier: Apache-2.0
// Numbers on the command line.
#include "number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int digit_of(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

bool integer_parse(const char *s, size_t n, integer *out) {
    const char *end = s + n;
    bool negative = s < end && *s == '-';
    if (s < end && (*s == '-' || *s == '+')) {
        s++;
    }
    int base = 10;
    if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'b')) {
        base = s[1] == 'x' ? 16 : 2;
        s += 2;
    }
    uint64_t v = 0;
    bool digit = false; // the last one was
    for (; s < end; s++) {
        if (*s == '_' && digit) {
            digit = false;
            continue;
        }
        int d = digit_of(*s);
        if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v)) {
            return false;
        }
        digit = true;
    }
    if (!digit || (negative && v > (uint64_t)INT64_MAX + 1)) {
        return false;
    }
    *out = (integer){negative && v > 0, v};
    return true;
}

bool integer_i64(integer v, int64_t *out) {
    if (v.negative) {
        *out = v.magnitude > INT64_MAX ? INT64_MIN : -(int64_t)v.magnitude;
        return true;
    }
    *out = (int64_t)v.magnitude;
    return v.magnitude <= INT64_MAX;
}

double integer_real(integer v) { return v.negative ? -(double)v.magnitude : (double)v.magnitude; }

bool real_parse(const char *s, size_t n, double *out) {
    char text[128];
    if (n == 0 || n >= sizeof text || strchr(" \t\n\v\f\r", s[0])) {
        return false;
    }
    memcpy(text, s, n);
    text[n] = 0;
    char *end = NULL;
    errno = 0;
    double v = strtod(text, &end);
    if (*end || end == text || strchr(text, '(') || (errno == ERANGE && isinf(v))) {
        return false;
    }
    *out = v;
    return true;
}
