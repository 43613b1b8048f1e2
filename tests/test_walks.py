# SPDX-License-Identifier: Apache-2.0
"""Loops over a row that was read before, which run from the last iteration to the first, and what of it shared memory holds for them:
their results are those of the source's order, whatever the length of the row, the tile and step, the type and the strides."""
import numpy as np

import tkclib
from judge import equal, main, test

SOURCE = """
// Reads its row three times: forwards, backwards, forwards.
kernel centred<BN: int = 64, STEP: int = BN, FROM: int = 0>(x: in i32[M, N], y: out i32[M, N], z: inout i32[M, N]) grid (i in M) {
    var total = 0;
    for j in FROM .. N step STEP {
        total += sum(x[i, j +: BN]);
    }
    for j in FROM .. N step STEP {
        y[i, j +: BN] = x[i, j +: BN] - total;
    }
    for j in FROM .. N step STEP {
        z[i, j +: BN] = z[i, j +: BN] * 2 + x[i, j +: BN];
    }
}

// Only whole tiles are there to be held; rows one after the other go through the same memory.
kernel rows<T: type, BN: int = 64>(x: in T[M, N], y: out T[M, N]) grid (p in 1) {
    for i in 0 .. M {
        var most = full([BN], x[i, 0]);
        for j in 0 .. N / BN * BN step BN {
            most = max(most, x[i, j +: BN]);
        }
        let greatest = max(most);
        for j in 0 .. N step BN {
            y[i, j +: BN] = min(x[i, j +: BN], greatest);
        }
    }
}

// What stands for elements outside is not the same in all loops, nor the place, nor the tensor.
kernel others<BN: int = 64>(x: in i32[M, N], z: in i32[M, N], y: out i32[M, N], t: out i32[M, 4]) grid (i in M) {
    var a = 0;
    for j in 0 .. N step BN {
        a += sum(x[i, j +: BN] else 3);
    }
    var b = 0;
    for j in 0 .. N step BN {
        b += sum(x[i, j +: BN] else 5);
    }
    var c = 0;
    for j in 0 .. N step BN {
        c += sum(x[i, j + 1 +: BN]) + sum(z[i, j +: BN]);
    }
    var d = 0;
    if a > 0 {
        for j in 0 .. N step BN {
            d += sum(z[i, j +: BN] + x[i, j +: BN] else 5);
        }
    }
    for j in 0 .. N step BN {
        y[i, j +: BN] = x[i, j +: BN] + z[i, j +: BN];
    }
    t[i, 0] = a;
    t[i, 1] = b;
    t[i, 2] = c;
    t[i, 3] = d;
}

// All elements of a row of y are one where its stride is 0: the last iteration's.
kernel last<BN: int = 64>(x: in i32[M, N], y: out i32[M, N]) grid (i in M) {
    var total = 0;
    for j in 0 .. N step BN {
        total += sum(x[i, j +: BN]);
    }
    for j in 0 .. N step BN {
        y[i, j +: BN] = full([BN], j + total) + where(x[i, j +: BN] > 1000, 1, 0);
    }
}
"""
COLUMNS = (0, 1, 63, 64, 65, 200, 1029)


def random(*shape):
    return np.random.default_rng(shape).integers(-100, 100, shape, np.int32)


@test(*[(n, bn, step, start) for n in COLUMNS for bn, step, start in ((64, 64, 0), (64, 100, 0), (64, 64, 7), (256, 256, 0))])
def test_rows_read_again(n, bn, step, start):
    x, y, z = random(3, n), np.full((3, n), -1, np.int32), random(3, n) + 1
    inside = np.array([j >= start and (j - start) % step < bn for j in range(n)], bool)
    want_y = np.where(inside, x - (x * inside).sum(axis=1, keepdims=True), -1)
    want_z = np.where(inside, z * 2 + x, z)
    tkclib.Kernel(SOURCE, "centred", {"BN": bn, "STEP": step, "FROM": start}, check=False)(x=x, y=y, z=z)
    equal(y, want_y)
    equal(z, want_z)


@test(*[(n, t) for n in COLUMNS[1:] for t in (np.int8, np.float16, np.int32, np.float64)])
def test_rows_that_are_held(n, t):
    x, y = random(5, n).astype(t), np.zeros((5, n), t)
    first = x[:, :n // 64 * 64] if n >= 64 else x[:, :1]
    want = np.minimum(x, np.maximum(x[:, :1], first.max(axis=1, keepdims=True)))
    tkclib.Kernel(SOURCE, "rows", {})(x=x, y=y)
    equal(y, want)


@test(*[(n, bn) for n in COLUMNS for bn in (64, 256)])
def test_what_is_not_the_same_is_not_held(n, bn):
    x, z, y, t = random(3, n), random(3, n) + 7, np.zeros((3, n), np.int32), np.zeros((3, 4), np.int32)
    beyond = -n % bn
    a = x.sum(axis=1) + 3 * beyond
    c = x[:, 1:].sum(axis=1) + z.sum(axis=1)
    # The tiles that begin at 1 end one after the others'.
    tkclib.Kernel(SOURCE, "others", {"BN": bn})(x=x, z=z, y=y, t=t)
    equal(y, x + z)
    equal(t, np.stack([a, x.sum(axis=1) + 5 * beyond, c, np.where(a > 0, (x + z).sum(axis=1) + 5 * beyond, 0)], axis=1))


@test(*[(n, stride) for n in COLUMNS[1:] for stride in (1, 0, -1, 2)])
def test_last_iteration_stays(n, stride):
    x, room = random(3, n), np.full((3, 2 * n), -1, np.int32)
    y = room[:, :n] if stride == 1 else room[:, n - 1::-1] if stride == -1 else room[:, ::2]
    if stride == 0:
        y = np.lib.stride_tricks.as_strided(room, (3, n), (room.strides[0], 0))
    first = np.arange(n) // 64 * 64
    total = x.sum(axis=1, keepdims=True)
    want = total + first if stride else np.broadcast_to(total + first[-1], (3, n))
    tkclib.Kernel(SOURCE, "last", {})(x=x, y=y)
    equal(y, want)


main()
