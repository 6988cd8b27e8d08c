# SPDX-License-Identifier: Apache-2.0
"""Findings of `rung emulate` for the bugs of a first course: each program of beginner/ has one bug. Comments in its
lines name the expected findings (`// expect: kind`; `expect above`: in the line before), and comments at its end the
texts that the findings or their advice must contain (`// says: text`) and must not (`// never: text`), under each of
three orders of threads.
usage: beginners.py RUNG [--only NAME ...]"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECT = re.compile(r"expect( above)?: (\w+)")
SAYS = re.compile(r"^// says: (.*)$", re.M)
OTHERWISE = re.compile(r"^// never: (.*)$", re.M)


def wrong(text, findings):
    """Returns findings that are missing or unexpected under one order."""
    expected = {(kind, line - (1 if above else 0)) for line, source in enumerate(text.splitlines(), 1)
                for above, kind in EXPECT.findall(source)}
    found = {(one["kind"], one["line"]) for one in findings}
    said = "\n".join(one["message"] + "\n" + one["advice"] for one in findings)
    problems = [f"found {found}, expected some of {expected}"] if bool(found) != bool(expected) else []
    problems += [f"found {kind} in line {line}" for kind, line in found - expected]
    problems += [f"does not say {one!r}: {said}" for one in SAYS.findall(text) if one not in said]
    return problems + [f"says {one!r}: {said}" for one in OTHERWISE.findall(text) if one in said]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rung")
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    rung = os.path.abspath(given.rung)
    paths = [path for path in sorted((HERE / "beginner").glob("*.cu"))
             if given.only is None or path.stem in given.only]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        for path in paths:
            program = pathlib.Path(folder, path.stem)
            compiled = f"{program}.o"  # its source stays beside it, for the advice
            subprocess.run([rung, "emulate", "--build", "-c", str(path), "-o", compiled], check=True)
            subprocess.run([rung, "emulate", "--build", compiled, "-o", str(program)], check=True)
            for order in ("forward", "reverse", "random:1"):
                run = subprocess.run([rung, "emulate", "--checks", "always", "--order", order, "--json", str(report),
                                      str(program)], capture_output=True, text=True, cwd=folder, check=False)
                problems = wrong(path.read_text(), json.loads(report.read_text())["findings"])
                if problems:
                    failed += 1
                    print(f"{path.stem}, order {order}: " + "\n  ".join(problems) + "\n" + run.stderr)
    print(f"{len(paths)} programs, {failed} of their runs wrong")
    sys.exit(1 if failed or not paths else 0)


if __name__ == "__main__":
    main()
