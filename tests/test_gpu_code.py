# SPDX-License-Identifier: Apache-2.0
"""Code for GPUs without one: every shipped kernel compiled for several targets and, where an assembler is found,
assembled; what must and must not stand in the PTX; what the tool refuses."""
import concurrent.futures
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile

TKC = os.environ["TKC"]
TARGETS = ("sm_80", "sm_86", "sm_90a")
FOLDER = None
FAILED = []

REDUCES, VECTORS, VECTOR_LOADS, NO_SPILLS, NO_FMA = "reduces", "vectors", "vector loads", "no spills", "no fma"
BOUNDED = "functions with an error bound"
HARDWARE_EXP = "the source asks for the hardware's exponential"
# file, kernel, options, what must hold
KERNELS = [
    ("softmax", "softmax", "-D T=f32 --dim N=1000", {BOUNDED, REDUCES, VECTORS, NO_SPILLS}),
    ("softmax", "softmax", "-D T=f16 --dim N=20000", {BOUNDED, HARDWARE_EXP, REDUCES, VECTORS, NO_SPILLS}),
    ("softmax", "log_softmax", "-D T=bf16 --dim N=4096", {BOUNDED, HARDWARE_EXP, REDUCES, VECTORS}),
    ("norm", "layernorm", "-D T=f32 --dim N=4096 --given w --given b", {BOUNDED, REDUCES, VECTORS, NO_SPILLS}),
    ("norm", "layernorm", "-D T=f16 -D W=f32 --dim N=20000", {BOUNDED, REDUCES, VECTORS, NO_SPILLS}),
    ("norm", "rmsnorm", "-D T=f16 --dim N=4096 --given residual", {BOUNDED, REDUCES, VECTORS, NO_FMA}),
    ("norm_backward", "layernorm_backward", "-D T=bf16 --dim N=4096 --given w", {BOUNDED, REDUCES, VECTORS}),
    ("norm_backward", "layernorm_backward_sum", "-D W=bf16 --dim N=4096", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "matmul", "-D T=f16 -D BM=64 -D BN=64 --given bias", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "matmul", "-D T=i8 -D A=i32 -D O=i32 --dim M=100 --dim N=1000", {NO_FMA}),
    ("matmul", "matmul", "-D T=bf16 --dim M=4096 --dim N=4096 --dim K=4096 --given bias", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "matmul_scaled", "-D T=f16 -D BM=64 -D BN=128 --given scale_c", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "matmul_residual", "-D T=bf16 -D BM=64 -D BN=128", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "matmul_orders", "-D T=f16 -D BM=128 -D BN=128 --given at --given b", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "matmul_batched", "-D T=bf16 -D BM=128 -D BN=64 --given a --given bt", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "matmul_split_k", "-D T=f16 -D BN=64 --given a --given b", {VECTOR_LOADS, NO_FMA}),
    ("matmul", "realign", "-D T=bf16", {VECTORS, NO_FMA, NO_SPILLS}),
    ("matmul", "matmul_split_k_sum", "-D A=f32 -D O=f16 --dim N=512", {VECTORS, NO_FMA}),
    ("attention", "causal_attention", "-D T=f16 -D D=64 -D BM=64 -D BN=64", {BOUNDED, HARDWARE_EXP, REDUCES, VECTOR_LOADS}),
    ("attention", "causal_attention", "-D T=bf16 -D D=128 --dim B=4 --dim H=16 --dim M=4096 --dim N=4096",
     {BOUNDED, HARDWARE_EXP, REDUCES, VECTOR_LOADS}),
    ("attention", "attention", "-D T=f16 -D D=256 --dim B=4 --dim H=16 --dim M=4096 --dim N=4096",
     {BOUNDED, HARDWARE_EXP, REDUCES, VECTOR_LOADS}),
    ("attention", "attention", "-D T=f32 -D D=64 --given lse", {BOUNDED, REDUCES, VECTOR_LOADS}),
    ("cross_entropy", "cross_entropy", "-D T=f32 --dim N=1024", {BOUNDED, REDUCES, VECTOR_LOADS}),
    ("activation", "activation", "-D T=f32 -D f=gelu", {BOUNDED, VECTORS}),
    ("activation", "gelu_forward", "-D T=f32", {BOUNDED, VECTORS}),
    ("activation", "gelu_tanh_forward", "-D T=bf16", {BOUNDED, VECTORS}),
    ("activation", "silu_forward", "-D T=f16", {BOUNDED, VECTORS}),
    ("activation", "relu_forward", "-D T=f32", {VECTORS, NO_FMA, NO_SPILLS}),
    ("activation", "swiglu", "-D T=f32", {BOUNDED, VECTORS}),
    ("elementwise", "binary", "-D T=f32 -D f=plus", {VECTORS, NO_FMA, NO_SPILLS}),
    ("elementwise", "add", "-D T=bf16", {VECTORS, NO_SPILLS}),
    ("elementwise", "multiply", "-D T=f16", {VECTORS, NO_FMA, NO_SPILLS}),
    ("dropout", "dropout", "-D T=f32", {VECTORS, NO_FMA}),
    ("transpose", "transpose_matrix", "-D T=f32", {VECTORS, NO_FMA, NO_SPILLS}),
    ("transpose", "transpose_matrix", "-D T=u8", {VECTORS, NO_FMA, NO_SPILLS}),
    ("scan", "cumsum_rows", "-D T=f32 --dim N=1000", {VECTORS, NO_FMA}),
    ("reduce", "sum_rows", "-D T=f32 --dim N=1000", {REDUCES, VECTOR_LOADS, NO_FMA}),
    ("reduce", "max_rows", "-D T=i32 --dim N=4096", {REDUCES, VECTOR_LOADS, NO_FMA, NO_SPILLS}),
    ("select", "argmax_rows", "-D T=f32 --dim N=1000", {REDUCES, VECTOR_LOADS, NO_FMA}),
    ("select", "topk_rows", "-D T=f32 -D K=8 --dim N=1000", {VECTOR_LOADS, NO_FMA}),
]
# kernel, options: barriers, at most
BARRIERS = {
    ("softmax", "-D T=f32 --dim N=1000"): 2,
    ("softmax", "-D T=f16 --dim N=20000"): 3,
    ("log_softmax", "-D T=bf16 --dim N=4096"): 2,
    ("layernorm", "-D T=f32 --dim N=4096 --given w --given b"): 3,
    ("layernorm", "-D T=f16 -D W=f32 --dim N=20000"): 9,  # none in the loop over whole tiles
    ("matmul", "-D T=f16 -D BM=64 -D BN=64 --given bias"): 4,
    ("causal_attention", "-D T=f16 -D D=64 -D BM=64 -D BN=64"): 7,
    ("cross_entropy", "-D T=f32 --dim N=1024"): 2,
    ("transpose_matrix", "-D T=f32"): 1,
    ("cumsum_rows", "-D T=f32 --dim N=1000"): 3,
}
# kernel, options, GPU: bytes that are spilled, at most. Its 512 threads have 128 registers at most, and tensors any strides.
SPILLED = {("layernorm", "-D T=f16 -D W=f32 --dim N=20000", "sm_86"): 8}
VECTOR_LOAD = re.compile(r"ld\.global\S*\.v[248]\.")
VECTOR_COPY = re.compile(r"cp\.async\.cg\.shared\.global \[[^\]]*\], \[[^\]]*\], 16|cp\.async\.bulk\.tensor")
VECTOR_STORE = re.compile(r"st\.global\S*\.v[248]\.")
# ptxas may fuse what says neither .rn nor another rounding.
FUSIBLE = re.compile(r"\b(?:add|sub|mul)\.(?:ftz\.)?f(?:32|64)\b")
INEXACT = re.compile(r"\.approx|\.ftz|\.full")
# What functions with an error bound are made of (docs/math.md).
INSTRUCTIONS = re.compile(r"\b(?:ex2\.approx\.ftz|rcp\.approx\.ftz|rsqrt\.approx)\.f32\b")


def check(condition, what):
    if not condition:
        FAILED.append(what)
        print("FAIL", what)


def tkc(*words, code=0, **environment):
    done = subprocess.run([TKC, *map(str, words)], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, check=False, timeout=120,
                          env={**os.environ, **environment})
    errors = done.stderr.decode(errors="replace")
    check(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {errors}")
    return done.stdout.decode(errors="replace"), errors


def check_listed():
    stdlib = pathlib.Path(__file__).resolve().parent.parent / "stdlib"
    readme = (stdlib / "README.md").read_text(encoding="utf-8")
    listed = {(file, kernel) for file, kernel, _, _ in KERNELS}
    for path in sorted(stdlib.glob("*.tk")):
        check(f"`{path.name}`" in readme, f"{path.name} has no line in stdlib/README.md")
        for kernel in re.findall(r"^kernel (\w+)", path.read_text(encoding="utf-8"), re.M):
            check((path.stem, kernel) in listed, f"{kernel} of {path.name} has no row in KERNELS")


def check_ptx(name, ptx, file, kernel, target, contiguous, marks):
    check(f".target {target}" in ptx and f".entry {kernel}(" in ptx, f"{name}: target or entry")
    check(f'"./std/{file}.tk"' in ptx and re.search(r"\.loc\s+\d+ \d+ \d+", ptx), f"{name}: no source lines")
    check(not FUSIBLE.search(ptx), f"{name}: what the assembler may fuse")
    check("\tneg.s32" not in ptx and "\tneg.s16" not in ptx, f"{name}: negations that the assembler may lose")
    exact = INSTRUCTIONS.sub("", ptx) if BOUNDED in marks else ptx
    exact = exact.replace("mul.rn.ftz.f32", "") if HARDWARE_EXP in marks else exact
    check(not INEXACT.search(exact), f"{name}: approximate or flushing operations that nobody asked for")
    if NO_FMA in marks:
        # A quotient of few divisors is four of them (ptx/llvm_divide.c), beside a division.
        written = 4 * ptx.count("div.rn.f32") if "rcp.rn.f32" in ptx else 0
        check(ptx.count("fma.rn") == written, f"{name}: fused multiply-add that nobody wrote")
    if REDUCES in marks:
        check("bar" in ptx and "shfl.sync" in ptx, f"{name}: a reduction without barrier or shuffle")
    if not contiguous:
        check(not VECTOR_LOAD.search(ptx) and not VECTOR_STORE.search(ptx), f"{name}: vectors without the promise")
    elif VECTORS in marks or VECTOR_LOADS in marks:
        check(VECTOR_LOAD.search(ptx) or VECTOR_COPY.search(ptx), f"{name}: no vector loads")
        check(VECTORS not in marks or VECTOR_STORE.search(ptx), f"{name}: no vector stores")


def check_resources(name, notes, marks, spilled=0):
    line = next((x for x in notes.splitlines() if x.endswith("[resources]")), None)
    check(line, f"{name}: no note of resources")
    number = {key: int(value) for key, value in re.findall(r"[(,] ?([A-Za-z ]+) (\d+)(?=[,)])", line or "")}
    check(0 < number.get("registers", 0) <= 255 and number.get("instructions", 0) > 0, f"{name}: {line}")
    ahead = "is loaded ahead through shared memory" in notes  # by copies, which are no LDG
    check((number.get("LDG", 0) > 0 or ahead) and number.get("STG", 0) > 0, f"{name}: no loads or stores: {line}")
    if NO_SPILLS in marks:
        check(number.get("spill stores") <= spilled and number.get("spill loads") <= spilled and (spilled or "STL" not in number),
              f"{name}: spills: {line}")
    if REDUCES in marks:
        check(number.get("BAR", 0) > 0, f"{name}: no barrier: {line}")


def compile_one(job):
    (file, kernel, options, marks), target, contiguous, assembler = job
    name = f"{kernel} {options} {target}{' --contiguous' if contiguous else ''}"
    words = [f"std/{file}.tk", "--kernel", kernel, "--arch", target, *options.split()]
    words += ["--contiguous"] if contiguous else []
    ptx = tkc(*words, "--emit=ptx")[0]
    check_ptx(name, ptx, file, kernel, target, contiguous, marks)
    barriers = len(re.findall(r"^\s+(?:bar|barrier)\.(?:cta\.)?sync", ptx, re.M))
    check(barriers <= BARRIERS.get((kernel, options), barriers), f"{name}: {barriers} barriers")
    # One of the two forms is assembled for each target: time.
    if assembler and contiguous != (target == "sm_86"):
        check_resources(name, tkc(*words, "--emit=notes")[0], marks, SPILLED.get((kernel, options, target), 0))


def machine_code(kernel, cc, machine=190):
    """The least file that is machine code of a kernel: a section with one instruction."""
    names = b"\0.shstrtab\0.text." + kernel.encode() + b"\0"
    code = bytes(16)
    section = "<IIQQQQIIQQ"
    at = 64 + 3 * struct.calcsize(section)
    head = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7) + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 64, cc << 8, 64, 0, 0, 64, 3, 1)
    sections = (struct.pack(section, *[0] * 10) + struct.pack(section, 1, 3, 0, 0, at, len(names), 0, 0, 1, 0) +
                struct.pack(section, 11, 1, 0, 0, at + len(names), len(code), 0, 0, 16, 0))
    return head + sections + names + code


def check_assembling(target):
    words = ["std/transpose.tk", "-D", "T=f32", "--arch", target]
    path = FOLDER / "k.cubin"
    tkc(*words, "-o", path)
    check(path.read_bytes()[:4] == b"\x7fELF", "k.cubin is no ELF file")
    left = sorted(p.name for p in FOLDER.iterdir() if p.name.startswith("tkc-"))
    check(not left, f"temporary files are left: {left}")
    # Without an assembler, and with one that fails in one way or another.
    _, errors = tkc(*words, "--emit=cubin", "-o", "no.cubin", code=3, TKC_PTXAS="")
    check("no assembler is found" in errors, errors)
    script = FOLDER / "ptxas"
    cc = int(re.search(r"\d+", target)[0])
    for name, made in (("x86", machine_code("transpose_matrix", cc, machine=62)), ("old", machine_code("transpose_matrix", 60)),
                       ("other", machine_code("transpose", cc)), ("mine", machine_code("transpose_matrix", cc))):
        (FOLDER / f"elf-{name}").write_bytes(made)
    for text, expected in (("echo 'ptxas k.ptx, line 7; error   : made up'; exit 255", "made up"),
                           ("echo 'ptxas fatal : Unsupported .version 99'; exit 255", "cannot assemble"),
                           ("kill -9 $$", "cannot assemble"),
                           ("exit 1", "cannot assemble"),
                           ("exit 0", "it wrote nothing"),
                           ('echo machine code >"$6"', "what it wrote is no ELF file"),
                           ('cp elf-x86 "$6"', "what it wrote is for another machine (number 62) than a GPU"),
                           ('cp elf-old "$6"', "what it wrote is for sm_60"),
                           ('cp elf-other "$6"', "what it wrote has no code of 'transpose_matrix', or is cut off"),
                           ('head -c 100 elf-mine >"$6"', "what it wrote has no code of 'transpose_matrix', or is cut off"),
                           ('cp elf-mine "$6"', None)):
        script.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        script.chmod(0o755)
        _, errors = tkc(*words, "--emit=cubin", "-o", "no.cubin" if expected else "yes.cubin", code=3 if expected else 0,
                        TKC_PTXAS=str(script))
        if not expected:
            check((FOLDER / "yes.cubin").read_bytes() == (FOLDER / "elf-mine").read_bytes(), "not what was written")
            continue
        check(expected in errors, f"{text}: {errors}")
        check("wrote" not in expected or f"'{script}' ended without an error" in errors, f"not named: {errors}")
        check(expected != "made up" or "std/transpose.tk:5" in errors, f"no place: {errors}")
        ptx, _ = tkc(*words, "--emit=ptx", TKC_PTXAS=str(script))
        check(".entry" in ptx, "PTX needs no assembler")
    _, errors = tkc(*words, "--emit=cubin", "-o", "no.cubin", code=3, TMPDIR=str(FOLDER / "missing"))
    check("cannot assemble" in errors, errors)
    check(not (FOLDER / "no.cubin").exists(), "a file of nothing")
    left = sorted(p.name for p in FOLDER.iterdir() if p.name.startswith("tkc-"))
    check(not left, f"temporary files are left: {left}")


def check_forms():
    words = ["std/transpose.tk", "-D", "T=f32"]
    ptx, _ = tkc(*words, "--emit=ptx")
    check(".target sm_80" in ptx, "the target where none is named")
    check("kernel @transpose_matrix" in tkc(*words, "--emit=layout")[0], "--emit=layout")
    check("target triple" in tkc(*words, "--emit=llvm")[0], "--emit=llvm")
    tkc(*words, "-o", "k.ptx")
    check((FOLDER / "k.ptx").read_text() == ptx, "-o k.ptx is not --emit=ptx")
    # A line belongs to the file that it stands in.
    (FOLDER / "mine.tk").write_text('import "std/activation.tk";\n'
                                    "kernel k(x: in f32[N], y: out f32[N]) grid (i in cdiv(N, 256)) {\n"
                                    "    y[i * 256 +: 256] = gelu(x[i * 256 +: 256]);\n}\n", encoding="utf-8")
    ptx, _ = tkc("mine.tk", "--emit=ptx")
    files = dict(re.findall(r'\.file\s+(\d+) "([^"]+)"', ptx))
    lines = {(files.get(f), int(n)) for f, n in re.findall(r"\.loc\s+(\d+) (\d+) ", ptx)}
    check(("./mine.tk", 3) in lines, f"line 3 is not named: {lines}")
    check(any(f == "./std/activation.tk" for f, _ in lines), f"std/activation.tk is not named: {lines}")
    # Every access stands at its own line, the first use of its layout too.
    (FOLDER / "lines.tk").write_text("kernel k(x: in f32[M, N], y: out f32[M, N]) grid (i in M) {\n    let v = x[i, 0 +: 512];\n"
                                     "    let s = sum(v) + x[i, 3];\n    y[i, 0 +: 512] = v + s;\n}\n", encoding="utf-8")
    for words in ([], ["--contiguous"], ["--whole-rows", "--near"]):
        at, found = 0, {"ld": set(), "st": set()}
        for line in tkc("lines.tk", "--emit=ptx", *words)[0].splitlines():
            loc = re.match(r"\s+\.loc\s+\d+ (\d+)", line)
            at = int(loc[1]) or at if loc else at
            access = re.search(r"\b(ld|st)\.global", line)
            if access:
                found[access[1]].add(at)
        check(found == {"ld": {2, 3}, "st": {4}}, f"lines of accesses {words}: {found}")


# An assembler that spills where more than SPARE blocks shall fit; the code is the number of blocks.
BUDGET = """#!/bin/sh
n=$(sed -n 's/^.minnctapersm *//p' "$4"); regs=$((65536 / (n * 256) / 8 * 8)); spilled=0
[ $regs -lt NATURAL ] || regs=NATURAL
[ $n -le SPARE ] || spilled=40
echo "    0 bytes stack frame, $spilled bytes spill stores, $spilled bytes spill loads"
echo "ptxas info    : Used $regs registers"
cp elf "$6"; echo >>"$6"; echo $n >>"$6"; echo $n >>asked
"""


def check_budget():
    """Rows of 8 KB want 8 blocks; 256 threads begin with 3."""
    (FOLDER / "rows.tk").write_text("@warps(8)\nkernel k(x: in bf16[M, 4096], y: out bf16[M, 4096]) grid (i in M) {\n"
                                    "    y[i, 0 +: 4096] = x[i, 0 +: 4096];\n}\n", encoding="utf-8")
    script = FOLDER / "ptxas"
    (FOLDER / "elf").write_bytes(machine_code("k", 90))

    def blocks_of(cubin):
        return int(cubin.read_bytes().split(b"\n")[-2])
    for natural, spare, blocks, asked in ((32, 3, 3, [3]), (40, 3, 3, [3, 8, 7]), (56, 8, 8, [3, 8]), (56, 6, 6, [3, 8, 6, 7]),
                                          (56, 5, 5, [3, 8, 6, 5]), (56, 4, 3, [3, 8, 6, 5]), (88, 6, 6, [3, 8, 5, 6, 7]), (128, 2, 2, [3, 2]), (248, 1, 1, [3, 2, 1]), (248, 0, 3, [3, 2, 1])):
        script.write_text(BUDGET.replace("NATURAL", str(natural)).replace("SPARE", str(spare)), encoding="utf-8")
        script.chmod(0o755)
        (FOLDER / "asked").unlink(missing_ok=True)
        tkc("rows.tk", "--arch", "sm_90a", "--emit=cubin", "-o", "k.cubin", TKC_PTXAS=str(script))
        got, tried = blocks_of(FOLDER / "k.cubin"), [int(x) for x in (FOLDER / "asked").read_text().split()]
        check(got == blocks and tried == asked, f"budget {natural}, {spare}: {got} blocks of {tried}, not {blocks} of {asked}")
    # A thread that reads much has the registers for it: two blocks, where 128 threads would begin with 6.
    (FOLDER / "much.tk").write_text("@warps(4)\nkernel k(x: in f32[M, 8192], y: out f32[M, 8192]) grid (i in M) {\n"
                                    "    let t = x[i, 0 +: 8192];\n    y[i, 0 +: 8192] = t / sum(t);\n}\n", encoding="utf-8")
    check(".minnctapersm 2\n" in tkc("much.tk", "--arch", "sm_90a", "--emit=ptx")[0], "budget of a kernel that reads much")
    # A word or two that a thread spills are worth twice the blocks, and no less; and no spill where none is to be.
    rows = (FOLDER / "rows.tk").read_text()
    for natural, spare, blocks, asked, demand in ((56, 3, 8, [3, 8], ""), (40, 3, 3, [3, 8, 7], ""), (56, 3, 3, [3, 8, 6, 5], "@require(max_registers(255))\n")):
        (FOLDER / "little.tk").write_text(demand + rows, encoding="utf-8")
        script.write_text(BUDGET.replace("NATURAL", str(natural)).replace("SPARE", str(spare)).replace("spilled=40", "spilled=8"), encoding="utf-8")
        (FOLDER / "asked").unlink()
        tkc("little.tk", "--arch", "sm_90a", "--emit=cubin", "-o", "k.cubin", TKC_PTXAS=str(script))
        got, tried = blocks_of(FOLDER / "k.cubin"), [int(x) for x in (FOLDER / "asked").read_text().split()]
        check(got == blocks and tried == asked, f"budget that spills little, {natural}, {spare}, {demand}: {got} blocks of {tried}, not {blocks} of {asked}")
    # What takes an assembler long is given to it twice at most.
    (FOLDER / "long.tk").write_text("@warps(8)\nkernel k(x: in bf16[100, N], y: out bf16[100, N]) grid (i in cdiv(N, 4096)) {\n" + "".join(
        f"    y[{j}, i * 4096 +: 4096] = x[{j}, i * 4096 +: 4096];\n" for j in range(100)) + "}\n", encoding="utf-8")
    script.write_text(BUDGET.replace("NATURAL", "56").replace("SPARE", "4"), encoding="utf-8")
    (FOLDER / "asked").unlink()
    tkc("long.tk", "--arch", "sm_90a", "--emit=cubin", "-o", "k.cubin", TKC_PTXAS=str(script))
    tried = (FOLDER / "asked").read_text().split()
    check(len(tried) <= 2, f"budget of a long kernel: {tried}")
    # An assembler that says nothing of the registers the second time, or ever.
    for silent in ('[ "$n" -ne 3 ]', "true"):
        script.write_text(BUDGET.replace("NATURAL", "56").replace("SPARE", "6").replace('echo "ptxas info ', f'{silent} || echo "ptxas info '), encoding="utf-8")
        tkc("rows.tk", "--arch", "sm_90a", "--emit=cubin", "-o", "k.cubin", TKC_PTXAS=str(script))
        check(blocks_of(FOLDER / "k.cubin") == 3, "budget: registers that nobody told")


def check_guards(assembler):
    """What guards an access is a predicate: a row of the test's own body, whose narrow vectors must not become wide ones before their use."""
    (FOLDER / "guards.tk").write_text("kernel k(x: in bf16[M, N], u: in bf16[N], v: in bf16[N], w: in bf16[N], y: out bf16[M, N]) grid (i in M) {\n"
                                      "    let t = f32(x[i, 0 +: 4096]);\n    let r = sum(t);\n"
                                      "    y[i, 0 +: 4096] = bf16((t - r) * f32(u[0 +: 4096]) + f32(v[0 +: 4096]) * f32(w[0 +: 4096]));\n}\n", encoding="utf-8")
    words = ("guards.tk", "--arch", "sm_90a", "--contiguous", "--whole-rows", "--near")
    ptx, _ = tkc(*words, "--emit=ptx")
    loads, stores = (re.findall(rf"@%p\d+ {x}\.global\.v4\.b32", ptx) for x in ("ld", "st"))
    check(len(loads) == 16 and len(stores) == 4, f"guards: {len(loads)} loads and {len(stores)} stores with a predicate")
    if assembler:
        notes, _ = tkc(*words, "--emit=notes")
        check(re.search(r"done: .*\[registers-bounded\]", notes), f"guards: {notes}")


APART = """kernel apart(x: in f32[M, 64], y: inout f32[64]) grid (i in M) { atomic_add(y[0 +: 64], x[i, 0 +: 64]); }
kernel together(x: in f32[M, 64], y: out f32[64]) grid (i in M) { y[0 +: 64] = x[i, 0 +: 64]; }
kernel chosen(x: in f32[M, 64], y: out f32[M, 64]) grid (i in M) { if i > 3 { y[i, 0 +: 64] = x[i, 0 +: 64]; } }
kernel turns(x: in f32[M, 64], y: out f32[M, 64]) grid (i in M) { for j in 0 .. i { y[i, j] = x[i, j]; } }
kernel large(x: in bf16[M, 1024], y: out bf16[M, 1024]) grid (i in M) { y[i, 0 +: 1024] = x[i, 0 +: 1024]; }
kernel small(x: in bf16[M, 64], y: out bf16[M, 64]) grid (i in M) { y[i, 0 +: 64] = x[i, 0 +: 64] - max(x[i, 0 +: 64]); }
@warps(1) kernel fixed(x: in bf16[M, 64], y: out bf16[M, 64]) grid (i in M) { y[i, 0 +: 64] = x[i, 0 +: 64]; }
"""


def check_rows():
    """Rows that are not aligned: 16 bytes at once, what is left at their ends element by element, and each thread's elements in shared
    memory, among them some without a test."""
    words = ("std/softmax.tk", "--kernel", "softmax", "-D", "T=bf16", "--dim", "N=781", "--unit-stride", "--near", "--emit=ptx")
    for arch, copies in (("sm_80", ("cp.async.cg.shared.global", "cp.async.wait_all")),
                         ("sm_90a", ("cp.async.bulk.shared::cluster.global", "cp.async.bulk.global.shared::cta"))):
        ptx = tkc(*words, "--arch", arch)[0]
        check(len(re.findall(r"ld\.global\S*", ptx)) == 1 and all(ptx.count(x) == 1 for x in copies), f"{arch}: copies in")
        check(len(re.findall(r"st\.global\.b16", ptx)) == 1, f"{arch}: the ends of what is written")
        check(len(re.findall(r"ld\.shared\.b16", ptx)) >= 32 and len(re.findall(r"st\.shared\.b16", ptx)) >= 32, f"{arch}: elements")
    plain = tkc(*[x for x in words if x != "--unit-stride"], "--arch", "sm_80")[0]
    check("cp.async" not in plain and "ld.shared.b16" not in plain, "rows of unknown stride")
    product = tkc("std/matmul.tk", "--kernel", "matmul", "-D", "T=f16", "-D", "BM=64", "-D", "BN=64", "--unit-stride", "--emit=ptx", "--arch", "sm_80")[0]
    check("cp.async" not in product, "rows of a product")


def check_packing():
    """Small programs share a block; where they cannot, a note says why."""
    (FOLDER / "apart.tk").write_text(APART, encoding="utf-8")
    for name, text in (("apart", "missed: .*it has atomics"), ("together", "missed: .*where all do it"), ("chosen", "missed: .*which way is taken"),
                       ("turns", "missed: .*how often a loop runs"), ("large", None), ("small", "done: .*programs 32"), ("fixed", None)):
        notes = "\n".join(x for x in tkc("apart.tk", "--kernel", name, "--emit=notes", "--arch", "sm_80")[0].splitlines() if x.endswith("[packed]"))
        check(re.search(text, notes) if text else not notes, f"{name}: {notes}")
    ptx, _ = tkc("apart.tk", "--kernel", "small", "--emit=ptx", "--arch", "sm_80", "--contiguous")
    check(VECTOR_LOAD.search(ptx) and "bar.sync" not in ptx, "packed rows: vectors, and shuffles alone")


def check_longest_rows():
    """The shipped row kernels at the greatest size there is: a power of two next to it is none."""
    for file, names in (("softmax", ("softmax", "log_softmax")), ("norm", ("layernorm", "rmsnorm")), ("cross_entropy", ("cross_entropy",)),
                        ("select", ("argmax_rows", "topk_rows")), ("scan", ("cumsum_rows",))):
        for name in names:
            k = ("-D", "K=8") if name == "topk_rows" else ()
            ptx, _ = tkc(f"std/{file}.tk", "--kernel", name, "-D", "T=f32", *k, "--dim", f"N={2**31 - 1}", "--emit=ptx")
            check(".entry" in ptx, f"{name}: rows of 2^31 - 1")


def compile_seconds(name, text):
    (FOLDER / name).write_text(text, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    tkc(name, "--arch", "sm_90a", "--emit=ptx")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def check_growth():
    """Compile time grows about linearly with the source: four times the statements, less than nine times the seconds (the square: sixteen)."""
    for what, n, statement in (("arithmetic", 500, "t = t * c + exp(t);"), ("sorts", 16, "t = sort(t + c, 0);"), ("loads", 100, "t = t + x[{}, 0 +: 1024];")):
        def text(lines, statement=statement):
            body = "".join(f"    {statement.format(i)}\n" for i in range(lines))
            return ("kernel k(x: in f32[M, N], y: out f32[N], c: f32) grid (i in 1) {\n    var t = x[0, 0 +: 1024];\n" + body +
                    "    y[0 +: 1024] = t;\n}\n")
        few, many = compile_seconds("few.tk", text(n)), compile_seconds("many.tk", text(4 * n))
        check(many < 9 * max(few, 0.1), f"{what}: {few:.2f} s for {n} statements, {many:.2f} s for {4 * n}")


def check_sums():
    """An `or` whose operands share no bit only under a condition must not reach LLVM's code generator as one."""
    path = FOLDER / "sums.tk"
    path.write_text(SUMS)
    text = tkc(str(path), "--arch", "sm_90a", "--emit=llvm")[0]
    check("define ptx_kernel" in text and "or disjoint" not in text, "sums: an or for a sum")


def check_addresses():
    """No address may be computed from another by the distance of their indices of 32 bits, one of which wraps: 2^31 - 50 + 100, whose access does not
    happen, and -50."""
    for dtype in ("u8", "f16", "f64"):
        (FOLDER / "wraps.tk").write_text(f"kernel k(x: in {dtype}[N], y: out {dtype}[M]) grid (i in 1) {{\n"
                                         "    y[0 +: 100] = x[2147483600 +: 100] else 9;\n    y[100 +: 100] = x[-50 +: 100] else 8;\n}\n", encoding="utf-8")
        for facts in ((), ("--contiguous",), ("--contiguous", "--near")):
            words = ("wraps.tk", "--arch", "sm_90a", *facts)
            far = [d * size for d in (2147483650, -2147483650, 2147483646) for size in (1, 2, 8)]
            ptx = tkc(*words, "--emit=ptx")[0]
            wide_lines = "\n".join(x for x in ptx.splitlines() if re.search(r"64|\[", x) and ".s32" not in x)
            check(not any(re.search(rf"{n}\b", wide_lines) for n in far), f"wraps: {dtype} {facts}")
            text = tkc(*words, "--emit=llvm")[0]
            wide = set(re.findall(r"(%[\w.]+) = [sz]ext ", text))
            used = re.findall(r"getelementptr [^,]*, ptr addrspace\(1\) %[\w.]+, i64 (%[\w.]+)", text)
            check(used and not wide.intersection(used), f"wraps: {dtype} {facts}: an extended index is an index")


def check_offsets():
    """Places in shared memory that differ where threads do not are one address with several offsets: an operand that is turned on its way to the
    matrix unit, whose 32 addresses each thread else kept in the loop, beside the sums."""
    ptx = tkc("std/matmul.tk", "--kernel", "matmul", *"-D T=f8e4m3 -D O=bf16 -D BM=128 -D BN=256 -D BK=128 --mapped --near --arch sm_90a --emit=ptx".split())[0]
    stores = re.findall(r"st\.shared\.b32 \t?\[(%\w+)(?:\+\d+)?\]", ptx)
    check(len(stores) == 32 and len(set(stores)) == 4, f"offsets: {len(stores)} stores, {len(set(stores))} addresses")


def check_scan():
    """A scan of 4096 elements by 128 threads: runs of registers, then lanes, then warps with one barrier."""
    (FOLDER / "scan.tk").write_text("@warps(4)\nkernel k(x: in f32[4096], y: out f32[4096]) {\n    y[0 +: 4096] = cumsum(x[0 +: 4096], axis = 0);\n}\n",
                                    encoding="utf-8")
    ptx = tkc("scan.tk", "--emit=ptx", "--arch", "sm_90a", "--contiguous")[0]
    number = {word: len(re.findall(rf"^\s+{word}\b", ptx, re.M)) for word in ("bar.sync", "shfl.sync", "add.rn.f32", "ld.shared", "st.shared")}
    check(number["bar.sync"] == 1 and number["shfl.sync"] <= 40 and number["add.rn.f32"] <= 180, f"scan: {number}")
    check(number["ld.shared"] <= 32 and number["st.shared"] <= 8, f"scan: {number}")


def check_functions():
    """What a function costs an element: instructions of PTX by kind, of a thread's 16."""
    rows = [("exp", {"ex2": 1, "fma": 4, "add": 0, "sub": 1, "mul": 1, "setp": 0, "selp": 0, "div": 0, "rcp": 0}),
            ("exp2", {"ex2": 1, "fma": 0, "add": 1, "mul": 1, "selp": 2, "div": 0}),
            ("sigmoid", {"ex2": 1, "rcp": 1, "fma": 6, "add": 1, "mul": 2, "div": 0}),
            ("tanh", {"ex2": 1, "rcp": 1, "div": 0}),
            ("erf", {"ex2": 1, "fma": 13, "mul": 1, "selp": 1, "div": 0}),
            ("rsqrt", {"rsqrt": 1, "sqrt": 0, "div": 0, "rcp": 0}),
            ("pow", {"ex2": 1, "rcp": 1, "div": 0})]
    for name, counts in rows:
        second = ", x[0 +: 512]" if name == "pow" else ""
        (FOLDER / "f.tk").write_text(f"@warps(1)\nkernel k(x: in f32[N], y: out f32[N]) {{\n    y[0 +: 512] = {name}(x[0 +: 512]{second});\n}}\n",
                                     encoding="utf-8")
        ptx = tkc("f.tk", "--emit=ptx", "--arch", "sm_90a", "--contiguous")[0]
        for kind, per in counts.items():
            found = len(re.findall(rf"^\s+(?:@!?%p\d+ )?{kind}\.(?:rn\.|approx\.)?(?:ftz\.)?[fb]32\b", ptx, re.M))
            check(found == 16 * per, f"{name}: {found} of {kind}, not {16 * per}")


def check_accesses():
    """Where the run time's promises hold, nothing moves element by element; what is proved is not tested."""
    for words in ("softmax --kernel softmax -D T=bf16 --dim N=4096", "norm --kernel rmsnorm -D T=bf16 --dim N=4096 --given w",
                  "softmax --kernel softmax -D T=f32 --dim N=20000", "transpose -D T=bf16", "transpose -D T=f32",
                  "activation --kernel relu_forward -D T=f32"):
        file, *rest = words.split()
        ptx = tkc(f"std/{file}.tk", *rest, "--emit=ptx", "--arch", "sm_90a", "--whole-rows", "--near")[0]
        accesses = re.findall(r"(?:ld|st)\.global\S*", ptx)
        check(accesses and all(".v4." in x for x in accesses), f"{words}: {[x for x in accesses if '.v4.' not in x]}")
        check(not re.search(r"(?:mul|mad)\.lo\.[su]64", ptx), f"{words}: products in 64 bits")
        far = tkc(f"std/{file}.tk", *rest, "--emit=ptx", "--arch", "sm_90a")[0]
        check("activation" in words or re.search(r"(?:mul|mad)\.lo\.[su]64", far), f"{words}: offsets in 32 bits without the promise")
    (FOLDER / "sized.tk").write_text("kernel k(x: in f32[4096], y: out f32[4096]) grid (i in 4) {\n    y[i * 1024 +: 1024] = x[i * 1024 +: 1024];\n}\n", encoding="utf-8")
    ptx = tkc("sized.tk", "--emit=ptx", "--arch", "sm_90a", "--contiguous")[0]
    check("setp" not in ptx and "bra" not in ptx and VECTOR_STORE.search(ptx), "fixed sizes: bounds that are known to hold are tested")
    # 64-bit starts are tested in 32 bits, and a cut vector has its elements one by one.
    (FOLDER / "start.tk").write_text("@warps(1)\nkernel k(x: in f32[N], y: out f32[128], s: i64) {\n    y[0 +: 128] = x[s +: 128];\n}\n", encoding="utf-8")
    ptx = tkc("start.tk", "--emit=ptx", "--arch", "sm_90a", "--contiguous")[0]
    check(not re.search(r"setp\.\w+\.[su]64", ptx), "bounds in 64 bits")
    check(len(re.findall(r"ld\.global\.\S*b32", ptx)) == 5, "a vector of four, and its elements")


def check_loops():
    # A loop carries a tile that an 'if' makes with a scalar beside it.
    (FOLDER / "loop.tk").write_text("kernel k(x: in f32[N], y: out f32[N]) {\n    var n = 0;\n    var a = zeros([64], f32);\n"
                                    "    while n < 3 {\n        if x[n] > 0.0 { n += 2; a = a + x[0 +: 64]; } else { n += 1; }\n    }\n"
                                    "    y[0 +: 64] = a;\n}\n", encoding="utf-8")
    check(".entry" in tkc("loop.tk", "--emit=ptx")[0], "a carried tile beside a scalar")


def check_large():
    """Code does not grow with the tile: one that is too large for registers is worked on in parts."""
    def lines(n, *words):
        return tkc("std/softmax.tk", "--kernel", "softmax", "-D", "T=bf16", "-D", f"BN={n}", "-D", "LONG=false", "--arch", "sm_90a",
                   "--emit=ptx", *words)[0].count("\n")
    least = lines(16384)
    for n in (65536, 262144, 1 << 20):
        for words in ((), ("--contiguous",)):
            check(lines(n, *words) <= 1.25 * least, f"softmax of {n}: {lines(n, *words)} lines of PTX, {least} of 16384")
    forms = {
        "w[0 +: N] = w[0 +: N] - max(w[0 +: N]);": 0,
        "let t = w[0 +: N]; w[5 +: N] = t;": 1,
        "var a = x[0 +: N]; for k in 0 .. n { a = a * 2.0; } w[0 +: N] = a;": 1,
        "w[0 +: N] = cumsum(x[0 +: N], axis = 0);": 1,
    }
    for body, kept in forms.items():
        body = body.replace("N", "131072")
        (FOLDER / "large.tk").write_text(f"kernel large(x: in f32[M], w: inout f32[M], n: i32) {{ {body} }}\n", encoding="utf-8")
        ptx = tkc("large.tk", "--arch", "sm_90a", "--emit=ptx")[0]
        check(("st.local" in ptx) == bool(kept), f"{body}: kept: {not kept}")
        check(ptx.count("\n") < 2 * least, f"{body}: {ptx.count(chr(10))} lines of PTX")
    (FOLDER / "large.tk").write_text("kernel k(x: in f32[M], w: out f32[M]) {\n    w[0 +: 262144] = sort(x[0 +: 262144], 0);\n}\n",
                                     encoding="utf-8")
    _, errors = tkc("large.tk", "--arch", "sm_90a", "--emit=ptx", code=1)
    check("large.tk:2:" in errors and "'sort' cannot be compiled" in errors, errors)


SUMS = """fn larger(a: i32, b: i32) -> i32 { return max(a, b); }
@warps(32)
kernel k(x: in i32[16], y: in i64[8, 2, 32], a: out i32[16], v: out i64[8, 2, 32])
{
    a[0 +: 16] = scan(x[0 +: 16], axis = 0, f = larger, reverse = true);
    let (w, q) = topk(y[0 +: 8, 0 +: 2, 0 +: 32], 2, 1);
    v[0 +: 8, 0 +: 2, 0 +: 32] = w;
}
"""


def check_negation():
    """ptxas of CUDA 12.6 to 13.3 loses a sign in min(min(a, -b), c): it must see neither a negation nor a subtraction from 0."""
    for t, minus in (("i32", "-x[1, i]"), ("u32", "(u32(0) - x[1, i])"), ("i16", "-x[1, i]"), ("u16", "(u16(0) - x[1, i])")):
        (FOLDER / "neg.tk").write_text(f"@warps(1) kernel k(x: in {t}[3, N], y: out {t}[N]) grid (i in N) {{\n"
                                       f"    y[i] = min(min(x[0, i], {minus}), x[2, i]);\n}}\n", encoding="utf-8")
        ptx, _ = tkc("neg.tk", "--arch", "sm_90a", "--emit=ptx")
        bits = t[1:]
        check("neg.s" not in ptx and not re.search(r"sub\.[su]\d+ +\t%rs?\d+, 0, ", ptx) and
              len(re.findall(rf"not\.b{bits} +\t(%rs?\d+), %rs?\d+;\n\tadd\.s{bits} +\t\1, \1, 1;", ptx)) == 1, f"{t}: a negation: {ptx}")


# Every kind of op on extents that are no powers of two.
AWKWARD = """fn pair(a: i32, b: i32, c: i32, d: i32) -> (i32, i32) { return (a * c, b * c + d); }

kernel k(x: inout f32[N, M], c: inout i32[L], h: in f16[A, B], s: in u8[A, C], e: in f8e4m3[A, B]) grid (i in cdiv(N, 12)) {
    let v = x[i * 12 +: 12, 0 +: 96] else -inf;
    let m = max(v, axis = 1);
    let p = exp(v - m) / sum(exp(v - m), axis = 1);
    let q = concat(slice(p, 0, 3, 7), slice(p, 0, 1, 5), 0);
    let r = reshape(flip(q, 0), [48, 24]);
    let (even, odd) = deinterleave(r);
    let w = interleave(odd, even) + cumsum(r, axis = 0, reverse = true);
    let (top, at) = topk(w, 5, 0);
    let t = gather(sort(w, 0, descending = true), at, 0) + top;
    x[i * 12 +: 5, 0 +: 24] = t;
    let n = i32(w) + iota(24) + argmax(w, axis = 0) + argmin(w);
    let (a, b) = reduce((n, n), axis = 1, f = pair);
    let (d, f) = scan((a, b), axis = 0, f = pair, reverse = true);
    c[0 +: 7] = histogram(d + f, 7);
    let old = atomic_add(c[reshape(d, [48])], reshape(f, [48]));
    assert(all(old > -5), "old");
    x[i * 12 +: 12, 24 +: 5] = dot(h[0 +: 12, 0 +: 96], transpose(h[0 +: 5, 0 +: 96]));
    x[i * 12 +: 5, 32 +: 3] = dot_scaled(e[0 +: 5, 0 +: 96], s[0 +: 5, 0 +: 3], transpose(e[0 +: 3, 0 +: 96]), transpose(s[0 +: 3, 0 +: 3]));
}
"""


def kept_operands(ptx):
    """wgmma instructions with registers of A that stay what they are from outside the loop around it: ptxas takes those for its own."""
    lines = ptx.splitlines()
    label = {m[1]: i for i, line in enumerate(lines) if (m := re.match(r"(\$L__BB\w+):", line))}
    ends = [(label[m[1]], i) for i, line in enumerate(lines) if (m := re.search(r"bra(?:\.uni)?\s+(\$L__BB\w+);", line))
            and label[m[1]] < i]
    found = wrong = 0
    for i, line in enumerate(lines):
        m = re.match(r"wgmma\.mma_async.*?\}, \{(%r\w+), (%r\w+), (%r\w+), (%r\w+)\},", line)
        heads = [head for head, end in ends if head < i < end]
        found += m is not None
        for register in m.groups() if m and heads else ():
            made = [k for k in range(max(heads), i) if re.search(rf"\s{register}(,|\}})", lines[k]) and "wgmma" not in lines[k]
                    and re.match(rf"\s+[\w.@%!]+\s+.*?{register}\b", lines[k])]
            wrong += not made
    return found, wrong


def check_operands():
    for kernel in ("attention", "causal_attention"):
        for size in "-D D=16 -D BM=64 -D BN=16", "-D D=64 -D BM=64 -D BN=64", "-D D=128 -D BM=64 -D BN=64", "-D D=128 -D BM=128 -D BN=128":
            for promise in "--mapped", "--contiguous":
                words = ["std/attention.tk", "--kernel", kernel, "-D", "T=bf16", *size.split(), "--arch", "sm_90a", promise]
                found, wrong = kept_operands(tkc(*words, "--emit=ptx")[0])
                check(found > 0, f"{kernel} {size} {promise}: no wgmma with A in registers")
                check(wrong == 0, f"{kernel} {size} {promise}: {wrong} registers of A come from outside the loop")


def check_names(assembler):
    """Names of kernels and files are the language's and the system's, not PTX's."""
    text = "kernel {}(x: in f32[N], y: out f32[N]) {{ y[0 +: 32] = x[0 +: 32]; }}\n"
    for kernel, file in (("_", "name.tk"), ("WARP_SZ", "name.tk"), ("__", "name.tk"), ("ret", "name.tk"), ("k", 'a "b\n.tk'), ("k", "\\ü$%s'.tk")):
        (FOLDER / file).write_text(text.format(kernel), encoding="utf-8")
        if assembler:
            tkc(file, "--emit=cubin", "-o", "name.cubin")
        ptx, _ = tkc(file, "--emit=ptx")
        check(not re.search(r"\.entry (_|WARP_SZ)\(", ptx), f"kernel {kernel}")
        check(all(line.count('"') == 2 for line in ptx.splitlines() if ".file" in line), f"file {file!r}")


def check_parameters(assembler):
    """More than 4352 bytes of parameters take a later PTX, more than 32764 are refused."""
    for tensors, version in ((41, "7.1"), (42, "8.1"), (316, None)):
        params = ", ".join(f"x{i}: in f32[{', '.join(f'D{i}_{d}' for d in range(8))}]" for i in range(tensors - 1))
        (FOLDER / "many.tk").write_text(f"kernel k({params}, y: out f32[4, 4, 4, 4, 4, 4, 4, 4]) {{ y[{', '.join('0' * 8)}] = 1.0; }}\n", encoding="utf-8")
        if not version:
            _, errors = tkc("many.tk", "--emit=ptx", code=1)
            check("many.tk:1:1: error: kernel 'k' cannot be compiled for sm_80" in errors and "32764" in errors, errors)
            continue
        check(f".version {version}" in tkc("many.tk", "--emit=ptx")[0], f"{tensors} tensors")
        check(".version 8.7" in tkc("many.tk", "--emit=ptx", "--arch", "sm_120")[0], f"{tensors} tensors for sm_120")
        if assembler:
            tkc("many.tk", "--emit=cubin", "-o", "many.cubin")


def check_halves(assembler):
    """An atomic of 16 bits touches no more: what is beside the element may be past the tensor's end."""
    for dtype, f in (("f16", "add"), ("f16", "max"), ("bf16", "add"), ("bf16", "min")):
        (FOLDER / "half.tk").write_text(f"kernel k(t: inout {dtype}[N], x: in {dtype}[N]) {{ atomic_{f}(t[0 +: 64], x[0 +: 64]); }}\n", encoding="utf-8")
        for target in TARGETS:
            ptx, _ = tkc("half.tk", "--emit=ptx", "--arch", target)
            check(re.search(r"atom\S*16", ptx) and not re.search(r"(ld|atom)\S*global\S*b32", ptx), f"atomic_{f} of {dtype} for {target}")
            if assembler:
                tkc("half.tk", "--emit=cubin", "--arch", target, "-o", "half.cubin")


def check_f8():
    """Floats of 8 bits on every target: casts, arithmetic, maxima; from sm_90 on by instructions."""
    path = FOLDER / "f8.tk"
    path.write_text('''kernel f8<T: type>(x: in T[N], h: in f32[N], y: out T[N], z: out f32[N]) {
    let t = x[0 +: 1024] else 0;
    y[0 +: 1024] = max(min(t, 2), T(h[0 +: 1024] else 0)) + t; z[0 +: 1024] = f32(t);
}
''')
    for target in ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"):
        for dtype, name in (("f8e4m3", "e4m3x2"), ("f8e5m2", "e5m2x2")):
            ptx, _ = tkc(path, "-D", f"T={dtype}", "--arch", target, "--emit=ptx")
            check((f"cvt.rn.satfinite.{name}.f32" in ptx) == (int(target[3:].rstrip("a")) >= 90), f"{target}: {dtype}")


def check_awkward(assembler):
    (FOLDER / "awkward.tk").write_text(AWKWARD, encoding="utf-8")
    for target in TARGETS:
        check(".entry" in tkc("awkward.tk", "--emit=ptx", "--arch", target)[0], "extents that are no powers of two")
    notes, _ = tkc("awkward.tk", "--emit=notes", "--arch", "sm_90a")
    check("[12, 96] are computed as [16, 128] (percent padding 43) [padded]" in notes, f"no note of padding: {notes}")
    if assembler:
        check_resources("awkward", notes, {NO_SPILLS})
    # The mask of a tile's edges is made where it is used: nothing moves.
    (FOLDER / "edges.tk").write_text("kernel k(x: in f32[N, M], y: out f32[N, M]) grid (i in cdiv(N, 12)) {\n"
                                     "    y[i * 12 +: 12, 0 +: 96] = x[i * 12 +: 12, 0 +: 96] + 1.0;\n}\n", encoding="utf-8")
    check(not re.search(r"convert|shared=", tkc("edges.tk", "--emit=layout")[0]), "a mask is moved")
    check(not re.search(r"\bbar\.|shfl|\.shared\.", tkc("edges.tk", "--emit=ptx")[0]), "a mask is moved in PTX")


# What stands for an expression of a, b, c in each type, by what @fastmath permits: the arithmetic in the PTX, in order.
FAST = [
    ("", "f32", "a * b + c", "mul.rn.f32 add.rn.f32"),
    ("approx, ftz", "f64", "a * b + c", "mul.rn.f64 add.rn.f64"),
    ("contract", "f32", "a * b + c", "fma.rn.f32"),
    ("contract", "f32", "a * b - c", "fma.rn.f32"),
    ("contract", "f32", "c - a * b", "fma.rn.f32"),
    ("contract", "f16", "a * b + c", "fma.rn.f16"),
    ("contract", "bf16", "a * b + c", "fma.rn.bf16"),
    ("contract", "f64", "a * b + c", "fma.rn.f64"),
    ("contract", "f32", "(a * b) * (c + b)", "mul.rn.f32 add.rn.f32 mul.rn.f32"),
    ("contract, ftz", "f32", "a * b + c", "fma.rn.ftz.f32"),
    ("ftz", "f32", "a * b + c", "mul.rn.ftz.f32 add.rn.ftz.f32"),
    ("ftz", "f32", "a * b - c", "mul.rn.ftz.f32 sub.rn.ftz.f32"),
    ("ftz", "f32", "a / b", "div.rn.ftz.f32"),
    ("ftz", "f32", "sqrt(a)", "sqrt.rn.ftz.f32"),
    ("ftz", "f32", "rcp(a)", "rcp.rn.ftz.f32"),
    ("ftz", "f64", "a / b", "div.rn.f64"),
    ("ftz", "bf16", "a * b", "mul.rn.bf16"),
    ("", "f32", "sqrt(a)", "sqrt.rn.f32"),
    ("", "f32", "rcp(a)", "rcp.rn.f32"),
    ("", "f32", "a / b", "div.rn.f32"),
    ("approx", "f32", "sqrt(a)", "sqrt.approx.f32"),
    ("approx, ftz", "f32", "sqrt(a)", "sqrt.approx.ftz.f32"),
    ("approx", "f32", "rcp(a)", "rcp.approx.f32"),
    ("approx", "f32", "rsqrt(a)", "rsqrt.approx.f32"),
    ("approx", "f32", "exp2(a)", "ex2.approx.f32"),
    ("approx", "f32", "exp(a)", "mul.rn.f32 ex2.approx.f32"),
    ("approx, ftz", "f32", "exp(a)", "mul.rn.ftz.f32 ex2.approx.ftz.f32"),
    ("approx", "f32", "log2(a)", "lg2.approx.f32"),
    ("approx", "f32", "log(a)", "lg2.approx.f32 mul.rn.f32"),
    ("approx", "f32", "sin(a)", "sin.approx.f32"),
    ("approx", "f32", "cos(a)", "cos.approx.f32"),
    ("approx", "f32", "tanh(a)", "tanh.approx.f32"),
    ("approx", "f32", "a / b", "div.rn.f32"),
    ("approx", "f64", "sqrt(a)", "sqrt.rn.f64"),
]
ARITHMETIC = re.compile(r"^\s+((?:add|sub|mul|fma|div|sqrt|rcp|rsqrt|ex2|lg2|sin|cos|tanh)\.[a-z0-9.]*b?f(?:16|32|64))\s", re.M)


def fast_kernel(attribute, dtype, expression, before=""):
    (FOLDER / "fast.tk").write_text(
        f"{before}{f'@fastmath({attribute})' if attribute else ''}\nkernel k(x: in {dtype}[N], y: out {dtype}[N]) {{\n"
        f"    let a = x[0]; let b = x[1]; let c = x[2];\n    y[0] = {expression};\n}}\n", encoding="utf-8")
    return ARITHMETIC.findall(tkc("fast.tk", "--emit=ptx", "--arch", "sm_90a")[0])


def check_fast():
    for attribute, dtype, expression, expected in FAST:
        found = fast_kernel(attribute, dtype, expression)
        check(found == expected.split(), f"@fastmath({attribute}) {dtype} {expression}: {found}, not {expected}")
    # A permission holds where it stands: not in what is called, and what is called has its own.
    plain = "fn f(a: f32, b: f32) -> f32 { return a * b + b; }\n"
    found = fast_kernel("contract, ftz", "f32", "f(a, b)", plain)
    check(found == ["mul.rn.f32", "add.rn.f32"], f"called from @fastmath: {found}")
    found = fast_kernel("", "f32", "f(a, b) * c", "@fastmath(contract)\n" + plain)
    check(found == ["fma.rn.f32", "mul.rn.f32"], f"@fastmath of a function: {found}")
    # Functions with an error bound where nothing approximate is permitted: what the sequences use of the hardware
    # is their own affair, but not what @fastmath stands for.
    for name in ("sin", "cos", "log", "log2", "sqrt"):
        found = fast_kernel("contract, ftz", "f32", f"{name}(a)")
        check(not any("approx" in x for x in found), f"{name} without approx: {found}")


def check_debug():
    (FOLDER / "debug.tk").write_text(
        "kernel k(x: in f32[N], y: out f32[N]) grid (i in cdiv(N, 64)) {\n    let t = x[i * 64 +: 64];\n"
        '    print("t {}", t);\n    assert(t < 9.0, "below");\n    assert(i < 9);\n    var n = 0;\n'
        "    while n < i32(x[0]) { n += 1; }\n    y[i * 64 +: 64] = t + f32(n);\n}\n", encoding="utf-8")
    plain, _ = tkc("debug.tk", "--emit=ptx", "--arch", "sm_80")
    debug, _ = tkc("debug.tk", "--emit=ptx", "--arch", "sm_80", "--debug")
    check("atom." not in plain and "bar." not in plain, "debug ops outside a debug compile")
    # A print: room, and what is lost; each claim: the fault. A claim on a tile asks all, and so does each turn of a while
    # loop that reads what programs write.
    count = {what: len(re.findall(pattern, debug)) for what, pattern in
             (("add", r"atom\S*\.add\.u64"), ("min", r"atom\S*\.min\.u64"), ("any", r"bar\S*\.red\.or\.pred"))}
    check(count == {"add": 2, "min": 3, "any": 1}, f"debug ops: {count}")
    text = (FOLDER / "debug.tk").read_text(encoding="utf-8")
    (FOLDER / "debug.tk").write_text(text.replace("y: out", "y: inout").replace("i32(x[0])", "i32(y[0])"), encoding="utf-8")
    debug, _ = tkc("debug.tk", "--emit=ptx", "--arch", "sm_80", "--debug")
    turns = len(re.findall(r"bar\S*\.red\.or\.pred", debug))
    check(turns == 2, f"turns of a loop that waits for others: {turns}")
    check("trap" not in debug and "vprintf" not in debug and "assertfail" not in debug, "a trap, or a call")


def main():
    info, _ = tkc("info")
    cpu = [line for line in info.splitlines() if line.startswith("cpu ")][0]
    check(re.fullmatch(r"cpu +here: [0-9]+ threads?, [0-9.]+ GiB", cpu), cpu)
    print(info, end="")
    check_listed()
    if "built without LLVM" in info:
        _, errors = tkc("std/transpose.tk", "-D", "T=f32", "--emit=ptx", code=3)
        check("this build has no GPU code generator" in errors, errors)
        print("SKIPPED: this build has no GPU code generator")
        return
    assembler = not re.search(r"^assembler\s+none", info, re.M)
    jobs = [(kernel, target, contiguous, assembler) for kernel in KERNELS for target in TARGETS
            for contiguous in (False, True)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, jobs))
    check_forms()
    check_accesses()
    check_loops()
    check_names(assembler)
    check_parameters(assembler)
    check_halves(assembler)
    check_f8()
    check_awkward(assembler)
    check_fast()
    check_debug()
    check_negation()
    check_operands()
    check_large()
    check_scan()
    check_functions()
    check_sums()
    check_addresses()
    check_offsets()
    check_budget()
    check_guards(assembler)
    check_growth()
    check_longest_rows()
    check_rows()
    check_packing()
    if assembler:
        check_assembling("sm_80")
        print(f"{len(jobs)} kernels compiled, {len(jobs) // 2} of them assembled")
    else:
        print(f"{len(jobs)} kernels compiled; SKIPPED assembling: no ptxas or nvJitLink is found (install NVIDIA's "
              "toolkit, or the Python package nvidia-cuda-nvcc and name its ptxas in TKC_PTXAS)")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        FOLDER = pathlib.Path(scratch)
        os.environ["TMPDIR"] = scratch
        os.environ["TKC_CACHE"] = ""
        main()
    sys.exit(1 if FAILED else 0)
