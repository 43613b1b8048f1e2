# SPDX-License-Identifier: Apache-2.0
"""Kernels under `@cluster(n)`: on a device they make what they make on the CPU, whether their programs share what they fetch or not, and a
grid that is not in clusters is refused everywhere. Products of 2 to 16 programs, of which each brings a part of the tiles that are the same for
all: along N, along K, or whole rows of a batch; with and without `@persistent`; numbers of iterations around the slots; programs that share nothing."""
import random

import numpy as np

import tkclib
from judge import main, test

SHARED = "each program of a cluster brings a part of the tile to all"
PRODUCT = """@cluster(CLUSTER) PERSISTENT
kernel product<T: type, A: type, BM: int, BN: int, BK: int>(a: in T[S, M, K], b: in T[S, K, N], c: out A[S, M, N])
    grid (AXES) {
    let i = pm * BM;
    let j = pn * BN;
    var acc = zeros([BM, BN], A);
    for k in 0 .. K step BK {
        acc = dot(a[s, i +: BM, k +: BK], b[s, k +: BK, j +: BN], acc);
    }
    c[s, i +: BM, j +: BN] = acc;
}
"""
OTHER_TILES = """@cluster(2)
kernel other_tiles<BM: int, BN: int, BK: int>(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N])
    grid (pm in cdiv(M, BM), pn in cdiv(N, BN)) {
    var acc = zeros([BM, BN], f32);
    for k in 0 .. K step BK {
        let at = k / BK + pm;
        acc = dot(a[pm * BM +: BM, at * BK +: BK], b[at * BK +: BK, pn * BN +: BN], acc);
    }
    c[pm * BM +: BM, pn * BN +: BN] = acc;
}
"""
OTHER_TIMES = """@cluster(2)
kernel other_times<BM: int, BN: int, BK: int>(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N])
    grid (pm in cdiv(M, BM), pn in cdiv(N, BN)) {
    var acc = zeros([BM, BN], f32);
    for k in 0 .. min(K, (pm + 1) * BK) step BK {
        acc = dot(a[pm * BM +: BM, k +: BK], b[k +: BK, pn * BN +: BN], acc);
    }
    c[pm * BM +: BM, pn * BN +: BN] = acc;
}
"""
ROWS = """@cluster(3)
kernel rows<N: int>(x: in f32[M, C], y: out f32[M, C])
    grid (i in M) {
    let v = x[i, 0 +: N];
    y[i, 0 +: N] = v - max(where(iota(N) < C, v, f32(-inf)));
}
"""


def small(pick, dtype, shape):
    return tkclib.array(np.random.default_rng(pick.randrange(1 << 30)).integers(-3, 4, shape), dtype)


def both(text, name, defines, inputs, output, shape, dtype):
    """Launches on the CPU and on the device; the notes of the latter."""
    results, notes = [], ""
    for device in ("cpu", tkclib.DEVICE):
        kernel = tkclib.Kernel(text, name, defines, check=False)
        made = tkclib.array(np.full(shape, 99), dtype)
        kernel.on(device, **inputs, **{output: made})
        results.append(made.bits.view(np.uint32))
        notes = kernel.notes()
        kernel.close()
    assert np.array_equal(*results), f"{int((results[0] != results[1]).sum())} of {results[0].size} differ"
    return notes


def shares(notes, want):
    """How many rings the programs of a cluster fill together."""
    assert tkclib.DEVICE == "cpu" or notes.count(SHARED) == want, notes


AXES = ("pm in cdiv(M, BM), pn in cdiv(N, BN), s in S", "pn in cdiv(N, BN), pm in cdiv(M, BM), s in S", "s in S, pm in cdiv(M, BM), pn in cdiv(N, BN)")


@test(*[(seed,) for seed in range(24)])
def test_products(seed):
    pick = random.Random(seed)
    dtype, sums = (("f16", "f32"), ("bf16", "f32"), ("i8", "i32"))[seed % 3]
    # Where operands are of one byte, 'b' does not lie along K, and warpgroups take what is turned on its way.
    axes, cluster = 1 if dtype == "i8" else seed // 3 % 2, (2, 2, 4, 8)[seed // 2 % 4]
    bm, bn, bk = 64 * pick.choice((1, 2)), pick.choice((64, 128)), 64
    across, along = pick.choice((1, 2)) * cluster, pick.choice((1, 3))
    m, n = ((across, along), (along, across))[axes]
    m, n = m * bm - pick.choice((0, 8)), n * bn - pick.choice((0, 16))
    s, k = pick.choice((1, 2)), pick.choice((0, 16, 64, 128, 192, 256, 320))
    text = PRODUCT.replace("CLUSTER", str(cluster)).replace("PERSISTENT", pick.choice(("", "@persistent"))).replace("AXES", AXES[axes])
    tkclib.SEED = seed % 5
    given = {"a": small(pick, dtype, (s, m, k)), "b": small(pick, dtype, (s, k, n))}
    notes = both(text, "product", {"T": dtype, "A": sums, "BM": bm, "BN": bn, "BK": bk}, given, "c", (s, m, n), sums)
    shares(notes, 1 if k else 0)


@test(("batch",), ("tiles",), ("times",), ("rows",))
def test_nothing_to_share(what):
    pick = random.Random(7)
    tiles = {"BM": 64, "BN": 64, "BK": 64}
    if what == "rows":
        x = small(pick, "f32", (6, 100))
        shares(both(ROWS, "rows", {"N": 128}, {"x": x}, "y", (6, 100), "f32"), 0)
    elif what == "batch":
        text = PRODUCT.replace("CLUSTER", "2").replace("PERSISTENT", "").replace("AXES", AXES[2])
        given = {"a": small(pick, "f16", (4, 64, 128)), "b": small(pick, "f16", (4, 128, 64))}
        shares(both(text, "product", {"T": "f16", "A": "f32", **tiles}, given, "c", (4, 64, 64), "f32"), 0)
    else:
        text, name = (OTHER_TILES, "other_tiles") if what == "tiles" else (OTHER_TIMES, "other_times")
        given = {"a": small(pick, "f16", (256, 256)), "b": small(pick, "f16", (256, 64))}
        shares(both(text, name, tiles, given, "c", (256, 64), "f32"), 0)


@test((2, 3), (2, 1), (4, 2), (3, 4), (16, 24))
def test_grids_that_are_not_in_clusters(n, rows):
    for device in ("cpu", tkclib.DEVICE):
        kernel = tkclib.Kernel(ROWS.replace("cluster(3)", f"cluster({n})"), "rows", {"N": 128}, check=False)
        y = tkclib.array(np.full((rows, 8), 99), "f32")
        try:
            kernel.on(device, x=tkclib.array(np.ones((rows, 8)), "f32"), y=y)
            raise AssertionError(f"{device} launches it")
        except tkclib.TkcError as e:
            assert f"grid axis 'i' has {rows} programs, which are not in clusters of {n}" in str(e), e
        assert (y.bits.view(np.float32) == 99).all()
        kernel.close()


main()
