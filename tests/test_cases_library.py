# SPDX-License-Identifier: Apache-2.0
# Conformance: the shipped kernels on the lengths and values of rows A106, A124..A128, B04, B13, B15, B45, B47 of
# tests/cases/README.md. What each kernel does in general is in test_stdlib.py and test_stdlib_dot.py.
import numpy as np

from cases_lib import kernel, make, value
from judge import FN, In, Out, U, launch, main, test
from tkclib import Array


def rows(file, name, x, dtype="f32", layout="dense", **args):
    y = Out(x.shape, dtype, layout)
    defines = args.pop("defines", {})
    launch(kernel(f"std/{file}.tk", name, **defines), x=In(make(x, dtype), dtype, layout), y=y,
           **{k: In(make(v, dtype), dtype) if isinstance(v, np.ndarray) else v for k, v in args.items()})
    return value(y.array)


@test(*[(n, layout) for n in (1, 3, 127, 1023, 4096, 50257) for layout in ("dense", "gap", "transposed")])
def test_A124_B47_softmax(n, layout):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((6, n)) * 3
    x[1], x[2], x[3], x[4, ::2] = 1e4, -1e4, -np.inf, 1e4
    got = rows("softmax", "softmax", x, layout=layout)
    assert not np.isnan(got).any() and (got[3] == 0).all()
    assert (np.abs(got[[0, 1, 2, 4, 5]].sum(1) - 1) <= 2.0 ** -20).all()
    x = make(x, "f32").bits.astype(np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(1, keepdims=True))
    want = e / e.sum(1, keepdims=True)
    far = np.where(np.isfinite(x), np.abs(x - np.where(np.isfinite(x.max(1, keepdims=True)), x.max(1, keepdims=True), 0)), 0)
    good = [0, 1, 2, 4, 5]
    bound = (want * (U * (n + 2 * far + far.max(1, keepdims=True)) + 4 * FN) + 2.0 ** -140)[good]
    assert (np.abs(got[good] - want[good]) <= bound).all()


@test(*[(n, name) for n in (1, 41, 1023, 1500, 8192, 131072) for name in ("layernorm", "rmsnorm")])
def test_A125_B47_norms(n, name):
    rng = np.random.default_rng(n)
    x = 10000 + rng.choice([-1.0, 1.0], (3, n))
    x[1] = 7.25
    x[2] = rng.standard_normal(n)
    if name == "layernorm":
        b = rng.standard_normal(n)
        got = rows("norm", name, x, eps=0.0 if n == 0 else 1e-5)
        if n > 40:
            assert abs(got[0].var() - 1) < 1e-3 and abs(got[0].mean()) < 1e-3
        bias = rows("norm", name, x, b=b)
        assert (bias[1] == make(b, "f32").bits).all()  # an equal row gives the bias
        want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    else:
        x = make(x, "f32").bits.astype(np.float64)
        got = rows("norm", name, x)
        want = x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)
    assert np.abs(got - want)[1:].max() < 1e-4 * (1 + np.abs(want).max())


@test()
def test_B04_near_the_limit():
    rng = np.random.default_rng(4)
    x = np.full((3, 768), 8.5e37)
    x[1] = np.exp(rng.uniform(np.log(8e31), np.log(3.4e38), 768))
    x[2] = 3.4e38 * rng.choice([-1.0, 1.0], 768)
    b = rng.standard_normal(768)
    got = rows("norm", "layernorm", x, b=b)
    x = make(x, "f32").bits.astype(np.float64)
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) + make(b, "f32").bits
    assert (got[0] == make(b, "f32").bits).all() and np.abs(got - want)[1:].max() < 1e-3
    x = np.full((2, 768), 65504.0)
    x[1, ::2] = -65504
    got = rows("norm", "layernorm", x, "f16")
    assert (got[0] == 0).all() and (np.abs(got[1]) == 1).all()
    got = rows("norm", "rmsnorm", x, "f16")
    assert (np.abs(got) == 1).all()


@test()
def test_B47_many_rows():
    for m, n in ((1, 5), (49, 8193), (70001, 3), (2, 262144)):
        x = np.random.default_rng(m).standard_normal((m, n))
        got = rows("softmax", "softmax", x)
        assert (np.abs(got.sum(1) - 1) < 2.0 ** -18).all()
        e = np.exp(x - x.max(1, keepdims=True))
        assert np.abs(got - e / e.sum(1, keepdims=True)).max() < 1e-5


def attention(q, k, v, dtype="f32", scale=1.0, name="attention", lse=True, **defines):
    b, h, m, d = q.shape
    o, l = Out((b, h, m, v.shape[3]), dtype), Out((b, h, m), "f32")
    launch(kernel("std/attention.tk", name, **defines), q=In(make(q, dtype), dtype), k=In(make(k, dtype), dtype), v=In(make(v, dtype), dtype), o=o,
           scale=scale, **({"lse": l} if lse else {}))
    return value(o.array), l.array.bits.astype(np.float64)


@test(*[(m, n, 16) for m, n in ((1, 1), (3, 3), (64, 128), (113, 203), (255, 256), (1023, 1024), (239, 1), (799, 3))] +
      [(40, 50, d) for d in (32, 40, 64, 96, 128, 192, 256)])
def test_A127_lengths(m, n, d):
    rng = np.random.default_rng(m + d)
    q, k, v = (make(rng.standard_normal((1, 2, s, d)), "f32").bits.astype(np.float64) for s in (m, n, n))
    scale = float(np.float32(d ** -0.5))
    s = q @ k.swapaxes(2, 3) * scale
    p = np.exp(s - s.max(3, keepdims=True))
    want = p / p.sum(3, keepdims=True) @ v
    got, lse = attention(q, k, v, scale=scale)
    assert np.abs(got - want).max() < (n + d) * 64 * U * np.abs(v).max() + 1e-6
    assert np.abs(lse - (s.max(3) + np.log(p.sum(3)))).max() < 1e-4
    got, _ = attention(q * 0, k, v, scale=scale)
    assert np.abs(got - v.mean(2, keepdims=True)).max() < 8 * n * U * np.abs(v).max() + 1e-6


def counted(n, d=16):
    return np.broadcast_to(np.arange(float(n))[:, None], (1, 1, n, d))


@test()
def test_A128_B13_causal_at_the_bottom_right():
    for m, n, want in ((2, 5, [1.5, 2.0]), (5, 2, [0, 0, 0, 0, 0.5]), (1, 7, [3.0])):
        got, lse = attention(np.zeros((1, 1, m, 16)), np.ones((1, 1, n, 16)), counted(n), name="causal_attention")
        assert np.allclose(got[0, 0], np.array(want)[:, None], atol=1e-6), (m, n, got[0, 0, :, 0])
        if m > n:
            assert (got[0, 0, :m - n] == 0).all() and np.isneginf(lse[0, 0, :m - n]).all()
    for m, n in ((113, 203), (256, 255)):
        got, _ = attention(np.zeros((1, 1, m, 16)), np.ones((1, 1, n, 16)), counted(n), name="causal_attention")
        seen = np.arange(m) + n - m + 1
        assert np.allclose(got[0, 0, :, 0], np.where(seen > 0, (seen - 1) / 2, 0), rtol=1e-5)


@test()
def test_B15_rows_without_keys():
    source = ('import "std/attention.tk";\n'
              "fn hide(b: i32, h: i32, q: i32, k: i32) -> bool { return q != 0 && q != 63 && q != 64 && q != 99; }\n"
              "fn bias(s: f32, b: i32, h: i32, q: i32, k: i32) -> f32 { return where(q == 0 || q == 63 || q == 64 || q == 99, -inf, s); }\n"
              "kernel hidden = attention(mask = hide);\nkernel biased = attention(score = bias);\n")
    rng = np.random.default_rng(15)
    q, k, v = (make(rng.standard_normal((1, 1, 100, 16)), "f32").bits.astype(np.float64) for _ in range(3))
    plain, _ = attention(q, k, v)
    hidden = [0, 63, 64, 99]
    for name in ("hidden", "biased"):
        o, l = Out((1, 1, 100, 16), "f32"), Out((1, 1, 100), "f32")
        launch(kernel(source, name), q=In(make(q, "f32"), "f32"), k=In(make(k, "f32"), "f32"), v=In(make(v, "f32"), "f32"), o=o, scale=1.0, lse=l)
        got = value(o.array)
        assert (got[0, 0, hidden] == 0).all() and np.isneginf(l.array.bits[0, 0, hidden]).all() and not np.isnan(got).any(), name
        rest = np.setdiff1d(np.arange(100), hidden)
        assert (got[0, 0, rest] == plain[0, 0, rest]).all()
    got, lse = attention(q[:, :, :3], k[:, :, :0], v[:, :, :0])  # no key at all
    assert (got == 0).all() and np.isneginf(lse).all()


@test(*[(t, ta, tb) for t in ("f16", "bf16", "f32") for ta in (0, 1) for tb in (0, 1)])
def test_A106_matmul(dtype, ta, tb):
    rng = np.random.default_rng(106)
    for m, n, k in ((100, 72, 33), (5, 3, 2), (0, 4, 3), (4, 0, 3), (4, 5, 0), (64, 64, 64)):
        a, b = rng.integers(-3, 4, (m, k)).astype(float), rng.integers(-3, 4, (k, n)).astype(float)
        y = Out((m, n), dtype, "gap")
        y.array.bits[...] = make(np.full((m, n), np.nan), dtype).bits
        launch(kernel("std/matmul.tk", "matmul"), a=In(make(a, dtype), dtype, "transposed" if ta else "gap"),
               b=In(make(b, dtype), dtype, "transposed" if tb else "gap"), c=y)
        assert (value(y.array) == value(make(a @ b, dtype))).all()


if __name__ == "__main__":
    main()
