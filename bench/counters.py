#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What limits a line of compare.py's table, by Nsight Compute's counters of one launch of each of its kernels.

    counters.py CASE:SHAPE ...        as layernorm:65536x781 matmul_tf32:4096x4096x4096

Printed of each kernel: its time as measured there (clocks are fixed at the base, so that it is no figure of its own), shares of what the GPU can do
(instructions issued, matrix units, shared memory and first cache, second cache, memory), warps that are there of those that fit,
instructions executed, registers, and what a warp waits for most, in issue slots an instruction. Needs ncu and what compare.py needs."""
import csv
import io
import pathlib
import re
import shutil
import subprocess
import sys

SHARES = (("issue", "smsp__issue_active.avg.pct_of_peak_sustained_active"), ("tensor", r"sm__(inst_executed_)?pipe_tensor\w*\.avg\.pct_of_peak_sustained_active"),
          ("l1+shared", "l1tex__throughput.avg.pct_of_peak_sustained_active"), ("l2", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
          ("memory", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"), ("warps", "sm__warps_active.avg.pct_of_peak_sustained_active"))
SECTIONS = ("SpeedOfLight", "WarpStateStats", "SchedulerStats", "Occupancy", "LaunchStats", "InstructionStats", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis")


def launch(wanted):
    """In the process that ncu watches: each kernel once warm, then once counted."""
    import compare
    import torch
    by_name = {c.name: c for c in compare.cases.CASES + compare.products.CASES}
    for word in wanted:
        name, _, shape = word.partition(":")
        case, shape = by_name[name], tuple(map(int, shape.split("x")))
        dtype = compare.TORCH[case.dtype or "bf16"]
        a = compare.make_sets(case, shape, dtype)[0]
        kernels = compare.kernels_of(case, 0, a)
        steps = [compare.Launch(k, a) for k in kernels]
        for step in steps:
            step()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        for step in steps:
            step()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        print(f"@@ {word} {len(steps)}", flush=True)
        del steps, step  # before their kernels
        for k in kernels:
            k.close()


def number(text):
    return float(text.replace(",", "")) if text and re.fullmatch(r"[-\d.,eE+]+", text) else 0.0


def say(word, row):
    found = {n: max((number(v) for m, v in row.items() if re.fullmatch(p, m)), default=0.0) for n, p in SHARES}
    stalls = {re.sub(r".*stalled_(\w+)_per.*", r"\1", m): number(v) for m, v in row.items() if re.fullmatch(r"smsp__average_warps_issue_stalled_\w+_per_issue_active\.ratio", m)}
    stalls = {re.sub(r"^not_issued_", "", k): v for k, v in stalls.items() if "selected" != k}
    most = sorted(stalls.items(), key=lambda s: -s[1])[:5]
    us = number(row.get("gpu__time_duration.sum", "")) / 1000  # of ns, the base unit
    print(f"{word:34s} {row.get('Kernel Name', '?')[:22]:22s} {us:8.1f} us; " + ", ".join(f"{n} {v:.0f} %" for n, v in found.items())
          + f"; {number(row.get('smsp__inst_executed.sum', '')) / 1e6:.2f} million instructions, {row.get('launch__registers_per_thread', '?')} registers; waits: "
          + ", ".join(f"{k} {v:.2f}" for k, v in most), flush=True)


def main(words):
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    made = subprocess.run([ncu, "--profile-from-start", "off", "--page", "raw", "--csv", "--print-units", "base", *(x for s in SECTIONS for x in ("--section", s)),
                           sys.executable, "-B", __file__, "--launch", *words], capture_output=True, text=True, check=False)
    lines = made.stdout.splitlines()
    names = [w for l in lines if l.startswith("@@ ") for w in [l.split()[1]] * int(l.split()[2])]
    table = [l for l in lines if l.startswith('"')]
    rows = [r for r in csv.DictReader(io.StringIO("\n".join(table))) if r.get("ID")]
    for word, row in zip(names, rows):
        say(word, row)
    if len(rows) < len(names) or len(set(names)) < len(set(words)):
        sys.exit(f"not all could be counted: {[l for l in lines if not l.startswith(chr(34))][-5:]} {made.stderr[-500:]}")


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    if sys.argv[1:2] == ["--launch"]:
        launch(sys.argv[2:])
    elif sys.argv[1:] and not sys.argv[1].startswith("-"):
        main(sys.argv[1:])
    else:
        sys.exit(__doc__)
