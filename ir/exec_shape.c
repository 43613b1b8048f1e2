// SPDX-License-Identifier: Apache-2.0
//
// Ops that move elements about (those that are no aliases), Philox, and what a program knows of the
// grid.
#include "ir/exec_internal.h"
#include "lang/philox.h"

#include <string.h>

// The result, dense, in the operand's shape: the same order of elements.
void tk_exec_emit_reshape(tk_planner *p) {
    const tk_vid v = p->op->res[0];
    if (p->val[v].root != v) {
        return; // an alias
    }
    const tk_place src = tk_plan_place(p, p->op->opnd[0]);
    tk_place dst = tk_place_of(src.dtype, src.rank, src.dim);
    dst.off = tk_plan_place(p, v).off;
    tk_plan_copy(p, dst, src);
}

void tk_exec_emit_concat(tk_planner *p) {
    const tk_op *op = p->op;
    const int axis = op->at.axis;
    tk_place part = tk_plan_place(p, op->res[0]);
    for (uint32_t i = 0; i < 2; i++) {
        const tk_place src = tk_plan_place(p, op->opnd[i]);
        part.dim[axis] = src.dim[axis];
        tk_plan_copy(p, part, src);
        part.off += (size_t)(src.dim[axis] * part.stride[axis]);
    }
}

void tk_exec_emit_interleave(tk_planner *p) {
    const tk_op *op = p->op;
    tk_place part = tk_plan_place(p, op->res[0]);
    const uint32_t last = part.rank - 1;
    part.dim[last] /= 2;
    part.stride[last] *= 2;
    for (uint32_t i = 0; i < 2; i++) {
        tk_plan_copy(p, part, tk_plan_place(p, op->opnd[i]));
        part.off += part.size;
    }
}

// ---- Parts of a tile ----------------------------------------------------------------------------

typedef struct part_step {
    tk_step h;
    tk_place part; // of number 0 along each axis, within the tile
    tk_stream x;   // the same as a sequence (extract)
    int64_t count[TK_MAX_RANK];
    size_t number[TK_MAX_RANK];
    size_t dense; // the part itself, contiguous
} part_step;

// How far the part is from that of number 0, in bytes.
static int64_t part_offset(const part_step *s, const tk_run *r) {
    int64_t at = 0;
    for (uint32_t i = 0; i < s->part.rank; i++) {
        int32_t n;
        memcpy(&n, r->base + s->number[i], sizeof n);
        const int64_t k = (n % s->count[i] + s->count[i]) % s->count[i];
        at += k * s->part.dim[i] * s->part.stride[i];
    }
    return at;
}

static tk_exec_code run_insert(const tk_step *h, tk_run *r) {
    const part_step *s = (const part_step *)h;
    const uint32_t last = s->part.rank - 1;
    const int64_t n = s->part.dim[last], runs = tk_place_elems(&s->part) / n;
    const unsigned char *src = r->base + s->dense;
    const int64_t first = part_offset(s, r);
    for (int64_t i = 0; i < runs; i++, src += n * s->part.size) {
        int64_t rest = i, at = first;
        for (uint32_t k = last; k-- > 0;) {
            at += rest % s->part.dim[k] * s->part.stride[k];
            rest /= s->part.dim[k];
        }
        unsigned char *d = r->base + s->part.off + at;
        tk_copy_run(d, s->part.stride[last], src, s->part.size, (size_t)n, s->part.size);
    }
    return TK_EXEC_OK;
}

static tk_exec_code run_extract(const tk_step *h, tk_run *r) {
    const part_step *s = (const part_step *)h;
    const size_t n = (size_t)tk_place_elems(&s->part);
    tk_stream x = s->x;
    x.at.off = (size_t)((int64_t)x.at.off + part_offset(s, r));
    tk_stream_fill(&x, r->base, 0, n, r->base + s->dense);
    return TK_EXEC_OK;
}

static void plan_part(tk_planner *p, part_step *s, tk_place tile, const tk_type *part,
                      uint32_t first) {
    s->part = tile;
    for (uint32_t i = 0; i < tile.rank; i++) {
        s->part.dim[i] = part->dim[i];
        s->count[i] = tile.dim[i] / part->dim[i];
        s->number[i] = tk_plan_place(p, p->op->opnd[first + i]).off;
    }
    s->x = tk_stream_of(s->part);
}

typedef struct fill_step {
    tk_step h;
    size_t at, bytes;
} fill_step;

static tk_exec_code run_empty(const tk_step *h, tk_run *r) {
    const fill_step *s = (const fill_step *)h;
    memset(r->base + s->at, 0, s->bytes);
    return TK_EXEC_OK;
}

void tk_exec_emit_empty(tk_planner *p) {
    fill_step *s = tk_plan_step(p, sizeof *s, run_empty);
    const tk_place x = tk_plan_place(p, p->op->res[0]);
    s->at = x.off;
    s->bytes = (size_t)tk_place_elems(&x) * x.size;
}

void tk_exec_emit_insert(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_place dst = tk_plan_place(p, op->res[0]), src = tk_plan_place(p, op->opnd[0]);
    if (src.off != dst.off || !tk_place_is_dense(&src)) {
        tk_plan_copy(p, dst, src);
    }
    const tk_place x = tk_plan_dense(p, tk_plan_place(p, op->opnd[1]));
    part_step *s = tk_plan_step(p, sizeof *s, run_insert);
    plan_part(p, s, dst, tk_plan_type(p, op->opnd[1]), 2);
    s->dense = x.off;
}

void tk_exec_emit_extract(tk_planner *p) {
    const tk_op *op = p->op;
    part_step *s = tk_plan_step(p, sizeof *s, run_extract);
    plan_part(p, s, tk_plan_place(p, op->opnd[0]), tk_plan_type(p, op->res[0]), 1);
    s->dense = tk_plan_place(p, op->res[0]).off;
}

// ---- gather -------------------------------------------------------------------------------------

typedef struct gather_step {
    tk_step h;
    tk_place out;      // dense; the index's shape
    tk_place x;        // any strides
    int64_t len, step; // of x along the axis
    tk_stream index;
    tk_kernel widen;
} gather_step;

// Where x's element for the result's element `number` is, but for the axis.
static const unsigned char *gather_base(const gather_step *s, const unsigned char *base,
                                        int64_t number) {
    const unsigned char *q = base + s->x.off;
    for (uint32_t i = s->out.rank; i-- > 0;) {
        q += number % s->out.dim[i] * s->x.stride[i];
        number /= s->out.dim[i];
    }
    return q;
}

static tk_exec_code run_gather(const tk_step *h, tk_run *r) {
    const gather_step *s = (const gather_step *)h;
    const int64_t n = tk_place_elems(&s->out);
    const uint32_t size = s->out.size;
    _Alignas(64) unsigned char tmp[TK_BLOCK * sizeof(uint64_t)];
    int64_t index[TK_BLOCK];
    unsigned char *d = r->base + s->out.off;
    for (int64_t start = 0; start < n; start += TK_BLOCK) {
        const size_t m = n - start < TK_BLOCK ? (size_t)(n - start) : TK_BLOCK;
        s->widen(m, index, tk_stream_read(&s->index, r->base, start, m, tmp), NULL, NULL);
        for (size_t i = 0; i < m; i++, d += size) {
            if (index[i] < 0 || index[i] >= s->len) {
                memset(d, 0, size);
                continue;
            }
            memcpy(d, gather_base(s, r->base, start + (int64_t)i) + index[i] * s->step, size);
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_gather(tk_planner *p) {
    const tk_op *op = p->op;
    gather_step *s = tk_plan_step(p, sizeof *s, run_gather);
    const tk_place index = tk_plan_place(p, op->opnd[1]);
    s->out = tk_plan_place(p, op->res[0]);
    s->x = tk_plan_place(p, op->opnd[0]);
    s->len = s->x.dim[op->at.axis];
    s->step = s->x.stride[op->at.axis];
    s->x.stride[op->at.axis] = 0;
    s->index = tk_stream_of(index);
    s->widen = tk_cast_kernel(index.dtype, TK_I64);
}

// ---- Philox -------------------------------------------------------------------------------------

typedef struct philox_step {
    tk_step h;
    int64_t n;
    size_t seed;
    tk_dtype seed_type;
    tk_stream offset;
    tk_kernel widen;
    size_t out[4];
} philox_step;

// Seed and offset are widened to 64 bits by the language's cast: unsigned ones with zeros, signed
// ones with their sign.
static tk_exec_code run_philox(const tk_step *h, tk_run *r) {
    const philox_step *s = (const philox_step *)h;
    _Alignas(64) unsigned char tmp[TK_BLOCK * sizeof(uint64_t)];
    int64_t offset[TK_BLOCK];
    const uint64_t seed = tk_cast(tk_const_load(s->seed_type, r->base + s->seed), TK_I64).bits;
    for (int64_t start = 0; start < s->n; start += TK_BLOCK) {
        const size_t m = s->n - start < TK_BLOCK ? (size_t)(s->n - start) : TK_BLOCK;
        s->widen(m, offset, tk_stream_read(&s->offset, r->base, start, m, tmp), NULL, NULL);
        for (size_t i = 0; i < m; i++) {
            const tk_philox4 w = tk_philox_at(seed, (uint64_t)offset[i]);
            for (uint32_t k = 0; k < 4; k++) {
                const size_t at = s->out[k] + ((size_t)start + i) * sizeof(uint32_t);
                memcpy(r->base + at, &w.w[k], sizeof(uint32_t));
            }
        }
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_philox(tk_planner *p) {
    const tk_op *op = p->op;
    philox_step *s = tk_plan_step(p, sizeof *s, run_philox);
    const tk_place offset = tk_plan_place(p, op->opnd[1]);
    s->n = tk_place_elems(&offset);
    s->seed = tk_plan_place(p, op->opnd[0]).off;
    s->seed_type = tk_plan_type(p, op->opnd[0])->dtype;
    s->offset = tk_stream_of(offset);
    s->widen = tk_cast_kernel(offset.dtype, TK_I64);
    for (uint32_t k = 0; k < 4; k++) {
        s->out[k] = tk_plan_place(p, op->res[k]).off;
    }
}

// ---- program_id, num_programs -------------------------------------------------------------------

typedef struct program_step {
    tk_step h;
    size_t out;
    uint32_t axis;
    bool count;
} program_step;

// Beyond the grid's axes there is one program, the first.
static tk_exec_code run_program(const tk_step *h, tk_run *r) {
    const program_step *s = (const program_step *)h;
    const bool in = s->axis < r->env->ngrid;
    const int64_t count = in ? r->env->grid[s->axis] : 1;
    const int32_t x = (int32_t)(s->count ? count : r->program[s->axis]);
    memcpy(r->base + s->out, &x, sizeof x);
    return TK_EXEC_OK;
}

void tk_exec_emit_program(tk_planner *p) {
    program_step *s = tk_plan_step(p, sizeof *s, run_program);
    s->out = tk_plan_place(p, p->op->res[0]).off;
    s->axis = (uint32_t)p->op->at.axis;
    s->count = p->op->code == TK_OP_NUM_PROGRAMS;
}
