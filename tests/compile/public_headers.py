#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""public_headers.py CXX ROOT GENERATED: the public headers compile with users' flags and compilers.

Without C++20, whichever header comes first ends compilation with one message. With C++20, all of them together give no
warning. Uses CXX, and clang++ if it is installed: Debian 12's has no std::source_location.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"]
MOST_LINES = 15
# Core headers for programs; the others are only included by the library's own sources.
CORE = ["activation", "context", "dlpack", "dtype", "error", "extents", "tensor", "tensor_ref", "version",
        "view"]


def public_headers(root):
    operators = sorted(folder for folder in (root / "rung" / "ops").iterdir() if folder.is_dir())
    headers = ["rung/rung.hpp"] + [f"rung/core/{name}.hpp" for name in CORE] + ["rung/harness/npy.hpp"]
    headers += [f"rung/ops/{folder.name}/{folder.name}.hpp" for folder in operators
                if (folder / f"{folder.name}.hpp").exists()]
    templates = [path for folder in operators for path in sorted(folder.glob("*.cuh"))]
    return headers + [path.relative_to(root).as_posix() for path in templates]


class Compiler:
    """A compiler with a user's include paths."""

    def __init__(self, command, root, generated, scratch):
        self.command = command
        self.flags = ["-fsyntax-only", f"-I{root}", f"-I{generated}"]
        self.source = pathlib.Path(scratch) / "user.cpp"

    def errors(self, headers, *flags):
        """Returns the messages on a program that includes the headers; "" if it compiles without any."""
        self.source.write_text("".join(f"#include <{header}>\n" for header in headers) + "int main() {}\n")
        done = subprocess.run([self.command, *flags, *self.flags, self.source], capture_output=True, text=True)
        return done.stderr if done.returncode != 0 or done.stderr else ""

    def is_gcc(self):
        said = subprocess.run([self.command, "--version"], capture_output=True, text=True).stdout
        return "Free Software Foundation" in said


def wrong_with(compiler, headers):
    wrong = []
    for header in headers:
        said = compiler.errors([header], "-std=c++17")
        errors = [line for line in said.splitlines() if "error: " in line]
        if not errors or "rung needs C++20 (-std=c++20)" not in errors[0] or said.count("\n") > MOST_LINES:
            wrong.append(f"{compiler.command}: {header} first, with -std=c++17:\n{said[:1500] or 'no error'}")
    said = compiler.errors(headers, "-std=c++20", *WARNINGS)
    if said:
        wrong.append(f"{compiler.command}: all headers, with -std=c++20:\n{said[:3000]}")
    if compiler.is_gcc():  # only GCC compiles kernels for the simulated GPU; it does not know nvcc's pragmas
        said = compiler.errors(headers, "-std=c++20", *WARNINGS, "-Wno-conversion", "-Wno-unknown-pragmas",
                               "-DRUNG_SIMT=1")
        if said:
            wrong.append(f"{compiler.command} -DRUNG_SIMT=1: all headers:\n{said[:3000]}")
    return wrong


def main():
    command, root, generated = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    headers = public_headers(root)
    commands = [command] + ([shutil.which("clang++")] if shutil.which("clang++") else [])
    with tempfile.TemporaryDirectory() as scratch:
        wrong = [what for one in commands
                 for what in wrong_with(Compiler(one, root, generated, scratch), headers)]
    print("\n".join(wrong) or f"{len(headers)} headers, {' and '.join(commands)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
