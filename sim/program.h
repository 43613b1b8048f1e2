// SPDX-License-Identifier: Apache-2.0
// A decoded PTX module: what the reader makes and the machine runs. Const once it is read.
//
// Registers. A register is a slot: 32 lanes of 64 bits in each warp (machine.h), of which a value
// uses the low ones; the others are 0. Predicates are slots of their own kind: 32 bits, one a lane.
// Immediates and special registers are slots too, filled before a block runs, so an executor reads
// all its sources in one way.
//
// Instructions. ops_*.def have one row for each form: a pattern of the mnemonic, the shape of the
// operands, a function that picks the executor, and the class for the counters. What a mnemonic
// says is in the instruction as types (in their order) and as a set of modifiers; operands are a
// flat list, with the place where each of the shape's operands begins.
#ifndef TK_SIM_PROGRAM_H
#define TK_SIM_PROGRAM_H

#include "sim/sim.h"

struct tk_sim_warp;

typedef enum tk_sim_type {
#define TK_SIM_TYPE(ID, NAME, BITS, KIND) TK_SIM_##ID,
#include "sim/types.def"
    TK_SIM_TYPE_COUNT
} tk_sim_type;

typedef struct tk_sim_type_info {
    const char *name;
    uint16_t bits;
    char kind; // 'u' unsigned, 's' signed, 'b' bits, 'f' float, 'p' predicate
} tk_sim_type_info;
extern const tk_sim_type_info tk_sim_types[TK_SIM_TYPE_COUNT];

typedef enum tk_sim_mod {
#define TK_SIM_MOD(ID, NAME) TK_SIM_MOD_##ID,
#include "sim/mods.def"
    TK_SIM_MOD_COUNT
} tk_sim_mod;
enum { TK_SIM_MOD_WORDS = (TK_SIM_MOD_COUNT + 63) / 64 };

typedef enum tk_sim_space {
    TK_SIM_GENERIC,
    TK_SIM_GLOBAL,
    TK_SIM_SHARED,
    TK_SIM_LOCAL,
    TK_SIM_CONST,
    TK_SIM_PARAM,
    TK_SIM_CLUSTER // shared memory of a block of the cluster
} tk_sim_space;

typedef enum tk_sim_arg_kind {
    TK_SIM_ARG_REG,   // a register or special register
    TK_SIM_ARG_CONST, // an immediate
    TK_SIM_ARG_PRED,  // a predicate; `negated` for !p
    TK_SIM_ARG_SINK,  // _, as a destination
    TK_SIM_ARG_ADDRESS,
    TK_SIM_ARG_LABEL // slot: index of an instruction
} tk_sim_arg_kind;

typedef struct tk_sim_arg {
    uint32_t slot;       // ADDRESS: of the base
    int32_t offset;      // ADDRESS: added to the base; CONST: its low 32 bits
    uint8_t kind, bytes; // of the register: 2, 4, 8
    bool negated;
    uint8_t
        space; // ADDRESS of a parameter or variable by name; REG: 1 + the type it is declared of
} tk_sim_arg;

typedef enum tk_sim_flow {
    TK_SIM_NEXT,   // the lanes go on
    TK_SIM_BRANCH, // the lanes of the mask go to warp->target
    TK_SIM_GO,     // each of them goes to its own pc, which is set
    TK_SIM_WAIT,   // they stay, until others arrive
    TK_SIM_JOINED, // the lanes of warp->joined go on: what some of them waited for is done
    TK_SIM_EXIT,   // the lanes of the mask have ended
    TK_SIM_FAULT   // a fault is recorded: the run ends
} tk_sim_flow;

struct tk_sim_inst;
// Runs the instruction for the lanes of `mask`, which is never 0.
typedef tk_sim_flow tk_sim_exec(struct tk_sim_warp *w, const struct tk_sim_inst *i, uint32_t mask);

enum { TK_SIM_OPERANDS = 10, TK_SIM_TYPES = 4 };
#define TK_SIM_REJOINS_CALLER UINT32_MAX // behind the call of the function

struct tk_sim_function;

typedef struct tk_sim_inst {
    tk_sim_exec *exec;
    uint64_t mods[TK_SIM_MOD_WORDS];
    tk_sim_arg *arg;
    const struct tk_sim_function *call; // what it calls: operand 0 are results, 1 arguments
    uint32_t narg;
    uint16_t
        at[TK_SIM_OPERANDS + 1]; // arguments of the shape's operand n: arg[at[n]] up to at[n + 1]
    uint8_t type[TK_SIM_TYPES];  // .type suffixes in order
    uint8_t ntype;
    uint8_t klass;   // tk_sim_class
    uint8_t guard;   // 0: always, 1: @p, 2: @!p
    uint16_t number; // what stands for # in the pattern
    bool strong;  // an atomic access, or one of several threads: .relaxed, .volatile and the like
    bool tracked; // names a register that a wgmma of the module uses: see wgmma.h
    bool meets;   // has a member mask, its last operand: threads may come to it at several places
    bool tells;   // changes what other threads may come to know, other than a store of a value
    bool clock;   // reads a special register that changes as time goes on
    bool joins;   // threads that have parted may meet here again
    bool polls;   // a branch back, around code that looks at what other threads do
    uint32_t rejoins; // where those that part here do: its index + 1, or REJOINS_CALLER; 0: nowhere
    uint32_t guard_slot;
    uint32_t line;    // of the PTX
    uint32_t loc;     // index into locs; 0: none
    const char *name; // the mnemonic, with its words in the order of its row
} tk_sim_inst;

static inline bool tk_sim_has(const tk_sim_inst *i, tk_sim_mod m) {
    return i->mods[(unsigned)m / 64] >> ((unsigned)m % 64) & 1;
}
// Operand n of the shape: its first argument; how many it has (0: left out).
static inline const tk_sim_arg *tk_sim_operand(const tk_sim_inst *i, unsigned n) {
    return i->arg + i->at[n];
}
static inline unsigned tk_sim_count_of(const tk_sim_inst *i, unsigned n) {
    return (unsigned)i->at[n + 1] - i->at[n];
}

// Picks the executor of a decoded instruction; NULL: this combination does not exist.
typedef tk_sim_exec *tk_sim_bind(const tk_sim_inst *i);

typedef struct tk_sim_row {
    const char *pattern; // ops_*.def say how patterns and shapes are written
    const char *shape;
    tk_sim_bind *bind;
    tk_sim_class klass;
} tk_sim_row;
const tk_sim_row *tk_sim_rows(size_t *n);

// ---- Registers that are filled before a block runs

typedef enum tk_sim_special {
#define TK_SIM_SPECIAL(ID, NAME, BYTES, SM) TK_SIM_SPECIAL_##ID,
#include "sim/specials.def"
    TK_SIM_SPECIAL_COUNT
} tk_sim_special;

typedef enum tk_sim_fill_kind {
    TK_SIM_FILL_BITS,    // an immediate
    TK_SIM_FILL_PRED,    // an immediate predicate: bits is 0 or 1, the slot a predicate's
    TK_SIM_FILL_SPECIAL, // index: tk_sim_special; the predicates among them too
    TK_SIM_FILL_LOCAL,   // address `bits` of the thread's own memory, from its frame on
    TK_SIM_FILL_VARIABLE // index: the variable whose address, plus bits, it is
} tk_sim_fill_kind;

typedef struct tk_sim_fill {
    uint32_t slot;
    tk_sim_fill_kind kind;
    uint32_t index;
    uint64_t bits;
} tk_sim_fill;

static inline bool tk_sim_fill_is_pred(const tk_sim_fill *f) {
    return f->kind == TK_SIM_FILL_PRED ||
           (f->kind == TK_SIM_FILL_SPECIAL && f->index == TK_SIM_SPECIAL_IS_EXPLICIT_CLUSTER);
}

typedef struct tk_sim_loc {
    uint32_t file, line, column; // file: index into files
} tk_sim_loc;

// ---- Functions and variables

typedef struct tk_sim_param {
    const char *name;
    uint32_t offset, bytes;
} tk_sim_param;

// A variable of the module: its bytes are copied to `offset` of its space before a run.
typedef struct tk_sim_variable {
    const char *name;
    tk_sim_space space; // GLOBAL, CONST, SHARED
    uint64_t offset, bytes;
    bool dynamic;              // extern shared, of no size: what the launch gives
    const unsigned char *data; // NULL: zeros
} tk_sim_variable;

// An initialiser that is an address: of variable `of`, written to offset `at` of variable `in`.
typedef struct tk_sim_reloc {
    uint32_t in, of;
    uint64_t at;
    int64_t plus;
    bool generic;
} tk_sim_reloc;

// An entry, or the body of a function. All code is in one list; behind each body stands an
// instruction that says that the code has run past its end. A warp has slots for the registers of
// all functions and, behind them, for those of its entry.
typedef struct tk_sim_entry {
    const char *name;
    uint32_t line; // of the PTX
    TK_VEC(tk_sim_param) params;
    uint32_t param_bytes;
    uint32_t first, ninst; // of the program's code
    uint32_t nreg, npred;  // slots; of an entry: of all functions too
    uint32_t reg0, pred0;  // the first of its own
    TK_VEC(tk_sim_fill) fills;
    TK_VEC(uint32_t) own, own_pred; // of a function: its slots that are not filled
    uint32_t local_bytes;           // a thread; of a function: a call
    bool calls;
    uint32_t reqntid[3], maxntid[3];     // 0: not said
    uint32_t maxnreg, minnctapersm;      // 0: not said
    uint32_t cluster[3], maxclusterrank; // 0: not said
    bool blocks_are_clusters;            // the grid is given in clusters
} tk_sim_entry;

// A parameter or result of a function: in a register, or at `offset` of the call's own memory.
typedef struct tk_sim_formal {
    const char *name;
    tk_sim_type type;
    bool is_register;
    uint32_t slot, offset, bytes, align;
} tk_sim_formal;

typedef enum tk_sim_builtin {
    TK_SIM_BUILTIN_NONE,
    TK_SIM_BUILTIN_VPRINTF,
    TK_SIM_BUILTIN_ASSERTFAIL
} tk_sim_builtin;

typedef struct tk_sim_function {
    const char *name;
    TK_VEC(tk_sim_formal) results, formals;
    tk_sim_entry *body; // NULL: of the system, or only declared
    tk_sim_builtin builtin;
    uint32_t called;        // the line of a call; 0: none
    bool early;             // a function called it before its body was complete
    bool external, visible; // as it was first declared
    uint32_t declared;      // the line where it was, unless it has a body there
} tk_sim_function;

enum { TK_SIM_CALL_DEPTH = 32, TK_SIM_FRAME_ALIGN = 128, TK_SIM_MAX_FORMALS = 64 };

struct tk_sim_program {
    unsigned version;   // 80 for .version 8.0
    const char *target; // "sm_90a"
    TK_VEC(tk_sim_entry *) entries;
    TK_VEC(tk_sim_function *) functions;
    TK_VEC(tk_sim_inst) code;
    TK_VEC(tk_sim_fill) fills; // of the functions
    uint32_t nreg, npred;      // slots of the functions
    uint32_t frame_bytes;      // of the greatest call
    bool recursive;            // a function may come to call itself
    TK_VEC(tk_sim_variable) variables;
    TK_VEC(tk_sim_reloc) relocs;
    TK_VEC(tk_sim_loc) locs;            // 0 is none
    TK_VEC(const char *) files;         // by .file's number; NULL where there is none
    bool tensors;                       // it copies by tensor maps, or changes some
    bool flags;                         // its fences count: strong accesses, relaxed arrivals
    bool reserved;                      // it reads where libraries have shared memory
    bool warpgroups;                    // it has instructions of warpgroups
    uint64_t global_bytes, const_bytes; // of all variables of a space
    uint32_t shared_bytes;              // from address TK_SIM_SHARED_BASE on
};

tk_sim_exec tk_sim_exec_call; // of the instructions that call something
tk_sim_exec tk_sim_exec_past; // of those behind a body

tk_sim_place tk_sim_place_of(const tk_sim_program *p, const tk_sim_inst *i);
// Where the entry begins, as the first line of its code says; NULL: the module.
tk_sim_place tk_sim_entry_place(const tk_sim_program *p, const tk_sim_entry *e);

// Addresses. Shared memory begins above 0, so that a null address is out of bounds. A generic
// address of a space other than global is its window plus the address in that space. Addresses of
// shared memory from TK_SIM_CLUSTER_STEP on are those of blocks of the cluster, by their ranks; the
// ones below it are a block's own.
#define TK_SIM_SHARED_BASE 1024u
// Below it lies what is the system's, and at the end of that what is for libraries.
#define TK_SIM_RESERVED_BYTES 288u
#define TK_SIM_RESERVED_BASE  (TK_SIM_SHARED_BASE - TK_SIM_RESERVED_BYTES)
#define TK_SIM_LOCAL_BASE     1024u
#define TK_SIM_WINDOW(space)  ((uint64_t)(space) << 60)
#define TK_SIM_CONST_BASE     65536u
#define TK_SIM_CLUSTER_STEP   (1u << 24)

#endif
