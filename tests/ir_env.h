// SPDX-License-Identifier: Apache-2.0
// For tests on the IR: one arena with its guard, modules from text, and what a pass makes of them.
#ifndef TKC_TESTS_IR_ENV_H
#define TKC_TESTS_IR_ENV_H

#include "ir/pass.h"

typedef struct ir_env {
    tk_arena arena;
    tk_sources sources;
    tk_diags diags;
} ir_env;

ir_env *ir_open(void);
void ir_close(ir_env *e);
tk_module *ir_parse(ir_env *e, const char *text);   // NULL: diagnostics
tk_module *ir_good(ir_env *e, const char *text);    // parsed and verified, else the test fails
const char *ir_text(ir_env *e, const tk_module *m); // without places
const char *ir_text_locs(ir_env *e, const tk_module *m);
const char *ir_why(ir_env *e, const tk_module *m); // what the verifier says; NULL: all holds
const char *ir_diags(ir_env *e);
void ir_refuses(const char *text,
                const char *want); // the verifier says `want`, else the test fails
bool ir_run(ir_env *e, const char *pass, tk_module *m); // one pass; NULL: all
// The text of a module after one pass; NULL: all passes.
const char *ir_after(ir_env *e, const char *pass, const char *text);
unsigned ir_count(const tk_module *m, tk_opcode code);          // ops of a kind
const tk_note_rec *ir_note(const tk_module *m, const char *id); // the first; NULL: none
const char *ir_elem_sample(ir_env *e, tk_opcode code,
                           tk_dtype t); // a module with this element-wise op

#endif
