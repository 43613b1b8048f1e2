# SPDX-License-Identifier: Apache-2.0
# The shipped kernels along rows (softmax, norms, cross-entropy, sums, argmax, top-k) and element by element, against float64.
# Each bound is worked out where the reference is; judge.py says what U, FN and the rounding of the output are.
import math

import numpy as np

import tkclib
from judge import FN, In, LAYOUTS, Out, TINY, U, close, equal, launch, main, refused, test
from tkclib import Kernel

FLOATS = ("f32", "f16", "bf16")
COLUMNS = (1, 3, 127, 781, 1023, 4097)
_kernels = {}


def kernel(file, name, **defines):
    """One Kernel for each set of defines: its variants are kept."""
    key = (file, name, tuple(sorted(defines.items())))
    if key not in _kernels:
        _kernels[key] = Kernel(file, name, defines)
    return _kernels[key]


def random(*shape, scale=1.0, seed=1):
    return np.random.default_rng((seed,) + shape).standard_normal(shape) * scale


def tiles(n, defines, natural):
    """How many tiles of the row a kernel takes."""
    return max(1, -(-n // defines.get("BN", natural)))


# ---- softmax ------------------------------------------------------------------------------------

def softmax_reference(x):
    """For rows of x: softmax, log-softmax, log of the sum, and per element the relative error that exp and the sum may have:
    x - max is rounded (U |x - max|), exp has FN, a tile's sum is scaled once more for each later tile."""
    with np.errstate(all="ignore"):
        m = x.max(axis=1, keepdims=True)
        m = np.where(m == -np.inf, 0.0, m)
        d = x - m
        e = np.exp(d)
        s = e.sum(axis=1, keepdims=True)
        p = np.where(s == 0, 0.0, e / s)
        log_p = d - np.where(s == 0, 0.0, np.log(s))
        far = np.where(np.isfinite(d), np.abs(d), 0.0)
        weighted = (p * far).sum(axis=1, keepdims=True)
    return p, log_p, m, s, far, weighted


def sum_error(n, parts, weighted):
    """Relative error of the sum of exponentials of a row."""
    return U * (n + weighted) + FN + parts * (FN + 2 * U)


def judge_softmax(x, dtype, layout="dense", **defines):
    rows, n = x.shape
    xin = In(x, dtype, layout)
    p, log_p, m, s, far, weighted = softmax_reference(xin.f64())
    parts = tiles(n, defines, 8192)
    y = Out(x.shape, dtype, layout)
    launch(kernel("std/softmax.tk", "softmax", **defines), x=xin, y=y)
    relative = sum_error(n, parts, weighted) + FN + U * (far + 1)
    close(y.f64(), p, relative * p + TINY, dtype, "softmax")
    if dtype == "f32":
        sums = y.f64().sum(axis=1)
        assert ((np.abs(sums - 1) <= 2.0 ** -20) | (s[:, 0] == 0) | np.isnan(s[:, 0])).all(), f"sums {sums}"
    y = Out(x.shape, dtype, layout)
    launch(kernel("std/softmax.tk", "log_softmax", **defines), x=xin, y=y)
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(log_p), np.abs(log_p), 0.0)
        log_s = np.where(s == 0, 0.0, np.abs(np.log(s)))
        bound = sum_error(n, parts, weighted) + FN * log_s + U * (far + finite)
    close(y.f64(), log_p, bound, dtype, "log_softmax")


@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (50257,)])
def test_softmax(dtype, n):
    judge_softmax(random(3, n, scale=3.0), dtype)


@test(*[(dtype, layout, bn) for dtype in FLOATS for layout in LAYOUTS for bn in (32, 1024)])
def test_softmax_layouts(dtype, layout, bn):
    judge_softmax(random(5, 781, scale=3.0), dtype, layout, BN=bn)


def special_rows(n, dtype):
    top = {"f16": 65504.0, "bf16": 3.3e38, "f32": 3.4e38}[dtype]
    x = random(12, n)
    x[0] = -np.inf
    x[1, n // 2] = np.nan
    x[2] = 1e4
    x[3] = -1e4
    x[4, ::2] = 1e4
    x[4, 1::2] = -1e4
    x[5] = 0.25
    x[6, :-1] = -np.inf
    x[7] = -top
    x[8] = top
    x[8, ::3] = -top
    x[9, 0] = np.inf
    x[10] = -np.inf
    x[10, 0] = np.nan
    x[11, : n // 2] = -np.inf
    return x


@test(*[(dtype, n, bn) for dtype in FLOATS for n, bn in ((7, 8), (130, 32), (130, 256), (9000, 8192))])
def test_softmax_special_rows(dtype, n, bn):
    judge_softmax(special_rows(n, dtype), dtype, BN=bn)


@test()
def test_softmax_equal_rows():
    for n in (1, 2, 768, 1024):
        y = Out((2, n), "f32")
        launch(kernel("std/softmax.tk", "softmax"), x=In(np.full((2, n), 7.25), "f32"), y=y)
        equal(y.array.bits, np.full((2, n), np.float32(1) / np.float32(n)))


@test()
def test_softmax_many_rows():
    judge_softmax(random(70001, 3), "f32")


@test()
def test_softmax_same_rows_broadcast():
    row = random(1, 100).astype(np.float32)
    y = Out((40, 100), "f32")
    launch(kernel("std/softmax.tk", "softmax"), x=np.broadcast_to(row, (40, 100)), y=y)
    p, _, _, _, far, weighted = softmax_reference(row.astype(np.float64))
    close(y.f64(), p, p * (sum_error(100, 1, weighted) + FN + U * (far + 1)), "f32")


# ---- norms --------------------------------------------------------------------------------------

def layernorm_reference(x, w, b, eps, parts):
    """The mean's error: n U of the mean magnitude around the first element, and a few U a merged tile. The deviation has that and
    its own rounding; the variance twice the deviation's, weighted, and n U; rsqrt FN and half of the variance's."""
    n = x.shape[1]
    mean = x.mean(axis=1, keepdims=True)
    d = x - mean
    var = (d * d).mean(axis=1, keepdims=True)
    r = 1 / np.sqrt(var + eps)
    y = d * r * w + b
    off = np.abs(x - x[:, :1])
    mean_error = U * ((n + 3) * off.mean(axis=1, keepdims=True) + 8 * parts * off.max(axis=1, keepdims=True))
    d_error = mean_error + U * (off + np.abs(d))
    var_error = 2 * (np.abs(d) * d_error).mean(axis=1, keepdims=True) + (n + 4 + 8 * parts) * U * var
    r_error = FN + U + 0.5 * var_error / (var + eps)
    bound = np.abs(w) * (r * d_error + np.abs(d) * r * (r_error + 3 * U)) + U * (np.abs(b) + np.abs(y))
    return y, bound


def judge_layernorm(x, dtype, layout="dense", weights=True, eps=1e-5, wtype=None, **defines):
    n = x.shape[1]
    wtype = wtype or dtype
    xin, y = In(x, dtype, layout), Out(x.shape, dtype, layout)
    w = In(1 + random(n, seed=2), wtype, layout) if weights else None
    b = In(random(n, seed=3), wtype, layout) if weights else None
    args = {} if eps == 1e-5 else {"eps": eps}
    launch(kernel("std/norm.tk", "layernorm", **defines), x=xin, y=y, w=w, b=b, **args)
    want, bound = layernorm_reference(xin.f64(), w.f64() if weights else 1.0, b.f64() if weights else 0.0,
                                      float(np.float32(eps)), tiles(n, defines, 8192))
    close(y.f64(), want, bound, dtype, "layernorm")
    return y.f64()


def judge_rmsnorm(x, dtype, layout="dense", weights=True, residual=False, eps=1e-6, **defines):
    """The mean square has n U and the squares' roundings, rsqrt half of that and FN; a residual's sum is rounded itself."""
    n = x.shape[1]
    xin, y = In(x, dtype, layout), Out(x.shape, dtype, layout)
    w = In(1 + random(n, seed=2), dtype, layout) if weights else None
    res = In(random(*x.shape, seed=4), dtype, layout) if residual else None
    total = Out(x.shape, dtype, layout) if residual else None
    args = {} if eps == 1e-6 else {"eps": eps}
    launch(kernel("std/norm.tk", "rmsnorm", **defines), x=xin, y=y, w=w, residual=res, total=total, **args)
    t = xin.f64() + (res.f64() if residual else 0.0)
    r = 1 / np.sqrt((t * t).mean(axis=1, keepdims=True) + float(np.float32(eps)))
    want = t * r * (w.f64() if weights else 1.0)
    rounded = U if residual else 0.0
    parts = tiles(n, defines, 8192)
    close(y.f64(), want, np.abs(want) * (0.5 * (n + 6 + parts) * U + FN + 6 * U + 3 * rounded) + TINY, dtype, "rmsnorm")
    if residual:
        close(total.f64(), t, U * np.abs(t), dtype, "total")
    return y.f64()


@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (41, 1500, 8192, 8193, 131072)])
def test_layernorm(dtype, n):
    judge_layernorm(2 + random(3, n, scale=3.0), dtype)


@test(*[(dtype, layout, bn) for dtype in FLOATS for layout in LAYOUTS for bn in (32, 1024)])
def test_layernorm_layouts(dtype, layout, bn):
    judge_layernorm(2 + random(5, 781, scale=3.0), dtype, layout, BN=bn)


@test(*FLOATS)
def test_layernorm_without_weights(dtype):
    judge_layernorm(2 + random(5, 300), dtype, weights=False)
    judge_layernorm(2 + random(5, 300), dtype, weights=False, BN=64, eps=0.125)


@test(*FLOATS)
def test_layernorm_weights_of_another_type(dtype):
    judge_layernorm(random(5, 300), dtype, wtype="f32")


@test(*[(n, bn) for n in (2, 768, 1500, 131072) for bn in (64, 8192)])
def test_layernorm_large_mean(n, bn):
    # x = 10000 +- 1 has the variance 1, which a difference of squares would lose.
    x = np.tile(np.where(np.arange(n) % 2 == 0, 10001.0, 9999.0), (2, 1))
    y = judge_layernorm(x, "f32", weights=False, BN=bn)
    assert abs((x[0] - 1e4).var() / (y[0].var() * (1 + 1e-5)) - 1) < 1e-3
    assert np.allclose(np.abs(y), 1 / math.sqrt(1 + 1e-5), rtol=1e-5)


@test(*[(dtype, value, n, bn) for dtype, values in (("f32", (8.5e37, 3.4e38, 0.1, 1e4, -1e-30, 0.0)),
                                                   ("bf16", (8.5e37, 0.1)), ("f16", (65504.0, 0.1)))
        for value in values for n, bn in ((768, 1024), (781, 64))])
def test_layernorm_equal_row_gives_bias(dtype, value, n, bn):
    y, b = Out((2, n), dtype), In(random(n), dtype)
    launch(kernel("std/norm.tk", "layernorm", BN=bn), x=In(np.full((2, n), value), dtype), y=y,
           w=In(random(n, seed=2), dtype), b=b)
    equal(y.f64(), np.broadcast_to(b.f64(), (2, n)))


def wide_rows(dtype, n=768):
    """Rows near the type's greatest value: of mixed signs, of one sign, and of magnitudes far apart."""
    low, top = {"f16": (1.0, 65504.0), "bf16": (8e31, 3.38e38), "f32": (8e31, 3.4e38)}[dtype]
    magnitude = np.exp(np.random.default_rng(5).uniform(np.log(low), np.log(top), (3, n)))
    magnitude[2, 0] = top
    sign = np.where(random(3, n) < 0, -1.0, 1.0)
    sign[1] = 1.0
    return magnitude * sign


@test(*[(dtype, bn) for dtype in FLOATS for bn in (64, 1024)])
def test_norms_near_the_limit(dtype, bn):
    x = wide_rows(dtype)
    for result in (judge_layernorm(x, dtype, weights=False, BN=bn), judge_rmsnorm(x, dtype, weights=False, BN=bn)):
        assert np.isfinite(result).all()


@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (41, 8193, 131072)])
def test_rmsnorm(dtype, n):
    judge_rmsnorm(2 + random(3, n, scale=3.0), dtype)


@test(*[(dtype, layout, bn) for dtype in FLOATS for layout in LAYOUTS for bn in (32, 1024)])
def test_rmsnorm_layouts(dtype, layout, bn):
    judge_rmsnorm(2 + random(5, 781, scale=3.0), dtype, layout, residual=True, eps=0.5, BN=bn)


@test(*FLOATS)
def test_norms_special_rows(dtype):
    x = random(3, 100)
    x[0, 50] = np.nan
    x[1, 7] = np.inf
    for bn in (32, 128):
        for name in ("layernorm", "rmsnorm"):
            y = Out(x.shape, dtype)
            launch(kernel("std/norm.tk", name, BN=bn), x=In(x, dtype), y=y)
            got = y.f64()
            assert np.isnan(got[0]).all() and np.isnan(got[1, 7]) and np.isfinite(got[2]).all(), got


# ---- element by element -------------------------------------------------------------------------

_erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    # 0.5 x (1 + erf(x / sqrt 2)): the parenthesis has the error of erf, of its argument (at most 0.5 * 2U) and of the sum.
    "gelu": (lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))), lambda x, y: 8 * U * np.abs(x)),
    "gelu_tanh": (lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
                  lambda x, y: 8 * U * np.abs(x)),
    # sigmoid has FN, and 4 units of the least subnormal where it is that small.
    "silu": (lambda x: x * sigmoid(x), lambda x, y: (FN + 2 * U) * np.abs(y) + 4 * TINY * np.abs(x)),
    "relu": (lambda x: np.maximum(x, 0.0), lambda x, y: 0.0),
}


def activation_inputs(dtype):
    top = {"f16": 6e4, "bf16": 1e38, "f32": 1e38}[dtype]
    x = random(5, 1500, scale=3.0)
    x[0, :8] = [0.0, -0.0, top, -top, 1e4, -1e4, 88.0, -104.0]
    x[4] = np.linspace(-12, 12, 1500)
    return x


@test(*[(dtype, name, layout) for dtype in FLOATS for name in ACTIVATIONS for layout in ("gap", "transposed")])
def test_activation(dtype, name, layout):
    xin, y = In(activation_inputs(dtype), dtype, layout), Out((5, 1500), dtype, layout)
    launch(kernel("std/activation.tk", name + "_forward"), x=xin, y=y)
    function, bound = ACTIVATIONS[name]
    x = xin.f64()
    want = function(x)
    close(y.f64(), want, bound(x, want), dtype, name)


@test()
def test_activation_by_define():
    x, y = In(random(2, 70), "f32"), Out((2, 70), "f32")
    launch(kernel("std/activation.tk", "activation", f="relu", BN=16), x=x, y=y)
    equal(y.f64(), np.maximum(x.f64(), 0.0))


@test(*[(dtype, layout) for dtype in FLOATS for layout in LAYOUTS])
def test_swiglu(dtype, layout):
    gate, up = In(activation_inputs(dtype), dtype, layout), In(random(5, 1500, seed=2), dtype, layout)
    y = Out((5, 1500), dtype, layout)
    launch(kernel("std/activation.tk", "swiglu"), gate=gate, up=up, y=y)
    g, u = gate.f64(), up.f64()
    want = g * sigmoid(g) * u
    close(y.f64(), want, (FN + 4 * U) * np.abs(want) + 4 * TINY * np.abs(g * u), dtype, "swiglu")


# ---- cross-entropy ------------------------------------------------------------------------------

def judge_cross_entropy(x, target, dtype, itype="i64", ignore=-100, layout="dense", **defines):
    rows, n = x.shape
    xin, t, loss = In(x, dtype, layout), In(np.asarray(target), itype, layout), Out((rows,), "f32", layout)
    args = {} if ignore == -100 else {"ignore": ignore}
    launch(kernel("std/cross_entropy.tk", "cross_entropy", **defines), x=xin, target=t, loss=loss, **args)
    _, log_p, m, s, far, weighted = softmax_reference(xin.f64())
    target = np.asarray(target)
    valid = (target >= 0) & (target < n)
    at = np.where(valid, target, 0)[:, None]
    with np.errstate(all="ignore"):
        want = -np.take_along_axis(log_p, at, 1)
        bound = sum_error(n, tiles(n, defines, 8192), weighted) + FN * np.abs(np.log(s)) \
            + U * (np.take_along_axis(far, at, 1) + np.abs(want))
    want = np.where(target == ignore, 0.0, np.where(valid, want[:, 0], np.nan))
    close(loss.f64(), want, np.nan_to_num(bound[:, 0], posinf=0.0), "f32", "loss")


@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (50257, 131072)])
def test_cross_entropy(dtype, n):
    target = np.random.default_rng(n).integers(0, n, 5)
    target[0], target[-1] = 0, n - 1
    judge_cross_entropy(random(5, n, scale=4.0), target, dtype)


@test(*[(itype, layout, bn) for itype in ("i32", "i64", "i16") for layout in LAYOUTS for bn in (32, 1024)])
def test_cross_entropy_targets(itype, layout, bn):
    # The ignored index, no classes on both sides, and the least value of the type.
    target = [0, 99, -100, 100, -1, 50, np.iinfo(tkclib.STORAGE[itype]).min, np.iinfo(tkclib.STORAGE[itype]).max]
    judge_cross_entropy(random(8, 100), target, "f32", itype, layout=layout, BN=bn)
    judge_cross_entropy(random(8, 100), target, "f32", itype, ignore=50, layout=layout, BN=bn)


@test()
def test_cross_entropy_64_bit_targets_do_not_wrap():
    judge_cross_entropy(random(3, 10), [2 ** 32 + 3, -(2 ** 32) + 3, 3], "f32")


@test()
def test_cross_entropy_sure_row():
    # The loss of a nearly certain class far from 0 keeps its digits: 100 - 10000 must not come from (10000 + ..) - 10000.
    x = np.full((2, 64), 9990.0)
    x[:, 5] = 1e4
    judge_cross_entropy(x, [5, 6], "f32")
    judge_cross_entropy(x, [5, 6], "f32", BN=16)


# ---- sums along rows ----------------------------------------------------------------------------

@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (50257,)])
def test_cumsum(dtype, n):
    for name, defines in (("inclusive", {}), ("exclusive", {"EXCLUSIVE": True})):
        xin, y = In(random(3, n), dtype), Out((3, n), dtype)
        launch(kernel("std/scan.tk", "cumsum_rows", **defines), x=xin, y=y)
        x = xin.f64()
        if name == "exclusive":
            x = np.concatenate([np.zeros((3, 1)), x[:, :-1]], axis=1)
        terms = np.arange(1, n + 1)
        close(y.f64(), np.cumsum(x, axis=1), (terms + 1) * U * np.cumsum(np.abs(x), axis=1), dtype, name)


@test(*[(dtype, accumulate, layout) for dtype, accumulate in (
    ("i32", "i32"), ("i8", "i32"), ("u8", "i64"), ("i64", "i64"), ("f16", "f32"), ("bf16", "f32"), ("f32", "f32"),
    ("f64", "f64")) for layout in LAYOUTS])
def test_cumsum_exact(dtype, accumulate, layout):
    x = np.random.default_rng(6).integers(0, 4, (4, 781))
    for exclusive in (False, True):
        y = Out(x.shape, accumulate, layout)
        launch(kernel("std/scan.tk", "cumsum_rows", A=accumulate, BN=64, EXCLUSIVE=exclusive), x=In(x, dtype, layout), y=y)
        want = np.cumsum(x, axis=1)
        equal(y.array.bits, want - x if exclusive else want)


@test()
def test_cumsum_wraps():
    x = np.full((1, 600), 2 ** 30, np.int32)
    y = Out(x.shape, "i32")
    launch(kernel("std/scan.tk", "cumsum_rows", A="i32", BN=64), x=x, y=y)
    equal(y.array.bits, np.cumsum(x, axis=1, dtype=np.int32))


@test()
def test_cumsum_wide_rows():
    x = np.random.default_rng(7).integers(-3, 4, (2, 131072))
    y = Out(x.shape, "f32")
    launch(kernel("std/scan.tk", "cumsum_rows"), x=In(x, "f32"), y=y)
    equal(y.f64(), np.cumsum(x, axis=1))


# ---- the greatest elements ----------------------------------------------------------------------

def order(x):
    """For each row the places of its elements, the greatest first: a NaN is greatest, equals by their place."""
    key = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x.astype(object)
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    places = [sorted(range(x.shape[1]), key=lambda j: (not nan[i, j], -key[i, j], j)) for i in range(x.shape[0])]
    return np.array(places).reshape(x.shape)


def values_of(dtype, shape):
    rng = np.random.default_rng(8)
    if dtype in FLOATS + ("f64",):
        x = rng.standard_normal(shape)
        x[:, 3::7] = np.round(x[:, 3::7])
        return x
    info = np.iinfo(tkclib.STORAGE[dtype])
    x = rng.integers(max(info.min, -50), min(info.max, 50), shape)
    x[0] = info.min
    return x


def native(a):
    """The values of an Array in a NumPy type that holds them."""
    return a.f64() if a.dtype in ("bf16", "f16", "f32", "f64") else a.bits


@test(*[(dtype, n) for dtype in FLOATS + ("f64", "i32", "i8", "u8", "i64") for n in (4, 127, 1023, 4097, 9000)])
def test_argmax(dtype, n):
    xin, index = In(values_of(dtype, (5, n)), dtype, "gap"), Out((5,), "i32")
    want = order(native(xin.array))[:, 0]
    for defines in ({}, {"BN": 32}):
        launch(kernel("std/select.tk", "argmax_rows", **defines), x=xin, index=index)
        equal(index.array.bits, want)


NAN, INF = np.nan, np.inf


@test(*[(dtype, bn) for dtype in FLOATS for bn in (1, 2, 4, 64)])
def test_argmax_special_rows(dtype, bn):
    rows = [[NAN, 6, 8, 1, 2], [6, NAN, 8, 1, 2], [INF, NAN, 0, NAN, INF], [NAN] * 5, [-INF] * 5, [0.0, -0.0, 0.0, 0.0, 0.0],
            [1, 2, 3, 3, 3], [3, 3, 3, 3, 4], [-INF, -INF, -1, -INF, -1], [-3, -2, -1, -2, -1], [1, 2, NAN, 5, NAN]]
    x, index = np.array(rows), Out((len(rows),), "i32")
    launch(kernel("std/select.tk", "argmax_rows", BN=bn), x=In(x, dtype), index=index)
    equal(index.array.bits, order(x)[:, 0])


@test(*LAYOUTS)
def test_argmax_layouts(layout):
    xin, index = In(values_of("f32", (7, 300)), "f32", layout), Out((7,), "i32", layout)
    launch(kernel("std/select.tk", "argmax_rows", BN=64), x=xin, index=index)
    equal(index.array.bits, order(xin.f64())[:, 0])


def judge_topk(x, dtype, k, layout="dense", **defines):
    xin = In(x, dtype, layout)
    values, index = Out((x.shape[0], k), dtype, layout), Out((x.shape[0], k), "i32", layout)
    launch(kernel("std/select.tk", "topk_rows", K=k, **defines), x=xin, values=values, index=index)
    native_x = native(xin.array)
    want = order(native_x)[:, :k]
    equal(index.array.bits, want, "index")
    equal(native(values.array), np.take_along_axis(native_x, want, 1), "values")


@test(*[(dtype, k, n) for dtype in FLOATS + ("f64", "i32", "i8", "u8") for k in (1, 4, 32) for n in (32, 127, 1023, 4097)])
def test_topk(dtype, k, n):
    judge_topk(values_of(dtype, (3, n)), dtype, k)


@test(*[(layout, k, bn) for layout in LAYOUTS for k in (1, 3, 32) for bn in (32, 64, 512)])
def test_topk_tiles(layout, k, bn):
    judge_topk(values_of("f32", (4, 300)), "f32", k, layout, BN=bn)


@test(*[(dtype, bn) for dtype in FLOATS for bn in (4, 8, 1024)])
def test_topk_special_rows(dtype, bn):
    judge_topk(np.array([[INF, 3.14, NAN, -1], [NAN] * 4, [-INF] * 4, [1, 1, 1, 1], [-INF, NAN, -INF, NAN]]), dtype, 4, BN=bn)
    x = random(2, 512)
    x[0, ::31] = NAN
    assert np.isnan(x[0]).sum() == 17
    x[1, :500] = -INF
    judge_topk(x, dtype, 4, BN=bn)
    judge_topk(x, dtype, 32, BN=max(bn, 32))


@test()
def test_topk_more_than_there_is():
    x = In(random(2, 3), "f32")
    refused(lambda: launch(kernel("std/select.tk", "topk_rows", K=4), x=x, values=Out((2, 4), "f32"), index=Out((2, 4), "i32")),
            "K <= N")


# ---- dropout and transpose ----------------------------------------------------------------------

def philox(seed, offset):
    """Word 0 of Philox 4x32-10 with the key seed and the counter (offset, 0), vectorised; written from the paper's constants."""
    mask = np.uint64(0xFFFFFFFF)
    c = [offset & mask, offset >> np.uint64(32), np.zeros_like(offset), np.zeros_like(offset)]
    k0, k1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & mask, (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0]


@test()
def test_philox_known_answer():
    assert philox(0, np.zeros(1, np.uint64))[0] == 0x6627E8D5


@test(*[(dtype, p, seed, layout) for dtype in FLOATS for p in (0.0, 0.1, 0.5, 1.0) for seed in (0, 42, -(2 ** 62) + 5)
        for layout in ("dense", "negative")])
def test_dropout(dtype, p, seed, layout):
    shape = (9, 1500)
    xin, y = In(random(*shape), dtype, layout), Out(shape, dtype, layout)
    launch(kernel("std/dropout.tk", "dropout"), x=xin, y=y, p=p, seed=seed)
    number = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
    uniform = ((philox(seed, number) >> np.uint64(8)).astype(np.float32)) * np.float32(2.0 ** -24)
    keep = uniform >= np.float32(p)
    with np.errstate(all="ignore"):
        scaled = xin.f64().astype(np.float32) / (np.float32(1) - np.float32(p))
    want = tkclib.array(np.where(keep, scaled, np.float32(0)), dtype)
    equal(y.f64(), want.f64())
    n = keep.size
    assert abs(keep.mean() - (1 - p)) <= 5 * math.sqrt(p * (1 - p) / n), keep.mean()
    again = Out(shape, dtype, layout)
    launch(kernel("std/dropout.tk", "dropout", BN=64), x=xin, y=again, p=p, seed=seed)
    equal(again.f64(), want.f64(), "another tile size")


@test(*[(dtype, layout) for dtype in tkclib.NAMES for layout in LAYOUTS])
def test_transpose(dtype, layout):
    rng = np.random.default_rng(9)
    for shape in ((1, 1), (3, 5), (65, 130), (127, 64)):
        bits = rng.integers(0, 2 if dtype == "bool" else 256, shape + (np.dtype(tkclib.STORAGE[dtype]).itemsize,), np.uint8)
        x = tkclib.Array(bits.view(tkclib.STORAGE[dtype])[..., 0], dtype)
        xin, y = In(x, dtype, layout), Out(shape[::-1], dtype, layout)
        launch(kernel("std/transpose.tk", "transpose_matrix"), x=xin, y=y)
        assert np.ascontiguousarray(y.array.bits).tobytes() == np.ascontiguousarray(x.bits.T).tobytes()


# ---- nothing to do ------------------------------------------------------------------------------

EMPTY = ((0, 5), (5, 0), (0, 0))


@test(*[(str(shape), file, name) for shape in EMPTY for file, name in (
    ("softmax", "softmax"), ("softmax", "log_softmax"), ("norm", "layernorm"), ("norm", "rmsnorm"), ("activation", "gelu_forward"),
    ("scan", "cumsum_rows"), ("dropout", "dropout"))])
def test_empty(shape, file, name):
    shape = eval(shape)
    args = {"p": 0.5, "seed": 1} if name == "dropout" else {}
    launch(kernel(f"std/{file}.tk", name), x=In(np.zeros(shape), "f32"), y=Out(shape, "f32"), **args)


@test(*[str(shape) for shape in EMPTY])
def test_empty_others(shape):
    m, n = shape = eval(shape)
    x = In(np.zeros(shape), "f32")
    launch(kernel("std/transpose.tk", "transpose_matrix"), x=x, y=Out((n, m), "f32"))
    launch(kernel("std/activation.tk", "swiglu"), gate=x, up=In(np.zeros(shape), "f32"), y=Out(shape, "f32"))
    loss, index = Out((m,), "f32"), Out((m,), "i32")
    launch(kernel("std/cross_entropy.tk", "cross_entropy"), x=x, target=In(np.zeros(m), "i64"), loss=loss)
    launch(kernel("std/select.tk", "argmax_rows"), x=x, index=index)
    if n == 0:
        assert np.isnan(loss.f64()).all() and (index.array.bits == -1).all()


if __name__ == "__main__":
    main()
