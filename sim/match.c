// SPDX-License-Identifier: Apache-2.0
// Mnemonics against the patterns of the rows.
#include "sim/read.h"

#include <string.h>

const tk_sim_type_info tk_sim_types[TK_SIM_TYPE_COUNT] = {
#define TK_SIM_TYPE(ID, NAME, BITS, KIND) {NAME, BITS, KIND},
#include "sim/types.def"
};

static const char *const mod_names[TK_SIM_MOD_COUNT] = {
#define TK_SIM_MOD(ID, NAME) NAME,
#include "sim/mods.def"
};

static bool same(const char *name, const char *s, size_t n) {
    return strncmp(name, s, n) == 0 && name[n] == 0;
}

bool tk_sim_type_of(const char *name, size_t n, tk_sim_type *out) {
    for (unsigned t = 0; t < TK_SIM_TYPE_COUNT; t++) {
        if (same(tk_sim_types[t].name, name, n)) {
            *out = (tk_sim_type)t;
            return true;
        }
    }
    return false;
}

// m64n16k8 against m64n#k8: the digits are the instruction's number. False: another word.
static bool numbered(const char *p, size_t k, const char *word, size_t n, uint32_t *number) {
    const char *mark = memchr(p, '#', k);
    size_t before = mark ? (size_t)(mark - p) : 0, after = mark ? k - before - 1 : 0;
    if (!mark || n <= before + after || n - before - after > 3 || memcmp(p, word, before) != 0 ||
        memcmp(mark + 1, word + n - after, after) != 0 || word[before] == '0') {
        return false;
    }
    *number = 0;
    for (size_t d = before; d < n - after; d++) {
        if (word[d] < '0' || word[d] > '9') {
            return false;
        }
        *number = *number * 10 + (uint32_t)(word[d] - '0');
    }
    return true;
}

static bool add_word(const char *s, size_t n, tk_sim_inst *out) {
    tk_sim_type type;
    if (tk_sim_type_of(s, n, &type)) {
        if (out->ntype == TK_SIM_TYPES) {
            return false;
        }
        out->type[out->ntype++] = (uint8_t)type;
        return true;
    }
    for (unsigned m = 0; m < TK_SIM_MOD_COUNT; m++) {
        if (same(mod_names[m], s, n)) {
            out->mods[m / 64] |= UINT64_C(1) << (m % 64);
            return true;
        }
    }
    return false;
}

// Whether one of a|b|c, up to the pattern's next dot, is the word.
static bool one_of(const char *p, const char *word, size_t n, uint32_t *number) {
    while (*p && *p != '.') {
        size_t k = strcspn(p, "|.");
        if ((k == n && memcmp(p, word, n) == 0) || numbered(p, k, word, n, number)) {
            return true;
        }
        p += k + (p[k] == '|');
    }
    return false;
}

bool tk_sim_root_is(const tk_sim_row *row, const char *mnemonic, size_t n) {
    return strncmp(row->pattern, mnemonic, n) == 0 &&
           (row->pattern[n] == 0 || row->pattern[n] == '.');
}

bool tk_sim_match(const tk_sim_row *row, const char *mnemonic, tk_sim_inst *out) {
    const char *p = row->pattern, *s = mnemonic;
    while (*p) {
        bool optional = *p == '?';
        p += optional;
        size_t n = strcspn(s, ".");
        uint32_t number = 0;
        bool is = n > 0 && one_of(p, s, n, &number);
        if (!is && !optional) {
            return false;
        }
        if (is) {
            out->number = number ? (uint16_t)number : out->number;
            if (p != row->pattern && !number && !add_word(s, n, out)) {
                return false; // a word that no list has: a fault of the row, which a test finds
            }
            s += n;
            s += *s == '.';
        }
        p += strcspn(p, ".");
        p += *p == '.';
    }
    return *s == 0;
}
