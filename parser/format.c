// SPDX-License-Identifier: Apache-2.0
#include "parser/parse_internal.h"
void tk_layout(tk_parser *p, tk_buf *out) { (void)p; (void)out; }
