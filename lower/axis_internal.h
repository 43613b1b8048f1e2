// SPDX-License-Identifier: Apache-2.0
// Inside the axis analysis: claims as values, ranges, and the rules of each group of ops.
#ifndef TK_LOWER_AXIS_INTERNAL_H
#define TK_LOWER_AXIS_INTERNAL_H

#include "lower/axis.h"

static inline unsigned tk_axis_min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned tk_axis_max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline void tk_axis_fire(tk_axis *x, tk_axis_rule r, bool made) { x->fired[r] += made; }

// ---- Claims (axis_value.c)
bool tk_axis_follows(const tk_type *t); // integers and bools
unsigned tk_axis_full(int64_t extent);  // the greatest group of an axis
unsigned tk_axis_trailing(int64_t x);   // zeros at the low end, at most 62; TK_AXIS_ZERO for 0
tk_axis_value tk_axis_top(const tk_type *t);
tk_axis_value tk_axis_const(const tk_type *t, tk_const k);
// Along one axis: smaller groups of consecutive elements.
tk_axis_dim tk_axis_rebase(tk_axis_dim d, unsigned contig);
// Along one axis: what divides every element.
static inline unsigned tk_axis_each(tk_axis_dim d) { return d.contig ? 0 : d.div; }
// What one claim says helps the others; groups are kept within the extents. `wraps`: the operation
// may have wrapped.
void tk_axis_settle(tk_axis *x, tk_axis_value *v, const tk_type *t, bool wraps);
tk_axis_value tk_axis_join(const tk_axis_value *a, const tk_axis_value *b);
bool tk_axis_equal(const tk_axis_value *a, const tk_axis_value *b);
void tk_axis_add_bound(tk_axis_value *v, tk_axis_bound b);
// Bounds of both that hold for either, and bounds of any.
void tk_axis_meet_bounds(tk_axis_value *out, const tk_axis_value *a, const tk_axis_value *b);
void tk_axis_copy_bounds(tk_axis_value *out, const tk_axis_value *a);
// The bounds of `a` for another value y with mul' = mul * scale and add' = add + mul * shift.
bool tk_axis_shift_bounds(tk_axis_value *out, const tk_axis_value *a, int64_t scale, int64_t shift);

// ---- Ranges (axis_range.c)
typedef struct tk_axis_range {
    bool ranged, wraps;
    int64_t lo, hi;
} tk_axis_range;
tk_axis_range tk_axis_type_range(tk_dtype t);
tk_axis_range tk_axis_range_of(const tk_axis_value *v);
bool tk_axis_not_negative(const tk_axis_value *v, tk_dtype t);
// The range of an element-wise result of `n` operands of type t.
tk_axis_range tk_axis_op_range(tk_numop op, tk_dtype t, const tk_axis_value *const *v);
tk_axis_range tk_axis_cast_range(const tk_axis_value *v, tk_dtype to);

// ---- Ops
void tk_axis_elementwise(tk_axis *x, const tk_op *op); // axis_elem.c
void tk_axis_cast(tk_axis *x, const tk_op *op);        // cast and bitcast
void tk_axis_shape(tk_axis *x, const tk_op *op);       // axis_shape.c: everything else that is pure

void tk_axis_set(tk_axis *x, tk_vid v, tk_axis_value value);

#endif
