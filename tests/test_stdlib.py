# SPDX-License-Identifier: Apache-2.0
# The shipped kernels along rows (softmax, norms, cross-entropy, sums, argmax, top-k) and element by element, against float64.
# The references and their bounds are in stdlib_judge.py.
import math

import numpy as np

import tkclib
from judge import FN, In, LAYOUTS, Out, U, close, equal, launch, main, refused, test
from stdlib_judge import (
    ACTIVATIONS, FLOATS, activation_inputs, judge_activation, judge_argmax, judge_binary, judge_cross_entropy, judge_cumsum, judge_dropout,
    judge_layernorm, judge_layernorm_backward, judge_reduce, judge_rmsnorm, judge_softmax, judge_swiglu, judge_topk, judge_transpose, kernel, philox, random,
    softmax_reference, sum_error, uniform, values_of)

COLUMNS = (1, 3, 127, 781, 1023, 4097)


# ---- softmax ------------------------------------------------------------------------------------

@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (5000, 50257, 131072, 262144)])
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

@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (41, 1500, 5000, 8192, 8193, 65537, 131072, 262144)])
def test_layernorm(dtype, n):
    judge_layernorm(2 + random(3, n, scale=3.0), dtype)


@test(*[(dtype, layout, bn) for dtype in FLOATS for layout in LAYOUTS for bn in (32, 1024)])
def test_layernorm_layouts(dtype, layout, bn):
    judge_layernorm(2 + random(5, 781, scale=3.0), dtype, layout, BN=bn)


@test(*FLOATS)
def test_layernorm_without_weights(dtype):
    judge_layernorm(2 + random(5, 300), dtype, weights=False)
    judge_layernorm(2 + random(5, 300), dtype, weights=False, BN=64, eps=0.125)
    judge_layernorm(2 + random(5, 300), dtype, weights=False, eps=0.0)


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


@test(*[(dtype, size, bn) for dtype in ("f32", "bf16") for size in (1e12, 2e12, 1e13, 1e20) for bn in (64, 1024)])
def test_norms_of_large_rows(dtype, size, bn):
    # Around where rows begin to be scaled, and eps with them; small elements of a large row keep their digits in rmsnorm.
    x = random(3, 781, scale=size)
    judge_layernorm(x, dtype, BN=bn)
    x[:, 1::2] *= np.exp(np.random.default_rng(3).uniform(-70, 0, (3, 390)))
    judge_rmsnorm(x, dtype, BN=bn)


@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (41, 5000, 8193, 131072)])
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


@test(*[(dtype, n) for dtype in FLOATS for n in (1, 127, 1023, 16385)])
def test_layernorm_backward(dtype, n):
    judge_layernorm_backward(2 + random(9, n, scale=3.0), dtype)
    judge_layernorm_backward(2 + random(9, n, scale=3.0), dtype, weights=False, eps=0.25)


@test(*[(dtype, layout, bn) for dtype in FLOATS for layout in LAYOUTS for bn in (32, 1024)])
def test_layernorm_backward_layouts(dtype, layout, bn):
    judge_layernorm_backward(2 + random(5, 300, scale=3.0), dtype, layout, wtype="f32", BN=bn)


@test(1, 2, 16, 17, 70)
def test_layernorm_backward_programs(programs):
    judge_layernorm_backward(random(33, 200), "bf16", programs=programs)


@test(32, 1024)
def test_layernorm_backward_of_large_rows(bn):
    judge_layernorm_backward(random(3, 300, scale=1e13), "f32", BN=bn)


# ---- element by element -------------------------------------------------------------------------

@test(*[(dtype, name, layout) for dtype in FLOATS for name in ACTIVATIONS for layout in ("gap", "transposed")])
def test_activation(dtype, name, layout):
    judge_activation(activation_inputs(dtype), dtype, name, layout)


@test()
def test_activation_by_define():
    x, y = In(random(2, 70), "f32"), Out((2, 70), "f32")
    launch(kernel("std/activation.tk", "activation", f="relu", BN=16), x=x, y=y)
    equal(y.f64(), np.maximum(x.f64(), 0.0))


@test(*[(dtype, layout) for dtype in FLOATS for layout in LAYOUTS])
def test_swiglu(dtype, layout):
    judge_swiglu(activation_inputs(dtype), dtype, layout)


@test(*[(dtype, layout) for dtype in FLOATS for layout in LAYOUTS])
def test_binary(dtype, layout):
    judge_binary(random(5, 1500), dtype, layout)
    judge_binary(random(3, 70), dtype, layout, BN=16)


# ---- cross-entropy ------------------------------------------------------------------------------

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


@test(*[(dtype, n, bn) for dtype in FLOATS for n, bn in ((130, 32), (130, 256))])
def test_cross_entropy_special_rows(dtype, n, bn):
    for target in (0, 1, n - 1):
        judge_cross_entropy(special_rows(n, dtype), [target] * 12, dtype, BN=bn)


@test()
def test_cross_entropy_64_bit_targets_do_not_wrap():
    judge_cross_entropy(random(3, 10), [2 ** 32 + 3, -(2 ** 32) + 3, 3], "f32")


@test()
def test_cross_entropy_sure_row():
    # The small loss of a nearly certain class keeps its digits though the logits are great.
    x = np.full((2, 64), 9990.0)
    x[:, 5] = 1e4
    judge_cross_entropy(x, [5, 6], "f32")
    judge_cross_entropy(x, [5, 6], "f32", BN=16)


# ---- sums along rows ----------------------------------------------------------------------------

@test(*[(dtype, layout) for dtype in FLOATS for layout in LAYOUTS])
def test_reduce(dtype, layout):
    x = random(4, 781)
    x[1, 300], x[2] = np.nan, -np.inf
    for bn in (32, 1024):
        judge_reduce(x, dtype, layout, BN=bn)
    judge_reduce(random(3, 5000), dtype, layout)


@test(*[(dtype, accumulate) for dtype, accumulate in (("i32", "i32"), ("i8", "i32"), ("u8", "i64"), ("i64", "i64"), ("f64", "f64"))])
def test_reduce_exact(dtype, accumulate):
    x = np.random.default_rng(6).integers(0, 4, (4, 781))
    s, m = Out((4,), accumulate), Out((4,), dtype)
    launch(kernel("std/reduce.tk", "sum_rows", A=accumulate, BN=64), x=In(x, dtype), y=s)
    launch(kernel("std/reduce.tk", "max_rows", BN=64), x=In(x, dtype), y=m)
    equal(s.array.bits, x.sum(axis=1))
    equal(m.array.bits, x.max(axis=1))


@test(*[(dtype, n) for dtype in FLOATS for n in COLUMNS + (50257,)])
def test_cumsum(dtype, n):
    judge_cumsum(random(3, n), dtype)


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
def test_types_that_lose_digits_are_refused():
    for dtype, word in (("i32", "integers need A"), ("f64", "A = f64")):
        refused(lambda: launch(kernel("std/scan.tk", "cumsum_rows"), x=In(np.ones((2, 3)), dtype), y=Out((2, 3), dtype)), word)
    x, y = In(np.ones((2, 3)), "f64"), Out((2, 3), "f64")
    for file, name in (("softmax", "softmax"), ("softmax", "log_softmax"), ("norm", "layernorm"), ("norm", "rmsnorm"),
                       ("activation", "relu_forward")):
        refused(lambda: launch(kernel(f"std/{file}.tk", name), x=x, y=y), "f32 or a narrower float")


@test()
def test_cumsum_wide_rows():
    x = np.random.default_rng(7).integers(-3, 4, (2, 131072))
    y = Out(x.shape, "f32")
    launch(kernel("std/scan.tk", "cumsum_rows"), x=In(x, "f32"), y=y)
    equal(y.f64(), np.cumsum(x, axis=1))


# ---- the greatest elements ----------------------------------------------------------------------

@test(*[(dtype, n) for dtype in FLOATS + ("f64", "i32", "i8", "u8", "i64") for n in (4, 127, 1023, 4097, 9000)])
def test_argmax(dtype, n):
    judge_argmax(values_of(dtype, (5, n)), dtype, "gap")
    judge_argmax(values_of(dtype, (5, n)), dtype, "gap", BN=32)


NAN, INF = np.nan, np.inf


@test(*[(dtype, bn) for dtype in FLOATS for bn in (1, 2, 4, 64)])
def test_argmax_special_rows(dtype, bn):
    rows = [[NAN, 6, 8, 1, 2], [6, NAN, 8, 1, 2], [INF, NAN, 0, NAN, INF], [NAN] * 5, [-INF] * 5, [0.0, -0.0, 0.0, 0.0, 0.0],
            [1, 2, 3, 3, 3], [3, 3, 3, 3, 4], [-INF, -INF, -1, -INF, -1], [-3, -2, -1, -2, -1], [1, 2, NAN, 5, NAN]]
    judge_argmax(np.array(rows), dtype, BN=bn)


@test(*LAYOUTS)
def test_argmax_layouts(layout):
    judge_argmax(values_of("f32", (7, 300)), "f32", layout, BN=64)


@test(*[(dtype, k, n) for dtype in FLOATS + ("f64", "i32", "i8", "u8", "i64", "u64") for k in (1, 4, 32) for n in (32, 127, 1023, 4097)])
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
    if tkclib.DEVICE != "cpu":
        return  # an assume is checked by the CPU executor and in debug compiles
    x = In(random(2, 3), "f32")
    refused(lambda: launch(kernel("std/select.tk", "topk_rows", K=4), x=x, values=Out((2, 4), "f32"), index=Out((2, 4), "i32")),
            "K <= N")


# ---- dropout and transpose ----------------------------------------------------------------------

@test()
def test_philox_known_answer():
    assert philox(0, np.zeros(1, np.uint64))[0] == 0x6627E8D5


@test(*[(dtype, p, seed, layout) for dtype in FLOATS for p in (0.0, 0.1, 0.5, 1.0) for seed in (0, 42, -(2 ** 62) + 5)
        for layout in ("dense", "negative")])
def test_dropout(dtype, p, seed, layout):
    judge_dropout(random(9, 1500), dtype, p, seed, layout)
    judge_dropout(random(9, 1500), dtype, p, seed, layout, BN=64)


@test()
def test_dropout_keeps_what_equals_p():
    judge_dropout(random(4, 100), "f32", float(uniform(42, (4, 100))[2, 30]), 42)


@test(*[(dtype, layout) for dtype in tkclib.NAMES for layout in LAYOUTS])
def test_transpose(dtype, layout):
    for shape in ((1, 1), (3, 5), (65, 130), (127, 64)):
        judge_transpose(shape, dtype, layout)


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
    launch(kernel("std/elementwise.tk", "add"), x=x, y=In(np.zeros(shape), "f32"), z=Out(shape, "f32"))
    total, most = Out((m,), "f32"), Out((m,), "f32")
    launch(kernel("std/reduce.tk", "sum_rows"), x=x, y=total)
    launch(kernel("std/reduce.tk", "max_rows"), x=x, y=most)
    parts, sums = (Out((2, n), "f32"), Out((2, n), "f32")), (Out((n,), "f32"), Out((n,), "f32"))
    launch(kernel("std/norm_backward.tk", "layernorm_backward"), x=x, dy=In(np.zeros(shape), "f32"), dx=Out(shape, "f32"),
           dw_part=parts[0], db_part=parts[1])
    launch(kernel("std/norm_backward.tk", "layernorm_backward_sum"), dw_part=parts[0], db_part=parts[1], dw=sums[0], db=sums[1])
    assert (sums[0].f64() == 0).all() and (sums[1].f64() == 0).all()
    if n == 0:
        assert (total.f64() == 0).all() and (most.f64() == -np.inf).all()
        assert np.isnan(loss.f64()).all() and (index.array.bits == -1).all()


if __name__ == "__main__":
    main()
