# SPDX-License-Identifier: Apache-2.0
"""`rung emulate --fix` mends programs. Each program of mended/ has a bug if BUG is defined and none otherwise; comments
at its end have texts that the findings or their advice must contain (`// says: text`) and must not (`// never: text`).
Findings are expected in lines with `// expect: kind`. If --fix can change the source, the changed source is run:
nothing may be found in it. The original source is not modified.
usage: mended.py RUNG [--only NAME ...] [--show]"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
EXPECT = re.compile(r"//.*expect: (\w+)")
SAYS = re.compile(r"^// says: (.*)$", re.M)
NEVER = re.compile(r"^// never: (.*)$", re.M)
DEADLOCK_SECONDS = 20  # of three orders on a busy machine; each used to take 24


class Failed(Exception):
    """A failed expectation."""


def emulate(rung, source, *options):
    """Returns the findings and the output of a source under three orders."""
    run = subprocess.run([rung, "emulate", "--order", "all", "--json", "report.json", "-I", str(HERE / "programs"),
                          *options, str(source)], capture_output=True, text=True, check=False)
    if run.returncode in (2, 3):
        raise Failed(f"{source} does not compile:\n{run.stderr}")
    return json.loads(pathlib.Path("report.json").read_text())["findings"], run.stdout, run.stderr


def check(rung, path, show):
    """Raises Failed unless the program's bug is found and mended. Returns whether --fix could mend it."""
    text = path.read_text()
    source = pathlib.Path(path.name)
    source.write_text(text)
    findings, output, _ = emulate(rung, source)
    if findings or output != 3 * "OK\n":
        raise Failed(f"wrong without its bug: {findings}\n{output}")
    begun = time.monotonic()
    findings, _, told = emulate(rung, source, "-D", "BUG", "--fix")
    if show:
        print(told)
    if source.read_text() != text:
        raise Failed("its source was changed")
    expected = {(match[1], line) for line, here in enumerate(text.splitlines(), 1) if (match := EXPECT.search(here))}
    found = {(one["kind"], one["line"]) for one in findings}
    if not found or not found <= expected:
        raise Failed(f"found {found}, expected some of {expected}\n{told}")
    if "deadlock" in dict(found) and time.monotonic() - begun > DEADLOCK_SECONDS:
        raise Failed(f"its deadlock was found after {time.monotonic() - begun:.1f} s")
    for kind, line in found:
        if not all(one["advice"] for one in findings):
            raise Failed(f"{kind} in line {line} without advice")
    for one in SAYS.findall(text):
        if one not in told:
            raise Failed(f"does not say {one!r}:\n{told}")
    for one in NEVER.findall(text):
        if one in told:
            raise Failed(f"says {one!r}:\n{told}")
    if not any(one["fixes"] for one in findings):
        return False
    fixed = source.with_suffix(".fixed.cu")
    findings, output, told = emulate(rung, fixed, "-D", "BUG")
    if findings or output != 3 * "OK\n":
        raise Failed(f"not right with the advice followed:\n{output}{told}\n{fixed.read_text()}")
    return True


def check_refusal(rung):
    """Raises Failed unless --fix keeps a source of the program whose name equals that of a copy."""
    for name, function in (("two.cu", "main"), ("two.fixed.cu", "other")):
        text = (HERE / "mended" / "warp_rotation.cu").read_text()
        pathlib.Path(name).write_text(text.replace("main", function).replace("rotate", "rotate_" + function))
    before = pathlib.Path("two.fixed.cu").read_text()
    run = subprocess.run([rung, "emulate", "-I", str(HERE / "programs"), "-D", "BUG", "--fix", "two.cu",
                          "two.fixed.cu"], capture_output=True, text=True, check=False)
    if run.returncode != 2 or "would be overwritten" not in run.stderr:
        raise Failed(f"ended with {run.returncode}:\n{run.stderr}")
    if pathlib.Path("two.fixed.cu").read_text() != before:
        raise Failed("a source was overwritten")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rung")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--show", action="store_true", help="print each finding")
    given = parser.parse_args()
    rung = os.path.abspath(given.rung)
    paths = [path for path in sorted((HERE / "mended").glob("*.cu")) if given.only is None or path.stem in given.only]
    failed = mended = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for path in paths:
            try:
                mended += check(rung, path, given.show)
            except Failed as why:
                failed += 1
                print(f"{path.stem}: {why}")
        try:
            if given.only is None:
                check_refusal(rung)
        except Failed as why:
            failed += 1
            print(f"--fix with a source of that name: {why}")
        os.chdir(HERE)
    print(f"{len(paths)} programs, {mended} mended by --fix, {failed} wrong")
    sys.exit(1 if failed or not paths else 0)


if __name__ == "__main__":
    main()
