# SPDX-License-Identifier: Apache-2.0
"""reduce with a function that is associative and nothing more: of affine maps of integers, one behind the other, exact in any
grouping and in no other order; of shapes and axes that put a line's places into registers, lanes and warps in several ways."""
import numpy as np

import tkclib
from judge import equal, main, test

SOURCE = """
fn then(a: i32, b: i32, c: i32, d: i32) -> (i32, i32) { // c * (a * x + b) + d
    return (a * c, c * b + d);
}

kernel along<R: int, C: int, AXIS: int>(x: in i32[R, C], a: out i32[P, Q], b: out i32[P, Q]) {
    let t = x[0 +: R, 0 +: C];
    let (p, q) = reduce((t * 2 + 1, t), axis = AXIS, then);
    if AXIS == 0 {
        a[0 +: 1, 0 +: C] = p;
        b[0 +: 1, 0 +: C] = q;
    } else {
        a[0 +: R, 0 +: 1] = p;
        b[0 +: R, 0 +: 1] = q;
    }
}

kernel whole<R: int, C: int>(x: in i32[R, C], a: out i32[P, Q], b: out i32[P, Q]) {
    let t = x[0 +: R, 0 +: C];
    let (p, q) = reduce((t * 2 + 1, t), then);
    a[0, 0] = p;
    b[0, 0] = q;
}
"""
SHAPES = ((1, 64), (1, 1000), (16, 32), (32, 16), (3, 256), (128, 8), (1, 4096), (64, 64))


def folded(t, axis):
    """The maps of a line one behind the other, modulo 2^32."""
    lines = np.moveaxis(t.astype(np.uint32), axis, 0)
    a, b = np.ones(lines.shape[1:], np.uint32), np.zeros(lines.shape[1:], np.uint32)
    for row in lines:
        a, b = a * (row * np.uint32(2) + np.uint32(1)), (row * np.uint32(2) + np.uint32(1)) * b + row
    return np.expand_dims(a, axis).view(np.int32), np.expand_dims(b, axis).view(np.int32)


def judge(name, shape, axis, warps):
    x = np.random.default_rng(shape).integers(-1000, 1000, shape, np.int32)
    if axis is None:
        want = folded(x.reshape(-1, 1), 0)
    else:
        want = folded(x, axis)
    a, b = np.zeros(want[0].shape, np.int32), np.zeros(want[0].shape, np.int32)
    defines = {"R": shape[0], "C": shape[1]} | ({} if axis is None else {"AXIS": axis})
    source = SOURCE.replace("\nkernel", f"\n@warps({warps})\nkernel") if warps else SOURCE
    tkclib.Kernel(source, name, defines)(x=x, a=a, b=b)
    equal(a, want[0])
    equal(b, want[1])


@test(*[(shape, axis, warps) for shape in SHAPES for axis in (0, 1) for warps in (0, 1, 4, 8)])
def test_along_an_axis(shape, axis, warps):
    judge("along", shape, axis, warps)


@test(*[(shape, warps) for shape in SHAPES for warps in (0, 1, 4, 8, 32)])
def test_whole(shape, warps):
    judge("whole", shape, None, warps)


main()
