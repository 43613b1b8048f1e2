# SPDX-License-Identifier: Apache-2.0
"""`tkc run` where files or NumPy are needed to judge it: random arrays, expectations, files that cannot be written."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

TKC = os.environ["TKC"]
FOLDER = None
FAILED = []

KERNELS = """kernel copy<T: type>(x: in T[N], y: out T[N]) grid (i in cdiv(N, 64)) { y[i * 64 +: 64] = x[i * 64 +: 64]; }
kernel two<T: type>(a: in T[N], b: in T[N], y: out T[N]) grid (i in cdiv(N, 64)) {
    y[i * 64 +: 64] = a[i * 64 +: 64] + b[i * 64 +: 64];
}
kernel half(x: in f32[N], y: out f32[N], n: out i32[N], m: out bool[N]) { y[0 +: 2] = x[0 +: 2]; n[0 +: 2] = 1; m[0 +: 2] = false; }
kernel opt(x: in f32[N], y: out f32[N], z: out f32[N] = none, s: f32 = 2.0) {
    y[0 +: 8] = x[0 +: 8] * s;
    if given(z) { z[0 +: 8] = x[0 +: 8] + s; }
}
kernel sized(y: out i64[M, N], a: i64) { y[0 +: 4, 0 +: 4] = full([4, 4], a); }
"""


def check(condition, what):
    if not condition:
        FAILED.append(what)
        print("FAIL", what)


def tkc(*words, code=0, **more):
    done = subprocess.run([TKC, *map(str, words)], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=120, **more)
    check(done.returncode == code,
          f"{words}: exit code {done.returncode}, not {code}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(), done.stderr.decode(errors="replace")


def run(kernel, *words, code=0):
    return tkc("run", "k.tk", "--kernel", kernel, *words, code=code)


def made(array, *words):
    run("copy", "--in", f"x={array}", "--out", "y=y.npy", *words)
    return np.load(FOLDER / "y.npy")


def normal_reference(n, name, seed):
    """randn in Python: Philox 4x32-10 keyed by the seed, the counter's upper half a hash of the name, then Box-Muller."""
    h = 14695981039346656037
    for byte in name.encode():
        h = (h ^ byte) * 1099511628211 % 2**64
    out = []
    for i in range(n // 2):
        c = [i, 0, h % 2**32, h >> 32]
        k = [seed % 2**32, seed >> 32]
        for _ in range(10):
            p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [q >> 32 ^ c[1] ^ k[0], q % 2**32, p >> 32 ^ c[3] ^ k[1], p % 2**32]
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        u1, u2 = (((c[1] << 32 | c[0]) >> 11) + 1) / 2**53, ((c[3] << 32 | c[2]) >> 11) / 2**53
        r = np.sqrt(-2 * np.log(u1))
        out += [r * np.cos(2 * np.pi * u2), r * np.sin(2 * np.pi * u2)]
    return np.array(out)


def random_arrays():
    x = made("randn(100000):f64")
    check(np.allclose(x[:5000], normal_reference(5000, "x", 0), rtol=1e-12, atol=1e-12), "randn is Box-Muller of Philox")
    check(abs(x.mean()) < 0.015 and abs(x.std() - 1) < 0.01 and abs((x ** 4).mean() - 3) < 0.15, "moments of randn")
    check(np.array_equal(made("randn(100000):f32"), x.astype(np.float32)), "randn: types are roundings of one array")
    check(np.array_equal(made("randn(99999):f64"), x[:99999]), "randn: a shorter array is a prefix")
    seeded = made("randn(1000):f64", "--seed", 2**40 + 7)
    check(np.allclose(seeded, normal_reference(1000, "x", 2**40 + 7), rtol=1e-12, atol=1e-12), "randn with a seed")
    run("two", "--in", "a=randn(1000)", "--in", "b=full(0,1000)", "--out", "y=a.npy")
    run("two", "--in", "a=full(0,1000)", "--in", "b=randn(1000)", "--out", "y=b.npy")
    a, b = np.load(FOLDER / "a.npy"), np.load(FOLDER / "b.npy")
    check(a.dtype == np.float32 and abs(np.corrcoef(a, b)[0, 1]) < 0.1, "different parameters, different numbers")
    for name, digits in (("f64", 53), ("f32", 24), ("f16", 11)):
        u = made(f"rand(200000):{name}").astype(np.float64)
        check(u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < 0.005, f"rand of {name}")
        check(np.array_equal(u, np.floor(u * 2.0**digits) / 2.0**digits), f"rand of {name} has {digits} digits")
    n = made("randint(-3,5,80000)")
    check(n.dtype == np.int32 and n.min() == -3 and n.max() == 4, "ends of randint")
    check(np.abs(np.bincount(n + 3) - 10000).max() < 500, "randint is even")
    big = made("randint(-9223372036854775808,9223372036854775807,1000):i64")
    check(big.dtype == np.int64 and big.min() < -2**61 and big.max() > 2**61, "randint of 64 bits")
    check(set(made("randint(0,2,100):bool").tolist()) == {False, True}, "randint of bool")


def plain_arrays():
    for text, wanted in (
            ("zeros(3)", np.zeros(3, "f4")), ("ones(3):i8", np.ones(3, "i1")), ("iota(5)", np.arange(5, dtype="i4")),
            ("iota(5000):u16", np.arange(5000, dtype="u2")), ("full(-2.5,2):f64", np.full(2, -2.5)),
            ("full( inf , 2 )", np.full(2, np.inf, "f4")), ("full(true,2):bool", np.full(2, True)),
            ("full(18446744073709551615,2):u64", np.full(2, 2**64 - 1, "u8")),
            ("full(-9223372036854775808,2):i64", np.full(2, -2**63, "i8")), ("full(0x10,2):i32", np.full(2, 16, "i4"))):
        got = made(text)
        check(got.dtype == wanted.dtype and np.array_equal(got, wanted), f"{text}: {got}")


def outputs():
    run("half", "--in", "x=ones(3)", "--out", "y=y.npy", "--out", "n=n.npy", "--out", "m=m.npy")
    check(np.isnan(np.load(FOLDER / "y.npy")[2]), "unwritten floats are NaN")
    check(np.load(FOLDER / "n.npy").tolist() == [1, 1, 2**31 - 1], "unwritten integers are the greatest")
    check(np.load(FOLDER / "m.npy").tolist() == [False, False, True], "unwritten bools are true")
    _, text = run("half", "--in", "x=ones(3)", "--check", code=1)
    out, _ = run("opt", "--in", "x=ones(8)")
    check("z:" not in out and "greatest 2" in out, "an optional output is left out: " + out)
    run("opt", "--in", "x=ones(8)", "--out", "z=z.npy", "--scalar", "s=0.5")
    check(np.load(FOLDER / "z.npy").tolist() == [1.5] * 8, "an optional output is made where it is asked for")
    run("sized", "--dim", "M=4", "--dim", "N=3", "--scalar", "a=-9223372036854775808", "--out", "y=y.npy")
    check(np.array_equal(np.load(FOLDER / "y.npy"), np.full((4, 3), -2**63)), "sizes by --dim")
    _, text = run("sized", "--dim", "M=4", "--scalar", "a=1", code=1)
    check("'N'" in text, "the missing size is named: " + text)
    _, text = run("sized", "--dim", "M=2147483647", "--dim", "N=2147483647", "--scalar", "a=1", code=3)
    check("out of memory" in text, "too large an output: " + text)


def expectations():
    x = np.linspace(1, 2, 1000, dtype=np.float32)
    np.save(FOLDER / "x.npy", x)
    np.save(FOLDER / "e64.npy", x.astype(np.float64) * (1 + 5e-6))
    arguments = ["--in", "x=x.npy", "--out", "y=y.npy", "--expect"]
    out, _ = run("copy", *arguments, "y=x.npy")
    check("0 of 1000" in out and "greatest absolute error 0" in out, "equal: " + out)
    out, _ = run("copy", *arguments, "y=e64.npy")
    check("greatest absolute error 1e-05 at [999]" in out and "greatest relative error 5" in out, "near: " + out)
    _, text = run("copy", *arguments, "y=e64.npy", "--rtol", "1e-6", "--atol", "0", code=1)
    check("'y' differs" in text, "too far: " + text)
    run("copy", "--rtol", "1e-7", *arguments, "y=e64.npy", code=1)
    run("copy", "--rtol", "1e-7", *arguments, "y=e64.npy", "--rtol=1")
    # NaN equals NaN, an infinity only itself.
    np.save(FOLDER / "x.npy", np.array([np.nan, np.inf, -np.inf, 0], np.float32))
    run("copy", *arguments, "y=x.npy")
    for i, other in ((0, 1.0), (1, -np.inf), (1, 3e38), (2, np.nan), (3, np.inf)):
        e = np.load(FOLDER / "x.npy")
        e[i] = other
        np.save(FOLDER / "e.npy", e)
        out, _ = run("copy", *arguments, "y=e.npy", "--rtol", "10", code=1)
        check(f"1 of 4" in out and f"error inf at [{i}]" in out, f"{other} at {i}: " + out)
    np.save(FOLDER / "e.npy", np.zeros((2, 2), np.float32))
    _, text = run("copy", *arguments, "y=e.npy", code=1)
    check("f32[4]" in text and "f32[2, 2]" in text, "shapes: " + text)
    big = np.array([2**63 - 1, -2**63, 2**53 + 1])
    np.save(FOLDER / "x.npy", big)
    np.save(FOLDER / "e.npy", big - np.array([1, 0, 0]))
    run("copy", *arguments, "y=x.npy")
    out, _ = run("copy", *arguments, "y=e.npy", code=1)
    check("9223372036854775807, expected 9223372036854775806" in out, "integers of 64 bits: " + out)
    run("copy", *arguments, "y=none.npy", code=3)


def files():
    run("copy", "--in", "x=ones(3)", "--out", "y=no/y.npy", code=3)
    tkc("check", "none.tk", code=3)
    tkc("check", ".", code=3)
    tkc("fmt", ".", code=3)
    (FOLDER / "y.npy").unlink(missing_ok=True)
    (FOLDER / "old.npy").write_bytes(b"old")
    (FOLDER / "y.npy").symlink_to("old.npy")
    run("copy", "--in", "x=ones(3)", "--out", "y=y.npy")
    check((FOLDER / "y.npy").is_symlink() and np.load(FOLDER / "old.npy").tolist() == [1, 1, 1], "through a link")
    if os.path.exists("/dev/full"):
        run("copy", "--in", "x=ones(3)", "--out", "y=/dev/full", code=3)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TKC, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
        check(done.returncode == 3 and b"standard output" in done.stderr, "a full disk")
    done = subprocess.run(["bash", "-c", f"'{TKC}' run k.tk --kernel copy --in x=x.npy --print >&-"], cwd=FOLDER,
                          stderr=subprocess.PIPE, check=False)
    check(done.returncode == 3, "a closed standard output")
    odd = b"caf\xe9 \x01.tk"
    with open(os.path.join(os.fsencode(FOLDER), odd), "wb") as f:
        f.write(b"kernel k() { nope; }\n")
    for more in ([], [b"--diagnostics=json"]):
        done = subprocess.run([os.fsencode(TKC), b"check", odd, b"none" + odd, *more], cwd=FOLDER,
                              stderr=subprocess.PIPE, check=False)
        check(done.returncode == 3 and b"caf" in done.stderr, f"a name that is no UTF-8: {done.stderr}")
    check(len(json.loads(done.stderr)) >= 2, "JSON of such a name")
    (FOLDER / "f.tk").write_text("kernel  k( ) { }\n")
    os.chmod(FOLDER / "f.tk", 0o640)
    out, _ = tkc("fmt", "--check", "f.tk", code=1)
    check(out == "f.tk\n", "fmt --check names the file")
    tkc("fmt", "-i", "f.tk")
    check((FOLDER / "f.tk").stat().st_mode & 0o777 == 0o640, "fmt keeps permissions")
    before = (FOLDER / "f.tk").stat()
    tkc("fmt", "-i", "f.tk")
    check((FOLDER / "f.tk").stat().st_ino == before.st_ino, "fmt leaves a formatted file alone")
    tkc("fmt", "--check", "f.tk")
    out, _ = tkc("fmt", "-", input=b"kernel  k( ) { }")
    check(out == (FOLDER / "f.tk").read_text(), "fmt of standard input")
    (FOLDER / "f.tk").write_text("kernel {\n")
    tkc("fmt", "-i", "f.tk", code=1)
    check((FOLDER / "f.tk").read_text() == "kernel {\n", "fmt leaves a wrong file alone")


def main():
    global FOLDER
    with tempfile.TemporaryDirectory(prefix="tkc-run-") as scratch:
        FOLDER = pathlib.Path(scratch)
        (FOLDER / "k.tk").write_text(KERNELS)
        for test in (random_arrays, plain_arrays, outputs, expectations, files):
            test()
        left = [p.name for p in FOLDER.iterdir() if p.name.startswith(".tkc")]
        check(not left, f"temporary files are left: {left}")
    print(f"{len(FAILED)} failures")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
