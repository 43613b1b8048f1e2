// SPDX-License-Identifier: Apache-2.0
// Outputs for a person to read.
#ifndef TKC_TOOLS_SHOW_H
#define TKC_TOOLS_SHOW_H

#include "tool.h"

void show_summary(tool *t, const char *name, const tkc_tensor *x); // one line
void show_whole(tool *t, const char *name, const tkc_tensor *x);   // every element

#endif
