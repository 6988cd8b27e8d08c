# SPDX-License-Identifier: Apache-2.0
"""Asserts that every relative link of the documents below ROOT, with its anchor, has a target. ROOT is a source tree or
the installed documents, which lack the parts that only the source tree has.

usage: links.py ROOT
"""
import os
import pathlib
import re
import sys

# Not installed: tests, tools, results, the launcher, the pages for contributors.
SOURCE_ALONE = re.compile(r"(^|/)(tests|tools|results|rung\.sh)(/|$)|_test\.\w+$"
                          r"|^(CHANGELOG|CODE_OF_CONDUCT|CONTRIBUTING|SECURITY)\.md$")


def documents(root):
    yield from sorted(root.glob("*.md"))
    for folder in ("docs", "examples", "python", "results", "rung", "tests", "tools"):
        for path, folders, names in os.walk(root / folder, followlinks=True):
            folders.sort()
            yield from (pathlib.Path(path, name) for name in sorted(names) if name.endswith(".md"))


def anchors(document):
    """Returns the anchors of a document's headings, as GitHub generates them."""
    found, text = set(), re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.M | re.S)
    for heading in re.findall(r"^#+ +(.*?) *#*$", text, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = again = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while again in found:
            number += 1
            again = f"{anchor}-{number}"
        found.add(again)
    return found


def links(document):
    """Yields (line, target) of the relative links outside code blocks."""
    inside = False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        if inside:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if not re.match(r"\w+:", target):
                yield number, target


def main():
    root = pathlib.Path(sys.argv[1]).absolute()
    installed = not (root / "CMakeLists.txt").exists()
    seen = broken = 0
    for document in documents(root):
        for number, target in links(document):
            seen += 1
            # Not resolve(), which would follow symbolic links below rung/ before '..' is applied.
            name, _, anchor = target.partition("#")
            path = pathlib.Path(os.path.normpath(document.parent / name)) if name else document
            if path.suffix == ".md" and path.exists() and anchor and anchor not in anchors(path):
                print(f"{document.relative_to(root)}:{number}: {target}: there is no such heading")
                broken += 1
            if not path.exists() and not (installed and SOURCE_ALONE.search(str(path.relative_to(root)))):
                print(f"{document.relative_to(root)}:{number}: there is no {target}")
                broken += 1
    if seen < 20:
        sys.exit(f"only {seen} links found under {root}")
    print(f"{seen} links, {broken} of them broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
