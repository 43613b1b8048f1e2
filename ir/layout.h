// SPDX-License-Identifier: Apache-2.0
// Layouts: where the elements of a tile are.
//
// A layout is a linear map over bits, from hardware index bits (register, lane, warp) to the bits
// of an element's number in row-major order. Extents are powers of two, so that number is the
// concatenation of the coordinates' bits, axis 0 highest, and a coordinate's bits are a range of
// it. The map is given by what each input bit contributes (its basis); an index maps to the
// exclusive or of the bases of its set bits.
//
// The map is onto: every element is somewhere. A zero basis means that the element is in several
// places: lanes or warps that hold copies. Register bases are never zero and independent: a thread
// keeps no element twice (tk_layout_ok).
//
// A tile may lie in shared memory instead (`shared`): then the register bits are those of the place
// of an element there, counted in elements from where the tile begins, and there are neither lanes
// nor warps. Each place holds one element and each element has one place.
//
// Layouts are small values, made in an arena, compared with tk_layout_eq, const once made.
#ifndef TK_IR_LAYOUT_H
#define TK_IR_LAYOUT_H

#include "lang/base.h"
#include "lang/type.h"

enum { TK_LANE_BITS = 5, TK_MAX_REG_BITS = 20, TK_MAX_WARP_BITS = 5 };

typedef struct tk_layout {
    uint8_t rank;
    uint8_t log_dim[TK_MAX_RANK]; // extents as powers of two
    bool shared;                  // in shared memory
    uint8_t regs, warps;          // bits; lanes are always TK_LANE_BITS
    uint32_t reg[TK_MAX_REG_BITS];
    uint32_t lane[TK_LANE_BITS];
    uint32_t warp[TK_MAX_WARP_BITS];
} tk_layout;

// Bits of the element number: the sum of log_dim. The lowest bit of axis d within it is
// tk_layout_shift(l, d).
unsigned tk_layout_bits(const tk_layout *l);
unsigned tk_layout_shift(const tk_layout *l, unsigned axis);
uint32_t tk_layout_eval(const tk_layout *l, uint32_t reg, uint32_t lane, uint32_t warp);
// The bits of elements' numbers that lanes or warps have a part in.
uint32_t tk_layout_thread_bits(const tk_layout *l);
bool tk_layout_eq(const tk_layout *a, const tk_layout *b);
// Onto, register bases independent of one another and non-zero, counts in range. `why` says what is
// wrong.
bool tk_layout_ok(const tk_layout *l, const char **why);
// Whether a tile type can have a layout: extents are powers of two.
bool tk_layout_fits(const tk_type *t, unsigned *bad_axis);

// The blocked layout of a shape: element bits taken with the axes of `order` (fastest first, rank
// entries) from low to high: first `vec` bits to registers, then lanes, then `warps` bits of warps,
// the rest to registers. Where the tile is smaller, the remaining lane and warp bases are zero.
tk_layout tk_layout_blocked(unsigned rank, const int64_t *dim, const uint8_t *order, unsigned vec,
                            unsigned warps);
// Rows apart: behind `vec` bits of registers lanes take the lowest bits, which stand side by side,
// warps the highest, so that a warp has rows of its own where there are enough, and registers those
// between.
tk_layout tk_layout_rows(unsigned rank, const int64_t *dim, const uint8_t *order, unsigned vec,
                         unsigned warps);
const tk_layout *tk_layout_new(tk_arena *a, tk_layout l); // its copy in the arena

// ---- In shared memory

// How a tile lies there so that tensor copies, cp.async, ldmatrix and wgmma can all use it. The
// axis `fast` is contiguous; what it has beyond `span` bytes lies in further panels. Behind the
// fast axis come the others, from the last to the first; the first of them counts the rows of a
// panel, which are `span` bytes each, and all but it stand outside of the panels. The 16 bytes of
// number u in row r of a panel are those of number u ^ (r mod 8) / (128 / span), as these copies
// and instructions swizzle: 8 rows of a column are then in different banks.
typedef struct tk_placed {
    unsigned fast;               // axis
    int rows;                    // axis; -1: the tile has one axis
    uint32_t span;               // bytes of a panel's row: at most TK_SPAN_BYTES, a power of two
    uint32_t panel_rows, panels; // panels of all rows, of one place on the axes outside
    uint32_t outer;              // places on the axes outside
} tk_placed;
enum { TK_SPAN_BYTES = 128, TK_PLACED_ALIGN = 1024 }; // of a tile's first byte
// `bytes`: of an element.
tk_layout tk_layout_placed(unsigned rank, const int64_t *dim, unsigned fast, unsigned bytes);
// Whether l is such a layout, and which.
bool tk_layout_is_placed(const tk_layout *l, unsigned bytes, tk_placed *out);
// Where element number e lies: the place, in elements. Linear over bits.
uint32_t tk_layout_place(const tk_layout *l, uint32_t e);
// The layout of the same registers and threads into the places of `shared`, as of rank 1.
tk_layout tk_layout_places(const tk_layout *threads, const tk_layout *shared);

// ---- What ops do to layouts. Results are made valid again by dropping register bits that became

// copies.
tk_layout tk_layout_reshape(const tk_layout *l, unsigned rank, const int64_t *dim); // same bases
tk_layout tk_layout_permute(const tk_layout *l,
                            const uint8_t *perm); // axis i of the result is axis perm[i]
// What a tile of that shape has where a broadcast stretches it to a tile in layout l and no element
// leaves its thread: l sliced along what is stretched, without the axes in front.
tk_layout tk_layout_stretched(const tk_layout *l, unsigned rank, const int64_t *dim);
// The layout of the same tile with axis reduced to extent 1: its bits go to zero.
tk_layout tk_layout_slice(const tk_layout *l, unsigned axis);

// A tile cut into 1 << log[i] parts along each axis i, each of layout l, with the part's number in
// the highest registers: the last axis lowest.
tk_layout tk_layout_grow(const tk_layout *l, const unsigned *log);

// ---- Questions, answered by ranks of small bit matrices

// Lanes and warps that hold copies: a bit is set where a thread with that index bit set holds only
// what the thread without it holds. Only the thread with all these bits 0 owns its elements.
void tk_layout_copies(const tk_layout *l, uint32_t *lane_mask, uint32_t *warp_mask);
// Whether registers and threads share no bit: then an element's number, and each coordinate, is the
// sum of what the register gives and what the thread gives.
bool tk_layout_apart(const tk_layout *l);
// How many low register bits walk consecutive elements of `axis` (bases 1 << shift, 2 << shift,
// ...).
unsigned tk_layout_vector(const tk_layout *l, unsigned axis);

// A place that holds element `e` in layout l, the one with the least bits; where not `any_lane` or
// `any_warp`, one of that lane or warp. Linear: for elements of several bits it is the exclusive or
// of the places of each bit, so that a source's register, lane and warp can be computed as
// tk_layout_eval does.
typedef struct tk_place_bits {
    uint32_t reg, lane, warp;
} tk_place_bits;
bool tk_layout_find(const tk_layout *l, uint32_t e, uint32_t lane, bool any_lane, uint32_t warp,
                    bool any_warp, tk_place_bits *out);

// The bits of lanes and warps that tell apart the parts of a line: a line's elements differ in the
// bits `axis` of their number. False where a basis lies both on the axis and across it, or on it
// and adds nothing.
bool tk_layout_parts(const tk_layout *l, uint32_t axis, uint32_t *lanes, uint32_t *warps);

// Text: "[64, 64] reg 1 2 4 lane 8 16 32 64 128 warp 256 512", or "[8, 16] shared 1 2 4 ..", and
// back (what ir/parse reads).
void tk_layout_print(tk_buf *out, const tk_layout *l);

#endif
