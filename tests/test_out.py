# SPDX-License-Identifier: Apache-2.0
"""Tiles of products that go out by tensor copies: what a device stores is what the CPU stores, in every bit, and nothing around it. Types of
all sizes, both orders of the result, several stores of a program, of one tensor too, stores in loops and branches, tiles that hang over
every edge, tensors that lie in larger ones, whose rows are multiples of 16 bytes or not (a copy would write all of the last 16); programs for which it would be wrong, and what the notes then say."""
import random

import numpy as np

import tkclib
from judge import main, test

HEAD = """%skernel product<T: type, A: type, O: type, BM: int, BN: int, BK: int>(a: in T[M, K], b: in T[K, N], %s)
    grid (pm in cdiv(M, BM), pn in cdiv(N, BN)) {
    let i = pm * BM;
    let j = pn * BN;
    var acc = zeros([BM, BN], A);
    for k in 0 .. K step BK {
        acc = dot(a[i +: BM, k +: BK], b[k +: BK, j +: BN], acc);
    }
%s
}
"""
PLAIN = "    c[i +: BM, j +: BN] = O(acc);"
# name: parameters, the shape of each output by M and N, what is stored
FORMS = {
    "plain": ("c: out O[M, N]", {"c": "mn"}, PLAIN),
    "turned": ("c: out O[N, M]", {"c": "nm"}, "    c[j +: BN, i +: BM] = O(transpose(acc));"),
    "two": ("c: out O[M, N], d: out O[M, N]", {"c": "mn", "d": "mn"}, PLAIN + "\n    d[i +: BM, j +: BN] = O(acc + A(1));"),
    "both": ("c: out O[M, N], d: out O[N, M]", {"c": "mn", "d": "nm"}, PLAIN + "\n    d[j +: BN, i +: BM] = O(transpose(acc + A(1)));"),
    # The second store of the same elements counts.
    "again": ("c: out O[M, N]", {"c": "mn"}, "    c[i +: BM, j +: BN] = O(acc + A(1));\n" + PLAIN),
    "loop": ("c: out O[3, M, N]", {"c": "3mn"}, "    for r in 0 .. 3 {\n        c[r, i +: BM, j +: BN] = O(acc);\n        acc = acc + A(r);\n    }"),
    "branch": ("c: out O[M, N]", {"c": "mn"}, "    if (pm + pn) % 2 == 0 {\n    " + PLAIN + "\n    }"),
    "batch": ("c: out O[M, 2, N]", {"c": "m2n"}, "    c[i +: BM, 0, j +: BN] = O(acc);\n    c[i +: BM, 1, j +: BN] = O(acc + A(1));"),
    # The rows' sums are of a tile that threads exchange, beside the store.
    "sums": ("c: out O[M, N], s: out A[M]", {"c": "mn", "s": "M"},
             PLAIN + "\n    if pn == 0 {\n        s[i +: BM] = reshape(sum(acc, axis = 1), [BM]);\n    }"),
}
# What copies would get wrong, or cannot do.
NOT = {
    "handed on": ("c: out O[M, N], n: inout i32[1]", {"c": "mn"}, PLAIN + "\n    let before = atomic_add(n[0], 1, order = acq_rel);",
                  "hands on"),
    "read": ("c: inout O[M, N]", {"c": "mn"}, PLAIN + "\n    c[i +: BM, j +: BN] = c[i +: BM, j +: BN] + O(1);", "in other ways"),
}
TYPES = (("f16", "f32", "f16"), ("bf16", "f32", "bf16"), ("f16", "f32", "f32"), ("bf16", "f32", "f8e4m3"), ("i8", "i32", "i32"), ("f16", "f32", "f8e5m2"),
         ("i8", "i32", "i8"), ("i8", "i32", "i16"))
AROUND = 16  # elements of all sizes are multiples of 16 bytes then


def small(pick, dtype, shape):
    return tkclib.array(np.random.default_rng(pick.randrange(1 << 30)).integers(-2, 3, shape), dtype)


def sized(text, m, n):
    return tuple({"m": m, "n": n, "M": m}.get(c) or int(c) for c in text)


class Inside:
    """An output in the middle of a larger tensor, of which every bit is compared."""

    def __init__(self, shape, dtype):
        whole = tuple(n + 2 for n in shape[:-1]) + (-(-shape[-1] // AROUND) * AROUND + 2 * AROUND,)
        self.whole = np.full(whole, 7, tkclib.STORAGE[dtype])
        middle = tuple(slice(1, n + 1) for n in shape[:-1]) + (slice(AROUND, AROUND + shape[-1]),)
        self.array = tkclib.Array(self.whole[middle], dtype)


def compare(kernel, inputs, shapes, m, n, types):
    made = {}
    for device in ("cpu", tkclib.DEVICE):
        made[device] = {name: Inside(sized(s, m, n), types["A" if name == "s" else "O"]) for name, s in shapes.items()}
        kernel.on(device, **inputs, **{name: x.array for name, x in made[device].items()})
    for name in shapes:
        cpu, it = (made[d][name].whole for d in ("cpu", tkclib.DEVICE))
        assert cpu.tobytes() == it.tobytes(), f"{name}: {int((cpu.view(np.uint8) != it.view(np.uint8)).sum())} bytes differ"


@test(*[(form, seed) for form in FORMS for seed in range(5)])
def test_forms(form, seed):
    pick = random.Random(f"{form} {seed}")
    params, shapes, body = FORMS[form]
    t, a, o = TYPES[pick.randrange(len(TYPES))]
    types = {"T": t, "A": a, "O": o}
    bm, bn = pick.choice((64, 128)), pick.choice((16, 64, 128))
    head = pick.choice(("", "", "@persistent ", "@stages(1) ", "@warps(8) "))
    m, n, k = pick.choice((1, 16, bm - 1, bm, bm + 9, 3 * bm)), pick.choice((8, bn, bn + 8, 2 * bn + 24)), pick.choice((16, 64, 96))
    if pick.random() < 0.3:
        n = max(n - pick.randrange(1, 8), 1)  # b's rows then take no tensor copies, the result's still may
    kernel = tkclib.Kernel(HEAD % (head, params, body), "product", types | {"BM": bm, "BN": bn, "BK": 32}, check=False)
    tkclib.SEED = seed
    compare(kernel, {"a": small(pick, t, (m, k)), "b": small(pick, t, (k, n))}, shapes, m, n, types)
    size = np.dtype(tkclib.STORAGE[o]).itemsize
    if tkclib.DEVICE == "sim" and form != "branch" and bm * bn * size >= 8192 and a == "f32":
        notes = kernel.notes(1)
        whole = [sized(s, m, n)[-1] * size % 16 == 0 for name, s in shapes.items() if name != "s"]
        assert ("' is stored by tensor copies" in notes) == any(whole), notes
        assert ("its rows are not known to be multiples of 16 bytes" in notes) == (not all(whole)), notes
    kernel.close()


@test(*[(form,) for form in NOT])
def test_not(form):
    params, shapes, body, why = NOT[form]
    pick = random.Random(form)
    types = {"T": "f16", "A": "f32", "O": "f16"}
    kernel = tkclib.Kernel(HEAD % ("", params, body), "product", types | {"BM": 64, "BN": 64, "BK": 32}, check=False)
    more = {"n": np.zeros(1, np.int32)} if "n:" in params else {}
    compare(kernel, {"a": small(pick, "f16", (72, 64)), "b": small(pick, "f16", (64, 72)), **more}, shapes, 72, 72, types)
    if tkclib.DEVICE == "sim":
        assert why in kernel.notes(1), kernel.notes(1)
    kernel.close()


main()
