// SPDX-License-Identifier: Apache-2.0
// The identity of this build: the linker's note in the object (library or program) that this code
// is part of.
#define _GNU_SOURCE // dl_iterate_phdr
#include "runtime/build_id.h"

#include <elf.h>
#include <link.h>
#include <string.h>

typedef struct search {
    uintptr_t inside; // an address of the object
    const unsigned char *id;
    size_t size;
} search;

static size_t padded(size_t n) { return (n + 3) & ~(size_t)3; }

static void search_notes(search *s, const unsigned char *at, size_t left) {
    while (left >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        size_t head = sizeof note + padded(note.n_namesz), whole = head + padded(note.n_descsz);
        if (whole > left || whole < head) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            memcmp(at + sizeof note, "GNU", 4) == 0) {
            s->id = at + head;
            s->size = note.n_descsz;
            return;
        }
        at += whole;
        left -= whole;
    }
}

static int look(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    search *s = arg;
    bool ours = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        ours = ours || (p->p_type == PT_LOAD && s->inside >= at && s->inside < at + p->p_memsz);
    }
    for (size_t i = 0; ours && i < info->dlpi_phnum && !s->id; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_NOTE) {
            search_notes(s, (const unsigned char *)(info->dlpi_addr + p->p_vaddr), p->p_memsz);
        }
    }
    return ours;
}

const void *build_id(size_t *size) {
    search s = {.inside = (uintptr_t)&look};
    dl_iterate_phdr(look, &s);
    *size = s.size;
    return s.id;
}
