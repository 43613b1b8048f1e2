// SPDX-License-Identifier: Apache-2.0
// Files: read whole, written whole or not at all.
#define _XOPEN_SOURCE 700 // realpath
#include "io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool failed(tool *t, const char *doing, const char *path) {
    tool_error(t, CODE_ENVIRONMENT, NULL, "%s '%s': %s", doing, path,
               strerror(errno ? errno : EIO));
    return false;
}

bool file_read(tool *t, const char *path, file_text *out) {
    bool standard = strcmp(path, "-") == 0;
    out->name = standard ? "<stdin>" : path;
    errno = 0;
    FILE *f = standard ? stdin : fopen(path, "rb");
    if (!f) {
        return failed(t, "opening", path);
    }
    size_t room = 1 << 16, n = 0;
    char *at = malloc(room);
    while (at) {
        n += fread(at + n, 1, room - n, f);
        if (n < room) {
            break;
        }
        char *grown = room > SIZE_MAX / 2 ? NULL : realloc(at, room * 2);
        if (!grown) {
            free(at);
        }
        at = grown;
        room *= 2;
    }
    bool ok = at && !ferror(f);
    if (!at) {
        tool_error(t, CODE_ENVIRONMENT, NULL, "out of memory while reading '%s'", out->name);
    } else if (!ok) {
        failed(t, "reading", out->name);
    }
    if (!standard) {
        fclose(f);
    }
    if (ok) {
        out->at = tool_strndup(t, at, n);
        out->size = n;
    }
    free(at);
    return ok;
}

static char *beside(tool *t, const char *real) {
    const char *slash = strrchr(real, '/');
    int folder = slash ? (int)(slash - real) + 1 : 0;
    return tool_format(t, "%.*s.tkc-XXXXXX", folder, real);
}

// The permissions that the file has, or that a new one would get.
static mode_t mode_for(const struct stat *old) {
    if (old) {
        return old->st_mode & 07777;
    }
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

bool file_create(tool *t, const char *path, file_output *out) {
    *out = (file_output){.path = path, .real = path};
    if (strcmp(path, "-") == 0) {
        out->stream = stdout;
        return true;
    }
    char *real = realpath(path, NULL);
    if (real) {
        out->real = tool_strndup(t, real, strlen(real));
        free(real);
    }
    struct stat old;
    bool exists = stat(out->real, &old) == 0;
    errno = 0;
    if (exists && !S_ISREG(old.st_mode)) {
        out->stream = fopen(out->real, "wb");
        return out->stream || failed(t, "opening", path);
    }
    out->temporary = beside(t, out->real);
    int fd = mkstemp(out->temporary);
    if (fd < 0) {
        return failed(t, "creating", path);
    }
    // Where permissions cannot be had the file keeps the careful ones of mkstemp.
    (void)!fchmod(fd, mode_for(exists ? &old : NULL));
    out->stream = fdopen(fd, "wb");
    if (!out->stream) {
        failed(t, "creating", path);
        close(fd);
        unlink(out->temporary);
        return false;
    }
    return true;
}

bool file_finish(tool *t, file_output *out) {
    bool ok = !ferror(out->stream);
    if (out->stream == stdout) {
        return ok; // tool_end looks at it
    }
    errno = ok ? 0 : EIO;
    if (fflush(out->stream) != 0) {
        ok = false;
    }
    int why = errno;
    if (fclose(out->stream) != 0) {
        ok = false;
        why = why ? why : errno;
    }
    if (ok && out->temporary && rename(out->temporary, out->real) != 0) {
        ok = false;
        why = errno;
    }
    if (!ok) {
        if (out->temporary) {
            unlink(out->temporary);
        }
        errno = why;
        return failed(t, "writing", out->path);
    }
    return true;
}

void file_discard(file_output *out) {
    if (out->stream && out->stream != stdout) {
        fclose(out->stream);
    }
    if (out->temporary) {
        unlink(out->temporary);
    }
}

bool file_write(tool *t, const char *path, const char *text, size_t size) {
    file_output out;
    if (!file_create(t, path ? path : "-", &out)) {
        return false;
    }
    fwrite(text, 1, size, out.stream);
    return file_finish(t, &out);
}
