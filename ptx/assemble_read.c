// SPDX-License-Identifier: Apache-2.0
// What an assembler says about a kernel (its -v lines, the same from ptxas and nvJitLink), and what
// the machine code holds.
#include "ptx/assemble.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

// The number that stands before `word`, as in "0 bytes spill stores"; 0 where the word nowhere
// follows a number. Warnings may use the word without one.
static uint32_t number_before(const char *log, const char *word) {
    for (const char *at = strstr(log, word); at; at = strstr(at + 1, word)) {
        const char *begin = at;
        while (begin > log && begin[-1] >= '0' && begin[-1] <= '9') {
            begin--;
        }
        if (begin < at) {
            return (uint32_t)strtoul(begin, NULL, 10);
        }
    }
    return 0;
}

void tk_assembled_said(tk_image_report *r, const char *log) {
    r->registers = number_before(log, " registers");
    r->stack = number_before(log, " bytes stack frame");
    r->spill_stores = number_before(log, " bytes spill stores");
    r->spill_loads = number_before(log, " bytes spill loads");
    r->shared_static = number_before(log, " bytes smem");
}

// ---- The machine code: section .text.KERNEL of an ELF file

typedef struct elf {
    const char *at;
    size_t size;
    Elf64_Ehdr head;
} elf;

static bool inside(const elf *f, uint64_t offset, uint64_t size) {
    return offset <= f->size && size <= f->size - offset;
}

static bool section(const elf *f, uint32_t i, Elf64_Shdr *out) {
    uint64_t at = f->head.e_shoff + (uint64_t)i * sizeof *out;
    if (i >= f->head.e_shnum || at < f->head.e_shoff || !inside(f, at, sizeof *out)) {
        return false;
    }
    memcpy(out, f->at + at, sizeof *out);
    return out->sh_type == SHT_NOBITS || inside(f, out->sh_offset, out->sh_size);
}

static bool is_named(const elf *f, const Elf64_Shdr *names, const Elf64_Shdr *s,
                     const char *kernel) {
    static const char lead[] = ".text.";
    size_t n = sizeof lead - 1, k = strlen(kernel) + 1;
    const char *text = f->at + names->sh_offset + s->sh_name;
    return s->sh_name <= names->sh_size && n + k <= names->sh_size - s->sh_name &&
           memcmp(text, lead, n) == 0 && memcmp(text + n, kernel, k) == 0;
}

static void count(tk_image_report *r, const char *code, uint64_t size) {
    enum { INSTRUCTION = 16, OPCODE = 0x1ff };
    static const uint32_t opcode[] = {
#define TK_MACHINE_OP(name, code) code,
        TK_MACHINE_OPS(TK_MACHINE_OP)
#undef TK_MACHINE_OP
    };
    for (uint64_t i = 0; i + INSTRUCTION <= size; i += INSTRUCTION) {
        uint32_t word;
        memcpy(&word, code + i, sizeof word);
        r->instructions++;
        for (size_t k = 0; k < TK_MACHINE_COUNT; k++) {
            r->op[k] += (word & OPCODE) == opcode[k];
        }
    }
}

static bool open_elf(elf *f, const void *cubin, size_t size) {
    *f = (elf){.at = cubin, .size = size};
    if (size < sizeof f->head) {
        return false;
    }
    memcpy(&f->head, cubin, sizeof f->head);
    const unsigned char *id = f->head.e_ident;
    return memcmp(id, ELFMAG, SELFMAG) == 0 && id[EI_CLASS] == ELFCLASS64 &&
           id[EI_DATA] == ELFDATA2LSB;
}

// The kernel's code. False: it has none, or the file is cut off.
static bool find_code(const elf *f, const char *kernel, Elf64_Shdr *code) {
    Elf64_Shdr names;
    if (f->head.e_shentsize != sizeof names || !section(f, f->head.e_shstrndx, &names) ||
        names.sh_type != SHT_STRTAB) {
        return false;
    }
    for (uint32_t i = 0; i < f->head.e_shnum; i++) {
        if (section(f, i, code) && code->sh_type == SHT_PROGBITS && code->sh_size > 0 &&
            is_named(f, &names, code, kernel)) {
            return true;
        }
    }
    return false;
}

void tk_assembled_count(tk_image_report *r, const char *kernel, const void *cubin, size_t size) {
    elf f;
    Elf64_Shdr code;
    if (open_elf(&f, cubin, size) && find_code(&f, kernel, &code)) {
        count(r, f.at + code.sh_offset, code.sh_size);
    }
}

// The compute capability that the code is for, 90 for 9.0. 0: of a form that is not known.
static unsigned capability(const elf *f) {
    switch (f->head.e_ident[EI_ABIVERSION]) {
    case 7: // of toolkits up to 12
        return f->head.e_flags & 0xff;
    case 8:
        return f->head.e_flags >> 8 & 0xff;
    default:
        return 0;
    }
}

const char *tk_assembled_fault(tk_arena *a, const tk_image *image, const void *cubin, size_t size) {
    enum { CUDA = 190 };
    elf f;
    Elf64_Shdr code;
    const unsigned asked = (unsigned)strtoul(image->arch + sizeof "sm_" - 1, NULL, 10);
    if (size == 0) {
        return "it wrote nothing";
    }
    if (!open_elf(&f, cubin, size)) {
        return "what it wrote is no ELF file";
    }
    if (f.head.e_machine != CUDA) {
        return tk_format(a, "what it wrote is for another machine (number %u) than a GPU",
                         f.head.e_machine);
    }
    const unsigned made = capability(&f);
    if (made && made != asked) {
        return tk_format(a, "what it wrote is for sm_%u", made);
    }
    return find_code(&f, image->kernel, &code)
               ? NULL
               : tk_format(a, "what it wrote has no code of '%s', or is cut off", image->kernel);
}

// ---- The notes

// A word or two are spilled on purpose at times (budget.c). At the tile that takes most registers.
static void note_spills(tk_module *m, tk_span at, const tk_image *image) {
    enum { FEW = 16 }; // bytes
    const tk_image_report *r = &image->report;
    const tk_note_rec *largest = NULL;
    for (uint32_t i = 0; i < m->notes.list.n && !largest; i++) {
        const tk_note_rec *x = m->notes.list.at[i];
        largest = strcmp(x->id, "largest-tile") == 0 ? x : NULL;
    }
    if (r->spill_stores + r->spill_loads <= FEW) {
        return;
    }
    tk_note_rec *note = tk_note_add(
        &m->notes, "assemble", "spills", largest ? largest->span : at, TK_NOTE_MISSED,
        "what a thread has does not fit its registers, and goes through local memory%s%s",
        largest ? ": " : "", largest ? largest->reason : "");
    note->loc = largest ? largest->loc : note->loc;
    tk_note_number_add(&m->notes, note, "stored", r->spill_stores);
    tk_note_number_add(&m->notes, note, "loaded", r->spill_loads);
}

void tk_assembled_note(tk_module *m, tk_span at, const tk_image *image) {
    const tk_image_report *r = &image->report;
    if (!r->known) {
        return;
    }
    static const char *const name[] = {
#define TK_MACHINE_OP(op, code) #op,
        TK_MACHINE_OPS(TK_MACHINE_OP)
#undef TK_MACHINE_OP
    };
    tk_note_rec *note =
        tk_note_add(&m->notes, "assemble", "resources", at, TK_NOTE_INFO,
                    "'%s' for %s: what a thread and a block need, and what the machine code holds",
                    image->kernel, image->arch);
    tk_note_number_add(&m->notes, note, "threads", image->threads);
    tk_note_number_add(&m->notes, note, "registers", r->registers);
    tk_note_number_add(&m->notes, note, "stack", r->stack);
    tk_note_number_add(&m->notes, note, "spill stores", r->spill_stores);
    tk_note_number_add(&m->notes, note, "spill loads", r->spill_loads);
    tk_note_number_add(&m->notes, note, "static shared", r->shared_static);
    tk_note_number_add(&m->notes, note, "dynamic shared", image->shared);
    tk_note_number_add(&m->notes, note, "instructions", r->instructions);
    for (size_t k = 0; k < TK_MACHINE_COUNT; k++) {
        if (r->op[k]) {
            tk_note_number_add(&m->notes, note, name[k], r->op[k]);
        }
    }
    note_spills(m, at, image);
}
