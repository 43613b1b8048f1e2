# SPDX-License-Identifier: Apache-2.0
"""Whole kernels: those of kernels/*.ptx, which the compiler made from the standard library (their heads say how they are launched), and
small ones of which each has one pattern of access, for the counters."""
import pathlib

import numpy as np

from probe import HEAD, REGISTERS, Probe, kernel, rng

FOLDER = pathlib.Path(__file__).resolve().parent / "kernels"
COUNTED = ("softmax", "layernorm", "transpose", "scan", "gather")
DTYPES = {"f32": np.float32, "f16": np.float16}


def random_data(t, n, name):
    x = rng(name).standard_normal(n).astype(np.float32)
    if t == "bf16":
        return (x.view(np.uint32) >> np.uint32(16)).astype("<u2").tobytes()
    return x.astype(DTYPES[t]).tobytes()


def compiled(path):
    """Each tensor of data begins at a multiple of 256 bytes."""
    text = path.read_text()
    data, params, out, launch = b"", [], 0, None
    for line in text.split("\n"):
        words = line.split()
        if words[:2] == ["//", "data"]:
            data += b"\0" * (-len(data) % 256)
            data += random_data(words[2], int(words[3]), path.stem + words[3])
        elif words[:2] == ["//", "param"]:
            params.append((words[2], int(words[3])))
        elif words[:2] == ["//", "out"]:
            out = int(words[2])
        elif words[:2] == ["//", "launch"]:
            launch = [int(w) for w in words[2:]]
    entry = text.split(".entry ")[1].split("(")[0]
    p = Probe(f"kernel {path.stem}", text, "", data, out, grid=launch[:3], block=launch[3:6], shared=launch[6], params=params, entry=entry)
    p.path = f"tests/probes/kernels/{path.name}"
    return p


def gather():
    """Rows of a matrix by an index, and a pass through shared memory with a stride."""
    index = rng("gather").randint(0, 256, 512).astype("<u4").tobytes()
    data = index + random_data("f32", 256 * 33, "gather")
    body = (".shared .align 16 .b8 s[8192]; mov.b32 %r9, s; mad.wide.u32 %q1, %i, 4, %in; ld.global.b32 %r1, [%q1]; mul.lo.u32 %r1, %r1, 132; cvt.u64.u32 %q2, %r1; add.u64 %q2, %q2, %in; "
            "ld.global.b32 %r2, [%q2+2048]; ld.global.b32 %r3, [%q2+2056]; ld.global.b32 %r4, [%q2+2176]; add.u32 %r2, %r2, %r3; xor.b32 %r2, %r2, %r4; "
            "mad.lo.u32 %r5, %t, 12, %r9; st.shared.b32 [%r5], %r2; bar.sync 0; mul.lo.u32 %r6, %t, 36; and.b32 %r6, %r6, 511; mad.lo.u32 %r7, %r6, 4, %r9; sub.u32 %r6, 127, %t; "
            "mad.lo.u32 %r7, %r6, 12, %r9; ld.shared.b32 %r8, [%r7]; mad.wide.u32 %q3, %i, 8, %out; st.global.b32 [%q3], %r8;")
    return kernel("kernel gather", body, data, 8 * 512, grid=(4, 1, 1), block=(128, 1, 1))


# ---- One pattern of access each -----------------------------------------------------------------

def access(space, op, vector, bits, stride, offset=0, lanes=32, clear=0):
    """A block of a warp: each lane's access begins `stride` bytes after the one before it; lanes that differ only in the bits of `clear` at the same."""
    n = int(vector[2:] or 1) if vector else 1
    regs = ", ".join(f"%x{k}" for k in range(n))
    regs = f"{{{regs}}}" if n > 1 else regs
    declare = f".reg .b{bits} %x<4>; "
    lane = f"and.b32 %r5, %t, {31 & ~clear}; " if clear else "mov.b32 %r5, %t; "
    at = lane + f"mul.lo.u32 %r1, %r5, {stride}; add.u32 %r1, %r1, {offset}; "
    if space == "global":
        buffer = "%in" if op == "ld" else "%out"
        address = at + f"cvt.u64.u32 %q1, %r1; add.u64 %q1, %q1, {buffer}; "
        place = "%q1"
    else:
        address = ".shared .align 16 .b8 s[8192]; mov.b32 %r9, s; " + at + "add.u32 %r1, %r1, %r9; "
        place = "%r1"
    # Shared memory is written before it is read, so that the simulator knows it.
    before = ""
    if space == "shared" and op == "ld":
        before = "mov.b32 %r2, %t; L: mad.lo.u32 %r3, %r2, 4, %r9; st.shared.b32 [%r3], %r2; add.u32 %r2, %r2, 32; setp.lt.u32 %p1, %r2, 2048; @%p1 bra L; bar.sync 0; "
    guard = f"setp.lt.u32 %p2, %t, {lanes}; " if lanes < 32 else ""
    when = "@%p2 " if lanes < 32 else ""
    values = " ".join(f"mov.b{bits} %x{k}, {k + 1};" for k in range(n)) + " "
    do = f"{when}{op}.{space}{vector}.b{bits} " + (f"{regs}, [{place}]; " if op == "ld" else f"[{place}], {regs}; ")
    total, after = "", ""
    if op == "ld":
        total = " ".join(f"xor.b{bits} %x0, %x0, %x{k};" for k in range(1, n))
        after = f" mad.wide.u32 %q3, %t, 8, %out; st.global.b{bits} [%q3], %x0;"
    elif space == "shared":
        after = " bar.sync 0; mad.lo.u32 %r3, %t, 4, %r9; ld.shared.b32 %r4, [%r3]; mad.wide.u32 %q3, %t, 8, %out; st.global.b32 [%q3], %r4;"
        before = "mov.b32 %r2, %t; L: mad.lo.u32 %r3, %r2, 4, %r9; st.shared.b32 [%r3], %r2; add.u32 %r2, %r2, 32; setp.lt.u32 %p1, %r2, 2048; @%p1 bra L; bar.sync 0; "
    data = np.arange(2048, dtype="<u4").tobytes()
    name = f"access {op} {space}{vector}.b{bits} stride {stride}" + (f" from {offset}" if offset else "") + (f" lanes {lanes}" if lanes < 32 else "") + (f" without {clear}" if clear else "")
    return kernel(name, declare + address + guard + values + before + do + total + after, data, 8192)


def accesses():
    for op in ("ld", "st"):
        for stride, offset, lanes in ((4, 0, 32), (4, 4, 32), (8, 0, 32), (12, 0, 32), (32, 0, 32), (128, 0, 32), (4, 0, 7)):
            yield access("global", op, "", 32, stride, offset, lanes)
        for vector, bits, stride in ((".v2", 32, 8), (".v4", 32, 16), (".v4", 32, 32), ("", 64, 8), ("", 64, 16), ("", 16, 2), ("", 8, 1)):
            if bits == 8:
                continue
            yield access("global", op, vector, bits, stride)
        for stride, offset, lanes in ((4, 0, 32), (8, 0, 32), (16, 0, 32), (32, 0, 32), (64, 0, 32), (128, 0, 32), (132, 0, 32), (12, 0, 32), (0, 0, 32), (128, 0, 9)):
            yield access("shared", op, "", 32, stride, offset, lanes)
        for vector, bits, stride in ((".v2", 32, 8), (".v2", 32, 16), (".v2", 32, 24), (".v2", 32, 128), (".v4", 32, 16), (".v4", 32, 32), (".v4", 32, 48), (".v4", 32, 64), (".v4", 32, 128), (".v4", 32, 144),
                                     ("", 64, 8), ("", 64, 16), ("", 64, 40), ("", 16, 2), ("", 16, 4), ("", 16, 64)):
            yield access("shared", op, vector, bits, stride)
        for clear in (1, 2, 3, 4, 8, 16, 24, 28):
            for vector, bits in ((".v2", 32), (".v4", 32), ("", 64)):
                yield access("shared", op, vector, bits, 16 if vector == ".v4" else 8, clear=clear)
        yield access("shared", op, ".v4", 32, 0)
        yield access("shared", op, ".v4", 32, 16, 0, 8)
        yield access("shared", op, ".v4", 32, 16, 0, 9)
        yield access("shared", op, ".v2", 32, 8, 0, 17)


def matrix_accesses():
    """ldmatrix with rows at a pitch."""
    for x in (1, 2, 4):
        for pitch in (16, 32, 64, 128, 144):
            regs = "{" + ", ".join(f"%x{k}" for k in range(x)) + "}"
            fill = "mov.b32 %r2, %t; L: mad.lo.u32 %r3, %r2, 4, %r9; st.shared.b32 [%r3], %r2; add.u32 %r2, %r2, 32; setp.lt.u32 %p1, %r2, 2048; @%p1 bra L; bar.sync 0; "
            total = " ".join(f"xor.b32 %x0, %x0, %x{k};" for k in range(1, x))
            yield kernel(f"access ldmatrix x{x} pitch {pitch}", f".reg .b32 %x<4>; .shared .align 16 .b8 s[8192]; mov.b32 %r9, s; {fill} mul.lo.u32 %r1, %t, {pitch}; add.u32 %r1, %r1, %r9; "
                         f"ldmatrix.sync.aligned.m8n8.x{x}.shared.b16 {regs}, [%r1]; {total} mad.wide.u32 %q3, %t, 4, %out; st.global.b32 [%q3], %x0;", b"\0" * 16, 128)


def whole():
    for path in sorted(FOLDER.glob("*.ptx")):
        yield compiled(path)
    yield gather()


def counted():
    """What the counters are recorded of: the five kernels first."""
    kernels = {p.name.split()[1]: p for p in whole()}
    for name in COUNTED:
        yield kernels[name]
    yield from accesses()
    yield from matrix_accesses()


def sweeps():
    """name, instruction, first bits, step, count: whole ranges of functions of one f32."""
    one = 1 << 23
    for op, starts in (("rcp", (0x3f800000,)), ("rsqrt", (0x3f800000, 0x40000000)), ("sqrt", (0x3f800000, 0x40000000)), ("ex2", (0x3f000000, 0x3f800000, 0xbf000000, 0xbf800000)),
                       ("lg2", (0x3f000000, 0x3f800000)), ("sin", (0x3f000000, 0x3f800000, 0x40000000)), ("cos", (0x3f000000, 0x3f800000, 0x40000000))):
        for start in starts:
            yield sweep(f"{op} {start:08x}", f"{op}.approx.ftz.f32", start, 1, one)
    for e in range(-12, 5):
        yield sweep(f"tanh {e}", "tanh.approx.f32", (127 + e) << 23, 128, 1 << 16)
    for e in range(-12, 7):
        yield sweep(f"ex2 octave {e}", "ex2.approx.ftz.f32", (127 + e) << 23, 128, 1 << 16)
        yield sweep(f"sin octave {e}", "sin.approx.ftz.f32", (127 + e) << 23, 128, 1 << 16)
        yield sweep(f"cos octave {e}", "cos.approx.ftz.f32", (127 + e) << 23, 128, 1 << 16)
    for inst in ("ex2.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.f16", "tanh.approx.bf16"):
        yield sweep(f"half {inst}", inst, 0, 1, 1 << 16, True)


def sweep(name, inst, start, step, count, half=False):
    text = (HEAD + ".visible .entry k(.param .u64 k_in, .param .u64 k_out, .param .u32 k_start, .param .u32 k_step)\n{\n" + REGISTERS +
            "ld.param.u64 %out, [k_out]; ld.param.u32 %r1, [k_start]; ld.param.u32 %r2, [k_step]; mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mad.lo.u32 %i, %i, 256, %t;\n"
            "mad.lo.u32 %r3, %i, %r2, %r1; mad.wide.u32 %q1, %i, 4, %out;\n"
            + ("cvt.u16.u32 %h1, %r3; $$ %h2, %h1; cvt.u32.u16 %r4, %h2;" if half else "$$ %r4, %r3;") + " st.global.b32 [%q1], %r4;\nret;\n}\n")
    p = Probe(f"sweep {name}", text, inst, b"\0" * 16, 4 * count, grid=(count // 256, 1, 1), block=(256, 1, 1), params=[("in", 0), ("out", 0), ("u32", start), ("u32", step)])
    p.start, p.step, p.count = start, step, count
    return p


def probes():
    yield from whole()
