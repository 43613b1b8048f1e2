// SPDX-License-Identifier: Apache-2.0
// Rings. See ring.h.
#include "lower/ring.h"

#include "ir/matrix.h"
#include "ir/pass_util.h"
#include "lower/lower.h"
#include "lower/view_plan.h"
#include "lower/views.h"

#include <string.h>

static unsigned log_of(int64_t n) {
    unsigned k = 0;
    while ((int64_t)1 << k < n) {
        k++;
    }
    return k;
}

// The tile's axis along the tensor's last dimension, or its last one.
static unsigned fast_axis(const tk_func *f, const tk_op *op) {
    const tk_type *t = tk_view_type(f, op);
    const tk_view_axes v = tk_view_axes_of(f, op);
    const uint32_t last = v.n ? v.n - 1 : 0;
    return v.n && op->at.index[last] != 0 ? v.first[last] + v.count[last] - 1U : t->rank - 1U;
}

typedef struct search {
    tk_vid ring;
    const tk_op *fetch;
} search;

static void find(void *user, tk_op *op) {
    search *s = user;
    s->fetch = tk_fetches(op, s->ring) ? op : s->fetch;
}

bool tk_fetches(const tk_op *op, tk_vid ring) {
    return op->code == TK_OP_FETCH && op->at.how != TK_HOW_BEGIN && op->opnd[op->nopnd - 1] == ring;
}

const tk_op *tk_ring_fetch(const tk_func *f, tk_vid ring) {
    search s = {ring, NULL};
    tk_func_walk((tk_func *)(uintptr_t)f, find, &s); // changes nothing
    return s.fetch;
}

tk_like tk_loaded_like(const tk_func *f, const tk_op *op) {
    return op->at.staged              ? TK_LIKE_STAGED
           : tk_is_common_load(f, op) ? TK_LIKE_COMMON
                                      : TK_LIKE_LOAD;
}

tk_layout tk_ring_layout(const tk_func *f, const tk_op *ring) {
    const tk_type *t = tk_value_type(f, ring->res[0]);
    const tk_op *fetch = tk_ring_fetch(f, ring->res[0]);
    return fetch
               ? tk_ring_layout_of(f, fetch)
               : tk_layout_placed(t->rank, t->dim, t->rank - 1U, (unsigned)tk_dtype_size(t->dtype));
}

tk_layout tk_ring_layout_of(const tk_func *f, const tk_op *load) {
    const tk_type *t = tk_view_type(f, load);
    return tk_layout_placed(t->rank, t->dim, fast_axis(f, load), (unsigned)tk_dtype_size(t->dtype));
}

// ---- Who brings what ----------------------------------------------------------------------------

// Bits of the element number in the order in which they are given out.
typedef struct bits {
    uint32_t at[2 * TK_MAX_REG_BITS];
    unsigned n;
} bits;

static void add_bits(bits *b, unsigned shift, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; i++) {
        b->at[b->n++] = 1U << (shift + i);
    }
}

static uint32_t taken(bits *b, unsigned at) {
    const uint32_t bit = b->at[at];
    memmove(&b->at[at], &b->at[at + 1], (--b->n - at) * sizeof *b->at);
    return bit;
}

// Of what comes through registers a warp has rows whose distance is a multiple of 16 elements'
// bytes (of 16 bytes, whatever the stride), 128 bytes of each: so its chunks begin all at the same
// place in 16 bytes, and its stores meet no bank twice. What differs there differs by warp first,
// then by register.
static tk_layout rows_apart(const tk_type *t, unsigned fast, unsigned vec, unsigned log_warps) {
    enum { AT_ONCE = 3 }; // chunks of a row, as a power of two
    const unsigned apart = log_of(TK_FETCH_BYTES / (int64_t)tk_dtype_size(t->dtype));
    tk_layout l = {.rank = (uint8_t)t->rank, .warps = (uint8_t)log_warps};
    for (unsigned i = 0; i < t->rank; i++) {
        l.log_dim[i] = (uint8_t)log_of(t->dim[i]);
    }
    const unsigned row = tk_layout_shift(&l, fast), all = l.log_dim[fast];
    const unsigned wide = vec + AT_ONCE < all ? vec + AT_ONCE : all;
    bits b = {.n = 0};
    add_bits(&b, row, vec, wide);
    unsigned same = b.n;
    for (unsigned pass = 0; pass < 2; pass++) {
        if (pass) {
            add_bits(&b, row, wide, all);
            same = b.n;
        }
        for (unsigned i = t->rank; i-- > 0;) {
            const unsigned n = l.log_dim[i], cut = n < apart ? n : apart;
            if (i != fast) {
                add_bits(&b, tk_layout_shift(&l, i), pass ? 0 : cut, pass ? cut : n);
            }
        }
    }
    for (unsigned i = 0; i < vec; i++) {
        l.reg[l.regs++] = 1U << (row + i);
    }
    for (unsigned i = 0; i < TK_LANE_BITS && b.n > 0; i++) {
        l.lane[i] = taken(&b, 0);
        same -= same > 0;
    }
    for (unsigned i = 0; i < log_warps && b.n > 0; i++) {
        l.warp[i] = taken(&b, same < b.n ? same : 0);
    }
    while (b.n > 0) {
        l.reg[l.regs++] = taken(&b, 0);
    }
    return l;
}

tk_layout tk_fetch_layout(const tk_func *f, const tk_op *op, unsigned log_warps) {
    const tk_type *t = tk_view_type(f, op);
    const unsigned fast = fast_axis(f, op), extent = log_of(t->dim[fast]);
    uint8_t order[TK_MAX_RANK] = {(uint8_t)fast};
    for (unsigned i = t->rank, n = 1; i-- > 0;) {
        if (i != fast) {
            order[n++] = (uint8_t)i;
        }
    }
    const unsigned most = log_of(TK_FETCH_BYTES / (int64_t)tk_dtype_size(t->dtype));
    const unsigned vec = most < extent ? most : extent;
    const bool loads = op->code == TK_OP_FETCH && op->at.how >= TK_HOW_REGISTERS;
    return loads && vec == most ? rows_apart(t, fast, vec, log_warps)
                                : tk_layout_blocked(t->rank, t->dim, order, vec, log_warps);
}

bool tk_fetch_alike(const tk_layout *l, unsigned size) {
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        for (unsigned d = 0; d < l->rank; d++) {
            const uint32_t at = l->lane[i] >> tk_layout_shift(l, d) & ((1U << l->log_dim[d]) - 1);
            if (at * size % TK_FETCH_BYTES != 0) {
                return false;
            }
        }
    }
    return true;
}

unsigned tk_fetch_chunk(const tk_func *f, const tk_op *op) {
    const tk_type *t = tk_view_type(f, op);
    const int64_t n = TK_FETCH_BYTES / (int64_t)tk_dtype_size(t->dtype);
    const int64_t extent = t->dim[fast_axis(f, op)];
    return (unsigned)(extent < n ? extent : n);
}

bool tk_fetch_in_pieces(const tk_axis *x, const tk_op *op) {
    const tk_func *f = x->func;
    const tk_type *tensor = tk_value_type(f, op->opnd[0]);
    const uint32_t param = f->value.at[op->opnd[0]].index;
    return x->facts && (x->facts[param] & TK_FACT_UNIT) && tensor->rank > 0 &&
           op->at.index[tensor->rank - 1] > 0 &&
           tk_fetch_chunk(f, op) * tk_dtype_size(tensor->dtype) == TK_FETCH_BYTES;
}

// Where warps beside the program's bring it, through registers; NULL: nowhere.
static const tk_op *beside(const tk_op *op) {
    const tk_region *r = op->in;
    while (r->owner && r->owner->code != TK_OP_PARTITION) {
        r = r->owner->in;
    }
    const bool there = op->at.how == TK_HOW_REGISTERS && r->owner && r->owner->reg[0] == r;
    return there ? r->owner : NULL;
}

unsigned tk_fetch_warps(const tk_func *f, const tk_op *op) {
    const tk_op *p = beside(op);
    return (unsigned)(p ? p->at.producers : f->module->attrs.warps);
}

unsigned tk_fetch_bringers(const tk_func *f, const tk_op *op) {
    const unsigned warps = tk_fetch_warps(f, op);
    const tk_layout l = tk_fetch_layout(f, op, log_of(warps));
    uint32_t lane_copies, warp_copies;
    tk_layout_copies(&l, &lane_copies, &warp_copies);
    return warps >> __builtin_popcount(warp_copies);
}

const tk_layout *tk_fetch_threads(const tk_axis *x, const tk_op *op) {
    const unsigned log_warps = log_of(tk_fetch_warps(x->func, op));
    return tk_layout_new(x->arena, tk_fetch_layout(x->func, op, log_warps));
}

const char *tk_fetch_why_not(const tk_axis *x, const tk_op *op, unsigned log_warps) {
    const tk_func *f = x->func;
    tk_vid opnd[2 + TK_MAX_TENSOR_RANK];
    const uint32_t n = 1U + tk_value_type(f, op->opnd[0])->rank;
    for (uint32_t i = 0; i < n; i++) {
        opnd[i] = op->opnd[i];
    }
    opnd[n] = op->res[0];
    tk_op fetch = *op; // as it would be
    fetch.code = TK_OP_FETCH;
    fetch.opnd = opnd;
    fetch.nopnd = n + 1;
    fetch.at.masked = fetch.at.other = false;
    const tk_layout l = tk_fetch_layout(f, &fetch, log_warps);
    const tk_view_plan p = tk_view_plan_of(x, &fetch, &l);
    if (p.vec * tk_dtype_size(tk_view_type(f, op)->dtype) < TK_FETCH_LEAST) {
        return p.narrow ? p.narrow : "its elements are moved one by one";
    }
    return p.aligned ? NULL : "its place in a row is not known to be a multiple of what is copied";
}

const char *tk_place_why_not(const tk_axis *x, const tk_op *op) {
    const uint32_t rank = tk_value_type(x->func, op->opnd[0])->rank;
    const unsigned size = (unsigned)tk_dtype_size(tk_view_type(x->func, op)->dtype);
    if (size >= TK_FETCH_LEAST || rank == 0) {
        return NULL;
    }
    const bool least = op->at.index[rank - 1] * size >= TK_FETCH_LEAST;
    return least ? NULL : "less than 4 bytes of it lie in a row, and no less is brought ahead";
}

bool tk_ring_shares_barrier(const tk_op *ring) {
    return ring->next && ring->next->code == TK_OP_RING;
}

static bool can_join(const tk_axis *x, const tk_op *op) {
    if (!op || op->code != TK_OP_FETCH || !beside(op)) {
        return false;
    }
    const tk_layout *l = tk_fetch_threads(x, op);
    uint32_t lane_copies, warp_copies;
    tk_layout_copies(l, &lane_copies, &warp_copies);
    return tk_fetch_in_pieces(x, op) && lane_copies == 0 && warp_copies == 0 &&
           tk_fetch_alike(l, (unsigned)tk_dtype_size(tk_view_type(x->func, op)->dtype));
}

bool tk_fetch_joins(const tk_axis *x, const tk_op *op) {
    return can_join(x, op) && can_join(x, op->prev);
}

typedef struct sums {
    const tk_func *f;
    unsigned most;
} sums;

static void find_sums(void *user, tk_op *op) {
    sums *s = user;
    if (op->code == TK_OP_DOT && op->at.unit == TK_UNIT_WGMMA) {
        const unsigned bytes = (unsigned)tk_dtype_size(tk_value_type(s->f, op->res[0])->dtype);
        const unsigned n = (1U << tk_value_layout(s->f, op->res[0])->regs) * bytes / 4;
        s->most = n > s->most ? n : s->most;
    }
}

unsigned tk_sum_registers(const tk_func *f) {
    sums s = {f, 0};
    tk_func_walk((tk_func *)(uintptr_t)f, find_sums, &s); // changes nothing
    return s.most;
}

// ---- Loops --------------------------------------------------------------------------------------

bool tk_is_of_parts(const tk_op *loop) {
    for (const tk_op *op = loop->reg[0]->first; op; op = op->next) {
        if (op->loc == loop->loc) {
            return true;
        }
    }
    return false;
}

bool tk_has_loop(const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        if (op->code == TK_OP_FOR || op->code == TK_OP_WHILE) {
            return true;
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (tk_has_loop(op->reg[i])) {
                return true;
            }
        }
    }
    return false;
}

bool tk_multiplies(const tk_region *r) {
    for (const tk_op *op = r->first; op; op = op->next) {
        if (op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED) {
            return true;
        }
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (tk_multiplies(op->reg[i])) {
                return true;
            }
        }
    }
    return false;
}

// ---- Releases -----------------------------------------------------------------------------------

static void release_early(void *user, tk_op *op) {
    enum { MOST = 8 }; // shapes of one tile
    tk_func *f = user;
    if (op->code != TK_OP_TAKE) {
        return;
    }
    tk_vid tile[MOST] = {op->res[0]};
    uint32_t n = 1;
    tk_op *last = op, *release = NULL;
    for (tk_op *x = op->next; x && !release; x = x->next) {
        const bool there =
            x->nres == 1 && tk_value_layout(f, x->res[0]) && tk_value_layout(f, x->res[0])->shared;
        const bool use = x->code != TK_OP_RELEASE && tk_op_uses_any(x, tile, n);
        last = use ? x : last;
        if (use && there && n == MOST) {
            return;
        }
        if (use && there) {
            tile[n++] = x->res[0];
        }
        release = x->code == TK_OP_RELEASE && x->opnd[0] == op->opnd[0] ? x : NULL;
    }
    if (release && last->next != release) {
        tk_op_unlink(release);
        tk_op_insert_before(last->next, release);
    }
}

void tk_ring_release_early(tk_func *f) { tk_func_walk(f, release_early, f); }

bool tk_takes_shared(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l) {
    return op->code == TK_OP_TAKE || op->code == TK_OP_RELEASE || op->code == TK_OP_FETCH ||
           op->code == TK_OP_PERMUTE || tk_unit_takes(f, op, i, l);
}

bool tk_ring_lies(const tk_func *f, tk_vid v, tk_layout *out) {
    const tk_op *d = tk_value_def(f, v);
    if (d && d->code == TK_OP_CONVERT) { // read from there already
        return tk_ring_lies(f, d->opnd[0], out);
    }
    if (d && d->code == TK_OP_PERMUTE && tk_ring_lies(f, d->opnd[0], out)) {
        *out = tk_layout_permute(out, d->at.perm);
        return true;
    }
    const tk_op *ring = d && d->code == TK_OP_TAKE ? tk_value_def(f, d->opnd[0]) : NULL;
    if (ring) {
        *out = tk_ring_layout(f, ring);
    }
    return ring != NULL;
}

// ---- Rounding -----------------------------------------------------------------------------------

typedef struct rounding {
    const tk_func *f;
    tk_vid v;
    bool used, only; // by products of tf32
} rounding;

static void find_product(void *user, tk_op *op) {
    rounding *s = user;
    for (uint32_t i = 0; i < op->nopnd && s->only; i++) {
        if (op->opnd[i] != s->v) {
            continue;
        }
        s->used = true;
        if (op->code == TK_OP_PERMUTE) {
            rounding turned = {s->f, op->res[0], false, true};
            tk_func_walk((tk_func *)(uintptr_t)s->f, find_product, &turned);
            s->only = turned.only;
        } else {
            s->only = op->code == TK_OP_DOT && op->at.precision == TK_PREC_TF32 && i < 2;
        }
    }
}

bool tk_ring_rounds(const tk_func *f, const tk_op *load) {
    rounding s = {f, load->res[0], false, true};
    if (tk_value_type(f, s.v)->dtype == TK_F32) {
        tk_func_walk((tk_func *)(uintptr_t)f, find_product, &s);
    }
    return s.used && s.only;
}
