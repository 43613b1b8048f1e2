# SPDX-License-Identifier: Apache-2.0
"""Cases of compare.py whose work is products: matmul in all its forms and attention. Shapes are M, N, K; B, H, N, D for attention. The
ceiling of each is a peer's time in the same run."""
import dataclasses
import functools
import math
import pathlib

import cases
import torch
from cases import Case, like, rnd

F = torch.nn.functional
OWN = str(pathlib.Path(__file__).resolve().parent / "products.tk")
STD = "std/matmul.tk"
FOUR = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024), (4096, 14336, 4096))


def operands(m, n, k, t, at=False, bt=False, out=None):
    """An operand that lies the other way round is under the name that matmul_orders has for it."""
    a = {"at": rnd(k, m, dtype=t)} if at else {"a": rnd(m, k, dtype=t)}
    b = {"bt": rnd(n, k, dtype=t)} if bt else {"b": rnd(k, n, dtype=t)}
    return a | b | {"c": torch.empty(m, n, device=cases.device, dtype=out or t)}


def of(a):
    """The operands as they multiply."""
    return (a["a"] if "a" in a else a["at"].t()), (a["b"] if "b" in a else a["bt"].t())


def exact(a):
    x, y = of(a)
    return (x.double() @ y.double(),)


def cublas(case, a):
    x, y = of(a)
    return lambda: (torch.matmul(x, y),)


def cublas_tf32(case, a):
    x, y = of(a)

    def run():
        torch.backends.cuda.matmul.allow_tf32 = True
        c = torch.matmul(x, y)
        torch.backends.cuda.matmul.allow_tf32 = False
        return (c,)
    return run


def cublaslt(case, a):
    x, y = of(a)
    return lambda: (torch._scaled_mm(x, y, a["scale_a"], a["scale_b"], out_dtype=a["c"].dtype),)


@functools.cache
def _compiled(f):
    return torch.compile(f, dynamic=False)


def _bias_gelu(x, y, bias):
    return (F.gelu(torch.addmm(bias, x, y)),)


def bias_gelu_compiled(case, a):
    f = _compiled(_bias_gelu)
    return lambda: f(a["a"], a["b"], a["bias"])


def bias_gelu(m, n, k, t):
    return operands(m, n, k, t) | {"bias": rnd(n, dtype=t)}


def bias_gelu_exact(a):
    return (F.gelu(exact(a)[0] + a["bias"].double()),)


def scaled(m, n, k, t):
    a = operands(m, n, k, t, bt=True, out=torch.bfloat16)
    return a | {s: torch.full((1,), v, device=cases.device) for s, v in (("scale_a", 0.5), ("scale_b", 0.125))}


def scaled_exact(a):
    return (exact(a)[0] * (a["scale_a"].double() * a["scale_b"].double()),)


def gelu_max(m, n, k, t):
    return operands(m, n, k, t) | {"most": torch.empty(m, n, device=cases.device)}


def gelu_max_exact(a):
    x = F.gelu(a["a"].float()).to(a["a"].dtype).double()
    c, most = 0, None
    for k in range(0, x.shape[1], 64):
        c = c + x[:, k:k + 64] @ a["b"][k:k + 64].double()
        most = c if most is None else torch.maximum(most, c)
    return c, most


def aligned(m, n, k, t):
    def rows(x):
        each = 16 // x.element_size()
        return torch.empty(x.shape[0], -(-x.shape[1] // each) * each, device=cases.device, dtype=t)[:, :x.shape[1]]
    a = operands(m, n, k, t)
    return a | {"a16": rows(a["a"]), "b16": rows(a["b"])}


# ---- Attention

def heads(b, h, n, d, t):
    q = rnd(b, h, n, d, dtype=t)
    return {"q": q, "k": rnd(b, h, n, d, dtype=t), "v": rnd(b, h, n, d, dtype=t), "o": like(q), "scale": 1 / math.sqrt(d)}


def attention_exact(a, causal=False):
    """Head by head, so that the scores need little room."""
    o = torch.empty_like(a["q"], dtype=torch.float32)
    for b in range(o.shape[0]):
        for h in range(o.shape[1]):
            s = (a["q"][b, h].float() @ a["k"][b, h].float().t()) * a["scale"]
            if causal:
                s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
            o[b, h] = torch.softmax(s, -1) @ a["v"][b, h].float()
    return (o,)


def _below(b, h, q, k):
    return q >= k


def flex(causal):
    def peer(case, a):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        mask = create_block_mask(_below, None, None, a["q"].shape[2], a["k"].shape[2], device=cases.device) if causal else None
        f = _compiled(flex_attention)
        return lambda: (f(a["q"], a["k"], a["v"], block_mask=mask),)
    return peer


def fused(causal):
    return lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=causal),)


def times2(a):
    (m, k), n = of(a)[0].shape, of(a)[1].shape[1]
    return 2 * m * n * k


def of_attention(causal):
    return lambda a: 4 * a["q"].shape[0] * a["q"].shape[1] * a["q"].shape[2] ** 2 * a["q"].shape[3] * (0.5 if causal else 1)


def product(name, step, targets, make=operands, answer=exact, beside=cublas, ceiling="cuBLAS", outputs=("c",), **more):
    return Case(name, [step], make, outputs, answer, floats=times2, targets=targets, beside=beside, ceiling=ceiling,
                rtol=1e-2, **{"atol": 0.5} | more)


def in_order(at, bt):
    name = "matmul_" + ("at_" if at else "a_") + ("bt" if bt else "b")
    return product(name, (STD, "matmul_orders", {}), {s: 1.0 for s in FOUR}, functools.partial(operands, at=at, bt=bt))


def attention(name, kernel, causal):
    return Case(name, [("std/attention.tk", kernel, {})], heads, ("o",), functools.partial(attention_exact, causal=causal),
                fused(causal), ("q", "k", "v"), floats=of_attention(causal), targets={(4, 16, 4096, 128): 1.0},
                beside=flex(causal), ceiling="FlexAttention", defines=lambda a: {"D": a["q"].shape[3]}, rtol=2e-2, atol=1e-2)


CASES = [
    product("matmul", (STD, "matmul", {}), {s: 1.0 for s in FOUR} | {(16, 14336, 4096): 1.0, (1024, 1024, 1024): 1.0,
                                                                   (4095, 4097, 4099): 2.5}, triton="matmul"),
    *(in_order(at, bt) for at, bt in ((False, True), (True, False), (True, True))),
    *(product(name, (OWN, kernel, {}), {s: t for s in FOUR}) for name, kernel, t in (
        ("page_plain", "plain", 0.95), ("page_persistent", "persistent", None), ("page_clusters", "clusters", None),
        ("page_persistent_clusters", "persistent_clusters", None))),
    product("matmul_bias_gelu", (OWN, "bias_gelu", {}), {(8192, 8192, 4096): 1.1}, bias_gelu, bias_gelu_exact, bias_gelu_compiled,
            "torch.compile"),
    product("matmul_f8", (OWN, "scaled", {"O": "bf16"}), {(8192, 8192, 8192): 1.0}, scaled, scaled_exact, cublaslt, "cuBLASLt",
            dtype="f8e4m3", atol=2.0),
    dataclasses.replace(
        product("matmul_aligned", None, {(4095, 4097, 4099): 2.5}, aligned),
        steps=[(OWN, "align_a", {}), (OWN, "align_b", {}), (OWN, "aligned", {})]),
    product("matmul_tf32", (STD, "matmul", {"TF32": True}), {(4096, 4096, 4096): 1.0}, beside=cublas_tf32, dtype="f32"),
    product("gelu_max", (OWN, "gelu_max", {}), {(4096, 4096, 4096): None}, gelu_max, gelu_max_exact, None, None, ("c", "most")),
    attention("attention", "attention", False),
    attention("attention_causal", "causal_attention", True),
]
