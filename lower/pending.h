// SPDX-License-Identifier: Apache-2.0
// Pending uses: what of the program's memory some thread may still be reading or writing, along all
// ways through a function. The passes share and barrier ask.
#ifndef TK_LOWER_PENDING_H
#define TK_LOWER_PENDING_H

#include "ir/order.h"

typedef struct tk_op_list {
    TK_VEC(tk_op *) list;
} tk_op_list;

// What the passes ask for; members may be NULL.
typedef struct tk_pending_opts {
    // Op `now` takes shared memory while op `then` may still read its own. Called at least once for
    // each such pair, with equal ones where an op meets itself in a loop's next iteration.
    void (*meet)(void *user, tk_op *then, tk_op *now);
    void *user;
} tk_pending_opts;

// The ops before which a barrier must stand so that all conflicting uses stay in order.
tk_op_list tk_barriers_needed(tk_arena *a, tk_func *f, const tk_pending_opts *o);

#endif
