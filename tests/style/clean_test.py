# SPDX-License-Identifier: Apache-2.0
"""clean.py, lint.sh and the launcher's `asan` on a small tree: the units that they check after each kind of change, and
that only passed units are recorded. usage: clean_test.py"""
import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import clean

STYLE = pathlib.Path(__file__).resolve().parent
LAUNCHER = STYLE.parents[1] / "rung.sh"
FILES = {
    "README.md": "", "docs/a.md": "", "tools/a.py": "", "tests/style/words.py": "", "tests/core/a_test.cpp": "",
    "CMakeLists.txt": "", "cmake/a.cmake": "", "tests/support/a.hpp": "", "tests/c_api/check.c": "",
    "rung/bench/a.hpp": "",
    "rung.sh": "usage() {\n  echo\n}\n\nprepare() {\n  configure\n}\n",
    "rung/core/error.hpp": "struct Error {};\n", "rung/core/error.cpp": '#include "rung/core/error.hpp"\n',
    "rung/cpu/team.cpp": '#include "team.hpp"\n', "rung/cpu/team.hpp": "#include <rung/core/error.hpp>\n",
    "rung/emulate/a.cpp": "int a;\n",
    "rung/ops/gemm/gemm.hpp": "", "rung/ops/gemm/README.md": "", "rung/ops/gemm/cuda/010_naive.cu": "",
    "rung/ops/conv/cpu/010_naive.cpp": '#include "rung/ops/gemm/gemm.hpp"\n',
    "rung/ops/conv/shared/axes.hpp": "", "rung/ops/loss/uses": "# why\ngemm\n", "rung/ops/loss/op/a.cpp": "",
    "rung/ops/pool/pool.hpp": '#include "rung/ops/conv/shared/axes.hpp"\n',
    "rung/ops/scan/scan.hpp": "",
}
ALL = "rest;conv;gemm;loss;pool;scan"
# Files that are written (or, with None, removed) after everything was clean, and the units to be tested then.
CASES = [
    ({}, ""),
    ({"README.md": "x", "docs/a.md": "x", "tools/a.py": "x", "tests/style/words.py": "x"}, ""),
    ({"rung/ops/gemm/README.md": "x"}, ""),
    ({"rung/ops/scan/scan.hpp": "x"}, "scan"),
    ({"rung/ops/scan/cpu/010_new.cpp": "x"}, "scan"),
    ({"rung/ops/gemm/cuda/010_naive.cu": "x"}, "conv;gemm;loss;pool"),  # with all direct and indirect users
    ({"rung/ops/conv/shared/axes.hpp": "x"}, "conv;pool"),
    ({"rung/ops/pool/pool.hpp": "x", "rung/ops/scan/scan.hpp": "x"}, "pool;scan"),
    ({"rung/ops/scan/scan.hpp": None}, "scan"),
    ({"rung/ops/new/new.hpp": "x"}, "new"),
    ({"rung/core/error.hpp": "x"}, ALL),
    ({"rung/core/error.hpp": None, "rung/cpu/error.hpp": FILES["rung/core/error.hpp"]}, ALL),  # moved
    ({"tests/support/a.hpp": "x"}, ALL), ({"tests/c_api/check.c": "x"}, ALL), ({"CMakeLists.txt": "x"}, ALL),
    ({"cmake/a.cmake": "x"}, ALL), ({"rung/bench/a.hpp": "x"}, ALL),
    ({"tests/core/a_test.cpp": "x"}, "rest"), ({"rung/emulate/a.cpp": "x"}, "rest"),
    ({"rung.sh": FILES["rung.sh"].replace("echo", "cat")}, ""),  # does not change how the tests are built
    ({"rung.sh": FILES["rung.sh"].replace("configure", "configure -O2")}, ALL),
]
# The same for the sources to be linted.
SOURCES = [
    ({}, []),
    ({"rung/cpu/team.cpp": "int b;\n"}, ["rung/cpu/team.cpp"]),
    ({"rung/cpu/team.hpp": "int b;\n"}, ["rung/cpu/team.cpp"]),
    ({"rung/core/error.hpp": "int b;\n"}, ["rung/core/error.cpp", "rung/cpu/team.cpp"]),
    ({"rung/ops/gemm/gemm.hpp": "int b;\n"}, []),  # its user is not compiled in this tree
    ({".clang-tidy": "Checks: '*'\n"}, ["rung/core/error.cpp", "rung/cpu/team.cpp", "rung/emulate/a.cpp"]),
]
failed = 0


def expect(found, expected, what):
    global failed
    if found != expected:
        print(f"{what}: '{found}', not '{expected}'")
        failed += 1


def write(root, files):
    for name, text in files.items():
        if text is None:
            (root / name).unlink()
        else:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")


class Tree:
    """A copy of FILES with its own cache, in a folder that is removed at the end."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root, self.cache = pathlib.Path(self.folder.name, "tree"), pathlib.Path(self.folder.name, "cache")
        os.environ["RUNG_CLEAN_CACHE"] = str(self.cache)
        write(self.root, FILES)
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def look(self, everything=False):
        """Returns the units to be tested, and marks them as clean."""
        clean.content.cache_clear()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            clean.print_tests(self.root, everything)
        units, _, *keys = printed.getvalue().split("\n")
        clean.mark(filter(None, keys))
        return units


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_units():
    for changes, expected in CASES:
        with Tree() as tree:
            expect(tree.look(), ALL, "with nothing known")
            write(tree.root, changes)
            expect(tree.look(), expected, changes)
            expect(tree.look(), "", f"{changes}, a second time")
            write(tree.root, FILES)
            for name in changes.keys() - FILES.keys():
                (tree.root / name).unlink()
                if name.startswith("rung/ops/new/"):
                    (tree.root / name).parent.rmdir()
            expect(tree.look(), "", f"{changes}, taken back: the content is known")
            expect(tree.look(everything=True), ALL, "--all")


def test_forgetting():
    with Tree() as tree:
        tree.look()
        for path in tree.cache.iterdir():
            os.utime(path, (0, 0))
        expect(tree.look(), "", "old keys")
        clean.mark([])
        expect(tree.look(), "", "old keys that were of use")
        for path in tree.cache.iterdir():
            os.utime(path, (0, 0))
        clean.mark(["asan-0"])
        expect([path.name for path in tree.cache.iterdir()], ["asan-0"], "keys of long ago")
        tree.cache.joinpath("asan-0").unlink()
        tree.cache.rmdir()
        tree.cache.write_text("")  # a file, so that no folder can be created
        expect(run(sys.executable, STYLE / "clean.py", "folder").returncode, 1, "no folder")


def test_lint():
    """Runs lint.sh with a tool that finds a fault in sources with the word `bad`."""
    with Tree() as tree:
        lint = linter(tree)
        everything = ["rung/core/error.cpp", "rung/cpu/team.cpp", "rung/emulate/a.cpp"]
        write(tree.root, {"rung/emulate/a.cpp": "bad\n"})
        expect(lint(), (everything, False), "with nothing known")
        expect(lint(), (["rung/emulate/a.cpp"], False), "what failed is looked at again")
        write(tree.root, {"rung/emulate/a.cpp": FILES["rung/emulate/a.cpp"]})
        expect(lint(), (["rung/emulate/a.cpp"], True), "mended")
        for changes, expected in SOURCES:
            write(tree.root, changes)
            expect(lint(), (expected, True), f"lint after {changes}")
            write(tree.root, {name: FILES.get(name, "") for name in changes})
        expect(lint(), ([], True), "lint after all was taken back")
        expect(lint("rung/cpu/team.cpp"), (["rung/cpu/team.cpp"], True), "lint of a file")
        expect(lint("--all"), (everything, True), "lint --all")
        write(tree.root.parent, {"version": "another"})
        expect(lint(), (everything, True), "lint by another version of the tool")


def linter(tree):
    """Returns a function that runs the tree's lint.sh and returns the linted sources and whether all passed."""
    log, tool = tree.root.parent / "log", tree.root.parent / "tool"
    shutil.copy(STYLE / "lint.sh", tree.root / "tests/style")
    shutil.copy(STYLE / "clean.py", tree.root / "tests/style")
    script = "#!/usr/bin/env bash\necho\n"
    write(tree.root, {".clang-tidy": "", ".ci/run": script, "tools/a.sh": script, "rung.sh": script})
    write(tree.root.parent, {"tool": f"""#!/bin/sh
if [ "$1" = --version ]; then cat {tree.root.parent}/version; exit; fi
for source; do :; done
echo "$source" >>{log}
! grep -q bad "$source"
""", "version": "one"})
    tool.chmod(0o755)
    commands = [{"directory": str(tree.root / "build"), "file": str(tree.root / name), "command": f"c++ -I.. -c {name}"}
                for name in FILES if name.endswith(".cpp") and "/ops/" not in name]
    write(tree.root, {"build/compile_commands.json": json.dumps(commands)})

    def lint(*arguments):
        log.write_text("")
        done = run("bash", tree.root / "tests/style/lint.sh", tool, tree.root / "build", 2, *arguments)
        return sorted(log.read_text().split()), done.returncode == 0
    return lint


def test_launcher():
    """Runs rung.sh's function asan, with stubs for all commands that it calls."""
    text = LAUNCHER.read_text(encoding="utf-8")
    function = re.search(r"^asan\(\) \{\n.*?^\}", text, re.M | re.S)[0]
    with Tree() as tree:
        (tree.root / "tests/style/clean.py").symlink_to(STYLE / "clean.py")
        write(tree.root, {"rung/ops/scan/test/scan_test.cpp": ""})
        prologue = f"""set -euo pipefail
root={tree.root} jobs=1
say() {{ :; }}
run_tests() {{ echo "run_tests $*"; [[ -z ${{FAIL:-}} ]]; }}
prepare() {{ echo "prepare $operator: $*"; }}
ctest() {{ echo "ctest ${{*: -2}}"; [[ -z ${{FAIL:-}} ]]; }}
"""

        def asan(*arguments, fail=""):
            done = run("bash", "-c", f'FAIL={fail}\n{prologue}{function}\nasan "$@"', "asan", *arguments)
            return done.stdout + done.stderr, done.returncode == 0

        expect(asan(fail="yes"), ("run_tests asan\n", False), "asan that fails")
        expect(asan("-R", "gemm"), ("run_tests asan -R gemm\n", True), "asan of some tests")
        expect(asan(), ("run_tests asan\n", True), "nothing of that was remembered")
        expect(asan(), ("", True), "asan where all is known")
        write(tree.root, {"rung/ops/scan/scan.hpp": "x", "rung/ops/pool/pool.hpp": "x"})
        some = ("prepare pool;scan: asan rung_program test_c_api test_scan\n"
                "ctest -R ^(check_(pool|scan)(_brief)?|test_(pool|scan)_[0-9]+|c_api)$\n")
        expect(asan(fail="yes"), (some, False), "asan of two operators that fails")
        expect(asan(), (some, True), "asan of two operators")
        expect(asan(), ("", True), "asan after two operators")
        write(tree.root, {"rung/emulate/a.cpp": "x", "rung/ops/gemm/gemm.hpp": "x"})
        rest = "run_tests asan -E ^(check_(pool|scan)(_brief)?|test_(pool|scan)_[0-9]+)$\n"
        expect(asan(), (rest, True), "asan of the rest")
        expect(asan("--all"), ("run_tests asan --all\n", True), "asan --all")


def main():
    for test in (test_units, test_forgetting, test_lint, test_launcher):
        test()
    print(f"{failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
