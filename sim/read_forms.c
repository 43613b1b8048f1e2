// SPDX-License-Identifier: Apache-2.0
// What an instruction's words and operands must have in common, beyond its pattern and shape: what
// an assembler refuses as well.
#include "sim/read.h"

#include <stdlib.h>
#include <string.h>

static bool begins(const tk_sim_inst *i, const char *with) {
    return strncmp(i->name, with, strlen(with)) == 0;
}

// Instructions whose operands are words, whatever is in them; the mask of a shuffle is a number.
static bool takes_words(const tk_sim_inst *i, unsigned place) {
    return begins(i, "movmatrix.") || begins(i, "prmt.") || begins(i, "fns.") ||
           begins(i, "tensormap.replace.") || (begins(i, "shfl.") && place != 4);
}

// Whether a number may be written as a float where bits are needed; and where the instruction's
// type says so.
bool tk_sim_float_fits(const tk_sim_inst *i, unsigned place, const tk_sim_number *x,
                       bool bits_only) {
    const bool single = begins(i, "cvt.rna.") && strstr(i->name, ".tf32."); // by its bits
    const bool map = begins(i, "tensormap.") && !begins(i, "tensormap.replace.tile.rank");
    const bool words = takes_words(i, place) && !map;
    return (!single || x->pattern == 4) && (words || !(bits_only || begins(i, "redux.")));
}

// Whether a list may have numbers.
bool tk_sim_list_fits(const tk_sim_inst *i) {
    return !i->ntype || i->type[0] != TK_SIM_F16X2 || !(begins(i, "atom.") || begins(i, "red."));
}

// Whether a predicate may be written as a number.
bool tk_sim_truth_fits(const tk_sim_inst *i) {
    bool brain = false;
    for (unsigned k = 0; k < i->ntype; k++) {
        brain = brain || i->type[k] == TK_SIM_BF16 || i->type[k] == TK_SIM_BF16X2;
    }
    return !brain || !(begins(i, "set.") || begins(i, "setp."));
}

// Registers of .b go with all types, and of the others u with s. A float register goes with its own
// type, and where the operand is of .b; with none where the operand has no type of the instruction,
// or is an integer though the instruction says .b. f16x2 counts as bits where u and s do. So ptxas
// has it; its exceptions are the ones below.
bool tk_sim_register_fits(const tk_sim_inst *i, unsigned place, tk_sim_type has, tk_sim_type type,
                          bool bits_only) {
    const char kind = tk_sim_types[has].kind, of = tk_sim_types[type].kind;
    const bool integers = begins(i, "redux.") || begins(i, "bmsk.");
    const bool wide = begins(i, "mul.") || begins(i, "mad.") || begins(i, "cvt.");
    if (kind == 'b' || takes_words(i, place) ||
        (has == TK_SIM_F16X2 && begins(i, "dp") && (place == 1 || place == 2)) ||
        (kind != 'f' && begins(i, "set.") && place == 0 && type == TK_SIM_BF16) ||
        (begins(i, "set.") && place == 0 && type == TK_SIM_BF16X2)) {
        return true;
    }
    if ((bits_only && !wide) || integers) {
        return kind != 'f';
    }
    if (type == TK_SIM_U16X2 || type == TK_SIM_S16X2) {
        return has == TK_SIM_F16X2;
    }
    return of == 'f' ? has == type
                     : kind != 'f' || has == TK_SIM_F16X2 || (of == 'b' && !bits_only);
}

// A policy of caches is the last operand of the shape.
static const char *policy_problem(const tk_sim_row *row, const tk_sim_inst *i) {
    const size_t n = strlen(row->shape);
    const bool may = strstr(row->pattern, "L2::cache_hint") != NULL;
    unsigned last = 0;
    if (n < 3 || strcmp(row->shape + n - 2, "sl") != 0 || (!may && row->shape[n - 3] != '?')) {
        return NULL;
    }
    for (const char *s = row->shape; *s; s++) {
        last += *s == ' ';
    }
    const bool given = tk_sim_count_of(i, last) > 0, said = tk_sim_has(i, TK_SIM_MOD_L2_CACHE_HINT);
    const bool shared = strstr(i->name, ".shared") && !begins(i, "cp.");
    return said && shared  ? ".L2::cache_hint is of global memory"
           : given == said ? NULL
           : given         ? "a cache policy needs .L2::cache_hint"
                           : ".L2::cache_hint needs a cache policy";
}

// Generic and global addresses have 64 bits.
static const char *width_problem(const tk_sim_inst *i) {
    static const char *const narrow[] = {".shared", ".local", ".const", ".param"};
    const bool accesses = i->klass == TK_SIM_CLASS_MEMORY || i->klass == TK_SIM_CLASS_ATOMIC ||
                          begins(i, "mbarrier.");
    bool wide = accesses && !begins(i, "ldmatrix") && !begins(i, "stmatrix");
    for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++) {
        wide = wide && strstr(i->name, narrow[k]) == NULL;
    }
    const bool matrix = begins(i, "ldmatrix") || begins(i, "stmatrix");
    const bool map = begins(i, "prefetch.") && strstr(i->name, "tensormap");
    const bool named = strstr(i->name, ".shared");
    const bool word = map || (matrix && !named) || // the first one may not have 16 bits
                      (begins(i, "cp.async.mbarrier") && !named) || begins(i, "st.async") ||
                      begins(i, "red.async") || begins(i, "createpolicy.") ||
                      begins(i, "tensormap.replace.");
    bool first = true;
    for (uint32_t k = 0; word && first && k < i->narg; k++) {
        first = i->arg[k].kind != TK_SIM_ARG_ADDRESS;
        if (!first && i->arg[k].bytes < 4) {
            return "an address of this space has 32 or 64 bits";
        }
    }
    for (uint32_t k = 0; wide && k < i->narg; k++) {
        if (i->arg[k].kind == TK_SIM_ARG_ADDRESS && i->arg[k].bytes < 8) {
            return "an address of this space has 64 bits";
        }
    }
    return NULL;
}

static bool is_word(const char *s, size_t n, const char *word) {
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static tk_sim_space space_of_word(const char *s, size_t n) {
    return is_word(s, n, "global")                                   ? TK_SIM_GLOBAL
           : is_word(s, n, "local")                                  ? TK_SIM_LOCAL
           : is_word(s, n, "const")                                  ? TK_SIM_CONST
           : is_word(s, n, "param") || strncmp(s, "param::", 7) == 0 ? TK_SIM_PARAM
           : strncmp(s, "shared", 6)                                 ? TK_SIM_GENERIC
                                                                     : TK_SIM_SHARED;
}

// Whether a variable of a space may stand where the instruction names another: GENERIC names none.
static bool of_space(tk_sim_space variable, tk_sim_space named) {
    return named == TK_SIM_GENERIC ? variable != TK_SIM_PARAM && variable != TK_SIM_CONST
           : named == TK_SIM_PARAM
               ? variable == TK_SIM_PARAM || variable == TK_SIM_LOCAL // a call's
               : variable == named;
}

const char *tk_sim_role_problem(const tk_sim_inst *i, tk_sim_role role) {
    const bool param = tk_sim_has(i, TK_SIM_MOD_PARAM) || tk_sim_has(i, TK_SIM_MOD_PARAM_ENTRY) ||
                       tk_sim_has(i, TK_SIM_MOD_PARAM_FUNC);
    return param != (role != TK_SIM_ROLE_NONE) ? "the variable is of another space"
           : role == TK_SIM_ROLE_INPUT && begins(i, "st.")
               ? "nothing is written to a function's parameter"
           : role == TK_SIM_ROLE_OUTPUT && begins(i, "ld.") ? "a function's result is not read"
                                                            : NULL;
}

// Of what is an operand by its address: a conversion to a generic address names its space.
bool tk_sim_converts(const tk_sim_inst *i, tk_sim_space variable) {
    const bool block = begins(i, "mapa.") || begins(i, "getctarank.");
    tk_sim_space named = block ? TK_SIM_SHARED : TK_SIM_GENERIC;
    for (const char *s = strchr(i->name, '.'); s && begins(i, "cvta."); s = strchr(s + 1, '.')) {
        const tk_sim_space x = space_of_word(s + 1, strcspn(s + 1, "."));
        named = x != TK_SIM_GENERIC ? x : named;
    }
    return named == TK_SIM_GENERIC || tk_sim_has(i, TK_SIM_MOD_TO) || variable == named;
}

// A variable by its name is of the space that the instruction names for this address: the n-th
// space for the n-th address, the last one for what comes after it. mbarriers are in shared memory.
static const char *space_problem(const tk_sim_inst *i) {
    tk_sim_space said[4] = {TK_SIM_GENERIC};
    unsigned spaces = 0, n = 0;
    for (const char *s = i->name; *s && spaces < 4;) {
        const size_t k = strcspn(s, ".");
        const tk_sim_space x = space_of_word(s, k);
        if (x != TK_SIM_GENERIC && !begins(i, "cp.async.bulk.prefetch.tensor")) {
            said[spaces++] = x;
        }
        s += k + (s[k] == '.');
    }
    for (uint32_t k = 0; k < i->narg; k++) {
        const tk_sim_arg *a = &i->arg[k];
        if (a->kind != TK_SIM_ARG_ADDRESS) {
            continue;
        }
        const bool tells = begins(i, "mbarrier.") || (begins(i, "cp.") && n >= 2); // an mbarrier
        const tk_sim_space named = n < spaces ? said[n] : spaces ? said[spaces - 1] : said[0];
        if (a->space != TK_SIM_GENERIC &&
            !of_space((tk_sim_space)a->space, tells ? TK_SIM_SHARED : named)) {
            return "the variable is of another space";
        }
        if (begins(i, "cp.async.bulk.prefetch.tensor") &&
            (a->space == TK_SIM_SHARED || a->space == TK_SIM_LOCAL)) {
            return "the variable is of another space";
        }
        if (a->space != TK_SIM_GENERIC && begins(i, "prefetchu.")) {
            return "an address in a register is needed";
        }
        if (a->space == TK_SIM_PARAM && begins(i, "st.")) {
            return "nothing is written to a parameter of the entry";
        }
        n++;
    }
    return NULL;
}

// More than 16 bytes at once are of later architectures.
static const char *vector_problem(const tk_sim_reader *r, const tk_sim_inst *i) {
    const bool load = begins(i, "ld."), store = begins(i, "st.");
    if ((!load && !store) || i->klass != TK_SIM_CLASS_MEMORY) {
        return NULL;
    }
    const unsigned bits = tk_sim_count_of(i, load ? 0 : 1) * tk_sim_types[i->type[0]].bits;
    return bits > 128 && tk_sim_target(r) < 100 ? "more than 16 bytes at once need .target sm_100"
                                                : NULL;
}

// PTX has .sat between integers only where a value may not fit, and .ftz with f32.
static const char *conversion_problem(const tk_sim_inst *i) {
    if (!begins(i, "cvt.") || begins(i, "cvt.pack") || i->ntype != 2) {
        return NULL;
    }
    const tk_sim_type_info *to = &tk_sim_types[i->type[0]], *from = &tk_sim_types[i->type[1]];
    const bool f32 = i->type[0] == TK_SIM_F32 || i->type[1] == TK_SIM_F32;
    const bool ints = to->kind != 'f' && from->kind != 'f';
    const bool fits = ints && ((to->kind == from->kind && to->bits >= from->bits) ||
                               (to->kind == 's' && from->kind == 'u' && to->bits > from->bits));
    const bool bf16 = i->type[0] == TK_SIM_BF16 || i->type[1] == TK_SIM_BF16;
    const bool bytes = (to->kind != 'f' && to->bits == 8) || (from->kind != 'f' && from->bits == 8);
    const bool sat = tk_sim_has(i, TK_SIM_MOD_SAT);
    const bool wide =
        bf16 && (i->arg[0].bytes * 8u > to->bits || i->arg[1].bytes * 8u > from->bits);
    return wide ? "conversions of bf16 need registers of their types' sizes"
           : tk_sim_has(i, TK_SIM_MOD_FTZ) && !f32 ? ".ftz is of conversions with f32"
           : sat && fits                           ? "nothing saturates in this conversion"
           : sat && bf16                           ? "bf16 is not saturated"
           : bf16 && bytes                         ? "there is no conversion between bf16 and bytes"
                                                   : NULL;
}

// How many elements a vector access names.
static unsigned elements(const tk_sim_inst *i) {
    return tk_sim_has(i, TK_SIM_MOD_V8)                                   ? 8
           : tk_sim_has(i, TK_SIM_MOD_V4) || tk_sim_has(i, TK_SIM_MOD_X4) ? 4
           : tk_sim_has(i, TK_SIM_MOD_V2) || tk_sim_has(i, TK_SIM_MOD_X2) ? 2
                                                                          : 1;
}

const char *tk_sim_list_problem(tk_sim_reader *r, const tk_sim_row *row, const tk_sim_inst *i) {
    const bool vector = row->klass == TK_SIM_CLASS_MEMORY || row->klass == TK_SIM_CLASS_ATOMIC ||
                        row->klass == TK_SIM_CLASS_ASYNC;
    unsigned operand = 0;
    for (const char *s = row->shape; vector && *s; s++) {
        const unsigned n = elements(i), has = tk_sim_count_of(i, operand);
        if ((*s == '*' || *s == '+') && has != n) {
            return n == 1 ? "a list needs a word that says how many, as .v2"
                          : tk_format(r->arena, "operand %u is a list of %u; %u are needed",
                                      operand, has, n);
        }
        operand += *s == ' ';
    }
    return NULL;
}

// Results are discarded with _ where an instruction has others, or an effect.
static const char *sink_problem(const tk_sim_inst *i, unsigned operand) {
    const bool whole = i->klass == TK_SIM_CLASS_ATOMIC || begins(i, "mbarrier.arrive") ||
                       begins(i, "setp.") || begins(i, "lop3.") || begins(i, "match.all.");
    const bool second = begins(i, "lop3.") || begins(i, "elect."); // whose second result must be
    const unsigned n = tk_sim_count_of(i, operand);
    const tk_sim_arg *a = tk_sim_operand(i, operand);
    unsigned sinks = 0;
    for (unsigned k = 0; k < n; k++) {
        sinks += a[k].kind == TK_SIM_ARG_SINK;
    }
    const bool must = n > 1 && ((second && a[1].kind == TK_SIM_ARG_SINK) ||
                                (begins(i, "shfl.") && a[0].kind == TK_SIM_ARG_SINK));
    return sinks && (n > 1 ? sinks == n || must : !whole) ? "this result cannot be discarded with _"
                                                          : NULL;
}

// Of a register that is declared of a type; else NULL.
static const tk_sim_type_info *declared(const tk_sim_arg *a) {
    return a->kind == TK_SIM_ARG_REG && a->space ? &tk_sim_types[a->space - 1] : NULL;
}

// Whether a matrix's registers may be declared of a type: as their elements', or of .b. Bytes and
// what wgmma reads are bits, though f16x2 counts as such and other types do not always.
static bool matrix_takes(const tk_sim_inst *i, unsigned operand, const tk_sim_type_info *t) {
    const bool mma = begins(i, "mma."), is = mma || begins(i, "wgmma.mma_async");
    const bool sum = operand == 0 || (mma && operand == 3);
    if (!is || t->kind == 'b' || t->bits != 32) {
        return true;
    }
    const tk_sim_type of = (tk_sim_type)i->type[sum ? 0 : operand];
    const bool pairs = t == &tk_sim_types[TK_SIM_F16X2];
    if (mma && !sum && strstr(i->name, ".m8n8k16.")) {
        return t->kind != 'f';
    }
    switch (sum || !mma ? tk_sim_types[of].kind : 'b') {
    case 's':
    case 'u':
        return !sum || t->kind != 'f';
    case 'f':
        return sum && of == TK_SIM_F32 ? t == &tk_sim_types[TK_SIM_F32] : pairs;
    }
    return of == TK_SIM_F16 ? pairs : of != TK_SIM_BF16 && of != TK_SIM_TF32;
}

// Registers next to each other in a list are of one type, but that u goes with s, and .b with all.
// What mov takes apart or joins has as many bits as the list. One of .b makes bits of a matrix's.
// So ptxas has it.
static const char *types_problem(const tk_sim_inst *i, unsigned operand) {
    const tk_sim_arg *a = tk_sim_operand(i, operand);
    const unsigned n = tk_sim_count_of(i, operand);
    const tk_sim_type_info *last = NULL;
    bool bits = false, fits = true;
    unsigned width = 0;
    for (unsigned k = 0; k < n; k++) {
        const tk_sim_type_info *t = declared(&a[k]);
        fits = fits && (!t || matrix_takes(i, operand, t));
        width = t ? t->bits : width;
        bits = bits || (t && t->kind == 'b');
        if (t && last && t != last && t->kind != 'b' && last->kind != 'b' &&
            (t->kind == 'f' || last->kind == 'f')) {
            return "registers of one list have one type";
        }
        last = t;
    }
    return !bits && !fits ? "registers of a matrix are of its elements' type, or of .b32"
           : width && begins(i, "mov.b") && width * n != tk_sim_types[i->type[0]].bits
               ? "the list has not as many bits as the instruction"
               : NULL;
}

// Some sums of matrices take registers of just their type, or of .b, and nothing else.
static const char *sums_problem(const tk_sim_inst *i) {
    const bool bytes = i->ntype > 1 && (i->type[1] == TK_SIM_E4M3 || i->type[1] == TK_SIM_E5M2);
    if (!bytes || !begins(i, "mma.")) {
        return NULL;
    }
    for (unsigned k = 0; k < 4; k += 3) {
        for (unsigned j = 0; j < tk_sim_count_of(i, k); j++) {
            const tk_sim_type_info *t = declared(&tk_sim_operand(i, k)[j]);
            if (!t || (t->kind != 'b' && !matrix_takes(i, k, t))) {
                return "registers of a matrix are of its elements' type, or of .b32";
            }
        }
    }
    return NULL;
}

static const char *operand_problem(const tk_sim_inst *i) {
    const char *why = sums_problem(i);
    for (unsigned k = 0; k < TK_SIM_OPERANDS && !why; k++) {
        const tk_sim_arg *a = tk_sim_operand(i, k), *last = NULL;
        why = sink_problem(i, k);
        why = why ? why : types_problem(i, k);
        for (unsigned j = 0; j < tk_sim_count_of(i, k) && !why; j++) {
            if (a[j].kind == TK_SIM_ARG_REG) {
                why = last && last->bytes != a[j].bytes ? "registers of one list have one size"
                                                        : NULL;
                last = &a[j];
            }
        }
    }
    const bool number = begins(i, "movmatrix.") && i->arg[1].kind == TK_SIM_ARG_CONST;
    const bool ordinal = begins(i, "tensormap.replace.") && tk_sim_count_of(i, 2);
    const bool real = ordinal && declared(&i->arg[2]) == &tk_sim_types[TK_SIM_F32];
    return why ? why : number ? "a register is needed" : real ? "an integer is needed" : NULL;
}

// Instructions of PTX, and forms of others by a word, that the simulator does not have.
bool tk_sim_unsupported(const char *mnemonic) {
    static const char *const names[] = {
#define TK_SIM_UNSUPPORTED(NAME) NAME,
#define TK_SIM_UNSUPPORTED_WORD(NAME)
#include "sim/unsupported.def"
    };
    static const char *const words[] = {
#define TK_SIM_UNSUPPORTED(NAME)
#define TK_SIM_UNSUPPORTED_WORD(NAME) NAME,
#include "sim/unsupported.def"
    };
    bool is = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const size_t n = strlen(names[k]);
        is = is || (strncmp(mnemonic, names[k], n) == 0 && (!mnemonic[n] || mnemonic[n] == '.'));
    }
    for (const char *s = strchr(mnemonic, '.'); s && !is; s = strchr(s + 1, '.')) {
        for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
            is = is || is_word(s + 1, strcspn(s + 1, "."), words[k]);
        }
    }
    return is;
}

const char *tk_sim_form_problem(const tk_sim_reader *r, const tk_sim_row *row,
                                const tk_sim_inst *i) {
    const char *why = policy_problem(row, i);
    why = why ? why : operand_problem(i);
    why = why ? why : width_problem(i);
    why = why ? why : space_problem(i);
    why = why ? why : vector_problem(r, i);
    why = why ? why : tk_sim_target_problem(r, i);
    return why ? why : conversion_problem(i);
}
