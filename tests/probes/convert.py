# SPDX-License-Identifier: Apache-2.0
"""Probes of conversions."""
import numpy as np

from arith import f32_points, pairs
from probe import FORMATS, elementwise, floats, integers, near, rng, specials, words

INTS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
WHOLE, ROUND = ("rni", "rzi", "rmi", "rpi"), ("rn", "rz", "rm", "rp")


def bits(t):
    return BITS.get(t) or int(t[1:])


def register(t):
    """The narrowest register for it, but 32 bits for bytes, so that the extension is seen."""
    return "b32" if bits(t) < 16 else f"b{bits(t)}"


def encode(t, x):
    """The bits of the nearest value of a float type."""
    with np.errstate(all="ignore"):
        if t == "bf16":
            return np.asarray(x, np.float64).astype(np.float32).view(np.uint32).astype(np.uint64) >> np.uint64(16)
        kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[t]
        return np.asarray(x, np.float64).astype(kind).view(f"u{bits(t) // 8}").astype(np.uint64)


def to_whole(t, n):
    """Floats where conversions to integers turn: halves, ends of the integer types, specials."""
    r = rng("whole" + t)
    ends = np.array([2.0 ** k for k in (7, 8, 15, 16, 31, 32, 63, 64)])
    turns = np.concatenate([[0.5, 1.5, 2.5, 0.49999997, 0.75, 0.25, 126.5, 127.5, 254.5, 255.5, 32767.5, 65535.5], ends, ends - 1, ends - 0.5])
    value = encode(t, np.concatenate([turns, -turns]))
    value = np.concatenate([specials(t), value, value[-20:] + np.uint64(1)])
    return np.concatenate([value, near(t, r, n - len(value), -3, min(66, 15 if t == "f16" else 66))])


def ints():
    for a in INTS:
        n = 64
        p = integers(bits(a) if bits(a) > 8 else 32, n, 1, "cvt")
        if bits(a) == 8:
            p[0][:48] = np.arange(48, dtype=np.uint64) * np.uint64(0x01010105)
        for b in INTS:
            if a != b:
                holds = bits(b) > bits(a) and (b[0] == "s" or a[0] == "u")  # all of a's values: then there is no .sat
                both = [f"cvt.{b}.{a} $d, %a;", f"cvt.sat.{b}.{a} $d, %a;"]
                yield elementwise(f"cvt {b}.{a}", both[:1] if holds else both, register(b), [register(a)], p)
        for b in BITS if bits(a) > 8 else ("f16", "f32", "f64"):
            yield elementwise(f"cvt {b}.{a}", [f"cvt.{m}.{b}.{a} $d, %a;" for m in ROUND], register(b), [register(a)], integers(bits(a), n, 1, "float"))


def to_ints():
    for a in BITS:
        p = [to_whole(a, 160)]
        for b in INTS if a != "bf16" else INTS[2:]:
            yield elementwise(f"cvt {b}.{a}", [f"cvt.{m}.{b}.{a} $d, %a;" for m in WHOLE], register(b), [register(a)], p)
            if a == "f32":
                yield elementwise(f"cvt ftz {b}.{a}", [f"cvt.{m}.ftz.{b}.{a} $d, %a;" for m in WHOLE], register(b), [register(a)], p)
        if a != "bf16":
            yield elementwise(f"cvt whole {a}", [f"cvt.{m}.{a}.{a} $d, %a;" for m in WHOLE], register(a), [register(a)], p)
            yield elementwise(f"cvt whole sat {a}", [f"cvt.{m}.sat.{a}.{a} $d, %a;" for m in WHOLE], register(a), [register(a)], p)
    p = [to_whole("f32", 160)]
    yield elementwise("cvt whole ftz f32", [f"cvt.{m}.ftz.f32.f32 $d, %a;" for m in WHOLE], "b32", ["b32"], p)
    for sat in ("sat.f32", "ftz.f32", "ftz.sat.f32"):
        yield elementwise(f"cvt {sat}", [f"cvt.{sat}.f32 $d, %a;"], "b32", ["b32"], p)


def narrowing(source, target, n):
    """Points of a float type at which a narrower one rounds, overflows, underflows."""
    r = rng(source + target)
    man = {"f16": 10, "bf16": 7, "tf32": 10, "e4m3": 3, "e5m2": 2, "f32": 23}[target]
    low, high = {"f16": (-26, 17), "bf16": (-135, 128), "tf32": (-135, 127), "e4m3": (-11, 10), "e5m2": (-18, 17), "f32": (-150, 129)}[target]
    if source == "f16":
        low, high = max(low, -14), min(high, 15)
    if source in ("f32", "bf16"):
        low, high = max(low, -126), min(high, 127)
    x = near(source, r, n - 64, low, high)
    drop = FORMATS[source][1] - man
    if drop > 1:
        x[: n // 4] = (x[: n // 4] >> np.uint64(drop) << np.uint64(drop)) | np.uint64(1 << (drop - 1))  # halfway
        x[n // 4: n // 4 + 40] += np.uint64(1)
    return np.concatenate([specials(source), encode(source, [0.0] * 4 + [448, 464, 465, 480, 512, 57344, 61440, 61439, 65504, 65519, 65520, 2.0 ** -10, 2.0 ** -9 * 1.5, 2.0 ** -17,
                                                         2.0 ** -16, 2.0 ** -25, 2.0 ** -24 * 1.5, 3.3895e38, 3.4e38, 1e39 if source == "f64" else 3.4028e38, 1e-40, 2.0 ** -134,
                                                         2.0 ** -133, 65505, 65535, 240, 17, 0.3, 1e-3, 5.0]), x])[:n]


def floats_to_floats():
    for a, b, modes in (("f64", "f32", ROUND), ("f64", "f16", ROUND), ("f64", "bf16", ROUND), ("f32", "f16", ROUND), ("f32", "bf16", ROUND), ("f16", "bf16", ROUND), ("bf16", "f16", ROUND)):
        p = [narrowing(a, b, 192)]
        yield elementwise(f"cvt {b}.{a}", [f"cvt.{m}.{b}.{a} $d, %a;" for m in modes], register(b), [register(a)], p)
        if b == "f32":
            yield elementwise(f"cvt ftz {b}.{a}", [f"cvt.{m}.ftz.{b}.{a} $d, %a;" for m in modes], register(b), [register(a)], p)
        if b in ("f32", "f16") and a != "bf16":
            yield elementwise(f"cvt sat {b}.{a}", [f"cvt.{m}.sat.{b}.{a} $d, %a;" for m in modes], register(b), [register(a)], p)
    yield elementwise("cvt ftz f16.f32", ["cvt.rn.ftz.f16.f32 $d, %a;"], "b16", ["b32"], [narrowing("f32", "f16", 192)])
    for a, b in (("f32", "f64"), ("f16", "f32"), ("f16", "f64"), ("bf16", "f32"), ("bf16", "f64")):
        p = floats(a, 256, 1, "widen")
        yield elementwise(f"cvt {b}.{a}", [f"cvt.{b}.{a} $d, %a;"], register(b), [register(a)], p)
        if b == "f32" and a == "f16":
            yield elementwise(f"cvt sat {b}.{a}", [f"cvt.sat.{b}.{a} $d, %a;", f"cvt.ftz.{b}.{a} $d, %a;"], register(b), [register(a)], p)
    yield elementwise("cvt ftz f64.f32", ["cvt.ftz.f64.f32 $d, %a;"], "b64", ["b32"], floats("f32", 256, 1, "widen"))
    for b in ("f16", "bf16"):
        p = [narrowing("f32", b, 192)]
        two = [p[0], np.roll(p[0], 37)]
        for more in ("rn", "rz", "rn.relu", "rz.relu", "rn.satfinite", "rn.relu.satfinite"):
            yield elementwise(f"cvt {more}.{b}.f32", [f"cvt.{more}.{b}.f32 $d, %a;"], "b16", ["b32"], p)
            yield elementwise(f"cvt {more}.{b}x2.f32", [f"cvt.{more}.{b}x2.f32 $d, %a, %b;"], "b32", ["b32"] * 2, two)
    tf32 = [narrowing("f32", "tf32", 256)]
    for more in ("rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite"):
        yield elementwise(f"cvt {more}.tf32.f32", [f"cvt.{more}.tf32.f32 $d, %a;"], "b32", ["b32"], tf32)


def f8():
    for t in ("e4m3", "e5m2"):
        a = narrowing("f32", t, 512)
        h = narrowing("f16", t, 256)
        for relu in ("", ".relu"):
            yield elementwise(f"cvt f8 {t}x2.f32{relu}", [f"cvt.rn.satfinite{relu}.{t}x2.f32 $d, %a, %b;"], "b16", ["b32"] * 2, [a, np.roll(a, 91)])
            yield elementwise(f"cvt f8 {t}x2.f16x2{relu}", [f"cvt.rn.satfinite{relu}.{t}x2.f16x2 $d, %a;"], "b16", ["b32"], [h | np.roll(h, 91) << np.uint64(16)])
        every = np.arange(256, dtype=np.uint64)
        for relu in ("", ".relu"):
            yield elementwise(f"cvt f8 f16x2.{t}x2{relu}", [f"cvt.rn{relu}.f16x2.{t}x2 $d, %a;"], "b32", ["b16"], [every | every[::-1] << np.uint64(8)])
    two = integers(32, 128, 2, "pack")
    for t in ("u16", "s16"):
        yield elementwise(f"cvt pack {t}", [f"cvt.pack.sat.{t}.s32 $d, %a, %b;"], "b32", ["b32"] * 2, two)
    three = integers(32, 128, 3, "pack")
    for t in ("u8", "s8"):
        yield elementwise(f"cvt pack {t}", [f"cvt.pack.sat.{t}.s32.b32 $d, %a, %b, %c;"], "b32", ["b32"] * 3, three)


def probes():
    for family in (ints, to_ints, floats_to_floats, f8):
        yield from family()
