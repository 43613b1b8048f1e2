# SPDX-License-Identifier: Apache-2.0
"""bench/launch.c runs, on the simulated driver: its checks hold and its figures are there. What they are only a GPU tells."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["TKC"]).parent


def main():
    if not (BUILD / "bench_launch").is_file():
        print("SKIPPED: this build has no GPU code generator")
        return 0
    with tempfile.TemporaryDirectory(prefix="tkc-launch-") as scratch:
        path = pathlib.Path(scratch) / "launch.json"
        done = subprocess.run([BUILD / "bench_launch", "--quick", "--json", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "tests" / "sim_driver")), check=False, timeout=300, text=True)
        print(done.stdout)
        if done.returncode != 0:
            return 1
        found = json.loads(path.read_text())
    for group, names in (("launch", ("driver", "prepared", "ahead", "plain")),
                         ("cold", ("source_to_ptx", "source_to_loaded", "source_to_loaded_cached", "load_cached", "load_driver"))):
        for name in names:
            figure = found[group][name]
            if not (0 < figure["least"] <= figure["median"] <= figure["most"] and math.isfinite(figure["most"])):
                print("FAIL", name, figure)
                return 1
    return 0 if found["gpu"] == "Simulated GPU" and found["unit"] == "microseconds" else 1


if __name__ == "__main__":
    sys.exit(main())
