// SPDX-License-Identifier: Apache-2.0
// The printer of the text form (docs/ir.md). Values are named by their order of appearance, so that
// equal modules print alike whatever their numbers are.
#include "ir/ir_text.h"

#include <string.h>

typedef TK_VEC(const tk_layout *) layout_list;

typedef struct printer {
    tk_buf *out;
    const tk_module *m;
    const tk_func *f;
    bool locs;
    int depth;
    uint32_t named;       // values named so far
    const char **name;    // by value
    tk_names hints;       // those given without a number: the first value of each
    layout_list *layouts; // met so far; NULL: they are not printed
} printer;

enum {
    INDENT_MOST = 40
}; // deeper regions are not indented further: the text stays linear in the ops

static void op_line(printer *p, const tk_op *op);

// ---- Names --------------------------------------------------------------------------------------

static bool hint_is_new(printer *p, const char *hint) {
    uint32_t before = p->hints.n;
    (void)tk_intern(&p->hints, hint, strlen(hint));
    return p->hints.n > before;
}

static const char *value_name(printer *p, tk_vid v) {
    tk_arena *a = p->out->arena;
    if (v == 0 || v >= p->f->value.n) {
        return "%?";
    }
    if (!p->name[v]) {
        const char *hint = p->f->value.at[v].name;
        uint32_t n = p->named++;
        if (!hint || !tk_text_is_ident(hint)) {
            p->name[v] = tk_format(a, "%%%u", n);
        } else if (hint_is_new(p, hint)) {
            p->name[v] = tk_format(a, "%%%s", hint);
        } else {
            p->name[v] = tk_format(a, "%%%s.%u", hint, n);
        }
    }
    return p->name[v];
}

static void value(printer *p, tk_vid v) { tk_buf_str(p->out, value_name(p, v)); }

static void values(printer *p, uint32_t n, const tk_vid *v) {
    for (uint32_t i = 0; i < n; i++) {
        tk_buf_str(p->out, i ? ", " : "");
        value(p, v[i]);
    }
}

// #2: the third layout that the text meets
static void layout(printer *p, const tk_layout *l) {
    uint32_t i = 0;
    while (i < p->layouts->n && !tk_layout_eq(p->layouts->at[i], l)) {
        i++;
    }
    if (i == p->layouts->n) {
        tk_vec_push(p->out->arena, p->layouts, l);
    }
    tk_buf_fmt(p->out, " #%u", i);
}

static void type_of(printer *p, tk_vid v) {
    if (v < p->f->value.n) {
        const tk_irvalue *x = &p->f->value.at[v];
        tk_type_print(p->out, x->type);
        if (x->layout && p->layouts) {
            layout(p, x->layout);
        }
    }
}

static void types_of(printer *p, uint32_t n, const tk_vid *v) {
    for (uint32_t i = 0; i < n; i++) {
        tk_buf_str(p->out, i ? ", " : " : ");
        type_of(p, v[i]);
    }
}

// (%x: f32, %y: i32)
static void typed_values(printer *p, uint32_t n, const tk_vid *v) {
    tk_buf_str(p->out, "(");
    for (uint32_t i = 0; i < n; i++) {
        tk_buf_str(p->out, i ? ", " : "");
        value(p, v[i]);
        tk_buf_str(p->out, ": ");
        type_of(p, v[i]);
    }
    tk_buf_str(p->out, ")");
}

// sizes(%y[0] = %x[0])
static void sizes(printer *p, const tk_func *f) {
    for (uint32_t i = 0; i < f->sizes.n; i++) {
        const tk_size_ref of = f->sizes.at[i].of, is = f->sizes.at[i].is;
        tk_buf_str(p->out, i ? ", " : " sizes(");
        value(p, f->params.at[of.param]);
        tk_buf_fmt(p->out, "[%u] = ", of.axis);
        value(p, f->params.at[is.param]);
        tk_buf_fmt(p->out, "[%u]%s", is.axis, i + 1 == f->sizes.n ? ")" : "");
    }
}

// ---- Places -------------------------------------------------------------------------------------

static void span(printer *p, tk_span s) {
    const tk_source *file = p->m->sources ? tk_source_of(p->m->sources, s.file) : NULL;
    if (!file) {
        tk_buf_str(p->out, "@?");
        return;
    }
    tk_buf_str(p->out, "@");
    tk_text_string(p->out, file->name);
    tk_buf_fmt(p->out, ":%u-%u", s.begin, s.end);
}

static void place(printer *p, tk_loc loc) {
    if (!p->locs) {
        return;
    }
    tk_buf_str(p->out, " ");
    if (loc == 0 || loc >= p->m->locs.n) {
        tk_buf_str(p->out, "@?");
        return;
    }
    for (;;) {
        const tk_location *l = &p->m->locs.at[loc];
        span(p, l->span);
        if (l->from == 0 || l->from >= loc) { // a chain leads to what was there before
            return;
        }
        tk_buf_str(p->out, " from ");
        loc = l->from;
    }
}

// ---- Regions ------------------------------------------------------------------------------------

static void indent(printer *p) {
    for (int i = 0; i < p->depth && i < INDENT_MOST; i++) {
        tk_buf_str(p->out, "  ");
    }
}

static void region(printer *p, const tk_region *r) {
    tk_buf_str(p->out, "{\n");
    p->depth++;
    for (const tk_op *op = r->first; op; op = op->next) {
        op_line(p, op);
    }
    p->depth--;
    indent(p);
    tk_buf_str(p->out, "}");
}

// ---- Attributes ---------------------------------------------------------------------------------

static void word_attr(printer *p, const char *name, const tk_words *w, uint32_t i) {
    if (i) {
        tk_buf_fmt(p->out, " %s=%s", name, tk_word(w, i));
    }
}

static void int_attr(printer *p, const char *name, int64_t x, int64_t missing) {
    if (x != missing) {
        tk_buf_fmt(p->out, " %s=%lld", name, (long long)x);
    }
}

static void flag_attr(printer *p, const char *name, bool on) {
    if (on) {
        tk_buf_fmt(p->out, " %s", name);
    }
}

static void perm_attr(printer *p, const tk_op *op) {
    unsigned rank = op->nres ? p->f->value.at[op->res[0]].type->rank : 0;
    tk_buf_str(p->out, " perm=[");
    for (unsigned i = 0; i < rank && i < TK_MAX_RANK; i++) {
        tk_buf_fmt(p->out, i ? ", %u" : "%u", op->at.perm[i]);
    }
    tk_buf_str(p->out, "]");
}

static void shown_attr(printer *p, const tk_attrs *at) {
    for (uint32_t i = 0; i < at->nshown; i++) {
        tk_buf_fmt(p->out, i ? ", %lld" : " shown=[%lld", (long long)at->shown[i]);
    }
    tk_buf_str(p->out, at->nshown ? "]" : "");
}

static void fast_attr(printer *p, unsigned fast) {
    const char *between = " fast=";
    for (uint32_t i = 0; i < tk_words_fast.n; i++) {
        if (fast >> i & 1) {
            tk_buf_fmt(p->out, "%s%s", between, tk_word(&tk_words_fast, i));
            between = "+";
        }
    }
}

// Those behind the operands; value, kind, index, mask, else and callee stand among them.
static void attrs(printer *p, const tk_op *op) {
    tk_attr_bits has = tk_op_attrs(op->code);
    const tk_attrs *at = &op->at;
    if (has & TK_A_AXIS) {
        int_attr(p, "axis", at->axis, TK_AXIS_ALL);
    }
    if (has & TK_A_START) {
        int_attr(p, "start", at->start, 0);
    }
    if (has & TK_A_PERM) {
        perm_attr(p, op);
    }
    flag_attr(p, "reverse", (has & TK_A_REVERSE) && at->reverse);
    flag_attr(p, "exclusive", (has & TK_A_EXCLUSIVE) && at->exclusive);
    flag_attr(p, "descending", (has & TK_A_DESCENDING) && at->descending);
    flag_attr(p, "part", (has & TK_A_PART) && at->part);
    word_attr(p, "precision", &tk_words_precision, has & TK_A_PRECISION ? at->precision : 0);
    word_attr(p, "unit", &tk_words_unit, has & TK_A_UNIT ? at->unit : 0);
    flag_attr(p, "open", (has & TK_A_OPEN) && at->open);
    word_attr(p, "order", &tk_words_order, has & TK_A_ORDER ? at->order : 0);
    word_attr(p, "scope", &tk_words_scope, has & TK_A_SCOPE ? at->scope : 0);
    int_attr(p, "pipeline", has & TK_A_PIPELINE ? at->pipeline : 0, 0);
    int_attr(p, "unroll", has & TK_A_UNROLL ? at->unroll : 0, 0);
    int_attr(p, "producers", has & TK_A_PRODUCERS ? at->producers : 0, 0);
    int_attr(p, "slots", has & TK_A_SLOTS ? at->slots : 0, 0);
    int_attr(p, "cluster", has & TK_A_CLUSTER ? at->cluster : 0, 0);
    word_attr(p, "like", &tk_words_like, has & TK_A_LIKE ? at->like : 0);
    word_attr(p, "how", &tk_words_how, has & TK_A_HOW ? at->how : 0);
    int_attr(p, "pieces", has & TK_A_PIECES ? at->pieces : 0, 0);
    int_attr(p, "staged", has & TK_A_STAGED ? at->staged : 0, 0);
    int_attr(p, "hold", has & TK_A_HOLD ? at->hold : 0, 0);
    int_attr(p, "held", has & TK_A_HELD ? at->held : 0, 0);
    int_attr(p, "shared", has & TK_A_SHARED ? at->shared : -1, -1);
    if ((has & TK_A_TEXT) && at->text) {
        tk_buf_str(p->out, " text=");
        tk_text_string(p->out, at->text);
    }
    if (has & TK_A_SHOWN) {
        shown_attr(p, at);
    }
    fast_attr(p, op->fast);
}

// ---- Ops ----------------------------------------------------------------------------------------

// %x[%i, %j +: 64, tile %t], ...: the tensor and its indices, then the rest in the form of each op.
static void view(printer *p, const tk_op *op) {
    const tk_attrs *at = &op->at;
    uint32_t tail = (at->masked ? 1u : 0u) + (at->other ? 1u : 0u);
    uint32_t head = op->code == TK_OP_LOAD ? 0 : op->code == TK_OP_ATOMIC_CAS ? 2 : 1;
    uint32_t rank = op->nopnd > 1 + head + tail ? op->nopnd - 1 - head - tail : 0;
    uint32_t k = 0;
    if (op->code == TK_OP_ATOMIC_RMW) {
        tk_buf_fmt(p->out, "%s ", tk_word(&tk_words_kind, at->kind));
    }
    if (op->nopnd < 1 + head + tail) {
        values(p, op->nopnd, op->opnd); // broken; shown as it is
        return;
    }
    value(p, op->opnd[k++]);
    tk_buf_str(p->out, "[");
    for (uint32_t d = 0; d < rank; d++) {
        int64_t n = d < TK_MAX_TENSOR_RANK ? at->index[d] : 0;
        tk_buf_str(p->out, d ? ", " : "");
        tk_buf_str(p->out, n < 0 ? "tile " : "");
        value(p, op->opnd[k++]);
        if (n > 0) {
            tk_buf_fmt(p->out, " +: %lld", (long long)n);
        }
    }
    tk_buf_str(p->out, "]");
    for (uint32_t i = 0; i < head; i++) {
        tk_buf_str(p->out, op->code == TK_OP_STORE ? " = " : ", ");
        value(p, op->opnd[k++]);
    }
    if (at->masked) {
        tk_buf_str(p->out, " mask ");
        value(p, op->opnd[k++]);
    }
    if (at->other) {
        tk_buf_str(p->out, " else ");
        value(p, op->opnd[k++]);
    }
}

static void carried(printer *p, const tk_op *op, uint32_t skip_arg, uint32_t skip_opnd) {
    const tk_region *r = op->reg[0];
    if (op->nopnd <= skip_opnd) {
        return;
    }
    tk_buf_str(p->out, " carry (");
    for (uint32_t i = 0; i + skip_opnd < op->nopnd; i++) {
        tk_buf_str(p->out, i ? ", " : "");
        value(p, i + skip_arg < r->args.n ? r->args.at[i + skip_arg] : 0);
        tk_buf_str(p->out, " = ");
        value(p, op->opnd[i + skip_opnd]);
    }
    tk_buf_str(p->out, ")");
}

static void loop(printer *p, const tk_op *op) {
    if (op->nreg < 1 || op->nopnd < 3) {
        values(p, op->nopnd, op->opnd);
        return;
    }
    value(p, op->reg[0]->args.n ? op->reg[0]->args.at[0] : 0);
    tk_buf_str(p->out, " = ");
    value(p, op->opnd[0]);
    tk_buf_str(p->out, " to ");
    value(p, op->opnd[1]);
    tk_buf_str(p->out, " step ");
    value(p, op->opnd[2]);
    carried(p, op, 1, 3);
}

static void operands(printer *p, const tk_op *op) {
    tk_attr_bits has = tk_op_attrs(op->code);
    if (has & TK_A_INDEX) {
        view(p, op);
    } else if (op->code == TK_OP_CONST) {
        tk_text_const(p->out, op->at.value);
    } else if (op->code == TK_OP_CALL) {
        tk_buf_str(p->out, "@");
        tk_text_name(p->out, op->at.callee ? op->at.callee : "");
        tk_buf_str(p->out, "(");
        values(p, op->nopnd, op->opnd);
        tk_buf_str(p->out, ")");
    } else if (op->code == TK_OP_FOR) {
        loop(p, op);
    } else if (op->code == TK_OP_WHILE && op->nreg > 0) {
        carried(p, op, 0, 0);
    } else {
        if (has & TK_A_KIND) {
            tk_buf_fmt(p->out, "%s ", tk_word(&tk_words_kind, op->at.kind));
        }
        values(p, op->nopnd, op->opnd);
    }
}

static void regions(printer *p, const tk_op *op) {
    for (uint32_t i = 0; i < op->nreg; i++) {
        tk_buf_str(p->out, " ");
        if ((op->code == TK_OP_IF || op->code == TK_OP_PARTITION) && i > 0) {
            tk_buf_str(p->out, "else ");
        } else if (op->code == TK_OP_WHILE && i > 0) {
            tk_buf_str(p->out, "do (");
            values(p, op->reg[i]->args.n, op->reg[i]->args.at);
            tk_buf_str(p->out, ") ");
        } else if (op->code == TK_OP_REDUCE_FN || op->code == TK_OP_SCAN_FN) {
            typed_values(p, op->reg[i]->args.n, op->reg[i]->args.at);
            tk_buf_str(p->out, " ");
        }
        region(p, op->reg[i]);
    }
}

static void op_text(printer *p, const tk_op *op) {
    const tk_opinfo *info = tk_op_info(op->code);
    if (op->nres) {
        values(p, op->nres, op->res);
        tk_buf_str(p->out, " = ");
    }
    tk_buf_str(p->out, info->name);
    if (op->nopnd || op->code == TK_OP_CONST || op->code == TK_OP_CALL) {
        tk_buf_str(p->out, op->code == TK_OP_WHILE ? "" : " ");
        operands(p, op);
    }
    attrs(p, op);
    types_of(p, op->nres, op->res);
    place(p, op->loc);
    regions(p, op);
}

static void op_line(printer *p, const tk_op *op) {
    indent(p);
    op_text(p, op);
    tk_buf_str(p->out, "\n");
}

// ---- Functions and modules ----------------------------------------------------------------------

static void enter(printer *p, const tk_func *f) {
    p->f = f;
    p->named = 0;
    p->name = TK_NEW_ARRAY(p->out->arena, const char *, f->value.n);
    tk_names_init(&p->hints, p->out->arena);
}

static void function(printer *p, const tk_func *f) {
    enter(p, f);
    tk_buf_str(p->out, f->is_kernel ? "kernel @" : "func @");
    tk_text_name(p->out, f->name);
    typed_values(p, f->params.n, f->params.at);
    sizes(p, f);
    for (uint32_t i = 0; i < f->results.n; i++) {
        tk_buf_str(p->out, i ? ", " : " -> ");
        tk_type_print(p->out, f->results.at[i]);
    }
    place(p, f->loc);
    tk_buf_str(p->out, " {\n");
    p->depth = 1;
    if (f->grid) {
        tk_buf_str(p->out, "  grid ");
        region(p, f->grid);
        tk_buf_str(p->out, "\n");
    }
    for (const tk_op *op = f->body->first; op; op = op->next) {
        op_line(p, op);
    }
    tk_buf_str(p->out, "}\n");
}

// Where an attribute of the module is written, if it is.
static void attr_place(printer *p, int64_t there, tk_span at) {
    if (p->locs && there) {
        tk_buf_str(p->out, " ");
        span(p, at);
    }
}

static void module_head(printer *p, const tk_module *m) {
    const tk_kernel_attrs *a = &m->attrs;
    tk_buf_fmt(p->out, "module %s", tk_level_name(m->level));
    int_attr(p, "warps", a->warps, 0);
    int_attr(p, "stages", a->stages, 0);
    attr_place(p, a->stages, a->stages_span);
    flag_attr(p, "tuned_stages", a->stages_tuned);
    int_attr(p, "cluster", a->cluster, 0);
    attr_place(p, a->cluster, a->cluster_span);
    flag_attr(p, "persistent", a->persistent);
    int_attr(p, "producers", a->producers, 0);
    int_attr(p, "consumers", a->consumers, 0);
    attr_place(p, a->producers + a->consumers, a->specialize_span);
    int_attr(p, "packed", m->packed, 0);
    int_attr(p, "live", m->live, 0);
    int_attr(p, "group", m->group, 0);
    int_attr(p, "shared", m->shared, 0);
    for (uint32_t i = 0; i < a->require.n; i++) {
        tk_buf_str(p->out, " require=");
        tk_text_name(p->out, a->require.at[i]);
        if (i < a->require_arg.n && a->require_arg.at[i] != -1) {
            tk_buf_fmt(p->out, "(%lld)", (long long)a->require_arg.at[i]);
        }
        if (p->locs && i < a->require_span.n) {
            tk_buf_str(p->out, " ");
            span(p, a->require_span.at[i]);
        }
    }
    tk_buf_str(p->out, "\n");
}

void tk_ir_print(tk_buf *out, const tk_module *m, bool locs) {
    printer p = {.out = out, .m = m, .locs = locs};
    module_head(&p, m);
    tk_buf body; // printed first: it says which layouts there are
    layout_list layouts = {0};
    tk_buf_init(&body, out->arena);
    p.out = &body;
    p.layouts = &layouts;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        tk_buf_str(&body, "\n");
        function(&p, m->funcs.at[i]);
    }
    for (uint32_t i = 0; i < layouts.n; i++) {
        tk_buf_fmt(out, "layout #%u = ", i);
        tk_layout_print(out, layouts.at[i]);
        tk_buf_str(out, "\n");
    }
    tk_buf_add(out, tk_buf_text(&body), body.n);
}

void tk_ir_print_op(tk_buf *out, const tk_func *f, const tk_op *op) {
    printer p = {.out = out, .m = f->module};
    enter(&p, f);
    op_text(&p, op);
}
