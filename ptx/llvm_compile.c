// SPDX-License-Identifier: Apache-2.0
// The GPU compile: the passes below the tile level, the emitter, LLVM's optimiser and its PTX
// writer.
//
// LLVM ends the process on what it cannot select, so nothing is asked of it that the target table
// does not have, and the module is verified first. Its diagnostics come through a handler and
// become ours.
#include "lower/lower.h"
#include "lower/record.h"
#include "lower/units.h"
#include "ptx/assemble.h"
#include "ptx/llvm_kernel.h"
#include "ptx/require.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TRIPLE "nvptx64-nvidia-cuda"

const char *tk_llvm_version(void) { return LLVM_VERSION_STRING; }
void tk_llvm_running(unsigned v[3]) { LLVMGetVersion(&v[0], &v[1], &v[2]); }

// LLVM's own state, which it keeps for the process.
static void init_targets(void) {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

// ---- LLVM objects, released on every way out

typedef struct llvm_state {
    tk_emit emit;
    LLVMTargetMachineRef machine;
    LLVMTargetDataRef data;
    LLVMMemoryBufferRef text;
    tk_buf messages;
    unsigned instructions; // of the kernel, optimised
} llvm_state;

// Above this many instructions the code generator optimises no more: its straight-line strength
// reduction and its sinking take time that grows with the square (half a second here).
enum { LARGE_KERNEL = 16000 };

static void on_message(LLVMDiagnosticInfoRef info, void *user) {
    llvm_state *s = user;
    if (LLVMGetDiagInfoSeverity(info) == LLVMDSError) {
        char *text = LLVMGetDiagInfoDescription(info);
        tk_buf_str(&s->messages, text);
        LLVMDisposeMessage(text);
    }
}

static void llvm_release(llvm_state *s) {
    if (s->text) {
        LLVMDisposeMemoryBuffer(s->text);
    }
    tk_lines_release(&s->emit);
    if (s->emit.b) {
        LLVMDisposeBuilder(s->emit.b);
    }
    if (s->emit.mod) {
        LLVMDisposeModule(s->emit.mod);
    }
    if (s->data) {
        LLVMDisposeTargetData(s->data);
    }
    if (s->machine) {
        LLVMDisposeTargetMachine(s->machine);
    }
    if (s->emit.ctx) {
        LLVMContextDispose(s->emit.ctx);
    }
}

static void make_machine(llvm_state *s, const char *ptx, LLVMCodeGenOptLevel level) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_targets);
    LLVMTargetRef target;
    char *error = NULL;
    if (LLVMGetTargetFromTriple(TRIPLE, &target, &error)) {
        tk_buf_str(&s->messages, error);
        LLVMDisposeMessage(error);
        TK_ICE(s->emit.arena, "LLVM has no %s: %s", TRIPLE, tk_buf_text(&s->messages));
    }
    if (s->machine) {
        LLVMDisposeTargetMachine(s->machine);
    }
    s->machine = LLVMCreateTargetMachine(target, TRIPLE, s->emit.target->name, ptx, level,
                                         LLVMRelocDefault, LLVMCodeModelDefault);
}

static const char *later(const char *a, const char *b) { return b && strcmp(b, a) > 0 ? b : a; }

// The least version that has the target and what the function multiplies with, and takes so many
// bytes of parameters. NULL: none does.
static const char *ptx_for(const tk_target *t, const tk_func *f, uint32_t param_bytes) {
    enum { PLAIN = 4352, MOST = 32764 };
    static const char large[] = "+ptx81";
    const char *ptx = later(t->ptx, tk_ptx_of_products(f));
    ptx = later(ptx, param_bytes > PLAIN ? large : NULL);
    return param_bytes <= MOST ? ptx : NULL;
}

static void make_module(llvm_state *s) {
    tk_emit *e = &s->emit;
    e->ctx = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(e->ctx, on_message, s);
    e->mod = LLVMModuleCreateWithNameInContext("tkc", e->ctx);
    s->data = LLVMCreateTargetDataLayout(s->machine);
    LLVMSetTarget(e->mod, TRIPLE);
    LLVMSetModuleDataLayout(e->mod, s->data);
    e->b = LLVMCreateBuilderInContext(e->ctx);
}

static void verify(llvm_state *s) {
    char *error = NULL;
    bool bad = LLVMVerifyModule(s->emit.mod, LLVMReturnStatusAction, &error);
    if (bad) {
        tk_buf_str(&s->messages, error);
    }
    LLVMDisposeMessage(error);
    if (bad) {
        TK_ICE(s->emit.arena, "the emitter made wrong LLVM IR: %.180s", tk_buf_text(&s->messages));
    }
}

// A module is one function that calls none of its own, has no globals but shared memory, no
// switches, and vectors where they are wanted. So these are the passes of -O2 for functions,
// without those that look for calls, globals and vectors: the vectorisers alone took three quarters
// of a compile (and "default<O2>" runs them whatever the options say).
#define INSTCOMBINE "instcombine<no-verify-fixpoint>,"
static const char pipeline[] =
    "function("
    "nvvm-intr-range,simplifycfg,sroa,early-cse,sccp," INSTCOMBINE "simplifycfg,"
    "early-cse<memssa>,speculative-execution<only-if-divergent-target>,jump-threading,"
    "correlated-propagation,simplifycfg," INSTCOMBINE "tailcallelim,reassociate,"
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate,licm,"
    "simple-loop-unswitch),"
    "simplifycfg," INSTCOMBINE "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),sroa,"
    "gvn,bdce," INSTCOMBINE "correlated-propagation,adce,dse,loop-mssa(licm),"
    "simplifycfg<hoist-common-insts;sink-common-insts>," INSTCOMBINE "infer-alignment,"
    "simplifycfg<no-keep-loops;hoist-common-insts;sink-common-insts>,loop-unroll<O2>,"
    "div-rem-pairs,"
    "simplifycfg<hoist-loads-stores-with-cond-faulting;speculate-unpredictables>)";

// Where much is read in elements of 8 or 16 bits and little is computed of each, the vectoriser
// keeps pairs in their registers until they are used. Where much is computed it finds nothing and
// takes long.
static const char vectoriser[] = "function(slp-vectorizer,vector-combine," INSTCOMBINE "adce)";
enum { LITTLE = 2 };

static void run_passes(llvm_state *s, const char *passes) {
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(s->emit.mod, passes, s->machine, o);
    LLVMDisposePassBuilderOptions(o);
    if (error) {
        char *text = LLVMGetErrorMessage(error);
        tk_buf_str(&s->messages, text);
        LLVMDisposeErrorMessage(text);
        TK_ICE(s->emit.arena, "LLVM's passes: %.200s", tk_buf_text(&s->messages));
    }
}

static bool is_narrow(LLVMTypeRef t) {
    LLVMTypeKind k = LLVMGetTypeKind(t);
    return k == LLVMHalfTypeKind || k == LLVMBFloatTypeKind ||
           (k == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) < 32);
}

// Elements taken from vectors of narrow ones, and operations on floats.
static void count_narrow(LLVMValueRef fn, unsigned *narrow, unsigned *computed) {
    *narrow = *computed = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            LLVMOpcode code = LLVMGetInstructionOpcode(i);
            *narrow += code == LLVMExtractElement && is_narrow(LLVMTypeOf(i));
            *computed += code == LLVMFNeg || code == LLVMFAdd || code == LLVMFSub ||
                         code == LLVMFMul || code == LLVMFDiv || code == LLVMCall;
        }
    }
}

static void optimise(llvm_state *s) {
    unsigned narrow, computed;
    run_passes(s, pipeline);
    count_narrow(s->emit.fn, &narrow, &computed);
    if (narrow > 0 && computed <= LITTLE * narrow) {
        run_passes(s, vectoriser);
    }
}

// Negations as complements and additions of 1. ptxas of CUDA 12.6 to 13.3 takes min(min(a, -b), c),
// or max, for one instruction (VIMNMX3, from sm_90 on) and loses the sign of b, for `neg` and `sub
// 0` of the type of min.
static const char *without_neg(tk_arena *a, const char *ptx, size_t *size) {
    static const char neg[] = "\tneg.s";
    tk_buf b;
    tk_buf_init(&b, a);
    for (const char *at; (at = strstr(ptx, neg)) != NULL;) {
        tk_buf_add(&b, ptx, (size_t)(at - ptx));
        char to[16], from[16];
        int bits = 0, used = 0;
        const char *rest = at + sizeof neg - 1;
        if (sscanf(rest, "%d %15[^,], %15[^;];%n", &bits, to, from, &used) == 3 && used > 0 &&
            bits < 64) {
            tk_buf_fmt(&b, "\tnot.b%d \t%s, %s;\n\tadd.s%d \t%s, %s, 1;", bits, to, from, bits, to,
                       to);
            ptx = rest + used;
        } else {
            tk_buf_str(&b, neg);
            ptx = rest;
        }
    }
    tk_buf_str(&b, ptx);
    *size = b.n;
    return tk_buf_text(&b);
}

// An assembler that is told no time and size of a source file looks for the file and writes its own
// into the machine code, which would then depend on them: each .file line names them.
static const char *dated_files(tk_arena *arena, const char *ptx, size_t *size) {
    static const char file[] = "\n\t.file\t";
    tk_buf b;
    tk_buf_init(&b, arena);
    for (const char *at = strstr(ptx, file); at; at = strstr(ptx, file)) {
        const char *end = at + 1 + strcspn(at + 1, "\n");
        tk_buf_add(&b, ptx, (size_t)(end - ptx));
        tk_buf_str(&b, ", 1, 1");
        ptx = end;
    }
    tk_buf_str(&b, ptx);
    *size = b.n;
    return tk_buf_text(&b);
}

// `or disjoint` is an addition whose flag may hold under a condition alone (i < 16: i | 16). LLVM
// 22's straight-line strength reduction, part of its code generator, takes such an or for the sum
// in places where the condition does not hold. An addition is right everywhere.
static void ors_to_sums(llvm_state *s) {
    LLVMBuilderRef b = s->emit.b;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(s->emit.fn); block;
         block = LLVMGetNextBasicBlock(block)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
            next = LLVMGetNextInstruction(i);
            if (LLVMGetInstructionOpcode(i) != LLVMOr || !LLVMGetIsDisjoint(i)) {
                continue;
            }
            LLVMPositionBuilderBefore(b, i);
            LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(i));
            LLVMValueRef sum = LLVMBuildAdd(b, LLVMGetOperand(i, 0), LLVMGetOperand(i, 1), "");
            if (LLVMIsAInstruction(sum)) {
                LLVMSetNUW(sum, 1);
                LLVMSetNSW(sum, 1);
            }
            LLVMReplaceAllUsesWith(i, sum);
            LLVMInstructionEraseFromParent(i);
        }
    }
}

// The same reduction, of addresses: it takes the distance of two indices of 32 bits for that of
// what they are extended to, whether they wrap or not, and an index may wrap where a condition
// keeps its access from happening. Frozen, an extended index is a value like any other.
static void freeze_indices(llvm_state *s) {
    LLVMBuilderRef b = s->emit.b;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(s->emit.fn); block;
         block = LLVMGetNextBasicBlock(block)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
            LLVMOpcode code = LLVMGetInstructionOpcode(i);
            if (code != LLVMSExt && code != LLVMZExt) {
                continue;
            }
            LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(i));
            LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(i));
            LLVMValueRef frozen = NULL;
            for (LLVMUseRef u = LLVMGetFirstUse(i), next; u; u = next) {
                next = LLVMGetNextUse(u);
                LLVMValueRef user = LLVMGetUser(u);
                if (LLVMGetInstructionOpcode(user) != LLVMGetElementPtr) {
                    continue;
                }
                frozen = frozen ? frozen : LLVMBuildFreeze(b, i, "");
                LLVMSetOperand(user, 1, frozen); // the only index
            }
        }
    }
}

static unsigned instructions_of(LLVMValueRef fn) {
    unsigned n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i)) {
            n++;
        }
    }
    return n;
}

static void write_ptx(llvm_state *s, tk_image *image) {
    char *error = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(s->machine, s->emit.mod, LLVMAssemblyFile, &error,
                                            &s->text)) {
        tk_buf_str(&s->messages, error);
        LLVMDisposeMessage(error);
    }
    if (s->messages.n) {
        TK_ICE(s->emit.arena, "LLVM's code generator: %.180s", tk_buf_text(&s->messages));
    }
    const char *text =
        tk_strndup(s->emit.arena, LLVMGetBufferStart(s->text), LLVMGetBufferSize(s->text));
    text = without_neg(s->emit.arena, text, &image->ptx_size);
    image->ptx = dated_files(s->emit.arena, text, &image->ptx_size);
}

static void keep_text(llvm_state *s, const tk_ptx_opts *o) {
    char *text = LLVMPrintModuleToString(s->emit.mod);
    tk_buf_str(&s->messages, text);
    LLVMDisposeMessage(text);
    *o->text = tk_strdup(s->emit.arena, tk_buf_text(&s->messages));
    s->messages.n = 0;
}

static tk_span span_of(const tk_module *m, const tk_func *f) {
    return f->loc < m->locs.n ? m->locs.at[f->loc].span : (tk_span){0, 0, 0};
}

static void refuse_parameters(tk_emit *e, const tk_image *image) {
    tk_error(e->diags, span_of(e->m, e->f), "gpu-refused",
             "kernel '%s' cannot be compiled for %s: its tensors and scalars take %u bytes of "
             "parameters, and 32764 is the most: use fewer tensors or fewer dimensions",
             e->f->name, e->target->name, image->param_bytes);
    e->refused = true;
}

static void compile(llvm_state *s, tk_image *image) {
    tk_emit *e = &s->emit;
    make_machine(s, e->target->ptx, LLVMCodeGenLevelDefault);
    make_module(s);
    tk_emit_kernel(e, image);
    const char *ptx = ptx_for(e->target, e->f, image->param_bytes);
    if (!ptx && !e->refused) {
        refuse_parameters(e, image);
    }
    if (e->refused) {
        return;
    }
    if (ptx != e->target->ptx) {
        make_machine(s, ptx, LLVMCodeGenLevelDefault);
    }
    verify(s);
    optimise(s);
    ors_to_sums(s);
    freeze_indices(s);
    s->instructions = instructions_of(e->fn);
    if (s->instructions > LARGE_KERNEL) {
        make_machine(s, ptx, LLVMCodeGenLevelNone);
    }
    if (e->opts->emit && strcmp(e->opts->emit, "llvm") == 0) {
        keep_text(s, e->opts);
    }
    write_ptx(s, image);
}

// After LLVM's objects are gone: the assembler's failures need nothing released.
static void assemble(tk_arena *arena, tk_module *m, const tk_func *f, tk_image *image) {
    tk_span at = span_of(m, f);
    const tk_source *file = m->sources ? tk_source_of(m->sources, at.file) : NULL;
    uint32_t line = 0, column = 0;
    if (file) {
        tk_line_col(file, at.begin, &line, &column);
    }
    tk_assemble_budgeted(arena, m, at, image,
                         tk_format(arena, "%s:%u", file ? file->name : "?", line));
    tk_assembled_note(m, at, image);
    tk_occupancy_note(m, at, image);
}

// The names of PTX are C's, but that an underscore alone is none and WARP_SZ stands for a number.
static const char *entry_name(tk_arena *a, const char *name) {
    char *out = tk_strdup(a, name);
    for (char *p = out; *p; p++) {
        bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '_';
        *p = fine ? *p : '_';
    }
    bool taken = strcmp(out, "_") == 0 || strcmp(out, "WARP_SZ") == 0;
    return taken ? tk_format(a, "%s_kernel", out) : out;
}

static tk_func *kernel_of(const tk_module *m) {
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (m->funcs.at[i]->is_kernel) {
            return m->funcs.at[i];
        }
    }
    return NULL;
}

// Before the passes, so that nothing is computed or moved for it.
static void drop_print(void *user, tk_op *op) {
    (void)user;
    if (op->code == TK_OP_PRINT) {
        tk_op_unlink(op);
    }
}

static void note_size(tk_module *m, const tk_func *f, unsigned instructions) {
    if (instructions > LARGE_KERNEL) {
        tk_note_rec *r =
            tk_note_add(&m->notes, "emit", "large-kernel", span_of(m, f), TK_NOTE_MISSED,
                        "'%s' is too large for the code generator's optimisations: loops in place "
                        "of copies, or "
                        "several kernels, make it smaller",
                        f->name);
        tk_note_number_add(&m->notes, r, "instructions", instructions);
        tk_note_number_add(&m->notes, r, "most", LARGE_KERNEL);
    }
}

tk_image *tk_ptx_compile(tk_arena *arena, tk_module *m, const tk_ptx_opts *o, tk_diags *diags) {
    const tk_target *target = tk_target_find(o->arch);
    tk_func *f = kernel_of(m);
    TK_CHECK(arena, target && f);
    if (!o->debug) {
        tk_func_walk(f, drop_print, NULL);
    }
    if (!tk_lower(m, target, o->facts, &arena->from, diags, NULL, o->debug)) {
        return NULL;
    }
    const tk_axis *axis = tk_axis_make(arena, f, o->facts);
    const tk_record_opts record = {o->size, o->scalar, target, o->counts || m->attrs.require.n > 0};
    tk_record_kernel(arena, f, axis, &record);
    tk_image *image = TK_NEW(arena, tk_image);
    image->kernel = entry_name(arena, f->name);
    image->arch = target->name;
    // LLVM's objects are in no arena: a failure is caught, they are released, and it goes on.
    tk_guard guard, *outer = arena->guard;
    llvm_state *s = TK_NEW(arena, llvm_state);
    s->emit = (tk_emit){.arena = arena,
                        .diags = diags,
                        .m = m,
                        .f = f,
                        .target = target,
                        .opts = o,
                        .axis = axis,
                        .warps = (unsigned)m->attrs.warps};
    tk_buf_init(&s->messages, arena);
    memset(&guard, 0, sizeof guard);
    arena->guard = &guard;
    if (setjmp(guard.jump) == 0) {
        compile(s, image);
    }
    arena->guard = outer;
    llvm_release(s);
    if (guard.fail != TK_FAIL_NONE) {
        outer->fail = guard.fail;
        memcpy(outer->text, guard.text, sizeof outer->text);
        longjmp(outer->jump, 1);
    }
    if (s->emit.refused) {
        return NULL;
    }
    note_size(m, f, s->instructions);
    if (!o->no_cubin || (o->judge != TK_JUDGE_NOBODY && tk_require_of_machine_code(m))) {
        assemble(arena, m, f, image);
    }
    return tk_require(m, f, image, o, diags) || o->keep_failed ? image : NULL;
}
