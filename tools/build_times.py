#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each operator costs, in seconds of one processor, from the logs that ninja and ctest keep.

usage: build_times.py BUILD...

A row per operator and for what belongs to none (core, workbench, simulator, unity sources); columns for compiling its
CPU sources, its kernels by nvcc and for the simulated GPU, and its tests, and for running its tests. Of a file that was
built several times the last counts, of tests those that ctest ran last. The slowest files and tests are named below."""
import collections
import pathlib
import re
import sys

KINDS = ["cpu", "nvcc", "simt", "tests", "run"]
SLOWEST = 8


def kind_of(output):
    if "/test/" in output or output.startswith("tests/"):
        return "tests"
    if not output.endswith(".cu.o"):
        return "cpu"
    return "simt" if "rung_simt" in output else "nvcc"


def compile_times(build):
    """Seconds by output, of compilers and linkers."""
    seconds = {}
    for line in (build / ".ninja_log").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            begin, end, _, output, _ = line.split("\t")
            seconds[output] = (int(end) - int(begin)) / 1000
    return seconds


def test_times(build):
    """Seconds by test, of the last run; nothing where there was none."""
    log = build / "Testing/Temporary/LastTest.log"
    if not log.exists():
        return {}
    found = re.findall(r"^\d+/\d+ Test: (\S+)$.*?^Test time = +([0-9.]+) sec$",
                       log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE | re.DOTALL)
    return {name: float(seconds) for name, seconds in found}


def labels(build):
    """Of the tests that GoogleTest programs consist of, the label: an operator's name for its own."""
    found = {}
    for listed in build.glob("tests/**/*_tests.cmake"):
        text = listed.read_text(encoding="utf-8")
        found.update(re.findall(r"^set_tests_properties\(\[=\[(.*?)\]=\] .* LABELS (\w+)\)$", text, re.MULTILINE))
    return found


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for build in map(pathlib.Path, sys.argv[1:]):
        if not (build / ".ninja_log").exists():
            print(f"{build}: not built")
            continue
        compiled, ran, label_of = compile_times(build), test_times(build), labels(build)
        table = collections.defaultdict(collections.Counter)
        for output, took in compiled.items():
            operator = re.search(r"ops/([a-z0-9_]+)/", output)
            table[operator[1] if operator else "-"][kind_of(output)] += took
        operators = sorted(table, key=len, reverse=True)
        for test, took in ran.items():
            label = label_of.get(test, "")
            # check_gemm_prefetch_0, mutants_stencil: the longest operator's name that follows.
            named = next((one for one in operators if re.match(rf"[a-z]+_{one}(_|$)", test)), "-")
            table[label if label in table else named]["run"] += took
        print(f"{build}: seconds of compilers and linkers, and of tests")
        print(f"{'':20}" + "".join(f"{kind:>8}" for kind in [*KINDS, "all"]))
        for operator, row in sorted(table.items(), key=lambda one: -one[1].total()):
            print(f"{operator:20}" + "".join(f"{row[kind]:8.0f}" for kind in KINDS) + f"{row.total():8.0f}")
        total = sum(table.values(), collections.Counter())
        print(f"{'all':20}" + "".join(f"{total[kind]:8.0f}" for kind in KINDS) + f"{total.total():8.0f}")
        for what, times in ("files", compiled), ("tests", ran):
            slowest = sorted(times.items(), key=lambda one: -one[1])[:SLOWEST]
            print(f"slowest {what}: " + ", ".join(f"{re.sub('^.*/(?=ops/)|^.*[.]dir/', '', name)} {took:.0f}"
                                                  for name, took in slowest))


if __name__ == "__main__":
    main()
