// SPDX-License-Identifier: Apache-2.0
// Config, context, status texts.
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *tkc_version(void) {
    return TEXT(TKC_VERSION_MAJOR) "." TEXT(TKC_VERSION_MINOR) "." TEXT(TKC_VERSION_PATCH);
}

void tkc_text_free(tkc_text *t) {
    if (t) {
        free(t->at);
        t->at = NULL;
        t->size = 0;
    }
}

tkc_config *tkc_config_create(void) { return calloc(1, sizeof(tkc_config)); }

void tkc_config_destroy(tkc_config *c) {
    if (c) {
        free(c->cache);
        free(c);
    }
}

void tkc_config_allocator(tkc_config *c, void *(*alloc)(void *user, size_t size),
                          void (*release)(void *user, void *block), void *user) {
    if (c) {
        bool both = alloc && release; // one without the other would mix allocators
        c->from = both ? (tk_allocator){alloc, release, user} : (tk_allocator){NULL, NULL, NULL};
    }
}

void tkc_config_threads(tkc_config *c, unsigned n) {
    if (c) {
        c->threads = n;
    }
}

void tkc_config_werror(tkc_config *c, bool on) {
    if (c) {
        c->werror = on;
    }
}

void tkc_config_debug_room(tkc_config *c, size_t bytes) {
    if (c) {
        c->debug_room = bytes;
    }
}

void tkc_config_debug(tkc_config *c, bool on) {
    if (c) {
        c->debug = on;
    }
}

void tkc_config_import(tkc_config *c, tkc_import_fn fn, void *user) {
    if (c) {
        c->import = fn;
        c->import_user = user;
    }
}

void tkc_config_print(tkc_config *c, void (*fn)(void *user, const char *line), void *user) {
    if (c) {
        c->print = fn;
        c->print_user = user;
    }
}

tkc_status tkc_config_cache(tkc_config *c, const char *folder, uint64_t max_bytes) {
    if (!c) {
        return TKC_ERROR_ARGUMENT;
    }
    char *copy = NULL;
    if (folder && *folder) {
        size_t n = strlen(folder) + 1;
        copy = malloc(n);
        if (!copy) {
            return TKC_ERROR_MEMORY;
        }
        memcpy(copy, folder, n);
    }
    free(c->cache);
    c->cache = copy;
    c->cache_max = max_bytes;
    return TKC_OK;
}

static bool make_locks(tkc_context *c) {
    if (pthread_mutex_init(&c->print_lock, NULL) != 0) {
        return false;
    }
    if (pthread_mutex_init(&c->gpu_lock, NULL) != 0) {
        pthread_mutex_destroy(&c->print_lock);
        return false;
    }
    return true;
}

static void free_context(tkc_context *c) {
    tkc_config config = c->config;
    mem_free(&config, config.cache);
    mem_free(&config, c);
}

tkc_status tkc_context_create(const tkc_config *config, tkc_context **context) {
    if (!context) {
        return TKC_ERROR_ARGUMENT;
    }
    *context = NULL;
    static const tkc_config defaults;
    if (!config) {
        config = &defaults;
    }
    tkc_context *c = mem_alloc(config, sizeof *c);
    if (!c) {
        return TKC_ERROR_MEMORY;
    }
    c->config = *config;
    if (config->cache) {
        size_t n = strlen(config->cache) + 1;
        c->config.cache = mem_alloc(config, n);
        if (c->config.cache) {
            memcpy(c->config.cache, config->cache, n);
        }
    }
    if ((config->cache && !c->config.cache) || !make_locks(c)) {
        free_context(c);
        return TKC_ERROR_MEMORY;
    }
    *context = c;
    return TKC_OK;
}

void tkc_context_destroy(tkc_context *context) {
    if (!context) {
        return;
    }
    gpu_context_destroy(context);
    pthread_mutex_destroy(&context->gpu_lock);
    pthread_mutex_destroy(&context->print_lock);
    free_context(context);
}
