// SPDX-License-Identifier: Apache-2.0
// Points as a figure: speed over the size that varies, with the ceilings as lines. SVG that reads
// in light and in dark.
#include "bench.h"
#include "io.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 420, LEFT = 70, RIGHT = 180, TOP = 50, BOTTOM = 60, COLOURS = 6 };

typedef struct plot {
    const bench *b;
    const char *text;
    size_t axis; // of sizes, along x; naxis: the bytes that are moved
    bool products, logarithmic;
    double least, most, top; // of x; of y
} plot;

static void put(plot *g, const char *more) {
    g->text = tool_format(g->b->t, "%s%s", g->text, more);
}

// Element text: the characters that XML keeps for itself.
static const char *escaped(tool *t, const char *s) {
    const char *out = "";
    for (; *s; s++) {
        const char *name = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : NULL;
        unsigned char c = (unsigned char)*s;
        out = name ? tool_format(t, "%s%s", out, name)
                   : tool_format(t, "%s%c", out, c < 0x20 || c >= 0x80 ? '?' : c);
    }
    return out;
}

static double x_of(const plot *g, const bench_point *p) {
    return g->axis < g->b->sizes.naxis ? (double)sweep_value(&g->b->sizes, p->number, g->axis)
                                       : (double)p->bytes;
}

static double y_of(const plot *g, const bench_point *p) {
    return g->products ? per_second(p->products, &p->time) / 1e12
                       : per_second((double)p->bytes, &p->time) / 1e9;
}

static double place_x(const plot *g, double x) {
    double from = g->least, to = g->most;
    if (g->logarithmic) {
        from = log2(from);
        to = log2(to);
        x = log2(x);
    }
    double share = to > from ? (x - from) / (to - from) : 0.5;
    return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double place_y(const plot *g, double y) {
    return HEIGHT - BOTTOM - y / g->top * (HEIGHT - TOP - BOTTOM);
}

// 1, 2 or 5 times a power of ten.
static double step_for(double range, int parts) {
    double step = pow(10, floor(log10(range / parts)));
    double more = range / parts / step;
    return more > 5 ? 10 * step : more > 2 ? 5 * step : more > 1 ? 2 * step : step;
}

// ---- What is plotted

static size_t varying_axis(const sweep *s) {
    for (size_t i = s->naxis; i-- > 0;) {
        if (s->axis[i].n > 1) {
            return i;
        }
    }
    return s->naxis ? s->naxis - 1 : 0;
}

static bool shown(const bench_point *p) { return !p->wrong; }

static void measure(plot *g) {
    const bench *b = g->b;
    g->least = INFINITY;
    for (size_t i = 0; i < b->npoint; i++) {
        const bench_point *p = &b->point[i];
        if (!shown(p)) {
            continue;
        }
        g->products = g->products || p->products > 0;
        g->least = fmin(g->least, x_of(g, p));
        g->most = fmax(g->most, x_of(g, p));
    }
    for (size_t i = 0; i < b->npoint; i++) {
        const bench_point *p = &b->point[i];
        if (shown(p)) {
            g->top = fmax(g->top, 1.05 * y_of(g, p));
            if (!g->products) {
                g->top = fmax(g->top, 1.05 * bench_ceiling(p, false));
                g->top = fmax(g->top, 1.05 * bench_ceiling(p, true));
            }
        }
    }
    g->top = g->top > 0 ? g->top : 1;
    g->least = isfinite(g->least) ? g->least : 0;
    g->logarithmic = g->least > 0 && g->most >= 8 * g->least;
}

// Points whose other sizes are the same are a line: the number of its first point.
static size_t line_of(const plot *g, size_t point) {
    const sweep *s = &g->b->sizes;
    size_t stride = 1;
    for (size_t i = s->naxis; i-- > g->axis + 1;) {
        stride *= s->axis[i].n;
    }
    size_t n = g->axis < s->naxis ? s->axis[g->axis].n : 1;
    return point - point / stride % n * stride;
}

// "M=1024, K=64": the sizes that a line has and others have not; "" where there is one line.
static const char *line_name(const plot *g, size_t point) {
    const sweep *s = &g->b->sizes;
    const char *text = "";
    for (size_t i = 0; i < s->naxis; i++) {
        if (i != g->axis && s->axis[i].n > 1) {
            text = tool_format(g->b->t, "%s%s%s=%lld", text, *text ? ", " : "", s->axis[i].name,
                               (long long)sweep_value(s, point, i));
        }
    }
    return text;
}

// ---- Drawing

static void put_style(plot *g) {
    put(g, "<style>\n"
           "text { font: 13px sans-serif; fill: #1b1b1b; }\n"
           ".title { font-size: 15px; }\n"
           ".paper { fill: #ffffff; }\n"
           ".grid { stroke: #d9d9d9; fill: none; }\n"
           ".axis, .copy, .read { stroke: #1b1b1b; fill: none; }\n"
           ".copy { stroke-dasharray: 6 4; }\n"
           ".read { stroke-dasharray: 2 4; }\n"
           ".line { fill: none; stroke-width: 2; }\n");
    static const char *const colour[COLOURS] = {"#3a7fd5", "#d9822b", "#3d9a50",
                                                "#b0509f", "#c2484d", "#8a8530"};
    for (int i = 0; i < COLOURS; i++) {
        put(g, tool_format(g->b->t, ".c%d { stroke: %s; } .d%d { fill: %s; }\n", i, colour[i], i,
                           colour[i]));
    }
    put(g, "@media (prefers-color-scheme: dark) {\n"
           "text { fill: #e8e8e8; }\n"
           ".paper { fill: #161616; }\n"
           ".grid { stroke: #3a3a3a; }\n"
           ".axis, .copy, .read { stroke: #e8e8e8; }\n}\n"
           "</style>\n");
}

static void put_text(plot *g, double x, double y, const char *anchor, const char *text) {
    put(g, tool_format(g->b->t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y,
                       anchor, escaped(g->b->t, text)));
}

static void put_segment(plot *g, const char *class, double x1, double y1, double x2, double y2) {
    put(g, tool_format(g->b->t,
                       "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                       class, x1, y1, x2, y2));
}

static const char *size_text(tool *t, double x) {
    static const char *const unit[] = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t u = 0;
    while (u < 4 && x >= 1024 && fmod(x, 1024) == 0) {
        x /= 1024;
        u++;
    }
    return tool_format(t, "%.6g%s", x, unit[u]);
}

static void put_ticks_x(plot *g) {
    double bottom = HEIGHT - BOTTOM;
    double step = g->logarithmic ? 0 : step_for(fmax(g->most - g->least, 1), 6);
    double first = g->logarithmic ? exp2(ceil(log2(g->least))) : ceil(g->least / step) * step;
    double factor = g->logarithmic ? exp2(ceil((log2(g->most) - log2(g->least)) / 8)) : 1;
    for (double x = first; x <= g->most; x = g->logarithmic ? x * factor : x + step) {
        double at = place_x(g, x);
        put_segment(g, "grid", at, TOP, at, bottom);
        put_text(g, at, bottom + 18, "middle", size_text(g->b->t, x));
    }
}

static void put_axes(plot *g) {
    double bottom = HEIGHT - BOTTOM, right = WIDTH - RIGHT;
    double step = step_for(g->top, 6);
    put_ticks_x(g);
    for (double y = 0; y <= g->top; y += step) {
        put_segment(g, "grid", LEFT, place_y(g, y), right, place_y(g, y));
        put_text(g, LEFT - 8, place_y(g, y) + 4, "end", tool_format(g->b->t, "%.6g", y));
    }
    put_segment(g, "axis", LEFT, TOP, LEFT, bottom);
    put_segment(g, "axis", LEFT, bottom, right, bottom);
    const sweep *s = &g->b->sizes;
    put_text(g, (LEFT + right) / 2, HEIGHT - 14, "middle",
             g->axis < s->naxis ? s->axis[g->axis].name : "bytes moved");
    put(g, tool_format(g->b->t,
                       "<text transform=\"rotate(-90 18 %d)\" x=\"18\" y=\"%d\" "
                       "text-anchor=\"middle\">%s</text>\n",
                       HEIGHT / 2, HEIGHT / 2, g->products ? "TFLOP/s" : "GB/s"));
}

// The ceilings of a line, from point to point.
static void put_ceiling(plot *g, size_t line, bool read) {
    const char *points = "";
    for (size_t i = 0; i < g->b->npoint; i++) {
        const bench_point *p = &g->b->point[i];
        if (shown(p) && line_of(g, p->number) == line) {
            points = tool_format(g->b->t, "%s%.1f,%.1f ", points, place_x(g, x_of(g, p)),
                                 place_y(g, bench_ceiling(p, read)));
        }
    }
    put(g, tool_format(g->b->t, "<polyline class=\"%s\" points=\"%s\"/>\n", read ? "read" : "copy",
                       points));
}

static void put_line(plot *g, size_t line, unsigned number) {
    const char *points = "";
    unsigned colour = number % COLOURS;
    for (size_t i = 0; i < g->b->npoint; i++) {
        const bench_point *p = &g->b->point[i];
        if (!shown(p) || line_of(g, p->number) != line) {
            continue;
        }
        double x = place_x(g, x_of(g, p)), y = place_y(g, y_of(g, p));
        double scale = y_of(g, p) * p->time.median;
        points = tool_format(g->b->t, "%s%.1f,%.1f ", points, x, y);
        put_segment(g, tool_format(g->b->t, "c%u", colour), x, place_y(g, scale / p->time.low), x,
                    place_y(g, scale / p->time.high));
        put(g, tool_format(g->b->t, "<circle class=\"d%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>\n",
                           colour, x, y));
    }
    put(g, tool_format(g->b->t, "<polyline class=\"line c%u\" points=\"%s\"/>\n", colour, points));
}

static void put_key(plot *g, unsigned row, const char *class, const char *text) {
    double x = WIDTH - RIGHT + 14, y = TOP + 10 + 20 * (double)row;
    put_segment(g, class, x, y, x + 22, y);
    put_text(g, x + 28, y + 4, "start", text);
}

static void put_lines(plot *g) {
    unsigned number = 0;
    for (size_t i = 0; i < g->b->npoint; i++) {
        const bench_point *p = &g->b->point[i];
        if (line_of(g, p->number) != p->number) {
            continue;
        }
        if (!g->products) {
            put_ceiling(g, p->number, false);
            put_ceiling(g, p->number, true);
        }
        put_line(g, p->number, number);
        const char *name = line_name(g, p->number);
        put_key(g, number, tool_format(g->b->t, "line c%u", number % COLOURS),
                *name ? name : tkc_kernel_name(g->b->lib.kernel));
        number++;
    }
    if (!g->products) {
        put_key(g, number, "copy", "a copy");
        put_key(g, number + 1, "read", "a read");
    }
}

void bench_write_plot(const bench *b, const char *path) {
    plot g = {.b = b, .text = ""};
    g.axis = b->sizes.naxis ? varying_axis(&b->sizes) : 0;
    measure(&g);
    put(&g, tool_format(b->t,
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                        "width=\"%d\" height=\"%d\" role=\"img\">\n",
                        WIDTH, HEIGHT, WIDTH, HEIGHT));
    const char *title = tool_format(b->t, "%s on %s", tkc_kernel_name(b->lib.kernel), b->gpu.name);
    put(&g, tool_format(b->t, "<title>%s</title>\n", escaped(b->t, title)));
    put_style(&g);
    put(&g, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    put(&g, tool_format(b->t, "<text class=\"title\" x=\"%d\" y=\"28\">%s</text>\n", LEFT,
                        escaped(b->t, title)));
    put_axes(&g);
    put_lines(&g);
    put(&g, "</svg>\n");
    file_write(b->t, path, g.text, strlen(g.text));
}
