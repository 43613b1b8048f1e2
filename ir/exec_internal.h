// SPDX-License-Identifier: Apache-2.0
//
// Inside the executor: plans, places, steps, and what the files of the executor ask of each other.
//
// A value lives at a place: an offset into the frame and a stride (in bytes) for each axis. A
// stride is 0 where a value is stretched, negative after a flip. What only changes places
// (broadcast, permute, slice, flip, deinterleave, most reshapes) makes no step: its result is an
// alias of its operand, which then lives as long as the alias. Every other value is dense:
// row-major and contiguous.
//
// A step is one op with everything decided that can be: the kernel for its types, sizes, offsets.
// Its struct begins with a tk_step, whose `run` does the work. Steps are const once made.
#ifndef TK_IR_EXEC_INTERNAL_H
#define TK_IR_EXEC_INTERNAL_H

#include "ir/exec.h"

enum {
    TK_BLOCK = 256, // elements that an element-wise step treats at a time; also lanes of a region
};

typedef struct tk_place {
    size_t off; // bytes from the frame's start
    tk_dtype dtype;
    uint32_t size; // of an element
    uint32_t rank;
    int64_t dim[TK_MAX_RANK];
    int64_t stride[TK_MAX_RANK]; // bytes
} tk_place;

typedef struct tk_run {
    const tk_plan *plan;
    unsigned char *base; // the frame
    const tk_exec_env *env;
    int64_t program[TK_MAX_GRID];
    uint64_t number; // of the program: linear, axis 0 fastest
    size_t lanes;    // inside a region of reduce_fn or scan_fn: how many are in use
    tk_exec_fault *fault;
} tk_run;

typedef struct tk_step {
    tk_exec_code (*run)(const struct tk_step *s, tk_run *r);
    tk_loc loc;
} tk_step;

typedef TK_VEC(const tk_step *) tk_steps;

typedef struct tk_init { // a constant in the frame
    size_t off;
    tk_const value;
} tk_init;

struct tk_plan {
    const tk_module *module;
    const tk_func *func;
    tk_steps grid, body;
    size_t frame; // bytes
    size_t *slot; // for each parameter: where a scalar is kept
    TK_VEC(tk_place) counts;
    TK_VEC(tk_init) init;
    size_t iota; // i32: 0, 1, .. niota-1
    int64_t niota;
};

tk_exec_code tk_run_steps(const tk_steps *list, tk_run *r);
// Fills in place and program, and gives code back.
tk_exec_code tk_run_fault(const tk_step *s, tk_run *r, tk_exec_code code);
static inline bool tk_is_set(const volatile int *flag) {
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}
static inline bool tk_run_stopped(const tk_run *r) {
    return tk_is_set(r->env->stop) || tk_is_set(r->env->user_stop);
}

// ---- Planning (exec_plan.c) ---------------------------------------------------------------------

typedef struct tk_pval {
    tk_place place;
    tk_vid root;    // whose storage it uses; itself where it has its own
    tk_vid onto;    // takes its storage from this loop argument or result; 0 = none
    int64_t delta;  // bytes from the root's storage
    uint32_t depth; // of the region that the storage belongs to
    uint32_t made;  // number of the op that makes it
    uint32_t last;  // number of the last op in that region that needs it
    uint32_t inner; // loop argument: number of the last op of the loop's body that uses it
    uint32_t uses;
    tk_vid next;        // in the list of those that end at one op
    size_t bytes;       // storage allocated; 0 for scalars, which keep theirs
    uint32_t lane : 1;  // one element a lane
    uint32_t fixed : 1; // its storage is not given to another value
    uint32_t arg : 1;   // an argument of a loop's body
    uint32_t has : 1;   // storage is allocated
    uint32_t taken : 1; // storage went over to another value
} tk_pval;

typedef struct tk_hole {
    size_t off, size;
} tk_hole;

typedef struct tk_planner {
    tk_arena *arena;
    tk_plan *plan;
    const tk_func *func;
    tk_diags *diags;
    size_t limit;
    tk_steps *out;         // where steps go
    const tk_steps *other; // of a partition, while the side that takes is planned
    bool apart;            // its other side is
    const tk_op *op;
    tk_pval *val;
    uint32_t number; // of the op last finished
    uint32_t depth;
    bool lane;            // in a region whose scalars are lanes
    const tk_vid *carry;  // what the present region's yield is copied to; NULL: nothing
    tk_vid *ending;       // by op number: first value whose storage ends there
    TK_VEC(tk_hole) hole; // free storage, by offset
    TK_VEC(tk_hole) temp; // of the present op
    size_t top;
    size_t slots, slot_end; // room for scalars
    const tk_op *too_large; // the op that passed the limit
} tk_planner;

// The liveness walk (exec_live.c): places without offsets, roots, last uses. Gives how many ops.
uint32_t tk_plan_live(tk_planner *p);
void tk_plan_region(tk_planner *p, const tk_region *region);
// Where a value is.
tk_place tk_plan_place(const tk_planner *p, tk_vid v);
// A new step at the end of the list: `size` bytes that begin with a tk_step.
void *tk_plan_step(tk_planner *p, size_t size, tk_exec_code (*run)(const tk_step *, tk_run *));
// Memory that is never used for anything else.
size_t tk_plan_own(tk_planner *p, size_t bytes);
size_t tk_plan_temp(tk_planner *p, size_t bytes); // until the present op is done
// The value made contiguous: itself, or a copy in a temporary.
tk_place tk_plan_dense(tk_planner *p, tk_place x);
uint32_t tk_plan_param(const tk_planner *p, tk_vid v); // of a tensor
// The storage that a value really uses, to see whether two are the same.
tk_vid tk_plan_storage(const tk_planner *p, tk_vid v);
// Gives a value storage, if it needs its own and has none yet.
void tk_plan_store(tk_planner *p, tk_vid v);
static inline const tk_type *tk_plan_type(const tk_planner *p, tk_vid v) {
    return p->func->value.at[v].type;
}

// ---- Places (exec_place.c) ----------------------------------------------------------------------

int64_t tk_place_elems(const tk_place *x);
bool tk_place_is_dense(const tk_place *x);
void tk_place_make_dense(tk_place *x); // strides
tk_place tk_place_of(tk_dtype t, uint32_t rank, const int64_t *dim);
// Stretched to a shape: aligned at the right, 1 stretches.
tk_place tk_place_stretch(tk_place x, uint32_t rank, const int64_t *dim);
// Another shape of the same elements; false where that takes a copy.
bool tk_place_reshape(tk_place *x, uint32_t rank, const int64_t *dim);
// The same sequence of elements with as few axes as possible (at least one), for n places of one
// shape together.
void tk_place_collapse(tk_place *const *x, uint32_t n);
// dst[i] = src[i], shapes equal
void tk_plan_copy(tk_planner *p, tk_place dst, tk_place src);

// A place read as a sequence in row-major order, block by block.
typedef enum { TK_STREAM_LINEAR, TK_STREAM_UNIFORM, TK_STREAM_STRIDED } tk_stream_kind;
typedef struct tk_stream {
    tk_stream_kind kind;
    tk_place at; // collapsed
} tk_stream;
tk_stream tk_stream_of(tk_place x);
// Copies elements start .. start + n - 1 to dst.
void tk_stream_fill(const tk_stream *s, const unsigned char *base, int64_t start, size_t n,
                    void *dst);
// The same elements, in place where they are contiguous, else copied to tmp.
const void *tk_stream_read(const tk_stream *s, const unsigned char *base, int64_t start, size_t n,
                           void *tmp);
void tk_splat(void *dst, const void *value, size_t n, uint32_t size);
void tk_copy_run(unsigned char *dst, int64_t ds, const unsigned char *src, int64_t ss, size_t n,
                 uint32_t size);

// ---- Kernels ------------------------------------------------------------------------------------

// out[i] = op(a[i], b[i], c[i]) for i < n. out may be an operand's memory, from its first element.
typedef void (*tk_kernel)(size_t n, void *out, const void *a, const void *b, const void *c);
tk_kernel tk_elem_kernel(tk_numop op, tk_dtype t); // NULL where op does not take t
tk_kernel tk_cast_kernel(tk_dtype from, tk_dtype to);
tk_kernel tk_bits_kernel(size_t size);              // copies elements of 1, 2, 4 or 8 bytes
tk_kernel tk_float_kernel(tk_numop op, tk_dtype t); // its part for floats

// The elements of a loop do not depend on each other. clang would take its form of this as a demand
// and complain of the operations that have no vector form; it finds out at run time.
#if defined(__clang__)
#define TK_IVDEP
#else
#define TK_IVDEP _Pragma("GCC ivdep")
#endif

// ---- Ops: each appends the steps of p->op -------------------------------------------------------

void tk_exec_emit_elem(tk_planner *p);
// out[i] = kernel(in[0][i], ..). `same` where the elements are lanes: which operands are the same
// in all of them; NULL elsewhere.
void tk_exec_emit_kernel(tk_planner *p, tk_kernel kernel, tk_place out, uint32_t n,
                         const tk_place *in, const bool *same);
void tk_exec_emit_cast(tk_planner *p);
void tk_exec_emit_bitcast(tk_planner *p);
void tk_exec_emit_reshape(tk_planner *p);
void tk_exec_emit_concat(tk_planner *p);
void tk_exec_emit_interleave(tk_planner *p);
void tk_exec_emit_empty(tk_planner *p);
void tk_exec_emit_insert(tk_planner *p);
void tk_exec_emit_extract(tk_planner *p);
void tk_exec_emit_gather(tk_planner *p);
void tk_exec_emit_reduce(tk_planner *p);
void tk_exec_emit_arg_reduce(tk_planner *p);
void tk_exec_emit_scan(tk_planner *p);
void tk_exec_emit_reduce_fn(tk_planner *p);
void tk_exec_emit_scan_fn(tk_planner *p);
void tk_exec_emit_sort(tk_planner *p);
void tk_exec_emit_topk(tk_planner *p);
void tk_exec_emit_histogram(tk_planner *p);
void tk_exec_emit_dot(tk_planner *p);
void tk_exec_emit_dot_scaled(tk_planner *p);
void tk_exec_emit_philox(tk_planner *p);
void tk_exec_emit_dim(tk_planner *p);
void tk_exec_emit_program(tk_planner *p);
void tk_exec_emit_ring(tk_planner *p);
void tk_exec_emit_partition(tk_planner *p);
void tk_exec_emit_fetch(tk_planner *p);
void tk_exec_emit_take(tk_planner *p);
void tk_exec_emit_release(tk_planner *p);
// What a load of p->op's view does, to a place.
void tk_exec_emit_load_to(tk_planner *p, tk_place out);
void tk_exec_emit_load(tk_planner *p);
void tk_exec_emit_store(tk_planner *p);
void tk_exec_emit_atomic(tk_planner *p);
void tk_exec_emit_assert(tk_planner *p);
void tk_exec_emit_print(tk_planner *p);
void tk_exec_emit_if(tk_planner *p);
void tk_exec_emit_for(tk_planner *p);
void tk_exec_emit_while(tk_planner *p);
void tk_exec_emit_yield(tk_planner *p);

// Whether the region of a reduce_fn or scan_fn can run on many lanes at once.
bool tk_region_has_lanes(const tk_region *region);

// ---- Tensor access (exec_access.c) --------------------------------------------------------------

// What load, store and the atomics have in common. Axes of extent 1 are left out of `axis`, and of
// the places that go along with them; there is always at least one axis.
typedef struct tk_mem {
    uint32_t param, ndim, size;
    int64_t index[TK_MAX_TENSOR_RANK]; // as in tk_attrs
    tk_place at[TK_MAX_TENSOR_RANK];   // scalars: the index, or where the range starts
    uint32_t ntile;                    // dimensions indexed by tiles
    uint32_t tile_dim[TK_MAX_TENSOR_RANK];
    tk_stream tile[TK_MAX_TENSOR_RANK];
    tk_kernel widen[TK_MAX_TENSOR_RANK]; // of the tile's elements to i64
    int64_t points;                      // elements of the index tiles' common shape
    size_t offs, soffs;                  // i64[points]: offsets in memory, in the shadow
    uint32_t rank;                       // of axis
    int64_t dim[TK_MAX_RANK];
    int32_t from[TK_MAX_RANK];  // the tensor's dimension; -1: of the index tiles
    int64_t point[TK_MAX_RANK]; // how far one step goes in the index tiles' common shape
    uint32_t full_rank;         // the shape with its axes of extent 1
    int64_t full[TK_MAX_RANK];
    bool masked;
    tk_place mask;
} tk_mem;

#define TK_OUTSIDE INT64_MIN

// At run time: where this access goes. Offsets are in elements, modulo 2^64: an offset of what is
// outside means nothing and is never used.
typedef struct tk_reach {
    const tk_exec_tensor *t;
    bool inside; // as far as scalar indices say
    uint64_t off, soff;
    uint64_t stride[TK_MAX_RANK], sstride[TK_MAX_RANK];
    int64_t lo[TK_MAX_RANK], hi[TK_MAX_RANK]; // of each axis: what is inside
    const int64_t *offs, *soffs;
} tk_reach;

// One run along the last axis.
typedef struct tk_row {
    int64_t at[TK_MAX_RANK]; // coordinates of its first element
    int64_t first;           // its number in row-major order
    bool inside;             // as far as the other axes say
    uint64_t off, soff;
    int64_t point;
} tk_row;

// Reads p->op's tensor and index operands; gives the number of the first operand after them.
uint32_t tk_mem_plan(tk_planner *p, tk_mem *m);
// A value or mask, stretched to the access's shape, without its axes of extent 1.
tk_place tk_mem_place(const tk_mem *m, tk_place x);
void tk_reach_begin(const tk_mem *m, const tk_run *r, tk_reach *a);
// The first or next row; false at the end.
bool tk_row_first(const tk_mem *m, const tk_reach *a, tk_row *row);
bool tk_row_next(const tk_mem *m, const tk_reach *a, tk_row *row);
static inline const unsigned char *tk_row_of(const tk_place *x, const tk_row *row,
                                             const unsigned char *base) {
    const unsigned char *q = base + x->off;
    for (uint32_t i = 0; i + 1 < x->rank; i++) {
        q += row->at[i] * x->stride[i];
    }
    return q;
}
// Calls visit for each element that is inside and not masked out: its address, its shadow word
// (NULL: none) and its number. Stops when visit gives false.
typedef bool (*tk_visit)(void *user, unsigned char *element, uint64_t *shadow, int64_t number);
bool tk_reach_each(const tk_mem *m, const tk_reach *a, const tk_run *r, tk_visit visit, void *user);

// Check mode (exec_check.c): whether this program may read, write or atomically change the element.
typedef enum { TK_TOUCH_READ, TK_TOUCH_WRITE, TK_TOUCH_ATOMIC } tk_touch;
bool tk_check_touch(uint64_t *word, uint64_t program, tk_touch touch, uint64_t *other);
tk_exec_code tk_check_access(const tk_step *h, const tk_mem *m, const tk_reach *a, tk_run *r,
                             tk_touch touch);

// The middle of a shape: an axis, what is before and what is after. All elements: 1, n, 1.
typedef struct tk_split3 {
    int64_t outer, len, inner;
} tk_split3;
tk_split3 tk_place_split(const tk_place *x, int axis);

#endif
