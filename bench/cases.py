# SPDX-License-Identifier: Apache-2.0
"""The cases of compare.py: which kernels on which shapes, what the right outputs are, how peers write the same, and what is to be
reached.

A case's tensors are one dict by the kernels' parameter names. `answer` computes the outputs in f32, `same` is the function as a user of
PyTorch writes it; both give a tuple in the order of `outputs`."""
import dataclasses
import math
import pathlib

import torch

F = torch.nn.functional
UNTUNED = str(pathlib.Path(__file__).resolve().parent / "untuned") + "/"
device = "cuda"  # compare.py --dry: "cpu"
partials = 264  # programs of layernorm_backward: two for each multiprocessor of an H200


@dataclasses.dataclass
class Case:
    name: str
    steps: list  # (file, kernel, compile-time parameters) in the order of their launches
    make: object  # (m, n, dtype) -> tensors and scalars by name
    outputs: tuple
    answer: object
    same: object = None
    inputs: tuple = None  # of `same`, in order; None: `same` takes the dict and gives what runs (it has a state)
    moved: tuple = None  # what is read or written once; None: all tensors
    ceiling: str = "copy"
    floats: object = None  # (dict) -> operations, where products are what counts
    beside: object = None  # (case, dict) -> what is launched of a peer that is the ceiling, as those of peers.py
    defines: object = None  # (dict) -> compile-time parameters that follow from the tensors
    dtype: str = None  # where it is not the run's
    triton: str = None  # which of peers.py's kernels
    targets: dict = dataclasses.field(default_factory=dict)  # shape: share of the ceiling
    needs_gradient: bool = False
    rtol: float = 2e-2
    atol: float = 2e-2

    def bytes(self, a):
        return sum(a[k].numel() * a[k].element_size() for k in self.moved or [k for k, v in a.items() if isinstance(v, torch.Tensor)])


def rnd(*shape, dtype):
    """Normal, made in pieces, so that the numbers in f32 need little room."""
    x = torch.empty(*shape, device=device, dtype=dtype)
    flat = x.view(-1)
    for piece in flat.split(1 << 26):
        piece.copy_(torch.randn(piece.shape, device=device))
    return x


def like(x, *shape, dtype=None):
    return torch.empty(*(shape or x.shape), device=device, dtype=dtype or x.dtype)


def rows(m, n, t):
    x = rnd(m, n, dtype=t)
    return {"x": x, "y": like(x)}


def weighted(m, n, t):
    return rows(m, n, t) | {"w": 1 + rnd(n, dtype=t), "b": rnd(n, dtype=t)}


def scaled(m, n, t):
    return rows(m, n, t) | {"w": 1 + rnd(n, dtype=t)}


def residual(m, n, t):
    a = scaled(m, n, t)
    return a | {"residual": rnd(m, n, dtype=t), "total": like(a["x"])}


def gated(m, n, t):
    a = rows(m, n, t)
    return {"gate": a["x"], "up": rnd(m, n, dtype=t), "y": a["y"]}


def pair(m, n, t):
    x = rnd(m, n, dtype=t)
    return {"x": x, "y": rnd(m, n, dtype=t), "z": like(x)}


def logits(m, n, t):
    return {"x": rnd(m, n, dtype=t), "target": torch.randint(0, n, (m,), device=device, dtype=torch.int64),
            "loss": torch.empty(m, device=device)}


def gradient(m, n, t):
    x = rnd(m, n, dtype=t)
    return {"x": x, "dy": rnd(m, n, dtype=t), "w": 1 + rnd(n, dtype=t), "dx": like(x),
            "dw_part": torch.empty(partials, n, device=device), "db_part": torch.empty(partials, n, device=device),
            "dw": like(x, n), "db": like(x, n)}


def turned(m, n, t):
    x = rnd(m, n, dtype=t)
    return {"x": x, "y": like(x, n, m)}


def capped(m, n, t):
    a = rows(m, n, t)
    return a | {"bias": rnd(n, dtype=torch.float32), "mask": torch.rand(m, n, device=device) < 0.9, "cap": 30.0}


def groups(m, n, t):
    return {"x": rnd(m, n, dtype=t), "q": torch.empty(m, n, device=device, dtype=torch.int8),
            "scale": torch.empty(m, n // 128, device=device)}


def rotary(m, n, t):
    a = rows(m, n, t)
    angle = torch.arange(4096, device=device)[:, None] * 10000.0 ** (-torch.arange(n // 2, device=device) * 2 / n)
    return a | {"c": angle.cos(), "s": angle.sin()}


def layernorm_gradients(x, dy, w):
    x, g = x.float(), dy.float()
    d = x - x.mean(-1, keepdim=True)
    r = torch.rsqrt((d * d).mean(-1, keepdim=True) + 1e-5)
    u = d * r
    h = g * w.float()
    dx = (h - h.mean(-1, keepdim=True) - u * (h * u).mean(-1, keepdim=True)) * r
    return dx, (g * u).sum(0), g.sum(0)


def layernorm_backward_same(a, compiled):
    """The backward pass of a forward pass that was run before."""
    x, w, b = a["x"].requires_grad_(), a["w"].requires_grad_(), torch.zeros_like(a["w"]).requires_grad_()
    forward = compiled(lambda x, w, b: F.layer_norm(x, w.shape, w, b))
    y = forward(x, w, b)
    return lambda: torch.autograd.grad(y, (x, w, b), a["dy"], retain_graph=True)


def rms_add(x, w, r):
    t = x + r
    return F.rms_norm(t, w.shape, w, 1e-6), t


def rms_add_exact(a):
    t = a["x"].float() + a["residual"].float()
    return F.rms_norm(t, a["w"].shape, a["w"].float(), 1e-6), t


def softcap(x, bias, mask, cap):
    z = cap * torch.tanh((x.float() + bias) / cap)
    return (F.log_softmax(z.masked_fill(~mask, -math.inf), -1).to(x.dtype),)


def quantized(x):
    g = x.float().unflatten(-1, (-1, 128))
    s = g.abs().amax(-1) / 127.0
    q = torch.round(g * torch.where(s == 0, 0.0, 1.0 / s)[..., None])
    return q.flatten(-2).to(torch.int8), s


def rotated(x, c, s):
    h = x.shape[-1] // 2
    x32 = x.float().unflatten(0, (-1, c.shape[0])) if x.shape[0] % c.shape[0] == 0 else x.float()[None]
    c, s = c[:x32.shape[1]], s[:x32.shape[1]]
    a, b = x32[..., :h], x32[..., h:]
    y = torch.cat([a * c - b * s, a * s + b * c], -1)
    return ((y * torch.rsqrt((y * y).sum(-1, keepdim=True) + 1e-6)).reshape(x.shape).to(x.dtype),)


def each(shapes, shares):
    return dict(zip(shapes, shares))


THREE = ((65536, 1024), (16384, 4096), (8192, 16384))
WIDE, RAGGED, SHORT = (4096, 65536), (65536, 781), (1048576, 64)
BIG = (16384, 16384)  # 2^28 elements
NORM = "std/norm.tk"
CASES = [
    Case("softmax", [("std/softmax.tk", "softmax", {})], rows, ("y",), lambda a: (F.softmax(a["x"].float(), -1),),
         lambda x: (F.softmax(x, -1),), ("x",), triton="softmax",
         targets=each(THREE + (WIDE, RAGGED, SHORT), (0.97, 0.97, 0.97, 0.92, 0.93, 0.98))),
    Case("layernorm", [(NORM, "layernorm", {})], weighted, ("y",),
         lambda a: (F.layer_norm(a["x"].float(), a["w"].shape, a["w"].float(), a["b"].float()),),
         lambda x, w, b: (F.layer_norm(x, w.shape, w, b),), ("x", "w", "b"), triton="layernorm",
         targets=each(THREE + (WIDE, RAGGED, SHORT), (0.96, 0.97, 0.94, 0.92, 0.90, 0.98))),
    Case("rmsnorm", [(NORM, "rmsnorm", {})], scaled, ("y",),
         lambda a: (F.rms_norm(a["x"].float(), a["w"].shape, a["w"].float(), 1e-6),),
         lambda x, w: (F.rms_norm(x, w.shape, w, 1e-6),), ("x", "w"), triton="rmsnorm",
         targets=each(THREE + (WIDE, RAGGED, SHORT), (0.98, 0.98, 0.96, 0.92, 0.92, 0.98))),
    Case("add_rmsnorm", [(NORM, "rmsnorm", {})], residual, ("y", "total"), rms_add_exact, rms_add, ("x", "w", "residual"),
         targets=each(THREE, (0.97, 0.97, 0.97))),
    Case("swiglu", [("std/activation.tk", "swiglu", {})], gated, ("y",), lambda a: (F.silu(a["gate"].float()) * a["up"].float(),),
         lambda g, u: (F.silu(g) * u,), ("gate", "up"), triton="swiglu", targets={BIG: 1.03}),
    Case("add", [("std/elementwise.tk", "add", {})], pair, ("z",), lambda a: (a["x"].float() + a["y"].float(),),
         lambda x, y: (x + y,), ("x", "y"), triton="add", targets={BIG: 1.02}),
    Case("cross_entropy", [("std/cross_entropy.tk", "cross_entropy", {})], logits, ("loss",),
         lambda a: (F.cross_entropy(a["x"].float(), a["target"], reduction="none"),),
         lambda x, t: (F.cross_entropy(x, t, reduction="none"),), ("x", "target"), ceiling="read", targets={(8192, 131072): 0.97}),
    Case("layernorm_backward", [("std/norm_backward.tk", "layernorm_backward", {}), ("std/norm_backward.tk", "layernorm_backward_sum", {})],
         gradient, ("dx", "dw", "db"), lambda a: layernorm_gradients(a["x"], a["dy"], a["w"]), layernorm_backward_same,
         moved=("x", "dy", "dx"), targets={(16384, 4096): 0.92}, needs_gradient=True, atol=5e-2),
    Case("transpose", [("std/transpose.tk", "transpose_matrix", {})], turned, ("y",), lambda a: (a["x"].float().t(),),
         lambda x: (x.t().contiguous(),), ("x",), targets={(8192, 8192): 0.95}),
    Case("softcap_log_softmax", [(UNTUNED + "softcap_log_softmax.tk", "softcap_log_softmax", {})], capped, ("y",),
         lambda a: softcap(a["x"].float(), a["bias"], a["mask"], a["cap"]), softcap, ("x", "bias", "mask", "cap"),
         targets={(16384, 4096): None}),
    Case("quantize_groups", [(UNTUNED + "quantize_groups.tk", "quantize_groups", {})], groups, ("q", "scale"),
         lambda a: quantized(a["x"]), quantized, ("x",), targets={(16384, 4096): None}, atol=1.0),
    Case("rope_l2norm", [(UNTUNED + "rope_l2norm.tk", "rope_l2norm", {})], rotary, ("y",),
         lambda a: rotated(a["x"].float(), a["c"], a["s"]), rotated, ("x", "c", "s"), targets={(1048576, 128): None}),
    Case("gelu", [("std/activation.tk", "gelu_forward", {})], rows, ("y",), lambda a: (F.gelu(a["x"].float()),), lambda x: (F.gelu(x),),
         ("x",), targets={(16384, 4096): None}),
    Case("silu", [("std/activation.tk", "silu_forward", {})], rows, ("y",), lambda a: (F.silu(a["x"].float()),), lambda x: (F.silu(x),),
         ("x",), targets={(16384, 4096): None}),
    Case("cumsum", [("std/scan.tk", "cumsum_rows", {})], rows, ("y",), lambda a: (a["x"].float().cumsum(-1),), lambda x: (x.cumsum(-1),),
         ("x",), targets={(16384, 4096): None}),
]
