# SPDX-License-Identifier: Apache-2.0
# Conformance: reading and writing tensors, control flow, functions, grids, atomics, variants, library kernels.
# Rows A059..A073, A107..A119, A124..A128 and the rows B that are about memory and launches; see tests/cases/README.md.
import ctypes
import mmap

import numpy as np

import tkclib
from cases_lib import (FLOATS, INTS, SIGNED, TYPES, WIDTH, codes_of, error_of, from_codes, ir, kernel, literal, located, make, run, value,
                       values_of)
from judge import LAYOUTS, In, Out, launch, main, refused, test
from tkclib import Array, Kernel


# ---- Edges --------------------------------------------------------------------------------------

@test(*TYPES)
def test_A059_else(dtype):
    for n in (128, 127, 126, 125, 124, 1, 0):
        x = Array(np.resize(values_of(dtype).bits, n), dtype)
        for code in codes_of(values_of(dtype))[[0, 1, -1]]:
            y = Out((128,), dtype)
            run(f"kernel k(x: in {dtype}[N], y: out {dtype}[128]) {{ y[0 +: 128] = x[0 +: 128] else {literal(code, dtype)}; }}", x=x, y=y)
            got = codes_of(y.array)
            assert (got[:n] == codes_of(x)).all() and (got[n:] == code).all()
        y = Out((128,), dtype)
        run(f"kernel k(x: in {dtype}[N], y: out {dtype}[128]) {{ y[0 +: 128] = x[0 +: 128 where iota(128) % 2 == 0]; }}", x=x, y=y)
        want = np.zeros(128, codes_of(x).dtype)
        want[:n] = codes_of(x)
        want[1::2] = 0
        assert (codes_of(y.array) == want).all()


@test("f16", "f32", "f64")
def test_A059_other_values(dtype):
    for other in ("0", "1", "-inf", "nan", "-0.0", "inf"):
        y = Out((8,), dtype)
        run(f"kernel k(x: in {dtype}[N], y: out {dtype}[8]) {{ y[0 +: 8] = x[0 +: 8] else {other}; }}", x=make(np.ones(5), dtype), y=y)
        want = make(np.array([float(other)] * 3), dtype)
        assert ((codes_of(y.array)[5:] == codes_of(want)) | np.isnan(value(want))).all() and (np.isnan(value(y.array)[5:]) == np.isnan(value(want))).all()


@test(*TYPES)
def test_A061_nothing_where_the_mask_is_false(dtype):
    empty = Array(np.zeros(0, tkclib.STORAGE[dtype]), dtype)
    y = Out((16,), dtype)
    run(f"kernel k(x: in {dtype}[N], z: out {dtype}[N], y: out {dtype}[16]) {{ y[0 +: 16] = x[0 +: 16 where iota(16) < 0]; z[0 +: 16] = x[0 +: 16]; z[3] = x[3]; }}",
        x=empty, z=empty.copy(), y=y)
    assert (codes_of(y.array) == 0).all()
    if dtype in ("i32", "u32", "i64", "u64", "f32", "f64"):
        y, z = Out((16,), dtype), make(np.arange(4), dtype)
        run(f"kernel k(z: inout {dtype}[N], y: out {dtype}[16]) {{ y[0 +: 16] = atomic_add(z[2 +: 16 where false], {dtype}(1)); let o = atomic_add(z[9], {dtype}(1)); }}",
            z=Keep(z), y=y)
        assert (value(y.array) == 0).all() and value(z).tolist() == [0, 1, 2, 3]


class Keep:
    """An array that is given as it is: it may be written."""

    def __new__(cls, x):
        o = Out(x.shape, x.dtype)
        o.array = x
        return o


@test(*[(t, n) for t in TYPES for n in (1, 10, 11, 16, 1000, 1023)])
def test_A062_stores_stay_inside(dtype, n):
    x = Array(np.resize(values_of(dtype).bits, n), dtype)
    for tile in (1024, 100):
        y = Out((n,), dtype)
        run(f"kernel k(x: in {dtype}[N], y: out {dtype}[N]) grid (i in cdiv(N, {tile})) {{ y[i * {tile} +: {tile}] = x[i * {tile} +: {tile}]; }}", x=x, y=y)
        assert (codes_of(y.array) == codes_of(x)).all()


@test(*TYPES)
def test_A063_B40_B42_any_offset_and_stride(dtype):
    """One kernel for every start and stride; the order of the calls does not matter."""
    k = kernel(f"kernel k(x: in {dtype}[M, N], y: out {dtype}[M, N]) grid (i in M) {{ y[i, 0 +: 64] = x[i, 0 +: 64]; }}")
    big = Array(np.resize(values_of(dtype).bits, (6, 80)), dtype)
    views = [big[:4, o:o + n] for o in (0, 1, 2, 3) for n in (64, 48, 17)]
    views += [big[::2, :40], big[:, ::2], big[::-1, ::-1][:, :64], Array(np.broadcast_to(big.bits[0, :48], (4, 48)), dtype), Array(big.bits.T[:64], dtype)]
    views += [views[0], views[-2], views[3]]
    for x in views:
        for layout in LAYOUTS:
            y = Out(x.shape, dtype, layout)
            launch(k, x=x, y=y)
            assert (codes_of(y.array) == codes_of(Array(x.bits, dtype))).all()
    assert k.variants() <= (8 if tkclib.DEVICE == "cpu" else 17), k.variants()


@test("i32", "i64", "u8", "u64")
def test_A065_indirect(itype):
    for index in (np.arange(50)[::-1], np.resize([3, 1, 2], 50), np.full(50, 7)):
        x, y, z = np.arange(100, 200, dtype=np.int32), Out((50,), "i32"), Out((100,), "i32")
        i = index.astype(tkclib.STORAGE[itype])
        z.array.bits[...] = -1
        run(f"kernel k(x: in i32[100], i: in {itype}[50], y: out i32[50], z: inout i32[100]) {{ y[0 +: 50] = x[i[0 +: 50]]; z[i[0 +: 50]] = 5; }}",
            x=x, i=i, y=y, z=z)
        assert (y.array.bits == x[index]).all()
        assert (z.array.bits == np.where(np.isin(np.arange(100), index), 5, -1)).all()


@test()
def test_A065_64_bit_indices_do_not_wrap():
    y = Out((3,), "i32")
    run("kernel k(x: in i32[10], i: in i64[3], y: out i32[3]) { y[0 +: 3] = x[i[0 +: 3]] else -1; }", x=np.arange(10, dtype=np.int32),
        i=np.array([2 ** 32 + 1, -2 ** 32, 3], np.int64), y=y)
    assert y.array.bits.tolist() == [-1, -1, 3]


@test(*[(t, step) for t in ("u8", "f32", "f64") for step in (1, -1, 2)])
def test_A065_an_index_beside_one_far_outside(dtype, step):
    """One element of a thread inside, the other so far outside that 32 bits wrap: neither is found from the other."""
    for far in (2147483600, 2147483647, -2147483648):
        far_text = f"({far + 1} - 1)" if far < 0 else far
        x = make(np.arange(200) % 50 + 3, dtype)[::step][:100]
        at = np.array([0, 5, 60, 99, -3, 98, 31, 7] * 8, np.int32)
        y, z, w = Out((4, 64), dtype), Out((4, 64), dtype), Out((2,), dtype)
        run(f"kernel k(x: in {dtype}[N], at: in i32[64], y: out {dtype}[4, 64], z: out {dtype}[4, 64], w: out {dtype}[2], s: i32) {{\n"
            f"    let t = at[0 +: 64];\n    w[0] = x[s + {far_text}] else 1;\n    w[1] = x[s] else 1;\n"
            f"    y[0, 0 +: 64] = x[s + {far_text} +: 64] else 1;\n    z[0, 0 +: 64] = x[s +: 64] else 1;\n"
            f"    y[1, 0 +: 64] = x[t + {far_text}] else 1;\n    z[1, 0 +: 64] = x[t] else 1;\n"
            f"    y[2, 0 +: 64] = x[{far_text} +: 64] else 1;\n    z[2, 0 +: 64] = x[-7 +: 64] else 1;\n"
            f"    y[3, 0 +: 64] = x[t + {far_text} where t > 5] else 1;\n    z[3, 0 +: 64] = x[t where t > 5] else 1;\n}}",
            x=x, at=at, y=y, z=z, w=w, s=60)
        values = value(x)

        def read(index, mask=True):
            wrapped = (np.asarray(index, np.int64) + 2 ** 31) % 2 ** 32 - 2 ** 31
            inside = (wrapped >= 0) & (wrapped < 100) & mask
            return np.where(inside, values[np.where(inside, wrapped, 0)], 1)
        wide = at.astype(np.int64)
        lane = np.arange(64)
        beyond = np.where(far + lane >= 2 ** 31, 2 ** 31 - 1, far + lane)  # a range does not wrap
        first = (60 + far + 2 ** 31) % 2 ** 32 - 2 ** 31
        assert value(w.array).tolist() == [read(60 + far), read(60)]
        for got, want in ((y, (read(np.minimum(first + lane, 2 ** 31 - 1)), read(wide + far), read(beyond), read(wide + far, at > 5))),
                          (z, (read(60 + lane), read(at), read(lane - 7), read(at, at > 5)))):
            assert (value(got.array) == np.array(want)).all(), (far, value(got.array), np.array(want))


class Sparse:
    """Address space of n bytes, of which only what is touched takes memory."""

    def __init__(self, n):
        self.map = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
        self.bytes = np.frombuffer(self.map, np.uint8)


@test()
def test_A066_B25_offsets_of_64_bits():
    n = 2 ** 31 + 4096
    s = Sparse(n)
    rows = n // 4096
    x = s.bytes[:rows * 4096].reshape(rows, 4096)
    x[-1, -1], x[0, 0] = 77, 5
    k = Kernel("kernel k(x: inout u8[M, 4096], y: out i32[2]) { y[0] = i32(x[M - 1, 4095]); y[1] = i32(x[0, 0]); x[M - 1, 4080 +: 8] = 9; }", check=False)
    y = np.zeros(2, np.int32)
    k(x=x, y=y)
    assert y.tolist() == [77, 5] and x[-1, 4080:4088].tolist() == [9] * 8 and x[-1, 4079] == 0 and x[-1, 4088] == 0
    # One dimension below 2^31, steps of 3: the last element is past 6 GB.
    s = Sparse(3 * (2 ** 31 - 1))
    v = s.bytes[::3]
    v[-1] = 42
    k = Kernel("kernel k(x: in u8[N], y: out i32[2], at: i32) { y[0] = i32(x[at]); let t = x[at - 3 +: 8]; y[1] = i32(sum(t)); }", check=False)
    k(x=v, y=y, at=len(v) - 1)
    assert y.tolist() == [42, 42]
    # Rows 7864320 apart, and from the last one back
    s = Sparse(320 * 7864320)
    v = s.bytes[:320 * 7864320].reshape(320, 7864320)[:, :64]
    v[319] = np.arange(64)
    for x, row in ((v, 319), (v[::-1], 0)):
        z = Out((64,), "u8")
        run("kernel k(x: in u8[M, N], y: out u8[64], r: i32) { y[0 +: 64] = x[r, 0 +: 64]; }", x=Keep(Array(x, "u8")), y=z, r=row)
        assert (z.array.bits == np.arange(64)).all()
    y = Out((3,), "i64")
    run("kernel k(y: out i64[3], r: i32, s: i32, p: i32) { y[0] = i64(r) * s; y[1] = i64(p) * 1024; y[2] = i64(r * s); }",
        y=y, r=319, s=7864320, p=3300000)
    assert y.array.bits.tolist() == [2508718080, 3379200000, 2508718080 - 2 ** 32]


@test()
def test_A068_in_place():
    x = np.arange(5000, dtype=np.int32)
    k = Kernel("kernel k(x: inout i32[N]) grid (i in cdiv(N, 7)) { x[i * 7 +: 7] = x[i * 7 +: 7] * 2; }")
    for _ in range(20):
        k(x=x)
    assert (x == (np.arange(5000, dtype=np.int64) * 2 ** 20).astype(np.int32)).all()


@test()
def test_A070_hints_that_are_not_there():
    located("@evict(first) kernel k(x: inout f32[N]) { x[0] = 1; }", "evict", at="@evict")
    located("@warp(4) kernel k(x: inout f32[N]) { x[0] = 1; }", "warps", at="@warp")


@test(*TYPES)
def test_A071_windows_that_hang_over(dtype):
    x = make(np.ones((5, 7)), dtype)
    k = kernel(f"kernel k(x: in {dtype}[M, N], y: out {dtype}[8, 16], z: inout {dtype}[M, N], i: i32, j: i32) {{ y[0 +: 8, 0 +: 16] = x[i +: 8, j +: 16]; "
               f"z[i +: 8, j +: 16] = {dtype}(0); }}" if dtype != "bool" else
               "kernel k(x: in bool[M, N], y: out bool[8, 16], z: inout bool[M, N], i: i32, j: i32) { y[0 +: 8, 0 +: 16] = x[i +: 8, j +: 16]; z[i +: 8, j +: 16] = false; }")
    for i in (-9, -8, -3, 0, 2, 4, 5, 2147483647, -2147483648):
        for j in (-17, -2, 0, 3, 7, 2147483640):
            y, z = Out((8, 16), dtype), Out((5, 7), dtype)
            z.array.bits[...] = make(np.ones((5, 7)), dtype).bits
            launch(k, x=In(x, dtype), y=y, z=z, i=i, j=j)
            r, c = np.arange(8)[:, None] + i, np.arange(16) + j
            assert (value(y.array) == ((r >= 0) & (r < 5) & (c >= 0) & (c < 7))).all(), (i, j)
            r, c = np.arange(5)[:, None], np.arange(7)
            inside = (r >= i) & (r < i + 8) & (c >= j) & (c < j + 16)
            assert (value(z.array) == ~inside).all(), (i, j)


@test()
def test_A073_access():
    located("kernel k(x: in f32[N]) { x[0] = 1; }", "'x'", "in", at="x[0]")
    located("kernel k(x: out f32[N], y: out f32[N]) { y[0] = x[0]; }", "'x'", "out", at="y[0] = x[0]")
    located("kernel k(x: in f32[N]) { let o = atomic_add(x[0], 1); }", "'x'", at="atomic_add")
    located("kernel k(x: inout f32[N]) { x[0] += 1; }", "atomic_add", at="+=")
    located("fn f(x: out f32[N]) { x[0] = 1; }\nkernel k(x: in f32[N]) { f(x); }", at="f(x)")


@test()
def test_B23_tails_of_rows():
    for dtype, n in (("f32", 1000), ("i8", 466), ("i16", 470), ("f16", 511)):
        x = make(np.arange(3 * n).reshape(3, n) % 100, dtype)
        y = Out((3, n), dtype, "gap")
        run(f"kernel k(x: in {dtype}[M, N], y: out {dtype}[M, N]) grid (i in M, j in cdiv(N, 256)) {{ y[i, j * 256 +: 256] = x[i, j * 256 +: 256]; }}", x=x, y=y)
        assert (codes_of(y.array) == codes_of(x)).all()


@test()
def test_B22_mask_of_a_carried_offset():
    y = Out((8, 32), "i32")
    text = ("kernel k(x: in i32[N], y: out i32[8, 32]) { var o = iota(32); for t in 0 .. 8 { y[t, 0 +: 32] = x[o where o < 5000] else -1; o = o + 4096; } }")
    run(text, x=np.arange(5000, dtype=np.int32), y=y)
    o = np.arange(32) + 4096 * np.arange(8)[:, None]
    assert (y.array.bits == np.where(o < 5000, o, -1)).all()


@test()
def test_B18_A111_trips():
    for n in (0, 1, 2, 3, 4, 17):
        for stages in (1, 2, 3, 5):
            table = np.array([0, 1] + [2 ** 31 - 1] * 15, np.int32)
            y = Out((2,), "i32")
            run(f"kernel k(x: in i32[M], t: in i32[T], y: out i32[2], n: i32) {{ var s = 7; var c = 0; for i in 0 .. n pipeline({stages}) {{ s = s + x[t[i]]; c += 1; }} "
                "y[0] = s; y[1] = c; }", x=np.array([10, 20], np.int32), t=table, y=y, n=n)
            assert y.array.bits.tolist() == [7 + 10 * (n > 0) + 20 * (n > 1), n]
    for a, b, s in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 0, 1), (0, 5, -1), (-2, 3, 2), (0, 10, 0), (2147483640, 2147483647, 5), (-2147483648, 2147483647, 1073741824)):
        want = len(range(a, b, s)) if s else 0
        y = Out((2,), "i32")
        run("kernel k(y: out i32[2], a: i32, b: i32, s: i32) { var c = 0; var l = 0; for i in a .. b step s { c += 1; l = i; } y[0] = c; y[1] = l; }", y=y, a=a, b=b, s=s)
        assert y.array.bits.tolist() == [want, range(a, b, s)[-1] if want else 0], (a, b, s)
        if s:
            run(f"kernel k(y: out i32[2]) {{ var c = 0; var l = 0; for i in {a} .. {b} step {s} {{ c += 1; l = i; }} y[0] = c; y[1] = l; }}", y=y)
            assert y.array.bits.tolist() == [want, range(a, b, s)[-1] if want else 0], (a, b, s)
    located("kernel k(y: inout i32[N]) { for i in 0 .. 4 step 0 { y[i] = 1; } }", "step", at="step 0")


@test()
def test_A113_loops():
    y = Out((4,), "i32")
    run("kernel k(x: in i32[N], y: out i32[4]) {\n  var n = 0; var kept = 9; var odd = 0; var most = 0;\n"
        "  for r in 0 .. 10 {\n    var c = x[0];\n    while c > 0 { c -= 2; n += 1; if c == 100 { kept = 0; } }\n  }\n"
        "  for i in 0 .. 20 { if i % 2 == 0 { continue; } if i > 12 { break; } odd += i; most = i; }\n"
        "  y[0] = n; y[1] = kept; y[2] = odd; y[3] = most;\n}\n", x=np.array([8], np.int32), y=y)
    assert y.array.bits.tolist() == [40, 9, 36, 11]


@test()
def test_A114_branches():
    text = ("fn f(a: bool, b: bool, c: bool) -> i32 {\n  if a { if b { if c { return 7; } return 6; } else if c { return 5; } return 4; }\n"
            "  if b { if c { return 3; } return 2; }\n  if c { return 1; }\n  return 0;\n}\n"
            "kernel k(x: in f32[8], y: out f32[8], a: i32, b: i32, c: i32) {\n  var t = x[0 +: 8];\n"
            "  if a > 0 { t = t * 2.0; if b > 0 { t = t + 1.0; if c > 0 { t = t - 3.0; } else { return; } } } else { if b > 0 { t = -t; } }\n"
            "  y[0 +: 8] = t + f32(f(a > 0, b > 0, c > 0));\n}\n")
    x = np.arange(8, dtype=np.float32)
    for n in range(8):
        a, b, c = n >> 2 & 1, n >> 1 & 1, n & 1
        y = Out((8,), "f32")
        y.array.bits[...] = -100
        Kernel(text, check=False)(x=x, y=y.array, a=a, b=b, c=c)
        t = x * 2 + (1 if b else 0) - (3 if b and c else 0) if a else (-x if b else x)
        want = np.full(8, -100) if a and b and not c else t + n
        assert (y.array.bits == want).all(), n
    got = Out((8,), "i32")  # element-wise: both sides are chosen from
    run("fn g(x: i32) -> i32 { if x > 5 { return 1; } else if x > 2 { return x * 10; } return -x; }\n"
        "kernel k(y: out i32[8]) { y[0 +: 8] = g(iota(8)); }", y=got)
    assert got.array.bits.tolist() == [0, -1, -2, 30, 40, 50, 1, 1]
    located("fn g(x: i32) -> i32 { var n = x; while n > 0 { n -= 1; } return n; }\nkernel k(y: out i32[8]) { y[0 +: 8] = g(iota(8)); }", at="while")


@test()
def test_A116_functions():
    y = Out((6,), "i32")
    run("fn nothing(y: out i32[N]) { y[5] = 50; }\nfn one(x: i32) -> i32 { return x + 1; }\nfn two(x: i32) -> (i32, i32) { return (one(x), one(one(x))); }\n"
        "fn three(x: i32) -> (i32, i32, i32) { let (a, b) = two(x); return (a, b, a * b); }\nfn apply<f: fn(i32) -> i32>(x: i32) -> i32 { return f(f(x)); }\n"
        "fn twice(x: i32) -> i32 { return 2 * x; }\n"
        "kernel k(y: out i32[6]) { let (a, b, c) = three(4); y[0] = a; y[1] = b; y[2] = c; y[3] = apply(3, f = twice); y[4] = apply(1, f = fn(x: i32) -> i32 { return x - 10; }); nothing(y); }",
        y=y)
    assert y.array.bits.tolist() == [5, 6, 30, 12, -19, 50]
    located("fn f(x: i32) -> i32 { return g(x); }\nfn g(x: i32) -> i32 { return f(x); }\nkernel k(y: out i32[1]) { y[0] = f(1); }", "f")
    located("fn f(x: i32) -> i32 { return f(x - 1); }\nkernel k(y: out i32[1]) { y[0] = f(1); }", "f")


# ---- Grids --------------------------------------------------------------------------------------

@test()
def test_A118_B56_grids():
    for shape in ((11, 21, 31), (1, 1, 1), (1, 65535, 1), (1, 65536, 1), (1, 1, 65536), (131072, 1, 1)):
        y = np.zeros(shape[::-1], np.int32)
        k = Kernel("kernel k(y: inout i32[C, B, A]) grid (a in A, b in B, c in C) { y[c, b, a] = y[c, b, a] + 1 + program_id(0) + 100 * program_id(1) + 10000 * program_id(2) "
                   "+ (num_programs(0) - A) + (num_programs(1) - B) + (num_programs(2) - C); }", check=False)
        k(y=y)
        c, b, a = np.indices(shape[::-1])
        assert (y == (1 + a + 100 * b + 10000 * c).astype(np.int32)).all(), shape
    n = 2 ** 20 + 3
    y = np.zeros(n, np.uint8)
    Kernel("kernel k(y: inout u8[N]) grid (i in N) { y[i] = y[i] + 1; }", check=False)(y=y)
    assert (y == 1).all()
    for dims in ((0, 3, 3), (3, 0, 3), (3, 3, 0)):
        y = np.full(1, 4, np.int32)
        k = kernel("kernel k(y: inout i32[1], a: i32, b: i32, c: i32) grid (i in a, j in b, l in c) { y[0] = 5; }")
        k(y=y, **dict(zip("abc", dims)))
        refused(lambda: k(y=y, **{n: -d for n, d in zip("abc", dims)}), "-3", "grid axis")
        assert y[0] == 4


@test()
def test_B45_nothing_to_do():
    k = kernel("kernel k(x: in f32[M, N], y: out f32[M, N]) grid (i in M) { y[i, 0 +: 16] = x[i, 0 +: 16]; }")
    for shape in ((0, 5), (5, 0), (0, 0)):
        x = np.zeros(shape, np.float32)
        k(x=x, y=np.zeros(shape, np.float32))
    for dtype in TYPES:
        run(f"kernel k(x: in {dtype}[N], y: out {dtype}[N]) {{ y[0 +: 8] = x[0 +: 8]; }}", x=make(np.zeros(0), dtype), y=Out((0,), dtype))


# ---- Atomics ------------------------------------------------------------------------------------

@test(*[(t, n) for t in ("i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64") for n in (5, 4096)])
def test_A107_atomic_add(dtype, n):
    if dtype in ("f16", "bf16") and n > 200:
        n = 200
    total, old = make(np.zeros(1), dtype), make(np.zeros(n), dtype)
    Kernel(f"kernel k(t: inout {dtype}[1], o: out {dtype}[N]) grid (i in N) {{ o[i] = atomic_add(t[0], {dtype}(1)); }}")(t=total, o=old)
    assert value(total)[0] == n and sorted(value(old).astype(int).tolist()) == list(range(n))


@test("i32", "u32", "i64", "u64")
def test_A107_A109_others(dtype):
    x = np.arange(64).astype(tkclib.STORAGE[dtype])
    for f, g in (("max", np.maximum), ("min", np.minimum), ("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        t, o = x.copy(), Out((64,), dtype)
        Kernel(f"kernel k(t: inout {dtype}[64], o: out {dtype}[64]) {{ o[0 +: 64] = atomic_{f}(t[0 +: 64], {dtype}(21)); }}")(t=t, o=o.array)
        assert (t == g(x, x.dtype.type(21))).all() and (o.array.bits == x).all(), f
    t, o = x.copy(), Out((64,), dtype)
    Kernel(f"kernel k(t: inout {dtype}[64], o: out {dtype}[64]) {{ o[0 +: 64] = atomic_cas(t[0 +: 64], {dtype}(7), {dtype}(99)); }}")(t=t, o=o.array)
    assert (t == np.where(x == 7, 99, x)).all() and (o.array.bits == x).all()
    t = x.copy()
    Kernel(f"kernel k(t: inout {dtype}[64], o: out {dtype}[64]) {{ o[0 +: 64] = atomic_xchg(t[0 +: 64], {dtype}(iota(64)) + {dtype}(1)); }}")(t=t, o=o.array)
    assert (t == x + 1).all() and (o.array.bits == x).all()


@test(*[(t, n, first) for t in ("f16", "bf16", "f32", "f64") for n in (1, 7, 64) for first in (0, 1)])
def test_A107_floats_and_nothing_beside_them(dtype, n, first):
    """Sums and extremes where several elements meet; tensors that end inside a word."""
    for f, g in (("max", np.maximum), ("min", np.minimum), ("add", np.add)):
        t = make(np.arange(n + first) % 5 - 2, dtype)[first:]
        x = make(np.arange(96) % 7 - 3, dtype)
        want, at = value(t).copy(), np.arange(96) * 5 % n
        getattr(g, "at")(want, at, value(x))
        Kernel(f"kernel k(t: inout {dtype}[N], x: in {dtype}[96]) {{ let o = atomic_{f}(t[iota(96) * 5 % N], x[0 +: 96]); }}")(t=t, x=x)
        assert (value(t) == want).all(), (f, value(t), want)


@test()
def test_A109_lock():
    """Programs add 1 to a plain element under a lock."""
    n, lock = np.zeros(1, np.int32), np.zeros(1, np.int32)
    Kernel("kernel k(l: inout i32[1], n: inout i32[1], p: i32) grid (i in p) {\n  while atomic_cas(l[0], 0, 1, order = acquire) != 0 { }\n"
           "  n[0] = n[0] + 1;\n  let o = atomic_xchg(l[0], 0, order = release);\n}\n", check=False)(l=lock, n=n, p=2000)
    assert n[0] == 2000 and lock[0] == 0
    located("kernel k(l: inout i32[1]) { let o = atomic_add(l[0], 1, order = strong); }", "strong", at="strong")


@test()
def test_B33_slot_of_a_counter():
    counter, y = np.zeros(1, np.int32), np.full((300, 8), -1, np.int32)
    Kernel("kernel k(c: inout i32[1], y: out i32[M, 8]) grid (i in M) { let s = atomic_add(c[0], 1); y[s, 0 +: 8] = iota(8) * 1000 + s; }", check=False)(c=counter, y=y)
    assert (y == np.arange(8) * 1000 + np.arange(300)[:, None]).all()


@test()
def test_B35_used_later_under_a_condition():
    y = Out((17,), "i32")
    run("kernel k(t: in i32[17], y: out i32[17], on: i32) { for i in 0 .. 17 pipeline(2) { let j = t[i]; if on > 0 { y[j] = i + 1; } } }",
        t=np.arange(17, dtype=np.int32), y=y, on=1)
    assert y.array.bits.tolist() == list(range(1, 18))


@test()
def test_A119_philox():
    words = (((0, 0), 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),)
    for key, counter, want in words:
        y = Out((4, 8), "u32")
        run("kernel k(y: out u32[4, 8], seed: u64, o: u64) { let (a, b, c, d) = philox(seed, o + u64(iota(8))); y[0, 0 +: 8] = a; y[1, 0 +: 8] = b; y[2, 0 +: 8] = c; y[3, 0 +: 8] = d; }",
            y=y, seed=0, o=0)
        assert [int(w, 16) for w in want.split()] == y.array.bits[:, 0].tolist()
    seed, offset = 0x299f31d0a4093822, 0x85a308d3243f6a88
    y, z, r = Out((4, 8), "u32"), Out((8,), "f32"), Out((8,), "f32")
    text = (f"kernel k(y: out u32[4, 8], z: out f32[8], r: out f32[8]) {{ let at = u64({offset}) + u64(iota(8)); let (a, b, c, d) = philox(u64({seed}), at); "
            f"y[0, 0 +: 8] = a; y[1, 0 +: 8] = b; y[2, 0 +: 8] = c; y[3, 0 +: 8] = d; z[0 +: 8] = rand(u64({seed}), at); r[0 +: 8] = randn(u64({seed}), at); }}")
    run(text, y=y, z=z, r=r)
    for i in range(8):
        assert y.array.bits[:, i].tolist() == philox(seed, offset + i)
        a, b = (int(w) for w in y.array.bits[:2, i])
        assert z.array.bits[i] == np.float32((a >> 8) * 2.0 ** -24)
        want = np.sqrt(-2 * np.log((a + 1) * 2.0 ** -32)) * np.cos(2 * np.pi * b * 2.0 ** -32)
        assert abs(r.array.bits[i] - want) < 1e-5
    assert philox(0, 0) == [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]
    assert philox_words([0xffffffff] * 4, [0xffffffff] * 2) == [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]


def philox_words(c, k):
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xffffffff, (p >> 32) ^ c[3] ^ k[1], p & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c


def philox(seed, offset):
    return philox_words([offset & 0xffffffff, offset >> 32, 0, 0], [seed & 0xffffffff, seed >> 32])


# ---- Variants -----------------------------------------------------------------------------------

@test()
def test_B50_B17_sizes_in_any_order():
    """A kernel launched with sizes and strides of every class gives what one launched first would."""
    k = Kernel("kernel k<BN: int = min(next_pow2(N), 64)>(x: in f32[N], y: out f32[1]) { var s = f32(0); for i in 0 .. N step BN { s = s + sum(x[i +: BN]); } y[0] = s; }")
    plain = Kernel("kernel k(x: in f32[N], y: out f32[1]) { var s = f32(0); for i in 0 .. N step 64 { s = s + sum(x[i +: 64]); } y[0] = s; }")
    sizes = [32, 1024, 48, 17, 1, 16, 0] + list(range(128, 229)) + [96, 17, 32]
    for n in sizes:
        for step in (1, 2, 16, 17, -1):
            x = np.full(max(n, 1) * abs(step) + 64, np.nan, np.float32)[32:]
            v = x[:max(n, 1) * abs(step):abs(step)][:n]
            v[...] = np.arange(n) % 10
            v = v[::-1] if step < 0 else v
            for f in (k, plain):
                y = np.full(1, np.nan, np.float32)
                f(x=v, y=y)
                assert y[0] == (np.arange(n) % 10).sum(), (n, step)
    facts = 1 if tkclib.DEVICE == "cpu" else 4  # of a tensor, that a GPU specialises on
    assert k.variants() <= 7 * facts and plain.variants() <= facts, (k.variants(), plain.variants())


@test()
def test_B44_strides_of_the_output():
    for dtype in ("f32", "bf16", "i8"):
        for layout in LAYOUTS:
            x = make(np.arange(33).reshape(3, 11) % 7, dtype)
            y = Out((3, 11), dtype, layout)
            launch(kernel("std/transpose.tk", "transpose_matrix"), x=In(Array(np.ascontiguousarray(x.bits.T), dtype), dtype), y=y)
            assert (codes_of(y.array) == codes_of(x)).all()


@test()
def test_launch_refusals_are_clear():
    k = kernel("kernel k(x: in f32[N], y: out f32[N]) { y[0 +: 8] = x[0 +: 8]; }")
    x = np.zeros(8, np.float32)
    refused(lambda: k(x=x, y=x), "y")
    refused(lambda: k(x=x, y=np.zeros(7, np.float32)), "'N'")
    refused(lambda: k(x=x.astype(np.float64), y=x.copy()), "f32", "f64")
    refused(lambda: k(x=x.reshape(2, 4), y=x.copy()), "x")


if __name__ == "__main__":
    main()
