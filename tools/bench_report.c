// SPDX-License-Identifier: Apache-2.0
// Points as a table for a person and as JSON.
#include "bench.h"
#include "io.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static double gb(double bytes, const figure *f) { return per_second(bytes, f) / 1e9; }

double bench_ceiling(const bench_point *p, bool read) {
    double bytes = (double)p->ceiling_bytes;
    return read ? gb(bytes, &p->read) : gb(2 * bytes, &p->copy);
}

static double share_of(const bench_point *p, bool read) {
    double ceiling = bench_ceiling(p, read);
    return ceiling > 0 ? gb((double)p->bytes, &p->time) / ceiling : 0;
}

// ---- Text

// "T=bf16, BN=64": what was set.
static const char *defines_text(const bench *b) {
    const char *text = "";
    for (size_t i = 0; i < b->s->k.define.n; i++) {
        const pair *d = &b->s->k.define.at[i];
        text = tool_format(b->t, "%s, %s=%s", text, d->name, d->value);
    }
    return text;
}

void bench_show_head(const bench *b) {
    printf("%s%s on %s: %s; %llu launches, seed %llu\n", tkc_kernel_name(b->lib.kernel),
           defines_text(b), tkc_device_name(b->device), b->gpu.name,
           (unsigned long long)b->s->launches, (unsigned long long)b->s->k.seed);
    for (size_t i = 0; i < b->sizes.naxis; i++) {
        printf("%10s ", b->sizes.axis[i].name);
    }
    printf("%10s %21s %8s %9s %16s %16s\n", "time", "half are within", "GB/s", "TFLOP/s",
           "of a copy", "of a read");
}

void bench_show_point(const bench *b, const bench_point *p) {
    for (size_t i = 0; i < b->sizes.naxis; i++) {
        printf("%10lld ", (long long)sweep_value(&b->sizes, p->number, i));
    }
    if (p->wrong) {
        printf("no figures: %s\n", p->wrong);
        return;
    }
    char products[16] = "-";
    if (p->products > 0) {
        snprintf(products, sizeof products, "%.1f", per_second(p->products, &p->time) / 1e12);
    }
    printf("%7.2f us %8.2f .. %6.2f us %8.1f %9s %6.1f %% of %5.0f %6.1f %% of %5.0f\n",
           p->time.median, p->time.low, p->time.high, gb((double)p->bytes, &p->time), products,
           100 * share_of(p, false), bench_ceiling(p, false), 100 * share_of(p, true),
           bench_ceiling(p, true));
    fflush(stdout);
}

static void show_state(const bench *b) {
    const bench_point *last = NULL;
    for (size_t i = 0; i < b->npoint; i++) {
        last = b->point[i].state.known ? &b->point[i] : last;
    }
    if (!last) {
        printf("clocks and power: unknown%s%s\n", b->monitor.why ? ": " : "",
               b->monitor.why ? b->monitor.why : "");
        return;
    }
    const gpu_state *s = &last->state;
    const char *limits = gpu_limits_text(b->t, s->limits);
    printf("clocks at the last: %u MHz, memory %u MHz; %.0f W, %u C; held back by %s\n", s->sm_mhz,
           s->memory_mhz, s->watts, s->celsius, *limits ? limits : "nothing");
}

void bench_show_end(const bench *b) {
    size_t unchecked = 0, flushed = 0;
    for (size_t i = 0; i < b->npoint; i++) {
        unchecked += !b->point[i].wrong && !b->point[i].checked;
        flushed += !b->point[i].wrong && b->point[i].flushed;
    }
    if (flushed) {
        printf("the cache was flushed before each launch at %zu of %zu points\n", flushed,
               b->npoint);
    }
    if (unchecked) {
        printf("outputs were not compared, only searched for NaN\n");
    }
    show_state(b);
}

// ---- JSON

static json_t *figure_json(const figure *f) {
    return json_pack("{s:f, s:f, s:f, s:f}", "median", f->median, "low", f->low, "high", f->high,
                     "least", f->least);
}

static json_t *number_or_null(double x) { return x > 0 ? json_real(x) : json_null(); }

static json_t *state_json(const bench *b, const gpu_state *s) {
    return s->known ? json_pack("{s:i, s:i, s:f, s:i, s:s}", "sm_mhz", (int)s->sm_mhz, "memory_mhz",
                                (int)s->memory_mhz, "watts", s->watts, "celsius", (int)s->celsius,
                                "held_back_by", gpu_limits_text(b->t, s->limits))
                    : json_null();
}

static json_t *point_json(const bench *b, const bench_point *p) {
    json_t *sizes = json_object();
    for (size_t i = b->sweeps_warps; i < b->sizes.naxis; i++) {
        json_object_set_new(sizes, b->sizes.axis[i].name,
                            json_integer(sweep_value(&b->sizes, p->number, i)));
    }
    json_t *warps =
        b->sweeps_warps ? json_integer(sweep_value(&b->sizes, p->number, 0)) : json_null();
    json_t *o =
        json_pack("{s:o, s:o, s:s?, s:I, s:I}", "sizes", sizes, "warps", warps, "error", p->wrong,
                  "bytes", (json_int_t)p->bytes, "largest_tensor", (json_int_t)p->largest);
    if (p->wrong) {
        return o;
    }
    const struct {
        const char *name;
        json_t *value;
    } more[] = {
        {"sets", json_integer(BENCH_SETS)},
        {"cache_flushed", json_boolean(p->flushed)},
        {"microseconds", figure_json(&p->time)},
        {"gb_s", json_real(gb((double)p->bytes, &p->time))},
        {"tflop_s", number_or_null(per_second(p->products, &p->time) / 1e12)},
        {"copy", json_pack("{s:I, s:o, s:f}", "bytes", (json_int_t)(2 * p->ceiling_bytes),
                           "microseconds", figure_json(&p->copy), "gb_s", bench_ceiling(p, false))},
        {"read", json_pack("{s:I, s:o, s:f}", "bytes", (json_int_t)p->ceiling_bytes, "microseconds",
                           figure_json(&p->read), "gb_s", bench_ceiling(p, true))},
        {"of_copy", json_real(share_of(p, false))},
        {"of_read", json_real(share_of(p, true))},
        {"checked_against", p->checked ? json_string(p->checked) : json_null()},
        {"greatest_error", p->checked ? json_real(p->absolute) : json_null()},
        {"clocks", state_json(b, &p->state)},
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        json_object_set_new(o, more[i].name, more[i].value);
    }
    return o;
}

void bench_write_json(const bench *b, const char *path) {
    json_t *defines = json_object(), *points = json_array();
    for (size_t i = 0; i < b->s->k.define.n; i++) {
        const pair *d = &b->s->k.define.at[i];
        json_object_set_new(defines, d->name, json_string(d->value));
    }
    for (size_t i = 0; i < b->npoint; i++) {
        json_array_append_new(points, point_json(b, &b->point[i]));
    }
    json_t *gpu = json_pack("{s:s, s:s, s:I, s:I, s:i}", "name", b->gpu.name, "target",
                            b->gpu.target ? b->gpu.target : "", "memory", (json_int_t)b->gpu.memory,
                            "cache", (json_int_t)b->gpu.cache, "driver", (int)b->driver);
    json_t *o = json_pack(
        "{s:i, s:s, s:s, s:s, s:o, s:s, s:o, s:I, s:I, s:o}", "schema", 1, "tkc", tkc_version(),
        "file", b->s->common.files.at[0], "kernel", tkc_kernel_name(b->lib.kernel), "defines",
        defines, "device", tkc_device_name(b->device), "gpu", gpu, "launches",
        (json_int_t)b->s->launches, "seed", (json_int_t)b->s->k.seed, "points", points);
    char *text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;
    if (text) {
        const char *line = tool_format(b->t, "%s\n", text);
        file_write(b->t, path, line, strlen(line));
    } else {
        tool_error(b->t, CODE_ENVIRONMENT, NULL, "out of memory");
    }
    free(text);
    json_decref(o);
}
