// SPDX-License-Identifier: Apache-2.0
// The executor: runs one program of a kernel's IR on the CPU. The judge of every pass and of the
// GPU.
//
// A plan is made once for a module (inlined: no calls are left): storage for each value, one step
// an op. It is const and may be used by many threads; each thread has its own frame. Numerics are
// those of lang/num.h, element by element, with these fixed orders: float sums are pairwise in a
// documented order; dot accumulates in K order, multiplication and addition rounded separately in
// the accumulator's type; everything is bit-identical between runs and thread counts (atomics on
// floats excepted).
#ifndef TK_IR_EXEC_H
#define TK_IR_EXEC_H

#include "ir/ir.h"

typedef struct tk_plan tk_plan;
typedef struct tk_frame tk_frame;

// Makes a plan for the module's kernel in `arena`. NULL and a located diagnostic where the executor
// cannot run it (frame over `max_frame` bytes: the message names the need and the limit).
tk_plan *tk_plan_make(tk_arena *arena, const tk_module *m, tk_diags *diags, size_t max_frame);
size_t tk_plan_frame_size(const tk_plan *p);

// Frames are plain memory of the caller's: tk_frame_make places one in `memory` (tk_plan_frame_size
// bytes, 64-byte aligned).
tk_frame *tk_frame_make(const tk_plan *p, void *memory);

typedef struct tk_exec_tensor {
    void *data; // aligned to the element
    int64_t dim[TK_MAX_TENSOR_RANK];
    int64_t stride[TK_MAX_TENSOR_RANK]; // in elements; any sign, 0 too
    // Check mode: one word per element of the tensor (row-major by index, not by address), or NULL.
    // Made and read by the device. 0 = not written; program number + 1 = the writer; the same with
    // the top bit = changed atomically by that program alone; TK_SHADOW_ATOMIC = by several.
    uint64_t *shadow;
} tk_exec_tensor;
#define TK_SHADOW_ATOMIC UINT64_MAX

typedef enum {
    TK_EXEC_OK,
    TK_EXEC_ASSERT,  // an assert did not hold
    TK_EXEC_ASSUME,  // an assume did not hold
    TK_EXEC_RACE,    // check mode: two programs wrote one element, or one read what another wrote
    TK_EXEC_STOPPED, // env->stop was set
    TK_EXEC_STUCK,   // a ring was full or empty for ever: a fault of a pass
    TK_EXEC_FOUND,   // never comes out of the executor
} tk_exec_code;

typedef struct tk_exec_fault {
    tk_exec_code code;
    tk_loc loc; // the op
    int64_t program[TK_MAX_GRID];
    uint32_t param;                    // RACE: which tensor
    uint32_t rank;                     // ASSERT, ASSUME: of the condition; 0: a scalar
    int64_t index[TK_MAX_TENSOR_RANK]; // RACE: which element; ASSERT, ASSUME: the first that fails
    uint64_t other; // RACE: the other program (linear, axis 0 fastest); UINT64_MAX: several
    char text[160]; // ASSERT: its text
} tk_exec_fault;

typedef struct tk_exec_env {
    uint32_t narg;                // one per kernel parameter of the IR function
    const tk_exec_tensor *tensor; // [narg]; unused for scalars
    const tk_const *scalar;       // [narg]; unused for tensors
    uint32_t ngrid;
    int64_t grid[TK_MAX_GRID]; // counts
    // Both polled in loops, either may be NULL: the device's own, and the caller's of the launch.
    const volatile int *stop, *user_stop;
    // print ops: one line, without newline; may be called from many threads at once (the callee
    // locks).
    void (*print)(void *user, const char *line);
    void *user;
} tk_exec_env;

// Evaluates the grid region: counts[ngrid] may come out negative or zero.
void tk_exec_grid(const tk_plan *p, tk_frame *f, const tk_exec_env *env,
                  int64_t counts[TK_MAX_GRID]);
uint32_t tk_plan_grid_axes(const tk_plan *p);

// Runs one program to its end, or to the first fault.
tk_exec_code tk_exec_program(const tk_plan *p, tk_frame *f, const tk_exec_env *env,
                             const int64_t program[TK_MAX_GRID], tk_exec_fault *fault);

// The indices of element n of a tile, in row-major order.
static inline void tk_index_of(int64_t n, uint32_t rank, const int64_t *dim, int64_t *index) {
    for (uint32_t a = rank; a-- > 0;) {
        index[a] = n % dim[a];
        n /= dim[a];
    }
}

// The executor of one op on constants: scalars or uniform tiles only; used by folding. False where
// op cannot be folded.
bool tk_exec_fold(const tk_func *f, const tk_op *op, const tk_const *operands, tk_const *result);

#endif
