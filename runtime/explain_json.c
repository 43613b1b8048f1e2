// SPDX-License-Identifier: Apache-2.0
// An explanation as JSON and as SARIF 2.1.0 (docs/explain.md).
#include "runtime/json.h"

#include <stdio.h>
#include <string.h>

enum { SCHEMA = 1 };

// ---- JSON ---------------------------------------------------------------------------------------

// Nothing here may end in a jump, which would leave values of jansson's behind: what is put
// together stands on the stack.
enum { NAME_ROOM = 96 };

// Names have underscores where a text has blanks.
static void set_named(json_t *o, const char *name, json_t *value, bool *ok) {
    char key[NAME_ROOM];
    snprintf(key, sizeof key, "%s", name);
    for (char *p = key; *p; p++) {
        *p = *p == ' ' ? '_' : *p;
    }
    json_set(o, key, value, ok);
}

static json_t *number(double x) {
    const bool whole = x < 1e15 && x > -1e15 && x == (double)(json_int_t)x;
    return whole ? json_integer((json_int_t)x) : json_real(x);
}

static json_t *note_json(tk_arena *a, const explained *x, const tk_note_rec *r, bool *ok) {
    json_t *o = json_object(), *numbers = json_object(), *words = json_object();
    json_set(o, "id", json_string(r->id), ok);
    json_set(o, "pass", json_string(r->pass), ok);
    json_set(o, "verdict", json_string(tk_verdict_text(r->verdict)), ok);
    json_place(a, o, x->sources, r->span, ok);
    json_set(o, "text", json_text(a, r->reason), ok);
    for (uint32_t i = 0; i < r->numbers.n; i++) {
        set_named(numbers, r->numbers.at[i].name, number(r->numbers.at[i].value), ok);
    }
    for (uint32_t i = 0; i < r->words.n; i++) {
        set_named(words, r->words.at[i].name, json_text(a, r->words.at[i].text), ok);
    }
    json_set(o, "numbers", numbers, ok);
    json_set(o, "words", words, ok);
    return o;
}

static json_t *tensors_json(tk_arena *a, const explained *x, bool *ok) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < x->f->params.n; i++) {
        const tk_irvalue *p = &x->f->value.at[x->f->params.at[i]];
        if (p->type->kind != TK_T_TENSOR) {
            continue;
        }
        json_t *o = json_object();
        json_set(o, "name", json_text(a, p->name ? p->name : "?"), ok);
        json_set(o, "unit_stride", json_boolean(x->fact[i] & TK_FACT_UNIT), ok);
        json_set(o, "aligned", json_boolean(x->fact[i] & TK_FACT_ALIGNED), ok);
        json_set(o, "whole_rows", json_boolean(x->fact[i] & TK_FACT_WHOLE), ok);
        json_set(o, "near", json_boolean(x->fact[i] & TK_FACT_NEAR), ok);
        json_set(o, "mapped", json_boolean(x->fact[i] & TK_FACT_MAP), ok);
        *ok = *ok && json_array_append_new(list, o) == 0;
    }
    return list;
}

static json_t *roofline_json(const explained *x, bool *ok) {
    json_t *o = json_object();
    json_set(o, "gpu", json_string(x->gpu->name), ok);
    json_set(o, "bytes_a_second", number(x->gpu->bandwidth), ok);
    json_set(o, "flops_a_second", number(x->gpu->flops), ok);
    json_set(o, "flops_a_second_f64", number(x->gpu->flops64), ok);
    json_set(o, "flops_a_second_tensor_cores", number(x->gpu->matrix), ok);
    if (x->bytes >= 0) {
        const double least =
            x->memory_seconds > x->compute_seconds ? x->memory_seconds : x->compute_seconds;
        json_set(o, "programs", number(x->programs), ok);
        json_set(o, "bytes", number(x->bytes), ok);
        json_set(o, "least_bytes", number(x->least_bytes), ok);
        json_set(o, "flops", number(x->programs * x->flops), ok);
        json_set(o, "flops_f64", number(x->programs * x->flops64), ok);
        json_set(o, "flops_tensor_cores", number(x->programs * x->matrix), ok);
        json_set(o, "memory_seconds", json_real(x->memory_seconds), ok);
        json_set(o, "compute_seconds", json_real(x->compute_seconds), ok);
        json_set(o, "seconds", json_real(least), ok);
    }
    return o;
}

const char *explain_json(tk_arena *a, const explained *x) {
    bool ok = true;
    json_t *o = json_object(), *notes = json_array();
    json_set(o, "schema", json_integer(SCHEMA), &ok);
    json_set(o, "tkc", json_string(tkc_version()), &ok);
    json_set(o, "kernel", json_text(a, x->info->name), &ok);
    json_place(a, o, x->sources, x->kernel, &ok);
    json_set(o, "target", json_string(x->target->name), &ok);
    json_set(o, "warps", json_integer(x->image->threads / 32), &ok);
    json_set(o, "shared", json_integer(x->image->shared + x->image->report.shared_static), &ok);
    json_set(o, "registers",
             x->image->report.known ? json_integer(x->image->report.registers) : json_null(), &ok);
    json_set(o, "tensors", tensors_json(a, x, &ok), &ok);
    json_set(o, "roofline", roofline_json(x, &ok), &ok);
    for (uint32_t i = 0; i < x->n && ok; i++) {
        ok = json_array_append_new(notes, note_json(a, x, x->note[i], &ok)) == 0 && ok;
    }
    json_set(o, "notes", notes, &ok);
    return json_dumped(a, o, ok);
}

// ---- SARIF --------------------------------------------------------------------------------------

static json_t *message(tk_arena *a, const char *text, bool *ok) {
    json_t *o = json_object();
    json_set(o, "text", json_text(a, text), ok);
    return o;
}

// Rules are the ids of notes, in the order in which they first come.
static size_t rule_of(const explained *x, uint32_t note) {
    size_t rules = 0;
    for (uint32_t i = 0; i <= note; i++) {
        bool first = true;
        for (uint32_t k = 0; k < i && first; k++) {
            first = strcmp(x->note[k]->id, x->note[i]->id) != 0;
        }
        if (strcmp(x->note[i]->id, x->note[note]->id) == 0) {
            return rules;
        }
        rules += first;
    }
    return rules;
}

static json_t *rules_json(tk_arena *a, const explained *x, bool *ok) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < x->n && *ok; i++) {
        if (rule_of(x, i) < json_array_size(list)) {
            continue;
        }
        json_t *o = json_object();
        char text[NAME_ROOM];
        snprintf(text, sizeof text, "note '%s' of the compiler", x->note[i]->id);
        json_set(o, "id", json_string(x->note[i]->id), ok);
        json_set(o, "shortDescription", message(a, text, ok), ok);
        *ok = *ok && json_array_append_new(list, o) == 0;
    }
    return list;
}

static json_t *region_json(const explained *x, tk_span at, bool *ok) {
    const tk_source *s = tk_source_of(x->sources, at.file);
    uint32_t line, column;
    json_t *o = json_object();
    tk_line_col(s, at.begin, &line, &column);
    json_set(o, "startLine", json_integer(line), ok);
    json_set(o, "startColumn", json_integer(column), ok);
    tk_line_col(s, at.end, &line, &column);
    json_set(o, "endLine", json_integer(line), ok);
    json_set(o, "endColumn", json_integer(column), ok);
    return o;
}

static json_t *locations_json(tk_arena *a, const explained *x, tk_span at, bool *ok) {
    json_t *list = json_array();
    const tk_source *s = tk_source_of(x->sources, at.file);
    if (!s) {
        return list;
    }
    json_t *place = json_object(), *physical = json_object(), *artifact = json_object();
    json_set(artifact, "uri", json_text(a, s->name), ok);
    json_set(physical, "artifactLocation", artifact, ok);
    json_set(physical, "region", region_json(x, at, ok), ok);
    json_set(place, "physicalLocation", physical, ok);
    *ok = *ok && json_array_append_new(list, place) == 0;
    return list;
}

static const char *kind_of(tk_verdict v) {
    switch (v) {
    case TK_NOTE_DONE:
        return "pass";
    case TK_NOTE_INFO:
        return "informational";
    case TK_NOTE_MISSED:
    case TK_NOTE_FAILED:
        return "fail";
    }
    return "";
}

static const char *level_of(tk_verdict v) {
    return v == TK_NOTE_FAILED ? "error" : v == TK_NOTE_MISSED ? "warning" : "none";
}

static json_t *results_json(tk_arena *a, const explained *x, bool *ok) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < x->n && *ok; i++) {
        const tk_note_rec *r = x->note[i];
        json_t *o = json_object();
        json_set(o, "ruleId", json_string(r->id), ok);
        json_set(o, "ruleIndex", json_integer((json_int_t)rule_of(x, i)), ok);
        json_set(o, "kind", json_string(kind_of(r->verdict)), ok);
        json_set(o, "level", json_string(level_of(r->verdict)), ok);
        json_set(o, "message", message(a, r->reason, ok), ok);
        json_set(o, "locations", locations_json(a, x, r->span, ok), ok);
        *ok = *ok && json_array_append_new(list, o) == 0;
    }
    return list;
}

const char *explain_sarif(tk_arena *a, const explained *x) {
    bool ok = true;
    json_t *o = json_object(), *runs = json_array(), *run = json_object();
    json_t *tool = json_object(), *driver = json_object();
    json_set(driver, "name", json_string("tkc"), &ok);
    json_set(driver, "version", json_string(tkc_version()), &ok);
    json_set(driver, "rules", rules_json(a, x, &ok), &ok);
    json_set(tool, "driver", driver, &ok);
    json_set(run, "tool", tool, &ok);
    json_set(run, "results", results_json(a, x, &ok), &ok);
    ok = ok && json_array_append_new(runs, run) == 0;
    json_set(o, "$schema", json_string("https://json.schemastore.org/sarif-2.1.0.json"), &ok);
    json_set(o, "version", json_string("2.1.0"), &ok);
    json_set(o, "runs", runs, &ok);
    return json_dumped(a, o, ok);
}
