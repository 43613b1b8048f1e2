// SPDX-License-Identifier: Apache-2.0
// What the files of the pass chunk share. See pass_chunk.c.
//
// A part of a tile: each axis is cut into `count` equal pieces, and `number` says which of them (an
// i32 scalar; 0 where the count is 1). A part has the tile's rank, and extents divided by the
// counts.
//
// A *sink* is an op that must run although its tiles are too large: it has an effect, or makes
// something small out of them, or makes a tile that is kept. It becomes a loop over parts of its
// tiles. What it needs of its operands is made anew in the loop, part by part, back to where parts
// come from: loads, constants, and tiles that are *kept* (ops `empty`, `insert`, `extract`).
#ifndef TK_LOWER_CHUNK_H
#define TK_LOWER_CHUNK_H

#include "ir/pass_util.h"
#include "lower/lower.h"

typedef struct tk_part {
    unsigned rank;
    int64_t count[TK_MAX_RANK];
    tk_vid number[TK_MAX_RANK];
} tk_part;

// A part of a value that a loop needs.
typedef struct tk_part_node {
    struct tk_part_node *next; // other parts of v
    tk_vid v;
    tk_op *op; // what makes v; NULL: nothing does (an argument of a region)
    tk_part part;
    tk_part *in;  // of the op's operands
    tk_vid value; // the part, once it is made
    enum { TK_PART_NEW, TK_PART_OPEN, TK_PART_DONE } state;
} tk_part_node;

typedef enum {
    TK_SINK_EFFECT, // store, atomics, assert, assume
    TK_SINK_REDUCE,
    TK_SINK_ARG,
    TK_SINK_HISTOGRAM,
    TK_SINK_GATHER,
    TK_SINK_DOT,  // over pieces of the inner extent
    TK_SINK_KEEP, // the value is kept, made by parts
    TK_SINK_SCAN, // the same, for a scan along what is cut
    TK_SINK_INSERT
} tk_sink_kind;

enum { TK_MOST_CARRIED = 3 }; // by the loop, for one sink

typedef struct tk_sink {
    tk_sink_kind kind;
    tk_op *op;
    tk_vid v;      // its result
    uint32_t pos;  // of the op
    unsigned axis; // that is cut
    int64_t count; // pieces; 1: none, and the value is kept as a whole
    // What its loop takes from outside, as a whole or kept; what it makes anew; and the tensors
    // that it reads and that somebody writes.
    TK_VEC(tk_vid) whole;
    TK_VEC(tk_vid) keep;
    TK_VEC(tk_vid) made;
    TK_VEC(tk_vid) reads;
    // What it carries: at first, in the loop, from it, and after it.
    uint32_t n;
    tk_vid init[TK_MOST_CARRIED], arg[TK_MOST_CARRIED], next[TK_MOST_CARRIED],
        last[TK_MOST_CARRIED];
} tk_sink;

// Sinks of one loop.
typedef struct tk_sink_group {
    TK_VEC(tk_sink *) sink;
    const tk_region *in;
    tk_op *at;    // the loop stands in front of it, or behind it
    uint32_t pos; // of that op
    bool behind;
} tk_sink_group;

typedef struct tk_chunker {
    tk_pass_ctx *c;
    tk_func *f;
    tk_arena *a;               // scratch
    int64_t most, whole, want; // elements: of a tile that is left alone, of one that a product
                               // makes or takes in registers, of a part
    tk_handed_on handed_on;
    tk_vid n;      // values there are at the round's beginning
    uint32_t *pos; // per value: the number of the op that makes it, in program order
    tk_op **op;    // by that number; nop of them
    uint32_t nop;
    TK_VEC(tk_op *) done; // sinks that loops stand for
    uint8_t *need;        // per value: TK_NEED_*
    tk_vid *kept;         // per value: the tile that keeps it; 0
    tk_part_node **node;  // per value; valid where stamp is epoch
    uint32_t *stamp, epoch;
    TK_VEC(tk_op *) writes; // ops that write memory, in program order, and their numbers
    TK_VEC(uint32_t) write_pos;
    TK_VEC(tk_sink *) sinks;        // last first
    TK_VEC(tk_sink_group *) groups; // in the order of their places
    tk_vmap map;                    // results that others stand for
    // Where ops are made: in front of `before`, or at the end of `in`; their place in the source.
    tk_region *in;
    tk_op *before;
    tk_loc loc;
    bool dry; // numbers of parts are not computed
} tk_chunker;

enum { TK_NEED_WHOLE = 1, TK_NEED_KEPT = 2 };

// ---- Parts (chunk_part.c)
const tk_type *tk_chunk_type(const tk_chunker *s, tk_vid v);
bool tk_chunk_is_tile(const tk_chunker *s, tk_vid v);
int64_t tk_chunk_elems(const tk_chunker *s, tk_vid v); // 0 for what is no tile
tk_part tk_part_whole(const tk_type *t);
tk_part tk_part_along(const tk_type *t, unsigned axis, int64_t count, tk_vid number);
bool tk_part_is_whole(const tk_part *p);
bool tk_part_same(const tk_part *a, const tk_part *b);
const tk_type *tk_part_type(const tk_chunker *s, const tk_type *t, const tk_part *p);
// The axis along which a tile is cut, and into how many pieces: the first axis that can be, or the
// one given.
bool tk_chunk_cut(const tk_chunker *s, const tk_type *t, int axis, unsigned *cut, int64_t *count);
// The parts of op's operands from which the part p of its results can be made by the same op;
// false: there are none.
bool tk_part_operands(tk_chunker *s, const tk_op *op, const tk_part *p, tk_part *in);

// ---- What may be made where (chunk_plan.c)
// Whether a kept tile of type t can give the part: one that repeated cutting makes. `once`: cut
// only once.
bool tk_part_is_piece(const tk_chunker *s, const tk_type *t, const tk_part *p, bool once);
// Whether v is a tile that each thread keeps in memory: see lower.h.
bool tk_chunk_kept(const tk_chunker *s, tk_vid v);
const tk_type *tk_sink_type(const tk_chunker *s, const tk_sink *k); // of the tile that is cut
void tk_chunk_plan(tk_chunker *s);                                  // fills in sinks, last first
tk_part_node *tk_part_node_of(tk_chunker *s, tk_vid v, const tk_part *p);

// ---- Making (chunk_make.c)
tk_op *tk_chunk_op(tk_chunker *s, tk_opcode code, uint32_t nopnd, const tk_vid *opnd, uint32_t nres,
                   const tk_type *const *res);
tk_vid tk_chunk_unary(tk_chunker *s, tk_opcode code, tk_vid x, const tk_type *t);
tk_vid tk_chunk_binary(tk_chunker *s, tk_opcode code, tk_vid x, tk_vid y);
tk_vid tk_chunk_const(tk_chunker *s, const tk_type *t, tk_const value);
tk_vid tk_chunk_i32(tk_chunker *s, int64_t value);
tk_vid tk_chunk_spread(tk_chunker *s, tk_vid x, const tk_type *t); // x where it is no scalar
tk_vid tk_chunk_scaled(tk_chunker *s, tk_vid number, int64_t by);  // number * by
// The op `op` on parts p of its tiles, made where s stands.
tk_op *tk_chunk_again(tk_chunker *s, const tk_op *op, const tk_part *p, const tk_vid *opnd);
tk_vid tk_chunk_value(tk_chunker *s, tk_vid v, const tk_part *p);
tk_vid tk_chunk_insert(tk_chunker *s, tk_vid tile, tk_vid x, const tk_part *p);

// ---- Which share a loop (chunk_group.c)
void tk_chunk_group(tk_chunker *s); // fills in groups
// Marks by value, with TK_NEED_KEPT, what is made anew in several loops and costs more than keeping
// it; whether there is any.
bool tk_chunk_dear(tk_chunker *s, uint8_t *wanted);

// ---- Loops (chunk_loop.c)
void tk_chunk_emit(tk_chunker *s, tk_sink_group *g);

#endif
