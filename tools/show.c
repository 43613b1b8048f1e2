// SPDX-License-Identifier: Apache-2.0
// Outputs for a person to read.
#include "show.h"
#include "element.h"

#include <math.h>
#include <stdio.h>

static void put_first(tool *t, const tkc_tensor *x) {
    enum { FIRST = 4 };
    char room[VALUE_ROOM];
    fprintf(t->text, "first");
    cursor c = cursor_make(x);
    for (; c.at < c.count && c.at < FIRST; cursor_next(&c)) {
        fprintf(t->text, " %s", value_text(room, x->dtype, cursor_value(&c)));
    }
    fputs(c.count > FIRST ? " ...\n" : "\n", t->text);
}

void show_summary(tool *t, const char *name, const tkc_tensor *x) {
    wide least = INFINITY, most = -INFINITY, sum = 0;
    size_t nans = 0;
    char low[VALUE_ROOM], high[VALUE_ROOM];
    cursor c = cursor_make(x);
    for (; c.at < c.count; cursor_next(&c)) {
        wide v = cursor_value(&c);
        if (isnan(v)) {
            nans++;
            continue;
        }
        least = v < least ? v : least;
        most = v > most ? v : most;
        sum += v;
    }
    fprintf(t->text, "%s: %s", name, shape_text(t, x));
    if (c.count == 0) {
        fputs(", no elements\n", t->text);
        return;
    }
    size_t n = c.count - nans;
    if (n) {
        fprintf(t->text, ", least %s, greatest %s, mean %.6Lg", value_text(low, x->dtype, least),
                value_text(high, x->dtype, most), sum / (wide)n);
    }
    if (nans) {
        fprintf(t->text, ", %zu nan", nans);
    }
    fprintf(t->text, ", ");
    put_first(t, x);
}

void show_whole(tool *t, const char *name, const tkc_tensor *x) {
    char room[VALUE_ROOM];
    fprintf(t->text, "%s: %s\n", name, shape_text(t, x));
    cursor c = cursor_make(x);
    if (c.count == 0) {
        fputs("[]\n", t->text);
    }
    for (; c.at < c.count; cursor_next(&c)) {
        // Brackets open where the last axes start and close where they end.
        uint32_t open = 0, close = 0;
        while (open < x->rank && c.index[x->rank - 1 - open] == 0) {
            open++;
        }
        while (close < x->rank && c.index[x->rank - 1 - close] == x->dim[x->rank - 1 - close] - 1) {
            close++;
        }
        if (open && open < x->rank) {
            fprintf(t->text, "%*s", (int)(x->rank - open), "");
        }
        for (uint32_t i = 0; i < open; i++) {
            putc('[', t->text);
        }
        fputs(value_text(room, x->dtype, cursor_value(&c)), t->text);
        for (uint32_t i = 0; i < close; i++) {
            putc(']', t->text);
        }
        if (c.at + 1 < c.count) {
            fputs(close ? ",\n" : ", ", t->text);
        }
    }
    if (c.count) {
        putc('\n', t->text);
    }
}
