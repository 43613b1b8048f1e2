// SPDX-License-Identifier: Apache-2.0
// Inside the reader: tokens, names in scope, operands on their way to slots.
//
// A fault ends the reading by a jump to tk_sim_read, so the functions below give no status.
#ifndef TK_SIM_READ_H
#define TK_SIM_READ_H

#include "sim/program.h"

#include <setjmp.h>

// Bounds of what a module may ask for, beyond its size in text.
enum {
    TK_SIM_MAX_INSTS = 1 << 17,      // an instruction's index has 17 bits in a shadow record
    TK_SIM_MAX_SHARED = 256 << 10,   // bytes of shared variables
    TK_SIM_MAX_LOCAL = 512 << 10,    // bytes of local variables a thread
    TK_SIM_MAX_VARIABLES = 16 << 20, // bytes of global variables
    TK_SIM_MAX_CONST = 64 << 10,     // bytes of constant variables
    TK_SIM_MAX_DEPTH = 64,           // scopes in scopes
    TK_SIM_MAX_DIMENSIONS = 16       // of arrays
};

typedef enum tk_sim_token_kind {
    TK_SIM_TOKEN_END,
    TK_SIM_TOKEN_WORD,   // names, mnemonics with their suffixes, directives
    TK_SIM_TOKEN_NUMBER, // as written
    TK_SIM_TOKEN_STRING, // without its quotes
    TK_SIM_TOKEN_PUNCT   // one character
} tk_sim_token_kind;

typedef struct tk_sim_token {
    tk_sim_token_kind kind;
    const char *at;
    uint32_t n, line;
} tk_sim_token;

typedef enum tk_sim_symbol_kind {
    TK_SIM_SYMBOL_REG,   // slot, type; a predicate too
    TK_SIM_SYMBOL_RANGE, // %r<8>: %r0 to %r7
    TK_SIM_SYMBOL_PARAM, // of the entry: offset
    TK_SIM_SYMBOL_LOCAL, // offset
    TK_SIM_SYMBOL_VARIABLE,
    TK_SIM_SYMBOL_LABEL,
    TK_SIM_SYMBOL_FUNCTION,
    TK_SIM_SYMBOL_ENTRY,
    TK_SIM_SYMBOL_TARGETS, // of .branchtargets: labels, for one brx.idx
    TK_SIM_SYMBOL_NUMBERED // see read_names.c
} tk_sim_symbol_kind;

typedef enum tk_sim_role { // of a variable of a thread's own memory
    TK_SIM_ROLE_NONE,
    TK_SIM_ROLE_CALL,  // a parameter that a call hands over
    TK_SIM_ROLE_INPUT, // of this function
    TK_SIM_ROLE_OUTPUT
} tk_sim_role;

typedef struct tk_sim_symbol {
    const char *name;               // interned
    struct tk_sim_symbol *shadowed; // with the same name, of an outer scope
    struct tk_sim_symbol *next;     // of the same scope
    tk_sim_symbol_kind kind;
    tk_sim_type type;
    uint32_t depth;   // of its scope
    uint32_t value;   // slot, offset, index of a variable, function or instruction; RANGE: how many
    uint32_t bytes;   // LOCAL
    tk_sim_role role; // LOCAL
    uint32_t least;   // RANGE: the smallest number of such a name that is declared beside it
    uint8_t digits;   // REG: of a range's number, at the name's end; 0: of none
    bool placed;      // REG: has a slot; TARGETS: a brx.idx has them; ENTRY: is defined
    const char **labels; // TARGETS: [value]
} tk_sim_symbol;

// A branch to a label that was not seen yet.
typedef struct tk_sim_pending {
    struct tk_sim_pending *next;
    const char *name;
    tk_sim_arg *arg;
    uint32_t line;
} tk_sim_pending;

typedef struct tk_sim_scope {
    tk_sim_symbol *symbols;
    tk_sim_pending *pending;
} tk_sim_scope;

typedef struct tk_sim_number {
    bool is_float;    // 1.5, 0f3F800000, 0d...
    uint8_t pattern;  // 4 or 8: written as the bits of an f32 or f64
    bool is_unsigned; // an integer of .u64
    uint64_t bits;    // integer; or the bits of an f64 (pattern 0 or 8) or f32 (pattern 4)
} tk_sim_number;

typedef enum tk_sim_item_kind {
    TK_SIM_ITEM_SYMBOL, // a register, label, variable: not looked up yet
    TK_SIM_ITEM_NUMBER,
    TK_SIM_ITEM_SINK
} tk_sim_item_kind;

typedef struct tk_sim_item {
    tk_sim_item_kind kind;
    bool negated;
    const char *name;
    tk_sim_number number;
    int64_t plus; // SYMBOL + number
    bool sum;     // that there is such a number
} tk_sim_item;

typedef enum tk_sim_operand_kind {
    TK_SIM_OPERAND_ONE,
    TK_SIM_OPERAND_PAIR,    // a|b
    TK_SIM_OPERAND_LIST,    // {a, b}
    TK_SIM_OPERAND_ADDRESS, // [a+4], and [a, {b, c}] with the list's items behind
    TK_SIM_OPERAND_GROUP    // (a, b): of a call
} tk_sim_operand_kind;

typedef struct tk_sim_operand_text {
    tk_sim_operand_kind kind;
    uint32_t n;
    tk_sim_item *item;
} tk_sim_operand_text;

typedef struct tk_sim_reader {
    tk_arena *arena;
    tk_sim_program *program;
    tk_sim_note *error;
    jmp_buf jump;
    const char *at, *end; // the text from behind `token` on
    uint32_t line;
    tk_sim_token token; // the one to look at
    tk_names names;
    tk_sim_symbol **table; // of symbols by name: hashed
    uint32_t nsymbol, room;
    tk_sim_scope scope[TK_SIM_MAX_DEPTH];
    uint32_t depth;          // scope[depth] is the innermost
    tk_sim_entry *entry;     // whose body is being read, or NULL
    bool in_function, sized; // .address_size was there
    uint32_t loc, entries;   // entries: that have names
    uint32_t *fill_table;    // of the entry's fills by value: index + 1
    uint32_t fill_room;
    uint32_t sink[2]; // slots for _ of registers and predicates, plus 1
} tk_sim_reader;

TK_NORETURN void tk_sim_refuse(tk_sim_reader *r, const char *fmt, ...) TK_PRINTF(2, 3);
TK_NORETURN void tk_sim_refuse_at(tk_sim_reader *r, uint32_t line, const char *fmt, ...)
    TK_PRINTF(3, 4);

// ---- read_lex.c
void tk_sim_next(tk_sim_reader *r);                       // to the next token
bool tk_sim_is(const tk_sim_reader *r, const char *text); // a word or a punctuation mark
bool tk_sim_accept(tk_sim_reader *r, const char *text);   // goes on if it is
void tk_sim_expect(tk_sim_reader *r, const char *text);
const char *tk_sim_word(tk_sim_reader *r, const char *what); // interned; goes on
const char *tk_sim_token_text(tk_sim_reader *r);             // for messages

// ---- read_const.c
uint64_t tk_sim_read_integer(tk_sim_reader *r, uint64_t most, const char *what); // one number
bool tk_sim_constant_begins(const tk_sim_reader *r);      // an expression, by its first token
tk_sim_number tk_sim_read_constant(tk_sim_reader *r);     // goes on behind the expression
tk_sim_number tk_sim_read_constant_not(tk_sim_reader *r); // behind its first !
// Its bits as a type has them. Floats take floats, of f32 and f64 only; integers with or without a
// sign take integers, pairs none. False: it does not fit.
bool tk_sim_number_bits(const tk_sim_number *x, tk_sim_type type, uint64_t *out);

// ---- read_names.c
void tk_sim_scope_open(tk_sim_reader *r);
void tk_sim_scope_close(tk_sim_reader *r); // resolves labels
tk_sim_symbol *tk_sim_declare(tk_sim_reader *r, const char *name, tk_sim_symbol_kind kind);
tk_sim_symbol *tk_sim_lookup(tk_sim_reader *r, const char *name); // NULL
void tk_sim_label_ref(tk_sim_reader *r, const char *name, uint32_t line, tk_sim_arg *arg);
uint32_t tk_sim_fill_slot(tk_sim_reader *r, tk_sim_fill_kind kind, uint32_t index, uint64_t bits);
uint32_t tk_sim_new_slot(tk_sim_reader *r, bool pred);

// ---- read_variables.c
typedef struct tk_sim_declared {
    tk_sim_type type;
    uint32_t vector; // 1, 2, 4
    uint64_t align, count;
    bool unsized; // name[]
    bool managed;
    unsigned dims;
    uint64_t dim[TK_SIM_MAX_DIMENSIONS];
    const char *name;
} tk_sim_declared;
bool tk_sim_read_type(tk_sim_reader *r, tk_sim_type *out);
bool tk_sim_is_declarable(tk_sim_type t);
// most: bytes.
void tk_sim_read_parameter(tk_sim_reader *r, tk_sim_declared *d, uint64_t most);
uint64_t tk_sim_declared_bytes(tk_sim_reader *r, const tk_sim_declared *d, uint64_t most);
uint64_t tk_sim_declared_align(const tk_sim_declared *d);
// Places `n` bytes in what a space has so far.
uint64_t tk_sim_put_behind(uint64_t *used, uint64_t n, uint64_t align);
void tk_sim_read_variables(tk_sim_reader *r, tk_sim_space space, bool external); // of one statement
void tk_sim_read_locals(tk_sim_reader *r, tk_sim_role role);

// ---- read_operands.c
// groups: a parenthesis opens a list of a call, not a constant expression. How many there are, up
// to the semicolon.
unsigned tk_sim_read_operands(tk_sim_reader *r, tk_sim_operand_text *o, bool groups);

// ---- read_inst.c
// Reads one instruction, from its mnemonic to the semicolon, into the entry.
void tk_sim_read_inst(tk_sim_reader *r, uint8_t guard, uint32_t guard_slot);

// ---- read_target.c
void tk_sim_read_target(tk_sim_reader *r);           // behind .target
unsigned long tk_sim_target(const tk_sim_reader *r); // the number of the module's; 0: it has none
// The special register of this name, COUNT: there is none; *bytes: 0 for a predicate. What is wrong
// with it, else NULL.
const char *tk_sim_find_special(tk_sim_reader *r, tk_sim_inst *i, const char *name,
                                tk_sim_special *out, unsigned *bytes);
bool tk_sim_special_fits(const tk_sim_inst *i, tk_sim_special which, unsigned bytes, unsigned bits);
// What only later ones have: NULL, or what is wrong with the form; refuses by name, and notes what
// the program has.
const char *tk_sim_target_problem(const tk_sim_reader *r, const tk_sim_inst *i);
void tk_sim_check_target(tk_sim_reader *r, const char *name, uint32_t line);

// ---- read_forms.c
// Whether a register of type `has` may be the operand at `place`, of type `type`. bits_only: it has
// no type of the instruction.
bool tk_sim_register_fits(const tk_sim_inst *i, unsigned place, tk_sim_type has, tk_sim_type type,
                          bool bits_only);
bool tk_sim_list_fits(const tk_sim_inst *i);
bool tk_sim_truth_fits(const tk_sim_inst *i);
// What is wrong with a variable of a thread's own memory as its address; NULL: nothing.
const char *tk_sim_role_problem(const tk_sim_inst *i, tk_sim_role role);
bool tk_sim_converts(const tk_sim_inst *i, tk_sim_space variable);
bool tk_sim_float_fits(const tk_sim_inst *i, unsigned place, const tk_sim_number *x,
                       bool bits_only); // a number, there
// What is wrong with the words and operands of an instruction that fits this row; NULL: nothing.
const char *tk_sim_form_problem(const tk_sim_reader *r, const tk_sim_row *row,
                                const tk_sim_inst *i);

// Before the executor is picked: lists that are of another length than the words say; NULL: none.
const char *tk_sim_list_problem(tk_sim_reader *r, const tk_sim_row *row, const tk_sim_inst *i);
// Whether PTX has such an instruction, and the simulator does not.
bool tk_sim_unsupported(const char *mnemonic);

// ---- read_ranges.c
// A number among the operands that the instruction does not take; NULL: none.
// numbers: as they are written, by argument.
const char *tk_sim_range_problem(tk_arena *arena, const tk_sim_inst *i, const int64_t *numbers);

// ---- read_link.c
void tk_sim_link(tk_sim_reader *r); // what is known only once the module is read

// ---- read_reconverge.c
// Where the threads of a warp that part in this body meet again.
void tk_sim_reconverge(tk_sim_reader *r, const tk_sim_entry *e, bool function);

// ---- match.c
// What a mnemonic says by this row's pattern; false: another form.
bool tk_sim_match(const tk_sim_row *row, const char *mnemonic, tk_sim_inst *out);
// The words as the row's pattern has them; NULL: another form.
const char *tk_sim_in_order(tk_arena *arena, const tk_sim_row *row, const char *mnemonic);
bool tk_sim_root_is(const tk_sim_row *row, const char *mnemonic, size_t n); // before the first dot
bool tk_sim_type_of(const char *name, size_t n, tk_sim_type *out);

#endif
