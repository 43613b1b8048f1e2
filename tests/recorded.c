// SPDX-License-Identifier: Apache-2.0
// See recorded.h.
#include "tests/recorded.h"

#include "tests/inflate.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- Reading

typedef struct reader {
    tk_arena *arena;
    const char *path;
    const char *at, *end;
    recorded_file *file;
} reader;

static recorded_bytes read_whole(tk_arena *a, const char *path) {
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s: cannot be opened", path);
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    rewind(f);
    char *text = tk_alloc(a, n + 1);
    cr_assert_eq(fread(text, 1, n, f), n, "%s", path);
    fclose(f);
    text[n] = 0;
    return (recorded_bytes){(unsigned char *)text, n};
}

const char *recorded_text(tk_arena *arena, const char *path) {
    return (const char *)read_whole(arena, path).at;
}

static char *next_line(reader *r) {
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    cr_assert(end != NULL, "%s: ends early", r->path);
    char *line = tk_strndup(r->arena, r->at, (size_t)(end - r->at));
    r->at = end + 1;
    return line;
}

static recorded_bytes next_bytes(reader *r, size_t n) {
    cr_assert(n < (size_t)(r->end - r->at), "%s: ends early", r->path);
    recorded_bytes b = {(const unsigned char *)r->at, n};
    r->at += n + 1;
    return b;
}

static const char *after(const char *line, const char *word) {
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static void read_param(recorded *p, const char *rest) {
    static const char *const words[] = {"in", "out", "u32", "map"};
    recorded_param q = {RECORDED_MAP_, 0};
    for (unsigned k = 0; k < 3; k++) {
        const char *value = after(rest, words[k]);
        if (value) {
            q = (recorded_param){(recorded_kind)k, strtoull(value, NULL, 10)};
        }
    }
    cr_assert(p->nparam < RECORDED_PARAMS);
    p->param[p->nparam++] = q;
}

static void read_map(recorded *p, const char *rest) {
    p->map_of_out = after(rest, "out") != NULL;
    char *at = strchr(rest, ' ');
    while (at && *at && p->nmap < RECORDED_MAP) {
        p->map[p->nmap++] = strtoll(at, &at, 10);
    }
}

static recorded read_probe(reader *r, const char *name) {
    recorded p = {.name = name};
    for (;;) {
        const char *line = next_line(r), *rest;
        char *end;
        if (strcmp(line, "end") == 0) {
            return p;
        }
        if ((rest = after(line, "entry"))) {
            p.entry = rest;
        } else if ((rest = after(line, "text"))) {
            p.text = r->file->texts.at[strtoul(rest, &end, 10)];
            end += *end == ' ';
            p.inst = (recorded_bytes){(unsigned char *)end, strlen(end)};
        } else if ((rest = after(line, "launch"))) {
            for (unsigned k = 0; k < 7; k++, rest = end) {
                p.launch[k] = (uint32_t)strtoul(rest, &end, 10);
            }
        } else if ((rest = after(line, "param"))) {
            read_param(&p, rest);
        } else if ((rest = after(line, "map"))) {
            read_map(&p, rest);
        } else if ((rest = after(line, "in"))) {
            p.in = r->file->datas.at[strtoul(rest, &end, 10)];
            p.scratch = strtoul(end, NULL, 10);
        } else if ((rest = after(line, "out"))) {
            p.out = r->file->datas.at[strtoul(rest, NULL, 10)];
        } else {
            rest = after(line, "size");
            cr_assert(rest != NULL, "%s: %s", r->path, line);
            p.out.n = strtoul(rest, NULL, 10);
        }
    }
}

const recorded_file *recorded_read(tk_arena *arena, const char *path) {
    recorded_bytes packed = read_whole(arena, path), all;
    all.at = inflate(arena, packed.at, packed.n, &all.n);
    cr_assert(all.at != NULL, "%s: is no zlib stream", path);
    recorded_file *f = TK_NEW(arena, recorded_file);
    memset(f, 0, sizeof *f);
    reader r = {arena, path, (const char *)all.at, (const char *)all.at + all.n, f};
    cr_assert_str_eq(next_line(&r), "tkrec 1");
    while (r.at < r.end) {
        const char *line = next_line(&r), *rest;
        if ((rest = after(line, "probe"))) {
            tk_vec_push(arena, &f->probes, read_probe(&r, rest));
        } else if ((rest = after(line, "text"))) {
            tk_vec_push(arena, &f->texts, next_bytes(&r, strtoul(strchr(rest, ' '), NULL, 10)));
        } else if ((rest = after(line, "file"))) {
            tk_vec_push(arena, &f->texts, read_whole(arena, strchr(rest, ' ') + 1));
        } else if ((rest = after(line, "data"))) {
            tk_vec_push(arena, &f->datas, next_bytes(&r, strtoul(strchr(rest, ' '), NULL, 10)));
        } else {
            cr_assert_eq(*line, '#', "%s: %s", path, line);
        }
    }
    return f;
}

// ---- Running

const char *recorded_ptx(tk_arena *arena, const recorded *r) {
    const char *text = (const char *)r->text.at, *end = text + r->text.n;
    tk_buf b;
    tk_buf_init(&b, arena);
    for (const char *at = text; at < end; at++) {
        if (at + 1 < end && at[0] == '$' && at[1] == '$') {
            tk_buf_add(&b, (const char *)r->inst.at, r->inst.n);
            at++;
        } else {
            tk_buf_add(&b, at, 1);
        }
    }
    return tk_buf_text(&b);
}

// What is wrong with the map's arguments, or NULL.
static const char *make_map(tk_arena *arena, const recorded *r, uint64_t in, uint64_t out,
                            void *map) {
    const int64_t *n = r->map + 2;
    tk_sim_map_spec s = {.type = (tk_sim_map_type)r->map[0], .rank = (uint32_t)r->map[1]};
    cr_assert(s.rank >= 1 && s.rank <= TK_SIM_MAP_RANK && r->nmap == 4 * s.rank + 4);
    for (uint32_t k = 0; k < s.rank; k++) {
        s.dim[k] = (uint64_t)*n++;
    }
    for (uint32_t k = 0; k + 1 < s.rank; k++) {
        s.stride[k] = (uint64_t)*n++;
    }
    for (uint32_t k = 0; k < s.rank; k++) {
        s.box[k] = (uint32_t)*n++;
    }
    for (uint32_t k = 0; k < s.rank; k++) {
        s.step[k] = (uint32_t)*n++;
    }
    s.swizzle = (tk_sim_map_swizzle)*n++;
    s.fill = (uint32_t)*n++;
    s.address = (r->map_of_out ? out : in) + (uint64_t)*n;
    return tk_sim_tensor_map_encode(arena, map, &s);
}

// The block of parameters: each at a multiple of its size, maps of 64.
static size_t pack(const recorded *r, uint64_t in, uint64_t out, const void *map,
                   unsigned char *block) {
    size_t n = 0;
    for (uint32_t k = 0; k < r->nparam; k++) {
        const recorded_param *p = &r->param[k];
        uint64_t value = p->value + (p->kind == RECORDED_IN    ? in
                                     : p->kind == RECORDED_OUT ? out
                                                               : 0);
        size_t size = p->kind == RECORDED_U32 ? 4 : 8;
        n = (n + size - 1) / size * size;
        if (p->kind == RECORDED_MAP_) {
            n = (n + 63) / 64 * 64;
            memcpy(block + n, map, TK_SIM_MAP_BYTES);
            n += TK_SIM_MAP_BYTES;
            continue;
        }
        memcpy(block + n, &value, size);
        n += size;
    }
    return n;
}

static unsigned char *buffer(tk_arena *arena, size_t n) {
    uintptr_t at = (uintptr_t)tk_alloc(arena, n + 256);
    unsigned char *p = (unsigned char *)((at + 255) / 256 * 256);
    memset(p, 0, n);
    return p;
}

static bool run(tk_arena *arena, const recorded *r, uint64_t seed, unsigned char *in,
                unsigned char *out, recorded_result *result) {
    _Alignas(128) unsigned char block[8 * RECORDED_PARAMS + 2 * TK_SIM_MAP_BYTES], map[128];
    tk_sim_region region[] = {{(uint64_t)(uintptr_t)in, r->in.n + r->scratch, false, "in"},
                              {(uint64_t)(uintptr_t)out, r->out.n, false, "out"}};
    result->why = r->nmap ? make_map(arena, r, region[0].begin, region[1].begin, map) : NULL;
    if (result->why) {
        return false;
    }
    tk_sim_launch l = {.entry = r->entry,
                       .grid = {r->launch[0], r->launch[1], r->launch[2]},
                       .block = {r->launch[3], r->launch[4], r->launch[5]},
                       .shared = r->launch[6],
                       .params = block,
                       .param_bytes = pack(r, region[0].begin, region[1].begin, map, block),
                       .region = region,
                       .nregion = 2,
                       .seed = seed,
                       .limit = 20000000};
    tk_sim_run(arena, result->program, &l, &result->run);
    if (!result->run.ok) {
        const tk_sim_fault *f = &result->run.fault;
        result->why = tk_format(arena, "%u: [%s] %s", f->at.ptx_line, f->id, f->text);
    }
    return result->run.ok;
}

recorded_result recorded_run(tk_arena *arena, const recorded *r, uint64_t seed) {
    const char *ptx = recorded_ptx(arena, r);
    tk_sim_note error;
    recorded_result result = {.program = tk_sim_read(arena, ptx, strlen(ptx), &error)};
    if (!result.program) {
        result.why = tk_format(arena, "line %u: %s", error.at.ptx_line, error.text);
        return result;
    }
    unsigned char *in = buffer(arena, r->in.n + r->scratch), *out = buffer(arena, r->out.n);
    memcpy(in, r->in.at, r->in.n);
    if (run(arena, r, seed, in, out, &result)) {
        result.out = out;
    }
    return result;
}
