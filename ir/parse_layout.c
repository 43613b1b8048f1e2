// SPDX-License-Identifier: Apache-2.0
// The parser of the text form: layouts, and the numbers behind types that name them. Counts are
// kept in range here; whether a layout is sound is the verifier's question.
#include "ir/parse_internal.h"

static bool complain(tk_irparse *p, const tk_itoken *at, const char *text) {
    tk_error(p->diags, tk_irp_span(p, at->begin, p->before), "ir-layout", "%s", text);
    return false;
}

// [64, 128]
static bool shape(tk_irparse *p, tk_layout *l) {
    tk_itoken at = p->tok;
    unsigned bits = 0;
    if (!tk_irp_expect(p, "[")) {
        return false;
    }
    do {
        uint64_t n;
        if (!tk_irp_u64(p, &n)) {
            return false;
        }
        uint8_t k = 0;
        while (k < 24 && (uint64_t)1 << k < n) {
            k++;
        }
        bits += k;
        if (l->rank == TK_MAX_RANK || (uint64_t)1 << k != n || bits > 24) {
            return complain(p, &at,
                            "a shape has at most 5 extents, powers of two, and 2^24 "
                            "elements");
        }
        l->log_dim[l->rank++] = k;
    } while (tk_irp_accept(p, ","));
    return tk_irp_expect(p, "]");
}

// reg 1 2 4: at most `most` numbers
static bool bases(tk_irparse *p, const char *name, unsigned most, uint32_t *to, uint8_t *n) {
    *n = 0;
    if (p->tok.first) {
        return tk_irp_unexpected(p, tk_format(p->a, "'%s'", name));
    }
    if (!tk_irp_expect(p, name)) {
        return false;
    }
    while (p->tok.kind == TK_IT_NUMBER && !p->tok.first) {
        tk_itoken at = p->tok;
        uint64_t x;
        if (!tk_irp_u64(p, &x)) {
            return false;
        }
        if (*n == most || x > UINT32_MAX) {
            return complain(p, &at, tk_format(p->a, "at most %u numbers of 32 bits", most));
        }
        to[(*n)++] = (uint32_t)x;
    }
    return true;
}

static bool number(tk_irparse *p, uint64_t *out) {
    return tk_irp_expect(p, "#") && tk_irp_u64(p, out);
}

// reg 1 2 lane 4 .. warp .., or shared 1 2 4 ..
static bool all_bases(tk_irparse *p, tk_layout *l, uint8_t *lanes) {
    *lanes = TK_LANE_BITS;
    l->shared = !p->tok.first && tk_irp_is(p, "shared");
    if (l->shared) {
        return bases(p, "shared", TK_MAX_REG_BITS, l->reg, &l->regs);
    }
    return bases(p, "reg", TK_MAX_REG_BITS, l->reg, &l->regs) &&
           bases(p, "lane", TK_LANE_BITS, l->lane, lanes) &&
           bases(p, "warp", TK_MAX_WARP_BITS, l->warp, &l->warps);
}

bool tk_irp_layout(tk_irparse *p) {
    tk_layout l = {0};
    uint64_t id;
    uint8_t lanes;
    tk_irp_next(p);
    tk_itoken at = p->tok;
    if (!number(p, &id)) {
        return false;
    }
    if (id != p->layouts.n) {
        return complain(
            p, &at, tk_format(p->a, "layouts are numbered in order: this is #%u", p->layouts.n));
    }
    if (!tk_irp_expect(p, "=") || !shape(p, &l) || !all_bases(p, &l, &lanes)) {
        return false;
    }
    if (lanes != TK_LANE_BITS) {
        return complain(p, &at, "a layout has 5 numbers for its lanes");
    }
    if (!p->tok.first) {
        return tk_irp_unexpected(p, "the end of the line");
    }
    tk_vec_push(p->a, &p->layouts, tk_layout_new(p->a, l));
    return true;
}

bool tk_irp_layout_of(tk_irparse *p, const tk_layout **out) {
    tk_itoken at = p->tok;
    uint64_t id;
    *out = NULL;
    if (p->tok.first || !tk_irp_is(p, "#")) {
        return true;
    }
    if (!number(p, &id)) {
        return false;
    }
    if (id >= p->layouts.n) {
        return complain(p, &at, "there is no layout of this number");
    }
    *out = p->layouts.at[id];
    return true;
}
