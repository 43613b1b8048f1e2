// SPDX-License-Identifier: Apache-2.0
// See matrix.h.
#include "ir/matrix.h"

#include "ir/scratch.h"

#include <string.h>

enum { ROW_LANE = 2, COLUMN_LOG = 3, EIGHT_LOG = 3 };

static unsigned log_of(int64_t n) {
    unsigned k = 0;
    while (k < 62 && ((int64_t)1 << k) < n) {
        k++;
    }
    return k;
}

// ---- Instructions -------------------------------------------------------------------------------

static bool no(const char **why, const char *text) {
    if (why) {
        *why = text;
    }
    return false;
}

// Of the types of operands; false: none.
static bool instruction(tk_matrix *m, const char **why) {
    const bool wide = m->unit == TK_UNIT_WGMMA;
    m->m = wide ? 6 : 4;
    m->n = COLUMN_LOG;
    m->any_major = false;
    switch ((int)m->a) { // that a dot takes
    case TK_F16:
    case TK_BF16:
        m->k = 4;
        m->pack = 1;
        m->any_major = true;
        return true;
    case TK_I8:
    case TK_U8:
    case TK_F8E4M3:
    case TK_F8E5M2:
        m->k = 5;
        m->pack = 2;
        return true;
    case TK_F32:
        if (m->precision == TK_PREC_IEEE) {
            return no(why, "f32 is multiplied exactly, as precision = ieee, the default, says");
        }
        if (wide && m->precision == TK_PREC_TF32X3) {
            return no(why, "tf32x3 splits operands in registers");
        }
        m->k = 3;
        m->pack = 0;
        return true;
    case TK_F64:
        if (wide) {
            return no(why, "it does not multiply f64");
        }
        m->m = 3;
        m->k = 2;
        m->pack = 0;
        return true;
    }
    return no(why, "no instruction multiplies these types");
}

bool tk_matrix_of(const tk_func *f, const tk_op *op, tk_dot_unit unit, tk_matrix *out,
                  const char **why) {
    const tk_product d = tk_product_of(f, op);
    const tk_type *b = tk_value_type(f, op->opnd[d.b]);
    *out = (tk_matrix){.unit = unit,
                       .a = tk_value_type(f, op->opnd[0])->dtype,
                       .b = b->dtype,
                       .sum = d.type,
                       .precision = op->at.precision,
                       .log_k = log_of(d.k)};
    if (unit == TK_UNIT_FMA || op->code != TK_OP_DOT) {
        return no(why, "scaled operands are multiplied one by one");
    }
    if (!instruction(out, why)) {
        return false;
    }
    // Half of an instruction's K is made whole with zeros: 16 bytes of a row.
    const unsigned half = out->sum == TK_F64 || unit == TK_UNIT_WGMMA ? 0 : 1;
    if (log_of(d.rows) < out->m) {
        return no(why, out->m == 6   ? "the result has fewer than 64 rows"
                       : out->m == 4 ? "the result has fewer than 16 rows"
                                     : "the result has fewer than 8 rows");
    }
    if (log_of(d.columns) < out->n) {
        return no(why, "the result has fewer than 8 columns");
    }
    if (out->log_k + half < out->k) {
        return no(why, "the inner extent is shorter than an instruction's");
    }
    return true;
}

// ---- The result's layout ------------------------------------------------------------------------

static void lanes_of(const tk_matrix *m, tk_layout *l) {
    const unsigned rank = l->rank, row = tk_layout_shift(l, rank - 2U);
    (void)m;
    for (unsigned i = 0; i < ROW_LANE; i++) {
        l->lane[i] = 2U << i;
    }
    for (unsigned i = ROW_LANE; i < TK_LANE_BITS; i++) {
        l->lane[i] = 1U << (row + i - ROW_LANE);
    }
}

// Bits of warps: of batches, rows and columns.
typedef struct warp_bits {
    unsigned batch, rows, columns;
} warp_bits;

// Rows that a warp has at least, log2: with wgmma four warps have 64.
static unsigned least_rows(const tk_matrix *m) { return m->m == 6 ? 4 : m->m; }

// Columns of which a warp reads whole rows of 128 bytes, where columns are contiguous: wgmma takes
// no part of them.
static unsigned least_columns(const tk_matrix *m) {
    return m->unit == TK_UNIT_WGMMA && m->any_major ? 6 : m->unit == TK_UNIT_WGMMA ? 3 : 4;
}

static warp_bits split(const tk_matrix *m, const tk_layout *l, unsigned warps, bool rows) {
    const unsigned rank = l->rank, batches = rank > 2 ? l->log_dim[0] : 0;
    unsigned r = l->log_dim[rank - 2U], c = l->log_dim[rank - 1U];
    warp_bits w = {0, 0, 0};
    const bool whole_rows = rows || m->unit == TK_UNIT_WGMMA;
    for (unsigned i = 0; i < warps; i++) {
        const bool of_group = m->unit == TK_UNIT_WGMMA && i < TK_WGMMA_WARPS_LOG;
        const bool row = r - w.rows > least_rows(m), column = c - w.columns > least_columns(m);
        if (!of_group && w.batch < batches) { // nothing is read twice
            w.batch++;
        } else if (row && (of_group || whole_rows || !column || r - w.rows >= c - w.columns)) {
            w.rows++;
        } else if (column) {
            w.columns++;
        }
    }
    return w;
}

tk_layout tk_matrix_layout(const tk_matrix *m, const tk_type *result, unsigned warps, bool rows) {
    tk_layout l = {.rank = (uint8_t)result->rank, .warps = (uint8_t)warps};
    for (unsigned i = 0; i < l.rank; i++) {
        l.log_dim[i] = (uint8_t)log_of(result->dim[i]);
    }
    const unsigned rank = l.rank, row = tk_layout_shift(&l, rank - 2U);
    const unsigned nrows = l.log_dim[rank - 2U], ncolumns = l.log_dim[rank - 1U];
    const unsigned batches = rank > 2 ? l.log_dim[0] : 0, batch = row + nrows;
    const unsigned tile = least_rows(m); // log2 of a warp's rows in one instruction
    const warp_bits w = split(m, &l, warps, rows);
    lanes_of(m, &l);
    unsigned n = 0;
    for (unsigned i = 0; i < w.rows; i++) {
        l.warp[n++] = 1U << (row + tile + i);
    }
    for (unsigned i = 0; i < w.columns; i++) {
        l.warp[n++] = 1U << (ncolumns - w.columns + i);
    }
    for (unsigned i = 0; i < w.batch; i++) {
        l.warp[n++] = 1U << (batch + i);
    }
    l.reg[l.regs++] = 1;
    if (tile > EIGHT_LOG) {
        l.reg[l.regs++] = 1U << (row + EIGHT_LOG);
    }
    for (unsigned i = COLUMN_LOG; i < ncolumns - w.columns; i++) {
        l.reg[l.regs++] = 1U << i;
    }
    for (unsigned i = tile + w.rows; i < nrows; i++) {
        l.reg[l.regs++] = 1U << (row + i);
    }
    for (unsigned i = w.batch; i < batches; i++) {
        l.reg[l.regs++] = 1U << (batch + i);
    }
    return l;
}

enum { SPREAD_LANE = TK_LANE_BITS - 1, SPREAD_ROWS = 4 | 16 };

bool tk_matrix_is_spread(const tk_layout *l) {
    return l->lane[SPREAD_LANE] == (uint32_t)SPREAD_ROWS << tk_layout_shift(l, l->rank - 2U);
}

static bool take(uint32_t *left, uint32_t bit) {
    const bool is_new = bit && !(bit & (bit - 1)) && (*left & bit);
    *left &= ~bit;
    return is_new;
}

bool tk_matrix_layout_ok(const tk_matrix *m, const tk_layout *l, unsigned *columns) {
    if (l->shared || l->rank < 2) {
        return false;
    }
    const unsigned row = tk_layout_shift(l, l->rank - 2U), tile = least_rows(m);
    uint32_t left = (uint32_t)(((uint64_t)1 << tk_layout_bits(l)) - 1);
    const bool spread = m->unit == TK_UNIT_WGMMA && tk_matrix_is_spread(l);
    tk_layout lanes = *l;
    lanes_of(m, &lanes);
    bool ok = true;
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        ok = ok && take(&left, lanes.lane[i]);
    }
    lanes.lane[SPREAD_LANE] = spread ? l->lane[SPREAD_LANE] : lanes.lane[SPREAD_LANE];
    ok = ok && memcmp(lanes.lane, l->lane, sizeof l->lane) == 0;
    unsigned r = 0;
    ok = ok && l->regs > r && l->reg[r] == 1 && take(&left, l->reg[r++]);
    if (tile > EIGHT_LOG) {
        ok = ok && l->regs > r && l->reg[r] == 1U << (row + EIGHT_LOG) && take(&left, l->reg[r++]);
    }
    *columns = COLUMN_LOG;
    while (ok && r < l->regs && *columns < l->log_dim[l->rank - 1U] &&
           l->reg[r] == 1U << *columns && take(&left, l->reg[r])) {
        r++;
        ++*columns;
    }
    for (; ok && r < l->regs; r++) {
        ok = take(&left, l->reg[r]);
    }
    for (unsigned i = 0; ok && i < l->warps; i++) {
        const bool in_group = m->unit == TK_UNIT_WGMMA && i < TK_WGMMA_WARPS_LOG;
        ok = in_group ? l->warp[i] == 1U << (row + tile + i) && take(&left, l->warp[i])
                      : l->warp[i] == 0 || take(&left, l->warp[i]);
    }
    return ok && left == 0 && (m->unit != TK_UNIT_WGMMA || l->warps >= TK_WGMMA_WARPS_LOG);
}

// ---- Operands -----------------------------------------------------------------------------------

// The bits of rows and batches of a result's basis, as A has them.
static uint32_t of_a(const tk_matrix *m, const tk_layout *l, uint32_t basis) {
    const unsigned columns = l->log_dim[l->rank - 1U];
    return basis >> columns << m->log_k;
}

tk_layout tk_matrix_a_layout(const tk_matrix *m, const tk_layout *l) {
    tk_layout a = {.rank = l->rank, .warps = l->warps};
    memcpy(a.log_dim, l->log_dim, sizeof a.log_dim);
    a.log_dim[l->rank - 1U] = (uint8_t)m->log_k;
    for (unsigned i = 0; i < m->pack; i++) {
        a.reg[a.regs++] = 1U << i;
    }
    for (unsigned i = 0; i < ROW_LANE; i++) {
        a.lane[i] = 1U << (m->pack + i);
    }
    for (unsigned i = ROW_LANE; i < TK_LANE_BITS; i++) {
        a.lane[i] = of_a(m, l, l->lane[i]);
    }
    const bool eight = least_rows(m) > EIGHT_LOG;
    if (eight) {
        a.reg[a.regs++] = of_a(m, l, l->reg[1]);
    }
    for (unsigned i = m->pack + ROW_LANE; i < m->log_k; i++) {
        a.reg[a.regs++] = 1U << i;
    }
    for (unsigned i = eight ? 2 : 1; i < l->regs; i++) {
        const uint32_t b = of_a(m, l, l->reg[i]);
        if (b) {
            a.reg[a.regs++] = b;
        }
    }
    for (unsigned i = 0; i < l->warps; i++) {
        a.warp[i] = of_a(m, l, l->warp[i]);
    }
    return a;
}

// Of a left operand of four bytes the layout in which instructions take it, for a result in layout
// l. False: that is too many registers.
static bool left_in_registers(const tk_matrix *m, unsigned bytes, const tk_layout *l,
                              tk_layout *out) {
    enum { WORD = 4, FEW = 128 }; // bytes; of each thread
    *out = tk_matrix_a_layout(m, l);
    return m->unit == TK_UNIT_WGMMA && bytes == WORD && bytes << out->regs <= FEW;
}

void tk_matrix_spread(const tk_matrix *m, const tk_layout *left, tk_layout *l) {
    const unsigned rank = left->rank;
    tk_placed p;
    tk_layout a;
    if (rank == 2 && m->a == TK_F32 && tk_layout_is_placed(left, sizeof(float), &p) &&
        p.fast == rank - 2U && left_in_registers(m, sizeof(float), l, &a)) {
        l->lane[SPREAD_LANE] = (uint32_t)SPREAD_ROWS << tk_layout_shift(l, rank - 2U);
    }
}

// Along K, where the unit asks for it or the threads have it so.
static bool k_is_fast(const tk_matrix *m, const tk_operand *x) {
    return !m->any_major ||
           tk_layout_vector(x->l, x->k_axis) >= tk_layout_vector(x->l, x->row_axis);
}

// Why a tile is none in shared memory that the unit reads where it is; NULL: it is one.
static const char *there_why_not(const tk_matrix *m, tk_operand *x) {
    tk_placed p;
    if (!x->l->shared || !tk_layout_is_placed(x->l, x->bytes, &p)) {
        return "it does not lie in shared memory as units read it";
    }
    x->k_major = p.fast == x->k_axis;
    if (m->unit == TK_UNIT_MMA) {
        return p.span >= 16 ? NULL : "its rows there are shorter than 16 bytes";
    }
    if (m->precision != TK_PREC_IEEE && x->type == TK_F32 && !x->rounded) {
        return "its elements are rounded on their way";
    }
    return m->any_major || x->k_major
               ? NULL
               : "of elements of 8 and 32 bits wgmma reads only what is contiguous along K";
}

static bool is_there(const tk_matrix *m, tk_operand *x) { return !there_why_not(m, x); }

bool tk_is_rounded(const tk_func *f, tk_vid v) {
    const tk_op *d = tk_value_def(f, v);
    while (d && (d->code == TK_OP_PERMUTE || d->code == TK_OP_CONVERT)) {
        d = tk_value_def(f, d->opnd[0]);
    }
    const tk_op *ring = d && d->code == TK_OP_TAKE ? tk_value_def(f, d->opnd[0]) : NULL;
    return ring && ring->at.precision == TK_PREC_TF32;
}

static tk_operand operand_in(const tk_func *f, tk_vid v, bool is_a, const tk_layout *l) {
    tk_operand x = {.v = v, .l = l};
    const tk_type *t = tk_value_type(f, v);
    x.type = t->dtype;
    x.bytes = (unsigned)tk_dtype_size(t->dtype);
    x.k_axis = is_a ? t->rank - 1U : t->rank - 2U;
    x.row_axis = is_a ? t->rank - 2U : t->rank - 1U;
    x.rounded = tk_is_rounded(f, v);
    return x;
}

const char *tk_unit_why_not(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l,
                            bool rounded) {
    tk_matrix m;
    const char *why;
    if (op->code != TK_OP_DOT || op->at.unit == TK_UNIT_FMA || i > 1 ||
        !tk_matrix_of(f, op, op->at.unit, &m, &why)) {
        return "no matrix unit takes it";
    }
    tk_operand x = operand_in(f, op->opnd[i], i == 0, l);
    x.rounded = rounded;
    return there_why_not(&m, &x);
}

bool tk_unit_takes(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l) {
    return i < 2 && i < op->nopnd && !tk_unit_why_not(f, op, i, l, tk_is_rounded(f, op->opnd[i]));
}

static void take_bits(uint32_t *to, uint8_t *n, unsigned at, unsigned count) {
    for (unsigned b = 0; b < count; b++) {
        to[(*n)++] = 1U << (at + b);
    }
}

// A thread has words of both sides: as many bytes side by side as a word has where they are read
// (of four bytes: one), four elements along K where they are written. The lanes are spread over
// both sides, so that few of them meet in a bank on either; warps are apart by what is left.
bool tk_unit_way(const tk_func *f, const tk_op *op, uint32_t i, const tk_layout *l,
                 const tk_layout *result, tk_layout *out) {
    enum { ALONG_K = 2 };
    tk_matrix m;
    tk_placed p;
    if (op->code != TK_OP_DOT || op->at.unit != TK_UNIT_WGMMA || i > 1 ||
        !tk_matrix_of(f, op, op->at.unit, &m, NULL)) {
        return false;
    }
    const unsigned warps = result->warps;
    const tk_operand x = operand_in(f, op->opnd[i], i == 0, l);
    if ((x.bytes != 1 && x.bytes != 4) || !tk_layout_is_placed(l, x.bytes, &p)) {
        return false;
    }
    if (i == 0 && left_in_registers(&m, x.bytes, result, out)) {
        return true;
    }
    const bool turns = p.fast != x.k_axis;
    const unsigned side = x.bytes == 1 ? 2 : 0, lanes = !turns || x.bytes == 1 ? 2 : 4;
    const unsigned rows = side + lanes, k = ALONG_K + TK_LANE_BITS - lanes;
    if (l->log_dim[x.row_axis] < rows || l->log_dim[x.k_axis] < k) {
        return false;
    }
    *out = (tk_layout){.rank = l->rank, .warps = (uint8_t)warps};
    memcpy(out->log_dim, l->log_dim, sizeof out->log_dim);
    const unsigned row_at = tk_layout_shift(out, x.row_axis), k_at = tk_layout_shift(out, x.k_axis);
    uint8_t lane = 0, warp = 0;
    take_bits(out->reg, &out->regs, row_at, side);
    take_bits(out->reg, &out->regs, k_at, ALONG_K);
    if (turns) {
        take_bits(out->lane, &lane, row_at + side, lanes);
    }
    take_bits(out->lane, &lane, k_at + ALONG_K, k - ALONG_K);
    if (!turns) {
        take_bits(out->lane, &lane, row_at + side, lanes);
    }
    uint32_t left = (1U << tk_layout_bits(out)) - 1;
    left &= ~(((1U << rows) - 1) << row_at | ((1U << k) - 1) << k_at);
    for (unsigned b = tk_layout_bits(out); b-- > 0;) {
        if (left & 1U << b) {
            const bool to_warp = warp < warps;
            take_bits(to_warp ? out->warp : out->reg, to_warp ? &warp : &out->regs, b, 1);
        }
    }
    return true;
}

static tk_operand operand_of(const tk_func *f, const tk_matrix *m, tk_vid v, bool is_a) {
    tk_operand x = operand_in(f, v, is_a, tk_value_layout(f, v));
    x.where = TK_OPERAND_STAGED;
    if (is_there(m, &x)) {
        x.where = TK_OPERAND_SHARED;
        x.place = *x.l;
        return x;
    }
    x.k_major = x.l->shared || k_is_fast(m, &x);
    return x;
}

static void place_block(tk_operand *x, uint32_t block) {
    int64_t dim[TK_MAX_RANK] = {0};
    if (x->where != TK_OPERAND_STAGED) {
        return;
    }
    for (unsigned i = 0; i < x->l->rank; i++) {
        dim[i] = (int64_t)1 << x->l->log_dim[i];
    }
    dim[x->k_axis] = block;
    x->place = tk_layout_placed(x->l->rank, dim, x->k_major ? x->k_axis : x->row_axis, x->bytes);
}

uint64_t tk_operand_bytes(const tk_operand *x) {
    return x->where == TK_OPERAND_STAGED ? (uint64_t)x->bytes << tk_layout_bits(&x->place) : 0;
}

// wgmma needs a copy of registers of A that come from outside its region, made with the help of
// where B's tile lies in a ring (ptx/llvm_wgmma.c).
static bool may_keep_a(const tk_func *f, const tk_op *op, const tk_matrix_plan *p) {
    const tk_op *def = tk_value_def(f, op->opnd[0]);
    return op->at.unit != TK_UNIT_WGMMA || p->b.where == TK_OPERAND_SHARED ||
           (def && def->in == op->in);
}

tk_matrix_plan tk_matrix_plan_of(const tk_func *f, const tk_op *op) {
    enum { BUDGET = 64 << 10 }; // of the operands' blocks
    tk_matrix_plan p = {.block = 0};
    const tk_layout *l = tk_value_layout(f, op->res[0]);
    const char *why;
    (void)tk_matrix_of(f, op, op->at.unit, &p.m, &why);
    (void)tk_matrix_layout_ok(&p.m, l, &p.columns);
    p.a = operand_of(f, &p.m, op->opnd[0], true);
    p.b = operand_of(f, &p.m, op->opnd[1], false);
    const tk_layout in_registers = tk_matrix_a_layout(&p.m, l);
    if (!p.a.l->shared && tk_layout_eq(p.a.l, &in_registers) && may_keep_a(f, op, &p)) {
        p.a.where = TK_OPERAND_REGISTERS;
    }
    const bool in_blocks = p.a.where == TK_OPERAND_STAGED && p.b.where == TK_OPERAND_STAGED;
    p.block = 1U << p.m.log_k;
    place_block(&p.a, p.block);
    place_block(&p.b, p.block);
    while (in_blocks && p.block >> 1 >= 1U << p.m.k &&
           tk_operand_bytes(&p.a) + tk_operand_bytes(&p.b) > BUDGET) {
        p.block /= 2;
        place_block(&p.a, p.block);
        place_block(&p.b, p.block);
    }
    return p;
}

// ---- Staging ------------------------------------------------------------------------------------

uint32_t tk_operand_in_block(const tk_operand *x, uint32_t block, uint32_t n) {
    uint32_t r = 0;
    for (unsigned d = 0; d < x->l->rank; d++) {
        uint32_t c = n >> tk_layout_shift(x->l, d) & ((1U << x->l->log_dim[d]) - 1);
        c &= d == x->k_axis ? block - 1 : UINT32_MAX;
        r |= c << tk_layout_shift(&x->place, d);
    }
    return tk_layout_place(&x->place, r);
}

// The bits of an element's number that say in which block it is.
static uint32_t block_bits(const tk_operand *x, uint32_t block) {
    const uint32_t k = (1U << x->l->log_dim[x->k_axis]) - block;
    return k << tk_layout_shift(x->l, x->k_axis);
}

tk_layout tk_operand_targets(const tk_operand *x, uint32_t block, uint32_t *among) {
    tk_layout t = {.rank = 1, .warps = x->l->warps};
    const uint32_t bits = block_bits(x, block);
    t.log_dim[0] = (uint8_t)tk_layout_bits(&x->place);
    *among = 0;
    for (unsigned i = 0; i < x->l->regs; i++) {
        if (x->l->reg[i] & bits) {
            *among |= 1U << i;
        } else {
            t.reg[t.regs++] = tk_operand_in_block(x, block, x->l->reg[i]);
        }
    }
    for (unsigned i = 0; i < TK_LANE_BITS; i++) {
        t.lane[i] = tk_operand_in_block(x, block, x->l->lane[i]);
    }
    for (unsigned i = 0; i < x->l->warps; i++) {
        t.warp[i] = tk_operand_in_block(x, block, x->l->warp[i]);
    }
    return t;
}

// ---- Fragments ----------------------------------------------------------------------------------

tk_fragment tk_fragment_of(const tk_matrix *m, const tk_operand *x, bool is_a, unsigned columns) {
    const uint32_t row = 1U << tk_layout_shift(&x->place, x->row_axis);
    const uint32_t k = 1U << tk_layout_shift(&x->place, x->k_axis);
    const bool f64 = m->sum == TK_F64;
    const uint32_t upper = k << (m->pack + ROW_LANE), eight = row << EIGHT_LOG;
    tk_fragment r = {.how = f64                                 ? TK_FRAGMENT_ELEMENTS
                            : x->k_major                        ? TK_FRAGMENT_ROWS
                            : m->a == TK_F16 || m->a == TK_BF16 ? TK_FRAGMENT_TRANSPOSED
                                                                : TK_FRAGMENT_ELEMENTS};
    r.half = m->log_k < m->k;
    if (!f64 && is_a) {
        r.reg[r.bits++] = eight;
    }
    if (!f64 && !r.half) {
        r.reg[r.bits++] = upper;
    }
    if (!f64 && !is_a && columns > COLUMN_LOG) {
        r.reg[r.bits++] = eight;
    }
    if (r.how == TK_FRAGMENT_ELEMENTS) {
        for (unsigned i = 0; i < TK_LANE_BITS; i++) {
            r.lane[i] = i < ROW_LANE ? k << (m->pack + i) : row << (i - ROW_LANE);
        }
        for (unsigned i = 0; i < m->pack; i++) {
            r.in_reg[i] = k << i;
        }
        return r;
    }
    for (unsigned i = 0; i < EIGHT_LOG; i++) {
        r.lane[i] = r.how == TK_FRAGMENT_ROWS ? row << i : k << i;
    }
    for (unsigned i = 0; i < r.bits; i++) {
        r.lane[EIGHT_LOG + i] = r.reg[i];
    }
    return r;
}
