# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/language.md: those made from lists are up to date, and that of implicit conversions is what the
checker does, in an assignment and in an operation, for every pair of element types."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TKC = os.environ["TKC"]
PAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
TYPES = re.findall(r'^TK_DTYPE\(\w+, "(\w+)"', (ROOT / "lang" / "dtypes.def").read_text(encoding="utf-8"), re.M)


def page_table():
    """from -> the types that it converts to without a cast."""
    text = PAGE.split("<!-- implicit conversions -->\n", 1)[1].split("\n\n", 1)[0]
    table = {}
    for row in text.splitlines()[2:]:
        source, targets = [cell.strip() for cell in row.strip("|").split("|")]
        for name in re.findall(r"`(\w+)`", source):
            table[name] = set(re.findall(r"`(\w+)`", targets))
    return table


def refused(lines):
    """The numbers of the lines with errors, which are all of one kind. Few at a time: of many errors not all are shown."""
    numbers = set()
    for n in range(0, len(lines), 70):
        numbers |= {n + line for line in refused_of(lines[n:n + 70])}
    return numbers


def refused_of(lines):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "pairs.tk"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        done = subprocess.run([TKC, "check", "--diagnostics=json", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=120)
    found = json.loads(done.stderr or done.stdout)
    kinds = {(d["severity"], d["id"]) for d in found}
    if kinds - {("error", "type-mismatch")}:
        sys.exit(f"unexpected diagnostics: {kinds}")
    return {d["line"] for d in found}


def main():
    if subprocess.run([sys.executable, "-B", ROOT / "scripts" / "gen-builtin-table", "--check"],
                      check=False).returncode:
        return 1
    table = page_table()
    if set(table) != set(TYPES):
        sys.exit(f"the table of conversions lacks {set(TYPES) ^ set(table)}")
    pairs = [(a, b) for a in TYPES for b in TYPES if a != b]
    wrong = 0
    stores = refused([f"fn pair{n}(x: in {a}[N], y: out {b}[N]) {{ y[0] = x[0]; }}"
                      for n, (a, b) in enumerate(pairs)])
    mixed = refused([f"fn pair{n}(a: {a}, b: {b}) -> bool {{ return a == b; }}" for n, (a, b) in enumerate(pairs)])
    for n, (a, b) in enumerate(pairs, 1):
        converts, either = b in table[a], b in table[a] or a in table[b]
        if (n not in stores) != converts:
            print(f"FAIL {a} to {b}: the page says {converts}, an assignment {n not in stores}")
            wrong += 1
        if (n not in mixed) != either:
            print(f"FAIL {a} == {b}: the page says {either}, the operation {n not in mixed}")
            wrong += 1
    print(f"{len(pairs)} pairs, {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
