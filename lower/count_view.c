// SPDX-License-Identifier: Apache-2.0
// The requests of global memory of an access, as the code of ptx/llvm_memory.c makes them. See
// count.h.
#include "lower/count_internal.h"
#include "lower/out.h"
#include "lower/ring.h"

enum { LANES = 32, MOST_VECTOR = 16 };

typedef tk_counted view;

// ---- Before any element -------------------------------------------------------------------------

// A stride that is not known: far, and a multiple of a sector.
static uint64_t far_apart(uint32_t d) {
    return (UINT64_C(0x9E3779B97F4A7C15) * (d + 1) >> 12) << 5;
}

static void strides(view *v, tk_tensor_facts facts) {
    uint64_t next = v->bytes;
    bool known = true;
    for (uint32_t d = v->rank; d-- > 0;) {
        v->size[d] = tk_sample_size(v->s, v->param, d);
        v->stride[d] = known ? next : far_apart(d);
        known = known && v->size[d] >= 0;
        next *= known ? (uint64_t)v->size[d] : 1;
        if (d > 0 && !known) {
            v->out.assumed = "rows begin at a sector";
        }
    }
    if (v->rank && !known && !(facts & TK_FACT_UNIT)) {
        v->out.unknown = "they depend on the last stride";
    }
}

static void starts(view *v) {
    for (uint32_t d = 0; d < v->rank; d++) {
        const tk_vid at = v->op->opnd[1 + d];
        if (v->op->at.index[d] != -1 && !tk_sample_int(v->s, at, 0, &v->start[d])) {
            v->start[d] = 0;
            v->size[d] = -1; // may be anywhere: taken to be inside
            if (d + 1 == v->rank) {
                v->out.assumed = "what is read begins at a sector";
            }
        }
    }
}

static void find_mask(view *v) {
    const uint32_t values = v->op->code == TK_OP_LOAD ? 0 : v->op->code == TK_OP_ATOMIC_CAS ? 2 : 1;
    v->mask = v->op->at.masked ? v->op->opnd[1 + v->rank + values] : 0;
}

// Who accesses what several threads hold. A scalar is written by one thread, and read by one where
// its tensor is written somewhere.
static void find_owners(view *v) {
    const bool reads = v->op->code == TK_OP_LOAD;
    v->lane_copies = v->warp_copies = UINT32_MAX;
    v->all = reads;
    if (v->l) {
        tk_layout_copies(v->l, &v->lane_copies, &v->warp_copies);
    } else {
        v->all = reads && tk_value_type(v->s->f, v->op->opnd[0])->access == TK_IN;
    }
}

// ---- Elements -----------------------------------------------------------------------------------

bool tk_counted_passes(tk_counted *v, uint32_t e) {
    tk_const m;
    return !v->mask || !tk_sample_value(v->s, v->mask, e, &m) || m.bits;
}

// Of a tile index, the element for element e of the view.
static uint32_t index_element(const view *v, uint32_t d, uint32_t e) {
    const tk_type *t = tk_value_type(v->s->f, v->op->opnd[1 + d]);
    const unsigned first = (unsigned)v->axes.first[d] + v->axes.count[d] - t->rank;
    uint32_t out = 0;
    for (unsigned k = 0; k < t->rank; k++) {
        out =
            out * (uint32_t)t->dim[k] + (t->dim[k] > 1 ? tk_counted_coord(v->l, e, first + k) : 0);
    }
    return out;
}

// False: not known.
static bool index_of(view *v, uint32_t d, uint32_t e, int64_t *out) {
    if (v->op->at.index[d] == -1) {
        return tk_sample_int(v->s, v->op->opnd[1 + d], index_element(v, d, e), out);
    }
    *out = v->start[d];
    *out += v->op->at.index[d] > 0 ? tk_counted_coord(v->l, e, v->axes.first[d]) : 0;
    return true;
}

// Whether element e of the view is accessed, and its address.
static bool accessed(view *v, uint32_t e, uint64_t *at) {
    bool in = tk_counted_passes(v, e);
    *at = 0;
    for (uint32_t d = 0; d < v->rank; d++) {
        int64_t i = 0;
        if (!index_of(v, d, e, &i)) {
            v->out.unknown = "they depend on the indices";
        }
        *at += (uint64_t)i * v->stride[d];
        in = in && i >= 0 && (v->size[d] < 0 || i < v->size[d]);
    }
    return in;
}

// ---- Requests -----------------------------------------------------------------------------------

typedef struct group { // a vector of each lane
    uint64_t at[MOST_VECTOR][LANES];
    uint32_t in[MOST_VECTOR]; // lanes
    uint32_t at_once;         // lanes whose vector is moved at once
} group;

static void fill(view *v, uint32_t reg, uint32_t warp, group *g) {
    const unsigned n = v->p->vec;
    *g = (group){.at_once = UINT32_MAX};
    for (unsigned i = 0; i < n; i++) {
        const uint32_t first = v->l ? tk_layout_eval(v->l, reg + i, 0, warp) : 0;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const uint32_t e = first ^ v->lane_part[lane];
            const bool owned = !(lane & v->lane_copies) && !(warp & v->warp_copies);
            const bool in = (owned || v->all) && accessed(v, e, &g->at[i][lane]);
            g->in[i] |= (uint32_t)in << lane;
            v->out.bytes += in && owned ? v->bytes : 0;
        }
        g->at_once &= g->in[i];
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        if (g->at[0][lane] % (v->bytes * n)) {
            g->at_once &= ~(1U << lane);
        }
    }
}

// What threads of those in the mask put into a ring, n elements at once.
static void count_stored(view *v, unsigned n, uint32_t reg, uint32_t warp, uint32_t of) {
    const tk_layout places =
        tk_layout_places(v->l, tk_value_layout(v->s->f, tk_view_value(v->s->f, v->op)));
    const tk_op *ring = tk_value_def(v->s->f, tk_view_value(v->s->f, v->op));
    const uint64_t base = ring->at.shared > 0 ? (uint64_t)ring->at.shared : 0;
    uint64_t at[LANES];
    uint32_t mask = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        at[lane] = base + (uint64_t)tk_layout_eval(&places, reg, lane, warp) * v->bytes;
        mask |= (uint32_t)(!(lane & v->lane_copies) && !(warp & v->warp_copies)) << lane;
    }
    mask &= of;
    tk_count_wavefronts(&v->out.shared, mask, at, v->bytes * n, false);
}

// What threads copy into a ring: what is outside is nothing but written as 0, in the same request.
static void count_fetch(view *v, const group *g, uint32_t reg, uint32_t warp) {
    const unsigned n = v->p->vec;
    tk_count_sectors(&v->out.of, g->in[0], g->at[0], v->bytes * n);
    count_stored(v, n, reg, warp, UINT32_MAX);
}

// A chunk of each lane that is loaded into registers (ring.h): the 16 bytes that it begins in and
// those that it ends in, or its elements where these are not all inside of the tensor; and its
// store. Of a whole tile all are read. The tensor is taken to begin at a multiple of 16 bytes.
static void count_registers(view *v, uint32_t reg, uint32_t warp, uint64_t end, bool whole) {
    enum { PIECE = TK_FETCH_BYTES };
    const unsigned n = tk_fetch_chunk(v->s->f, v->op);
    const bool pieces = tk_fetch_in_pieces(v->x, v->op);
    uint64_t at[MOST_VECTOR][LANES], piece[2][LANES];
    uint32_t in[MOST_VECTOR] = {0}, read[2] = {0}, apart = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const bool owned = !(lane & v->lane_copies) && !(warp & v->warp_copies);
        for (unsigned i = 0; i < n; i++) {
            const uint32_t e = tk_layout_eval(v->l, reg + i, lane, warp);
            const bool some = owned && accessed(v, e, &at[i][lane]);
            in[i] |= (uint32_t)some << lane;
            v->out.bytes += some ? v->bytes : 0;
            const unsigned second = at[i][lane] / PIECE != at[0][lane] / PIECE;
            read[second] |= (uint32_t)some << lane;
        }
        read[0] |= (uint32_t)(whole && owned) << lane;
        read[1] |= (uint32_t)(whole && owned) << lane;
        for (unsigned k = 0; k < 2 && pieces; k++) {
            piece[k][lane] = (at[0][lane] / PIECE + k) * PIECE;
            if (read[k] >> lane & 1 && piece[k][lane] + PIECE > end) {
                read[k] &= ~(1U << lane);
                apart |= 1U << lane;
            }
        }
    }
    for (unsigned k = 0; k < 2 && pieces; k++) {
        tk_count_sectors(&v->out.of, read[k], piece[k], PIECE);
    }
    for (unsigned i = 0; i < n; i++) {
        tk_count_sectors(&v->out.of, pieces ? in[i] & apart : in[i], at[i], v->bytes);
        count_stored(v, 1, reg + i, warp, in[i] & apart);
    }
    count_stored(v, n, reg, warp, UINT32_MAX);
}

static void count_group(view *v, const group *g) {
    const unsigned n = v->p->vec;
    tk_count_sectors(&v->out.of, g->at_once, g->at[0], v->bytes * n);
    for (unsigned i = 0; i < n && n > 1; i++) {
        tk_count_sectors(&v->out.of, g->in[i] & ~g->at_once, g->at[i], v->bytes);
    }
}

// The byte behind the tensor's last; where its sizes are not known, none.
static uint64_t end_of(const view *v) {
    uint64_t end = v->bytes;
    for (uint32_t d = 0; d < v->rank; d++) {
        const int64_t size = tk_sample_size(v->s, v->param, d);
        if (size < 0) {
            return UINT64_MAX;
        }
        end += (uint64_t)(size - 1) * v->stride[d];
    }
    return end;
}

// Whether the tile and the 16 bytes around it are inside of the tensor, and a warp's chunks begin
// alike there: then nothing is tested.
static bool is_whole(view *v, uint64_t end) {
    enum { PIECE = TK_FETCH_BYTES };
    uint64_t at, most = 0;
    if (!tk_fetch_in_pieces(v->x, v->op) || !tk_fetch_alike(v->l, v->bytes)) {
        return false;
    }
    const uint32_t n = 1U << tk_layout_bits(v->l);
    for (uint32_t e = 0; e < n; e += n - 1) { // the furthest corners
        if (!accessed(v, e, &at)) {
            return false;
        }
        most = at > most ? at : most;
    }
    most -= most >= PIECE ? PIECE - v->bytes : 0;
    return most / PIECE * PIECE + 2 * PIECE <= end;
}

// Tensor copies are no requests. They bring all of a box that is inside, of whole ranges alone.
static void count_boxes(view *v) {
    uint64_t elements = 1;
    for (uint32_t d = 0; d < v->rank; d++) {
        const int64_t n = v->op->at.index[d] > 0 ? v->op->at.index[d] : 1, at = v->start[d];
        const int64_t from = at > INT32_MAX ? INT32_MAX : at < -n ? -n : at; // no size is greater
        const int64_t to = v->size[d] < 0 || from + n < v->size[d] ? from + n : v->size[d];
        const int64_t begin = from < 0 ? 0 : from;
        elements *= to > begin ? (uint64_t)(to - begin) : 0;
    }
    v->out.bytes = elements * v->bytes;
}

static void enumerate(view *v) {
    const uint32_t regs = v->l ? 1U << v->l->regs : 1;
    const uint32_t warps = (uint32_t)v->s->f->module->attrs.warps;
    for (uint32_t w = 0; w < warps; w++) {
        for (uint32_t r = 0; r < regs; r += v->p->vec) {
            group g;
            fill(v, r, w, &g);
            if (v->op->code == TK_OP_FETCH) {
                count_fetch(v, &g, r, w);
            } else {
                count_group(v, &g);
            }
        }
    }
}

// By tensor copies out of shared memory, where all warps but those that have the same write it.
static void count_out(view *v) {
    const tk_out_plan p = tk_out_plan_of(v->s->f, v->op);
    const tk_requests one = tk_out_written(&p);
    for (uint32_t w = 0; w < (uint32_t)v->s->f->module->attrs.warps; w++) {
        if (!(w & v->warp_copies)) {
            v->out.shared.requests += one.requests;
            v->out.shared.units += one.units;
            v->out.shared.least += one.least;
        }
    }
    v->out.barriers = tk_out_barriers(v->op);
}

static view view_of(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p) {
    view v = {.s = s, .x = x, .op = op, .p = p, .param = p->param, .rank = p->rank};
    v.l = op->code == TK_OP_FETCH ? tk_fetch_threads(x, op)
                                  : tk_value_layout(s->f, tk_view_value(s->f, op));
    v.axes = tk_view_axes_of(s->f, op);
    v.bytes = (uint32_t)tk_dtype_size(tk_view_type(s->f, op)->dtype);
    strides(&v, x->facts ? x->facts[p->param] : 0);
    starts(&v);
    find_mask(&v);
    find_owners(&v);
    for (uint32_t lane = 0; v.l && lane < LANES; lane++) {
        v.lane_part[lane] = tk_layout_eval(v.l, 0, lane, 0);
    }
    return v;
}

static bool tile_is_whole(tk_sample *s, const tk_axis *x, const tk_op *op) {
    const tk_view_plan p = tk_view_plan_of(x, op, tk_fetch_threads(x, op));
    view v = view_of(s, x, op, &p);
    return is_whole(&v, end_of(&v));
}

// Of all tiles of a stream.
static bool all_whole(view *v) {
    bool whole = is_whole(v, end_of(v));
    for (const tk_op *op = v->op; whole && tk_fetch_joins(v->x, op);) {
        op = op->prev;
        whole = tile_is_whole(v->s, v->x, op);
    }
    for (const tk_op *op = v->op->next; whole && op && tk_fetch_joins(v->x, op); op = op->next) {
        whole = tile_is_whole(v->s, v->x, op);
    }
    return whole;
}

static void corners(view *v, int64_t at[2][TK_MAX_TENSOR_RANK]) {
    const uint32_t last = v->l ? (1U << tk_layout_bits(v->l)) - 1 : 0;
    for (uint32_t d = 0; d < v->rank; d++) {
        at[0][d] = at[1][d] = 0;
        (void)(index_of(v, d, 0, &at[0][d]) && index_of(v, d, last, &at[1][d]));
    }
}

bool tk_count_inside(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                     int64_t *number) {
    view v = view_of(s, x, op, p);
    int64_t here[2][TK_MAX_TENSOR_RANK], next[2][TK_MAX_TENSOR_RANK];
    bool in = true, all = true;
    corners(&v, here);
    ++*number;
    view w = view_of(s, x, op, p);
    corners(&w, next);
    --*number;
    for (uint32_t d = 0; d < v.rank; d++) {
        const int64_t end = v.size[d] < 0 ? INT64_MAX : v.size[d];
        const bool one = here[0][d] >= 0 && here[0][d] < end && here[1][d] >= 0 && here[1][d] < end;
        const bool moves = here[0][d] != next[0][d];
        in = in && (one || !moves);
        all = all && one;
    }
    const bool stream = all && op->code == TK_OP_FETCH && op->at.how == TK_HOW_REGISTERS;
    return in && (!stream || !tk_fetch_in_pieces(x, op) || all_whole(&v));
}

static void enumerate_registers(view *v) {
    const unsigned n = tk_fetch_chunk(v->s->f, v->op), warps = tk_fetch_warps(v->s->f, v->op);
    const uint64_t end = end_of(v);
    const bool whole = all_whole(v);
    for (uint32_t w = 0; w < warps; w++) {
        for (uint32_t r = 0; r < 1U << v->l->regs; r += n) {
            count_registers(v, r, w, end, whole);
        }
    }
}

tk_view_count tk_count_view(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                            const tk_target *target) {
    view v = view_of(s, x, op, p);
    v.target = target;
    if (op->at.staged) {
        tk_count_staged(&v);
    } else if (op->code == TK_OP_FETCH && op->at.how == TK_HOW_REGISTERS) {
        enumerate_registers(&v);
    } else if (op->at.how == TK_HOW_TENSOR) {
        count_boxes(&v);
    } else {
        enumerate(&v);
    }
    if (tk_is_copied_out(op)) {
        count_out(&v);
    }
    if (op->code == TK_OP_FETCH ||
        tk_is_copied_out(op)) { // boxes count with what they have outside
        const uint64_t tile = (uint64_t)tk_type_elems(tk_view_type(s->f, op)) * v.bytes;
        v.out.async = op->at.how == TK_HOW_TENSOR  ? tile
                      : op->at.how == TK_HOW_ASYNC ? v.out.bytes
                                                   : 0;
    }
    return v.out;
}

bool tk_count_alike(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                    uint64_t *at) {
    view v = view_of(s, x, op, p);
    int64_t corner[2][TK_MAX_TENSOR_RANK];
    bool alike = !v.mask && !v.out.unknown && !op->at.staged && op->at.how != TK_HOW_REGISTERS;
    corners(&v, corner);
    *at = 0;
    for (uint32_t d = 0; d < v.rank; d++) {
        *at += (uint64_t)corner[0][d] * v.stride[d];
        alike = alike && op->at.index[d] != -1 && corner[0][d] >= 0 && corner[1][d] >= 0 &&
                corner[0][d] < v.size[d] && corner[1][d] < v.size[d]; // no size: not alike
    }
    return alike;
}

bool tk_count_begin(tk_sample *s, const tk_axis *x, const tk_op *op, const tk_view_plan *p,
                    uint64_t *at) {
    view v = view_of(s, x, op, p);
    *at = 0;
    for (uint32_t d = 0; d < v.rank; d++) {
        int64_t i = 0;
        if (!index_of(&v, d, 0, &i)) {
            return false;
        }
        *at += (uint64_t)i * v.stride[d];
    }
    return !v.out.unknown;
}
