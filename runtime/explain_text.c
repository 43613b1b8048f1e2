// SPDX-License-Identifier: Apache-2.0
// An explanation for people: the kernel as a whole, then line by line of source.
#include "runtime/internal.h"

#include <string.h>

enum { TEXT_WIDTH = 100 };

// ---- Numbers ------------------------------------------------------------------------------------

static void seconds(tk_buf *b, double s) {
    tk_buf_fmt(b, s >= 1e-3 ? "%.4g ms" : "%.4g us", s >= 1e-3 ? s * 1e3 : s * 1e6);
}

static void bytes(tk_buf *b, double n) {
    const char *unit[] = {"bytes", "KB", "MB", "GB", "TB"};
    unsigned k = 0;
    for (; k < 4 && n >= 1e4; k++) {
        n /= 1e3;
    }
    tk_buf_fmt(b, "%.4g %s", n, unit[k]);
}

static void facts_of_note(tk_buf *b, const tk_note_rec *r) {
    const char *comma = "            ";
    size_t width = 0;
    for (uint32_t i = 0; i < r->numbers.n; i++) {
        const size_t n = strlen(r->numbers.at[i].name) + 8;
        if (width > 0 && width + n > TEXT_WIDTH - 20) {
            comma = "\n            ";
            width = 0;
        }
        tk_buf_fmt(b, "%s%s %.10g", comma, r->numbers.at[i].name, r->numbers.at[i].value);
        comma = ", ";
        width += n;
    }
    if (r->numbers.n) {
        tk_buf_str(b, "\n");
    }
    for (uint32_t i = 0; i < r->words.n; i++) {
        tk_buf_fmt(b, "            %s: %s\n", r->words.at[i].name, r->words.at[i].text);
    }
}

static void one_note(tk_buf *b, const tk_note_rec *r) {
    tk_buf_fmt(b, "  %-8s  %s [%s]\n", tk_verdict_text(r->verdict), r->reason, r->id);
    facts_of_note(b, r);
}

// ---- The kernel as a whole ----------------------------------------------------------------------

static void tensors(tk_buf *b, const explained *x) {
    for (uint32_t i = 0; i < x->f->params.n; i++) {
        const tk_irvalue *p = &x->f->value.at[x->f->params.at[i]];
        if (p->type->kind == TK_T_TENSOR) {
            tk_buf_fmt(b, "  %s: compiled for ", p->name ? p->name : "?");
            describe_facts(b, x->fact[i]);
            tk_buf_str(b, "\n");
        }
    }
}

static void roofline(tk_buf *b, const explained *x) {
    tk_buf_fmt(b, "  at least, on %s (%.0f GB/s, %.4g TFLOP/s in f32, %.4g in f64", x->gpu->name,
               x->gpu->bandwidth / 1e9, x->gpu->flops / 1e12, x->gpu->flops64 / 1e12);
    if (x->matrix > 0) {
        tk_buf_fmt(b, ", %.4g in f16 on tensor cores", x->gpu->matrix / 1e12);
    }
    tk_buf_str(b, "): ");
    if (x->bytes < 0) {
        tk_buf_str(b, "not known without the sizes (--in, --dim) and loops of known length\n");
        return;
    }
    const bool memory = x->memory_seconds >= x->compute_seconds;
    seconds(b, memory ? x->memory_seconds : x->compute_seconds);
    tk_buf_fmt(b, ", by %s\n", memory ? "memory" : "arithmetic");
    tk_buf_str(b, "            each tensor once: ");
    bytes(b, x->least_bytes);
    tk_buf_str(b, ", ");
    seconds(b, x->memory_seconds);
    tk_buf_str(b, "; all accesses: ");
    bytes(b, x->bytes);
    tk_buf_str(b, ", ");
    seconds(b, x->bytes / x->gpu->bandwidth);
    tk_buf_fmt(b, "; arithmetic: %.4g operations, ",
               x->programs * (x->flops + x->flops64 + x->matrix));
    seconds(b, x->compute_seconds);
    tk_buf_str(b, "\n");
}

// By offset; each op has its bytes while it runs.
static void memory_map(tk_buf *b, const explained *x) {
    double from = -1;
    bool any = false;
    for (;;) {
        double next = -1;
        for (uint32_t i = 0; i < x->n; i++) {
            const double *at = tk_note_number_of(x->note[i], "offset");
            next = at && *at > from && (next < 0 || *at < next) ? *at : next;
        }
        if (next < 0) {
            return;
        }
        if (!any) {
            tk_buf_str(
                b,
                "  shared memory, each part in use while its op runs, or while it holds tiles:\n");
            any = true;
        }
        from = next;
        for (uint32_t i = 0; i < x->n; i++) {
            const tk_note_rec *r = x->note[i];
            const double *at = tk_note_number_of(r, "offset");
            const tk_source *s = tk_source_of(x->sources, r->span.file);
            uint32_t line = 0, column = 0;
            if (at && *at == next) {
                if (s) {
                    tk_line_col(s, r->span.begin, &line, &column);
                }
                tk_buf_fmt(b, "            %6.0f to %6.0f  %s at %s:%u:%u\n", next,
                           next + explain_number(r, "shared") - 1, r->id, s ? s->name : "?", line,
                           column);
            }
        }
    }
}

// ---- Line by line -------------------------------------------------------------------------------

static void line_head(tk_buf *b, const tk_source *s, uint32_t line) {
    const uint32_t begin = s->line[line - 1];
    const char *at = s->text + begin;
    const size_t n = strcspn(at, "\r\n"), blank = strspn(at, " \t");
    tk_buf_fmt(b, "\n%s:%u: ", s->name, line);
    tk_buf_add(b, at + (blank < n ? blank : n), blank < n ? n - blank : 0);
    tk_buf_str(b, "\n");
}

static void lines(tk_buf *b, const explained *x) {
    uint32_t file = 0, at = 0;
    for (uint32_t i = x->nwhole; i < x->n; i++) {
        const tk_note_rec *r = x->note[i];
        const tk_source *s = tk_source_of(x->sources, r->span.file);
        uint32_t line = 0, column = 0;
        if (s) {
            tk_line_col(s, r->span.begin, &line, &column);
        }
        if (s && (r->span.file != file || line != at)) {
            line_head(b, s, line);
        }
        file = r->span.file;
        at = line;
        one_note(b, r);
    }
}

const char *explain_text(tk_arena *a, const explained *x) {
    const tk_source *s = tk_source_of(x->sources, x->kernel.file);
    uint32_t line = 0, column = 0;
    tk_buf b;
    tk_buf_init(&b, a);
    if (s) {
        tk_line_col(s, x->kernel.begin, &line, &column);
    }
    tk_buf_fmt(&b, "%s:%u: kernel %s for %s, %u warp%s\n", s ? s->name : "?", line, x->info->name,
               x->target->name, x->image->threads / 32, x->image->threads == 32 ? "" : "s");
    tensors(&b, x);
    roofline(&b, x);
    memory_map(&b, x);
    for (uint32_t i = 0; i < x->nwhole; i++) {
        one_note(&b, x->note[i]);
    }
    lines(&b, x);
    return tk_buf_text(&b);
}
