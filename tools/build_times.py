#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the build and test cost of each operator, in processor seconds, from the logs of ninja and ctest.

usage: build_times.py [--budget SECONDS] BUILD...

One row per operator, and rows for the rest (core, workbench, simulator, unity sources). Columns: compiling its CPU
sources, its kernels by nvcc and for the simulated GPU, and its tests, and running its tests. If a file was built
several times, the last time counts; of tests, ctest's last run. The slowest files and tests are listed below.

If the build has RUNG_BUILD_TIMES on, a second table has each target's processor time (cpu_seconds.sh), which does not
depend on other load. --budget SECONDS: prints that table alone; fails if its sum exceeds 1.3 SECONDS."""
import argparse
import collections
import pathlib
import re
import sys

KINDS = ["cpu", "nvcc", "simt", "tests", "run"]
SLOWEST = 8
SLACK = 1.3  # tolerance of a budget: compilers and processors differ


def kind_of(output):
    if "/test/" in output or output.startswith("tests/"):
        return "tests"
    if not output.endswith(".cu.o"):
        return "cpu"
    return "simt" if "rung_simt" in output else "nvcc"


def compile_times(build):
    """Returns the seconds of compilers and linkers, by output."""
    seconds = {}
    for line in (build / ".ninja_log").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            begin, end, _, output, _ = line.split("\t")
            seconds[output] = (int(end) - int(begin)) / 1000
    return seconds


def test_times(build):
    """Returns the seconds of the last run, by test; empty if there was none."""
    log = build / "Testing/Temporary/LastTest.log"
    if not log.exists():
        return {}
    found = re.findall(r"^\d+/\d+ Test: (\S+)$.*?^Test time = +([0-9.]+) sec$",
                       log.read_text(encoding="utf-8", errors="replace"), re.MULTILINE | re.DOTALL)
    return {name: float(seconds) for name, seconds in found}


def labels(build):
    """Returns the labels of tests in GoogleTest programs; an operator's own tests are labeled with its name."""
    found = {}
    for listed in build.glob("tests/**/*_tests.cmake"):
        text = listed.read_text(encoding="utf-8")
        found.update(re.findall(r"^set_tests_properties\(\[=\[(.*?)\]=\] .* LABELS (\w+)\)$", text, re.MULTILINE))
    return found


def cpu_seconds(build):
    """Returns processor seconds by output, from cpu_seconds.sh; the last value if a file was compiled several times."""
    log = build / "cpu_seconds.log"
    if not log.exists():
        return {}
    lines = (line.split(" ", 1) for line in log.read_text(encoding="utf-8").splitlines())
    return {output: float(seconds) for seconds, output in lines}


def print_targets(build, seconds):
    """Prints the table of each target's processor time."""
    targets = collections.Counter()
    for output, took in seconds.items():
        found = re.search(r"([^/]+)[.]dir/", output)
        targets[found[1] if found else "-"] += took
    print(f"{build}: processor seconds of compilers by target")
    for target, took in targets.most_common():
        print(f"{target:40}{took:8.0f}")
    print(f"{'all':40}{targets.total():8.0f}")


def hold_budget(builds, budget):
    """Exits, with status 1 if a build's compilers exceeded the budget."""
    failed = False
    for build in builds:
        seconds = cpu_seconds(build)
        if not seconds:
            sys.exit(f"{build}: no processor times; configure with -DRUNG_BUILD_TIMES=ON")
        print_targets(build, seconds)
        total = sum(seconds.values())
        failed |= total > SLACK * budget
        print(f"budget {budget:.0f}, at most {SLACK * budget:.0f} with slack: {total:.0f}")
    sys.exit(1 if failed else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, metavar="SECONDS")
    parser.add_argument("builds", nargs="+", type=pathlib.Path, metavar="BUILD")
    given = parser.parse_args()
    if given.budget is not None:
        hold_budget(given.builds, given.budget)
    for build in given.builds:
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
            # In check_gemm_prefetch_0 and mutants_stencil, the longest operator name that matches.
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
        if seconds := cpu_seconds(build):
            print_targets(build, seconds)


if __name__ == "__main__":
    main()
