// SPDX-License-Identifier: Apache-2.0
// What the module's .target has: special registers, and where they fit; instructions.
#include "sim/read.h"

#include <stdlib.h>
#include <string.h>

unsigned long tk_sim_target(const tk_sim_reader *r) {
    const char *target = r->program->target;
    return target && strncmp(target, "sm_", 3) == 0 ? strtoul(target + 3, NULL, 10) : 0;
}

// sm_90a is of one architecture, sm_100f of a family.
static bool known_target(const char *name) {
    static const char *const plain[] = {"10", "11", "12",  "13",  "20",  "21",  "30",  "32",
                                        "35", "37", "50",  "52",  "53",  "60",  "61",  "62",
                                        "70", "72", "75",  "80",  "82",  "86",  "87",  "88",
                                        "89", "90", "100", "101", "103", "110", "120", "121"};
    if (strncmp(name, "sm_", 3) != 0) {
        return false;
    }
    const char *number = name + 3;
    const size_t digits = strspn(number, "0123456789");
    const char *kind = number + digits;
    bool known = false;
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
        known = known || (strlen(plain[k]) == digits && strncmp(number, plain[k], digits) == 0);
    }
    const unsigned long sm = strtoul(number, NULL, 10);
    return known && (*kind == 0 || (strcmp(kind, "a") == 0 && sm >= 90) ||
                     (strcmp(kind, "f") == 0 && sm >= 100));
}

void tk_sim_read_target(tk_sim_reader *r) {
    static const char *const option[] = {"texmode_unified", "texmode_independent", "debug"};
    const uint32_t line = r->token.line;
    r->program->target = tk_sim_word(r, "a target");
    bool known = known_target(r->program->target);
    const char *name = r->program->target;
    while (known && tk_sim_accept(r, ",")) {
        name = tk_sim_word(r, "a target");
        known = known_target(name);
        for (size_t k = 0; k < sizeof option / sizeof *option; k++) {
            known = known || strcmp(name, option[k]) == 0;
        }
    }
    if (!known) {
        tk_sim_refuse_at(r, line, "'%s' is no .target that is known", name);
    }
}

const char *tk_sim_find_special(tk_sim_reader *r, tk_sim_inst *i, const char *name,
                                tk_sim_special *out, unsigned *bytes) {
    static const struct {
        const char *name;
        uint8_t bytes, sm;
    } special[TK_SIM_SPECIAL_COUNT] = {
#define TK_SIM_SPECIAL(ID, NAME, BYTES, SM) {NAME, BYTES, SM},
#include "sim/specials.def"
    };
    unsigned k = 0;
    while (k < TK_SIM_SPECIAL_COUNT && strcmp(special[k].name, name) != 0) {
        k++;
    }
    *out = (tk_sim_special)k;
    *bytes = k < TK_SIM_SPECIAL_COUNT ? special[k].bytes : 0;
    if (k == TK_SIM_SPECIAL_COUNT) {
        return NULL;
    }
    i->clock = i->clock || (k >= TK_SIM_SPECIAL_CLOCK && k <= TK_SIM_SPECIAL_GLOBALTIMER_HI);
    r->program->reserved = r->program->reserved || k == TK_SIM_SPECIAL_RESERVED_1;
    return tk_sim_target(r) < special[k].sm
               ? tk_format(r->arena, "%s needs .target sm_%u", name, special[k].sm)
               : NULL;
}

// Threads, blocks and grids were counted in 16 bits, grids also in 32, and may still be. cvt takes
// the lower bits of any.
bool tk_sim_special_fits(const tk_sim_inst *i, tk_sim_special which, unsigned bytes,
                         unsigned bits) {
    const bool grid = which == TK_SIM_SPECIAL_GRIDID, cvt = strncmp(i->name, "cvt.", 4) == 0;
    return bits == bytes * 8 || (cvt && bits < bytes * 8) || (grid && bits == 32) ||
           ((grid || which <= TK_SIM_SPECIAL_NCTAID_Z) && bits == 16);
}

// ---- Instructions

static bool begins(const tk_sim_inst *i, const char *with) {
    return strncmp(i->name, with, strlen(with)) == 0;
}

static bool has_type(const tk_sim_inst *i, tk_sim_type a, tk_sim_type b) {
    bool has = false;
    for (unsigned k = 0; k < i->ntype; k++) {
        has = has || i->type[k] == a || i->type[k] == b;
    }
    return has;
}

static unsigned first_for_mma(const tk_sim_inst *i) {
    const bool tall = strstr(i->name, ".m16n8") != NULL; // else m8n8
    if (has_type(i, TK_SIM_F64, TK_SIM_F64)) {
        return tall ? 90 : 80;
    }
    const bool old = has_type(i, TK_SIM_F16, TK_SIM_F16) && strstr(i->name, ".m16n8k8.");
    return has_type(i, TK_SIM_E4M3, TK_SIM_E5M2) ? 89
           : old || strstr(i->name, ".m8n8k16.") ? 0
                                                 : 80;
}

// The first architecture with what an instruction says of types, orders and scopes; 0: all have it.
static unsigned first_target(const tk_sim_inst *i) {
    const bool bf16 = has_type(i, TK_SIM_BF16, TK_SIM_BF16X2);
    const bool atomic = i->klass == TK_SIM_CLASS_ATOMIC, cvt = begins(i, "cvt.");
    const bool vector = tk_sim_has(i, TK_SIM_MOD_V2) || tk_sim_has(i, TK_SIM_MOD_V4) ||
                        tk_sim_has(i, TK_SIM_MOD_V8);
    const bool sum = begins(i, "add.") || begins(i, "sub.") || begins(i, "mul.");
    const bool least = begins(i, "min.") || begins(i, "max.");
    const bool pairs = has_type(i, TK_SIM_U16X2, TK_SIM_S16X2);
    const bool plain = begins(i, "cvt.f32.bf16") || begins(i, "cvt.ftz.f32.bf16");
    const bool from_f32 = i->ntype > 1 && i->type[1] == TK_SIM_F32;
    const bool tf32 = has_type(i, TK_SIM_TF32, TK_SIM_TF32), relu = strstr(i->name, ".relu");
    const bool arrives = begins(i, "mbarrier.arrive") && tk_sim_count_of(i, 2) &&
                         !tk_sim_has(i, TK_SIM_MOD_NO_COMPLETE);
    if (tk_sim_has(i, TK_SIM_MOD_CLUSTER) || (atomic && (vector || bf16)) || pairs || arrives ||
        (cvt && bf16 && !plain && !from_f32) || (cvt && tf32 && !begins(i, "cvt.rna.")) ||
        (bf16 && (sum || begins(i, "set") || begins(i, "tanh.") || begins(i, "ex2."))) ||
        (least && relu && has_type(i, TK_SIM_S32, TK_SIM_S32)) ||
        (begins(i, "mbarrier.") && tk_sim_has(i, TK_SIM_MOD_RELAXED))) {
        return 90;
    }
    if (cvt && has_type(i, TK_SIM_E4M3X2, TK_SIM_E5M2X2)) {
        return 89;
    }
    const bool later =
        bf16 || tf32 || relu || tk_sim_has(i, TK_SIM_MOD_L2_CACHE_HINT) ||
        (least && (has_type(i, TK_SIM_F16, TK_SIM_F16X2) || strstr(i->name, ".NaN"))) ||
        (cvt && from_f32 && has_type(i, TK_SIM_F16X2, TK_SIM_F16X2)) ||
        (begins(i, "prefetch.") && strstr(i->name, "evict"));
    return tk_sim_has(i, TK_SIM_MOD_XORSIGN) ? 86 : later ? 80 : 0;
}

const char *tk_sim_target_problem(const tk_sim_reader *r, const tk_sim_inst *i) {
    const unsigned first = begins(i, "mma.") ? first_for_mma(i) : first_target(i);
    return tk_sim_target(r) >= first ? NULL
                                     : tk_format(r->arena, "this form needs .target sm_%u", first);
}

// The first architecture with such instructions: clusters, what bulk copies need, and others.
static unsigned first_by_name(const char *name) {
    static const struct {
        const char *begin;
        unsigned sm;
    } first[] = {{"barrier.cluster.", 90},  {"mapa.", 90},
                 {"getctarank.", 90},       {"cp.async.bulk.", 90},
                 {"cp.async", 80},          {"cp.reduce.", 90},
                 {"st.async.", 90},         {"red.async", 90},
                 {"tensormap.", 90},        {"elect.", 90},
                 {"stmatrix.", 90},         {"mbarrier.try_", 90},
                 {"mbarrier.expect_", 90},  {"mbarrier.complete_", 90},
                 {"mbarrier.", 80},         {"griddep", 90},
                 {"fence.proxy.async", 90}, {"fence.proxy.tensormap", 90},
                 {"fence.mbarrier", 90},    {"wgmma.", 90},
                 {"setmaxnreg.", 90},       {"redux.", 80},
                 {"createpolicy.", 80},     {"applypriority.", 80}};
    const bool map = strncmp(name, "prefetch.", 9) == 0 && strstr(name, "tensormap");
    if (map || strstr(name, "::cluster") || strstr(name, ".expect_tx")) {
        return 90;
    }
    for (size_t k = 0; k < sizeof first / sizeof *first; k++) {
        if (strncmp(name, first[k].begin, strlen(first[k].begin)) == 0) {
            return first[k].sm;
        }
    }
    return 0;
}

void tk_sim_check_target(tk_sim_reader *r, const char *name, uint32_t line) {
    const unsigned first = first_by_name(name);
    if (tk_sim_target(r) < first) {
        tk_sim_refuse_at(r, line, "instruction '%s' needs .target sm_%u", name, first);
    }
    const bool is = strncmp(name, "wgmma.", 6) == 0 || strncmp(name, "setmaxnreg.", 11) == 0;
    const bool only = is || strncmp(name, "tensormap.replace.", 18) == 0;
    if (only && (!r->program->target || strcmp(r->program->target, "sm_90a") != 0)) {
        tk_sim_refuse_at(r, line, "instruction '%s' needs .target sm_90a", name);
    }
    r->program->warpgroups = r->program->warpgroups || is;
    r->program->tensors = r->program->tensors || strncmp(name, "tensormap.", 10) == 0 ||
                          strstr(name, "async.bulk.tensor") ||
                          strstr(name, "async.bulk.prefetch.tensor");
}
