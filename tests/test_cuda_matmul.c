// SPDX-License-Identifier: Apache-2.0
// tkc_matmul: the host's and, through the fake cuBLASLt, a GPU's are the same for every type,
// order, epilogue; what is refused; what is kept; what happens when calls and allocations fail.
#include "tests/budget.h"
#include "tests/fake_cublas.h"
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "kernel zero(y: out f32[N]) grid (i in N) { y[i] = 0.0; }";

static fake_cublas_state *blas(void) {
    void *library = dlopen(FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    void *symbol = dlsym(library, "fake_cublas");
    fake_cublas_state *(*get)(void);
    memcpy(&get, &symbol, sizeof get);
    setenv("TKC_CUBLASLT", FAKE_CUBLAS, 1);
    return get();
}

// ---- Operands: small whole numbers, so that every sum is exact

enum { ROOM = 4096 };

typedef struct operand {
    _Alignas(256) unsigned char bytes[ROOM];
    tkc_tensor t;
} operand;

static int64_t number(uint64_t *seed) {
    *seed = *seed * 6364136223846793005U + 1442695040888963407U;
    return (int64_t)(*seed >> 33) % 5 - 2;
}

// Rank 2 or, for a batch > 0, 3. by_rows: the last stride is 1; `more` elements between lines.
static void fill(operand *o, tkc_dtype t, int64_t batch, int64_t rows, int64_t columns,
                 bool by_rows, int64_t more, uint64_t seed) {
    const int64_t dim[] = {batch, rows, columns};
    uint32_t skip = batch ? 0 : 1;
    memset(o->bytes, 0x55, ROOM);
    o->t = tkc_tensor_make(o->bytes, t, 3 - skip, dim + skip);
    int64_t lead = (by_rows ? columns : rows) + more;
    o->t.stride[1 - skip] = by_rows ? lead : 1;
    o->t.stride[2 - skip] = by_rows ? 1 : lead;
    if (batch) {
        o->t.stride[0] = lead * (by_rows ? rows : columns) + 3 * more;
    }
    for (int64_t i = 0; i < (int64_t)(ROOM / tkc_dtype_size(t)); i++) {
        double x = (double)number(&seed);
        tkc_convert(t, o->bytes + i * (int64_t)tkc_dtype_size(t), TKC_F64, &x, 1);
    }
}

typedef struct product {
    tkc_dtype a, b, d, c, bias; // c, bias of TKC_BOOL: none
    bool rows_a, rows_b, rows_d;
    int64_t m, n, k, batch, more;
    double alpha, beta;
    tkc_activation activation;
    bool in_place, scaled, one_b;
} product;

typedef struct operands {
    operand a, b, c, d, bias;
    tkc_matmul_options options;
    float scale_a, scale_b, scale_d;
} operands;

static void make(operands *o, const product *p) {
    memset(o, 0, sizeof *o);
    fill(&o->a, p->a, p->batch, p->m, p->k, p->rows_a, p->more, 1);
    fill(&o->b, p->b, p->one_b ? 0 : p->batch, p->k, p->n, p->rows_b, p->more, 2);
    fill(&o->d, p->d, p->batch, p->m, p->n, p->rows_d, p->more, 3);
    if (p->c != TKC_BOOL) {
        fill(&o->c, p->c, p->batch, p->m, p->n, p->rows_d, 2 * p->more, 4);
    }
    if (p->bias != TKC_BOOL) {
        fill(&o->bias, p->bias, 0, 1, p->n, true, 0, 5);
        o->bias.t.rank = 1;
        o->bias.t.dim[0] = p->n;
        o->bias.t.stride[0] = 1;
        o->options.bias = &o->bias.t;
    }
    o->options.size = sizeof o->options;
    o->options.activation = p->activation;
    if (p->scaled) {
        bool f8 = p->d == TKC_F8E4M3 || p->d == TKC_F8E5M2;
        o->scale_a = 2;
        o->scale_b = 0.5F;
        o->scale_d = 4;
        o->options.scale_a = &o->scale_a;
        o->options.scale_b = &o->scale_b;
        o->options.scale_d = f8 ? &o->scale_d : NULL;
    }
}

static tkc_status multiply(tkc_device *device, operands *o, const product *p, tkc_report **r) {
    const tkc_tensor *c = p->in_place ? &o->d.t : p->c != TKC_BOOL ? &o->c.t : NULL;
    tkc_report_destroy(*r);
    return tkc_matmul(device, p->alpha, &o->a.t, &o->b.t, p->beta, c, &o->d.t, &o->options, r);
}

static double at(const operand *o, size_t i) {
    double x;
    size_t size = tkc_dtype_size(o->t.dtype);
    tkc_convert(TKC_F64, &x, o->t.dtype, o->bytes + i * size, 1);
    return x;
}

// On both devices: the same, also of what lies around d.
static void expect_same(gpu_env *e, tkc_device *cpu, const product *p, const char *what) {
    static operands host, gpu;
    fake_cublas_state *f = blas();
    make(&host, p);
    make(&gpu, p);
    tkc_status s = multiply(cpu, &host, p, &e->report);
    cr_assert_eq(s, TKC_OK, "%s: %s", what, gpu_said(e));
    s = multiply(e->device, &gpu, p, &e->report);
    cr_assert_eq(s, TKC_OK, "%s: %s %s", what, gpu_said(e), f->complaint);
    size_t n = ROOM / tkc_dtype_size(p->d);
    for (size_t i = 0; i < n; i++) {
        double x = at(&host.d, i), y = at(&gpu.d, i);
        double room = p->activation == TKC_ACTIVATION_GELU ? 1e-2 * fabs(x) + 1e-6 : 0;
        cr_assert(fabs(x - y) <= room || (isnan(x) && isnan(y)), "%s: element %zu: %g and %g", what,
                  i, x, y);
    }
}

static const product plain = {.a = TKC_F32,
                              .b = TKC_F32,
                              .d = TKC_F32,
                              .rows_a = true,
                              .rows_b = true,
                              .rows_d = true,
                              .m = 5,
                              .n = 7,
                              .k = 3,
                              .alpha = 1};

Test(cuda_matmul, every_order) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    tkc_device *cpu;
    blas();
    cr_assert_eq(tkc_device_open(e.context, "cpu", &cpu, NULL), TKC_OK);
    for (int i = 0; i < 64; i++) {
        product p = plain;
        p.rows_a = i & 1;
        p.rows_b = i & 2;
        p.rows_d = i & 4;
        p.batch = i & 8 ? 3 : 0;
        p.more = i & 16 ? 2 : 0;
        p.c = i & 32 ? TKC_F32 : TKC_BOOL;
        p.beta = i & 32 ? -2 : 0;
        p.alpha = 3;
        p.one_b = p.batch && p.more;
        expect_same(&e, cpu, &p, "order");
    }
    tkc_device_close(cpu);
    gpu_close(&e);
    cr_expect_eq(blas()->live, 0);
}

Test(cuda_matmul, every_shape) {
    static const int64_t shapes[][3] = {{1, 1, 1},  {1, 9, 4},   {9, 1, 4},   {1, 1, 9},
                                        {33, 2, 2}, {2, 130, 2}, {3, 3, 150}, {31, 17, 16}};
    gpu_env e = gpu_open(FAKE_CUDA, text);
    tkc_device *cpu;
    blas();
    cr_assert_eq(tkc_device_open(e.context, "cpu", &cpu, NULL), TKC_OK);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int j = 0; j < 8; j++) {
            product p = plain;
            p.m = shapes[i][0];
            p.n = shapes[i][1];
            p.k = shapes[i][2];
            p.rows_a = j & 1;
            p.rows_b = j & 2;
            p.rows_d = j & 4;
            expect_same(&e, cpu, &p, "shape");
        }
    }
    tkc_device_close(cpu);
    gpu_close(&e);
}

Test(cuda_matmul, every_type) {
    static const tkc_dtype all[] = {TKC_F64,    TKC_F32,    TKC_F16, TKC_BF16,
                                    TKC_F8E4M3, TKC_F8E5M2, TKC_I8,  TKC_I32};
    enum { N = sizeof all / sizeof *all };
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    tkc_device *cpu;
    int taken = 0;
    cr_assert_eq(tkc_device_open(e.context, "cpu", &cpu, NULL), TKC_OK);
    for (int i = 0; i < N * N * N * 2; i++) {
        static operands o;
        product p = plain;
        p.a = all[i % N];
        p.b = all[i / N % N];
        p.d = all[i / N / N % N];
        bool f8 = p.a == TKC_F8E4M3 || p.a == TKC_F8E5M2;
        bool f8_d = p.d == TKC_F8E4M3 || p.d == TKC_F8E5M2;
        if (i / N / N / N) {
            p.c = f8_d ? TKC_F16 : p.d;
            p.beta = 1;
            p.bias = p.a == TKC_I8          ? TKC_BOOL
                     : f8_d                 ? TKC_F16
                     : f8 && p.d == TKC_F32 ? TKC_BF16
                                            : p.d;
            p.activation = p.a == TKC_I8 ? TKC_ACTIVATION_NONE : TKC_ACTIVATION_RELU;
            p.scaled = f8;
        }
        make(&o, &p);
        if (multiply(cpu, &o, &p, &e.report) == TKC_OK) {
            taken++;
            expect_same(&e, cpu, &p, tkc_dtype_name(p.d));
        } else {
            cr_expect(strstr(gpu_said(&e), "there is no product of"), "%s", gpu_said(&e));
            cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_LAUNCH);
        }
        cr_expect_str_eq(f->complaint, "");
    }
    cr_expect_eq(taken, 2 * (1 + 1 + 2 + 2 + 1 + 4 + 5 + 5));
    tkc_device_close(cpu);
    gpu_close(&e);
}

Test(cuda_matmul, every_epilogue) {
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    tkc_device *cpu;
    static const int numbers[] = {1, 4, 2, 6, 32, 36};
    cr_assert_eq(tkc_device_open(e.context, "cpu", &cpu, NULL), TKC_OK);
    for (int i = 0; i < 24; i++) {
        product p = plain;
        p.bias = i & 1 ? TKC_F32 : TKC_BOOL;
        p.activation = (tkc_activation)(i / 2 % 3);
        p.batch = i >= 12 ? 2 : 0;
        p.in_place = i / 6 % 2;
        p.beta = p.in_place ? 2 : 0;
        p.alpha = 0.5;
        expect_same(&e, cpu, &p, "epilogue");
        cr_expect_eq(f->epilogue, numbers[i % 6]);
        cr_expect_eq(f->read_c, p.in_place);
    }
    tkc_device_close(cpu);
    gpu_close(&e);
}

Test(cuda_matmul, numbers_of_a_product) {
    tkc_context *context;
    tkc_device *cpu;
    const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, bias[] = {-100, 1};
    const int8_t ia[] = {100, 100}, ib[] = {100, 100};
    float d[4];
    int32_t id = 0;
    const int64_t dim[] = {2, 2}, row[] = {1, 2}, column[] = {2, 1}, single[] = {1, 1};
    tkc_tensor ta = tkc_tensor_make((void *)(uintptr_t)a, TKC_F32, 2, dim);
    tkc_tensor tb = tkc_tensor_make((void *)(uintptr_t)b, TKC_F32, 2, dim);
    tkc_tensor td = tkc_tensor_make(d, TKC_F32, 2, dim);
    tkc_tensor tbias = tkc_tensor_make((void *)(uintptr_t)bias, TKC_F32, 1, dim);
    cr_assert_eq(tkc_context_create(NULL, &context), TKC_OK);
    cr_assert_eq(tkc_device_open(context, "cpu", &cpu, NULL), TKC_OK);
    tkc_matmul_options o = {.size = sizeof o, .bias = &tbias, .activation = TKC_ACTIVATION_RELU};
    cr_expect_eq(tkc_matmul(cpu, 1, &ta, &tb, 0, NULL, &td, NULL, NULL), TKC_OK);
    cr_expect(d[0] == 19 && d[1] == 22 && d[2] == 43 && d[3] == 50);
    cr_expect_eq(tkc_matmul(cpu, 2, &ta, &tb, -1, &td, &td, &o, NULL), TKC_OK);
    cr_expect(d[0] == 0 && d[1] == 23 && d[2] == 0 && d[3] == 51, "%g %g %g %g", d[0], d[1], d[2],
              d[3]);
    // What is not read may be anything, and i32 wraps.
    d[0] = d[1] = d[2] = d[3] = NAN;
    cr_expect_eq(tkc_matmul(cpu, 1, &ta, &tb, 0, &td, &td, NULL, NULL), TKC_OK);
    cr_expect(d[0] == 19 && d[3] == 50);
    ta = tkc_tensor_make((void *)(uintptr_t)ia, TKC_I8, 2, row);
    tb = tkc_tensor_make((void *)(uintptr_t)ib, TKC_I8, 2, column);
    td = tkc_tensor_make(&id, TKC_I32, 2, single);
    cr_expect_eq(tkc_matmul(cpu, 200000, &ta, &tb, 0, NULL, &td, NULL, NULL), TKC_OK);
    cr_expect_eq(id, (int32_t)(4000000000 - 4294967296));
    tkc_device_close(cpu);
    tkc_context_destroy(context);
}

// ---- What is refused

typedef struct refusal {
    const char *words;
    void (*spoil)(operands *o, product *p);
} refusal;

static void other_k(operands *o, product *p) { (void)p, o->b.t.dim[0] = 4; }
static void other_d(operands *o, product *p) { (void)p, o->d.t.dim[1] = 6; }
static void other_c(operands *o, product *p) { (void)p, o->c.t.dim[0] = 4; }
static void other_bias(operands *o, product *p) { (void)p, o->bias.t.dim[0] = 4; }
static void no_k(operands *o, product *p) { (void)p, o->a.t.dim[1] = o->b.t.dim[0] = 0; }
static void negative(operands *o, product *p) { (void)p, o->a.t.dim[0] = -1; }
static void huge(operands *o, product *p) { (void)p, o->a.t.dim[0] = INT64_C(1) << 31; }
static void vector(operands *o, product *p) { (void)p, o->a.t.rank = 1; }
static void no_data(operands *o, product *p) { (void)p, o->b.t.data = NULL; }
static void odd_data(operands *o, product *p) { (void)p, o->b.t.data = o->b.bytes + 1; }
static void types(operands *o, product *p) { (void)p, o->a.t.dtype = TKC_F64; }
static void type_c(operands *o, product *p) { (void)p, o->c.t.dtype = TKC_I32; }
static void no_c(operands *o, product *p) { (void)o, p->c = TKC_BOOL; }
static void strided(operands *o, product *p) { (void)p, o->a.t.stride[1] = 2; }
static void backward(operands *o, product *p) { (void)p, o->a.t.stride[0] = -3; }
static void broadcast(operands *o, product *p) { (void)p, o->b.t.stride[0] = 0; }
static void order_c(operands *o, product *p) {
    (void)p, o->c.t.stride[0] = 1, o->c.t.stride[1] = 5;
}
static void order_bias(operands *o, product *p) {
    p->c = TKC_BOOL, p->beta = 0, o->d.t.stride[0] = 1, o->d.t.stride[1] = 5;
}
static void wide_bias(operands *o, product *p) { (void)p, o->bias.t.stride[0] = 2; }
static void on_a(operands *o, product *p) { (void)p, o->d.t.data = o->a.bytes + 8; }
static void on_c(operands *o, product *p) { (void)p, o->c.t.data = o->d.bytes + 4; }
static void on_bias(operands *o, product *p) { (void)p, o->bias.t.data = o->d.bytes; }
static void other_scale(operands *o, product *p) { (void)p, o->options.scale_a = &o->scale_a; }
static void big_alpha(operands *o, product *p) { (void)o, p->alpha = 1e39; }
static void batches(operands *o, product *p) {
    (void)p;
    o->a.t.rank = 4;
    o->a.t.dim[0] = o->a.t.dim[1] = 1;
    o->a.t.dim[2] = 5;
    o->a.t.dim[3] = 3;
}

static const refusal refusals[] = {
    {"K, the last of 'a' and the last but one of 'b', differs", other_k},
    {"'d' is [5, 6]; the product of 'a' [5, 3] and 'b' [3, 7] is [5, 7]", other_d},
    {"'c' is [4, 7] and 'd' [5, 7]", other_c},
    {"the bias is [4] and the rows of 'd' have 7 elements", other_bias},
    {"K, the size that is summed over, is 0", no_k},
    {"dimension 0 of 'a' is -1", negative},
    {"dimension 0 of 'a' is 2147483648", huge},
    {"'a' has 1 dimensions; 2 to 8 are taken", vector},
    {"'b' has 21 elements but no memory", no_data},
    {"the memory of 'b' is not aligned", odd_data},
    {"there is no product of f64 and f32 into f32", types},
    {"takes no 'c' of i32 with a bias of f32", type_c},
    {"beta is not 0, and there is no 'c'", no_c},
    {"the strides of 'a' are 3 and 2: one must be 1", strided},
    {"the strides of 'a' are -3 and 1", backward},
    {"the strides of 'b' are 0 and 1", broadcast},
    {"the strides of 'c' are 1 and 5: one must be 1 and the other at least the size of that axis, "
     "in the order of 'd'",
     order_c},
    {"with a bias the last stride of 'd' must be 1", order_bias},
    {"the elements of the bias do not lie one after another", wide_bias},
    {"'d' is written and shares memory with 'a'", on_a},
    {"'d' is written and shares memory with 'c'", on_c},
    {"'d' is written and shares memory with 'bias'", on_bias},
    {"scales are for tensors of f8e4m3 and f8e5m2", other_scale},
    {"alpha, 1e+39, does not fit f32", big_alpha},
    {"'a' is [1, 1, 5, 3] and 'd' [5, 7]: the axes before the last two are not the same", batches},
};

Test(cuda_matmul, what_is_refused) {
    static operands o;
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    tkc_device *cpu;
    cr_assert_eq(tkc_device_open(e.context, "cpu", &cpu, NULL), TKC_OK);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        for (int gpu = 0; gpu < 2; gpu++) {
            product p = plain;
            p.c = p.bias = TKC_F32;
            p.beta = 1;
            make(&o, &p);
            refusals[i].spoil(&o, &p);
            tkc_status s = multiply(gpu ? e.device : cpu, &o, &p, &e.report);
            cr_expect_eq(s, TKC_ERROR_LAUNCH, "%s: %d", refusals[i].words, (int)s);
            cr_expect(strstr(gpu_said(&e), refusals[i].words), "wanted: %s\ngot: %s",
                      refusals[i].words, gpu_said(&e));
        }
    }
    product p = plain;
    make(&o, &p);
    o.d.t.dim[0] = o.a.t.dim[0] = 0; // nothing to do
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_OK);
    cr_expect_eq(f->calls, 0);
    tkc_device_close(cpu);
    gpu_close(&e);
}

Test(cuda_matmul, batches_and_whole_numbers) {
    static operands o;
    gpu_env e = gpu_open(FAKE_CUDA, text);
    blas();
    product p = plain;
    p.batch = 3;
    make(&o, &p);
    o.d.t.stride[0] = 0;
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "elements of 'd' share memory with one another"));
    make(&o, &p);
    o.a.t.stride[0] = -15;
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "the matrices of 'a' are not one step apart"));
    p = plain;
    p.a = p.b = TKC_I8;
    p.d = TKC_I32;
    make(&o, &p);
    p.alpha = 0.5;
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "alpha is 0.5; that of a product of i8 is an integer"));
    p.alpha = 1;
    o.options.tf32 = true;
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "tf32 is for products of f32"));
    o.options.tf32 = false;
    o.options.activation = (tkc_activation)3;
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_matmul(e.device, 1, NULL, &o.b.t, 0, NULL, &o.d.t, NULL, NULL),
                 TKC_ERROR_ARGUMENT);
    gpu_close(&e);
}

Test(cuda_matmul, what_cublas_has_not) {
    static operands o;
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    product p = plain;
    p.a = p.b = TKC_F8E4M3;
    p.d = TKC_BF16;
    f->needs_tn = true;
    make(&o, &p);
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "cuBLASLt has no algorithm on Fake GPU 0 for f8e4m3 [5, 3] by "
                                   "rows times f8e4m3 [3, 7] by rows into bf16 by rows"),
              "%s", gpu_said(&e));
    cr_expect(strstr(gpu_said(&e), "K the axis of stride 1 in both"));
    p.rows_b = false;
    make(&o, &p);
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_OK, "%s", gpu_said(&e));
    gpu_close(&e);
    cr_expect_eq(f->live, 0);
}

// ---- The library

Test(cuda_matmul, no_library) {
    static operands o;
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    product p = plain;
    make(&o, &p);
    static const char *const paths[] = {"", "/nonexistent/libcublasLt.so.13", FAKE_CUDA};
    for (int i = 0; i < 3; i++) {
        setenv("TKC_CUBLASLT", paths[i], 1);
        cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_DEVICE);
        cr_expect(strstr(gpu_said(&e), i < 2 ? "which is not found (libcublasLt.so.13"
                                             : "the cuBLASLt that is found has no cublasLtCreate"),
                  "%s", gpu_said(&e));
        cr_expect(strstr(gpu_said(&e), "TKC_CUBLASLT"));
    }
    setenv("TKC_CUBLASLT", FAKE_CUBLAS, 1); // a failure is not remembered
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_OK, "%s", gpu_said(&e));
    cr_expect_eq(f->products, 1);
    gpu_close(&e);
}

static gpu_env *the_env;

static void needs_context(const char *name) {
    cr_expect_gt(the_env->fake->pushed, 0, "%s without a context", name);
}

Test(cuda_matmul, what_is_kept) {
    static operands o;
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    product p = plain;
    make(&o, &p);
    the_env = &e;
    f->on_call = needs_context;
    f->workspace = 1000;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(multiply(e.device, &o, &p, &e.report), TKC_OK, "%s", f->complaint);
    }
    cr_expect_eq(f->choices, 1); // once for each shape
    cr_expect_eq(e.fake->memories, 1);
    void *first = f->space;
    o.options.stream = (void *)0x1000;
    cr_assert_eq(multiply(e.device, &o, &p, &e.report), TKC_OK);
    cr_expect_eq(f->stream, (void *)0x1000);
    cr_expect(f->space != first); // each stream has its own
    cr_expect_eq(e.fake->memories, 2);
    o.a.t.data = o.a.bytes + 4; // another alignment
    cr_assert_eq(multiply(e.device, &o, &p, &e.report), TKC_OK, "%s", f->complaint);
    cr_expect_eq(f->choices, 2);
    o.options.tf32 = true;
    cr_assert_eq(multiply(e.device, &o, &p, &e.report), TKC_OK);
    cr_expect_eq(f->compute, 77);
    cr_expect_eq(f->choices, 3);
    e.fake->capturing = true; // all is ready
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_OK, "%s", gpu_said(&e));
    o.options.stream = (void *)0x2000;
    cr_expect_eq(multiply(e.device, &o, &p, &e.report), TKC_ERROR_LAUNCH);
    cr_expect(strstr(gpu_said(&e), "the stream is being captured"), "%s", gpu_said(&e));
    e.fake->capturing = false;
    f->on_call = NULL;
    cr_expect_eq(f->live, 1); // the handle
    gpu_close(&e);
    cr_expect_eq(f->live, 0);
    cr_expect_str_eq(f->complaint, "");
}

// More shapes than the table has room for.
Test(cuda_matmul, many_shapes) {
    static operands o;
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    for (int i = 0; i < 1200; i++) {
        product p = plain;
        p.m = 1 + i % 20;
        p.n = 1 + i / 20 % 20;
        p.k = 1 + i / 400;
        make(&o, &p);
        cr_assert_eq(multiply(e.device, &o, &p, &e.report), TKC_OK, "%s", f->complaint);
    }
    gpu_close(&e);
}

typedef struct thread_arg {
    tkc_device *device;
    int number;
    bool ok;
} thread_arg;

static void *many(void *arg) {
    thread_arg *t = arg;
    operands *o = NULL;
    cr_assert_eq(posix_memalign((void **)&o, 256, sizeof *o), 0);
    t->ok = true;
    for (int i = 0; i < 50; i++) {
        product p = plain;
        p.m = 1 + (i + t->number) % 7;
        make(o, &p);
        o->options.stream = t->number % 2 ? (void *)2 : NULL;
        t->ok = t->ok && tkc_matmul(t->device, 1, &o->a.t, &o->b.t, 0, NULL, &o->d.t, &o->options,
                                    NULL) == TKC_OK;
    }
    free(o);
    return NULL;
}

Test(cuda_matmul, threads) {
    enum { N = 8 };
    gpu_env e = gpu_open(FAKE_CUDA, text);
    fake_cublas_state *f = blas();
    f->workspace = 64;
    thread_arg t[N];
    pthread_t thread[N];
    for (int i = 0; i < N; i++) {
        t[i] = (thread_arg){e.device, i, false};
        cr_assert_eq(pthread_create(&thread[i], NULL, many, &t[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        cr_expect(t[i].ok);
    }
    cr_expect_eq(f->products, 50 * N);
    cr_expect_eq(e.fake->memories, 1 + N / 2); // the stream that each thread has is its own
    gpu_close(&e);
    cr_expect_eq(f->live, 0);
}

Test(cuda_matmul, forked) {
    static operands o;
    gpu_env e = gpu_open(FAKE_CUDA, text);
    blas();
    product p = plain;
    make(&o, &p);
    cr_assert_eq(multiply(e.device, &o, &p, &e.report), TKC_OK);
    pid_t child = fork();
    if (child == 0) {
        bool ok = multiply(e.device, &o, &p, &e.report) == TKC_ERROR_DEVICE &&
                  strstr(gpu_said(&e), "forked");
        tkc_device_close(e.device);
        _exit(ok ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gpu_close(&e);
}

// ---- Failures

static tkc_status use(gpu_env *e) {
    static operands o;
    product p = plain;
    p.c = p.bias = TKC_F32;
    p.beta = 1;
    p.batch = 2;
    tkc_status s = tkc_device_open(e->context, "cuda:1", &e->device, &e->report);
    make(&o, &p);
    s = s ? s : multiply(e->device, &o, &p, &e->report);
    o.options.stream = (void *)0x1000;
    s = s ? s : multiply(e->device, &o, &p, &e->report);
    tkc_device_close(e->device);
    e->device = NULL;
    return s;
}

static gpu_env closed(void) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, text);
    return e;
}

Test(cuda_matmul, every_call_fails_once) {
    fake_cublas_state *f = blas();
    gpu_env e = closed();
    f->workspace = 64;
    e.fake->calls = f->calls = 0;
    cr_assert_eq(use(&e), TKC_OK, "%s %s", gpu_said(&e), f->complaint);
    long calls[] = {f->calls, e.fake->calls};
    cr_assert_gt(calls[0], 30);
    for (int driver = 0; driver < 2; driver++) {
        for (long n = 1; n <= calls[driver]; n++) {
            *(driver ? &e.fake->fail_at : &f->fail_at) = n;
            tkc_status s = use(&e);
            e.fake->fail_at = f->fail_at = 0;
            if (s != TKC_OK) {
                cr_expect_eq(s, TKC_ERROR_DEVICE, "call %ld: %s", n, gpu_said(&e));
                cr_expect(strstr(gpu_said(&e), driver ? "CUDA_ERROR_UNKNOWN (some words)"
                                                      : "CUBLAS_STATUS_INTERNAL_ERROR"),
                          "call %ld: %s", n, gpu_said(&e));
            }
            cr_expect_eq(f->live, 0, "call %ld leaves %ld", n, f->live);
            gpu_no_leaks(e.fake);
            gpu_close(&e);
            e = closed();
            cr_expect_eq(use(&e), TKC_OK, "after call %ld: %s", n, gpu_said(&e));
        }
    }
    gpu_close(&e);
}

static tkc_status whole_life(budget *b, const char *device) {
    static operands o;
    gpu_env e = gpu_config(FAKE_CUDA);
    product p = plain;
    make(&o, &p);
    if (device) {
        o.a.t.stride[1] = 2; // refused: with a message
    }
    tkc_config_allocator(e.config, budget_take, budget_give, b);
    tkc_config_threads(e.config, 1);
    tkc_status s = tkc_context_create(e.config, &e.context);
    s = s ? s : tkc_device_open(e.context, device ? device : "cuda", &e.device, &e.report);
    s = s ? s : multiply(e.device, &o, &p, &e.report);
    gpu_close(&e);
    return s;
}

static void sweep(const char *device, tkc_status want) {
    budget b = {-1, 0, 0};
    cr_assert_eq(whole_life(&b, device), want);
    cr_assert_eq(b.live, 0);
    for (long n = 0, total = b.made; n < total; n++) {
        b = (budget){n, 0, 0};
        tkc_status s = whole_life(&b, device);
        cr_assert(s == TKC_ERROR_MEMORY || s == want, "allocation %ld: %s", n, tkc_status_text(s));
        cr_assert_eq(b.live, 0, "allocation %ld leaks %ld", n, b.live);
    }
}

Test(cuda_matmul, every_allocation_fails_once) {
    blas()->workspace = 64;
    sweep(NULL, TKC_OK);
    sweep("cuda", TKC_ERROR_LAUNCH);
    sweep("cpu", TKC_ERROR_LAUNCH);
    setenv("TKC_CUBLASLT", "", 1);
    sweep(NULL, TKC_ERROR_DEVICE);
}
