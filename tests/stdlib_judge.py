# SPDX-License-Identifier: Apache-2.0
# The shipped kernels' float64 references, with what their results may be off: each bound is worked out from how the kernel computes.
# judge.py says what U, FN and the rounding of the output are. Each judge_... function launches a kernel and judges it.
import math

import numpy as np

import tkclib
from judge import FN, In, Out, TINY, U, close, equal, launch

FLOATS = ("f32", "f16", "bf16")
MATMUL = "std/matmul.tk"
ATTENTION = "std/attention.tk"
make = tkclib.Kernel  # how a kernel is had; what it gives is called like a tkclib.Kernel
_kernels = {}


def kernel(file, name, **defines):
    """One kernel for each set of defines: its variants are kept."""
    key = (file, name, tuple(sorted(defines.items())))
    if key not in _kernels:
        _kernels[key] = make(file, name, defines)
    return _kernels[key]


def random(*shape, scale=1.0, seed=1):
    return np.random.default_rng((seed,) + shape).standard_normal(shape) * scale


def tiles(n, defines, natural):
    """How many tiles of the row a kernel takes."""
    return max(1, -(-n // defines.get("BN", natural)))


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


def exp_loss(dtype):
    """What exp of x - max is off for each U |x - max|: the difference's rounding, and for types narrower than f32 the product's with
    log2 e and that number's own."""
    return 1.0 if dtype == "f32" else 2.5


def sum_error(n, parts, weighted, loss=1.0):
    """Relative error of the sum of exponentials of a row."""
    return U * (n + loss * weighted) + FN + parts * (FN + 2 * U)


def judge_softmax(x, dtype, layout="dense", **defines):
    rows, n = x.shape
    xin = In(x, dtype, layout)
    p, log_p, m, s, far, weighted = softmax_reference(xin.f64())
    parts = tiles(n, defines, 16384)
    y = Out(x.shape, dtype, layout)
    launch(kernel("std/softmax.tk", "softmax", **defines), x=xin, y=y)
    loss = exp_loss(dtype)
    relative = sum_error(n, parts, weighted, loss) + FN + U * (loss * far + 1)
    close(y.f64(), p, relative * p + (TINY if dtype == "f32" else 2.0 ** -126), dtype, "softmax")
    if dtype == "f32":
        sums = y.f64().sum(axis=1)
        assert ((np.abs(sums - 1) <= 2.0 ** -20) | (s[:, 0] == 0) | np.isnan(s[:, 0])).all(), f"sums {sums}"
    y = Out(x.shape, dtype, layout)
    launch(kernel("std/softmax.tk", "log_softmax", **defines), x=xin, y=y)
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(log_p), np.abs(log_p), 0.0)
        log_s = np.where(s == 0, 0.0, np.abs(np.log(s)))
        bound = sum_error(n, parts, weighted, loss) + FN * log_s + U * (far + finite)
    close(y.f64(), log_p, bound, dtype, "log_softmax")


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
                                      float(np.float32(eps)), tiles(n, defines, 16384))
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
    parts = tiles(n, defines, 16384)
    close(y.f64(), want, np.abs(want) * (0.5 * (n + 6 + parts) * U + FN + 6 * U + 3 * rounded) + TINY, dtype, "rmsnorm")
    if residual:
        close(total.f64(), t, U * np.abs(t), dtype, "total")
    return y.f64()


def layernorm_backward_reference(x, dy, w, eps, parts):
    """dx, dw, db and their bounds. u, the normalised x, has the forward pass's error; the means over a row have n U of their terms'
    magnitudes, and what u is off; r has FN, and what the variance is off, as in the forward pass. The sums over rows have a U for each
    row, and what u is off."""
    m, n = x.shape
    mean = x.mean(axis=1, keepdims=True)
    var = x.var(axis=1, keepdims=True)
    r = 1 / np.sqrt(var + eps)
    u, u_error = layernorm_reference(x, 1.0, 0.0, eps, parts)
    g = dy * w
    mean_g, mean_gu = g.mean(axis=1, keepdims=True), (g * u).mean(axis=1, keepdims=True)
    mean_g_error = (n + 2) * U * np.abs(g).mean(axis=1, keepdims=True)
    mean_gu_error = ((n + 3) * U * np.abs(g * u) + np.abs(g) * u_error).mean(axis=1, keepdims=True)
    inner = g - mean_g - u * mean_gu
    inner_error = mean_g_error + np.abs(u) * mean_gu_error + u_error * (np.abs(mean_gu) + mean_gu_error) \
        + 4 * U * (np.abs(g) + np.abs(mean_g) + np.abs(u * mean_gu))
    d = x - mean
    off = np.abs(x - x[:, :1])
    d_error = U * ((n + 3) * off.mean(axis=1, keepdims=True) + 8 * parts * off.max(axis=1, keepdims=True) + off + np.abs(d))
    var_error = 2 * (np.abs(d) * d_error).mean(axis=1, keepdims=True) + (n + 4 + 8 * parts) * U * var
    dx = inner * r
    dx_error = r * inner_error + np.abs(dx) * (FN + 3 * U + 0.5 * var_error / (var + eps)) + TINY
    dw, dw_error = (dy * u).sum(axis=0), ((m + 2) * U * np.abs(dy * u) + np.abs(dy) * u_error).sum(axis=0)
    db, db_error = dy.sum(axis=0), (m + 2) * U * np.abs(dy).sum(axis=0)
    return (dx, dx_error), (dw, dw_error), (db, db_error)


def judge_layernorm_backward(x, dtype, layout="dense", weights=True, programs=4, eps=1e-5, wtype=None, **defines):
    m, n = x.shape
    wtype = wtype or dtype
    xin, dy, dx = In(x, dtype, layout), In(random(m, n, seed=6), dtype, layout), Out((m, n), dtype, layout)
    w = In(1 + random(n, seed=2), wtype, layout) if weights else None
    dw_part, db_part = Out((programs, n), "f32", layout), Out((programs, n), "f32", layout)
    dw, db = Out((n,), wtype, layout), Out((n,), wtype, layout)
    args = {} if eps == 1e-5 else {"eps": eps}
    types = {} if weights else {"W": wtype}
    launch(kernel("std/norm_backward.tk", "layernorm_backward", **types, **defines), x=xin, dy=dy, dx=dx, dw_part=dw_part, db_part=db_part,
           w=w, **args)
    launch(kernel("std/norm_backward.tk", "layernorm_backward_sum"), dw_part=dw_part, db_part=db_part, dw=dw, db=db)
    want = layernorm_backward_reference(xin.f64(), dy.f64(), w.f64() if weights else 1.0, float(np.float32(eps)),
                                        tiles(n, defines, 16384))
    for got, (value, bound), dtype_, name in zip((dx, dw, db), want, (dtype, wtype, wtype), ("dx", "dw", "db")):
        close(got.f64(), value, bound, dtype_, name)


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


def judge_activation(x, dtype, name, layout="dense"):
    xin, y = In(x, dtype, layout), Out(x.shape, dtype, layout)
    launch(kernel("std/activation.tk", name + "_forward"), x=xin, y=y)
    function, bound = ACTIVATIONS[name]
    want = function(xin.f64())
    close(y.f64(), want, bound(xin.f64(), want), dtype, name)


def judge_swiglu(x, dtype, layout="dense"):
    """silu and one multiplication more."""
    gate, up, y = In(x, dtype, layout), In(random(*x.shape, seed=2), dtype, layout), Out(x.shape, dtype, layout)
    launch(kernel("std/activation.tk", "swiglu"), gate=gate, up=up, y=y)
    g, u = gate.f64(), up.f64()
    want = g * sigmoid(g) * u
    close(y.f64(), want, (FN + 4 * U) * np.abs(want) + 4 * TINY * np.abs(g * u), dtype, "swiglu")


def judge_binary(x, dtype, layout="dense", **defines):
    for name, function in (("add", np.add), ("multiply", np.multiply)):
        xin, yin, z = In(x, dtype, layout), In(random(*x.shape, seed=2), dtype, layout), Out(x.shape, dtype, layout)
        launch(kernel("std/elementwise.tk", name, **defines), x=xin, y=yin, z=z)
        want = function(xin.f64(), yin.f64())
        close(z.f64(), want, U * np.abs(want), dtype, name)


def judge_reduce(x, dtype, layout="dense", **defines):
    """A sum has n U; the greatest is exact, and a NaN wherever there is one."""
    xin, s, m = In(x, dtype, layout), Out((x.shape[0],), "f32", layout), Out((x.shape[0],), dtype, layout)
    launch(kernel("std/reduce.tk", "sum_rows", **defines), x=xin, y=s)
    launch(kernel("std/reduce.tk", "max_rows", **defines), x=xin, y=m)
    with np.errstate(all="ignore"):
        close(s.f64(), xin.f64().sum(axis=1), x.shape[1] * U * np.abs(xin.f64()).sum(axis=1), "f32", "sum")
    equal(m.f64(), xin.f64().max(axis=1, initial=-np.inf))


def judge_cumsum(x, dtype):
    """n terms, and a tile's sum on top."""
    for name, defines in (("inclusive", {}), ("exclusive", {"EXCLUSIVE": True})):
        xin, y = In(x, dtype), Out(x.shape, dtype)
        launch(kernel("std/scan.tk", "cumsum_rows", **defines), x=xin, y=y)
        terms = xin.f64()
        if name == "exclusive":
            terms = np.concatenate([np.zeros((x.shape[0], 1)), terms[:, :-1]], axis=1)
        count = np.arange(2, x.shape[1] + 2)
        close(y.f64(), np.cumsum(terms, axis=1), count * U * np.cumsum(np.abs(terms), axis=1), dtype, name)


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
        bound = sum_error(n, tiles(n, defines, 8192), weighted, exp_loss(dtype)) + FN * np.abs(np.log(s)) \
            + U * (np.take_along_axis(far, at, 1) + np.abs(want))
    want = np.where(target == ignore, 0.0, np.where(valid, want[:, 0], np.nan))
    close(loss.f64(), want, np.nan_to_num(bound[:, 0], posinf=0.0), "f32", "loss")


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


def judge_argmax(x, dtype, layout="dense", **defines):
    xin, index = In(x, dtype, layout), Out((x.shape[0],), "i32", layout)
    launch(kernel("std/select.tk", "argmax_rows", **defines), x=xin, index=index)
    equal(index.array.bits, order(native(xin.array))[:, 0])


def judge_topk(x, dtype, k, layout="dense", **defines):
    xin = In(x, dtype, layout)
    values, index = Out((x.shape[0], k), dtype, layout), Out((x.shape[0], k), "i32", layout)
    launch(kernel("std/select.tk", "topk_rows", K=k, **defines), x=xin, values=values, index=index)
    native_x = native(xin.array)
    want = order(native_x)[:, :k]
    equal(index.array.bits, want, "index")
    equal(native(values.array), np.take_along_axis(native_x, want, 1), "values")


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


def uniform(seed, shape):
    """rand(seed, number) for each element's row-major number."""
    number = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return (philox(seed, number) >> np.uint64(8)).astype(np.float32) * np.float32(2.0 ** -24)


def judge_dropout(x, dtype, p, seed, layout="dense", **defines):
    """Every element exactly, and the rate within 5 standard deviations."""
    xin, y = In(x, dtype, layout), Out(x.shape, dtype, layout)
    launch(kernel("std/dropout.tk", "dropout", **defines), x=xin, y=y, p=p, seed=seed)
    keep = uniform(seed, x.shape) >= np.float32(p)
    with np.errstate(all="ignore"):
        scaled = xin.f64().astype(np.float32) / (np.float32(1) - np.float32(p))
    equal(y.f64(), tkclib.array(np.where(keep, scaled, np.float32(0)), dtype).f64())
    assert abs(keep.mean() - (1 - p)) <= 5 * math.sqrt(p * (1 - p) / keep.size), keep.mean()


def judge_transpose(shape, dtype, layout="dense"):
    """Every bit pattern of every type."""
    size = np.dtype(tkclib.STORAGE[dtype]).itemsize
    bits = np.random.default_rng(9).integers(0, 2 if dtype == "bool" else 256, shape + (size,), np.uint8)
    x = tkclib.Array(bits.view(tkclib.STORAGE[dtype])[..., 0], dtype)
    y = Out(shape[::-1], dtype, layout)
    launch(kernel("std/transpose.tk", "transpose_matrix"), x=In(x, dtype, layout), y=y)
    assert np.ascontiguousarray(y.array.bits).tobytes() == np.ascontiguousarray(x.bits.T).tobytes()


def judge_matmul(dtype, m, n, k, layouts=("dense", "dense", "dense"), bias=None, source=MATMUL, out=None, **defines):
    """A sum of k terms and the bias: (k + 1) U sum|term|."""
    out = out or dtype
    a, b = In(random(m, k), dtype, layouts[0]), In(random(k, n, seed=2), dtype, layouts[1])
    c = Out((m, n), out, layouts[2])
    add = In(random(n, seed=3), bias, layouts[0]) if bias else None
    launch(kernel(source, "matmul", **defines), a=a, b=b, c=c, bias=add)
    unit = 2.0 ** -53 if dtype == "f64" else U
    want = a.f64() @ b.f64() + (add.f64() if bias else 0.0)
    terms = np.abs(a.f64()) @ np.abs(b.f64()) + (np.abs(add.f64()) if bias else 0.0)
    close(c.f64(), want, (k + 1) * unit * terms * (2 if dtype == "f64" else 1), out, "matmul")


def attention_reference(q, k, v, scale, dtype, score=None, mask=None):
    """o, lse and their bounds. A score has (D + 2) U sum|q k| scale, a score function 4 U of its terms. A probability has that,
    U |s - max| and FN, its tile FN for each tile after it; p is rounded to the type before it multiplies v (for f16 to
    2^-25 where small); the sums have N U."""
    B, H, M, D = q.shape
    HK, N = k.shape[1:3]
    k, v = (np.repeat(t, H // HK, axis=1) for t in (k, v))
    scale = float(np.float32(scale))
    s = np.einsum("bhmd,bhnd->bhmn", q, k) * scale
    error = (D + 2) * U * np.einsum("bhmd,bhnd->bhmn", np.abs(q), np.abs(k)) * abs(scale)
    place = np.ix_(range(B), range(H), range(N - M, N), range(N))
    if score:
        changed = score(s, *place)
        error = error + 4 * U * (np.abs(s) + np.abs(changed - s))
        s = changed
    if mask:
        s = np.where(np.broadcast_to(mask(*place), s.shape), s, -np.inf)
    m = s.max(axis=3, keepdims=True, initial=-np.inf)
    base = np.where(m == -np.inf, 0.0, m)
    p = np.exp(s - base)
    l = p.sum(axis=3, keepdims=True)
    none = l == 0
    l1 = np.where(none, 1.0, l)
    o = np.einsum("bhmn,bhnd->bhmd", p, v) / l1
    far = np.where(p > 0, np.where(np.isfinite(s), np.abs(s - base), 0.0), 0.0)
    each = np.where(p > 0, error + U * far + FN, 0.0) + (N / 16 + 1) * 2 * FN + N * U
    rounded = {"f16": 2.0 ** -11, "bf16": 2.0 ** -8, "f32": 0.0}[dtype]
    size = np.einsum("bhmn,bhnd->bhmd", p * (each + rounded), np.abs(v)) / l1
    weighted = (p * each).sum(axis=3, keepdims=True) / l1
    small = 2.0 ** -25 * np.abs(v).sum(axis=2, keepdims=True) / l1 if dtype == "f16" else 0.0
    with np.errstate(divide="ignore"):
        lse = np.where(none, -np.inf, m + np.log(l))[..., 0]
        lse_bound = np.where(none, 0.0, weighted + FN * np.abs(np.log(l1)) + U * np.abs(np.where(none, 0.0, m)))[..., 0]
    return o, size + np.abs(o) * (weighted + 4 * U) + small, lse, lse_bound


def inputs(dtype, B, H, HK, M, N, D, layout="dense", seed=1):
    return (In(random(B, H, M, D, seed=seed), dtype, layout), In(random(B, HK, N, D, seed=seed + 1), dtype, layout),
            In(random(B, HK, N, D, seed=seed + 2), dtype, layout))


def judge_attention(k_, dtype, B, H, HK, M, N, D, layout="dense", score=None, mask=None, scale=None, lse=True, seed=1, **more):
    q, k, v = inputs(dtype, B, H, HK, M, N, D, layout, seed)
    scale = scale if scale is not None else 1 / math.sqrt(D)
    o, l = Out((B, H, M, D), dtype, layout), Out((B, H, M), "f32") if lse else None
    launch(k_, q=q, k=k, v=v, o=o, scale=scale, lse=l, **more)
    want, bound, want_l, bound_l = attention_reference(q.f64(), k.f64(), v.f64(), scale, dtype, score, mask)
    close(o.f64(), want, bound, dtype, "o")
    if lse:
        close(l.f64(), want_l, bound_l, "f32", "lse")
