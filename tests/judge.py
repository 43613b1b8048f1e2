# SPDX-License-Identifier: Apache-2.0
# What the tests of the shipped kernels share: arrays with guarded borders, error bounds, and the runner.
#
# U = 2^-24 is half a unit in the last place of f32, relative. Sums of n terms are allowed n * U * sum|term|, and what is
# stored is rounded once more to the output's type. Functions of one argument are allowed 4 units in the last place: 8 U.
import functools
import pathlib
import re
import sys
import time
import traceback

import numpy as np

import tkclib

U = 2.0 ** -24
FN = 8 * U
TINY = 2.0 ** -149
# Bits of precision, exponent of the least subnormal, greatest finite value.
TYPES = {"f16": (11, -24, 65504.0), "bf16": (8, -133, 3.3895313892515355e38),
         "f32": (24, -149, 3.4028234663852886e38), "f64": (53, -1074, np.finfo(np.float64).max)}
GUARD = 3  # elements around each array and, for some layouts, each row
LAYOUTS = ("dense", "gap", "negative", "transposed", "step")


class Guarded:
    """An array laid out in a larger buffer, whose other elements must stay what they are."""

    def __init__(self, shape, dtype, layout):
        shape = tuple(shape)
        storage = tkclib.STORAGE[dtype]
        if layout == "dense":
            whole = (int(np.prod(shape)) + 2 * GUARD,)
        elif layout == "transposed":
            whole = tuple(n + 2 * GUARD for n in reversed(shape))
        elif layout == "step":
            whole = tuple(n + 2 * GUARD for n in shape[:-1]) + (2 * shape[-1] + 2 * GUARD,)
        else:
            whole = tuple(n + 2 * GUARD for n in shape)
        self.buffer = np.empty(whole, storage)
        self.inside = np.zeros(whole, bool)
        self.view(self.inside, shape, layout)[...] = True
        self.array = tkclib.Array(self.view(self.buffer, shape, layout), dtype)

    @staticmethod
    def view(buffer, shape, layout):
        if layout == "dense":
            return buffer[GUARD:buffer.size - GUARD].reshape(shape)
        if layout == "transposed":
            return buffer[tuple(slice(GUARD, n - GUARD) for n in buffer.shape)].T
        if layout == "step":
            rows = tuple(slice(GUARD, n - GUARD) for n in buffer.shape[:-1])
            return buffer[rows + (slice(GUARD, GUARD + 2 * shape[-1], 2),)]
        inner = buffer[tuple(slice(GUARD, n - GUARD) for n in buffer.shape)]
        return inner[(slice(None, None, -1),) * len(shape)] if layout == "negative" else inner

    def fill(self, byte):
        self.buffer.reshape(-1).view(np.uint8)[...] = byte
        self.before = self.buffer.copy()

    def check(self, what):
        bytes_now = np.ascontiguousarray(self.buffer[~self.inside]).view(np.uint8)
        bytes_then = np.ascontiguousarray(self.before[~self.inside]).view(np.uint8)
        assert (bytes_now == bytes_then).all(), f"{what}: written outside the tensor"


class In(Guarded):
    """Input: NaN (integers: the greatest value) all around."""

    def __init__(self, values, dtype, layout="dense"):
        values = values if isinstance(values, tkclib.Array) else tkclib.array(values, dtype)
        super().__init__(values.shape, dtype, layout)
        if dtype in tkclib.FLOATS:
            self.buffer[...] = tkclib.array(np.nan, dtype).bits
        else:
            self.buffer[...] = True if dtype == "bool" else np.iinfo(self.buffer.dtype).max
        self.array.bits[...] = values.bits
        self.before = self.buffer.copy()

    def f64(self):
        return self.array.f64()


class Out(Guarded):
    """Output: a pattern all around, checked after the launch."""

    def __init__(self, shape, dtype, layout="dense"):
        super().__init__(shape, dtype, layout)
        self.fill(1 if dtype == "bool" else 0x5A)

    def f64(self):
        return self.array.f64()


def launch(kernel, **args):
    """Launches with Guarded arguments and checks their borders, and that inputs have not changed."""
    kernel(**{name: a.array if isinstance(a, Guarded) else a for name, a in args.items()})
    for name, a in args.items():
        if isinstance(a, Guarded):
            a.check(name)
        if isinstance(a, In):
            same = a.array.bits.tobytes() == before(a).tobytes()
            assert same, f"{name}: an input was written"


def before(a):
    """The array as it was before the launch."""
    offset = a.array.bits.ctypes.data - a.buffer.ctypes.data
    return np.ndarray(a.array.bits.shape, a.buffer.dtype, a.before, offset, a.array.bits.strides)


def rounding(x, dtype):
    """At most what one rounding to dtype changes of x."""
    bits, low, _ = TYPES[dtype]
    return np.maximum(np.abs(x) * 2.0 ** -bits, 2.0 ** (low - 1))


@functools.cache
def math_bounds():
    """Functions to their error bounds in units of the last place, f32 and f64, from the table of docs/math.md."""
    path = pathlib.Path(__file__).resolve().parent.parent / "docs" / "math.md"
    found = re.findall(r"^\| (\w+) \| ([\d.]+)\*? \|[^|]*\|[^|]*\| ([\d.]+)\*? \|", path.read_text(encoding="utf-8"), re.M)
    return {name: (float(narrow), float(wide)) for name, narrow, wide in found}


worst = {}  # of this test: greatest error over its bound


def close(got, want, bound, dtype, what=""):
    """got within bound of want, and then rounded once to dtype; NaN for NaN, infinity for infinity."""
    got, want, bound = np.broadcast_arrays(np.asarray(got, np.float64), want, bound)
    assert np.array_equal(np.isnan(got), np.isnan(want)), f"{what}: NaN at {np.argwhere(np.isnan(got) != np.isnan(want))[:3]}"
    fine = np.isfinite(want)
    with np.errstate(all="ignore"):
        limit = bound + rounding(np.abs(want) + bound, dtype)
        overflows = fine & (np.abs(want) + limit > TYPES[dtype][2]) & (got == np.sign(want) * np.inf)
        error = np.abs(got - want)
    exact = ~fine & ~np.isnan(want)
    assert (got[exact] == want[exact]).all(), f"{what}: infinities differ"
    judged = fine & ~overflows
    ratio = np.where(judged, error / limit, 0.0)
    if ratio.size:
        worst["ratio"] = max(worst.get("ratio", 0.0), float(np.nan_to_num(ratio, nan=np.inf).max()))
    bad = judged & ~(error <= limit)
    if bad.any():
        at = tuple(np.argwhere(bad)[0])
        raise AssertionError(f"{what}: {bad.sum()} of {bad.size} wrong, first at {at}: {got[at]!r} for {want[at]!r}, "
                             f"error {error[at]:.3g}, bound {limit[at]:.3g}")


def equal(got, want, what=""):
    """Equality of values; NaN equals NaN."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape} for {want.shape}"
    same = (got == want) | ((got != got) & (want != want))
    if not same.all():
        at = tuple(np.argwhere(~same)[0])
        raise AssertionError(f"{what}: {(~same).sum()} of {same.size} differ, first at {at}: {got[at]!r} for {want[at]!r}")


def refused(call, *words):
    """call fails, and its text has the words."""
    try:
        call()
    except tkclib.TkcError as e:
        for word in words:
            assert word in str(e), f"no {word!r} in: {e}"
        return
    raise AssertionError("not refused")


_tests = []


def test(*cases):
    """Registers a function as one test, or as one for each tuple of arguments."""
    def register(function):
        for case in cases or [()]:
            case = case if isinstance(case, tuple) else (case,)
            name = " ".join([function.__name__] + [str(part) for part in case])
            _tests.append((name, function, case))
        return function
    return register


def tests_of(module):
    """What a module of this name has registered: names, functions, arguments."""
    return [t for t in _tests if t[1].__module__ == module]


def run(name, function, case):
    """How a test ended: ok, refused, failed, or lost: the device with it; and why."""
    worst.clear()
    tkclib.refusals.clear()
    tkclib.launches[0] = 0
    try:
        function(*case)
        if tkclib.refusals and not tkclib.launches[0]:
            raise tkclib.Refused("nothing ran", tkclib.refusals[0])
    except tkclib.Refused as e:
        return "refused", e.text
    except Exception as e:
        place = traceback.extract_tb(e.__traceback__)
        lines = ", ".join(str(f.lineno) for f in place if f.filename == function.__code__.co_filename)
        return "lost" if isinstance(e, tkclib.DeviceError) else "failed", f"line {lines}: {type(e).__name__}: {e}"
    return "ok", ""


def main(may_refuse=True):
    """Runs the tests whose names contain the words given; -v prints each with its time and greatest error / bound. Ends early where
    the device is lost. What the back end refuses fails on the CPU, and everywhere if not may_refuse."""
    verbose = "-v" in sys.argv
    words = [a for a in sys.argv[1:] if a != "-v"]
    count = {"ok": 0, "refused": 0, "failed": 0, "lost": 0}
    for name, function, case in _tests:
        if not all(word in name for word in words):
            continue
        start = time.monotonic()
        end, text = run(name, function, case)
        count[end] += 1
        if end == "ok" and verbose:
            ratio = f"  error/bound {worst['ratio']:.3f}" if worst else ""
            print(f"ok {name}  {time.monotonic() - start:.2f} s{ratio}", flush=True)
        elif end != "ok":
            print(f"refused {name}: {text.split(chr(10))[0]}" if end == "refused" else f"FAILED {name} ({text})", flush=True)
        if end == "lost":
            break
    failed = count["failed"] + count["lost"]
    refusals = f", {count['refused']} refused" if count["refused"] else ""
    print(f"{count['ok']} passed, {failed} failed{refusals}")
    sys.exit(1 if failed or (count["refused"] and (tkclib.DEVICE == "cpu" or not may_refuse)) else 0)
