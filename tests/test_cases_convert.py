# SPDX-License-Identifier: Apache-2.0
# Conformance: conversions, shapes and making of tiles. Rows A032..A057, B06 (storing), B10, B20 of tests/cases/README.md.
import numpy as np

from cases_lib import (FLOATS, INTS, SIGNED, SMALL, TYPES, WIDTH, body, codes_of, decoded, elem, from_codes, literal, located, make,
                       pairs, run, same, value, values_of)
from judge import Out, main, test
from tkclib import Array, STORAGE


# ---- Choosing -----------------------------------------------------------------------------------

@test(*TYPES)
def test_A032_where(dtype):
    a, b = pairs(values_of(dtype), most=600)
    c = Array(np.arange(a.shape[0]) % 3 == 0, "bool")
    want = Array(np.where(c.bits, a.bits, b.bits), dtype)
    got = elem("where(c, a, b)", dtype, a=a, b=b, c=c)
    assert (codes_of(got) == codes_of(want)).all()  # bits, of NaN too
    for source, shape in (("where(iota(4)[newaxis, :] < 2, x[0 +: 3, 0 +: 4], z[0 +: 3, 0 +: 4])", None), ("where(s, x[0 +: 3, 0 +: 4], z[0 +: 3, 0 +: 4])", True)):
        y = Out((3, 4), dtype)
        x, z = make(np.ones((3, 4)), dtype), make(np.zeros((3, 4)), dtype)
        run(f"kernel k(x: in {dtype}[3, 4], z: in {dtype}[3, 4], y: out {dtype}[3, 4], s: bool) {{ y[0 +: 3, 0 +: 4] = {source}; }}",
            x=x, z=z, y=y, s=1)
        want = np.broadcast_to(True if shape else np.arange(4) < 2, (3, 4))
        assert (codes_of(y.array) == np.where(want, codes_of(x), codes_of(z))).all()
    located(body("where(a, b, b)", dtype, {"a": "i32", "b": dtype}, 16), "bool", at="where")


@test(*FLOATS)
def test_A032_nan_unchosen(dtype):
    a = make(np.array([np.nan, np.inf, -np.inf, 1.0]), dtype)
    got = elem("where(isnan(a) || isinf(a), b, a)", dtype, a=a, b=make(np.zeros(4), dtype))
    want = [0, 0, 0, 1] if dtype[0:2] != "f8" else [0, 448, -448, 1] if dtype == "f8e4m3" else [0, 57344, -57344, 1]
    assert value(got).tolist() == want


# ---- Between floats -----------------------------------------------------------------------------

def cast(x, to, fold=64, **more):
    return elem(f"{to}(a)", to, fold=fold, a=x, **more)


@test()
def test_A033_f32_to_bf16_bits():
    table = {0x3f808000: 0x3f80, 0x3f818000: 0x3f82, 0x3f808001: 0x3f81, 0x7f7f7fff: 0x7f7f, 0x7f7f8000: 0x7f80, 0x00008000: 0,
             0x00018000: 2, 0x80008000: 0x8000, 0xff800000: 0xff80}
    got = codes_of(cast(from_codes(list(table), "f32"), "bf16"))
    assert got.tolist() == list(table.values()), [hex(c) for c in got]
    got = value(cast(from_codes([0x7f800001, 0x7fffffff, 0xff800001], "f32"), "bf16"))
    assert np.isnan(got).all()


@test()
def test_A034_f32_to_f16_values():
    table = {2049: 2048, 2051: 2052, 65519: 65504, 65520: np.inf, 2.0 ** -25: 0, 1.01 * 2.0 ** -25: 2.0 ** -24, -65520: -np.inf}
    got = value(cast(make(np.array(list(table)), "f32"), "f16"))
    assert got.tolist() == list(table.values()), got
    assert codes_of(cast(make(np.array([-0.0]), "f32"), "f16")).tolist() == [0x8000]


def around(dtype):
    """Float64 values at, between and just beside all neighbours of a type of 8 or 16 bits, as f32 where exact."""
    v = np.unique(decoded(dtype)[np.isfinite(decoded(dtype))])
    middle = (v[:-1] + v[1:]) / 2
    out = np.concatenate([v, middle, np.nextafter(middle.astype(np.float32), np.float32(np.inf)).astype(np.float64),
                          np.nextafter(middle.astype(np.float32), np.float32(-np.inf)).astype(np.float64),
                          [np.inf, -np.inf, np.nan, 1e30, -1e30, -0.0, 3e38]])
    return out


@test(*[(s, t) for t in SMALL for s in ("f32", "f64")])
def test_A033_A034_A036_every_tie(source, to):
    x = make(around(to), source)
    same(cast(x, to, tiles=(1024, 100)), make(value(x), to), f"{source} to {to}")


@test(*[(s, t) for s in ("f16", "bf16") for t in ("f8e4m3", "f8e5m2", "f16", "bf16") if s != t])
def test_A036_all_16_bit_codes(source, to):
    x = from_codes(np.arange(1 << 16), source)
    same(cast(x, to, tiles=(4096, 1000)), make(value(x), to), f"{source} to {to}")


@test()
def test_A036_B10_f8_saturates():
    table = {17: 16, 19: 20, 2.0 ** -10: 0, 1.5 * 2.0 ** -10: 2.0 ** -9, 449: 448, 464: 448, 465: 448, 1e6: 448, np.inf: 448,
             -np.inf: -448, 61440: 448}
    assert value(cast(make(np.array(list(table)), "f32"), "f8e4m3")).tolist() == list(table.values())
    table = {61440: 57344, 57345: 57344, 1e6: 57344, np.inf: 57344, -np.inf: -57344, 1.125: 1.0, 1.375: 1.5, 2.0 ** -17: 0}
    assert value(cast(make(np.array(list(table)), "f32"), "f8e5m2")).tolist() == list(table.values())
    for t in ("f8e4m3", "f8e5m2"):
        assert np.isnan(value(cast(make(np.array([np.nan]), "f32"), t))).all()
        assert np.isnan(value(cast(make(np.array([np.nan]), "f16"), t))).all()


@test(*[(s, t) for s in SMALL for t in FLOATS if WIDTH[t] > WIDTH[s]])
def test_A038_B10_widening_all_codes(source, to):
    x = from_codes(np.arange(1 << WIDTH[source]), source)
    same(cast(x, to, tiles=(4096, 1000)), make(value(x), to), f"{source} to {to}")


@test()
def test_A038_f64_f32():
    x = values_of("f64")
    with np.errstate(over="ignore"):
        same(cast(x, "f32"), Array(x.bits.astype(np.float32), "f32"))
    x = values_of("f32")
    same(cast(x, "f64"), Array(x.bits.astype(np.float64), "f64"))


# ---- Between floats and integers ----------------------------------------------------------------

@test(*[(s, t) for s in FLOATS for t in INTS])
def test_A039_float_to_integer(source, to):
    """Toward zero; what is too great gives the limit, NaN gives 0."""
    x = values_of(source)
    more = make(np.array([-1.9, 2.9, -0.9, 127.5, 128.0, -128.9, 255.9, 256.0, 2.0 ** 31, -2.0 ** 31, 2.0 ** 63, 2.0 ** 64, -2.0 ** 63]), source)
    x = Array(np.concatenate([x.bits, more.bits]), source)
    info = np.iinfo(STORAGE[to])
    want = [0 if np.isnan(v) else int(np.clip(0, 0, 0)) if v == 0 else
            int(info.max) if v >= info.max else int(info.min) if v <= info.min else int(v) for v in value(x)]
    same(cast(x, to), Array(np.array(want, STORAGE[to]), to), f"{source} to {to}")


def integer_to_float(n, to):
    """An integer rounded once, to nearest even."""
    if to == "f64":
        return float(n)
    bits = {"f32": 24, "f16": 11, "bf16": 8, "f8e4m3": 4, "f8e5m2": 3}[to]
    m, e = abs(n), max(abs(n).bit_length() - bits, 0)
    q, r = m >> e, m & ((1 << e) - 1)
    half = 1 << (e - 1) if e else 0
    q += e > 0 and (r > half or (r == half and q & 1))
    return float(q << e) * (-1 if n < 0 else 1)


@test(*[(s, t) for s in INTS for t in FLOATS])
def test_A042_integer_to_float(source, to):
    x = values_of(source)
    want = [integer_to_float(int(n), to) for n in x.bits]
    same(cast(x, to), make(np.array(want), to), f"{source} to {to}")


@test()
def test_A042_known_values():
    got = cast(Array(np.array([16777217, 16777219, 65520], np.int32), "i32"), "f32").bits
    assert got.tolist() == [16777216, 16777220, 65520]
    assert value(cast(Array(np.array([65520, 65519], np.int32), "i32"), "f16")).tolist() == [np.inf, 65504]
    assert cast(Array(np.array([2 ** 32 - 1], np.uint32), "u32"), "f32").bits.tolist() == [2.0 ** 32]


@test(*[(s, t) for s in INTS + ("bool",) for t in INTS if s != t])
def test_A044_narrow_and_extend(source, to):
    x = values_of(source)
    mask = (1 << WIDTH[to]) - 1
    want = from_codes(np.array([int(v) & mask for v in x.bits], np.uint64).astype(f"u{WIDTH[to] // 8}"), to)
    same(cast(x, to), want, f"{source} to {to}")


@test(*[t for t in FLOATS])
def test_A044_bool_to_float(to):
    assert value(cast(values_of("bool"), to)).tolist() == [0, 1]


@test(*[t for t in TYPES if t != "bool"])
def test_A045_to_bool(source):
    """Not zero: NaN is true, -0 is not."""
    x = values_of(source)
    got = cast(x, "bool")
    assert (got.bits == (value(x) != 0)).all()
    assert set(codes_of(got).tolist()) <= {0, 1}
    same(elem("a != 0", "bool", a=x), got)


@test()
def test_A045_bytes_that_are_no_bool():
    """A byte 2 that is loaded as bool is true, and is stored as 1."""
    x = np.array([0, 1, 2, 128, 255], np.uint8).view(np.bool_)
    y, n = Out((5,), "bool"), Out((5,), "i32")
    run("kernel k(x: in bool[N], y: out bool[N], n: out i32[N]) { let t = x[0 +: 8]; y[0 +: 8] = t; n[0 +: 8] = i32(t); }",
        x=x, y=y, n=n)
    assert y.array.bits.view(np.uint8).tolist() == [0, 1, 1, 1, 1] and n.array.bits.tolist() == [0, 1, 1, 1, 1]


@test(*[(s, t) for s in TYPES for t in TYPES if s != t])
def test_A047_bitcast(source, to):
    x = values_of(source)
    if WIDTH[source] != WIDTH[to] or "bool" in (source, to):
        words = ('bool',) if 'bool' in (source, to) else (source, to)
        located(body(f"bitcast(a, {to})", to, {"a": source}, 16), *words, at="bitcast")
        return
    got = elem(f"bitcast(a, {to})", to, a=x)
    assert (codes_of(got) == codes_of(x)).all()


@test(*[t for t in TYPES])
def test_A047_bits_survive(dtype):
    """Loading, choosing, reshaping and storing keep all bits, the payload of NaN too."""
    n = 1 << min(WIDTH[dtype], 16)
    x = values_of(dtype) if dtype == "bool" or WIDTH[dtype] > 16 else from_codes(np.arange(n), dtype)
    for e in ("a", "where(a == a, a, a)", "where(true, a, a)"):
        got = elem(e, dtype, fold=8, tiles=(64, 1000, 0), a=x)
        assert (codes_of(got) == codes_of(x)).all(), e


# ---- Making -------------------------------------------------------------------------------------

@test()
def test_A048_iota():
    for n in (1, 2, 3, 7, 16, 100, 1000, 4096, 4097):
        for start in (0, 1, 7, 16, -5):
            y = Out((n,), "i32")
            run(f"kernel k(y: out i32[N], s: i32) {{ y[0 +: {n}] = iota({n}) + s; }}", y=y, s=start)
            assert (y.array.bits == np.arange(start, start + n)).all()
            y = Out((n,), "i32")
            run(f"kernel k(y: out i32[N]) {{ y[0 +: {n}] = iota({n}) + {start}; }}", y=y)
            assert (y.array.bits == np.arange(start, start + n)).all()
    for bad in ("0", "-1", "n", "2147483648", "1.5"):
        located(f"kernel k(y: out i32[N], n: i32) {{ y[0 +: 4] = iota({bad}); }}", at=f"iota({bad})")


@test(*TYPES)
def test_A049_full(dtype):
    for shape in ((), (1,), (128,), (3, 5)):
        s = ", ".join(map(str, shape))
        at = ", ".join(f"0 +: {n}" for n in shape) if shape else "0"
        dims = s if shape else "1"
        for v in (values_of(dtype)[:5], values_of(dtype)[-3:]):
            for code, scalar in zip(codes_of(v), v.bits):
                y, z, w = (Out(shape or (1,), dtype) for _ in range(3))
                full = f"full([{s}], p[0])" if shape else "p[0]"
                lit = literal(code, dtype)
                const = f"full([{s}], {lit})" if shape else lit
                zeros = f"zeros([{s}], {dtype})" if shape else f"{dtype}(0)" if dtype != "bool" else "false"
                run(f"kernel k(p: in {dtype}[1], y: out {dtype}[{dims}], z: out {dtype}[{dims}], w: out {dtype}[{dims}]) {{ "
                    f"y[{at}] = {full}; z[{at}] = {const}; w[{at}] = {zeros}; }}",
                    p=Array(np.array([scalar], STORAGE[dtype]), dtype), y=y, z=z, w=w)
                assert (codes_of(y.array) == code).all() and (codes_of(z.array) == code).all() and (codes_of(w.array) == 0).all()


# ---- Shapes -------------------------------------------------------------------------------------

def shaped(expr, x, out_shape, out=None, more="", check=True, **args):
    """expr of the tile t, which is all of x; stored whole."""
    dtype = x.dtype
    out = out or dtype
    def dims(s):
        return ", ".join(map(str, s))
    def at(s):
        return ", ".join(f"0 +: {n}" for n in s)
    y = Out(out_shape, out)
    names = "".join(f"{k}: in {v.dtype}[{dims(v.shape)}], " for k, v in args.items())
    run(f"kernel k(x: in {dtype}[{dims(x.shape)}], {names}y: out {out}[{dims(out_shape)}]) {{ {more} let t = x[{at(x.shape)}]; "
        f"y[{at(out_shape)}] = {expr}; }}", x=x, y=y, **args)
    return y.array


def tile_of(shape, dtype):
    """Elements whose bits count up."""
    codes = np.arange(int(np.prod(shape))) % (2 if dtype == "bool" else 1 << min(WIDTH[dtype], 62))
    return Array(from_codes(codes, dtype).bits.reshape(shape), dtype)


def exactly(got, want):
    assert got.shape == want.shape and (codes_of(got) == codes_of(Array(np.ascontiguousarray(want), got.dtype))).all()


@test()
def test_A050_broadcasting():
    x = tile_of((6, 5), "i32")
    r = x.bits
    y = Out((6, 5), "i32")
    run("kernel k(a: in i32[6], b: in i32[5], y: out i32[6, 5]) { y[0 +: 6, 0 +: 5] = a[0 +: 6][:, newaxis] * 10 + b[0 +: 5][newaxis, :]; }",
        a=np.arange(6, dtype=np.int32), b=np.arange(5, dtype=np.int32), y=y)
    assert (y.array.bits == np.arange(6)[:, None] * 10 + np.arange(5)).all()
    for e, want in (("t + iota(5)", r + np.arange(5)), ("iota(5) + t", r + np.arange(5)), ("t + 3", r + 3), ("3 - t", 3 - r),
                    ("t + iota(6)[:, newaxis]", r + np.arange(6)[:, None]), ("t + iota(1)", r), ("t + zeros([1, 1], i32)", r),
                    ("t + zeros([1, 5], i32)", r), ("broadcast(iota(5), [6, 5])", np.broadcast_to(np.arange(5), (6, 5)))):
        exactly(shaped(e, x, (6, 5)), want.astype(np.int32))
    located("kernel k(x: in f32[6, 5], y: out f32[6, 5]) { y[0 +: 6, 0 +: 5] = x[0 +: 6, 0 +: 5] + x[0, 0 +: 4]; }", "[6, 5]", "[4]", at="x[0, 0 +: 4]")
    located("kernel k(x: in f32[6, 5], y: out f32[6, 5]) { y[0 +: 6, 0 +: 5] = x[0 +: 6, 0] + x[0, 0 +: 5]; }", "[6]", "[5]", at="x[0, 0 +: 5]")
    located("kernel k(x: in f32[6, 5], y: out f32[6]) { y[0 +: 6] = x[0 +: 6, 0 +: 5]; }", "[6, 5]", "[6]", at="y[0")


@test(*TYPES)
def test_A052_reshape(dtype):
    for source, to in (((64,), (8, 8)), ((2, 32), (16, 4)), ((6, 10), (4, 15)), ((24,), (2, 3, 4)), ((2, 3, 4), (24,)), ((32,), (2, 2, 2, 2, 2)),
                       ((1, 7), (7, 1, 1))):
        x = tile_of(source, dtype)
        exactly(shaped(f"reshape(t, [{', '.join(map(str, to))}])", x, to), x.bits.reshape(to))
    located(f"kernel k(x: in {dtype}[64]) {{ let t = reshape(x[0 +: 64], [8, 7]); }}", "64", "56", at="reshape")
    located(f"kernel k(x: in {dtype}[64]) {{ let t = reshape(x[0 +: 64], [2, 2, 2, 2, 2, 2]); }}", "5", at="reshape")


class Turned(Out):
    """An Out seen with its axes exchanged."""

    def __init__(self, out):
        self.__dict__.update(out.__dict__)
        self.array = out.array.T


@test(*TYPES)
def test_A053_transpose(dtype):
    for shape in ((128, 2), (2, 128), (32, 32), (5, 7), (1, 9)):
        x = tile_of(shape, dtype)
        exactly(shaped("transpose(t)", x, shape[::-1]), x.bits.T)
        exactly(shaped("permute(t, [1, 0])", x, shape[::-1]), x.bits.T)
        y = Out(shape[::-1], dtype)  # through the strides
        m, n = shape
        run(f"kernel k(x: in {dtype}[{m}, {n}], y: out {dtype}[{m}, {n}]) {{ y[0 +: {m}, 0 +: {n}] = x[0 +: {m}, 0 +: {n}]; }}",
            x=x, y=Turned(y))
        exactly(y.array, x.bits.T)
    x = tile_of((2, 3, 5), dtype)
    for axes in ((0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0)):
        exactly(shaped(f"permute(t, [{', '.join(map(str, axes))}])", x, tuple(x.shape[a] for a in axes)), x.bits.transpose(axes))
    exactly(shaped("transpose(t)", x, (2, 5, 3)), x.bits.transpose(0, 2, 1))


@test(*TYPES)
def test_A055_join_and_split(dtype):
    x = tile_of((4, 6), dtype)
    r = x.bits
    for axis in (0, 1, -1, -2):
        exactly(shaped(f"concat(t, flip(t, {axis}), {axis})", x, np.concatenate([r, np.flip(r, axis)], axis).shape),
                np.concatenate([r, np.flip(r, axis)], axis))
        a, b = np.split(r, 2, axis)
        exactly(shaped(f"concat(hi, lo, {axis})", x, (4, 6), more=f"let (lo, hi) = split(x[0 +: 4, 0 +: 6], {axis});"),
                np.concatenate([b, a], axis))
        exactly(shaped(f"slice(t, {axis}, 1, 2)", x, r.take([1, 2], axis).shape), r.take([1, 2], axis))
    z = np.stack([r, np.flip(r, 0)], -1).reshape(4, 12)
    exactly(shaped("interleave(t, flip(t, 0))", x, (4, 12)), z)
    exactly(shaped("concat(even, odd, 1)", x, (4, 6), more="let (even, odd) = deinterleave(x[0 +: 4, 0 +: 6]);"),
            np.concatenate([r[:, ::2], r[:, 1::2]], 1))
    located(f"kernel k(x: in {dtype}[5]) {{ let (a, b) = split(x[0 +: 5], 0); }}", "5", at="split")
    located(f"kernel k(x: in {dtype}[5]) {{ let a = concat(x[0 +: 5], x[0 +: 4], 1); }}", at="concat")
    located(f"kernel k(x: in {dtype}[5]) {{ let a = slice(x[0 +: 5], 0, 3, 3); }}", at="slice")


@test()
def test_A055_before_a_dot():
    x = Array((np.arange(128).reshape(16, 8) % 7).astype(np.float16), "f16")
    w = Array((np.arange(256).reshape(16, 16) % 5 - 2).astype(np.float16), "f16")
    r, v = x.bits.astype(np.float64), w.bits.astype(np.float64)
    for e, want in (("dot(concat(t, t, 1), w[0 +: 16, 0 +: 16])", np.concatenate([r, r], 1) @ v),
                    ("dot(interleave(t, t * 2.0), w[0 +: 16, 0 +: 16])", np.stack([r, 2 * r], -1).reshape(16, 16) @ v),
                    ("dot(w[0 +: 16, 0 +: 16], reshape(t, [16, 8]))", v @ r)):
        got = shaped(e, x, want.shape, out="f32", w=w)
        assert (got.bits == want).all(), e


@test(*TYPES)
def test_A057_gather(dtype):
    rng = np.random.default_rng(57)
    for shape, index_shape, axis in (((4, 4), (8, 4), 0), ((12, 9), (12, 20), 1), ((8, 2), (8, 2), 0), ((7,), (30,), 0), ((2, 3, 5), (2, 6, 5), 1)):
        x = tile_of(shape, dtype)
        index = rng.integers(-2, shape[axis] + 2, index_shape).astype(np.int32)
        inside = (index >= 0) & (index < shape[axis])
        want = np.where(inside, np.take_along_axis(x.bits, np.where(inside, index, 0), axis), np.zeros((), x.bits.dtype))
        at = ", ".join(f"0 +: {n}" for n in index_shape)
        got = shaped(f"gather(t, j[{at}], {axis})", x, index_shape, j=Array(index, "i32"))
        assert (codes_of(got) == codes_of(Array(want, dtype))).all()


@test(*TYPES)
def test_B20_fill_of_zero(dtype):
    """What `else` gives is taken though it is 0: the padding, which is NaN or the greatest value, does not come through."""
    fills = {"bool": ["false", "true"]}.get(dtype, ["0", f"{dtype}(0)", f"-{dtype}(0)" if dtype in FLOATS + SIGNED else "0", "1"])
    x = make(np.ones(5), dtype)
    for fill in fills:
        y = Out((16,), dtype)
        run(f"kernel k(x: in {dtype}[N], y: out {dtype}[16]) {{ y[0 +: 16] = x[0 +: 16] else {fill}; }}", x=x, y=y)
        want = 1 if fill in ("1", "true") else 0
        assert (value(y.array)[5:] == want).all() and (value(y.array)[:5] == 1).all(), fill
        if fill.startswith("-") and dtype in FLOATS:
            assert np.signbit(value(y.array)[5:]).all()


if __name__ == "__main__":
    main()
