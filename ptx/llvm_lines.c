// SPDX-License-Identifier: Apache-2.0
// Places in the source: .file and .loc lines in PTX, which assemblers and profilers show. Nothing
// else of debug information is made.
//
// An op belongs to the innermost place that it was inlined from: the line of the file that it
// stands in, be it a function of std/.
#include "ptx/llvm_kernel.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

// Lines and files alone; LLVM's C interface has no name for this kind.
#define DIRECTIVES_ONLY ((LLVMDWARFEmissionKind)3)

typedef struct tk_lines {
    LLVMDIBuilderRef di; // NULL once it is finished
    LLVMMetadataRef function;
    uint32_t function_file;
    LLVMMetadataRef *scope; // per file of the sources; NULL: not needed yet
} tk_lines;

// In PTX a quote ends a name, and nothing stands for one.
static LLVMMetadataRef file_of(tk_emit *e, uint32_t file) {
    char *name = tk_strdup(e->arena, tk_source_of(e->m->sources, file)->name);
    for (char *p = name; *p; p++) {
        *p = *p == '"' || (unsigned char)*p < ' ' ? '_' : *p;
    }
    return LLVMDIBuilderCreateFile(e->lines->di, name, strlen(name), ".", 1);
}

static void module_flag(tk_emit *e) {
    LLVMValueRef version = tk_emit_i32(e, (int64_t)LLVMDebugMetadataVersion());
    static const char key[] = "Debug Info Version";
    LLVMAddModuleFlag(e->mod, LLVMModuleFlagBehaviorWarning, key, sizeof key - 1,
                      LLVMValueAsMetadata(version));
}

static const tk_source *source_at(const tk_emit *e, tk_loc loc, tk_span *span) {
    *span = loc < e->m->locs.n ? e->m->locs.at[loc].span : (tk_span){0, 0, 0};
    return e->m->sources ? tk_source_of(e->m->sources, span->file) : NULL;
}

void tk_lines_begin(tk_emit *e) {
    tk_span span;
    const tk_source *source = source_at(e, e->f->loc, &span);
    if (!source) {
        return;
    }
    uint32_t line, column;
    tk_line_col(source, span.begin, &line, &column);
    tk_lines *l = TK_NEW(e->arena, tk_lines);
    l->scope = TK_NEW_ARRAY(e->arena, LLVMMetadataRef, e->m->sources->files.n + 1);
    l->function_file = span.file;
    l->di = LLVMCreateDIBuilder(e->mod);
    e->lines = l;
    module_flag(e);
    LLVMMetadataRef file = file_of(e, span.file);
    LLVMDIBuilderCreateCompileUnit(l->di, LLVMDWARFSourceLanguageC99, file, "tkc", 3, 1, "", 0, 0,
                                   "", 0, DIRECTIVES_ONLY, 0, 0, 0, "", 0, "", 0);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(l->di, file, NULL, 0, LLVMDIFlagZero);
    size_t n;
    const char *name = LLVMGetValueName2(e->fn, &n);
    l->function = LLVMDIBuilderCreateFunction(l->di, file, name, n, name, n, file, line, type, 0, 1,
                                              line, LLVMDIFlagZero, 1);
    LLVMSetSubprogram(e->fn, l->function);
    tk_lines_at(e, e->f->loc);
}

void tk_lines_at(tk_emit *e, tk_loc loc) {
    tk_lines *l = e->lines;
    tk_span span;
    const tk_source *source = l && l->di ? source_at(e, loc, &span) : NULL;
    if (!source) { // what the compiler made itself stays with what stands before it
        return;
    }
    LLVMMetadataRef scope = l->function;
    if (span.file != l->function_file) {
        if (!l->scope[span.file]) {
            l->scope[span.file] =
                LLVMDIBuilderCreateLexicalBlockFile(l->di, l->function, file_of(e, span.file), 0);
        }
        scope = l->scope[span.file];
    }
    uint32_t line, column;
    tk_line_col(source, span.begin, &line, &column);
    LLVMSetCurrentDebugLocation2(
        e->b, LLVMDIBuilderCreateDebugLocation(e->ctx, line, column, scope, NULL));
}

void tk_lines_end(tk_emit *e) {
    if (e->lines && e->lines->di) {
        LLVMDIBuilderFinalize(e->lines->di);
        LLVMDisposeDIBuilder(e->lines->di);
        e->lines->di = NULL;
    }
}

void tk_lines_release(tk_emit *e) { tk_lines_end(e); }
