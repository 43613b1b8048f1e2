// SPDX-License-Identifier: Apache-2.0
// Compiling for a GPU without launching, what the assembler says, and what build and machine have.
#include "ptx/assemble.h"
#include "tests/gpu_env.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char copy[] = "kernel copy<T: type = f32, BN: int = 64>(x: in T[N], y: out T[N])\n"
                           "    grid (i in cdiv(N, BN))\n"
                           "{\n"
                           "    y[i * BN +: BN] = x[i * BN +: BN];\n"
                           "}\n";

static tkc_compile_options options(tkc_code what) {
    return (tkc_compile_options){
        .size = sizeof(tkc_compile_options), .arch = "sm_90a", .what = what};
}

static const tkc_arg unknown[2] = {{.kind = TKC_ARG_UNKNOWN}, {.kind = TKC_ARG_UNKNOWN}};

static tkc_status compile(gpu_env *e, const tkc_compile_options *o, tkc_text *out) {
    tkc_report_destroy(e->report);
    e->report = NULL;
    return tkc_kernel_compile(e->kernel, o, unknown, 2, NULL, 0, out, &e->report);
}

// ---- The call

Test(compile, forms) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, copy);
    tkc_compile_options o = options(TKC_CODE_PTX);
    tkc_text out;
    cr_expect_eq(compile(&e, &o, &out), TKC_OK, "%s", gpu_said(&e));
    cr_expect_str_eq(out.at, "// entry copy for sm_90a");
    cr_expect_eq(out.size, strlen(out.at));
    cr_expect(!the_backend.facts[0] && !the_backend.facts[1]);
    tkc_text_free(&out);
    o.contiguous = true;
    o.arch = "sm_80";
    cr_expect_eq(compile(&e, &o, &out), TKC_OK);
    cr_expect_eq(the_backend.facts[0], TK_FACT_UNIT | TK_FACT_ALIGNED);
    cr_expect_str_eq(the_backend.arch, "sm_80");
    tkc_text_free(&out);
    o.contiguous = false;
    o.whole_rows = o.near = true;
    cr_expect_eq(compile(&e, &o, &out), TKC_OK);
    cr_expect_eq(the_backend.facts[1],
                 TK_FACT_UNIT | TK_FACT_ALIGNED | TK_FACT_WHOLE | TK_FACT_NEAR);
    tkc_text_free(&out);
    the_backend.cubin = true;
    o.what = TKC_CODE_CUBIN;
    cr_expect_eq(compile(&e, &o, &out), TKC_OK);
    cr_expect_eq(out.size, 6);
    cr_expect_arr_eq(out.at, "cubin", 6);
    tkc_text_free(&out);
    cr_expect_eq(e.fake->calls, 0); // the driver has no part in it
    gpu_close(&e);
}

Test(compile, warps) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, copy);
    tkc_compile_options o = options(TKC_CODE_LAYOUT);
    tkc_text out;
    cr_expect_eq(tkc_kernel_set_warps(e.kernel, 3), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_kernel_set_warps(e.kernel, 64), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_kernel_set_warps(NULL, 4), TKC_ERROR_ARGUMENT);
    for (unsigned n = 1; n <= 32; n *= 2) {
        cr_expect_eq(tkc_kernel_set_warps(e.kernel, n), TKC_OK);
        cr_expect_eq(compile(&e, &o, &out), TKC_OK, "%s", gpu_said(&e));
        char text[32];
        snprintf(text, sizeof text, "laid warps=%u\n", n);
        cr_expect(strstr(out.at, text), "%u: %s", n, out.at);
        tkc_text_free(&out);
    }
    cr_expect_eq(tkc_kernel_set_warps(e.kernel, 0), TKC_OK);
    gpu_close(&e);
}

Test(compile, refusals) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, copy);
    tkc_compile_options o = options(TKC_CODE_PTX), none = o;
    tkc_text out = {NULL, 7};
    o.arch = "sm_90b";
    cr_expect_eq(compile(&e, &o, &out), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e), "did you mean 'sm_90'?") && strstr(gpu_said(&e), "sm_80, "),
              "%s", gpu_said(&e));
    cr_expect(out.at == NULL && out.size == 0);
    setenv("TKC_PTXAS", "", 1);
    o = options(TKC_CODE_CUBIN);
    cr_expect_eq(compile(&e, &o, &out), TKC_ERROR_DEVICE);
    cr_expect(strstr(gpu_said(&e), "no assembler is found"), "%s", gpu_said(&e));
    the_backend.refuse = true;
    cr_expect_eq(compile(&e, &o, &out), TKC_ERROR_SOURCE);
    cr_expect(strstr(gpu_said(&e), "the fake refuses"));
    cr_expect_eq(compile(&e, NULL, &out), TKC_ERROR_ARGUMENT);
    cr_expect_eq(compile(&e, &o, NULL), TKC_ERROR_ARGUMENT);
    none.arch = NULL;
    cr_expect_eq(compile(&e, &none, &out), TKC_ERROR_ARGUMENT);
    none = options((tkc_code)(TKC_CODE_STAGED + 1));
    cr_expect_eq(compile(&e, &none, &out), TKC_ERROR_ARGUMENT);
    none = options(TKC_CODE_PTX);
    none.size = 8;
    cr_expect_eq(compile(&e, &none, &out), TKC_ERROR_ARGUMENT);
    gpu_close(&e);
}

// ---- What is there

Test(compile, targets) {
    tkc_target t;
    size_t n = 0;
    for (; tkc_target_info(n, &t); n++) {
        cr_expect(t.major >= 8 && t.shared >= 99 * 1024 && strncmp(t.name, "sm_", 3) == 0);
    }
    cr_expect(n >= 5);
    cr_expect_not(tkc_target_info(0, NULL));
    cr_expect_not(tkc_target_info(SIZE_MAX, &t));
}

Test(compile, machine) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, copy);
    tkc_build b = {.size = sizeof b};
    tkc_gpu g = {.size = sizeof g};
    setenv("TKC_PTXAS", "", 1);
    e.fake->major[1] = 7;
    cr_assert_eq(tkc_build_info(e.context, &b), TKC_OK);
    cr_expect(b.driver > 0 && b.gpus == (uint32_t)e.fake->devices && !b.why[0] && !b.assembler[0]);
    for (uint32_t i = 0; i < b.gpus; i++) {
        cr_assert_eq(tkc_gpu_info(e.context, i, &g), TKC_OK);
        cr_expect(g.name[0] && g.major == (uint32_t)e.fake->major[i]);
        cr_expect_eq(g.target != NULL, i != 1);
    }
    cr_expect_eq(tkc_gpu_info(e.context, b.gpus, &g), TKC_ERROR_DEVICE);
    cr_expect_eq(tkc_gpu_info(e.context, 0, NULL), TKC_ERROR_ARGUMENT);
    b.size = 0;
    cr_expect_eq(tkc_build_info(e.context, &b), TKC_ERROR_ARGUMENT);
    gpu_close(&e);
}

Test(compile, no_driver) {
    gpu_env e = gpu_config(FAKE_CUDA);
    e.config->gpu_driver = "libno-such-driver.so.1";
    gpu_program(&e, copy);
    tkc_build b = {.size = sizeof b};
    tkc_gpu g = {.size = sizeof g};
    cr_assert_eq(tkc_build_info(e.context, &b), TKC_OK);
    cr_expect(b.driver == 0 && b.gpus == 0 && strstr(b.why, "libno-such-driver"), "%s", b.why);
    cr_expect_eq(tkc_gpu_info(e.context, 0, &g), TKC_ERROR_DEVICE);
    gpu_close(&e);
}

// ---- The assembler's messages and its output

Test(assemble, said) {
    tk_image_report r;
    memset(&r, 0, sizeof r);
    tk_assembled_said(&r, "ptxas info    : 0 bytes gmem\n"
                          "ptxas info    : Function properties for k\n"
                          "    24 bytes stack frame, 20 bytes spill stores, 28 bytes spill loads\n"
                          "ptxas info    : Used 255 registers, used 1 barriers, 24 bytes "
                          "cumulative stack size, 4096 bytes smem, 360 bytes cmem[0]\n");
    cr_expect(r.registers == 255 && r.stack == 24 && r.spill_stores == 20 && r.spill_loads == 28 &&
              r.shared_static == 4096);
    tk_assembled_said(&r, "");
    cr_expect(r.registers == 0 && r.stack == 0);
    tk_assembled_said(&r,
                      "ptxas info    : too many registers\nptxas info    : Used 40 registers\n");
    cr_expect(r.registers == 40);
    tk_assembled_said(&r, " registers bytes smem");
    cr_expect(r.registers == 0 && r.shared_static == 0);
    tk_assembled_said(&r, "warning: too many registers wanted\nUsed 40 registers\n");
    cr_expect_eq(r.registers, 40);
}

typedef struct small_elf { // names, then .text.k of three instructions
    Elf64_Ehdr head;
    Elf64_Shdr section[3];
    char names[32];
    uint32_t code[3][4];
} small_elf;

static small_elf make_elf(void) {
    small_elf f;
    memset(&f, 0, sizeof f);
    memcpy(f.head.e_ident, ELFMAG, SELFMAG);
    f.head.e_ident[EI_CLASS] = ELFCLASS64;
    f.head.e_ident[EI_DATA] = ELFDATA2LSB;
    f.head.e_ident[EI_ABIVERSION] = 8;
    f.head.e_machine = 190;
    f.head.e_flags = 90 << 8;
    f.head.e_shoff = offsetof(small_elf, section);
    f.head.e_shentsize = sizeof(Elf64_Shdr);
    f.head.e_shnum = 3;
    f.head.e_shstrndx = 1;
    f.section[1] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = offsetof(small_elf, names), .sh_size = sizeof f.names};
    f.section[2] = (Elf64_Shdr){.sh_name = 1,
                                .sh_type = SHT_PROGBITS,
                                .sh_offset = offsetof(small_elf, code),
                                .sh_size = sizeof f.code};
    memcpy(f.names + 1, ".text.k", 7);
    f.code[0][0] = 0x12345981; // the low 9 bits: LDG
    f.code[1][0] = 0x00000981;
    f.code[2][0] = 0x00000986; // STG
    return f;
}

static tk_image_report count(const small_elf *f, size_t size) {
    tk_image_report r;
    memset(&r, 0, sizeof r);
    char *copied = malloc(size + 1); // so that a byte too far is seen
    memcpy(copied, f, size);
    tk_assembled_count(&r, "k", copied, size);
    free(copied);
    return r;
}

Test(assemble, counted) {
    small_elf f = make_elf();
    tk_image_report r = count(&f, sizeof f);
    cr_expect(r.instructions == 3 && r.op[TK_MACHINE_LDG] == 2 && r.op[TK_MACHINE_STG] == 1);
    for (size_t n = 0; n < sizeof f; n++) {
        cr_expect_eq(count(&f, n).instructions, 0);
    }
    // Any one byte of the tables changed to its extremes.
    for (size_t i = 0; i < offsetof(small_elf, names); i++) {
        for (int value = 0; value < 256; value += 51) {
            small_elf g = f;
            ((unsigned char *)&g)[i] = (unsigned char)value;
            cr_expect(count(&g, sizeof g).instructions <= sizeof f / 16);
        }
    }
}

// What an assembler wrote, or NULL for what is machine code.
static bool faulty(const small_elf *f, size_t size, const char *words) {
    tk_guard guard;
    tk_arena arena;
    memset(&guard, 0, sizeof guard);
    tk_arena_init(&arena, NULL, &guard);
    const tk_image image = {.kernel = "k", .arch = "sm_90a"};
    char *copied = malloc(size + 1);
    memcpy(copied, f, size);
    const char *fault = tk_assembled_fault(&arena, &image, copied, size);
    bool as_wanted = words ? fault && strstr(fault, words) : !fault;
    free(copied);
    tk_arena_release(&arena);
    return as_wanted;
}

Test(assemble, faults) {
    small_elf f = make_elf();
    cr_expect(faulty(&f, sizeof f, NULL));
    cr_expect(faulty(&f, 0, "wrote nothing"));
    for (size_t n = 1; n < sizeof f; n++) {
        cr_expect(faulty(&f, n, n < sizeof f.head ? "no ELF file" : "is cut off"), "%zu bytes", n);
    }
    f.head.e_flags = 80 << 8;
    cr_expect(faulty(&f, sizeof f, "is for sm_80"));
    f.head.e_ident[EI_ABIVERSION] = 7;
    f.head.e_flags = 0x5a0d5a;
    cr_expect(faulty(&f, sizeof f, NULL));
    f.head.e_flags = 0x500550;
    cr_expect(faulty(&f, sizeof f, "is for sm_80"));
    f.head.e_ident[EI_ABIVERSION] = 9; // of a toolkit to come
    cr_expect(faulty(&f, sizeof f, NULL));
    f.head.e_machine = EM_X86_64;
    cr_expect(faulty(&f, sizeof f, "another machine (number 62)"));
    f = make_elf();
    f.names[6] = 'x';
    cr_expect(faulty(&f, sizeof f, "no code of 'k'"));
    f.head.e_ident[EI_DATA] = ELFDATA2MSB;
    cr_expect(faulty(&f, sizeof f, "no ELF file"));
}

// ---- Memory runs out anywhere: nothing is left, on the disk neither

typedef struct counter {
    long left, live;
} counter;

static void *take(void *user, size_t size) {
    counter *c = user;
    void *p = c->left-- > 0 ? malloc(size) : NULL;
    c->live += p != NULL;
    return p;
}

static void give(void *user, void *p) {
    counter *c = user;
    c->live -= p != NULL;
    free(p);
}

// The number of failures of allocations until one compile came through; -1: something is wrong.
static void sweep(tkc_code what) {
    counter c = {1L << 40, 0};
    tkc_config *config = tkc_config_create();
    tkc_config_allocator(config, take, give, &c);
    tkc_context *context;
    tkc_program *program;
    tkc_kernel *kernel;
    cr_assert_eq(tkc_context_create(config, &context), TKC_OK);
    cr_assert_eq(tkc_program_from_string(context, "k.tk", copy, strlen(copy), &program, NULL),
                 TKC_OK);
    cr_assert_eq(tkc_kernel_create(program, NULL, NULL, 0, &kernel, NULL), TKC_OK);
    tkc_compile_options o = options(what);
    long live = c.live, n = 0;
    tkc_status s = TKC_ERROR_MEMORY;
    if (!gpu_backend(&context->config)) {
        s = TKC_OK; // a build without LLVM
    }
    for (; s == TKC_ERROR_MEMORY && n < 1000; n++) {
        tkc_text out;
        c.left = n;
        s = tkc_kernel_compile(kernel, &o, unknown, 2, NULL, 0, &out, NULL);
        c.left = 1L << 40;
        tkc_text_free(&out);
        cr_expect_eq(c.live, live, "%ld blocks are left after failure %ld", c.live - live, n);
    }
    cr_expect(s == TKC_OK || (what == TKC_CODE_CUBIN && s == TKC_ERROR_DEVICE), "%d", (int)s);
    tkc_kernel_destroy(kernel);
    tkc_program_destroy(program);
    tkc_context_destroy(context);
    tkc_config_destroy(config);
}

Test(compile, memory) {
    char folder[] = "/tmp/tkc-sweep-XXXXXX";
    cr_assert(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    sweep(TKC_CODE_PTX);
    sweep(TKC_CODE_CUBIN);
    sweep(TKC_CODE_NOTES);
    cr_expect_eq(rmdir(folder), 0, "temporary files are left in %s", folder);
}

// ---- What @require asks of machine code, by the driver's numbers --------------------------------

// "" where the launch works.
static const char *demanded(tk_load_demand demand) {
    static char said[1024];
    gpu_env e = gpu_config(FAKE_CUDA);
    the_backend.demand = demand;
    gpu_program(&e, copy);
    cr_assert_eq(tkc_device_open(e.context, "cuda", &e.device, &e.report), TKC_OK);
    int64_t n = 64;
    void *p[2];
    tkc_arg arg[2];
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(tkc_device_alloc(e.device, 256, &p[i], NULL), TKC_OK);
        arg[i] = gpu_tensor(p[i], TKC_F32, 1, &n);
    }
    const tkc_status s = gpu_launch(&e, arg, 2, NULL);
    snprintf(said, sizeof said, "%s", s == TKC_OK ? "" : gpu_said(&e));
    cr_expect(s == TKC_OK || s == TKC_ERROR_SOURCE, "%s", said);
    for (int i = 0; i < 2; i++) {
        tkc_device_free(e.device, p[i]);
    }
    gpu_close(&e);
    return said;
}

Test(compile, demands_at_load) {
    const tk_span at = {1, 0, 6};
    // The fake driver says: 32 registers, no local memory.
    cr_expect_str_eq(demanded((tk_load_demand){.max_registers = 32, .no_spills = true}), "");
    const char *said = demanded((tk_load_demand){.max_registers = 31, .max_registers_at = at});
    cr_expect(strstr(said, "k.tk:1:1: error: '@require(max_registers(31))' does not hold: a thread "
                           "takes 32"),
              "%s", said);
    the_backend.shared = 4096;
    said = demanded((tk_load_demand){.max_shared = 4095, .max_shared_at = at});
    cr_expect(strstr(said, "'@require(max_shared(4095))' does not hold: a block takes 4096 bytes"),
              "%s", said);
    cr_expect_str_eq(demanded((tk_load_demand){.max_shared = 4096}), "");
}

// ---- Explaining

static tkc_status explain(gpu_env *e, const tkc_explain_options *o, tkc_text *out) {
    tkc_report_destroy(e->report);
    e->report = NULL;
    return tkc_kernel_explain(e->kernel, o, unknown, 2, NULL, 0, out, &e->report);
}

Test(compile, explain) {
    gpu_env e = gpu_config(FAKE_CUDA);
    gpu_program(&e, copy);
    tkc_explain_options o = {.size = sizeof o, .arch = "sm_90a", .contiguous = true};
    tkc_text out;
    cr_expect_eq(explain(&e, &o, &out), TKC_OK, "%s", gpu_said(&e));
    cr_expect(strstr(out.at, "k.tk:1: kernel copy for sm_90a") &&
                  strstr(out.at, "made [resources]"),
              "%s", out.at);
    cr_expect_eq(the_backend.facts[0], TK_FACT_UNIT | TK_FACT_ALIGNED);
    tkc_text_free(&out);
    o.format = TKC_EXPLAIN_JSON;
    cr_expect_eq(explain(&e, &o, &out), TKC_OK);
    cr_expect(strstr(out.at, "\"schema\": 1") && strstr(out.at, "\"gpu\": \"H200\""), "%s", out.at);
    tkc_text_free(&out);
    o.format = TKC_EXPLAIN_SARIF;
    o.gpu = "H100";
    cr_expect_eq(explain(&e, &o, &out), TKC_OK);
    cr_expect(strstr(out.at, "\"version\": \"2.1.0\""), "%s", out.at);
    tkc_text_free(&out);
    o.gpu = "H20";
    cr_expect_eq(explain(&e, &o, &out), TKC_ERROR_ARGUMENT);
    cr_expect(strstr(gpu_said(&e), "there is no GPU 'H20'") && !out.at, "%s", gpu_said(&e));
    o.gpu = NULL;
    o.arch = "sm_9";
    cr_expect_eq(explain(&e, &o, &out), TKC_ERROR_DEVICE);
    o.arch = "sm_80";
    o.format = (tkc_explain_format)(TKC_EXPLAIN_SARIF + 1);
    cr_expect_eq(explain(&e, &o, &out), TKC_ERROR_ARGUMENT);
    o.format = TKC_EXPLAIN_TEXT;
    o.size = 0;
    cr_expect_eq(explain(&e, &o, &out), TKC_ERROR_ARGUMENT);
    cr_expect_eq(tkc_kernel_explain(NULL, &o, unknown, 2, NULL, 0, &out, NULL), TKC_ERROR_ARGUMENT);
    o.size = sizeof o;
    the_backend.refuse = true;
    cr_expect_eq(explain(&e, &o, &out), TKC_ERROR_SOURCE);
    cr_expect(!out.at && strstr(gpu_said(&e), "the fake refuses"), "%s", gpu_said(&e));
    cr_expect(tkc_explain_gpu(0) && !tkc_explain_gpu(1000));
    gpu_close(&e);
}
