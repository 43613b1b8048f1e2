// SPDX-License-Identifier: Apache-2.0
// Where the command keeps compiled kernels, and how much.
#ifndef TKC_TOOLS_CACHE_H
#define TKC_TOOLS_CACHE_H

#include "tool.h"

#define CACHE_MAX_BYTES ((uint64_t)1000 * 1000 * 1000)

// $TKC_CACHE, else $XDG_CACHE_HOME/tkc, else ~/.cache/tkc; NULL where the first is set and empty,
// or the environment has none.
const char *cache_folder(tool *t);

#endif
