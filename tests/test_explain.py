# SPDX-License-Identifier: Apache-2.0
"""What `tkc explain` claims of kernels against what the simulator counts when it runs their code; its formats; @require."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TKC = os.environ["TKC"]
FAILED = []
FOLDER = tempfile.TemporaryDirectory()

# file or text, kernel, options
GATHER = """kernel pick<T: type>(x: in T[M, N], y: out T[M, 256]) grid (i in M) {
    y[i, 0 +: 256] = x[i, 4 * iota(256)];
}
"""
COLUMNS = """kernel columns<T: type>(x: in T[M, N], y: out T[N]) grid (j in cdiv(N, 64)) {
    y[j * 64 +: 64] = reshape(sum(x[0 +: 64, j * 64 +: 64], axis = 0), [64]);
}
"""
PLACES = """kernel places<T: type>(x: in T[M, N], y: out i32[M]) grid (i in M) {
    y[i] = argmax(f32(x[i, 0 +: 4096]));
}
"""
PAIRS = """kernel pairs<T: type>(x: in T[M, N], y: out T[M, N]) grid (i in M) {
    let (a, b) = deinterleave(x[i, 0 +: 512]);
    y[i, 0 +: 512] = concat(flip(b, axis = 0), a, axis = 0);
}
"""
# Rows of any place and length; a store alone; a load through a mask; tiles of rows; a tensor of three dimensions.
FILLED = """kernel filled<T: type>(y: out T[M, N]) grid (i in M) {
    y[i, 1 +: 1024] = full([1024], T(3));
}
"""
MASKED = """kernel masked<T: type>(x: in T[M, N], y: out T[M, N]) grid (i in M) {
    let k = iota(512);
    y[i, 3 +: 512] = x[i, 1 +: 512 where k % 3 != 1] else T(7);
}
"""
TILES = """kernel tiles<T: type>(x: in T[M, N], y: out T[M, N]) grid (i in cdiv(M, 16), j in cdiv(N, 1024)) {
    y[i * 16 +: 16, j * 1024 +: 1024] = x[i * 16 +: 16, j * 1024 +: 1024] + T(1);
}
"""
CUBE = """kernel cube<T: type>(x: in T[K, M, N], y: out T[K, M, N]) grid (k in K, i in cdiv(M, 16)) {
    y[k, i * 16 +: 16, 0 +: 512] = x[k, i * 16 +: 16, 0 +: 512] + T(1);
}
"""
# Tiles loaded ahead: by tensor copies where they can be, else by copies of the threads.
RING = """kernel ring<T: type>(x: in T[M, N], y: out T[M, N]) grid (i in cdiv(M, 32)) {
    for k in 0 .. N step 128 pipeline(3) {
        y[i * 32 +: 32, k +: 128] = flip(x[i * 32 +: 32, k +: 128], axis = 0);
    }
}
"""
KERNELS = [
    (RING, "ring", "--in x=randn(64,512):bf16"),
    (RING, "ring", "--in x=randn(45,600):bf16"),
    (RING.replace("k +: 128], axis", "k + 1 +: 128], axis"), "ring", "--in x=randn(45,604)"),
    (RING, "ring", "--in x=randint(0,9,64,384):i8"),
    ("std/softmax.tk", "softmax", "--in x=randn(4,1024):bf16"),
    ("std/softmax.tk", "softmax", "--in x=randn(3,4096):bf16"),
    ("std/softmax.tk", "softmax", "--in x=randn(3,1000)"),
    ("std/softmax.tk", "softmax", "--in x=randn(1,781)"),
    ("std/softmax.tk", "softmax", "--in x=randn(100,128)"),
    ("std/norm.tk", "rmsnorm", "--in x=randn(37,64) --in w=randn(64)"),
    ("std/scan.tk", "cumsum_rows", "--in x=randn(64,64)"),
    ("std/softmax.tk", "softmax", "--in x=randn(2,10000)"),
    # Rows that are read twice: a part of them, or all, stays in shared memory.
    ("std/softmax.tk", "softmax", "--in x=randn(2,70000):bf16"),
    ("std/softmax.tk", "log_softmax", "--in x=randn(2,20000)"),
    ("std/softmax.tk", "softmax", "--in x=randn(3,9000):f16 -D BN=1024 -D LONG=true"),
    ("std/norm.tk", "layernorm", "--in x=randn(3,20000):bf16 --in w=randn(20000):bf16"),
    ("std/norm.tk", "layernorm", "--in x=randn(2,32768):bf16"),
    ("std/norm.tk", "rmsnorm", "--in x=randn(2,70000):bf16"),
    ("std/norm.tk", "layernorm", "--in x=randn(4,4096):bf16 --in w=randn(4096):bf16 --in b=randn(4096):bf16"),
    ("std/norm.tk", "layernorm", "--in x=randn(2,1000)"),
    ("std/norm.tk", "rmsnorm", "--in x=randn(2,1024):f16 --in w=randn(1024):f16"),
    ("std/transpose.tk", "transpose_matrix", "--in x=randn(128,192)"),
    ("std/transpose.tk", "transpose_matrix", "--in x=randn(104,136)"),
    ("std/activation.tk", "gelu_forward", "--in x=randn(100,64):bf16"),
    ("std/transpose.tk", "transpose_matrix", "--in x=randint(0,9,128,128):u8"),
    ("std/transpose.tk", "transpose_matrix", "--in x=randn(128,64):bf16"),
    ("std/scan.tk", "cumsum_rows", "--in x=randn(4,4096)"),
    ("std/scan.tk", "cumsum_rows", "--in x=randn(4,1000) -D EXCLUSIVE=true"),
    ("std/scan.tk", "cumsum_rows", "--in x=randn(3,10000)"),
    ("std/activation.tk", "swiglu", "--in gate=randn(64,64) --in up=randn(64,64)"),
    ("std/softmax.tk", "softmax", "--in x=randn(1,781):bf16"),
    ("std/softmax.tk", "softmax", "--in x=randn(100,781):bf16"),
    ("std/softmax.tk", "softmax", "--in x=randn(37,781):f16"),
    ("std/softmax.tk", "softmax", "--in x=randn(37,1003)"),
    ("std/softmax.tk", "softmax", "--in x=randn(3,10001):bf16"),
    ("std/softmax.tk", "softmax", "--in x=randn(9,4098)"),
    ("std/norm.tk", "layernorm", "--in x=randn(67,781):bf16 --in w=randn(781):bf16 --in b=randn(781):bf16"),
    ("std/scan.tk", "cumsum_rows", "--in x=randn(19,515)"),
    (FILLED, "filled", "--dim M=37 --dim N=781 -D T=i8"),
    (MASKED, "masked", "--in x=randn(9,781):f16"),
    (MASKED, "masked", "--in x=randint(0,99,9,1027):u8"),
    (TILES, "tiles", "--in x=randn(45,1781)"),
    (TILES, "tiles", "--in x=randn(45,1025):bf16"),
    (TILES, "tiles", "--in x=randint(0,99,21,2047):i8"),
    (CUBE, "cube", "--in x=randn(3,21,501):f16"),
    (CUBE, "cube", "--in x=randn(3,17,511)"),
    (CUBE, "cube", "--in x=randn(3,17,513):f64"),
    (PAIRS, "pairs", "--in x=randn(3,512)"),
    (GATHER, "pick", "--in x=randn(3,1024)"),
    (GATHER, "pick", "--in x=randn(3,1000):bf16"),
    ("std/matmul.tk", "matmul", "--in a=randn(128,64):bf16 --in b=randn(64,128):bf16"),
    ("std/matmul.tk", "matmul", "--in a=randn(64,128):bf16 --in b=randn(128,64):bf16 -D BM=32"),
    ("std/matmul.tk", "matmul", "--in a=randn(320,64):bf16 --in b=randn(64,264):bf16 -D BM=128 -D BN=256"),
    ("std/matmul.tk", "matmul", "--in a=randn(200,64):bf16 --in b=randn(64,136):bf16 -D O=f32 -D BM=64 -D BN=64"),
    ("std/matmul.tk", "matmul", "--in a=randint(0,9,64,128):i8 --in b=randint(0,9,128,64):i8 -D O=i32"),
    ("std/matmul.tk", "matmul", "--in a=randn(64,64):f64 --in b=randn(64,64):f64"),
    ("std/matmul.tk", "matmul", "--in a=randn(127,65):bf16 --in b=randn(65,129):bf16"),
    ("std/matmul.tk", "matmul", "--in a=randn(128,199):bf16 --in b=randn(199,199):bf16 -D BM=128 -D BN=128"),
    ("std/matmul.tk", "matmul", "--in a=randn(33,199):bf16 --in b=randn(199,33):bf16 -D BM=32 -D BN=32"),
]
# What LLVM makes less of: only a part of the threads needs what all could read.
AT_MOST = [
    (PLACES, "places", "--in x=randn(3,4096)"),
    (COLUMNS, "columns", "--in x=randn(64,256)"),
]
# That no rule was made for: streams with and without rings, neighbours, steps that are no sectors, columns, several dimensions. On two targets.
STREAM = """kernel stream<T: type>(%s) grid (%s) {
%s
}
"""
BOTH, ROW_SUMS = "x: in T[M, N], y: out T[M, N]", "x: in T[M, N], y: out f32[M]"
SUMS = STREAM % (ROW_SUMS, "i in M", "    var s = 0.0;\n    for k in 0 .. N step 256 pipeline(3) { s += sum(f32(x[i, k +: 256])); }\n    y[i] = s;")
STENCIL = STREAM % (BOTH, "i in M", """    for k in 0 .. N step 256 pipeline(2) {
        y[i, k +: 256] = x[i, k - 1 +: 256] + x[i, k +: 256] * T(2) + x[i, k + 1 +: 256];
    }""")
NEIGHBOURS = STENCIL.replace("pipeline(2) ", "")
MASKS = STREAM % (BOTH, "i in cdiv(M, 8)", """    for k in 0 .. N step 128 pipeline(4) {
        let c = k + iota(128);
        y[i * 8 +: 8, k +: 128] = x[i * 8 +: 8, c where c % 3 != 1] else T(1);
    }""")
CARRIES = STREAM % (BOTH, "i in M", """    var s = zeros([1], f32);
    for k in 0 .. N step 512 pipeline(3) {
        let t = cumsum(f32(x[i, k +: 512]), axis = 0) + s;
        y[i, k +: 512] = T(t);
        s = max(t) * full([1], 1.0);
    }""")
SCALED = STREAM % ("x: in T[M, N], w: in T[N], y: out T[M, N]", "i in cdiv(M, 4)", """    for k in 0 .. N step 512 pipeline(3) {
        y[i * 4 +: 4, k +: 512] = x[i * 4 +: 4, k +: 512] * w[k +: 512];
    }""")
STEPS = STREAM % (ROW_SUMS, "i in M", "    var s = 0.0;\n    for k in 0 .. N step 100 { s += sum(f32(x[i, k +: 100])); }\n    y[i] = s;")
ODD_STEPS = STEPS.replace("100", "75")
DOWN = STREAM % ("x: in T[M, N], y: out f32[1, N]", "j in cdiv(N, 128)", """    var s = zeros([1, 128], f32);
    for r in 0 .. M step 32 pipeline(2) { s = s + sum(f32(x[r +: 32, j * 128 +: 128]), axis = 0); }
    y[0 +: 1, j * 128 +: 128] = s;""")
FILTER = STREAM % ("x: in T[M, N], w: in f32[5], y: out T[M, N]", "i in M, j in cdiv(N, 256)", """    var s = zeros([256], f32);
    for k in 0 .. 5 { s = s + f32(x[i, j * 256 + k - 2 +: 256]) * w[k]; }
    y[i, j * 256 +: 256] = T(s);""")
POOL = STREAM % ("x: in T[C, H, W], y: out T[C, H, W]", "c in C, i in cdiv(H, 8), j in cdiv(W, 64)", """    y[c, i * 8 +: 8, j * 64 +: 64] = max(x[c, i * 8 - 1 +: 8, j * 64 - 1 +: 64], x[c, i * 8 + 1 +: 8, j * 64 + 1 +: 64]);""")
BIAS = STREAM % ("x: in T[M, N], b: in T[M], y: out T[M, N]", "i in cdiv(M, 16), j in cdiv(N, 128)", """    y[i * 16 +: 16, j * 128 +: 128] = x[i * 16 +: 16, j * 128 +: 128] + reshape(b[i * 16 +: 16], [16, 1]);""")
NESTED = STREAM % (BOTH, "i in 2", """    for r in i .. M step 2 {
        for k in 0 .. N step 200 { y[r, k +: 200] = x[r, k +: 200] + x[r, k + 1 +: 200]; }
    }""")
# The last iterations but one are at the end of the tensor too, or behind it.
BESIDE = STREAM % (BOTH, "i in M", """    for k in 0 .. N step 256 pipeline(3) {
        y[i, k +: 256] = x[i, k - 8 +: 256] + x[i, k + 8 +: 256];
    }""")
FAR = BESIDE.replace("k - 8", "k - 300").replace("k + 8", "k + 300")
SHIFTED = STREAM % (BOTH, "i in M, j in cdiv(N, 128)", "    y[i, j * 128 +: 128] = x[i, j * 128 - 200 +: 128] + x[i, j * 128 + 200 +: 128];")
# More than half of the rows, by a loop's count or by the grid's, are behind the tensor's end.
BEHIND = STREAM % (BOTH, "b in 2", "    for r in 0 .. 64 { y[2 * r + b, 0 +: 256] = x[2 * r + b, 0 +: 256]; }")
BEHIND_GRID = STREAM % (BOTH, "b in 2, i in 200", "    y[2 * i + b, 0 +: 256] = x[2 * i + b, 0 +: 256];")
# Loops that do not run equally often in all programs, or in all iterations of others.
LOWER = STREAM % ("x: in T[M, N], y: out T[M, N]", "i in cdiv(M, 32)", "    for j in 0 .. i + 1 { y[i * 32 +: 32, j * 32 +: 32] = x[i * 32 +: 32, j * 32 +: 32]; }")
UPPER = LOWER.replace("0 .. i + 1", "i .. cdiv(N, 32)")
BAND = LOWER.replace("0 .. i + 1", "max(i - 2, 0) .. min(i + 2, cdiv(N, 32))").replace("i in cdiv(M, 32)", "i in cdiv(M, 32), b in 3")
DIAGONAL = LOWER.replace("i in cdiv(M, 32)", "b in 2, i in cdiv(M, 32)").replace("0 .. i + 1", "0 .. cdiv(M, 32) - i + 2 * b")
TRIANGLE = STREAM % (BOTH, "", """    for i in 0 .. M {
        var s = zeros([32], f32);
        for j in 0 .. i + 1 { s += f32(x[i, j * 32 +: 32]); }
        y[i, 0 +: 32] = T(s);
    }""")
TRIANGLE = TRIANGLE.replace(" grid ()", "")
BOTH_WAYS = STREAM % (BOTH, "b in 3", """    for i in b .. M step 3 {
        var s = zeros([64], f32);
        for j in 0 .. i { for k in 0 .. b + 2 { s += f32(x[i, (j + k) * 64 +: 64]); } }
        y[i, 0 +: 64] = T(s);
    }""")
AHEAD_OF = STREAM % (ROW_SUMS, "i in M", "    var s = 0.0;\n    for k in 0 .. (i + 1) * 128 step 128 pipeline(3) { s += sum(f32(x[i, k +: 128])); }\n    y[i] = s;")
TWICE = STREAM % (BOTH, "i in M", """    var s = 0.0;
    for k in 0 .. (i + 1) * 256 step 256 { s += sum(f32(x[i, k +: 256])); }
    for k in 0 .. (i + 1) * 256 step 256 { y[i, k +: 256] = T(f32(x[i, k +: 256]) * s); }""")
# Scalars say how many programs and iterations there are.
WINDOW = STREAM % ("x: in T[M, N], y: out T[M, N], n: i32, w: i32 = 2", "i in n", "    for j in 0 .. w { if j < n { y[i, j * 128 +: 128] = x[i, j * 128 +: 128]; } }")
UNEVEN = [
    (WINDOW, "--in x=randn(5,512) --scalar n=3 --scalar w=3"),
    (WINDOW, "--in x=randn(5,512):bf16 --scalar n=5"),
    (LOWER, "--in x=randn(160,160)"),
    (LOWER, "--in x=randn(150,301):bf16"),
    (UPPER, "--in x=randn(160,160):bf16"),
    (UPPER, "--in x=randn(150,301)"),
    (BAND, "--in x=randn(256,256)"),
    (DIAGONAL, "--in x=randn(130,330)"),
    (TRIANGLE, "--in x=randn(9,288)"),
    (TRIANGLE, "--in x=randn(9,250):bf16"),
    (BOTH_WAYS, "--in x=randn(8,784)"),
    (AHEAD_OF, "--in x=randn(7,900):bf16"),
    (AHEAD_OF, "--in x=randn(5,301):bf16"),
    (TWICE, "--in x=randn(7,2048)"),
    (TWICE, "--in x=randn(7,1504):bf16"),
]
CAUSAL = [("std/attention.tk", "causal_attention", " ".join(f"--in {x}=randn({shape},64):f16" for x in "qkv") + " --scalar scale=0.125") for shape in ("1,2,512", "1,1,300")]
UNTUNED = [(text, "stream", options) for text, options in UNEVEN] + [
    (BESIDE, "stream", "--in x=randn(3,781):f16"),
    (BESIDE, "stream", "--in x=randn(1,781):f16"),
    (FAR, "stream", "--in x=randn(3,1201):f16"),
    (SHIFTED, "stream", "--in x=randn(3,1200)"),
    (SHIFTED, "stream", "--in x=randn(5,1024):bf16"),
    (SUMS, "stream", "--in x=randn(3,2048):bf16"),
    (SUMS, "stream", "--in x=randn(5,1001):f16"),
    (STENCIL, "stream", "--in x=randn(3,2048)"),
    (STENCIL, "stream", "--in x=randn(3,700)"),
    (NEIGHBOURS, "stream", "--in x=randn(3,2048):bf16"),
    (MASKS, "stream", "--in x=randn(19,1000)"),
    (CARRIES, "stream", "--in x=randn(3,1500)"),
    (SCALED, "stream", "--in x=randn(11,2048):bf16 --in w=randn(2048):bf16"),
    (SCALED, "stream", "--in x=randn(11,2001) --in w=randn(2001)"),
    (STEPS, "stream", "--in x=randn(3,1003):bf16"),
    (ODD_STEPS, "stream", "--in x=randn(3,1200)"),
    (ODD_STEPS, "stream", "--in x=randint(0,9,3,1200):i8"),
    (DOWN, "stream", "--in x=randn(100,512):bf16"),
    (FILTER, "stream", "--in x=randn(3,781):bf16 --in w=randn(5)"),
    (POOL, "stream", "--in x=randn(2,20,200)"),
    (BIAS, "stream", "--in x=randn(40,300):bf16 --in b=randn(40):bf16"),
    (BIAS, "stream", "--in x=randn(40,301) --in b=randn(40)"),
    (NESTED, "stream", "--in x=randn(8,1000)"),
    ("bench/untuned/quantize_groups.tk", "quantize_groups", "--in x=randn(3,1024):bf16"),
    ("bench/untuned/rope_l2norm.tk", "rope_l2norm", "--in x=randn(7,128):bf16 --in c=randn(4,64) --in s=randn(4,64)"),
    ("bench/untuned/softcap_log_softmax.tk", "softcap_log_softmax",
     "--in x=randn(3,1000):bf16 --in bias=randn(1000) --in mask=randint(0,2,3,1000):bool --scalar cap=30"),
    (BEHIND, "stream", "--in x=randn(20,200)"),
    (BEHIND, "stream", "--in x=randn(3,200)"),
    (BEHIND_GRID, "stream", "--in x=randn(41,200)"),
    ("std/reduce.tk", "max_rows", "--in x=randn(5,3001):bf16"),
    # Rows of any length and place, at whose ends the threads of a warp take different ways.
    (STENCIL, "stream", "--in x=randn(5,777)"),
    (NEIGHBOURS, "stream", "--in x=randn(3,3001):bf16"),
    (NEIGHBOURS, "stream", "--in x=randn(5,777)"),
    (BESIDE, "stream", "--in x=randn(3,781)"),
    (FAR, "stream", "--in x=randn(5,777)"),
    (POOL, "stream", "--in x=randn(2,3,781):bf16"),
    ("std/softmax.tk", "softmax", "--in x=randn(5,781)"),
    ("std/dropout.tk", "dropout", "--in x=randn(3,2000) --scalar p=0.5 --scalar seed=3"),
]


def check(condition, what):
    if not condition:
        FAILED.append(what)
        print("FAIL", what)


def tkc(*words, code=0):
    done = subprocess.run([TKC, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          check=False, timeout=300, text=True)
    check(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {done.stderr}")
    return done.stdout, done.stderr


def file_of(text):
    if text.endswith(".tk"):
        return text
    path = pathlib.Path(FOLDER.name) / "k.tk"
    path.write_text(text)
    return str(path)


SEEN = set()  # ids, names of numbers and of words in all that is asked here


def explained(file, *words, **how):
    found = json.loads(tkc("explain", file, "--format=json", *words, **how)[0])
    for note in found["notes"]:
        SEEN.update((note["id"], name) for name in ("", *note["numbers"], *note["words"]))
    return found


def counted(file, *words, device="sim"):
    return json.loads(tkc("run", file, *words, "--device", device, "--counters=json")[0])


def number(note, name):
    return note["numbers"].get(name, 0)


def totals(found):
    notes = found["notes"]
    (programs,) = [number(n, "programs") for n in notes if n["id"] == "launch"]
    notes = [n for n in notes if "runs" not in n["words"]]  # what is in branches that do not run
    access = [n for n in notes if n["id"] == "access"]
    across = [n for n in notes if n["id"] != "ring" and ("offset" in n["numbers"] or n["id"] in ("staging", "move", "product") and "requests" in n["numbers"])]
    for note in access:
        check("sectors" in note["numbers"], f"sectors are not known: {note}")
    for note in across:
        check("wavefronts" in note["numbers"], f"wavefronts are not known: {note}")
    def by_all(of, name):
        return sum(number(n, name + "_by_all") if name + "_by_all" in n["numbers"] else programs * number(n, name) for n in of)

    # All warps of a block wait once rings are made; then warps that only fetch meet no other. Of blocks that go on to further programs the
    # simulator runs two.
    rings = [n for n in notes if n["id"] == "ring"]
    blocks = min(programs, 2) if any(n["id"] == "persistent" and n["verdict"] == "done" for n in notes) else programs
    producers = sum(number(n, "producers") for n in notes if n["id"] == "specialized" and "producers" in n["numbers"])
    others = [n for n in notes if n["id"] != "ring"]
    waits = (found["warps"] - producers) * by_all(others, "barriers") + found["warps"] * blocks * sum(number(n, "barriers") for n in rings)
    return {"global_requests": by_all(access, "requests"), "global_sectors": by_all(access, "sectors"),
            "shared_requests": by_all(across, "requests"), "shared_wavefronts": by_all(across, "wavefronts"),
            "shared_conflicts": by_all(across, "conflicts"),
            "async_bytes": by_all(across, "asynchronous"), "barrier_waits": waits}


def against_simulator():
    cases = [(case, "sm_90a", "sim") for case in KERNELS + AT_MOST + UNTUNED] + [(case, "sm_80", "sim:80") for case in UNTUNED + CAUSAL]
    for (text, kernel, options), arch, device in cases:
        words = ["--kernel", kernel, *options.split()]
        found = explained(file_of(text), *words, "--arch", arch)
        claimed, really = totals(found), counted(file_of(text), *words, device=device)["total"]
        for name, value in claimed.items():
            fits = value == really[name] or (value > really[name] and (text, kernel, options) in AT_MOST)
            check(fits, f"{kernel} {options} {arch}: {name}: {value} claimed, {really[name]} counted\n{text if text[-3:] != '.tk' else ''}")


# Each kernel that ships, but those that others are made of: its arguments.
SHIPPED = {
    "gelu_forward": "x=randn(20,64):bf16",
    "gelu_tanh_forward": "x=randn(20,64)",
    "silu_forward": "x=randn(3,1001)",
    "relu_forward": "x=randn(9,72):f16",
    "swiglu": "gate=randn(9,64) up=randn(9,64)",
    "attention": "q=randn(1,2,256,64):f16 k=randn(1,2,256,64):f16 v=randn(1,2,256,64):f16 --scalar scale=0.125",
    "causal_attention": "q=randn(1,2,300,64):f16 k=randn(1,2,300,64):f16 v=randn(1,2,300,64):f16 --scalar scale=0.125",
    "cross_entropy": "x=randn(9,200) target=randint(0,200,9):i32",
    "dropout": "x=randn(3,200) --scalar p=0.5 --scalar seed=3",
    "add": "x=randn(9,200) y=randn(9,200)",
    "multiply": "x=randn(9,200):bf16 y=randn(9,200):bf16",
    "matmul": "a=randn(128,64):bf16 b=randn(64,128):bf16",
    "realign": "x=randn(9,201):bf16",
    "matmul_scaled": "a=randn(64,128):f16 b=randn(128,64):f16 scale_a=randn(1) scale_b=randn(1)",
    "matmul_residual": "a=randn(64,128):f16 b=randn(128,64):f16 residual=randn(64,64):f16",
    "matmul_orders": "at=randn(128,64):f16 bt=randn(64,128):f16",
    "matmul_batched": "a=randn(3,64,128):f16 b=randn(3,128,64):f16",
    "matmul_split_k": "a=randn(64,512):f16 b=randn(512,64):f16 --dim S=4",
    "matmul_split_k_sum": "part=randn(4,64,64) -D O=f16",
    "layernorm": "x=randn(9,256) w=randn(256) b=randn(256)",
    "rmsnorm": "x=randn(9,256) w=randn(256)",
    "layernorm_backward": "x=randn(9,256) dy=randn(9,256) dw_part=randn(3,256) db_part=randn(3,256)",
    "layernorm_backward_sum": "dw_part=randn(32,256) db_part=randn(32,256) -D W=f32",
    "sum_rows": "x=randn(9,256)",
    "max_rows": "x=randn(9,256)",
    "cumsum_rows": "x=randn(9,256)",
    "argmax_rows": "x=randn(9,256)",
    "topk_rows": "x=randn(9,256) -D K=4",
    "softmax": "x=randn(9,256)",
    "log_softmax": "x=randn(9,256)",
    "transpose_matrix": "x=randn(65,256)",
}


def shipped():
    """Each load and store of the kernels that ship has its note: requests, sectors and asynchronous bytes are the simulator's."""
    names = [(x, y) for x in sorted(pathlib.Path("stdlib").glob("*.tk")) for y in re.findall(r"^kernel (\w+)", x.read_text(), re.M)]
    check({y for _, y in names} - set(SHIPPED) == {"activation", "binary"}, f"{names}")
    for file, kernel in (x for x in names if x[1] in SHIPPED):
        words = ["--kernel", kernel, *(word for x in SHIPPED[kernel].split() for word in (("--in", x) if "(" in x else (x,)))]
        for arch, device in (("sm_80", "sim:80"), ("sm_90a", "sim")):
            found, really = explained(str(file), *words, "--arch", arch), counted(str(file), *words, device=device)["total"]
            notes = [n for n in found["notes"] if n["id"] in ("access", "staging") and "runs" not in n["words"]]
            known = all("sectors" not in n["words"] for n in notes)
            for name, of in (("global_requests", "requests"), ("global_sectors", "sectors"), ("async_bytes", "asynchronous")):
                claimed = sum(number(n, of + "_by_all") for n in notes if n["id"] == ("staging" if of == "asynchronous" else "access"))
                check(claimed == really[name] or (not known and claimed < really[name]), f"{kernel} {arch}: {name}: {claimed} claimed, {really[name]} counted")
            for tensor in (x["name"] for x in found["tensors"]):
                check(any(n["id"] == "access" and f"'{tensor}' is" in n["text"] for n in notes), f"{kernel} {arch}: nothing is said of '{tensor}'")


# ---- @require: attribute, body, options, the line that loses it (0: none) and a part of the reason

ROWS = """%s
kernel rows<T: type, N: int>(x: in T[M, N], w: in T[N], y: out T[M, N]) grid (i in M) {
%s
}
"""
COPY = "    y[i, 0 +: N] = x[i, 0 +: N];"
SUM = "    let r = f32(x[i, 0 +: N]);\n    y[i, 0 +: N] = T(r / sum(r));"
STRIDED = "    y[i, 0 +: N] =\n        x[i, 2 * iota(N)];"
TURNED = "    let t = reshape(x[i, 0 +: N], [64, 64]);\n    y[i, 0 +: N] =\n        reshape(transpose(t), [N]);"
SORTED = "    let r = x[i, 0 +: N];\n    y[i, 0 +: N] =\n        sort(r, axis = 0);"
# A row that is carried from one iteration to the next, and changed in each.
CARRIED = ("    var t = f32(x[i, 0 +: N]);\n    for k in 0 .. M {\n        t = t * sum(t) + cumsum(t, axis = 0);\n    }\n"
           "    y[i, 0 +: N] = T(t);")
AHEAD = "    for k in 0 .. N step 128 pipeline(2) {\n        y[i, k +: 128] = x[i, k +: 128] * T(2);\n    }"
F32, BF16 = "-D T=f32 -D N=4096 --dim M=8", "-D T=bf16 -D N=4096 --dim M=8"
DEMANDS = [
    ("vectorized", COPY, F32, 0, ""),
    ("vectorized", SUM, BF16, 0, ""),
    ("vectorized", STRIDED, F32, 4, "element by element, as the indices are not known to count up"),
    ("vectorized", COPY.replace("0 +: N]", "1 +: N]"), F32, 3, "the place in the row is not known"),
    ("no_spills", SUM, BF16, 0, ""),
    ("no_spills", CARRIED, F32.replace("4096", "65536"), 3, "memory"),
    ("max_registers(128)", SUM, BF16, 0, ""),
    ("max_registers(16)", SUM, F32, 3, "a thread takes"),
    ("max_shared(1KB)", SUM, BF16, 0, ""),
    ("max_shared(1KB)", TURNED, F32, 4, "16384"),
    ("no_bank_conflicts", SUM, F32, 0, ""),
    ("no_bank_conflicts", TURNED, F32, 4, "wavefronts where"),
    ("no_bank_conflicts", SORTED, F32, 5, "not counted"),
    ("async_copy", COPY, F32, 3, "'x' is loaded into registers"),
    ("async_copy", COPY, F32.replace("4096", "781"), 0, ""),
    ("async_copy", "    y[i, 0 +: N] = T(i);", F32, 2, "loads no tile"),
    ("tma", COPY, F32, 3, "only loops that load ahead, for a matrix unit or with 'pipeline', load by them"),
    ("tma", AHEAD, F32 + " --mapped", 0, ""),
    ("tma", AHEAD, F32 + " --mapped --arch sm_80", 1, "sm_80 has no tensor copies"),
    ("vectorized", "    let t =\n        x[i, 2 * iota(N)];\n    y[i, 0 +: N] = t / sum(t);", F32.replace("4096", "65536"), 4, "not known to count up"),
    ("async_copy", AHEAD, F32, 0, ""),
    ("tensor_cores", COPY, F32, 2, "no dot"),
    # Spoiled: strides.
    ("vectorized", "    y[i, 0 +: N / 2] =\n        x[i, 1 + 2 * iota(N / 2)];", F32, 4, "not known to count up"),
    ("vectorized", "    y[i, 0 +: 2048] =\n        x[iota(2048), i];", F32, 4, "the last dimension's index is one number"),
    ("vectorized", "    y[i, 0 +: 64] = reshape(\n        x[0 +: 64, 3 +: 1], [64]);", F32, 4, "element by element"),
    ("vectorized", "    y[i, N - 1 - iota(N)] =\n        x[i, 0 +: N];", F32, 3, "'y' is written element by element"),
    ("vectorized", "    y[i, 0 +: N] =\n        x[i, N - 1 - iota(N)];", F32, 4, "'x' is read element by element"),
    ("vectorized", "    let o = i32(x[i, 0]);\n    y[i, 0 +: 1024] =\n        x[i, o +: 1024];", F32, 5, "alignment"),
    ("vectorized", "    let p = i32(w[0 +: 64]);\n    y[i, 0 +: 64] =\n        x[i, p];", F32, 5, "not known to count up"),
    ("vectorized", "    y[i, 0 +: N] =\n        x[i, 0 +: N where iota(N) % 2 == 0];", F32, 4, "the mask may differ inside each vector"),
    ("vectorized", "    y[i, 0 +: N where iota(N) % 8 < 4] =\n        x[i, 0 +: N where iota(N) < M + 5];", F32, 0, ""),
    ("vectorized", "    y[i, 0 +: N] =\n        x[i, 0 +: N] +\n        x[i, 2 +: N];", F32, 5, "2 elements at once"),
    ("vectorized", "    for k in 0 .. N step 100 {\n        y[i, k +: 100] = x[i, k +: 100];\n    }", F32, 0, ""),
    ("vectorized", "    for k in 0 .. N step 99 {\n        y[i, k +: 99] =\n            x[i, k +: 99];\n    }", F32, 5, "alignment, as the place in the row is not known"),
    # Tiles that are too large.
    ("no_spills", "    var t = f32(x[i, 0 +: N]);\n    for k in 0 .. M { t = t * sum(t) + 1.0; }\n    y[i, 0 +: N] = T(t);",
     F32.replace("4096", "131072"), 3, "local memory"),
    ("no_spills", "    let t = f32(x[i, 0 +: N]);\n    y[i, 0 +: N] = T(\n        cumsum(t, axis = 0));", F32.replace("4096", "131072"), 5, "local memory"),
    ("no_spills", "    let t = f32(x[i, 0 +: N]);\n    let m = sum(t);\n    y[i, 0 +: N] = T(exp(t - m) / m);", F32.replace("4096", "262144"), 0, ""),
    ("max_registers(32)", "    let t = f32(x[i, 0 +: N]);\n    y[i, 0 +: N] = T(exp(t) / sum(exp(t)));", F32.replace("4096", "16384"), 3, "a thread takes"),
    ("max_registers(255)", "    let t = f32(x[i, 0 +: N]);\n    y[i, 0 +: N] = T(exp(t) / sum(exp(t)));", F32.replace("4096", "16384"), 0, ""),
    ("max_shared(1KB)", "    for k in 0 .. N step 2048 pipeline(4) {\n        y[i, k +: 2048] =\n            x[i, k +: 2048] * T(2);\n    }", F32, 5, "32768"),
    ("max_shared(1KB)", "    let t = x[i, 0 +: N];\n    y[i, 0 +: N] =\n        flip(t, axis = 0);", F32, 5, "16384"),
    ("no_bank_conflicts", "    let t = x[i, 0 +: N];\n    y[i, 0 +: N] =\n        gather(t, (iota(N) * 32) % N, 0);", F32, 5, "not counted"),
    # Loads that are not, or cannot be, copied ahead.
    ("async_copy", AHEAD.replace("pipeline(2) ", ""), F32, 4, "loaded into registers"),
    ("async_copy", AHEAD.replace("* T(2)", "* w[0]"), F32, 0, ""),
    ("async_copy", AHEAD.replace("* T(2)", "*\n            w[k +: 128]"), F32, 0, ""),
    ("tma", AHEAD.replace("x[i, k +:", "x[i, k + 1 +:"), F32 + " --mapped", 4, "its place in a row is not known to be a multiple of 16 bytes"),
]
DOT = """@require(tensor_cores)
kernel product(a: in f16[M, 64], b: in f16[64, N], y: out f32[M, N]) grid (i in cdiv(M, 64)) {
    y[i * 64 +: 64, 0 +: 64] =
        dot(a[i * 64 +: 64, 0 +: 64], b[0 +: 64, 0 +: 64]);
}
"""
# A tensor that is read and written, from places that may overlap and begin anywhere.
INOUT = """@require(vectorized)
kernel shift<T: type>(x: inout T[M, N]) grid (i in M) {
    x[i, 0 +: 1024] =
        x[i, program_id(0) +: 1024];
}
"""
# A tile that is worked on in parts, which are smaller than any that the source has.
IN_PARTS = """@require(tensor_cores)
kernel big(a: in f16[M, K], b: in f16[K, N], y: out f32[M, N]) grid (i in cdiv(M, 1024), j in cdiv(N, 1024)) {
    var s = zeros([1024, 1024], f32);
    for k in 0 .. K step 64 { s += dot(a[i * 1024 +: 1024, k +: 64], b[k +: 64, j * 1024 +: 1024]); }
    y[i * 1024 +: 1024, j * 1024 +: 1024] = s;
}
"""
# Tensors that are read and written: what may not run ahead is an error of its own, with and without a demand.
ALIASED = """%s
kernel stream<T: type>(x: inout T[M, N], w: in T[N], y: out T[M, N]) grid (i in M) {
%s
}
"""
ALIASES = [
    ("    for k in 0 .. N step 128 pipeline(2) {\n        x[i, k +: 128] =\n            x[i, k +: 128] * T(2);\n    }", 5),
    ("    for k in 0 .. N step 128 pipeline(3) {\n        y[i, k +: 128] =\n            x[i, k +: 128] * w[k +: 128];\n    }", 5),
    ("    for k in 0 .. M pipeline(2) {\n        y[k, 0 +: 128] =\n            x[M - 1 - k, 0 +: 128];\n        x[k, 0 +: 128] = y2(w);\n    }".replace("y2(w)", "w[k +: 128]"), 5),
]


def aliases():
    for body, line in ALIASES:
        for demand in ("", "@require(async_copy)", "@require(tma)"):
            error = tkc(file_of(ALIASED % (demand, body)), "--arch", "sm_90a", "-D", "T=f32", "--mapped", "--emit=ptx", code=1)[1]
            check(f"k.tk:{line}:" in error and "cannot be kept: the tensor may be written" in error, f"{body}: {error}")
        plain = re.sub(" pipeline.[0-9].", "", body)
        error = tkc(file_of(ALIASED % ("@require(async_copy)", plain)), "--arch", "sm_90a", "-D", "T=f32", "--mapped", "--emit=ptx", code=1)[1]
        check(f"k.tk:{line}:" in error and "'x' is loaded into registers" in error, f"{plain}: {error}")


@functools.cache
def assembler():
    return "none" not in [line for line in tkc("info")[0].splitlines() if line.startswith("assembler")][0]


def demanded(name, text, options, line, why):
    words = [file_of(text), *([] if "--arch" in options else ["--arch", "sm_90a"]), *options.split()]
    found = explained(*words, code=1 if line else 0)
    notes = [n for n in found["notes"] if n["id"] == "require"]
    compiled = tkc(*words, "-o", os.path.join(FOLDER.name, "k.ptx"), code=1 if line else 0)[1]
    if not line:
        check([n["verdict"] for n in notes] == ["done"], f"{name}: {notes}")
        return
    check(all(n["verdict"] == "failed" for n in notes) and notes, f"{name}: {notes}")
    said = [(n["line"], n["column"], n["text"]) for n in notes]
    check(len(set(said)) == len(said), f"{name}: said twice: {said}")
    lines = [n["line"] for n in notes]
    check(line in lines, f"{name}: lost at {lines}, not {line}: {notes}")
    check(any(why in n["text"] for n in notes), f"{name}: {notes}")
    check(f"k.tk:{line}:" in compiled and f"'@require({name.replace('1KB', '1024')})' does not hold: " in compiled and "required here" in compiled,
          f"{name}: {compiled}")


# A bound that a loop carries, and one that hangs on the program where it is not known how many there are.
HALVES = STREAM % (ROW_SUMS, "i in M", """    var s = 0.0;
    var n = 8;
    for k in 0 .. 3 {
        for j in 0 .. n { s += sum(f32(x[i, j * 64 +: 64])); }
        n = n / 2;
    }
    y[i] = s;""")
NONE = LOWER.replace("0 .. i + 1", "2 .. i")  # the first three programs do nothing


def uneven():
    notes = explained(file_of(HALVES), "--in", "x=randn(4,512)")["notes"]
    (access,) = [x for x in notes if x["id"] == "access" and "'x'" in x["text"]]
    check("not known" in access["words"].get("times", "") and "times" not in access["numbers"], f"{access}")
    for more, times in ((("--in", "x=randn(160,160)"), 3), (("-D", "T=f32"), None), (("-D", "T=f32", "--dim", "M=160"), 3)):
        notes = explained(file_of(LOWER), *more)["notes"]
        for note in (x for x in notes if x["id"] in ("access", "loop")):
            said = note["numbers"].get("times", note["numbers"].get("iterations"))
            check(said == times, f"{more}: {note}")
            check(times is None or note["words"]["counted"] == "the mean of all programs", f"{more}: {note}")
    found = explained(file_of(NONE), "--in", "x=randn(160,160)")
    (access,) = [x for x in found["notes"] if x["id"] == "access" and "'x'" in x["text"]]
    check(abs(number(access, "times") - 3 / 5) < 1e-12 and number(access, "moved") == 3 * 4096 / 5, f"{access}")
    roof = found["roofline"]
    check(roof["bytes"] == roof["least_bytes"] == 3 * 2 * 4096, f"{roof}")
    # Scalars that are not given are not known, and none that a launch would refuse is taken.
    for more, programs in ((("--scalar", "n=3"), [3]), ((), [])):
        notes = explained(file_of(WINDOW), "--in", "x=randn(5,512)", *more)["notes"]
        check([number(x, "programs") for x in notes if x["id"] == "launch"] == programs, f"{more}: {notes}")
    check("does not fit parameter 'n'" in tkc("explain", file_of(WINDOW), "--in", "x=randn(5,512)", "--scalar", "n=9999999999", code=1)[1], "scalar-range")
    # Half of the products that all keys take, and half of the time: very many programs.
    seconds, flops = [], []
    for kernel in ("attention", "causal_attention"):
        found = explained("std/attention.tk", "--kernel", kernel, *(w for x in "qkv" for w in ("--in", f"{x}=randn(4,16,16384,128):f16")))
        (predicted,) = [x for x in found["notes"] if x["id"] == "predicted"]
        seconds.append(number(predicted, "seconds"))
        flops.append(found["roofline"]["flops_tensor_cores"])
    check(0.5 < flops[1] / flops[0] < 0.52 and 0.45 < seconds[1] / seconds[0] < 0.6, f"{seconds} {flops}")
    # More programs than are looked at: said, and close to what it is.
    notes = explained(file_of(LOWER), "--in", "x=randint(0,9,1280000,32):i8")["notes"]
    for note in (x for x in notes if x["id"] in ("access", "loop")):
        said = note["numbers"].get("times", note["numbers"].get("iterations"))
        check(abs(said - 20000.5) < 20 and "some" in note["words"]["counted"], f"{note}")


# What is used with a tile that is worked on in parts is said to be so, not to be large itself.
PIPED = """kernel piped(x: in f32[M, N], w: in f32[N], y: out f32[M, N]) grid (i in cdiv(M, 256)) {
    for j in 0 .. N step 256 pipeline(2) { y[i * 256 +: 256, j +: 256] = x[i * 256 +: 256, j +: 256] * w[j +: 256][newaxis, :]; }
}
"""


def reasons():
    error = tkc(file_of(PIPED), "--arch", "sm_90a", "--emit=ptx", code=1)[1]
    check("'pipeline(2)' cannot be kept" in error and "it is used with a tile so large" in error and "its tile is so large" not in error, error)
    text = PIPED.replace("256", "64").replace("j +: 64", "j +: 128").replace("step 64 pipeline(2)", "step 128 pipeline(8)")
    error = tkc(file_of(text), "--arch", "sm_90a", "--emit=ptx", "--whole-rows", code=1)[1]
    check("those of an iteration are 33792 bytes, and 232448 are there, enough for 6" in error, error)
    # Code for tensors of which nothing is promised, by what would help; not where the tensor is known.
    text = ROWS % ("@require(vectorized)", COPY)
    error = tkc(file_of(text), "--arch", "sm_90a", *F32.split(), "--emit=ptx", code=1)[1]
    check("as '--contiguous' or '--whole-rows' does" in error, error)
    tkc(file_of(text), "--arch", "sm_90a", *F32.split(), "--whole-rows", "--emit=ptx")
    text = text.replace("x[i, 0 +: N]", "reshape(x[0 +: 4, 3 +: 1], [4])").replace("y[i, 0 +: N]", "y[i, 0 +: 4]")
    notes = explained(file_of(text), "--in", "x=randn(4,30)", "--in", "w=randn(30)", code=1)["notes"]
    check(not any("--whole-rows" in x["text"] for x in notes), f"{notes}")
    # Why no tensor copies: rows of 300 bytes.
    notes = explained("std/matmul.tk", "--kernel", "matmul", "--in", "a=randn(256,150):bf16", "--in", "b=randn(150,256):bf16", "--arch", "sm_90a")["notes"]
    (ahead,) = [x["text"] for x in notes if x["id"] == "ahead" and "'a' is" in x["text"]]
    check("its rows are not known to begin at multiples of 16 bytes" in ahead and "map" not in ahead, ahead)
    # Each target says which faster unit of the GPU is not used, and why; f64 has none.
    for arch, unit in (("sm_80", ""), ("sm_89", ""), ("sm_90", "wgmma"), ("sm_90a", None), ("sm_100", "tcgen05"), ("sm_120", "")):
        for dtype in ("bf16", "f64"):
            notes = explained("std/matmul.tk", "--kernel", "matmul", "--in", f"a=randn(256,256):{dtype}", "--in", f"b=randn(256,256):{dtype}", "--arch", arch)["notes"]
            (product,) = [x for x in notes if x["id"] == "product"]
            slower = unit and dtype == "bf16"
            check(product["verdict"] == ("missed" if slower else "done") and (f"not {unit}:" in product["text"]) == bool(slower), f"{arch} {dtype}: {product}")


def demands():
    for name, body, options, line, why in DEMANDS:
        if assembler() or name != "no_spills" and not name.startswith("max_registers"):
            rows = " --unit-stride" if "N=781" in options else " --whole-rows"
            demanded(name, ROWS % (f"@require({name})", body), options + rows, line, why)
    demanded("tensor_cores", DOT, "--dim M=64 --dim N=64", None, "")
    demanded("tensor_cores", DOT.replace("in f16", "in f32"), "--dim M=64 --dim N=64", 4, "f32 is multiplied exactly")
    demanded("tensor_cores", DOT.replace("+: 64, 0 +: 64],", "+: 4, 0 +: 64],").replace("* 64 +: 64", "* 64 +: 4"),
             "--dim M=64 --dim N=64", 4, "fewer than 16 rows")
    demanded("tensor_cores", IN_PARTS, "--dim M=4096 --dim N=4096 --dim K=4096 --mapped", 4, "worked on in parts")
    demanded("vectorized", INOUT, "-D T=f32 --dim M=8 --dim N=4096", 4, "alignment")
    # Short rows, of which many share a block: all that a thread has of one counts, also of those that are the same in all programs.
    for n in (1, 2, 3, 4, 6, 8, 31, 64):
        text = ROWS % ("@require(vectorized)", "    y[i, 0 +: N] = x[i, 0 +: N] * w[0 +: N] / sum(x[i, 0 +: N]);")
        tkc("explain", file_of(text), "--in", f"x=randn(5,{n})", "--in", f"w=randn({n})")
        if n == 1:
            continue
        found = explained(file_of(text.replace("w[0 +: N]", "sum(x[2 * iota(4), 0])")), "--in", f"x=randn(5,{n})", "--in", f"w=randn({n})", code=1)
        missed = {(x["text"][:10], x["verdict"]) for x in found["notes"] if x["id"] == "access" and "index is one number" in x["text"]}
        check(missed == {("'x' is rea", "missed")}, f"{n}: {missed}")
    # Strides of which nothing is known.
    error = tkc(file_of(ROWS % ("@require(vectorized)", COPY)), "--arch", "sm_90a", *F32.split(), "--emit=ptx", code=1)[1]
    check("the last stride is not known to be 1" in error, error)
    error = tkc(file_of(ROWS % ("@require(tma)", AHEAD)), "--arch", "sm_90a", *F32.split(), "--whole-rows", "--emit=ptx", code=1)[1]
    check("not by tensor copies: no tensor map is promised" in error, error)
    # All at once, each with its own line; and none of it on the CPU.
    text = ROWS % ("@require(vectorized, async_copy, max_shared(64KB))", STRIDED)
    error = tkc(file_of(text), "--arch", "sm_90a", *F32.split(), "--emit=ptx", code=1)[1]
    check(error.count("[require-failed]") == 3, error)
    tkc("check", file_of(text))
    environment = dict(os.environ, TKC_PTXAS="")
    words = [TKC, file_of(ROWS % ("@require(no_spills)", COPY)), "--arch", "sm_90a", *F32.split(), "--emit=ptx"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    check(done.returncode == 1 and "no assembler is at hand" in done.stderr, done.stderr)
    run = ["run", words[1], "--in", "x=randn(2,64)", "--in", "w=randn(64)", "--device", "sim"]
    tkc(*run)


# ---- Formats

def goldens(bless):
    """tests/explain/row.*: rewritten by --bless. Without an assembler, so that they are of no version of one."""
    environment = dict(os.environ, TKC_PTXAS="")
    for name, how in (("txt", "text"), ("json", "json"), ("sarif", "sarif")):
        done = subprocess.run([TKC, "explain", "tests/explain/row.tk", f"--format={how}", "--in", "x=zeros(132,1536):bf16", "--in",
                               "scale=zeros(1024)"], env=environment, capture_output=True, text=True, check=False)
        check(done.returncode == 1, f"row.{name}: exit code {done.returncode}: {done.stderr}")
        path = pathlib.Path("tests/explain") / f"row.{name}"
        if bless:
            path.write_text(done.stdout)
        same = path.exists() and path.read_text() == done.stdout
        check(same, f"{path} is not what comes out (tests/test_explain.py --bless): {done.stdout if not same else ''}")


# What an H200 took for products in bf16 (bench/NOTES.md): extents, columns of a tile, TFLOP/s of the extents.
MEASURED = [((4096, 4096, 4096), 256, 803), ((8192, 8192, 8192), 256, 816), ((8192, 8192, 1024), 256, 722),
            ((4096, 14336, 4096), 256, 807), ((4096, 4096, 4096), 128, 737), ((8192, 8192, 8192), 128, 753),
            ((16, 14336, 4096), 256, 44), ((1024, 1024, 1024), 256, 156), ((1024, 1024, 1024), 128, 222)]


# Rows and columns of a result, the operands' type, the tile.
TILES_CHOSEN = [((8192, 8192), "bf16", (128, 256)), ((2048, 2048), "f16", (128, 256)), ((1024, 1024), "bf16", (128, 64)),
                ((1024, 2048), "bf16", (128, 128)), ((16, 14336), "bf16", (16, 128)), ((32, 14336), "bf16", (32, 128)), ((4096, 4097), "bf16", (128, 128)), ((512, 512), "f16", (64, 64)),
                ((8192, 8192), "f8e4m3", (128, 256)), ((4096, 4096), "i8", (128, 256)), ((65536, 64), "bf16", (128, 64))]


AGAIN = """kernel again(a: in T[M, K] = none, b: in T[K, N] = none, at: in T[K, M] = none, bt: in T[N, K] = none, c: out f32[M, N])
    grid (i in cdiv(M, 64), j in cdiv(N, 128)) {
    var acc = zeros([64, 128], f32);
    for k in 0 .. K step 64 {
        if given(at) {
            acc = dot(transpose(at[k +: 64, i * 64 +: 64]), transpose(bt[j * 128 +: 128, k +: 64]), acc, precision = PRECISION);
        } else if given(bt) {
            acc = dot(a[i * 64 +: 64, k +: 64], transpose(bt[j * 128 +: 128, k +: 64]), acc, precision = PRECISION);
        } else {
            acc = dot(a[i * 64 +: 64, k +: 64], b[k +: 64, j * 128 +: 128], acc, precision = PRECISION);
        }
    }
    c[i * 64 +: 64, j * 128 +: 128] = acc;
}
"""


def predictions():
    for (m, n, k), columns, speed in MEASURED:
        found = explained("std/matmul.tk", "--kernel", "matmul", "-D", "T=bf16", "-D", "BM=128", "-D", f"BN={columns}", "-D", "BK=64",
                          "--dim", f"M={m}", "--dim", f"N={n}", "--dim", f"K={k}", "--arch", "sm_90a")
        (note,) = [x for x in found["notes"] if x["id"] == "predicted"]
        ratio = 2e-12 * m * n * k / number(note, "seconds") / speed
        check(0.9 < ratio < 1.1, f"{m} x {n} x {k}, {columns} columns: {ratio:.3f} of the speed measured, {note}")
    # The tiles that matmul has without being told: those of the greatest speed that fill the GPU.
    for (m, n), dtype, tile in TILES_CHOSEN:
        found = explained("std/matmul.tk", "--kernel", "matmul", "-D", f"T={dtype}", "-D", f"O={dtype}", "-D", f"A={'i32' if dtype == 'i8' else 'f32'}",
                          "--dim", f"M={m}", "--dim", f"N={n}", "--dim", "K=512", "--arch", "sm_90a")
        (acc,) = [x for x in found["notes"] if x["id"] == "largest-tile"]
        check(f"[{tile[0]}, {tile[1]}]" in acc["text"], f"{m} x {n} {dtype}: {acc['text']}")
    # What the unit cannot read where copies put it is written again: wavefronts for those that the bytes need. Where that has no
    # room it is not loaded ahead, and the reason is said.
    for dtype, precision, order, most in (("f8e4m3", "ieee", "nn", 3), ("f32", "tf32", "nn", 1), ("f32", "tf32", "nt", 1), ("f32", "tf32", "tt", 1)):
        notes = explained(file_of(AGAIN.replace("PRECISION", precision).replace("T[", f"{dtype}[")), "--arch", "sm_90a", "--dim", "M=256", "--dim", "N=256", "--dim", "K=256",
                          *(word for one in ("a" if order[0] == "n" else "at", "b" if order[1] == "n" else "bt") for word in ("--given", one)))["notes"]
        through = [x for x in notes if x["id"] in ("move", "product") and number(x, "wavefronts")]
        counts = [sum(number(x, name) for x in through) for name in ("wavefronts", "least_wavefronts")]
        check(counts[0] <= most * counts[1], f"{dtype} {order}: {counts}")
        check(len([x for x in notes if x["id"] == "ahead" and x["verdict"] == "done"]) == 2, f"{dtype} {order}: {notes}")
    notes = explained("std/matmul.tk", "--kernel", "matmul", "-D", "T=f8e4m3", "-D", "BM=256", "-D", "BN=256", "-D", "BK=256", "--mapped", "--arch", "sm_90a")["notes"]
    missed = [x["text"] for x in notes if x["id"] == "ahead" and x["verdict"] == "missed"]
    check(len(missed) == 1 and "'b'" in missed[0] and "contiguous along K" in missed[0], f"{missed}")
    # Rows that are not aligned, and do not go through shared memory, are stored by lanes side by side.
    notes = explained("std/matmul.tk", "--kernel", "matmul", "--in", "a=randn(255,259):bf16", "--in", "b=randn(259,257):bf16", "--arch", "sm_90a")["notes"]
    (access,) = [x for x in notes if x["id"] == "access" and "'c'" in x["text"]]
    check(number(access, "sectors_a_request") < 4, f"{access}")
    # What a launch is bound by follows from the same numbers as its time; how many blocks run its programs.
    for n in (256, 512, 1024, 2048, 4096):
        said = set()
        for how in ("", "@specialize(producers = 1, consumers = 1)\n", "@stages(2)\n", "@stages(4)\n"):
            text = how + AGAIN.replace(", precision = PRECISION", "").replace("T[", "bf16[")
            notes = explained(file_of(text), "--arch", "sm_90a", *(w for d in "MNK" for w in ("--dim", f"{d}={n}")), "--given", "a", "--given", "b")["notes"]
            (note,) = [x for x in notes if x["id"] == "predicted"]
            said.add((note["text"].split("bound by")[1], tuple(number(note, x) for x in ("seconds", "waves", "loop_cycles", "begin_cycles", "end_cycles"))))
            (note,) = [x for x in notes if x["id"] == "persistent"]
            programs, blocks = number(note, "programs"), number(note, "blocks")
            check(programs == (n // 64) * (n // 128) and blocks <= programs and (blocks == programs or blocks % 132 == 0), f"{n}: {note}")
        check(len({x[1] for x in said}) == len(said), f"{n}: {said}")
    # A tile too large for the registers is said to be, at the tile; one that fits is not.
    for tile, said in ((256, True), (128, False)):
        found = explained("std/matmul.tk", "--kernel", "matmul", "-D", "T=bf16", "-D", f"BM={tile}", "-D", "BN=256", "-D", "BK=64", "--mapped", "--arch", "sm_90a", "--near")
        spills = [x for x in found["notes"] if x["id"] == "spills"]
        check(bool(spills) == said or not any(x["id"] == "resources" for x in found["notes"]), f"{tile}: {spills}")
        check(all(x["verdict"] == "missed" and number(x, "stored") > 16 and "largest tile" in x["text"] for x in spills), f"{spills}")
    # No prediction without sizes, or without products.
    words = ["std/matmul.tk", "--kernel", "matmul", "-D", "T=f16", "-D", "BM=64", "-D", "BN=64", "-D", "BK=64"]
    for more, said in ((["--dim", "M=512", "--dim", "N=512", "--dim", "K=512"], True), ([], False)):
        notes = explained(*words, *more)["notes"]
        check(any(x["id"] == "predicted" for x in notes) == said, f"{more}: {notes}")
    notes = explained("std/softmax.tk", "--kernel", "softmax", "--in", "x=randn(64,512)")["notes"]
    check(not [x for x in notes if x["id"] in ("predicted", "demand")], f"{notes}")


def strings(code):
    return [text for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code) if re.fullmatch(r"[a-z0-9]+(?:[- ][a-z0-9]+)*", text)]


def documented():
    """Each id, number and word that the sources name, or that any note here had, is in the table of docs/explain.md."""
    root = pathlib.Path(__file__).resolve().parent.parent
    page = (root / "docs" / "explain.md").read_text()
    table = page[page.index("| id | what"):page.index("### How things are counted")]
    there = set(re.findall(r"`([^`]+)`", table)) | set(re.findall(r"`([^`]+)`", page[page.index("## Notes"):page.index("| id | what")]))
    named = {}
    for file in sorted(x for folder in ("ir", "lower", "ptx", "runtime") for x in (root / folder).glob("*.c")):
        code = file.read_text()
        named.update({x: file.name for x in re.findall(r'(?:\b|_)note\(r, (?:[\w>-]+, )?"([a-z-]+)"', code)})
        # The pass and the id, one after the other; numbers and words before their value.
        for call in re.findall(r'tk_note_add\((.{,400})', code, re.S):
            ids = re.search(r'"[a-z-]+",\s*((?:[^,"]|"[^"]*")*)', call)
            named.update({x: file.name for x in strings(ids.group(1))} if ids else {})
        for call in re.findall(r'(?:tk_note_number_add|tk_note_word_add|\bnumber|tk_record_number|tk_record_layout)\(([^;]*?)\);', code, re.S):
            parts = re.split(r",\s*(?![^()]*\))", call)
            named.update({x: file.name for x in strings(parts[2])} if len(parts) > 3 else {})
    check({"access", "predicted", "requests by all", "by shuffles", "iterations", "reversed", "flops in f64"} <= set(named), f"{sorted(named)}")
    # But for parameters of a kernel and instructions of a machine.
    seen = {x for id, name in SEEN for x in (id, name) if x and id != "attribute-unused" and (id != "resources" or not name.isupper())}
    for name, file in [*named.items(), *((x, "a note") for x in sorted(seen))]:
        name = name.replace(" ", "_")
        check(name in there or name.removesuffix("_by_all") in there, f"docs/explain.md has no `{name}`, which {file} has")


def formats():
    words = [file_of(ROWS % ("@require(vectorized)", STRIDED)), *F32.split()]
    text, error = tkc("explain", *words, code=1)
    check("k.tk:4: x[i, 2 * iota(N)];" in text and "[require-failed]" in error, text + error)
    sarif = json.loads(tkc("explain", *words, "--format=sarif", code=1)[0])
    check(sarif["version"] == "2.1.0" and len(sarif["runs"]) == 1, "version")
    run = sarif["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    check(len(set(rules)) == len(rules), f"rules {rules}")
    kinds = {"pass": "none", "informational": "none"}
    for result in run["results"]:
        check(rules[result["ruleIndex"]] == result["ruleId"], f"rule of {result}")
        check(kinds.get(result["kind"], result["level"]) == result["level"], f"level of {result}")
        check(result["level"] in ("none", "warning", "error") and result["message"]["text"], f"{result}")
        for location in result["locations"]:
            region = location["physicalLocation"]["region"]
            check(1 <= region["startLine"] <= region["endLine"] and region["startColumn"] >= 1, f"{result}")
            check(location["physicalLocation"]["artifactLocation"]["uri"], f"{result}")
    levels = {(r["ruleId"], r["level"], r["locations"][0]["physicalLocation"]["region"]["startLine"])
              for r in run["results"] if r["locations"]}
    check(("access", "warning", 4) in levels and ("require", "error", 4) in levels, f"{levels}")
    found = explained("std/softmax.tk", "--kernel", "softmax", "--in", "x=randn(65536,4096):bf16", "--gpu", "H200")
    roof = found["roofline"]
    check(roof["least_bytes"] == roof["bytes"] == 2 * 65536 * 4096 * 2, f"{roof}")
    check(abs(roof["seconds"] - roof["bytes"] / 4800e9) < 1e-9, f"{roof}")
    # Of what is read twice three tiles of 16384 stay in shared memory.
    twice = explained("std/softmax.tk", "--kernel", "softmax", "--in", "x=randn(64,100000)")["roofline"]
    check(twice["bytes"] == 64 * (3 * 100000 - 3 * 16384) * 4 and twice["least_bytes"] == 2 * 64 * 100000 * 4, f"{twice}")
    check("seconds" not in explained(*words[:1], "-D", "T=bf16", "-D", "N=512", code=1)["roofline"], "no sizes")
    check([t["whole_rows"] for t in found["tensors"]] == [True, True], f"{found['tensors']}")
    order = [(n["line"], n["column"]) for n in found["notes"] if n["line"] != found["line"]]
    check(order == sorted(order), f"{order}")
    tkc("explain", "std/softmax.tk", "--gpu", "H20", code=2)
    tkc("explain", "std/softmax.tk", "--arch", "sm_9", code=2)
    tkc("explain", code=2)
    # What is malformed or unknown of a command line, whoever finds it.
    for words, code in ((("-D", "NO=3"), 2), (("-D", "BN=(3"), 2), (("-D", "BN=1.5"), 2), (("-D", "T=foo"), 2), (("--kernel", "nope"), 2),
                        (("--dim", "Q=3"), 2), (("--scalar", "q=1"), 2), (("--in", "q=randn(3)"), 2)):
        for command, more in (("explain", ()), ("run", ()), ("", ("--emit=ir",))):
            tkc(*([command] if command else []), file_of(LOWER), *words, *more, code=code)


if __name__ == "__main__":
    if "LLVM" not in tkc("info")[0].split("code for GPUs")[1].splitlines()[0] or \
            "none" in tkc("info")[0].split("code for GPUs")[1].splitlines()[0]:
        print("no code for GPUs in this build")
        sys.exit(0)
    against_simulator()
    shipped()
    uneven()
    demands()
    reasons()
    predictions()
    aliases()
    goldens("--bless" in sys.argv)
    formats()
    documented()
    sys.exit(len(FAILED) > 0)
