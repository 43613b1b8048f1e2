// SPDX-License-Identifier: Apache-2.0
// Tensor maps: what the driver would make of a description of a tensor, in a form of our own, and
// what a copy reads from it.
#include "sim/tensor.h"

#define MAGIC UINT64_C(0x6b742d70616d2d74)

_Static_assert(sizeof(tk_sim_map_fields) <= TK_SIM_MAP_BYTES, "a map has 128 bytes");

typedef struct type_info {
    uint32_t bytes;
    bool is_float, flushes, tf32;
    tk_sim_type number, logic; // as which it is reduced; B8, B16: not at all
} type_info;

static const type_info types[TK_SIM_MAP_TYPE_COUNT] = {
    [TK_SIM_MAP_U8] = {1, false, false, false, TK_SIM_B8, TK_SIM_B8},
    [TK_SIM_MAP_U16] = {2, false, false, false, TK_SIM_B16, TK_SIM_B16},
    [TK_SIM_MAP_U32] = {4, false, false, false, TK_SIM_U32, TK_SIM_B32},
    [TK_SIM_MAP_S32] = {4, false, false, false, TK_SIM_S32, TK_SIM_B32},
    [TK_SIM_MAP_U64] = {8, false, false, false, TK_SIM_U64, TK_SIM_B64},
    [TK_SIM_MAP_S64] = {8, false, false, false, TK_SIM_S64, TK_SIM_B64},
    [TK_SIM_MAP_F16] = {2, true, false, false, TK_SIM_F16, TK_SIM_B16},
    [TK_SIM_MAP_F32] = {4, true, false, false, TK_SIM_F32, TK_SIM_F32},
    [TK_SIM_MAP_F64] = {8, true, false, false, TK_SIM_F64, TK_SIM_F64},
    [TK_SIM_MAP_BF16] = {2, true, false, false, TK_SIM_BF16, TK_SIM_B16},
    [TK_SIM_MAP_F32_FTZ] = {4, true, true, false, TK_SIM_F32, TK_SIM_F32},
    [TK_SIM_MAP_TF32] = {4, true, false, true, TK_SIM_F32, TK_SIM_F32},
    [TK_SIM_MAP_TF32_FTZ] = {4, true, true, true, TK_SIM_F32, TK_SIM_F32},
};

static const uint32_t spans[] = {16, 32, 64, 128};

// ---- Encoding

static const char *check_box(tk_arena *a, const tk_sim_map_spec *s) {
    for (uint32_t k = 0; k < s->rank; k++) {
        if (s->dim[k] < 1 || s->dim[k] > UINT64_C(1) << 32) {
            return tk_format(a, "dimension %u has %llu elements; 1 to 2^32 are possible", k,
                             (unsigned long long)s->dim[k]);
        }
        if (s->box[k] < 1 || s->box[k] > 256) {
            return tk_format(a, "the box has %u elements in dimension %u; 1 to 256 are possible",
                             s->box[k], k);
        }
        if (s->step[k] < 1 || s->step[k] > 8) {
            return tk_format(a, "element stride %u in dimension %u; 1 to 8 are possible",
                             s->step[k], k);
        }
    }
    for (uint32_t k = 0; k + 1 < s->rank; k++) {
        if (s->stride[k] % 16 || s->stride[k] >> 40) {
            return tk_format(a,
                             "a stride of %llu bytes in dimension %u: no multiple of 16 below "
                             "2^40",
                             (unsigned long long)s->stride[k], k + 1);
        }
    }
    uint32_t inner = s->box[0] * types[s->type].bytes;
    if (inner % 16) {
        return tk_format(a, "rows of the box have %u bytes: no multiple of 16", inner);
    }
    if (s->swizzle != TK_SIM_MAP_SWIZZLE_NONE && inner > spans[s->swizzle]) {
        return tk_format(a, "rows of the box have %u bytes; the swizzle spans %u", inner,
                         spans[s->swizzle]);
    }
    return NULL;
}

static const char *check(tk_arena *a, const tk_sim_map_spec *s) {
    if ((unsigned)s->type >= TK_SIM_MAP_TYPE_COUNT) {
        return tk_format(a, "unknown type of elements %u", (unsigned)s->type);
    }
    if (s->rank < 1 || s->rank > TK_SIM_MAP_RANK) {
        return tk_format(a, "a tensor of %u dimensions; 1 to %d are possible", s->rank,
                         TK_SIM_MAP_RANK);
    }
    if (s->interleave != 0) {
        return "interleaved layouts are not modelled";
    }
    if ((unsigned)s->swizzle > TK_SIM_MAP_SWIZZLE_128B) {
        return tk_format(a,
                         "unknown swizzle %u; those with other atoms need compute capability "
                         "10.0",
                         (unsigned)s->swizzle);
    }
    if (s->l2 > 3 || s->fill > 1) {
        return tk_format(a, "unknown promotion %u or fill %u", s->l2, s->fill);
    }
    if (s->fill == 1 && !types[s->type].is_float) {
        return "elements that are no floats cannot be filled with NaN";
    }
    if (s->address % 16) {
        return tk_format(a, "the tensor's address 0x%llx is no multiple of 16",
                         (unsigned long long)s->address);
    }
    return check_box(a, s);
}

const char *tk_sim_tensor_map_encode(tk_arena *arena, void *map, const tk_sim_map_spec *s) {
    const char *problem = (uintptr_t)map % 64 ? "the map's address is no multiple of 64" : NULL;
    problem = problem ? problem : check(arena, s);
    if (problem) {
        return problem;
    }
    tk_sim_map_fields f;
    memset(&f, 0, sizeof f);
    f.magic = MAGIC;
    f.address = s->address;
    for (uint32_t k = 0; k < s->rank; k++) {
        f.last[k] = (uint32_t)(s->dim[k] - 1);
        f.box[k] = (uint16_t)s->box[k];
        f.step[k] = (uint8_t)s->step[k];
        if (k > 0) {
            f.stride[k - 1] = s->stride[k - 1];
        }
    }
    f.type = (uint8_t)s->type;
    f.rank = (uint8_t)s->rank;
    f.swizzle = (uint8_t)s->swizzle;
    f.l2 = (uint8_t)s->l2;
    f.fill = (uint8_t)s->fill;
    memset(map, 0, TK_SIM_MAP_BYTES);
    memcpy(map, &f, sizeof f);
    return NULL;
}

// ---- Decoding

bool tk_sim_tensor_begins(const unsigned char *map) {
    uint64_t magic;
    memcpy(&magic, map, sizeof magic);
    return magic == MAGIC;
}

const char *tk_sim_tensor_decode(tk_arena *arena, const void *map, tk_sim_tensor *out) {
    tk_sim_map_fields f;
    memcpy(&f, map, sizeof f);
    if (f.magic != MAGIC) {
        return "no tensor map is there";
    }
    tk_sim_map_spec s = {.type = (tk_sim_map_type)f.type,
                         .rank = f.rank,
                         .address = f.address,
                         .interleave = f.interleave,
                         .swizzle = (tk_sim_map_swizzle)f.swizzle,
                         .l2 = f.l2,
                         .fill = f.fill};
    for (uint32_t k = 0; k < TK_SIM_MAP_RANK; k++) {
        s.dim[k] = (uint64_t)f.last[k] + 1;
        s.box[k] = f.box[k];
        s.step[k] = f.step[k];
        s.stride[k ? k - 1 : 0] = f.stride[k ? k - 1 : 0];
    }
    const char *problem = check(arena, &s);
    if (problem) {
        return problem;
    }
    memset(out, 0, sizeof *out);
    memcpy(out->raw, map, TK_SIM_MAP_BYTES);
    out->address = s.address;
    out->type = s.type;
    out->rank = s.rank;
    out->element = types[s.type].bytes;
    out->swizzle = (1u << s.swizzle) - 1;
    out->nan_fill = s.fill == 1;
    out->bytes = out->element;
    for (uint32_t k = 0; k < s.rank; k++) {
        // Without interleaving, dimension 0 is always taken densely.
        out->step[k] = k ? s.step[k] : 1;
        out->count[k] = (s.box[k] + out->step[k] - 1) / out->step[k];
        out->dim[k] = s.dim[k];
        out->stride[k] = k ? s.stride[k - 1] : out->element;
        out->bytes *= out->count[k];
    }
    return NULL;
}

// ---- Boxes

uint32_t tk_sim_tensor_rows(const tk_sim_tensor *t) {
    return (uint32_t)(t->bytes / t->element / t->count[0]);
}

void tk_sim_tensor_row_at(const tk_sim_tensor *t, const int32_t *at, uint32_t k,
                          tk_sim_tensor_row *out) {
    bool inside = true;
    uint64_t address = t->address;
    out->offset = k * t->count[0] * t->element;
    for (uint32_t d = 1; d < t->rank; d++) {
        int64_t c = (int64_t)at[d] + (int64_t)(k % t->count[d]) * t->step[d];
        k /= t->count[d];
        inside = inside && c >= 0 && (uint64_t)c < t->dim[d];
        address += (uint64_t)c * t->stride[d];
    }
    int64_t first = at[0] < 0 ? -(int64_t)at[0] : 0, end = (int64_t)t->dim[0] - at[0];
    end = end < t->count[0] ? end : t->count[0];
    inside = inside && first < end;
    out->first = inside ? (uint32_t)first : 0;
    out->n = inside ? (uint32_t)(end - first) : 0;
    out->address = inside ? address + (uint64_t)(at[0] + first) * t->element : 0;
}

uint32_t tk_sim_tensor_place(const tk_sim_tensor *t, uint32_t offset, uint32_t byte) {
    uint32_t a = offset + byte;
    return a ^ (a >> 7 & t->swizzle) << 4;
}

bool tk_sim_tensor_whole(const tk_sim_tensor *t) { return t->bytes % ((t->swizzle + 1) * 16) == 0; }

// To tf32, to the nearest one, ties to even; NaN and infinity stay.
static uint32_t to_tf32(uint32_t x) {
    bool finite = (x & 0x7f800000) != 0x7f800000;
    return finite ? (x + 0xfff + (x >> 13 & 1)) & ~UINT32_C(0x1fff) : x;
}

void tk_sim_tensor_convert(const tk_sim_tensor *t, unsigned char *element, bool inside) {
    const type_info *info = &types[t->type];
    if (inside && !info->flushes && !info->tf32) {
        return;
    }
    if (!inside) {
        for (uint32_t k = 0; k < t->element; k++) { // 7ff7 again and again
            element[k] = !t->nan_fill ? 0 : k % 2 ? 0x7f : 0xf7;
        }
        return;
    }
    uint32_t x;
    memcpy(&x, element, sizeof x);
    x = info->flushes && (x & 0x7f800000) == 0 ? x & 0x80000000 : x;
    x = info->tf32 ? to_tf32(x) : x;
    memcpy(element, &x, sizeof x);
}

tk_sim_type tk_sim_tensor_type(const tk_sim_tensor *t, bool logic) {
    return logic ? types[t->type].logic : types[t->type].number;
}
