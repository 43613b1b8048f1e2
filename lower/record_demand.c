// SPDX-License-Identifier: Apache-2.0
// What a program with products on tensor cores asks of a multiprocessor (cost.h). See record.h.
#include "ir/pass_util.h"
#include "ir/scratch.h"
#include "lower/record_internal.h"

static double times(const tk_recorder *r) { return r->times >= 0 ? r->times : 1; }

static double operand_bytes(const tk_recorder *r, const tk_operand *x) {
    return (double)tk_type_elems(tk_value_type(r->f, x->v)) * x->bytes;
}

// How often an operand is read whole: by each tile of instructions that it is not along.
static double reads(const tk_recorder *r, const tk_matrix_plan *p, const tk_product *d, bool is_a) {
    const double warps = (double)r->f->module->attrs.warps;
    const double side = (double)((int64_t)1 << p->columns); // columns of a warp
    const double across = (double)d->columns > side ? (double)d->columns / side : 1;
    if (is_a) {
        return across;
    }
    const double down = p->m.unit == TK_UNIT_WGMMA ? (double)d->rows / 64 : warps / across;
    return down > 1 ? down : 1;
}

static void of_operand(tk_recorder *r, const tk_matrix_plan *p, const tk_product *d,
                       const tk_operand *x, bool is_a) {
    const double bytes = operand_bytes(r, x) * times(r);
    if (x->where != TK_OPERAND_REGISTERS) {
        r->demand.read += bytes * reads(r, p, d, is_a);
    }
    r->demand.written += x->where == TK_OPERAND_STAGED ? bytes : 0;
}

void tk_record_demand(tk_recorder *r, const tk_op *op, const tk_matrix_plan *p) {
    const tk_product d = tk_product_of(r->f, op);
    const double each = (double)d.batch * (double)d.rows * (double)d.columns * (double)d.k;
    const double as_f16 = tk_record_as_f16(r, op);
    if (r->branch || !r->o->target) {
        return;
    }
    r->demand.tiles = times(r) > r->demand.tiles ? times(r) : r->demand.tiles;
    r->demand.matrix +=
        times(r) * tk_matrix_cycles(r->o->target, each * as_f16, op->at.unit == TK_UNIT_WGMMA);
    of_operand(r, p, &d, &p->a, true);
    of_operand(r, p, &d, &p->b, false);
    r->demand_unknown =
        r->demand_unknown || r->times < 0 || tk_value_type(r->f, op->res[0])->dtype == TK_F64;
}

void tk_record_demand_of_take(tk_recorder *r, const tk_op *op) {
    const double bytes = (double)tk_ring_slot_bytes(tk_value_type(r->f, op->res[0])) * times(r);
    if (!r->branch) {
        r->demand.fetched += bytes;
        r->demand.written += bytes;
    }
}

void tk_record_demand_of_load(tk_recorder *r, double requests, double bytes) {
    r->demand.requests += r->branch ? 0 : requests;
    r->demand.fetched += r->branch ? 0 : bytes;
}

void tk_record_demand_of_fetch(tk_recorder *r, double requests) {
    r->demand.lifted += r->branch ? 0 : requests;
}

void tk_record_demand_note(tk_recorder *r) {
    tk_notes *notes = &r->f->module->notes;
    if (r->demand.matrix <= 0 || r->demand_unknown) {
        return;
    }
    tk_note_rec *n = tk_note_add(
        notes, "record", "demand", tk_loc_span(r->f->module, r->f->loc), TK_NOTE_INFO,
        "what a program asks of a multiprocessor: cycles of its matrix unit, bytes through shared "
        "memory and from the second-level cache");
    tk_note_number_add(notes, n, "tiles", r->demand.tiles);
    tk_note_number_add(notes, n, "matrix cycles", r->demand.matrix);
    tk_note_number_add(notes, n, "shared read", r->demand.read);
    tk_note_number_add(notes, n, "shared written", r->demand.written);
    tk_note_number_add(notes, n, "fetched", r->demand.fetched);
    tk_note_number_add(notes, n, "requests not ahead", r->demand.requests);
    tk_note_number_add(notes, n, "requests of fetches", r->demand.lifted);
}
