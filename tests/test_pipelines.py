# SPDX-License-Identifier: Apache-2.0
"""Loops whose products a matrix unit makes: their tiles are loaded ahead, and where tensor copies bring them by warps of their own.
What a device makes of them is what the CPU makes of them: exactly, as the numbers are small integers. Trip counts around the number of
stages, operands in either order, ragged sizes, several types; programs that nothing was tuned for."""
import random

import numpy as np

import tkclib
from judge import main, test

# The order of each operand is that of its tensor's dimensions.
PRODUCT = """kernel product<T: type, A: type, BM: int, BN: int, BK: int>(a: in T[%s], b: in T[%s], c: out A[M, N])
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
# A function of one operand, and a maximum that the loop carries beside the product.
OTHER = """fn gate(x: f32) -> f32 { return max(x, 0.0) * 2.0; }
kernel product<T: type, BM: int, BN: int, BK: int>(a: in T[M, K], b: in T[K, N], c: out f32[M, N], top: out f32[M])
    grid (pm in cdiv(M, BM), pn in cdiv(N, BN)) {
    let i = pm * BM;
    let j = pn * BN;
    var acc = zeros([BM, BN], f32);
    var most = full([BM, 1], f32(-inf));
    for k in 0 .. K step BK {
        let x = f32(a[i +: BM, k +: BK]);
        most = max(most, max(x, axis = 1));
        acc = dot(T(gate(x)), b[k +: BK, j +: BN], acc);
    }
    c[i +: BM, j +: BN] = acc;
    if pn == 0 {
        top[i +: BM] = reshape(most, [BM]);
    }
}
"""
SUMS = """kernel sums(x: in f32[M, N], y: out f32[M]) grid (i in cdiv(M, 16)) {
    var total = zeros([16, 64], f32);
    for k in 0 .. N step 64 {
        total = total + x[i * 16 +: 16, k +: 64];
    }
    y[i * 16 +: 16] = reshape(sum(total, axis = 1), [16]);
}
"""
TYPES = (("f16", "f32"), ("bf16", "f32"), ("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("f8e4m3", "f32"))
CASES = 32


def small(pick, dtype, shape):
    values = np.random.default_rng(pick.randrange(1 << 30)).integers(-3, 4, shape)
    return tkclib.array(values, dtype)


def run(kernel, a, b, outputs):
    """What the CPU and the device make, bit for bit."""
    results = []
    for device in ("cpu", tkclib.DEVICE):
        made = {n: tkclib.array(np.full(s, 99), t) for n, (s, t) in outputs.items()}
        kernel.on(device, a=a, b=b, **made)
        results.append(made)
    for n in outputs:
        cpu, it = results[0][n].bits, results[1][n].bits
        assert np.array_equal(cpu.view(np.uint32), it.view(np.uint32)), f"{n}: {int((cpu != it).sum())} of {cpu.size} differ"


@test(*[(seed,) for seed in range(CASES)])
def test_products(seed):
    pick = random.Random(seed)
    dtype, sums = TYPES[seed % len(TYPES)]
    order = pick.choice("nt") + pick.choice("nt")
    bm, bn, bk = pick.choice((64, 128)), pick.choice((64, 128, 256)), pick.choice((32, 64)) if dtype[1:] in ("16", "f16") else 64
    stages = pick.choice((0, 0, 2, 3))
    trips = pick.choice((0, 1, 2, 3, 4, 5))
    k = max(trips * bk - pick.choice((0, 0, 8, 16)), 0)
    m, n = pick.choice((16, bm, bm + 8, 2 * bm)), pick.choice((16, bn, bn + 16))
    (of_a, tile_a), (of_b, tile_b) = A_OF[order[0]], B_OF[order[1]]
    text = PRODUCT % (of_a, of_b, f" pipeline({stages})" if stages else "", tile_a, tile_b)
    kernel = tkclib.Kernel(text, "product", {"T": dtype, "A": sums, "BM": bm, "BN": bn, "BK": bk}, check=False)
    tkclib.SEED = seed % 5
    a = small(pick, dtype, (m, k) if order[0] == "n" else (k, m))
    b = small(pick, dtype, (k, n) if order[1] == "n" else (n, k))
    run(kernel, a, b, {"c": ((m, n), sums)})
    kernel.close()


@test(*[(dtype, k) for dtype in ("f16", "bf16") for k in (0, 64, 136, 320)])
def test_untuned(dtype, k):
    pick = random.Random(k)
    kernel = tkclib.Kernel(OTHER, "product", {"T": dtype, "BM": 64, "BN": 64, "BK": 64}, check=False)
    tkclib.SEED = k % 3
    run(kernel, small(pick, dtype, (72, k)), small(pick, dtype, (k, 136)), {"c": ((72, 136), "f32"), "top": ((72,), "f32")})
    if tkclib.DEVICE == "sim" and k:
        notes = kernel.notes(1)
        for said in ("wgmma", "by tensor copies of one thread", "warps of their own fetch the tiles"):
            assert said in notes, f"{said}: {notes}"
    kernel.close()


# Slots, groups of warps that fetch and that compute, as the attributes say: a ring each has a group, or they share one.
@test(*[(seed,) for seed in range(16)])
def test_attributes(seed):
    pick = random.Random(seed)
    stages, producers, consumers = pick.choice((1, 2, 3, 4, 5)), pick.choice((1, 2)), pick.choice((1, 2))
    bm, bn, bk = pick.choice((64, 128)), pick.choice((64, 128)), 32
    trips = pick.choice((0, 1, stages - 1, stages, stages + 1, 2 * stages + 1))
    m, n, k = pick.choice((bm, bm + 8, 3 * bm)), pick.choice((bn, bn + 16)), trips * bk
    attributes = f"@stages({stages}) " + pick.choice(("", "@persistent "))
    if stages > 1:
        attributes += f"@specialize(producers = {producers}, consumers = {consumers}) "
    text = attributes + PRODUCT % ("M, K", "K, N", "", A_OF["n"][1], B_OF["n"][1])
    kernel = tkclib.Kernel(text, "product", {"T": "f16", "A": "f32", "BM": bm, "BN": bn, "BK": bk}, check=False)
    tkclib.SEED = seed % 5
    run(kernel, small(pick, "f16", (m, k)), small(pick, "f16", (k, n)), {"c": ((m, n), "f32")})
    if tkclib.DEVICE == "sim" and k:
        notes = kernel.notes(1)
        assert ("ahead" in notes) == (stages > 1), notes
        if stages > 1:
            assert f"(tiles {stages})" in notes, notes
            assert f"(producers {4 * producers}, consumers {4 * consumers})" in notes, notes
    kernel.close()


# What wgmma does not read where copies put it (of 8 and 32 bits what is not contiguous along K) is written there again
# by the warps that multiply, or of f32 comes from registers: it is fetched by others all the same, and where it is large without many conflicts.
@test(*[(dtype, order, k) for dtype in ("f8e4m3", "i8", "f32") for order in ("nn", "nt", "tn", "tt") for k in (0, 96, 256, 384)])
def test_written_again(dtype, order, k):
    pick = random.Random(k)
    sums = "i32" if dtype == "i8" else "f32"
    (of_a, tile_a), (of_b, tile_b) = A_OF[order[0]], B_OF[order[1]]
    text = PRODUCT % (of_a, of_b, "", tile_a, tile_b)
    text = text.replace("acc);", "acc, precision = tf32);") if dtype == "f32" else text
    bn, bk = pick.choice((64, 128)), 32 if dtype == "f32" else 128
    kernel = tkclib.Kernel(text, "product", {"T": dtype, "A": sums, "BM": 64, "BN": bn, "BK": bk}, check=False)
    tkclib.SEED = k % 5
    m, n = 80, 144
    a = small(pick, dtype, (m, k) if order[0] == "n" else (k, m))
    b = small(pick, dtype, (k, n) if order[1] == "n" else (n, k))
    run(kernel, a, b, {"c": ((m, n), sums)})
    if tkclib.DEVICE == "sim" and k:
        notes = kernel.notes(1)
        for said in ("'a' is loaded ahead", "'b' is loaded ahead", "warps of their own fetch the tiles"):
            assert said in notes, f"{said}: {notes}"
    kernel.close()


# Operands of tf32 that lie halfway, and next to it, are rounded to the even neighbour by whoever does it: tensor copies, the threads that
# write an operand again or hand it over in registers, mma, and threads that multiply by themselves. Tiles of more than one shape of result.
@test(*[(order, tile, device) for order in ("nn", "nt", "tn", "tt") for tile in ((64, 64), (128, 64), (64, 128), (16, 8), (8, 16))
        for device in ("", ":80")])
def test_halfway(order, tile, device):
    pick = random.Random(f"{order} {tile}")
    (of_a, tile_a), (of_b, tile_b) = A_OF[order[0]], B_OF[order[1]]
    text = (PRODUCT % (of_a, of_b, "", tile_a, tile_b)).replace("acc);", "acc, precision = tf32);")
    kernel = tkclib.Kernel(text, "product", {"T": "f32", "A": "f32", "BM": tile[0], "BN": tile[1], "BK": 32}, check=False)
    m, n, k = 2 * tile[0] + 4, tile[1] + 12, 100

    def halfway(shape):
        draw = np.random.default_rng(pick.randrange(1 << 30))
        digits = draw.integers(0, 64, shape) / 2048 + draw.integers(-1, 2, shape) / 2 ** 14
        return tkclib.array((1 + digits) * draw.choice((-1, 1), shape), "f32")

    a, b = halfway((m, k) if order[0] == "n" else (k, m)), small(pick, "f32", (k, n) if order[1] == "n" else (n, k))
    if pick.random() < 0.5:
        a, b = small(pick, "f32", a.bits.shape), halfway(b.bits.shape)
    results = []
    for where in ("cpu", tkclib.DEVICE + (device if tkclib.DEVICE == "sim" else "")):
        results.append(tkclib.array(np.full((m, n), 99), "f32"))
        kernel.on(where, a=a, b=b, c=results[-1])
    assert np.array_equal(results[0].f64(), results[1].f64())
    kernel.close()


# A loop that no matrix unit works in: what its tiles are added to, its warps make, while others fetch.
@test(*[(stages, n) for stages in (2, 4) for n in (0, 64, 192, 384)])
def test_sums(stages, n):
    pick = random.Random(n)
    text = f"@stages({stages}) @specialize(producers = 1, consumers = 1)\n" + SUMS
    kernel = tkclib.Kernel(text, "sums", {}, check=False)
    tkclib.SEED = n % 5
    results = []
    x = small(pick, "f32", (40, n))
    for device in ("cpu", tkclib.DEVICE):
        results.append(tkclib.array(np.full((40,), 99), "f32"))
        kernel.on(device, x=x, y=results[-1])
    assert np.array_equal(results[0].f64(), results[1].f64())
    if tkclib.DEVICE == "sim" and n:
        assert "(producers 4, consumers 4)" in kernel.notes(1), kernel.notes(1)
    kernel.close()


main()
