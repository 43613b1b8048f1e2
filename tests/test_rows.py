# SPDX-License-Identifier: Apache-2.0
"""Rows that begin anywhere: what a device makes of whole buffers, with all that stands around the tensors, is what the CPU makes
of them, bit for bit. Row lengths around powers of two, addresses and row strides of every remainder of 16 bytes, few rows and none,
all types, masks, several rows of a tile, loops over rows, tensors that a program reads and writes again."""
import random

import numpy as np

import tkclib
from judge import main, test

TURN = """kernel k<T: type, BN: int, A: int, B: int>(x: in T[M, N], y: out T[M, N]) grid (i in M) {
    y[i, A +: BN] = flip(x[i, B +: BN] else T(1), axis = 0);
}
"""
MASKED = """kernel k<T: type, BN: int, A: int, B: int>(x: in T[M, N], y: out T[M, N]) grid (i in M) {
    y[i, A +: BN where iota(BN) % 5 != 2] = flip(x[i, B +: BN where iota(BN) % 3 != 1] else T(1), axis = 0);
}
"""
# Each program has its own rows.
TILES = """kernel k<T: type, BN: int, A: int, B: int>(x: in T[M, N], y: out T[M, N]) grid (i in cdiv(M, 4)) {
    y[i * 4 +: 4, A +: BN] = flip(x[i * 4 +: 4, B +: BN] else T(1), axis = 1);
}
"""
LINES = """kernel k<T: type, BN: int, A: int, B: int>(x: in T[M, N], y: out T[M, N]) grid (i in cdiv(M, 4)) {
    let r = i * 4 + iota(4);
    y[r, A +: BN] = flip(x[r, B +: BN], axis = 1);
}
"""
# What was stored is read, and written over, at other places of the row.
AGAIN = """kernel k<T: type, BN: int, A: int, B: int>(x: inout T[M, N], y: out T[M, N]) grid (i in M) {
    x[i, A +: BN] = flip(x[i, B +: BN], axis = 0);
    y[i, 0 +: BN] = x[i, B +: BN];
    x[i, B +: BN] = flip(x[i, A +: BN], axis = 0);
    y[i, B +: BN] = x[i, 0 +: BN];
}
"""
LONG = """kernel k<T: type, BN: int, A: int, B: int>(x: in T[M, N], y: out T[M, N]) grid (i in M) {
    var first = x[i, A];
    for j in 0 .. N step BN {
        first = max(first, max(x[i, j +: BN]));
    }
    for j in 0 .. N step BN {
        y[i, j +: BN] = where(x[i, j +: BN] < first, x[i, j +: BN], T(B));
    }
}
"""
# One iteration reads what the one before it wrote.
CHAIN = """kernel k<T: type, BN: int, A: int, B: int>(x: inout T[M, N], y: inout T[M, N]) grid (i in M) {
    for j in 0 .. N step BN {
        y[i, j + A +: BN] = flip(x[i, j +: BN], axis = 0);
        x[i, j + B +: BN] = y[i, j +: BN];
    }
}
"""
KERNELS = {"turn": TURN, "masked": MASKED, "tiles": TILES, "lines": LINES, "again": AGAIN, "long": LONG, "chain": CHAIN}
TYPES = ("bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64")
ORDERED = tuple(t for t in TYPES if t != "bool")
LENGTHS = (65, 127, 129, 255, 257, 511, 513, 781, 1023, 1025, 2047, 2049, 4095, 4097)
MOST_BYTES = 32 << 10  # of a row
CANARY = 40  # elements on both sides
CASES = 140


def tensor(pick, dtype, rows, columns, writes):
    """A buffer, and the place and strides of a tensor in it."""
    gap = pick.choice((0, 0, 1, 3, 8, 15))
    stride = columns + gap if writes or pick.random() < 0.8 else 0
    buffer = np.random.default_rng(pick.randrange(1 << 30)).integers(0, 2 if dtype == "bool" else 100, rows * stride + columns + 2 * CANARY + 16)
    offset = CANARY + pick.randrange(16)
    if stride and pick.random() < 0.25:
        offset, stride = offset + max(rows - 1, 0) * stride, -stride
    return tkclib.array(buffer, dtype), offset, stride


def view(buffer, offset, stride, rows, columns):
    size = buffer.bits.itemsize
    return tkclib.Array(np.lib.stride_tricks.as_strided(buffer.bits[offset:], (rows, columns), (stride * size, size)), buffer.dtype)


def ran(kernel, device, tensors, rows, columns):
    """The buffers, after a launch."""
    after = {name: tkclib.Array(buffer.bits.copy(), buffer.dtype) for name, (buffer, _, _) in tensors.items()}
    kernel.on(device, **{name: view(after[name], offset, stride, rows, columns) for name, (_, offset, stride) in tensors.items()})
    return {name: x.bits.view(np.uint8) for name, x in after.items()}


@test(*[(seed,) for seed in range(CASES)])
def test_rows(seed):
    pick = random.Random(seed)
    name = list(KERNELS)[seed % len(KERNELS)]
    dtype = pick.choice(ORDERED if name == "long" else TYPES)
    size = tkclib.array([0], dtype).bits.itemsize
    columns = pick.choice([n for n in LENGTHS if n * size <= MOST_BYTES])
    rows = pick.choice((0, 1, 3, 4, 5, 9))
    tile = 1 << (columns - 1).bit_length()
    tile = max(tile // 4, 64) if name in ("long", "chain") else max(tile // pick.choice((1, 1, 1, 2)), 64)
    tile -= random.Random(f"tile {seed}").choice((0, tile // 16 * 3, tile // 4))  # padded to the power of two
    again = name in ("again", "chain")
    tensors = {"x": tensor(pick, dtype, rows, columns, again), "y": tensor(pick, dtype, rows, columns, True)}
    a, b = pick.choice((0, 0, 1, 7)), pick.choice((0, 0, 1, 5, 16))
    kernel = tkclib.Kernel(KERNELS[name], "k", {"T": dtype, "BN": tile, "A": a, "B": b}, check=False)
    want = ran(kernel, "cpu", tensors, rows, columns)
    tkclib.SEED = seed % 4
    got = ran(kernel, tkclib.DEVICE, tensors, rows, columns)
    for tensor_name in tensors:
        wrong = np.nonzero(want[tensor_name] != got[tensor_name])[0]
        text = f"{name} {dtype} {rows}x{columns}, tile {tile}, {a} {b}, {[t[1:] for t in tensors.values()]}"
        assert wrong.size == 0, f"{text}: '{tensor_name}' differs in {wrong.size} bytes, first {wrong[:3]}"
    kernel.close()


main()
