// SPDX-License-Identifier: Apache-2.0
// tkc cache: the folder where compiled GPU kernels are kept.
#include "cache.h"
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cache_settings {
    common_settings common;
    const char *folder;
} cache_settings;

const char *cache_folder(tool *t) {
    const char *own = getenv("TKC_CACHE"), *base = getenv("XDG_CACHE_HOME");
    if (own) {
        return *own ? own : NULL;
    }
    if (base && base[0] == '/') { // a relative one is to be ignored, says its specification
        return tool_format(t, "%s/tkc", base);
    }
    const char *home = getenv("HOME");
    return home && home[0] == '/' ? tool_format(t, "%s/.cache/tkc", home) : NULL;
}

static void show(tool *t, const char *folder) {
    uint64_t entries, bytes;
    if (tkc_cache_size(folder, &entries, &bytes) != TKC_OK) {
        tool_error(t, CODE_ENVIRONMENT, NULL, "cannot read the folder '%s'", folder);
        return;
    }
    printf("%s: %llu kernel%s, %.1f of at most %.1f MB\n", folder, (unsigned long long)entries,
           entries == 1 ? "" : "s", 1e-6 * (double)bytes, 1e-6 * (double)CACHE_MAX_BYTES);
}

static void clear(tool *t, const char *folder) {
    uint64_t entries;
    if (tkc_cache_clear(folder, &entries) != TKC_OK) {
        tool_error(t, CODE_ENVIRONMENT, NULL, "cannot clear the folder '%s'", folder);
        return;
    }
    printf("%s: %llu kernel%s removed\n", folder, (unsigned long long)entries,
           entries == 1 ? "" : "s");
}

static void run(tool *t, void *settings) {
    cache_settings *s = settings;
    const text_list *words = &s->common.files;
    const char *what = words->n ? words->at[0] : "show";
    bool is_show = strcmp(what, "show") == 0, is_clear = strcmp(what, "clear") == 0;
    if (words->n > 1 || (!is_show && !is_clear)) {
        tool_usage(t, "tkc cache takes show (the default) or clear");
        return;
    }
    const char *folder = s->folder ? s->folder : cache_folder(t);
    if (!folder) {
        tool_error(
            t, CODE_ENVIRONMENT, NULL,
            "there is no cache: TKC_CACHE is empty, or neither HOME nor XDG_CACHE_HOME is set");
    } else if (is_show) {
        show(t, folder);
    } else {
        clear(t, folder);
    }
}

static const option options[] = {
    {"--folder", NULL, OPTION_TEXT, "DIR", offsetof(cache_settings, folder),
     "another folder than $TKC_CACHE, $XDG_CACHE_HOME/tkc or ~/.cache/tkc", NULL},
    COMMON_OPTIONS(cache_settings),
};

const command command_cache = {
    .name = "cache",
    .usage = "cache [show|clear] [OPTION]...",
    .what = "Tells how much is kept of compiled GPU kernels, and where, or removes it.",
    .option = options,
    .noption = sizeof options / sizeof *options,
    .settings = sizeof(cache_settings),
    .run = run,
};
