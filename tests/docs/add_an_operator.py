# SPDX-License-Identifier: Apache-2.0
"""Follows docs/add-an-operator.md in a copy of the tree without other operators.

Writes the page's files, builds, checks every rung, and runs the operator's test in C; then breaks a rung, and both
checks must fail. Objects of sources that the page does not change come from SOURCE_BUILD if it compiled the same.
usage: add_an_operator.py SOURCE SOURCE_BUILD SCRATCH
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

from listings import files_of

OPERATOR = "clip"


def run(*command):
    """Returns the exit status and the output."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def must(*command):
    status, output = run(*command)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))} exited with {status}:\n{output[-6000:]}")
    return output


def check(tree, build):
    """Returns the JSON of `rung check`."""
    must("cmake", "--build", build, "--target", "rung_program")
    _, output = run(build / "bin" / "rung", "check", OPERATOR, "--json")
    return json.loads(output[output.index("{"):])


def test_in_c(tree, build, scratch):
    """Returns the exit status and output of the C interface's test program, with this operator only."""
    (scratch / "operators.inc").write_text(f"OPERATOR({OPERATOR})\n")
    libraries = build / "lib"
    must("cc", "-std=c99", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-o", scratch / "test_in_c",
         tree / "tests/c_api/main.c", tree / "tests/c_api/check.c",
         tree / f"rung/ops/{OPERATOR}/test/{OPERATOR}_test.c",
         "-I", scratch, "-I", tree, "-I", build / "generated", "-L", libraries, f"-Wl,-rpath,{libraries}",
         "-lrung", "-lrung_thread", "-lm")
    return run(scratch / "test_in_c")


def list_interface(page, tree):
    """Runs the page's command for docs/api.md; expects that docs/api.md is then up to date and has the operator."""
    if not re.search(r"^python3 tools/api\.py\b", page, re.M):
        sys.exit("the page does not say to run tools/api.py, without which docs/api.md is out of date")
    must(sys.executable, tree / "tools/api.py")
    must(sys.executable, tree / "tools/api.py", "--check")
    if f"\n## {OPERATOR}\n" not in (tree / "docs/api.md").read_text():
        sys.exit(f"tools/api.py does not list {OPERATOR}")


def main():
    source, source_build, scratch = (pathlib.Path(path) for path in sys.argv[1:4])
    page = (source / "docs" / "add-an-operator.md").read_text()
    files = files_of(page)
    if len(files) < 4:
        sys.exit(f"only {len(files)} files found on the page")
    outside = [path for path in files if not path.startswith(f"rung/ops/{OPERATOR}/")]
    if outside:
        sys.exit(f"the page edits more than the operator's folder: {outside}")

    tree, build = scratch / "tree", scratch / "build"
    # Removes the build, too: objects of former sources must not be reused.
    shutil.rmtree(tree, ignore_errors=True)
    shutil.rmtree(build, ignore_errors=True)
    for name in ("CMakeLists.txt", "cmake", "rung", "tools", "tests/c_api", "docs/rung.1", "LICENSE"):
        if (source / name).is_dir():
            shutil.copytree(source / name, tree / name,
                            ignore=lambda folder, names: names if folder.endswith("/rung/ops") else [])
        else:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, tree / name)
    for path, content in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(content)
    list_interface(page, tree)

    reuse = [sys.executable, source / "tests/docs/reuse_objects.py", source, source_build, tree, build]
    cache = (source_build / "CMakeCache.txt").read_text()
    same = [f"-D{name}={value}" for name, value in
            re.findall(r"^(CMAKE_BUILD_TYPE|RUNG_UNITY|RUNG_CPU_NATIVE):\w+=(.*)$", cache, re.M)]
    must("cmake", "-G", "Ninja", "-S", tree, "-B", build, *same,
         f"-DCMAKE_CXX_COMPILER_LAUNCHER={';'.join(map(str, reuse))}",
         "-DRUNG_CUDA=OFF", "-DRUNG_PEERS=OFF", "-DRUNG_TESTS=OFF")
    good = check(tree, build)
    if good["failed"] != 0 or good["passed"] < 40:
        sys.exit(f"the operator as the page has it: {json.dumps(good, indent=1)[:3000]}")
    listed = {(rung["backend"], rung["rung"]) for rung in
              json.loads(must(build / "bin" / "rung", "list", OPERATOR, "--json"))}
    if listed != {("cpu", "naive"), ("simt", "thread_per_element")}:
        sys.exit(f"listed: {listed}")

    must(sys.executable, tree / "tests/c_api/every_function.py", tree)
    status, output = test_in_c(tree, build, scratch)
    if status != 0:
        sys.exit(f"the operator's test in C: {output}")

    rung = tree / "rung/ops" / OPERATOR / "cpu/010_naive.cpp"
    broken = rung.read_text().replace("value > high ? high : value", "value")
    rung.write_text(broken)
    bad = check(tree, build)
    if bad["failed"] == 0:
        sys.exit("a rung that ignores the upper bound passed the check")
    if test_in_c(tree, build, scratch)[0] == 0:
        sys.exit("a rung that ignores the upper bound passed the test in C")
    print(f"{good['passed']} cases passed; {bad['failed']} failed once the rung was broken")


if __name__ == "__main__":
    main()
