// SPDX-License-Identifier: Apache-2.0
// The executor against the scalar numerics: every element-wise op on every element type, with
// contiguous, broadcast, permuted, flipped and uniform operands; all casts.
#include <criterion/criterion.h>

#include "test_exec_run.h"

enum { ROWS = 3, COLS = 150, CELLS = ROWS * COLS };

// How a [ROWS, COLS] operand comes from what is loaded of parameter k.
enum { PLAIN, BY_COLUMN, BY_ROW, PERMUTED, FLIPPED, SCALAR, SHAPES };

static uint64_t state;

static uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// Random bits, small integers, and the values at the ends and edges of the type.
static tk_const random_element(tk_dtype t) {
    const uint64_t r = random_bits();
    const uint64_t width = tk_dtype_bits(t);
    tk_const c = {t, width == 64 ? r >> 3 ^ r << 40 : (r >> 8) & (((uint64_t)1 << width) - 1)};
    if (t == TK_BOOL) {
        c.bits &= 1;
    }
    switch (r % 8) {
    case 0:
    case 1:
        return tk_const_i64(t, (int64_t)(r >> 32 & 15) - 5);
    case 2:
        return r & 64 ? tk_const_least(t) : tk_const_greatest(t);
    case 3:
        return tk_dtype_is_float(t)
                   ? tk_const_f64(t, (double)((int64_t)(r >> 40) - (1 << 23)) * 0x1p-20)
                   : tk_const_i64(t, (int64_t)(r >> 32 & 127) - 64);
    default:
        return c;
    }
}

// Appends the operand %oK of `shape` to the text; its parameter %pK has CELLS elements.
static size_t operand_text(char *out, size_t room, int k, int shape, const char *type) {
    switch (shape) {
    case BY_COLUMN:
        return (size_t)snprintf(out, room,
                                "%%l%d = load %%p%d[%%z +: %d] : %s[%d]\n"
                                "%%o%d = broadcast %%l%d : %s[%d, %d]\n",
                                k, k, COLS, type, COLS, k, k, type, ROWS, COLS);
    case BY_ROW:
        return (size_t)snprintf(out, room,
                                "%%l%d = load %%p%d[%%z +: %d] : %s[%d]\n"
                                "%%m%d = reshape %%l%d : %s[%d, 1]\n"
                                "%%o%d = broadcast %%m%d : %s[%d, %d]\n",
                                k, k, ROWS, type, ROWS, k, k, type, ROWS, k, k, type, ROWS, COLS);
    case PERMUTED:
        return (size_t)snprintf(out, room,
                                "%%l%d = load %%p%d[%%z +: %d] : %s[%d]\n"
                                "%%m%d = reshape %%l%d : %s[%d, %d]\n"
                                "%%o%d = permute %%m%d perm=[1, 0] : %s[%d, %d]\n",
                                k, k, CELLS, type, CELLS, k, k, type, COLS, ROWS, k, k, type, ROWS,
                                COLS);
    case FLIPPED:
        return (size_t)snprintf(out, room,
                                "%%l%d = load %%p%d[%%z +: %d] : %s[%d]\n"
                                "%%m%d = reshape %%l%d : %s[%d, %d]\n"
                                "%%o%d = flip %%m%d axis=1 : %s[%d, %d]\n",
                                k, k, CELLS, type, CELLS, k, k, type, ROWS, COLS, k, k, type, ROWS,
                                COLS);
    case SCALAR:
        return (size_t)snprintf(out, room,
                                "%%l%d = load %%p%d[%%z] : %s\n"
                                "%%o%d = broadcast %%l%d : %s[%d, %d]\n",
                                k, k, type, k, k, type, ROWS, COLS);
    default:
        return (size_t)snprintf(out, room,
                                "%%l%d = load %%p%d[%%z +: %d] : %s[%d]\n"
                                "%%o%d = reshape %%l%d : %s[%d, %d]\n",
                                k, k, CELLS, type, CELLS, k, k, type, ROWS, COLS);
    }
}

static int element_of(int shape, int i, int j) {
    switch (shape) {
    case BY_COLUMN:
        return j;
    case BY_ROW:
        return i;
    case PERMUTED:
        return j * ROWS + i;
    case FLIPPED:
        return i * COLS + COLS - 1 - j;
    case SCALAR:
        return 0;
    default:
        return i * COLS + j;
    }
}

static bool same(tk_const a, tk_const b) {
    if (tk_dtype_is_float(a.dtype) && tk_const_is_nan(a) && tk_const_is_nan(b)) {
        return true; // which NaN is not fixed
    }
    return tk_const_same(a, b);
}

// Runs "%r = LINE : type[ROWS, COLS]" and leaves the result in out.
static void run(const char *name, unsigned n, const tk_dtype *type, const int *shape, tk_dtype to,
                unsigned char *const *data, unsigned char *out) {
    static xrun x;
    static char text[8192];
    size_t at = (size_t)snprintf(text, sizeof text, "module tile\n\nkernel @k(");
    for (unsigned k = 0; k < n; k++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%%p%u: in %s[?], ", k,
                               tk_dtype_name(type[k]));
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "%%y: out %s[?]) {\n%%z = const 0 : i32\n",
                           tk_dtype_name(to));
    for (unsigned k = 0; k < n; k++) {
        at += operand_text(text + at, sizeof text - at, (int)k, shape[k], tk_dtype_name(type[k]));
    }
    (void)snprintf(text + at, sizeof text - at,
                   "%%r = %s %%o0%s%s : %s[%d, %d]\n%%f = reshape %%r : %s[%d]\n"
                   "store %%y[%%z +: %d] = %%f\nreturn\n}\n",
                   name, n > 1 ? ", %o1" : "", n > 2 ? ", %o2" : "", tk_dtype_name(to), ROWS, COLS,
                   tk_dtype_name(to), CELLS, CELLS);
    cr_assert(xrun_open(&x, text));
    for (unsigned k = 0; k < n; k++) {
        xrun_vector(&x, k, data[k], CELLS);
    }
    xrun_vector(&x, n, out, CELLS);
    cr_assert(xrun_go(&x) == TK_EXEC_OK);
    xrun_close(&x);
}

static void check_op(tk_numop op, tk_dtype t, int variant) {
    static _Alignas(8) unsigned char data[3][CELLS * 8], out[CELLS * 8];
    unsigned char *const p[3] = {data[0], data[1], data[2]};
    const unsigned n = tk_numop_arity(op);
    tk_dtype type[3] = {t, t, t};
    int shape[3];
    type[0] = op == TK_NUM_SELECT ? TK_BOOL : t;
    for (unsigned k = 0; k < 3; k++) {
        shape[k] = (variant + 2 * (int)k) % SHAPES;
        for (int i = 0; i < CELLS; i++) {
            tk_const_store(random_element(type[k]), p[k] + (size_t)i * tk_dtype_size(type[k]));
        }
    }
    const tk_dtype to = tk_numop_result(op, t);
    run(tk_numop_name(op), n, type, shape, to, p, out);
    for (int e = 0; e < CELLS; e++) {
        tk_const arg[3];
        for (unsigned k = 0; k < n; k++) {
            const int from = element_of(shape[k], e / COLS, e % COLS);
            arg[k] = tk_const_load(type[k], p[k] + (size_t)from * tk_dtype_size(type[k]));
        }
        const tk_const want = tk_num_eval(op, t, arg);
        const tk_const got = tk_const_load(to, out + (size_t)e * tk_dtype_size(to));
        cr_assert(same(want, got), "%s of %s, variant %d, element %d: %llx, not %llx",
                  tk_numop_name(op), tk_dtype_name(t), variant, e, (unsigned long long)got.bits,
                  (unsigned long long)want.bits);
    }
}

Test(exec_elem, every_op_on_every_type) {
    state = 0x9e3779b97f4a7c15U;
    for (int op = 0; op < TK_NUM_COUNT; op++) {
        for (int t = 0; t < TK_DTYPE_COUNT; t++) {
            for (int v = 0; v < SHAPES && tk_numop_takes((tk_numop)op, (tk_dtype)t); v++) {
                check_op((tk_numop)op, (tk_dtype)t, v);
            }
        }
    }
}

Test(exec_elem, every_cast) {
    static _Alignas(8) unsigned char data[CELLS * 8], out[CELLS * 8];
    unsigned char *const p[1] = {data};
    state = 88172645463325252U;
    for (int f = 0; f < TK_DTYPE_COUNT; f++) {
        for (int t = 0; t < TK_DTYPE_COUNT; t++) {
            const tk_dtype from = (tk_dtype)f, to = (tk_dtype)t;
            const int shape = (f + t) % SHAPES;
            for (int i = 0; i < CELLS; i++) {
                tk_const_store(random_element(from), data + (size_t)i * tk_dtype_size(from));
            }
            run("cast", 1, &from, &shape, to, p, out);
            for (int e = 0; e < CELLS; e++) {
                const int at = element_of(shape, e / COLS, e % COLS);
                const tk_const x = tk_const_load(from, data + (size_t)at * tk_dtype_size(from));
                const tk_const got = tk_const_load(to, out + (size_t)e * tk_dtype_size(to));
                cr_assert(same(tk_cast(x, to), got), "cast %s to %s of %llx", tk_dtype_name(from),
                          tk_dtype_name(to), (unsigned long long)x.bits);
            }
        }
    }
}

// What folding gives is what the executor gives.
Test(exec_elem, fold) {
    static xrun x;
    cr_assert(xrun_open(&x,
                        "module tile\n\nkernel @k() {\n%a = const 3 : i32\n%b = const 5 : i32[4]\n"
                        "%c = broadcast %a : i32[4]\n%d = add %b, %c : i32[4]\n"
                        "%e = cast %d : f32[4]\n%f = exp %e : f32[4]\n%g = bitcast %e : u32[4]\n"
                        "%h = reduce max %g : u32\n%i = reduce sum %g : u32\nreturn\n}\n"));
    const tk_func *f = x.module->funcs.at[0];
    tk_const three = tk_const_i64(TK_I32, 3), five = tk_const_i64(TK_I32, 5), r;
    tk_const eight = tk_const_f64(TK_F32, 8), both[2] = {five, three};
    const tk_op *op = f->body->first->next->next;
    cr_expect(tk_exec_fold(f, op, &three, &r) && tk_const_same(r, three)); // broadcast
    op = op->next;
    cr_expect(tk_exec_fold(f, op, both, &r) && tk_const_same(r, tk_const_i64(TK_I32, 8))); // add
    op = op->next;
    cr_expect(tk_exec_fold(f, op, &r, &r) && tk_const_same(r, eight)); // cast
    op = op->next;
    cr_expect(!tk_exec_fold(f, op, &eight, &r)); // exp has an error bound
    op = op->next;
    cr_expect(tk_exec_fold(f, op, &eight, &r) && r.dtype == TK_U32 && r.bits == 0x41000000);
    op = op->next;
    cr_expect(tk_exec_fold(f, op, &r, &r) && r.bits == 0x41000000); // max
    op = op->next;
    cr_expect(!tk_exec_fold(f, op, &r, &r)); // sum
    xrun_close(&x);
}
