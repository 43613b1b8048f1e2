# SPDX-License-Identifier: Apache-2.0
# Conformance: reductions, sorting, matrix products. Rows A075..A087, A094..A104, A121, A123, B02, B06..B08, B12, B29, B31, B32, B37, B38.
import numpy as np

from cases_lib import FLOATS, INTS, TYPES, WIDTH, at, codes_of, located, make, run, small_ints, value, values_of, whole, wide
from judge import Out, U, main, test
from tkclib import DEVICE, Array

SHAPES = ((1,), (2,), (7,), (100,), (1024,), (2, 32), (4, 128), (1, 1024), (1024, 1), (33, 5), (2, 32, 16), (32, 2, 16), (32, 16, 2), (3, 5, 7))


def axes(shape):
    """All ways to name axes. On the simulator, where most of the time is the compiler's, only for two shapes: the last axis by its
    other number, and the only one by any, make the same LLVM module."""
    every = [None] + list(range(-1, len(shape)))
    alike = [-1] + [0] * (len(shape) == 1)
    return every if DEVICE != "sim" or shape in ((7,), (3, 5, 7)) else [a for a in every if a not in alike]


def kept(shape, axis):
    return () if axis is None else tuple(1 if i == axis % len(shape) else n for i, n in enumerate(shape))


def wrap(a, dtype):
    return np.asarray(a).astype(np.int64).astype(f"{'u' if dtype[0] == 'u' else ''}int{WIDTH[dtype]}")


@test(*[(t, s) for t in TYPES for s in SHAPES])
def test_A075_reductions(dtype, shape):
    x = small_ints(shape, dtype)
    v = value(x).astype(np.float64) if dtype in FLOATS else x.bits.astype(np.int64)
    for axis in axes(shape):
        a = "" if axis is None else f", axis = {axis}"
        out = wide(dtype)
        want = make(v.sum(axis=axis, keepdims=axis is not None), out)
        got = whole(f"sum(t{a})", x, out, kept(shape, axis))
        assert (value(got) == value(want)).all(), f"sum axis {axis}"
        if dtype != "bool":
            for f in ("max", "min"):
                got = whole(f"{f}(t{a})", x, dtype, kept(shape, axis))
                assert (value(got) == getattr(v, f)(axis=axis, keepdims=axis is not None)).all(), f"{f} axis {axis}"
            for f in ("argmax", "argmin"):
                got = whole(f"{f}(t{a})", x, "i32", kept(shape, axis))
                want = getattr(v, f)(axis=axis, keepdims=axis is not None)
                assert (value(got) == want).all(), f"{f} axis {axis}"


@test(*[t for t in INTS + ("f32", "f64")])
def test_A075_prod(dtype):
    for shape in ((6,), (3, 4), (2, 3, 2)):
        x = small_ints(shape, dtype, 5)
        for axis in axes(shape):
            a = "" if axis is None else f", axis = {axis}"
            got = whole(f"prod(t{a})", x, wide(dtype), kept(shape, axis))
            assert (value(got) == value(x).astype(np.int64).prod(axis=axis, keepdims=axis is not None)).all()


@test()
def test_A076_B06_accumulators():
    ones = Array(np.ones((1024,), bool), "bool")
    assert whole("sum(t)", ones, "i32", ()).bits[0] == 1024
    assert whole("sum(t)", make(np.full(1024, 7), "i8"), "i32", ()).bits[0] == 7168
    assert whole("i8(sum(t))", make(np.full(1024, 7), "i8"), "i8", ()).bits[0] == 0
    assert whole("sum(t)", make(np.full(200, 255), "u8"), "u32", ()).bits[0] == 51000
    for t in ("f16", "bf16"):
        assert value(whole("sum(t)", make(np.ones(4096), t), t, ()))[0] == 4096
        assert value(whole("sum(t, axis = 1)", make(np.ones((3, 4096)), t), t, (3, 1))).tolist() == [[4096]] * 3
    assert value(whole("sum(t)", make(np.ones(256), "f8e4m3"), "f8e4m3", ()))[0] == 256
    two = Array(np.ones((128, 2), bool), "bool")
    assert whole("sum(t)", two, "i32", ()).bits[0] == 256
    assert whole("bool(sum(t))", two, "bool", ()).bits[0]
    assert whole("any(t)", two, "bool", ()).bits[0] and whole("all(t)", two, "bool", ()).bits[0] and not whole("xor(t)", two, "bool", ()).bits[0]
    assert whole("i8(sum(t))", two, "i8", ()).bits[0] == 0
    assert whole("sum(t)", make(np.full(100, 7), "i8"), "i32", ()).bits[0] == 700
    located("kernel k(x: in i8[8], y: out i8[1]) { y[0] = sum(x[0 +: 8]); }", "i8", "i32", at="sum")


@test(*FLOATS)
def test_A078_B07_nan(dtype):
    for n in (1, 3, 32, 128, 200):
        for place in sorted({0, n - 1, min(31, n - 1), min(32, n - 1), min(127, n - 1)}):
            v = np.arange(n) % 6 - 2.0
            v[place] = np.nan
            x = make(v, dtype)
            for f in ("max", "min", "sum"):
                assert np.isnan(value(whole(f"{f}(t)", x, dtype, ()))).all(), (f, n, place)
            for f in ("argmax", "argmin"):
                assert whole(f"{f}(t)", x, "i32", ()).bits[0] == place
            if n > 1:  # the other mode, by a function of one's own
                got = value(whole(f"reduce(t, axis = 0, fmax)", x, dtype, (1,)))
                assert got[0] == np.nanmax(v)
    nan = make(np.full(40, np.nan), dtype)
    assert np.isnan(value(whole("max(t)", nan, dtype, ()))).all()
    assert whole("argmax(t)", nan, "i32", ()).bits[0] == 0 and whole("argmin(t)", nan, "i32", ()).bits[0] == 0


@test()
def test_B07_index_reductions():
    for v, most, least in (([np.nan, 6, 8], 0, 0), ([6, np.nan, 8], 1, 1), ([np.inf, np.nan], 1, 1), ([-np.inf, np.inf], 1, 0), ([0.0, -0.0], 0, 0)):
        x = make(np.array(v), "f32")
        assert whole("argmax(t)", x, "i32", ()).bits[0] == most and whole("argmin(t)", x, "i32", ()).bits[0] == least, v


@test(*[t for t in TYPES if t != "bool"])
def test_A080_ties(dtype):
    for first, last in ((3, 9), (0, 1), (31, 32), (100, 900)):
        v = np.zeros((1, 1024))
        v[0, first:last + 1] = 1
        x = make(v, dtype)
        assert whole("argmax(t, axis = 1)", x, "i32", (1, 1)).bits[0, 0] == first
        assert whole("argmin(t, axis = 1)", make(1 - v, dtype), "i32", (1, 1)).bits[0, 0] == first
    x = make(np.ones((3, 4, 5)), dtype)
    for axis in range(3):
        assert (whole(f"argmax(t, axis = {axis})", x, "i32", kept((3, 4, 5), axis)).bits == 0).all()


@test()
def test_A082_pairs_and_functions():
    rng = np.random.default_rng(82)
    x = Array(rng.integers(0, 50, (5, 96)).astype(np.float32), "f32")
    y, n = Out((5, 1), "f32"), Out((5, 1), "i32")
    run("fn better(a: f32, i: i32, b: f32, j: i32) -> (f32, i32) {\n"
        "    let first = a > b || (a == b && i < j);\n    return (where(first, a, b), where(first, i, j));\n}\n"
        "kernel k(x: in f32[5, 96], y: out f32[5, 1], n: out i32[5, 1]) {\n"
        "    let (v, i) = reduce((x[0 +: 5, 0 +: 96], broadcast(iota(96), [5, 96])), axis = 1, better);\n"
        "    y[0 +: 5, 0 +: 1] = v;\n    n[0 +: 5, 0 +: 1] = i;\n}\n", x=x, y=y, n=n)
    assert (y.array.bits[:, 0] == x.bits.max(1)).all() and (n.array.bits[:, 0] == x.bits.argmax(1)).all()


@test(64, 96, 100)
def test_A082_three_at_once(n):
    """Mean and squared deviations with their count, by the merging rule, against float64."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((3, n)).astype(np.float32)
    y, z = Out((3, 1), "f32"), Out((3, 1), "f32")
    run("fn merge(m: f32, s: f32, c: f32, n: f32, t: f32, d: f32) -> (f32, f32, f32) {\n"
        "    let whole = c + d;\n    let delta = n - m;\n    return (m + delta * d / whole, s + t + delta * delta * c * d / whole, whole);\n}\n"
        f"kernel k(x: in f32[3, {n}], y: out f32[3, 1], z: out f32[3, 1]) {{ let t = x[0 +: 3, 0 +: {n}];\n"
        f"    let (m, s, c) = reduce((t, zeros([3, {n}], f32), full([3, {n}], f32(1))), axis = 1, merge);\n    y[0 +: 3, 0 +: 1] = m; z[0 +: 3, 0 +: 1] = s / c; }}",
        x=x, y=y, z=z)
    v = x.astype(np.float64)
    assert np.abs(y.array.bits[:, 0] - v.mean(1)).max() < n * U * np.abs(v).max()
    assert np.abs(z.array.bits[:, 0] - v.var(1)).max() < 4 * n * U * (v * v).max()


@test(96, 128, 100)
def test_A082_B32_earlier_first(n):
    """2 x 2 matrices do not commute: the product goes from left to right, in a reduction and in both directions of a scan."""
    rng = np.random.default_rng(n)
    m = rng.integers(0, 1000, n).astype(np.int64)
    # x -> a x + b modulo 2^32, composed in order
    a, b = (2 * m + 1).astype(np.uint32), (m * 7 + 3).astype(np.uint32)
    f = "fn f(a: u32, b: u32, c: u32, d: u32) -> (u32, u32) { return (a * c, b * c + d); }\n"

    def fold(order):
        p, q, out = 1, 0, []
        for i in order:
            p, q = p * int(a[i]) % 2 ** 32, (q * int(a[i]) + int(b[i])) % 2 ** 32
            out.append((p, q))
        return np.array(out, np.uint32)
    y, z = Out((1,), "u32"), Out((1,), "u32")
    run(f + f"kernel k(a: in u32[{n}], b: in u32[{n}], y: out u32[1], z: out u32[1]) {{ let (p, q) = reduce((a[0 +: {n}], b[0 +: {n}]), axis = 0, f); "
        "y[0 +: 1] = p; z[0 +: 1] = q; }", a=a, b=b, y=y, z=z)
    assert (y.array.bits[0], z.array.bits[0]) == tuple(fold(range(n))[-1])
    y, z = Out((n,), "u32"), Out((n,), "u32")
    run(f + f"kernel k(a: in u32[{n}], b: in u32[{n}], y: out u32[{n}], z: out u32[{n}]) {{ let (p, q) = scan((a[0 +: {n}], b[0 +: {n}]), axis = 0, f); "
        f"y[0 +: {n}] = p; z[0 +: {n}] = q; }}", a=a, b=b, y=y, z=z)
    assert (np.stack([y.array.bits, z.array.bits], 1) == fold(range(n))).all()


@test(*[t for t in TYPES if t != "bool"])
def test_A084_padding(dtype):
    """96 elements in a tile of 128: what stands for the others changes nothing."""
    x = small_ints((96,), dtype, 84)
    v = value(x)
    info = None if dtype in FLOATS else np.iinfo(x.bits.dtype)
    top = "nan" if info is None else f"{dtype}({info.max})"
    for f, fill, want, out in (("sum", "0", v.astype(np.float64).sum(), wide(dtype)),
                               ("max", "-inf" if info is None else f"{dtype}({info.min})", v.max(), dtype),
                               ("min", "inf" if info is None else f"{dtype}({info.max})", v.min(), dtype)):
        if dtype == "f8e4m3" and f != "sum":
            fill = "-448.0" if f == "max" else "448.0"
        y = Out((1,), out)
        run(f"kernel k(x: in {dtype}[N], y: out {out}[1]) {{ y[0] = {f}(x[0 +: 128] else {fill}); }}", x=x, y=y)
        assert value(y.array)[0] == want, f
    assert top


@test(*INTS + ("bool",))
def test_A086_xor(dtype):
    x = values_of(dtype)
    n = x.shape[0]
    got = whole("xor(t)", x, dtype, ())
    assert codes_of(got)[0] == np.bitwise_xor.reduce(codes_of(x))
    if dtype == "bool":
        for shape in ((5, 8), (32, 3)):
            x = small_ints(shape, "bool", 3)
            for axis in (0, 1):
                for f, g in (("any", np.any), ("all", np.all), ("xor", np.logical_xor.reduce)):
                    assert (whole(f"{f}(t, axis = {axis})", x, "bool", kept(shape, axis)).bits == g(x.bits, axis=axis, keepdims=True)).all()
    assert n


@test(1, 2, 16, 32, 64, 5)
def test_A087_nothing_counted_twice(n):
    x = make(np.ones(n), "i32")
    assert whole("sum(t)", x, "i32", ()).bits[0] == n
    assert whole("sum(i32(t > 0))", x, "i32", ()).bits[0] == n
    assert whole("histogram(t, 3)", x, "i32", (3,)).bits.tolist() == [0, n, 0]
    assert whole("cumsum(t, axis = 0)", x, "i32", (n,)).bits.tolist() == list(range(1, n + 1))


# ---- Matrix products ----------------------------------------------------------------------------

PAIRS = (("f16", "f32"), ("bf16", "f32"), ("f8e4m3", "f32"), ("f8e5m2", "f32"), ("i8", "i32"), ("u8", "i32"), ("f32", "f32"), ("f64", "f64"))


def mat(m, n, dtype, seed):
    return small_ints((m, n), dtype, seed, 2)


@test(*[(t, mnk) for t in PAIRS for mnk in ((16, 16, 16), (32, 16, 64), (64, 128, 32), (1, 1, 1), (5, 7, 3), (40, 24, 33), (128, 104, 16))])
def test_A094_A104_dot(types, mnk):
    t, out = types
    m, n, k = mnk
    a, b = mat(m, k, t, 1), mat(k, n, t, 2)
    want = value(a).astype(np.float64) @ value(b).astype(np.float64)
    got = whole(f"dot(t, b[{at((k, n))}])", a, out, (m, n), b=b)
    assert (value(got) == want).all()


@test(*[(t, ta, tb) for t in PAIRS for ta in (0, 1) for tb in (0, 1)])
def test_A095_transposed(types, ta, tb):
    t, out = types
    m, n, k = 24, 40, 17
    a, b = mat(m, k, t, 1), mat(k, n, t, 2)
    want = value(a).astype(np.float64) @ value(b).astype(np.float64)
    x = Array(np.ascontiguousarray(a.bits.T), t) if ta else a
    w = Array(np.ascontiguousarray(b.bits.T), t) if tb else b
    left = "transpose(t)" if ta else "t"
    right = f"transpose(b[{at(w.shape)}])" if tb else f"b[{at(w.shape)}]"
    assert (value(whole(f"dot({left}, {right})", x, out, (m, n), b=w)) == want).all()
    assert (value(whole(f"transpose(dot({left}, {right}))", x, out, (n, m), b=w)) == want.T).all()


@test(*PAIRS)
def test_A097_accumulate(t, out):
    for steps in (1, 2, 5, 8):
        a, b, c = mat(16, 8 * steps, t, 1), mat(8 * steps, 12, t, 2), mat(16, 12, out, 3)
        y = Out((16, 12), out)
        run(f"kernel k(a: in {t}[16, K], b: in {t}[K, 12], c: in {out}[16, 12], y: out {out}[16, 12]) {{ var s = c[0 +: 16, 0 +: 12]; "
            "for kk in 0 .. K step 8 { s = dot(a[0 +: 16, kk +: 8], b[kk +: 8, 0 +: 12], s); } y[0 +: 16, 0 +: 12] = s; }", a=a, b=b, c=c, y=y)
        assert (value(y.array) == value(c) + value(a).astype(np.float64) @ value(b).astype(np.float64)).all()
    other = "f16" if out != "f16" else "f32"
    located(f"kernel k(a: in {t}[16, 16], c: in {other}[16, 16]) {{ let s = dot(a[0 +: 16, 0 +: 16], a[0 +: 16, 0 +: 16], c[0 +: 16, 0 +: 16]); }}",
            other, at="dot")


@test()
def test_A098_B02_f32_is_exact_by_default():
    rng = np.random.default_rng(98)
    v = rng.standard_normal((64, 32)).astype(np.float32)
    ones = Array(np.ones((32, 64), np.float32), "f32")
    b = Array(v, "f32")
    got = whole(f"dot(t, b[{at((64, 32))}])", ones, "f32", (32, 32), b=b).bits.astype(np.float64)
    bound = 64 * U * np.abs(v).astype(np.float64).sum(0)
    assert (np.abs(got - v.astype(np.float64).sum(0)) <= bound).all()
    sums = whole("sum(t, axis = 0)", b, "f32", (1, 32)).bits.astype(np.float64)
    assert (np.abs(got - sums) <= 2 * bound).all()
    # A value that a shorter mantissa cannot hold
    x = Array(np.full((16, 16), 1 + 2.0 ** -20, np.float32), "f32")
    eye = Array(np.eye(16, dtype=np.float32), "f32")
    assert (whole(f"dot(t, b[{at((16, 16))}])", x, "f32", (16, 16), b=eye).bits == x.bits).all()
    a, w = rng.standard_normal((24, 512)).astype(np.float32), rng.standard_normal((512, 24)).astype(np.float32)
    exact, size = a.astype(np.float64) @ w.astype(np.float64), np.abs(a).astype(np.float64) @ np.abs(w).astype(np.float64)
    for mode, bound in (("", 512 * U), (", precision = tf32x3", 512 * U + 2.0 ** -20), (", precision = tf32", 2.0 ** -10)):
        got = whole(f"dot(t, b[{at((512, 24))}]{mode})", Array(a, "f32"), "f32", (24, 24), b=Array(w, "f32")).bits
        assert (np.abs(got - exact) <= bound * size).all(), mode
    for tile in (1, 3, 8, 16):  # the same digits for any tile of the output
        y = Out((24, 24), "f32")
        run(f"kernel k(a: in f32[24, 512], b: in f32[512, 24], y: out f32[24, 24]) grid (i in cdiv(24, {tile})) "
            f"{{ y[i * {tile} +: {tile}, 0 +: 24] = dot(a[i * {tile} +: {tile}, 0 +: 512], b[0 +: 512, 0 +: 24]); }}", a=a, b=w, y=y)
        assert (y.array.bits == whole(f"dot(t, b[{at((512, 24))}])", Array(a, "f32"), "f32", (24, 24), b=Array(w, "f32")).bits).all()
    located("kernel k(a: in f16[16, 16]) { let s = dot(a[0 +: 16, 0 +: 16], a[0 +: 16, 0 +: 16], precision = tf32); }", "f16", at="tf32")


@test(*[(a, b) for a in ("f8e4m3", "f8e5m2") for b in ("f8e4m3", "f8e5m2")])
def test_A100_f8(s, t):
    rng = np.random.default_rng(100)
    for k in (32, 512, 4096):
        a, b = make(rng.standard_normal((8, k)), s), make(rng.standard_normal((k, 8)), t)
        exact = value(a) @ value(b)
        got = value(whole(f"dot(t, b[{at((k, 8))}])", a, "f32", (8, 8), b=b))
        assert (np.abs(got - exact) <= k * U * (np.abs(value(a)) @ np.abs(value(b)))).all()


@test(("f16", "bf16"), ("i8", "u8"), ("f16", "f32"), ("i16", "i16"), ("i32", "i32"), ("bool", "bool"))
def test_A100_A104_refused_types(a, b):
    located(f"kernel k(a: in {a}[16, 16], b: in {b}[16, 16]) {{ let s = dot(a[0 +: 16, 0 +: 16], b[0 +: 16, 0 +: 16]); }}", a, at="dot")


@test()
def test_A104_refused_shapes():
    for left, right, words in (("0 +: 16, 0 +: 8", "0 +: 16, 0 +: 16", ("[16, 8]", "[16, 16]")), ("0, 0 +: 16", "0 +: 16, 0 +: 16", ("[16]",))):
        located(f"kernel k(a: in f16[16, 16]) {{ let s = dot(a[{left}], a[{right}]); }}", *words, at="dot")


@test(*PAIRS)
def test_A102_tails(t, out):
    m, n, k = 100, 72, 33
    a, b = mat(m, k, t, 1), mat(k, n, t, 2)
    y = Out((m, n), out, "gap")
    run(f"kernel k(a: in {t}[M, K], b: in {t}[K, N], y: out {out}[M, N]) grid (i in cdiv(M, 48), j in cdiv(N, 32)) {{ var s = zeros([48, 32], {out}); "
        "for kk in 0 .. K step 32 { s = dot(a[i * 48 +: 48, kk +: 32], b[kk +: 32, j * 32 +: 32], s); } y[i * 48 +: 48, j * 32 +: 32] = s; }",
        a=a, b=b, y=y)
    assert (value(y.array) == value(a).astype(np.float64) @ value(b).astype(np.float64)).all()


@test(64, 128, 40)
def test_B29_chained_dots(n):
    c = mat(n, n, "f16", 3)
    eye = Array(np.eye(n, dtype=np.float16), "f16")
    s = at((n, n))
    got = whole(f"dot(f16(transpose(dot(t, t))), c[{s}])", eye, "f32", (n, n), c=c)
    assert (got.bits == c.bits).all()
    p = Array(np.roll(np.eye(n), 3, 0).astype(np.float16), "f16")
    got = whole(f"dot(f16(transpose(dot(t, e[{s}]))), c[{s}])", p, "f32", (n, n), c=c, e=eye)
    assert (got.bits == p.bits.T.astype(np.float32) @ c.bits.astype(np.float32)).all()


@test(104, 40, 24, 88, 112, 8)
def test_B31_every_column(n):
    a, b = mat(32, 16, "f16", 1), mat(16, n, "f16", 2)
    got = whole(f"dot(t, b[{at((16, n))}])", a, "f32", (32, n), b=b)
    assert (got.bits == value(a) @ value(b)).all()


@test("i8", "bf16", "f32")
def test_B37_B38_one_after_another(dtype):
    """Products, reductions, scans, gathers and transposes of one tile in a loop, again and again the same."""
    x = small_ints((16, 16), dtype, 38, 1)
    v = value(x).astype(np.float64)
    out = wide(dtype)
    y = Out((50, 16, 16), out)
    run(f"kernel k(x: in {dtype}[16, 16], y: out {out}[R, 16, 16]) {{\n    let t = x[0 +: 16, 0 +: 16];\n    for r in 0 .. R {{\n"
        f"        let p = {'i32' if dtype == 'i8' else out}(dot(t, transpose(t)));\n        let g = {out}(gather(t, broadcast((15 - iota(16))[:, newaxis], [16, 16]), 0));\n"
        f"        y[r, 0 +: 16, 0 +: 16] = p + {out}(sum(t, axis = 0)) + {out}(max(transpose(t), axis = 1)) + {out}(cumsum(t, axis = 1)) + g;\n    }}\n}}\n", x=x, y=y)
    want = v @ v.T + v.sum(0, keepdims=True) + v.max(0)[:, None] + v.cumsum(1) + v[::-1]
    assert (value(y.array) == want).all()


@test("f16", "bf16", "f32")
def test_B12_nan_in_a_running_maximum(dtype):
    v = np.arange(64.0) % 9
    v[5] = np.nan
    for f, want in (("max", np.nan), ("fmax", 8.0)):
        y = Out((1,), dtype)
        tile = "max(x[kk +: 16])" if f == "max" else "sum(reduce(x[kk +: 16], axis = 0, fmax))"
        run(f"kernel k(x: in {dtype}[64], y: out {dtype}[1]) {{ var m = {dtype}({'-inf'}); for kk in 0 .. 64 step 16 {{ m = {f}(m, {tile}); }} y[0] = m; }}",
            x=make(v, dtype), y=y)
        got = value(y.array)[0]
        assert got == want or (np.isnan(got) and np.isnan(want)), (f, got)


# ---- Order --------------------------------------------------------------------------------------

def total(v):
    """Keys in the order of sort: NaN above all."""
    return np.where(np.isnan(v), np.inf, v), np.isnan(v)


@test(*[(t, s, d) for t in TYPES if t != "bool" for s in ((512,), (16, 20), (1,), (3, 7)) for d in (False, True)])
def test_A121_B08_sort(dtype, shape, descending):
    rng = np.random.default_rng(121)
    v = rng.integers(0 if dtype[0] == "u" else -100, 100, shape).astype(np.float64)
    if dtype in FLOATS:
        flat = v.reshape(-1)
        flat[rng.integers(0, flat.size, 17)] = np.nan
        flat[rng.integers(0, flat.size, 3)] = np.inf
    x = make(v, dtype)
    for axis in range(len(shape)):
        got = value(whole(f"sort(t, {axis}, descending = {str(descending).lower()})", x, dtype, shape))
        want = np.sort(value(x).astype(np.float64) if dtype in FLOATS else x.bits, axis)
        want = np.flip(want, axis) if descending else want
        assert np.array_equal(got, want, equal_nan=dtype in FLOATS)


@test("i8", "i32", "u64", "f16", "f32", "bf16", "f64")
def test_A121_B08_topk(dtype):
    rng = np.random.default_rng(122)
    v = rng.integers(0, 60, (4, 100)).astype(np.float64)
    if dtype in FLOATS:
        v[1, 7] = v[1, 90] = np.nan
        v[2, 3] = np.inf
    x = make(v, dtype)
    key, nan = total(value(x).astype(np.float64))
    for k in (1, 4, 32, 100):
        order = np.lexsort((np.broadcast_to(np.arange(100), v.shape), -key, ~nan))[:, :k]
        got = whole("i", x, "i32", (4, k), more=f"let (v, i) = topk(t, {k}, 1);").bits
        assert (got == order).all(), k
        got = value(whole("v", x, dtype, (4, k), more=f"let (v, i) = topk(t, {k}, 1);"))
        assert np.array_equal(got, np.take_along_axis(value(x), order, 1), equal_nan=dtype in FLOATS)
    special = make(np.array([[np.inf, 3.140625, np.nan, -1]]), "f32")
    assert whole("i", special, "i32", (1, 4), more="let (v, i) = topk(t, 4, 1);").bits.tolist() == [[2, 0, 1, 3]]


@test((2048, 2), (256, 512), (8, 2), (100, 7))
def test_A123_histogram(m, n):
    rng = np.random.default_rng(m)
    v = rng.integers(-2, n + 3, m)
    for dtype in ("i32", "i64"):
        got = whole(f"histogram(t, {n})", make(v, dtype), "i32", (n,)).bits
        assert (got == np.bincount(v[(v >= 0) & (v < n)], minlength=n)).all()
    y = Out((n,), "i32")  # masked: what lies outside the tensor is -1 and counts nowhere
    run(f"kernel k(x: in i32[N], y: out i32[{n}]) {{ y[0 +: {n}] = histogram(x[0 +: {m}] else -1, {n}); }}", x=(v[:m // 2 + 1] % n).astype(np.int32), y=y)
    assert (y.array.bits == np.bincount(v[:m // 2 + 1] % n, minlength=n)).all() and y.array.bits.sum() == m // 2 + 1


if __name__ == "__main__":
    main()
