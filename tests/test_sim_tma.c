// SPDX-License-Identifier: Apache-2.0
// The simulator's tensor copies against a model that is written here from the description of a box,
// and their faults; bulk copies between blocks, multicasts, reductions, st.async, red.async.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

// ---- A kernel with a map and the buffer as parameters

enum {
    DATA = 1024,         // word of the buffer from which on the tensor lies
    DATA_BYTES = 8192,   // its room
    OUT = 2304,          // word from which on the kernel shows shared memory
    OUT_BYTES = 14336,   // its room
    TILE_AT = 1024 + 128 // address of the tile in shared memory
};

typedef struct params {
    _Alignas(64) unsigned char map[TK_SIM_MAP_BYTES];
    uint64_t base;
} params;

static const char *module(sim_env *e, const char *text) {
    return tk_format(
        &e->arena,
        ".version 8.0\n.target sm_90a\n.address_size 64\n"
        ".shared .align 1024 .b8 bar[128]; .shared .align 128 .b8 tile[14336];\n"
        ".visible .entry k(.param .align 64 .b8 map_[128], .param .u64 base_) {\n"
        ".reg .pred %%p<16>; .reg .b16 %%h<8>; .reg .b32 %%r<64>; .reg .b64 %%d<64>;\n"
        ".reg .b32 %%t; .reg .b64 %%base, %%map;\n"
        "ld.param.u64 %%base, [base_]; mov.b64 %%map, map_; cvta.param.u64 %%map, %%map;\n"
        "mov.u32 %%t, %%tid.x;\n%s\nret;\n}\n",
        text);
}

static bool run(sim_env *e, const tk_sim_map_spec *spec, const char *text, uint32_t threads) {
    params p;
    memset(&p, 0, sizeof p);
    const char *problem = spec ? tk_sim_tensor_map_encode(&e->arena, p.map, spec) : NULL;
    cr_assert(!problem, "%s", problem);
    p.base = (uint64_t)(uintptr_t)e->word;
    cr_assert(sim_read(e, module(e, text)), "line %u: %s", e->error.at.ptx_line, e->error.text);
    e->region = (tk_sim_region){p.base, sizeof e->word, false, "buffer"};
    tk_sim_launch l = {.entry = "k",
                       .grid = {1, 1, 1},
                       .block = {threads, 1, 1},
                       .params = &p,
                       .param_bytes = 136,
                       .region = &e->region,
                       .nregion = 1,
                       .seed = e->launch.seed,
                       .limit = 10000000};
    tk_sim_run(&e->arena, e->program, &l, &e->result);
    return e->result.ok;
}

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}
static uint32_t below(uint64_t *state, uint32_t n) { return (uint32_t)(next(state) % n); }

static unsigned char *bytes_at(sim_env *e, unsigned word) {
    return (unsigned char *)&e->word[word];
}

// ---- The model

static const unsigned sizes[TK_SIM_MAP_TYPE_COUNT] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

typedef struct box {
    const tk_sim_map_spec *spec;
    int32_t at[5];
    unsigned n[5]; // elements of the box in shared memory
    unsigned bytes;
} box;

static box make_box(const tk_sim_map_spec *s, const int32_t *at) {
    box b = {.spec = s, .bytes = sizes[s->type]};
    for (unsigned k = 0; k < 5; k++) {
        b.at[k] = k < s->rank ? at[k] : 0;
        b.n[k] = k >= s->rank ? 1 : k == 0 ? s->box[0] : (s->box[k] - 1) / s->step[k] + 1;
        b.bytes *= b.n[k];
    }
    return b;
}

// The byte of the tensor that element i of the box is; -1: none.
static int64_t source(const box *b, const unsigned *i) {
    const tk_sim_map_spec *s = b->spec;
    int64_t at = 0;
    for (unsigned k = 0; k < s->rank; k++) {
        int64_t c = b->at[k] + (int64_t)i[k] * (k ? s->step[k] : 1);
        if (c < 0 || c >= (int64_t)s->dim[k]) {
            return -1;
        }
        at += c * (int64_t)(k ? s->stride[k - 1] : sizes[s->type]);
    }
    return at;
}

// Where byte x of the box lies: pieces of 16 bytes change places within 32, 64 or 128 bytes, by the
// number of the line of 128 bytes.
static unsigned swizzled(const tk_sim_map_spec *s, unsigned x) {
    unsigned address = TILE_AT + x, line = address / 128, piece = address / 16;
    static const unsigned pieces[] = {1, 2, 4, 8};
    unsigned n = pieces[s->swizzle], in = piece % n;
    unsigned moved = piece - in + (in ^ line % n);
    return moved * 16 + address % 16 - TILE_AT;
}

static float to_tf32(float x) {
    if (!isfinite(x)) {
        return x;
    }
    int exponent = x == 0 ? 0 : ilogbf(x);
    exponent = exponent < -126 ? -126 : exponent;
    double quantum = ldexp(1, exponent - 10);
    return (float)(nearbyint((double)x / quantum) * quantum);
}

static void model_value(const tk_sim_map_spec *s, unsigned char *v, bool inside) {
    unsigned n = sizes[s->type];
    if (!inside) {
        for (size_t k = 0; k < n; k++) {
            v[k] = !s->fill ? 0 : k % 2 ? 0x7f : 0xf7;
        }
        return;
    }
    bool flush = s->type == TK_SIM_MAP_F32_FTZ || s->type == TK_SIM_MAP_TF32_FTZ;
    bool tf32 = s->type == TK_SIM_MAP_TF32 || s->type == TK_SIM_MAP_TF32_FTZ;
    if (flush || tf32) {
        float x;
        memcpy(&x, v, 4);
        x = flush && fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
        x = tf32 ? to_tf32(x) : x;
        memcpy(v, &x, 4);
    }
}

// mask: what is written.
static void model_load(const box *b, const unsigned char *tensor, unsigned char *tile,
                       unsigned char *mask) {
    unsigned i[5], size = sizes[b->spec->type], x = 0;
    for (i[4] = 0; i[4] < b->n[4]; i[4]++) {
        for (i[3] = 0; i[3] < b->n[3]; i[3]++) {
            for (i[2] = 0; i[2] < b->n[2]; i[2]++) {
                for (i[1] = 0; i[1] < b->n[1]; i[1]++) {
                    for (i[0] = 0; i[0] < b->n[0]; i[0]++, x += size) {
                        unsigned char v[8];
                        int64_t from = source(b, i);
                        memcpy(v, from < 0 ? tensor : tensor + from, size);
                        model_value(b->spec, v, from >= 0);
                        memcpy(tile + swizzled(b->spec, x), v, size);
                        memset(mask + swizzled(b->spec, x), 0xff, size);
                    }
                }
            }
        }
    }
}

// ---- Loads

#define DIMS(e, b) tk_format(&(e)->arena, "%ud", (b)->spec->rank)

static const char *coordinates(sim_env *e, const box *b) {
    tk_buf t;
    tk_buf_init(&t, &e->arena);
    for (unsigned k = 0; k < b->spec->rank; k++) {
        tk_buf_fmt(&t, "%s%d", k ? ", " : "", b->at[k]);
    }
    return tk_buf_text(&t);
}

#define INIT                                                                                       \
    "mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p1, %t, 0;\n"                               \
    "@%p1 mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;\n"
#define WAIT "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra W;\n"
// The first %r3 bytes of the tile, which must have been written.
#define SHOW                                                                                       \
    "add.s64 %d1, %base, 18432; mov.b32 %r4, 0;\n"                                                 \
    "S: add.u32 %r5, %r1, %r4; ld.shared.b64 %d2, [%r5]; cvt.u64.u32 %d3, %r4;\n"                  \
    "add.s64 %d3, %d3, %d1; st.global.b64 [%d3], %d2; add.u32 %r4, %r4, 8;\n"                      \
    "setp.lt.u32 %p3, %r4, %r3; @%p3 bra S;\n"

// What the box may touch of the tile: whole spans of its swizzle.
static unsigned span(const box *b) {
    unsigned unit = 16u << b->spec->swizzle;
    return (b->bytes + unit - 1) / unit * unit;
}

// The tile holds zeros first, also where the box leaves pieces out.
#define ZEROS                                                                                      \
    "mov.b32 %r4, 0; Z: add.u32 %r5, %r1, %r4; st.shared.b64 [%r5], 0; add.u32 %r4, %r4, 8;\n"     \
    "setp.lt.u32 %p3, %r4, %r3; @%p3 bra Z; fence.proxy.async.shared::cta;\n"

static const char *load_text(sim_env *e, const box *b, const char *form, const char *wait) {
    return tk_format(&e->arena,
                     "mov.b32 %%r3, %u;\n%smbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %u;\n"
                     "cp.async.bulk.tensor.%s.%s [%%r1], [%%map, {%s}], [%%r2];\n%s%s",
                     span(b), INIT ZEROS, b->bytes, DIMS(e, b), form, coordinates(e, b), wait,
                     SHOW);
}

static void check_load(const tk_sim_map_spec *spec, const int32_t *at, uint64_t seed) {
    sim_env *e = sim_open();
    uint64_t state = seed;
    for (unsigned k = DATA; k < DATA + DATA_BYTES / 8; k++) {
        e->word[k] = next(&state);
    }
    tk_sim_map_spec s = *spec;
    s.address = (uint64_t)(uintptr_t)&e->word[DATA];
    box b = make_box(&s, at);
    cr_assert(b.bytes <= OUT_BYTES);
    e->launch.seed = seed;
    const char *form = seed % 2 ? "shared::cluster.global.mbarrier::complete_tx::bytes"
                                : "shared::cta.global.tile.mbarrier::complete_tx::bytes";
    cr_assert(run(e, &s, load_text(e, &b, form, WAIT), 1), "%s", sim_fault(e));
    static unsigned char want[OUT_BYTES], mask[OUT_BYTES];
    memset(mask, 0, sizeof mask);
    model_load(&b, bytes_at(e, DATA), want, mask);
    for (unsigned k = 0; k < span(&b); k++) {
        unsigned got = bytes_at(e, OUT)[k];
        cr_assert(got == (mask[k] ? want[k] : 0),
                  "type %u rank %u swizzle %u box %u,%u,%u at %s: byte %u: %02x, not %02x",
                  (unsigned)s.type, s.rank, (unsigned)s.swizzle, s.box[0], s.box[1], s.box[2],
                  coordinates(e, &b), k, got, want[k]);
    }
    sim_close(e);
}

// A tensor whose last byte is within the room, and a box that fits the tile.
static tk_sim_map_spec random_spec(uint64_t *r, tk_sim_map_type type, unsigned rank,
                                   tk_sim_map_swizzle swizzle) {
    tk_sim_map_spec s = {.type = type, .rank = rank, .swizzle = swizzle};
    unsigned size = sizes[type];
    bool is_float = type >= TK_SIM_MAP_F16;
    s.fill = is_float && below(r, 2);
    unsigned most = swizzle == TK_SIM_MAP_SWIZZLE_NONE ? 12u : 1u << swizzle;
    s.box[0] = 16 / size * (1 + below(r, most));
    s.box[0] = s.box[0] > 256 ? 256 : s.box[0];
    s.dim[0] = 1 + below(r, 2 * s.box[0]);
    uint64_t room = DATA_BYTES, row = s.dim[0] * size;
    unsigned tile = s.box[0] * size;
    for (unsigned k = 0; k < 5; k++) {
        s.step[k] = 1 + (below(r, 3) == 0) * below(r, 3);
        if (k == 0 || k >= rank) {
            continue;
        }
        s.stride[k - 1] = (row + 15) / 16 * 16 + 16 * below(r, 2);
        uint64_t fit = room / s.stride[k - 1];
        s.dim[k] = fit > 1 ? 1 + below(r, (uint32_t)(fit < 9 ? fit : 9)) : 1;
        row = s.stride[k - 1] * s.dim[k];
        s.box[k] = 1 + below(r, 6);
        unsigned n = (s.box[k] - 1) / s.step[k] + 1;
        if (tile * n > 8192) {
            s.box[k] = n = 1;
        }
        tile *= n;
    }
    return s;
}

static void random_place(uint64_t *r, const tk_sim_map_spec *s, int32_t *at) {
    for (unsigned k = 0; k < s->rank; k++) {
        uint32_t reach = s->box[k] + (uint32_t)s->dim[k] + 2;
        at[k] = (int32_t)below(r, reach) - (int32_t)s->box[k] - 1;
        at[k] -= k ? 0 : at[k] % (int32_t)(16 / sizes[s->type]);
    }
}

Test(sim_tma, loads) {
    uint64_t r = 1;
    for (unsigned type = 0; type < TK_SIM_MAP_TYPE_COUNT; type++) {
        for (unsigned swizzle = 0; swizzle < 4; swizzle++) {
            for (unsigned rank = 1; rank <= 5; rank++) {
                tk_sim_map_spec s =
                    random_spec(&r, (tk_sim_map_type)type, rank, (tk_sim_map_swizzle)swizzle);
                for (unsigned k = 0; k < 3; k++) {
                    int32_t at[5] = {0};
                    if (k) {
                        random_place(&r, &s, at);
                    }
                    check_load(&s, at, below(&r, 1000));
                }
            }
        }
    }
}

// The widest box and the farthest coordinates.
Test(sim_tma, far_away) {
    tk_sim_map_spec s = {.type = TK_SIM_MAP_U8,
                         .rank = 2,
                         .dim = {256, 32},
                         .stride = {256},
                         .box = {256, 56},
                         .step = {1, 1}};
    check_load(&s, (int32_t[]){0, -5}, 0);
    check_load(&s, (int32_t[]){INT32_MIN, INT32_MAX}, 3);
    check_load(&s, (int32_t[]){INT32_MAX - 15, 0}, 4);
    s.dim[1] = UINT64_C(1) << 32; // never reached
    check_load(&s, (int32_t[]){-240, -32}, 5);
}

// ---- Stores and reductions

#define FILL                                                                                       \
    "mov.u32 %r1, tile; mov.b32 %r4, 0;\n"                                                         \
    "F: add.u32 %r5, %r1, %r4; cvt.u64.u32 %d3, %r4; add.s64 %d3, %d3, %base;\n"                   \
    "ld.global.b64 %d2, [%d3+18432]; st.shared.b64 [%r5], %d2; add.u32 %r4, %r4, 8;\n"             \
    "setp.lt.u32 %p3, %r4, %r3; @%p3 bra F;\n"
#define DONE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"

static void model_add(const tk_sim_map_spec *s, unsigned char *to, const unsigned char *from) {
    if (s->type == TK_SIM_MAP_U32) {
        uint32_t a, b;
        memcpy(&a, to, 4);
        memcpy(&b, from, 4);
        a += b;
        memcpy(to, &a, 4);
    } else if (s->type == TK_SIM_MAP_U64) {
        uint64_t a, b;
        memcpy(&a, to, 8);
        memcpy(&b, from, 8);
        a += b;
        memcpy(to, &a, 8);
    } else {
        memcpy(to, from, sizes[s->type]);
    }
}

static void model_store(const box *b, unsigned char *tensor, const unsigned char *tile) {
    unsigned i[5], size = sizes[b->spec->type], x = 0;
    for (i[4] = 0; i[4] < b->n[4]; i[4]++) {
        for (i[3] = 0; i[3] < b->n[3]; i[3]++) {
            for (i[2] = 0; i[2] < b->n[2]; i[2]++) {
                for (i[1] = 0; i[1] < b->n[1]; i[1]++) {
                    for (i[0] = 0; i[0] < b->n[0]; i[0]++, x += size) {
                        int64_t to = source(b, i);
                        if (to >= 0) {
                            model_add(b->spec, tensor + to, tile + swizzled(b->spec, x));
                        }
                    }
                }
            }
        }
    }
}

// A GPU writes all of the 16 bytes in which a row ends.
static bool passes_end(const box *b) {
    const tk_sim_map_spec *s = b->spec;
    const uint64_t begin = (uint64_t)b->at[0];
    return s->dim[0] * sizes[s->type] % 16 && begin < s->dim[0] && begin + b->n[0] > s->dim[0];
}

static void check_store(const tk_sim_map_spec *spec, const int32_t *at, uint64_t seed) {
    sim_env *e = sim_open();
    uint64_t state = seed;
    static uint64_t want[SIM_WORDS];
    for (unsigned k = 0; k < SIM_WORDS; k++) {
        want[k] = e->word[k] = next(&state);
    }
    tk_sim_map_spec s = *spec;
    s.address = (uint64_t)(uintptr_t)&e->word[DATA];
    box b = make_box(&s, at);
    e->launch.seed = seed;
    bool adds = s.type == TK_SIM_MAP_U32 || s.type == TK_SIM_MAP_U64;
    const char *text = tk_format(
        &e->arena,
        "mov.b32 %%r3, %u;\n%sfence.proxy.async.shared::cta;\n"
        "cp%s.async.bulk.tensor.%s.global.shared::cta%s%s.bulk_group [%%map, {%s}], [%%r1];\n%s",
        (b.bytes + 127) / 128 * 128, FILL, adds ? ".reduce" : "", DIMS(e, &b), adds ? ".add" : "",
        seed % 2 ? ".tile" : "", coordinates(e, &b), DONE);
    const bool ran = run(e, &s, text, 1);
    cr_assert(ran == !passes_end(&b), "%s", ran ? "writes behind a row" : sim_fault(e));
    if (!ran) {
        cr_assert(strstr(sim_fault(e), "behind the rows"), "%s", sim_fault(e));
        sim_close(e);
        return;
    }
    const unsigned char *tile = (const unsigned char *)&want[OUT];
    model_store(&b, (unsigned char *)&want[DATA], tile);
    for (unsigned k = 0; k < SIM_WORDS; k++) {
        cr_assert_eq(e->word[k], want[k], "type %u rank %u swizzle %u at %s: word %u",
                     (unsigned)s.type, s.rank, (unsigned)s.swizzle, coordinates(e, &b), k);
    }
    sim_close(e);
}

Test(sim_tma, stores) {
    uint64_t r = 2;
    for (unsigned type = 0; type < TK_SIM_MAP_TYPE_COUNT; type++) {
        for (unsigned swizzle = 0; swizzle < 4; swizzle++) {
            for (unsigned rank = 1; rank <= 5; rank++) {
                tk_sim_map_spec s =
                    random_spec(&r, (tk_sim_map_type)type, rank, (tk_sim_map_swizzle)swizzle);
                int32_t at[5] = {0};
                random_place(&r, &s, at);
                for (unsigned k = 0; k < rank; k++) {
                    at[k] = at[k] < 0 ? -at[k] : at[k];
                }
                check_store(&s, at, below(&r, 1000));
            }
        }
    }
}

// Of a box that does not fill the swizzle's span only its pieces are looked at.
Test(sim_tma, short_rows) {
    sim_env *e = sim_open();
    tk_sim_map_spec s = {.type = TK_SIM_MAP_U64,
                         .rank = 1,
                         .address = (uint64_t)(uintptr_t)&e->word[DATA],
                         .dim = {2},
                         .box = {2},
                         .step = {1},
                         .swizzle = TK_SIM_MAP_SWIZZLE_128B};
    cr_assert(TILE_AT / 128 % 8 == 1);
    cr_assert(run(e, &s,
                  "mov.u32 %r1, tile; st.shared.b64 [%r1+16], 7; st.shared.b64 [%r1+24], 8;\n"
                  "fence.proxy.async.shared::cta;\n"
                  "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%map, {0}], [%r1];\n"
                  "st.shared.b64 [%r1], 9;" DONE,
                  1),
              "%s", sim_fault(e));
    cr_expect(e->word[DATA] == 7 && e->word[DATA + 1] == 8 && e->word[DATA + 2] == 0);
    sim_close(e);
}

// 16 bytes of the tensor after the operation with those in shared memory.
static uint64_t reduced(const char *op, tk_sim_map_type type, uint64_t old, uint64_t x) {
    sim_env *e = sim_open();
    tk_sim_map_spec s = {.type = type,
                         .rank = 1,
                         .address = (uint64_t)(uintptr_t)&e->word[DATA],
                         .dim = {16 / sizes[type]},
                         .box = {16 / sizes[type]},
                         .step = {1}};
    e->word[DATA] = e->word[DATA + 1] = old;
    e->word[OUT] = e->word[OUT + 1] = x;
    const char *text = tk_format(&e->arena,
                                 "mov.b32 %%r3, 16;\n%sfence.proxy.async;\n"
                                 "cp.reduce.async.bulk.tensor.1d.global.shared::cta.%s.bulk_group "
                                 "[%%map, {0}], [%%r1];\n%s",
                                 FILL, op, DONE);
    cr_assert(run(e, &s, text, 1), "%s: %s", op, sim_fault(e));
    uint64_t got = e->word[DATA];
    cr_expect_eq(got, e->word[DATA + 1]);
    sim_close(e);
    return got;
}

Test(sim_tma, reductions) {
    uint64_t a = UINT64_C(0x0000000500000003), b = UINT64_C(0x0000000400000007);
    uint64_t minus = UINT64_C(0xfffffffefffffffe);
    cr_expect_eq(reduced("add", TK_SIM_MAP_S32, a, b), UINT64_C(0x000000090000000a));
    cr_expect_eq(reduced("min", TK_SIM_MAP_S32, a, minus), minus);
    cr_expect_eq(reduced("min", TK_SIM_MAP_U32, a, minus), a);
    cr_expect_eq(reduced("max", TK_SIM_MAP_U32, a, b), UINT64_C(0x0000000500000007));
    cr_expect_eq(reduced("inc", TK_SIM_MAP_U32, a, b), UINT64_C(0x0000000000000004));
    cr_expect_eq(reduced("dec", TK_SIM_MAP_U32, a, b), UINT64_C(0x0000000400000002));
    cr_expect_eq(reduced("and", TK_SIM_MAP_U32, a, b), a & b);
    cr_expect_eq(reduced("or", TK_SIM_MAP_S64, a, b), a | b);
    cr_expect_eq(reduced("xor", TK_SIM_MAP_U64, a, b), a ^ b);
    cr_expect_eq(reduced("max", TK_SIM_MAP_S64, a, minus), a);
    cr_expect_eq(
        reduced("add", TK_SIM_MAP_F32, UINT64_C(0x3f80000040000000), UINT64_C(0x3f8000003f800000)),
        UINT64_C(0x4000000040400000));
    cr_expect_eq(
        reduced("add", TK_SIM_MAP_F16, UINT64_C(0x3c003c003c003c00), UINT64_C(0x3c00400044003c00)),
        UINT64_C(0x4000420045004000));
    cr_expect_eq(reduced("max", TK_SIM_MAP_BF16, UINT64_C(0x3f80bf80), UINT64_C(0xbf804000)),
                 UINT64_C(0x3f804000));
    cr_expect_eq(
        reduced("add", TK_SIM_MAP_F64, UINT64_C(0x3ff0000000000000), UINT64_C(0x3ff0000000000000)),
        UINT64_C(0x4000000000000000));
}

// ---- Maps

static void refused(tk_sim_map_spec s, const char *words) {
    sim_env *e = sim_open();
    _Alignas(64) unsigned char map[TK_SIM_MAP_BYTES];
    const char *said = tk_sim_tensor_map_encode(&e->arena, map, &s);
    cr_assert(said, "taken, not refused: %s", words);
    cr_expect(strstr(said, words), "%s", said);
    sim_close(e);
}

static const tk_sim_map_spec plain = {.type = TK_SIM_MAP_BF16,
                                      .rank = 2,
                                      .address = 4096,
                                      .dim = {64, 16},
                                      .stride = {128},
                                      .box = {64, 8},
                                      .step = {1, 1},
                                      .swizzle = TK_SIM_MAP_SWIZZLE_128B};

#define REFUSED(CHANGE, WORDS)                                                                     \
    {                                                                                              \
        tk_sim_map_spec s = plain;                                                                 \
        s.CHANGE;                                                                                  \
        refused(s, WORDS);                                                                         \
    }

Test(sim_tma, maps_that_are_refused) {
    REFUSED(rank = 0, "a tensor of 0 dimensions")
    REFUSED(rank = 6, "a tensor of 6 dimensions")
    REFUSED(type = (tk_sim_map_type)13, "unknown type")
    REFUSED(address = 4104, "no multiple of 16")
    REFUSED(dim[1] = 0, "dimension 1 has 0 elements")
    REFUSED(dim[0] = (UINT64_C(1) << 32) + 1, "1 to 2^32")
    REFUSED(stride[0] = 136, "a stride of 136 bytes in dimension 1")
    REFUSED(stride[0] = UINT64_C(1) << 40, "a stride of 1099511627776")
    REFUSED(box[1] = 257, "257 elements in dimension 1")
    REFUSED(box[1] = 0, "0 elements in dimension 1")
    REFUSED(box[0] = 60, "rows of the box have 120 bytes: no multiple of 16")
    REFUSED(box[0] = 72, "rows of the box have 144 bytes; the swizzle spans 128")
    REFUSED(swizzle = (tk_sim_map_swizzle)4, "unknown swizzle 4")
    REFUSED(step[1] = 9, "element stride 9")
    REFUSED(step[1] = 0, "element stride 0")
    REFUSED(interleave = 1, "not modelled")
    REFUSED(fill = 2, "fill 2")
    tk_sim_map_spec s = plain;
    s.type = TK_SIM_MAP_U16;
    s.fill = 1;
    refused(s, "cannot be filled with NaN");
    sim_env *e = sim_open();
    _Alignas(64) unsigned char map[TK_SIM_MAP_BYTES + 64];
    cr_expect_str_eq(tk_sim_tensor_map_encode(&e->arena, map + 16, &plain),
                     "the map's address is no multiple of 64");
    sim_close(e);
}

// ---- Faults

// Under each seed; a copy may have ended by itself before its block does, except under seed 0.
static void fault(const char *text, const char *id, const char *words) {
    for (uint64_t seed = 0; seed < (strcmp(id, "unfinished") == 0 ? 1 : 6); seed++) {
        sim_env *e = sim_open();
        tk_sim_map_spec s = plain;
        s.address = (uint64_t)(uintptr_t)&e->word[DATA];
        e->launch.seed = seed;
        cr_assert(!run(e, &s, text, 1), "no fault, expected %s: %s", id, text);
        cr_expect(strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), words), "%s",
                  sim_fault(e));
        sim_close(e);
    }
}

#define EXPECT "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024;\n"
#define FORM   "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
#define LOAD   FORM "[%r1], [%map, {0, 0}], [%r2];\n"
#define LATER                                                                                      \
    "mov.b32 %r10, 0; Q: nanosleep.u32 9; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 300;\n"    \
    "@%p4 bra Q;\n"
#define STORE_FORM "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group "

Test(sim_tma, faults_of_loads) {
    fault(INIT EXPECT LOAD, "unfinished", "writes its shared memory");
    fault(INIT EXPECT LOAD "ld.shared.b32 %r9, [%r1];", "race", "writes asynchronously");
    fault(INIT EXPECT LOAD "st.shared.b32 [%r1+1020], 1;", "race", "writes asynchronously");
    // Also where it has come, and by the thread that has issued it.
    fault(INIT EXPECT LOAD LATER "ld.shared.b32 %r9, [%r1];", "race", "asynchronous");
    fault(INIT EXPECT LOAD LATER "st.shared.b32 [%r1], 1;", "race", "asynchronous");
    fault(INIT EXPECT LOAD LATER LOAD, "race", "asynchronous");
    fault(INIT EXPECT LOAD LOAD, "race", "writes asynchronously");
    fault(INIT LOAD "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1040;" WAIT, "deadlock",
          "waits at an mbarrier");
    fault(INIT EXPECT FORM "[%r1+64], [%map, {0, 0}], [%r2];" WAIT, "misaligned",
          "no multiple of 128");
    fault(INIT EXPECT "add.s64 %map, %map, 32;" FORM "[%r1], [%map, {0, 0}], [%r2];" WAIT,
          "misaligned", "64 bytes");
    fault("prefetch.tensormap [%map]; prefetch.param.tensormap [map_];", "illegal-instruction",
          "a GPU refuses it");
    fault(INIT EXPECT FORM "[%r1], [%map, {4, 0}], [%r2];" WAIT, "misaligned",
          "from column 4 on, of elements of 2 bytes");
    fault(INIT EXPECT "add.u32 %r1, %r1, 14336;" LOAD WAIT, "out-of-bounds", "shared memory");
    fault(INIT EXPECT "mov.b64 %map, %base;" LOAD WAIT, "tensor-map", "no tensor map is there");
    fault(INIT EXPECT "cvt.u64.u32 %map, %r1; cvta.shared.u64 %map, %map;" LOAD, "tensor-map",
          "in memory of the block");
    fault(INIT EXPECT "add.s64 %map, %map, 64;" LOAD, "out-of-bounds", "parameter memory");
    fault(INIT EXPECT "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                      "[%r1], [%map, {0, 0, 0}], [%r2];",
          "tensor-map", "a tensor of 2 dimensions; the instruction is for 3");
    fault("mov.u32 %r1, tile; mov.u32 %r2, bar; mbarrier.init.shared.b64 [%r2], 1;" LOAD, "proxy",
          "fence.mbarrier_init");
    fault("mov.u32 %r1, tile; mov.u32 %r2, bar;" LOAD, "uninitialised", "nobody has written");
    fault(INIT "mov.b16 %h1, 0;" FORM "[%r1], [%map, {0, 0}], [%r2];", "unfinished", "writes");
    fault(INIT "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%r1], [%map, {0, 0}], [%r2], 0;",
          "async-operands", "a multicast to no block");
    fault(INIT "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%r1], [%map, {0, 0}], [%r2], 3;",
          "out-of-bounds", "block 1 of a cluster of 1");
}

Test(sim_tma, faults_of_stores) {
    static const char fill[] = "mov.b32 %r3, 1024;\n" FILL "fence.proxy.async.shared::cta;\n";
    static const char store[] = STORE_FORM "[%map, {0, 0}], [%r1];\n";
    sim_env *e = sim_open();
#define TEXT(...) tk_format(&e->arena, "%s%s%s", __VA_ARGS__)
    fault(TEXT(fill, store, "cp.async.bulk.commit_group;"), "unfinished",
          "reads its shared memory");
    fault(TEXT(fill, store, "cp.async.bulk.commit_group; st.shared.b32 [%r1+64], 1;"), "race",
          "reads asynchronously");
    fault(TEXT(fill, "st.shared.b32 [%r1+64], 1;", store), "proxy", "no fence.proxy.async");
    fault(TEXT(fill, STORE_FORM "[%map, {0, -1}], [%r1];", ""), "illegal-instruction",
          "begins at -1 in dimension 1");
    fault(TEXT("mov.u32 %r1, tile;", "", store), "uninitialised", "nobody has written");
    fault(TEXT(fill, STORE_FORM "[%map, {0, 0}], [%r1+16];", ""), "misaligned",
          "no multiple of 128");
    fault(TEXT(fill,
               "cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group [%map, {0, 0}], "
               "[%r1];",
               ""),
          "tensor-map", "is not possible with the elements");
    sim_close(e);
}

// The tensor goes on behind what the launch has.
Test(sim_tma, tensors_outside_memory) {
    for (unsigned k = 0; k < 2; k++) {
        sim_env *e = sim_open();
        tk_sim_map_spec s = plain;
        s.address = (uint64_t)(uintptr_t)&e->word[SIM_WORDS - 64]; // 4 rows
        const char *text =
            tk_format(&e->arena, "%s%s%s%s%s", INIT, EXPECT, FORM,
                      k ? "[%r1], [%map, {0, -4}], [%r2];" : "[%r1], [%map, {0, 0}], [%r2];", WAIT);
        bool ok = run(e, &s, text, 1);
        cr_expect(ok == (k == 1), "%s", sim_fault(e));
        cr_expect(ok || strstr(sim_fault(e), "out-of-bounds"), "%s", sim_fault(e));
        sim_close(e);
    }
}

Test(sim_tma, instructions_that_are_not_known) {
    static const char *const text[] = {
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], "
        "[%map, {0, 0, 0}], [%r2], {%h1};",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%map, "
        "{0}], [%r2];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
        "[%map], [%r2];",
        "ld.global.b32 %r1, [%base, {%r2}];"};
    static const char *const words[] = {"im2col", "do not go together", "with coordinates",
                                        "in brackets"};
    for (unsigned k = 0; k < 4; k++) {
        sim_env *e = sim_open();
        cr_assert(!sim_read(e, module(e, text[k])));
        cr_expect(strstr(e->error.text, words[k]), "%s", e->error.text);
        sim_close(e);
    }
}

// ---- Maps that the kernel changes

// The map's bytes to shared memory, changed there, from there to the buffer's begin. The map tells
// of something else: another tensor of other elements.
#define COPY_MAP                                                                                   \
    "setp.lt.u32 %p5, %t, 16; mul.lo.u32 %r6, %t, 8; cvt.u64.u32 %d6, %r6; add.s64 %d7, %d6, "     \
    "%map;\n@%p5 ld.b64 %d8, [%d7]; add.u32 %r7, %r1, %r6; @%p5 st.shared.b64 [%r7+1024], %d8;\n"  \
    "bar.warp.sync -1;\n"
#define FIELD(field, type, value)                                                                  \
    "@%p1 tensormap.replace.tile." field ".shared::cta.b1024." type " [%r1+1024], " value ";\n"
#define CHANGE                                                                                     \
    "add.s64 %d10, %base, 8192;\n" FIELD("global_address", "b64", "%d10")                          \
        FIELD("rank", "b32", "1") FIELD("elemtype", "b32", "6")                                    \
            FIELD("global_dim", "b32", "0, 64") FIELD("global_dim", "b32", "1, 16")                \
                FIELD("global_stride", "b64", "0, 128") FIELD("box_dim", "b32", "0, 64")           \
                    FIELD("box_dim", "b32", "1, 8") FIELD("element_stride", "b32", "1, 1")         \
                        FIELD("swizzle_mode", "b32", "3") FIELD("interleave_layout", "b32", "0")   \
                            FIELD("fill_mode", "b32", "1")
#define PUBLISH                                                                                    \
    "bar.warp.sync -1; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"  \
    ".sync.aligned [%base], [%r1+1024], 128;\n"
#define ACQUIRE "fence.proxy.tensormap::generic.acquire.gpu [%base], 128;\n"
#define USE                                                                                        \
    "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 1024;\n"                                  \
    "@%p1 " FORM "[%r1], [%base, {0, -1}], [%r2];\nbar.warp.sync -1;\n" WAIT

static bool run_changed(sim_env *e, const char *text, uint64_t seed) {
    tk_sim_map_spec s = {.type = TK_SIM_MAP_U8,
                         .rank = 1,
                         .address = (uint64_t)(uintptr_t)&e->word[512],
                         .dim = {16},
                         .box = {16},
                         .step = {1}};
    for (unsigned k = 0; k < SIM_WORDS; k++) {
        e->word[k] = k;
    }
    e->launch.seed = seed;
    return run(e, &s, text, 32);
}

Test(sim_tma, changed_maps) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        sim_env *e = sim_open();
        cr_assert(run_changed(e, INIT COPY_MAP CHANGE PUBLISH ACQUIRE USE "mov.b32 %r3, 1024;" SHOW,
                              seed),
                  "%s", sim_fault(e));
        for (unsigned k = 0; k < 128; k++) { // row -1 is filled with NaN
            unsigned line = (TILE_AT / 128 + k / 16) % 8, from = (k / 2 % 8 ^ line) * 2 + k % 2;
            uint64_t want = k < 16 ? UINT64_C(0x7ff77ff77ff77ff7) : DATA + k / 16 * 16 + from - 16;
            cr_expect_eq(e->word[OUT + k], want, "word %u: %llx", k,
                         (unsigned long long)e->word[OUT + k]);
        }
        sim_close(e);
    }
}

static void change_fault(const char *text, const char *id, const char *words) {
    sim_env *e = sim_open();
    cr_assert(!run_changed(e, text, 0), "no fault, expected %s: %s", id, text);
    cr_expect(strcmp(e->result.fault.id, id) == 0 && strstr(sim_fault(e), words), "%s",
              sim_fault(e));
    sim_close(e);
}

Test(sim_tma, faults_of_changed_maps) {
    change_fault(INIT COPY_MAP CHANGE PUBLISH USE, "proxy", "fence.proxy.tensormap with .acquire");
    change_fault(INIT COPY_MAP CHANGE PUBLISH ACQUIRE
                 "@%p1 tensormap.replace.tile.box_dim.global.b1024.b32 [%base], 1, 8;\n" USE,
                 "proxy", "with .release between");
    change_fault(INIT COPY_MAP CHANGE PUBLISH ACQUIRE
                 "@%p1 tensormap.replace.tile.box_dim.global.b1024.b32 [%base], 1, 8;\n"
                 "fence.proxy.tensormap::generic.release.gpu;\n" USE,
                 "proxy", "with .acquire between");
    change_fault(INIT COPY_MAP CHANGE FIELD("box_dim", "b32", "0, 72") PUBLISH ACQUIRE USE,
                 "tensor-map", "rows of the box have 144 bytes");
    change_fault(INIT COPY_MAP FIELD("global_stride", "b64", "4, 16"), "tensor-map", "not there");
    change_fault(INIT FIELD("rank", "b32", "1"), "uninitialised", "nobody has written");
    change_fault(INIT "@%p1 tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1+32], 1;",
                 "misaligned", "no multiple of 64");
    // After both fences it may be used.
    sim_env *e = sim_open();
    cr_expect(run_changed(e,
                          INIT COPY_MAP CHANGE PUBLISH ACQUIRE
                          "@%p1 tensormap.replace.tile.box_dim.global.b1024.b32 [%base], 1, 8;\n"
                          "fence.proxy.tensormap::generic.release.gpu;\n" ACQUIRE USE,
                          0),
              "%s", sim_fault(e));
    sim_close(e);
}
