// SPDX-License-Identifier: Apache-2.0
// The disk cache of compiled kernels: hits, what makes another entry, damage, limits, many
// processes.
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "kernel twice<BN: int = 64>(x: in f32[N], y: out f32[N])\n"
                           "    grid (i in cdiv(N, BN))\n"
                           "{\n"
                           "    y[i * BN +: BN] = x[i * BN +: BN] * 2.0;\n"
                           "}\n";

static char folder[64], inner[80]; // inner is made by the cache

static void setup(void) {
    strcpy(folder, "/tmp/tkc-test-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/a/b", folder);
    the_backend.maps = 1;
}

static void teardown(void) {
    char command[120];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(cuda_cache, .init = setup, .fini = teardown);

typedef struct run_settings {
    const char *program;
    size_t misaligned;
    bool debug;
    int major;
    uint64_t max;
    const char *at;
} run_settings;

// One process's life: returns how often the back end ran, or -1.
static int run(run_settings s) {
    static _Alignas(64) float memory[4096];
    gpu_env e = gpu_config(FAKE_CUDA);
    e.fake->major[0] = s.major ? s.major : 9;
    tkc_config_debug(e.config, s.debug);
    tkc_config_cache(e.config, s.at ? s.at : inner, s.max ? s.max : 1 << 20);
    gpu_program(&e, s.program ? s.program : text);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    int64_t n = 100;
    tkc_arg a[2] = {gpu_tensor(memory + s.misaligned, TKC_F32, 1, &n),
                    gpu_tensor(memory + 2048, TKC_F32, 1, &n)};
    int before = the_backend.compiled;
    tkc_status status = gpu_launch(&e, a, 2, NULL);
    const fake_map *map = &e.fake->map[(e.fake->maps - 1) % FAKE_MAPS];
    const bool maps = e.fake->major[0] >= 9;
    bool same = strstr(e.fake->image, "// entry twice for sm_") && e.fake->launch.grid[0] == 2 &&
                e.fake->launch.block[0] == 128 && e.fake->launch.params_size == (maps ? 180 : 52) &&
                (!maps || (map->box[0] == 32 && map->swizzle == 3 && map->dim[0] == 100));
    gpu_close(&e);
    return status == TKC_OK && same ? the_backend.compiled - before : -1;
}

static uint64_t entries(void) {
    uint64_t n = 99, bytes;
    cr_expect_eq(tkc_cache_size(inner, &n, &bytes), TKC_OK);
    cr_expect_eq(n > 0, bytes > 0);
    return n;
}

Test(cuda_cache, hits) {
    cr_expect_eq(entries(), 0);
    cr_expect_eq(run((run_settings){0}), 1);
    cr_expect_eq(entries(), 1);
    cr_expect_eq(run((run_settings){0}), 0);
    cr_expect_eq(run((run_settings){.misaligned = 1}), 1);
    cr_expect_eq(run((run_settings){.misaligned = 1}), 0);
    cr_expect_eq(run((run_settings){.debug = true}), 1);
    cr_expect_eq(run((run_settings){.major = 8}), 1);
    cr_expect_eq(run((run_settings){.major = 8}), 0);
    // Line numbers are in what is compiled, so a program that is moved is another.
    char moved[sizeof text + 1] = "\n";
    strcat(moved, text);
    cr_expect_eq(run((run_settings){.program = moved}), 1);
    cr_expect_eq(entries(), 5);
    the_backend.cubin = true;
    cr_expect_eq(run((run_settings){0}), 0);
    uint64_t n;
    cr_expect_eq(tkc_cache_clear(inner, &n), TKC_OK);
    cr_expect_eq(n, 5);
    cr_expect_eq(entries(), 0);
    the_backend.cubin = false;
    cr_expect_eq(run((run_settings){0}), 1);
}

// ---- What a kernel is made with

static void write_script(const char *path, const char *content) {
    FILE *f = fopen(path, "wb");
    cr_assert(f);
    fputs(content, f);
    fclose(f);
    cr_assert_eq(chmod(path, 0700), 0);
}

Test(cuda_cache, another_assembler) {
    char one[100], two[100];
    snprintf(one, sizeof one, "%s/ptxas", folder);
    snprintf(two, sizeof two, "%s/ptxas-2", folder);
    write_script(one, "#!/bin/sh\n");
    write_script(two, "#!/bin/sh\n");
    setenv("TKC_PTXAS", "", 1);
    cr_expect_eq(run((run_settings){0}), 1);
    setenv("TKC_PTXAS", one, 1); // one where there was none
    cr_expect_eq(run((run_settings){0}), 1);
    cr_expect_eq(run((run_settings){0}), 0);
    setenv("TKC_PTXAS", two, 1); // another, which is alike
    cr_expect_eq(run((run_settings){0}), 1);
    cr_expect_eq(run((run_settings){0}), 0);
    setenv("TKC_PTXAS", one, 1);
    cr_expect_eq(run((run_settings){0}), 0);
    write_script(one, "#!/bin/sh\n# newer\n"); // the same path, updated
    cr_expect_eq(run((run_settings){0}), 1);
    cr_expect_eq(run((run_settings){0}), 0);
    struct timespec past[2] = {{1000, 0}, {1000, 0}};
    utimensat(AT_FDCWD, one, past, 0);
    cr_expect_eq(run((run_settings){0}), 1);
    setenv("TKC_PTXAS", "", 1);
    cr_expect_eq(run((run_settings){0}), 0);
}

Test(cuda_cache, an_assembler_that_could_not_run) {
    the_backend.unassembled = true;
    cr_expect_eq(run((run_settings){0}), 1);
    cr_expect_eq(run((run_settings){0}), 1);
    the_backend.unassembled = false;
    cr_expect_eq(run((run_settings){0}), 1);
    cr_expect_eq(run((run_settings){0}), 0);
}

// A place keeps its bytes and gets another line.
Test(cuda_cache, moved_lines) {
    char one[sizeof text + 8], two[sizeof text + 8];
    snprintf(one, sizeof one, "//a  \n%s", text);
    snprintf(two, sizeof two, "//a \n\n%s", text);
    cr_expect_eq(run((run_settings){.program = one}), 1);
    cr_expect_eq(run((run_settings){.program = one}), 0);
    cr_expect_eq(run((run_settings){.program = two}), 1);
}

static void expect_notes(const char *want) {
    static _Alignas(64) float memory[4096];
    gpu_env e = gpu_config(FAKE_CUDA);
    tkc_config_cache(e.config, inner, 1 << 20);
    gpu_program(&e, text);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, NULL), TKC_OK);
    int64_t n = 100;
    tkc_arg a[2] = {gpu_tensor(memory, TKC_F32, 1, &n), gpu_tensor(memory + 2048, TKC_F32, 1, &n)};
    cr_assert_eq(gpu_launch(&e, a, 2, NULL), TKC_OK, "%s", gpu_said(&e));
    tkc_text t = {NULL, 0};
    cr_assert_eq(tkc_kernel_variant_notes(e.kernel, 0, &t), TKC_OK);
    cr_expect(strstr(t.at, want) && strstr(t.at, "k.tk:1:"), "%s", t.at);
    tkc_text_free(&t);
    cr_expect_eq(tkc_kernel_variant_notes(e.kernel, 1, &t), TKC_ERROR_ARGUMENT);
    gpu_close(&e);
}

Test(cuda_cache, notes_are_kept) {
    the_backend.note = "first";
    expect_notes("first");
    the_backend.note = "second";
    expect_notes("first"); // that of the entry
    cr_expect_eq(the_backend.compiled, 1);
}

// ---- Files

static void one_path(char *path, size_t size) {
    DIR *d = opendir(inner);
    cr_assert(d);
    path[0] = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%.79s/%.60s", inner, e->d_name);
        }
    }
    closedir(d);
}

Test(cuda_cache, damage) {
    char path[200], content[4096];
    cr_expect_eq(run((run_settings){0}), 1);
    one_path(path, sizeof path);
    FILE *f = fopen(path, "rb");
    size_t size = fread(content, 1, sizeof content, f);
    fclose(f);
    cr_assert(size > 64 && size < sizeof content);
    // Any byte turned, any length cut, bytes added.
    for (size_t at = 0; at <= size; at++) {
        for (int way = 0; way < 2; way++) {
            char now[sizeof content + 1];
            memcpy(now, content, size);
            now[size] = 'x';
            size_t length = way ? at : size + (at == size);
            now[at] = (char)(now[at] ^ 4);
            if (way && at == size) {
                continue;
            }
            f = fopen(path, "wb");
            fwrite(now, 1, length, f);
            fclose(f);
            if (at % 16 == 0 || at > size - 3 || at < 3) { // each costs a compile
                cr_expect_eq(run((run_settings){0}), 1, "byte %zu, way %d", at, way);
                cr_expect_eq(run((run_settings){0}), 0, "byte %zu, way %d", at, way);
            }
        }
    }
    f = fopen(path, "rb");
    char again[sizeof content];
    cr_expect_eq(fread(again, 1, sizeof again, f), size);
    fclose(f);
    cr_expect_eq(memcmp(again, content, size), 0); // equal bytes from equal compiles
    unlink(path);
    mkdir(path, 0700); // something else in its place
    cr_expect_eq(run((run_settings){0}), 1);
    rmdir(path);
}

Test(cuda_cache, limit) {
    char path[200];
    struct stat st;
    cr_expect_eq(run((run_settings){0}), 1);
    one_path(path, sizeof path);
    cr_assert_eq(stat(path, &st), 0);
    uint64_t one = (uint64_t)st.st_size, max = 3 * one + one / 2;
    struct timespec old[2] = {{1000, 0}, {1000, 0}};
    utimensat(AT_FDCWD, path, old, 0);
    cr_expect_eq(run((run_settings){.max = max}), 0); // reading makes it young again
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_gt(st.st_mtim.tv_sec, 1000);
    utimensat(AT_FDCWD, path, old, 0);
    cr_expect_eq(run((run_settings){.misaligned = 1, .max = max}), 1);
    cr_expect_eq(run((run_settings){.debug = true, .max = max}), 1);
    cr_expect_eq(entries(), 3);
    cr_expect_eq(run((run_settings){.major = 8, .max = max}), 1);
    cr_expect_eq(entries(), 3);
    cr_expect_neq(stat(path, &st), 0); // the oldest went
    cr_expect_eq(run((run_settings){.major = 8, .max = max}), 0);
    cr_expect_eq(run((run_settings){.max = 10}), 1); // too large for the limit: not kept
    cr_expect_eq(entries(), 3);
}

Test(cuda_cache, never_fatal) {
    cr_expect_eq(run((run_settings){.at = "/proc/no/such/place"}), 1);
    cr_expect_eq(run((run_settings){.at = "/dev/null"}), 1);
    char file[100];
    snprintf(file, sizeof file, "%s/a", folder);
    FILE *f = fopen(file, "wb"); // a file where a folder should be made
    fclose(f);
    cr_expect_eq(run((run_settings){0}), 1);
    uint64_t n, bytes;
    cr_expect_eq(tkc_cache_size("/dev/null", &n, &bytes), TKC_ERROR_IO);
    cr_expect_eq(tkc_cache_size("/nonexistent", &n, &bytes), TKC_OK);
    cr_expect_eq(tkc_cache_clear("/nonexistent", NULL), TKC_OK);
    cr_expect_eq(tkc_cache_size(NULL, &n, &bytes), TKC_ERROR_ARGUMENT);
    char longer[5000];
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = 0;
    cr_expect_eq(run((run_settings){.at = longer}), 1);
}

// What is left by a process that was ended goes after a while; what is not ours stays.
Test(cuda_cache, leftovers) {
    char old[120], fresh[120], other[120];
    cr_expect_eq(run((run_settings){0}), 1);
    snprintf(old, sizeof old, "%s/new-aaaaaa", inner);
    snprintf(fresh, sizeof fresh, "%s/new-bbbbbb", inner);
    snprintf(other, sizeof other, "%s/notes.txt", inner);
    const char *paths[] = {old, fresh, other};
    struct timespec past[2] = {{1000, 0}, {1000, 0}};
    for (int i = 0; i < 3; i++) {
        fclose(fopen(paths[i], "wb"));
    }
    utimensat(AT_FDCWD, old, past, 0);
    utimensat(AT_FDCWD, other, past, 0);
    cr_expect_eq(run((run_settings){.debug = true}), 1);
    cr_expect_neq(access(old, F_OK), 0);
    cr_expect_eq(access(fresh, F_OK), 0);
    cr_expect_eq(tkc_cache_clear(inner, NULL), TKC_OK);
    cr_expect_eq(access(other, F_OK), 0);
}

// Each with a context of its own, as run makes it; the fake's last image is shared, so it is not
// looked at.
static void *cache_user(void *arg) {
    static _Alignas(64) float memory[4096];
    (void)arg;
    size_t bad = 0;
    for (size_t i = 0; i < 10; i++) {
        gpu_env e = gpu_config(FAKE_CUDA);
        tkc_config_debug(e.config, i % 3 == 0);
        tkc_config_cache(e.config, inner, 1 << 20);
        gpu_program(&e, text);
        int64_t n = 100;
        tkc_arg a[2] = {gpu_tensor(memory + i % 2, TKC_F32, 1, &n),
                        gpu_tensor(memory + 2048, TKC_F32, 1, &n)};
        bad += tkc_device_open(e.context, "cuda", &e.device, NULL) != TKC_OK ||
               gpu_launch(&e, a, 2, NULL) != TKC_OK;
        tkc_device_close(e.device);
        tkc_kernel_destroy(e.kernel);
        tkc_program_destroy(e.program);
        tkc_context_destroy(e.context);
        tkc_config_destroy(e.config);
    }
    return (void *)bad;
}

Test(cuda_cache, many_threads) {
    enum { THREADS = 8 };
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&t[i], NULL, cache_user, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(t[i], &bad);
        cr_expect_null(bad);
    }
    cr_expect_eq(entries(), 4);
    cr_expect_eq(run((run_settings){0}), 0);
}

Test(cuda_cache, many_processes) {
    enum { PROCESSES = 8, ROUNDS = 10 };
    for (int p = 0; p < PROCESSES; p++) {
        if (fork() == 0) {
            int bad = 0;
            for (int i = 0; i < ROUNDS; i++) {
                int n = run((run_settings){.misaligned = (size_t)i % 2, .debug = i % 3 == 0});
                bad |= n < 0 || n > 1;
                if (p == 0 && i % 4 == 3) {
                    tkc_cache_clear(inner, NULL);
                }
            }
            _exit(bad);
        }
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        cr_assert_gt(wait(&status), 0);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    cr_expect_leq(entries(), 4);
    cr_expect_eq(run((run_settings){.misaligned = 1}) >= 0, 1);
}
