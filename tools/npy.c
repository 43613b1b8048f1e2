// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files.
#include "npy.h"
#include "io.h"
#include "number.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "elements are copied as they lie in memory");

enum { MAX_HEADER = 1 << 20 };

typedef struct npy_type {
    char code[4];
    tkc_dtype dtype;
} npy_type;

static const npy_type types[] = {
    {"b1", TKC_BOOL}, {"i1", TKC_I8},  {"i2", TKC_I16},  {"i4", TKC_I32},    {"i8", TKC_I64},
    {"u1", TKC_U8},   {"u2", TKC_U16}, {"u4", TKC_U32},  {"u8", TKC_U64},    {"f2", TKC_F16},
    {"f4", TKC_F32},  {"f8", TKC_F64}, {"V2", TKC_BF16}, {"V1", TKC_F8E4M3},
};

bool tensor_size(uint32_t rank, const int64_t *dim, size_t elem, size_t *count, size_t *bytes) {
    size_t n = 1;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < rank; i++) {
        empty = empty || dim[i] == 0;
        fits = dim[i] >= 0 && !__builtin_mul_overflow(n, (size_t)dim[i], &n) && fits;
    }
    *count = empty ? 0 : n;
    *bytes = 0;
    return empty || (fits && n <= PTRDIFF_MAX && !__builtin_mul_overflow(n, elem, bytes) &&
                     *bytes <= PTRDIFF_MAX);
}

// ---- Reading

typedef struct reader {
    tool *t;
    const char *path;
    FILE *f;
    const char *at, *end; // of the header's text
    bool has_descr, has_order, has_shape;
    bool fortran, swap;
    npy *out;
} reader;

static bool refuse(reader *r, const char *why) {
    tool_error(r->t, CODE_ENVIRONMENT, NULL, "'%s': %s", r->path, why);
    return false;
}

static bool cut_short(reader *r) {
    if (ferror(r->f)) {
        return refuse(r, tool_format(r->t, "reading: %s", strerror(errno ? errno : EIO)));
    }
    return refuse(r, "the file ends too early");
}

static void skip_space(reader *r) {
    while (r->at < r->end && strchr(" \t\n\r", *r->at) && *r->at) {
        r->at++;
    }
}

static bool token(reader *r, const char *s) {
    skip_space(r);
    size_t n = strlen(s);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, s, n) != 0) {
        return false;
    }
    r->at += n;
    return true;
}

// A string without escapes.
static bool string(reader *r, const char **at, size_t *n) {
    skip_space(r);
    if (r->at >= r->end || (*r->at != '\'' && *r->at != '"')) {
        return false;
    }
    char quote = *r->at++;
    const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (!close || memchr(r->at, '\\', (size_t)(close - r->at))) {
        return false;
    }
    *at = r->at;
    *n = (size_t)(close - r->at);
    r->at = close + 1;
    return true;
}

static bool bad_type(reader *r, const char *s, size_t n) {
    return refuse(
        r, tool_format(r->t,
                       "element type '%.*s' is none of tkc's: bool i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 "
                       "f8, V2 (bf16), V1 (f8)",
                       n > 40 ? 40 : (int)n, s));
}

static bool read_descr(reader *r) {
    const char *s;
    size_t n;
    if (!string(r, &s, &n)) {
        return refuse(r, "the element type is no plain one (structured types cannot be used)");
    }
    size_t skip = n == 3 && s[0] && strchr("<>|=", s[0]) ? 1 : 0;
    for (size_t i = 0; n - skip == 2 && i < sizeof types / sizeof *types; i++) {
        if (memcmp(types[i].code, s + skip, 2) != 0) {
            continue;
        }
        r->out->tensor.dtype = types[i].dtype;
        r->out->some_f8 = types[i].code[0] == 'V' && types[i].code[1] == '1';
        r->swap = s[0] == '>' && types[i].code[1] != '1';
        // NumPy does not say what the bytes of a void are.
        return r->swap && types[i].code[0] == 'V' ? bad_type(r, s, n) : true;
    }
    return bad_type(r, s, n);
}

static bool read_shape(reader *r) {
    tkc_tensor *x = &r->out->tensor;
    if (!token(r, "(")) {
        return refuse(r, "the header is malformed: 'shape' is no tuple");
    }
    while (!token(r, ")")) {
        const char *from = r->at;
        while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
            r->at++;
        }
        integer v;
        int64_t dim;
        if (!integer_parse(from, (size_t)(r->at - from), &v) || !integer_i64(v, &dim)) {
            return refuse(r, "the header is malformed: a size in 'shape' is no number that fits");
        }
        token(r, "L"); // Python 2
        if (x->rank == TKC_MAX_RANK) {
            return refuse(r, tool_format(r->t, "more than %d dimensions", TKC_MAX_RANK));
        }
        x->dim[x->rank++] = dim;
        if (!token(r, ",")) {
            if (!token(r, ")")) {
                return refuse(r, "the header is malformed: 'shape' does not end");
            }
            break;
        }
    }
    return true;
}

static bool read_entry(reader *r) {
    const char *key;
    size_t n;
    if (!string(r, &key, &n) || !token(r, ":")) {
        return refuse(r, "the header is malformed");
    }
    bool *seen = n == 5 && memcmp(key, "descr", 5) == 0             ? &r->has_descr
                 : n == 5 && memcmp(key, "shape", 5) == 0           ? &r->has_shape
                 : n == 13 && memcmp(key, "fortran_order", 13) == 0 ? &r->has_order
                                                                    : NULL;
    if (!seen || *seen) {
        return refuse(r, "the header is malformed: an unknown or repeated key");
    }
    *seen = true;
    if (seen == &r->has_descr) {
        return read_descr(r);
    }
    if (seen == &r->has_shape) {
        return read_shape(r);
    }
    r->fortran = token(r, "True");
    return r->fortran || token(r, "False") || refuse(r, "the header is malformed: 'fortran_order'");
}

static bool read_header_text(reader *r) {
    if (!token(r, "{")) {
        return refuse(r, "the header is malformed");
    }
    while (!token(r, "}")) {
        if (!read_entry(r)) {
            return false;
        }
        if (!token(r, ",")) {
            if (!token(r, "}")) {
                return refuse(r, "the header is malformed");
            }
            break;
        }
    }
    skip_space(r);
    if (r->at != r->end || !r->has_descr || !r->has_order || !r->has_shape) {
        return refuse(r, "the header is malformed or incomplete");
    }
    return true;
}

static bool read_header(reader *r) {
    unsigned char head[12];
    errno = 0;
    if (fread(head, 1, 8, r->f) != 8) {
        return ferror(r->f) ? cut_short(r) : refuse(r, "this is no .npy file");
    }
    if (memcmp(head, "\x93NUMPY", 6) != 0) {
        return refuse(r, "this is no .npy file");
    }
    if (head[6] < 1 || head[6] > 3) {
        return refuse(
            r, tool_format(r->t, "version %d.%d of the .npy format is unknown", head[6], head[7]));
    }
    size_t wide = head[6] == 1 ? 2 : 4, size = 0;
    if (fread(head + 8, 1, wide, r->f) != wide) {
        return cut_short(r);
    }
    for (size_t i = wide; i-- > 0;) {
        size = size << 8 | head[8 + i];
    }
    if (size > MAX_HEADER) {
        return refuse(r, "the header is malformed: longer than 1 MiB");
    }
    char *text = tool_alloc(r->t, size + 1, 1);
    if (fread(text, 1, size, r->f) != size) {
        return cut_short(r);
    }
    r->at = text;
    r->end = text + size;
    return read_header_text(r);
}

static void set_strides(tkc_tensor *x, bool fortran) {
    size_t count, bytes;
    int64_t step = tensor_size(x->rank, x->dim, 1, &count, &bytes) && count ? 1 : 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t d = fortran ? i : x->rank - 1 - i;
        x->stride[d] = step;
        step *= step ? x->dim[d] : 1;
    }
}

static void swap_bytes(unsigned char *p, size_t count, size_t elem) {
    for (size_t i = 0; i < count; i++, p += elem) {
        for (size_t a = 0, b = elem - 1; a < b; a++, b--) {
            unsigned char c = p[a];
            p[a] = p[b];
            p[b] = c;
        }
    }
}

// Before memory is taken for them: does the file hold that many bytes?
static bool right_length(reader *r, size_t bytes) {
    struct stat s;
    long at = ftell(r->f);
    if (fstat(fileno(r->f), &s) != 0 || !S_ISREG(s.st_mode) || at < 0) {
        return true;
    }
    size_t have = s.st_size < at ? 0 : (size_t)(s.st_size - at);
    if (have == bytes) {
        return true;
    }
    return refuse(r, tool_format(r->t, "the shape takes %zu bytes, the file has %zu", bytes, have));
}

static bool read_data(reader *r, size_t bytes, bool data) {
    npy *out = r->out;
    size_t elem = tkc_dtype_size(out->tensor.dtype);
    if (!right_length(r, bytes)) {
        return false;
    }
    if (!data) {
        return true;
    }
    out->tensor.data = tool_array(r->t, bytes, tool_format(r->t, "'%s'", r->path));
    if (!out->tensor.data) {
        return false;
    }
    errno = 0;
    if (fread(out->tensor.data, 1, bytes, r->f) != bytes) {
        return cut_short(r);
    }
    if (fgetc(r->f) != EOF) {
        return refuse(r, "more bytes follow the array");
    }
    if (r->swap) {
        swap_bytes(out->tensor.data, out->count, elem);
    }
    for (size_t i = 0; out->tensor.dtype == TKC_BOOL && i < bytes; i++) {
        unsigned char *p = out->tensor.data;
        p[i] = p[i] != 0;
    }
    return true;
}

bool npy_read(tool *t, const char *path, bool data, npy *out) {
    memset(out, 0, sizeof *out);
    reader r = {.t = t, .path = path, .out = out};
    errno = 0;
    r.f = fopen(path, "rb");
    if (!r.f) {
        return refuse(&r, strerror(errno ? errno : EIO));
    }
    size_t bytes = 0;
    bool ok = read_header(&r);
    if (ok && !tensor_size(out->tensor.rank, out->tensor.dim, tkc_dtype_size(out->tensor.dtype),
                           &out->count, &bytes)) {
        ok = refuse(&r, "the header is malformed: the shape is too large");
    }
    if (ok) {
        set_strides(&out->tensor, r.fortran);
        ok = read_data(&r, bytes, data);
    }
    fclose(r.f);
    return ok;
}

// ---- Writing

static const char *descr_of(tkc_dtype t) {
    switch (t) {
    case TKC_BOOL:
        return "|b1";
    case TKC_I8:
        return "|i1";
    case TKC_I16:
        return "<i2";
    case TKC_I32:
        return "<i4";
    case TKC_I64:
        return "<i8";
    case TKC_U8:
        return "|u1";
    case TKC_U16:
        return "<u2";
    case TKC_U32:
        return "<u4";
    case TKC_U64:
        return "<u8";
    case TKC_F8E4M3:
    case TKC_F8E5M2:
        return "|V1";
    case TKC_F16:
        return "<f2";
    case TKC_BF16:
        return "<V2";
    case TKC_F32:
        return "<f4";
    case TKC_F64:
        return "<f8";
    }
    return "";
}

static bool row_major(const tkc_tensor *x) {
    int64_t step = 1;
    for (uint32_t d = x->rank; d-- > 0;) {
        if (x->dim[d] > 1 && x->stride[d] != step) {
            return false;
        }
        step *= x->dim[d] ? x->dim[d] : 1;
    }
    return true;
}

bool npy_write(tool *t, const char *path, const tkc_tensor *x) {
    size_t count, bytes;
    bool fits = tensor_size(x->rank, x->dim, tkc_dtype_size(x->dtype), &count, &bytes);
    char shape[TKC_MAX_RANK * 24 + 3] = "(";
    for (uint32_t d = 0; d < x->rank; d++) {
        size_t n = strlen(shape);
        snprintf(shape + n, sizeof shape - n, "%lld%s", (long long)x->dim[d],
                 x->rank == 1      ? ","
                 : d + 1 < x->rank ? ", "
                                   : "");
    }
    char header[512];
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s), }",
                     descr_of(x->dtype), count == 0 || row_major(x) ? "False" : "True", shape);
    // Spaces up to a newline that ends at a multiple of 64, where the data starts.
    size_t size = ((size_t)n + 1 + 10 + 63) / 64 * 64 - 10;
    memset(header + n, ' ', size - (size_t)n);
    header[size - 1] = '\n';
    unsigned char head[10] = "\x93NUMPY\x01";
    head[8] = (unsigned char)(size & 255);
    head[9] = (unsigned char)(size >> 8);
    file_output out;
    if (!fits || !file_create(t, path, &out)) {
        return false;
    }
    fwrite(head, 1, sizeof head, out.stream);
    fwrite(header, 1, size, out.stream);
    if (bytes) {
        fwrite(x->data, 1, bytes, out.stream);
    }
    return file_finish(t, &out);
}
