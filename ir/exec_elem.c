// SPDX-License-Identifier: Apache-2.0
//
// Element-wise steps: a kernel of contiguous arrays, run on blocks. Operands that are not
// contiguous are brought into a block's worth of memory first; one that is the same everywhere is
// spread out once.
#include "ir/exec_internal.h"

enum { LEAST_CUT = 64 }; // shorter runs are gathered across their ends

typedef struct elem_step {
    tk_step h;
    tk_kernel kernel;
    int64_t n;   // 0: as many as there are lanes
    int64_t cut; // blocks do not cross its multiples
    bool direct; // all operands contiguous
    uint32_t arity;
    size_t out;
    uint32_t out_size;
    tk_stream in[3];
} elem_step;

static tk_exec_code run_direct(const tk_step *h, tk_run *r) {
    const elem_step *s = (const elem_step *)h;
    const size_t n = s->n ? (size_t)s->n : r->lanes;
    s->kernel(n, r->base + s->out, r->base + s->in[0].at.off, r->base + s->in[1].at.off,
              r->base + s->in[2].at.off);
    return TK_EXEC_OK;
}

static tk_exec_code run_blocks(const tk_step *h, tk_run *r) {
    const elem_step *s = (const elem_step *)h;
    _Alignas(64) unsigned char tmp[3][TK_BLOCK * sizeof(uint64_t)];
    const int64_t n = s->n ? s->n : (int64_t)r->lanes;
    const void *x[3] = {tmp[0], tmp[0], tmp[0]};
    for (uint32_t k = 0; k < s->arity; k++) {
        const tk_place *at = &s->in[k].at;
        if (s->in[k].kind == TK_STREAM_UNIFORM) {
            tk_splat(tmp[k], r->base + at->off, n < TK_BLOCK ? (size_t)n : TK_BLOCK, at->size);
            x[k] = tmp[k];
        }
    }
    for (int64_t start = 0, m = 0; start < n; start += m) {
        const int64_t to_cut = s->cut - start % s->cut;
        m = n - start < TK_BLOCK ? n - start : TK_BLOCK;
        m = to_cut < m ? to_cut : m;
        for (uint32_t k = 0; k < s->arity; k++) {
            if (s->in[k].kind != TK_STREAM_UNIFORM) {
                x[k] = tk_stream_read(&s->in[k], r->base, start, (size_t)m, tmp[k]);
            }
        }
        s->kernel((size_t)m, r->base + s->out + (size_t)start * s->out_size, x[0], x[1], x[2]);
    }
    return TK_EXEC_OK;
}

void tk_exec_emit_kernel(tk_planner *p, tk_kernel kernel, tk_place out, uint32_t n,
                         const tk_place *in, const bool *same) {
    TK_CHECK(p->arena, kernel != NULL && n <= 3);
    elem_step *s = tk_plan_step(p, sizeof *s, run_direct);
    s->kernel = kernel;
    s->n = same ? 0 : tk_place_elems(&out);
    s->cut = INT64_MAX;
    s->arity = n;
    s->out = out.off;
    s->out_size = out.size;
    s->direct = true;
    for (uint32_t k = 0; k < n; k++) {
        s->in[k] = tk_stream_of(in[k]);
        if (same && same[k]) {
            s->in[k].kind = TK_STREAM_UNIFORM;
        }
        const tk_place *at = &s->in[k].at;
        const int64_t run = at->dim[at->rank - 1];
        if (s->in[k].kind == TK_STREAM_STRIDED && run >= LEAST_CUT && run < s->cut) {
            s->cut = run;
        }
        s->direct = s->direct && s->in[k].kind == TK_STREAM_LINEAR;
    }
    if (!s->direct) {
        s->h.run = run_blocks;
    }
}

// One result from all operands, by a kernel; in a region of lanes, what comes from outside is the
// same in all of them.
static void emit(tk_planner *p, tk_kernel kernel) {
    const tk_op *op = p->op;
    const tk_vid res = op->res[0];
    tk_place in[3] = {{0}};
    bool same[3] = {false};
    for (uint32_t i = 0; i < op->nopnd; i++) {
        in[i] = tk_plan_place(p, op->opnd[i]);
        same[i] = !p->val[p->val[op->opnd[i]].root].lane;
    }
    tk_exec_emit_kernel(p, kernel, tk_plan_place(p, res), op->nopnd, in,
                        p->val[res].lane ? same : NULL);
}

void tk_exec_emit_elem(tk_planner *p) {
    const tk_op *op = p->op;
    const tk_dtype t = tk_plan_type(p, op->opnd[op->nopnd - 1])->dtype;
    emit(p, tk_elem_kernel(tk_op_info(op->code)->num, t));
}

void tk_exec_emit_cast(tk_planner *p) {
    emit(p, tk_cast_kernel(tk_plan_type(p, p->op->opnd[0])->dtype,
                           tk_plan_type(p, p->op->res[0])->dtype));
}

// The same bits; a bool must come out as 0 or 1.
void tk_exec_emit_bitcast(tk_planner *p) {
    const tk_dtype from = tk_plan_type(p, p->op->opnd[0])->dtype;
    const tk_dtype to = tk_plan_type(p, p->op->res[0])->dtype;
    const bool normalise = to == TK_BOOL && from != TK_BOOL;
    emit(p, normalise ? tk_cast_kernel(TK_U8, TK_BOOL) : tk_bits_kernel(tk_dtype_size(to)));
}
