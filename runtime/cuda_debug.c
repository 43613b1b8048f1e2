// SPDX-License-Identifier: Apache-2.0
// Launches of debug images: they are waited for, and what they left behind is read back, printed
// and reported (ptx/debug.h).
#include "ir/show.h"
#include "ptx/debug.h"
#include "runtime/cuda_driver.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ROOM = 1 << 20 };

static size_t room_of(const tkc_config *c) {
    size_t room = c->debug_room ? c->debug_room : DEFAULT_ROOM;
    return room / TK_DEBUG_RECORD_ALIGN * TK_DEBUG_RECORD_ALIGN;
}

size_t gpu_debug_bytes(const tkc_config *c, const tk_image *i) {
    return i->ndebug ? sizeof(tk_debug_head) + room_of(c) : 0;
}

typedef struct debug_run {
    const cuda_device *d; // NULL: it ran elsewhere
    const tk_image *image;
    const gpu_packed *p;
    void *stream;
    size_t room;
    tk_debug_head head;
    unsigned char *records; // [room]
    size_t size;            // of those that are whole
    bool capturing, launched;
} debug_run;

// ---- The launch

static tk_debug_head begin_head(size_t room) {
    return (tk_debug_head){.fault = TK_DEBUG_NO_FAULT, .end = room, .room = room};
}

// Bytes of the records that are whole.
static size_t whole_records(const debug_run *r) {
    uint64_t size = r->head.used < r->head.end ? r->head.used : r->head.end;
    return size < r->room ? (size_t)size : r->room;
}

// With the kernel's debug lock and the device's context.
static cu_result run_and_read(debug_run *r) {
    const cuda_driver *f = r->d->driver;
    cu_address at = r->p->loaded->debug;
    int capturing = 0;
    r->head = begin_head(r->room);
    cu_result e = f->stream_capturing(r->stream, &capturing);
    r->capturing = e == 0 && capturing != 0;
    if (e || r->capturing) {
        return e;
    }
    e = f->copy_in(at, &r->head, sizeof r->head);
    e = e ? e : gpu_run(r->d, r->p, r->stream);
    r->launched = e == 0;
    e = e ? e : f->stream_synchronize(r->stream);
    e = e ? e : f->copy_out(&r->head, at, sizeof r->head);
    if (e == 0) {
        r->size = whole_records(r);
    }
    return e || !r->size ? e : f->copy_out(r->records, at + sizeof r->head, r->size);
}

static cu_result run_locked(debug_run *r) {
    cuda_scope scope;
    pthread_mutex_lock(&r->p->loaded->debug_lock);
    cu_result e = cuda_enter(r->d, &scope);
    if (e == 0) {
        e = run_and_read(r);
        cuda_leave(r->d, &scope);
    }
    pthread_mutex_unlock(&r->p->loaded->debug_lock);
    return e;
}

// ---- Lines

typedef struct line {
    uint32_t program;
    size_t at; // of the record: records of one program stand in the order of time
} line;

static int by_program(const void *x, const void *y) {
    const line *a = x, *b = y;
    if (a->program != b->program) {
        return a->program < b->program ? -1 : 1;
    }
    return a->at < b->at ? -1 : a->at > b->at;
}

static tk_show_value packed_value(const tk_debug_value *v) {
    tk_show_value s = {.dtype = v->dtype, .rank = v->rank, .packed = true};
    int64_t stride = (int64_t)tk_dtype_size(v->dtype);
    memcpy(s.dim, v->dim, sizeof s.dim);
    for (uint32_t a = v->rank; a-- > 0;) {
        s.stride[a] = stride;
        stride *= tk_show_extent(v->rank, v->dim, a);
    }
    return s;
}

static void print_record(tk_work *w, tkc_context *c, const debug_run *r, const line *l) {
    tk_debug_record head;
    const unsigned char *record = r->records + l->at;
    memcpy(&head, record, sizeof head);
    const tk_debug_site *site = &r->image->debug[head.site];
    int64_t program[TK_MAX_GRID] = {0};
    program_place(head.program, r->p->ngrid, r->p->grid, program);
    size_t room = tk_show_room(site->text);
    tk_show_value *v = TK_NEW_ARRAY(&w->arena, tk_show_value, site->nvalue + 1);
    for (uint32_t i = 0; i < site->nvalue; i++) {
        v[i] = packed_value(&site->value[i]);
        room += tk_show_value_room(&v[i]);
    }
    char *text = tk_alloc(&w->arena, room);
    tk_show s = tk_show_begin(text, room, site->text, r->p->ngrid, program);
    for (uint32_t i = 0; i < site->nvalue; i++) {
        tk_show_next(&s, &v[i], record + site->value[i].offset);
    }
    tk_show_end(&s);
    print_line(c, text);
}

// A kernel that wrote where it should not may have left anything: what makes no sense ends the
// list.
static size_t find_records(const debug_run *r, line *out) {
    const tk_image *i = r->image;
    size_t n = 0, at = 0;
    while (r->size - at >= sizeof(tk_debug_record)) {
        tk_debug_record head;
        memcpy(&head, r->records + at, sizeof head);
        if (head.site >= i->ndebug || i->debug[head.site].kind != TK_DEBUG_PRINT ||
            head.program >= r->p->programs || i->debug[head.site].bytes > r->size - at) {
            break;
        }
        out[n++] = (line){head.program, at};
        at += i->debug[head.site].bytes;
    }
    return n;
}

static void print_all(tk_work *w, tkc_context *c, const debug_run *r) {
    line *lines = TK_NEW_ARRAY(&w->arena, line, r->size / sizeof(tk_debug_record) + 1);
    size_t n = find_records(r, lines);
    qsort(lines, n, sizeof *lines, by_program);
    for (size_t i = 0; i < n; i++) {
        print_record(w, c, r, &lines[i]);
    }
}

// ---- What is said

static void say_lost(tk_work *w, const tk_kernel_info *info, const debug_run *r) {
    tk_diag *d = tk_warning(&w->diags, info->item->span, "lines-lost",
                            "%llu printed lines did not fit the %zu bytes that a launch has for "
                            "them, and are lost",
                            (unsigned long long)r->head.lost, r->room);
    tk_help(&w->diags, d, (tk_span){0, 0, 0}, "tkc_config_debug_room gives more");
    if (w->config->werror && w->status == TKC_OK) {
        w->status = TKC_ERROR_CHECK;
    }
}

static void say_fault(tk_work *w, const tk_kernel_info *info, const debug_run *r) {
    const tk_image *image = r->image;
    uint64_t element = r->head.fault & ((1U << TK_DEBUG_ELEMENT_BITS) - 1);
    uint64_t number = r->head.fault >> TK_DEBUG_ELEMENT_BITS;
    uint64_t at = number & ((1U << TK_DEBUG_SITE_BITS) - 1);
    TK_CHECK(&w->arena, at < image->ndebug && image->debug[at].nvalue > 0);
    const tk_debug_site *site = &image->debug[at];
    const tk_debug_value *v = &site->value[0];
    int64_t program[TK_MAX_GRID] = {0}, index[TK_MAX_RANK] = {0};
    program_place(number >> TK_DEBUG_SITE_BITS, r->p->ngrid, r->p->grid, program);
    tk_index_of((int64_t)element, v->rank, v->dim, index);
    failed_claim c = {.is_assume = site->kind == TK_DEBUG_ASSUME,
                      .span = site->nplace ? site->place[0] : (tk_span){0, 0, 0},
                      .text = site->text,
                      .program = program,
                      .ngrid = r->p->ngrid,
                      .rank = v->rank,
                      .index = index};
    tk_diag *d = claim_failed(w, info, &c);
    for (uint32_t i = 1; i < site->nplace; i++) {
        tk_note(&w->diags, d, site->place[i], "called from here");
    }
}

static void report_driver(tk_work *w, const tkc_kernel *k, const debug_run *r, cu_result e) {
    if (r->capturing) {
        work_fail(w, TKC_ERROR_LAUNCH, "debug-capture",
                  "kernel '%s' is compiled for debugging: its launches wait for their end, so they "
                  "cannot be captured",
                  k->info->name);
    } else if (r->launched) {
        cuda_fail(w, r->d->driver, e, k->info->item->span, "kernel '%s' failed on %s",
                  k->info->name, r->d->label);
    } else {
        gpu_run_failed(w, r->d, r->p, e);
    }
}

// Prints and reports what the run left behind.
static bool say_all(tk_work *w, tkc_context *c, const tkc_kernel *k, const debug_run *r) {
    print_all(w, c, r);
    if (r->head.lost) {
        say_lost(w, k->info, r);
    }
    if (r->head.fault != TK_DEBUG_NO_FAULT) {
        say_fault(w, k->info, r);
    }
    return w->diags.errors == 0;
}

void gpu_debug_begin(const tkc_config *c, void *buffer) {
    tk_debug_head head = begin_head(room_of(c));
    memcpy(buffer, &head, sizeof head);
}

bool gpu_debug_end(tk_work *w, tkc_context *c, const tkc_kernel *k, const tk_image *i,
                   const gpu_packed *p, void *buffer) {
    debug_run r = {.image = i, .p = p, .room = room_of(w->config)};
    memcpy(&r.head, buffer, sizeof r.head);
    r.records = (unsigned char *)buffer + sizeof r.head;
    r.size = whole_records(&r);
    return say_all(w, c, k, &r);
}

bool gpu_run_debug(tk_work *w, tkc_device *device, const tkc_kernel *k, const gpu_packed *p,
                   void *stream) {
    cuda_device *d = device->state;
    debug_run *r = TK_NEW(&w->arena, debug_run);
    *r = (debug_run){.d = d,
                     .image = p->loaded->variant->image,
                     .p = p,
                     .stream = stream,
                     .room = room_of(w->config)};
    if (cuda_forked(d->driver)) {
        cuda_fail_forked(w);
        return false;
    }
    if (p->programs == 0) {
        return true;
    }
    r->records = tk_alloc(&w->arena, r->room);
    cu_result e = run_locked(r);
    if (e || r->capturing) {
        report_driver(w, k, r, e);
        return false;
    }
    atomic_store_explicit(&d->last, p->loaded, memory_order_relaxed);
    return say_all(w, device->context, k, r);
}
