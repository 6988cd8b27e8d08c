# SPDX-License-Identifier: Apache-2.0
"""Asserts that the links of the documents lead somewhere: every relative link of README.md, docs/, examples/ and
rung/ below ROOT, a source tree or the installed documents, where what belongs to the source tree alone is missing.

usage: links.py ROOT
"""
import os
import pathlib
import re
import sys

# Not installed: tests, tools, the launcher.
SOURCE_ALONE = re.compile(r"(^|/)(tests|tools|rung\.sh)(/|$)|_test\.\w+$")


def documents(root):
    yield root / "README.md"
    for folder in ("docs", "examples", "rung"):
        for path, folders, names in os.walk(root / folder, followlinks=True):
            folders.sort()
            yield from (pathlib.Path(path, name) for name in sorted(names) if name.endswith(".md"))


def links(document):
    """(line, target without its anchor) of the relative links outside blocks of code."""
    inside = False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        if inside:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            path = target.partition("#")[0]
            if path and not re.match(r"\w+:", target):
                yield number, path


def main():
    root = pathlib.Path(sys.argv[1]).absolute()
    installed = not (root / "CMakeLists.txt").exists()
    seen = broken = 0
    for document in documents(root):
        for number, target in links(document):
            seen += 1
            # Not resolve(): what is below rung/ is to be left by '..' as it was entered.
            path = pathlib.Path(os.path.normpath(document.parent / target))
            if not path.exists() and not (installed and SOURCE_ALONE.search(str(path.relative_to(root)))):
                print(f"{document.relative_to(root)}:{number}: there is no {target}")
                broken += 1
    if seen < 20:
        sys.exit(f"only {seen} links found under {root}")
    print(f"{seen} links, {broken} of them broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
