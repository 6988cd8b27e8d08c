#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What building each operator cost, in seconds of one processor, from the log that ninja keeps.

usage: build_times.py BUILD...

A row per operator and for what is none's (core, workbench, simulator, unity sources); columns for its CPU sources,
its kernels by nvcc and for the simulated GPU, and its tests. Of a file that was built several times the last counts."""
import collections
import pathlib
import re
import sys

KINDS = ["cpu", "nvcc", "simt", "tests"]


def kind_of(output):
    if "/test/" in output or output.startswith("tests/"):
        return "tests"
    if not output.endswith(".cu.o"):
        return "cpu"
    return "simt" if "rung_simt" in output else "nvcc"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for build in map(pathlib.Path, sys.argv[1:]):
        seconds = {}
        for line in (build / ".ninja_log").read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                continue
            begin, end, _, output, _ = line.split("\t")
            seconds[output] = (int(end) - int(begin)) / 1000
        table = collections.defaultdict(collections.Counter)
        for output, took in seconds.items():
            operator = re.search(r"ops/([a-z0-9_]+)/", output)
            table[operator[1] if operator else "-"][kind_of(output)] += took
        print(f"{build}: seconds of compilers and linkers")
        print(f"{'':16}" + "".join(f"{kind:>8}" for kind in [*KINDS, "all"]))
        for operator, row in sorted(table.items(), key=lambda one: -one[1].total()):
            print(f"{operator:16}" + "".join(f"{row[kind]:8.0f}" for kind in KINDS) + f"{row.total():8.0f}")


if __name__ == "__main__":
    main()
