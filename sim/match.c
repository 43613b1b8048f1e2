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

// ---- Words in another order
//
// An assembler takes the words behind an instruction's name in any order, but for those of one kind
// among themselves: types, spaces, how matrices lie, levels of caches.

enum { MOST_WORDS = 24, KINDS = 4 };

typedef struct word {
    const char *at;
    size_t n;
    bool used;
} word;

static unsigned split(const char *s, word *out) {
    unsigned n = 0;
    while (*s && n < MOST_WORDS) {
        const size_t k = strcspn(s, ".");
        out[n++] = (word){s, k, false};
        s += k + (s[k] == '.');
    }
    return *s ? 0 : n;
}

// How many words the instruction's name has.
static unsigned name_words(const char *mnemonic) {
    static const char *const opcodes[] = {
#define TK_SIM_OPCODE(NAME) NAME,
#include "sim/opcodes.def"
    };
    for (size_t k = 0; k < sizeof opcodes / sizeof *opcodes; k++) {
        const size_t n = strlen(opcodes[k]);
        if (strncmp(mnemonic, opcodes[k], n) == 0 && (mnemonic[n] == 0 || mnemonic[n] == '.')) {
            unsigned words = 1;
            for (const char *s = opcodes[k]; *s; s++) {
                words += *s == '.';
            }
            return words;
        }
    }
    return 1;
}

// Of words whose order counts; KINDS: of no such kind.
static unsigned kind_of(const word *w) {
    static const char *const spaces[] = {"global",          "shared",       "shared::cta",
                                         "shared::cluster", "local",        "const",
                                         "param",           "param::entry", "param::func"};
    tk_sim_type type;
    if (tk_sim_type_of(w->at, w->n, &type)) {
        return 0;
    }
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++) {
        if (same(spaces[k], w->at, w->n)) {
            return 1;
        }
    }
    return same("row", w->at, w->n) || same("col", w->at, w->n) ? 2
           : strncmp(w->at, "L2::evict", 9) == 0                ? 3
                                                                : KINDS;
}

const char *tk_sim_in_order(tk_arena *arena, const tk_sim_row *row, const char *mnemonic) {
    word words[MOST_WORDS];
    const unsigned n = split(mnemonic, words);
    unsigned taken = 0, stay = 0, behind[KINDS + 1] = {0};
    tk_buf out;
    tk_buf_init(&out, arena);
    for (const char *p = row->pattern; *p;) {
        const bool optional = *p == '?';
        p += optional;
        uint32_t number = 0;
        unsigned k = 0;
        while (k < n && (words[k].used || !one_of(p, words[k].at, words[k].n, &number))) {
            k++;
        }
        const unsigned kind = k < n ? kind_of(&words[k]) : KINDS;
        if (k == n ? !optional : kind < KINDS && k < behind[kind]) {
            return NULL;
        }
        if (k < n) {
            words[k].used = true;
            behind[kind] = k;
            stay += stay == k && stay == taken;
            tk_buf_fmt(&out, "%s%.*s", taken ? "." : "", (int)words[k].n, words[k].at);
            taken++;
        }
        p += strcspn(p, ".");
        p += *p == '.';
    }
    const char *text = tk_buf_text(&out);
    return n && taken == n && stay >= name_words(text) ? text : NULL;
}
