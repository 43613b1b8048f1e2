// SPDX-License-Identifier: Apache-2.0
// Fuzzes the text form of the IR and the passes: bytes are parsed; what the verifier accepts must
// print, parse and print again to the same text, with and without places, and must still verify
// after each pass. The size chooses the pass; a laid-out module goes to the staged level.
#include "lower/lower.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 256 << 20 };

typedef struct session {
    tk_guard guard;
    tk_arena arena;
    tk_sources sources;
    tk_diags diags;
} session;

static tk_module *parse(session *s, const char *text, size_t n) {
    uint32_t id = tk_sources_add(&s->sources, "fuzz.ir", text, n);
    return tk_ir_parse(&s->arena, &s->sources, id, &s->diags);
}

static void round_trip(session *s, const tk_module *m, bool locs) {
    tk_buf first, second;
    tk_buf_init(&first, &s->arena);
    tk_buf_init(&second, &s->arena);
    tk_ir_print(&first, m, locs);
    tk_module *again = parse(s, tk_buf_text(&first), first.n);
    if (!again) {
        abort();
    }
    tk_ir_print(&second, again, locs);
    const char *why;
    if (strcmp(tk_buf_text(&first), tk_buf_text(&second)) != 0 ||
        !tk_ir_verify(&s->arena, again, &why)) {
        abort();
    }
}

static void fuzz(session *s, const uint8_t *data, size_t size) {
    tk_sources_init(&s->sources, &s->arena);
    tk_diags_init(&s->diags, &s->arena);
    tk_module *m = parse(s, (const char *)data, size);
    if (!m) {
        tk_buf b;
        tk_buf_init(&b, &s->arena);
        tk_diags_print(&b, &s->sources, &s->diags, false);
        return;
    }
    const char *why;
    if (!tk_ir_verify(&s->arena, m, &why)) {
        return;
    }
    round_trip(s, m, false);
    round_trip(s, m, true);
    if (m->level == TK_LEVEL_LAID && m->shared == 0 && size % 2) {
        static const tk_pass stage[] = {{"share", tk_pass_share, "", "", TK_TAKES_NOT_GIVEN},
                                        {"barrier", tk_pass_barrier, "", "", TK_TAKES_LAID}};
        tk_pipeline_opts o = {.table = stage, .rows = 2, .target = tk_target_find("sm_80")};
        if (tk_pipeline_run(m, NULL, &s->diags, &o)) {
            round_trip(s, m, true);
        }
        return;
    }
    size_t n;
    const tk_pass *pass = tk_passes(&n);
    size_t which = size % (n + 1);
    tk_pipeline_opts o = {.only = which < n ? pass[which].name : NULL};
    if (tk_pipeline_run(m, NULL, &s->diags, &o)) {
        round_trip(s, m, true);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static session s;
    memset(&s, 0, sizeof s);
    tk_arena_init(&s.arena, NULL, &s.guard);
    s.arena.limit = MEMORY;
    if (setjmp(s.guard.jump) == 0) {
        fuzz(&s, data, size);
    } else if (s.guard.fail == TK_FAIL_INTERNAL) {
        abort();
    }
    tk_arena_release(&s.arena);
    return 0;
}
