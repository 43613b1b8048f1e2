# SPDX-License-Identifier: Apache-2.0
"""Probes: small kernels whose results are recorded on a GPU, and the files they are recorded in (README.md)."""
import struct
import zlib

import numpy as np

HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"
WIDTH = {"b16": 2, "b32": 4, "b64": 8}
REGISTERS = (".reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<64>; .reg .b64 %q<32>;\n"
             ".reg .b32 %i, %t; .reg .b64 %in, %out, %g;\n")
BEGIN = ("ld.param.u64 %in, [k_in]; ld.param.u64 %out, [k_out];\n"
         "mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %r63, %ntid.x; mad.lo.u32 %i, %i, %r63, %t;\n")


class Probe:
    """A module with one entry k, its launch, the bytes of its input and the size of its output. `params` are its parameters, each aligned
    to its size: ("in", offset), ("out", offset), ("u32", value), ("u64", value), ("map",): a tensor map (Map), aligned to 64."""

    def __init__(self, name, text, inst, data, out_bytes, *, grid=(1, 1, 1), block=(32, 1, 1), shared=0, params=None, scratch=0, tensor_map=None,
                 entry="k", cluster=1):
        self.name, self.text, self.inst, self.data, self.out_bytes = name, text, inst, bytes(data), out_bytes
        self.grid, self.block, self.shared, self.scratch, self.map, self.entry = grid, block, shared, scratch, tensor_map, entry
        self.params = params or [("in", 0), ("out", 0)]
        self.path = None  # of its text, where that lies in a file
        self.out = None

    def ptx(self):
        return self.text.replace("$$", self.inst)


class Map:
    """What cuTensorMapEncodeTiled takes, of the input (or output) from `base` on: strides in bytes, from dimension 1 on."""
    TYPES = {"u8": 0, "u16": 1, "u32": 2, "s32": 3, "u64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9, "f32.ftz": 10, "tf32": 11, "tf32.ftz": 12}

    def __init__(self, dtype, dims, strides, box, *, steps=None, swizzle=0, nan=0, place="in", base=0):
        self.dtype, self.dims, self.strides, self.box = dtype, list(dims), list(strides), list(box)
        self.steps, self.swizzle, self.nan, self.place, self.base = list(steps or [1] * len(dims)), swizzle, nan, place, base

    def line(self):
        numbers = [self.TYPES[self.dtype], len(self.dims), *self.dims, *self.strides, *self.box, *self.steps, self.swizzle, self.nan, self.base]
        return f"map {self.place} " + " ".join(map(str, numbers))


# ---- Kernels that treat points one by one -------------------------------------------------------

def elementwise(name, insts, dst, srcs, points, *, tail="", scratch=0, shared="", block=None):
    """Each thread loads a point's operands %a, %b, %c.. (types `srcs`), runs each instruction of `insts` ('$d' is its result, of type `dst`, which
    may be 'pred'; %sa and %ga are the thread's own 16 bytes of shared and of global memory where there are such) and stores the results one after another."""
    n = len(points[0])
    block = block or (n if n < 256 else 256)
    assert n % block == 0 and len(points) == len(srcs), name
    width = WIDTH.get(dst, 4)
    text, offset = [], 0
    for letter, src in zip("abcefg", srcs):
        text.append(f".reg .{src} %{letter}; mad.wide.u32 %g, %i, {WIDTH[src]}, %in; ld.global.{src} %{letter}, [%g+{offset}];\n")
        offset += n * WIDTH[src]
    declare = f".reg .{dst} %d<{len(insts)}>;\n"
    if shared:
        text.append(f".shared .align 16 .b8 s[{16 * block}]; .reg .b32 %sa; .reg .b64 %ga; mov.b32 %sa, s; mad.lo.u32 %sa, %t, 16, %sa;\n"
                    f"mad.wide.u32 %ga, %i, 16, %in; add.u64 %ga, %ga, {(offset + 15) // 16 * 16};\n")
        scratch = 16 * n + 16
    body = "".join(inst.replace("$d", f"%d{k}") + " " for k, inst in enumerate(insts))
    stores = []
    for k in range(len(insts)):
        value = f"%d{k}"
        if dst == "pred":
            stores.append(f"selp.b32 %r62, 1, 0, {value}; ")
            value = "%r62"
        stores.append(f"st.global.b{8 * width} [%g+{k * n * width}], {value};\n")
    module = (HEAD + ".visible .entry k(.param .u64 k_in, .param .u64 k_out)\n{\n" + REGISTERS + declare + BEGIN + "".join(text) + "$$\n"
              + f"mad.wide.u32 %g, %i, {width}, %out;\n" + "".join(stores) + tail + "ret;\n}\n")
    data = b"".join(np.ascontiguousarray(p, dtype=f"<u{WIDTH[s]}").tobytes() for p, s in zip(points, srcs))
    return Probe(name, module, body.strip(), data, len(insts) * n * width, grid=(n // block, 1, 1), block=(block, 1, 1), scratch=scratch)


def kernel(name, body, data, out_bytes, *, declare="", template="", **more):
    """Any statements; %in, %out, %t (thread), %i (global thread) are set. `template` is text around "$$", to be shared by several probes."""
    text = (HEAD + declare + ".visible .entry k(.param .u64 k_in, .param .u64 k_out" + (", .param .align 64 .b8 k_map[128]" if "tensor_map" in more else "")
            + ")\n{\n" + REGISTERS + BEGIN + (template or "$$") + "\nret;\n}\n")
    if "tensor_map" in more:
        more["params"] = [("in", 0), ("out", 0), ("map",)]
    return Probe(name, text, " ".join(body.split()), data, out_bytes, **more)


# ---- Files --------------------------------------------------------------------------------------

def write(path, probes, remarks=()):
    """The file of these probes; without results where they have not run."""
    texts, datas, out = {}, {}, [b"tkrec 1\n"]
    out += [f"# {r}\n".encode() for r in remarks]

    def once(table, what, content):
        if content not in table:
            table[content] = len(table)
            out.append(f"{what} {table[content]} {len(content)}\n".encode() + content + b"\n")
        return table[content]

    for p in probes:
        inst = p.inst
        assert "\n" not in inst, p.name
        if p.path:
            text = texts.setdefault(p.path, len(texts))
            out.append(f"file {text} {p.path}\n".encode())
        else:
            text = once(texts, "text", p.text.encode())
        data = once(datas, "data", p.data)
        result = f"out {once(datas, 'data', p.out)}" if p.out is not None else f"size {p.out_bytes}"
        lines = [f"probe {p.name}", f"entry {p.entry}", f"text {text} {inst}", f"launch {' '.join(map(str, (*p.grid, *p.block, p.shared)))}"]
        lines += ["param " + " ".join(map(str, q)) for q in p.params]
        lines += [p.map.line()] if p.map else []
        lines += [f"in {data} {p.scratch}", result, "end"]
        out.append(("\n".join(lines) + "\n").encode())
    path.write_bytes(zlib.compress(b"".join(out), 9))


# ---- Points -------------------------------------------------------------------------------------

FORMATS = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52), "e4m3": (8, 3), "e5m2": (8, 2)}


def specials(t):
    """Bits of zeros, subnormals, the ends of the normal numbers, one and what is next to it, infinity, NaNs; both signs."""
    bits, man = FORMATS[t]
    one = (2 ** (bits - 2 - man) - 1) << man
    inf = (2 ** (bits - 1 - man) - 1) << man
    up = 1 << man
    plus = [0, 1, up - 1, up, up + 1, one, one + 1, one - 1, one + up, one - up, one + up // 2, inf - 1, inf, inf + up // 2, inf + 1]
    return np.array(plus + [p | 1 << (bits - 1) for p in plus], dtype=np.uint64)


def rng(name):
    seed = 0
    for c in name.encode():
        seed = (seed * 131 + c) % 2 ** 31
    return np.random.RandomState(seed)


def words(r, n, bits=64):
    w = r.randint(0, 2 ** 32, n, dtype=np.uint64) << np.uint64(32) | r.randint(0, 2 ** 32, n, dtype=np.uint64)
    return w >> np.uint64(64 - bits)


def near(t, r, n, low=-14, high=14):
    """Random signs and fractions with exponents between these."""
    bits, man = FORMATS[t]
    bias = 2 ** (bits - 2 - man) - 1
    e = (r.randint(low, high + 1, n) + bias).astype(np.uint64)
    return words(r, n, man) | e << np.uint64(man) | words(r, n, 1) << np.uint64(bits - 1)


def floats(t, n, arity, name=""):
    """Points of a float type: specials with each other, any patterns, moderate ones, and such as nearly cancel or are halfway."""
    bits, man = FORMATS[t]
    r, s = rng(f"{t}{n}{arity}{name}"), specials(t)
    mask = np.uint64(2 ** bits - 1)
    if arity == 1:
        k = min(n // 2, len(s))
        rest = n - k
        return [np.concatenate([s[:k], words(r, rest // 3, bits), near(t, r, rest - rest // 3)])]
    columns = []
    quarter = n // 4
    a = np.concatenate([s[r.randint(0, len(s), quarter)], words(r, quarter, bits), near(t, r, n - 2 * quarter, -6, 6)])
    b = np.concatenate([s[r.randint(0, len(s), quarter)], words(r, quarter, bits), near(t, r, n - 2 * quarter, -6, 6)])
    close = slice(n - quarter, n)  # b is about -a
    b[close] = (a[close] ^ np.uint64(1 << (bits - 1))) + words(r, quarter, 2)
    columns = [a & mask, b & mask]
    if arity == 3:
        c = np.concatenate([s[r.randint(0, len(s), quarter)], words(r, quarter, bits), near(t, r, n - 2 * quarter, -12, 12)])
        if t != "bf16":
            kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[t]
            unsigned = f"u{bits // 8}"
            with np.errstate(all="ignore"):
                product = -(a[close].astype(unsigned).view(kind) * b[close].astype(unsigned).view(kind))
            c[close] = product.view(unsigned).astype(np.uint64) + words(r, quarter, 1)
        columns.append(c & mask)
    return columns


def integers(bits, n, arity, name=""):
    r = rng(f"i{bits}{n}{arity}{name}")
    edges = [0, 1, 2, 3, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2 ** (bits - 1) + 1, 2 ** bits - 1, 2 ** bits - 2, 255, 128, 127]
    columns = []
    for _ in range(arity):
        third = n // 3
        shift = r.randint(0, bits, n - 2 * third).astype(np.uint64)
        columns.append(np.concatenate([np.array(edges, dtype=np.uint64)[r.randint(0, len(edges), third)], words(r, third, bits),
                                       words(r, n - 2 * third, bits) >> shift]))
    return columns


def pack(data, *values):
    return struct.pack("<" + data, *values)
