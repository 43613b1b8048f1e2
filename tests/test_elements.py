# SPDX-License-Identifier: Apache-2.0
# Code for several elements of a thread at once: quotients of few divisors, which are made of a reciprocal, are rounded as
# divisions are, whatever stands beside them; integers of 8 and 16 bits, which are converted in words, and roundings that are
# part of a conversion, are those of one element.
import numpy as np

import tkclib
from judge import equal, main, test

DEVICES = ("sim:80", "sim") if tkclib.DEVICE == "sim" else (tkclib.DEVICE,)

QUOTIENTS = """
kernel rows<BN: int>(x: in f32[M, N], c: in f32[M], y: out f32[M, N]) grid (i in M) {
    y[i, 0 +: BN] = x[i, 0 +: BN] / c[i];
}
kernel tile<BM: int, BN: int>(x: in f32[M, N], c: in f32[M], y: out f32[M, N]) grid (i in cdiv(M, BM)) {
    y[i * BM +: BM, 0 +: BN] = x[i * BM +: BM, 0 +: BN] / c[i * BM +: BM][:, newaxis];
}
"""
M, N = 64, 256


def bits(u):
    return np.asarray(u, dtype=np.uint32).view(np.float32)


def floats(rng, n, low, high):
    """Of exponents from low up to high, many of them near a power of two or a short number."""
    fraction = np.where(rng.random(n) < 0.5, rng.integers(0, 1 << 23, n), rng.integers(-3, 4, n) & 0x7fffff)
    sign = rng.integers(0, 2, n)
    return bits((sign << 31 | rng.integers(low + 127, high + 127, n) << 23 | fraction).astype(np.uint32))


def dividends(rng, row, c):
    """What the multiplications are for; then that with one element that they are not for; then everything."""
    x = floats(rng, N, -50, 50)
    with np.errstate(all="ignore"):
        x[::5] = np.float32(c) * rng.integers(-99, 99, x[::5].size).astype(np.float32)
    x[3], x[4] = 0.0, -0.0
    odd = bits([0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x80000003, 0x007fffff, 0x00800000, 0x7f7fffff, 0x21800000, 0x5d800001])
    if row % 3 == 1:
        x[int(rng.integers(N))] = odd[row // 3 % odd.size]
    elif row % 3 == 2:
        x = floats(rng, N, -127, 128)
    return x


@test(*[(device, kernel) for device in DEVICES for kernel in ("rows", "tile")])
def test_quotients(device, kernel):
    rng = np.random.default_rng(11)
    fixed = bits([0x3f800000, 0x40400000, 0x3f7fffff, 0x2f800000, 0x2f7fffff, 0x4f800000, 0x4f800001, 0xc0e00000, 0, 0x80000000, 0x7f800000, 0x7fc00000, 0x00000005, 0x7f7fffff])
    c = np.concatenate([fixed, np.abs(floats(rng, M - fixed.size - 8, -32, 32)), floats(rng, 8, -127, 128)])
    x = np.stack([dividends(rng, i, c[i]) for i in range(M)])
    y = tkclib.array(np.zeros((M, N)), "f32")
    settings = {"BN": N} if kernel == "rows" else {"BM": 16, "BN": N}
    tkclib.Kernel(QUOTIENTS, name=kernel, defines=settings, check=False).on(device, x=tkclib.array(x, "f32"), c=tkclib.array(c, "f32"), y=y)
    with np.errstate(all="ignore"):
        expected = x / c[:, None]
    got = y.f64().astype(np.float32)
    nan = np.isnan(expected)
    equal(np.isnan(got), nan, device)
    equal(np.where(nan, 0, got.view(np.uint32)), np.where(nan, 0, expected.view(np.uint32)), f"{device}: bits")


CONVERT = """
kernel convert<T: type, BN: int>(x: in {f}[N], y: out T[N], z: out f32[N])
    grid (i in cdiv(N, BN))
{{
    let t = {how};
    y[0 +: BN] = T(t);
    z[0 +: BN] = f32(T(t));
}}
"""
HOW = {"x[0 +: BN]": np.trunc, "round(x[0 +: BN])": np.rint, "floor(x[0 +: BN])": np.floor, "ceil(x[0 +: BN])": np.ceil, "trunc(x[0 +: BN])": np.trunc}
TYPES = ("i8", "u8", "i16", "u16", "i32", "u32")


@test(*[(device, f, t) for device in DEVICES for f in ("f32", "bf16") for t in TYPES])
def test_conversions(device, f, t):
    rng = np.random.default_rng(12)
    info = np.iinfo(np.dtype({"i": "int", "u": "uint"}[t[0]] + t[1:]))
    edge = np.array([info.min, info.max], dtype=np.float64)
    x = np.concatenate([floats(rng, 900, -20, 40).astype(np.float64), rng.integers(-700, 700, 800) / 2.0, edge, edge + 0.5, edge - 0.5, edge + 1, edge - 1,
                        [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 2.0 ** 31, -(2.0 ** 31), 2.0 ** 32, 3e38]])
    x = np.resize(x, 2048)
    xs = tkclib.array(x, f)
    x = xs.f64()
    for how, rounded in HOW.items():
        y, z = tkclib.array(np.zeros(2048), t), tkclib.array(np.zeros(2048), "f32")
        tkclib.Kernel(CONVERT.format(f=f, how=how), check=False, defines={"BN": 2048, "T": t}).on(device, x=xs, y=y, z=z)
        expected = np.where(np.isnan(x), 0, np.clip(rounded(np.where(np.isnan(x), 0, x)), float(info.min), float(info.max)))
        equal(y.f64(), expected, f"{device} {how}")
        equal(z.f64(), expected.astype(np.float32).astype(np.float64), f"{device} {how}, as f32")


@test(*[(device, f, t) for device in DEVICES for f in ("f32", "f16", "bf16") for t in ("f8e4m3", "f8e5m2")])
def test_f8(device, f, t):
    rng = np.random.default_rng(13)
    x = np.concatenate([floats(rng, 4000, -20, 17), bits(rng.integers(0, 1 << 32, 80, dtype=np.uint32)), bits([0, 0x80000000, 0x7fc00000, 0x7f800000, 0xff800000])])
    x = tkclib.array(np.resize(x, 4096), f)
    got = []
    for d in (device, "cpu"):
        y, z = tkclib.array(np.zeros(4096), t), tkclib.array(np.zeros(4096), "f32")
        tkclib.Kernel(CONVERT.format(f=f, how="x[0 +: BN]"), check=False, defines={"BN": 4096, "T": t}).on(d, x=x, y=y, z=z)
        got += [y.f64(), z.f64()]
    nan = np.isnan(got[2])
    for a, b in ((got[0], got[2]), (got[1], got[3])):
        equal(np.where(nan, 0, a), np.where(nan, 0, b), f"{device}: as the executor has it")
        equal(np.isnan(a), nan, device)


if __name__ == "__main__":
    main()
