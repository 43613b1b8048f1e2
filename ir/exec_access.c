// SPDX-License-Identifier: Apache-2.0
//
// From index operands to memory: which elements of a tensor an access touches, and which of them
// are inside.
//
// Positions are computed in 64 bits. Where an index starts beyond what i64 holds it is outside
// anyway, and the part of a range that is inside is found before anything is added, so nothing
// wraps.
#include "ir/exec_internal.h"

#include <string.h>

// ---- Planning -----------------------------------------------------------------------------------

static void add_axis(tk_mem *m, int64_t dim, int32_t from, int64_t point) {
    m->full[m->full_rank++] = dim;
    if (dim != 1) {
        m->dim[m->rank] = dim;
        m->from[m->rank] = from;
        m->point[m->rank] = point;
        m->rank++;
    }
}

// The index tiles' common shape, right-aligned; its rank.
static uint32_t common_shape(const tk_planner *p, int64_t *dim) {
    const tk_op *op = p->op;
    uint32_t rank = 0;
    for (uint32_t d = 0; d + 1 < op->nopnd && d < TK_MAX_TENSOR_RANK; d++) {
        const tk_type *t = tk_plan_type(p, op->opnd[d + 1]);
        if (op->at.index[d] == -1 && t->rank > rank) {
            rank = t->rank;
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        dim[i] = 1;
    }
    const uint32_t ndim = tk_plan_type(p, op->opnd[0])->rank;
    for (uint32_t d = 0; d < ndim; d++) {
        const tk_type *t = tk_plan_type(p, op->opnd[d + 1]);
        for (uint32_t i = 0; op->at.index[d] == -1 && i < t->rank; i++) {
            if (t->dim[i] != 1) {
                dim[i + rank - t->rank] = t->dim[i];
            }
        }
    }
    return rank;
}

static void add_tile_axes(tk_mem *m, uint32_t rank, const int64_t *dim) {
    int64_t point[TK_MAX_RANK];
    int64_t n = 1;
    for (uint32_t i = rank; i-- > 0;) {
        point[i] = n;
        n *= dim[i];
    }
    for (uint32_t i = 0; i < rank; i++) {
        add_axis(m, dim[i], -1, point[i]);
    }
    m->points = n;
}

static void add_axes(tk_planner *p, tk_mem *m) {
    const tk_op *op = p->op;
    int64_t dim[TK_MAX_RANK] = {0};
    const uint32_t rank = common_shape(p, dim);
    for (uint32_t d = 0; d < m->ndim; d++) {
        m->ntile += op->at.index[d] == -1 ? 1 : 0;
    }
    if (m->ntile > 1) {
        add_tile_axes(m, rank, dim);
    }
    m->ntile = m->ntile > 1 ? m->ntile : 0;
    const bool placed = m->ntile > 0;
    uint32_t k = 0;
    for (uint32_t d = 0; d < m->ndim; d++) {
        const tk_place x = tk_plan_place(p, op->opnd[d + 1]);
        m->index[d] = op->at.index[d];
        m->at[d] = x;
        if (m->index[d] > 0) {
            add_axis(m, m->index[d], (int32_t)d, 0);
        } else if (m->index[d] == -1) {
            if (!placed) {
                add_tile_axes(m, rank, dim);
            }
            m->tile_dim[k] = d;
            m->tile[k] = tk_stream_of(tk_place_stretch(x, rank, dim));
            m->widen[k] = tk_cast_kernel(x.dtype, TK_I64);
            k++;
        }
    }
    m->ntile = k;
}

uint32_t tk_mem_plan(tk_planner *p, tk_mem *m) {
    const tk_op *op = p->op;
    const tk_type *t = tk_plan_type(p, op->opnd[0]);
    m->param = tk_plan_param(p, op->opnd[0]);
    m->ndim = t->rank;
    m->size = (uint32_t)tk_dtype_size(t->dtype);
    add_axes(p, m);
    if (m->rank == 0) { // one element: an axis that is always inside
        m->rank = 1;
        m->dim[0] = 1;
        m->from[0] = -2;
    }
    if (m->ntile > 0) {
        m->offs = tk_plan_temp(p, (size_t)m->points * sizeof(int64_t));
        m->soffs = tk_plan_temp(p, (size_t)m->points * sizeof(int64_t));
    }
    return m->ndim + 1;
}

tk_place tk_mem_place(const tk_mem *m, tk_place x) {
    x = tk_place_stretch(x, m->full_rank, m->full);
    tk_place r = x;
    r.rank = 0;
    for (uint32_t i = 0; i < x.rank; i++) {
        if (x.dim[i] != 1) {
            r.dim[r.rank] = x.dim[i];
            r.stride[r.rank++] = x.stride[i];
        }
    }
    if (r.rank == 0) {
        r.rank = 1;
        r.dim[0] = 1;
        r.stride[0] = r.size;
    }
    return r;
}

// ---- Running ------------------------------------------------------------------------------------

// Saturates: a u64 that i64 does not hold is beyond any dimension.
static int64_t read_index(const tk_place *x, const tk_run *r) {
    const tk_const c = tk_const_load(x->dtype, r->base + x->off);
    return x->dtype == TK_U64 && c.bits > INT64_MAX ? INT64_MAX : tk_const_as_i64(c);
}

// Which of start, start + 1, .. start + n - 1 lie in 0 .. dim - 1: lo <= i < hi.
static void clip(int64_t start, int64_t n, int64_t dim, int64_t *lo, int64_t *hi) {
    *lo = 0;
    *hi = 0;
    if (start <= -n || start >= dim) {
        return;
    }
    *lo = start < 0 ? -start : 0;
    *hi = dim - start < n ? dim - start : n;
}

static void add_points(const tk_mem *m, const tk_run *r, const tk_reach *a, uint32_t k,
                       const int64_t *sstride, int64_t *offs, int64_t *soffs) {
    _Alignas(64) unsigned char tmp[TK_BLOCK * sizeof(uint64_t)];
    int64_t index[TK_BLOCK];
    const uint32_t d = m->tile_dim[k];
    const uint64_t dim = (uint64_t)a->t->dim[d];
    const uint64_t stride = (uint64_t)a->t->stride[d], ss = (uint64_t)sstride[d];
    for (int64_t start = 0; start < m->points; start += TK_BLOCK) {
        const int64_t left = m->points - start;
        const size_t n = left < TK_BLOCK ? (size_t)left : TK_BLOCK;
        const void *x = m->tile[k].kind == TK_STREAM_UNIFORM
                            ? (tk_stream_fill(&m->tile[k], r->base, start, n, tmp), tmp)
                            : tk_stream_read(&m->tile[k], r->base, start, n, tmp);
        m->widen[k](n, index, x, NULL, NULL);
        int64_t *o = offs + start, *so = soffs + start;
        for (size_t i = 0; i < n; i++) {
            const bool in = (uint64_t)index[i] < dim && o[i] != TK_OUTSIDE;
            const uint64_t u = (uint64_t)index[i];
            o[i] = in ? (int64_t)((uint64_t)o[i] + u * stride) : TK_OUTSIDE;
            so[i] = in ? (int64_t)((uint64_t)so[i] + u * ss) : 0;
        }
    }
}

static void begin_tiles(const tk_mem *m, const tk_run *r, tk_reach *a, const int64_t *sstride) {
    int64_t *offs = (int64_t *)(void *)(r->base + m->offs);
    int64_t *soffs = (int64_t *)(void *)(r->base + m->soffs);
    memset(offs, 0, (size_t)m->points * sizeof *offs);
    memset(soffs, 0, (size_t)m->points * sizeof *soffs);
    for (uint32_t k = 0; k < m->ntile; k++) {
        add_points(m, r, a, k, sstride, offs, soffs);
    }
    a->offs = offs;
    a->soffs = soffs;
}

// A scalar index or the start of a range, which is axis `axis` unless its extent is 1.
static void begin_dim(const tk_mem *m, const tk_run *r, tk_reach *a, uint32_t d, uint32_t *axis,
                      int64_t sstride) {
    const int64_t start = read_index(&m->at[d], r);
    const int64_t n = m->index[d] > 1 ? m->index[d] : 1;
    int64_t lo, hi;
    clip(start, n, a->t->dim[d], &lo, &hi);
    a->off += (uint64_t)start * (uint64_t)a->t->stride[d];
    a->soff += (uint64_t)start * (uint64_t)sstride;
    if (n == 1) {
        a->inside = a->inside && lo < hi;
        return;
    }
    while (m->from[*axis] != (int32_t)d) {
        ++*axis;
    }
    a->lo[*axis] = lo;
    a->hi[*axis] = hi;
    a->stride[*axis] = (uint64_t)a->t->stride[d];
    a->sstride[*axis] = (uint64_t)sstride;
}

void tk_reach_begin(const tk_mem *m, const tk_run *r, tk_reach *a) {
    int64_t sstride[TK_MAX_TENSOR_RANK];
    uint64_t n = 1;
    memset(a, 0, sizeof *a);
    a->t = &r->env->tensor[m->param];
    a->inside = true;
    for (uint32_t d = m->ndim; d-- > 0;) {
        sstride[d] = (int64_t)n;
        n *= (uint64_t)a->t->dim[d];
    }
    for (uint32_t i = 0; i < m->rank; i++) {
        a->hi[i] = m->dim[i];
    }
    uint32_t axis = 0;
    for (uint32_t d = 0; d < m->ndim; d++) {
        if (m->index[d] >= 0) {
            begin_dim(m, r, a, d, &axis, sstride[d]);
        }
    }
    if (m->ntile > 0) {
        begin_tiles(m, r, a, sstride);
    }
}

static void row_locate(const tk_mem *m, const tk_reach *a, tk_row *row) {
    row->off = a->off;
    row->soff = a->soff;
    row->inside = a->inside;
    row->point = 0;
    for (uint32_t i = 0; i + 1 < m->rank; i++) {
        const int64_t c = row->at[i];
        row->off += (uint64_t)c * a->stride[i];
        row->soff += (uint64_t)c * a->sstride[i];
        row->point += c * m->point[i];
        row->inside = row->inside && c >= a->lo[i] && c < a->hi[i];
    }
    if (m->ntile > 0 && m->from[m->rank - 1] != -1) {
        const int64_t o = a->offs[row->point];
        row->inside = row->inside && o != TK_OUTSIDE;
        row->off += (uint64_t)o;
        row->soff += (uint64_t)a->soffs[row->point];
    }
}

bool tk_row_first(const tk_mem *m, const tk_reach *a, tk_row *row) {
    memset(row, 0, sizeof *row);
    row_locate(m, a, row);
    return true;
}

bool tk_row_next(const tk_mem *m, const tk_reach *a, tk_row *row) {
    row->first += m->dim[m->rank - 1];
    for (uint32_t i = m->rank - 1; i-- > 0;) {
        if (++row->at[i] < m->dim[i]) {
            row_locate(m, a, row);
            return true;
        }
        row->at[i] = 0;
    }
    return false;
}

bool tk_reach_each(const tk_mem *m, const tk_reach *a, const tk_run *r, tk_visit visit,
                   void *user) {
    const uint32_t last = m->rank - 1;
    tk_row row;
    for (bool more = tk_row_first(m, a, &row); more; more = tk_row_next(m, a, &row)) {
        const unsigned char *mask = m->masked ? tk_row_of(&m->mask, &row, r->base) : NULL;
        for (int64_t j = a->lo[last]; j < a->hi[last] && row.inside; j++) {
            uint64_t off = row.off + (uint64_t)j * a->stride[last];
            uint64_t soff = row.soff + (uint64_t)j * a->sstride[last];
            if (m->from[last] == -1) {
                const int64_t q = row.point + j * m->point[last];
                if (a->offs[q] == TK_OUTSIDE) {
                    continue;
                }
                off += (uint64_t)a->offs[q];
                soff += (uint64_t)a->soffs[q];
            }
            if (mask && !mask[j * m->mask.stride[last]]) {
                continue;
            }
            unsigned char *e =
                (unsigned char *)((uintptr_t)a->t->data + (uintptr_t)(off * m->size));
            if (!visit(user, e, a->t->shadow ? a->t->shadow + soff : NULL, row.first + j)) {
                return false;
            }
        }
    }
    return true;
}
