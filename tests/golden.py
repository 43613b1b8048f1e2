#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Golden tests: files that say how to run tkc on them and what must come out.

A file tests/golden/**/NAME.tk or NAME.ir is a test if the comment at its head (lines starting with
//, # or ;) has lines

    // run: tkc check %s

Each is a shell command, run in the file's own folder; %s is the file's name, %t a scratch folder, and
`tkc` the tool under test. What they print (standard output, then standard error, then `exit: N`)
must equal NAME.tk.expected or NAME.expected next to the file, or, where the file itself has any of
these lines, satisfy them instead:

    // COUNT word n     word occurs exactly n times
    // HAS text         text occurs
    // NOT text         text does not occur
    // EXIT n           the last command's exit code; without it 0 is required

With --bless the .expected files are rewritten. A file with no run line is an input of other tests.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent / "golden"
COMMENT = re.compile(r"\s*(?://|#|;)\s?(.*)")
CHECK = re.compile(r"\s*(?://|#|;)\s*(COUNT|HAS|NOT|EXIT)\s+(.+?)\s*$")


class Test:
    def __init__(self, path):
        self.path = path
        self.runs = []
        self.checks = []
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        head = True
        for number, line in enumerate(text.splitlines(), 1):
            comment = COMMENT.match(line)
            head = head and comment is not None
            if head and comment.group(1).startswith("run:"):
                self.runs.append(comment.group(1)[4:].strip())
            check = CHECK.match(line)
            if check:
                self.checks.append((number, check.group(1), check.group(2)))

    def expected_path(self):
        """NAME.expected, or NAME.tk.expected where NAME.tk and NAME.ir both exist."""
        other = self.path.with_suffix(".ir" if self.path.suffix == ".tk" else ".tk")
        if other.exists():
            return self.path.with_name(self.path.name + ".expected")
        return self.path.with_suffix(".expected")


def execute(test, environment):
    """What the run lines print, and the last exit code."""
    output = []
    code = 0
    with tempfile.TemporaryDirectory(prefix="tkc-golden-") as scratch:
        for run in test.runs:
            command = run.replace("%s", test.path.name).replace("%t", scratch)
            done = subprocess.run(
                ["bash", "-c", command], cwd=test.path.parent, env=environment, timeout=120,
                stdin=subprocess.DEVNULL, capture_output=True, check=False)
            code = done.returncode
            for stream in (done.stdout, done.stderr):
                text = stream.decode("utf-8", errors="backslashreplace")
                if text and not text.endswith("\n"):
                    text += "\n"
                output.append(text)
            output.append(f"exit: {code}\n")
        return "".join(output).replace(scratch, "%t"), code


def failed_checks(test, output, code):
    problems = []
    wanted_code = 0
    for number, kind, rest in test.checks:
        what = None
        if kind == "COUNT":
            word, _, count = rest.rpartition(" ")
            if not word or not count.isdigit():
                what = "malformed, write: COUNT word n"
            elif output.count(word) != int(count):
                what = f"'{word}' occurs {output.count(word)} times, not {count}"
        elif kind == "HAS" and rest not in output:
            what = f"'{rest}' does not occur"
        elif kind == "NOT" and rest in output:
            what = f"'{rest}' occurs"
        elif kind == "EXIT":
            if rest.isdigit():
                wanted_code = int(rest)
            else:
                what = "malformed, write: EXIT n"
        if what:
            problems.append(f"{test.path.name}:{number}: {what}")
    if code != wanted_code:
        problems.append(f"{test.path.name}: exit code {code}, not {wanted_code}")
    if problems:
        problems.append("the output was:\n" + output.rstrip("\n"))
    return problems


def check(test, environment, bless):
    """A list of problems, empty when the test passes."""
    try:
        output, code = execute(test, environment)
    except subprocess.TimeoutExpired as error:
        return [f"{error.cmd[-1]}: no end after {error.timeout:.0f} s"]
    if code < 0 or code >= 128:
        return [f"the tool died (exit code {code}):\n{output}"]
    if test.checks:
        return failed_checks(test, output, code)
    expected_path = test.expected_path()
    expected = ""
    if expected_path.exists():
        expected = expected_path.read_text(encoding="utf-8")
    elif not bless:
        return [f"no {expected_path.name}; `tests/bless` writes it. The output was:\n{output}"]
    if output == expected:
        return []
    if bless:
        expected_path.write_text(output, encoding="utf-8")
        print(f"blessed {expected_path.relative_to(ROOT)}")
        return []
    return list(difflib.unified_diff(expected.splitlines(), output.splitlines(),
                                     "expected", "got", lineterm=""))


def collect(patterns):
    """The tests, and problems with files that would silently test nothing."""
    tests, problems, owned = [], [], set()
    for path in sorted(ROOT.rglob("*")):
        if path.suffix not in (".tk", ".ir") or not path.is_file():
            continue
        test = Test(path)
        if test.runs:
            owned.add(test.expected_path())
            tests.append(test)
        elif test.checks:
            problems.append(f"{path.relative_to(ROOT)}: has checks but no run line")
    for path in sorted(ROOT.rglob("*.expected")):
        if path not in owned:
            problems.append(f"{path.relative_to(ROOT)}: belongs to no test")
    if patterns:
        tests = [t for t in tests if any(p in str(t.path.relative_to(ROOT)) for p in patterns)]
    return tests, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tkc", required=True, help="the tool under test")
    parser.add_argument("--bless", action="store_true", help="rewrite the .expected files")
    parser.add_argument("pattern", nargs="*", help="only tests whose path contains this")
    arguments = parser.parse_args()

    tkc = pathlib.Path(arguments.tkc).resolve()
    if not os.access(tkc, os.X_OK):
        parser.error(f"{tkc} is not there; build it first")
    environment = dict(os.environ, NO_COLOR="1", LC_ALL="C.UTF-8")
    environment["PATH"] = f"{tkc.parent}{os.pathsep}{environment['PATH']}"
    tests, problems = collect(arguments.pattern)
    failed = len(problems)
    for problem in problems:
        print(f"FAIL {problem}")
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        results = pool.map(lambda t: check(t, environment, arguments.bless), tests)
        for test, result in zip(tests, results):
            if result:
                failed += 1
                print(f"FAIL {test.path.relative_to(ROOT)}")
                print("\n".join("    " + line for item in result for line in item.split("\n")))
    passed = len(tests) + len(problems) - failed
    print(f"golden: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
