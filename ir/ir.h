// SPDX-License-Identifier: Apache-2.0
// The IR: static single assignment over scalars, tiles and tensors, with structured control flow.
//
// A module holds functions, callees before callers; at most one is the kernel. A function has
// parameters, a body region and, for a kernel, a grid region that yields the counts (i32) of each
// axis. A region is one straight list of ops that ends in a terminator (yield, return); branching
// is by ops with regions (if, for, while, reduce_fn, scan_fn). Values are numbered within their
// function (tk_vid, 0 = none) and found through tk_func.value; an op's results and a region's
// arguments define them. A value is visible in its region after its definition and in regions
// nested there. break, continue and early return do not exist: the builder turns them into carried
// values.
//
// Shapes are explicit: element-wise ops take operands of equal shape, what stretches is a broadcast
// op. A scalar is a tile of rank 0 and never equals a tile of shape [1]. Every op has a location: a
// span and, after inlining, the calls around it.
//
// Levels. tile: hardware-free. laid out: each tile has a layout. staged: what works through shared
// memory has its place there (ir/scratch.h), and barriers keep the uses of memory in order
// (ir/order.h). tk_op_legal is the table; the verifier checks it after each pass. From the second
// level on each tile has a layout (ir/layout.h) and nothing else has one; what the layouts of an op
// have to do with each other, verify_layout.c says.
//
// Ownership: everything is in the module's arena. Passes change a module in place; afterwards it is
// const.
#ifndef TK_IR_IR_H
#define TK_IR_IR_H

#include "ir/layout.h"
#include "ir/note.h"
#include "lang/base.h"
#include "lang/diag.h"
#include "lang/num.h"
#include "lang/tree.h"
#include "lang/type.h"

typedef uint32_t tk_vid;
typedef uint32_t tk_loc; // index into tk_module.locs; 0 = unknown

enum {
    TK_ANY = -1,
    TK_MAX_REGION_DEPTH = 1000, // regions in regions: what recursion over a function may rely on
};

typedef enum tk_opcode {
#define TK_OP(ID, NAME, OPERANDS, RESULTS, REGIONS, EFFECT, LEVELS, DOC) TK_OP_##ID,
#define TK_OP_ELEM(ID, NAME, ARITY, RESULT, RULE)                        TK_OP_##ID,
#include "ir/ops.def"
    TK_OP_COUNT
} tk_opcode;

typedef enum { TK_LEVEL_TILE = 1, TK_LEVEL_LAID = 2, TK_LEVEL_STAGED = 4 } tk_level;
typedef enum {
    TK_FX_PURE,
    TK_FX_READ,
    TK_FX_WRITE,
    TK_FX_ATOMIC,
    TK_FX_RING,
    TK_FX_CONTROL,
    TK_FX_DEBUG,
    TK_FX_CALL
} tk_effect;

typedef struct tk_opinfo {
    const char *name;
    int operands, results, regions; // or TK_ANY
    tk_effect effect;
    unsigned levels; // tk_level bits
    bool elementwise;
    tk_numop num; // elementwise: the operation
    bool exact;   // elementwise: may be folded
    const char *doc;
} tk_opinfo;
const tk_opinfo *tk_op_info(tk_opcode code);
bool tk_op_from_name(const char *name, size_t n, tk_opcode *out);
bool tk_op_legal(tk_opcode code, tk_level level);

typedef enum {
    TK_K_SUM,
    TK_K_PROD,
    TK_K_MIN,
    TK_K_MAX,
    TK_K_ANY,
    TK_K_ALL,
    TK_K_XOR,
    TK_K_ADD,
    TK_K_AND,
    TK_K_OR,
    TK_K_XCHG
} tk_kindattr;

// How a tile gets into a ring, or from threads to a tensor.
typedef enum {
    TK_HOW_ASYNC,  // fetch: each thread begins copies of up to 16 bytes, which go on by themselves;
                   // store: each thread writes its elements
    TK_HOW_TENSOR, // one thread begins tensor copies
    TK_HOW_REGISTERS, // each thread loads what it brings, and stores it
    TK_HOW_BEGIN,     // brings nothing: of the fetch by registers that follows, of the same tile,
                      // the first loads may begin
} tk_how;

// As what else the tiles of a ring would be there, were they loaded where they are taken: each of a
// load's three ways gives its shape another layout (lower/pass_layout.c).
typedef enum {
    TK_LIKE_LOAD,
    TK_LIKE_COMMON, // all programs read the same
    TK_LIKE_STAGED, // rows go through shared memory
} tk_like;

// What multiplies matrices: each thread for itself, a warp together, four warps together.
typedef enum { TK_UNIT_FMA, TK_UNIT_MMA, TK_UNIT_WGMMA } tk_dot_unit;

// Attributes. A missing integer attribute is its zero; `axis` is TK_AXIS_ALL where an op has none
// written, and `shared` is -1. Which ones an op uses, tk_op_attrs says (the printer, parser and
// verifier go by it).
typedef struct tk_attrs {
    tk_const value; // const
    int axis;
    int64_t start; // slice
    uint8_t perm[TK_MAX_RANK];
    tk_kindattr kind;
    bool reverse, exclusive, descending, masked, other;
    bool part; // assert, assume: of part of a tile, so that its elements' numbers say nothing
    tk_precision precision;
    tk_dot_unit unit; // dot: what multiplies
    bool open;        // dot: the tile is there when a `wait` gives it
    tk_order order;
    tk_memscope scope;
    int64_t pipeline, unroll;
    int64_t
        staged; // load, store: rows that go through shared memory (lower/stage.h); 0: it does not
    int64_t slots;     // ring; store by tensor copies: pieces that are in shared memory at once
    int64_t pieces;    // store by tensor copies: of the tile, one after the other
    int64_t cluster;   // ring: programs that fill those of all of them together; 0: one its own
    tk_like like;      // ring
    int64_t producers; // partition: warps
    tk_how how;        // fetch, store
    int64_t hold;      // load: the first so many iterations of its loop leave their tiles in shared
                       // memory, each thread its own elements (ir/hold.h); 0: none do
    int64_t held;      // load: takes what the load with that number left, from 1 on; 0: none
    int64_t index[TK_MAX_TENSOR_RANK]; // load, store, atomics: per dimension 0 scalar, n > 0 range,
                                       // -1 tile
    const char *text;                  // assert, print (NULL: none)
    const int64_t
        *shown; // print: how much of its tiles, extents one after the other; nshown 0: all
    uint32_t nshown;
    const char *callee; // call
    int64_t shared;     // where its part of the program's shared memory starts, in bytes; -1: none
} tk_attrs;

// Attributes as bits.
typedef uint64_t tk_attr_bits;
#define TK_A_VALUE      (UINT64_C(1) << 0)
#define TK_A_AXIS       (UINT64_C(1) << 1)
#define TK_A_START      (UINT64_C(1) << 2)
#define TK_A_PERM       (UINT64_C(1) << 3)
#define TK_A_KIND       (UINT64_C(1) << 4)
#define TK_A_REVERSE    (UINT64_C(1) << 5)
#define TK_A_EXCLUSIVE  (UINT64_C(1) << 6)
#define TK_A_DESCENDING (UINT64_C(1) << 7)
#define TK_A_MASKED     (UINT64_C(1) << 8)
#define TK_A_OTHER      (UINT64_C(1) << 9)
#define TK_A_PRECISION  (UINT64_C(1) << 10)
#define TK_A_ORDER      (UINT64_C(1) << 11)
#define TK_A_SCOPE      (UINT64_C(1) << 12)
#define TK_A_PIPELINE   (UINT64_C(1) << 13)
#define TK_A_UNROLL     (UINT64_C(1) << 14)
#define TK_A_INDEX      (UINT64_C(1) << 15)
#define TK_A_TEXT       (UINT64_C(1) << 16)
#define TK_A_CALLEE     (UINT64_C(1) << 17)
#define TK_A_SHARED     (UINT64_C(1) << 18)
#define TK_A_SHOWN      (UINT64_C(1) << 19)
#define TK_A_PART       (UINT64_C(1) << 20)
#define TK_A_STAGED     (UINT64_C(1) << 21)
#define TK_A_SLOTS      (UINT64_C(1) << 22)
#define TK_A_HOW        (UINT64_C(1) << 23)
#define TK_A_PRODUCERS  (UINT64_C(1) << 24)
#define TK_A_UNIT       (UINT64_C(1) << 25)
#define TK_A_HOLD       (UINT64_C(1) << 26)
#define TK_A_HELD       (UINT64_C(1) << 27)
#define TK_A_CLUSTER    (UINT64_C(1) << 28)
#define TK_A_LIKE       (UINT64_C(1) << 29)
#define TK_A_PIECES     (UINT64_C(1) << 30)
#define TK_A_OPEN       (UINT64_C(1) << 31)
tk_attr_bits tk_op_attrs(tk_opcode code);
// What combined by a reduction's kind with an element changes no bit of it: of float sums -0, for
// +0 would make +0 of -0. `all` and `and` are of bools.
tk_const tk_kind_identity(tk_kindattr kind, tk_dtype t);

typedef struct tk_op {
    tk_opcode code;
    tk_loc loc;
    uint8_t fast; // TK_FAST_* bits: what the source permits for this operation
    uint32_t nopnd, nres, nreg;
    tk_vid *opnd;
    tk_vid *res;
    struct tk_region **reg;
    tk_attrs at;
    struct tk_op *prev, *next;
    struct tk_region *in;
} tk_op;

typedef struct tk_region {
    tk_op *first, *last;
    TK_VEC(tk_vid) args;
    tk_op *owner; // NULL: a function's body or grid
    struct tk_func *func;
} tk_region;

typedef struct tk_irvalue {
    const tk_type *type;
    tk_op *def;              // NULL: a region's argument or a parameter
    tk_region *region;       // where it is an argument; NULL for parameters and results
    uint32_t index;          // which result, argument or parameter
    const tk_layout *layout; // of a tile, above the level tile; else NULL
    const char *name;        // hint for printing; or NULL
} tk_irvalue;

typedef struct tk_size_ref { // of dimension `axis` of parameter `param`
    uint32_t param, axis;
} tk_size_ref;

typedef struct tk_same_size {
    tk_size_ref of, is; // `is` stands before `of`, and is the size of no other
} tk_same_size;

typedef struct tk_func {
    struct tk_module *module;
    const char *name;
    tk_loc loc;
    bool is_kernel;
    TK_VEC(tk_irvalue) value; // value.at[0] is unused
    TK_VEC(tk_vid) params;
    TK_VEC(tk_same_size) sizes; // kernel: those that are the same in each launch, by their names
    TK_VEC(const tk_type *) results;
    tk_region *body;
    tk_region *grid; // kernel; NULL: one program
} tk_func;

typedef struct tk_location {
    tk_span span;
    tk_loc from; // the call that this was inlined from; 0 = none
} tk_location;

typedef struct tk_module {
    tk_arena *arena;
    const tk_sources *sources; // may be NULL (IR read from text)
    tk_level level;
    TK_VEC(tk_func *) funcs;
    TK_VEC(tk_location) locs; // locs.at[0] is unknown
    tk_notes notes;
    tk_kernel_attrs attrs;
    int64_t thread_elems; // of a tile that a thread works on at once, at most; 0: as lower/ decides
    int64_t packed;       // programs of the source that one of these is; 0: itself
    int64_t live;         // elements of the largest tile before it was padded; 0: it was not
    int64_t group;        // order of programs: as many along axis 0 as this, with all along axis 1,
                          // come before the next along axis 0; 0: all along axis 0 do
    int64_t shared;       // bytes of shared memory of a program, once they are given out
} tk_module;

// ---- Building
tk_module *tk_module_new(tk_arena *arena, const tk_sources *sources);
tk_func *tk_func_new(tk_module *m, const char *name, bool is_kernel); // with an empty body; no grid
tk_vid tk_func_param(tk_func *f, const tk_type *type, const char *name);
// The first size that is the same as this one in each launch.
tk_size_ref tk_func_size(const tk_func *f, uint32_t param, uint32_t axis);
tk_region *tk_region_new(tk_func *f, tk_op *owner);
tk_vid tk_region_arg(tk_region *r, const tk_type *type, const char *name);
tk_loc tk_loc_new(tk_module *m, tk_span span, tk_loc from);
tk_func *tk_module_find(const tk_module *m, const char *name); // NULL

// A new op, in no region yet. Operands are copied; regions are made by the caller (op->reg[i] =
// tk_region_new(f, op)).
tk_op *tk_op_new(tk_func *f, tk_opcode code, tk_loc loc, uint32_t nopnd, const tk_vid *opnd,
                 uint32_t nres, const tk_type *const *res, uint32_t nreg);
void tk_op_append(tk_region *r, tk_op *op);
void tk_op_insert_before(tk_op *at, tk_op *op);
void tk_op_unlink(tk_op *op); // takes it out of its region; its values stay numbered

const tk_type *tk_value_type(const tk_func *f, tk_vid v);
const tk_layout *tk_value_layout(const tk_func *f, tk_vid v); // NULL: none
void tk_value_lay(tk_func *f, tk_vid v, const tk_layout *l);  // l is in the module's arena
bool tk_value_same_layout(const tk_func *f, tk_vid x, tk_vid y);
tk_op *tk_value_def(const tk_func *f, tk_vid v); // NULL for arguments and parameters
bool tk_op_is_terminator(const tk_op *op);
// As much of operand i of a print as is shown.
void tk_print_extents(const tk_func *f, const tk_op *op, uint32_t i, int64_t dim[TK_MAX_RANK]);
// Calls f for op and every op in its regions, outer first.
void tk_op_walk(tk_op *op, void (*f)(void *user, tk_op *op), void *user);
void tk_func_walk(tk_func *fn, void (*f)(void *user, tk_op *op), void *user); // grid, then body

// ---- Text form

// parse(print(m)) gives an equal module: names of functions and parameters, types, attributes,
// order; with locs also the locations (as spans of named files). Values are renumbered in order of
// appearance.
void tk_ir_print(tk_buf *out, const tk_module *m, bool locs);
void tk_ir_print_op(tk_buf *out, const tk_func *f, const tk_op *op);
// From source file `source` (its text is IR). NULL after errors. The result is verified by the
// caller.
tk_module *tk_ir_parse(tk_arena *arena, tk_sources *sources, uint32_t source, tk_diags *diags);

// ---- Verifier

// Checks everything that ops.def, the types and the level ask for. False and a text naming the op,
// the rule and the function when it does not hold. Works on modules of any origin (never trusts
// them): ids in range, dominance, terminators, operand counts, types, attributes, levels, tensor
// access (no load of an out tensor ...).
bool tk_ir_verify(tk_arena *scratch, const tk_module *m, const char **why);
// The same, with the op's (or function's) place in `where`; no place where there is none.
bool tk_ir_verify_at(tk_arena *scratch, const tk_module *m, const char **why, tk_span *where);

// ---- From the checked program

// One function an instance. assert ops are made only where debug is set.
tk_module *tk_build_module(tk_arena *arena, const tk_sources *sources, const tk_program *p,
                           bool debug);

#endif
