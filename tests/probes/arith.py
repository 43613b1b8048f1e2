# SPDX-License-Identifier: Apache-2.0
"""Probes of arithmetic: integers, bits, comparisons, floats, approximate functions."""
import numpy as np

from probe import elementwise, floats, integers, near, rng, specials, words

F32_ROUNDS = ("rn", "rz", "rm", "rp")
CMP = ("eq", "ne", "lt", "le", "gt", "ge")
FCMP = CMP + ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def width(t):
    return "b" + str(int("".join(c for c in t.split("x2")[0] if c.isdigit())[-2:]) * (2 if "x2" in t else 1))


# ---- Integers -----------------------------------------------------------------------------------

def one_by_one(family, names, dst, srcs, points, arguments):
    """A probe for each name of an instruction, with the same arguments."""
    for name in names:
        yield elementwise(f"{family} {name}", [f"{name} $d, {arguments};"], dst, srcs, points)


def ints():
    for bits in (16, 32, 64):
        reg, n = f"b{bits}", 128
        u, s = f"u{bits}", f"s{bits}"
        two, three = integers(bits, n, 2), integers(bits, n, 3)
        both = [f"{op}.{t}" for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max") for t in (u, s)]
        yield from one_by_one("int", both, reg, [reg] * 2, two, "%a, %b")
        yield from one_by_one("int", [f"{op}.b{bits}" for op in ("and", "or", "xor")], reg, [reg] * 2, two, "%a, %b")
        yield from one_by_one("int", [f"{op}.{s}" for op in ("abs", "neg")] + [f"{op}.b{bits}" for op in ("not", "cnot")], reg, [reg], two[:1], "%a")
        mads = [f"{op}.{t}" for op in ("mad.lo", "mad.hi", "sad") for t in (u, s)]
        yield from one_by_one("int", mads, reg, [reg] * 3, three, "%a, %b, %c")
        if bits < 64:
            wide = f"b{2 * bits}"
            yield from one_by_one("int", [f"mul.wide.{t}" for t in (u, s)], wide, [reg] * 2, two, "%a, %b")
            yield from one_by_one("int", [f"mad.wide.{t}" for t in (u, s)], wide, [reg, reg, wide], [*two, integers(2 * bits, n, 1)[0]], "%a, %b, %c")
        r = rng("shift")
        count = np.concatenate([np.arange(n - 8, dtype=np.uint64) % np.uint64(bits + 6), np.array([64, 65, 128, 255, 256, 2 ** 31, 2 ** 32 - 1, 2 ** 16], dtype=np.uint64)])
        value = words(r, n, bits)
        shifts = [f"shl.b{bits}"] + [f"shr.{t}" for t in (f"b{bits}", u, s)]
        yield from one_by_one("shift", shifts, reg, [reg, "b32"], [value, count], "%a, %b")
        if bits > 16:
            yield from one_by_one("bits", [f"{op}.b{bits}" for op in ("popc", "clz")], "b32", [reg], two[:1], "%a")
            yield from one_by_one("bits", [f"brev.b{bits}"], reg, [reg], two[:1], "%a")
            yield from one_by_one("bits", [f"bfind{m}.{t}" for m in ("", ".shiftamt") for t in (u, s)], "b32", [reg], two[:1], "%a")
            length = words(r, n, 8) % np.uint64(80)
            start = words(r, n, 8) % np.uint64(80)
            start[:8] = length[:8] = np.array([0, 255, 256, 1, 63, 31, 64, 32], dtype=np.uint64)
            yield from one_by_one("bits", [f"bfe.{t}" for t in (u, s)], reg, [reg, "b32", "b32"], [value, start, length], "%a, %b, %c")
            yield from one_by_one("bits", [f"bfi.b{bits}"], reg, [reg, reg, "b32", "b32"], [value, words(r, n, bits), start, length], "%a, %b, %c, %e")


def ints32():
    n, r = 128, rng("ints32")
    two, three = integers(32, n, 2), integers(32, n, 3)
    yield from one_by_one("int", ["add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32"] + [f"mul24.{h}.{t}" for h in ("lo", "hi") for t in ("u32", "s32")]
                          + [f"{op}.{t}" for op in ("add", "min", "max") for t in ("u16x2", "s16x2")] + ["min.relu.s16x2", "max.relu.s16x2"],
                          "b32", ["b32"] * 2, two, "%a, %b")
    yield from one_by_one("int", ["mad.hi.sat.s32"] + [f"mad24.{h}.{t}" for h in ("lo", "hi") for t in ("u32", "s32")] + ["mad24.hi.sat.s32"]
                          + [f"dp4a.{x}.{y}" for x in ("u32", "s32") for y in ("u32", "s32")]
                          + [f"dp2a.{h}.{x}.{y}" for h in ("lo", "hi") for x in ("u32", "s32") for y in ("u32", "s32")], "b32", ["b32"] * 3, three, "%a, %b, %c")
    a, b, c = (words(r, n, 32) for _ in range(3))
    for table in (0x00, 0x96, 0xe8, 0xca, 0x1b, 0xd8, 0x80, 0xff, 0x35):
        yield elementwise(f"bits lop3 {table:#x}", [f"lop3.b32 $d, %a, %b, %c, {table};"], "b32", ["b32"] * 3, [a, b, c])
    count = np.arange(n, dtype=np.uint64)
    count[-4:] = [255, 256, 2 ** 31, 2 ** 32 - 1]
    yield from one_by_one("shift", [f"shf.{d}.{m}.b32" for d in "lr" for m in ("clamp", "wrap")], "b32", ["b32"] * 3, [a, b, count], "%a, %b, %c")
    yield from one_by_one("bits", ["prmt.b32"] + [f"prmt.b32.{m}" for m in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")], "b32", ["b32"] * 3, [a, b, c], "%a, %b, %c")
    small = words(r, n, 6)
    yield from one_by_one("bits", [f"bmsk.{m}.b32" for m in ("clamp", "wrap")], "b32", ["b32"] * 2, [small, count], "%a, %b")
    yield from one_by_one("bits", [f"szext.{m}.{t}" for m in ("clamp", "wrap") for t in ("u32", "s32")], "b32", ["b32"] * 2, [a, count], "%a, %b")
    offset = (words(r, n, 5) - np.uint64(16)) & np.uint64(0xffffffff)
    yield elementwise("bits fns", ["fns.b32 $d, %a, %b, %c;"], "b32", ["b32"] * 3, [a, words(r, n, 5), offset])
    for t, bits in (("u32", 32), ("s32", 32), ("u64", 64), ("s64", 64)):
        reg = f"b{bits}"
        p = integers(bits, n, 3)
        chain = [f"add.cc.{t} %c, %a, %b; addc.cc.{t} %c, %c, %a; addc.{t} $d, %b, %c;", f"sub.cc.{t} %c, %a, %b; subc.cc.{t} %c, %c, %a; subc.{t} $d, %b, %c;",
                 f"add.cc.{t} %c, %a, %b; subc.{t} $d, %b, %a;", f"sub.cc.{t} %c, %a, %b; addc.{t} $d, %b, %a;"]
        for k, inst in enumerate(chain):
            yield elementwise(f"carry {t} {k}", [inst], reg, [reg] * 3, p)


# ---- Comparisons --------------------------------------------------------------------------------

def packed(lines):
    """Comparisons that give predicates, as the bits of one word."""
    out = ["mov.b32 $d, 0;"]
    for k, line in enumerate(lines):
        out.append(line.replace("$p", "%p1") + f" selp.b32 %r1, {1 << k}, 0, %p1; or.b32 $d, $d, %r1;")
    return " ".join(out)


def compares():
    for t, reg, kinds in (("f32", "b32", FCMP), ("f64", "b64", FCMP), ("f16", "b16", FCMP), ("bf16", "b16", FCMP)):
        p = floats(t, 256, 2)
        yield elementwise(f"setp {t}", [packed([f"setp.{c}.{t} $p, %a, %b;" for c in kinds])], "b32", [reg] * 2, p)
    yield elementwise("setp ftz f32", [packed([f"setp.{c}.ftz.f32 $p, %a, %b;" for c in FCMP])], "b32", ["b32"] * 2, floats("f32", 256, 2, "ftz"))
    yield elementwise("setp ftz f16", [packed([f"setp.{c}.ftz.f16 $p, %a, %b;" for c in FCMP])], "b32", ["b16"] * 2, floats("f16", 256, 2, "ftz"))
    for bits in (16, 32, 64):
        p = integers(bits, 128, 2, "setp")
        lines = [f"setp.{c}.s{bits} $p, %a, %b;" for c in CMP] + [f"setp.{c}.u{bits} $p, %a, %b;" for c in CMP + ("lo", "ls", "hi", "hs")]
        lines += [f"setp.{c}.b{bits} $p, %a, %b;" for c in ("eq", "ne")]
        yield elementwise(f"setp {bits}", [packed(lines)], "b32", [f"b{bits}"] * 2, p)
    p = floats("f32", 128, 2, "set")
    for inst in ("set.lt.u32.f32", "set.geu.f32.f32", "set.nan.s32.f32", "set.eq.ftz.f32.f32"):
        yield elementwise(f"set {inst}", [f"{inst} $d, %a, %b;"], "b32", ["b32"] * 2, p)
    half = floats("f16", 128, 4 // 2, "set2")
    yield elementwise("set f16", ["set.lt.u32.f16 $d, %a, %b;"], "b32", ["b16"] * 2, half)
    yield elementwise("set f16x2", ["set.lt.f16x2.f16x2 $d, %a, %b;"], "b32", ["b32"] * 2, pairs("f16", 128, 2))
    yield elementwise("set bf16x2", ["set.gtu.bf16x2.bf16x2 $d, %a, %b;"], "b32", ["b32"] * 2, pairs("bf16", 128, 2))
    yield elementwise("setp f16x2", ["setp.leu.f16x2 %p1|%p2, %a, %b; selp.b32 $d, 1, 0, %p1; selp.b32 %r1, 2, 0, %p2; or.b32 $d, $d, %r1;"], "b32", ["b32"] * 2, pairs("f16", 128, 2))
    for t, reg in (("f32", "b32"), ("f64", "b64")):
        yield elementwise(f"testp {t}", [packed([f"testp.{w}.{t} $p, %a;" for w in ("finite", "infinite", "number", "notanumber", "normal", "subnormal")])], "b32", [reg],
                          floats(t, 128, 1))
        yield elementwise(f"copysign {t}", [f"copysign.{t} $d, %a, %b;"], reg, [reg] * 2, floats(t, 128, 2))
    for inst in ("slct.b32.s32", "slct.f32.f32", "slct.ftz.f32.f32", "slct.u32.s32"):
        yield elementwise(inst, [f"{inst} $d, %a, %b, %c;"], "b32", ["b32"] * 3, floats("f32", 128, 3, "slct"))


def pairs(t, n, arity):
    """Points of two halves."""
    low, high = floats(t, n, arity, "low"), floats(t, n, arity, "high")
    r = rng("pairs")
    order = r.permutation(n)
    return [a | b[order] << np.uint64(16) for a, b in zip(low, high)]


# ---- Floats -------------------------------------------------------------------------------------

def f32_arithmetic():
    two, three, n = floats("f32", 256, 2), floats("f32", 256, 3), 256
    for m in F32_ROUNDS:
        for more in ("", ".ftz", ".sat", ".ftz.sat"):
            for op in ("add", "sub", "mul"):
                yield elementwise(f"f32 {op}.{m}{more}", [f"{op}.{m}{more}.f32 $d, %a, %b;"], "b32", ["b32"] * 2, two)
            yield elementwise(f"f32 fma.{m}{more}", [f"fma.{m}{more}.f32 $d, %a, %b, %c;"], "b32", ["b32"] * 3, three)
        for more in ("", ".ftz"):
            yield elementwise(f"f32 div.{m}{more}", [f"div.{m}{more}.f32 $d, %a, %b;"], "b32", ["b32"] * 2, two)
            for op in ("rcp", "sqrt"):
                yield elementwise(f"f32 {op}.{m}{more}", [f"{op}.{m}{more}.f32 $d, %a;"], "b32", ["b32"], floats("f32", n, 1))
    for more in ("", ".ftz"):
        for op in ("neg", "abs"):
            yield elementwise(f"f32 {op}{more}", [f"{op}{more}.f32 $d, %a;"], "b32", ["b32"], floats("f32", n, 1))
        for op in ("min", "max"):
            for rest in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield elementwise(f"f32 {op}{more}{rest}", [f"{op}{more}{rest}.f32 $d, %a, %b;"], "b32", ["b32"] * 2, two)


def f64_arithmetic():
    two, three, one = floats("f64", 128, 2), floats("f64", 128, 3), floats("f64", 128, 1)
    for m in F32_ROUNDS:
        for op in ("add", "sub", "mul", "div"):
            yield elementwise(f"f64 {op}.{m}", [f"{op}.{m}.f64 $d, %a, %b;"], "b64", ["b64"] * 2, two)
        yield elementwise(f"f64 fma.{m}", [f"fma.{m}.f64 $d, %a, %b, %c;"], "b64", ["b64"] * 3, three)
        for op in ("rcp", "sqrt"):
            yield elementwise(f"f64 {op}.{m}", [f"{op}.{m}.f64 $d, %a;"], "b64", ["b64"], one)
    for op in ("neg", "abs"):
        yield elementwise(f"f64 {op}", [f"{op}.f64 $d, %a;"], "b64", ["b64"], one)
    for op in ("min", "max"):
        yield elementwise(f"f64 {op}", [f"{op}.f64 $d, %a, %b;"], "b64", ["b64"] * 2, two)


def half_arithmetic():
    for t in ("f16", "bf16"):
        for x2 in ("", "x2"):
            reg, n = ("b32", 256) if x2 else ("b16", 256)
            two, three = (pairs(t, n, 2), pairs(t, n, 3)) if x2 else (floats(t, n, 2), floats(t, n, 3))
            suffixes = ["", ".rn"] if t == "bf16" else ["", ".rn", ".ftz", ".sat", ".rn.ftz.sat"]
            if t == "bf16":
                suffixes = [".rn"]
            for op in ("add", "sub", "mul"):
                for s in suffixes:
                    yield elementwise(f"half {op}{s}.{t}{x2}", [f"{op}{s}.{t}{x2} $d, %a, %b;"], reg, [reg] * 2, two)
            for s in (".rn", ".rn.relu") if t == "bf16" else (".rn", ".rn.ftz", ".rn.sat", ".rn.relu", ".rn.ftz.sat", ".rn.ftz.relu"):
                yield elementwise(f"half fma{s}.{t}{x2}", [f"fma{s}.{t}{x2} $d, %a, %b, %c;"], reg, [reg] * 3, three)
            for op in ("neg", "abs"):
                for s in ("",) if t == "bf16" else ("", ".ftz"):
                    yield elementwise(f"half {op}{s}.{t}{x2}", [f"{op}{s}.{t}{x2} $d, %a;"], reg, [reg], two[:1])
            for op in ("min", "max"):
                for f in ("",) if t == "bf16" else ("", ".ftz"):
                    for s in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                        yield elementwise(f"half {op}{f}{s}.{t}{x2}", [f"{op}{f}{s}.{t}{x2} $d, %a, %b;"], reg, [reg] * 2, two)


def tiny():
    """Products on either side of the least normal number, which .ftz flushes or not by what they were before they were rounded, or after."""
    k = np.arange(32, dtype=np.uint64)
    a, b, minus = k % np.uint64(8), np.uint64(1) + k // np.uint64(8), k % np.uint64(2)
    f32 = [np.uint64(0x00800000) + a | minus << np.uint64(31), np.uint64(0x3f800000) - b]
    f16 = [np.uint64(0x0400) + a | minus << np.uint64(15), np.uint64(0x3c00) - b]
    for m in F32_ROUNDS:
        yield elementwise(f"f32 tiny mul.{m}.ftz", [f"mul.{m}.ftz.f32 $d, %a, %b;", f"mul.{m}.f32 $d, %a, %b;"], "b32", ["b32"] * 2, f32)
        yield elementwise(f"f32 tiny fma.{m}.ftz", [f"fma.{m}.ftz.f32 $d, %a, %b, %c;"], "b32", ["b32"] * 3, [*f32, np.zeros(32, dtype=np.uint64)])
    yield elementwise("half tiny mul.ftz", ["mul.rn.ftz.f16 $d, %a, %b;", "mul.rn.f16 $d, %a, %b;"], "b16", ["b16"] * 2, f16)
    yield elementwise("half tiny fma.ftz", ["fma.rn.ftz.f16 $d, %a, %b, %c;"], "b16", ["b16"] * 3, [*f16, np.zeros(32, dtype=np.uint64)])


# ---- Approximate functions ----------------------------------------------------------------------

def f32_points(name, n, low, high):
    """Specials, each exponent twice or so, and random points with exponents in low .. high."""
    r = rng("approx" + name)
    s = specials("f32")
    exponents = np.arange(256, dtype=np.uint64)
    each = np.concatenate([exponents << np.uint64(23) | words(r, 256, 23) | sign << np.uint64(31) for sign in (np.uint64(0), np.uint64(1))])
    rest = near("f32", r, n - len(s) - len(each), low, high)
    return np.concatenate([s, each, rest])


def approximate():
    ranges = {"ex2": (-4, 6), "lg2": (-2, 1), "rcp": (-1, 1), "rsqrt": (-1, 1), "sqrt": (-1, 1), "sin": (-4, 6), "cos": (-4, 6), "tanh": (-6, 3)}
    for op, (low, high) in ranges.items():
        p = f32_points(op, 2048, low, high)
        if op in ("rsqrt", "sqrt", "lg2"):
            p[600:] &= np.uint64(0x7fffffff)
        yield elementwise(f"approx {op}", [f"{op}.approx.f32 $d, %a;"], "b32", ["b32"], [p])
        if op != "tanh":
            yield elementwise(f"approx {op}.ftz", [f"{op}.approx.ftz.f32 $d, %a;"], "b32", ["b32"], [p[:1024]])
    two = floats("f32", 1024, 2, "div")
    for kind in ("approx", "full"):
        for ftz in ("", ".ftz"):
            yield elementwise(f"approx div.{kind}{ftz}", [f"div.{kind}{ftz}.f32 $d, %a, %b;"], "b32", ["b32"] * 2, two)
    f64 = floats("f64", 512, 1, "approx")
    yield elementwise("approx rcp.f64", ["rcp.approx.ftz.f64 $d, %a;"], "b64", ["b64"], f64)
    for ftz in ("", ".ftz"):
        yield elementwise(f"approx rsqrt.f64{ftz}", [f"rsqrt.approx{ftz}.f64 $d, %a;"], "b64", ["b64"], f64)
    r = rng("half approx")
    every = np.arange(2048, dtype=np.uint64) * np.uint64(32) + words(r, 2048, 5)
    both = every | every[::-1] << np.uint64(16)
    for inst, reg in (("ex2.approx.f16", "b16"), ("ex2.approx.f16x2", "b32"), ("ex2.approx.ftz.bf16", "b16"), ("ex2.approx.ftz.bf16x2", "b32"),
                      ("tanh.approx.f16", "b16"), ("tanh.approx.f16x2", "b32"), ("tanh.approx.bf16", "b16"), ("tanh.approx.bf16x2", "b32")):
        yield elementwise(f"approx {inst}", [f"{inst} $d, %a;"], reg, [reg], [every if reg == "b16" else both[:1024]])


def probes():
    for family in (ints, ints32, compares, f32_arithmetic, f64_arithmetic, half_arithmetic, tiny, approximate):
        yield from family()
