// SPDX-License-Identifier: Apache-2.0
// What ptxas says of PTX, where there is one: for tests that hold the simulator's reader against
// it.
#ifndef TK_TESTS_SIM_PTXAS_H
#define TK_TESTS_SIM_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

// Whether it takes the module; false also where there is none.
bool sim_ptxas(const char *arch, const char *ptx);
// Marks those of the lines between head and tail that it refuses. false: it cannot be asked, as
// there is none, or it does not take head and tail alone.
bool sim_ptxas_refuses(const char *arch, const char *head, const char *const *line, size_t n,
                       const char *tail, bool *refuses);
unsigned sim_ptxas_lines(const char *text); // how many it has

#endif
