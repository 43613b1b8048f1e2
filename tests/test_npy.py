# SPDX-License-Identifier: Apache-2.0
"""The tool and NumPy read each other's files; hostile files are refused with exit code 3 and a message."""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

TKC = os.environ["TKC"]
FOLDER = None
FAILED = []

COPY = """kernel copy<T: type>(x: in T[M, N], y: out T[M, N]) grid (i in M) { y[i, 0 +: 8] = x[i, 0 +: 8]; }
kernel line<T: type>(x: in T[N], y: out T[N]) { y[0 +: 16] = x[0 +: 16]; }
kernel fixed(x: in f8e5m2[N], y: out f32[N]) { y[0 +: 4] = f32(x[0 +: 4]); }
kernel inc(x: inout f32[M, N]) { x[0 +: 4, 0 +: 4] = x[0 +: 4, 0 +: 4] + 1.0; }
"""


def check(condition, what):
    if not condition:
        FAILED.append(what)
        print("FAIL", what)


def tkc(*words, code=0):
    done = subprocess.run([TKC, *map(str, words)], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=120)
    check(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {done.stderr.decode()}")
    return done.stdout.decode(), done.stderr.decode(errors="replace")


def run(kernel, *words, code=0):
    return tkc("run", "k.tk", "--kernel", kernel, *words, code=code)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def types():
    rng = np.random.default_rng(3)
    for dtype in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "V2"):
        for order in "<>":
            if dtype == "V2" and order == ">":
                continue
            for layout in "CF":
                bits = rng.integers(0, 255, (5, 7, 8), np.uint8)
                wanted = (bits[..., 0] % 2 == 0) if dtype == "?" else np.ascontiguousarray(
                    bits[..., :np.dtype(dtype).itemsize]).view(dtype)[..., 0]
                if dtype[0] == "f":
                    wanted = rng.standard_normal((5, 7)).astype(dtype)
                stored = np.asarray(wanted, order=layout)
                if dtype[0] not in "V?":
                    stored = stored.astype(stored.dtype.newbyteorder(order), order=layout)
                np.save(FOLDER / "x.npy", stored)
                run("copy", "--in", "x=x.npy", "--out", "y=y.npy")
                got = np.load(FOLDER / "y.npy")
                check(got.tobytes() == np.ascontiguousarray(wanted).tobytes() and got.shape == (5, 7),
                      f"{order}{dtype} in order {layout}")
                check(got.dtype == np.dtype(dtype) or dtype == "?", f"type of {dtype}: {got.dtype}")


def eight_bits():
    codes = np.arange(16, dtype=np.uint8) * 7
    np.save(FOLDER / "x.npy", codes.view("V1"))
    _, text = run("line", "--in", "x=x.npy", "--out", "y=y.npy", code=1)
    check("f8e4m3" in text, "which f8 is asked for: " + text)
    for name in ("f8e4m3", "f8e5m2"):
        run("line", "--in", f"x=x.npy:{name}", "--out", "y=y.npy")
        check(np.load(FOLDER / "y.npy").tobytes() == codes.tobytes(), name)
        run("line", "-D", f"T={name}", "--in", "x=x.npy", "--expect", "y=x.npy", "--out", "y=y.npy")
    run("fixed", "--in", "x=x.npy", "--out", "y=y.npy")
    # e5m2 is the upper half of f16
    want = (codes[:4].astype(np.uint16) << 8).view(np.float16).astype(np.float32)
    check(same(np.load(FOLDER / "y.npy")[:4], want), "f8e5m2 of a declared type")
    _, text = run("line", "--in", "x=x.npy:f32", "--out", "y=y.npy", code=1)


def versions_and_shapes():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(FOLDER / "x.npy", "wb") as f:
            np.lib.format.write_array(f, x, version)
        run("copy", "--in", "x=x.npy", "--out", "y=y.npy")
        check(same(np.load(FOLDER / "y.npy"), x), f"version {version}")
    for shape in ((0, 3), (3, 0), (0, 0)):
        np.save(FOLDER / "x.npy", np.zeros(shape, np.float32))
        run("copy", "--in", "x=x.npy", "--out", "y=y.npy")
        check(np.load(FOLDER / "y.npy").shape == shape, f"shape {shape}")
    np.save(FOLDER / "x.npy", np.asfortranarray(x))
    run("inc", "--in", "x=x.npy", "--out", "x=y.npy")
    check(np.array_equal(np.load(FOLDER / "y.npy"), x + 1), "inout in Fortran order")
    np.save(FOLDER / "x.npy", np.arange(4.0))
    run("line", "--in", "x=x.npy:bf16", "--out", "y=y.npy")
    check(np.load(FOLDER / "y.npy").view(np.uint16).tolist() == [0, 0x3f80, 0x4000, 0x4040], "converted to bf16")
    python = subprocess.run(["bash", "-c", f"cat x.npy | '{TKC}' run k.tk --kernel line --in x=/dev/stdin "
                             "--out y=/dev/stdout"], cwd=FOLDER, stdout=subprocess.PIPE, check=True)
    check(python.stdout == (FOLDER / "x.npy").read_bytes(), "through pipes, byte for byte")


def header(text, version=1):
    body = text.encode("latin1")
    size = struct.pack("<H" if version == 1 else "<I", len(body))
    return b"\x93NUMPY" + bytes([version, 0]) + size + body


def hostile():
    good = "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
    data = bytes(16)
    files = {
        "empty": b"", "short magic": b"\x93NUM", "other magic": b"PK\x03\x04" + bytes(100),
        "version 9": header(good, 9) + data, "no size": b"\x93NUMPY\x01\x00",
        "header cut": header(good)[:30], "no data": header(good), "data cut": header(good) + data[:15],
        "data too long": header(good) + data + b"x",
        "huge header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xffffffff) + good.encode(),
        "object": header(good.replace("<f4", "|O")) + data, "complex": header(good.replace("<f4", "<c8")) + data,
        "structured": header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}") + data,
        "big void": header(good.replace("<f4", ">V2")) + data, "wide void": header(good.replace("<f4", "|V3")) + data,
        "nul": header(good.replace("<f4", "\0f4")) + data, "unicode": header(good.replace("<f4", "<U1")) + data,
        "negative": header(good.replace("(4,)", "(-4,)")) + data,
        "overflow": header(good.replace("(4,)", "(4294967296, 4294967296, 4294967296)")) + data,
        "overflow of bytes": header(good.replace("(4,)", "(4611686018427387905,)")) + data,
        "huge": header(good.replace("(4,)", "(2000000000, 2000000000)")) + data,
        "digits": header(good.replace("(4,)", "(99999999999999999999999,)")) + data,
        "rank 9": header(good.replace("(4,)", "(1,1,1,1,1,1,1,1,4)")) + data,
        "no shape": header("{'descr': '<f4', 'fortran_order': False}") + data,
        "twice": header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}") + data,
        "extra": header("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'x': 1}") + data,
        "order": header(good.replace("False", "Maybe")) + data, "open": header(good[:-1]) + data,
        "open tuple": header("{'descr': '<f4', 'fortran_order': False, 'shape': (4,") + data,
        "open string": header("{'descr': '<f4") + data, "junk": header(good + "junk") + data, "list": header("[]") + data,
        "bytes": header("\xff" * 40) + data,
    }
    for name, content in files.items():
        (FOLDER / "x.npy").write_bytes(content)
        _, text = run("line", "--in", "x=x.npy", "--out", "y=z.npy", code=3)
        check(text.startswith("tkc: error: 'x.npy': "), f"{name}: {text}")
    check(not (FOLDER / "z.npy").exists(), "a refused run writes nothing")
    # Every prefix of a good file, and every byte of its header changed: no crash, and never a wrong success.
    content = header(good) + data
    for n in range(0, len(content), 3):
        (FOLDER / "x.npy").write_bytes(content[:n])
        run("line", "--in", "x=x.npy", code=3)
    for n in range(0, len(content) - len(data), 2):
        (FOLDER / "x.npy").write_bytes(content[:n] + bytes([content[n] ^ 0x21]) + content[n + 1:])
        done = subprocess.run([TKC, "run", "k.tk", "--kernel", "line", "--in", "x=x.npy"], cwd=FOLDER,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        check(done.returncode in (0, 1, 3), f"changed byte {n}: {done.returncode}")
    np.save(FOLDER / "x.npy", np.zeros((2, 0, 3), np.float32))
    run("copy", "--in", "x=x.npy", code=1)


def main():
    global FOLDER
    with tempfile.TemporaryDirectory(prefix="tkc-npy-") as scratch:
        FOLDER = pathlib.Path(scratch)
        (FOLDER / "k.tk").write_text(COPY)
        for test in (types, eight_bits, versions_and_shapes, hostile):
            test()
        left = [p.name for p in FOLDER.iterdir() if p.name.startswith(".tkc")]
        check(not left, f"temporary files are left: {left}")
    print(f"{len(FAILED)} failures")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
