# SPDX-License-Identifier: Apache-2.0
# Random programs on a GPU against the CPU, and launches repeated on a GPU; run by gpu_worker.py for scripts/gpu-suite.
#
#     gpu_programs.py compare FIRST COUNT SECONDS   runs these, until the time is over: for the simulator's tests
#     gpu_programs.py show SEED         prints that program as it runs here
#     gpu_programs.py shrink SEED ...   prints the shortest of them, made smaller as long as they give other bits
import math
import sys
import time

import numpy as np

import judge
import random_programs
import tkclib
from judge import Guarded, LAYOUTS
from tkclib import Kernel, Mirror

WARPS = (4, 1, 2, 8, 16, 32)
OWN_ULPS = {"f32": 0.51, "f64": 2.5}  # of the executor's functions with an error bound


# ---- Bits ---------------------------------------------------------------------------------------

def nans(a, dtype):
    bits = a.reshape(-1).view(f"u{a.itemsize}").astype(np.uint64)
    kind = {"f8e4m3": (0x7f, 0x7e), "f8e5m2": (0x7f, 0x7c), "f16": (0x7fff, 0x7c00), "bf16": (0x7fff, 0x7f80), "f32": (0x7fffffff, 0x7f800000),
            "f64": (2 ** 63 - 1, 0x7ff0000000000000)}.get(dtype)
    return bits & np.uint64(kind[0]) > np.uint64(kind[1]) if kind else np.zeros(bits.shape, bool)


def steps(a):
    """Floats as integers that count representable values."""
    bits = a.reshape(-1).view(f"i{a.itemsize}").astype(object)
    top = 1 << (8 * a.itemsize - 1)
    return np.array([b if b >= 0 else -(b + top) for b in bits], object)


def differ(got, want, dtype, ulps):
    """Where two arrays are not the same, as a text, or None."""
    got, want = np.ascontiguousarray(got), np.ascontiguousarray(want)
    unsigned = f"u{got.itemsize}"
    bad = (got.reshape(-1).view(unsigned) != want.reshape(-1).view(unsigned)) & ~(nans(got, dtype) & nans(want, dtype))
    if ulps and bad.any():
        at = np.flatnonzero(bad)
        near = np.abs(steps(got.reshape(-1)[at]) - steps(want.reshape(-1)[at])) <= ulps
        bad[at[near.astype(bool) & ~nans(got, dtype)[at] & ~nans(want, dtype)[at]]] = False
    if not bad.any():
        return None
    k = int(np.flatnonzero(bad)[0])
    return (f"{bad.sum()} of {bad.size} differ, first {k}: 0x{int(got.reshape(-1).view(unsigned)[k]):x} "
            f"for 0x{int(want.reshape(-1).view(unsigned)[k]):x}")


# ---- Random programs ----------------------------------------------------------------------------

def tensors(p, layouts):
    """The arguments of a program, each laid out in a larger buffer."""
    made = {}
    for a, layout in zip(p.arguments, layouts):
        t = made[a.name] = Guarded(a.bits.shape, a.dtype, layout)
        t.fill(1 if a.dtype == "bool" else 0x5A)
        t.array.bits[...] = a.bits.view(tkclib.STORAGE[a.dtype])
    return made


def launch(kernel, device, p, given):
    args = dict({name: t.array for name, t in given.items()}, n=p.number)
    kernel.on(device, **{name: args[name] for name in kernel.params})
    for name, t in given.items():
        t.check(name)


def program(seed):
    """A program, its text with warps, and how its tensors lie on each device."""
    most, least = (16384, 4096) if seed % 17 == 0 else (4096, 1) if seed % 7 == 0 else (1024, 1)
    p = random_programs.generate(seed, pow2=seed % 5 < 3, math=seed % 4 == 0, most=most, least=least)
    if seed % 4 != 3:  # the others as the compiler chooses, which may make small ones share a block
        p.source = tkclib.with_warps(p.source, WARPS[seed % 6])
    layouts = [p.r.choice(("dense",) * 4 + LAYOUTS) for _ in p.arguments]
    return p, layouts, ["dense"] * len(layouts) if seed % 2 else layouts


def apart(function, dtype):
    """How many values two results of a function may be apart: both bounds, where the unit may be the half of the reference's."""
    return math.ceil(2 * (judge.math_bounds()[function][dtype == "f64"] + OWN_ULPS[dtype])) if function else 0


def compare(seed, source=None):
    p, cpu, gpu = program(seed)
    kernel = Kernel(source or p.source, check=False)
    try:
        want, got = tensors(p, cpu), tensors(p, gpu)
        launch(kernel, "cpu", p, want)
        launch(kernel, tkclib.DEVICE, p, got)
        for a in p.arguments:
            why = differ(got[a.name].array.bits, want[a.name].array.bits, a.dtype, apart(p.applied.get(a.name), a.dtype))
            assert not why, f"{WARPS[seed % 6] if seed % 4 != 3 else 'chosen'} warps, {a.name} ({a.dtype}): {why}"
    finally:
        kernel.close()


def fails(seed, source):
    try:
        compare(seed, source)
    except (AssertionError, tkclib.DeviceError):
        return True
    except tkclib.TkcError:
        pass
    return False


def shrink_mode(*seeds):
    """Prints the three shortest of these programs, made smaller for as long as they give other bits."""
    for seed in sorted(seeds, key=lambda n: len(program(n)[0].source))[:3]:
        until = time.monotonic() + 25
        print(f"// program {seed}")
        print(random_programs.shrink(program(seed)[0].source, lambda source: time.monotonic() < until and fails(seed, source)), flush=True)


def compare_mode(first, count, seconds):
    until, ran, failed = time.monotonic() + seconds, 0, 0
    for seed in range(first, first + count):
        if time.monotonic() > until:
            break
        ran += 1
        try:
            compare(seed)
        except (AssertionError, tkclib.TkcError) as e:
            failed += not isinstance(e, tkclib.Refused)
            print(f"program {seed}: {e}", flush=True)
    print(f"{ran} programs, {failed} failed")
    sys.exit(failed > 0 or ran < min(count, 10))


# ---- Repeated launches --------------------------------------------------------------------------

REPEATED = {
    "sum": "kernel k(x: in f32[64, 1024], y: out f32[64]) grid (i in 64) { y[i] = sum(x[i, 0 +: 1024]); }",
    "softmax": "kernel k(x: in f32[64, 1024], y: out f32[64, 1024]) grid (i in 64) {\n    let r = x[i, 0 +: 1024];\n    let e = exp(r - max(r));\n"
               "    y[i, 0 +: 1024] = e / sum(e);\n}",
    "columns": "kernel k(x: in f32[64, 1024], y: out f32[1, 1024]) grid (i in 16) { y[0 +: 1, i * 64 +: 64] = sum(x[0 +: 64, i * 64 +: 64], axis = 0); }",
    "cumsum": "kernel k(x: in f32[64, 1024], y: out f32[64, 1024]) grid (i in 64) { y[i, 0 +: 1024] = cumsum(x[i, 0 +: 1024]); }",
    "sort": "kernel k(x: in f32[64, 1024], y: out f32[64, 1024]) grid (i in 64) { y[i, 0 +: 1024] = sort(x[i, 0 +: 1024], 0); }",
    "dot": "kernel k(x: in f32[64, 1024], y: out f32[64, 64]) grid (i in 2, j in 2) {\n    var acc = zeros([32, 32], f32);\n    for c in 0 .. 1024 step 32 {\n"
           "        acc = dot(x[i * 32 +: 32, c +: 32], transpose(x[j * 32 +: 32, c +: 32]), acc);\n    }\n    y[i * 32 +: 32, j * 32 +: 32] = acc;\n}",
    "atomics": "kernel k(x: in f32[64, 1024], y: inout i32[64], z: inout u64[1024]) grid (i in 64) {\n    let b = bitcast(x[i, 0 +: 1024], i32);\n"
               "    atomic_add(y[b & 63], b);\n    atomic_max(z[(b >> 3) & 1023], u64(b));\n}",
    "exchange": "kernel k(x: in f32[64, 1024], w: inout f32[64, 1024], y: out f32[64, 1024]) grid (i in 64) {\n    w[i, 0 +: 1024] = x[i, 0 +: 1024];\n"
                "    let t = w[i, (1023 - iota(1024))];\n    w[i, 0 +: 1024] = t + sum(t);\n    y[i, 0 +: 1024] = w[i, (iota(1024) * 5) & 1023];\n}",
}


def repeat(name, warps, times):
    """Launches that must all give the same bits."""
    kernel = Kernel(tkclib.with_warps(REPEATED[name], warps), check=False)
    rng = np.random.default_rng(1)
    shapes = {"sum": {"y": (64,)}, "columns": {"y": (1, 1024)}, "dot": {"y": (64, 64)}, "atomics": {"y": (64,), "z": (1024,)}}.get(name, {"y": (64, 1024)})
    kinds = {"y": np.int32, "z": np.uint64} if name == "atomics" else {}
    given = {"x": rng.standard_normal((64, 1024)).astype(np.float32)}
    if name == "exchange":
        given["w"] = np.zeros((64, 1024), np.float32)
    given.update({n: np.zeros(s, kinds.get(n, np.float32)) for n, s in shapes.items()})
    start = {n: a.copy() for n, a in given.items()}
    want = None
    try:
        with Mirror(tkclib.library().device(), given.values()) as mirror:
            args = (tkclib.Arg_ * len(kernel.params))(*[tkclib._arg(given[n]) for n in kernel.params])
            for arg, n in zip(args, kernel.params):
                arg.tensor.data = mirror.address(given[n].ctypes.data)
            for k in range(times):
                for n in kernel.outputs():
                    mirror.copy(mirror.address(given[n].ctypes.data), start[n].ctypes.data, start[n].nbytes, tkclib.TO_DEVICE)
                kernel.launch(tkclib.DEVICE, args, False)
                mirror.back()
                bits = [given[n].tobytes() for n in kernel.outputs()]
                want = want or bits
                assert bits == want, f"launch {k} gives other bits"
    finally:
        kernel.close()


REPEATS = [(name, warps) for name in REPEATED for warps in (1, 4, 32)]


if __name__ == "__main__":
    {"shrink": shrink_mode, "compare": compare_mode, "show": lambda seed: print(program(seed)[0].source)}[sys.argv[1]](*map(int, sys.argv[2:]))
