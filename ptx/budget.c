// SPDX-License-Identifier: Apache-2.0
// How many registers a thread gets: by assembling more than once.
//
// The PTX says how many blocks a multiprocessor shall hold at once (.minnctapersm), and the
// assembler keeps to it, by spilling if need be. A kernel that streams wants many, so that enough
// of what they read is on its way. From what the assembler says of the code as it came:
// - it spills: fewer blocks, up to half, until it does not; where it spills little, more are tried
//   first, as an assembler's choices have their luck;
// - fewer blocks fit than are wanted: more, as many as go without a spill and without many more
//   instructions. Where twice as many fit, a thread may spill a word or two for it, unless the
//   author says what the machine code must be like.
#include "lower/target.h"
#include "ptx/assemble.h"
#include "ptx/require.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 4, MORE_INSTRUCTIONS = 16 }; // a sixteenth is too many
enum { FEW_BYTES = 8 };                     // that a thread may spill for twice the blocks
enum { LARGE_PTX = 256 << 10 };             // bytes, which take an assembler many seconds

typedef struct budget {
    tk_arena *arena;
    const char *where;
    const tk_target *target;
    tk_image *image;
    bool may_spill;
} budget;

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static tk_occupancy with_registers(const budget *b, uint32_t registers) {
    return tk_occupancy_of(b->target, b->image->threads, registers,
                           b->image->shared + b->image->report.shared_static);
}

// Blocks that fit whatever their registers.
static uint32_t most_blocks(const budget *b) { return with_registers(b, 0).blocks; }

static uint32_t registers_of(const budget *b, uint32_t blocks) {
    return tk_registers_for(blocks, b->image->threads);
}

static uint32_t blocks_of(const budget *b, uint32_t registers) {
    return with_registers(b, registers).by_registers;
}

// An assembler may say nothing of the registers; nothing can be judged then.
static bool judged(const tk_image *image) {
    return image->report.known && image->report.registers > 0;
}

static bool spills(const tk_image *image) {
    return image->report.spill_stores || image->report.spill_loads;
}

static bool spills_little(const tk_image *image) {
    return image->report.spill_stores <= FEW_BYTES && image->report.spill_loads <= 2 * FEW_BYTES;
}

// The image with another number of blocks. Not assembled: the directive is not there.
static tk_image with_blocks(const budget *b, uint32_t blocks) {
    static const char word[] = ".minnctapersm ";
    tk_image image = *b->image;
    memset(&image.report, 0, sizeof image.report);
    image.cubin = NULL;
    image.cubin_size = 0;
    const char *at = strstr(image.ptx, word);
    if (at) {
        at += sizeof word - 1;
        const char *end = at + strspn(at, "0123456789");
        image.ptx = tk_format(b->arena, "%.*s%u%s", (int)(at - image.ptx), image.ptx, blocks, end);
        image.ptx_size = strlen(image.ptx);
        image.blocks = blocks;
        tk_assemble(b->arena, &image, b->where);
    }
    return image;
}

// Whether the image with n blocks instead of `fit` is to be had.
static bool no_worse(const budget *b, const tk_image *other, uint32_t fit, uint32_t n) {
    const uint32_t now = b->image->report.instructions;
    const bool may_spill = b->may_spill && n >= 2 * fit && spills_little(other);
    return judged(other) && (!spills(other) || may_spill) &&
           other->report.instructions <= now + now / MORE_INSTRUCTIONS;
}

static int tries(const budget *b) { return b->image->ptx_size > LARGE_PTX ? 1 : TRIES; }

// More registers, a step of eight or more at a time.
static void loosen(const budget *b) {
    const uint32_t from = b->image->blocks;
    const int most = tries(b);
    uint32_t last = from;
    for (int i = 0; i < most; i++) {
        uint32_t n = last;
        while (n > 0 && registers_of(b, n) == registers_of(b, last)) {
            n--;
        }
        if (n == 0 || n < from / 2) {
            return;
        }
        const tk_image other = with_blocks(b, n);
        if (judged(&other) && !spills(&other)) {
            *b->image = other;
            return;
        }
        last = n;
    }
}

// By halves between the blocks that fit and those that are wanted.
static void tighten(const budget *b, uint32_t wanted) {
    const int most = tries(b);
    const uint32_t fit = blocks_of(b, b->image->report.registers);
    uint32_t low = fit, high = wanted, n = wanted;
    for (int i = 0; i < most && low < high; i++) {
        const tk_image other = with_blocks(b, n);
        if (no_worse(b, &other, fit, n)) {
            *b->image = other;
            low = n;
        } else {
            high = n - 1;
        }
        n = (low + high + 1) / 2;
    }
}

static void note(const budget *b, tk_module *m, tk_span at, uint32_t wanted) {
    const tk_image *image = b->image;
    const uint32_t fit = with_registers(b, image->report.registers).blocks;
    const uint32_t enough = (3 * wanted + 3) / 4; // what a quarter more gains is little
    tk_note_rec *r = tk_note_add(
        &m->notes, "assemble", "registers-bounded", at,
        fit < enough ? TK_NOTE_MISSED : TK_NOTE_DONE,
        fit < enough ? "'%s': fewer blocks at once than what they read calls for, as more would "
                       "spill registers"
                     : "'%s': enough blocks at once for what they read",
        image->kernel);
    tk_note_number_add(&m->notes, r, "blocks", fit);
    tk_note_number_add(&m->notes, r, "wanted", wanted);
    tk_note_number_add(&m->notes, r, "registers", image->report.registers);
}

void tk_assemble_budgeted(tk_arena *arena, tk_module *m, tk_span at, tk_image *image,
                          const char *where) {
    tk_assemble(arena, image, where);
    const budget b = {arena, where, tk_target_find(image->arch), image,
                      !tk_require_of_machine_code(m)};
    if (!judged(image) || !b.target) {
        return;
    }
    const uint32_t wanted = least(image->wanted, most_blocks(&b)), asked = image->blocks;
    if (!spills(image) || spills_little(image)) {
        tighten(&b, wanted);
    }
    if (spills(image) && image->blocks == asked) {
        loosen(&b);
    }
    if (wanted) {
        note(&b, m, at, wanted);
    }
}

void tk_occupancy_note(tk_module *m, tk_span at, const tk_image *image) {
    const tk_target *t = tk_target_find(image->arch);
    const uint32_t registers = image->report.known ? image->report.registers : 0;
    if (!t) {
        return;
    }
    const tk_occupancy o =
        tk_occupancy_of(t, image->threads, registers, image->shared + image->report.shared_static);
    tk_note_rec *r =
        tk_note_add(&m->notes, "assemble", "occupancy", at, TK_NOTE_INFO,
                    "blocks that a multiprocessor holds at once, as the limit of %s permits%s",
                    o.limit, registers ? "" : "; the registers are not known");
    tk_note_number_add(&m->notes, r, "blocks", o.blocks);
    tk_note_number_add(&m->notes, r, "threads", (double)o.blocks * image->threads);
    tk_note_number_add(&m->notes, r, "most threads", t->threads_at_once);
    if (registers) {
        tk_note_number_add(&m->notes, r, "by registers", o.by_registers);
    }
    tk_note_number_add(&m->notes, r, "by shared memory", o.by_shared);
    tk_note_number_add(&m->notes, r, "by threads", o.by_threads);
    tk_note_number_add(&m->notes, r, "by count", o.by_count);
}
