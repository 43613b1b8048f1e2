# SPDX-License-Identifier: Apache-2.0
"""Kernels compiled ahead of time by the tool: what it writes and refuses, and a CMake project outside the tree that is
built against an installed tkc and runs on the simulated driver (and on a GPU where there is one)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TKC = pathlib.Path(os.environ["TKC"])
BUILD = TKC.parent
SOURCE = pathlib.Path(__file__).resolve().parent.parent
FOLDER = None
FAILED = []

KERNELS = """kernel add<BN: int = 1024>(x: in f32[N], y: in f32[N], z: out f32[N], stream: f32, bias: in f32[N] = none)
    grid (i in cdiv(N, BN))
{
    z[i * BN +: BN] = x[i * BN +: BN] * stream + y[i * BN +: BN];
}
kernel fill<T: type = i32, R: int = max(1, 2)>(y: out T[M, 8], v: T) grid (i in M) { y[i, 0 +: 8] = full([8], v); }
kernel fold<R: int = 16>(x: in f32[M, N], y: out f32[R, N]) grid (j in cdiv(N, 32)) {
    var s = full([R, 32], f32(0));
    for k in 0 .. M step R pipeline(3) {
        s = s + x[k +: R, j * 32 +: 32];
    }
    y[0 +: R, j * 32 +: 32] = s;
}
"""

MAIN = """#include "k.h"
#include <stdio.h>
int main(void) {
    enum { N = 3001 };
    static float x[N], z[N];
    void *dx = 0, *dz = 0;
    tkc_error e;
    const int64_t n = N;
    for (int i = 0; i < N; i++) x[i] = (float)i;
    if (tkc_rt_use_device(0, &e)) { puts(e.text); return 77; }
    tkc_status s = tkc_rt_alloc(sizeof x, &dx, &e);
    s = s ? s : tkc_rt_alloc(sizeof z, &dz, &e);
    s = s ? s : tkc_rt_copy(dx, x, sizeof x, TKC_TO_DEVICE, &e);
    tkc_tensor tx = tkc_tensor_make(dx, TKC_F32, 1, &n), tz = tkc_tensor_make(dz, TKC_F32, 1, &n);
    s = s ? s : add_load(&e);
    s = s ? s : add(&tx, &tx, &tz, 2.0f, NULL, &e);
    s = s ? s : tkc_rt_synchronize(&e);
    s = s ? s : tkc_rt_copy(z, dz, sizeof z, TKC_FROM_DEVICE, &e);
    if (s) { printf("%s: %s\\n", e.id, e.text); return 1; }
    for (int i = 0; i < N; i++) if (z[i] != 3 * x[i]) { printf("element %d is %g\\n", i, (double)z[i]); return 1; }
    enum { M = 46, W = 64, R = 16 };
    const int64_t tall[] = {M, W}, flat[] = {R, W};
    tx = tkc_tensor_make(dx, TKC_F32, 2, tall), tz = tkc_tensor_make(dz, TKC_F32, 2, flat);
    s = fold(&tx, &tz, NULL, &e);
    s = s ? s : tkc_rt_synchronize(&e);
    s = s ? s : tkc_rt_copy(z, dz, sizeof z, TKC_FROM_DEVICE, &e);
    if (s) { printf("%s: %s\\n", e.id, e.text); return 1; }
    for (int i = 0; i < R * W; i++) {
        float sum = 0;
        for (int k = i; k < M * W; k += R * W) sum += x[k];
        if (z[i] != sum) { printf("element %d is %g\\n", i, (double)z[i]); return 1; }
    }
    puts("right");
    add_unload();
    fold_unload();
    return tkc_rt_free(dx, &e) || tkc_rt_free(dz, &e);
}
"""


def check(condition, what):
    if not condition:
        FAILED.append(what)
        print("FAIL", what)


def execute(words, code=0, **more):
    done = subprocess.run([str(w) for w in words], cwd=more.pop("cwd", FOLDER), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=300, text=True, errors="replace", **more)
    check(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {done.stdout}")
    return done.stdout


def tkc(*words, code=0):
    return execute([TKC, *words], code=code)


def refused(code, text, *words):
    before = {p.name: p.read_bytes() for p in FOLDER.iterdir() if p.is_file()}
    said = tkc(*words, code=code)
    check(text in said, f"{words}: wanted '{text}' in: {said}")
    after = {p.name: p.read_bytes() for p in FOLDER.iterdir() if p.is_file()}
    check(before == after, f"{words}: files changed: {set(before) ^ set(after)}")


def refusals():
    (FOLDER / "old.o").write_text("old")
    (FOLDER / "folder").mkdir()
    (FOLDER / "bad.tk").write_text("kernel auto() {}\nkernel x(y: in f32[N] = none, new: i32 = 1) {}\n"
                                   "kernel unknown<T: type>(z: in T[N] = none) {}\n")
    (FOLDER / "none.tk").write_text("fn f(x: f32) -> f32 { return x; }\n")
    refused(3, "creating 'missing/k.o'", "k.tk", "-o", "missing/k.o", "--header", "k.h")
    refused(3, "creating 'missing/k.h'", "k.tk", "-o", "old.o", "--header", "missing/k.h")
    refused(3, "creating 'missing/k.d'", "k.tk", "-o", "old.o", "--header", "k.h", "--depfile", "missing/k.d")
    refused(3, "folder", "k.tk", "-o", "old.o", "--header", "folder")
    refused(3, "writing '/dev/full'", "k.tk", "-o", "/dev/full", "--emit=object")
    refused(2, "name the same file", "k.tk", "-o", "k.o", "--header", "k.o")
    refused(2, "did you mean 'sm_90'?", "k.tk", "-o", "k.o", "--arch", "sm_80,sm_91")
    refused(2, "'sm_80' is named twice", "k.tk", "-o", "k.o", "--arch", "sm_80,sm_90a,sm_80")
    refused(2, "there may be 16", "k.tk", "-o", "k.o", "--arch", ",".join(["sm_80"] * 17))
    refused(2, "--header goes with", "k.tk", "-o", "k.ptx", "--header", "k.h")
    refused(2, "--instance goes with", "k.tk", "--emit=ir", "--instance", "a=add")
    refused(2, "--depfile", "k.tk", "-o", "-", "--emit=object", "--depfile", "k.d")
    refused(2, "writes bytes", "k.tk", "--emit=object")
    refused(2, "names its kernel", "k.tk", "-o", "k.o", "--kernel", "add", "--instance", "a=add")
    refused(2, "takes NAME=KERNEL", "k.tk", "-o", "k.o", "--instance", "a=add,")
    refused(2, "takes NAME=KERNEL", "k.tk", "-o", "k.o", "--instance", "a=BN=64")
    refused(2, "is given twice", "k.tk", "-o", "k.o", "--instance", "a=add", "--instance", "a=fill")
    refused(2, "no kernel 'ad'", "k.tk", "-o", "k.o", "--instance", "a=ad")
    refused(2, "no compile-time parameter 'BM'", "k.tk", "-o", "k.o", "--instance", "a=add,BM=64")
    refused(1, "clashes with 'a'", "k.tk", "-o", "k.o", "--instance", "a=add", "--instance", "a_load=fill")
    refused(1, "'1a' is no identifier of C", "k.tk", "-o", "k.o", "--instance", "1a=add")
    refused(1, "bad.tk:1:1: error: 'auto' cannot be", "bad.tk", "-o", "k.o", "--kernel", "auto")
    for name in ("exp", "expf", "printf", "nanl"):
        refused(1, f"'{name}' cannot be the name of a function: the C library has one", "k.tk", "-o", "k.o", "--instance", f"{name}=add")
    refused(1, "'size_t' cannot be the name of a function: it is taken", "k.tk", "-o", "k.o", "--instance", "size_t=add")
    refused(1, "bad.tk:2:31: error: 'new' cannot be", "bad.tk", "-o", "k.o", "--kernel", "x")
    refused(1, "bad.tk:3:16: error: compile-time parameter 'T'", "bad.tk", "-o", "k.o", "--kernel", "unknown", "--given", "z")
    refused(1, "none.tk has no kernel", "none.tk", "-o", "k.o")
    refused(2, "not for code in a C program", "k.tk", "-o", "k.o", "--debug")


def library_names():
    """What the headers of C declare is refused as the name of a function."""
    text = (pathlib.Path(__file__).resolve().parent.parent / "runtime" / "ahead_name.c").read_text(encoding="utf-8")
    words = {name: set("".join(re.findall(r'"([^"]*)"', re.search(rf"char {name}\[\] =(.*?);", text, re.S)[1])).split())
             for name in ("math", "library")}
    known = words["library"] | {word + end for word in words["math"] for end in ("", "f", "l")}
    headers = "complex ctype errno inttypes locale math setjmp signal stdio stdlib string time uchar wchar wctype".split()
    (FOLDER / "all.c").write_text("".join(f"#include <{h}.h>\n" for h in headers))
    declared = set(re.findall(r"\b([a-z]\w*) ?\(", execute(["cc", "-std=c11", "-E", "-P", "all.c"])))
    syntax = {"int", "char", "long", "double", "float", "void", "sizeof"}  # before what is a pointer to a function
    rare = {name for name in declared if name.startswith(("mbrtoc", "c16rto", "c32rto", "isw", "wcs", "tow", "wct", "localeconv"))}
    missing = declared - known - rare - syntax
    check(not missing, f"not refused: {sorted(missing)}")


def files():
    tkc("k.tk", "-o", "k.o", "--header", "k.h", "--depfile", "k.d", "--arch", "sm_90a,sm_80")
    first = {name: (FOLDER / name).read_bytes() for name in ("k.o", "k.h")}
    check((FOLDER / "k.d").read_text() == "k.o: \\\n  k.tk\n", (FOLDER / "k.d").read_text())
    (FOLDER / "again").mkdir()
    shutil.copy(FOLDER / "k.tk", FOLDER / "again")
    execute([TKC, "k.tk", "-o", "k.o", "--header", "k.h", "--arch", "sm_80,sm_90a"], cwd=FOLDER / "again")
    for name, data in first.items():
        check((FOLDER / "again" / name).read_bytes() == data, f"{name} is another in another folder")
    check(first["k.o"].count(b"cp.async.bulk.tensor.2d") > 0, "no tensor copies")
    # The code in it is what the compiler gives elsewhere.
    assembled = "assembler" not in tkc("k.tk", "-o", "k2.o", "--kernel", "add", "--arch", "sm_80")
    for arch in ("sm_80", "sm_90a"):
        for flags in (["--whole-rows", "--near"], ["--contiguous", "--near"], []):
            for kind in ("ptx", "cubin")[:1 + assembled]:
                tkc("k.tk", "--kernel", "add", "--arch", arch, "-o", f"one.{kind}", *flags)
                check((FOLDER / f"one.{kind}").read_bytes() in first["k.o"], f"{kind} of {arch} {flags} is another")
            maps = ["--mapped", *flags[1:]] if flags else []
            tkc("k.tk", "--kernel", "fold", "--arch", arch, "-o", "one.ptx", *maps)
            check((FOLDER / "one.ptx").read_bytes() in first["k.o"], f"fold of {arch} {maps} is another")
    # Names with spaces, imports; the library's own files are no dependencies.
    (FOLDER / "a b.tk").write_text('import "std/softmax.tk";\nimport "k.tk";\nkernel s = softmax(T = f32, BN = 64, LONG = false);\n')
    tkc("a b.tk", "-o", "a b#$.o", "--depfile", "ab.d", "--arch", "sm_80")
    check((FOLDER / "ab.d").read_text() == "a\\ b\\#$$.o: \\\n  a\\ b.tk \\\n  k.tk\n", (FOLDER / "ab.d").read_text())
    # Instances, sizes, optional parameters.
    tkc("k.tk", "-o", "i.o", "--header", "i.h", "--instance", "a64=add,BN=64,N=100,bias", "--instance",
        "f=fill,T=f16,R=max(3,4)", "--whole-rows")
    header = (FOLDER / "i.h").read_text()
    for text in ("kernel 'add' with BN=64", "in f32[N = 100]", "const tkc_tensor *bias, void *stream_, ",
                 "static inline tkc_status f(const tkc_tensor *y, float v, void *stream, tkc_error *error)", "out f16[M, 8]",
                 "T=f16,R=4"):
        check(text in header, f"'{text}' is not in {header}")


def compiles(words, *more):
    return execute([*words, *more])


def programs(driver):
    """Both forms, linked with the run time alone."""
    (FOLDER / "main.c").write_text(MAIN)
    (FOLDER / "use.cc").write_text('#include "k.h"\nint main() { return add(0, 0, 0, 1, 0, 0) == TKC_OK; }\n')
    cc = ["cc", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-I", SOURCE / "runtime"]
    runtime = [BUILD / "libtkcrt.a", "-lm", "-lpthread", "-ldl"]
    names = set(re.findall(r" [A-TV-Z] (\w+)", execute(["nm", BUILD / "libtkcrt.a"])))
    check(names and all(name.startswith("tkc_") for name in names), f"libtkcrt has other names: {names}")
    tkc("k.tk", "-o", "k.c", "--arch", "sm_80,sm_90a")
    for form in ("k.o", "k.c"):
        compiles(cc, "main.c", form, *runtime, "-o", "main")
        check("right" in execute(["./main"], env=driver), f"{form} on the simulated GPU")
        check("libtkc" not in execute(["ldd", "./main"]) and "LLVM" not in execute(["ldd", "./main"]), "needs the compiler")
    compiles(cc, "-shared", "-fPIC", "main.c", "k.o", *runtime, "-o", "libmain.so")
    cxx = shutil.which("clang++-14") or shutil.which("g++")
    if cxx:
        compiles([cxx, "-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-fsyntax-only",
                  "-I", SOURCE / "runtime"], "use.cc")
    alone = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run(["./main"], cwd=FOLDER, env=alone, stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode == 77:
        check("no NVIDIA driver" in done.stdout or "driver" in done.stdout, done.stdout)
    else:
        check(done.returncode == 0 and "right" in done.stdout, f"on the GPU: {done.stdout}")
        print("on the GPU:", done.stdout.strip())


def project(driver):
    """examples/embed outside the tree, against an installation."""
    prefix, outside = FOLDER / "prefix", FOLDER / "outside"
    execute(["cmake", "--install", BUILD, "--prefix", prefix])
    for name in ("share/man/man1/tkc.1", "share/man/man3/libtkc.3", "share/man/man3/libtkcrt.3", "share/man/man7/tkc.7",
                 "share/bash-completion/completions/tkc", "share/zsh/site-functions/_tkc", "share/vim/vimfiles/syntax/tk.vim",
                 "share/vim/vimfiles/ftdetect/tk.vim", "include/tkc.h", "include/tkc_rt.h", "bin/tkc"):
        check((prefix / name).is_file(), f"{name} is not installed")
    shutil.copytree(SOURCE / "examples" / "embed", outside)
    generators = [["-G", "Unix Makefiles"]] + ([["-G", "Ninja"]] if shutil.which("ninja") else [])
    for number, generator in enumerate(generators):
        build = FOLDER / f"out{number}"
        execute(["cmake", *generator, "-S", outside, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                 "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror"])
        execute(["cmake", "--build", build])
        check("softmax of 64 rows of 300" in execute([build / "rows"], env=driver), "rows on the simulated GPU")
        check("Compiling kernels" not in execute(["cmake", "--build", build]), "built again though nothing changed")
        scale = outside / "scale.tk"
        scale.write_text(scale.read_text().replace("x * a", "x * a * 1.0"))
        os.utime(scale, (2**31, 2**31))
        check("Compiling kernels" in execute(["cmake", "--build", build]), "a changed import is not seen")
        os.utime(scale)
    wrong = FOLDER / "wrong"
    shutil.copytree(outside, wrong)
    for call, text in (("tkc_add_kernels(rows)", "no file is given"), ("tkc_add_kernels(lines rows.tk)", "is no target"),
                       ("tkc_add_kernels(rows rows.tk rows.tk)", "two files are named rows.tk")):
        (wrong / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(rows LANGUAGES C)\n"
                                              f"find_package(tkc REQUIRED)\nadd_executable(rows main.c)\n{call}\n")
        said = execute(["cmake", "-S", wrong, "-B", FOLDER / "wrong-build", f"-DCMAKE_PREFIX_PATH={prefix}"], code=1)
        check(text in said, f"{call}: {said}")
    lines(driver, prefix)


def lines(driver, prefix):
    """The commands of the pages that compile a C program, as they stand there."""
    plain = {k: v for k, v in os.environ.items() if k not in ("CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH")}
    package = str(next(prefix.glob("lib*/**/pkgconfig")))
    usual = {"CPATH": str(prefix / "include"), "LIBRARY_PATH": str(pathlib.Path(package).parent)}
    page = (SOURCE / "docs" / "embedding.md").read_text()
    found = [line.split(" && ")[0] for line in page.splitlines() if line.startswith("cc ")]
    check(len(found) == 3, f"embedding.md: {found}")
    for line in found:
        if "pkg-config" in line and not shutil.which("pkg-config"):
            continue
        command = line.replace("app.c saxpy.o", "main.c k.o").replace("-o app", "-o main")
        command = command.replace("$DIR/lib/pkgconfig", package).replace("$TKC/build/release", str(BUILD)).replace("$TKC", str(SOURCE))
        (FOLDER / "main").unlink(missing_ok=True)
        execute(["sh", "-c", command], env=plain if "$" in line else dict(plain, **usual))
        check("right" in execute(["./main"], env=driver), line)
    readme = (SOURCE / "README.md").read_text()
    (FOLDER / "app.c").write_text(readme.split("```c\n")[1].split("```")[0])
    flags = re.findall(r"`(-Iruntime [^`]*)`", readme)
    package_line = re.findall(r"`cc (app.c .*pkg-config[^`]*)`", readme)
    check(len(flags) == len(package_line) == 1, f"README: {flags} {package_line}")
    by_folder = f"cc {FOLDER}/app.c -o {FOLDER}/app " + flags[0].replace("build/release", str(BUILD)).replace("$PWD/" + str(BUILD), str(BUILD))
    by_package = f"PKG_CONFIG_PATH={package}; export PKG_CONFIG_PATH; cc -o app {package_line[0]} -Wl,-rpath,{pathlib.Path(package).parent}"
    for command, cwd in ((by_folder, SOURCE), *(((by_package, FOLDER),) if shutil.which("pkg-config") else ())):
        done = subprocess.run(["sh", "-c", command], cwd=cwd, env=plain, capture_output=True, text=True, check=False)
        check(done.returncode == 0 and "2 4 6" in execute(["./app"], env=plain), f"{command}: {done.stderr}")


def main():
    global FOLDER
    if "built without LLVM" in subprocess.run([TKC, "info"], stdout=subprocess.PIPE, text=True, check=True).stdout:
        print("SKIPPED: this build has no GPU code generator")
        return 0
    driver = dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "tests" / "sim_driver"))
    with tempfile.TemporaryDirectory(prefix="tkc-ahead-") as scratch:
        FOLDER = pathlib.Path(scratch)
        (FOLDER / "k.tk").write_text(KERNELS)
        refusals()
        library_names()
        files()
        programs(driver)
        project(driver)
        left = [p for p in FOLDER.rglob(".tkc-*")]
        check(not left, f"temporary files are left: {left}")
    print(f"{len(FAILED)} failures")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
