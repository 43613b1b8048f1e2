#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the example kernels of the standard library on the CPU and compares with NumPy. `make demo` builds and calls this.
# TKC names the tool, else that of the release build is taken.
set -euo pipefail
cd "$(dirname "$0")/.."
TKC=${TKC:-$PWD/build/release/tkc}
if [ ! -x "$TKC" ]; then
    echo "demo: no tool at $TKC; 'make demo' builds it" >&2
    exit 3
fi
export TKC
python=$(scripts/python-numpy)
exec "$python" -B examples/demo.py
