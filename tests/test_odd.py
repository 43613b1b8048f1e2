# SPDX-License-Identifier: Apache-2.0
"""Tiles that are loaded ahead from rows that no copy can bring, as they begin at no multiple of 4 or 16 bytes: through registers. What a
device makes of them is what the CPU makes of them, bit for bit: rows of any length, tensors that begin anywhere, whose last dimension is
not contiguous, whose rows run backwards or are all one; indices below 0; trip counts around the number of stages; products with one
operand or both of such rows, the other shared by a cluster too. Around each tensor lies memory that is nobody's, so that the simulator tells of reads outside."""
import random

import numpy as np

import tkclib
from judge import main, test

COPY = """kernel copy<T: type, S: int, R: int, C: int, A: int, B: int>(x: in T[M, N], y: out T[M, N]) grid (i in cdiv(M, R)) {
    for k in 0 .. N step C pipeline(S) {
        y[i * R +: R, k +: C] = flip(x[i * R + A +: R, k + B +: C], axis = 0);
    }
}
"""
BATCH = """kernel copy<T: type, S: int, R: int, C: int, A: int, B: int>(x: in T[P, M, N], y: out T[P, M, N]) grid (i in cdiv(M, R)) {
    for p in 0 .. P step 2 pipeline(S) {
        y[p +: 2, i * R +: R, 0 +: C] = flip(x[p - A +: 2, i * R +: R, B +: C], axis = 1);
    }
}
"""
PRODUCT = """%skernel product<T: type, A: type, BM: int, BN: int, BK: int>(a: in T[%s], b: in T[%s], c: out A[M, N])
    grid (pm in cdiv(M, BM), pn in cdiv(N, BN)) {
    let i = pm * BM;
    let j = pn * BN;
    var acc = zeros([BM, BN], A);
    for k in 0 .. K step BK%s {
        acc = dot(%s, %s, acc);
    }
    c[i +: BM, j +: BN] = acc;
}
"""
A_OF = {"n": ("M, K", "a[i +: BM, k +: BK]"), "t": ("K, M", "transpose(a[k +: BK, i +: BM])")}
B_OF = {"n": ("K, N", "b[k +: BK, j +: BN]"), "t": ("N, K", "transpose(b[j +: BN, k +: BK])")}
TYPES = ("u8", "bf16", "f32", "i64", "f8e4m3", "f16", "i16", "f64", "bool")
LAYOUTS = ("dense", "dense", "gap", "backward", "turned", "every", "one")
SUMS = {"f16": "f32", "bf16": "f32", "f8e4m3": "f32", "u8": "i32", "f32": "f32"}
SHARED = "each program of a cluster brings a part of the tile to all"
HINT = "loads of its threads into registers"


def placed(values, dtype, shift, layout="dense"):
    """The values in a tensor that begins `shift` elements behind a multiple of 16 bytes."""
    bits = tkclib.array(values, dtype).bits
    shape, size = bits.shape, bits.itemsize
    order = list(range(len(shape)))
    if layout == "turned":
        order.reverse()
    strides, step = [0] * len(shape), 1
    for n, d in enumerate(reversed(order)):
        strides[d] = step * (2 if layout == "every" and n == 0 else 1)
        step = strides[d] * shape[d] + (2 if layout == "gap" and n == 0 else 0)
    if layout == "one":
        strides[0] = 0
    room = np.full(step + 64, 0x55 if dtype != "bool" else 1, bits.dtype)
    begin = -(room.ctypes.data // size) % (16 // size) + shift
    if layout == "backward":
        begin += (shape[0] - 1) * strides[0] if shape[0] else 0
        strides[0] = -strides[0]
    view = np.lib.stride_tricks.as_strided(room[begin:], shape, [s * size for s in strides])
    view[...] = bits
    return tkclib.Array(view, dtype)


def devices():
    return (tkclib.DEVICE, "sim:80") if tkclib.DEVICE == "sim" else (tkclib.DEVICE,)


def same(kernel, words, inputs, outputs, on):
    results = {}
    for device in ("cpu", *on):
        made = {n: tkclib.array(np.full(s, 1), t) for n, (s, t) in outputs.items()}
        kernel.on(device, **inputs, **made)
        results[device] = {n: np.ascontiguousarray(x.bits).view(np.uint8) for n, x in made.items()}
    for device in on:
        for n in outputs:
            wrong = np.nonzero(results["cpu"][n].reshape(-1) != results[device][n].reshape(-1))[0]
            assert wrong.size == 0, f"{words}: {n} on {device} differs in {wrong.size} bytes, first {wrong[:3]}"


def numbers(pick, dtype, shape, low=0, high=2):
    values = np.random.default_rng(pick.randrange(1 << 30)).integers(low, high if dtype == "bool" else 100, shape)
    return values


@test(*[(seed,) for seed in range(54)])
def test_copies(seed):
    pick = random.Random(seed)
    dtype = TYPES[seed % len(TYPES)]
    layout = pick.choice(LAYOUTS)
    size = tkclib.array([0], dtype).bits.itemsize
    stages = pick.choice((2, 3, 4))
    columns = max(pick.choice((4, 16, 32, 64, 128, 512)) // size, 2)
    rows = pick.choice((1, 2, 8, 16, 32))
    batch = seed % 5 == 4
    trips = pick.choice((0, 1, 2, stages - 1, stages, stages + 1))
    a, b = pick.choice((0, 0, 1, -3)) if not batch else pick.choice((0, 1)), pick.choice((0, 0, 1, -1, -5))
    m = pick.choice((1, rows, 2 * rows - 1, 2 * rows + 1))
    n = max(trips * columns - pick.randrange(1, 16), 0) if not batch else columns + pick.randrange(-2, 16)
    shape = (2 * trips - 1 if batch and trips else 0, m, n) if batch else (m, n)
    shift = pick.randrange(16 // size)
    x = placed(numbers(pick, dtype, shape) if layout != "one" else np.broadcast_to(numbers(pick, dtype, shape[1:]), shape), dtype, shift, layout)
    defines = {"T": dtype, "S": stages, "R": rows, "C": columns, "A": a, "B": b}
    kernel = tkclib.Kernel(BATCH if batch else COPY, "copy", defines, check=False)
    tkclib.SEED = seed % 4
    words = f"{defines} {shape} {layout} + {shift}"
    same(kernel, words, {"x": x}, {"y": (shape, dtype)}, devices())
    if tkclib.DEVICE == "sim" and 0 not in shape and shift * size % 4:
        assert HINT in kernel.notes(1), f"{words}: {kernel.notes(1)}"
    kernel.close()


@test(*[(seed,) for seed in range(30)])
def test_products(seed):
    pick = random.Random(100 + seed)
    dtype = ("bf16", "f16", "bf16", "u8", "f16", "f8e4m3", "bf16", "f16")[seed % 8]
    size = tkclib.array([0], dtype).bits.itemsize
    narrow = size == 1
    order = "nt" if narrow else pick.choice("nt") + pick.choice("nt")
    bm, bn, bk = pick.choice((64, 128)), pick.choice((64, 128)), pick.choice((64, 32))
    stages = pick.choice((0, 0, 2, 3, 4))
    trips = seed % 6
    k = max(trips * bk - pick.choice((0, 1, 3, 7, 15)), 0)
    m, n = pick.choice((17, bm - 1, bm + 15, 5 * bm)), pick.choice((33, bn - 3, bn + 1))
    shared = seed % 10 == 6  # b is the same for all of a cluster, which brings it by tensor copies
    if shared:
        order, m, n, k, stages = "nn", bm + 15, 64 + 16 * size, k | 1, 0
    elif seed % 4 == 3:  # one operand by tensor copies
        k = -(-k // 16) * 16
        n = -(-n // 16) * 16 + 1
    (of_a, tile_a), (of_b, tile_b) = A_OF[order[0]], B_OF[order[1]]
    attributes = ("@persistent\n" if seed % 3 == 0 else "") + ("@cluster(2)\n" if shared else "")
    text = PRODUCT % (attributes, of_a, of_b, f" pipeline({stages})" if stages else "", tile_a, tile_b)
    kernel = tkclib.Kernel(text, "product", {"T": dtype, "A": SUMS[dtype], "BM": bm, "BN": bn, "BK": bk}, check=False)
    tkclib.SEED = seed % 5
    shifts = [pick.randrange(16 // size) if seed % 4 != 3 else 0 for _ in "ab"]
    layout = pick.choice(("dense", "dense", "gap", "every"))
    shifts[1], layout = (0, "dense") if shared else (shifts[1], layout)
    a = placed(numbers(pick, dtype, (m, k) if order[0] == "n" else (k, m), 0) % 4, dtype, shifts[0])
    b = placed(numbers(pick, dtype, (k, n) if order[1] == "n" else (n, k), 0) % 4, dtype, shifts[1], layout)
    words = f"{dtype} {order} {(bm, bn, bk)} pipeline {stages}, {(m, n, k)}, {layout} + {shifts}"
    same(kernel, words, {"a": a, "b": b}, {"c": ((m, n), SUMS[dtype])}, ("sim",) if shared and tkclib.DEVICE == "sim" else devices())
    if tkclib.DEVICE == "sim" and k and order[1] == "n" and n % 16 and not narrow:
        notes = kernel.notes(1)
        assert HINT in notes, f"{words}: {notes}"
        if "wgmma" in notes and "copies of its threads" not in notes:
            assert "warps of their own fetch the tiles" in notes, f"{words}: {notes}"
    if tkclib.DEVICE == "sim" and shared:
        notes = kernel.notes(1)
        assert SHARED in notes and HINT in notes, f"{words}: {notes}"
    kernel.close()


main()
