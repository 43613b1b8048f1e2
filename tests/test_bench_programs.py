# SPDX-License-Identifier: Apache-2.0
# The programs of bench/untuned against float64. What their results may be off is worked out as in stdlib_judge.py.
import numpy as np

from judge import FN, In, LAYOUTS, Out, U, close, launch, main, test
from stdlib_judge import kernel, random, softmax_reference, sum_error

FLOATS = ("f32", "f16", "bf16")


@test(*[(dtype, n, layout) for dtype in FLOATS for n, layout in (
    (1, "dense"), (127, "dense"), (781, "gap"), (781, "negative"), (781, "transposed"), (4096, "dense"))])
def test_softcap_log_softmax(dtype, n, layout):
    """tanh has FN of itself; its argument has 2 U of itself, which changes tanh by less."""
    x, bias = In(random(5, n, scale=20.0), dtype, layout), In(random(n, seed=2), "f32", layout)
    mask = In(np.random.default_rng(3).random((5, n)) < 0.8, "bool", layout)
    mask.array.bits[:, 0] = True
    mask.before = mask.buffer.copy()
    y = Out((5, n), dtype, layout)
    launch(kernel("bench/untuned/softcap_log_softmax.tk", "softcap_log_softmax"), x=x, bias=bias, mask=mask, y=y, cap=30.0)
    z = 30.0 * np.tanh((x.f64() + bias.f64()) / 30.0)
    z_error = (FN + 6 * U) * np.abs(z)
    row = np.where(mask.array.bits, z, -np.inf)
    p, log_p, _, s, far, weighted = softmax_reference(row)
    with np.errstate(all="ignore"):
        bound = sum_error(n, 1, weighted) + FN * np.abs(np.log(s)) + U * (far + np.abs(np.where(np.isfinite(log_p), log_p, 0.0))) \
            + 2 * z_error.max(axis=1, keepdims=True) + z_error
    close(y.f64(), log_p, bound, dtype, "y")


@test(*[(dtype, n, layout) for dtype in FLOATS for n, layout in ((128, "dense"), (512, "gap"), (4096, "dense"), (384, "transposed"))])
def test_quantize_groups(dtype, n, layout):
    """The scale is rounded once; a quotient may be rounded to the neighbour where it is near the middle of two integers."""
    values = random(4, n, scale=3.0)
    values[2, :128] = 0.0
    x, q, scale = In(values, dtype, layout), Out((4, n), "i8", layout), Out((4, n // 128), "f32", layout)
    launch(kernel("bench/untuned/quantize_groups.tk", "quantize_groups"), x=x, q=q, scale=scale)
    group = x.f64().reshape(4, -1, 128)
    s = np.abs(group).max(axis=2) / 127.0
    close(scale.f64(), s, U * s, "f32", "scale")
    exact = np.where(s[..., None] == 0, 0.0, group / np.where(s == 0, 1.0, s)[..., None])
    got = np.ascontiguousarray(q.array.bits).reshape(group.shape)
    assert (np.abs(got - exact) <= 0.5 + 127 * 4 * U).all(), np.abs(got - exact).max()


@test(*[(dtype, d, layout) for dtype in FLOATS for d in (8, 64, 128) for layout in LAYOUTS])
def test_rope_l2norm(dtype, d, layout):
    """Each rotated element has 3 U of its terms, the sum of squares as many for each and d U, the root FN and half of that."""
    angle = random(16, d // 2)
    x, c, s = In(random(48, d), dtype, layout), In(np.cos(angle), "f32", layout), In(np.sin(angle), "f32", layout)
    y = Out((48, d), dtype, layout)
    launch(kernel("bench/untuned/rope_l2norm.tk", "rope_l2norm"), x=x, c=c, s=s, y=y)
    a, b = np.split(x.f64(), 2, axis=1)
    cos, sin = np.tile(c.f64(), (3, 1)), np.tile(s.f64(), (3, 1))
    turned = np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=1)
    terms = np.concatenate([np.abs(a * cos) + np.abs(b * sin), np.abs(a * sin) + np.abs(b * cos)], axis=1)
    square = (turned * turned).sum(axis=1, keepdims=True) + float(np.float32(1e-6))
    r = 1 / np.sqrt(square)
    square_error = ((d + 4) * U * (turned * turned) + 6 * U * np.abs(turned) * terms).sum(axis=1, keepdims=True)
    want = turned * r
    close(y.f64(), want, 3 * U * terms * r + np.abs(want) * (FN + 2 * U + 0.5 * square_error / square), dtype, "y")


if __name__ == "__main__":
    main()
