# SPDX-License-Identifier: Apache-2.0
# Masks of products' tiles, by comparisons of indices: every element as numpy has it with numbers that wrap, of tiles of which a
# mask holds throughout, in part or nowhere. Pass whole computes them for the second kind and the third alone.
import numpy as np

import tkclib
from judge import equal, main, test

DEVICES = ("sim:80", "sim") if tkclib.DEVICE == "sim" else (tkclib.DEVICE,)
I32 = np.iinfo(np.int32)
M, N, K = 150, 300, 32

SOURCE = """
fn see(t: f32, r: i32, c: i32, x: i32, f: bool) -> f32 {{
    return where({mask}, t, -100.0);
}}
kernel masked(a: in f16[M, {k}], b: in f16[{k}, N], y: out f32[M, N], p: i32, q: i32, x: i32, f: bool)
    grid (i in cdiv(M, 64))
{{
    let t = a[i * 64 +: 64, 0 +: {k}];
    let r = (i * 64 + p + iota(64))[:, newaxis];
    for j in 0 .. N step 64 {{
        let c = (iota(64) + j + q)[newaxis, :];
        y[i * 64 +: 64, j +: 64] = see(dot(t, b[0 +: {k}, j +: 64]), r, c, x, f);
    }}
}}
"""

MASKS = {
    "r >= c": lambda r, c, x, f: r >= c,
    "r < c": lambda r, c, x, f: r < c,
    "c > r && r >= x": lambda r, c, x, f: (c > r) & (r >= x),
    "c < x": lambda r, c, x, f: (c < x) & (r == r),
    "x <= c && f": lambda r, c, x, f: (x <= c) & (r == r) & f,
    "r >= c && r - c < 70": lambda r, c, x, f: (r >= c) & (r - c < 70),
    "c - 5 - r <= x - r": lambda r, c, x, f: c - 5 - r <= x - r,
    "r + c < x": lambda r, c, x, f: r + c < x,
    "r != c && c < x": lambda r, c, x, f: (r != c) & (c < x),
    "r >= c || c < x": lambda r, c, x, f: (r >= c) | (c < x),
}
# To rows, to columns, and x: in the middle, and where sums of 32 bits wrap.
NUMBERS = ((0, 0, 100), (64, 0, 128), (-1000, 7, -900), (I32.max - 100, I32.max - 120, I32.max - 40), (I32.min + 3, I32.min - 40, I32.min + 64),
           (I32.max - 63, 0, I32.max), (0, I32.max - 63, I32.max), (-64, I32.max - 255, -1))


@test(*[(device, mask) for device in DEVICES for mask in MASKS])
def test_masks(device, mask):
    kernel = tkclib.Kernel(SOURCE.format(mask=mask, k=K), check=False)
    rng = np.random.default_rng(5)
    a, b = rng.integers(-3, 4, (M, K)), rng.integers(-3, 4, (K, N))
    for p, q, x in NUMBERS:
        for f in (True, False):
            q = (q + 2 ** 31) % 2 ** 32 - 2 ** 31
            y = tkclib.array(np.zeros((M, N)), "f32")
            kernel.on(device, a=tkclib.array(a, "f16"), b=tkclib.array(b, "f16"), y=y, p=p, q=q, x=x, f=f)
            with np.errstate(over="ignore"):
                rows = np.arange(M, dtype=np.int32)[:, None] + np.int32(p)
                columns = np.arange(N, dtype=np.int32)[None, :] + np.int32(q)
                seen = MASKS[mask](rows, columns, np.int32(x), f)
            equal(y.f64(), np.where(seen, a @ b, -100.0), f"{device} {p} {q} {x} {f}")
    kernel.close()


if __name__ == "__main__":
    main()
