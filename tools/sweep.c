// SPDX-License-Identifier: Apache-2.0
// --sizes: parsing, and what a point's sizes are.
#include "sweep.h"
#include "number.h"

#include <ctype.h>
#include <string.h>

static const char form[] = "NAME=N, NAME=N,N,..., NAME=FROM:TO:xK or NAME=FROM:TO:+K, with commas "
                           "between them";

static bool wrong(tool *t, const char *item, size_t n) {
    tool_usage(t, "option --sizes takes %s; not '%s'", form, tool_strndup(t, item, n));
    return false;
}

// A size: 0 to 2^31 - 1.
static bool read_size(const char *s, size_t n, int64_t *out) {
    integer v;
    return integer_parse(s, n, &v) && !v.negative && v.magnitude <= INT32_MAX &&
           integer_i64(v, out);
}

static bool add_value(tool *t, sweep_axis *a, int64_t value) {
    if (a->n == SWEEP_POINTS) {
        tool_usage(t, "option --sizes: %s has more than %d values", a->name, SWEEP_POINTS);
        return false;
    }
    if ((a->n & (a->n + 1)) == 0) { // grown by doubling
        int64_t *grown = TOOL_NEW(t, int64_t, 2 * a->n + 2);
        if (a->n) {
            memcpy(grown, a->value, a->n * sizeof *grown);
        }
        a->value = grown;
    }
    a->value[a->n++] = value;
    return true;
}

// N, or FROM:TO:xK, or FROM:TO:+K.
static bool add_range(tool *t, sweep_axis *a, const char *s, size_t n) {
    const char *colon = memchr(s, ':', n);
    int64_t from, to, by;
    if (!colon) {
        return read_size(s, n, &from) ? add_value(t, a, from) : wrong(t, s, n);
    }
    const char *end = s + n, *second = memchr(colon + 1, ':', (size_t)(end - colon - 1));
    if (!second || end - second < 3 || !strchr("x+", second[1]) ||
        !read_size(s, (size_t)(colon - s), &from) ||
        !read_size(colon + 1, (size_t)(second - colon - 1), &to) ||
        !read_size(second + 2, (size_t)(end - second - 2), &by)) {
        return wrong(t, s, n);
    }
    bool times = second[1] == 'x';
    if (from > to || by < (times ? 2 : 1) || (times && from < 1)) {
        tool_usage(t, "option --sizes: '%s' never ends or has no values", tool_strndup(t, s, n));
        return false;
    }
    for (int64_t v = from; v <= to; v = times ? v * by : v + by) {
        if (!add_value(t, a, v)) {
            return false;
        }
    }
    return true;
}

static bool new_axis(tool *t, sweep *s, const char *name, size_t n) {
    if (n == 0) {
        return wrong(t, name, strcspn(name, ","));
    }
    if (sweep_find(s, name, n) < s->naxis) {
        tool_usage(t, "option --sizes: %s is given twice", tool_strndup(t, name, n));
        return false;
    }
    if (s->naxis == SWEEP_AXES) {
        tool_usage(t, "option --sizes: more than %d names", SWEEP_AXES);
        return false;
    }
    s->axis[s->naxis++].name = tool_strndup(t, name, n);
    return true;
}

static bool count_points(tool *t, sweep *s) {
    s->npoint = 1;
    for (size_t i = 0; i < s->naxis; i++) {
        s->npoint *= s->axis[i].n; // each at most SWEEP_POINTS
        if (s->npoint > SWEEP_POINTS) {
            tool_usage(t, "option --sizes: more than %d points", SWEEP_POINTS);
            return false;
        }
    }
    return true;
}

bool sweep_parse(tool *t, const char *text, sweep *out) {
    *out = (sweep){.npoint = 1};
    while (text) {
        size_t n = strcspn(text, ",");
        const char *equals = memchr(text, '=', n);
        const char *value = equals ? equals + 1 : text;
        if (equals ? !new_axis(t, out, text, (size_t)(equals - text)) : out->naxis == 0) {
            return equals ? false : wrong(t, text, n);
        }
        if (!add_range(t, &out->axis[out->naxis - 1], value, n - (size_t)(value - text))) {
            return false;
        }
        text = text[n] ? text + n + 1 : NULL;
    }
    return count_points(t, out);
}

bool sweep_add_first(tool *t, sweep *s, const char *name, const char *text) {
    sweep first, old = *s;
    if (!text) {
        return true;
    }
    if (!sweep_parse(t, tool_format(t, "%s=%s", name, text), &first) || first.naxis != 1) {
        return false;
    }
    if (old.naxis == SWEEP_AXES || sweep_find(&old, name, strlen(name)) < old.naxis) {
        tool_usage(t, "option --sizes: no more than %d names, none of them %s", SWEEP_AXES - 1,
                   name);
        return false;
    }
    s->axis[0] = first.axis[0];
    memcpy(&s->axis[1], old.axis, old.naxis * sizeof *old.axis);
    s->naxis++;
    return count_points(t, s);
}

int64_t sweep_value(const sweep *s, size_t point, size_t axis) {
    for (size_t i = s->naxis; i-- > axis + 1;) {
        point /= s->axis[i].n;
    }
    return s->axis[axis].value[point % s->axis[axis].n];
}

size_t sweep_find(const sweep *s, const char *name, size_t n) {
    size_t i = 0;
    while (i < s->naxis &&
           (strlen(s->axis[i].name) != n || memcmp(s->axis[i].name, name, n) != 0)) {
        i++;
    }
    return i;
}

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

const char *sweep_replace(tool *t, const sweep *s, size_t point, const char *text) {
    const char *open = strchr(text, '(');
    if (!open) {
        return text;
    }
    const char *out = tool_strndup(t, text, (size_t)(open - text));
    for (const char *p = open; *p;) {
        size_t n = 0;
        while (in_name(p[n])) {
            n++;
        }
        size_t axis = n ? sweep_find(s, p, n) : s->naxis;
        if (axis < s->naxis) {
            out = tool_format(t, "%s%lld", out, (long long)sweep_value(s, point, axis));
        } else {
            n = n ? n : 1;
            out = tool_format(t, "%s%.*s", out, (int)n, p);
        }
        p += n;
    }
    return out;
}
