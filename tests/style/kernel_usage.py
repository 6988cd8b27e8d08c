# SPDX-License-Identifier: Apache-2.0
"""ptxas's reports on kernels become a table, and the compiler's other messages stay; a serialized wgmma is an error
with optimization. Uses a fake compiler.
usage: kernel_usage.py CMAKE SOURCE_FOLDER"""
import pathlib
import subprocess
import sys
import tempfile

SAID = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90a'
ptxas info    : Function properties for _Z6calledv
    64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for _Z1aPf
    24 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers
a.cu(3): warning #177-D: variable "x" was declared but never referenced
ptxas info    : Compiling entry function '_Z1bPf' for 'sm_80'
ptxas info    : Function properties for _Z1bPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, 384 bytes cmem[0]
"""
ROWS = ['{"_Z1aPf", 90, 40, 24, 8, 16},', '{"_Z1bPf", 80, 255, 0, 0, 0},']
SERIALIZED = "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized\n"


def serialized(source, place, *options):
    """Returns whether the object stays, the exit status and the output, for a compiler that reports a serialized
    wgmma."""
    compiler, target = place / "serializer", place / "b.o"
    compiler.write_text(f"#!/bin/sh\ntouch {target}\ncat >&2 <<'END'\n{SERIALIZED}END\n")
    compiler.chmod(0o755)
    run = subprocess.run([source / "keep_usage.sh", compiler, *options, "-o", target], capture_output=True, text=True,
                         check=False)
    return target.exists(), run.returncode, run.stderr


def main():
    cmake, source = sys.argv[1], pathlib.Path(sys.argv[2], "cmake").resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        compiler, result = place / "compiler", place / "usage.cpp"
        compiler.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{SAID}END\nexit 3\n")
        compiler.chmod(0o755)
        run = subprocess.run([source / "keep_usage.sh", compiler, "-c", "a.cu", "-o", place / "a.o"],
                             capture_output=True, text=True, check=False)
        warning = [line for line in SAID.splitlines() if "warning" in line]
        wrong = [] if run.returncode == 3 and run.stderr.splitlines() == warning else [f"passed on: {run}"]
        for options, expected in ((["-Xptxas=-v"], (False, 1, SERIALIZED)), (["-Xptxas=-O0"], (True, 0, ""))):
            if (got := serialized(source, place, *options)) != expected:
                wrong.append(f"{options}: {got}")
        subprocess.run([cmake, "-D", f"OBJECTS={place}/a.o;{place}/none.o", "-D",
                        f"TEMPLATE={source}/kernel_usage.cpp.in", "-D", f"RESULT={result}", "-P",
                        source / "kernel_usage.cmake"], check=True)
        rows = [line.strip() for line in result.read_text().splitlines() if '{"' in line]
    if rows != ROWS:
        wrong.append(f"rows: {rows}")
    if wrong:
        sys.exit("\n".join(wrong))


main()
