// SPDX-License-Identifier: Apache-2.0
// Inside the builder (ir/build*.c): from the checked program to the IR.
//
// Variables. Each variable has a slot that holds its current SSA value. A construct with regions
// (if, for, while) carries the slots that its statements assign: those found by tk_build_collect
// that are bound when the construct begins. Results of the function and the flags below are slots
// too, so one mechanism carries all of them.
//
// Early exits. The IR has none. `skip` of a level (the function, or a loop) says that the rest of
// the function or of the iteration is to be left out; `stop` of a loop says that no further
// iteration begins. A flag exists (is bound) only while something will read it. Where an `if`
// leaves on one side, what follows it goes into its other side and no flag is needed.
//
// Lifted instances. What varies is a tile of the lift shape. An if on a varying condition is built
// in line: both sides, then a choice for each slot that they changed. Effects in it need the mask
// of the elements that get there: the conditions around (tk_bmask), without the elements that have
// returned (slot `returned`). A lifted function with effects that is called from a lifted function
// takes the caller's mask as a hidden last parameter.
#ifndef TK_IR_BUILD_INTERNAL_H
#define TK_IR_BUILD_INTERNAL_H

#include "ir/ir.h"

typedef struct tk_bslot {
    const tk_type *type;
    const char *name;
    bool bound;
    tk_vid cur; // 0: not set yet, reads as zero (false)
    uint32_t mark;
} tk_bslot;

typedef struct tk_blevel {
    tk_bslot skip, stop;
    struct tk_blevel *up;
} tk_blevel;

typedef struct tk_bmask {
    tk_vid cond;
    bool negated;
    const struct tk_bmask *up;
} tk_bmask;

// A map from addresses.
typedef struct tk_bmap {
    struct tk_bmap_entry *entry;
    uint32_t n, room;
} tk_bmap;

// What the builder knows of an instance.
typedef struct tk_binst {
    const tk_inst *inst;
    bool effects;         // writes, atomics, asserts, assumes, prints; itself or its callees
    bool plain, masked;   // how it is called
    tk_func *func;        // called plainly
    tk_func *func_masked; // with the mask as the last parameter
} tk_binst;

typedef struct tk_bmod {
    tk_arena *arena;
    tk_module *m;
    const tk_program *p;
    bool debug;
    tk_bmap insts; // tk_inst -> tk_binst
} tk_bmod;

// One function being built.
typedef struct tk_bfn {
    tk_bmod *b;
    tk_arena *arena;
    tk_func *fn;
    const tk_inst *inst;
    tk_region *at; // where ops are appended
    tk_bmap vars;  // tk_var -> tk_bslot
    tk_bslot *ret; // one per result
    tk_bslot returned;
    tk_blevel *level;
    const tk_bmask *mask;
    uint32_t varying_depth; // varying ifs around
    uint32_t nest;          // regions opened for what follows an early exit
    uint32_t marks;
} tk_bfn;

// Statements, then those of `next`.
typedef struct tk_bseq {
    tk_xs *const *at;
    uint32_t n;
    const struct tk_bseq *next;
} tk_bseq;
tk_bseq tk_build_seq_of(const tk_xblock *block, const tk_bseq *next); // block may be NULL

typedef struct tk_bcarry {
    TK_VEC(tk_bslot *) slot;
    tk_vid *old;
} tk_bcarry;

// ---- build_scan.c: what can be said before building
void **tk_bmap_at(tk_arena *a, tk_bmap *map, const void *key); // made where missing
void *tk_bmap_get(const tk_bmap *map, const void *key);        // NULL where missing
enum { TK_BE_BREAK = 1, TK_BE_CONTINUE = 2, TK_BE_RETURN = 4, TK_BE_FALLS = 8 };
// How a statement may end: by leaving a loop or the function, by going on.
unsigned tk_build_ends(const tk_xs *s);
unsigned tk_build_block_ends(const tk_xblock *block);
bool tk_build_varying_if(const tk_xs *s);
void tk_build_scan(tk_bmod *b); // fills insts
// Adds the bound slots that the statements assign, in order of appearance.
void tk_build_collect(tk_bfn *f, tk_bcarry *c, const tk_bseq *s);

// ---- build_emit.c: ops
#define TK_BUILD_OPS(f, span, code, type, ...)                                                     \
    tk_build_op((f), (span), (code), (type),                                                       \
                (uint32_t)(sizeof((tk_vid[]){__VA_ARGS__}) / sizeof(tk_vid)),                      \
                (tk_vid[]){__VA_ARGS__})
tk_op *tk_build_emit(tk_bfn *f, tk_span at, tk_opcode code, uint32_t nopnd, const tk_vid *opnd,
                     uint32_t nres, const tk_type *const *res, uint32_t nreg);
tk_op *tk_build_emit1(tk_bfn *f, tk_span at, tk_opcode code, uint32_t nopnd, const tk_vid *opnd,
                      const tk_type *res);
tk_vid tk_build_op(tk_bfn *f, tk_span at, tk_opcode code, const tk_type *res, uint32_t nopnd,
                   const tk_vid *opnd);
tk_vid tk_build_const(tk_bfn *f, tk_span at, const tk_type *type, tk_const value);
tk_vid tk_build_cast(tk_bfn *f, tk_span at, tk_vid v,
                     tk_dtype to); // nothing where it has that type
const tk_type *tk_build_typeof(const tk_bfn *f, tk_vid v);
const tk_type *tk_build_lift(const tk_bfn *f, const tk_type *type,
                             bool varying); // what varies: a tile
const tk_type *tk_build_shaped(tk_bfn *f, const tk_type *like, tk_dtype dtype);
tk_vid tk_build_stretch(tk_bfn *f, tk_span at, tk_vid v, const tk_type *like); // to its shape
tk_vid tk_build_bool(tk_bfn *f, tk_span at, tk_opcode code, tk_vid a,
                     tk_vid b); // and, or; 0 is "no operand"
tk_vid tk_build_not(tk_bfn *f, tk_span at, tk_vid a);
tk_vid tk_build_any(tk_bfn *f, tk_span at, tk_vid mask); // a scalar
tk_vid tk_build_active(tk_bfn *f, tk_span at);           // the mask for effects here; 0: all
void tk_build_yield(tk_bfn *f, tk_span at, uint32_t n, const tk_vid *v);
void tk_build_name(tk_bfn *f, tk_vid v, const char *name); // where it has none
tk_bslot *tk_build_slot(tk_bfn *f, const tk_var *v);       // made unbound where missing
tk_vid tk_build_read(tk_bfn *f, tk_span at, const tk_bslot *s);
// Opens the regions of ops with carried values.
void tk_build_carry_begin(tk_bfn *f, tk_span at, tk_bcarry *c,
                          bool read); // old = current values (read: zeros made)
void tk_build_carry_yield(tk_bfn *f, tk_span at, const tk_bcarry *c);
void tk_build_carry_restore(const tk_bcarry *c);
void tk_build_carry_args(const tk_bcarry *c, tk_region *r); // slots become region arguments
void tk_build_carry_results(tk_bfn *f, const tk_bcarry *c, const tk_op *op);
const tk_type **tk_build_carry_types(tk_bfn *f, const tk_bcarry *c);

// ---- build_expr.c, build_builtin.c, build_view.c: expressions
tk_vid tk_build_x(tk_bfn *f, const tk_x *x);
void tk_build_multi(tk_bfn *f, const tk_x *x, uint32_t n,
                    tk_vid *out);       // the parts of a tuple, or one value; n may be 0
uint32_t tk_build_count(const tk_x *x); // how many values
const tk_type *tk_build_part(tk_bfn *f, const tk_x *x, uint32_t i); // type of part i in the IR
tk_vid tk_build_tensor(tk_bfn *f, const tk_var *v);
bool tk_build_is_passed(const tk_var *v); // false: an optional parameter that is not given
bool tk_build_is_cheap(const tk_x *x);    // without effects, loads, calls: evaluated freely
void tk_build_call_values(tk_bfn *f, tk_span at, const tk_inst *callee, const tk_vid *arg,
                          uint32_t nres, tk_vid *out);
void tk_build_builtin(tk_bfn *f, const tk_x *x, uint32_t n, tk_vid *out);
tk_vid tk_build_load(tk_bfn *f, const tk_x *x);
tk_vid tk_build_atomic(tk_bfn *f, const tk_x *x);
void tk_build_store(tk_bfn *f, const tk_xs *s);

// ---- build_stmt.c, build_loop.c: statements
void tk_build_seq(tk_bfn *f, tk_bseq s);
void tk_build_if_regions(tk_bfn *f, tk_span at, tk_vid cond, tk_bseq then, tk_bseq other);
void tk_build_assign(tk_bfn *f, tk_span at, const tk_var *var, tk_vid v);
void tk_build_for(tk_bfn *f, const tk_xs *s);
void tk_build_while(tk_bfn *f, const tk_xs *s);

#endif
