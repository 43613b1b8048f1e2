# SPDX-License-Identifier: Apache-2.0
"""Tiles too large for registers: kernels whose code works on them in parts and keeps them in the threads' memory give the bits
of the CPU, on the simulator, which also finds races and reads of what nobody wrote. On a GPU: test_large.py cuda"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TKC = os.environ["TKC"]
DEVICE = sys.argv[1] if len(sys.argv) > 1 else "sim"
WARPS = (1, 2, 4, 8, 16, 32) if DEVICE != "sim" else (1, 4)
N = 16384
# x, a: i32, f: f32 of small integers, given; w, z: read and written; y: written; k: a number. a and b have 128 columns.
BODIES = {
    "elementwise": "y[0 +: N] = where(x[0 +: N] > 3, x[0 +: N] * 2, iota(N) - k);",
    "reductions": "let t = x[0 +: N]; y[0] = sum(t); y[1] = max(t); y[2] = argmax(t); y[3] = argmin(f[0 +: N]); y[4] = xor(t * k);\n"
                  "z[0] = sum(f[0 +: N]); z[1] = min(f[0 +: N]); y[16 +: 16] = histogram(t, 16);",
    "softmax": "let m = max(f[0 +: N]); let e = exp2(f[0 +: N] - m); z[0 +: N] = e * rcp(sum(floor(e)) + 1.0);",
    "rows": "let t = a[0 +: 128, 0 +: 128]; b[0 +: 128, 0 +: 128] = t - max(t, axis = 1) + sum(t, axis = 0);",
    "row_numbers": "y[0 +: 128] = reshape(argmax(a[0 +: 128, 0 +: 128], axis = 1), [128]);\n"
                   "y[128 +: 128] = reshape(argmin(a[0 +: 128, 0 +: 128], axis = 0), [128]);",
    "transposed": "b[0 +: 128, 0 +: 128] = transpose(a[0 +: 128, 0 +: 128]) + a[3 +: 128, 5 +: 128];",
    "in_place": "w[0 +: N] = w[0 +: N] - max(w[0 +: N]);",
    "shifted": "w[0 +: N] = w[1 +: N];",
    "backwards": "w[N - 1 - iota(N)] = w[0 +: N];",
    "carried": "var p = x[0 +: N]; var q = w[0 +: N]; for i in 0 .. k { let c = p; p = q * 2 + i; q = c; }\n"
               "y[0 +: N] = p; w[0 +: N] = q;",
    "carried_while": "var p = x[0 +: N]; var i = 0; while max(p) < 4000 && i < 20 { p = p * 3 - i; i += 1; } y[0 +: N] = p;",
    "chosen": "var p = x[0 +: N]; if k > 2 { p = p + sum(p); } else { p = flip(p, 0); } y[0 +: N] = p;\n"
              "var q = x[0 +: N]; if k > 90 { q = q + sum(q); } else { q = flip(q, 0); } w[0 +: N] = q;",
    "scans": "y[0 +: N] = cumsum(x[0 +: N], axis = 0); w[0 +: N] = cummax(x[0 +: N], axis = 0, reverse = true);\n"
             "z[0 +: N] = cumsum(f[0 +: N], axis = 0, exclusive = true);",
    "scan_of_rows": "b[0 +: 128, 0 +: 128] = cumsum(a[0 +: 128, 0 +: 128], axis = 0) + cumsum(a[0 +: 128, 0 +: 128], axis = 1);",
    "masks": "let m = x[0 +: N] > 2; y[1 +: N where m] = x[2 +: N where m] else -1;",
    "indices": "y[(iota(N) * 5) & (N - 1)] = x[N - 1 - iota(N)];",
    "atomics": "let o = atomic_add(w[(iota(N) & 127) * 128 + iota(N) / 128], x[0 +: N]); y[0 +: N] = o;",
    "random": "z[0 +: N] = rand(k, iota(N)); z[7] = f32(k);",
    "picked": "let i = iota(64) * 300 - 9; y[0 +: 64] = gather(x[0 +: N], i, axis = 0);",
    "product": "let p = f32(a[0 +: 128, 0 +: 128]); b[0 +: 128, 0 +: 128] = i32(dot(p, transpose(p)));",
}
PARAMS = "x: in i32[A], f: in f32[B], w: inout i32[C], y: inout i32[D], z: inout f32[E], k: i32, a: in i32[F, G], b: inout i32[F, G]"


def arrays():
    r = np.random.default_rng(5)
    return {"x": r.integers(-100, 100, N, np.int32), "f": r.integers(-8, 8, N).astype(np.float32),
            "w": r.integers(-1000, 1000, N, np.int32), "y": np.full(N, -1, np.int32), "z": np.full(N, -1, np.float32),
            "a": r.integers(-100, 100, (128, 128), np.int32), "b": np.full((128, 128), -1, np.int32)}


def run(folder, name, warps, device):
    """The bytes of all that the kernel writes; its faults as text."""
    out = folder / f"{name}.{warps}.{device}"
    words = [TKC, "run", f"{name}.{warps}.tk", "--device", device, "--scalar", "k=5"]
    for tensor in "xfwyzab":
        words += ["--in", f"{tensor}={tensor}.npy"]
        words += ["--out", f"{tensor}={out}.{tensor}.npy"] if tensor in "wyzb" else []
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        return done.stdout.decode()
    return b"".join(pathlib.Path(f"{out}.{t}.npy").read_bytes() for t in "wyzb")


def judge(folder, name, warps):
    source = f"@warps({warps})\nkernel large({PARAMS}) {{\n{BODIES[name].replace('N', str(N))}\n}}\n"
    (folder / f"{name}.{warps}.tk").write_text(source, encoding="utf-8")
    want, got = run(folder, name, warps, "cpu"), run(folder, name, warps, DEVICE)
    return None if want == got and isinstance(want, bytes) else f"{name}, {warps} warps: {want if isinstance(want, str) else got if isinstance(got, str) else 'other bits'}"


def main():
    if DEVICE == "sim" and "built without LLVM" in subprocess.run([TKC, "info"], stdout=subprocess.PIPE, check=True).stdout.decode():
        print("SKIPPED: this build has no GPU code generator")
        return
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        for tensor, data in arrays().items():
            np.save(folder / f"{tensor}.npy", data)
        jobs = [(body, warps) for body in BODIES for warps in WARPS]
        bad = [line for line in pool.map(lambda job: judge(folder, *job), jobs) if line]
        print("\n".join(bad + [f"{len(jobs)} kernels on {DEVICE}, {len(bad)} failed"]))
        sys.exit(1 if bad else 0)


main()
