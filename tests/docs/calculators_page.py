# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/calculators.md and compares their output with the page.

usage: calculators_page.py SOURCE RUNG [--write]      --write: updates the page with their output"""
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```console\n\$ (rung .*)\n(?:\n((?:.*\n)*?))?```$", re.M)

# Output below a command that contains counts, in a build with counters and in one without.
COUNTED = re.compile(r"^    \S.*\n", re.M)
NOT_COUNTED = re.compile(r"^    not counted here: this program was built without.*\n(?:    \s.*\n)*", re.M)


def printed(program, command, cache):
    words = shlex.split(command, comments=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")}
    environment["XDG_CACHE_HOME"] = cache  # no stored measurements of the machine
    done = subprocess.run([program, *words[1:]], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{command}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def main():
    path = pathlib.Path(sys.argv[1]) / "docs/calculators.md"
    page = path.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(page))
    named = set(re.findall(r"^## rung ([\w-]+)$", page, re.M))
    shown = {block[1].split()[1] for block in blocks}
    if len(blocks) != page.count("```console") or len(blocks) < 12 or named != shown:
        sys.exit(f"{len(blocks)} of {page.count('```console')} blocks are understood; sections without an example: "
                 f"{sorted(named - shown)}")
    wrong, written = 0, page
    with tempfile.TemporaryDirectory() as cache:
        for block in blocks:
            now, then = printed(sys.argv[2], block[1], cache), block[2] or ""
            if NOT_COUNTED.search(now):  # a build without the counters
                now, then = NOT_COUNTED.sub("", now), COUNTED.sub("", then)
            written = written.replace(block[0], f"```console\n$ {block[1]}\n\n{now}```")
            if now != then:
                wrong += 1
                print(f"$ {block[1]}")
                lines = difflib.unified_diff(then.split("\n"), now.split("\n"), "the page", "now", lineterm="")
                print("\n".join(lines))
    if "--write" in sys.argv:
        path.write_text(written, encoding="utf-8")
        return 0
    print(f"{len(blocks)} commands, {wrong} of which print something else than the page shows")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
