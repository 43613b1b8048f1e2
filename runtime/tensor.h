// SPDX-License-Identifier: Apache-2.0
// What can be said of a tensor as the caller gave it. Needs no context and no memory: libtkc and
// the run time of kernels compiled ahead (libtkcrt) share it.
#ifndef TKC_RUNTIME_TENSOR_H
#define TKC_RUNTIME_TENSOR_H

#include "lower/facts.h"
#include "runtime/tkc.h"

// Elements of a tensor; false where the product does not fit 63 bits.
bool tensor_elems(const tkc_tensor *t, int64_t *n);
// Whether two tensors share a byte. False also where it cannot be decided cheaply (overlap.c).
bool tensors_overlap(const tkc_tensor *a, const tkc_tensor *b);
// What is wrong with a tensor's memory whose type, rank and sizes are good: the id of the fault,
// with a text that names the parameter in text[room], or NULL.
const char *tensor_fault(const tkc_tensor *t, const char *name, char *text, size_t room);
// What holds of a tensor without such a fault.
tk_tensor_facts tensor_facts(const tkc_tensor *t);

#endif
