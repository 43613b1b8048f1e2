# SPDX-License-Identifier: Apache-2.0
"""`tkc bench` on the simulated driver, whose clock is moved by launches and copies alone: a launch takes 10 us, every fourth 12.5, a copy 2 us
and what it moves at 2 TB/s. So all figures but those of a GPU are known."""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import numpy as np

TKC = os.environ["TKC"]
DRIVER = pathlib.Path(TKC).resolve().parent / "tests" / "sim_driver"
FAILED = []
FOLDER = None
SVG = "{http://www.w3.org/2000/svg}"


def check(condition, what):
    if not condition:
        FAILED.append(what)
        print("FAIL", what)


def bench(*words, code=0, driver=DRIVER):
    done = subprocess.run([TKC, "bench", *map(str, words), "--no-cache"], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, LD_LIBRARY_PATH=str(driver)), check=False, timeout=300, text=True)
    check(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def points(*words, code=0):
    (FOLDER / "b.json").unlink(missing_ok=True)
    bench(*words, "--json", "b.json", code=code)
    return json.loads((FOLDER / "b.json").read_text())["points"]


KERNELS = """
kernel scaled<T: type = f32, BN: int = 1024>(x: in T[M, N], y: out T[M, N], z: out T[M, N] = none, a: f32 = 2.0) grid (i in M, j in cdiv(N, BN)) {
    y[i, j * BN +: BN] = T(f32(x[i, j * BN +: BN]) * a);
    if given(z) {
        z[i, j * BN +: BN] = x[i, j * BN +: BN];
    }
}
kernel added<BN: int = 1024>(x: in f32[N], y: inout f32[N]) grid (j in cdiv(N, BN)) {
    y[j * BN +: BN] = y[j * BN +: BN] + x[j * BN +: BN];
}
kernel roots<BN: int = 1024>(x: in f32[N], y: out f32[N]) grid (j in cdiv(N, BN)) {
    y[j * BN +: BN] = sqrt(x[j * BN +: BN]);
}
kernel picked(x: in f32[N], i: in i64[M], y: out f32[M]) grid (r in M) {
    y[r] = x[i[r]];
}
kernel half(x: in f32[N], y: out f32[N]) { y[0 +: 1] = x[0 +: 1]; }
kernel filled(y: out f32[M, N]) grid (i in M) { for j in 0 .. N { y[i, j] = 1.0; } }
kernel product(a: in f16[M, 32], b: in f16[32, N], c: out f32[M, N]) grid (i in cdiv(M, 32), j in cdiv(N, 32)) {
    c[i * 32 +: 32, j * 32 +: 32] = dot(a[i * 32 +: 32, 0 +: 32], b[0 +: 32, j * 32 +: 32], zeros([32, 32], f32));
}
"""


def figures():
    found = points("k.tk", "--kernel", "scaled", "--sizes", "M=8,N=4096:16384:x2")
    check([p["sizes"] for p in found] == [{"M": 8, "N": n} for n in (4096, 8192, 16384)], found)
    for p in found:
        us, moved = p["microseconds"], 2 * 8 * p["sizes"]["N"] * 4
        check(p["error"] is None and p["bytes"] == moved and p["largest_tensor"] == moved // 2, p)
        check(math.isclose(us["median"], 10, rel_tol=1e-4) and math.isclose(us["least"], 10, rel_tol=1e-4), us)
        check(us["least"] <= us["low"] <= us["median"] <= us["high"] <= 12.51, us)
        check(math.isclose(p["gb_s"], moved / us["median"] / 1e3, rel_tol=1e-9) and p["tflop_s"] is None, p)
        copy_us = 2 + moved / 2e6
        check(math.isclose(p["copy"]["microseconds"]["median"], copy_us, rel_tol=1e-4) and p["copy"]["bytes"] == moved, p["copy"])
        check(math.isclose(p["of_copy"], copy_us / us["median"], rel_tol=1e-4), p)
        check(math.isclose(p["read"]["gb_s"], moved / 2 / 10 / 1e3, rel_tol=1e-4) and math.isclose(p["of_read"], 2, rel_tol=1e-4), p["read"])
        check(p["checked_against"] == "cpu" and p["greatest_error"] == 0, p)
        check(p["sets"] == 3 and not p["cache_flushed"], p)
    small = points("k.tk", "--kernel", "scaled", "--sizes", "M=1,N=64", "--launches", "7")[0]
    check(small["cache_flushed"] and small["sets"] == 3, small)
    check(points("k.tk", "--kernel", "scaled", "--sizes", "M=1,N=8191,8192", "--launches", "4")[1]["cache_flushed"] is False, "64 KB")
    # What is copied and read is whole rows of 16 KB.
    check(small["copy"]["bytes"] == 32768 and small["read"]["bytes"] == 16384, small)


def sweeps():
    def sizes(text):
        return [tuple(p["sizes"].values()) for p in points("k.tk", "--kernel", "scaled", "--launches", "4", "--sizes", text)]
    check(sizes("M=1,2,N=8,3") == [(1, 8), (1, 3), (2, 8), (2, 3)], "values one by one, the last name fastest")
    check(sizes("N=16:56:+16,M=2") == [(16, 2), (32, 2), (48, 2)], "steps")
    check(sizes("M=3:20:x3,N=0x10") == [(3, 16), (9, 16)], "factors; an end that is not met")
    found = points("k.tk", "--kernel", "picked", "--sizes", "N=50,M=7:28:x2", "--in", "i=randint(0,N,M)", "--launches", "4")
    check([p["bytes"] for p in found] == [50 * 4 + m * 12 for m in (7, 14, 28)], found)
    found = points("k.tk", "--kernel", "scaled", "--in", "x=randn(3,5):f16", "--launches", "4")
    check(len(found) == 1 and found[0]["sizes"] == {} and found[0]["bytes"] == 60, found)
    found = points("k.tk", "--kernel", "filled", "--sizes", "M=2,N=9", "--launches", "4")
    check(found[0]["bytes"] == 72 and found[0]["checked_against"] == "cpu", found)
    found = points("k.tk", "--kernel", "scaled", "--sizes", "M=2,N=8,9", "--warps", "0,1,32", "--launches", "4")
    check([(p["warps"], p["sizes"]["N"]) for p in found] == [(w, n) for w in (0, 1, 32) for n in (8, 9)], found)
    found = points("k.tk", "--kernel", "scaled", "--sizes", "M=2,N=8", "--given", "z", "--launches", "4")
    check(found[0]["bytes"] == 3 * 64, "an optional output counts where it is there")
    found = points("k.tk", "--kernel", "scaled", "--sizes", "M=0,4,N=8", "--launches", "4", code=1)
    check("no tensor has elements" in found[0]["error"] and found[1]["error"] is None, found)
    _, text = bench("k.tk", "--kernel", "picked", "--sizes", "N=50,M=7", code=2)
    check("--in i: randn(7) makes floats, not i64" in text, text)
    _, text = bench("k.tk", "--kernel", "scaled", code=1)
    check("input 'x' is not given" in text, text)


def outputs():
    x = np.random.default_rng(1).standard_normal((2, 600)).astype(np.float32)
    np.save(FOLDER / "x.npy", x)
    np.save(FOLDER / "y.npy", 2 * x.astype(np.float64))
    np.save(FOLDER / "wrong.npy", np.where(np.arange(600) == 77, 2 * x + 0.5, 2 * x))
    words = ("k.tk", "--kernel", "scaled", "--in", "x=x.npy", "--launches", "4")
    check(points(*words, "--expect", "y=y.npy")[0]["checked_against"] == "file", "a file")
    check(points(*words, "--no-check")[0]["checked_against"] is None, "not compared")
    found = points(*words, "--expect", "y=wrong.npy", code=1)[0]
    check("output 'y' is wrong: 2 of 1200 elements out of tolerance" in found["error"] and "microseconds" not in found, found)
    points(*words, "--expect", "y=wrong.npy", "--atol", "0.6")
    _, text = bench(*words, "--expect", "x=y.npy", code=2)
    check("this parameter is an input" in text, text)
    found = points(*words[:3], "--sizes", "M=2,N=8", "--expect", "y=y.npy", code=1)[0]
    check("another shape" in found["error"], found)
    found = points("k.tk", "--kernel", "roots", "--sizes", "N=100", "--launches", "4", code=1)[0]
    check("output 'y' has NaN at [" in found["error"] and "gb_s" not in found, found)
    found = points("k.tk", "--kernel", "roots", "--sizes", "N=100", "--in", "x=rand(N)", "--launches", "4")[0]
    check(found["error"] is None, found)
    # What nobody writes is NaN before.
    found = points("k.tk", "--kernel", "half", "--sizes", "N=100", "--no-check", "--launches", "4", code=1)[0]
    check("output 'y' has NaN at [1]" in found["error"], found)
    found = points("k.tk", "--kernel", "added", "--sizes", "N=1000", "--launches", "4")[0]
    check(found["error"] is None and found["bytes"] == 12000 and found["greatest_error"] == 0, "an inout tensor is judged after one launch")
    # The GPU's exponential is not the CPU's.
    found = points("std/softmax.tk", "--kernel", "softmax", "--sizes", "M=2,N=300", "--rtol", "0", "--atol", "0", "--launches", "4", code=1)[0]
    check("is wrong" in found["error"], found)
    found = points("std/softmax.tk", "--kernel", "softmax", "--sizes", "M=2,N=300", "--launches", "4")[0]
    check(0 < found["greatest_error"] < 1e-6, found)


def texts():
    out, _ = bench("k.tk", "--kernel", "scaled", "-D", "T=bf16", "--sizes", "M=8,N=8192")
    check("scaled, T=bf16 on cuda: Simulated GPU; 50 launches, seed 0" in out, out)
    line = out.splitlines()[2].split()
    check(line[:4] == ["8", "8192", "10.00", "us"], out)
    check("clocks at the last: 1980 MHz, memory 3201 MHz; 512 W, 41 C; held back by power, temperature" in out, out)
    with tempfile.TemporaryDirectory(prefix="tkc-driver-") as alone:
        (pathlib.Path(alone) / "libcuda.so.1").symlink_to(DRIVER / "libcuda.so.1")
        out, _ = bench("k.tk", "--kernel", "scaled", "--sizes", "M=2,N=8", "--launches", "4", "--no-check", driver=alone)
    check("clocks and power: unknown: libnvidia-ml.so.1 is not found" in out and "outputs were not compared" in out, out)
    out, _ = bench("k.tk", "--kernel", "scaled", "--sizes", "M=2,N=8", "--launches", "4", "--json", "-")
    whole = json.loads(out[out.index("\n{") + 1:])
    check(whole["schema"] == 1 and whole["kernel"] == "scaled" and whole["gpu"]["name"] == "Simulated GPU", whole)
    check(whole["launches"] == 4 and whole["device"] == "cuda" and whole["gpu"]["cache"] == 65536, whole)
    check(whole["points"][0]["clocks"] == {"sm_mhz": 1980, "memory_mhz": 3201, "watts": 512.5, "celsius": 41,
                                           "held_back_by": "power, temperature"}, whole["points"])
    _, text = bench("k.tk", "--kernel", "scaled", "--sizes", "M=2,N=8", "--device", "cuda:1", code=3)
    check("no device 'cuda:1'" in text, text)


def products():
    found = points("k.tk", "--kernel", "product", "--sizes", "M=64,N=96", "--launches", "4")[0]
    check(math.isclose(found["tflop_s"], 2 * 64 * 96 * 32 / found["microseconds"]["median"] / 1e6, rel_tol=1e-9), found)


def plots():
    def drawing(*words, code=0):
        bench("k.tk", "--launches", "4", "--plot", "p.svg", *words, code=code)
        text = (FOLDER / "p.svg").read_text()
        check("prefers-color-scheme: dark" in text and not re.search(r"nan|inf\b", text.split("</style>")[1]), text)
        root = xml.etree.ElementTree.fromstring(text)
        width, height = map(float, root.get("viewBox").split()[2:])
        for dot in root.iter(SVG + "circle"):
            check(0 <= float(dot.get("cx")) <= width and 0 <= float(dot.get("cy")) <= height, dot.attrib)
        for line in root.iter(SVG + "polyline"):
            for place in line.get("points").split():
                x, y = map(float, place.split(","))
                check(0 <= x <= width and 0 <= y <= height, line.attrib)
        return root, [t.text for t in root.iter(SVG + "text")]

    root, words = drawing("--kernel", "scaled", "--sizes", "M=8,N=64:4096:x2")
    check({"N", "GB/s", "a copy", "a read", "scaled", "64", "4Ki"} <= set(words), words)
    check(len(list(root.iter(SVG + "circle"))) == 7, "a dot for each point")
    dots = [(float(d.get("cx")), float(d.get("cy"))) for d in root.iter(SVG + "circle")]
    steps = np.diff([x for x, _ in dots])
    check(np.allclose(steps, steps[0], atol=0.11) and all(a[1] > b[1] for a, b in zip(dots, dots[1:])), f"by powers of two, rising: {dots}")
    root, words = drawing("--kernel", "scaled", "--sizes", "M=1,4,N=100:300:+100")
    check({"M=1", "M=4", "N", "200"} <= set(words), words)
    check(sum("line" in p.get("class") for p in root.iter(SVG + "polyline")) == 2, "a line for each M")
    root, words = drawing("--kernel", "product", "--sizes", "M=32,N=32,64")
    check("TFLOP/s" in words and "a copy" not in words, words)
    _, words = drawing("--kernel", "scaled", "--in", "x=randn(2,8)")
    check("bytes moved" in words, words)
    root, words = drawing("--kernel", "roots", "--sizes", "N=100,200", code=1)
    check(not list(root.iter(SVG + "circle")), "points without figures are not drawn")


def main():
    global FOLDER
    info = subprocess.run([TKC, "info"], stdout=subprocess.PIPE, check=True, text=True).stdout
    if not (DRIVER / "libcuda.so.1").is_file() or "built without LLVM" in info:
        print("SKIPPED: this build has no GPU code generator")
        return 0
    with tempfile.TemporaryDirectory(prefix="tkc-bench-") as scratch:
        FOLDER = pathlib.Path(scratch)
        (FOLDER / "k.tk").write_text(KERNELS)
        for part in (figures, sweeps, outputs, texts, products, plots):
            part()
    print("FAILED" if FAILED else "passed", len(FAILED))
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
