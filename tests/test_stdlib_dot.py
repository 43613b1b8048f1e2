# SPDX-License-Identifier: Apache-2.0
# The shipped matrix product and attention against float64. The references and their bounds are
# in stdlib_judge.py.
import math

import numpy as np

import tkclib
from judge import FN, In, LAYOUTS, Out, U, close, equal, launch, main, refused, test
from stdlib_judge import ATTENTION, FLOATS, MATMUL, attention_reference, inputs, judge_attention, judge_matmul, kernel, random

# ---- matmul -------------------------------------------------------------------------------------

ACTIVATED = 'import "std/matmul.tk";\nimport "std/activation.tk";\n'
SIZES = ((1, 1, 1), (3, 5, 7), (64, 64, 64), (65, 63, 33), (100, 72, 33), (17, 129, 200))


@test(*[(dtype, m, n, k) for dtype in FLOATS for m, n, k in SIZES])
def test_matmul(dtype, m, n, k):
    judge_matmul(dtype, m, n, k)
    judge_matmul(dtype, m, n, k, bias=dtype)
    judge_matmul(dtype, m, n, k, bias="f32", out="f32")


@test(*[(a, b, c) for a in LAYOUTS for b in LAYOUTS for c in ("gap", "transposed")])
def test_matmul_layouts(a, b, c):
    judge_matmul("f16", 70, 45, 35, (a, b, c), bias="f16", BM=32, BN=16, BK=16)


@test()
def test_matmul_f64():
    # The reference itself has the same error, hence twice the bound.
    judge_matmul("f64", 65, 33, 129, A="f64")


@test(*[(dtype, size) for dtype in FLOATS + ("i8", "u8", "f64") for size in ((100, 72, 33), (64, 64, 4096), (1, 130, 70))])
def test_matmul_exact(dtype, size):
    m, n, k = size
    rng = np.random.default_rng(4)
    a, b, add = rng.integers(0, 4, (m, k)), rng.integers(0 if dtype == "u8" else -3, 4, (k, n)), rng.integers(0, 100, n)
    accumulate = {"i8": "i32", "u8": "i32", "f64": "f64"}.get(dtype, "f32")
    c = Out((m, n), accumulate, "gap")
    launch(kernel(MATMUL, "matmul", A=accumulate), a=In(a, dtype, "gap"), b=In(b, dtype, "transposed"), c=c,
           bias=In(add, accumulate))
    equal(c.f64(), a @ b + add)


@test(*["i8", "u8"])
def test_matmul_whole_range(dtype):
    info = np.iinfo(tkclib.STORAGE[dtype])
    rng = np.random.default_rng(5)
    a, b = (rng.integers(info.min, info.max + 1, shape) for shape in ((33, 300), (300, 65)))
    a[0], b[:, 0] = info.min, info.min
    c = Out((33, 65), "i32")
    launch(kernel(MATMUL, "matmul", A="i32"), a=In(a, dtype), b=In(b, dtype), c=c)
    equal(c.array.bits, a @ b)


@test()
def test_matmul_activation():
    a, b, bias = In(random(40, 30), "f32"), In(random(30, 50, seed=2), "f32"), In(random(50, seed=3), "f32")
    sums = a.f64() @ b.f64() + bias.f64()
    error = 31 * U * (np.abs(a.f64()) @ np.abs(b.f64()) + np.abs(bias.f64()))
    c = Out((40, 50), "f32")
    fused = ACTIVATED + "kernel fused = matmul(act = relu);"
    launch(kernel(fused, "fused"), a=a, b=b, c=c, bias=bias)
    close(c.f64(), np.maximum(sums, 0.0), error, "f32", "relu")
    c = Out((40, 50), "f32")
    fused = ACTIVATED + "kernel fused = matmul(act = gelu);"
    launch(kernel(fused, "fused", BM=16), a=a, b=b, c=c, bias=bias)
    erf = np.vectorize(math.erf, otypes=[np.float64])
    # gelu's slope is below 1.13.
    close(c.f64(), 0.5 * sums * (1 + erf(sums / math.sqrt(2))), 1.13 * error + 8 * U * np.abs(sums), "f32", "gelu")
    c = Out((40, 50), "f32")
    scaled = 'import "std/matmul.tk";\nkernel scaled(s: f32) = matmul(act = fn(x: f32) -> f32 { return x * s; });'
    launch(kernel(scaled, "scaled"), a=a, b=b, c=c, bias=bias, s=0.25)
    close(c.f64(), 0.25 * sums, 0.25 * error, "f32", "captured scalar")


@test()
def test_matmul_empty():
    for m, n, k in ((0, 4, 4), (4, 0, 4), (0, 0, 0)):
        launch(kernel(MATMUL, "matmul"), a=In(np.zeros((m, k)), "f32"), b=In(np.zeros((k, n)), "f32"), c=Out((m, n), "f32"))
    # No terms: the bias, and what act makes of it.
    c, bias = Out((4, 5), "f32"), In(random(5), "f32")
    launch(kernel(MATMUL, "matmul"), a=In(np.zeros((4, 0)), "f32"), b=In(np.zeros((0, 5)), "f32"), c=c, bias=bias)
    equal(c.f64(), np.tile(bias.f64(), (4, 1)))


@test()
def test_matmul_sizes_that_disagree():
    a, b = In(np.zeros((4, 3)), "f32"), In(np.zeros((2, 5)), "f32")
    refused(lambda: launch(kernel(MATMUL, "matmul"), a=a, b=b, c=Out((4, 5), "f32")), "K")


def whole(shape, dtype, seed):
    """Small integers, whose products any type's sums hold exactly."""
    return np.random.default_rng(seed).integers(0 if dtype == "u8" else -3, 4, shape)


SUMS = {"i8": "i32", "u8": "i32", "f64": "f64"}


@test(*[(dtype, order) for dtype in ("f16", "bf16", "f32", "i8", "f8e4m3", "f64") for order in ("nn", "nt", "tn", "tt")])
def test_matmul_orders(dtype, order):
    sums = SUMS.get(dtype, "f32")
    for m, n, k in ((100, 72, 133), (16, 64, 128)):
        a, b, add = whole((m, k), dtype, 1), whole((k, n), dtype, 2), whole(n, sums, 3)
        names = {"a": a} if order[0] == "n" else {"at": a.T}, {"b": b} if order[1] == "n" else {"bt": b.T}
        args = {name: In(x, dtype) for one in names for name, x in one.items()}
        c = Out((m, n), sums)
        launch(kernel(MATMUL, "matmul_orders", A=sums, O=sums), c=c, bias=In(add, sums), **args)
        equal(c.f64(), a @ b + add)


# Small integers are what tf32 has exactly; of others each operand is rounded by half of a unit of 10 digits.
@test(*[(order, size) for order in ("nn", "nt", "tn", "tt") for size in ((100, 72, 132), (20, 40, 70), (260, 136, 64))])
def test_matmul_tf32(order, size):
    m, n, k = size
    for make, exact in ((whole, True), (lambda shape, dtype, seed: random(*shape, seed=seed), False)):
        a, b = make((m, k), "f32", 1), make((k, n), "f32", 2)
        args = {"a" if order[0] == "n" else "at": In(a if order[0] == "n" else a.T, "f32"), "b" if order[1] == "n" else "bt": In(b if order[1] == "n" else b.T, "f32")}
        bound = 0 if exact else (2.0 ** -10 + k * 2.0 ** -22) * (np.abs(a) @ np.abs(b))
        c, each, part = Out((m, n), "f32"), Out((1, m, n), "f32"), Out((2, m, n), "f32")
        launch(kernel(MATMUL, "matmul_orders", TF32=True), c=c, **args)
        launch(kernel(MATMUL, "matmul_batched", TF32=True), c=each, **{name: In(x.array[None], "f32") for name, x in args.items()})
        launch(kernel(MATMUL, "matmul_split_k", TF32=True), part=part, **args)
        for got in (c.f64(), each.f64()[0], part.f64().sum(axis=0)):
            assert (np.abs(got - a @ b) <= bound).all(), f"{order} {size}: {np.abs(got - a @ b).max()}"


@test(*[(dtype, order, s) for dtype in ("f16", "i8") for order in ("nn", "nt", "tn", "tt") for s in (1, 3)])
def test_matmul_batched(dtype, order, s):
    sums = SUMS.get(dtype, "f32")
    m, n, k = 70, 40, 96
    a, b = whole((s, m, k), dtype, 4), whole((s, k, n), dtype, 5)
    args = {"a" if order[0] == "n" else "at": In(a if order[0] == "n" else a.transpose(0, 2, 1), dtype),
            "b" if order[1] == "n" else "bt": In(b if order[1] == "n" else b.transpose(0, 2, 1), dtype)}
    c = Out((s, m, n), sums, "gap")
    launch(kernel(MATMUL, "matmul_batched", A=sums, O=sums), c=c, **args)
    equal(c.f64(), a @ b)


@test()
def test_matmul_both_orders_given():
    a, b = In(np.zeros((4, 4)), "f32"), In(np.zeros((4, 4)), "f32")
    refused(lambda: launch(kernel(MATMUL, "matmul_orders"), a=a, at=a, b=b, c=Out((4, 4), "f32")), "either 'a' or 'at'")
    refused(lambda: launch(kernel(MATMUL, "matmul_batched"), a=In(np.zeros((1, 4, 4)), "f32"), c=Out((1, 4, 4), "f32")), "either 'b' or 'bt'")


@test(*["f8e4m3", "f8e5m2", "f16", "i8"])
def test_matmul_scaled(dtype):
    """Scales are powers of two, so that everything is exact: of i8 too, whose sums become f32."""
    m, n, k = 72, 130, 96
    a, b, add = whole((m, k), dtype, 6), whole((k, n), dtype, 7), whole(n, "f32", 8)
    types = {"A": SUMS.get(dtype, "f32"), "C": "f32", "O": "f32"}
    scale = {name: In(np.array([x]), "f32") for name, x in (("scale_a", 0.5), ("scale_b", 0.25))}
    want = 0.125 * (a @ b) + add
    c = Out((m, n), "f32")
    launch(kernel(MATMUL, "matmul_scaled", **types), a=In(a, dtype), b=In(b, dtype), c=c, bias=In(add, "f32"), **scale)
    equal(c.f64(), want)
    c = Out((m, n), "f32")
    scale["scale_c"] = In(np.array([4.0]), "f32")
    launch(kernel(MATMUL, "matmul_scaled", **types), a=In(a, dtype), b=In(b, dtype), c=c, bias=In(add, "f32"), **scale)
    equal(c.f64(), 4 * want)


@test(*["f8e4m3", "f8e5m2"])
def test_matmul_to_f8(dtype):
    """What is stored is rounded, and saturates."""
    m, n, k = 64, 72, 64
    a, b = whole((m, k), "f16", 9), 8 * whole((k, n), "f16", 10)
    c = Out((m, n), dtype)
    launch(kernel(MATMUL, "matmul", O=dtype), a=In(a, "f16"), b=In(b, "f16"), c=c)
    equal(c.f64(), tkclib.array(a @ b, dtype).f64())


@test(*[(dtype, n) for dtype in ("f16", "f32") for n in (40, 130)])
def test_matmul_residual(dtype, n):
    m, k = 70, 64
    a, b, add, residual = whole((m, k), dtype, 11), whole((k, n), dtype, 12), whole(n, dtype, 13), whole((m, n), dtype, 14)
    c = Out((m, n), dtype)
    made = ACTIVATED + "kernel made = matmul_residual(act = relu);"
    launch(kernel(made, "made"), a=In(a, dtype), b=In(b, dtype), c=c, bias=In(add, dtype), residual=In(residual, dtype))
    equal(c.f64(), np.maximum(a @ b + add, 0) + residual)


@test(*[(dtype, order, s, k) for dtype in ("bf16", "i8") for order in ("nn", "tt") for s in (1, 2, 5) for k in (0, 64, 300)])
def test_matmul_split_k(dtype, order, s, k):
    sums, m, n = SUMS.get(dtype, "f32"), 20, 72
    a, b, add = whole((m, k), dtype, 15), whole((k, n), dtype, 16), whole(n, sums, 17)
    args = {"a" if order[0] == "n" else "at": In(a if order[0] == "n" else a.T, dtype),
            "b" if order[1] == "n" else "bt": In(b if order[1] == "n" else b.T, dtype)}
    part, c = Out((s, m, n), sums), Out((m, n), sums)
    launch(kernel(MATMUL, "matmul_split_k", A=sums), part=part, **args)
    equal(part.f64().sum(axis=0), a @ b)
    made = ACTIVATED + "kernel made = matmul_split_k_sum(after = fn(x: C, i: i32, j: i32) -> C { return max(x, C(i - j)); });"
    launch(kernel(made, "made"), part=In(part.array, sums), c=c, bias=In(add, sums))
    equal(c.f64(), np.maximum(a @ b + add, np.arange(m)[:, None] - np.arange(n)[None, :]))


# ---- attention ----------------------------------------------------------------------------------

LENGTHS = ((1, 1), (3, 3), (64, 128), (113, 203), (255, 256), (239, 1), (799, 3))


def causal(b, h, q, k):
    return q >= k


@test(*[(dtype, M, N) for dtype in FLOATS for M, N in LENGTHS])
def test_attention_lengths(dtype, M, N):
    judge_attention(kernel(ATTENTION, "attention"), dtype, 2, 2, 2, M, N, 32)
    judge_attention(kernel(ATTENTION, "causal_attention"), dtype, 2, 2, 1, M, N, 16, mask=causal)


@test(*[(name, M, N) for name in ("attention", "causal_attention") for M, N in ((1023, 1024), (1, 1023), (256, 255))])
def test_attention_longer(name, M, N):
    judge_attention(kernel(ATTENTION, name), "f16", 1, 1, 1, M, N, 16, mask=causal if name != "attention" else None)


@test(*[(dtype, D) for dtype in FLOATS for D in (1, 16, 32, 40, 64, 96, 128, 192, 256)])
def test_attention_head_sizes(dtype, D):
    judge_attention(kernel(ATTENTION, "causal_attention"), dtype, 1, 2, 2, 45, 70, D, mask=causal)


@test(*[(dtype, layout) for dtype in FLOATS for layout in LAYOUTS])
def test_attention_grouped_heads(dtype, layout):
    judge_attention(kernel(ATTENTION, "attention", BM=16, BN=32), dtype, 2, 6, 2, 33, 50, 24, layout)
    judge_attention(kernel(ATTENTION, "causal_attention", BM=16, BN=16), dtype, 2, 6, 2, 33, 50, 24, layout, mask=causal, lse=False)


@test(*[(dtype, M, N) for dtype in FLOATS for M, N in ((3, 4), (64, 128), (5, 16), (70, 1024))])
def test_attention_q_zero_gives_the_mean(dtype, M, N):
    v = np.random.default_rng(3).integers(-4, 5, (1, 2, N, 8))
    o, lse = Out((1, 2, M, 8), dtype), Out((1, 2, M), "f32")
    launch(kernel(ATTENTION, "attention"), q=In(np.zeros((1, 2, M, 8)), dtype), k=In(random(1, 2, N, 8), dtype), v=In(v, dtype),
           o=o, scale=1.0, lse=lse)
    mean = tkclib.array(v.mean(axis=2, keepdims=True), dtype)  # N is a power of two: one rounding
    equal(o.f64(), np.broadcast_to(mean.f64(), o.array.shape))
    close(lse.f64(), math.log(N), FN * math.log(N), "f32", "lse")


@test(*FLOATS)
def test_attention_causal_rows(dtype):
    for M, N, rows, lengths in ((2, 5, [1.5, 2.0], [4, 5]), (5, 2, [0, 0, 0, 0, 0.5], [0, 0, 0, 1, 2]),
                                (1, 7, [3.0], [7])):
        for tile in (16, 64):
            v = np.arange(N, dtype=float).reshape(1, 1, N, 1) * np.ones(4)
            o, lse = Out((1, 1, M, 4), dtype), Out((1, 1, M), "f32")
            launch(kernel(ATTENTION, "causal_attention", BM=tile, BN=tile), q=In(np.zeros((1, 1, M, 4)), dtype),
                   k=In(random(1, 1, N, 4), dtype), v=In(v, dtype), o=o, scale=1.0, lse=lse)
            equal(o.f64()[0, 0], np.array(rows)[:, None] * np.ones(4))
            with np.errstate(divide="ignore"):
                want = np.log(np.array(lengths, float))
            close(lse.f64()[0, 0], want, FN * np.where(np.isfinite(want), want, 0.0), "f32", "lse")


CUSTOM = """import "std/attention.tk";
fn alibi(s: f32, b: i32, h: i32, q: i32, k: i32) -> f32 { return s - exp2(-f32(h + 1) / 4.0) * f32(q - k); }
fn softcap(s: f32, b: i32, h: i32, q: i32, k: i32) -> f32 { return 5.0 * tanh(s / 5.0); }
fn window(b: i32, h: i32, q: i32, k: i32) -> bool { return q >= k && q - k < 20; }
fn hides(b: i32, h: i32, q: i32, k: i32) -> bool { return q != 0 && q != 63 && q != 64 && q != 99; }
kernel causal_alibi = attention(mask = causal, score = alibi);
kernel open = attention();
kernel by_document(ids: in i32[L]) = attention(
    mask = fn(b: i32, h: i32, q: i32, k: i32) -> bool { return ids[q] == ids[k]; });
kernel biased(bias: in f32[HB, MB, NB]) = attention(
    score = fn(s: f32, b: i32, h: i32, q: i32, k: i32) -> f32 { return s + bias[h, q, k]; });
kernel padded(lengths: in i32[LB]) = attention(mask = fn(b: i32, h: i32, q: i32, k: i32) -> bool { return k < lengths[b]; });
"""


def alibi(s, b, h, q, k):
    return s - np.exp2(-(h + 1) / 4.0) * (q - k)


@test(*FLOATS)
def test_attention_score_functions(dtype):
    judge_attention(kernel(CUSTOM, "causal_alibi"), dtype, 2, 4, 2, 70, 90, 16, score=alibi, mask=causal)
    judge_attention(kernel(CUSTOM, "open", score="alibi"), dtype, 1, 4, 4, 33, 90, 16, score=alibi)
    judge_attention(kernel(CUSTOM, "open", score="softcap", mask="window", BN=16), dtype, 1, 2, 2, 70, 70, 16,
                    score=lambda s, b, h, q, k: 5 * np.tanh(s / 5), mask=lambda b, h, q, k: (q >= k) & (q - k < 20), scale=2.0)


@test(*FLOATS)
def test_attention_masks_with_tensors(dtype):
    ids = np.sort(np.random.default_rng(4).integers(0, 5, 100)).astype(np.int32)
    judge_attention(kernel(CUSTOM, "by_document"), dtype, 2, 2, 1, 100, 100, 16, mask=lambda b, h, q, k: ids[q] == ids[k], ids=ids)
    bias = random(3, 40, 50, scale=2.0).astype(np.float32)
    bias[:, :, 10:20] = -np.inf
    judge_attention(kernel(CUSTOM, "biased"), dtype, 1, 3, 3, 40, 50, 16,
                    score=lambda s, b, h, q, k: s + bias,
                    bias=shifted(bias, 10))
    lengths = np.array([0, 7, 64, 100], np.int32)
    judge_attention(kernel(CUSTOM, "padded"), dtype, 4, 2, 1, 5, 100, 16, mask=lambda b, h, q, k: k < lengths[b], lengths=lengths)


def shifted(bias, by):
    """bias with its rows at the queries' positions, which begin at `by`."""
    return np.concatenate([np.zeros((bias.shape[0], by, bias.shape[2]), np.float32), bias], axis=1)


WINDOW = """import "std/attention.tk";
const BEFORE = 20;
fn near(b: i32, h: i32, q: i32, k: i32) -> bool { return q >= k && q - k < BEFORE; }
fn near_from(zero: i32, b: i32, h: i32, q: i32, p: i32) -> i32 { return q - (BEFORE - 1); }
kernel window = attention(mask = near, from = near_from, to = causal_to);
fn head_from(zero: i32, b: i32, h: i32, q: i32, p: i32) -> i32 { return 30 * h - 10; }
fn head_to(n: i32, b: i32, h: i32, q: i32, p: i32) -> i32 { return n + 20 - 40 * h; }
fn of_head(b: i32, h: i32, q: i32, k: i32) -> bool { return k >= 30 * h - 10 && k < 110 - 40 * h; }
kernel by_head = attention(mask = of_head, from = head_from, to = head_to);
"""


@test(*[(dtype, M, N, tile) for dtype in FLOATS for M, N in ((90, 90), (33, 150), (150, 33), (1, 70)) for tile in (16, 64)])
def test_attention_ranges_of_keys(dtype, M, N, tile):
    # Keys that no query of a block sees are passed over: those behind the last, before the first, and all of them.
    judge_attention(kernel(WINDOW, "window", BM=tile, BN=tile), dtype, 1, 2, 1, M, N, 16, mask=lambda b, h, q, k: (q >= k) & (q - k < 20))


@test(*[(dtype, BN) for dtype in FLOATS for BN in (16, 64)])
def test_attention_ranges_by_head(dtype, BN):
    # From before the first key to behind the last, some, none: the first lies behind the last.
    judge_attention(kernel(WINDOW, "by_head", BM=64, BN=BN), dtype, 2, 4, 2, 70, 90, 16,
                    mask=lambda b, h, q, k: (k >= 30 * h - 10) & (k < 110 - 40 * h) & (q == q))


@test(*[(dtype, D, name) for dtype in ("f16", "bf16") for D in (64, 128) for name in ("attention", "causal_attention", "window")])
def test_attention_large_tiles(dtype, D, name):
    # The tiles of long rows, at their edges and inside.
    masks = {"attention": None, "causal_attention": causal, "window": lambda b, h, q, k: (q >= k) & (q - k < 20)}
    source = WINDOW if name == "window" else ATTENTION
    judge_attention(kernel(source, name, BM=128, BN=128), dtype, 1, 2, 1, 300, 420, D, mask=masks[name])


@test(*[(dtype, name, BM, D) for dtype in ("f16", "bf16") for name in ("attention", "causal_attention", "window") for BM, D in ((64, 32), (128, 64))] +
      [("bf16", "causal_attention", 64, 256)])
def test_attention_by_tensor_copies(dtype, name, BM, D):
    # Aligned rows, of which tensor maps can be made, and loops of none to five iterations.
    masks = {"attention": None, "causal_attention": causal, "window": lambda b, h, q, k: (q >= k) & (q - k < 20)}
    k_ = kernel(WINDOW if name == "window" else ATTENTION, name, BM=BM, BN=64)
    for M, N in ((70, 0), (70, 5), (200, 128), (130, 150), (64, 300)):
        q, k, v = inputs(dtype, 1, 2, 1, M, N, D)
        o, lse = Out((1, 2, M, D), dtype), Out((1, 2, M), "f32")
        aligned = [np.ascontiguousarray(x.array.bits) for x in (q, k, v)]
        launch(k_, q=tkclib.Array(aligned[0], dtype), k=tkclib.Array(aligned[1], dtype), v=tkclib.Array(aligned[2], dtype), o=o, scale=0.125, lse=lse)
        want, bound, want_l, bound_l = attention_reference(q.f64(), k.f64(), v.f64(), 0.125, dtype, None, masks[name])
        close(o.f64(), want, bound, dtype, f"o {M} {N}")
        close(lse.f64(), want_l, bound_l, "f32", f"lse {M} {N}")


@test("f16", "bf16")
def test_attention_greatest_scores(dtype):
    # A score of 2^127 or more is no number here, and no zero; less is as ever.
    for scale, fine in ((2.0 ** 100, True), (2.0 ** 126, False)):
        ones = np.ones((1, 1, 16, 16))
        o = Out((1, 1, 16, 16), dtype)
        launch(kernel(ATTENTION, "attention", BM=16, BN=16), q=In(ones, dtype), k=In(ones, dtype), v=In(ones, dtype), o=o, scale=scale)
        assert (o.f64() == 1).all() if fine else np.isnan(o.f64()).all()


@test(*FLOATS)
def test_attention_hidden_rows(dtype):
    # Rows that see no key give zeros and lse = -inf, and leave the others as they are; as a mask, and as -inf scores.
    def mask(b, h, q, k):
        return (q != 0) & (q != 63) & (q != 64) & (q != 99) & (k >= 0)

    judge_attention(kernel(CUSTOM, "open", mask="hides"), dtype, 1, 2, 2, 100, 100, 16, mask=mask)
    bias = np.zeros((2, 100, 100), np.float32)
    bias[:, [0, 63, 64, 99]] = -np.inf
    judge_attention(kernel(CUSTOM, "biased"), dtype, 1, 2, 2, 100, 100, 16, mask=mask, bias=bias)


@test(*FLOATS)
def test_attention_large_scores(dtype):
    judge_attention(kernel(ATTENTION, "attention"), dtype, 1, 1, 1, 20, 150, 16, scale=30.0)
    judge_attention(kernel(ATTENTION, "attention", BN=16), dtype, 1, 1, 1, 20, 150, 16, scale=-30.0)


@test()
def test_attention_growing_length():
    # One kernel, growing keys as transposed views of one buffer; NaN after the end.
    k_ = kernel(ATTENTION, "attention")
    for N in tuple(range(128, 229)) + (96,):
        q, k, v = inputs("f16", 1, 2, 1, 1, N, 16)
        room = tkclib.array(np.full((1, 16, 1, 256), np.nan), "f16").bits
        views = []
        for x in (k, v):
            buffer = room.copy()
            buffer[..., :N] = x.array.bits.transpose(0, 3, 1, 2)
            views.append(buffer.transpose(0, 2, 3, 1)[:, :, :N])
        o = Out((1, 2, 1, 16), "f16")
        launch(k_, q=q, k=views[0], v=views[1], o=o, scale=0.25)
        want, bound, _, _ = attention_reference(q.f64(), k.f64(), v.f64(), 0.25, "f16")
        close(o.f64(), want, bound, "f16", f"N = {N}")


@test()
def test_attention_expanded_batch():
    # Keys of one batch entry for all (stride 0), then dense ones, then again: one kernel.
    k_ = kernel(ATTENTION, "attention")
    q, k, v = inputs("f16", 4, 2, 1, 9, 40, 16)
    for expanded in (True, False, True):
        keys, values = (np.broadcast_to(x.array.bits[:1], x.array.shape) if expanded else x.array.bits for x in (k, v))
        o = Out((4, 2, 9, 16), "f16")
        launch(k_, q=q, k=keys, v=values, o=o, scale=0.25)
        want, bound, _, _ = attention_reference(q.f64(), keys.astype(float), values.astype(float), 0.25, "f16")
        close(o.f64(), want, bound, "f16", f"expanded {expanded}")


@test()
def test_attention_empty():
    k_ = kernel(ATTENTION, "attention")
    for B, H, M, D in ((0, 2, 3, 4), (2, 2, 0, 4)):
        q, k, v = inputs("f32", B, H, 1, M, 5, D)
        launch(k_, q=q, k=k, v=v, o=Out((B, H, M, D), "f32"), scale=1.0)
    q, k, v = inputs("f32", 1, 2, 1, 3, 5, 0)
    refused(lambda: launch(k_, q=q, k=k, v=v, o=Out((1, 2, 3, 0), "f32"), scale=1.0), "at least 1")
    # No keys: zeros.
    q, k, v = inputs("f32", 1, 2, 1, 3, 0, 4)
    o, lse = Out((1, 2, 3, 4), "f32"), Out((1, 2, 3), "f32")
    launch(k_, q=q, k=k, v=v, o=o, scale=1.0, lse=lse)
    assert (o.f64() == 0).all() and (lse.f64() == -np.inf).all()


@test()
def test_attention_heads_that_do_not_divide():
    if tkclib.DEVICE != "cpu":
        return  # an assume is checked by the CPU executor and in debug compiles
    q, k, v = inputs("f32", 1, 3, 2, 4, 4, 8)
    refused(lambda: launch(kernel(ATTENTION, "attention"), q=q, k=k, v=v, o=Out((1, 3, 4, 8), "f32"), scale=1.0), "H % HK")


if __name__ == "__main__":
    main()
