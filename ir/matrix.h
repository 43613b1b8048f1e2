// SPDX-License-Identifier: Apache-2.0
// How a dot is made of matrix instructions: which ones, where their operands are, and the layouts
// that follow from it. From types, shapes, attributes and layouts alone.
//
// The layout of a result is fixed by how an instruction has it in registers: of a warp's 16 rows
// (f64: 8) and 8 columns, lanes 0 and 1 count pairs of columns, lanes 2 to 4 rows; register bit 0
// is the column in the pair, bit 1 row 8 (not of f64), the following ones further columns, side by
// side. The other bits of registers and warps may be any of rows, columns and batches, each once;
// of wgmma the first two of warps are rows 16 and 32. Warps that have no bit hold copies.
//
// An operand comes from registers (A alone), where it is in just the layout in which instructions
// take it (tk_matrix_a_layout); from shared memory, where it lies there already; or all threads
// write it there first, in the scratch memory of the op, a block of K at a time.
#ifndef TK_IR_MATRIX_H
#define TK_IR_MATRIX_H

#include "ir/ir.h"

typedef struct tk_matrix {
    tk_dot_unit unit;
    tk_dtype a, b, sum;
    tk_precision precision;
    unsigned m, n, k; // log2 of an instruction's extents
    unsigned pack;    // log2 of the elements, along K, of a register
    bool any_major;   // operands in shared memory may be contiguous along either axis
    unsigned log_k;   // of the dot
} tk_matrix;

enum { TK_WGMMA_WARPS_LOG = 2, TK_WGMMA_MOST_N_LOG = 8, TK_MATRIX_F8_INTERVAL_LOG = 7 };

// Whether `unit` can compute the dot; `why` not. FMA is none.
bool tk_matrix_of(const tk_func *f, const tk_op *op, tk_dot_unit unit, tk_matrix *out,
                  const char **why);

// The layout of the result of a dot in 1 << warps warps. `rows`: warps are apart by rows as far as
// these go, so that a row of the result is within a warp; else so that they read little.
tk_layout tk_matrix_layout(const tk_matrix *m, const tk_type *result, unsigned warps, bool rows);
// Makes of it the one that is better where the left operand lies in shared memory as `left` says
// and comes from registers, of 4 bytes an element and contiguous along rows: the last bit of lanes
// is rows 4 and 16 instead of row 4. Lanes read 16 bytes each of two places in four rows of memory,
// and write such in four other rows when the result is stored turned; a swizzle then puts all eight
// in banks of their own either way.
void tk_matrix_spread(const tk_matrix *m, const tk_layout *left, tk_layout *l);
// Whether l is so: the left operand must come from registers.
bool tk_matrix_is_spread(const tk_layout *l);
// Whether l is such a layout, spread or not, and how many columns (log2) are side by side in a
// warp's registers.
bool tk_matrix_layout_ok(const tk_matrix *m, const tk_layout *l, unsigned *columns);
// The layout in which A comes from registers, for a result in layout l.
tk_layout tk_matrix_a_layout(const tk_matrix *m, const tk_layout *l);

typedef enum { TK_OPERAND_REGISTERS, TK_OPERAND_SHARED, TK_OPERAND_STAGED } tk_operand_place;
typedef struct tk_operand {
    tk_vid v;
    const tk_layout *l;
    tk_dtype type;
    tk_operand_place where;
    unsigned bytes;            // of an element
    unsigned row_axis, k_axis; // of b the columns are its rows
    bool k_major;              // contiguous along K
    bool rounded;              // tk_is_rounded
    tk_layout place;           // SHARED: its layout; STAGED: that of a block
} tk_operand;

typedef struct tk_matrix_plan {
    tk_matrix m;
    tk_operand a, b;
    uint32_t block;   // elements along K of a block
    unsigned columns; // log2, as of tk_matrix_layout_ok
} tk_matrix_plan;
// Of a dot with a unit whose layouts are given.
// Whether the unit of a dot reads operand i where it lies in shared memory, as l says.
bool tk_unit_takes(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l);
// Why not; NULL: it does. `rounded`: it lies there as `precision` rounds it.
const char *tk_unit_why_not(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l,
                            bool rounded);
// Whether v is the tile of a ring that its copies round to tf32, or that permuted, or in registers.
bool tk_is_rounded(const tk_func *f, tk_vid v);
// Where wgmma does not read it there: the layout in which threads read it to hand it over in
// registers, or to write it where wgmma does read it, for a result in that layout. False: no better
// one is known than any.
bool tk_unit_way(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l,
                 const tk_layout *result, tk_layout *out);
tk_matrix_plan tk_matrix_plan_of(const tk_func *f, const tk_op *op);
uint64_t tk_operand_bytes(const tk_operand *x); // of a block

// ---- Staging

// The place that element number n of the operand has in its block.
uint32_t tk_operand_in_block(const tk_operand *x, uint32_t block, uint32_t n);
// Where the registers go that are in one block in each thread: the others' bits are those `among`
// which blocks differ; of those set the number says more.
tk_layout tk_operand_targets(const tk_operand *x, uint32_t block, uint32_t *among);

// ---- Fragments from shared memory

// How fragments come from shared memory: by ldmatrix, which gives registers 0 .. n-1 and to which
// lane l gives the address of 16 bytes; transposed, where rows are contiguous, not K; or by
// elements, where no ldmatrix will do. Numbers are of elements of `place`; exclusive-ored.
typedef enum { TK_FRAGMENT_ROWS, TK_FRAGMENT_TRANSPOSED, TK_FRAGMENT_ELEMENTS } tk_fragment_how;
typedef struct tk_fragment {
    tk_fragment_how how;
    uint32_t lane[TK_LANE_BITS];
    unsigned bits;      // of a register's number; of b the upper one is 8 columns, where there are
    uint32_t reg[2];    // what each is
    uint32_t in_reg[2]; // ELEMENTS: of the elements of a register
    bool half;          // K is half of an instruction's: the upper registers are zero
} tk_fragment;
// tiles: log2 of the tiles of 8 columns that there are (of b).
tk_fragment tk_fragment_of(const tk_matrix *m, const tk_operand *x, bool is_a, unsigned columns);

#endif
