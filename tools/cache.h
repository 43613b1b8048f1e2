// SPDX-License-Identifier: Apache-2.0
// Where the command keeps compiled kernels, and how much.
#ifndef TKC_TOOLS_CACHE_H
#define TKC_TOOLS_CACHE_H

#include "tool.h"

#define CACHE_MAX_BYTES ((uint64_t)1000 * 1000 * 1000)

// $XDG_CACHE_HOME/tkc or ~/.cache/tkc; NULL where the environment has neither.
const char *cache_folder(tool *t);

#endif
