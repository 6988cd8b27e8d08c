# SPDX-License-Identifier: Apache-2.0
"""What the sanitizers need to look at again. usage: changed.py SOURCE COMMIT

Prints one line: `nothing`, `everything`, or the operators whose compiled files differ from COMMIT, joined by ';',
with those that include their headers. COMMIT is one at which everything was clean; where it is not in the repository,
or where what differs belongs to no single operator (core, the simulated GPU, the build), that is everything."""
import pathlib
import re
import subprocess
import sys

# Neither compiled nor run under the sanitizers.
APART = re.compile(r"(^|/)[^/]*[.]md$|^(docs|results|tools|[.]ci)/|^tests/(style|fuzz|docs)/"
                   r"|^LICENSE$|^[.]clang|^[.]gitignore$")
OPERATOR = re.compile(r"^rung/ops/([a-z0-9_]+)/")


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def users(root):
    """For each operator, the others that include one of its headers."""
    found = {}
    for path in (root / "rung/ops").rglob("*"):
        if path.suffix not in {".cpp", ".cu", ".cuh", ".h", ".hpp"}:
            continue
        user = path.relative_to(root / "rung/ops").parts[0]
        for included in re.findall(r'#include "rung/ops/([a-z0-9_]+)/', path.read_text(encoding="utf-8")):
            if included != user:
                found.setdefault(included, set()).add(user)
    return found


def to_look_at(root, commit):
    if git(root, "cat-file", "-e", commit + "^{commit}").returncode != 0:
        return "everything"
    # A file that was moved counts where it was, too.
    changed = git(root, "diff", "--name-only", "--no-renames", commit).stdout.splitlines()
    changed += git(root, "ls-files", "--others", "--exclude-standard").stdout.splitlines()
    operators = set()
    for path in changed:
        if APART.search(path):
            continue
        operator = OPERATOR.match(path)
        if not operator:
            return "everything"
        operators.add(operator[1])
    using = users(root)
    waiting = list(operators)
    while waiting:
        for user in using.get(waiting.pop(), set()) - operators:
            operators.add(user)
            waiting.append(user)
    operators = {one for one in operators if (root / "rung/ops" / one).is_dir()}
    return ";".join(sorted(operators)) or "nothing"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(to_look_at(pathlib.Path(sys.argv[1]), sys.argv[2]))
