# SPDX-License-Identifier: Apache-2.0
"""Loops with pipeline(n) that stream tensors without a product: running sums, scans, neighbours, several tensors, loops in loops and one
after the other, bounds known when the kernel runs, masks and other values outside, tile indices. With n stages every bit is as with one,
and what is exact is as on the CPU."""
import random

import numpy as np

import tkclib
from judge import main, refused, test

# PIPE stands for pipeline(n), ELSE for `else v`.
HEAD = "kernel stream<T: type, BN: int, R: int>"
SUMS = HEAD + """(x: in T[M, N], y: out i32[M], n: i32, m: i32) grid (i in M) {
    var s = 0;
    for k in m .. n step BN PIPE { s += sum(i32(x[i, k +: BN] ELSE)); }
    y[i] = s;
}
"""
CARRY = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    var s = 0;
    for k in m .. n step BN PIPE {
        let t = i32(x[i, k +: BN] ELSE);
        y[i, k +: BN] = cumsum(t, axis = 0) + s;
        s += sum(t);
    }
}
"""
STENCIL = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n step BN PIPE {
        y[i, k +: BN] = i32(x[i, k - 1 +: BN] ELSE) + 2 * i32(x[i, k +: BN]) + 3 * i32(x[i, k + 1 +: BN]) + 5 * i32(x[i, k + BN +: BN]);
    }
}
"""
SEVERAL = HEAD + """(x: in T[M, N], w: in T[N], v: in f32[M, N], y: out f32[M, N], n: i32, m: i32) grid (i in cdiv(M, R)) {
    for k in m .. n step BN PIPE {
        y[i * R +: R, k +: BN] = f32(x[i * R +: R, k +: BN] ELSE) * f32(w[k +: BN]) - v[i * R +: R, k +: BN];
    }
}
"""
NESTED = HEAD + """(x: in T[M, N], y: out i32[M], n: i32, m: i32) grid (i in cdiv(M, R)) {
    for r in 0 .. R {
        var s = 0;
        for k in m .. n step BN PIPE {
            let t = i32(x[i * R + r, k +: BN] ELSE);
            for z in 0 .. 3 { s += sum(t * z); }
        }
        y[i * R + r] = s;
    }
}
"""
OUTER = HEAD + """(x: in T[M, N], w: in T[N], y: out i32[M], n: i32, m: i32) grid (i in 2) {
    for r in i .. M step 2 PIPE {
        let a = i32(x[r, 0 +: BN] ELSE);
        var s = sum(a);
        for k in m .. n step BN PIPE { s += sum(i32(w[k +: BN]) * a); }
        y[r] = s;
    }
}
"""
TWICE = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    var s = 0;
    for k in m .. n step BN PIPE { s += sum(i32(x[i, k +: BN] ELSE)); }
    for k in m .. n step BN PIPE { y[i, k +: BN] = i32(x[i, k +: BN] ELSE) * s; }
    for k in m .. n step BN PIPE { s += max(i32(x[i, k +: BN])); }
    y[i, 0] = s;
}
"""
COLUMNS = HEAD + """(x: in T[M, N], y: out i32[N], n: i32, m: i32) grid (j in cdiv(N, BN)) {
    var s = zeros([BN], i32);
    for k in 0 .. M step R PIPE {
        s = s + reshape(sum(i32(x[k +: R, j * BN +: BN] ELSE), axis = 0), [BN]);
    }
    y[j * BN +: BN] = s;
}
"""
SCALED = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n PIPE {
        y[i, k * BN + 1 +: BN] = i32(x[i, k * BN + 1 +: BN] ELSE) + k;
    }
}
"""
DOWNWARDS = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n step BN PIPE {
        y[i, n - k +: BN] = i32(x[i, n - k +: BN] ELSE) + k;
    }
}
"""
CUBE = HEAD + """(x: in T[P, M, N], y: out i32[P, M, N], n: i32, m: i32) grid (i in cdiv(M, R)) {
    for p in 0 .. P PIPE {
        y[p, i * R +: R, 0 +: BN] = i32(x[p, i * R +: R, 0 +: BN] ELSE) + p;
    }
}
"""
BLOCKS = HEAD + """(x: in T[P, M, N], y: out i32[P, M, N], n: i32, m: i32) grid (i in cdiv(M, R)) {
    for k in m .. n step BN PIPE {
        y[0 +: 4, i * R +: R, k +: BN] = i32(x[0 +: 4, i * R +: R, k +: BN] ELSE) + k;
    }
}
"""
USED_LATE = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n step BN PIPE {
        let a = i32(x[i, k +: BN] ELSE);
        if k % (2 * BN) == 0 { y[i, k +: BN] = a; } else { y[i, k +: BN] = flip(a, axis = 0); }
    }
}
"""
LAST = HEAD + """(x: in T[M, N], y: out i32[M, BN], n: i32, m: i32) grid (i in M) {
    var t = zeros([BN], i32);
    for k in m .. n step BN PIPE { t = i32(x[i, k +: BN] ELSE); }
    y[i, 0 +: BN] = t;
}
"""
SMALL_INDEX = HEAD + """(x: in T[M, N], y: out i32[M], n: i32, m: i32) grid (i in M) {
    var s = 0;
    for k in i8(0) .. i8(100) step i8(32) PIPE { s += sum(i32(x[i, k +: BN] ELSE)); }
    for k in i64(m) .. i64(n) step i64(BN) PIPE { s += sum(i32(x[i, k +: BN] ELSE)); }
    for k in u32(3) .. u32(130) step u32(BN) PIPE { s += sum(i32(x[i, k +: BN] ELSE)); }
    y[i] = s;
}
"""
# As Triton has it: offsets as tiles, masks that keep them inside.
BOUNDED = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n step BN PIPE {
        let o = k + iota(BN);
        y[i, o where o < N] = i32(x[i, o where o < N] ELSE);
    }
}
"""
RANGED = HEAD + """(x: in T[M, N], w: in T[N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n step BN PIPE {
        let o = k + iota(BN);
        y[i, k +: BN where o < N] = i32(x[i, k +: BN where o < N] ELSE) + i32(w[k +: BN where o < N]);
    }
}
"""
PLANE = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in cdiv(M, R)) {
    let r = (i * R + iota(R))[:, newaxis];
    for k in m .. n step BN PIPE {
        let o = (k + iota(BN))[newaxis, :];
        y[r where r < M, o where o < N] = i32(x[r where r < M, o where o < N] ELSE);
    }
}
"""
# Masks that leave out more than the bounds do, and what decides in the loop.
EVEN = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n step BN PIPE {
        y[i, k +: BN] = i32(x[i, k +: BN where iota(BN) % 3 != 1 && k + iota(BN) < n - 3] ELSE);
    }
}
"""
DECIDED = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    var s = 0;
    for k in m .. n step BN PIPE {
        let t = i32(x[i, k +: BN where iota(BN) > s] ELSE);
        s = sum(t) % BN;
        y[i, k +: BN] = t + s;
    }
}
"""
# What the next iteration works on; branches.
AHEAD = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    var t = x[i, 0 +: BN];
    for k in m .. n step BN PIPE {
        y[i, k +: BN] = i32(t);
        t = x[i, k + BN +: BN] ELSE;
    }
}
"""
CHOSEN = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in M) {
    for k in m .. n step BN PIPE {
        let a = x[i, k +: BN] ELSE;
        var t = x[i, k + 1 +: BN];
        if k % 3 == 0 { t = a; }
        y[i, k +: BN] = i32(t) + 1;
    }
}
"""
TURNED = HEAD + """(x: in T[M, N], y: out i32[M, N], n: i32, m: i32) grid (i in 1) {
    var t = transpose(x[0 +: BN, 0 +: BN]);
    for k in m .. n step BN PIPE {
        y[0 +: BN, k +: BN] = i32(t);
        t = transpose(x[0 +: BN, k +: BN] ELSE);
    }
}
"""
# Rounded sums, whose bits are those of their order.
ROUNDED = HEAD + """(x: in T[M, N], w: in f32[N], y: out f32[M, N], n: i32, m: i32) grid (i in cdiv(M, R)) {
    var s = zeros([R, 1], f32);
    for k in m .. n step BN PIPE {
        let t = f32(x[i * R +: R, k +: BN] ELSE) / 7.0;
        s = s * 0.75 + sum(t * w[k +: BN], axis = 1) + min(t, axis = 1);
        y[i * R +: R, k +: BN] = cumsum(t, axis = 1) + s + sum(t, axis = 0);
    }
}
"""
# Of what is made in a layout that a load alone would not have: weights that all programs read, before and behind what is summed; a tile
# that is turned; a line of weights in a line of its own.
WEIGHED = HEAD + """(x: in T[M, N], w: in f32[N], y: out f32[M, N], n: i32, m: i32) grid (i in cdiv(M, R)) {
    var s = zeros([R, 1], f32);
    for k in m .. n step BN PIPE {
        let t = f32(x[i * R +: R, k +: BN] ELSE) / 7.0;
        let v = w[k +: BN] * reshape(sum(t, axis = 0), [BN]);
        s = s * 0.75 + sum(v) + sum(w[k +: BN] / 3.0);
        y[i * R +: R, k +: BN] = cumsum(t * v, axis = 1) + s;
    }
}
"""
WEIGHED_ROWS = HEAD + """(x: in T[M, N], w: in f32[N], y: out f32[M, N], n: i32, m: i32) grid (i in cdiv(M, R)) {
    var s = zeros([R], f32);
    for k in m .. n step BN PIPE {
        let t = f32(x[i * R +: R, k +: BN] ELSE) / 7.0;
        let v = w[k +: R] * reshape(sum(t, axis = 1), [R]);
        s = s * 0.75 + v + sum(v);
        y[i * R +: R, k +: BN] = t + cumsum(s, axis = 0)[:, newaxis];
    }
}
"""
TURNED_SUMS = HEAD + """(x: in T[N, M], w: in f32[N], y: out f32[N, M], n: i32, m: i32) grid (i in cdiv(M, R)) {
    var s = zeros([R, 1], f32);
    for k in m .. n step BN PIPE {
        let t = f32(transpose(x[k +: BN, i * R +: R] ELSE)) / 7.0;
        s = s * 0.75 + sum(t * w[k +: BN], axis = 1) + min(t, axis = 1);
        y[k +: BN, i * R +: R] = transpose(cumsum(t, axis = 1) + s) + reshape(sum(t, axis = 0), [BN, 1]);
    }
}
"""
LINE = HEAD + """(x: in T[M, N], w: in f32[N], y: out f32[M, N], n: i32, m: i32) grid (i in M) {
    var s = f32(0);
    for k in m .. n step BN PIPE {
        let v = w[k +: BN] * (f32(x[i, k +: BN] ELSE) / 7.0) + w[k + 1 +: BN];
        s = s * 0.75 + sum(v) + sum(w[k +: BN] / 3.0 + w[k + 1 +: BN]);
        y[i, k +: BN] = cumsum(v, axis = 0) + s;
    }
}
"""
# Whose sums are rounded.
FLOATS = {"rounded": ROUNDED, "weighed": WEIGHED, "weighed_rows": WEIGHED_ROWS, "turned_sums": TURNED_SUMS, "line": LINE}
KERNELS = {"sums": SUMS, "carry": CARRY, "stencil": STENCIL, "several": SEVERAL, "nested": NESTED, "outer": OUTER, "twice": TWICE,
           "columns": COLUMNS, "scaled": SCALED, "downwards": DOWNWARDS, "cube": CUBE, "blocks": BLOCKS, "late": USED_LATE, "last": LAST,
           "small": SMALL_INDEX, "bounded": BOUNDED, "ranged": RANGED, "plane": PLANE, "even": EVEN, "decided": DECIDED,
           "ahead": AHEAD, "chosen": CHOSEN, "turned": TURNED,
           **FLOATS}
ANYWHERE = ("stencil", "scaled", "downwards", "chosen", "small")  # begin anywhere in a row
TYPES = {"bool": ("false", "true"), "i8": ("0", "-3"), "u8": ("7",), "i32": ("-5",), "bf16": ("1", "-2"), "f32": ("0", "3"), "f16": ("1",)}
CASES = 240


def tensor(pick, dtype, shape, offset):
    """Rows at multiples of 16 bytes, or (offset) one element off."""
    size = tkclib.array([0], dtype).bits.itemsize
    unit = max(16 // size, 1)
    row = -(-shape[-1] // unit) * unit + offset
    rows = int(np.prod(shape[:-1]))
    values = np.random.default_rng(pick.randrange(1 << 30)).integers(0, 2 if dtype == "bool" else 100, rows * row + 64)
    bits = tkclib.array(values, dtype).bits
    begin = -(bits.ctypes.data // size) % (64 // size) + offset
    strides = [size]
    step = row * size
    for n in reversed(shape[1:] and shape[:-1]):
        strides.insert(0, step)
        step *= n
    return tkclib.Array(np.lib.stride_tricks.as_strided(bits[begin:], shape, strides), dtype)


def run(text, defines, device, given, shapes):
    kernel = tkclib.Kernel(text, "stream", defines, check=False)
    out, _, of_y = shapes
    y = tkclib.array(np.full(of_y, 77), out)
    kernel.on(device, y=y, **given)
    kernel.close()
    return np.ascontiguousarray(y.bits).view(np.uint8).reshape(-1)


@test(*[(seed,) for seed in range(CASES)])
def test_stream(seed):
    pick = random.Random(seed)
    name = list(KERNELS)[seed % len(KERNELS)]
    text = KERNELS[name]
    dtype = pick.choice(list(TYPES))
    size = tkclib.array([0], dtype).bits.itemsize
    if name in ANYWHERE and size < 4 and pick.random() < 0.4:
        dtype = pick.choice(("i32", "f32"))
    other = pick.choice(("", "", "else T(" + pick.choice(TYPES[dtype]) + ")"))
    size = tkclib.array([0], dtype).bits.itemsize
    columns = max(pick.choice((4, 16, 64, 128, 512, 2048)) // size, 1)
    rows = pick.choice((1, 2, 4, 8, 16, 64))
    while columns * rows * size > 8192:
        rows //= 2
    if name == "turned":
        columns = min(columns, 32)
    if name == "turned_sums":
        rows = max(rows, 4 // size)
    stages = pick.choice((2, 3, 4, 8))
    trips = pick.choice((0, 1, 2, stages - 1, stages, stages + 1, 9))
    n = max(columns * trips - pick.choice((0, 0, 1, columns // 2)), 0)
    sizes = {"P": pick.choice((1, 3, 5)), "M": pick.choice((1, 3, rows, 2 * rows - 1)), "N": max(n + pick.choice((0, 0, 0, 5, -7)), 0)}
    if name == "scaled":
        n = trips
    if name in ("columns", "cube"):
        sizes["M" if name == "columns" else "P"] = min(trips * (rows if name == "columns" else 1), 40)
        sizes["N"] = pick.choice((columns, 2 * columns - 1))
    m = pick.choice((0, -1, 2)) if name == "scaled" else pick.choice((0, 0, 0, 1, 16 // size, -columns))
    if pick.random() < 0.05:
        n = -n
    if pick.random() < 0.1:
        columns = max(columns - (1 if size >= 4 else 4 // size), 4 // size)  # not a power of two
    of_x = ["P", "M", "N"] if name in ("cube", "blocks") else ["N", "M"] if name == "turned_sums" else ["M", "N"]
    of_y = {"sums": ["M"], "nested": ["M"], "outer": ["M"], "small": ["M"], "columns": ["N"], "last": ["M", columns]}.get(name, of_x)
    given = {"x": tensor(pick, dtype, [sizes[d] for d in of_x], pick.choice((0, 0, 0, 1))), "n": n, "m": m}
    if name in ("several", "outer", "ranged", *FLOATS):
        given["w"] = tensor(pick, "f32" if name in FLOATS else dtype, [sizes["N"]], pick.choice((0, 0, 1)) if name in FLOATS else 0)
    if name == "several":
        given["v"] = tensor(pick, "f32", [sizes["M"], sizes["N"]], pick.choice((0, 1)))
    out = "f32" if name in ("several", *FLOATS) else "i32"
    shapes = (out, of_x, [sizes.get(d, d) for d in of_y])
    text = text.replace("ELSE", other)
    if pick.random() < 0.5:  # at a multiple of 4 bytes, known when it is compiled: what is narrow need not come through registers
        text = text.replace("m .. n", f"{m} .. n")
    defines = {"T": dtype, "BN": columns, "R": rows}
    words = f"{name} {defines} {sizes} n={n} m={m} pipeline({stages}) {other}"
    tkclib.SEED = seed % 4
    device = "sim:80" if seed % 4 in (0, 2) and tkclib.DEVICE == "sim" else tkclib.DEVICE
    expected = run(text.replace("PIPE", ""), defines, "cpu", given, shapes)
    one = run(text.replace("PIPE", "pipeline(1)"), defines, device, given, shapes)
    several = run(text.replace("PIPE", f"pipeline({stages})"), defines, device, given, shapes)
    for what, a, b in (("several stages and one", one, several), ("one stage and the CPU", expected, one)):
        wrong = np.nonzero(a != b)[0]
        if a is expected and name in FLOATS:  # which adds in another order
            a, b = a.view(np.float32), b.view(np.float32)
            wrong = np.nonzero(np.abs(a - b) > 1e-4 * np.abs(a) + 1e-4)[0]
        assert wrong.size == 0, f"{words}: {what}: {wrong.size} differ, first {wrong[:3]}"


REFUSED = HEAD + """(x: in T[M, N], z: inout T[M, N], p: in i32[M], y: out T[M, N], n: i32, m: i32) grid (i in M) {
    var s = 0;
    BODY
}
"""
LOAD = "y[i, k +: BN] = x[i, k +: BN];"


# What cannot be, by name: a tensor that may be written, places that the loop finds out, branches, loops that are left or of an unknown way.
@test(("the tensor may be written", "for k in 0 .. N step BN PIPE { y[i, k +: BN] = z[i, k +: BN]; }"),
      ("its place depends on what the loop computes", "for k in 0 .. M PIPE { y[k, 0 +: BN] = x[p[k], 0 +: BN]; }"),
      ("its place depends on what the loop computes", "for k in 0 .. N step BN PIPE { y[i, s +: BN] = x[i, s +: BN]; s = s + k; }"),
      ("it is indexed by a tile", "for k in 0 .. N step BN PIPE { y[i, k +: BN] = x[i, k + 2 * iota(BN)]; }"),
      ("it stands in a branch that may not be taken", "for k in 0 .. N step BN PIPE { if k % 3 == m { " + LOAD + " } }"),
      ("how often the loop runs is not known when it begins", "for k in 0 .. N step BN PIPE { " + LOAD + " if k == m { break; } }"),
      ("how often the loop runs is not known when it begins", "var k = 0; while k < N PIPE { " + LOAD + " k += BN; }"),
      ("it does not rise by a constant", "for k in 0 .. N step n PIPE { " + LOAD + " }"),
      ("it does not rise by a constant", "for k in N .. 0 step -BN PIPE { " + LOAD + " }"),
      ("its step is too large", "for k in 0 .. N step 1200000000 PIPE { " + LOAD + " }"),
      ("the loop loads no tiles", "for k in 0 .. N PIPE { y[i, k] = x[i, k]; }"),
      ("its tiles are too many for shared memory", "for k in 0 .. N step 32768 PIPE { y[i, k] = " + " + ".join(f"max(x[i, k + {j} +: 32768])" for j in (0, 8, 16, 24)) + "; }"),
      ("less than 4 bytes of it lie in a row", "for k in 0 .. N step 1 PIPE { y[i, k +: 1] = x[i, k +: 1]; }"))
def test_refused(why, body):
    """Without `pipeline` each runs."""
    x = tkclib.array(np.arange(4 * 64).reshape(4, 64), "f16")
    for pipe in ("", "pipeline(2)"):
        kernel = tkclib.Kernel(REFUSED.replace("BODY", body).replace("PIPE", pipe), "stream", {"T": "f16", "BN": 16, "R": 1}, check=False)
        given = {"x": x, "z": tkclib.array(np.zeros((4, 64)), "f16"), "p": np.arange(4, dtype=np.int32), "y": tkclib.array(np.zeros((4, 64)), "f16"), "n": 16, "m": 0}
        if pipe and tkclib.DEVICE == "sim":
            refused(lambda: kernel.on("sim", **given), f"'pipeline(2)' cannot be kept: {why}")
        else:
            kernel.on(tkclib.DEVICE, **given)
        kernel.close()


main()
