# SPDX-License-Identifier: Apache-2.0
"""What compare.py puts beside the kernels: PyTorch as it is, PyTorch compiled, and Triton by hand. A peer is a name and a function that
takes a case and its tensors and gives what is to be launched; None where it has nothing for the case."""
import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def eager(case, a):
    if case.same is None:
        return None
    if case.inputs is None:
        return case.same(a, lambda f: f)
    given = [a[k] for k in case.inputs]
    return lambda: case.same(*given)


_compiled = {}


def compiled(case, a):
    """One compiled function for a case and shape: three sets of tensors share it."""
    if case.same is None or case.floats:
        return None  # products: cases say what they are compared with

    def once(f):
        key = (case.name, tuple(next(iter(a.values())).shape))
        if key not in _compiled:
            torch._dynamo.reset()
            _compiled.clear()
            _compiled[key] = torch.compile(f, dynamic=False)
        return _compiled[key]
    if case.inputs is None:
        return case.same(a, once)
    given, f = [a[k] for k in case.inputs], once(case.same)
    return lambda: f(*given)


if triton:
    @triton.jit
    def _softmax(x, y, n, B: tl.constexpr):
        at, inside = tl.program_id(0).to(tl.int64) * n + tl.arange(0, B), tl.arange(0, B) < n
        v = tl.load(x + at, mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + at, (e / tl.sum(e, 0)).to(y.dtype.element_ty), mask=inside)

    @triton.jit
    def _layernorm(x, y, w, b, n, B: tl.constexpr):
        o = tl.arange(0, B)
        at, inside = tl.program_id(0).to(tl.int64) * n + o, o < n
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        d = tl.where(inside, v - tl.sum(v, 0) / n, 0.0)
        r = tl.rsqrt(tl.sum(d * d, 0) / n + 1e-5)
        scale, shift = tl.load(w + o, mask=inside, other=0.0).to(tl.float32), tl.load(b + o, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + at, (d * r * scale + shift).to(y.dtype.element_ty), mask=inside)

    @triton.jit
    def _rmsnorm(x, y, w, n, B: tl.constexpr):
        o = tl.arange(0, B)
        at, inside = tl.program_id(0).to(tl.int64) * n + o, o < n
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        r = tl.rsqrt(tl.sum(v * v, 0) / n + 1e-6)
        scale = tl.load(w + o, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + at, (v * r * scale).to(y.dtype.element_ty), mask=inside)

    @triton.jit
    def _add(x, y, z, n, B: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
        a, b = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), tl.load(y + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(z + at, (a + b).to(z.dtype.element_ty), mask=at < n)

    @triton.jit
    def _swiglu(g, u, y, n, B: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
        a, b = tl.load(g + at, mask=at < n, other=0.0).to(tl.float32), tl.load(u + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(y + at, (a * tl.sigmoid(a) * b).to(y.dtype.element_ty), mask=at < n)

    @triton.jit
    def _matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
        pid, rows, columns = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
        first = pid // (GROUP * columns) * GROUP
        size = min(rows - first, GROUP)
        i, j = (first + pid % (GROUP * columns) % size) * BM, pid % (GROUP * columns) // size * BN
        left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
        right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
        acc = tl.zeros([BM, BN], tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(left.load([i, k]), right.load([k, j]), acc)
        out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
        out.store([i, j], acc.to(c.dtype.element_ty))

    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

# name: (kernel, tensors, whether a program is a row)
BY_HAND = {"softmax": ("_softmax", ("x", "y"), True), "layernorm": ("_layernorm", ("x", "y", "w", "b"), True),
           "rmsnorm": ("_rmsnorm", ("x", "y", "w"), True), "add": ("_add", ("x", "y", "z"), False),
           "swiglu": ("_swiglu", ("gate", "up", "y"), False)}


def product_by_hand(a):
    """128 x 256 x 64 and 8 warps, as Triton's own examples have it."""
    (m, k), n = a["a"].shape, a["b"].shape[1]
    if k % 8 or n % 8:
        return None  # rows that no tensor map takes
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 256),)

    def run():
        _matmul[grid](a["a"], a["b"], a["c"], m, n, k, 128, 256, 64, 8, num_warps=8, num_stages=4)
        return (a["c"],)
    return run


def by_hand(warps):
    """Rows of up to 16384 as one tile, what is element by element in tiles of 4096."""
    def peer(case, a):
        if not triton or case.triton is None:
            return None
        if case.triton == "matmul":
            return product_by_hand(a) if warps == 8 else None
        name, names, by_row = BY_HAND[case.triton]
        given = [a[k] for k in names]
        m, n = given[0].shape
        if by_row and n > 16384:
            return None
        block = triton.next_power_of_2(n) if by_row else 4096
        kernel, grid, size = globals()[name], (m if by_row else triton.cdiv(m * n, 4096),), n if by_row else m * n
        outputs = tuple(a[k] for k in case.outputs)

        def run():
            kernel[grid](*given, size, block, num_warps=warps)
            return outputs
        return run
    return peer


def all_of(words):
    """Peers by the words of --peers, and what is missing of them."""
    found, missing = [], []
    for word in words:
        if word == "eager":
            found.append(("PyTorch", eager))
        elif word == "triton" and triton:
            found += [(f"Triton, {w} warps", by_hand(w)) for w in (4, 8)]
        elif word == "compile" and triton:
            found.append(("torch.compile", compiled))
        elif word in ("triton", "compile"):
            missing.append(f"{word} (triton is not installed)")
        else:
            raise SystemExit(f"--peers: eager, triton, compile, not '{word}'")
    return found, missing
