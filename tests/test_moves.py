# SPDX-License-Identifier: Apache-2.0
"""Chains of ops that move elements, as code for GPUs on the simulator, which finds races and unordered barriers, against
the executor's bits.

    test_moves.py [SEED [COUNT]]
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

TKC = os.environ["TKC"]
TYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "i64": np.int64, "u16": np.uint16}


def op(v, k, rows, cols):
    """Lines that make v{k} from v, of the same shape and type."""
    half = cols // 2
    pair = f"let (e{k}, o{k}) = deinterleave({v});\n    "
    return random.choice([
        f"let v{k} = reshape(transpose({v}), [{rows}, {cols}]);",
        f"let v{k} = flip({v}, 0);",
        f"let v{k} = flip({v}, 1);",
        f"{pair}let v{k} = interleave(o{k}, e{k});",
        f"{pair}let v{k} = concat(o{k}, e{k}, 1);",
        f"let v{k} = concat(slice({v}, 1, {half}, {half}), slice({v}, 1, 0, {half}), 1);",
        f"let v{k} = concat(slice({v}, 1, {(half + 1) // 2}, {half}), slice({v}, 1, {half // 4}, {half}), 1);",
        f"let v{k} = reshape(permute(reshape({v}, [{rows}, 2, {half}]), [2, 0, 1]), [{rows}, {cols}]);",
        f"let v{k} = gather({v}, broadcast(flip(iota({cols}) >> 1, 0), [{rows}, {cols}]), 1);",
        f"let v{k} = {v} - max({v}, axis = 1);",
    ])


def program(folder, n):
    t, rows, cols = random.choice(list(TYPES)), 2**random.randint(0, 5), 2**random.randint(1, 6)
    lines, v = [], "a"
    for k in range(random.randint(3, 8)):
        lines.append(op(v, k, rows, cols))
        v = f"v{k}"
    body = "\n    ".join(lines)
    path = folder / f"{n}.tk"
    path.write_text(f"@warps({random.choice((1, 2, 4, 8))})\nkernel k(x: in {t}[{rows}, {cols}], y: out {t}[{rows}, {cols}]) {{\n"
                    f"    let a = x[0 +: {rows}, 0 +: {cols}];\n    {body}\n    y[0 +: {rows}, 0 +: {cols}] = {v};\n}}\n",
                    encoding="utf-8")
    np.save(folder / f"{n}.x.npy", np.random.RandomState(n).randint(-50, 50, (rows, cols)).astype(TYPES[t]))
    return path


def run(folder, n, *words):
    return subprocess.run([TKC, "run", f"{n}.tk", "--in", f"x={n}.x.npy", *words], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=120)


def main():
    seed, count = (int(a) for a in (sys.argv[1:] + ["1", "30"][len(sys.argv) - 1:]))
    if "built without LLVM" in subprocess.run([TKC, "info"], capture_output=True, text=True, check=True).stdout:
        print("SKIPPED: this build has no GPU code generator")
        return 0
    random.seed(seed)
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for n in range(count):
            path = program(folder, n)
            done = run(folder, n, "--out", f"y={n}.y.npy", "--device", "cpu")
            for device in ("sim", "sim:80") if done.returncode == 0 else ():
                done = run(folder, n, "--expect", f"y={n}.y.npy", "--device", device, "--seed", str(n)) if done.returncode == 0 else done
            if done.returncode:
                bad += 1
                print(f"{path.read_text()}{done.stderr}{done.stdout}")
    print(f"{count} programs, {bad} failed")
    return 1 if bad else 0


sys.exit(main())
