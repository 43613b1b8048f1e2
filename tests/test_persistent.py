# SPDX-License-Identifier: Apache-2.0
"""Kernels under `@persistent`, where a block runs several programs: on a device they make what they make on the CPU. Products whose rings
go on from one program to the next, with and without warps of their own; rows, whose shared memory the next program uses again; grids of one to
three axes, with fewer programs than blocks, and with none."""
import random

import numpy as np

import tkclib
from judge import main, test

PRODUCT = """@persistent
kernel product<T: type, A: type, BM: int, BN: int, BK: int>(a: in T[S, M, K], b: in T[S, K, N], c: out A[S, M, N])
    grid (pm in cdiv(M, BM), pn in cdiv(N, BN), s in S) {
    let i = pm * BM;
    let j = pn * BN;
    var acc = zeros([BM, BN], A);
    for k in 0 .. K step BK {
        acc = dot(a[s, i +: BM, k +: BK], b[s, k +: BK, j +: BN], acc);
    }
    c[s, i +: BM, j +: BN] = acc;
}
"""
ROWS = """@persistent @warps(4)
kernel rows<N: int>(x: in f32[M, C], y: out f32[M, C], most: out f32[M])
    grid (i in M) {
    let v = x[i, 0 +: N];
    let inside = iota(N) < C;
    let top = max(where(inside, v, f32(-inf)));
    let total = sum(where(inside, v, 0.0));
    most[i] = top;
    y[i, 0 +: N] = (v - top) * total + cumsum(v);
}
"""
STREAM = """@persistent
kernel stream<B: int>(x: in i32[M, C], y: out i32[M])
    grid (i in M) {
    var total = zeros([B], i32);
    for k in 0 .. C step B pipeline(3) {
        total = total + x[i, k +: B] * (k + 1);
    }
    y[i] = sum(total);
}
"""


def same(kernel, inputs, outputs):
    results = []
    for device in ("cpu", tkclib.DEVICE):
        made = {n: tkclib.array(np.full(s, 99), t) for n, (s, t) in outputs.items()}
        kernel.on(device, **inputs, **made)
        results.append(made)
    for n in outputs:
        cpu, it = results[0][n].bits, results[1][n].bits
        assert np.array_equal(cpu.view(np.uint32), it.view(np.uint32)), f"{n}: {int((cpu != it).sum())} of {cpu.size} differ"


def small(pick, dtype, shape):
    return tkclib.array(np.random.default_rng(pick.randrange(1 << 30)).integers(-3, 4, shape), dtype)


@test(*[(seed,) for seed in range(24)])
def test_products(seed):
    pick = random.Random(seed)
    dtype, sums = (("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f32", "f32"))[seed % 4]
    bm, bn, bk = pick.choice((64, 128)), pick.choice((32, 64, 128)), 32
    if dtype == "f32":
        bm = bn = 16
    s, m, n = pick.choice(((1, 4, 3), (2, 3, 5), (3, 1, 2), (1, 1, 1), (1, 9, 2), (2, 17, 1)))
    m, n = (m - 1) * bm + pick.choice((bm, 8)), (n - 1) * bn + pick.choice((bn, 8))
    k = pick.choice((0, 8, 32, 64, 96, 160))
    kernel = tkclib.Kernel(PRODUCT, "product", {"T": dtype, "A": sums, "BM": bm, "BN": bn, "BK": bk}, check=False)
    tkclib.SEED = seed % 5
    same(kernel, {"a": small(pick, dtype, (s, m, k)), "b": small(pick, dtype, (s, k, n))}, {"c": ((s, m, n), sums)})
    kernel.close()


@test(*[(m, c) for m in (0, 1, 3, 4, 5, 41) for c in (32, 100, 128)])
def test_rows(m, c):
    pick = random.Random(m * 1000 + c)
    kernel = tkclib.Kernel(ROWS, "rows", {"N": 128}, check=False)
    tkclib.SEED = (m + c) % 5
    same(kernel, {"x": small(pick, "f32", (m, c))}, {"y": ((m, c), "f32"), "most": ((m,), "f32")})
    kernel.close()


@test(*[(m, c) for m in (1, 5, 23) for c in (0, 64, 256, 300)])
def test_streams(m, c):
    pick = random.Random(m * 1000 + c)
    kernel = tkclib.Kernel(STREAM, "stream", {"B": 64}, check=False)
    tkclib.SEED = (m + c) % 5
    same(kernel, {"x": small(pick, "i32", (m, c))}, {"y": ((m,), "i32")})
    kernel.close()


main()
