# SPDX-License-Identifier: Apache-2.0
"""What docs/language.md says, sentence by sentence: tests/language/*.txt. A case begins with a line

    #### fine                                   `tkc check` has nothing to say
    #### error ID, warning ID, ..               it says these, and nothing of another kind
    #### run ARGUMENTS                          `tkc run` succeeds; its output follows the program, after a line ====
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CASES = pathlib.Path(__file__).resolve().parent / "language"
TKC = os.environ["TKC"]


def cases():
    for path in sorted(CASES.glob("*.txt")):
        line, parts = 1, path.read_text(encoding="utf-8").split("#### ")
        for part in parts:
            if part:
                head, text = part.split("\n", 1)
                yield f"{path.name}:{line}", head, text.rstrip("\n") + "\n"
            line += part.count("\n")


def tkc(folder, *words):
    return subprocess.run([TKC, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          encoding="utf-8", timeout=300)


def check_all(folder, list_):
    """Ids by file, of one run."""
    for n, (_, _, text) in enumerate(list_):
        (folder / f"{n}.tk").write_text(text, encoding="utf-8")
    done = tkc(folder, "check", "--diagnostics=json", *[f"{n}.tk" for n in range(len(list_))])
    said = {}
    for d in json.loads(done.stderr or done.stdout):
        said.setdefault(d["file"], set()).add(f"{d['severity']} {d['id']}")
    return [said.get(f"{n}.tk", {"fine"}) for n in range(len(list_))]


def run_one(folder, arguments, text):
    program, wanted = text.split("====\n", 1)
    (folder / "run.tk").write_text(program, encoding="utf-8")
    done = tkc(folder, "run", "run.tk", *arguments, "--print", "--threads", "1")
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr}"
    return None if done.stdout.rstrip("\n") == wanted.rstrip("\n") else f"printed\n{done.stdout}"


def main():
    failed, all_cases = 0, list(cases())
    checked = [case for case in all_cases if not case[1].startswith("run")]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for (place, head, _), said in zip(checked, check_all(folder, checked)):
            if said != set(head.split(", ")):
                print(f"FAIL {place}: {', '.join(sorted(said))}, not {head}")
                failed += 1
        for place, head, text in all_cases:
            problem = run_one(folder, head.split()[1:], text) if head.startswith("run") else None
            if problem:
                print(f"FAIL {place}: {problem}")
                failed += 1
    print(f"language: {len(all_cases)} cases, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
