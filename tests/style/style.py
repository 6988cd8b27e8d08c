# SPDX-License-Identifier: Apache-2.0
"""The form of the files: licence lines, lengths, what a rung's header tells. usage: style.py SOURCE"""
import os
import pathlib
import re
import sys

CODE = {".cpp", ".hpp", ".h", ".c", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".cmake", ".in"}
SKIPPED_FOLDERS = {"__pycache__", "results"}
RUNG = re.compile(r"(cpu/\d+_\w+\.cpp|cuda/\d+_\w+(\.sm90a)?\.cu)")
TELLS = ("Idea", "Changes", "Cost")


def files(source):
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(f for f in folders if f == ".ci" or
                            not (f in SKIPPED_FOLDERS or f.startswith((".", "build"))))
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            named = name in ("CMakeLists.txt", ".clang-tidy", "run")
            if named or path.suffix in CODE | SCRIPTS:
                yield path


def head_comment(lines):
    """The comment that a C++ file opens with."""
    head = []
    for line in lines:
        if not line.startswith(("//", "/*", " *")):
            break
        head.append(line)
    return head


def complaints(path):
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        yield 1, "not UTF-8"
        return
    lines = text.splitlines()
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(lines[:3]):
        yield 1, "no line 'SPDX-License-Identifier: Apache-2.0' at the top"
    is_code = path.suffix in CODE
    is_rung = RUNG.fullmatch(f"{path.parent.name}/{path.name}") is not None
    limit = 400  # of a rung with a long kernel; what is longer has more than one subject
    if is_code and len(lines) > limit:
        yield limit, f"{len(lines)} lines; at most {limit}"
    width = 100 if is_code else 120
    for number, line in enumerate(lines, 1):
        if len(line) > width:
            yield number, f"{len(line)} columns; at most {width}"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        # Spelled in two parts, so that this file does not complain about itself.
        if is_code and re.search(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b", line):
            yield number, "unfinished work belongs into an issue"
        # The ceilings' kernels and the programs for `rung emulate` are no rungs: they check for themselves.
        on_both = path.suffix == ".cu" and path.parent.name != "bench" and "emulate" not in path.parts
        if on_both and "<" "<<" in line and not line.lstrip().startswith("//"):
            yield number, "kernels are launched by launch(), which checks"
    if is_code:
        head = head_comment(lines)
        if len(head) < 2:
            yield 1, "no comment after the licence line that says what the file is for"
        if is_rung:
            missing = [word for word in TELLS if not re.search(rf"^//\s+{word}\b", "\n".join(head), re.M)]
            if missing:
                yield 1, "the rung's header does not tell: " + ", ".join(missing)
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"


def main():
    source = pathlib.Path(sys.argv[1])
    seen = bad = 0
    for path in files(source):
        seen += 1
        for number, complaint in complaints(path):
            print(f"{path.relative_to(source)}:{number}: {complaint}")
            bad += 1
    if seen == 0:
        sys.exit(f"no sources under {source}")
    print(f"{seen} files, {bad} complaints")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
