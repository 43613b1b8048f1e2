// SPDX-License-Identifier: Apache-2.0
#include "tests/sim_ptxas.h"

#ifdef TKC_HAVE_LLVM
#include "ptx/assemble.h"
#endif

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned sim_ptxas_lines(const char *text) {
    unsigned n = 0;
    for (; *text; text++) {
        n += *text == '\n';
    }
    return n;
}

#ifdef TKC_HAVE_LLVM

static bool is_there(char *ptxas) { return tk_assembler_find(ptxas) && strchr(ptxas, '/'); }

// Runs it; what it says is read from *said.
static FILE *run(const char *ptxas, const char *arch, const char *path) {
    char command[TK_ASSEMBLER_ROOM + 128];
    snprintf(command, sizeof command, "'%s' -arch=%s -O0 -o /dev/null %s 2>&1", ptxas, arch, path);
    FILE *p = popen(command, "r");
    cr_assert(p != NULL);
    return p;
}

// Marks the lines that it refuses, of those that are not marked; false: none. *ok: it assembles.
static bool assemble(const char *arch, const char *head, const char *const *line, size_t n,
                     const char *tail, bool *bad, bool *ok) {
    char path[] = "/tmp/tkc-forms-XXXXXX", ptxas[TK_ASSEMBLER_ROOM], said[1024];
    if (!is_there(ptxas)) {
        return *ok = false;
    }
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    FILE *f = fdopen(fd, "w");
    fprintf(f, "%s", head);
    for (size_t k = 0; k < n; k++) {
        fprintf(f, "%s\n", bad[k] ? "" : line[k]);
    }
    fprintf(f, "%s", tail);
    fclose(f);
    FILE *p = run(ptxas, arch, path);
    bool any = false;
    while (fgets(said, sizeof said, p)) {
        const char *at = strstr(said, ", line ");
        bool no = at && (strstr(at, "error") || strstr(at, "fatal"));
        long number = no ? strtol(at + 7, NULL, 10) - (long)sim_ptxas_lines(head) - 1 : -1;
        if (number >= 0 && (size_t)number < n && !bad[number]) {
            any = bad[number] = true;
        }
    }
    *ok = pclose(p) == 0;
    unlink(path);
    return any;
}

bool sim_ptxas(const char *arch, const char *ptx) {
    bool ok;
    assemble(arch, ptx, NULL, 0, "", NULL, &ok);
    return ok;
}

// It may stop at the first few that are wrong, so it is asked again without those.
bool sim_ptxas_refuses(const char *arch, const char *head, const char *const *line, size_t n,
                       const char *tail, bool *refuses) {
    bool ok;
    assemble(arch, head, line, 0, tail, refuses, &ok);
    const bool takes = ok;
    while (takes && assemble(arch, head, line, n, tail, refuses, &ok)) {
    }
    return takes;
}

#else

bool sim_ptxas(const char *arch, const char *ptx) {
    (void)arch, (void)ptx;
    return false;
}

bool sim_ptxas_refuses(const char *arch, const char *head, const char *const *line, size_t n,
                       const char *tail, bool *refuses) {
    (void)arch, (void)head, (void)line, (void)n, (void)tail, (void)refuses;
    return false;
}

#endif
