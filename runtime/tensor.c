// SPDX-License-Identifier: Apache-2.0
// Element types, tensors and status texts of the public interface, and what holds of a tensor.
#include "runtime/tensor.h"

#include "lang/dtype.h"

#include <stdio.h>
#include <string.h>

// The public enum repeats the list of lang/dtypes.def; this fails to compile where they differ.
#define TK_DTYPE(ID, NAME, SIZE, CLASS, CTYPE)                                                     \
    _Static_assert((int)TKC_##ID == (int)TK_##ID, "tkc_dtype follows lang/dtypes.def");
#include "lang/dtypes.def"

static bool known(tkc_dtype t) { return (unsigned)t < TK_DTYPE_COUNT; }

const char *tkc_dtype_name(tkc_dtype t) { return known(t) ? tk_dtype_name((tk_dtype)t) : NULL; }

size_t tkc_dtype_size(tkc_dtype t) { return known(t) ? tk_dtype_size((tk_dtype)t) : 0; }

bool tkc_dtype_from_name(const char *name, tkc_dtype *out) {
    tk_dtype t;
    if (!name || !out || !tk_dtype_from_name(name, strlen(name), &t)) {
        return false;
    }
    *out = (tkc_dtype)t;
    return true;
}

tkc_tensor tkc_tensor_make(void *data, tkc_dtype dtype, uint32_t rank, const int64_t *dim) {
    tkc_tensor t;
    memset(&t, 0, sizeof t);
    t.data = data;
    t.dtype = dtype;
    t.rank = rank;
    int64_t stride = 1;
    for (uint32_t i = rank < TKC_MAX_RANK ? rank : TKC_MAX_RANK; i-- > 0;) {
        t.dim[i] = dim[i];
        t.stride[i] = stride;
        // A tensor without elements, or with too many, has no meaningful strides; the launch looks
        // at the sizes.
        int64_t next;
        stride = __builtin_mul_overflow(stride, dim[i] > 0 ? dim[i] : 1, &next) ? 0 : next;
    }
    return t;
}

const char *tkc_status_text(tkc_status s) {
    switch (s) {
    case TKC_OK:
        return "success";
    case TKC_ERROR_SOURCE:
        return "errors in the program";
    case TKC_ERROR_LAUNCH:
        return "the launch was refused";
    case TKC_ERROR_CHECK:
        return "a check failed while the kernel ran";
    case TKC_ERROR_ARGUMENT:
        return "a wrong argument to the library";
    case TKC_ERROR_MEMORY:
        return "out of memory";
    case TKC_ERROR_IO:
        return "a file could not be read";
    case TKC_ERROR_DEVICE:
        return "no such device, or it failed";
    case TKC_ERROR_INTERNAL:
        return "internal error of tkc";
    }
    return "unknown status";
}

bool tensor_elems(const tkc_tensor *t, int64_t *n) {
    int64_t total = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] == 0) {
            *n = 0;
            return true;
        }
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        if (__builtin_mul_overflow(total, t->dim[i], &total)) {
            return false;
        }
    }
    *n = total;
    return true;
}

// The last element's address must be reachable without overflow of 64-bit byte offsets.
static bool reaches_far(const tkc_tensor *t, int64_t size) {
    int64_t span = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t bytes, far;
        if (t->stride[i] == INT64_MIN ||
            __builtin_mul_overflow(t->stride[i] < 0 ? -t->stride[i] : t->stride[i], size, &bytes) ||
            __builtin_mul_overflow(bytes, t->dim[i] - 1, &far) ||
            __builtin_add_overflow(span, far, &span)) {
            return true;
        }
    }
    return false;
}

const char *tensor_fault(const tkc_tensor *t, const char *name, char *text, size_t room) {
    int64_t n;
    size_t size = tkc_dtype_size(t->dtype);
    if (!tensor_elems(t, &n)) {
        snprintf(text, room, "'%s' has more than 2^63 - 1 elements", name);
        return "too-many-elements";
    }
    if (n == 0) {
        return NULL;
    }
    if (!t->data) {
        snprintf(text, room, "'%s' has %lld elements but no memory", name, (long long)n);
        return "null-data";
    }
    if ((uintptr_t)t->data % size != 0) {
        snprintf(text, room, "the memory of '%s' is not aligned to its %s elements (%zu bytes)",
                 name, tkc_dtype_name(t->dtype), size);
        return "misaligned";
    }
    if (reaches_far(t, (int64_t)size)) {
        snprintf(text, room, "the strides of '%s' reach beyond 2^63 bytes", name);
        return "stride-overflow";
    }
    return NULL;
}

// ---- Facts

static bool is_aligned(const tkc_tensor *t) {
    uint64_t size = tkc_dtype_size(t->dtype);
    bool aligned = (uintptr_t)t->data % 16 == 0;
    for (uint32_t i = 0; i + 1 < t->rank; i++) {
        aligned = aligned && (uint64_t)t->stride[i] * size % 16 == 0;
    }
    return aligned;
}

// No element is far from the first in either direction. The strides were checked at the launch:
// nothing here is beyond i64.
static bool is_near(const tkc_tensor *t) {
    int64_t far = 0, n = 0;
    if (!tensor_elems(t, &n) || n == 0) {
        return n == 0; // nothing is inside, so that no offset is used
    }
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t stride = t->stride[i] < 0 ? -t->stride[i] : t->stride[i];
        far += t->dim[i] > 1 ? (t->dim[i] - 1) * stride : 0;
    }
    return far <= TK_NEAR;
}

// Where a dimension has one element its stride says nothing.
static bool has_map(const tkc_tensor *t) {
    bool map = t->rank <= TK_MAP_RANK;
    for (uint32_t i = 0; i < t->rank && map; i++) {
        const int64_t most = (TK_MAP_STRIDE - 1) / (int64_t)tkc_dtype_size(t->dtype);
        const bool stepped = i + 1 < t->rank && t->dim[i] > 1;
        map = t->dim[i] > 0 && (!stepped || (t->stride[i] > 0 && t->stride[i] <= most));
    }
    return map;
}

// Some promises are of use beside others only, and not made without them.
tk_tensor_facts tensor_facts(const tkc_tensor *t) {
    uint32_t last = t->rank ? t->rank - 1 : 0;
    tk_tensor_facts f = is_near(t) ? TK_FACT_NEAR : 0;
    if (t->rank == 0 || t->stride[last] != 1) {
        return f;
    }
    f |= TK_FACT_UNIT;
    if (is_aligned(t)) {
        f |= TK_FACT_ALIGNED;
        f |= (uint64_t)t->dim[last] * tkc_dtype_size(t->dtype) % 16 == 0 ? TK_FACT_WHOLE : 0;
        f |= has_map(t) ? TK_FACT_MAP : 0;
    }
    return f;
}
