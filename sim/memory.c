// SPDX-License-Identifier: Apache-2.0
// Addresses: to which space they belong, whether an access is allowed, how many sectors and
// wavefronts a warp's request takes.
#include "sim/machine.h"

#include <stdlib.h>

tk_sim_space tk_sim_resolve(tk_sim_space space, uint64_t *address) {
    if (space != TK_SIM_GENERIC) {
        return space != TK_SIM_CLUSTER || *address >= TK_SIM_CLUSTER_STEP ? space : TK_SIM_SHARED;
    }
    unsigned window = (unsigned)(*address >> 60);
    if (window < TK_SIM_SHARED || window > TK_SIM_PARAM) {
        return TK_SIM_GLOBAL;
    }
    *address &= (UINT64_C(1) << 60) - 1;
    bool other = window == TK_SIM_SHARED && *address >= TK_SIM_CLUSTER_STEP;
    return other ? TK_SIM_CLUSTER : (tk_sim_space)window;
}

// ---- Global memory

static int by_address(const void *a, const void *b) {
    const tk_sim_region *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

void tk_sim_memory_begin(tk_sim_grid *g) {
    const tk_sim_program *p = g->program;
    const tk_sim_launch *l = g->launch;
    g->module_global = tk_alloc(g->arena, p->global_bytes + 16);
    g->module_const = tk_alloc(g->arena, p->const_bytes + 16);
    g->region = TK_NEW_ARRAY(g->arena, tk_sim_region, l->nregion + p->variables.n + 1);
    for (size_t k = 0; k < l->nregion; k++) {
        if (l->region[k].size) {
            g->region[g->nregion++] = l->region[k];
        }
    }
    for (uint32_t k = 0; k < p->variables.n; k++) {
        const tk_sim_variable *v = &p->variables.at[k];
        unsigned char *base = v->space == TK_SIM_GLOBAL ? g->module_global : g->module_const;
        if (v->space == TK_SIM_SHARED || v->bytes == 0) {
            continue;
        }
        if (v->data) {
            memcpy(base + v->offset, v->data, v->bytes);
        }
        if (v->space == TK_SIM_GLOBAL) {
            g->region[g->nregion++] =
                (tk_sim_region){(uint64_t)(uintptr_t)(base + v->offset), v->bytes, false,
                                tk_format(g->arena, "variable '%s'", v->name)};
        }
    }
    qsort(g->region, g->nregion, sizeof *g->region, by_address);
    for (uint32_t k = 0; k < p->relocs.n; k++) {
        const tk_sim_reloc *x = &p->relocs.at[k];
        const tk_sim_variable *in = &p->variables.at[x->in];
        uint64_t address = tk_sim_variable_address(g, x->of, x->generic) + (uint64_t)x->plus;
        unsigned char *base = in->space == TK_SIM_GLOBAL ? g->module_global : g->module_const;
        memcpy(base + in->offset + x->at, &address, sizeof address);
    }
}

uint64_t tk_sim_variable_address(const tk_sim_grid *g, uint32_t index, bool generic) {
    const tk_sim_variable *v = &g->program->variables.at[index];
    uint64_t window = generic ? TK_SIM_WINDOW(v->space) : 0;
    switch (v->space) {
    case TK_SIM_SHARED:
    case TK_SIM_CLUSTER:
        return window + TK_SIM_SHARED_BASE + v->offset;
    case TK_SIM_CONST:
        return window + TK_SIM_CONST_BASE + v->offset;
    case TK_SIM_GLOBAL:
    case TK_SIM_GENERIC:
    case TK_SIM_LOCAL:
    case TK_SIM_PARAM:
        break;
    }
    return (uint64_t)(uintptr_t)g->module_global + v->offset;
}

// The last region that begins at or before the address; regions may overlap, so those before it are
// tried as well, as long as they might reach.
static const tk_sim_region *region_at(tk_sim_grid *g, uint64_t address, uint32_t bytes) {
    const tk_sim_region *r = g->nregion ? &g->region[g->last_region] : NULL;
    if (r && address >= r->begin && address - r->begin < r->size &&
        r->size - (address - r->begin) >= bytes) {
        return r;
    }
    for (size_t k = 0; k < g->nregion; k++) {
        r = &g->region[k];
        if (address >= r->begin && address - r->begin < r->size &&
            r->size - (address - r->begin) >= bytes) {
            g->last_region = k;
            return r;
        }
    }
    return NULL;
}

static const char *where(const tk_sim_grid *g, uint64_t address) {
    const tk_sim_region *near = NULL;
    uint64_t best = UINT64_MAX;
    for (size_t k = 0; k < g->nregion; k++) {
        const tk_sim_region *r = &g->region[k];
        uint64_t end = r->begin + r->size;
        uint64_t away = address < r->begin ? r->begin - address
                        : address >= end   ? address - end + 1
                                           : 0;
        if (away < best) {
            best = away;
            near = r;
        }
    }
    if (!near || best > (UINT64_C(1) << 30)) {
        return "no tensor is near";
    }
    if (address < near->begin) {
        return tk_format(g->arena, "%llu bytes before %s",
                         (unsigned long long)(near->begin - address), near->name);
    }
    return tk_format(g->arena, "byte %llu of %s, which has %llu",
                     (unsigned long long)(address - near->begin), near->name,
                     (unsigned long long)near->size);
}

static const char *does(tk_sim_access access) {
    return access == TK_SIM_READ ? "reads" : access == TK_SIM_WRITE ? "writes" : "updates";
}

unsigned char *tk_sim_global_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                uint64_t address, uint32_t bytes, tk_sim_access access) {
    tk_sim_grid *g = w->grid;
    const tk_sim_region *r = region_at(g, address, bytes);
    if (!r) {
        tk_sim_fail(w, i, lane, "out-of-bounds", "%s %u bytes of global memory at 0x%llx: %s",
                    does(access), bytes, (unsigned long long)address, where(g, address));
        return NULL;
    }
    if (r->read_only && access != TK_SIM_READ) {
        tk_sim_fail(w, i, lane, "read-only", "%s %s, which is an input", does(access), r->name);
        return NULL;
    }
    return (unsigned char *)(uintptr_t)address;
}

// ---- The other spaces: one piece of memory each

static unsigned char *inside(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, const char *space,
                             unsigned char *memory, uint64_t base, uint64_t size, uint64_t address,
                             uint32_t bytes, tk_sim_access access) {
    if (address >= base && address - base < size && size - (address - base) >= bytes) {
        return memory + (address - base);
    }
    tk_sim_fail(w, i, lane, "out-of-bounds",
                "%s %u bytes of %s memory at 0x%llx; there are %llu bytes from 0x%llx on",
                does(access), bytes, space, (unsigned long long)address, (unsigned long long)size,
                (unsigned long long)base);
    return NULL;
}

static unsigned char *shared_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                const tk_sim_block *of, uint64_t address, uint32_t bytes,
                                tk_sim_access access, const void *value) {
    const uint32_t reserved = w->grid->reserved;
    const bool below = reserved && address >= TK_SIM_RESERVED_BASE && address < TK_SIM_SHARED_BASE;
    unsigned char *p = below ? inside(w, i, lane, "reserved shared", of->shared + reserved, 0,
                                      TK_SIM_SHARED_BASE, address, bytes, access)
                             : inside(w, i, lane, "shared", of->shared, TK_SIM_SHARED_BASE,
                                      w->grid->shared_bytes, address, bytes, access);
    if (!p) {
        return NULL;
    }
    if (of != w->block && !tk_sim_shadow_started(w, lane, of)) {
        tk_sim_fail(w, i, lane, "not-started",
                    "%s shared memory of block %u of the cluster, and nothing says that it has "
                    "started",
                    does(access), of->rank);
        return NULL;
    }
    bool same = value && memcmp(p, value, bytes) == 0;
    uint32_t offset = (uint32_t)(p - w->cluster->shared);
    return tk_sim_async_access(w, i, lane, offset, bytes, access) &&
                   tk_sim_shadow_access(w, i, lane, offset, bytes, access, same)
               ? p
               : NULL;
}

// Of a block of the cluster, whose rank is in the address.
static unsigned char *cluster_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane,
                                 uint64_t address, uint32_t bytes, tk_sim_access access,
                                 const void *value) {
    uint64_t rank = address / TK_SIM_CLUSTER_STEP - 1;
    if (rank >= w->cluster->nblock) {
        tk_sim_fail(w, i, lane, "out-of-bounds",
                    "%s shared memory of block %llu of a cluster of %u (0x%llx)", does(access),
                    (unsigned long long)rank, w->cluster->nblock, (unsigned long long)address);
        return NULL;
    }
    const tk_sim_block *of = &w->cluster->block[rank];
    if (!of->running) {
        tk_sim_fail(w, i, lane, "ended",
                    "%s shared memory of block %u of the cluster, which has "
                    "ended",
                    does(access), of->rank);
        return NULL;
    }
    return shared_at(w, i, lane, of, address % TK_SIM_CLUSTER_STEP, bytes, access, value);
}

unsigned char *tk_sim_at(tk_sim_warp *w, const tk_sim_inst *i, uint32_t lane, tk_sim_space space,
                         uint64_t address, uint32_t bytes, tk_sim_access access,
                         const void *value) {
    tk_sim_grid *g = w->grid;
    if (address % bytes != 0) {
        tk_sim_fail(w, i, lane, "misaligned", "%s %u bytes at 0x%llx, which is no multiple of %u",
                    does(access), bytes, (unsigned long long)address, bytes);
        return NULL;
    }
    space = tk_sim_resolve(space, &address);
    if ((space == TK_SIM_CONST || space == TK_SIM_PARAM) && access != TK_SIM_READ) {
        tk_sim_fail(w, i, lane, "read-only", "%s %s memory", does(access),
                    space == TK_SIM_CONST ? "constant" : "parameter");
        return NULL;
    }
    switch (space) {
    case TK_SIM_SHARED:
        return shared_at(w, i, lane, w->block, address, bytes, access, value);
    case TK_SIM_CLUSTER:
        return cluster_at(w, i, lane, address, bytes, access, value);
    case TK_SIM_LOCAL:
        return inside(w, i, lane, "local",
                      w->block->local + (size_t)tk_sim_thread(w, lane) * g->local_stride,
                      TK_SIM_LOCAL_BASE, g->local_bytes, address, bytes, access);
    case TK_SIM_CONST:
        return inside(w, i, lane, "constant", g->module_const, TK_SIM_CONST_BASE,
                      g->program->const_bytes, address, bytes, access);
    case TK_SIM_PARAM:
        return inside(w, i, lane, "parameter", g->params, 0, g->entry->param_bytes, address, bytes,
                      access);
    case TK_SIM_GENERIC:
    case TK_SIM_GLOBAL:
        break;
    }
    unsigned char *p = tk_sim_global_at(w, i, lane, address, bytes, access);
    bool stores = p && access != TK_SIM_READ;
    return !stores || tk_sim_maps_stored(w, i, lane, address, bytes, value) ? p : NULL;
}

// ---- Requests of warps

// Numbers that differ. Most come in rising order: what is above all so far need not be looked for.
typedef struct number_set {
    uint64_t at[TK_SIM_LANES * 4], most;
    unsigned n;
} number_set;

static bool add_new(number_set *s, uint64_t x) {
    if (s->n == 0 || x > s->most) {
        s->most = x;
    } else {
        for (unsigned k = s->n; k-- > 0;) {
            if (s->at[k] == x) {
                return false;
            }
        }
    }
    s->at[s->n++] = x;
    return true;
}

static void count_global(tk_sim_count *c, uint32_t mask, const uint64_t *address, uint32_t bytes) {
    number_set sector;
    sector.n = 0;
    sector.most = 0;
    TK_SIM_EACH(l, mask) {
        uint64_t first = address[l] / 32, last = (address[l] + bytes - 1) / 32;
        add_new(&sector, first);
        if (last != first) {
            add_new(&sector, last);
        }
    }
    c->global_requests++;
    c->global_sectors += sector.n;
}

// Passes that these lanes' words take: the most different words of one bank.
static unsigned passes(uint32_t mask, const uint64_t *address, uint32_t bytes, unsigned *words) {
    number_set word;
    unsigned of_bank[32] = {0}, most = 0;
    word.n = 0;
    word.most = 0;
    TK_SIM_EACH(l, mask) {
        for (uint32_t k = 0; k < bytes; k += 4) {
            uint64_t x = (address[l] + k) / 4;
            if (add_new(&word, x)) {
                unsigned count = ++of_bank[x % 32];
                most = count > most ? count : most;
            }
        }
    }
    *words = word.n;
    return most;
}

// All lanes read what the lane beside them, or the one after that, reads.
static bool in_pairs(uint32_t mask, const uint64_t *address) {
    bool next = true, second = true;
    TK_SIM_EACH(l, mask) {
        next = next && (!(mask >> (l ^ 1) & 1) || address[l] == address[l ^ 1]);
        second = second && (!(mask >> (l ^ 2) & 1) || address[l] == address[l ^ 2]);
    }
    return next || second;
}

// Lanes with 8 bytes go in two halves, those with 16 in four quarters. Where they read in pairs,
// two parts go as one.
static void count_shared(tk_sim_count *c, uint32_t mask, const uint64_t *address, uint32_t bytes,
                         bool load) {
    unsigned groups = bytes <= 4 ? 1 : bytes <= 8 ? 2 : 4;
    groups = groups > 1 && load && in_pairs(mask, address) ? groups / 2 : groups;
    unsigned lanes = TK_SIM_LANES / groups;
    uint64_t waves = 0, ideal = 0;
    for (unsigned k = 0; k < groups; k++) {
        uint32_t part = mask & (uint32_t)(((UINT64_C(1) << lanes) - 1) << (k * lanes));
        unsigned words;
        unsigned n = part ? passes(part, address, bytes < 16 ? bytes : 16, &words) : 0;
        waves += n;
        ideal += n ? (words + 31) / 32 : 0;
    }
    c->shared_requests++;
    c->shared_wavefronts += waves;
    c->shared_conflicts += waves - ideal;
}

void tk_sim_count_request(tk_sim_warp *w, const tk_sim_inst *i, uint32_t mask, tk_sim_space space,
                          const uint64_t *address, uint32_t bytes) {
    tk_sim_count *c = &w->grid->count[tk_sim_index(w, i)];
    uint64_t a[TK_SIM_LANES] = {0};
    uint32_t shared = 0, global = 0;
    TK_SIM_EACH(l, mask) {
        a[l] = address[l];
        tk_sim_space s = tk_sim_resolve(space, &a[l]);
        shared |= (uint32_t)(s == TK_SIM_SHARED || s == TK_SIM_CLUSTER) << l;
        global |= (uint32_t)(s == TK_SIM_GLOBAL) << l;
    }
    if (global) {
        count_global(c, global, a, bytes);
    }
    if (shared) {
        count_shared(c, shared, a, bytes, strncmp(i->name, "ld.", 3) == 0);
    }
}
