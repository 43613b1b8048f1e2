// SPDX-License-Identifier: Apache-2.0
// The disk cache: a folder with one file an entry, named by the hash of everything that it depends
// on, the build included.
//
// A file is written under another name and renamed, so a reader sees all of it or nothing; it holds
// a hash of its contents, so a damaged one is a miss (and is removed). Reading an entry makes it
// young; when the folder grows over its limit the oldest go. Two that make one entry at once both
// write it, with equal contents. Nothing here fails: what does not work is a miss.
#include "runtime/internal.h"

#include "runtime/build_id.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC  "tkc-cache-1\n"
#define SUFFIX ".image"
#define TEMP   "new-"
enum { HASH_DIGITS = 32, MAX_PATH_LENGTH = 4096, MAX_TEMP_AGE = 3600 };
#define MAX_ENTRY ((off_t)1 << 30)

typedef struct entry_head {
    char magic[12];
    uint32_t zero;
    uint64_t size;
    XXH128_canonical_t hash; // of what follows
} entry_head;

static entry_head make_head(const void *data, size_t size) {
    entry_head h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, MAGIC, sizeof h.magic);
    h.size = size;
    XXH128_canonicalFromHash(&h.hash, XXH3_128bits(data, size));
    return h;
}

// ---- Keys

static void add_part(XXH3_state_t *s, const void *data, size_t size) {
    uint64_t n = size; // lengths too, so that no two lists of parts run together alike
    XXH3_128bits_update(s, &n, sizeof n);
    if (size) {
        XXH3_128bits_update(s, data, size);
    }
}

bool cache_key_make(const tkc_config *c, const char *const *part, const size_t *size, size_t n,
                    cache_key *key) {
    size_t id_size;
    const void *id = build_id(&id_size);
    XXH3_state_t *s = c->cache && id ? XXH3_createState() : NULL;
    if (!s) {
        return false;
    }
    XXH3_128bits_reset(s);
    add_part(s, id, id_size);
    for (size_t i = 0; i < n; i++) {
        add_part(s, part[i], size[i]);
    }
    XXH128_canonical_t hash;
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(s));
    XXH3_freeState(s);
    for (size_t i = 0; i < sizeof hash.digest; i++) {
        snprintf(key->text + 2 * i, 3, "%02x", hash.digest[i]);
    }
    return true;
}

static bool path_of(char *path, const char *folder, const char *name, const char *suffix) {
    int n = snprintf(path, MAX_PATH_LENGTH, "%s/%s%s", folder, name, suffix);
    return n > 0 && n < MAX_PATH_LENGTH;
}

// ---- Reading

static bool read_exactly(int fd, void *to, size_t size) {
    char *at = to;
    while (size) {
        ssize_t n = read(fd, at, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool whole_entry(const entry_head *h, const char *data, size_t size) {
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || h->size != size) {
        return false;
    }
    entry_head now = make_head(data, size);
    return memcmp(&now, h, sizeof now) == 0;
}

bool cache_get(const tkc_config *c, const cache_key *key, tk_arena *arena, const void **data,
               size_t *size) {
    char path[MAX_PATH_LENGTH];
    struct stat st;
    entry_head h;
    if (!path_of(path, c->cache, key->text, SUFFIX) || stat(path, &st) != 0 ||
        !S_ISREG(st.st_mode)) {
        return false;
    }
    bool plausible = st.st_size >= (off_t)sizeof h && st.st_size < MAX_ENTRY;
    size_t n = plausible ? (size_t)st.st_size - sizeof h : 0;
    char *block = tk_alloc(arena, n); // before anything is open: it may jump
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool ok = plausible && read_exactly(fd, &h, sizeof h) && read_exactly(fd, block, n) &&
              whole_entry(&h, block, n);
    if (ok) {
        futimens(fd, NULL);
    } else {
        unlink(path);
    }
    close(fd);
    *data = block;
    *size = n;
    return ok;
}

// ---- Writing

static void make_folders(const char *folder) {
    char path[MAX_PATH_LENGTH];
    int n = snprintf(path, sizeof path, "%s", folder);
    if (n <= 0 || n >= (int)sizeof path) {
        return;
    }
    for (char *p = path + 1; *p; p++) {
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0777);
            *p = '/';
        }
    }
    mkdir(path, 0700);
}

static bool write_exactly(int fd, const void *from, size_t size) {
    const char *at = from;
    while (size) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

// ---- The folder

typedef struct cache_file {
    char name[HASH_DIGITS + sizeof SUFFIX];
    uint64_t bytes;
    struct timespec used;
} cache_file;

typedef struct listing {
    const tkc_config *c;
    cache_file *at;
    size_t n, room;
    uint64_t bytes;
} listing;

static bool is_entry(const char *name) {
    return strspn(name, "0123456789abcdef") == HASH_DIGITS &&
           strcmp(name + HASH_DIGITS, SUFFIX) == 0;
}

static bool add_file(listing *l, const char *name, const struct stat *st) {
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        cache_file *at = mem_alloc(l->c, room * sizeof *at);
        if (!at) {
            return false;
        }
        if (l->n) {
            memcpy(at, l->at, l->n * sizeof *at);
        }
        mem_free(l->c, l->at);
        l->at = at;
        l->room = room;
    }
    cache_file *f = &l->at[l->n++];
    memcpy(f->name, name, sizeof f->name); // is_entry knows its length
    f->bytes = (uint64_t)st->st_size;
    f->used = st->st_mtim;
    l->bytes += f->bytes;
    return true;
}

// What a process that was ended left behind.
static void drop_old_temp(const char *path, const struct stat *st) {
    if (time(NULL) - st->st_mtim.tv_sec > MAX_TEMP_AGE) {
        unlink(path);
    }
}

// False where the folder cannot be read; out of memory ends the list early.
static bool list_folder(listing *l, const char *folder) {
    DIR *d = opendir(folder);
    if (!d) {
        return false;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char path[MAX_PATH_LENGTH];
        struct stat st;
        bool entry = is_entry(e->d_name), temp = strncmp(e->d_name, TEMP, sizeof TEMP - 1) == 0;
        if ((!entry && !temp) || !path_of(path, folder, e->d_name, "") || lstat(path, &st) != 0 ||
            !S_ISREG(st.st_mode)) {
            continue;
        }
        if (temp) {
            drop_old_temp(path, &st);
        } else if (!add_file(l, e->d_name, &st)) {
            break;
        }
    }
    closedir(d);
    return true;
}

static int by_age(const void *x, const void *y) {
    const cache_file *a = x, *b = y;
    if (a->used.tv_sec != b->used.tv_sec) {
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    }
    return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

static void remove_oldest(listing *l, const char *folder, uint64_t keep) {
    uint64_t left = l->bytes;
    qsort(l->at, l->n, sizeof *l->at, by_age);
    for (size_t i = 0; i < l->n && left > keep; i++) {
        char path[MAX_PATH_LENGTH];
        left -= l->at[i].bytes;
        if (path_of(path, folder, l->at[i].name, "")) {
            unlink(path);
        }
    }
}

static void shrink(const tkc_config *c) {
    listing l = {.c = c};
    if (list_folder(&l, c->cache) && l.bytes > c->cache_max) {
        remove_oldest(&l, c->cache, c->cache_max - c->cache_max / 10); // some room for the next
    }
    mem_free(c, l.at);
}

void cache_put(const tkc_config *c, const cache_key *key, const void *data, size_t size) {
    char path[MAX_PATH_LENGTH], temp[MAX_PATH_LENGTH];
    entry_head h = make_head(data, size);
    if (size + sizeof h > c->cache_max || size + sizeof h >= (size_t)MAX_ENTRY ||
        !path_of(path, c->cache, key->text, SUFFIX) || !path_of(temp, c->cache, TEMP, "XXXXXX")) {
        return;
    }
    int fd = mkstemp(temp);
    if (fd < 0) {
        make_folders(c->cache);
        path_of(temp, c->cache, TEMP, "XXXXXX");
        fd = mkstemp(temp);
    }
    if (fd < 0) {
        return;
    }
    bool ok = write_exactly(fd, &h, sizeof h) && write_exactly(fd, data, size);
    ok = close(fd) == 0 && ok;
    if (!ok || rename(temp, path) != 0) {
        unlink(temp);
        return;
    }
    shrink(c);
}

// ---- For the user

static const tkc_config defaults;

tkc_status tkc_cache_size(const char *folder, uint64_t *entries, uint64_t *bytes) {
    if (!folder || !entries || !bytes) {
        return TKC_ERROR_ARGUMENT;
    }
    listing l = {.c = &defaults};
    errno = 0;
    bool read = list_folder(&l, folder);
    *entries = l.n;
    *bytes = l.bytes;
    mem_free(&defaults, l.at);
    return read || errno == ENOENT ? TKC_OK : TKC_ERROR_IO;
}

tkc_status tkc_cache_clear(const char *folder, uint64_t *entries) {
    if (!folder) {
        return TKC_ERROR_ARGUMENT;
    }
    listing l = {.c = &defaults};
    errno = 0;
    bool read = list_folder(&l, folder) || errno == ENOENT;
    uint64_t removed = 0, left = 0;
    for (size_t i = 0; i < l.n; i++) {
        char path[MAX_PATH_LENGTH];
        bool gone = path_of(path, folder, l.at[i].name, "") && unlink(path) == 0;
        removed += gone;
        left += !gone && errno != ENOENT; // another process may have been first
    }
    mem_free(&defaults, l.at);
    if (entries) {
        *entries = removed;
    }
    return read && left == 0 ? TKC_OK : TKC_ERROR_IO;
}
