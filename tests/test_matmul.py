# SPDX-License-Identifier: Apache-2.0
# tkc_matmul against float64: types, orders, batches, epilogues. TKC_TEST_DEVICE=cuda: on a GPU, by cuBLASLt; what that has no
# algorithm for is counted as refused.
import numpy as np

import tkclib
from judge import FN, In, Out, U, close, equal, main, refused, test

FLOATS = ("f64", "f32", "f16", "bf16")
EXACT = {"f64": 2.0 ** -53}  # half a unit in the last place of sums; U for the others
ORDERS = ("dense", "gap", "transposed")


def reference(a, b, alpha, beta, c, bias, activation):
    """What is wanted, and the sum of what was added, in magnitude."""
    x = alpha * (a @ b)
    size = abs(alpha) * (np.abs(a) @ np.abs(b))
    for term in (None if c is None else beta * c, bias):
        if term is not None:
            x, size = x + term, size + np.abs(term)
    if activation == "relu":
        x = np.maximum(x, 0)
    if activation == "gelu":
        x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return x, size


def normal(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape)


HALF_UNIT = {"f16": 2.0 ** -11, "bf16": 2.0 ** -8}

def judge(dtype, out, m, n, k, orders=("dense", "dense", "dense"), batch=(), alpha=1.0, beta=0.0, bias=False, activation=None,
          tf32=False):
    a = In(normal((*batch, m, k), 1), dtype, orders[0])
    b = In(normal((*batch, k, n), 2), dtype, orders[1])
    c = In(normal((*batch, m, n), 3), out, orders[2]) if beta else None
    add = In(normal((n,), 4), out) if bias else None
    d = Out((*batch, m, n), out, orders[2])
    arrays = {name: x.array for name, x in (("c", c), ("bias", add)) if x is not None}
    tkclib.matmul(a.array, b.array, d.array, alpha, beta, activation=activation, tf32=tf32, **arrays)
    for name, x in (("a", a), ("b", b), ("d", d), *((("c", c),) if c else ())):
        x.check(name)
    want, size = reference(a.f64(), b.f64(), alpha, beta, c.f64() if c else None, add.f64() if add else None, activation)
    bound = (k + 6) * EXACT.get(dtype, U) * size + (2.0 ** -10 * size if tf32 else 0)
    if activation == "gelu":
        bound = 1.2 * bound + np.abs(want) * FN + (2.0 ** -10 * np.abs(want) if tkclib.DEVICE == "cuda" else 0)
    if tkclib.DEVICE == "cuda" and (bias or activation) and out in HALF_UNIT:  # the library may round what it adds up
        for x in (alpha * (a.f64() @ b.f64()), beta * c.f64() if c else 0, add.f64() if add else 0):
            bound = bound + 1.2 * HALF_UNIT[out] * np.abs(x)
    close(d.f64(), want, bound, out)


@test(*[(dtype, size) for dtype in FLOATS for size in ((1, 1, 1), (64, 64, 64), (65, 33, 17), (128, 192, 300), (1, 100, 50),
                                                      (100, 1, 50))])
def test_types(dtype, size):
    judge(dtype, dtype, *size)
    if dtype in ("f16", "bf16"):
        judge(dtype, "f32", *size)


@test(*[(dtype, a, b, d) for dtype in ("f32", "bf16") for a in ORDERS for b in ORDERS for d in ORDERS])
def test_orders(dtype, a, b, d):
    judge(dtype, dtype, 40, 56, 24, (a, b, d), alpha=0.5, beta=2.0)
    batched = tuple("gap" if x == "transposed" else x for x in (a, b, d))  # that turns all axes
    judge(dtype, dtype, 40, 56, 24, batched, (3,))


@test(*[(dtype, bias, activation) for dtype in FLOATS for bias in (False, True) for activation in tkclib.ACTIVATIONS])
def test_epilogues(dtype, bias, activation):
    judge(dtype, dtype, 64, 48, 32, bias=bias, activation=activation)
    judge(dtype, dtype, 64, 48, 32, batch=(2,), bias=bias, activation=activation, beta=1.0)


@test()
def test_tf32():
    judge("f32", "f32", 128, 128, 256, tf32=True)


def whole(shape, seed, low=-2, high=3):
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.float64)


F8 = ("f8e4m3", "f8e5m2")
F8_OUT = ("bf16", "f16", "f32", "f8e4m3", "f8e5m2")


def exact(a, b, out, m=64, n=48, k=32, scaled=False, **more):
    """Small whole numbers, whose sums are exact: K the axis of stride 1 in both."""
    x, y = tkclib.array(whole((m, k), 1), a), tkclib.array(whole((n, k), 2), b).T
    d = tkclib.array(np.zeros((m, n)), out)
    scales = {"scale_a": np.array([2], np.float32), "scale_b": np.array([0.25], np.float32)} if scaled else {}
    if scaled and out in F8:
        scales["scale_d"] = np.array([0.5], np.float32)
    factor = np.prod([float(s[0]) for s in scales.values()])
    tkclib.matmul(x, y, d, **scales, **{name: z for name, z in more.items() if name in ("alpha", "beta", "c", "bias")})
    want = more.get("alpha", 1) * (whole((m, k), 1) @ whole((n, k), 2).T) * factor
    if "c" in more:
        want = want + more["beta"] * more["c"].f64()
    equal(d.f64(), tkclib.array(want, out).f64())


@test(*[(a, b, out) for a in F8 for b in F8 for out in F8_OUT
        if not (a == b == "f8e5m2") and not (a == b == "f8e4m3" and out == "f8e5m2")])
def test_f8(a, b, out):
    exact(a, b, out)
    exact(a, b, out, scaled=True)


@test()
def test_i8():
    c = tkclib.array(whole((64, 48), 5, -1000, 1000), "i32")
    exact("i8", "i8", "i32")
    exact("i8", "i8", "i32", alpha=3.0, beta=-2.0, c=c)


@test()
def test_batches():
    """One matrix for all; the axes of several batches as one; in place."""
    a, b = normal((2, 3, 32, 16), 1), normal((16, 24), 2)
    d = np.full((2, 3, 32, 24), 7.0)
    tkclib.matmul(a, b, d, 1.0, 1.0, c=d)
    close(d, a @ b + 7, 30 * 2.0 ** -53 * (np.abs(a) @ np.abs(b) + 7), "f64")
    heads = normal((32, 6, 16), 3).transpose(1, 0, 2)  # between the rows of one lie those of the others
    d = np.zeros((6, 32, 24))
    tkclib.matmul(heads, b, d)
    close(d, heads @ b, 30 * 2.0 ** -53 * (np.abs(heads) @ np.abs(b)), "f64")
    refused(lambda: tkclib.matmul(a[:, ::2], b, np.zeros((2, 2, 32, 24))[:, :, ::1]), "not one step apart")
    refused(lambda: tkclib.matmul(a[0, 0], b, d[0], bias=np.zeros(5)), "the bias is [5] and the rows of 'd' have 24 elements")
    refused(lambda: tkclib.matmul(a[0, 0, :, ::2], b[:8], d[0]), "the strides of 'a' are 16 and 2")


main()
