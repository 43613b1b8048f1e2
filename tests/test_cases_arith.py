# SPDX-License-Identifier: Apache-2.0
# Conformance: arithmetic, element by element. Rows A001..A030, B01, B20 of tests/cases/README.md.
import numpy as np

from cases_lib import (FLOATS, INTS, SIGNED, SMALL, TYPES, UNSIGNED, WIDTH, body, codes_of, elem, from_codes, ir, located, make, nans,
                       pairs, run, same, value, values_of)
from judge import Out, main, refused, test
from tkclib import Array

RANGE = {t: (np.iinfo(t.replace("i", "int").replace("u", "uint") if t[0] == "i" else t.replace("u", "uint")))
         for t in INTS}


def wrapped(exact, dtype):
    """Python integers modulo the type."""
    mask = (1 << WIDTH[dtype]) - 1
    return from_codes(np.array([int(v) & mask for v in exact], np.uint64).astype(f"u{WIDTH[dtype] // 8}"), dtype)


def ints(*values, dtype):
    return wrapped(values, dtype)


def as_ints(x):
    return [int(v) for v in x.bits]


@test(*INTS)
def test_A001_integers_wrap(dtype):
    a, b = pairs(values_of(dtype))
    x, y = as_ints(a), as_ints(b)
    for op, f in (("+", lambda p, q: p + q), ("-", lambda p, q: p - q), ("*", lambda p, q: p * q)):
        same(elem(f"a {op} b", dtype, a=a, b=b), wrapped([f(p, q) for p, q in zip(x, y)], dtype), op)
    same(elem("-a", dtype, a=a), wrapped([-p for p in x], dtype), "-a")


@test()
def test_A001_known_values():
    a, b = ints(2147483647, 46341, 65536, dtype="i32"), ints(1, 46341, 65536, dtype="i32")
    assert as_ints(elem("a + b", "i32", a=a, b=b))[0] == -2147483648
    assert as_ints(elem("a * b", "i32", a=a, b=b))[1:] == [-2147479015, 0]


def quotient(p, q, low):
    """C's division: toward zero; by 0 it is 0, and the remainder the dividend; the least value over -1 wraps."""
    if q == 0:
        return 0, p
    d = abs(p) // abs(q)
    d = d if (p < 0) == (q < 0) else -d
    return d, p - d * q


@test(*INTS)
def test_A003_division_toward_zero(dtype):
    a, b = pairs(values_of(dtype))
    want = [quotient(p, q, RANGE[dtype].min) for p, q in zip(as_ints(a), as_ints(b))]
    same(elem("a / b", dtype, a=a, b=b), wrapped([d for d, _ in want], dtype), "/")
    same(elem("a % b", dtype, a=a, b=b), wrapped([r for _, r in want], dtype), "%")
    same(elem("a / b * b + a % b", dtype, a=a, b=b), a, "a = (a / b) b + a % b")
    if dtype in SIGNED:
        p, q = ints(-7, 7, -7, 7, dtype=dtype), ints(2, -2, 2, -2, dtype=dtype)
        assert as_ints(elem("a / b", dtype, a=p, b=q)) == [-3, -3, -3, -3]
        assert as_ints(elem("a % b", dtype, a=p, b=q)) == [-1, 1, -1, 1]


@test(*INTS)
def test_A003_divisor_known(dtype):
    a = values_of(dtype)
    for d in (1, 2, 3, 7, 8, 64, 100, RANGE[dtype].max) + ((-1, -2, -3, -8, RANGE[dtype].min) if dtype in SIGNED else ()):
        want = [quotient(p, int(d), RANGE[dtype].min) for p in as_ints(a)]
        same(elem(f"a / {dtype}({d})", dtype, fold=16, a=a), wrapped([q for q, _ in want], dtype), f"/ {d}")
        same(elem(f"a % {dtype}({d})", dtype, fold=16, a=a), wrapped([r for _, r in want], dtype), f"% {d}")


@test(*UNSIGNED)
def test_A005_unsigned_order(dtype):
    top = int(RANGE[dtype].max)
    a, b = ints(0, top, top - 5, 1, dtype=dtype), ints(1, 2, 1, top, dtype=dtype)
    assert as_ints(elem("a - b", dtype, a=a, b=b))[0] == top
    assert as_ints(elem("a / b", dtype, a=a, b=b))[1] == top // 2
    assert elem("a > b", "bool", a=a, b=b).bits.tolist() == [False, True, True, False]
    assert as_ints(elem("max(a, b)", dtype, a=a, b=b)) == [1, top, top - 5, top]
    assert as_ints(elem("min(a, b)", dtype, a=a, b=b)) == [0, 2, 1, 1]
    same(elem("a >> 1", dtype, a=a), ints(0, top >> 1, (top - 5) >> 1, 0, dtype=dtype))


@test(*INTS)
def test_A005_comparisons(dtype):
    a, b = pairs(values_of(dtype))
    x, y = np.array(as_ints(a), object), np.array(as_ints(b), object)
    for op, f in (("<", x < y), ("<=", x <= y), (">", x > y), (">=", x >= y), ("==", x == y), ("!=", x != y)):
        assert (elem(f"a {op} b", "bool", a=a, b=b).bits == f.astype(bool)).all(), op


# Between integers of either sign nothing is converted but what loses nothing.
@test(*[(s, t) for s in TYPES for t in TYPES if s < t])
def test_A006_A011_mixed_types(s, t):
    """The one table: two types meet only where one holds all values of the other (integers only)."""
    def holds(wide, narrow):
        return (wide in INTS and narrow in INTS
                and RANGE[wide].min <= RANGE[narrow].min and RANGE[wide].max >= RANGE[narrow].max)
    to = s if holds(s, t) else t if holds(t, s) else None
    for op in ("+", "/", "%", "<", "=="):
        out = "bool" if op in ("<", "==") else to
        source = body(f"a {op} b", out or "f32", {"a": s, "b": t}, 16)
        if to is None:
            located(source, s, t, at=f"a {op} b")
        else:
            run(source, pa=make(np.ones(5), s), pb=make(np.ones(5), t), y=Out((5,), out))
    if to is not None:
        a, b = pairs(values_of(s), values_of(t), most=200)
        want = wrapped([p + q for p, q in zip(as_ints(a), as_ints(b))], to)
        same(elem("a + b", to, a=a, b=b), want, "+")
        got = elem("a < b", "bool", a=a, b=b).bits
        assert (got == [p < q for p, q in zip(as_ints(a), as_ints(b))]).all()


@test(*INTS)
def test_A008_bitwise(dtype):
    a, b = pairs(values_of(dtype))
    x, y = as_ints(a), as_ints(b)
    for op, f in (("&", lambda p, q: p & q), ("|", lambda p, q: p | q), ("^", lambda p, q: p ^ q)):
        same(elem(f"a {op} b", dtype, a=a, b=b), wrapped([f(p, q) for p, q in zip(x, y)], dtype), op)
    same(elem("~a", dtype, a=a), wrapped([~p for p in x], dtype), "~")
    w = WIDTH[dtype]

    def left(p, q):
        return p << q if 0 <= q < w else 0

    def right(p, q):
        return p >> q if 0 <= q < w else (-1 if p < 0 else 0)
    same(elem("a << b", dtype, a=a, b=b), wrapped([left(p, q) for p, q in zip(x, y)], dtype), "<<")
    same(elem("a >> b", dtype, a=a, b=b), wrapped([right(p, q) for p, q in zip(x, y)], dtype), ">>")


@test()
def test_A008_bool():
    a, b = pairs(values_of("bool"))
    for op, f in (("&", a.bits & b.bits), ("|", a.bits | b.bits), ("^", a.bits ^ b.bits), ("&&", a.bits & b.bits),
                  ("||", a.bits | b.bits), ("==", a.bits == b.bits), ("!=", a.bits != b.bits)):
        assert (elem(f"a {op} b", "bool", a=a, b=b).bits == f).all(), op
    assert (elem("!a", "bool", a=a).bits == ~a.bits).all()
    located(body("~a", "bool", {"a": "bool"}, 16), "bool", at="~a")


@test(*FLOATS)
def test_A008_bitwise_of_floats(dtype):
    for op in ("&", "|", "^", "<<", ">>"):
        located(body(f"a {op} b", dtype, {"a": dtype, "b": dtype}, 16), dtype, at=f"a {op} b")
        located(body(f"a {op} b", dtype, {"a": dtype, "b": "i32"}, 16), dtype, "i32", at=f"a {op} b")
    located(body("~a", dtype, {"a": dtype}, 16), dtype, at="~a")


@test(*INTS)
def test_A009_abs(dtype):
    a = values_of(dtype)
    same(elem("abs(a)", dtype, a=a), wrapped([abs(p) for p in as_ints(a)], dtype), "abs")


@test()
def test_A009_one_function_two_types():
    source = ("fn twice<T: type, N: int>(x: T[N]) -> T[N] { return abs(x) / 2; }\n"
              "kernel k(x: in i32[N], z: in u32[N], y: out i32[N], w: out u32[N]) {\n"
              "    y[0 +: 4] = twice(x[0 +: 4]);\n    w[0 +: 4] = twice(z[0 +: 4]);\n}\n")
    y, w = Out((4,), "i32"), Out((4,), "u32")
    run(source, x=np.array([-7, 7, -1, 0], np.int32), z=np.array([2 ** 32 - 1, 7, 0, 1], np.uint32), y=y, w=w)
    assert y.array.bits.tolist() == [3, 3, 0, 0] and w.array.bits.tolist() == [2 ** 31 - 1, 3, 0, 0]


@test(*[t for t in TYPES if t != "bool"])
def test_A012_literals_take_the_type(dtype):
    a = values_of(dtype)
    got = elem("a + 1", dtype, a=a)  # out of this very type: a wider result would not be taken
    if dtype in INTS:
        same(got, wrapped([p + 1 for p in as_ints(a)], dtype))
        located(body("a + 1.5", dtype, {"a": dtype}, 16), at="1.5")
        located(body(f"a + {int(RANGE[dtype].max) + 1}", dtype, {"a": dtype}, 16), dtype if dtype != "u64" else "64 bits", at="a + ")
    else:
        same(elem("a * 2.0", dtype, a=a), elem("a + a", dtype, a=a), "2 a = a + a")
        same(elem("a * 2", dtype, a=a), elem("a * 2.0", dtype, a=a), "2 and 2.0")


def float_op(op, x, y):
    with np.errstate(all="ignore"):
        return {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}[op](x, y)


@test(*[(t, op) for t in SMALL for op in "+-*/%"])
def test_A014_small_floats_round_once(dtype, op):
    a, b = pairs(values_of(dtype))
    exact = float_op(op, value(a).astype(np.float32), value(b).astype(np.float32))
    same(elem(f"a {op} b", dtype, a=a, b=b), make(exact.astype(np.float64), dtype), op)


@test(*[(t, op) for t in ("f32", "f64") for op in "+-*/%"])
def test_A014_A027_floats_exact(dtype, op):
    a, b = pairs(values_of(dtype))
    same(elem(f"a {op} b", dtype, a=a, b=b), Array(float_op(op, a.bits, b.bits), dtype), op)


@test(*FLOATS)
def test_A016_comparisons(dtype):
    a, b = pairs(values_of(dtype))
    x, y = value(a), value(b)
    with np.errstate(invalid="ignore"):
        for op, f in (("==", x == y), ("<", x < y), ("<=", x <= y), (">", x > y), (">=", x >= y), ("!=", x != y)):
            assert (elem(f"a {op} b", "bool", a=a, b=b).bits == f).all(), op
    assert (elem("isnan(a)", "bool", a=a).bits == np.isnan(x)).all()
    assert (elem("isinf(a)", "bool", a=a).bits == np.isinf(x)).all()
    assert (elem("a != a", "bool", a=a).bits == np.isnan(x)).all()
    assert (elem("!(a < b)", "bool", a=a, b=b).bits == ~(x < y)).all()


@test(*FLOATS)
def test_A018_signed_zero(dtype):
    a = values_of(dtype)
    if dtype == "f8e5m2":  # arithmetic saturates infinity too
        a = a[~np.isinf(value(a))]
    top = 1 << (WIDTH[dtype] - 1)
    same(elem("-a", dtype, a=a), from_codes(codes_of(a) ^ np.array(top, codes_of(a).dtype), dtype), "-a")
    same(elem("abs(a)", dtype, a=a), from_codes(codes_of(a) & np.array(top - 1, codes_of(a).dtype), dtype), "abs")
    for e in ("a * 1.0", "a - 0.0", "a / 1.0", "1.0 * a", "a + -0.0"):
        same(elem(e, dtype, a=a), a, e)
    zero = from_codes([0, top], dtype)
    assert elem("a == 0.0", "bool", a=zero).bits.all()
    assert codes_of(elem("a + 0.0", dtype, a=zero)).tolist() == [0, 0]
    assert codes_of(elem("0.0 - a", dtype, a=zero)).tolist() == [0, 0]
    assert codes_of(elem("a * 0.0", dtype, a=zero)).tolist() == [0, top]
    with np.errstate(invalid="ignore"):
        want = np.isnan(value(a)) | np.isinf(value(a))
    assert (nans(elem("a * 0.0", dtype, a=a)) == want).all()  # not folded to 0
    assert (nans(elem("a - a", dtype, a=a)) == want).all()
    same(elem("a / a", dtype, a=a), elem("b / a", dtype, a=a, b=a), "a / a")


@test(*FLOATS)
def test_A020_A022_min_max_clamp(dtype):
    a, b = pairs(values_of(dtype))
    x, y = value(a), value(b)
    nan, one = np.isnan(x) | np.isnan(y), np.isnan(x) ^ np.isnan(y)
    for f, g in (("max", np.maximum), ("min", np.minimum)):
        got = elem(f"{f}(a, b)", dtype, a=a, b=b)
        assert (nans(got) == nan).all(), f
        assert (value(got)[~nan] == g(x, y)[~nan]).all(), f
        got = elem(f"f{f}(a, b)", dtype, a=a, b=b)
        assert (nans(got) == (nan & ~one)).all(), "f" + f
        with np.errstate(invalid="ignore"):
            want = getattr(np, "f" + f)(x, y)
        assert (value(got)[~nans(got)] == want[~np.isnan(want)]).all(), "f" + f
    zeros = from_codes([0, 1 << (WIDTH[dtype] - 1)], dtype)
    p, q = pairs(zeros)
    for e in ("max(a, b)", "min(a, b)", "fmax(a, b)", "fmin(a, b)"):
        assert (value(elem(e, dtype, a=p, b=q)) == 0).all(), e
    c, d = pairs(values_of(dtype), most=len(x)) if len(x) < 4096 else (b, a)
    n = min(len(x), c.shape[0])
    same(elem("clamp(a, b, c)", dtype, fold=32, a=a[:n], b=b[:n], c=c[:n]),
         elem("min(max(a, b), c)", dtype, fold=32, a=a[:n], b=b[:n], c=c[:n]), "clamp")


@test(*INTS)
def test_A022_integers(dtype):
    a, b = pairs(values_of(dtype), most=1000)
    x, y = as_ints(a), as_ints(b)
    same(elem("max(a, b)", dtype, a=a, b=b), wrapped(list(map(max, x, y)), dtype))
    same(elem("min(a, b)", dtype, a=a, b=b), wrapped(list(map(min, x, y)), dtype))
    same(elem("clamp(a, b, c)", dtype, a=a, b=b, c=a), elem("min(max(a, b), c)", dtype, a=a, b=b, c=a))
    same(elem("max(a, b, 3)", dtype, a=a, b=b), wrapped([max(p, q, 3) for p, q in zip(x, y)], dtype))


@test(*INTS)
def test_least_of_three(dtype):
    """Assemblers join such chains, and one loses a sign."""
    a, b = pairs(values_of(dtype), most=1000)
    c = b[::-1]
    x, y, z = as_ints(a), as_ints(b), as_ints(c)
    minus, turned = (as_ints(wrapped([f(v) for v in y], dtype)) for f in (lambda v: -v, lambda v: ~v))
    for f, g in (("min", min), ("max", max)):
        for e, want in ((f"{f}({f}(a, -b), c)", map(g, x, minus, z)), (f"{f}(c, {f}(-b, a))", map(g, x, minus, z)),
                        (f"{f}({f}(a, c), -b)", map(g, x, minus, z)), (f"{f}({f}(a, ~b), c)", map(g, x, turned, z))):
            same(elem(e.replace("-b", f"({dtype}(0) - b)"), dtype, fold=16, a=a, b=b, c=c), wrapped(list(want), dtype), e)



@test()
def test_A024_fma_rounds_once():
    for dtype, e in (("f32", 12), ("f64", 27), ("bf16", 4), ("f16", 6)):
        one = 1 + 2.0 ** -e
        a = make(np.array([one]), dtype)
        product = make(np.array([one * one]), dtype)
        c = make(-value(product), dtype)
        lost = 2.0 ** (-2 * e)  # of 1 + 2^(1-e) + 2^(-2e)
        got = value(elem("fma(a, a, c)", dtype, a=a, c=c))[0]
        assert got == lost, (dtype, got, lost)
        assert value(elem("a * a + c", dtype, a=a, c=c))[0] == 0, dtype
        assert value(elem("c + a * a", dtype, a=a, c=c))[0] == 0, dtype
        assert value(elem("a * a - -c", dtype, a=a, c=c))[0] == 0, dtype


@test("f32", "f64", "f16", "bf16")
def test_A025_B01_never_contracted(dtype):
    s = make(np.array([0.75]), dtype)
    q = elem("-0.25 / a", dtype, a=s)
    want = value(make(value(q) * 0.75, dtype))[0] + 0.25
    assert value(elem("(-0.25 / a) * a + 0.25", dtype, a=s))[0] == want
    x = values_of(dtype)
    same(elem("a * 1.5 + 1.0", dtype, a=x), elem("b + 1.0", dtype, b=elem("a * 1.5", dtype, a=x)), "two roundings")
    text = ir(body("a * 1.5 + 1.0", dtype, {"a": dtype}, 16))
    assert "fma" not in text and "mul" in text, text


@test()
def test_A025_contraction_where_it_is_permitted():
    """With the attribute either rounding is right; a function without it keeps two, in a kernel that has it too."""
    x = values_of("f32")
    x = x[np.isfinite(x.bits) & (np.abs(x.bits) < 1e30)]
    one = np.float32(1)
    twice = (x.bits * np.float32(1.1)) + one
    once = (x.bits.astype(np.float64) * np.float64(np.float32(1.1)) + 1).astype(np.float32)
    n = x.shape[0]
    for on, inner in ((True, ""), (False, "@fastmath(contract)\n"), (True, "@fastmath(contract)\n"), (False, "")):
        y = Out((n,), "f32")
        attribute = "@fastmath(contract)\n" if on else ""
        body_ = f"kernel k(x: in f32[N], y: out f32[N]) {{ let t = x[0 +: {n}]; y[0 +: {n}] = f(t); }}\n"
        run(f"{inner}fn f(x: f32) -> f32 {{ return x * 1.1 + 1.0; }}\n{attribute}{body_}", x=x, y=y)
        got = y.array.bits
        assert ((got == twice) | ((got == once) & bool(inner))).all(), (on, inner)
    located("@fastmath(contracted)\nkernel k(x: inout f32[N]) { x[0] = 1; }", "contract", at="contracted")


@test()
def test_B01_masked_lanes_and_sqrt():
    """The sum stays finite: what is rounded to 0 stays 0, in the kernel, in an inlined function and in constants."""
    for e in ("let z = v * s + 0.25;", "let z = muladd(v, s);"):
        source = ("fn muladd(v: f32, s: f32) -> f32 { return v * s + 0.25; }\n"
                  "kernel k(x: in f32[N], y: out f32[2], s: f32) {\n"
                  "    let v = where(iota(64) < N, x[0 +: 64], -0.25 / s);\n    " + e +
                  "\n    y[0] = sum(sqrt(z));\n    y[1] = sum(where(iota(64) < N, 0.0, z));\n}\n")
        y = Out((2,), "f32")
        run(source, x=np.full(40, 1.0, np.float32), y=y, s=0.75)
        assert y.array.bits[1] == 0 and abs(y.array.bits[0] - 40.0) < 1e-3, y.array.bits
    y = Out((1,), "f32")
    run("kernel k(y: out f32[1]) { let s = f32(0.75); y[0] = sqrt((-0.25 / s) * s + 0.25); }", y=y)
    assert codes_of(y.array)[0] == 0


@test("f32", "f64")
def test_A027_sqrt_rcp_exact(dtype):
    rng = np.random.default_rng(27)
    codes = rng.integers(0, 2 ** (WIDTH[dtype] - 1), 1 << 18, np.uint64).astype(f"u{WIDTH[dtype] // 8}")
    x = from_codes(np.concatenate([codes, codes_of(values_of(dtype))]), dtype)
    with np.errstate(all="ignore"):
        same(elem("sqrt(a)", dtype, a=x, tiles=(256, 1000)), Array(np.sqrt(x.bits), dtype), "sqrt")
        same(elem("rcp(a)", dtype, a=x, tiles=(256,)), Array(x.bits.dtype.type(1) / x.bits, dtype), "rcp")
        y = x[::-1]
        same(elem("a / b", dtype, a=x, b=y, tiles=(256,)), Array(x.bits / y.bits, dtype), "/")


INF, NAN = np.inf, np.nan
SPECIALS = {"exp": [(-INF, 0), (INF, INF), (0, 1)], "exp2": [(-INF, 0), (INF, INF), (0, 1), (3, 8), (-1, 0.5)], "expm1": [(-INF, -1), (INF, INF), (0, 0)],
            "log": [(0, -INF), (-1, NAN), (INF, INF), (1, 0), (-INF, NAN)], "log2": [(0, -INF), (-1, NAN), (8, 3), (1, 0)],
            "log1p": [(-1, -INF), (-2, NAN), (INF, INF), (0, 0)], "sqrt": [(-0.0, -0.0), (-1, NAN), (INF, INF), (4, 2)],
            "rsqrt": [(0, INF), (-0.0, -INF), (INF, 0), (4, 0.5), (-1, NAN)], "tanh": [(INF, 1), (-INF, -1), (0, 0), (-0.0, -0.0), (100, 1), (-100, -1)],
            "erf": [(INF, 1), (-INF, -1), (0, 0), (30, 1)], "sigmoid": [(INF, 1), (-INF, 0), (0, 0.5), (-1000, 0), (1000, 1)],
            "sin": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)], "cos": [(0, 1), (INF, NAN), (-INF, NAN)], "tan": [(0, 0), (INF, NAN)],
            "asin": [(0, 0), (2, NAN)], "acos": [(1, 0), (2, NAN)], "atan": [(0, 0), (-0.0, -0.0)], "sinh": [(INF, INF), (-INF, -INF), (0, 0)],
            "cosh": [(INF, INF), (-INF, INF), (0, 1)], "rcp": [(0, INF), (-0.0, -INF), (INF, 0), (4, 0.25)]}


@test(*[(t, f) for t in ("f32", "f64") for f in SPECIALS])
def test_A028_special_values(dtype, f):
    xs, want = zip(*SPECIALS[f], (NAN, NAN))
    got = elem(f"{f}(a)", dtype, a=make(np.array(xs, np.float64), dtype))
    same(got, make(np.array(want, np.float64), dtype), f)


@test("f32", "f64")
def test_A028_pow_atan2(dtype):
    table = [(2, 10, 1024), (NAN, 0, 1), (1, NAN, 1), (0, -1, INF), (-0.0, -1, -INF), (-2, 3, -8), (-2, 0.5, NAN), (INF, -1, 0),
             (-INF, 3, -INF), (0.5, INF, 0), (-1, INF, 1), (0, 0, 1)]
    a, b, want = (make(np.array(v, np.float64), dtype) for v in zip(*table))
    same(elem("pow(a, b)", dtype, a=a, b=b), want, "pow")
    a, b = pairs(make(np.array([0.0, -0.0, INF, -INF, NAN, 1.0, -1.0]), dtype))
    same(elem("isnan(atan2(a, b))", "bool", a=a, b=b), make(np.isnan(value(a)) | np.isnan(value(b)), "bool"))
    got, want = value(elem("atan2(a, b)", dtype, a=a, b=b)), np.arctan2(value(a), value(b))
    assert np.allclose(got, want, rtol=1e-6, equal_nan=True) and (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


@test(*SMALL)
def test_A028_small_floats_ask_for_a_cast(dtype):
    for f in ("exp", "log", "sin", "tanh", "erf", "sqrt", "rsqrt", "pow"):
        e = f"{f}(a, a)" if f == "pow" else f"{f}(a)"
        located(body(e, dtype, {"a": dtype}, 16), dtype, "f32", at=f)


@test(*FLOATS)
def test_A030_rounding(dtype):
    base = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, -0.0, 0.0, -0.3, 8388607.5, 8388609.0, 1e30, INF, -INF, NAN, -2.7, 2.7]
    x = make(np.array(base), dtype)
    x = Array(np.concatenate([x.bits, values_of(dtype).bits]), dtype)
    v = value(x)
    for f, g in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.rint)):
        got = elem(f"{f}(a)", dtype, a=x)
        want = make(g(v), dtype)
        if dtype == "f8e5m2":  # an infinity is no result of arithmetic here: it stays
            want.bits[np.isinf(v)] = x.bits[np.isinf(v)]
        same(got, want, f)
        fine = ~np.isnan(v)
        assert (np.signbit(value(got)) == np.signbit(g(v)))[fine].all(), f


if __name__ == "__main__":
    main()
