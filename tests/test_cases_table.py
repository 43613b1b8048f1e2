# SPDX-License-Identifier: Apache-2.0
# tests/cases/README.md and the tests name each other: each row has all of its tests and no others, and no row is missing.
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
ROWS_A = (1, 3, 5, 6, 8, 9, 11, 12, 14, 16, 18, 20, 22, 24, 25, 27, 28, 30, 32, 33, 34, 36, 38, 39, 42, 44, 45, 47, 48, 49, 50, 52, 53,
          55, 57, 59, 61, 62, 63, 65, 66, 68, 70, 71, 73, 75, 76, 78, 80, 82, 84, 86, 87, 89, 90, 93, 94, 95, 97, 98, 100, 102, 104,
          106, 107, 109, 111, 113, 114, 116, 118, 119, 121, 123, 124, 125, 127, 128)
ROWS_B = (1, 2, 4, 6, 7, 8, 10, 12, 13, 15, 17, 18, 20, 22, 23, 25, 27, 29, 31, 32, 33, 35, 37, 38, 40, 42, 44, 45, 47, 48, 50, 52, 54,
          56, 57, 59)


def tests_by_row():
    """Row id -> set of (file, test)."""
    found = {}
    for path in sorted(HERE.glob("test_cases_*.*")) + [HERE / "test_mutation.c"]:
        text = path.read_text()
        for name in re.findall(r"^def (test_\w+)", text, re.M) + re.findall(r"^Test\(\w+, (\w+)", text, re.M):
            for row in re.findall(r"(?:^|_)([AB]\d+)(?=_|$)", name):
                found.setdefault(row, set()).add((path.name, name))
    return found


def table():
    rows = {}
    for line in (HERE / "cases" / "README.md").read_text().split("\n"):
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if len(cells) == 3 and re.fullmatch(r"[AB]\d+", cells[0]):
            assert cells[0] not in rows and cells[1], line
            rows[cells[0]] = {(part.split("`")[1], name) for part in cells[2].split("; ") for name in part.split("`")[3::2]}
    return rows


def main():
    want = [f"A{n:03}" for n in ROWS_A] + [f"B{n:02}" for n in ROWS_B]
    rows, tests = table(), tests_by_row()
    passed = failed = 0
    for row in sorted(set(want) | set(rows) | set(tests)):
        if row in want and rows.get(row) and rows.get(row) == tests.get(row):
            passed += 1
            continue
        failed += 1
        print(f"FAILED {row}: the table has {sorted(rows.get(row, []))}, the tests are {sorted(tests.get(row, []))}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
