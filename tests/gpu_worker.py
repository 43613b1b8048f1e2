# SPDX-License-Identifier: Apache-2.0
# Runs tests where TKC_TEST_DEVICE says, for scripts/gpu-suite: many in one process, which keeps its context on the GPU.
#
#     gpu_worker.py KIND WARPS NUMBER ...    the tests with these numbers; WARPS 0: as each says
#     gpu_worker.py list KIND                how many there are, and their names
#     gpu_worker.py serve IN OUT             such lines from a file or pipe, until "quit"
#
# KIND: a script of conformance cases or shipped kernels (test_cases_memory); random: a number is a seed; repeat: kernels that are launched
# TKC_TEST_TIMES times. What happens is printed, or goes to OUT, in lines of fields with tabs between: "run NUMBER NAME", then
# "ok|failed|lost|refused NUMBER NAME SECONDS TEXT", and "note NUMBER NAME SECONDS TEXT" for each kernel of it that was refused; after each
# line of input "done SECONDS...": what went where.
import importlib
import os
import sys
import time

import gpu_programs
import judge
import tkclib

TIMES = int(os.environ.get("TKC_TEST_TIMES", "1000"))
out = sys.stdout


def say(*words):
    print(*[str(w).replace("\n", " ").replace("\t", " ") for w in words], sep="\t", file=out, flush=True)


def tests(kind):
    """Number to name, function and arguments."""
    if kind == "random":
        return lambda seed: (f"program {seed}", gpu_programs.compare, (seed,))
    if kind == "repeat":
        return lambda n: (" ".join(map(str, gpu_programs.REPEATS[n])) + " warps", gpu_programs.repeat, (*gpu_programs.REPEATS[n], TIMES))
    importlib.import_module(kind)
    return judge.tests_of(kind).__getitem__


def count(kind):
    return len(gpu_programs.REPEATS) if kind == "repeat" else len(judge.tests_of(importlib.import_module(kind).__name__))


def close_kernels():
    for name in ("cases_lib", "stdlib_judge"):
        if name in sys.modules:
            sys.modules[name]._kernels.clear()
    tkclib.close_kernels()


def work(kind, warps, *numbers):
    """False where the device is lost."""
    find = tests(kind)
    tkclib.WARPS = warps if warps != "0" else None
    tkclib.spent.clear()
    for number in map(int, numbers):
        name, function, case = find(number)
        say("run", number, name)
        start = time.monotonic()
        end, text = judge.run(name, function, case)
        for reason in set(tkclib.refusals):
            say("note", number, name, "0", reason)
        say(end, number, name, f"{time.monotonic() - start:.3f}", text)
        if end == "lost":
            return False
    close_kernels()
    say("done", *[f"{what} {seconds:.3f}" for what, seconds in tkclib.spent.items()])
    return True


def serve(source, to):
    global out
    with open(source, encoding="utf-8") as lines, open(to, "w", encoding="utf-8") as out:
        for line in iter(lines.readline, ""):
            if line.strip() == "quit":
                return
            if not work(*line.split()):
                os._exit(3)  # closing would ask the device


if __name__ == "__main__":
    if sys.argv[1] == "list":
        print(count(sys.argv[2]), *[tests(sys.argv[2])(n)[0] for n in range(count(sys.argv[2]))], sep="\n")
    elif sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3])
    else:
        sys.exit(not work(*sys.argv[1:]))
