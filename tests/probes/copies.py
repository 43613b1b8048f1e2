# SPDX-License-Identifier: Apache-2.0
"""Probes of copies: matrices of shared memory, asynchronous, bulk and tensor copies, clusters."""
import numpy as np

from probe import Map, floats, kernel, near, rng, words

DUMP = ("mov.u32 %r40, %t; DUMP: mad.lo.u32 %r41, %r40, 4, %r9; ld.shared.b32 %r42, [%r41]; mul.wide.u32 %q20, %r40, 4; add.u64 %q20, %q20, %out; st.global.b32 [%q20], %r42;"
        " add.u32 %r40, %r40, %ntid.x; setp.lt.u32 %p7, %r40, {words}; @%p7 bra DUMP;")
FILL = ("mov.u32 %r40, %t; FILL: mad.lo.u32 %r41, %r40, 4, %r9; mul.wide.u32 %q20, %r40, 4; add.u64 %q20, %q20, %in; ld.global.b32 %r42, [%q20+{at}]; st.shared.b32 [%r41], %r42;"
        " add.u32 %r40, %r40, %ntid.x; setp.lt.u32 %p7, %r40, {words}; @%p7 bra FILL;")
PAINT = ("mov.u32 %r40, %t; PAINT: mad.lo.u32 %r41, %r40, 4, %r9; st.shared.b32 [%r41], 0x5a5a5a5a;"
         " add.u32 %r40, %r40, %ntid.x; setp.lt.u32 %p7, %r40, {words}; @%p7 bra PAINT;")
LOOPS = "mov.u32 %r39, %ntid.x;"


def loop(text, words, at=0):
    return (LOOPS + text).replace("%r40, %r40, %ntid.x", "%r40, %r40, %r39").format(words=words, at=at)


def shared(bytes_):
    return f".shared .align 1024 .b8 s[{bytes_}]; mov.b32 %r9, s; "


def random_bytes(name, n):
    return words(rng(name), n // 4, 32).astype("<u4").tobytes()


# ---- Matrices -----------------------------------------------------------------------------------

def matrices():
    """Rows in any order; each lane's row address comes after the data."""
    r = rng("rows")
    rows = (r.permutation(64)[:32] * 16).astype("<u4").tobytes()
    data = random_bytes("matrix", 1024) + rows
    at = "mul.wide.u32 %q1, %t, 4; add.u64 %q1, %q1, %in; ld.global.b32 %r1, [%q1+1024]; add.u32 %r1, %r1, %r9; add.u64 %q2, %out, 0; mad.wide.u32 %q2, %t, 4, %out; "
    for x in (1, 2, 4):
        regs = "{" + ", ".join(f"%r{10 + k}" for k in range(x)) + "}"
        store = " ".join(f"st.global.b32 [%q2+{128 * k}], %r{10 + k};" for k in range(x))
        load = " ".join(f"ld.global.b32 %r{10 + k}, [%q1+{128 * k}];" for k in range(x))
        for trans in ("", ".trans"):
            yield kernel(f"ldmatrix x{x}{trans}", shared(1024) + loop(FILL, 256) + f"bar.sync 0; {at} ldmatrix.sync.aligned.m8n8.x{x}{trans}.shared.b16 {regs}, [%r1]; {store}",
                         data, 128 * x)
            yield kernel(f"stmatrix x{x}{trans}", shared(1024) + loop(PAINT, 256) + f"bar.sync 0; {at} {load} stmatrix.sync.aligned.m8n8.x{x}{trans}.shared.b16 [%r1], {regs}; bar.sync 0;"
                         + loop(DUMP, 256), data, 1024)
    yield kernel("movmatrix", "mul.wide.u32 %q1, %t, 4; add.u64 %q2, %q1, %out; add.u64 %q1, %q1, %in; ld.global.b32 %r1, [%q1]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;"
                 " st.global.b32 [%q2], %r2;", data, 128)


# ---- cp.async -----------------------------------------------------------------------------------

def cp_async():
    data = random_bytes("cp", 1024)
    at = "mul.lo.u32 %r1, %t, 16; add.u32 %r2, %r9, %r1; cvt.u64.u32 %q1, %r1; add.u64 %q1, %q1, %in; "
    end = " cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; "
    for cache, size in (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)):
        yield kernel(f"cp.async {cache} {size}", shared(512) + loop(PAINT, 128) + "bar.sync 0; " + at + f"cp.async.{cache}.shared.global [%r2], [%q1], {size};" + end + loop(DUMP, 128), data, 512)
        yield kernel(f"cp.async {cache} {size} part", shared(512) + loop(PAINT, 128) + "bar.sync 0; " + at + f"and.b32 %r3, %t, 31; min.u32 %r3, %r3, {size}; "
                     f"cp.async.{cache}.shared.global [%r2], [%q1], {size}, %r3;" + end + loop(DUMP, 128), data, 512)
        yield kernel(f"cp.async {cache} {size} ignored", shared(512) + loop(PAINT, 128) + "bar.sync 0; " + at + "and.b32 %r3, %t, 1; setp.ne.u32 %p1, %r3, 0; "
                     f"cp.async.{cache}.shared.global [%r2], [%q1], {size}, %p1;" + end + loop(DUMP, 128), data, 512)
    yield kernel("cp.async mbarrier", ".shared .align 8 .b64 bar; mov.b32 %r10, bar; setp.ne.u32 %p1, %t, 0; @%p1 bra A; mbarrier.init.shared.b64 [%r10], 32; A: bar.sync 0; " + shared(512) + at
                 + "cp.async.cg.shared.global [%r2], [%q1], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [%r10]; B: mbarrier.try_wait.parity.shared.b64 %p2, [%r10], 0; @!%p2 bra B; "
                 + loop(DUMP, 128), data, 512)


# ---- Bulk copies --------------------------------------------------------------------------------

BARRIER = (".shared .align 8 .b64 bar; mov.b32 %r10, bar; setp.ne.u32 %p1, %t, 0; @%p1 bra A; mbarrier.init.shared.b64 [%r10], 1; fence.mbarrier_init.release.cluster; "
           "fence.proxy.async.shared::cta; A: bar.sync 0; ")
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r10], 0; @!%p2 bra W; "


def bulk():
    data = random_bytes("bulk", 1024)
    yield kernel("bulk load", BARRIER + shared(512) + "@%p1 bra C; mbarrier.arrive.expect_tx.shared.b64 %q1, [%r10], 496; "
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%in], 336, [%r10]; add.u32 %r11, %r9, 336; add.u64 %q2, %in, 512; "
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%q2], 160, [%r10]; C: " + WAIT + loop(DUMP, 124), data, 496)
    yield kernel("bulk store", shared(512) + loop(FILL, 128) + "fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra C; add.u64 %q1, %out, 64; "
                 "cp.async.bulk.global.shared::cta.bulk_group [%q1], [%r9], 208; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; C: bar.sync 0;", data, 512)
    # Reductions: the second half of the data is what is there before.
    ops = [("add.u32", "u32"), ("add.s32", "u32"), ("add.u64", "u64"), ("min.u32", "u32"), ("min.s32", "u32"), ("max.u32", "u32"), ("max.s32", "u32"), ("min.u64", "u64"), ("max.s64", "u64"),
           ("inc.u32", "u32"), ("dec.u32", "u32"), ("and.b32", "u32"), ("or.b32", "u32"), ("xor.b32", "u32"), ("and.b64", "u64"), ("or.b64", "u64"), ("xor.b64", "u64"),
           ("add.f16", "f16"), ("add.noftz.f16", "f16"), ("add.noftz.bf16", "bf16"), ("min.f16", "f16"), ("max.f16", "f16"), ("min.bf16", "bf16"), ("max.bf16", "bf16"), ("add.f32", "f32"), ("add.f64", "f64")]
    for op, t in ops:
        if op == "add.f16":
            continue
        size = {"u32": 4, "u64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}[t]
        n = 256 // size
        if t[0] == "u":
            r = rng("bulk reduce" + op)
            a, b = words(r, n, 8 * size), words(r, n, 8 * size)
            a[: n // 3] = b[: n // 3] + np.uint64(1)
        else:
            a, b = (p[:n] for p in floats(t, max(n, 64), 2, "bulk"))
        both = a.astype(f"<u{size}").tobytes() + b.astype(f"<u{size}").tobytes()
        yield kernel(f"bulk reduce {op}", shared(256) + loop(FILL, 64) + "mad.wide.u32 %q1, %t, 8, %in; ld.global.b64 %q2, [%q1+256]; mad.wide.u32 %q1, %t, 8, %out; st.global.b64 [%q1], %q2; "
                     "fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra C; "
                     f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%out], [%r9], 256; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; C: bar.sync 0;", both, 256)


# ---- Tensor copies ------------------------------------------------------------------------------

def coordinates(c):
    return "{" + ", ".join(map(str, c)) + "}"


def tensor_load(name, m, at, box_bytes, data, more=0):
    body = (BARRIER + shared(box_bytes + more) + loop(PAINT, (box_bytes + more) // 4) + f"fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra C; mbarrier.arrive.expect_tx.shared.b64 %q1, [%r10], {box_bytes}; "
            f"cvta.param.u64 %q5, k_map; cp.async.bulk.tensor.{len(at)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r9], [%q5, {coordinates(at)}], [%r10]; C: "
            + WAIT + loop(DUMP, (box_bytes + more) // 4))
    return kernel(f"tensor load {name}", body.replace("cvta.param.u64 %q5, k_map", "mov.b64 %q5, k_map; cvta.param.u64 %q5, %q5"), data, box_bytes + more, tensor_map=m)


def tensor_store(name, m, at, box_bytes, data, out_bytes, op=""):
    what = f"cp.reduce.async.bulk.tensor.{len(at)}d.global.shared::cta{op}" if op else f"cp.async.bulk.tensor.{len(at)}d.global.shared::cta"
    init = ""
    if op:  # what is there before: the data's second part
        init = (f"mov.u32 %r39, %ntid.x; mov.u32 %r40, %t; INIT: mul.wide.u32 %q20, %r40, 4; add.u64 %q21, %q20, %out; add.u64 %q20, %q20, %in; ld.global.b32 %r42, [%q20+{box_bytes}];"
                f" st.global.b32 [%q21], %r42; add.u32 %r40, %r40, %r39; setp.lt.u32 %p7, %r40, {out_bytes // 4}; @%p7 bra INIT; ")
    body = (shared(box_bytes) + loop(FILL, box_bytes // 4) + init + "fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra C; mov.b64 %q5, k_map; cvta.param.u64 %q5, %q5; "
            f"{what}.tile.bulk_group [%q5, {coordinates(at)}], [%r9]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; C: bar.sync 0;")
    return kernel(f"tensor {'reduce' + op if op else 'store'} {name}", body, data, out_bytes, tensor_map=m)


def tensors():
    big = random_bytes("tensor", 16384)
    swizzles = {0: "none", 1: "32", 2: "64", 3: "128"}
    for swizzle, word in swizzles.items():
        inner = {0: 64, 1: 16, 2: 32, 3: 64}[swizzle]
        m = dict(swizzle=swizzle)
        yield tensor_load(f"{word} 2d", Map("u16", [72, 50], [144], [inner, 16], **m), (8, 5), inner * 32, big)
        yield tensor_load(f"{word} edge", Map("u16", [72, 50], [144], [inner, 16], **m), (72 - inner // 2, -3), inner * 32, big)
        yield tensor_store(f"{word} 2d", Map("u16", [72, 50], [144], [inner, 16], place="out", **m), (8, 40), inner * 32, big, 7200)
    yield tensor_load("2d any column", Map("u16", [72, 50], [144], [64, 16]), (3, 5), 2048, big)
    yield tensor_load("2d negative row", Map("u16", [72, 50], [144], [64, 16]), (8, -3), 2048, big)
    yield tensor_load("2d negative column", Map("u16", [72, 50], [144], [64, 16]), (-8, 3), 2048, big)
    yield tensor_load("2d past", Map("u16", [72, 50], [144], [64, 16]), (8, 40), 2048, big)
    yield tensor_load("2d outside", Map("u16", [72, 50], [144], [64, 16]), (80, 60), 2048, big)
    yield tensor_load("1d", Map("u8", [1000], [], [256]), (896,), 256, big)
    yield tensor_load("1d any", Map("u8", [1000], [], [256]), (900,), 256, big)
    yield tensor_load("1d before", Map("u32", [1000], [], [64]), (-12,), 256, big)
    yield tensor_load("3d", Map("u32", [20, 12, 10], [80, 960], [8, 5, 3]), (16, 9, 8), 480, big)
    yield tensor_load("4d", Map("u16", [24, 6, 5, 4], [48, 288, 1440], [16, 3, 2, 2], swizzle=1), (-8, 4, 1, 3), 384, big)
    yield tensor_load("5d", Map("u8", [48, 4, 3, 5, 3], [48, 192, 576, 2880], [32, 2, 2, 3, 2]), (16, 3, -1, 1, 2), 768, big)
    yield tensor_load("steps", Map("u16", [64, 40], [128], [32, 8], steps=[1, 2]), (8, 3), 256, big)
    yield tensor_load("steps inner", Map("u32", [64, 32], [256], [32, 8], steps=[2, 3]), (4, 20), 384, big)
    special = near("f32", rng("tensor f32"), 4096, -130, 127).astype("<u4").tobytes()
    for t, size in (("f32", 4), ("f32.ftz", 4), ("tf32", 4), ("tf32.ftz", 4), ("f16", 2), ("bf16", 2), ("f64", 8), ("s64", 8)):
        for nan in (0, 1) if t[0] != "s" else (0,):
            inner = 64 // size
            yield tensor_load(f"{t} fill {nan}", Map(t, [inner * 2 - inner // 2, 9], [128], [inner, 4], nan=nan), (inner, 7), 256, special if t[0] != "s" else big)
    yield tensor_load("f64 nan", Map("f64", [20], [], [16], nan=1), (12,), 128, big)
    for op, t in ((".add", "u32"), (".min", "s32"), (".max", "u32"), (".inc", "u32"), (".dec", "u32"), (".and", "u32"), (".or", "u64"), (".xor", "u32"), (".add", "f16"), (".add", "bf16"), (".add", "f32"),
                  (".min", "f16"), (".max", "bf16"), (".add", "u64")):
        size = {"u32": 4, "s32": 4, "u64": 8, "f16": 2, "bf16": 2, "f32": 4}[t]
        n = 32 // size
        m = Map(t, [64 // size - 16 // size, 6], [64], [n, 4], place="out")
        if t[0] in "us":
            data = big[:1024]
        else:
            r = rng("tensor reduce" + t)
            data = near(t, r, 1024 // size, -3, 3).astype(f"<u{size}").tobytes()
        yield tensor_store(f"{t}", m, (n // 2, 3), 128, data, 384, op)
    yield tensor_store("3d", Map("u32", [20, 6, 5], [80, 480], [8, 4, 3], place="out"), (16, 1, 3), 384, big, 2400)
    yield tensor_store("2d negative", Map("u16", [72, 50], [144], [64, 16], place="out"), (-8, -3), 2048, big, 7200)
    yield tensor_store("3d edge", Map("u32", [20, 6, 5], [80, 480], [8, 4, 3], place="out"), (16, -1, 3), 384, big, 2400)


# ---- Clusters -----------------------------------------------------------------------------------

def clusters():
    data = random_bytes("cluster", 1024)

    def two(name, body, out, **more):
        p = kernel(f"cluster {name}", body, data, out, grid=(4, 1, 1), **more)
        p.text = p.text.replace(")\n{\n.reg", ") .reqntid 32, 1, 1 .explicitcluster .reqnctapercluster 2, 1, 1\n{\n.reg")
        return p

    names = ("cluster_ctaid.x", "cluster_nctaid.x", "cluster_ctarank", "cluster_nctarank", "clusterid.x", "nclusterid.x", "ctaid.x")
    yield two("ids", "mad.wide.u32 %q1, %i, 28, %out; " + " ".join(f"mov.u32 %r1, %{s}; st.global.b32 [%q1+{4 * k}], %r1;" for k, s in enumerate(names)), 4 * 32 * 28)
    own = "mov.u32 %r20, %cluster_ctarank; xor.b32 %r21, %r20, 1; "
    sync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; "
    at = "mad.wide.u32 %q1, %i, 4, %in; ld.global.b32 %r1, [%q1]; mad.wide.u32 %q2, %i, 4, %out; mad.lo.u32 %r2, %t, 4, %r9; "
    yield two("exchange", shared(128) + own + at + "st.shared.b32 [%r2], %r1; " + sync + "mapa.shared::cluster.u32 %r3, %r2, %r21; ld.shared::cluster.b32 %r4, [%r3]; " + sync
              + "st.global.b32 [%q2], %r4;", 512)
    yield two("atomics", shared(128) + own + at + "st.shared.b32 [%r2], %t; " + sync + "mapa.shared::cluster.u32 %r3, %r2, %r21; atom.shared::cluster.add.u32 %r4, [%r3], %r1; " + sync
              + "ld.shared.b32 %r5, [%r2]; add.u32 %r5, %r5, %r4; st.global.b32 [%q2], %r5;", 512)
    yield two("rank", shared(128) + own + at + "mapa.shared::cluster.u32 %r3, %r2, %r21; getctarank.shared::cluster.u32 %r4, %r3; cvta.shared::cluster.u64 %q3, %q3; st.global.b32 [%q2], %r4;"
              .replace("cvta.shared::cluster.u64 %q3, %q3; ", ""), 512)
    yield two("st.async", shared(128) + BARRIER + own + at + "@%p1 bra X; mbarrier.arrive.expect_tx.shared.b64 %q3, [%r10], 128; X: " + sync
              + "mapa.shared::cluster.u32 %r3, %r2, %r21; mapa.shared::cluster.u32 %r4, %r10, %r21; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r3], %r1, [%r4]; "
              + WAIT + "ld.shared.b32 %r5, [%r2]; st.global.b32 [%q2], %r5; " + sync, 512)
    yield two("bulk multicast", shared(256) + BARRIER + own + "@%p1 bra X; mbarrier.arrive.expect_tx.shared.b64 %q3, [%r10], 256; X: " + sync + "@%p1 bra Y; mul.lo.u32 %r5, %r20, 128; add.u32 %r6, %r9, %r5; "
              "cvt.u64.u32 %q4, %r5; add.u64 %q4, %q4, %in; mov.u32 %r7, %clusterid.x; mad.wide.u32 %q4, %r7, 256, %q4; mov.b16 %h1, 3; "
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r6], [%q4], 128, [%r10], %h1; Y: " + WAIT
              + "mad.wide.u32 %q2, %i, 8, %out; mad.lo.u32 %r2, %t, 8, %r9; ld.shared.b64 %q6, [%r2]; st.global.b64 [%q2], %q6; " + sync, 1024)
    yield two("bulk between", BARRIER + own + ".shared .align 16 .b8 z[512]; mov.b32 %r12, z; " + shared(512) + loop(FILL, 128) + sync + "fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra C; "
                 "mbarrier.arrive.expect_tx.shared.b64 %q1, [%r10], 512; mapa.shared::cluster.u32 %r13, %r12, %r21; mapa.shared::cluster.u32 %r14, %r10, %r21; "
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r13], [%r9], 512, [%r14]; C: " + WAIT + "mov.b32 %r9, %r12; mov.u32 %r38, %ctaid.x; mad.wide.u32 %out, %r38, 512, %out; " + loop(DUMP, 128) + sync, 2048)
    yield two("remote arrive", shared(128) + BARRIER + own + sync + "@%p1 bra X; mapa.shared::cluster.u32 %r4, %r10, %r21; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4]; X: " + WAIT
              + "mad.wide.u32 %q2, %i, 4, %out; st.global.b32 [%q2], %t; " + sync, 512)


def probes():
    for family in (matrices, cp_async, bulk, tensors, clusters):
        yield from family()
