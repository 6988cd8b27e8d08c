# SPDX-License-Identifier: Apache-2.0
"""The tables and pictures of measurements in every document equal the output of `rung report` for the files below
results/. Documents with a ladder that this build lacks are skipped: their rows show each rung's gain over the previous
one.

usage: result_tables.py SOURCE RUNG"""
import json
import pathlib
import re
import subprocess
import sys

MARKER = re.compile(r"^<!-- rung:(?:table|picture) (\S+)", re.M)


def operators_of(results, name):
    """Returns the operators of the ladders in a marker's files; surveys have none."""
    found = set()
    for path in results.glob(name + ".json"):
        found |= {row["op"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"] if "op" in row}
    return found


def main():
    source, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    listed = subprocess.run([program, "list", "--json"], capture_output=True, text=True, check=True).stdout
    built = {rung["op"] for rung in json.loads(listed)}
    checked, left_out, wrong = 0, 0, []
    documents = [*source.glob("*.md"), *source.glob("docs/*.md"), *source.glob("results/*.md"),
                 *source.glob("rung/ops/*/*.md"), *source.glob("docs/pictures/*.svg")]
    for document in sorted(documents):
        names = MARKER.findall(document.read_text(encoding="utf-8"))
        needed = {one for name in names for one in operators_of(source / "results", name)}
        if not names or needed - built:
            left_out += bool(names)
            continue
        checked += 1
        done = subprocess.run([program, "report", "--check", "--into", document, "--results", source / "results"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong.append(f"{done.stdout}{done.stderr}rung report --into {document.relative_to(source)} renews them")
    print("\n".join([*wrong, f"{checked} documents, {len(wrong)} wrong, {left_out} with ladders that are not built"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
