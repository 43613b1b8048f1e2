// SPDX-License-Identifier: Apache-2.0
// Finds an assembler and runs it. See assemble.h.
//
// ptxas runs as a child without a shell. Its files lie in a folder of their own, which is removed
// in every way out, also when an allocation fails.
#define _GNU_SOURCE // dladdr
#include "ptx/assemble.h"
#include "ptx/toolkit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NVJITLINK "nvJitLink"

extern char **environ;

enum { PATH_ROOM = TK_ASSEMBLER_ROOM + 64 };

// ---- Finding

static bool is_program(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool in_folder(char *out, const char *folder, size_t n) {
    char path[TK_ASSEMBLER_ROOM];
    int k = snprintf(path, sizeof path, "%.*s/ptxas", (int)n, folder);
    if (n == 0 || k <= 0 || k >= TK_ASSEMBLER_ROOM || !is_program(path)) {
        return false;
    }
    memcpy(out, path, (size_t)k + 1);
    return true;
}

static bool on_path(char *out) {
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t n = strcspn(at, ":");
        if (n < TK_ASSEMBLER_ROOM && in_folder(out, at, n)) {
            return true;
        }
        at += n + (at[n] == ':');
    }
    return false;
}

static bool in_toolkit(char *out) {
    const char *home = getenv("CUDA_HOME");
    char folder[TK_ASSEMBLER_ROOM];
    int n = snprintf(folder, sizeof folder, "%s/bin", home ? home : "");
    if (home && *home && n > 0 && n < TK_ASSEMBLER_ROOM && in_folder(out, folder, (size_t)n)) {
        return true;
    }
    static const char usual[] = "/usr/local/cuda/bin";
    return in_folder(out, usual, sizeof usual - 1);
}

// ---- nvJitLink: of its interface what is used, which is the same in versions 12 and 13

typedef struct jit_link_opaque *jit_link;

typedef struct jit_library {
    void *handle;
    int (*create)(jit_link *l, uint32_t n, const char **option);
    int (*destroy)(jit_link *l);
    int (*add)(jit_link l, int kind, const void *data, size_t size, const char *name);
    int (*complete)(jit_link l);
    int (*cubin_size)(jit_link l, size_t *size);
    int (*cubin)(jit_link l, void *out);
    int (*error_size)(jit_link l, size_t *size);
    int (*error)(jit_link l, char *out);
    int (*info_size)(jit_link l, size_t *size);
    int (*info)(jit_link l, char *out);
} jit_library;

enum { JIT_INPUT_PTX = 2 };

static void *open_library(void) {
    static const char *const names[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};
    return tk_toolkit_open(names, 2);
}

static bool jit_open(jit_library *j) {
    memset(j, 0, sizeof *j);
    j->handle = open_library();
    if (!j->handle) {
        return false;
    }
#define F(member, symbol)                                                                          \
    { symbol, offsetof(jit_library, member) }
    static const struct {
        const char *symbol;
        size_t at;
    } functions[] = {F(create, "nvJitLinkCreate"),
                     F(destroy, "nvJitLinkDestroy"),
                     F(add, "nvJitLinkAddData"),
                     F(complete, "nvJitLinkComplete"),
                     F(cubin_size, "nvJitLinkGetLinkedCubinSize"),
                     F(cubin, "nvJitLinkGetLinkedCubin"),
                     F(error_size, "nvJitLinkGetErrorLogSize"),
                     F(error, "nvJitLinkGetErrorLog"),
                     F(info_size, "nvJitLinkGetInfoLogSize"),
                     F(info, "nvJitLinkGetInfoLog")};
#undef F
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *p = dlsym(j->handle, functions[i].symbol);
        if (!p) {
            dlclose(j->handle);
            return false;
        }
        memcpy((char *)j + functions[i].at, &p, sizeof p);
    }
    return true;
}

bool tk_assembler_find(char *name) {
    const char *asked = getenv("TKC_PTXAS");
    bool jit = asked && strcmp(asked, NVJITLINK) == 0;
    if (asked && !jit) {
        int n = snprintf(name, TK_ASSEMBLER_ROOM, "%s", asked);
        return n > 0 && n < TK_ASSEMBLER_ROOM && is_program(name);
    }
    if (!jit && (on_path(name) || in_toolkit(name))) {
        return true;
    }
    jit_library j;
    if (!jit_open(&j)) {
        return false;
    }
    dlclose(j.handle);
    snprintf(name, TK_ASSEMBLER_ROOM, "%s", NVJITLINK);
    return true;
}

void tk_assembler_identity(char *text) {
    char name[TK_ASSEMBLER_ROOM];
    const char *file = name;
    struct stat st;
    jit_library j = {.handle = NULL};
    text[0] = 0;
    if (!tk_assembler_find(name)) {
        return;
    }
    if (strcmp(name, NVJITLINK) == 0) {
        Dl_info at = {.dli_fname = NULL};
        void *create = NULL;
        if (jit_open(&j)) {
            memcpy(&create, &j.create, sizeof create);
        }
        file = create && dladdr(create, &at) && at.dli_fname ? at.dli_fname : name;
    }
    memset(&st, 0, sizeof st);
    (void)stat(file, &st);
    // Numbers first: a path may be cut.
    (void)snprintf(text, TK_ASSEMBLER_ROOM, "%llu %llu %lld.%09ld %.400s",
                   (unsigned long long)st.st_ino, (unsigned long long)st.st_size,
                   (long long)st.st_mtim.tv_sec, (long)st.st_mtim.tv_nsec, file);
    if (j.handle) {
        dlclose(j.handle);
    }
}

// ---- One run

typedef struct assembly {
    tk_arena *arena;
    tk_image *image;
    const char *where; // the kernel's place in the source
    char assembler[TK_ASSEMBLER_ROOM];
    char folder[PATH_ROOM], ptx[PATH_ROOM + 16], cubin[PATH_ROOM + 16], log[PATH_ROOM + 16];
    jit_library jit;
    jit_link link;
    const char *said; // the assembler's messages, 0-terminated
    bool failed;      // it ran and refused
} assembly;

static bool write_all(const char *path, const char *text, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    while (fd >= 0 && size) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            close(fd);
            return false;
        }
        text += n;
        size -= (size_t)n;
    }
    return fd >= 0 && close(fd) == 0;
}

static bool make_files(assembly *s) {
    const char *where = getenv("TMPDIR");
    int n =
        snprintf(s->folder, sizeof s->folder, "%s/tkc-XXXXXX", where && *where ? where : "/tmp");
    if (n < 0 || n >= (int)sizeof s->folder || !mkdtemp(s->folder)) {
        s->folder[0] = 0;
        return false;
    }
    snprintf(s->ptx, sizeof s->ptx, "%s/kernel.ptx", s->folder);
    snprintf(s->cubin, sizeof s->cubin, "%s/kernel.cubin", s->folder);
    snprintf(s->log, sizeof s->log, "%s/log", s->folder);
    return write_all(s->ptx, s->image->ptx, s->image->ptx_size);
}

static void remove_files(assembly *s) {
    if (s->folder[0]) {
        unlink(s->ptx);
        unlink(s->cubin);
        unlink(s->log);
        rmdir(s->folder);
    }
}

// The child's exit code; -1 where it did not run or was killed.
static int spawn(assembly *s, char *const argv[]) {
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files) != 0) {
        return -1;
    }
    pid_t child;
    bool ok = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0 &&
              posix_spawn_file_actions_addopen(&files, 1, s->log, O_WRONLY | O_CREAT | O_TRUNC,
                                               0600) == 0 &&
              posix_spawn_file_actions_adddup2(&files, 1, 2) == 0 &&
              posix_spawn(&child, s->assembler, &files, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&files);
    if (!ok) {
        return -1;
    }
    int status = 0;
    pid_t got;
    do {
        got = waitpid(child, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) { // the host waits for all its children itself: the files tell
        return access(s->cubin, F_OK) == 0 ? 0 : -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// 0-terminated. NULL: cannot be read.
static char *read_all(tk_arena *a, const char *path, size_t *size) {
    struct stat st;
    char *text = NULL;
    *size = 0;
    if (stat(path, &st) != 0 || st.st_size < 0) {
        return NULL;
    }
    text = tk_alloc(a, (size_t)st.st_size + 1); // before the file is open: it may jump
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && *size < (size_t)st.st_size) {
        ssize_t n = read(fd, text + *size, (size_t)st.st_size - *size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        *size += (size_t)n;
    }
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0 && *size == (size_t)st.st_size ? text : NULL;
}

static void take_cubin(assembly *s, const void *cubin, size_t size) {
    const char *fault = tk_assembled_fault(s->arena, s->image, cubin, size);
    if (fault) {
        s->image->garbled =
            tk_format(s->arena, "'%s' ended without an error, but %s", s->assembler, fault);
    } else {
        s->image->cubin = cubin;
        s->image->cubin_size = size;
    }
}

static void run_ptxas(assembly *s) {
    tk_image *image = s->image;
    if (!make_files(s)) {
        image->unassembled = true;
        return;
    }
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s", image->arch);
    char v[] = "-v", lines[] = "-lineinfo", o[] = "-o";
    char *const argv[] = {s->assembler, arch, v, lines, s->ptx, o, s->cubin, NULL};
    int code = spawn(s, argv);
    size_t size;
    s->said = read_all(s->arena, s->log, &size);
    if (code != 0) {
        s->failed = code > 0 && s->said != NULL;
        image->unassembled = !s->failed;
        return;
    }
    const void *cubin = read_all(s->arena, s->cubin, &size);
    take_cubin(s, cubin, cubin ? size : 0);
}

static const char *jit_text(assembly *s, int (*size_of)(jit_link, size_t *),
                            int (*text_of)(jit_link, char *)) {
    size_t n = 0;
    if (size_of(s->link, &n) != 0) {
        n = 0;
    }
    char *text = tk_alloc(s->arena, n + 1);
    return n && text_of(s->link, text) == 0 ? text : "";
}

static void run_jit(assembly *s) {
    jit_library *j = &s->jit;
    tk_image *image = s->image;
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s", image->arch);
    const char *option[] = {arch, "-verbose", "-lineinfo"};
    if (!jit_open(j) || j->create(&s->link, 3, option) != 0) {
        return; // too old for the target
    }
    size_t size = 0;
    bool ok = j->add(s->link, JIT_INPUT_PTX, image->ptx, image->ptx_size, image->kernel) == 0 &&
              j->complete(s->link) == 0 && j->cubin_size(s->link, &size) == 0 && size > 0;
    s->said = ok ? jit_text(s, j->info_size, j->info) : jit_text(s, j->error_size, j->error);
    s->failed = !ok;
    // The assembler's own lines: the linker's, which follow, count what the system keeps as well.
    const char *linker = ok ? strstr(s->said, "\ninfo") : NULL;
    s->said = linker ? tk_strndup(s->arena, s->said, (size_t)(linker - s->said)) : s->said;
    if (ok) {
        void *cubin = tk_alloc(s->arena, size);
        take_cubin(s, cubin, j->cubin(s->link, cubin) == 0 ? size : 0);
    }
}

// ---- The outcome

// Code for a target or of a version that came after the assembler.
static bool too_old(const char *said) {
    return strstr(said, "Unsupported .version") || strstr(said, "is not defined for option") ||
           strstr(said, "Unsupported .target");
}

// What fails without a word about the code is no assembler, or could not run.
static bool says_why(const char *said) { return strstr(said, "error") || strstr(said, "fatal"); }

static const char *first_line(tk_arena *a, const char *said) {
    while (*said == '\n') {
        said++;
    }
    const char *error = strstr(said, "error");
    error = error ? error : strstr(said, "fatal");
    while (error && error > said && error[-1] != '\n') {
        error--;
    }
    said = error ? error : said;
    return tk_strndup(a, said, strcspn(said, "\n"));
}

static void assemble(assembly *s) {
    if (strcmp(s->assembler, NVJITLINK) == 0) {
        run_jit(s);
    } else {
        run_ptxas(s);
    }
    if (s->failed && !says_why(s->said)) {
        s->image->unassembled = true;
    } else if (s->failed && !too_old(s->said)) {
        const char *line = first_line(s->arena, s->said);
        // The path of a temporary file tells nothing.
        const char *place = s->ptx[0] ? strstr(line, s->ptx) : NULL;
        TK_ICE(s->arena, "%.60s: the assembler refuses kernel '%.40s' (%s): %.100s", s->where,
               s->image->kernel, s->image->arch,
               place ? place + strlen(s->ptx) + strspn(place + strlen(s->ptx), ", ") : line);
    }
    if (s->image->cubin) {
        s->image->report.known = true;
        tk_assembled_said(&s->image->report, s->said ? s->said : "");
        tk_assembled_count(&s->image->report, s->image->kernel, s->image->cubin,
                           s->image->cubin_size);
    }
}

void tk_assemble(tk_arena *arena, tk_image *image, const char *where) {
    assembly *s = TK_NEW(arena, assembly);
    s->where = where;
    s->arena = arena;
    s->image = image;
    if (!image->ptx || !tk_assembler_find(s->assembler)) {
        return;
    }
    tk_guard guard, *outer = arena->guard;
    memset(&guard, 0, sizeof guard);
    arena->guard = &guard;
    if (setjmp(guard.jump) == 0) {
        assemble(s);
    }
    arena->guard = outer;
    remove_files(s);
    if (s->link) {
        s->jit.destroy(&s->link);
    }
    if (s->jit.handle) {
        dlclose(s->jit.handle);
    }
    if (guard.fail != TK_FAIL_NONE) {
        outer->fail = guard.fail;
        memcpy(outer->text, guard.text, sizeof outer->text);
        longjmp(outer->jump, 1);
    }
}
