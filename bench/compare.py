#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the kernels of cases.py on a GPU beside a copy, and beside PyTorch and Triton, in one run, and judges each line.

    compare.py [--only softmax,norm] [--shapes 16384x4096,...] [--dtype bf16] [--warps 0,4,8]
               [--peers eager,triton,compile] [--seconds 180] [--json FILE] [--dry]

Needs PyTorch, and LIBTKC (or TKC) as tests/tkclib.py says; peers that are not installed are named and left out. Everything is timed in one
way: inputs are normally distributed; three sets of buffers, together larger than the cache, take turns; a figure is the median of the
launches, each between two events of the device. Every output, of peers too, is compared with PyTorch in f32, NaN refused. GB/s counts
each input read once and each output written once. A ceiling is a copy of the largest tensor, or reading it, timed before and after all
else of its shape; the better one counts. The kernels come first, then the peers until --seconds are over. Warps 0: what the compiler
chooses. --shapes times the cases at other shapes than the table's. --dry runs it all on the CPU, small: figures mean nothing, but outputs are checked.

Exit code 1 where an output is wrong or a kernel failed; a line that misses its target is only said so."""
import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    raise SystemExit("compare.py needs PyTorch, which is not installed here; `tkc bench` times kernels without it")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
import cases  # noqa: E402
import peers  # noqa: E402
import products  # noqa: E402
import tkclib  # noqa: E402

SETS, WARM, LAUNCHES = 3, 6, 30
AHEAD = 20_000_000  # cycles: about 10 ms
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "i32": torch.int32, "i64": torch.int64, "i8": torch.int8,
         "bool": torch.bool, "f8e4m3": torch.float8_e4m3fn}
NAME = {t: n for n, t in TORCH.items()}
begin = time.monotonic()


# ---- Kernels

def tensor_arg(x):
    arg = tkclib.Arg_(kind=tkclib.ARG_TENSOR)
    t = arg.tensor
    t.data, t.dtype, t.rank = x.data_ptr(), tkclib.NAMES.index(NAME[x.dtype]), x.dim()
    for i in range(x.dim()):
        t.dim[i], t.stride[i] = x.shape[i], x.stride(i)
    return arg


class Launch:
    """One kernel with its arguments, checked and packed once; keeps their memory."""

    def __init__(self, kernel, given):
        args = [tensor_arg(given[n]) if isinstance(given.get(n), torch.Tensor) else tkclib._arg(given.get(n)) for n in kernel.params]
        lib, self.handle = tkclib.library(), ctypes.c_void_p()
        self.memory = given
        lib.call("tkc_prepared_create", kernel.handle, lib.device(cases.device), (tkclib.Arg_ * len(args))(*args),
                 ctypes.c_size_t(len(args)), ctypes.byref(self.handle))

    def __call__(self):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if cases.device == "cuda" else None)
        tkclib.library().call("tkc_prepared_launch", self.handle, stream)

    def __del__(self):
        tkclib.library().c.tkc_prepared_destroy(self.handle)


def kernels_of(case, warps, a):
    tkclib.WARPS = warps or None
    more = case.defines(a) if case.defines else {}
    return [tkclib.Kernel(file, name, defines | more) for file, name, defines in case.steps]


def launches_of(kernels, a):
    steps = [Launch(k, a) for k in kernels]

    def run():
        for step in steps:
            step()
    return run


# ---- Time

class HostEvent:
    """For --dry: the host's clock."""

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3


def event():
    return torch.cuda.Event(enable_timing=True) if cases.device == "cuda" else HostEvent()


def synchronize():
    if cases.device == "cuda":
        torch.cuda.synchronize()


def microseconds(launches):
    """Of one launch, each timed alone: median, and what a quarter is below and above. The GPU is kept waiting until the host has put
    all on the stream, so that no launch waits for the host."""
    times = []
    if cases.device == "cuda":
        torch.cuda._sleep(AHEAD)
    for i in range(WARM + LAUNCHES):
        a, b = event(), event()
        a.record()
        launches[i % len(launches)]()
        b.record()
        times.append((a, b))
    synchronize()
    us = [1e3 * a.elapsed_time(b) for a, b in times[WARM:]]
    low, _, high = statistics.quantiles(us, n=4)
    return {"us": statistics.median(us), "low": low, "high": high}


# ---- Ceilings: GB/s of a shape

def copying(m, n, dtype):
    sets = [cases.rows(m, n, dtype) for _ in range(SETS)]
    return 2 * m * n * dtype.itemsize / microseconds([lambda a=a: a["y"].copy_(a["x"]) for a in sets])["us"] / 1e3


def reading(m, n, dtype):
    """The better one of two programs that read and leave one value a row."""
    sets = [cases.rnd(m, n, dtype=dtype).view(torch.int32).view(-1, 4096) for _ in range(SETS)]
    tkclib.WARPS = None
    kernel = tkclib.Kernel("std/reduce.tk", "max_rows")
    best = min(microseconds([Launch(kernel, {"x": x, "y": cases.like(x, x.shape[0])}) for x in sets])["us"],
               microseconds([lambda x=x: x.amax(1) for x in sets])["us"])
    return m * n * dtype.itemsize / best / 1e3


CEILINGS = {"copy": copying, "read": reading}
LABELS = {"copy": "a copy", "read": "a read"}


# ---- Outputs

def wrong_in(case, got, a, want=None):
    """What is wrong with a tuple of outputs, or None."""
    for name, x, y in zip(case.outputs, got, want or case.answer(a)):
        x, y = x.detach().float(), y.detach().float()
        if torch.isnan(x).any():
            return f"{name} has NaN"
        if not torch.allclose(x, y, rtol=case.rtol, atol=case.atol):
            return f"{name} is wrong by {(x - y).abs().max().item():.3g}"
    return None


def make_sets(case, shape, dtype):
    torch.manual_seed(1)
    made = [case.make(*shape, dtype) for _ in range(SETS)]
    for a in made:
        for name in case.outputs:
            a[name].fill_(float("nan") if a[name].is_floating_point() else 1)
    return made


# ---- Lines

def time_kernel(line, case, shape, dtype, warps):
    sets = make_sets(case, shape, dtype)
    kernels = kernels_of(case, warps, sets[0])
    try:
        line.update(microseconds([launches_of(kernels, a) for a in sets]))
        for a in sets:
            line["wrong"] = line["wrong"] or wrong_in(case, tuple(a[k] for k in case.outputs), a)
        line["bytes"] = case.bytes(sets[0])
        line["figure"], line["unit"] = figure(case, sets[0], line["us"])
    finally:
        for k in kernels:
            k.close()


def figure(case, a, us):
    return (case.floats(a) / us / 1e6, "TFLOP/s") if case.floats else (case.bytes(a) / us / 1e3, "GB/s")


def time_peer(case, shape, dtype, name, peer):
    sets = make_sets(case, shape, dtype)
    with torch.set_grad_enabled(case.needs_gradient):
        runs = [peer(case, a) for a in sets]
        if runs[0] is None:
            return None
        found = {"name": name} | microseconds(runs)
        found["wrong"] = wrong_in(case, runs[0](), sets[0])
    found["figure"], _ = figure(case, sets[0], found["us"])
    return found


def failed(e):
    return f"{type(e).__name__}: {e}".replace("\n", " ")[:300]


def verdict(line):
    if line["wrong"]:
        return "WRONG: " + line["wrong"]
    if not line["target"] or not line.get("share"):
        return ""
    return "reached" if line["share"] >= line["target"] else "missed"


def say(line):
    shape = "x".join(map(str, line["shape"]))
    if "us" not in line:
        print(f"{line['case']:20s} {shape:13s} {line['wrong']}", flush=True)
        return
    text = f"{line['case']:20s} {shape:13s} warps {line['warps'] or 'auto':>4} {line['us']:8.1f} us ({line['low']:.1f} to {line['high']:.1f})"
    text += f" {line['figure']:6.0f} {line['unit']}"
    if line.get("share"):
        of = LABELS.get(line["ceiling"]) or f"{line['ceiling']} at {line['ceiling_figure']:.0f}"
        text += f" {100 * line['share']:6.1f} % of {of}"
    if line["target"]:
        text += f", wanted {100 * line['target']:.0f}: "
    print(text, verdict(line), flush=True)


def say_peers(line):
    shape = "x".join(map(str, line["shape"]))
    fine = [p for p in line["peers"] if "us" in p and not p["wrong"]]
    others = "; ".join(f"{p['name']} {p['figure']:.0f}" if p in fine else f"{p['name']} {p['wrong']}" for p in line["peers"])
    if fine and "us" in line:
        best = min(fine, key=lambda p: p["us"])
        line["to_best_peer"] = best["us"] / line["us"]
        others += f"; {line['to_best_peer']:.2f} times the speed of {best['name']}"
    if others:
        print(f"{line['case']:20s} {shape:13s} {line.get('figure', 0):.0f} {line.get('unit', '')}; {others}", flush=True)


# ---- The run

def table(o):
    """Lines to be filled in, those of one shape together."""
    lines = []
    for case in cases.CASES + products.CASES:
        if not any(w in case.name for w in o.only.split(",")):
            continue
        shapes = {tuple(map(int, s.split("x"))): None for s in o.shapes.split(",")} if o.shapes else case.targets
        for shape, target in shapes.items():
            for warps in map(int, o.warps.split(",")):
                lines.append((case, {"case": case.name, "shape": small(shape) if o.dry else shape, "dtype": case.dtype or o.dtype, "warps": warps,
                                     "ceiling": case.ceiling, "target": target, "wrong": None, "peers": []}))
    return sorted(lines, key=lambda l: l[1]["shape"])


def small(shape):
    if len(shape) > 2:
        return tuple(min(n, 1 if i < len(shape) - 3 else 136) for i, n in enumerate(shape))
    return (min(shape[0], 64 if shape[0] == shape[1] else 8), min(shape[1], 2048))


def time_beside(case, shape, dtype):
    """The peer that is the case's ceiling: its figure."""
    found = time_peer(case, shape, dtype, case.ceiling, case.beside)
    if found["wrong"]:
        raise RuntimeError(f"{case.ceiling}: {found['wrong']}")
    return found["figure"]


def time_products(lines, shape, dtype):
    """Each kernel between two measurements of the peer that it is to reach."""
    for case, line in lines:
        dtype_of = TORCH[case.dtype] if case.dtype else dtype
        try:
            before = time_beside(case, shape, dtype_of)
            time_kernel(line, case, shape, dtype_of, line["warps"])
            line["ceiling_figure"] = max(before, time_beside(case, shape, dtype_of))
            line["share"] = line["figure"] / line["ceiling_figure"]
        except (tkclib.TkcError, RuntimeError) as e:
            line["wrong"] = failed(e)
        line["verdict"] = verdict(line)
        say(line)


def time_shape(lines, shape, dtype):
    """All kernels of a shape between two measurements of the ceilings."""
    time_products([l for l in lines if l[0].beside], shape, dtype)
    lines = [l for l in lines if not l[0].beside]
    if not lines:
        return
    ceilings = {case.ceiling for case, _ in lines if case.ceiling}
    before = {c: CEILINGS[c](*shape, dtype) for c in ceilings}
    for case, line in lines:
        try:
            time_kernel(line, case, shape, dtype, line["warps"])
        except (tkclib.TkcError, RuntimeError) as e:
            line["wrong"] = failed(e)
    best = {c: max(before[c], CEILINGS[c](*shape, dtype)) for c in ceilings}
    print(", ".join(f"a {c} at {'x'.join(map(str, shape))}: {g:.0f} GB/s" for c, g in sorted(best.items())))
    for case, line in lines:
        if case.ceiling and "figure" in line:
            line["ceiling_figure"] = best[case.ceiling]
            line["share"] = line["figure"] / best[case.ceiling]
        line["verdict"] = verdict(line)
        say(line)


def time_peers(lines, found, dtype, seconds):
    """Each peer over all lines, so that what is slow to compile comes last."""
    late = 0
    for name, peer in found:
        for case, line in lines:
            if line["warps"] != lines[0][1]["warps"] or (name == "PyTorch" and case.beside and case.ceiling == "cuBLAS"):
                continue  # PyTorch's products are cuBLAS's
            if time.monotonic() - begin > seconds:
                late += 1
                continue
            try:
                p = time_peer(case, line["shape"], TORCH[line["dtype"]], name, peer)
            except Exception as e:  # a peer may fail in any way, and the rest goes on
                p = {"name": name, "wrong": failed(e)}
            if p:
                line["peers"].append(p)
    print("beside peers:")
    for _, line in lines:
        say_peers(line)
    if late:
        print(f"{late} peers were left out: the {seconds:.0f} seconds were over")


def smi():
    """Clocks and power as the driver's tool tells them, or None."""
    what = "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active"
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=" + what, "--format=csv,noheader"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().split("\n")[0] or None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="")
    p.add_argument("--shapes", default="")
    p.add_argument("--dtype", default="bf16", choices=("bf16", "f16", "f32"))
    p.add_argument("--warps", default="0")
    p.add_argument("--peers", default="eager,triton,compile")
    p.add_argument("--seconds", type=float, default=180)
    p.add_argument("--json")
    p.add_argument("--dry", action="store_true")
    o = p.parse_args()
    if o.dry:
        cases.device = "cpu"
        cases.partials = 2
    else:
        cases.partials = 2 * torch.cuda.get_device_properties(0).multi_processor_count
    found, missing = peers.all_of([w for w in o.peers.split(",") if w])
    versions = {"torch": torch.__version__, "triton": peers.triton and peers.triton.__version__}
    print("the CPU, small: figures mean nothing" if o.dry else torch.cuda.get_device_name(), versions, smi() or "nvidia-smi: none")
    for m in missing:
        print("missing:", m)
    lines, dtype = table(o), TORCH[o.dtype]
    if not lines:
        raise SystemExit("--only: no case has such a name")
    for shape in dict.fromkeys(line["shape"] for _, line in lines):
        time_shape([l for l in lines if l[1]["shape"] == shape], shape, dtype)
    print(f"{time.monotonic() - begin:.0f} s; clocks and power: {smi()}")
    time_peers(lines, found, dtype, o.seconds)
    print(f"{time.monotonic() - begin:.0f} s; clocks and power: {smi()}")
    lines = [line for _, line in lines]
    count = {v: sum(line.get("verdict") == v for line in lines) for v in ("reached", "missed")}
    wrong = [line for line in lines if line["wrong"]]
    print(f"{count['reached']} reached, {count['missed']} missed, {len(wrong)} wrong or failed, {len(lines)} lines")
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"schema": 1, "versions": versions, "missing": missing, "lines": lines}, indent=1))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
