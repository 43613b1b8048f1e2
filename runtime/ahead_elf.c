// SPDX-License-Identifier: Apache-2.0
// An object file with the bundles of kernels compiled ahead: constant bytes, and zeroed memory for
// what will be loaded. There is no machine code of the host in it and nothing to relocate, so that
// writing one takes neither a compiler nor an assembler, and is the same for every machine but for
// its number. NAME_bundle and NAME_state are its symbols.
#include "runtime/ahead.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__) && defined(__LP64__)
enum { MACHINE = EM_X86_64, KNOWN = 1 };
#elif defined(__aarch64__) && defined(__LP64__) && defined(__AARCH64EL__)
enum { MACHINE = EM_AARCH64, KNOWN = 1 };
#else
enum { MACHINE = EM_NONE, KNOWN = 0 };
#endif

enum { NOTHING, RODATA, BSS, STACK, SYMBOLS, STRINGS, NAMES, NSECTION };
enum { STATE_ALIGN = 16 };

static const char *const section_name[NSECTION] = {
    "", ".rodata", ".bss", ".note.GNU-stack", ".symtab", ".strtab", ".shstrtab",
};

typedef struct object {
    tk_buf *out;
    tk_buf symbols, strings, names;
    Elf64_Shdr section[NSECTION];
} object;

static void pad(tk_buf *b, size_t align) {
    static const char zeros[TK_BUNDLE_ALIGN];
    tk_buf_add(b, zeros, (align - b->n % align) % align);
}

static uint32_t add_string(tk_buf *b, const char *name, const char *rest) {
    size_t at = b->n;
    tk_buf_str(b, name);
    tk_buf_add(b, rest, strlen(rest) + 1);
    return (uint32_t)at;
}

static void add_symbol(object *o, const char *name, const char *rest, uint16_t section,
                       uint64_t value, uint64_t size) {
    Elf64_Sym s;
    memset(&s, 0, sizeof s);
    s.st_name = add_string(&o->strings, name, rest);
    s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    s.st_shndx = section;
    s.st_value = value;
    s.st_size = size;
    tk_buf_add(&o->symbols, (const char *)&s, sizeof s);
}

// A section's bytes, which are next in the file.
static void place(object *o, unsigned i, uint32_t type, uint64_t flags, const tk_buf *bytes,
                  uint64_t align) {
    pad(o->out, align);
    o->section[i] = (Elf64_Shdr){.sh_type = type,
                                 .sh_flags = flags,
                                 .sh_offset = o->out->n,
                                 .sh_size = bytes ? bytes->n : 0,
                                 .sh_addralign = align};
    if (bytes && bytes->n) {
        tk_buf_add(o->out, bytes->at, bytes->n);
    }
}

static void place_kernels(object *o, const tkc_ahead *h) {
    Elf64_Sym none;
    memset(&none, 0, sizeof none);
    tk_buf_add(&o->symbols, (const char *)&none, sizeof none);
    tk_buf_add(&o->strings, "", 1);
    tk_buf data;
    tk_buf_init(&data, o->out->arena);
    uint64_t states = 0;
    for (const ahead_kernel *k = h->first; k; k = k->next) {
        pad(&data, TK_BUNDLE_ALIGN);
        add_symbol(o, k->name.at, "_bundle", RODATA, data.n, k->bundle.size);
        add_symbol(o, k->name.at, "_state", BSS, states, sizeof(tkc_rt_state));
        tk_buf_add(&data, k->bundle.at, k->bundle.size);
        states += (sizeof(tkc_rt_state) + STATE_ALIGN - 1) / STATE_ALIGN * STATE_ALIGN;
    }
    place(o, RODATA, SHT_PROGBITS, SHF_ALLOC, &data, TK_BUNDLE_ALIGN);
    place(o, BSS, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, NULL, STATE_ALIGN);
    o->section[BSS].sh_size = states;
    place(o, STACK, SHT_PROGBITS, 0, NULL, 1); // the stack holds no code
}

static void place_tables(object *o) {
    place(o, SYMBOLS, SHT_SYMTAB, 0, &o->symbols, 8);
    o->section[SYMBOLS].sh_link = STRINGS;
    o->section[SYMBOLS].sh_info = 1; // the first that is global
    o->section[SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
    place(o, STRINGS, SHT_STRTAB, 0, &o->strings, 1);
    uint32_t name[NSECTION];
    for (unsigned i = 0; i < NSECTION; i++) {
        name[i] = add_string(&o->names, section_name[i], "");
    }
    place(o, NAMES, SHT_STRTAB, 0, &o->names, 1);
    for (unsigned i = 0; i < NSECTION; i++) {
        o->section[i].sh_name = name[i];
    }
}

bool ahead_object(const tkc_ahead *h, tk_buf *out) {
    Elf64_Ehdr e;
    memset(&e, 0, sizeof e);
    if (!KNOWN) {
        return false;
    }
    object o = {.out = out};
    tk_buf_init(&o.symbols, out->arena);
    tk_buf_init(&o.strings, out->arena);
    tk_buf_init(&o.names, out->arena);
    tk_buf_add(out, (const char *)&e, sizeof e);
    place_kernels(&o, h);
    place_tables(&o);
    pad(out, 8);
    memcpy(e.e_ident, ELFMAG, SELFMAG);
    e.e_ident[EI_CLASS] = ELFCLASS64;
    e.e_ident[EI_DATA] = ELFDATA2LSB;
    e.e_ident[EI_VERSION] = EV_CURRENT;
    e.e_type = ET_REL;
    e.e_machine = MACHINE;
    e.e_version = EV_CURRENT;
    e.e_shoff = out->n;
    e.e_ehsize = sizeof e;
    e.e_shentsize = sizeof(Elf64_Shdr);
    e.e_shnum = NSECTION;
    e.e_shstrndx = NAMES;
    tk_buf_add(out, (const char *)o.section, sizeof o.section);
    memcpy(out->at, &e, sizeof e);
    return true;
}
