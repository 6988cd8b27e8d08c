# SPDX-License-Identifier: Apache-2.0
"""Listings of the how-to pages pass the project's style checks: each listing of docs/add-a-rung.md and
docs/add-an-operator.md, written to the path above it in a copy of the operators' folders. If clang-format 14, whose
layout the sources have, is installed, it must not change the listings.

usage: listings.py SOURCE"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAGES = {"docs/add-a-rung.md": 2, "docs/add-an-operator.md": 7}  # minimum number of listings per page


def files_of(page):
    """Returns {path: content} of the code blocks that have their path, in backquotes, on the line above."""
    return dict(re.findall(r"^`(rung/ops/[\w./]+)`\n```\w*\n(.*?)^```$", page, re.M | re.S))


def complaints_of_style(source, files):
    """Yields style.py's complaints about the listings, together with the files of the operators that they are added
    to."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        for operator in {path.split("/")[2] for path in files}:
            if (source / "rung/ops" / operator).is_dir():
                shutil.copytree(source / "rung/ops" / operator, tree / "rung/ops" / operator)
        for path, content in files.items():
            if (tree / path).exists():
                yield f"{path} is there already"
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(content, encoding="utf-8")
        done = subprocess.run([sys.executable, source / "tests/style/style.py", tree], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            yield from (done.stdout + done.stderr).splitlines()


def formatter():
    """Returns the command of clang-format 14, or None."""
    for name in ("clang-format-14", "clang-format"):
        if shutil.which(name):
            said = subprocess.run([name, "--version"], capture_output=True, text=True, check=False).stdout
            if re.search(r"version 14\.", said):
                return name
    return None


def complaints_of_format(source, files, tool):
    for path, content in files.items():
        done = subprocess.run([tool, f"--assume-filename={source / path}"], input=content, capture_output=True,
                              text=True, check=True)
        if done.stdout != content:
            yield f"{path}: clang-format has another layout"


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    tool = formatter()
    failed = 0
    for page, least in PAGES.items():
        text = (source / page).read_text(encoding="utf-8")
        files = files_of(text)
        found = [*complaints_of_style(source, files), *(complaints_of_format(source, files, tool) if tool else ())]
        whole = len(re.findall(r"^(// |/\* )SPDX-License-Identifier", text, re.M))
        if len(files) < least or whole != len(files):
            found.append(f"{len(files)} of {whole} listings have their path above them; {least} at least are expected")
        for complaint in found:
            print(f"{page}: {complaint}")
        failed += len(found)
    print(f"style{' and clang-format' if tool else ''}: {failed} complaints")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
