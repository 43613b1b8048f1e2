#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times shipped kernels on a GPU against a copy of the same size in the same run.

    compare.py [--only WORD] [--shapes 16384x4096,65536x1024] [--warps 0,4,8] [--json FILE]

Needs PyTorch, and LIBTKC (or TKC) as tests/tkclib.py says. Inputs are normally distributed; three sets of buffers, together
larger than the cache, take turns; every output is compared with PyTorch in f32, NaN refused. A figure is the median of the
launches, each between two events of the device. The copy is timed before and after all else and the better one counts. GB/s
counts each input read once and each output written once. Warps 0: what the compiler chooses."""
import argparse
import ctypes
import json
import pathlib
import statistics
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import tkclib  # noqa: E402

SETS, WARM, LAUNCHES = 3, 6, 30
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
NAME = {t: n for n, t in TORCH.items()}


def tensor_arg(x):
    arg = tkclib.Arg_(kind=tkclib.ARG_TENSOR)
    t = arg.tensor
    t.data, t.dtype, t.rank = x.data_ptr(), tkclib.NAMES.index(NAME[x.dtype]), x.dim()
    for i in range(x.dim()):
        t.dim[i], t.stride[i] = x.shape[i], x.stride(i)
    return arg


class Launch:
    """One kernel with its arguments, checked and packed once."""

    def __init__(self, kernel, given):
        args = [tensor_arg(given[n]) if isinstance(given.get(n), torch.Tensor) else tkclib._arg(given.get(n)) for n in kernel.params]
        lib, self.handle = tkclib.library(), ctypes.c_void_p()
        lib.call("tkc_prepared_create", kernel.handle, lib.device("cuda"), (tkclib.Arg_ * len(args))(*args), ctypes.c_size_t(len(args)),
                 ctypes.byref(self.handle))

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        tkclib.library().call("tkc_prepared_launch", self.handle, stream)


def median_ms(launches):
    """Of one launch; each is timed alone."""
    times = []
    for i in range(WARM + LAUNCHES):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        launches[i % len(launches)]()
        b.record()
        times.append((a, b))
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in times[WARM:])


def rows(m, n, dtype):
    return {"x": torch.randn(m, n, device="cuda").to(dtype), "y": torch.empty(m, n, device="cuda", dtype=dtype)}


def weighted(m, n, dtype):
    return rows(m, n, dtype) | {"w": torch.randn(n, device="cuda").to(dtype), "b": torch.randn(n, device="cuda").to(dtype)}


def gated(m, n, dtype):
    g = rows(m, n, dtype)
    return {"gate": g["x"], "up": torch.randn(m, n, device="cuda").to(dtype), "y": g["y"]}


def turned(m, n, dtype):
    return {"x": torch.randn(m, n, device="cuda").to(dtype), "y": torch.empty(n, m, device="cuda", dtype=dtype)}


F = torch.nn.functional
# name: file, kernel, what makes the arguments, PyTorch's answer in f32
CASES = {
    "softmax": ("softmax", "softmax", rows, lambda a: F.softmax(a["x"].float(), -1)),
    "layernorm": ("norm", "layernorm", weighted, lambda a: F.layer_norm(a["x"].float(), a["w"].shape, a["w"].float(), a["b"].float())),
    "rmsnorm": ("norm", "rmsnorm", lambda m, n, t: {k: v for k, v in weighted(m, n, t).items() if k != "b"},
                lambda a: F.rms_norm(a["x"].float(), a["w"].shape, a["w"].float(), 1e-6)),
    "gelu": ("activation", "gelu_forward", rows, lambda a: F.gelu(a["x"].float())),
    "silu": ("activation", "silu_forward", rows, lambda a: F.silu(a["x"].float())),
    "swiglu": ("activation", "swiglu", gated, lambda a: F.silu(a["gate"].float()) * a["up"].float()),
    "transpose": ("transpose", "transpose_matrix", turned, lambda a: a["x"].float().t()),
    "cumsum": ("scan", "cumsum_rows", rows, lambda a: a["x"].float().cumsum(-1)),
}


def check(name, sets, answer):
    for a in sets:
        got, want = a["y"].float(), answer(a)
        if torch.isnan(got).any() or not torch.allclose(got, want, rtol=2e-2, atol=2e-2):
            raise SystemExit(f"{name}: wrong by {(got - want).abs().max().item()}")


def copy_figure(m, n, dtype):
    x = [rows(m, n, dtype) for _ in range(SETS)]
    return 2 * m * n * dtype.itemsize / median_ms([lambda a=a: a["y"].copy_(a["x"]) for a in x]) / 1e6


def measure(case, m, n, dtype, warps):
    file, kernel, make, answer = CASES[case]
    tkclib.WARPS = str(warps) if warps else None
    source = f"std/{file}.tk"
    if warps:
        source = (pathlib.Path(tkclib.__file__).parent.parent / "stdlib" / f"{file}.tk").read_text()
    k = tkclib.Kernel(source, kernel)
    sets = [make(m, n, dtype) for _ in range(SETS)]
    ms = median_ms([Launch(k, a) for a in sets])
    check(case, sets, answer)
    return sum(x.numel() * x.element_size() for x in sets[0].values()) / ms / 1e6, ms


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="")
    p.add_argument("--shapes", default="16384x4096")
    p.add_argument("--dtype", default="bf16", choices=TORCH)
    p.add_argument("--warps", default="0")
    p.add_argument("--json")
    o = p.parse_args()
    found = []
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for shape in o.shapes.split(","):
        m, n = (int(x) for x in shape.split("x"))
        dtype = TORCH[o.dtype]
        before = copy_figure(m, n, dtype)
        lines = []
        for case in (c for c in CASES if any(w in c for w in o.only.split(","))):
            for warps in o.warps.split(","):
                try:
                    lines.append((case, int(warps), *measure(case, m, n, dtype, int(warps))))
                except tkclib.TkcError as e:
                    print(f"{case} {shape} warps {warps}: {e}".replace("\n", " ")[:300], flush=True)
        copy = max(before, copy_figure(m, n, dtype))
        print(f"copy {shape} {o.dtype}: {copy:.0f} GB/s")
        for case, warps, figure, ms in lines:
            print(f"{case:12s} {shape:14s} warps {warps or 'auto':>4} {ms * 1000:8.1f} us {figure:7.0f} GB/s {100 * figure / copy:6.1f} %", flush=True)
            found.append({"case": case, "shape": shape, "dtype": o.dtype, "warps": warps, "ms": ms, "GB/s": figure, "copy": copy})
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
