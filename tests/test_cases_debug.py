# SPDX-License-Identifier: Apache-2.0
# print, assert and assume in debug compiles: a device says what the CPU says of the same kernel, line by line.
import os
import pathlib
import subprocess
import tempfile

import tkclib
from judge import main, test

TKC = os.environ.get("TKC", "tkc")

TYPES = """kernel k(x: in f32[N], y: out f32[N]) grid (i in cdiv(N, 8)) {
    let t = x[i * 8 +: 8];
    print("{} {} {} {}", i, i64(i) - 7, u8(i), i > 1);
    print("{} {} {}", f8e4m3(448.0), f16(0.1), bf16(t));
    print("{} {} {}", f64(t) / 3.0, i16(t), t > 3.0);
    print("no value");
    y[i * 8 +: 8] = t;
}"""
SHAPES = """kernel k(x: in f32[N], y: out f32[N]) grid (i in cdiv(N, 64)) {
    let t = x[i * 64 +: 64];
    print("{}", reshape(t, [64, 1]) * reshape(t, [1, 64]));
    print("{}", sum(reshape(t, [4, 16]), axis = 1));
    print("{} {}", slice(t, 0, 3, 7), reshape(slice(t, 0, 0, 24), [2, 3, 4]));
    print("{}", reshape(slice(t, 0, 0, 19), [19, 1]) * reshape(slice(t, 0, 0, 50), [1, 50]));
    y[i * 64 +: 64] = t;
}"""
ORDER = """kernel k(x: in f32[N], y: out f32[N]) grid (i in cdiv(N, 64), j in 3) {
    for turn in 0 .. i % 3 + 1 {
        print("turn {}", turn);
        if turn % 2 == 1 { print("odd {}", sum(x[i * 64 +: 64])); }
    }
    var n = 0;
    while n < j { n += 1; print("while {}", n); }
    if j == 0 { y[i * 64 +: 64] = x[i * 64 +: 64]; }
}"""
FAULTS = """fn low(t: f32[100], most: f32) { assert(t < most, "below the most"); }
kernel k(x: in f32[N], y: out f32[N], most: f32, first: i32) grid (i in cdiv(N, 100)) {
    let t = x[i * 100 +: 100];
    print("program {}", i);
    low(t, most);
    assume(i < first);
    print("behind");
    y[i * 100 +: 100] = t;
}"""
# Waits for a program that has failed.
WAITS = """kernel k(x: in f32[N], y: inout f32[N]) grid (i in 2) {
    assert(i > 0, "the first");
    while atomic_add(y[0], 0.0) == 0.0 { }
    y[1] = x[0];
}"""

# Every program fails, each in another turn; nothing in the loops waits.
TURNS = """kernel k(x: in f32[N], y: out f32[N]) grid (i in 5) {
    for j in 0 .. 10 { assert(j < i + 3, "for"); if x[j] > 6.0 { break; } }
    var n = 0;
    while n < 9 { n += 1; assume(n < i); }
    y[i] = 1.0;
}"""


def run(source, device, *words):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "k.tk"
        path.write_text(source, encoding="utf-8")
        done = subprocess.run([TKC, "run", "k.tk", "--debug", "--device", device, "--out", "y=y.npy", *words], cwd=folder, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, env={**os.environ, "NO_COLOR": "1"})
        return done.returncode, done.stdout.decode(), done.stderr.decode()


def agree(source, *words, code=0):
    want = run(source, "cpu", "--threads", "1", *words)
    assert want[0] == code, want
    got = run(source, tkclib.DEVICE, *(("--threads", "1") if tkclib.DEVICE == "cpu" else ()), *words)
    assert got == want, f"{got}\nnot\n{want}"


@test()
def test_types():
    agree(TYPES, "--in", "x=iota(32)")
    agree(TYPES, "--in", "x=randn(32)")


@test()
def test_shapes():
    agree(SHAPES, "--in", "x=iota(128)")


@test()
def test_order():
    agree(ORDER, "--in", "x=iota(2000)")


@test()
def test_claims_that_hold():
    agree(FAULTS, "--in", "x=iota(1000)", "--scalar", "most=1000.0", "--scalar", "first=10")


@test(*[(most, first) for most, first in (("5", "10"), ("177.5", "10"), ("999", "10"), ("1000", "9"), ("1000", "0"))])
def test_claims_that_fail(most, first):
    # Lines of programs behind the one that failed may be there or not: programs run at once.
    words = ("--threads", "1", "--in", "x=iota(1000)", "--scalar", f"most={most}", "--scalar", f"first={first}")
    want = run(FAULTS, "cpu", *words)
    got = run(FAULTS, tkclib.DEVICE, *words)
    assert "does not hold in program" in want[2] and got[0] == want[0] and got[2] == want[2], f"{got}\nnot\n{want}"
    begin = want[1].splitlines()
    if tkclib.DEVICE != "cpu":
        assert got[1].splitlines()[:len(begin)] == begin, f"{got[1]}\nnot\n{want[1]}"


@test()
def test_the_lowest_program_of_those_that_fail():
    want = run(TURNS, "cpu", "--threads", "1", "--in", "x=iota(32)")
    assert want[0] == 1 and "(i = 0)" in want[2], want
    schedules = [["--schedule", str(n)] for n in range(8)] if tkclib.DEVICE.startswith("sim") else [[]] * 3
    for words in schedules:
        got = run(TURNS, tkclib.DEVICE, *(("--threads", "1") if tkclib.DEVICE == "cpu" else ()), "--in", "x=iota(32)", *words)
        assert got == want, f"{words}: {got}\nnot\n{want}"


@test()
def test_nobody_waits_for_what_has_failed():
    code, _, errors = run(WAITS, tkclib.DEVICE, "--threads", "1", "--in", "x=full(1,4)", "--in", "y=full(0,4)")
    assert code != 0 and "assert does not hold in program (i = 0): the first" in errors, errors


if __name__ == "__main__":
    main()
