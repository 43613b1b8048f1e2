# SPDX-License-Identifier: Apache-2.0
"""Probes of mma.sync and wgmma. Data: whole numbers, which any order adds exactly; floats of like and of very different magnitudes, which
show how sums are cut; specials. Those named 'raw' are many more, to find the rule by; they are not kept."""
import numpy as np

from probe import FORMATS, HEAD, REGISTERS, Probe, near, rng, specials, words

BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "s32": 4}


def whole(t, x):
    """The bits of small integers."""
    if t in ("s8", "u8", "s32"):
        return x.astype(np.int64).astype(np.uint64) & np.uint64(2 ** (8 * BYTES[t]) - 1)
    bits, man = FORMATS["f32" if t == "tf32" else t]
    bias = 2 ** (bits - 2 - man) - 1
    e = np.floor(np.log2(np.maximum(np.abs(x), 1))).astype(np.int64)
    m = np.abs(x) * 2.0 ** (man - e) - 2.0 ** man
    code = np.where(x == 0, 0, m.astype(np.int64) + ((e + bias) << man) + (x < 0).astype(np.int64) * 2 ** (bits - 1))
    return code.astype(np.uint64)


REACH = {"f16": (-14, 15), "bf16": (-20, 20), "tf32": (-20, 20), "e4m3": (-6, 7), "e5m2": (-14, 14)}


def fill(t, r, n, kind, role):
    """Elements of a type. Kinds: whole, like, wide, tiny (subnormal products and operands), special."""
    if t in ("s8", "u8", "s32"):
        if role == "c":
            return words(r, n, 32) if kind == "special" else whole(t, r.randint(-1000, 1000, n))
        return words(r, n, 8)
    f = "f32" if t == "tf32" else t
    if kind == "whole":
        return whole(t, r.randint(-8, 9, n) if role != "c" else r.randint(-100, 101, n))
    if t == "f64":
        return near(f, r, n, -3, 3) if kind == "like" else near(f, r, n, -40, 40)
    if kind == "like":
        return near(f, r, n, *((-1, 1) if role != "c" else (-2, 3)))
    if role == "c":
        low, high = {"wide": (-25, 25), "tiny": (-126, -100), "special": (-10, 10)}[kind]
        x = near(f, r, n, min(max(low, -14), 15), max(-14, min(high, 15))) if t == "f16" else near(f, r, n, low, high)
    elif kind == "tiny":
        low, high = {"f16": (-14, -13), "bf16": (-70, -60), "tf32": (-70, -60), "e4m3": (-6, -6), "e5m2": (-14, -13)}[t]
        x = near(f, r, n, low, high)
        bits, man = FORMATS[f]
        x[::3] &= np.uint64((1 << man) - 1 | 1 << (bits - 1))  # subnormal
    else:
        x = near(f, r, n, *REACH[t])
    if kind == "special":
        at = r.randint(0, n, max(1, n // 60))
        x[at] = specials(f)[r.randint(0, len(specials(f)), len(at))]
    return x


def packed(t, x):
    return x.astype(f"<u{BYTES[t]}").tobytes()


# ---- mma.sync -----------------------------------------------------------------------------------

def mma_text(na, nb, nc, wide):
    """Loads fragments as they lie in `in`: block, register, lane."""
    w, size = (8, "b64") if wide else (4, "b32")
    lines = [HEAD.replace("8.4", "8.7"), ".visible .entry k(.param .u64 k_in, .param .u64 k_out)\n{\n", REGISTERS, f".reg .{size} %a<8>, %b<4>, %c<8>, %d<8>;\n",
             "ld.param.u64 %in, [k_in]; ld.param.u64 %out, [k_out]; mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %r0, %nctaid.x;\n",
             f"mul.wide.u32 %q0, %t, {w}; add.u64 %q1, %in, %q0; add.u64 %q2, %out, %q0;\n"]
    first = 0
    for name, count in (("a", na), ("b", nb), ("c", nc)):
        lines.append(f"mul.lo.u32 %r1, %r0, {first * 32 * w}; mad.lo.u32 %r1, %i, {count * 32 * w}, %r1; cvt.u64.u32 %q3, %r1; add.u64 %q3, %q3, %q1;\n")
        lines += [f"ld.global.{size} %{name}{k}, [%q3+{k * 32 * w}];\n" for k in range(count)]
        first += count
    lines.append("$$\n")
    lines.append(f"mul.lo.u32 %r1, %i, {nc * 32 * w}; cvt.u64.u32 %q3, %r1; add.u64 %q3, %q3, %q2;\n")
    lines += [f"st.global.{size} [%q3+{k * 32 * w}], %d{k};\n" for k in range(nc)]
    return "".join(lines) + "ret;\n}\n"


def regs(name, n):
    return "{" + ", ".join(f"%{name}{k}" for k in range(n)) + "}"


def mma(name, shape, types, na, nb, nc, kinds, more="", tail=""):
    """One block of a warp for each kind of data. types: d, a, b, c."""
    d, a, b, c = types
    wide = a == "f64"
    blobs = []
    for role, t, n in (("a", a, na), ("b", b, nb), ("c", c, nc)):
        each = n * 32 * (8 if wide else 4) // BYTES[t]
        blobs.append(b"".join(packed(t, fill(t, rng(f"{role}{t}{n}{kind}{k}"), each, kind, role)) for k, kind in enumerate(kinds)))
    inst = f"mma.sync.aligned.{shape}.row.col{more}.{d}.{a}.{b}.{c}{tail} {regs('d', nc)}, {regs('a', na)}, {regs('b', nb)}, {regs('c', nc)};"
    return Probe(name, mma_text(na, nb, nc, wide), inst, b"".join(blobs), len(kinds) * nc * 32 * (8 if wide else 4), grid=(len(kinds), 1, 1))


KINDS = ("whole", "like", "wide", "tiny", "special")
RAW = ("like",) * 8 + ("wide",) * 40 + ("tiny",) * 8 + ("special",) * 8


def mma_shapes():
    """name, shape, types, registers of A, B, C."""
    for t in ("f16", "bf16"):
        yield f"{t} k8", "m16n8k8", ("f32", t, t, "f32"), 2, 1, 4
        yield f"{t} k16", "m16n8k16", ("f32", t, t, "f32"), 4, 2, 4
    yield "f16 f16 k8", "m16n8k8", ("f16",) * 4, 2, 1, 2
    yield "f16 f16 k16", "m16n8k16", ("f16",) * 4, 4, 2, 2
    yield "tf32 k4", "m16n8k4", ("f32", "tf32", "tf32", "f32"), 2, 1, 4
    yield "tf32 k8", "m16n8k8", ("f32", "tf32", "tf32", "f32"), 4, 2, 4
    for x in ("e4m3", "e5m2"):
        for y in ("e4m3", "e5m2"):
            yield f"{x} {y} k32", "m16n8k32", ("f32", x, y, "f32"), 4, 2, 4
    yield "e4m3 k16", "m16n8k16", ("f32", "e4m3", "e4m3", "f32"), 2, 1, 4
    yield "e4m3 f16 k32", "m16n8k32", ("f16", "e4m3", "e4m3", "f16"), 4, 2, 2
    yield "e5m2 f16 k16", "m16n8k16", ("f16", "e5m2", "e5m2", "f16"), 2, 1, 2


def mma_probes():
    for name, *rest in mma_shapes():
        yield mma(f"mma {name}", *rest, KINDS if name in ("f16 k16", "bf16 k16", "tf32 k8", "f16 f16 k16", "e4m3 e4m3 k32", "e5m2 e5m2 k32") else ("wide", "special"))
    for x in ("s8", "u8"):
        for y in ("s8", "u8"):
            for shape, na, nb, nc in (("m8n8k16", 1, 1, 2), ("m16n8k16", 2, 1, 4), ("m16n8k32", 4, 2, 4)):
                if x == y or shape == "m16n8k32":
                    yield mma(f"mma {x} {y} {shape}", shape, ("s32", x, y, "s32"), na, nb, nc, ("whole", "special"))
    yield mma("mma s8 satfinite", "m16n8k32", ("s32", "s8", "s8", "s32"), 4, 2, 4, ("whole", "special"), ".satfinite")
    for shape, na, nb, nc in (("m8n8k4", 1, 1, 2), ("m16n8k4", 2, 1, 4), ("m16n8k8", 4, 2, 4), ("m16n8k16", 8, 4, 4)):
        yield mma(f"mma f64 {shape}", shape, ("f64",) * 4, na, nb, nc, ("like", "wide"))


# ---- wgmma --------------------------------------------------------------------------------------

def wgmma_text(smem, na, nc, out):
    """Copies `smem` bytes of its own to shared memory; A's registers and the accumulator follow in `in`. out: how D is stored: words, or
    bytes of whole numbers; then the accumulator begins as 0."""
    lines = [HEAD, ".visible .entry k(.param .u64 k_in, .param .u64 k_out)\n{\n", REGISTERS, f".shared .align 1024 .b8 s[{smem}];\n",
             f".reg .b32 %a<4>, %d<{nc}>; .reg .b64 %da, %db;\n",
             "ld.param.u64 %in, [k_in]; ld.param.u64 %out, [k_out]; mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.b32 %r9, s;\n"]
    own = smem + 512 * (na + nc * (out == "words"))
    lines.append(f"mul.wide.u32 %q0, %i, {own}; add.u64 %q0, %q0, %in; mul.wide.u32 %q1, %t, 4; add.u64 %q0, %q0, %q1;\n"
                 f"mov.u32 %r0, 0; mad.lo.u32 %r1, %t, 4, %r9; mov.u64 %q2, %q0;\n"
                 f"L: ld.global.b32 %r2, [%q2]; st.shared.b32 [%r1], %r2; add.u32 %r0, %r0, 512; add.u32 %r1, %r1, 512; add.u64 %q2, %q2, 512; setp.lt.u32 %p1, %r0, {smem}; @%p1 bra L;\n"
                 "fence.proxy.async.shared::cta; bar.sync 0;\n")
    lines += [f"ld.global.b32 %a{k}, [%q0+{smem + 512 * k}];\n" for k in range(na)]
    lines += [f"ld.global.b32 %d{k}, [%q0+{smem + 512 * (na + k)}];\n" if out == "words" else f"mov.b32 %d{k}, 0;\n" for k in range(nc)]
    lines.append("and.b32 %r3, %r9, 0x3ffff; shr.u32 %r3, %r3, 4; cvt.u64.u32 %q3, %r3;\n"
                 "wgmma.fence.sync.aligned;\n$$\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n")
    if out == "bytes":
        count = nc // 4
        for k in range(count):
            for j in range(4):
                lines.append(f"cvt.rni.s32.f32 %r{j}, %d{4 * k + j}; and.b32 %r{j}, %r{j}, 255;" + (f" shl.b32 %r{j}, %r{j}, {8 * j}; or.b32 %r0, %r0, %r{j};" if j else ""))
            lines.append(f" mov.b32 %d{k}, %r0;\n")
    else:
        count = nc
    lines.append(f"mul.wide.u32 %q0, %i, {count * 512}; add.u64 %q0, %q0, %out; add.u64 %q0, %q0, %q1;\n")
    lines += [f"st.global.b32 [%q0+{512 * k}], %d{k};\n" for k in range(count)]
    return "".join(lines) + "ret;\n}\n", count * 512


def descriptor(name, at, lbo, sbo, swizzle, base=0):
    """`at`: bytes from the start of shared memory."""
    high = (sbo >> 4) << 32 | (lbo >> 4) << 16 | swizzle << 62 | base << 49
    return f"add.u64 %{name}, %q3, {at >> 4}; or.b64 %{name}, %{name}, {high:#x};"


def wgmma(name, n, types, kinds, *, a=(0, 128, 256, 0), b=(2048, 128, 256, 0), smem=2560, tail=None, registers=False, scale_d=1, out="words", values=None, place=None):
    """types: d, a, b. a, b: descriptors: place, leading and stride offsets in bytes, swizzle. `place` maps operands to shared memory where the data is not just any."""
    d, ta, tb = types
    nc = n // 4 if d == "f16" else n // 2
    na = 4 if registers else 0
    text, out_bytes = wgmma_text(smem, na, nc, out)
    k = 32 // BYTES[ta]
    data = []
    for number, kind in enumerate(kinds):
        r = rng(f"wgmma{ta}{tb}{smem}{kind}{number}")
        if values is not None:
            raw = packed(ta, whole(ta, values[r.randint(0, len(values), smem // BYTES[ta])]))
        else:
            raw = b"".join(packed(t, fill(t, r, size // BYTES[t], kind, "a")) for t, size in ((ta, 2048), (tb, smem - 2048)))
        if registers:
            raw += packed(ta, fill(ta, r, na * 512 // BYTES[ta], kind, "a"))
        if out == "words":
            raw += packed(d, fill(d, rng(f"wgmma c{d}{nc}{kind}{number}"), nc * 512 // BYTES[d], kind, "c"))
        data.append(raw)
    if tail is None:
        tail = {"f16": "1, 1, 0, 0", "bf16": "1, 1, 0, 0", "s8": "", "u8": ""}.get(ta, "1, 1")
        if registers and tail.count(",") == 3:
            tail = tail[:-3]
    source = regs("a", 4) if registers else "%da"
    inst = (descriptor("da", *a) + " " + descriptor("db", *b) + f" setp.ne.b32 %p1, {scale_d}, 0; wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{ta}.{tb} "
            f"{regs('d', nc)}, {source}, %db, %p1{', ' if tail else ''}{tail};")
    return Probe(name, text, inst, b"".join(data), out_bytes * len(kinds), grid=(len(kinds), 1, 1), block=(128, 1, 1))


SIGNS = np.array([-1, 0, 1, 1, -1])


def wgmma_layouts():
    """Where the hardware finds operands: all of shared memory holds random signs."""
    for swizzle, name, pitch in ((0, "none", 16), (3, "32", 32), (2, "64", 64), (1, "128", 128)):
        def probe(what, a, b, tail, n=40):
            return wgmma(f"wgmma layout {name} {what}", n, ("f32", "f16", "f16"), ("whole",), a=a, b=b, tail=tail, out="bytes", values=SIGNS, smem=16384)
        if swizzle == 0:
            k_a, k_b, mn_a, mn_b = (0, 128, 256, 0), (4096, 1024, 128, 0), (0, 1024, 128, 0), (4096, 128, 1024, 0)
            yield probe("a k, b k", k_a, k_b, "1, 1, 0, 0")
            yield probe("offset", (16 * 5, 128, 256, 0), (4096 + 16 * 9, 384, 128, 0), "1, 1, 0, 0")
        else:
            span = 8 * pitch
            k_a, k_b, mn_a, mn_b = (0, 16, span, swizzle), (4096, 16, span, swizzle), (0, 2048, span, swizzle), (4096, 2048, span, swizzle)
            yield probe("a k, b k", k_a, k_b, "1, 1, 0, 0")
            if pitch > 32:
                yield probe("step in k", (32, 16, span, swizzle), (4096 + 32, 16, span, swizzle), "1, 1, 0, 0")
            yield probe("stride", (0, 16, 2 * span, swizzle), (4096, 16, 3 * span, swizzle), "1, 1, 0, 0", 16)
        yield probe("a mn, b k", mn_a, k_b, "1, 1, 1, 0")
        yield probe("a k, b mn", k_a, mn_b, "1, 1, 0, 1", 72 if swizzle == 1 else 40)
        yield probe("a mn, b mn", mn_a, mn_b, "1, 1, 1, 1", 72 if swizzle == 1 else 40)
        for t in ("tf32", "e4m3", "s8"):
            yield wgmma(f"wgmma layout {name} {t}", 8, ("s32" if t == "s8" else "f32", t, t), ("whole",), a=k_a, b=k_b, out="words" if t == "s8" else "bytes", values=SIGNS, smem=16384)


def wgmma_values():
    few = ("like", "wide", "special")
    for t in ("f16", "bf16", "tf32"):
        yield wgmma(f"wgmma {t}", 8, ("f32", t, t), few)
    yield wgmma("wgmma f16 f16", 8, ("f16",) * 3, few)
    for x in ("e4m3", "e5m2"):
        for y in ("e4m3", "e5m2"):
            yield wgmma(f"wgmma {x} {y}", 8, ("f32", x, y), few if x == y else ("wide",))
    yield wgmma("wgmma e4m3 f16", 8, ("f16", "e4m3", "e4m3"), ("wide",))
    for x in ("s8", "u8"):
        for y in ("s8", "u8"):
            yield wgmma(f"wgmma {x} {y}", 8, ("s32", x, y), ("whole",))
    for n in (16, 24, 96, 256):
        yield wgmma(f"wgmma n{n}", n, ("f32", "f16", "f16"), ("whole",), smem=16384, b=(4096, 128, 256, 0), out="bytes", values=SIGNS)
    yield wgmma("wgmma not d", 8, ("f32", "f16", "f16"), ("like",), scale_d=0)
    yield wgmma("wgmma minus a", 8, ("f32", "f16", "f16"), ("like",), tail="-1, 1, 0, 0")
    yield wgmma("wgmma minus b", 8, ("f32", "f16", "f16"), ("special",), tail="1, -1, 0, 0")
    for t in ("f16", "bf16", "tf32", "e4m3", "s8"):
        yield wgmma(f"wgmma registers {t}", 8, ("s32" if t == "s8" else "f32", t, t), ("like",) if t != "s8" else ("whole",), registers=True)


def wgmma_bases():
    """Tiles that begin at a line of 128 bytes inside the swizzle's period, with and without the base offset that says so. An H200 finds them as the simulator does."""
    for swizzle, pitch in ((3, 32), (2, 64), (1, 128)):
        for line in (1, 2, 5):
            for base in (0, line):
                a, b = (128 * line, 16, 8 * pitch, swizzle, base), (8192, 16, 8 * pitch, swizzle)
                yield wgmma(f"wgmma base {pitch} {line} {base}", 8, ("f32", "f16", "f16"), ("whole",), a=a, b=b, tail="1, 1, 0, 0", out="bytes", values=SIGNS, smem=16384)


def raw():
    """To find rules by."""
    wanted = ("f16 k8", "f16 k16", "f16 f16 k16", "bf16 k16", "tf32 k4", "tf32 k8", "e4m3 e4m3 k32", "e5m2 e5m2 k32", "e4m3 k16", "e4m3 f16 k32")
    for name, *rest in mma_shapes():
        if name in wanted:
            yield mma(f"raw mma {name}", *rest, RAW)
    for t in ("f16", "bf16", "tf32", "e4m3", "e5m2"):
        yield wgmma(f"raw wgmma {t}", 8, ("f32", t, t), RAW[:56])
    yield wgmma("raw wgmma f16 f16", 8, ("f16",) * 3, RAW[:56])
    yield wgmma("raw wgmma e4m3 f16", 8, ("f16", "e4m3", "e4m3"), RAW[:56])


def probes():
    for family in (mma_probes, wgmma_layouts, wgmma_bases, wgmma_values):
        yield from family()
