// SPDX-License-Identifier: Apache-2.0
// For the tests of the simulator: hand-written PTX on one buffer.
//
// sim_body gives an entry "k" whose only parameter is the address of the buffer, in %base; %tid is
// the thread's number in %t, %at its own 8 bytes of the buffer. Registers of each kind are there:
// %p0.., %h0.. (16 bits), %r0.., %d0.. (64), %f0.. are 32 bits as well.
#ifndef TK_TESTS_SIM_ENV_H
#define TK_TESTS_SIM_ENV_H

#include "sim/sim.h"

enum { SIM_WORDS = 4096 };

typedef struct sim_env {
    tk_guard guard;
    tk_arena arena;
    tk_sim_note error; // of the reader
    tk_sim_program *program;
    tk_sim_launch launch;
    tk_sim_region region;
    tk_sim_result result;
    uint64_t address; // the parameter
    _Alignas(128) uint64_t word[SIM_WORDS];
} sim_env;

sim_env *sim_open(void);
void sim_close(sim_env *e);
// A module around these statements. shared: of .shared variables.
const char *sim_body(sim_env *e, const char *shared, const char *statements);
bool sim_read(sim_env *e, const char *ptx); // false: e->error
// Runs entry "k" of what was read; the buffer stays as it is. Of e->launch it takes grid[1],
// cluster, shared and seed.
bool sim_launch(sim_env *e, uint32_t blocks, uint32_t threads);
// Reads and runs; fails the test where the reader refuses.
bool sim_run(sim_env *e, uint32_t threads, const char *statements);
bool sim_run_shared(sim_env *e, uint32_t threads, const char *shared, const char *statements);
// The fault, or "none"; with its notes.
const char *sim_fault(sim_env *e);
// What one instruction gives for one thread: loads a, b, c as 64-bit words, runs `inst`, whose
// operands are %x (result) and %a, %b, %c of this type (b16, b32, b64, f32, f64 or pred results in
// a register by selp), and gives %x's bits.
uint64_t sim_one(sim_env *e, const char *inst, char result, char source, uint64_t a, uint64_t b,
                 uint64_t c);

#endif
