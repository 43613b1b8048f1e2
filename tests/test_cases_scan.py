# SPDX-License-Identifier: Apache-2.0
# Conformance: scans. Rows A089, A090, A093, B32.
import numpy as np

from cases_lib import FLOATS, TYPES, make, run, small_ints, value, whole, wide
from judge import Out, main, test


def scanned(v, axis, f, reverse, exclusive, start):
    v = np.flip(v, axis) if reverse else v
    out = f.accumulate(v, axis)
    if exclusive:
        first = np.full_like(out.take([0], axis), start)
        out = np.concatenate([first, out.take(range(v.shape[axis] - 1), axis)], axis)
    return np.flip(out, axis) if reverse else out


@test(*[(t, s) for t in TYPES for s in ((1,), (9,), (8, 32), (32, 16), (2, 1024), (1024, 2), (1, 1024), (3, 4, 5))])
def test_A089_A090_scans(dtype, shape):
    x = small_ints(shape, dtype, 89)
    v = value(x).astype(np.float64) if dtype in FLOATS else x.bits.astype(np.int64)
    tops = {"f8e4m3": 448, "f8e5m2": np.inf}
    for axis in range(len(shape)):
        for reverse in (False, True):
            for exclusive in (False, True):
                a = f", axis = {axis}, reverse = {str(reverse).lower()}, exclusive = {str(exclusive).lower()}"
                got = whole(f"cumsum(t{a})", x, wide(dtype), shape)
                want = scanned(v, axis, np.add, reverse, exclusive, 0)
                want = make(want, wide(dtype))
                assert (value(got) == value(want)).all(), ("cumsum" + a)
                if dtype == "bool":
                    continue
                for f, g in (("cummax", np.maximum), ("cummin", np.minimum)):
                    if dtype in FLOATS:
                        start = tops.get(dtype, np.inf) * (-1 if f == "cummax" else 1)
                    else:
                        start = getattr(np.iinfo(x.bits.dtype), "min" if f == "cummax" else "max")
                    if dtype == "u64" and start > 2 ** 63:
                        continue
                    got = whole(f"{f}(t{a})", x, dtype, shape)
                    want = scanned(v, axis, g, reverse, exclusive, start)
                    assert (value(got) == want).all(), (f + a)


@test("i8", "u8", "i32", "u64", "f32")
def test_A089_cumprod(dtype):
    x = make(np.array([[1, 2, 3], [2, 2, 1], [3, 1, 2]]), dtype)
    for axis in (0, 1):
        for reverse in (False, True):
            got = whole(f"cumprod(t, axis = {axis}, reverse = {str(reverse).lower()})", x, wide(dtype), (3, 3))
            assert (value(got) == scanned(value(x).astype(np.int64), axis, np.multiply, reverse, False, 1)).all()


@test()
def test_A093_B32_scan_in_a_loop():
    y = Out((3, 8), "i32")
    run("kernel k(x: in i32[8], y: out i32[R, 8]) { for r in 0 .. R { y[r, 0 +: 16] = cumsum(x[0 +: 16] else 0, axis = 0) ; } }",
        x=np.ones(8, np.int32), y=y)
    assert (y.array.bits == np.arange(1, 9)).all()


if __name__ == "__main__":
    main()
