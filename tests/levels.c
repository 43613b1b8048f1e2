// SPDX-License-Identifier: Apache-2.0
// Runs programs of tests/random_programs.py on the executor at each level of the compiler, and
// compares bits, a NaN for a NaN (functions with an error bound: within some units in the last
// place): as built, after the tile passes, packed and padded, in parts of few elements, and staged
// for several numbers of warps and for the compiler's own, where its PTX is made as well, and no
// barrier may be one too many.
//
//     levels [-p FOLDER] STEM ...     STEM.tk and STEM.arg; -p: writes the PTX to FOLDER
//
// Prints a line for each: "STEM ok", "STEM refused: why" or "STEM failed: why".
#include "tests/e2e.h"

#include "lower/lower.h"
#include "ptx/image.h"

enum { MOST_ARGS = 96, MOST_PATH = 4096, MOST_STEPS = 8 };

typedef struct program {
    const char *stem, *folder;
    char *source;
    e2e_arg arg[MOST_ARGS];
    size_t bytes[MOST_ARGS];
    void *first[MOST_ARGS];  // before any run
    void *wanted[MOST_ARGS]; // what the program as built gives
    bool written[MOST_ARGS];
    char name[MOST_ARGS][32];
    uint32_t narg;
    unsigned number; // of the stem: chooses warps and targets
    char why[12288];
} program;

typedef enum { AS_BUILT, PASSES, PADDED, CHUNKED, LAID } level;

typedef enum { OK, REFUSED, FAILED } verdict;

// ---- Files

static char *slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "levels: %s is not there\n", path);
        exit(2);
    }
    char *at = NULL;
    size_t n = 0, room = 0, got;
    do {
        room = room ? room * 2 : 1 << 16;
        at = realloc(at, room + 1);
        got = at ? fread(at + n, 1, room - n, f) : 0;
        n += got;
    } while (n == room);
    fclose(f);
    if (!at) {
        exit(2);
    }
    at[n] = '\0';
    *size = n;
    return at;
}

static size_t tensor_line(program *p, e2e_arg *a, const char *line) {
    char type[16];
    int written, used;
    unsigned rank;
    if (sscanf(line, "tensor %31s %15s %d %u%n", p->name[p->narg], type, &written, &rank, &used) !=
            4 ||
        rank > TK_MAX_TENSOR_RANK || !tk_dtype_from_name(type, strlen(type), &a->dtype)) {
        fprintf(stderr, "levels: %s: bad line: %s\n", p->stem, line);
        exit(2);
    }
    size_t n = tk_dtype_size(a->dtype);
    const char *at = line + used;
    a->rank = rank;
    for (unsigned i = 0; i < rank; i++) {
        char *end;
        a->dim[i] = strtoll(at, &end, 10);
        n *= (size_t)a->dim[i];
        at = end;
    }
    p->written[p->narg] = written != 0;
    return n;
}

static void read_args(program *p, char *at, const char *end) {
    while (at < end && p->narg < MOST_ARGS) {
        e2e_arg *a = &p->arg[p->narg];
        char *line = at;
        at = memchr(at, '\n', (size_t)(end - at));
        *at++ = '\0';
        a->name = p->name[p->narg];
        long long value;
        if (sscanf(line, "int %31s %lld", p->name[p->narg], &value) == 2) {
            *a = e2e_int(a->name, value);
        } else {
            size_t n = tensor_line(p, a, line);
            p->bytes[p->narg] = n;
            p->first[p->narg] = malloc(n + 1);
            p->wanted[p->narg] = malloc(n + 1);
            a->data = malloc(n + 1);
            memcpy(p->first[p->narg], at, n);
            at += n;
        }
        p->narg++;
    }
}

static void open_program(program *p, const char *stem, const char *folder) {
    char path[MOST_PATH];
    size_t size;
    memset(p, 0, sizeof *p);
    p->stem = stem;
    p->folder = folder;
    const char *name = strrchr(stem, '/');
    p->number = (unsigned)strtoul(name ? name + 1 : stem, NULL, 10);
    snprintf(path, sizeof path, "%s.tk", stem);
    p->source = slurp(path, &size);
    snprintf(path, sizeof path, "%s.arg", stem);
    char *text = slurp(path, &size);
    read_args(p, text, text + size);
    free(text);
}

static void close_program(program *p) {
    for (uint32_t i = 0; i < p->narg; i++) {
        free(p->first[i]);
        free(p->wanted[i]);
        free(p->arg[i].data);
    }
    free(p->source);
}

// ---- Bits

static bool is_nan(tk_dtype t, const unsigned char *x) {
    static const struct {
        tk_dtype t;
        uint64_t magnitude, infinity;
    } kind[] = {
        {TK_F8E4M3, 0x7f, 0x7e},          {TK_F8E5M2, 0x7f, 0x7c},
        {TK_F16, 0x7fff, 0x7c00},         {TK_BF16, 0x7fff, 0x7f80},
        {TK_F32, 0x7fffffff, 0x7f800000}, {TK_F64, INT64_MAX, UINT64_C(0x7ff0000000000000)}};
    uint64_t bits = 0;
    size_t n = tk_dtype_size(t);
    memcpy(&bits, x, n); // little-endian, as all hosts are
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        if (kind[i].t == t) {
            return (bits & kind[i].magnitude) > kind[i].infinity;
        }
    }
    return false;
}

// Representable values from one to the other; of f32 and f64.
static uint64_t steps_between(size_t size, uint64_t a, uint64_t b) {
    uint64_t top = (uint64_t)1 << (8 * size - 1);
    uint64_t x = a & top ? top - (a - top) : top + a, y = b & top ? top - (b - top) : top + b;
    return x > y ? x - y : y - x;
}

// One element, of `size` bytes. Outputs whose names begin with m have an error bound.
static bool element_same(const program *p, uint32_t i, uint64_t a, uint64_t b, size_t size) {
    bool nan_a = is_nan(p->arg[i].dtype, (unsigned char *)&a);
    bool nan_b = is_nan(p->arg[i].dtype, (unsigned char *)&b);
    if (a == b || nan_a || nan_b) {
        return a == b || (nan_a && nan_b);
    }
    return p->name[i][0] == 'm' && steps_between(size, a, b) <= MOST_STEPS;
}

static bool same(program *p, const char *what) {
    for (uint32_t i = 0; i < p->narg; i++) {
        size_t size = p->arg[i].is_scalar ? 1 : tk_dtype_size(p->arg[i].dtype);
        const unsigned char *got = p->arg[i].data, *want = p->wanted[i];
        for (size_t k = 0; k + size <= p->bytes[i]; k += size) {
            uint64_t a = 0, b = 0;
            memcpy(&a, got + k, size);
            memcpy(&b, want + k, size);
            if (!element_same(p, i, a, b, size)) {
                snprintf(p->why, sizeof p->why, "%s: %s, element %zu: 0x%llx for 0x%llx", what,
                         p->name[i], k / size, (unsigned long long)a, (unsigned long long)b);
                return false;
            }
        }
    }
    return true;
}

// ---- Levels

typedef struct way {
    level level;
    int warps;
    const char *arch;
    int64_t thread_elems; // 0: as always
} way;

static void keep_ptx(const program *p, const tk_image *image) {
    char path[MOST_PATH];
    snprintf(path, sizeof path, "%s/%u.%s.ptx", p->folder, p->number, image->arch);
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(image->ptx, 1, strlen(image->ptx), f);
        fclose(f);
    }
}

#ifdef TKC_HAVE_LLVM
static bool lay_out(e2e_state *s, program *p, tk_module *m, const way *w) {
    tk_tensor_facts facts[MOST_ARGS];
    for (uint32_t i = 0; i < MOST_ARGS; i++) {
        facts[i] = p->number % 2 == 1 ? TK_FACT_UNIT | TK_FACT_NEAR : 0;
    }
    const char *text = NULL;
    tk_ptx_opts o = {.arch = w->arch, .facts = facts, .text = &text};
    tk_image *image = tk_ptx_compile(s->arena, m, &o, &s->diags);
    if (image && p->folder) {
        keep_ptx(p, image);
    }
    return image != NULL;
}
#else
static bool lay_out(e2e_state *s, program *p, tk_module *m, const way *w) {
    (void)p;
    (void)keep_ptx;
    return tk_lower(m, tk_target_find(w->arch), NULL, NULL, &s->diags, NULL, false);
}
#endif

static bool lower_to(e2e_state *s, tk_module *m, const char *pass) {
    return tk_lower(m, tk_lower_target(), NULL, NULL, &s->diags, pass, false) &&
           e2e_verify(s, m, pass);
}

// Whether the verifier misses each barrier that is taken out.
static bool all_needed(e2e_state *s, tk_region *r, const tk_module *m) {
    const char *why = NULL;
    for (tk_op *op = r->first, *next; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->nreg; i++) {
            if (!all_needed(s, op->reg[i], m)) {
                return false;
            }
        }
        if (op->code == TK_OP_BARRIER) {
            tk_op_unlink(op);
            const bool needless = tk_ir_verify(s->arena, m, &why);
            tk_op_insert_before(next, op);
            if (needless) {
                e2e_say(s->r, "a needless barrier");
                return false;
            }
        }
    }
    return true;
}

static verdict steps(e2e_state *s, program *p, const way *w) {
    if (!e2e_load(s)) {
        return FAILED;
    }
    tk_kernel_info *info = e2e_kernel(s);
    tk_bound *bound = info ? e2e_bind(s, info) : NULL;
    tk_module *m = bound ? e2e_module(s, bound) : NULL;
    if (!m) {
        return FAILED;
    }
    m->attrs.warps = w->warps;
    m->thread_elems = w->thread_elems;
    if ((w->level == PADDED && !lower_to(s, m, "pad")) ||
        (w->level == CHUNKED && !lower_to(s, m, "chunk"))) {
        (void)e2e_fine(s);
        return FAILED;
    }
    if (w->level == LAID && !lay_out(s, p, m, w)) {
        (void)e2e_fine(s);
        return REFUSED;
    }
    if (w->level == LAID &&
        (!e2e_verify(s, m, "laid out: ") || !all_needed(s, m->funcs.at[0]->body, m))) {
        return FAILED;
    }
    return e2e_execute(s, info, bound, m) ? OK : FAILED;
}

static verdict run(program *p, const way *w) {
    for (uint32_t i = 0; i < p->narg; i++) {
        if (!p->arg[i].is_scalar) {
            memcpy(p->arg[i].data, p->first[i], p->bytes[i]);
        }
    }
    tk_guard guard = {0};
    tk_arena arena;
    tk_arena_init(&arena, NULL, &guard);
    e2e_run r = {
        .source = p->source, .arg = p->arg, .narg = p->narg, .inline_only = w->level == AS_BUILT};
    volatile verdict v = FAILED;
    if (setjmp(guard.jump) == 0) {
        e2e_state *s = TK_NEW(&arena, e2e_state);
        s->r = &r;
        s->arena = &arena;
        v = steps(s, p, w);
    } else {
        e2e_say(&r, guard.text);
    }
    tk_arena_release(&arena);
    for (char *at = r.text; *at; at++) {
        *at = *at == '\n' ? ' ' : *at;
    }
    if (v != OK) {
        snprintf(p->why, sizeof p->why, "level %d, %d warps, %s: %s", (int)w->level, w->warps,
                 w->arch, r.text);
    }
    return v;
}

static verdict judge(program *p) {
    static const int warps[] = {1, 4, 2, 8, 32, 16};
    static const char *const arch[] = {"sm_80", "sm_90a"};
    way w = {AS_BUILT, 0, "", 0};
    verdict v = run(p, &w);
    if (v != OK) {
        return v;
    }
    for (uint32_t i = 0; i < p->narg; i++) {
        if (!p->arg[i].is_scalar) {
            memcpy(p->wanted[i], p->arg[i].data, p->bytes[i]);
        }
    }
    w.level = PASSES;
    v = run(p, &w);
    if (v != OK || !same(p, "after the tile passes")) {
        return FAILED;
    }
    w.level = PADDED;
    v = run(p, &w);
    if (v != OK || !same(p, "packed and padded")) {
        return FAILED;
    }
    w.level = CHUNKED;
    w.warps = 1;
    w.thread_elems = 1;
    v = run(p, &w);
    if (v != OK || !same(p, "in parts")) {
        return FAILED;
    }
    w.level = LAID;
    for (unsigned i = 0; i < 3; i++) {
        char what[64];
        w.warps = i == 2 ? 0 : warps[(p->number + i * 3) % 6]; // 0: as the compiler chooses
        w.arch = arch[(p->number / 2 + i) % 2];
        w.thread_elems = i == 1;
        v = run(p, &w);
        snprintf(what, sizeof what, "laid out, %d warps", w.warps);
        if (v == OK && !same(p, what)) {
            return FAILED;
        }
        if (v != OK) {
            return v;
        }
    }
    return OK;
}

int main(int argc, char **argv) {
    static const char *const word[] = {"ok", "refused", "failed"};
    int bad = 0, first = 1;
    const char *folder = NULL;
    if (argc > 2 && strcmp(argv[1], "-p") == 0) {
        folder = argv[2];
        first = 3;
    }
    program *p = malloc(sizeof *p);
    for (int i = first; p && i < argc; i++) {
        open_program(p, argv[i], folder);
        verdict v = judge(p);
        printf("%s %s%s%s\n", argv[i], word[v], v == OK ? "" : ": ", p->why);
        fflush(stdout);
        bad += v == FAILED;
        close_program(p);
    }
    free(p);
    return bad != 0;
}
