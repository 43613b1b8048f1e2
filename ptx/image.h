// SPDX-License-Identifier: Apache-2.0
// What the GPU back end hands to the run time: an image and how it is launched.
//
// The kernel's parameters, in order, each naturally aligned (image.slot has the offsets):
//   the tensor maps, each of TK_MAP_BYTES and aligned to TK_MAP_ALIGN; for each tensor of the IR
//   kernel, in order: its address (u64), its sizes (i32 each), its strides in elements (i64 each);
//   for each scalar: its value in its type (bool as one byte); then the counts of the grid's axes
//   (i32 each); in a debug compile of a kernel with asserts, assumes or prints at last the address
//   of what it leaves behind (ptx/debug.h).
// Tensors and scalars stand in the order of the IR kernel's parameters. Programs are blocks along x
// of a one-dimensional launch; the kernel splits its number by the counts, axis 0 fastest.
#ifndef TK_PTX_IMAGE_H
#define TK_PTX_IMAGE_H

#include "ir/ir.h"
#include "ir/note.h"
#include "lower/facts.h"
#include "lower/map.h"

typedef enum {
    TK_SLOT_ADDRESS,
    TK_SLOT_SIZE,
    TK_SLOT_STRIDE,
    TK_SLOT_SCALAR,
    TK_SLOT_GRID,
    TK_SLOT_DEBUG,
    TK_SLOT_MAP
} tk_slot_kind;

typedef struct tk_param_slot {
    tk_slot_kind kind;
    uint32_t param;  // IR parameter; GRID: axis; DEBUG: 0; MAP: number of the map
    uint32_t axis;   // SIZE, STRIDE
    uint32_t offset; // bytes from the start of the parameter block
    uint32_t size;   // bytes
} tk_param_slot;

// Instructions that are counted in the machine code: their opcodes are the low 9 bits of each 16
// bytes. TK_MACHINE_OP(name, opcode)
#define TK_MACHINE_OPS(TK_MACHINE_OP)                                                              \
    TK_MACHINE_OP(LDG, 0x181)                                                                      \
    TK_MACHINE_OP(STG, 0x186)                                                                      \
    TK_MACHINE_OP(LDS, 0x184)                                                                      \
    TK_MACHINE_OP(STS, 0x188)                                                                      \
    TK_MACHINE_OP(LDL, 0x183)                                                                      \
    TK_MACHINE_OP(STL, 0x187)                                                                      \
    TK_MACHINE_OP(BAR, 0x11d)                                                                      \
    TK_MACHINE_OP(FFMA, 0x023)                                                                     \
    TK_MACHINE_OP(FADD, 0x021)                                                                     \
    TK_MACHINE_OP(FMUL, 0x020)                                                                     \
    TK_MACHINE_OP(HMMA, 0x03c)                                                                     \
    TK_MACHINE_OP(HGMMA, 0x1f0)                                                                    \
    TK_MACHINE_OP(MUFU, 0x108)

typedef enum {
#define TK_MACHINE_OP(name, opcode) TK_MACHINE_##name,
    TK_MACHINE_OPS(TK_MACHINE_OP)
#undef TK_MACHINE_OP
        TK_MACHINE_COUNT,
} tk_machine_op;

// What the assembler made of a kernel.
typedef struct tk_image_report {
    bool known; // an assembler was at hand
    uint32_t registers;
    uint32_t stack;                     // bytes a thread
    uint32_t spill_stores, spill_loads; // bytes a thread
    uint32_t shared_static;             // bytes a block
    uint32_t instructions;
    uint32_t op[TK_MACHINE_COUNT];
} tk_image_report;

// Asserts, assumes and prints of a debug compile, by the numbers that its records have.
typedef enum { TK_DEBUG_ASSERT, TK_DEBUG_ASSUME, TK_DEBUG_PRINT } tk_debug_kind;
typedef struct tk_debug_value {
    tk_dtype dtype;
    uint32_t rank;
    int64_t dim[TK_MAX_RANK];
    uint32_t offset; // in the record
} tk_debug_value;
typedef struct tk_debug_site {
    tk_debug_kind kind;
    const char *text;
    uint32_t nvalue;
    tk_debug_value *value; // of a claim: its condition
    uint32_t bytes;        // of a print's record
    uint32_t nplace;
    tk_span *place; // its own, then those of the calls around it
} tk_debug_site;

// What @require asks of the machine code, where no assembler was at hand: the driver's numbers show
// it when the code is loaded.
typedef struct tk_load_demand {
    bool no_spills;
    uint32_t max_registers;                                // 0: any
    uint32_t max_shared;                                   // bytes a block; 0: any
    tk_span no_spills_at, max_registers_at, max_shared_at; // where they are written
} tk_load_demand;

typedef struct tk_image {
    const char *kernel; // entry name in the image
    const char *ptx;    // text, 0-terminated
    size_t ptx_size;
    const void *cubin; // where an assembler was at hand, else NULL
    size_t cubin_size;
    const char
        *garbled; // what is wrong with what an assembler wrote, which is not used; NULL: nothing
    bool unassembled; // an assembler is at hand but could not be run: next time it may
    const char *arch; // "sm_90a"
    uint32_t threads; // a block
    uint32_t shared;  // bytes of dynamic shared memory
    uint32_t blocks;  // that a multiprocessor shall hold at once, as the PTX says
    uint32_t wanted;  // that it should, for enough of what they read to be on its way; 0: no matter
    uint32_t ngrid;
    uint32_t packed; // programs along grid axis 0 that a block runs, 1 or more
    bool persistent; // a block runs several programs: as many blocks as run at once are enough
    uint32_t
        cluster; // blocks of a cluster, which are as many along x; 0, 1: it is launched without
    uint32_t nslot;
    tk_param_slot *slot;
    uint32_t param_bytes;
    uint32_t nmap;
    tk_map_spec *map;
    uint32_t ndebug;
    tk_debug_site *debug;
    tk_image_report report;
    tk_load_demand demand;
} tk_image;

// Who judges demands on the machine code where no assembler is at hand.
typedef enum {
    TK_JUDGE_REFUSES, // nobody: they are refused
    TK_JUDGE_LOADER,  // who loads the image: it is in image.demand
    TK_JUDGE_NOBODY,  // there is no machine code: the PTX is simulated
} tk_judge;

typedef struct tk_ptx_opts {
    const char *arch;             // of the target table
    const tk_tensor_facts *facts; // one per IR parameter (scalars: ignored)
    bool debug;                   // asserts and prints
    const char *emit;             // "llvm": its text; NULL
    const char **text;            // receives what `emit` asked for
    bool no_cubin;                // PTX is enough: nothing is assembled
    tk_judge judge;
    bool counts;                   // notes with requests, sectors and wavefronts (lower/record.h)
    const int64_t *size;           // for these: TK_MAX_TENSOR_RANK a parameter, -1: unknown; NULL
    const tk_const *const *scalar; // and one a parameter, NULL: unknown; NULL
    bool keep_failed;              // an image is handed out where a @require alone does not hold
} tk_ptx_opts;

// The version of LLVM that the back end was built with: "22.1.2", and of the one that it runs with,
// which another library of the same name may have put in its place.
const char *tk_llvm_version(void);
void tk_llvm_running(unsigned version[3]);

// Compiles a module (tile level, after the tile pipeline; it is changed) to an image in `arena`.
// NULL after located diagnostics: what the GPU cannot run yet, a tile extent that is no power of
// two, too much shared memory.
tk_image *tk_ptx_compile(tk_arena *arena, tk_module *m, const tk_ptx_opts *o, tk_diags *diags);

#endif
