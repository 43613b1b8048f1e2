// SPDX-License-Identifier: Apache-2.0
// Deletion tests of the simulator: a kernel runs silently under 200 seeds with one result; without
// any one of its marked lines, it is caught by a report or by a wrong value within 20.
#ifndef TK_TESTS_SIM_MUTATION_H
#define TK_TESTS_SIM_MUTATION_H

#include "tests/sim_env.h"

typedef struct sim_mutation {
    const char *text;                  // statements as for sim_body; lines to delete end in "// x"
    uint32_t blocks, cluster, threads; // cluster 0: none
    void (*prepare)(sim_env *e);       // of the buffer; NULL: zeros
    uint32_t first;                    // the first word of the buffer that is compared
} sim_mutation;

// marks: how many lines are marked.
void sim_check_mutations(const sim_mutation *m, unsigned marks);

#endif
