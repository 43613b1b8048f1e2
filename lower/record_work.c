// SPDX-License-Identifier: Apache-2.0
// What a whole program computes and moves. See record.h.
#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "lower/count.h"
#include "lower/record_internal.h"

void tk_record_moved(tk_recorder *r, const tk_op *op, uint32_t param, double bytes, double by_all) {
    tk_moved *m = &r->moved[param];
    m->read += op->code != TK_OP_STORE ? bytes : 0;
    const bool reads = op->code == TK_OP_LOAD || op->code == TK_OP_FETCH;
    m->written += reads ? 0 : bytes;
    m->read_by_all += op->code != TK_OP_STORE ? by_all : 0;
    m->written_by_all += reads ? 0 : by_all;
    m->unknown = m->unknown || r->times < 0;
}

// ---- Operations ---------------------------------------------------------------------------------

static double elements(const tk_recorder *r, tk_vid v) {
    return (double)tk_type_elems(tk_value_type(r->f, v));
}

// Operations on floats of one execution. What selects or compares is none.
static double of_op(const tk_recorder *r, const tk_op *op) {
    switch ((int)op->code) { // all others compute nothing on floats
    case TK_OP_FMA:
        return 2 * elements(r, op->res[0]);
    case TK_OP_SELECT:
    case TK_OP_EQ:
    case TK_OP_NE:
    case TK_OP_LT:
    case TK_OP_LE:
    case TK_OP_GT:
    case TK_OP_GE:
    case TK_OP_ISNAN:
    case TK_OP_ISINF:
        return 0;
    case TK_OP_REDUCE:
    case TK_OP_SCAN:
        return elements(r, op->opnd[0]);
    case TK_OP_DOT:
    case TK_OP_DOT_SCALED: {
        const tk_product d = tk_product_of(r->f, op);
        return 2 * (double)d.batch * (double)d.rows * (double)d.columns * (double)d.k;
    }
    }
    return tk_op_info(op->code)->elementwise ? elements(r, op->res[0]) : 0;
}

double tk_record_as_f16(const tk_recorder *r, const tk_op *op) {
    const tk_dtype t = tk_value_type(r->f, op->opnd[0])->dtype;
    if (op->at.unit == TK_UNIT_FMA) {
        return 0;
    }
    if (t == TK_F32) {
        return op->at.precision == TK_PREC_TF32X3 ? 6 : 2;
    }
    return tk_dtype_bits(t) == 8 ? 0.5 : 1;
}

void tk_record_work(tk_recorder *r, const tk_op *op) {
    if (op->nres == 0 || tk_value_type(r->f, op->res[0])->kind != TK_T_VALUE ||
        !tk_dtype_is_float(tk_value_type(r->f, op->res[0])->dtype) || r->branch) {
        return;
    }
    const double n = of_op(r, op) * (r->times >= 0 ? r->times : 1);
    const bool wide = tk_value_type(r->f, op->res[0])->dtype == TK_F64;
    const double by_unit = op->code == TK_OP_DOT && !wide ? tk_record_as_f16(r, op) : 0;
    *(by_unit > 0 ? &r->matrix : wide ? &r->flops64 : &r->flops) += n;
    r->as_f16 += n * by_unit;
    r->products += op->code == TK_OP_DOT || op->code == TK_OP_DOT_SCALED ? n : 0;
    r->flops_unknown = r->flops_unknown || (n > 0 && r->times < 0);
}

// ---- The notes ----------------------------------------------------------------------------------

static tk_note_rec *note(const tk_recorder *r, const char *id, const char *text) {
    tk_module *m = r->f->module;
    return tk_note_add(&m->notes, "record", id, tk_loc_span(m, r->f->loc), TK_NOTE_INFO, "%s",
                       text);
}

static double tensor_bytes(const tk_recorder *r, uint32_t param) {
    const tk_type *t = tk_value_type(r->f, r->f->params.at[param]);
    double n = (double)tk_dtype_size(t->dtype);
    for (uint32_t d = 0; d < t->rank; d++) {
        const int64_t size = tk_sample_size(&r->sample, param, d);
        n = size < 0 || n < 0 ? -1 : n * (double)size;
    }
    return n;
}

static void record_traffic(const tk_recorder *r, uint32_t param) {
    tk_notes *notes = &r->f->module->notes;
    const tk_moved *m = &r->moved[param];
    const char *name = r->f->value.at[r->f->params.at[param]].name;
    const double there = tensor_bytes(r, param);
    tk_note_rec *n =
        note(r, "traffic",
             tk_format(notes->arena, "'%s': bytes that a program moves, and the launch",
                       name ? name : "?"));
    tk_note_number_add(notes, n, "read", m->read);
    tk_note_number_add(notes, n, "written", m->written);
    if (m->unknown) {
        tk_note_word_add(notes, n, "times", "not known: the counts are of one");
    } else if (r->programs >= 0 && there >= 0) {
        const double read = m->read_by_all, written = m->written_by_all;
        tk_note_number_add(notes, n, "tensor", there);
        tk_note_number_add(notes, n, "read by all", read);
        tk_note_number_add(notes, n, "written by all", written);
        tk_note_number_add(notes, n, "least",
                           (read < there ? read : there) + (written < there ? written : there));
    }
}

void tk_record_whole(tk_recorder *r) {
    tk_notes *notes = &r->f->module->notes;
    tk_note_rec *n = note(r, "work",
                          r->flops_unknown ? "operations on floats of a program, each loop of "
                                             "unknown length counted once"
                                           : "operations on floats of a program");
    tk_note_number_add(notes, n, "flops", r->flops);
    tk_note_number_add(notes, n, "flops in f64", r->flops64);
    tk_note_number_add(notes, n, "in products", r->products);
    if (r->matrix > 0) {
        tk_note_number_add(notes, n, "on tensor cores", r->matrix);
        tk_note_number_add(notes, n, "as of f16", r->as_f16);
    }
    tk_record_demand_note(r);
    if (r->programs >= 0) {
        n = note(r, "launch", "programs of the launch");
        tk_note_number_add(notes, n, "programs", r->programs);
    }
    for (uint32_t i = 0; i < r->f->params.n; i++) {
        if (r->moved[i].read + r->moved[i].written > 0) {
            record_traffic(r, i);
        }
    }
}
