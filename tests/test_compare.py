# SPDX-License-Identifier: Apache-2.0
"""The scripts of bench: they compile, and where PyTorch is installed compare.py runs through all its cases on the CPU, small."""
import importlib.util
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    for path in sorted((ROOT / "bench").glob("*.py")):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
    script = [sys.executable, "-B", ROOT / "bench" / "compare.py", "--dry", "--peers", "eager", "--warps", "0,2"]
    done = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=600, text=True)
    print(done.stdout)
    if importlib.util.find_spec("torch") is None:
        return 0 if done.returncode == 1 and "needs PyTorch" in done.stdout else 1
    return done.returncode or " 0 wrong or failed" not in done.stdout


if __name__ == "__main__":
    sys.exit(main())
