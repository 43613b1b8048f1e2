# SPDX-License-Identifier: Apache-2.0
# Random programs give the same bits as built, after the tile passes, padded and laid out; their PTX assembles where ptxas is found.
#
#     test_random.py [FIRST [COUNT [SECONDS]]]    SECONDS: after these no more are begun
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import random_programs

FIRST, COUNT, SECONDS = (int(a) for a in (sys.argv[1:] + ["0", "300", "40"][len(sys.argv) - 1:]))
END = time.monotonic() + SECONDS
BATCH, SAMPLE = 20, 24  # programs a process; PTX files that are assembled
LEVELS = os.environ.get("LEVELS")


def run(folder, batch):
    """The lines of a batch that say no ok; where the process dies, the program that killed it."""
    if time.monotonic() > END:
        return 0, []
    stems = [str(folder / str(n)) for n in batch]
    try:
        done = subprocess.run([LEVELS, "-p", str(folder), *stems], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
        out, why = done.stdout.decode(), f"ends with {done.returncode}: {done.stderr.decode()[-2000:]}"
    except subprocess.TimeoutExpired as e:
        out, why = (e.stdout or b"").decode(), "does not end"
    ended = {line.split(" ")[0]: line for line in out.split("\n") if line.startswith(str(folder))}
    bad = [line for line in ended.values() if not line.endswith(" ok")]
    lost = next((stem for stem in stems if stem not in ended), None)
    return len(ended), bad + ([f"{lost} failed: {why}"] if lost else [])


def smaller(stem):
    """The least program found that fails as this one does; half a minute is spent on it."""
    until = time.monotonic() + 30
    trial = stem.with_name(f"{stem.name}-smaller")
    trial.with_suffix(".arg").write_bytes(stem.with_suffix(".arg").read_bytes())

    def fails(source):
        if time.monotonic() > until:
            return False
        trial.with_suffix(".tk").write_text(source)
        try:
            done = subprocess.run([LEVELS, str(trial)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=False)
        except subprocess.TimeoutExpired:
            return True
        out = done.stdout.decode()
        return done.returncode < 0 or (" failed: " in out and "error:" not in out)
    return random_programs.shrink(stem.with_suffix(".tk").read_text(), fails)


def assembles(ptx):
    arch = ptx.name.split(".")[1]
    done = subprocess.run(["ptxas", f"-arch={arch}", "-o", os.devnull, str(ptx)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return None if done.returncode == 0 else f"{ptx.name}: {done.stdout.decode()[:1000]}"


def main():
    if not LEVELS:
        sys.exit("test_random: set LEVELS to the program that tests/levels.c makes")
    with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = pathlib.Path(name)
        for n in range(FIRST, FIRST + COUNT):  # each fourth with extents that are no powers of two
            random_programs.write(random_programs.generate(n, pow2=n % 4 != 3, math=n % 4 == 1), folder / str(n))
        batches = [range(n, min(n + BATCH, FIRST + COUNT)) for n in range(FIRST, FIRST + COUNT, BATCH)]
        results = list(pool.map(lambda b: run(folder, b), batches))
        bad = [line for _, lines in results for line in lines]
        refused = [line for line in bad if " refused: " in line]
        bad = [line for line in bad if line not in refused]
        files = sorted(folder.glob("*.ptx"))
        sample = files[::max(1, len(files) // SAMPLE)] if shutil.which("ptxas") else []
        bad += [line for line in pool.map(assembles, sample) if line]
        for line in bad + refused:
            print(line)
        for line in bad:
            stem = pathlib.Path(line.split(" ")[0])
            if stem.with_suffix(".tk").exists():
                print(f"--- {stem.name}, made smaller:\n{smaller(stem)}")
                break
        print(f"{sum(n for n, _ in results)} programs, {len(refused)} refused for a GPU, {len(sample)} of {len(files)} assembled, {len(bad)} failed")
        sys.exit(1 if bad or len(refused) > COUNT // 10 else 0)


main()
