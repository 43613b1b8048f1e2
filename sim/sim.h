// SPDX-License-Identifier: Apache-2.0
// The simulator: reads PTX and runs its kernels on the CPU, one instruction of a warp at a time.
//
// tk_sim_read decodes a module once; tk_sim_run runs a grid of one entry of it. The memory of the
// host is the global memory: addresses are pointers, and only those inside a region of the launch
// may be touched. A run ends at the first fault, which says what happened, who did it and where, in
// the PTX and, by its .loc lines, in the source. Runs are a function of their inputs and the seed.
//
// What is modelled and what is not: docs/simulator.md.
#ifndef TK_SIM_SIM_H
#define TK_SIM_SIM_H

#include "lang/base.h"

typedef struct tk_sim_program tk_sim_program; // a module, decoded: program.h

// A place in the code. The source's part is empty where no .loc came before: file NULL.
typedef struct tk_sim_place {
    uint32_t ptx_line;
    const char *file;
    uint32_t line, column;
} tk_sim_place;

// A text that belongs to a place: what the reader refuses, or what came with a fault.
typedef struct tk_sim_note {
    const char *text;
    tk_sim_place at;
} tk_sim_note;

// NULL after *error: what the module says that this reader does not know, and on which line. Never
// more than a fixed multiple of `size` is allocated.
tk_sim_program *tk_sim_read(tk_arena *arena, const char *ptx, size_t size, tk_sim_note *error);

// ---- A launch

typedef struct tk_sim_region { // of global memory
    uint64_t begin, size;      // the address; bytes
    bool read_only;
    const char *name; // "tensor x"
} tk_sim_region;

typedef struct tk_sim_launch {
    const char *entry;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; // blocks of a cluster; 0: what the entry says, else one
    uint32_t shared;     // bytes of dynamic shared memory
    const void *params;
    size_t param_bytes;
    const tk_sim_region *region;
    size_t nregion;
    uint64_t seed;            // 0: in order
    uint64_t limit;           // instructions of warps; 0: none
    const volatile int *stop; // may be NULL: not 0 ends the run with the fault "stopped"
} tk_sim_launch;

// What a run did, for one instruction of the program or summed over several.
typedef struct tk_sim_count {
    uint64_t warps;   // executions by a warp
    uint64_t threads; // executions by a thread
    uint64_t global_requests, global_sectors;
    uint64_t shared_requests, shared_wavefronts; // wavefronts: passes over the banks
    uint64_t shared_conflicts;                   // of these, those that banks in conflict cost
    uint64_t async_bytes;
    uint64_t barrier_waits; // warps that waited at a barrier
} tk_sim_count;

typedef struct tk_sim_fault {
    const char *id;   // stable, kebab-case: "race", "out-of-bounds", "deadlock"
    const char *text; // with block and thread
    tk_sim_place at;
    TK_VEC(tk_sim_note) notes; // the other access of a race; what each warp waits for
} tk_sim_fault;

typedef struct tk_sim_result {
    bool ok;
    tk_sim_fault fault;  // where not ok
    const char *printed; // by vprintf; what is beyond 1 MiB is left out
    size_t nprinted;     // bytes of it; 0 may be among them
    // One for each instruction of the module. tk_sim_sum adds them up.
    tk_sim_count *count;
    uint32_t ncount;
} tk_sim_result;

// Runs the grid; what it allocates is in `arena`, the result's texts too.
void tk_sim_run(tk_arena *arena, const tk_sim_program *p, const tk_sim_launch *l,
                tk_sim_result *result);

// ---- Tensor maps
//
// What tensor copies get instead of the driver's object: a form of our own in as many bytes.

enum { TK_SIM_MAP_BYTES = 128, TK_SIM_MAP_RANK = 5 };

typedef enum tk_sim_map_type { // in the driver's order
    TK_SIM_MAP_U8,
    TK_SIM_MAP_U16,
    TK_SIM_MAP_U32,
    TK_SIM_MAP_S32,
    TK_SIM_MAP_U64,
    TK_SIM_MAP_S64,
    TK_SIM_MAP_F16,
    TK_SIM_MAP_F32,
    TK_SIM_MAP_F64,
    TK_SIM_MAP_BF16,
    TK_SIM_MAP_F32_FTZ,
    TK_SIM_MAP_TF32,
    TK_SIM_MAP_TF32_FTZ,
    TK_SIM_MAP_TYPE_COUNT
} tk_sim_map_type;

typedef enum tk_sim_map_swizzle {
    TK_SIM_MAP_SWIZZLE_NONE,
    TK_SIM_MAP_SWIZZLE_32B,
    TK_SIM_MAP_SWIZZLE_64B,
    TK_SIM_MAP_SWIZZLE_128B
} tk_sim_map_swizzle;

typedef struct tk_sim_map_spec { // the arguments of cuTensorMapEncodeTiled
    tk_sim_map_type type;
    uint32_t rank;
    uint64_t address;
    uint64_t dim[TK_SIM_MAP_RANK];        // elements, the innermost first
    uint64_t stride[TK_SIM_MAP_RANK - 1]; // bytes, of dimensions 1 and up
    uint32_t box[TK_SIM_MAP_RANK], step[TK_SIM_MAP_RANK];
    uint32_t interleave; // 0: none
    tk_sim_map_swizzle swizzle;
    uint32_t l2, fill; // promotion, 0 to 3; 1: NaN outside the tensor
} tk_sim_map_spec;

// Writes the map's 128 bytes. NULL, or what is wrong with the arguments: what the driver refuses,
// and interleaving, which is not modelled.
const char *tk_sim_tensor_map_encode(tk_arena *arena, void *map, const tk_sim_map_spec *spec);

// ---- Counters

typedef enum tk_sim_class {
#define TK_SIM_CLASS(ID, NAME) TK_SIM_CLASS_##ID,
#include "sim/classes.def"
    TK_SIM_CLASS_COUNT
} tk_sim_class;
const char *tk_sim_class_name(tk_sim_class c);

typedef struct tk_sim_line {
    const char *file; // NULL: code without a .loc
    uint32_t line;
    tk_sim_count count;
} tk_sim_line;

typedef struct tk_sim_counters {
    tk_sim_count total, by_class[TK_SIM_CLASS_COUNT];
    uint32_t nline;
    tk_sim_line *line; // in the order of files and lines
} tk_sim_counters;

// Sums a run's counts of `entry`.
void tk_sim_sum(tk_arena *arena, const tk_sim_program *p, const char *entry,
                const tk_sim_result *result, tk_sim_counters *out);

#endif
