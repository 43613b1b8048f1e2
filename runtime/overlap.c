// SPDX-License-Identifier: Apache-2.0
// Whether two strided tensors share a byte of memory.
//
// Tensor A's bytes are at a + sum_i s_i x_i + u with 0 <= x_i < n_i and 0 <= u < size; likewise
// B's. With the signs of the strides turned (x' = n - 1 - x) a shared byte is a solution of sum_k
// c_k x_k = d with c_k > 0 and 0 <= x_k <= m_k: a bounded linear Diophantine equation. It is
// searched from the greatest coefficient down, pruned by the range and by the gcd of what is left.
// The search has a budget; where it runs out the answer is "not seen". The same approach decides
// NumPy's may_share_memory.
#include "runtime/tensor.h"

#include <stdlib.h>

enum { MAX_TERMS = 2 * TKC_MAX_RANK + 2, BUDGET = 200000 };

typedef __int128 wide;

typedef struct term {
    wide c; // > 0
    wide m; // greatest x
} term;

typedef struct problem {
    uint32_t n;
    term t[MAX_TERMS];
    wide rest[MAX_TERMS + 1]; // sum of c m from term k on
    wide gcd[MAX_TERMS + 1];  // of c from term k on
    int budget;
} problem;

static wide gcd(wide a, wide b) {
    while (b) {
        wide r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int by_coefficient(const void *x, const void *y) {
    const term *a = x, *b = y;
    return a->c < b->c ? 1 : a->c > b->c ? -1 : 0;
}

static void add(problem *p, wide c, wide m) {
    if (c > 0 && m > 0) {
        p->t[p->n++] = (term){c, m};
    }
}

// Adds the terms of one tensor; `low` receives the address of its lowest byte.
static void add_tensor(problem *p, const tkc_tensor *t, wide *low) {
    wide size = (wide)tkc_dtype_size(t->dtype);
    *low = (wide)(uintptr_t)t->data;
    for (uint32_t i = 0; i < t->rank; i++) {
        wide s = (wide)t->stride[i] * size, m = (wide)t->dim[i] - 1;
        *low += s < 0 ? s * m : 0;
        add(p, s < 0 ? -s : s, m);
    }
    add(p, 1, size - 1);
}

static bool solve(problem *p, uint32_t k, wide d) {
    if (d == 0) {
        return true;
    }
    if (k == p->n || d < 0 || d > p->rest[k] || d % p->gcd[k] != 0 || p->budget-- <= 0) {
        return false;
    }
    const term *t = &p->t[k];
    wide least = d - p->rest[k + 1];
    wide from = least <= 0 ? 0 : (least + t->c - 1) / t->c;
    wide to = d / t->c < t->m ? d / t->c : t->m;
    for (wide x = from; x <= to && p->budget > 0; x++) {
        if (solve(p, k + 1, d - x * t->c)) {
            return true;
        }
    }
    return false;
}

// The bytes from the lowest to the highest that a tensor with elements has.
static void range(const tkc_tensor *t, wide *low, wide *high) {
    wide size = (wide)tkc_dtype_size(t->dtype);
    *low = (wide)(uintptr_t)t->data;
    *high = *low + size;
    for (uint32_t i = 0; i < t->rank; i++) {
        wide reach = (wide)t->stride[i] * size * (t->dim[i] - 1);
        *(reach < 0 ? low : high) += reach;
    }
}

// What is in different places, as nearly always, takes no search.
static bool ranges_meet(const tkc_tensor *a, const tkc_tensor *b) {
    wide low_a, high_a, low_b, high_b;
    range(a, &low_a, &high_a);
    range(b, &low_b, &high_b);
    return low_a < high_b && low_b < high_a;
}

bool tensors_overlap(const tkc_tensor *a, const tkc_tensor *b) {
    int64_t na, nb;
    if (!tensor_elems(a, &na) || !tensor_elems(b, &nb) || na == 0 || nb == 0 ||
        !ranges_meet(a, b)) {
        return false;
    }
    problem p = {.budget = BUDGET};
    wide low_a, low_b;
    add_tensor(&p, a, &low_a);
    uint32_t of_a = p.n;
    add_tensor(&p, b, &low_b);
    // low_a + A = low_b + B, with B's terms turned: A + (max B - B) = low_b - low_a + max B.
    wide max_b = 0;
    for (uint32_t i = of_a; i < p.n; i++) {
        max_b += p.t[i].c * p.t[i].m;
    }
    qsort(p.t, p.n, sizeof *p.t, by_coefficient);
    p.rest[p.n] = p.gcd[p.n] = 0;
    for (uint32_t k = p.n; k-- > 0;) {
        p.rest[k] = p.rest[k + 1] + p.t[k].c * p.t[k].m;
        p.gcd[k] = gcd(p.t[k].c, p.gcd[k + 1]);
    }
    return solve(&p, 0, low_b - low_a + max_b);
}
