# SPDX-License-Identifier: Apache-2.0
"""Runs softmax, layernorm, matmul and attention of the standard library with `tkc run` and compares with NumPy in float64.
The bounds: of a float32 sum of n terms n * 2^-24 * sum of magnitudes, and a rounding to the output's type."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

TKC = os.environ.get("TKC", "tkc")
U = 2.0 ** -24


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def run_softmax(rng):
    x = rng.standard_normal((1823, 781)).astype(np.float32)
    y = softmax(x.astype(np.float64))
    return {"x": x}, [], {"y": (y, 40 * U * y)}


def run_layernorm(rng):
    x = rng.standard_normal((512, 1000)).astype(np.float32)
    w, b = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    x64 = x.astype(np.float64)
    d = x64 - x64.mean(axis=1, keepdims=True)
    t = d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w
    return {"x": x, "w": w, "b": b}, [], {"y": (t + b, 100 * U * (np.abs(t) + np.abs(b) + np.abs(w)))}


def run_matmul(rng):
    a = rng.standard_normal((300, 512)).astype(np.float16)
    b = rng.standard_normal((512, 200)).astype(np.float16)
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    c = a64 @ b64
    bound = 512 * U * (np.abs(a64) @ np.abs(b64)) + 2.0 ** -11 * np.abs(c)
    return {"a": a, "b": b}, [], {"c": (c, bound)}


def run_attention(rng):
    q = rng.standard_normal((2, 4, 100, 64)).astype(np.float32)
    k, v = (rng.standard_normal((2, 2, 150, 64)).astype(np.float32) for _ in range(2))
    q64 = q.astype(np.float64)
    k64, v64 = (np.repeat(t.astype(np.float64), 2, axis=1) for t in (k, v))  # 4 query heads share 2 key heads
    s = np.einsum("bhmd,bhnd->bhmn", q64, k64) * 0.125
    s[..., np.arange(150) > np.arange(100)[:, None] + 50] = -np.inf
    p = softmax(s)
    o = p @ v64
    return {"q": q, "k": k, "v": v}, ["-D", "mask=causal", "--scalar", "scale=0.125"], \
        {"o": (o, 300 * U * (p @ np.abs(v64)))}


EXAMPLES = [("softmax", "softmax", run_softmax), ("norm", "layernorm", run_layernorm),
            ("matmul", "matmul", run_matmul), ("attention", "attention", run_attention)]


def shape(x):
    name = {"float16": "f16", "float32": "f32", "float64": "f64"}[x.dtype.name]
    return f"{name}[{', '.join(map(str, x.shape))}]"


def run(folder, file, kernel, make):
    """Runs one kernel. True where the result is within its bound."""
    inputs, options, outputs = make(np.random.default_rng(1))
    command = [TKC, "run", f"std/{file}.tk", "--kernel", kernel, "--time", *options]
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--in", f"{name}={folder}/{name}.npy"]
    for name in outputs:
        command += ["--out", f"{name}={folder}/{name}.npy"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    device = re.search(r" on (\w+),", done.stdout)
    print(f"{kernel} of std/{file}.tk on {device.group(1) if device else 'no device'}")
    for name, value in inputs.items():
        print(f"  in   {name}: {shape(value)}")
    if done.returncode != 0:
        print(f"  FAILED: tkc ended with {done.returncode}")
        return False
    good = True
    for name, (expected, bound) in outputs.items():
        value = np.load(folder / f"{name}.npy")
        error = np.abs(value.astype(np.float64) - expected)
        share = (error / np.maximum(bound, 2.0 ** -149)).max()
        good = good and bool(share <= 1)
        print(f"  out  {name}: {shape(value)}")
        print(f"  greatest error against NumPy in float64: {error.max():.2e} absolute, "
              f"{share:.0%} of what rounding allows{'' if share <= 1 else ': WRONG'}")
    print("  " + done.stdout.strip())
    return good


def main():
    print(subprocess.run([TKC, "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout, end="")
    with tempfile.TemporaryDirectory(prefix="tkc-demo-") as scratch:
        results = [run(pathlib.Path(scratch), *example) for example in EXAMPLES]
    print(f"{sum(results)} of {len(results)} agree")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
