# SPDX-License-Identifier: Apache-2.0
"""Tiles of loops that are loaded ahead, into rings in shared memory: what a device makes of them is what the CPU makes of them, bit for
bit. Tensors of 1 to 5 dimensions, all types, tiles of one box or several, boxes that begin before a tensor or behind it, trip counts
around the number of stages, tensors of which maps can be made and others. Where a tensor copy is possible it is one."""
import math
import random

import numpy as np

import tkclib
from judge import main, test

HEAD = "kernel fetch<T: type, S: int, R: int, C: int, A: int, B: int>"
# Along the rows of a matrix, and down its columns.
ACROSS = HEAD + """(x: in T[M, N], y: out T[M, N]) grid (i in cdiv(M, R)) {
    for k in 0 .. N step C pipeline(S) {
        y[i * R +: R, k +: C] = flip(x[i * R + A +: R, k + B +: C], axis = 0);
    }
}
"""
DOWN = HEAD + """(x: in T[M, N], y: out T[M, N]) grid (j in cdiv(N, C)) {
    for k in 0 .. M step R pipeline(S) {
        y[k +: R, j * C +: C] = flip(x[k + A +: R, j * C + B +: C], axis = 1);
    }
}
"""
ROW = HEAD + """(x: in T[N], y: out T[N]) grid (i in 2) {
    for k in i * C .. N step C * 2 pipeline(S) {
        y[k +: C] = flip(x[k + B +: C], axis = 0);
    }
}
"""
# One matrix of a batch; several at once; 5 dimensions.
BATCH = HEAD + """(x: in T[P, M, N], y: out T[P, M, N]) grid (p in P, i in cdiv(M, R)) {
    for k in 0 .. N step C pipeline(S) {
        y[p, i * R +: R, k +: C] = flip(x[p, i * R + A +: R, k + B +: C], axis = 1);
    }
}
"""
STACK = HEAD + """(x: in T[P, M, N], y: out T[P, M, N]) grid (i in cdiv(M, R)) {
    for p in 0 .. P step 2 pipeline(S) {
        y[p +: 2, i * R +: R, 0 +: C] = flip(x[p - A +: 2, i * R +: R, B +: C], axis = 1);
    }
}
"""
FIVE = HEAD + """(x: in T[P, Q, 3, M, N], y: out T[P, Q, M, N]) grid (p in P, i in cdiv(M, R)) {
    for k in 0 .. N step C pipeline(S) {
        y[p, 0 +: 2, i * R +: R, k +: C] = flip(x[p, 1 +: 2, 2, i * R + A +: R, k + B +: C], axis = 1);
    }
}
"""
# name: text, dimensions of x and of y, tiles of x
KERNELS = {"across": (ACROSS, "MN", "MN"), "down": (DOWN, "MN", "MN"), "row": (ROW, "N", "N"), "batch": (BATCH, "PMN", "PMN"),
           "stack": (STACK, "PMN", "PMN"), "five": (FIVE, "PQ3MN", "PQMN")}
TYPES = ("bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f8e4m3", "f8e5m2", "f16", "bf16", "f32", "f64")
CASES = 144
LAYOUTS = ("dense", "dense", "gap", "odd", "shifted", "backward")


def tensor(pick, dtype, shape, layout):
    """A tensor with its rows from multiples of 16 bytes on, apart from a `layout` that says otherwise."""
    size = tkclib.array([0], dtype).bits.itemsize
    unit = 16 // size
    row = -(-shape[-1] // unit) * unit + (0 if layout == "dense" else 2 * unit if layout != "odd" else 1)
    strides = [1]
    step = row
    for n in reversed(shape[:-1]):
        strides.insert(0, step)
        step *= n
    count = max(step, row) + 256
    values = np.random.default_rng(pick.randrange(1 << 30)).integers(0, 2 if dtype == "bool" else 100, count)
    bits = tkclib.array(values, dtype).bits
    begin = -(bits.ctypes.data // size) % (128 // size)
    begin += 1 if layout == "shifted" else 0
    strides = [s * size for s in strides]
    if layout == "backward" and len(shape) > 1:
        begin += (shape[0] - 1) * strides[0] // size
        strides[0] = -strides[0]
    return tkclib.Array(np.lib.stride_tricks.as_strided(bits[begin:], shape, strides), dtype)


def mapped(x, size, tile, start):
    """Whether tensor copies can bring it, and which must then."""
    shape, strides = x.bits.shape, x.bits.strides
    if 0 in shape or x.bits.ctypes.data % 16 or start * size % 16 or any(
            s % 16 or (n > 1 and s <= 0) for n, s in zip(shape[:-1], strides[:-1])):
        return False
    span = min(tile[-1] * size, 128)
    rows = tile[-2] if len(tile) > 1 else 1
    several = tile[-1] * size > 128 or math.prod(tile[:-2]) > 1
    return span >= 16 and (rows >= 8 or rows == 1 or not several)


@test(*[(seed,) for seed in range(CASES)])
def test_fetch(seed):
    pick = random.Random(seed)
    name = list(KERNELS)[seed % len(KERNELS)]
    text, of_x, of_y = KERNELS[name]
    dtype = TYPES[seed // len(KERNELS) % len(TYPES)]
    size = tkclib.array([0], dtype).bits.itemsize
    stages = pick.choice((2, 3, 4))
    columns = max(pick.choice((16, 32, 64, 128, 256)) // size, 2)
    rows = pick.choice((1, 4, 8, 16, 32, 64)) if name != "row" else 1
    if columns * size == 16 and name in ("across", "down"):
        rows = pick.choice((rows, 512))
    a = pick.choice((0, 0, 1, -3)) if name in ("across", "down", "batch", "five") else pick.choice((0, 1))
    b = pick.choice((0, 0, 16 // size, -32 // size, 1)) if size < 16 else 0
    trips = pick.choice((0, 1, 2, stages - 1, stages, stages + 1, 7))
    sizes = {"P": pick.choice((1, 2, 3)), "Q": pick.choice((2, 3, 4)), "3": 3, "M": pick.choice((1, rows, 2 * rows - 1, 3 * rows)),
             "N": pick.choice((1, columns - 1, columns, 2 * columns + 3))}
    loops = {"across": ("N", columns), "down": ("M", rows), "row": ("N", columns), "batch": ("N", columns), "stack": ("P", 2),
             "five": ("N", columns)}
    along, step = loops[name]
    sizes[along] = max(trips * step - pick.choice((0, 0, 1)), 0)
    layout = pick.choice(LAYOUTS)
    x = tensor(pick, dtype, [sizes[d] for d in of_x], layout)
    defines = {"T": dtype, "S": stages, "R": rows, "C": columns, "A": a, "B": b}
    kernel = tkclib.Kernel(text, "fetch", defines, check=False)
    results = []
    for device in ("cpu", tkclib.DEVICE):
        tkclib.SEED = seed % 4
        y = tkclib.array(np.zeros([sizes[d] for d in of_y]), dtype)
        kernel.on(device, x=x, y=y)
        results.append(np.ascontiguousarray(y.bits).view(np.uint8))
    words = f"{name} {defines} {sizes} {layout}"
    wrong = np.nonzero(results[0].reshape(-1) != results[1].reshape(-1))[0]
    assert wrong.size == 0, f"{words}: differs in {wrong.size} bytes, first {wrong[:3]}"
    if tkclib.DEVICE.startswith("sim") and tkclib.DEVICE[3:] in ("", ":90"):
        tile = {"row": [columns], "stack": [2, rows, columns], "five": [2, rows, columns]}.get(name, [rows, columns])
        by_tensor_copies = "by tensor copies of one thread" in kernel.notes(1)
        assert by_tensor_copies == mapped(x, size, tile, b), f"{words}: {kernel.notes(1)}"
    kernel.close()


main()
