# SPDX-License-Identifier: Apache-2.0
# Random kernels with random arguments, the same for the same seed.
#
# Everything that a program computes is exact: float sums and products only of small integers, whose order shows in no bit;
# functions of one's own in reductions only associative ones; atomics only where the order does not show. So each level of the
# compiler and each device must give the same bits, a NaN for a NaN. Outputs whose names begin with m are functions with an
# error bound of exact values, and may differ by some units in the last place.
#
#     random_programs.py SEED            prints a program
#     random_programs.py SEED N FOLDER   writes N programs as files for tests/levels.c
import pathlib
import random
import sys

import numpy as np

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
SMALL = ("f8e4m3", "f8e5m2", "f16", "bf16")
FLOATS = SMALL + ("f32", "f64")
TYPES = ("bool",) + INTS + FLOATS
WIDTH = {"bool": 8, "i8": 8, "u8": 8, "f8e4m3": 8, "f8e5m2": 8, "i16": 16, "u16": 16, "f16": 16, "bf16": 16,
         "i32": 32, "u32": 32, "f32": 32, "i64": 64, "u64": 64, "f64": 64}
WIDE = {"bool": "i32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}  # of a sum
MATH = ("exp", "exp2", "expm1", "log", "log2", "log1p", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "erf", "sigmoid")
COMBINE = ("a + b", "a * b", "min(a, b)", "max(a, b)", "a ^ b", "a | b", "a & b", "a", "b", "where(b != {t}(0), b, a)")


def size(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def text(shape):
    return "[" + ", ".join(map(str, shape)) + "]"


class Value:
    """A name in the program: a tile or, with shape (), a scalar; small: integers of at most 8 in magnitude."""

    def __init__(self, name, dtype, shape, small=False):
        self.name, self.dtype, self.shape, self.small = name, dtype, tuple(shape), small
        self.used = False

    def __str__(self):
        self.used = True
        return self.name

    is_int = property(lambda self: self.dtype in INTS)
    is_float = property(lambda self: self.dtype in FLOATS)


class Argument:
    """Of a launch: bits of elements as unsigned integers, and which way it goes."""

    def __init__(self, name, dtype, bits, written):
        self.name, self.dtype, self.bits, self.written = name, dtype, bits, written


class Generator:
    """Most and least: elements of tiles; the least holds of half of those that are drawn."""

    def __init__(self, seed, pow2=True, most=1024, math=False, least=1):
        self.r = random.Random(seed)
        self.seed, self.pow2, self.most, self.math, self.least = seed, pow2, most, math, least
        self.lines, self.functions, self.params, self.arguments = [], [], [], []
        self.applied = {}  # name of an output to the function with an error bound that it is of
        self.pool, self.count, self.depth, self.budget = [], 0, 1, self.r.choice((5, 8, 12, 12, 16, 30))

    # ---- Pieces ---------------------------------------------------------------------------------

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def say(self, line):
        self.lines.append("    " * self.depth + line)

    def chance(self, p):
        return self.r.random() < p

    def extent(self):
        if self.pow2 or self.chance(0.5):
            return self.r.choice((1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 64, 128, 256))
        return self.r.choice((3, 5, 6, 7, 10, 12, 17, 24, 33, 48, 50, 96, 127, 781, self.r.randint(1, 128)))

    def some(self, n):
        """How many of n elements."""
        if not self.pow2 and self.chance(0.5):
            return self.r.randint(1, n)
        return self.r.choice([k for k in (1, 2, 4, 8, 16, 32, 64, 128, 256) if k <= n])

    def shape(self):
        while True:
            s = tuple(self.extent() for _ in range(self.r.choice((1, 1, 1, 2, 2, 2, 3, 3, 4, 5))))
            if (self.least <= size(s) or self.chance(0.5)) and size(s) <= self.most and (size(s) >= 16 or self.chance(0.2)):
                return s

    def literal(self, t):
        if t == "bool":
            return self.r.choice(("true", "false"))
        if t in FLOATS:
            return f"{t}({self.r.choice(('0', '1', '-1', '2', '0.5', '-1.5', '3', '-0.0', 'inf', '-inf', 'nan', '0.125'))})"
        top = 2 ** (WIDTH[t] - 1) - 1
        low = 0 if t in UNSIGNED else -top - 1
        return f"{t}({self.r.choice((0, 1, 2, 3, 5, 7, 100, top, low, self.r.randint(low, top), 0 if low == 0 else -1))})"

    def find(self, test=lambda v: True):
        """A value, rather one that nothing uses yet; None where none suits."""
        found = [v for v in self.pool if test(v)]
        fresh = [v for v in found if not v.used]
        return self.r.choice(fresh if fresh and self.chance(0.6) else found) if found else None

    def pick(self, test=lambda v: True):
        """The same; where none suits, the step is given up."""
        found = self.find(test)
        if found is None:
            raise LookupError
        return found

    def find_tile(self, test=lambda v: True):
        return self.find(lambda v: v.shape and test(v))

    def tile(self, test=lambda v: True):
        return self.pick(lambda v: v.shape and test(v))

    def let(self, expr, dtype, shape, small=False):
        v = Value(self.name("v"), dtype, shape, small)
        self.say(f"let {v.name} = {expr};")
        self.pool.append(v)
        return v

    def lets(self, expr, *parts):
        made = [Value(self.name("v"), dtype, shape) for dtype, shape in parts]
        self.say(f"let ({', '.join(v.name for v in made)}) = {expr};")
        self.pool += made

    def tensor(self, prefix, dtype, dims, way, data):
        """A parameter; dims are texts, data an array of bits."""
        name = self.name(prefix)
        self.params.append(f"{name}: {way} {dtype}[{', '.join(map(str, dims))}]")
        self.arguments.append(Argument(name, dtype, data, way != "in"))
        return name

    def as_type(self, v, dtype):
        return str(v) if v.dtype == dtype else f"{dtype}({v})"

    def as_small(self, v, dtype):
        return f"{dtype}((i32({v}) & 7){'' if dtype in UNSIGNED else ' - 3'})"

    def like(self, v, dtype=None):
        """An expression of this shape or one that broadcasts to it, of this type."""
        t = dtype or v.dtype
        other = self.find(lambda w: w.dtype == t and (w.shape == v.shape or not w.shape or fits(w.shape, v.shape)))
        if other and self.chance(0.8):
            return str(other)
        other = self.find(lambda w: w.shape == v.shape and w is not v)
        if other and t != "bool" and self.chance(0.6):
            return self.as_type(other, t)
        return self.literal(t)

    def condition(self, v):
        """A bool expression that broadcasts to v's shape."""
        b = self.find(lambda w: w.dtype == "bool" and (w.shape == v.shape or fits(w.shape, v.shape)))
        if b and self.chance(0.5):
            return str(b)
        w = self.find(lambda w: w.shape == v.shape and w.dtype != "bool") or v
        if w.dtype == "bool":
            return str(w)
        return f"({w} {self.r.choice(('<', '<=', '>', '>=', '==', '!='))} {self.like(w)})"

    def index(self, n, reach):
        """An expression of an i32 tile of extent n with values about 0 .. reach-1, some outside."""
        v = self.find(lambda w: w.shape == (n,) and w.dtype in ("i32", "i16", "u8", "i8"))
        if v and self.chance(0.6):
            return f"((i32({v}) & {2 * max(reach, 2) - 1}) - 1)"
        return self.r.choice((f"iota({n})", f"({reach - 1} - iota({n}))", f"(iota({n}) * 3 - 1)", f"(iota({n}) ^ 1)"))

    def turned(self, n):
        """An expression of an i32 tile that holds each index below n once."""
        forms = [f"({n - 1} - iota({n}))", f"((iota({n}) + {self.r.randint(1, n)}) % {n})"]
        if n & (n - 1) == 0:
            forms += [f"((iota({n}) * {2 * self.r.randint(1, 9) + 1}) & {n - 1})", f"(iota({n}) ^ {self.r.randrange(n)})"]
        return self.r.choice(forms)

    # ---- Steps: each adds values, or does nothing where nothing suits ---------------------------

    def elementwise(self):
        v = self.pick()
        t, s = v.dtype, v.shape
        if t == "bool":
            self.let(f"{v} {self.r.choice(('&', '|', '^', '==', '!=', '&&', '||'))} {self.like(v)}" if self.chance(0.7) or not s else f"!{v}", "bool", s)
        elif t in FLOATS:
            self.let(self.r.choice((
                lambda: f"{v} {self.r.choice('+-*/%')} {self.like(v)}",
                lambda: f"{self.r.choice(('min', 'max', 'fmin', 'fmax'))}({v}, {self.like(v)})",
                lambda: self.several(v, ("min", "max", "fmin", "fmax"), "+-*"),
                lambda: f"{self.r.choice(('abs', 'floor', 'ceil', 'round', 'trunc'))}({v})",
                lambda: f"-{v}",
                lambda: f"fma({v}, {self.like(v)}, {self.like(v)})",
                lambda: f"clamp({v}, {self.like(v)}, {self.like(v)})",
                lambda: f"{self.r.choice(('sqrt', 'rcp'))}({v})" if t in ("f32", "f64") else f"{v} * {v}",
            ))(), t, s)
        else:
            self.let(self.r.choice((
                lambda: f"{v} {self.r.choice(('+', '-', '*', '/', '%', '&', '|', '^', '<<', '>>'))} {self.like(v)}",
                lambda: f"{v} {self.r.choice(('<<', '>>'))} {t}({self.r.randint(0, WIDTH[t])})",
                lambda: f"{self.r.choice(('min', 'max', 'mulhi', 'cdiv'))}({v}, {self.like(v)})",
                lambda: self.several(v, ("min", "max"), ("+", "-", "*", "&", "|", "^")),
                lambda: f"clamp({v}, {self.like(v)}, {self.like(v)})",
                lambda: f"~{v}" if t in UNSIGNED or self.chance(0.5) else f"-{v}",
                lambda: f"{t}({self.r.choice(('popcount', 'clz'))}({v}))",
                lambda: f"{self.r.choice(('abs', 'next_pow2'))}({v})",
            ))(), t, s)

    def several(self, v, functions, operators):
        """An expression of several operations at once, which an assembler may join."""
        def part():
            x = self.like(v)
            return self.r.choice((x, x, f"(-{x})" if v.dtype not in UNSIGNED else f"(~{x})", f"abs({x})", f"({x} {self.r.choice(operators)} {self.like(v)})",
                                  f"{self.r.choice(functions)}({x}, {self.like(v)})"))
        first = f"{self.r.choice(functions)}({v}, {part()}{', ' + part() if self.chance(0.4) else ''})"
        return self.r.choice((lambda: first, lambda: f"({part()} {self.r.choice(operators)} {first})",
                              lambda: f"{self.r.choice(functions)}({part()}, {first})", lambda: f"{self.r.choice(functions)}({first}, {part()})"))()

    def compare(self):
        v = self.pick(lambda v: v.dtype != "bool")
        if v.is_float and self.chance(0.3):
            self.let(f"{self.r.choice(('isnan', 'isinf'))}({v})", "bool", v.shape)
        else:
            self.let(f"{v} {self.r.choice(('<', '<=', '>', '>=', '==', '!='))} {self.like(v)}", "bool", v.shape)

    def choose(self):
        v = self.tile()
        self.let(f"where({self.condition(v)}, {v}, {self.like(v)})", v.dtype, v.shape)

    def cast(self):
        v, t = self.pick(), self.r.choice(TYPES)
        if v.dtype != t:
            self.let(f"{t}({v})", t, v.shape, v.small and t != "bool" and not (t in UNSIGNED))

    def shrink(self):
        v, t = self.tile(), self.r.choice(INTS + FLOATS)
        self.let(self.as_small(v, t), t, v.shape, True)

    def same_bits(self):
        v = self.pick(lambda v: v.dtype != "bool")
        t = self.r.choice([t for t in INTS + FLOATS if WIDTH[t] == WIDTH[v.dtype]])
        inner = f"where(isnan({v}), {v.dtype}(0), {v})" if v.is_float else str(v)
        self.let(f"bitcast({inner}, {t})", t, v.shape)

    def summand(self, v):
        """What may be summed: integers, or small ones in a float type."""
        if v.is_float and not v.small:
            v = self.let(self.as_small(v, v.dtype), v.dtype, v.shape, True)
        return v

    def sign(self, v):
        """What may be multiplied: integers, or 1 and -1."""
        if v.is_float:
            one = f"{v.dtype}(1)"
            v = self.let(f"where({v} > {v.dtype}(0), {one}, -{one})", v.dtype, v.shape)
        return v

    def reduce(self):
        v = self.tile()
        axis = self.r.choice([None] + list(range(len(v.shape))) * 2)
        s = () if axis is None else tuple(1 if i == axis else n for i, n in enumerate(v.shape))
        a = "" if axis is None else f", axis = {self.r.choice((axis, axis - len(v.shape)))}"
        if v.dtype == "bool":
            f = self.r.choice(("any", "all", "xor", "sum"))
            self.let(f"{f}({v}{a})", "i32" if f == "sum" else "bool", s)
            return
        f = self.r.choice(("sum", "max", "min", "argmax", "argmin", "prod") + (("xor",) if v.is_int else ()))
        v = self.summand(v) if f == "sum" else self.sign(v) if f == "prod" else v
        t = "i32" if f[:3] == "arg" else WIDE.get(v.dtype, v.dtype) if f in ("sum", "prod") else v.dtype
        self.let(f"{f}({v}{a})", t, s)

    def order(self):
        return self.r.choice(("", ", reverse = true", ", exclusive = true", ", reverse = true, exclusive = true"))

    def scan(self):
        v = self.tile(lambda v: v.dtype != "bool")
        axis = self.r.randrange(len(v.shape))
        f = self.r.choice(("cumsum", "cummax", "cummin", "cumprod"))
        v = self.summand(v) if f == "cumsum" else self.sign(v) if f == "cumprod" else v
        t = WIDE.get(v.dtype, v.dtype) if f in ("cumsum", "cumprod") else v.dtype
        self.let(f"{f}({v}, axis = {axis}{self.order()})", t, v.shape)

    def combine(self):
        """reduce and scan with functions."""
        v = self.tile(lambda v: v.is_int)
        t, axis = v.dtype, self.r.randrange(len(v.shape))
        s = tuple(1 if i == axis else n for i, n in enumerate(v.shape))
        if self.chance(0.5):
            f = f"fn(a: {t}, b: {t}) -> {t} {{ return {self.r.choice(COMBINE).format(t=t)}; }}"
            if self.chance(0.5):
                self.let(f"reduce({v}, axis = {axis}, f = {f})", t, s)
            else:
                more = self.order()
                self.let(f"scan({v}, axis = {axis}, f = {f}{more}{', init = ' + self.literal(t) if 'excl' in more else ''})", t, v.shape)
            return
        w = self.tile(lambda w: w.is_int and w.shape == v.shape)
        u = w.dtype
        body = self.r.choice((
            "return (a * c, b * {u}(c) + d);" if t == u else "return (a * c, b + d);",
            "if c > a { return (c, d); } return (a, b);",
            "if d != {u}(0) { return (c, d); } return (a, b);")).replace("{u}", u)
        f = self.name("g")
        self.functions.append(f"fn {f}(a: {t}, b: {u}, c: {t}, d: {u}) -> ({t}, {u}) {{ {body} }}")
        if self.chance(0.5):
            self.lets(f"reduce(({v}, {w}), axis = {axis}, f = {f})", (t, s), (u, s))
        else:
            self.lets(f"scan(({v}, {w}), axis = {axis}, f = {f}{self.r.choice(('', ', reverse = true'))})", (t, v.shape), (u, v.shape))

    def sort(self):
        v = self.tile(lambda v: v.dtype != "bool")
        axis = self.r.randrange(len(v.shape))
        n = v.shape[axis]
        if self.chance(0.5):
            self.let(f"sort({v}, {axis}{self.r.choice(('', ', descending = true'))})", v.dtype, v.shape)
        else:
            k = self.some(n)
            s = tuple(k if i == axis else m for i, m in enumerate(v.shape))
            self.lets(f"topk({v}, {k}, {axis})", (v.dtype, s), ("i32", s))

    def move(self):
        v = self.tile()
        s, rank = v.shape, len(v.shape)
        axis = self.r.randrange(rank)
        n = s[axis]

        def put(m, at=axis):
            return s[:at] + (m,) + s[at + 1:]
        kind = self.r.choice(("flip", "permute", "transpose", "reshape", "concat", "split", "interleave", "deinterleave", "slice", "gather",
                              "newaxis", "broadcast"))
        if kind == "flip":
            self.let(f"flip({v}, {axis})", v.dtype, s, v.small)
        elif kind == "permute":
            p = self.r.sample(range(rank), rank)
            self.let(f"permute({v}, {text(p)})", v.dtype, [s[i] for i in p], v.small)
        elif kind == "transpose" and rank > 1:
            self.let(f"transpose({v})", v.dtype, s[:-2] + (s[-1], s[-2]), v.small)
        elif kind == "reshape":
            new = self.reshaped(size(s))
            self.let(f"reshape({v}, {text(new)})", v.dtype, new, v.small)
        elif kind in ("concat", "interleave") and 2 * size(s) <= self.most:
            w = self.tile(lambda w: w.dtype == v.dtype and w.shape == s)
            if kind == "concat" and not self.pow2:
                m = self.some(n)
                self.let(f"concat({v}, slice({w}, {axis}, {n - m}, {m}), {axis})", v.dtype, put(n + m))
            elif kind == "concat":
                self.let(f"concat({v}, {w}, {axis})", v.dtype, put(2 * n))
            else:
                self.let(f"interleave({v}, {w})", v.dtype, put(2 * s[-1], rank - 1))
        elif kind == "split" and n % 2 == 0:
            self.lets(f"split({v}, {axis})", *[(v.dtype, put(n // 2))] * 2)
        elif kind == "deinterleave" and s[-1] % 2 == 0:
            self.lets(f"deinterleave({v})", *[(v.dtype, put(s[-1] // 2, rank - 1))] * 2)
        elif kind == "slice":
            m = self.some(n)
            self.let(f"slice({v}, {axis}, {self.r.randint(0, n - m)}, {m})", v.dtype, put(m), v.small)
        elif kind == "gather":
            w = self.find_tile(lambda w: w.is_int and len(w.shape) == rank and put(0) == w.shape[:axis] + (0,) + w.shape[axis + 1:])
            if w:
                self.let(f"gather({v}, (i32({w}) & {2 * n - 1}) - {self.r.choice((0, 1, n // 2))}, {axis})", v.dtype, w.shape, v.small)
        elif kind == "newaxis" and rank < 4:
            at = self.r.randrange(rank + 1)
            entries = [":"] * rank
            entries.insert(at, "newaxis")
            self.let(f"{v}[{', '.join(entries)}]", v.dtype, s[:at] + (1,) + s[at:], v.small)
        elif kind == "broadcast":
            new = tuple(self.extent() if d == 1 else d for d in s)
            if size(new) <= self.most:
                self.let(f"broadcast({v}, {text(new)})", v.dtype, new, v.small)

    def reshaped(self, n):
        """A random shape of n elements."""
        new, rest = [], n
        for _ in range(self.r.randint(0, 3)):
            d = self.r.choice([d for d in range(1, rest + 1) if rest % d == 0])
            new.append(d)
            rest //= d
        new.append(rest)
        self.r.shuffle(new)
        return tuple(new)

    def histogram(self):
        v = self.tile(lambda v: v.is_int)
        bins = self.r.choice((1, 2, 8, 16, 64) if self.pow2 else (3, 7, 16))
        self.let(f"histogram(i32({v}) & {2 * bins - 1 if self.pow2 else 15}, {bins})", "i32", (bins,))

    def dot(self):
        """A product of two tiles that are read from others' elements as small integers."""
        v = self.tile(lambda v: len(v.shape) in (2, 3))
        t = self.r.choice(("f16", "bf16", "f8e4m3", "f8e5m2", "f32", "f64", "i8", "u8", "f32"))
        out = t if t in ("f32", "f64") else "i32" if t in ("i8", "u8") else "f32"
        w = self.find_tile(lambda w: len(w.shape) == len(v.shape) and w.shape[:-2] == v.shape[:-2] and w.shape[-2] == v.shape[-1])
        right = self.as_small(w, t) if w else f"transpose({self.as_small(v, t)})"
        n = w.shape[-1] if w else v.shape[-2]
        s = v.shape[:-1] + (n,)
        if size(s) > self.most:
            return
        acc = self.find_tile(lambda a: a.shape == s and (a.small and a.dtype == out or out == a.dtype == "i32"))
        more = f", {acc}" if acc and self.chance(0.7) else ""
        if t == "f32" and self.chance(0.4):
            more += f", precision = {self.r.choice(('tf32', 'tf32x3'))}"
        self.let(f"dot({self.as_small(v, t)}, {right}{more})", out, s)

    def philox(self):
        v = self.tile(lambda v: v.is_int)
        arguments = f"u64({self.r.getrandbits(63)}), {self.r.choice(('u32', 'u64'))}({v})"
        if self.chance(0.5):
            self.lets(f"philox({arguments})", *[("u32", v.shape)] * 4)
        else:
            self.let(f"rand({arguments})", "f32", v.shape)

    def function(self):
        """A function on scalars with early returns, applied to tiles."""
        v = self.pick(lambda v: v.dtype not in ("bool",))
        t, f = v.dtype, self.name("fun")
        plus = self.r.choice(("x + y", "x - y", "x * y", "min(x, y)", "x / y"))
        self.functions.append(
            f"fn {f}(x: {t}, y: {t}) -> {t} {{\n    if x > y {{ return {plus}; }}\n    var s = x;\n"
            f"    if x == {self.literal(t)} {{ s = y; }} else {{ if y > {self.literal(t)} {{ return {self.literal(t)}; }} s = s + {t}(1); }}\n"
            f"    for it in 0 .. {self.r.randint(0, 3)} {{ s = s * y; }}\n    return s - y;\n}}")
        self.let(f"{f}({v}, {self.like(v)})", t, v.shape)

    def read(self):
        """A view of a new input."""
        t, s = self.r.choice(TYPES), self.shape()
        known = self.find_tile()
        if known and self.chance(0.5):
            s = known.shape
        dims, entries, sizes = [], [], []
        tiles = False
        for n in s:
            dims.append(self.name("D"))
            start = self.r.choice(("0", "0", "0", f"i * {n}", f"n - {self.r.randint(0, 9)}", str(self.r.randint(-n, n)), f"{n} * (i & 1) + j"))
            sizes.append(max(1, self.r.choice((n, n, 2 * n, n - 1, n + 3, 3 * n))))
            if not tiles and self.chance(0.15):
                entries.append(self.index(n, sizes[-1]))
                tiles = True
            else:
                entries.append(f"{start} +: {n}")
            b = self.find(lambda v: v.dtype == "bool" and v.shape == (n,))
            if b and self.chance(0.3):
                entries[-1] += f" where {b}"
        if len(s) < 4 and self.chance(0.2):
            dims.insert(0, self.name("D"))
            entries.insert(0, self.r.choice(("i", "j", "n & 3")))
            sizes.insert(0, 3)
        name = self.tensor("x", t, dims, "in", self.data(t, sizes))
        other = f" else {self.literal(t)}" if self.chance(0.4) else ""
        self.let(f"{name}[{', '.join(entries)}]{other}", t, s)

    def start(self):
        t, s = self.r.choice(TYPES), self.shape()
        if self.chance(0.4):
            n = s[-1]
            self.let(f"{self.literal(t)} + {t}(iota({n}) * {self.r.randint(-3, 9)})" if t != "bool" else f"iota({n}) % 3 == 0", t, (n,))
        else:
            self.let(self.r.choice((f"full({text(s)}, {self.literal(t)})", f"zeros({text(s)}, {t})")), t, s)

    def exchange(self):
        """Writes a tensor of the program's own and reads it back otherwise."""
        v = self.tile(lambda v: len(v.shape) <= 4)
        name = self.tensor("w", v.dtype, ["G", "H"] + list(v.shape), "inout", self.data(v.dtype, (self.g, self.h) + v.shape))
        plain = [f"0 +: {n}" for n in v.shape]
        at = self.r.randrange(len(plain))
        n = v.shape[at]
        turned = plain[:at] + [self.r.choice((self.turned(n), f"{self.r.randint(-n, n)} +: {n}"))] + plain[at + 1:]
        first, second = (plain, turned) if self.chance(0.5) else (turned, plain)
        if self.chance(0.2):
            first = list(first)
            first[at] += f" where {self.condition(Value(f'iota({n})', 'i32', (n,)))}"
        self.say(f"{name}[i, j, {', '.join(first)}] = {v};")
        self.let(f"{name}[i, j, {', '.join(second)}] else {self.literal(v.dtype)}", v.dtype, v.shape)
        if self.chance(0.3):
            self.say(f"{name}[i, j, {', '.join(plain)}] = {self.like(v)};")

    def exchange_atomically(self):
        """Atomics on elements that nothing else touches: the old values are known."""
        t = self.r.choice(("i32", "u32", "i64", "u64", "f32", "f64"))
        v = self.tile(lambda v: len(v.shape) == 1)
        n = v.shape[0]
        f = self.r.choice(("xchg", "cas") + (("add", "max", "min", "and", "or", "xor") if t in INTS else ("add",)))
        data, x = self.data(t, (self.g, self.h, n)), self.as_type(v, t)
        if t in ("f32", "f64"):
            x = f"where(isnan({x}), {t}(1), {x})"
        if t == "f32" and f == "add":  # which flushes subnormals on GPUs: neither operands nor sums are any
            data = np.where(np.abs(data.view(np.float32)) > 1e-30, data, np.float32(1).view(np.uint32))
            x = f"where(abs({x}) > 1e-30, {x}, 1.0)"
        name = self.tensor("w", t, ["G", "H", n], "inout", data)
        at = f"{name}[i, j, {self.r.choice((self.turned(n), f'0 +: {n}'))}]"
        self.let(f"atomic_{f}({at}, {self.literal(t) + ', ' if f == 'cas' else ''}{x})", t, (n,))

    def atomic_float(self):
        """Sums of small numbers, which are exact in any order."""
        v, t = self.tile(lambda v: len(v.shape) == 1), self.r.choice(("f32", "f64"))
        name = self.tensor("c", t, [64], "inout", nice_bits(t, np.arange(64) % 17 - 8))
        f = self.r.choice(("add", "add", "max", "min"))
        self.say(f"atomic_{f}({name}[{self.index(v.shape[0], 64)}], {self.as_small(v, t)} {'+' if f == 'add' else '*'} {t}({'0' if f == 'add' else '3'}));")

    def atomic(self):
        if self.chance(0.3):
            self.exchange_atomically()
            return
        if self.chance(0.3):
            self.atomic_float()
            return
        t = self.r.choice(("i32", "u32", "i64", "u64"))
        v = self.find_tile(lambda v: len(v.shape) == 1 and v.dtype == t) or self.tile(lambda v: len(v.shape) == 1)
        name = self.tensor("c", t, [64], "inout", self.data(t, (64,)))
        n = v.shape[0]
        b = self.find(lambda w: w.dtype == "bool" and w.shape == (n,))
        where = f" where {b}" if b and self.chance(0.4) else ""
        f = self.r.choice(("add", "max", "min", "and", "or", "xor"))
        self.say(f"atomic_{f}({name}[{self.index(n, 64)}{where}], {self.as_type(v, t)});")

    # ---- Control --------------------------------------------------------------------------------

    def scalar_condition(self):
        b = self.find_tile(lambda v: v.dtype == "bool")
        v = self.find(lambda v: not v.shape and v.dtype != "bool")
        return self.r.choice((
            lambda: f"i % {self.r.randint(2, 3)} == {self.r.randint(0, 1)}",
            lambda: f"{self.r.choice(('any', 'all'))}({b})" if b else "j == 0",
            lambda: f"{v} {self.r.choice(('<', '>', '==', '!='))} {self.literal(v.dtype)}" if v else "i > 0",
            lambda: f"i > j {self.r.choice(('&&', '||'))} n > {self.r.randint(0, 9)}"))()

    def step_of(self, v):
        """Something new for a variable, of its type and shape."""
        t, axis = v.dtype, self.r.randrange(max(len(v.shape), 1))
        forms = [lambda: f"where({self.condition(v)}, {v}, {self.like(v)})"]
        if v.shape:
            forms += [lambda: f"flip({v}, {axis})"]
            if t != "bool":
                forms += [lambda: f"sort({v}, {axis})", lambda: f"cummax({v}, axis = {axis})"]
        if t == "bool":
            forms += [lambda: f"{v} ^ {self.like(v)}"]
        else:
            forms += [lambda: f"{v} {self.r.choice('+-*/')} {self.like(v)}"] * 3
            forms += [lambda: f"{self.r.choice(('min', 'max'))}({v}, {self.like(v)})"]
            forms += [lambda: f"{t}({self.r.choice(INTS + FLOATS)}({v}))"]
        return self.r.choice(forms)()

    def inside(self, variables, most):
        """A block: some steps, then the variables change."""
        pool = list(self.pool)
        self.depth += 1
        for _ in range(self.r.randint(0, most)):
            self.step()
        for v in variables:
            expr = self.step_of(v)
            if v.shape and expr in ("true", "false"):
                expr = f"{v} & {expr}"
            self.say(f"{v} = {expr};" if not self.chance(0.2) or v.dtype == "bool" else f"{v} += {self.like(v)};")
        self.depth -= 1
        self.pool = pool

    def variables(self):
        made = []
        for _ in range(self.r.randint(1, 2)):
            v = self.pick()
            made.append(Value(self.name("a"), v.dtype, v.shape))
            self.say(f"var {made[-1].name} = {v};")
        self.pool += made
        return made

    def branch(self):
        made = self.variables()
        self.say(f"if {self.scalar_condition()} {{")
        self.inside(made, 2)
        if self.chance(0.6):
            self.say("} else {")
            self.inside(made, 2)
        self.say("}")

    def loop(self):
        made = self.variables()
        k = Value(self.name("k"), "i32", ())
        pool = list(self.pool)
        if self.chance(0.7):
            low, high, step = self.r.choice(((0, 3, 1), (0, 5, 2), (4, 0, -1), (1, "min(n, 6)", 2), (0, "(i & 3)", 1), (5, 5, 1)))
            self.say(f"for {k.name} in {low} .. {high} step {step} {{")
        else:
            self.say(f"var {k.name} = 0;")
            self.say(f"while {k.name} < {self.r.randint(1, 4)} && ({self.scalar_condition()}) {{")
            self.say(f"    {k.name} += 1;")
        self.pool.append(k)
        self.depth += 1
        if self.chance(0.3):
            self.say(f"if {k} == {self.r.randint(0, 3)} {{ {self.r.choice(('continue', 'break'))}; }}")
        self.depth -= 1
        self.inside(made, 3)
        if self.chance(0.25):
            self.say(f"    if {self.scalar_condition()} {{ {self.r.choice(('continue', 'break'))}; }}")
            self.depth += 1
            v = self.r.choice(made)
            self.say(f"{v} = where({self.condition(v)}, {v}, {v});")
            self.depth -= 1
        self.say("}")
        self.pool = pool

    # ---- The whole ------------------------------------------------------------------------------

    STEPS = (("elementwise", 20), ("compare", 6), ("choose", 6), ("cast", 9), ("shrink", 4), ("same_bits", 3), ("reduce", 9), ("scan", 5),
             ("combine", 4), ("sort", 4), ("move", 14), ("histogram", 2), ("dot", 5), ("philox", 1), ("function", 4), ("read", 10), ("start", 3),
             ("exchange", 3), ("atomic", 3), ("branch", 4), ("loop", 5))

    def step(self):
        kinds, weights = zip(*self.STEPS)
        kind = self.r.choices(kinds, weights)[0]
        if kind in ("branch", "loop") and self.depth > 3:
            kind = "elementwise"
        try:
            getattr(self, kind)()
        except LookupError:
            pass

    def data(self, t, shape):
        """Bits of a type: small values, or any."""
        rng = np.random.default_rng(self.r.getrandbits(32))
        bits = WIDTH[t]
        kind = np.dtype(f"u{bits // 8}")
        if t == "bool":
            return rng.integers(0, 2, shape).astype(kind)
        any_ = rng.integers(0, 1 << min(bits, 63), shape, np.uint64).astype(kind)
        if bits == 64:
            any_ = any_ << kind.type(1) | (any_ >> kind.type(7) & kind.type(1))
        nice = nice_bits(t, rng.integers(0 if t in UNSIGNED else -8, 9, shape))
        share = self.r.choice((0.0, 0.3, 0.8))
        return np.where(rng.random(shape) < share, any_, nice).astype(kind)

    def outputs(self):
        left = [v for v in self.pool if not v.used and len(v.shape) <= 5] or [self.pick()]
        self.r.shuffle(left)
        for v in left[:4]:
            way = self.r.choice(("out", "inout"))
            data = self.data(v.dtype, (self.g, self.h) + v.shape)
            name = self.tensor("y", v.dtype, ["G", "H"] + list(v.shape), way, data)
            entries = [f"0 +: {n}" for n in v.shape]
            if v.shape and way == "inout" and self.chance(0.3):
                n = v.shape[-1]
                entries[-1] = f"0 +: {n} where {self.condition(Value(f'iota({n})', 'i32', (n,)))}"
            self.say(f"{name}[{', '.join(['i', 'j'] + entries)}] = {v};")
        if self.math:
            self.bounded()

    def bounded(self):
        for _ in range(3):
            v, t, f = self.find_tile(), self.r.choice(("f32", "f32", "f64")), self.r.choice(MATH)
            if not v:
                return
            x = self.as_type(v, t) if v.is_float else f"{t}({v}) * {t}(0.125)"
            name = self.tensor("m", t, ["G", "H"] + list(v.shape), "out", self.data(t, (self.g, self.h) + v.shape))
            self.applied[name] = f
            self.say(f"{name}[{', '.join(['i', 'j'] + [f'0 +: {n}' for n in v.shape])}] = {f}({x});")

    def program(self):
        self.g, self.h = self.r.choice(((1, 1), (2, 1), (3, 2), (5, 1), (1, 3)))
        for name in "ijn":
            self.pool.append(Value(name, "i32", ()))
        for _ in range(self.r.randint(1, 3)):
            self.read()
        for _ in range(self.budget):
            self.step()
        if self.chance(0.1):
            self.say("if i == 1 { return; }")
        self.outputs()
        self.params.append("n: i32")
        self.number = self.r.randint(0, 12)
        params = ",\n    ".join(self.params)
        self.source = ("\n".join(self.functions + [""]) + f"kernel k({params})\n    grid (i in G, j in H)\n{{\n" + "\n".join(self.lines) + "\n}\n").lstrip()
        return self


def fits(small, large):
    """Whether a shape broadcasts to another."""
    if len(small) > len(large):
        return False
    return all(a in (1, b) for a, b in zip(reversed(small), reversed(large)))


def nice_bits(t, n):
    """Bits of small multiples of 1/4 (floats) or of small integers."""
    if t in INTS:
        return n.astype(np.int64).astype(f"u{WIDTH[t] // 8}")
    v = n * 0.25
    if t == "bf16":
        return (v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if t == "f8e5m2":
        return (v.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    if t == "f8e4m3":  # 0, and two to the -2 .. 1 with a sign
        return np.where(n == 0, 0, (5 + np.abs(n) // 2 << 3) + np.where(n < 0, 128, 0)).astype(np.uint8)
    f = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[t]
    return v.astype(f).view(f"u{WIDTH[t] // 8}")


def blocks(lines, at):
    """Ranges of lines to try without: from `at`, the block that begins there, or its two ends alone."""
    if lines[at].endswith("{"):
        depth = len(lines[at]) - len(lines[at].lstrip())
        end = next((k for k in range(at + 1, len(lines)) if len(lines[k]) - len(lines[k].lstrip()) == depth and lines[k].strip() == "}"), None)
        if end:
            yield lines[:at] + lines[end + 1:]
            yield lines[:at] + lines[at + 1:end] + lines[end + 1:]
    for size in (16, 8, 4, 2, 1):
        if at - size + 1 >= 0:
            yield lines[:at - size + 1] + lines[at + 1:]


def shrink(source, fails):
    """A smaller program that still fails: lines are left out as long as `fails` holds of the rest."""
    lines, again = source.split("\n"), True
    while again:
        again, at = False, len(lines) - 1
        while at >= 0:
            smaller = next((rest for rest in blocks(lines, min(at, len(lines) - 1)) if fails("\n".join(rest))), None)
            if smaller:
                lines, again = smaller, True
            at = min(at - 1, len(lines) - 1)
    return "\n".join(lines)


def generate(seed, **options):
    return Generator(seed, **options).program()


def write(p, path):
    """The program and its arguments as two files: text, then for each argument a line and its bytes."""
    path.with_suffix(".tk").write_text(p.source)
    with open(path.with_suffix(".arg"), "wb") as f:
        for a in p.arguments:
            f.write(f"tensor {a.name} {a.dtype} {int(a.written)} {a.bits.ndim} {' '.join(map(str, a.bits.shape))}\n".encode())
            f.write(np.ascontiguousarray(a.bits).tobytes())
        f.write(f"int n {p.number}\n".encode())


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(generate(int(sys.argv[1])).source, end="")
    else:
        for at in range(int(sys.argv[2])):
            write(generate(int(sys.argv[1]) + at), pathlib.Path(sys.argv[3]) / f"{int(sys.argv[1]) + at}")
