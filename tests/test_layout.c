// SPDX-License-Identifier: Apache-2.0
// Layouts against enumeration of all places, and against layouts worked out by hand.
#include "ir/move.h"
#include "ir_env.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BITS = 12, MOST = 1 << MOST_BITS, LANES = 1 << TK_LANE_BITS };

static tk_layout layout(unsigned rank, const int64_t *dim, unsigned regs, const uint32_t *reg,
                        const uint32_t *lane, unsigned warps, const uint32_t *warp) {
    static const uint8_t order[TK_MAX_RANK] = {0};
    const int64_t one[TK_MAX_RANK] = {1, 1, 1, 1, 1};
    tk_layout l = tk_layout_blocked(rank, one, order, 0, 0);
    l = tk_layout_reshape(&l, rank, dim);
    l.regs = (uint8_t)regs;
    l.warps = (uint8_t)warps;
    memcpy(l.reg, reg, regs * sizeof *reg);
    memcpy(l.lane, lane, TK_LANE_BITS * sizeof *lane);
    memcpy(l.warp, warp, warps * sizeof *warp);
    return l;
}

static const char *text_of(ir_env *e, const tk_layout *l) {
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_layout_print(&b, l);
    return tk_buf_text(&b);
}

static uint32_t at(uint32_t row, uint32_t col) { return row * 64 + col; }

static tk_layout blocked_64x64(void) {
    const int64_t dim[] = {64, 64};
    const uint8_t order[] = {1, 0};
    return tk_layout_blocked(2, dim, order, 3, 2);
}

// The accumulator of a matrix instruction: 16 rows by 8 columns, four warps along the rows.
static tk_layout mma_64x64(void) {
    const int64_t dim[] = {64, 64};
    const uint32_t reg[] = {at(0, 1), at(8, 0), at(0, 8), at(0, 16), at(0, 32)};
    const uint32_t lane[] = {at(0, 2), at(0, 4), at(1, 0), at(2, 0), at(4, 0)};
    const uint32_t warp[] = {at(16, 0), at(32, 0)};
    return layout(2, dim, 5, reg, lane, 2, warp);
}

// ---- Random layouts -----------------------------------------------------------------------------

typedef struct dice {
    uint64_t s;
} dice;

static uint32_t roll(dice *d, uint32_t n) {
    d->s = d->s * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->s >> 33) % n;
}

static void random_shape(dice *d, tk_layout *l, unsigned bits) {
    l->rank = (uint8_t)(1 + roll(d, 3));
    for (unsigned i = 0; i < bits; i++) {
        l->log_dim[roll(d, l->rank)]++;
    }
}

// Columns that span: unit vectors, shuffled and added to one another; and sums of earlier ones or
// zeros between them.
static tk_layout random_layout(dice *d, unsigned bits, unsigned warps) {
    tk_layout l = {.warps = (uint8_t)warps};
    uint32_t v[MOST_BITS];
    random_shape(d, &l, bits);
    for (unsigned i = 0; i < bits; i++) {
        v[i] = 1u << i;
    }
    for (unsigned i = 0; i < bits; i++) {
        unsigned k = roll(d, bits), m = roll(d, bits);
        uint32_t t = v[i];
        v[i] = v[k], v[k] = t;
        if (k != m && roll(d, 4) == 0) {
            v[k] ^= v[m];
        }
    }
    uint32_t *to[TK_LANE_BITS + 2];
    unsigned n = 0, used = 0;
    for (unsigned i = 0; i < TK_LANE_BITS + warps; i++) {
        to[n++] = i < TK_LANE_BITS ? &l.lane[i] : &l.warp[i - TK_LANE_BITS];
    }
    unsigned copies = roll(d, 3) ? roll(d, n) : 0;
    for (unsigned i = 0; i < n; i++) {
        bool copy = used == bits || (copies > 0 && roll(d, 2));
        *to[i] = !copy ? v[used++] : roll(d, 3) || !used ? 0 : v[roll(d, used)];
        copies -= copy && copies > 0;
    }
    while (used < bits) {
        l.reg[l.regs++] = v[used++];
    }
    if (bits > 2 && roll(d, 4) == 0 && l.regs < bits) { // registers that repeat what lanes have
        l.reg[l.regs++] = v[0];
        if (!tk_layout_ok(&l, NULL)) {
            l.reg[--l.regs] = 0;
        }
    }
    return l;
}

static uint32_t regs_of(const tk_layout *l) { return 1u << l->regs; }
static uint32_t warps_of(const tk_layout *l) { return 1u << l->warps; }

#define EACH_THREAD(l, lane, warp)                                                                 \
    for (uint32_t warp = 0; warp < warps_of(l); warp++)                                            \
        for (uint32_t lane = 0; lane < LANES; lane++)

static bool ok_by_enumeration(const tk_layout *l) {
    static uint8_t seen[MOST];
    static uint32_t by[MOST];
    uint32_t n = 1u << tk_layout_bits(l), thread = 0;
    bool once = true;
    memset(seen, 0, sizeof seen);
    memset(by, 0, sizeof by);
    EACH_THREAD(l, lane, warp) {
        thread++;
        for (uint32_t r = 0; r < regs_of(l); r++) {
            uint32_t e = tk_layout_eval(l, r, lane, warp);
            if (e >= n) {
                return false;
            }
            once = once && by[e] != thread;
            by[e] = thread;
            seen[e] = 1;
        }
    }
    for (uint32_t e = 0; e < n; e++) {
        once = once && seen[e];
    }
    return once;
}

Test(layout, soundness_is_that_of_enumeration) {
    dice d = {1};
    unsigned good = 0, bad = 0;
    for (int i = 0; i < 2000; i++) {
        tk_layout l = {.warps = (uint8_t)roll(&d, 3)};
        unsigned bits = roll(&d, 8);
        random_shape(&d, &l, bits);
        l.regs = (uint8_t)roll(&d, 4);
        uint32_t end = roll(&d, 20) ? 1u << bits : 2u << bits;
        for (unsigned k = 0; k < l.regs; k++) {
            l.reg[k] = roll(&d, end);
        }
        for (unsigned k = 0; k < TK_LANE_BITS; k++) {
            l.lane[k] = roll(&d, end);
        }
        for (unsigned k = 0; k < l.warps; k++) {
            l.warp[k] = roll(&d, end);
        }
        const char *why = NULL;
        bool ok = tk_layout_ok(&l, &why);
        cr_assert_eq(ok, ok_by_enumeration(&l));
        cr_assert_eq(ok, why == NULL);
        good += ok;
        bad += !ok;
    }
    cr_assert(good > 50 && bad > 50, "%u %u", good, bad);
    for (int i = 0; i < 500; i++) {
        tk_layout l = random_layout(&d, roll(&d, MOST_BITS + 1), roll(&d, 3));
        cr_assert(tk_layout_ok(&l, NULL) && ok_by_enumeration(&l));
    }
}

Test(layout, faults_have_their_words) {
    const tk_layout good = mma_64x64();
    const char *why = NULL;
    tk_layout l = good;
    cr_assert(tk_layout_ok(&l, &why) && !why);
    l.reg[0] = 0;
    cr_assert(!tk_layout_ok(&l, &why) && strstr(why, "twice"));
    l = good, l.lane[4] = 0;
    cr_assert(!tk_layout_ok(&l, &why) && strstr(why, "nowhere"));
    l = good, l.warp[1] = 4096;
    cr_assert(!tk_layout_ok(&l, &why) && strstr(why, "outside"));
    l = good, l.rank = 0;
    cr_assert(!tk_layout_ok(&l, &why) && strstr(why, "rank"));
    l = good, l.log_dim[0] = 200;
    cr_assert(!tk_layout_ok(&l, &why) && strstr(why, "more elements"));
    l = good, l.regs = TK_MAX_REG_BITS + 1;
    cr_assert(!tk_layout_ok(&l, &why) && strstr(why, "too many"));
}

// ---- By hand ------------------------------------------------------------------------------------

Test(layout, blocked_as_worked_out) {
    tk_layout l = blocked_64x64();
    const int64_t dim[] = {64, 64};
    const uint32_t reg[] = {at(0, 1), at(0, 2), at(0, 4), at(16, 0), at(32, 0)};
    const uint32_t lane[] = {at(0, 8), at(0, 16), at(0, 32), at(1, 0), at(2, 0)};
    const uint32_t warp[] = {at(4, 0), at(8, 0)};
    tk_layout want = layout(2, dim, 5, reg, lane, 2, warp);
    cr_assert(tk_layout_eq(&l, &want));
    cr_assert(ok_by_enumeration(&l));
    cr_assert_eq(tk_layout_vector(&l, 1), 3);
    cr_assert_eq(tk_layout_vector(&l, 0), 0);
}

Test(layout, matrix_accumulator_as_worked_out) {
    ir_env *e = ir_open();
    tk_layout l = mma_64x64(), b = blocked_64x64();
    uint32_t lanes, warps;
    cr_assert(ok_by_enumeration(&l));
    cr_assert_eq(tk_moving_between(&b, &l, TK_F32).work, TK_WORK_SHARED);
    cr_assert_eq(tk_moving_between(&l, &b, TK_F32).work, TK_WORK_SHARED);
    tk_layout rows = tk_layout_slice(&l, 1);
    cr_assert_str_eq(text_of(e, &rows), "[64, 1] reg 8 lane 0 0 1 2 4 warp 16 32");
    tk_layout_copies(&rows, &lanes, &warps);
    cr_assert(lanes == 3 && warps == 0);
    tk_layout_copies(&l, &lanes, &warps);
    cr_assert(lanes == 0 && warps == 0);
    cr_assert_eq(tk_layout_vector(&l, 1), 1);
    // 16 x 8: the fragment of one instruction
    const int64_t dim[] = {16, 8};
    const uint32_t reg[] = {1, 64}, lane[] = {2, 4, 8, 16, 32}, none[] = {0};
    tk_layout one = layout(2, dim, 2, reg, lane, 0, none);
    for (uint32_t t = 0; t < LANES; t++) {
        for (uint32_t r = 0; r < 4; r++) {
            cr_assert_eq(tk_layout_eval(&one, r, t, 0),
                         (t / 4 + 8 * (r / 2)) * 8 + t % 4 * 2 + r % 2);
        }
    }
    ir_close(e);
}

Test(layout, blocked_fills_in_order_and_repeats_where_the_tile_is_small) {
    ir_env *e = ir_open();
    const struct {
        unsigned rank;
        int64_t dim[3];
        uint8_t order[3];
        unsigned vec, warps;
        const char *text;
    } row[] = {
        {1, {256}, {0}, 2, 1, "[256] reg 1 2 lane 4 8 16 32 64 warp 128"},
        {1, {16}, {0}, 1, 2, "[16] reg 1 lane 2 4 8 0 0 warp 0 0"},
        {1, {2}, {0}, 3, 0, "[2] reg 1 lane 0 0 0 0 0 warp"},
        {1, {1}, {0}, 3, 1, "[1] reg lane 0 0 0 0 0 warp 0"},
        {2, {4, 32}, {0, 1}, 0, 0, "[4, 32] reg 8 16 lane 32 64 1 2 4 warp"},
        {2, {1, 64}, {1, 0}, 0, 1, "[1, 64] reg lane 1 2 4 8 16 warp 32"},
        {3, {2, 2, 16}, {2, 0, 1}, 2, 1, "[2, 2, 16] reg 1 2 lane 4 8 32 16 0 warp 0"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        tk_layout l =
            tk_layout_blocked(row[i].rank, row[i].dim, row[i].order, row[i].vec, row[i].warps);
        cr_assert_str_eq(text_of(e, &l), row[i].text);
        cr_assert(ok_by_enumeration(&l) && tk_layout_ok(&l, NULL));
    }
    const int64_t most[] = {4096, 4096};
    const uint8_t order[] = {1, 0};
    for (unsigned vec = 0; vec <= TK_MAX_REG_BITS; vec++) {
        tk_layout l = tk_layout_blocked(2, most, order, vec, TK_MAX_WARP_BITS);
        cr_assert(tk_layout_ok(&l, NULL));
    }
    ir_close(e);
}

Test(layout, only_powers_of_two_fit) {
    ir_env *e = ir_open();
    unsigned axis = 9;
    const int64_t good[] = {1, 64, 1 << 18}, bad[] = {4, 48};
    cr_assert(tk_layout_fits(tk_type_tile(&e->arena, TK_F32, 3, good), &axis));
    cr_assert_eq(axis, 9);
    cr_assert(!tk_layout_fits(tk_type_tile(&e->arena, TK_F32, 2, bad), &axis));
    cr_assert_eq(axis, 1);
    ir_close(e);
}

// ---- Changes ------------------------------------------------------------------------------------

static void coords(const tk_layout *l, uint32_t e, uint32_t *x) {
    for (unsigned i = l->rank; i-- > 0;) {
        x[i] = e & ((1u << l->log_dim[i]) - 1);
        e >>= l->log_dim[i];
    }
}

static uint32_t number(const tk_layout *l, const uint32_t *x) {
    uint32_t e = 0;
    for (unsigned i = 0; i < l->rank; i++) {
        e = (e << l->log_dim[i]) + x[i];
    }
    return e;
}

static bool holds(const tk_layout *l, uint32_t e, uint32_t lane, uint32_t warp) {
    for (uint32_t r = 0; r < regs_of(l); r++) {
        if (tk_layout_eval(l, r, lane, warp) == e) {
            return true;
        }
    }
    return false;
}

static void check_permute(dice *d, const tk_layout *l) {
    uint8_t perm[TK_MAX_RANK] = {0, 1, 2};
    for (unsigned i = 0; i < l->rank; i++) {
        unsigned k = roll(d, l->rank);
        uint8_t t = perm[i];
        perm[i] = perm[k], perm[k] = t;
    }
    tk_layout p = tk_layout_permute(l, perm);
    cr_assert(tk_layout_ok(&p, NULL) && p.regs == l->regs);
    EACH_THREAD(l, lane, warp) {
        for (uint32_t r = 0; r < regs_of(l); r++) {
            uint32_t x[TK_MAX_RANK], y[TK_MAX_RANK];
            coords(l, tk_layout_eval(l, r, lane, warp), x);
            for (unsigned i = 0; i < l->rank; i++) {
                y[i] = x[perm[i]];
                cr_assert_eq(p.log_dim[i], l->log_dim[perm[i]]);
            }
            cr_assert_eq(tk_layout_eval(&p, r, lane, warp), number(&p, y));
        }
    }
}

// Each thread holds what it held, projected, and nothing twice; and what a broadcast takes back is
// where it is wanted.
static void check_slice(dice *d, const tk_layout *l) {
    unsigned axis = roll(d, l->rank);
    tk_layout s = tk_layout_slice(l, axis);
    cr_assert(tk_layout_ok(&s, NULL) && ok_by_enumeration(&s));
    cr_assert(s.log_dim[axis] == 0 && s.regs <= l->regs);
    int64_t dim[TK_MAX_RANK];
    unsigned from = roll(d, l->rank); // a shape that lacks the axes in front of it
    for (unsigned i = 0; i < l->rank; i++) {
        dim[i] = i == axis ? 1 : (int64_t)1 << l->log_dim[i];
    }
    tk_layout b = tk_layout_stretched(l, l->rank - from, dim + from);
    cr_assert(tk_layout_ok(&b, NULL) && b.rank == l->rank - from);
    cr_assert(from > 0 || tk_layout_eq(&b, &s));
    EACH_THREAD(l, lane, warp) {
        for (uint32_t r = 0; r < regs_of(l); r++) {
            uint32_t x[TK_MAX_RANK];
            coords(l, tk_layout_eval(l, r, lane, warp), x);
            x[axis] = 0;
            cr_assert(holds(&s, number(&s, x), lane, warp));
            cr_assert(holds(&b, number(&b, x + from), lane, warp));
        }
        for (uint32_t r = 0; r < regs_of(&s); r++) {
            uint32_t x[TK_MAX_RANK];
            bool found = false;
            coords(&s, tk_layout_eval(&s, r, lane, warp), x);
            for (uint32_t k = 0; !found && k < 1u << l->log_dim[axis]; k++) {
                x[axis] = k;
                found = holds(l, number(l, x), lane, warp);
            }
            cr_assert(found);
        }
    }
}

static void check_reshape(dice *d, const tk_layout *l) {
    tk_layout shape = {0};
    int64_t dim[TK_MAX_RANK];
    random_shape(d, &shape, tk_layout_bits(l));
    for (unsigned i = 0; i < shape.rank; i++) {
        dim[i] = (int64_t)1 << shape.log_dim[i];
    }
    tk_layout r = tk_layout_reshape(l, shape.rank, dim);
    cr_assert(tk_layout_ok(&r, NULL) && r.rank == shape.rank);
    cr_assert(memcmp(r.log_dim, shape.log_dim, sizeof r.log_dim) == 0);
    for (unsigned i = 0; i < r.rank; i++) {
        uint32_t x[TK_MAX_RANK] = {0};
        x[i] = 1;
        if (dim[i] > 1) {
            cr_assert_eq(1u << tk_layout_shift(&r, i), number(&r, x));
        }
    }
    EACH_THREAD(l, lane, warp) {
        uint32_t k = roll(d, regs_of(l));
        cr_assert_eq(tk_layout_eval(l, k, lane, warp), tk_layout_eval(&r, k, lane, warp));
    }
}

Test(layout, changes_are_those_of_enumeration) {
    dice d = {2};
    for (int i = 0; i < 400; i++) {
        tk_layout l = random_layout(&d, roll(&d, 11), roll(&d, 3));
        check_permute(&d, &l);
        check_slice(&d, &l);
        check_reshape(&d, &l);
    }
}

// ---- Questions ----------------------------------------------------------------------------------

static void check_owners(const tk_layout *l) {
    static uint8_t owners[MOST];
    uint32_t lane_mask, warp_mask;
    tk_layout_copies(l, &lane_mask, &warp_mask);
    cr_assert(lane_mask < LANES && warp_mask < warps_of(l));
    memset(owners, 0, sizeof owners);
    EACH_THREAD(l, lane, warp) {
        bool owner = !(lane & lane_mask) && !(warp & warp_mask);
        for (uint32_t r = 0; owner && r < regs_of(l); r++) {
            owners[tk_layout_eval(l, r, lane, warp)]++;
        }
    }
    for (uint32_t e = 0; e < 1u << tk_layout_bits(l); e++) {
        cr_assert_eq(owners[e], 1);
    }
}

static void check_vector(const tk_layout *l) {
    for (unsigned axis = 0; axis < l->rank; axis++) {
        unsigned shift = tk_layout_shift(l, axis), n = 0;
        bool walks = true;
        for (unsigned k = 1; walks && k <= l->regs && k <= l->log_dim[axis]; k++) {
            for (uint32_t r = 0; r < 1u << k; r++) {
                walks = walks && tk_layout_eval(l, r, 0, 0) == r << shift;
            }
            n += walks;
        }
        cr_assert_eq(tk_layout_vector(l, axis), n);
    }
}

static bool find_by_enumeration(const tk_layout *l, uint32_t e, uint32_t lane, bool any_lane,
                                uint32_t warp, bool any_warp) {
    for (uint32_t w = any_warp ? 0 : warp; w < (any_warp ? warps_of(l) : warp + 1); w++) {
        for (uint32_t t = any_lane ? 0 : lane; t < (any_lane ? LANES : lane + 1); t++) {
            if (holds(l, e, t, w)) {
                return true;
            }
        }
    }
    return false;
}

static uint32_t place_word(tk_place_bits p) { return p.reg << 10 | p.lane << 5 | p.warp; }

static void check_find(dice *d, const tk_layout *l) {
    for (int i = 0; i < 40; i++) {
        uint32_t e = roll(d, 1u << tk_layout_bits(l)), lane = roll(d, LANES);
        uint32_t warp = roll(d, warps_of(l));
        bool any_lane = roll(d, 2), any_warp = roll(d, 2);
        tk_place_bits p;
        bool found = tk_layout_find(l, e, lane, any_lane, warp, any_warp, &p);
        cr_assert_eq(found, find_by_enumeration(l, e, lane, any_lane, warp, any_warp));
        if (found) {
            cr_assert(p.reg < regs_of(l) && p.lane < LANES && p.warp < warps_of(l));
            cr_assert_eq(tk_layout_eval(l, p.reg, p.lane, p.warp), e);
            cr_assert((any_lane || p.lane == lane) && (any_warp || p.warp == warp));
        }
    }
    for (int i = 0; i < 20; i++) { // linear
        uint32_t x = roll(d, 1u << tk_layout_bits(l)), y = roll(d, 1u << tk_layout_bits(l));
        tk_place_bits p, q, both;
        cr_assert(tk_layout_find(l, x, 0, true, 0, true, &p));
        cr_assert(tk_layout_find(l, y, 0, true, 0, true, &q));
        cr_assert(tk_layout_find(l, x ^ y, 0, true, 0, true, &both));
        cr_assert_eq(place_word(p) ^ place_word(q), place_word(both));
    }
}

Test(layout, questions_are_answered_as_by_enumeration) {
    dice d = {3};
    for (int i = 0; i < 400; i++) {
        tk_layout l = random_layout(&d, roll(&d, MOST_BITS + 1), roll(&d, 3));
        check_owners(&l);
        check_vector(&l);
        if (tk_layout_bits(&l) <= 10) {
            check_find(&d, &l);
        }
    }
    for (unsigned vec = 0; vec < 5; vec++) {
        const int64_t dim[] = {16, 32};
        const uint8_t order[2][2] = {{1, 0}, {0, 1}};
        for (int k = 0; k < 2; k++) {
            tk_layout l = tk_layout_blocked(2, dim, order[k], vec, 2);
            cr_assert_eq(tk_layout_vector(&l, order[k][0]), vec);
            check_owners(&l);
        }
    }
}

Test(layout, other_warps_or_shapes_are_other_layouts) {
    const int64_t dim[] = {8, 8}, flat[] = {64};
    const uint8_t order[] = {1, 0};
    tk_layout a = tk_layout_blocked(2, dim, order, 0, 1),
              b = tk_layout_blocked(2, dim, order, 0, 2);
    tk_layout c = tk_layout_reshape(&a, 1, flat);
    cr_assert(!tk_layout_eq(&a, &b) && !tk_layout_eq(&a, &c));
}

// ---- In shared memory ---------------------------------------------------------------------------

// The byte of an element as the hardware's swizzles have it: a panel's row is `span` bytes, and the
// bits of 16 bytes' number are exclusive-ored with those of the address from bit 7 on.
static uint32_t byte_of(uint32_t row, uint32_t col, uint32_t rows, uint32_t columns,
                        uint32_t bytes) {
    const uint32_t pitch = columns * bytes < 128 ? columns * bytes : 128;
    const uint32_t in = col * bytes % pitch, panel = col * bytes / pitch;
    const uint32_t plain = panel * rows * pitch + row * pitch + in;
    const uint32_t most = pitch / 16 > 1 ? pitch / 16 - 1 : 0;
    return plain ^ ((plain >> 7 & 7 & most) << 4);
}

Test(layout, places_in_shared_memory_are_those_of_the_hardware_s_swizzles) {
    for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) {
        for (uint32_t rows = 8; rows <= 64; rows *= 2) {
            for (uint32_t columns = 8 / bytes ? 8 / bytes : 1; columns <= 256; columns *= 2) {
                for (unsigned fast = 0; fast < 2; fast++) {
                    const int64_t dim[2] = {fast ? rows : columns, fast ? columns : rows};
                    const tk_layout l = tk_layout_placed(2, dim, fast, bytes);
                    const char *why = "";
                    cr_assert(tk_layout_ok(&l, &why), "%s", why);
                    for (uint32_t r = 0; r < rows; r++) {
                        for (uint32_t c = 0; c < columns; c++) {
                            const uint32_t e = fast ? r * columns + c : c * rows + r;
                            cr_assert_eq(tk_layout_place(&l, e) * bytes,
                                         byte_of(r, c, rows, columns, bytes));
                        }
                    }
                    tk_placed p;
                    cr_assert(tk_layout_is_placed(&l, bytes, &p));
                    cr_assert_eq(p.panels * p.panel_rows * p.span, rows * columns * bytes);
                }
            }
        }
    }
}

Test(layout, a_place_in_shared_memory_survives_permutation_and_text) {
    ir_env *e = ir_open();
    const int64_t dim[3] = {4, 32, 64};
    const uint8_t perm[3] = {0, 2, 1};
    const tk_layout l = tk_layout_placed(3, dim, 2, 2), p = tk_layout_permute(&l, perm);
    tk_placed a, b;
    cr_assert(tk_layout_is_placed(&l, 2, &a) && tk_layout_is_placed(&p, 2, &b));
    cr_assert_eq(a.fast, 2);
    cr_assert_eq(b.fast, 1);
    cr_assert_eq(a.outer, 4);
    cr_assert_str_eq(text_of(e, &l),
                     "[4, 32, 64] shared 1 2 4 8 16 32 72 144 288 512 1024 2048 4096");
    ir_close(e);
}
