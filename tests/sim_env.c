// SPDX-License-Identifier: Apache-2.0
// See sim_env.h.
#include "tests/sim_env.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

sim_env *sim_open(void) {
    sim_env *e = aligned_alloc(_Alignof(sim_env), sizeof *e);
    cr_assert(e != NULL);
    memset(e, 0, sizeof *e);
    tk_arena_init(&e->arena, NULL, NULL); // a failure aborts, which fails the test
    return e;
}

void sim_close(sim_env *e) {
    tk_arena_release(&e->arena);
    free(e);
}

const char *sim_body(sim_env *e, const char *shared, const char *statements) {
    return tk_format(
        &e->arena,
        ".version 8.0\n.target sm_90a\n.address_size 64\n%s\n"
        ".visible .entry k(.param .u64 k_param_0) {\n"
        ".reg .pred %%p<16>; .reg .b16 %%h<32>; .reg .b32 %%r<64>; .reg .b64 %%d<64>;\n"
        ".reg .b32 %%f<32>; .reg .b32 %%t; .reg .b64 %%base, %%at;\n"
        "ld.param.u64 %%base, [k_param_0];\n"
        "mov.u32 %%t, %%tid.x;\n"
        "mad.wide.u32 %%at, %%t, 8, %%base;\n"
        "%s\nret;\n}\n",
        shared, statements);
}

bool sim_read(sim_env *e, const char *ptx) {
    e->program = tk_sim_read(&e->arena, ptx, strlen(ptx), &e->error);
    return e->program != NULL;
}

bool sim_launch(sim_env *e, uint32_t blocks, uint32_t threads) {
    e->address = (uint64_t)(uintptr_t)e->word;
    e->region = (tk_sim_region){e->address, sizeof e->word, false, "buffer"};
    tk_sim_launch l = {.entry = "k",
                       .grid = {blocks, e->launch.grid[1] ? e->launch.grid[1] : 1, 1},
                       .block = {threads, 1, 1},
                       .shared = e->launch.shared,
                       .params = &e->address,
                       .param_bytes = sizeof e->address,
                       .region = &e->region,
                       .nregion = 1,
                       .seed = e->launch.seed,
                       .limit = 10000000};
    memcpy(l.cluster, e->launch.cluster, sizeof l.cluster);
    tk_sim_run(&e->arena, e->program, &l, &e->result);
    return e->result.ok;
}

bool sim_run_shared(sim_env *e, uint32_t threads, const char *shared, const char *statements) {
    cr_assert(sim_read(e, sim_body(e, shared, statements)), "line %u: %s", e->error.at.ptx_line,
              e->error.text);
    return sim_launch(e, 1, threads);
}

bool sim_run(sim_env *e, uint32_t threads, const char *statements) {
    return sim_run_shared(e, threads, "", statements);
}

const char *sim_fault(sim_env *e) {
    if (e->result.ok) {
        return "none";
    }
    const tk_sim_fault *f = &e->result.fault;
    tk_buf b;
    tk_buf_init(&b, &e->arena);
    tk_buf_fmt(&b, "%u: [%s] %s", f->at.ptx_line, f->id, f->text);
    for (uint32_t k = 0; k < f->notes.n; k++) {
        tk_buf_fmt(&b, "; %u: %s", f->notes.at[k].at.ptx_line, f->notes.at[k].text);
    }
    return tk_buf_text(&b);
}

static const char *type_of(char width) {
    return width == 'h' ? "b16" : width == 'd' ? "b64" : "b32";
}

uint64_t sim_one(sim_env *e, const char *inst, char result, char source, uint64_t a, uint64_t b,
                 uint64_t c) {
    bool pred = result == 'p';
    const char *store =
        pred ? "selp.b32 %r63, 1, 0, %p9; st.global.b32 [%base+24], %r63;"
             : tk_format(&e->arena, "st.global.%s [%%base+24], %%x;", type_of(result));
    const char *body = tk_format(
        &e->arena,
        ".reg .%s %%a, %%b, %%c; .reg .%s %%x; .reg .b32 %%n; .reg .pred %%q;\n"
        "ld.global.%s %%a, [%%base]; ld.global.%s %%b, [%%base+8]; ld.global.%s %%c, [%%base+16];\n"
        "ld.global.b32 %%n, [%%base+16]; setp.ne.b32 %%q, %%n, 0;\n"
        "%s\n%s",
        type_of(source), pred ? "b32" : type_of(result), type_of(source), type_of(source),
        type_of(source), inst, store);
    memset(e->word, 0, 4 * sizeof *e->word);
    e->word[0] = a;
    e->word[1] = b;
    e->word[2] = c;
    cr_assert(sim_run(e, 1, body), "%s: %s", inst, sim_fault(e));
    return e->word[3];
}
