// SPDX-License-Identifier: Apache-2.0
// What is said of a program while or after it runs: where it stands, the assert that does not hold,
// the lines that it prints. The same for all devices.
#include "runtime/internal.h"

const char *index_text(tk_arena *a, const int64_t *index, uint32_t rank) {
    tk_buf b;
    tk_buf_init(&b, a);
    for (uint32_t i = 0; i < rank; i++) {
        tk_buf_fmt(&b, "%s%lld", i ? ", " : "", (long long)index[i]);
    }
    return tk_buf_text(&b);
}

void program_place(uint64_t number, uint32_t ngrid, const int64_t *grid, int64_t *program) {
    for (uint32_t a = 0; a < ngrid; a++) {
        program[a] = (int64_t)(number % (uint64_t)grid[a]);
        number /= (uint64_t)grid[a];
    }
}

const char *program_text(tk_arena *a, const tk_kernel_info *info, const int64_t *program,
                         uint32_t ngrid) {
    tk_buf b;
    tk_buf_init(&b, a);
    for (uint32_t i = 0; i < ngrid; i++) {
        tk_buf_fmt(&b, "%s%s = %lld", i ? ", " : "", i < info->ngrid ? info->grid[i] : "?",
                   (long long)program[i]);
    }
    return ngrid ? tk_format(a, "program (%s)", tk_buf_text(&b)) : "the program";
}

tk_diag *claim_failed(tk_work *w, const tk_kernel_info *info, const failed_claim *c) {
    const char *who = program_text(&w->arena, info, c->program, c->ngrid);
    const char *at =
        c->rank ? tk_format(&w->arena, " at element [%s]", index_text(&w->arena, c->index, c->rank))
                : "";
    w->status = TKC_ERROR_CHECK;
    if (c->is_assume) {
        return tk_error(&w->diags, c->span, "assume-failed", "assume does not hold in %s%s", who,
                        at);
    }
    return tk_error(&w->diags, c->span, "assert-failed", "assert does not hold in %s%s%s%s", who,
                    at, c->text[0] ? ": " : "", c->text);
}

void print_line(void *user, const char *line) {
    tkc_context *c = user;
    if (c->config.print) {
        pthread_mutex_lock(&c->print_lock);
        c->config.print(c->config.print_user, line);
        pthread_mutex_unlock(&c->print_lock);
    }
}

const char *source_name(const char *of_ptx) {
    return of_ptx && of_ptx[0] == '.' && of_ptx[1] == '/' ? of_ptx + 2 : of_ptx;
}
