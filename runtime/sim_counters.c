// SPDX-License-Identifier: Apache-2.0
// Counters of a simulated launch as a table and as JSON.
#include "runtime/internal.h"

#include <inttypes.h>

// F(member, heading of the table)
#define COUNTS(F)                                                                                  \
    F(warps, "warps")                                                                              \
    F(threads, "threads")                                                                          \
    F(global_requests, "global req")                                                               \
    F(global_sectors, "sectors")                                                                   \
    F(shared_requests, "shared req")                                                               \
    F(shared_wavefronts, "wavefronts")                                                             \
    F(shared_conflicts, "conflicts")                                                               \
    F(async_bytes, "async bytes")                                                                  \
    F(barrier_waits, "waits")

static void row(tk_buf *b, const char *name, const tk_sim_count *c) {
    tk_buf_fmt(b, "%-28s", name);
#define F(member, heading) tk_buf_fmt(b, " %11" PRIu64, c->member);
    COUNTS(F)
#undef F
    tk_buf_str(b, "\n");
}

const char *sim_counters_plain(tk_arena *a, const tk_sim_counters *c) {
    tk_buf b;
    tk_buf_init(&b, a);
    tk_buf_fmt(&b, "%-28s", "instructions");
#define F(member, heading) tk_buf_fmt(&b, " %11s", heading);
    COUNTS(F)
#undef F
    tk_buf_str(&b, "\n");
    row(&b, "all", &c->total);
    for (unsigned k = 0; k < TK_SIM_CLASS_COUNT; k++) {
        if (c->by_class[k].warps) {
            row(&b, tk_sim_class_name((tk_sim_class)k), &c->by_class[k]);
        }
    }
    for (uint32_t k = 0; k < c->nline; k++) {
        const tk_sim_line *l = &c->line[k];
        row(&b, l->file ? tk_format(a, "%s:%u", source_name(l->file), l->line) : "(no line)",
            &l->count);
    }
    return tk_buf_text(&b);
}

static void object(tk_buf *b, const tk_sim_count *c) {
    const char *comma = "";
#define F(member, heading)                                                                         \
    tk_buf_fmt(b, "%s\"" #member "\": %" PRIu64, comma, c->member);                                \
    comma = ", ";
    COUNTS(F)
#undef F
    (void)comma;
}

static void quoted(tk_buf *b, const char *s) {
    tk_buf_str(b, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') {
            tk_buf_fmt(b, "\\%c", *s);
        } else if ((unsigned char)*s < ' ') {
            tk_buf_fmt(b, "\\u%04x", (unsigned)*s);
        } else {
            tk_buf_add(b, s, 1);
        }
    }
    tk_buf_str(b, "\"");
}

const char *sim_counters_json(tk_arena *a, const char *kernel, const tk_sim_counters *c) {
    tk_buf b;
    tk_buf_init(&b, a);
    tk_buf_str(&b, "{\"kernel\": ");
    quoted(&b, kernel);
    tk_buf_str(&b, ", \"total\": {");
    object(&b, &c->total);
    tk_buf_str(&b, "}, \"classes\": {");
    const char *comma = "";
    for (unsigned k = 0; k < TK_SIM_CLASS_COUNT; k++) {
        if (c->by_class[k].warps) {
            tk_buf_fmt(&b, "%s\"%s\": {", comma, tk_sim_class_name((tk_sim_class)k));
            object(&b, &c->by_class[k]);
            tk_buf_str(&b, "}");
            comma = ", ";
        }
    }
    tk_buf_str(&b, "}, \"lines\": [");
    for (uint32_t k = 0; k < c->nline; k++) {
        const tk_sim_line *l = &c->line[k];
        tk_buf_str(&b, k ? ", {\"file\": " : "{\"file\": ");
        if (l->file) {
            quoted(&b, source_name(l->file));
        } else {
            tk_buf_str(&b, "null");
        }
        tk_buf_fmt(&b, ", \"line\": %u, ", l->line);
        object(&b, &l->count);
        tk_buf_str(&b, "}");
    }
    tk_buf_str(&b, "]}");
    return tk_buf_text(&b);
}
