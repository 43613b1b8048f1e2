# SPDX-License-Identifier: Apache-2.0
"""What is made from the lists and texts of the tree is in step with them: manual pages, completion, vim's syntax; and the manual
names every option of the command and every function of the libraries."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TKC = os.environ["TKC"]
FAILED = []


def check(condition, what):
    if not condition:
        FAILED.append(what)
        print("FAIL", what)


def commands():
    names = re.search(r"case \$\{COMP_WORDS\[1\]\} in\n +([\w|]+)\|help\)", execute([TKC, "completion", "bash"])[0]).group(1).split("|")
    check({"check", "run", "emit", "completion"} <= set(names), names)
    return names


def execute(words, **more):
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120,
                          text=True, **more)
    check(done.returncode == 0, f"{words}: exit code {done.returncode}: {done.stderr}")
    return done.stdout, done.stderr


def options_of(command):
    """As `tkc help` shows them, without their values."""
    text = execute([TKC, "help", command])[0]
    found = []
    for line in text.split("\nOptions:\n", 1)[1].split("\n\n", 1)[0].splitlines():
        match = re.match(r"  (?:(-\w), )?(-{1,2}[A-Za-z-]+)", line)
        if match:
            found += [name for name in match.groups() if name]
    check(found, f"no options in {text}")
    return found


def documentation(folder):
    """No link of an installed page leads to what is not installed."""
    execute([ROOT / "scripts" / "gen-docs", folder])
    for page in folder.iterdir():
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            there = (folder / target).exists() or (target.startswith("examples/") and (ROOT / target).exists())
            check(there or target.startswith("http"), f"{page.name} leads to {target}")
    check((folder / "language.md").exists() and not (folder / "recipes.md").exists(), "pages for users")


def manual(folder):
    execute([ROOT / "scripts" / "gen-man", folder])
    pages = {p.name: p.read_text(encoding="utf-8") for p in folder.iterdir()}
    check(sorted(pages) == ["libtkc.3", "libtkcrt.3", "tkc.1", "tkc.7"], f"pages: {sorted(pages)}")
    for command in commands():
        for option in options_of(command):
            check(option.replace("-", "\\-") in pages["tkc.1"], f"tkc.1 does not have {option} of {command}")
    for page, header in (("libtkc.3", "tkc.h"), ("libtkcrt.3", "tkc_rt.h")):
        text = (ROOT / "runtime" / header).read_text(encoding="utf-8")
        names = set(re.findall(r"\b(tkc_\w+)\(", re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)))
        check(len(names) > 5, f"functions of {header}")
        for name in names:
            check(name in pages[page], f"{page} does not have {name}")
    # An item is one paragraph, whose next line in the header is no code; and code has no marks of Markdown.
    items = re.findall(r"^// - (\w+) +(\S.*)\n//   +(\S.*)", (ROOT / "runtime" / "tkc.h").read_text(encoding="utf-8"), re.M)
    check(len(items) > 2, f"{items}")
    for name, first, second in items:
        whole = "".join(dict(zip("-'`^~", ("\\-", "\\(aq", "\\(ga", "\\(ha", "\\(ti"))).get(c, c) for c in f"{name} {first} {second}")
        check(re.sub(r"\s+", " ", whole) in pages["libtkc.3"].replace("\\fB", "").replace("\\fR", "") or "`" in whole, f"libtkc.3 tears {name} apart: {whole}")
    for page in ("tkc.1", "libtkc.3", "libtkcrt.3"):
        synopsis = pages[page].split(".SH SYNOPSIS", 1)[1].split(".SH ", 1)[0]
        check("\\(ga" not in synopsis, f"{page}: marks in the synopsis")
    for heading in re.findall(r"^## (\w+)", (ROOT / "docs" / "language.md").read_text(encoding="utf-8"), re.M):
        check(f".SH {heading}" in pages["tkc.7"], f"tkc.7 has no section {heading}")
    if not shutil.which("groff"):
        print("SKIPPED formatting the pages: no groff")
        return
    for name in pages:
        out, said = execute(["groff", "-man", "-t", "-Tutf8", "-ww", "-k", folder / name])
        said = [s for s in said.splitlines() if "break line" not in s and "adjust line" not in s]
        check(not said, f"groff of {name}: {said[:3]}")
        check(len(out) > 2000, f"{name} is empty")


def complete(line):
    """What bash offers at the end of the line."""
    words = [w for part in line.split(" ") for w in (re.split("(=)", part) if part.startswith("-") else [part])]
    words = [w for i, w in enumerate(words) if w or i + 1 == len(words)]
    if line.endswith("="):
        words = words[:-1] if not words[-1] else words
    script = f"source <({TKC} completion bash)\nCOMP_WORDS=({' '.join(repr(w) for w in words)})\n" \
             f"COMP_CWORD={len(words) - 1}\n_tkc\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    return set(execute(["bash", "-c", script], cwd=ROOT / "examples")[0].split())


def completion():
    for command in commands():
        line = "tkc -" if command == "emit" else f"tkc {command} -"
        check(set(options_of(command)) <= complete(line), f"{command}: {complete(line)}")
    for line, wanted in (("tkc r", {"run"}), ("tkc run --device=", set()), ("tkc --emit=", {"ast", "ptx", "object"}),
                         ("tkc --emit no", {"notes"}), ("tkc k.tk --arch sm_9", {"sm_90", "sm_90a"}), ("tkc embed", {"embed.c"}),
                         ("tkc run --counters=", {"text", "json"}), ("tkc help f", {"fmt"}), ("tkc run em", {"embed.c"})):
        got = complete(line)
        check(wanted <= got and (wanted or not got), f"{line}: {got}")
    check("--counters" not in complete("tkc check -"), "options of another command")
    zsh = execute([TKC, "completion", "zsh"])[0]
    check(zsh.startswith("#compdef tkc\n"), "zsh")
    for command in commands():
        part = zsh.split(f"        {command}) _arguments", 1)[1].split(";;", 1)[0]
        for option in options_of(command):
            check(re.search(rf"'\*?{option}(=-|=|\+)?\[", part), f"zsh: {option} of {command}")
    if shutil.which("zsh"):
        execute(["zsh", "-n", "/dev/stdin"], input=zsh)


def vim(folder):
    execute([ROOT / "scripts" / "gen-vim", "--check"])
    if not shutil.which("vim"):
        print("SKIPPED loading the syntax: no vim")
        return
    (folder / "k.tk").write_text("kernel k(x: out f32[N]) { x[0] = exp(1.5); } // word\n@warps(4)\n")
    groups = [(1, 1), (1, 13), (1, 34), (1, 38), (1, 50), (2, 2)]
    ask = "".join(f"call add(found, synIDattr(synID({line}, {column}, 1), 'name'))\n" for line, column in groups)
    (folder / "ask.vim").write_text(f"let found = []\n{ask}call writefile(found, '{folder}/found')\nqa!\n")
    execute(["vim", "-e", "-s", "-u", "NONE", "-N", "--cmd", f"set rtp^={ROOT}/editors/vim", "-c", "filetype on", "-c", "syntax on", "-c",
             f"edit {folder}/k.tk", "-S", folder / "ask.vim"])
    found = (folder / "found").read_text().split("\n")[:-1]
    check(found == ["tkItem", "tkAccess", "tkBuiltin", "tkNumber", "tkComment", "tkAttribute"], f"vim: {found}")


def main():
    with tempfile.TemporaryDirectory(prefix="tkc-pages-") as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "man").mkdir()
        manual(scratch / "man")
        documentation(scratch / "doc")
        completion()
        vim(scratch)
    print(f"{len(FAILED)} failures")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
