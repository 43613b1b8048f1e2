#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of ops in docs/ir.md are those of ir/ops.def and lang/numops.def."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.exit(subprocess.run([sys.executable, "-B", ROOT / "scripts" / "gen-op-table", "--check"],
                        check=False).returncode)
