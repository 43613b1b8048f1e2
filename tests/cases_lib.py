# SPDX-License-Identifier: Apache-2.0
# What the conformance tests share: types decoded and rounded without the library, and one expression run in every way that
# there is (tiles of several sizes, scalars, constants), which must agree bit for bit.
import functools
import os

import numpy as np

import tkclib
from judge import In, Out, launch
from tkclib import Array, Kernel, TkcError

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
SMALL = ("f8e4m3", "f8e5m2", "f16", "bf16")
FLOATS = SMALL + ("f32", "f64")
TYPES = ("bool",) + INTS + FLOATS
WIDTH = {"bool": 8, "i8": 8, "u8": 8, "f8e4m3": 8, "f8e5m2": 8, "i16": 16, "u16": 16, "f16": 16, "bf16": 16,
         "i32": 32, "u32": 32, "f32": 32, "i64": 64, "u64": 64, "f64": 64}
SHAPE = {"f8e4m3": (4, 3, 7), "f8e5m2": (5, 2, 15), "f16": (5, 10, 15), "bf16": (8, 7, 127)}  # exponent, fraction, bias


@functools.cache
def decoded(dtype):
    """The value of each code of a type of 8 or 16 bits, by the definition of the format."""
    exponent, fraction, bias = SHAPE[dtype]
    codes = np.arange(1 << (1 + exponent + fraction))
    sign = np.where(codes >> (exponent + fraction), -1.0, 1.0)
    e = (codes >> fraction) & ((1 << exponent) - 1)
    f = codes & ((1 << fraction) - 1)
    value = np.where(e == 0, np.ldexp(f, 1 - bias - fraction), np.ldexp((1 << fraction) + f, e - bias - fraction))
    if dtype == "f8e4m3":
        value = np.where((e == 15) & (f == 7), np.nan, value)
    else:
        value = np.where(e == (1 << exponent) - 1, np.where(f == 0, np.inf, np.nan), value)
    return sign * value


def rounded(values, dtype):
    """Codes of float64 values in a type of 8 or 16 bits: nearest, ties to the even code; f8 saturates; NaN: code of some NaN."""
    table = decoded(dtype)
    half = len(table) // 2
    finite = int(np.isfinite(table[:half]).sum())  # codes 0..finite-1 rise
    ladder = table[:finite]
    step = ladder[-1] - ladder[-2]
    mag = np.abs(np.asarray(values, np.float64))
    edges = np.append((ladder[:-1] + ladder[1:]) / 2, ladder[-1] + step / 2)
    with np.errstate(invalid="ignore"):
        code = np.searchsorted(edges, mag, side="left")
        tie = (code < len(edges)) & (edges[np.minimum(code, len(edges) - 1)] == mag)
    code = np.where(tie & (code % 2 == 1), code + 1, code)
    if dtype.startswith("f8"):
        code = np.where(code >= finite, finite - 1, code)
    else:
        code = np.minimum(code, finite)  # the code of infinity
    nan = half - 1
    code = np.where(np.isnan(mag), nan, code)
    code = code + np.where(np.signbit(values), half, 0)
    return code.astype(tkclib.STORAGE[dtype] if dtype != "f16" else np.uint16)


def make(values, dtype):
    """An Array of float64 (or integer) values, rounded here and not by the library."""
    if dtype in SMALL:
        bits = rounded(np.asarray(values, np.float64), dtype)
        return Array(bits.view(np.float16) if dtype == "f16" else bits, dtype)
    return Array(np.asarray(values).astype(tkclib.STORAGE[dtype]), dtype)


def from_codes(codes, dtype):
    """An Array with these bits."""
    unsigned = np.dtype(f"u{WIDTH[dtype] // 8}")
    bits = np.asarray(codes, unsigned)
    return Array(bits != 0 if dtype == "bool" else bits.view(tkclib.STORAGE[dtype]), dtype)


def codes_of(x):
    """Bits as unsigned integers."""
    x = x if isinstance(x, Array) else tkclib.wrap(x)
    return np.ascontiguousarray(x.bits).view(f"u{WIDTH[x.dtype] // 8}")


def value(x):
    """Float64 values of an Array, without the library; integers as they are."""
    if x.dtype in SMALL:
        return decoded(x.dtype)[codes_of(x)]
    with np.errstate(invalid="ignore"):
        return x.bits.astype(np.float64) if x.dtype in FLOATS else x.bits


def nans(x):
    return np.isnan(value(x)) if x.dtype in FLOATS else np.zeros(x.shape, bool)


def same(got, want, what=""):
    """Equal bits; a NaN for a NaN."""
    assert got.dtype == want.dtype and got.shape == want.shape, f"{what}: {got.dtype}{got.shape}, {want.dtype}{want.shape}"
    bad = (codes_of(got) != codes_of(want)) & ~(nans(got) & nans(want))
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        raise AssertionError(f"{what}: {bad.sum()} of {bad.size} differ, first at {at}: {value(got)[at]!r} "
                             f"(0x{int(codes_of(got)[at]):x}) for {value(want)[at]!r} (0x{int(codes_of(want)[at]):x})")


def literal(code, dtype):
    """An expression for these bits."""
    if dtype == "bool":
        return "true" if code else "false"
    unsigned = f"u{WIDTH[dtype]}(0x{int(code):x})"
    return unsigned if dtype in UNSIGNED else f"bitcast({unsigned}, {dtype})"


_kernels = {}
KEPT = 256  # of them: all together take gigabytes


def kernel(source, name=None, **defines):
    """One Kernel for a text and defines: its variants are kept, until many others have come."""
    key = (source, name, tuple(sorted(defines.items())))
    if key not in _kernels:
        while len(_kernels) >= KEPT:
            _kernels.pop(next(iter(_kernels))).close()
        _kernels[key] = Kernel(source, name, defines)
    return _kernels[key]


def run(source, _name=None, _defines=None, **args):
    """Launches with guarded arguments: Arrays and NumPy arrays become guarded inputs."""
    args = {k: In(a, a.dtype if isinstance(a, Array) else tkclib.NUMPY_NAME[a.dtype])
            if isinstance(a, (Array, np.ndarray)) else a for k, a in args.items()}
    launch(kernel(source, _name, **(_defines or {})), **args)


def body(expr, out, types, tile):
    """A kernel that computes expr of a, b, c, element by element of the inputs."""
    params = "".join(f"p{n}: in {t}[N], " for n, t in types.items())
    if tile == 0:
        lets = "".join(f"    let {n} = p{n}[i];\n" for n in types)
        return f"kernel k({params}y: out {out}[N]) grid (i in N) {{\n{lets}    y[i] = {expr};\n}}\n"
    lets = "".join(f"    let {n} = p{n}[i * {tile} +: {tile}];\n" for n in types)
    return (f"kernel k({params}y: out {out}[N]) grid (i in cdiv(N, {tile})) {{\n{lets}"
            f"    y[i * {tile} +: {tile}] = {expr};\n}}\n")


def elem(expr, out, fold=64, tiles=(64, 24, 0), **ins):
    """expr of 1-D inputs a, b, c as Arrays: with tiles, scalars (tile 0) and constants, which must agree; gives the result."""
    types = {n: x.dtype for n, x in ins.items()}
    n = next(iter(ins.values())).shape[0]
    first = None
    for tile in tiles:
        y = Out((n,), out)
        refusals = len(tkclib.refusals)
        run(body(expr, out, types, tile), y=y, **{"p" + k: x for k, x in ins.items()})
        if len(tkclib.refusals) > refusals:
            continue  # it ran elsewhere, where functions with an error bound may differ
        got = y.array.copy()
        if first is not None:
            same(got, first, f"{expr}, tile {tile} and tile {tiles[0]}")
        else:
            first = got
    if first is None:
        raise tkclib.Refused("nothing ran", tkclib.refusals[-1])
    picks = np.unique(np.linspace(0, n - 1, min(fold, n)).astype(int)) if fold else []
    if len(picks):
        lines = []
        for at, i in enumerate(picks):
            lets = "".join(f"let {k} = {literal(codes_of(x)[i], x.dtype)}; " for k, x in ins.items())
            lines.append(f"    if true {{ {lets}y[{at}] = {expr}; }}\n")
        y = Out((len(picks),), out)
        run(f"kernel k(y: out {out}[N]) {{\n{''.join(lines)}}}\n", y=y)
        same(y.array.copy(), first[picks], f"{expr}, constants")
    return first


def error_of(source, _name=None, _defines=None, **args):
    """The text of the error that a program gives: when it is checked, or with these arguments."""
    try:
        k = Kernel(source, _name, _defines)
    except TkcError as e:
        return e.text
    try:
        k(**args)
    except TkcError as e:
        return e.text
    finally:
        k.close()
    raise AssertionError(f"not refused:\n{source}")


def located(source, *words, at=None, **args):
    """The program is refused by a located error with these words; `at`: text that stands on the line named."""
    text = error_of(source, **args)
    place = text.split(":")
    assert place[0] == "test.tk" and place[1].isdigit() and place[2].isdigit() and " error: " in text, f"no place: {text}"
    for word in words:
        assert word in text, f"no {word!r} in: {text}"
    if at is not None:
        line = source.split("\n")[int(place[1]) - 1]
        assert at in line, f"{at!r} is not on the line named: {text}"


def values_of(dtype):
    """Values of every kind of a type: limits, zeros, subnormals, NaN, infinity, and a spread of bits."""
    bits = WIDTH[dtype]
    if dtype == "bool":
        return from_codes([0, 1], dtype)
    if bits == 8:
        return from_codes(np.arange(256), dtype)
    rng = np.random.default_rng(bits)
    codes = set(int(c) for c in rng.integers(0, 1 << min(bits, 63), 40, np.uint64))
    edges = [0, 1, 2, 3, 7, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << (bits - 1)) + 1, (1 << bits) - 1, (1 << bits) - 2]
    codes |= set(edges)
    if dtype in FLOATS:
        for v in (0.5, 1.0, 1.5, 2.5, 3.0, 1e-3, 255.5, 1e4, np.inf, np.nan):
            for s in (v, -v):
                codes.add(int(codes_of(make(np.array([s]), dtype))[0]))
    return from_codes(np.array(sorted(codes), np.uint64).astype(f"u{bits // 8}"), dtype)


def pairs(x, y=None, most=4096):
    """All pairs of elements, or a spread of them."""
    y = x if y is None else y
    i, j = np.meshgrid(np.arange(x.shape[0]), np.arange(y.shape[0]), indexing="ij")
    i, j = i.reshape(-1), j.reshape(-1)
    if len(i) > most:
        pick = np.random.default_rng(0).choice(len(i), most, replace=False)
        i, j = i[pick], j[pick]
    return x[i], y[j]


def ir(source, stage=None, **defines):
    """The IR of a kernel whose parameters are all tensors and scalars of known types: "build", a pass's name, or None (all)."""
    import ctypes
    lib = tkclib.library()
    k = kernel(source, **defines)

    class Text(ctypes.Structure):
        _fields_ = [("at", ctypes.c_char_p), ("size", ctypes.c_size_t)]
    out = Text()
    n = len(k.params)
    args = (tkclib.Arg_ * max(n, 1))(*[tkclib.Arg_(kind=4) for _ in range(n)])
    lib.call("tkc_kernel_dump_ir", k.handle, args, ctypes.c_size_t(n), None, ctypes.c_size_t(0),
             stage.encode() if stage else None, ctypes.c_bool(False), ctypes.byref(out))
    text = out.at.decode()
    lib.c.tkc_text_free(ctypes.byref(out))
    return text


# ---- One expression of one tile -----------------------------------------------------------------

def at(shape):
    return ", ".join(f"0 +: {n}" for n in shape)


def dims(shape):
    return ", ".join(map(str, shape))


def whole(expr, x, out, shape, more="", **args):
    """expr of the tile t (all of x), stored whole; a scalar has the shape ()."""
    y = Out(shape or (1,), out)
    names = "".join(f"{k}: in {v.dtype}[{dims(v.shape)}], " for k, v in args.items())
    run(f"kernel k(x: in {x.dtype}[{dims(x.shape)}], {names}y: out {out}[{dims(shape or (1,))}]) {{\n    let t = x[{at(x.shape)}];\n    {more}\n"
        f"    y[{at(shape) if shape else '0'}] = {expr};\n}}\n", x=x, y=y, **args)
    return y.array


def wide(dtype):
    """The type of a sum."""
    return {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}.get(dtype, dtype)


def small_ints(shape, dtype, seed=1, top=3):
    rng = np.random.default_rng(seed)
    low = 0 if dtype[0] in "bu" and dtype != "bf16" else -top
    return make(rng.integers(low, 2 if dtype == "bool" else top + 1, shape), dtype)
