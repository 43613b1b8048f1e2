# SPDX-License-Identifier: Apache-2.0
# `tkc run` of every shipped kernel on .npy files, judged like the launches of test_stdlib.py.
import os
import pathlib
import subprocess
import tempfile

import numpy as np

import stdlib_judge as judges
import tkclib
from judge import main, test

FLOATS = judges.FLOATS
TOOL = os.environ.get("TKC", "build/release/tkc")
# The types that NumPy has no name for, as ml_dtypes writes them.
VOID = {"bf16": "<V2", "f8e4m3": "|V1", "f8e5m2": "|V1"}


def save(path, array):
    bits = np.ascontiguousarray(array.bits)
    if array.dtype not in VOID:
        np.save(path, bits)
        return
    with open(path, "wb") as f:
        np.lib.format.write_array_header_1_0(f, {"descr": VOID[array.dtype], "fortran_order": False, "shape": bits.shape})
        f.write(bits.tobytes())


def load(path, dtype):
    with open(path, "rb") as f:
        np.lib.format.read_magic(f)
        shape, fortran, descr = np.lib.format.read_array_header_1_0(f)
        assert not fortran
        expected = VOID.get(dtype, np.dtype(tkclib.STORAGE[dtype]).str)
        assert descr == np.dtype(expected), (descr, dtype)
        return np.frombuffer(f.read(), tkclib.STORAGE[dtype]).reshape(shape)


class Tool:
    """Called like a tkclib.Kernel; runs the tool on files. Which parameters are outputs it takes from the library."""

    def __init__(self, file, name, defines):
        self.kernel = tkclib.Kernel(file, name, defines)
        self.command = [TOOL, "run", file, "--kernel", name, "--check"]
        for key, value in defines.items():
            self.command += ["-D", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]

    def __call__(self, **args):
        outputs = self.kernel.outputs()
        with tempfile.TemporaryDirectory() as folder:
            command, wanted = list(self.command), {}
            for name, value in args.items():
                path = pathlib.Path(folder) / f"{name}.npy"
                if value is None:
                    continue
                if not isinstance(value, (np.ndarray, tkclib.Array)):
                    command += ["--scalar", f"{name}={value}"]
                elif name in outputs:
                    wanted[name] = (path, tkclib.wrap(value))
                    command += ["--out", f"{name}={path}"]
                else:
                    array = tkclib.wrap(value)
                    save(path, array)
                    form = f":{array.dtype}" if array.dtype.startswith("f8") else ""
                    command += ["--in", f"{name}={path}{form}"]
            # A tool with a sanitizer in it does not take the one that is there for the interpreter.
            environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
            if run.returncode:
                raise tkclib.TkcError(f"exit code {run.returncode}", run.stderr)
            for path, value in wanted.values():
                result = load(path, value.dtype)
                assert result.shape == value.shape, (result.shape, value.shape)
                value.bits[...] = result


judges.make = Tool
random = judges.random


@test(*[(dtype, n) for dtype in FLOATS for n in (781, 9000)])
def test_run_softmax(dtype, n):
    judges.judge_softmax(random(5, n, scale=3.0), dtype)


@test(*[(dtype, n) for dtype in FLOATS for n in (781, 9000)])
def test_run_norms(dtype, n):
    judges.judge_layernorm(2 + random(5, n, scale=3.0), dtype)
    judges.judge_layernorm(random(5, n), dtype, weights=False, eps=0.25)
    judges.judge_rmsnorm(2 + random(5, n, scale=3.0), dtype, residual=True)


@test(*[(dtype, name) for dtype in FLOATS for name in judges.ACTIVATIONS])
def test_run_activation(dtype, name):
    judges.judge_activation(judges.activation_inputs(dtype), dtype, name)


@test(*FLOATS)
def test_run_swiglu(dtype):
    judges.judge_swiglu(judges.activation_inputs(dtype), dtype)


@test(*[(dtype, itype) for dtype in FLOATS for itype in ("i32", "i64")])
def test_run_cross_entropy(dtype, itype):
    judges.judge_cross_entropy(random(6, 1000, scale=4.0), [0, 999, -100, 1000, -1, 5], dtype, itype)
    judges.judge_cross_entropy(random(6, 1000, scale=4.0), [0, 999, -100, 1000, -1, 5], dtype, itype, ignore=5, BN=64)


@test(*FLOATS)
def test_run_cumsum(dtype):
    judges.judge_cumsum(random(3, 9000), dtype)


@test(*[(dtype, n) for dtype in FLOATS + ("i32", "i8") for n in (100, 5000)])
def test_run_select(dtype, n):
    judges.judge_argmax(judges.values_of(dtype, (4, n)), dtype)
    judges.judge_topk(judges.values_of(dtype, (4, n)), dtype, 5)


@test(*FLOATS)
def test_run_dropout(dtype):
    judges.judge_dropout(random(9, 1500), dtype, 0.25, -7)


@test(*tkclib.NAMES)
def test_run_transpose(dtype):
    judges.judge_transpose((65, 130), dtype)


@test(*FLOATS)
def test_run_matmul(dtype):
    judges.judge_matmul(dtype, 100, 72, 133)
    judges.judge_matmul(dtype, 100, 72, 133, bias=dtype, BM=32, BK=16)
    judges.judge_matmul(dtype, 17, 65, 40, bias="f32", out="f32", O="f32")


@test(*FLOATS)
def test_run_attention(dtype):
    judges.judge_attention(judges.kernel(judges.ATTENTION, "attention"), dtype, 2, 4, 2, 50, 70, 32)
    judges.judge_attention(judges.kernel(judges.ATTENTION, "attention", mask="causal", BN=16), dtype, 1, 2, 2, 50, 70, 40,
                           mask=lambda b, h, q, k: q >= k, lse=False)
    judges.judge_attention(judges.kernel(judges.ATTENTION, "causal_attention"), dtype, 1, 2, 1, 50, 30, 16,
                           mask=lambda b, h, q, k: q >= k)


if __name__ == "__main__":
    main()
