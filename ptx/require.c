// SPDX-License-Identifier: Apache-2.0
// @require is judged. See require.h.
#include "ptx/require.h"

#include "lower/facts.h"
#include "lower/target.h"
#include "lower/view_plan.h"

#include "ir/pass_util.h"

#include <string.h>

typedef struct judge {
    tk_module *m;
    const tk_func *f;
    tk_image *image;
    const tk_ptx_opts *o;
    tk_diags *diags;
    const char *demand; // at hand: "max_registers(64)"
    int64_t n;          // its number
    tk_span at;         // where it is written
    bool failed;
    uint32_t loads; // of tiles
    uint32_t notes; // of the passes: what is judged adds its own behind them
} judge;

// ---- Verdicts -----------------------------------------------------------------------------------

// One access may be several ops, of which each is as the first: as those of a tile in parts.
static bool is_said(const judge *j, tk_span at, tk_loc loc, const char *text) {
    const tk_notes *notes = &j->m->notes;
    for (uint32_t i = j->notes; i < notes->list.n; i++) {
        const tk_note_rec *r = notes->list.at[i];
        if (r->verdict == TK_NOTE_FAILED && r->loc == loc && r->span.file == at.file &&
            r->span.begin == at.begin && strcmp(r->reason, text) == 0) {
            return true;
        }
    }
    return false;
}

static void lost(judge *j, tk_span at, tk_loc loc, const char *why) {
    tk_module *m = j->m;
    if (is_said(j, at, loc, tk_format(m->notes.arena, "'%s' does not hold: %s", j->demand, why))) {
        return;
    }
    tk_diag *d = tk_error(j->diags, at, "require-failed", "'@require(%s)' does not hold: %s",
                          j->demand, why);
    for (tk_loc l = loc < m->locs.n ? m->locs.at[loc].from : 0; l && l < m->locs.n;
         l = m->locs.at[l].from) {
        tk_note(j->diags, d, m->locs.at[l].span, "called from here");
    }
    tk_note(j->diags, d, j->at, "required here");
    tk_note_add(&m->notes, "require", "require", at, TK_NOTE_FAILED, "'%s' does not hold: %s",
                j->demand, why)
        ->loc = loc;
    j->failed = true;
}

static void lost_by_note(judge *j, const tk_note_rec *r, const char *why) {
    lost(j, r->span, r->loc, why);
}

static tk_span kernel_span(const judge *j) { return tk_loc_span(j->m, j->f->loc); }

static bool has_id(const tk_note_rec *r, const char *id) { return strcmp(r->id, id) == 0; }

static const tk_note_rec *first_note(const judge *j, const char *id) {
    for (uint32_t i = 0; i < j->notes; i++) {
        if (has_id(j->m->notes.list.at[i], id)) {
            return j->m->notes.list.at[i];
        }
    }
    return NULL;
}

static double number(const tk_note_rec *r, const char *name) {
    const double *n = tk_note_number_of(r, name);
    return n ? *n : 0;
}

static const char *word_of(const tk_note_rec *r, const char *name) { // NULL: it has none
    for (uint32_t i = 0; i < r->words.n; i++) {
        if (strcmp(r->words.at[i].name, name) == 0) {
            return r->words.at[i].text;
        }
    }
    return NULL;
}

static bool has_word(const tk_note_rec *r, const char *name) { return word_of(r, name) != NULL; }

static const char *text(const judge *j, const char *fmt, ...) TK_PRINTF(2, 3);
static const char *text(const judge *j, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const char *t = tk_vformat(j->diags->arena, fmt, args);
    va_end(args);
    return t;
}

// ---- By the passes' notes -----------------------------------------------------------------------

typedef struct accessed {
    const judge *j;
    tk_loc loc;
    bool open;
} accessed;

static void find_open(void *user, tk_op *op) {
    accessed *a = user;
    const judge *j = a->j;
    if (op->loc == a->loc && (op->code == TK_OP_FETCH || tk_op_is_access(op))) {
        const uint32_t param = j->f->value.at[op->opnd[0]].index;
        const unsigned rank = tk_value_type(j->f, op->opnd[0])->rank;
        const int64_t *size = j->o->size ? j->o->size + param * TK_MAX_TENSOR_RANK : NULL;
        const bool promised = j->o->facts && j->o->facts[param] & TK_FACT_ALIGNED;
        a->open = a->open || (!promised && (!size || size[rank - 1] < 0));
    }
}

// Code that is made before its tensors are known has nothing but promises to go by.
static const char *unpromised(const judge *j, const tk_note_rec *r) {
    accessed a = {.j = j, .loc = r->loc};
    if (j->o->judge == TK_JUDGE_REFUSES) {
        tk_func_walk((tk_func *)(uintptr_t)j->f, find_open, &a);
    }
    return a.open
               ? "; this is code for tensors of which that is not promised, as '--contiguous' or "
                 "'--whole-rows' does"
               : "";
}

static void vectorized(judge *j) {
    for (uint32_t i = 0; i < j->notes; i++) {
        const tk_note_rec *r = j->m->notes.list.at[i];
        if (has_id(r, "access") && r->verdict == TK_NOTE_MISSED) {
            lost_by_note(j, r, text(j, "%s%s", r->reason, unpromised(j, r)));
        }
    }
}

static void no_bank_conflicts(judge *j) {
    for (uint32_t i = 0; i < j->notes; i++) {
        const tk_note_rec *r = j->m->notes.list.at[i];
        const double conflicts = number(r, "conflicts");
        if (conflicts > 0) {
            lost_by_note(j, r,
                         text(j, "%s, with %.0f wavefronts where %.0f would do", r->reason,
                              number(r, "wavefronts"), number(r, "least wavefronts")));
        } else if (tk_note_number_of(r, "shared") && has_word(r, "wavefronts")) {
            lost_by_note(j, r, text(j, "%s, and its conflicts are not counted", r->reason));
        }
    }
}

static bool loads_tile(const judge *j, const tk_op *op) {
    return (op->code == TK_OP_FETCH && op->at.how != TK_HOW_BEGIN) ||
           (op->code == TK_OP_LOAD && tk_value_type(j->f, op->res[0])->rank > 0);
}

// What the pass ring said of the load; where it said nothing, `none`.
static const char *said_of(const judge *j, tk_loc loc, const char *none) {
    const tk_span at = tk_loc_span(j->m, loc);
    for (uint32_t i = 0; i < j->notes; i++) {
        const tk_note_rec *r = j->m->notes.list.at[i];
        if (has_id(r, "ahead") && r->span.file == at.file && r->span.begin == at.begin) {
            return text(j, ": %s", r->reason);
        }
    }
    return none;
}

// Staged loads and fetches are asynchronous copies on each target, but fetches through registers;
// what stays of a tile's loads is none.
static void find_load(void *user, tk_op *op) {
    judge *j = user;
    const bool tile = loads_tile(j, op);
    const char *name = tile ? j->f->value.at[op->opnd[0]].name : NULL;
    j->loads += tile;
    if (tile && op->code == TK_OP_FETCH && op->at.how == TK_HOW_REGISTERS) {
        lost(j, tk_loc_span(j->m, op->loc), op->loc,
             text(j, "'%s' is loaded by no asynchronous copies%s", name ? name : "?",
                  said_of(j, op->loc, "")));
    }
    if (tile && op->code == TK_OP_LOAD && !op->at.staged) {
        lost(j, tk_loc_span(j->m, op->loc), op->loc,
             text(j, "'%s' is loaded into registers%s", name ? name : "?",
                  said_of(j, op->loc,
                          ": asynchronous copies are built only for rows that are not aligned, and "
                          "in loops that load ahead, for a matrix unit or with 'pipeline'")));
    }
}

static void async_copy(judge *j) {
    j->loads = 0;
    tk_func_walk((tk_func *)(uintptr_t)j->f, find_load, j);
    if (!j->loads) {
        lost(j, kernel_span(j), 0, "the kernel loads no tile");
    }
}

static void find_other(void *user, tk_op *op) {
    judge *j = user;
    const bool tile = loads_tile(j, op);
    j->loads += tile;
    if (tile && op->at.how != TK_HOW_TENSOR) {
        const char *name = j->f->value.at[op->opnd[0]].name;
        lost(
            j, tk_loc_span(j->m, op->loc), op->loc,
            text(j, "'%s' is not loaded by tensor copies%s", name ? name : "?",
                 said_of(j, op->loc,
                         ": only loops that load ahead, for a matrix unit or with 'pipeline', load "
                         "by them")));
    }
}

static void tma(judge *j) {
    const tk_target *t = tk_target_find(j->o->arch);
    if (t && !t->bulk) {
        lost(j, j->at, 0,
             text(j,
                  "%s has no tensor copies; sm_90a has them, and all from compute capability 10.0 "
                  "on",
                  t->name));
        return;
    }
    j->loads = 0;
    tk_func_walk((tk_func *)(uintptr_t)j->f, find_other, j);
    if (!j->loads) {
        lost(j, kernel_span(j), 0, "the kernel loads no tile");
    }
}

static void tensor_cores(judge *j) {
    bool any = false;
    for (uint32_t i = 0; i < j->notes; i++) {
        const tk_note_rec *r = j->m->notes.list.at[i];
        if (has_id(r, "product")) {
            any = true;
            if (strcmp(word_of(r, "unit"), "fma") == 0) {
                lost_by_note(j, r, r->reason);
            }
        }
    }
    if (!any) {
        lost(j, kernel_span(j), 0, "the kernel has no dot");
    }
}

// ---- By the machine code ------------------------------------------------------------------------

static bool known(const judge *j) { return j->image->report.known; }

// Where nothing is known of the machine code. False: refused.
static bool left(judge *j) {
    switch (j->o->judge) {
    case TK_JUDGE_REFUSES:
        lost(j, j->at, 0, "it cannot be judged, as no assembler is at hand ('tkc info' says more)");
        return false;
    case TK_JUDGE_LOADER:
        return true;
    case TK_JUDGE_NOBODY:
        break;
    }
    tk_note_add(&j->m->notes, "require", "require", j->at, TK_NOTE_INFO,
                "'%s' is not judged: the simulator runs PTX, which has no machine code", j->demand);
    return false;
}

// At the tile that takes most registers.
static void lost_by_registers(judge *j, const char *why) {
    const tk_note_rec *r = first_note(j, "largest-tile");
    if (!r) {
        lost(j, kernel_span(j), 0, why);
        return;
    }
    lost_by_note(j, r,
                 text(j, "%s; %s, with %.0f registers of each thread", why, r->reason,
                      number(r, "registers")));
}

static void no_spills(judge *j) {
    const tk_image_report *r = &j->image->report;
    const tk_note_rec *kept = first_note(j, "kept");
    const uint32_t local = r->op[TK_MACHINE_LDL] + r->op[TK_MACHINE_STL];
    if (!known(j)) {
        if (left(j)) {
            j->image->demand.no_spills = true;
            j->image->demand.no_spills_at = j->at;
        }
    } else if (kept && local) {
        lost_by_note(j, kept, kept->reason);
    } else if (local && !r->spill_stores && !r->spill_loads) {
        lost_by_registers(j, text(j,
                                  "a thread has something in local memory, with %u accesses of it "
                                  "and %u registers",
                                  local, r->registers));
    } else if (r->spill_stores || r->spill_loads || local) {
        lost_by_registers(j, text(j,
                                  "a thread spills %u bytes, with %u registers and %u accesses of "
                                  "local memory",
                                  r->spill_stores, r->registers, local));
    }
}

static void max_registers(judge *j) {
    if (!known(j)) {
        if (left(j)) {
            j->image->demand.max_registers = (uint32_t)j->n;
            j->image->demand.max_registers_at = j->at;
        }
    } else if (j->image->report.registers > j->n) {
        lost_by_registers(j, text(j, "a thread takes %u registers", j->image->report.registers));
    }
}

// The op with most of it.
static const tk_note_rec *largest_area(const judge *j) {
    const tk_note_rec *found = NULL;
    for (uint32_t i = 0; i < j->notes; i++) {
        const tk_note_rec *r = j->m->notes.list.at[i];
        if (tk_note_number_of(r, "shared") &&
            (!found || number(r, "shared") > number(found, "shared"))) {
            found = r;
        }
    }
    return found;
}

static void max_shared(judge *j) {
    const uint32_t bytes = j->image->shared + j->image->report.shared_static;
    const tk_note_rec *r = largest_area(j);
    if (bytes > j->n && r) {
        lost_by_note(j, r,
                     text(j, "a block takes %u bytes of shared memory, %.0f of them here: %s",
                          bytes, number(r, "shared"), r->reason));
    } else if (bytes > j->n) {
        lost(j, kernel_span(j), 0, text(j, "a block takes %u bytes of shared memory", bytes));
    } else if (!known(j) && j->o->judge == TK_JUDGE_LOADER) { // of what is not ours
        j->image->demand.max_shared = (uint32_t)j->n;
        j->image->demand.max_shared_at = j->at;
    }
}

// ---- All ----------------------------------------------------------------------------------------

static bool of_machine_code(const char *demand) {
    return strcmp(demand, "no_spills") == 0 || strcmp(demand, "max_registers") == 0;
}

bool tk_require_of_machine_code(const tk_module *m) {
    for (uint32_t i = 0; i < m->attrs.require.n; i++) {
        if (of_machine_code(m->attrs.require.at[i])) {
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    void (*judge)(judge *j);
} demands[] = {
    {"vectorized", vectorized},
    {"no_spills", no_spills},
    {"no_bank_conflicts", no_bank_conflicts},
    {"max_registers", max_registers},
    {"max_shared", max_shared},
    {"tensor_cores", tensor_cores},
    {"async_copy", async_copy},
    {"tma", tma},
};
enum { DEMANDS = sizeof demands / sizeof *demands };

static void one(judge *j, const char *name) {
    const uint32_t errors = j->diags->errors;
    size_t k = 0;
    while (k < DEMANDS && strcmp(demands[k].name, name) != 0) {
        k++;
    }
    if (k == DEMANDS) {
        lost(j, j->at, 0, "it is not known here");
    } else {
        demands[k].judge(j);
    }
    const bool unjudged = of_machine_code(name) && !known(j);
    if (j->diags->errors == errors && !unjudged) {
        tk_note_add(&j->m->notes, "require", "require", j->at, TK_NOTE_DONE, "'%s' holds",
                    j->demand);
    }
}

bool tk_require(tk_module *m, const tk_func *f, tk_image *image, const tk_ptx_opts *o,
                tk_diags *diags) {
    const tk_kernel_attrs *at = &m->attrs;
    judge j = {.m = m, .f = f, .image = image, .o = o, .diags = diags};
    j.notes = m->notes.list.n;
    for (uint32_t i = 0; i < at->require.n; i++) {
        j.n = i < at->require_arg.n ? at->require_arg.at[i] : -1;
        j.at = i < at->require_span.n ? at->require_span.at[i] : kernel_span(&j);
        j.demand = j.n >= 0 ? tk_format(diags->arena, "%s(%lld)", at->require.at[i], (long long)j.n)
                            : at->require.at[i];
        one(&j, at->require.at[i]);
    }
    return !j.failed;
}
