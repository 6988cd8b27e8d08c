# SPDX-License-Identifier: Apache-2.0
"""Asserts that `rung list --json` lists exactly the rungs on disk.

Rungs register themselves, so a file that is not compiled, or that the linker drops, would be missing without an error.
usage: rungs_equal_files.py SOURCE RUNG cuda|no-cuda simt|no-simt opencl|no-opencl OPERATOR...
"""
import json
import pathlib
import re
import subprocess
import sys


def rungs_on_disk(source, operators, cuda, simt, opencl):
    """Returns the set of (backend, operator, rung, step or kind, file) that should be listed."""
    expected = set()
    ops = source / "rung" / "ops"
    for path in sorted([*ops.glob("*/*/*"), *ops.glob("*/*/shapes/*"), *ops.glob("*/*/types/*")]):
        operator, file = path.relative_to(ops).parts[0], str(path.relative_to(source))
        if operator not in operators:
            continue
        name = "/".join(path.relative_to(ops).parts[1:])
        beside = re.fullmatch(r"(cpu|cuda)/(shape|type)s/(\w+?)(?:\.sm90a)?\.(?:cpp|cu)", name)
        cpu = re.fullmatch(r"cpu/(\d{3})_(\w+)\.cpp", name)
        gpu = re.fullmatch(r"cuda/(\d{3})_(\w+?)(?:\.sm90a)?\.cu", name)
        kernel = re.fullmatch(r"opencl/(\d{3})_(\w+)\.cl", name)
        peer = re.fullmatch(r"peers/(\w+)\.(?:cpp|cu)", name)
        if beside:
            for backend in ("cpu",) if beside[1] == "cpu" else ("cuda",) * cuda + ("simt",) * simt:
                expected.add((backend, operator, beside[3], beside[2], file))
        elif cpu:
            expected.add(("cpu", operator, cpu[2], int(cpu[1]), file))
        elif gpu:
            if cuda:
                expected.add(("cuda", operator, gpu[2], int(gpu[1]), file))
            if simt:
                expected.add(("simt", operator, gpu[2], int(gpu[1]), file))
        elif kernel:
            if opencl:
                expected.add(("opencl", operator, kernel[2], int(kernel[1]), file))
        elif peer:
            backend = {"cu": "cuda", "cl": "opencl"}.get(peer[1][:2], "cpu")
            if {"cuda": cuda, "opencl": opencl}.get(backend, True):
                expected.add((backend, operator, peer[1], "peer", file))
    return expected


def rungs_listed(program):
    listed = set()
    for rung in json.loads(subprocess.run([program, "list", "--json"], check=True,
                                          capture_output=True, text=True).stdout):
        step = rung["step"] if rung["kind"] == "step" else rung["kind"]
        entry = (rung["backend"], rung["op"], rung["rung"], step, rung["file"])
        if entry in listed:
            sys.exit(f"listed twice: {entry}")
        listed.add(entry)
    return listed


def main():
    source, program, cuda, simt, opencl = pathlib.Path(sys.argv[1]), *sys.argv[2:6]
    expected = rungs_on_disk(source, sys.argv[6:], cuda == "cuda", simt == "simt", opencl == "opencl")
    listed = rungs_listed(program)
    for entry in sorted(expected - listed, key=str):
        print("on disk, not listed:", *entry)
    for entry in sorted(listed - expected, key=str):
        print("listed, not on disk under this name and step:", *entry)
    if not expected or expected != listed:
        sys.exit(1)
    print(f"{len(listed)} rungs, each in its file")


if __name__ == "__main__":
    main()
