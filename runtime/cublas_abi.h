// SPDX-License-Identifier: Apache-2.0
// NVIDIA's cuBLASLt as we use it: the few functions, types and numbers of its binary interface that
// a matrix product takes, the same in versions 12 and 13. They are declared here, so that nothing
// of NVIDIA's is needed to build; the functions come from libcublasLt when they are first needed.
//
// Its matrices lie column by column: of ROWS x COLS elements, with LD elements from one column to
// the next. It computes D = EPILOGUE(alpha op(A) op(B) + beta C), with op(A) of m x k, op(B) of
// k x n and C, D of m x n, and a bias of m elements, the same for each column of D.
#ifndef TKC_RUNTIME_CUBLAS_ABI_H
#define TKC_RUNTIME_CUBLAS_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int lt_status; // 0: success
typedef struct lt_handle_opaque *lt_handle;
typedef struct lt_desc_opaque *lt_desc;
typedef struct lt_layout_opaque *lt_layout;
typedef struct lt_preference_opaque *lt_preference;

enum { // statuses that are told apart
    LT_NOT_INITIALIZED = 1,
    LT_ALLOC_FAILED = 3,
    LT_INVALID_VALUE = 7,
    LT_NOT_SUPPORTED = 15,
};

enum { // types of elements, of alpha and beta
    LT_F32 = 0,
    LT_F64 = 1,
    LT_F16 = 2,
    LT_I8 = 3,
    LT_I32 = 10,
    LT_BF16 = 14,
    LT_F8E4M3 = 28,
    LT_F8E5M2 = 29,
};

enum { // what is computed in
    LT_COMPUTE_F32 = 68,
    LT_COMPUTE_F64 = 70,
    LT_COMPUTE_I32 = 72,
    LT_COMPUTE_TF32 = 77,
};

enum { LT_OP_N = 0, LT_OP_T = 1 };

enum {                      // attributes of a product
    LT_DESC_TRANS_A = 3,    // int32_t
    LT_DESC_TRANS_B = 4,    // int32_t
    LT_DESC_EPILOGUE = 7,   // uint32_t
    LT_DESC_BIAS = 8,       // address
    LT_DESC_BIAS_STEP = 10, // int64_t
    LT_DESC_SCALE_A = 17,   // address, as the next two
    LT_DESC_SCALE_B = 18,
    LT_DESC_SCALE_D = 20,
    LT_DESC_BIAS_TYPE = 26, // int32_t
};

enum {                         // of a matrix
    LT_LAYOUT_BATCH_COUNT = 5, // int32_t
    LT_LAYOUT_BATCH_STEP = 6,  // int64_t
};

enum {                       // of the choice of an algorithm
    LT_PREFER_WORKSPACE = 1, // uint64_t
    LT_PREFER_ALIGN_A = 5,   // uint32_t, as the next three
    LT_PREFER_ALIGN_B = 6,
    LT_PREFER_ALIGN_C = 7,
    LT_PREFER_ALIGN_D = 8,
};

enum {                       // epilogues: the bias is added to the number
    LT_EPILOGUE_DEFAULT = 1, // without a bias
    LT_EPILOGUE_RELU = 2,
    LT_EPILOGUE_BIAS = 4,
    LT_EPILOGUE_GELU = 32,
};

typedef struct lt_algorithm {
    uint64_t data[8];
} lt_algorithm;

typedef struct lt_result {
    lt_algorithm algorithm;
    size_t workspace;
    lt_status state;
    float waves;
    int reserved[4];
} lt_result;

// F(member, symbol, parameters)
#define LT_FUNCTIONS(F)                                                                            \
    F(create, cublasLtCreate, (lt_handle * h))                                                     \
    F(destroy, cublasLtDestroy, (lt_handle h))                                                     \
    F(desc_create, cublasLtMatmulDescCreate, (lt_desc * d, int compute, int scale))                \
    F(desc_destroy, cublasLtMatmulDescDestroy, (lt_desc d))                                        \
    F(desc_set, cublasLtMatmulDescSetAttribute,                                                    \
      (lt_desc d, int attribute, const void *value, size_t size))                                  \
    F(layout_create, cublasLtMatrixLayoutCreate,                                                   \
      (lt_layout * l, int type, uint64_t rows, uint64_t cols, int64_t ld))                         \
    F(layout_destroy, cublasLtMatrixLayoutDestroy, (lt_layout l))                                  \
    F(layout_set, cublasLtMatrixLayoutSetAttribute,                                                \
      (lt_layout l, int attribute, const void *value, size_t size))                                \
    F(prefer_create, cublasLtMatmulPreferenceCreate, (lt_preference * p))                          \
    F(prefer_destroy, cublasLtMatmulPreferenceDestroy, (lt_preference p))                          \
    F(prefer_set, cublasLtMatmulPreferenceSetAttribute,                                            \
      (lt_preference p, int attribute, const void *value, size_t size))                            \
    F(choose, cublasLtMatmulAlgoGetHeuristic,                                                      \
      (lt_handle h, lt_desc o, lt_layout a, lt_layout b, lt_layout c, lt_layout d,                 \
       lt_preference p, int wanted, lt_result *result, int *found))                                \
    F(matmul, cublasLtMatmul,                                                                      \
      (lt_handle h, lt_desc o, const void *alpha, const void *a, lt_layout la, const void *b,      \
       lt_layout lb, const void *beta, const void *c, lt_layout lc, void *d, lt_layout ld,         \
       const lt_algorithm *algorithm, void *workspace, size_t workspace_size, void *stream))

typedef struct lt_library {
    void *handle;
#define F(member, symbol, parameters) lt_status(*member) parameters;
    LT_FUNCTIONS(F)
#undef F
    const char *(*status_name)(lt_status s);
} lt_library;

#endif
