// SPDX-License-Identifier: Apache-2.0
// Matrix products on a GPU by NVIDIA's cuBLASLt (runtime/cublas_abi.h), found at run time.
//
// A context has one library. A device has, from its first product on, a handle, the algorithms
// chosen for shapes, and memory to work in for each stream: two products at once never share it.
// Nothing is allocated in an arena, and nothing reported, while a lock is held or the device's
// context is current: what went wrong is kept in lt_fault until then.
#include "ptx/toolkit.h"
#include "runtime/cublas_abi.h"
#include "runtime/cuda_driver.h"
#include "runtime/matmul.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS = 256, MAX_ALIGNMENT = 256 };
static const size_t WORKSPACE = (size_t)32 << 20;

// ---- The library

static void *open_file(void) {
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    const char *asked = getenv("TKC_CUBLASLT");
    if (asked) {
        return *asked ? tk_toolkit_open_file(asked) : NULL;
    }
    return tk_toolkit_open(names, 2);
}

// The name of the first function that it has not, or NULL.
static const char *load_functions(lt_library *l) {
#define F(member, symbol, parameters) {#symbol, offsetof(lt_library, member)},
    static const struct {
        const char *symbol;
        size_t at;
    } functions[] = {LT_FUNCTIONS(F){"cublasLtGetStatusName", offsetof(lt_library, status_name)}};
#undef F
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *p = dlsym(l->handle, functions[i].symbol);
        if (!p) {
            return functions[i].symbol;
        }
        memcpy((char *)l + functions[i].at, &p, sizeof p);
    }
    return NULL;
}

void cuda_matmul_library_close(tkc_context *context) {
    if (context->cublas) {
        dlclose(context->cublas->handle);
        mem_free(&context->config, context->cublas);
    }
}

// ---- What a device keeps

typedef struct lt_shape { // of a matrix as cuBLASLt sees it
    int32_t type;
    uint32_t alignment;
    int64_t rows, columns, lead, step;
} lt_shape;

// All that the choice of an algorithm depends on. Compared byte by byte: without padding.
typedef struct lt_key {
    int32_t compute, scale, trans_a, trans_b;
    int32_t epilogue, bias_type;
    uint32_t bias_alignment, scales; // scales: bits 1 a, 2 b, 4 d
    int64_t batch, bias_step;
    lt_shape a, b, c, d;
} lt_key;
_Static_assert(sizeof(lt_key) == 48 + 4 * sizeof(lt_shape) && sizeof(lt_shape) == 40,
               "keys have no padding");

typedef struct lt_plan {
    bool used;
    lt_key key;
    lt_algorithm algorithm;
    size_t workspace;
} lt_plan;

typedef struct lt_space {
    struct lt_space *next;
    void *stream;
    pthread_t thread; // of the stream that each thread has of its own
    cu_address at;
} lt_space;

typedef struct lt_state {
    pthread_mutex_t lock; // of all that follows
    lt_handle handle;
    lt_space *spaces;
    lt_plan plan[PLANS];
} lt_state;

void cuda_matmul_close(tkc_device *device) {
    cuda_device *d = device->state;
    lt_state *s = d->blas;
    const tkc_config *c = &device->context->config;
    cuda_scope scope = {false};
    if (!s) {
        return;
    }
    // Where the device cannot be reached, its memory goes with its context.
    bool forked = cuda_forked(d->driver);
    bool alive = !forked && cuda_enter(d, &scope) == 0;
    if (!forked && s->handle) {
        device->context->cublas->destroy(s->handle);
    }
    while (s->spaces) {
        lt_space *x = s->spaces;
        s->spaces = x->next;
        if (alive) {
            d->driver->memory_free(x->at);
        }
        mem_free(c, x);
    }
    if (alive) {
        cuda_leave(d, &scope);
    }
    pthread_mutex_destroy(&s->lock);
    mem_free(c, s);
}

// ---- One product

typedef enum lt_trouble {
    LT_FINE,
    LT_NO_LIBRARY,
    LT_OLD_LIBRARY, // it has no `what`
    LT_NO_MEMORY,
    LT_NO_ALGORITHM,
    LT_CAPTURED, // what cannot be made ready during a capture
    LT_FAILED,   // `what` did, with `status`
    LT_DRIVER,   // the driver's `what` did, with `driver`
} lt_trouble;

typedef struct lt_fault {
    lt_trouble trouble;
    const char *what;
    lt_status status;
    cu_result driver;
} lt_fault;

typedef struct lt_call {
    tkc_context *context;
    cuda_device *device;
    const lt_library *lib;
    lt_state *state;
    const matmul *m;
    const matmul_matrix *a, *b; // cuBLASLt's: where d lies by rows, ours the other way round
    const float *scale_a, *scale_b;
    lt_key key;
    lt_desc desc;
    lt_layout la, lb, lc, ld;
    lt_preference prefer;
    lt_algorithm algorithm;
    size_t workspace;
    lt_fault fault;
} lt_call;

static bool failed(lt_call *x, lt_status s, const char *what) {
    if (s != 0) {
        x->fault = (lt_fault){LT_FAILED, what, s, 0};
    }
    return s != 0;
}

static bool driver_failed(lt_call *x, cu_result r, const char *what) {
    if (r != 0) {
        x->fault = (lt_fault){LT_DRIVER, what, 0, r};
    }
    return r != 0;
}

static int32_t type_code(tk_dtype t) {
    switch (t) {
    case TK_F64:
        return LT_F64;
    case TK_F32:
        return LT_F32;
    case TK_F16:
        return LT_F16;
    case TK_BF16:
        return LT_BF16;
    case TK_F8E4M3:
        return LT_F8E4M3;
    case TK_F8E5M2:
        return LT_F8E5M2;
    case TK_I8:
        return LT_I8;
    case TK_I32:
        return LT_I32;
    case TK_BOOL:
    case TK_I16:
    case TK_I64:
    case TK_U8:
    case TK_U16:
    case TK_U32:
    case TK_U64:
    case TK_DTYPE_COUNT:
    case TK_DTYPE_DEP:
        break;
    }
    return -1;
}

static uint32_t alignment_of(const void *p) {
    uintptr_t low = (uintptr_t)p & (~(uintptr_t)p + 1);
    return low == 0 || low > MAX_ALIGNMENT ? MAX_ALIGNMENT : (uint32_t)low;
}

static lt_shape shape_of(const matmul_matrix *x, int64_t rows, int64_t columns) {
    return (lt_shape){type_code(x->dtype),
                      alignment_of(x->data),
                      x->by_rows ? columns : rows,
                      x->by_rows ? rows : columns,
                      x->lead,
                      x->batch};
}

static int32_t epilogue_of(const matmul *m) {
    int32_t f = m->activation == TKC_ACTIVATION_RELU   ? LT_EPILOGUE_RELU
                : m->activation == TKC_ACTIVATION_GELU ? LT_EPILOGUE_GELU
                                                       : 0;
    f += m->bias.data ? LT_EPILOGUE_BIAS : 0;
    return f ? f : LT_EPILOGUE_DEFAULT;
}

// What C is where it is not read: d, but for a d of f8, which no c is.
static lt_shape shape_of_c(const matmul *m, lt_shape d) {
    bool f8 = m->d.dtype == TK_F8E4M3 || m->d.dtype == TK_F8E5M2;
    if (f8) {
        d.type = m->bias.data ? type_code(m->bias.dtype) : LT_BF16;
    }
    return d;
}

static void describe(lt_call *x) {
    const matmul *m = x->m;
    lt_key *k = &x->key;
    bool turned = m->d.by_rows;
    tk_dtype sum = matmul_sum_type(m);
    x->a = turned ? &m->b : &m->a;
    x->b = turned ? &m->a : &m->b;
    x->scale_a = turned ? m->scale_b : m->scale_a;
    x->scale_b = turned ? m->scale_a : m->scale_b;
    k->compute = sum == TK_F64   ? LT_COMPUTE_F64
                 : sum == TK_I32 ? LT_COMPUTE_I32
                 : m->tf32       ? LT_COMPUTE_TF32
                                 : LT_COMPUTE_F32;
    k->scale = type_code(sum);
    k->trans_a = x->a->by_rows == turned ? LT_OP_N : LT_OP_T;
    k->trans_b = x->b->by_rows == turned ? LT_OP_N : LT_OP_T;
    k->epilogue = epilogue_of(m);
    k->batch = m->batch;
    lt_shape a = shape_of(&m->a, m->m, m->k), b = shape_of(&m->b, m->k, m->n);
    k->a = turned ? b : a;
    k->b = turned ? a : b;
    k->d = shape_of(&m->d, m->m, m->n);
    k->c = m->beta != 0 ? shape_of(&m->c, m->m, m->n) : shape_of_c(m, k->d);
    k->scales = (x->scale_a ? 1U : 0) | (x->scale_b ? 2U : 0) | (m->scale_d ? 4U : 0);
    k->bias_type = -1;
    if (m->bias.data) {
        k->bias_type = type_code(m->bias.dtype);
        k->bias_alignment = alignment_of(m->bias.data);
        k->bias_step = m->bias.batch;
    }
}

// ---- Descriptors

static bool set_desc(lt_call *x, int attribute, const void *value, size_t size) {
    return !failed(x, x->lib->desc_set(x->desc, attribute, value, size),
                   "cublasLtMatmulDescSetAttribute");
}

static bool set_address(lt_call *x, int attribute, const void *p) {
    return !p || set_desc(x, attribute, &p, sizeof p);
}

static bool make_desc(lt_call *x) {
    const lt_key *k = &x->key;
    const matmul *m = x->m;
    bool f8 = x->a->dtype == TK_F8E4M3 || x->a->dtype == TK_F8E5M2;
    if (failed(x, x->lib->desc_create(&x->desc, k->compute, k->scale),
               "cublasLtMatmulDescCreate")) {
        return false;
    }
    return set_desc(x, LT_DESC_TRANS_A, &k->trans_a, sizeof k->trans_a) &&
           set_desc(x, LT_DESC_TRANS_B, &k->trans_b, sizeof k->trans_b) &&
           set_desc(x, LT_DESC_EPILOGUE, &k->epilogue, sizeof k->epilogue) &&
           set_address(x, LT_DESC_BIAS, m->bias.data) &&
           (!m->bias.data || m->batch == 1 ||
            set_desc(x, LT_DESC_BIAS_STEP, &k->bias_step, sizeof k->bias_step)) &&
           (!m->bias.data || !f8 ||
            set_desc(x, LT_DESC_BIAS_TYPE, &k->bias_type, sizeof k->bias_type)) &&
           set_address(x, LT_DESC_SCALE_A, x->scale_a) &&
           set_address(x, LT_DESC_SCALE_B, x->scale_b) &&
           set_address(x, LT_DESC_SCALE_D, m->scale_d);
}

static bool make_layout(lt_call *x, lt_layout *l, const lt_shape *s) {
    const lt_library *f = x->lib;
    int32_t count = (int32_t)x->key.batch;
    if (failed(x, f->layout_create(l, s->type, (uint64_t)s->rows, (uint64_t)s->columns, s->lead),
               "cublasLtMatrixLayoutCreate")) {
        return false;
    }
    lt_status r = 0;
    if (count > 1) {
        r = f->layout_set(*l, LT_LAYOUT_BATCH_COUNT, &count, sizeof count);
        r = r ? r : f->layout_set(*l, LT_LAYOUT_BATCH_STEP, &s->step, sizeof s->step);
    }
    return !failed(x, r, "cublasLtMatrixLayoutSetAttribute");
}

static bool make_layouts(lt_call *x) {
    return make_layout(x, &x->la, &x->key.a) && make_layout(x, &x->lb, &x->key.b) &&
           make_layout(x, &x->lc, &x->key.c) && make_layout(x, &x->ld, &x->key.d);
}

static bool make_preference(lt_call *x) {
    const lt_library *f = x->lib;
    const lt_key *k = &x->key;
    uint64_t room = WORKSPACE;
    if (failed(x, f->prefer_create(&x->prefer), "cublasLtMatmulPreferenceCreate")) {
        return false;
    }
    lt_status r = f->prefer_set(x->prefer, LT_PREFER_WORKSPACE, &room, sizeof room);
    r = r ? r : f->prefer_set(x->prefer, LT_PREFER_ALIGN_A, &k->a.alignment, sizeof(uint32_t));
    r = r ? r : f->prefer_set(x->prefer, LT_PREFER_ALIGN_B, &k->b.alignment, sizeof(uint32_t));
    r = r ? r : f->prefer_set(x->prefer, LT_PREFER_ALIGN_C, &k->c.alignment, sizeof(uint32_t));
    r = r ? r : f->prefer_set(x->prefer, LT_PREFER_ALIGN_D, &k->d.alignment, sizeof(uint32_t));
    return !failed(x, r, "cublasLtMatmulPreferenceSetAttribute");
}

static void drop_descriptors(lt_call *x) {
    const lt_library *f = x->lib;
    lt_layout layouts[] = {x->la, x->lb, x->lc, x->ld};
    for (size_t i = 0; i < 4; i++) {
        if (layouts[i]) {
            f->layout_destroy(layouts[i]);
        }
    }
    if (x->desc) {
        f->desc_destroy(x->desc);
    }
    if (x->prefer) {
        f->prefer_destroy(x->prefer);
    }
}

// ---- Making ready, with the state's lock

// False with a fault where the stream is captured, as nothing can be allocated then.
static bool may_allocate(lt_call *x) {
    int capturing = 0;
    cu_result r = x->device->driver->stream_capturing(x->m->stream, &capturing);
    if (driver_failed(x, r, "cuStreamIsCapturing")) {
        return false;
    }
    if (capturing) {
        x->fault.trouble = LT_CAPTURED;
    }
    return !capturing;
}

static bool ready_handle(lt_call *x) {
    if (x->state->handle) {
        return true;
    }
    return may_allocate(x) && !failed(x, x->lib->create(&x->state->handle), "cublasLtCreate");
}

static lt_plan *plan_of(lt_state *s, const lt_key *k) {
    uint64_t h = 1469598103934665603U;
    const unsigned char *p = (const unsigned char *)k;
    for (size_t i = 0; i < sizeof *k; i++) {
        h = (h ^ p[i]) * 1099511628211U;
    }
    return &s->plan[(h ^ h >> 32) % PLANS];
}

// The algorithm for the shape, asked for unless it is known. Another with the same place in the
// table makes room.
static bool ready_plan(lt_call *x) {
    lt_plan *p = plan_of(x->state, &x->key);
    if (!p->used || memcmp(&p->key, &x->key, sizeof p->key) != 0) {
        lt_result result;
        int found = 0;
        memset(&result, 0, sizeof result);
        if (!make_preference(x)) {
            return false;
        }
        lt_status s = x->lib->choose(x->state->handle, x->desc, x->la, x->lb, x->lc, x->ld,
                                     x->prefer, 1, &result, &found);
        s = s ? s : found ? result.state : LT_NOT_SUPPORTED;
        if (s == LT_NOT_SUPPORTED || s == LT_INVALID_VALUE) {
            x->fault.trouble = LT_NO_ALGORITHM;
            return false;
        }
        if (failed(x, s, "cublasLtMatmulAlgoGetHeuristic")) {
            return false;
        }
        *p = (lt_plan){true, x->key, result.algorithm, result.workspace};
    }
    x->algorithm = p->algorithm;
    x->workspace = p->workspace;
    return true;
}

static bool own_thread_stream(const void *stream) { return (uintptr_t)stream == 2; }

static bool ready_space(lt_call *x, cu_address *at) {
    lt_state *s = x->state;
    void *stream = x->m->stream;
    *at = 0;
    if (x->workspace == 0) {
        return true;
    }
    for (const lt_space *p = s->spaces; p; p = p->next) {
        if (p->stream == stream &&
            (!own_thread_stream(stream) || pthread_equal(p->thread, pthread_self()))) {
            *at = p->at;
            return true;
        }
    }
    if (!may_allocate(x)) {
        return false;
    }
    lt_space *p = mem_alloc(&x->context->config, sizeof *p);
    if (!p) {
        x->fault.trouble = LT_NO_MEMORY;
        return false;
    }
    if (driver_failed(x, x->device->driver->memory_alloc(&p->at, WORKSPACE), "cuMemAlloc")) {
        mem_free(&x->context->config, p);
        return false;
    }
    *p = (lt_space){s->spaces, stream, pthread_self(), p->at};
    s->spaces = p;
    *at = p->at;
    return true;
}

// ---- The call

typedef union lt_scalar {
    float f32;
    double f64;
    int32_t i32;
} lt_scalar;

static lt_scalar scalar_of(double x, int32_t type) {
    lt_scalar s;
    memset(&s, 0, sizeof s);
    if (type == LT_F64) {
        s.f64 = x;
    } else if (type == LT_I32) {
        s.i32 = (int32_t)x;
    } else {
        s.f32 = (float)x;
    }
    return s;
}

static void multiply(lt_call *x) {
    const matmul *m = x->m;
    lt_scalar alpha = scalar_of(m->alpha, x->key.scale), beta = scalar_of(m->beta, x->key.scale);
    cu_address space = 0;
    pthread_mutex_lock(&x->state->lock);
    bool ready = ready_handle(x) && make_desc(x) && make_layouts(x) && ready_plan(x) &&
                 ready_space(x, &space);
    lt_handle handle = x->state->handle;
    pthread_mutex_unlock(&x->state->lock);
    if (ready) {
        const void *c = m->beta != 0                     ? m->c.data
                        : x->key.c.type == x->key.d.type ? m->d.data
                                                         : NULL;
        lt_status s = x->lib->matmul(handle, x->desc, &alpha, x->a->data, x->la, x->b->data, x->lb,
                                     &beta, c, x->lc, m->d.data, x->ld, &x->algorithm,
                                     (void *)(uintptr_t)space, x->workspace, m->stream);
        failed(x, s, "cublasLtMatmul");
    }
    drop_descriptors(x);
}

// The library and the device's state, made on first use.
static void open_library(lt_call *x) {
    tkc_context *c = x->context;
    pthread_mutex_lock(&c->gpu_lock);
    if (!c->cublas) {
        lt_library *l = mem_alloc(&c->config, sizeof *l);
        x->fault.trouble = LT_NO_MEMORY;
        if (l) {
            l->handle = open_file();
            x->fault.what = l->handle ? load_functions(l) : NULL;
            x->fault.trouble = !l->handle      ? LT_NO_LIBRARY
                               : x->fault.what ? LT_OLD_LIBRARY
                                               : LT_FINE;
            if (x->fault.trouble == LT_FINE) {
                c->cublas = l;
            } else {
                if (l->handle) {
                    dlclose(l->handle);
                }
                mem_free(&c->config, l);
            }
        }
    }
    if (c->cublas && !x->device->blas) {
        x->device->blas = mem_alloc(&c->config, sizeof *x->device->blas);
        if (x->device->blas) {
            pthread_mutex_init(&x->device->blas->lock, NULL);
        } else {
            x->fault.trouble = LT_NO_MEMORY;
        }
    }
    x->lib = c->cublas;
    x->state = x->device->blas;
    pthread_mutex_unlock(&c->gpu_lock);
}

// ---- Errors

static const char *advice(const matmul *m) {
    if (m->a.dtype == TK_F8E4M3 || m->a.dtype == TK_F8E5M2) {
        return "f8 needs compute capability 8.9 or newer, sizes and strides of whole 16 bytes and, "
               "but on 10.0, K the axis of stride 1 in both 'a' and 'b'";
    }
    if (m->a.dtype == TK_I8) {
        return "i8 needs K the axis of stride 1 in both 'a' and 'b', and M, N, K and strides that "
               "are multiples of 4";
    }
    if (m->activation == TKC_ACTIVATION_GELU || m->bias.data) {
        return "without the activation or the bias there may be one";
    }
    return NULL;
}

static void report_unsupported(tk_work *w, const lt_call *x) {
    const matmul *m = x->m;
    tk_span none = {0, 0, 0};
    tk_diag *diag = tk_error(
        &w->diags, none, "matmul-unsupported",
        "cuBLASLt has no algorithm on %s for %s [%lld, %lld] by %s times %s [%lld, %lld] by %s "
        "into %s by %s",
        x->device->label, tk_dtype_name(m->a.dtype), (long long)m->m, (long long)m->k,
        m->a.by_rows ? "rows" : "columns", tk_dtype_name(m->b.dtype), (long long)m->k,
        (long long)m->n, m->b.by_rows ? "rows" : "columns", tk_dtype_name(m->d.dtype),
        m->d.by_rows ? "rows" : "columns");
    if (advice(m)) {
        tk_help(&w->diags, diag, none, "%s", advice(m));
    }
    w->status = TKC_ERROR_LAUNCH;
}

static void report_missing(tk_work *w, const lt_call *x) {
    tk_span none = {0, 0, 0};
    tk_diag *diag =
        x->fault.trouble == LT_OLD_LIBRARY
            ? tk_error(&w->diags, none, "no-cublas",
                       "the cuBLASLt that is found has no %s: it is not of version 12 or 13",
                       x->fault.what)
            : tk_error(&w->diags, none, "no-cublas",
                       "there are no matrix products on a GPU without NVIDIA's cuBLASLt, which is "
                       "not found (libcublasLt.so.13 or libcublasLt.so.12)");
    tk_help(&w->diags, diag, none,
            "it is in the CUDA toolkit and in the Python package nvidia-cublas; the environment's "
            "TKC_CUBLASLT may name its file");
    w->status = TKC_ERROR_DEVICE;
}

static void report_fault(tk_work *w, const tkc_device *device, const lt_call *x) {
    const lt_fault *f = &x->fault;
    tk_span none = {0, 0, 0};
    const char *name = f->trouble == LT_FAILED ? x->lib->status_name(f->status) : NULL;
    switch (f->trouble) {
    case LT_FINE:
        return;
    case LT_NO_LIBRARY:
    case LT_OLD_LIBRARY:
        report_missing(w, x);
        return;
    case LT_NO_MEMORY:
        tk_fail_memory(&w->guard);
    case LT_NO_ALGORITHM:
        report_unsupported(w, x);
        return;
    case LT_CAPTURED:
        work_fail(w, TKC_ERROR_LAUNCH, "matmul-captured",
                  "the stream is being captured, and nothing can be made ready then: a product of "
                  "these shapes must have been put on it before");
        return;
    case LT_FAILED:
        work_fail(w, TKC_ERROR_DEVICE, "cublas", "a matrix product on device '%s' failed: %s: %s",
                  device->name, f->what, name ? name : "unknown status");
        return;
    case LT_DRIVER:
        cuda_fail(w, x->device->driver, f->driver, none,
                  "a matrix product on device '%s' failed: %s", device->name, f->what);
        return;
    }
}

void cuda_matmul(tk_work *w, tkc_device *device, const matmul *m) {
    cuda_device *d = device->state;
    lt_call x;
    cuda_scope scope;
    memset(&x, 0, sizeof x);
    if (cuda_forked(d->driver)) {
        cuda_fail_forked(w);
        return;
    }
    x.context = device->context;
    x.device = d;
    x.m = m;
    describe(&x);
    open_library(&x);
    if (x.fault.trouble == LT_FINE &&
        !driver_failed(&x, cuda_enter(d, &scope), "cuCtxPushCurrent")) {
        multiply(&x);
        cuda_leave(d, &scope);
    }
    report_fault(w, device, &x);
}
