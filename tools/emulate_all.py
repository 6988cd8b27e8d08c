# SPDX-License-Identifier: Apache-2.0
"""Runs every program of a folder by `rung emulate`, unmodified, and prints how each ended: a table, then the number of
each kind of end. A .cu file is a program; so is a folder with a Makefile, with all its sources, and with its own folder
and COMMON as include folders. usage: emulate_all.py RUNG FOLDER [--common FOLDER] [--timeout SECONDS] [-- OPTIONS OF
EMULATE]"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCES = (".cu", ".cpp", ".c")


def programs(folder):
    """Yields the name, the location and the sources of each program."""
    made = {path.parent for path in folder.rglob("Makefile")}
    for one in sorted(made):
        sources = sorted(path for path in one.rglob("*") if path.suffix in SOURCES)
        if any(path.suffix == ".cu" for path in sources):
            yield one.name, one, sources
    for path in sorted(folder.rglob("*.cu")):
        if not made.intersection(path.parents):
            yield str(path.relative_to(folder)), path.parent, [path]


def run(rung, home, sources, given, report):
    command = [rung, "emulate", "--timeout", str(given.timeout), "--json", report, *given.options,
               *[str(path.relative_to(home)) for path in sources], "-I", str(home)]
    command += ["-I", str(given.common.resolve())] if given.common else []
    pathlib.Path(report).unlink(missing_ok=True)
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, errors="replace", check=False)
    try:
        findings = json.loads(pathlib.Path(report).read_text())["findings"]
    except (OSError, ValueError):
        findings = []
    if "the time is up" in ran.stderr or "did not end within" in ran.stderr:
        return "slow"
    if findings:
        return "found: " + ", ".join(sorted({one["kind"] for one in findings}))
    return "ok" if ran.returncode == 0 else f"fails ({ran.returncode})"


def main():
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rung")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--common", type=pathlib.Path)
    parser.add_argument("--timeout", type=int, default=150)
    given = parser.parse_args(sys.argv[1:cut])
    given.options = sys.argv[cut + 1:]
    rung = str(pathlib.Path(given.rung).resolve())
    outcomes = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for name, home, sources in programs(given.folder.resolve()):
            start = time.monotonic()
            outcome = run(rung, home, sources, given, scratch + "/report.json")
            outcomes[outcome.split(" ")[0].rstrip(":")] += 1
            print(f"| {name} | {outcome} | {time.monotonic() - start:.1f} s |", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.max_common()))


if __name__ == "__main__":
    main()
