# SPDX-License-Identifier: Apache-2.0
# Products by matrix units, on the simulator, as GPUs of several kinds: small integers exactly as the executor, random data
# within K * 2^-22 * sum|a||b| (tf32: 2^-10 more; f8 by wgmma: 2^-12 more), each kind of operand, order and extent.
import os
import sys

import numpy as np

import tkclib
from judge import close, equal, main, refused, test

DEVICES = ("sim:80", "sim:89", "sim")
if tkclib.DEVICE != "sim":
    DEVICES = (tkclib.DEVICE,)
SUMS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64", "i8": "i32", "u8": "i32", "f8e4m3": "f32", "f8e5m2": "f32"}

ONE = """
@warps({warps})
kernel k(a: in {ta}[{da}], b: in {tb}[{db}], s: in {sum}[{m}, {n}], c: out {sum}[{m}, {n}]) {{
    let x = {xa};
    let y = {yb};
    c[0 +: {m}, 0 +: {n}] = dot(x, y, s[0 +: {m}, 0 +: {n}]{precision});
}}
"""


def view(name, rows, columns, order):
    """Text of its sizes, and of the tile, whatever the order in memory."""
    if order == "n":
        return f"{rows}, {columns}", f"{name}[0 +: {rows}, 0 +: {columns}]"
    return f"{columns}, {rows}", f"transpose({name}[0 +: {columns}, 0 +: {rows}])"


def integers(rng, shape, dtype):
    return rng.integers(0 if dtype == "u8" else -3, 4, shape)


def judge(device, m, n, k, ta="f16", tb=None, orders="nn", warps=4, precision=""):
    tb = tb or ta
    da, xa = view("a", m, k, orders[0])
    db, yb = view("b", k, n, orders[1])
    mode = f", precision = {precision}" if precision else ""
    source = ONE.format(warps=warps, ta=ta, tb=tb, sum=SUMS[ta], da=da, db=db, xa=xa, yb=yb, m=m, n=n, precision=mode)
    kernel = tkclib.Kernel(source, check=False)
    rng = np.random.default_rng(m + 3 * n + 7 * k)
    turned = [lambda x, o=o: x if o == "n" else np.ascontiguousarray(x.T) for o in orders]
    rounds = ("exact", "random") if ta not in ("i8", "u8") else ("exact", "whole")
    for kind in rounds:
        if kind == "exact":
            a, b = integers(rng, (m, k), ta), integers(rng, (k, n), tb)
            s = rng.integers(-5, 6, (m, n))
        elif kind == "whole":
            low, high = (0, 256) if ta == "u8" else (-128, 128)
            a, b, s = rng.integers(low, high, (m, k)), rng.integers(low, high, (k, n)), rng.integers(-5, 6, (m, n))
        else:
            a, b, s = rng.standard_normal((m, k)), rng.standard_normal((k, n)), rng.standard_normal((m, n))
        x, y, z = tkclib.array(turned[0](a), ta), tkclib.array(turned[1](b), tb), tkclib.array(s, SUMS[ta])
        c = tkclib.array(np.zeros((m, n)), SUMS[ta])
        kernel.on(device, a=x, b=y, s=z, c=c)
        a, b = turned[0](x.f64()), turned[1](y.f64())
        want = a @ b + z.f64()
        if kind != "random":
            equal(c.f64(), want, f"{device} {kind}")
            continue
        size = np.abs(a) @ np.abs(b) + np.abs(z.f64())
        bound = k * 2.0 ** (-51 if ta == "f64" else -22) * size
        if precision == "tf32":
            bound = bound + 2.0 ** -10 * size
        if ta.startswith("f8"):
            bound = bound + 2.0 ** -12 * size
        close(c.f64(), want, bound, SUMS[ta], f"{device} {kind}")
    kernel.close()


@test(*[(d, t, o) for d in DEVICES for t in ("f16", "bf16") for o in ("nn", "nt", "tn", "tt")])
def test_orders(device, dtype, orders):
    judge(device, 64, 32, 64, dtype, orders=orders)
    judge(device, 16, 128, 16, dtype, orders=orders, warps=2)
    judge(device, 128, 16, 32, dtype, orders=orders, warps=8)


@test(*[(d, m) for d in DEVICES for m in (16, 32, 64, 128, 256)])
def test_extents(device, m):
    for n, k in ((8, 16), (16, 8), (32, 256), (64, 64), (256, 32)):
        if (device, m, n) == ("sim:89", 128, 256):  # f32, moved to the unit's registers; larger ones are worked on in parts
            refused(lambda n=n, k=k: judge(device, m, n, k, "f16", warps=4), "needs 131072 bytes of shared memory, of which sm_89 has 101376")
            continue
        judge(device, m, n, k, "f16", warps=4)
    judge(device, m, 64, 128, "bf16", warps=8, orders="tt")


@test(*[(d, t, o) for d in DEVICES for t in ("i8", "u8") for o in ("nn", "nt", "tn", "tt")])
def test_integers(device, dtype, orders):
    judge(device, 64, 32, 64, dtype, orders=orders)
    judge(device, 32, 16, 16, dtype, orders=orders, warps=1)


@test(*[(d, a, b) for d in DEVICES[1:] or DEVICES for a in ("f8e4m3", "f8e5m2") for b in ("f8e4m3", "f8e5m2")])
def test_f8(device, a, b):
    judge(device, 64, 32, 64, a, b, orders="nt")
    judge(device, 32, 32, 32, a, b, orders="tn")
    judge(device, 64, 16, 512, a, b)


@test(*[(d, p, o) for d in DEVICES for p in ("tf32", "tf32x3", "ieee") for o in ("nn", "nt", "tn", "tt")])
def test_f32(device, precision, orders):
    judge(device, 64, 32, 32, "f32", orders=orders, precision=precision)
    judge(device, 32, 16, 64, "f32", orders=orders, precision=precision, warps=2)


@test(*[(d, o) for d in DEVICES for o in ("nn", "nt", "tn", "tt")])
def test_f64(device, orders):
    judge(device, 64, 32, 32, "f64", orders=orders)
    judge(device, 8, 8, 4, "f64", orders=orders, warps=1)


# Operands whose blocks do not fit: K goes through shared memory in parts.
@test(*[(d, o) for d in DEVICES for o in ("nn", "tt")])
def test_blocks(device, orders):
    judge(device, 64, 64, 1024, "f16", orders=orders, warps=8)
    judge(device, 64, 128, 128, "f64", orders=orders, warps=8)


BATCH = """
@warps({warps})
kernel k(a: in {t}[{z}, {m}, {k}], b: in {t}[{z}, {k}, {n}], c: out {sum}[{z}, {m}, {n}]) {{
    c[0 +: {z}, 0 +: {m}, 0 +: {n}] = dot(a[0 +: {z}, 0 +: {m}, 0 +: {k}], b[0 +: {z}, 0 +: {k}, 0 +: {n}]);
}}
"""


@test(*[(d, t) for d in DEVICES for t in ("bf16", "i8", "f64")])
def test_batches(device, dtype):
    for z, m, n, k, warps in ((4, 16, 16, 32, 4), (2, 64, 32, 32, 8), (8, 16, 8, 32, 1)):
        kernel = tkclib.Kernel(BATCH.format(t=dtype, sum=SUMS[dtype], z=z, m=m, n=n, k=k, warps=warps), check=False)
        rng = np.random.default_rng(z)
        a, b = integers(rng, (z, m, k), dtype), integers(rng, (z, k, n), dtype)
        c = tkclib.array(np.zeros((z, m, n)), SUMS[dtype])
        kernel.on(device, a=tkclib.array(a, dtype), b=tkclib.array(b, dtype), c=c)
        equal(c.f64(), a @ b, device)
        kernel.close()


CHAIN = """
@warps({warps})
kernel k(a: in {t}[{m}, {k}], b: in {t}[{k}, {n}], d: in {t}[{n}, {p}], c: out f32[{m}, {p}], r: out f32[{m}]) {{
    let s = dot(a[0 +: {m}, 0 +: {k}], b[0 +: {k}, 0 +: {n}]{mode});
    let scaled = s * 0.5 + 1.0;
    c[0 +: {m}, 0 +: {p}] = dot({t}({left}), d[0 +: {n}, 0 +: {p}]{mode});
    r[0 +: {m}] = reshape(max(s, axis = 1), [{m}]);
}}
"""


@test(*[(d, t, turned) for d in DEVICES for t in ("f16", "bf16", "f32") for turned in (False, True)])
def test_chains(device, dtype, turned):
    for m, n, p, k, warps in ((64, 64, 64, 16, 4), (128, 128, 32, 16, 8), (16, 16, 32, 16, 1), (64, 64, 16, 32, 8)):
        if turned and m != n:
            continue
        left = "transpose(scaled)" if turned else "scaled"
        source = CHAIN.format(t=dtype, m=m, n=n, p=p, k=k, warps=warps, left=left,
                              mode=", precision = tf32" if dtype == "f32" else "")
        kernel = tkclib.Kernel(source, check=False)
        rng = np.random.default_rng(n)
        a, b, e = rng.integers(-1, 2, (m, k)), rng.integers(-1, 2, (k, n)), rng.integers(-3, 4, (n, p))
        c, r = tkclib.array(np.zeros((m, p)), "f32"), tkclib.array(np.zeros(m), "f32")
        kernel.on(device, a=tkclib.array(a, dtype), b=tkclib.array(b, dtype), d=tkclib.array(e, dtype), c=c, r=r)
        s = a @ b
        scaled = s * 0.5 + 1
        equal(c.f64(), (scaled.T if turned else scaled) @ e, device)
        equal(r.f64(), s.max(axis=1), device)
        kernel.close()


# Loops that load ahead: operands are multiplied where the copies put them; what no unit reads there is read first.
LOOP = """
@warps({warps})
kernel ahead(a: in {ta}[{da}], b: in {ta}[{db}], c: out {sum}[M, N]) grid (i in cdiv(M, {m}), j in cdiv(N, {n})) {{
    var acc = zeros([{m}, {n}], {sum});
    for k in 0 .. K step {k} pipeline(3) {{
        acc = dot({xa}, {yb}, acc{precision});
    }}
    c[i * {m} +: {m}, j * {n} +: {n}] = acc;
}}
"""


@test(*[(d, t, o) for d in DEVICES for t in ("f16", "i8", "f32", "f64") for o in ("nn", "nt", "tn", "tt")])
def test_ahead(device, dtype, orders):
    for m, n, k, warps in ((64, 64, 32, 4), (32, 32, 32, 2)):
        tiles = [f"a[i * {m} +: {m}, k +: {k}]" if orders[0] == "n" else f"transpose(a[k +: {k}, i * {m} +: {m}])",
                 f"b[k +: {k}, j * {n} +: {n}]" if orders[1] == "n" else f"transpose(b[j * {n} +: {n}, k +: {k}])"]
        source = LOOP.format(warps=warps, ta=dtype, sum=SUMS[dtype], da="M, K" if orders[0] == "n" else "K, M", xa=tiles[0],
                             db="K, N" if orders[1] == "n" else "N, K", yb=tiles[1], m=m, n=n, k=k,
                             precision=", precision = tf32" if dtype == "f32" else "")
        kernel = tkclib.Kernel(source, check=False)
        for rows, columns, inner in ((m, n, 5 * k), (m + 16, n + 16, 2 * k + 16)):
            rng = np.random.default_rng(rows)
            a, b = integers(rng, (rows, inner), dtype), integers(rng, (inner, columns), dtype)
            x, y = (v if o == "n" else np.ascontiguousarray(v.T) for v, o in zip((a, b), orders))
            c = tkclib.array(np.zeros((rows, columns)), SUMS[dtype])
            kernel.on(device, a=tkclib.array(x, dtype), b=tkclib.array(y, dtype), c=c)
            equal(c.f64(), a @ b, device)
        kernel.close()


if __name__ == "__main__":
    main(may_refuse=tkclib.DEVICE != "sim")
