# SPDX-License-Identifier: Apache-2.0
# Conformance: malformed sources through the tool (row B59 of tests/cases/README.md): exit code 1 and a message with its place, or 0.
import os
import pathlib
import re
import subprocess
import tempfile

from judge import main, test

GOOD = pathlib.Path("stdlib/softmax.tk").read_bytes()
DEEP = 10000
TEXTS = {
    "missing semicolon": b"kernel k(x: inout f32[N]) { let a = 1 x[0] = 2; }",
    "missing brace": b"kernel k(x: inout f32[N]) { if N > 1 { x[0] = 1; }",
    "bad declarator": b"kernel k(x: inout [N]) { x[0] = 1; }",
    "zero byte": GOOD[:300] + b"\0" + GOOD[301:],
    "no UTF-8": GOOD[:300] + b"\xff\xfe" + GOOD[302:],
    "only zero bytes": b"\0" * 1000,
    "parentheses": b"kernel k(y: out i32[1]) { y[0] = " + b"(" * DEEP + b"1" + b")" * DEEP + b"; }",
    "blocks": b"kernel k(y: out i32[1]) " + b"{" * DEEP + b"}" * DEEP,
    "minus signs": b"kernel k(y: out i32[1], s: i32) { y[0] = " + b"- " * DEEP + b"s; }",
    "a long line": b"kernel k(y: out i32[1]) { y[0] = " + b"z" * (1 << 20) + b"; }",
    "an open comment": b"/* " + GOOD,
    "an open string": b'kernel k(y: out i32[1]) { print("a); }\n',
    "no such import": b'import "nowhere.tk";\nkernel k() { }\n',
}


def check(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.tk"
        path.write_bytes(text)
        done = subprocess.run([os.environ["TKC"], "check", str(path)], capture_output=True, timeout=20, check=False)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def judge(text, what, codes=(0, 1)):
    code, said = check(text)
    assert code in codes, f"{what}: exit code {code}\n{said[:300]}"
    assert code == 0 or re.search(r"case\.tk:\d+:\d+: error: ", said), f"{what}: no place\n{said[:300]}"


@test(*TEXTS)
def test_B59_malformed(what):
    judge(TEXTS[what], what, (1,))


@test()
def test_B59_cut():
    for k in range(0, len(GOOD), 97):
        judge(GOOD[:k], f"cut at {k}")


@test()
def test_B59_crlf_and_zero_divisors():
    judge(GOOD.replace(b"\n", b"\r\n"), "CRLF", (0,))
    for e in (b"1 / 0", b"y[0] % 0", b"i32(1.0 / 0.0 > 1.0)", b"i32(-2147483648) / -1"):
        judge(b"kernel k(y: inout i32[1]) { y[0] = " + e + b"; }", e)


if __name__ == "__main__":
    main()
