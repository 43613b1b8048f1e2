# SPDX-License-Identifier: Apache-2.0
"""Probes of what threads do together or to memory: shuffles, votes, atomics, barriers, mbarriers."""
import numpy as np

from probe import elementwise, floats, integers, kernel, pack, rng, words


def shuffles():
    r, n = rng("shuffle"), 256
    a = words(r, n, 32)
    for mode in ("up", "down", "bfly", "idx"):
        b = words(r, n, 6)
        c = (words(r, n, 5) << np.uint64(8)) | words(r, n, 5)
        c[:64] = 0 if mode == "up" else 31
        c[64:128] = {"up": 0x1800, "down": 0x181f, "bfly": 0x181f, "idx": 0x181f}[mode]
        yield elementwise(f"shfl {mode}", [f"shfl.sync.{mode}.b32 $d|%p1, %a, %b, %c, -1;", "selp.b32 $d, 1, 0, %p1;"], "b32", ["b32"] * 3, [a, b, c], block=32)
    few = words(r, n, 2)
    part = "and.b32 %r2, %t, 31; setp.lt.u32 %p2, %r2, 13; mov.b32 $d, 77;"
    yield elementwise("shfl part", [f"{part} @%p2 shfl.sync.idx.b32 $d|%p1, %a, 5, 31, 0x1fff;"], "b32", ["b32"], [a], block=32)
    for what in ("all", "any", "uni"):
        for limit in (1, 3, 4):
            yield elementwise(f"vote {what} {limit}", [f"setp.lt.u32 %p1, %a, {limit}; vote.sync.{what}.pred %p3, %p1, -1; selp.b32 $d, 1, 0, %p3;"], "b32", ["b32"], [few], block=32)
    yield elementwise("ballot", ["setp.lt.u32 %p1, %a, 2; vote.sync.ballot.b32 $d, %p1, -1;"], "b32", ["b32"], [few], block=32)
    yield elementwise("ballot part", [f"{part} setp.lt.u32 %p1, %a, 2; @%p2 vote.sync.ballot.b32 $d, %p1, 0x1fff;"], "b32", ["b32"], [few], block=32)
    few[:32] = 3
    yield elementwise("match any", ["match.any.sync.b32 $d, %a, -1;"], "b32", ["b32"], [few], block=32)
    yield elementwise("match any b64", ["match.any.sync.b64 $d, %a, -1;"], "b32", ["b64"], [few << np.uint64(33)], block=32)
    yield elementwise("match all", ["match.all.sync.b32 $d|%p1, %a, -1;", "selp.b32 $d, 1, 0, %p1;"], "b32", ["b32"], [few], block=32)
    for op in ("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"):
        yield elementwise(f"redux {op}", [f"redux.sync.{op} $d, %a, -1;"], "b32", ["b32"], integers(32, n, 1, "redux"), block=32)
        yield elementwise(f"redux part {op}", [f"{part} @%p2 redux.sync.{op} $d, %a, 0x1fff;"], "b32", ["b32"], integers(32, 64, 1, "redux"), block=32)
    yield elementwise("elect", ["elect.sync $d|%p1, -1;", "selp.b32 $d, 1, 0, %p1;"], "b32", ["b32"], [few[:32]], block=32)
    yield elementwise("elect part", ["and.b32 %r2, %t, 31; setp.ge.u32 %p2, %r2, 9; mov.b32 $d, 77; setp.ne.b32 %p1, 0, 0; @%p2 elect.sync $d|%p1, 0xfffffe00;"], "b32", ["b32"],
                      [few[:32]], block=32)
    yield elementwise("lanes", [f"mov.u32 $d, %{s};" for s in ("laneid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge", "ctaid.x", "ntid.x", "nctaid.x")],
                      "b32", ["b32"], [a], block=64)
    for op, dst in (("popc.u32", "b32"),):
        yield elementwise(f"bar.red {op}", ["setp.lt.u32 %p1, %a, 2; bar.red.popc.u32 $d, 0, %p1;"], dst, ["b32"], [few], block=128)
    for op in ("and", "or"):
        yield elementwise(f"bar.red {op}", [f"setp.lt.u32 %p1, %a, 4; bar.red.{op}.pred %p3, 1, %p1; selp.b32 $d, 1, 0, %p3;"], "b32", ["b32"], [few], block=128)


def atomics():
    """One thread an address."""
    for bits, types in ((32, ("u32", "s32")), (64, ("u64", "s64"))):
        reg, p = f"b{bits}", integers(bits, 64, 2, "atom")
        ops = [f"{op}.{t}" for op in ("min", "max") for t in types] + [f"add.{types[0]}"] + [f"{op}.b{bits}" for op in ("and", "or", "xor", "exch")]
        ops += ["inc.u32", "dec.u32", "add.s32"] if bits == 32 else []
        for op in ops:
            yield from atom(op, reg, p)
        yield from cas(reg, p)
    yield from atom("exch.b128", None, None) if False else ()
    yield from cas("b16", integers(16, 64, 2, "cas"))
    for t, reg in (("f32", "b32"), ("f64", "b64"), ("noftz.f16", "b16"), ("noftz.f16x2", "b32"), ("noftz.bf16", "b16"), ("noftz.bf16x2", "b32")):
        kind = t.split(".")[-1]
        if "x2" in kind:
            low, high = floats(kind[:-2], 128, 2, "low"), floats(kind[:-2], 128, 2, "high")
            p = [x | y[::-1] << np.uint64(16) for x, y in zip(low, high)]
        else:
            p = floats(kind, 128, 2, "atom")
        yield from atom(f"add.{t}", reg, p)


def atom(op, reg, points):
    for space, at in (("global", "%ga"), ("shared", "%sa")):
        if space == "shared" and ("noftz" in op and "x2" not in op and False):
            continue
        both = [f"st.{space}.{reg} [{at}], %a; atom.{space}.{op} $d, [{at}], %b;", f"ld.{space}.{reg} $d, [{at}];"]
        yield elementwise(f"atom {space} {op}", both, reg, [reg] * 2, points, shared="s")
    red = op if not op.startswith("exch") else None
    if red:
        yield elementwise(f"red {op}", [f"st.global.{reg} [%ga], %a; red.global.{op} [%ga], %b; ld.global.{reg} $d, [%ga];"], reg, [reg] * 2, points, shared="s")


def cas(reg, points):
    """Half of the points meet what is there."""
    a, b = points
    expected = np.where(np.arange(len(a)) % 2 == 0, a, b)
    for space, at in (("global", "%ga"), ("shared", "%sa")):
        both = [f"st.{space}.{reg} [{at}], %a; atom.{space}.cas.{reg} $d, [{at}], %c, %b;", f"ld.{space}.{reg} $d, [{at}];"]
        yield elementwise(f"atom {space} cas.{reg}", both, reg, [reg] * 3, [a, b, expected], shared="s")


# ---- mbarriers: which waits succeed -------------------------------------------------------------

class Log:
    """Statements of one thread, with what they find out stored as words."""

    def __init__(self, count):
        self.text, self.words = [f".shared .align 8 .b64 bar; mov.b32 %r1, bar; setp.ne.u32 %p1, %t, 0; @%p1 bra DONE; mbarrier.init.shared.b64 [%r1], {count};"], 0

    def __call__(self, text):
        self.text.append(text)

    def store(self, value="%r5"):
        self.text.append(f"st.global.b32 [%out+{4 * self.words}], {value};")
        self.words += 1

    def parity(self):
        """Whether the phases of parity 0 and of 1 count as completed."""
        for p in (0, 1):
            self(f"mbarrier.test_wait.parity.shared.b64 %p2, [%r1], {p}; selp.b32 %r5, 1, 0, %p2;")
            self.store()

    def state(self, register):
        """Of a state that an arrive gave: whether its phase is over, and what was pending."""
        self(f"mbarrier.test_wait.shared.b64 %p2, [%r1], {register}; selp.b32 %r5, 1, 0, %p2;")
        self.store()
        self(f"mbarrier.pending_count.b64 %r5, {register};")
        self.store()

    def probe(self, name):
        return kernel(f"mbarrier {name}", " ".join(self.text) + " DONE: bar.sync 0;", b"\0" * 16, 4 * self.words)


def mbarriers():
    for count in (1, 2, 5):
        log = Log(count)
        log.parity()
        for k in range(2 * count + 1):
            log("mbarrier.arrive.shared.b64 %q1, [%r1];")
            log.state("%q1")
            log.parity()
        yield log.probe(f"arrive {count}")
    log = Log(6)
    for k in (2, 3, 1, 6, 4):
        log(f"mbarrier.arrive.shared.b64 %q{k}, [%r1], {k};")
        log.state(f"%q{k}")
        log.parity()
    yield log.probe("counts")
    log = Log(3)
    for k in range(4):
        log("mbarrier.arrive.noComplete.shared.b64 %q1, [%r1], 2;" if k % 2 == 0 else "mbarrier.arrive.shared.b64 %q1, [%r1];")
        log.state("%q1")
        log.parity()
    yield log.probe("no complete")
    log = Log(4)
    for k in range(3):
        log("mbarrier.arrive_drop.shared.b64 %q1, [%r1];")
        log.state("%q1")
        for _ in range(4 - k):
            log("mbarrier.arrive.shared.b64 %q2, [%r1];")
            log.state("%q2")
            log.parity()
    yield log.probe("drop")
    log = Log(2)
    for k in range(3):
        log("mbarrier.arrive.expect_tx.shared.b64 %q1, [%r1], 64;")
        log.state("%q1")
        log("mbarrier.expect_tx.relaxed.cta.shared.b64 [%r1], 32;")
        log("mbarrier.arrive.shared.b64 %q2, [%r1];")
        log.state("%q2")
        log.parity()
        log("mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 64;")
        log.parity()
        log("mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 32;")
        log.parity()
        log.state("%q1")
    yield log.probe("bytes")
    log = Log(2)
    log("mbarrier.complete_tx.relaxed.cta.shared.b64 [%r1], 16; mbarrier.arrive.shared.b64 %q1, [%r1];")
    log.parity()
    log("mbarrier.arrive.expect_tx.shared.b64 %q1, [%r1], 16;")
    log.parity()
    log("mbarrier.inval.shared.b64 [%r1]; mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.shared.b64 %q1, [%r1];")
    log.state("%q1")
    log.parity()
    yield log.probe("bytes first")


def probes():
    for family in (shuffles, atomics, mbarriers):
        yield from family()
