# SPDX-License-Identifier: Apache-2.0
"""The form of the files: license lines, lengths, a rung's header, its step and name, and the location of its kernel.
usage: style.py SOURCE"""
import collections
import os
import pathlib
import re
import sys

import facts
import kernels

CODE = {".cpp", ".hpp", ".h", ".c", ".cu", ".cuh", ".cl", ".metal", ".mm"}
SCRIPTS = {".py", ".sh", ".cmake", ".in"}
SKIPPED_FOLDERS = {"__pycache__", "results"}
RUNG = re.compile(r"(cpu/\d+_\w+\.cpp|cuda/\d+_\w+(\.sm90a)?\.cu|opencl/\d+_\w+\.cl)")
BESIDE = re.compile(r"(?:cpu/(?:shapes|types)/(\w+)\.cpp|cuda/(?:shapes|types)/(\w+)(?:\.sm90a)?\.cu)")  # no steps
TELLS = ("Idea", "Changes", "Cost")
STEP = re.compile(r"(?:(\d+)_)?(\w+?)(?:\.sm90a)?\.cuh?")
NAMED = re.compile(r"(\d+)_(\w+?)(?:\.sm90a)?\.(?:cpp|cu)")
AFTER = re.compile(r'(?<!\w)\.after = "(\w+)"')
INCLUDE = re.compile(r'#include "rung/ops/((\w+)/([\w./-]+))"')
HOST = re.compile(r"opencl/\d+_\w+\.cpp")  # of an OpenCL rung: has the constant; the .cl file has header and kernel


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
    """Returns the comment at the start of a C++ file."""
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
    beside = BESIDE.fullmatch("/".join(path.parts[-3:]))
    is_rung = beside is not None or RUNG.fullmatch(f"{path.parent.name}/{path.name}") is not None
    width = 100 if is_code else 120
    for number, line in enumerate(lines, 1):
        if len(line) > width:
            yield number, f"{len(line)} columns; at most {width}"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        # Split in two, so that this file does not match itself.
        if is_code and re.search(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b", line):
            yield number, "unfinished work belongs into an issue"
        # Files without rungs that may use <<<>>>: kernels of ceilings, tools, programs for `rung emulate`.
        on_both = (path.suffix == ".cu" and path.parent.name != "bench"
                   and not {"emulate", "examples", "tools"} & set(path.parts))
        if on_both and "<" "<<" in line and not line.lstrip().startswith("//"):
            yield number, "kernels are launched by launch(), which checks"
    if is_code:
        head = head_comment(lines)
        if len(head) < 2:
            yield 1, "no comment after the license line that says what the file is for"
        if is_rung:
            missing = [word for word in TELLS if not re.search(rf"^//\s+{word}\b", "\n".join(head), re.M)]
            if missing:
                yield 1, "the rung's header does not tell: " + ", ".join(missing)
        if beside:
            yield from misplaced(beside[1] or beside[2], path, text)
        elif HOST.fullmatch(f"{path.parent.name}/{path.name}") or (is_rung and path.suffix != ".cl"):
            yield from misnamed(path.name, text)
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"


def misnamed(file, text):
    """Yields complaints about a rung's constant whose step or name differs from its file's."""
    named = NAMED.fullmatch(file)
    for field, value, wanted in (("step", r"(\d+)\b", str(int(named[1]))), ("name", r'"(\w+)"', named[2])):
        found = [(text.count("\n", 0, one.start()) + 1, one[1])
                 for one in re.finditer(rf"(?<!\w)\.{field}\s*=\s*{value}", text)]
        if wanted not in [given for _, given in found]:
            line, given = found[-1] if found else (1, "missing")
            yield line, f"the file's name says {field} {wanted}, its constant's .{field} is {given}"


def misplaced(name, path, text):
    """Yields complaints about a rung in shapes/ or types/, which is no step: its name must be its file's, and its
    .after must name a rung of its operator and backend."""
    if re.match(r"\d", name):
        yield 1, f"no step: a rung in {path.parent.name}/ has no number"
    if step := re.search(r"(?<!\w)\.step\s*=", text):
        yield text.count("\n", 0, step.start()) + 1, f"no step: a rung in {path.parent.name}/ has no .step"
    found = re.findall(r'(?<!\w)\.name\s*=\s*"(\w+)"', text)
    if name not in found:
        yield 1, f"the file's name says name {name}, its constant's .name is {found[-1] if found else 'missing'}"
    after = AFTER.search(text)
    if not after:
        yield 1, "its constant's .after is missing: the rung that it stands beside"
    elif after[1] not in names_of(path.parent.parent):
        yield text.count("\n", 0, after.start()) + 1, f"there is no rung {after[1]} in {path.parent.parent.name}/"


def names_of(folder):
    """Returns the names of the rungs in an operator's cpu/ or cuda/."""
    paths = [*folder.glob("*.c*"), *folder.glob("shapes/*.c*"), *folder.glob("types/*.c*")]
    return {re.sub(r"^\d+_|(\.sm90a)?\.c\w+$", "", path.name) for path in paths}


def steps_out_of_order(source):
    """Yields numbered steps whose `.after` is not the previous step, as (file, complaint).

    Tens are the ladder. A step between two tens is an aside (a variant or a counterexample), and may build on any
    previous step; the next ten may build on an aside or on the previous ten."""
    for folder in sorted((source / "rung" / "ops").glob("*/*")):
        if folder.name not in ("cpu", "cuda", "opencl"):
            continue
        accepted = []  # the last ten, and the last aside after it
        earlier = []
        for path in sorted(folder.glob("*.c*")):
            named = NAMED.fullmatch(path.name)
            if not named:
                continue
            after = AFTER.search(path.read_text(encoding="utf-8"))
            is_ten = int(named[1]) % 10 == 0
            if accepted and (not after or after[1] not in (accepted if is_ten else earlier)):
                yield path, (f"its .after is {after[1] if after else 'missing'}; the step before it in this folder is "
                             f"{' or '.join(reversed(accepted))}: what is no step goes to shapes/ or types/")
            accepted = [named[2]] if is_ten else [*accepted[:1], named[2]]
            earlier.append(named[2])


def steps_taken_twice(source):
    """Yields rungs of one backend and operator with the same step, as (file, complaint): their order is undefined."""
    for folder in sorted((source / "rung" / "ops").glob("*/*")):
        first = {}
        for path in sorted(folder.iterdir()) if folder.name in ("cpu", "cuda", "opencl") else ():
            named = NAMED.fullmatch(path.name)
            if named and first.setdefault(int(named[1]), path) != path:
                yield path, f"step {named[1]} is that of {first[int(named[1])].name}; choose a free one"


PACKS_FOR_OTHERS = r"\bcopy_async\(|\bpack\(context|\bcopy_from_channels_last\("


def steps_without_kernel(source):
    """Yields CUDA steps without a kernel in their files, as (file, complaint).

    A step is all files of one number in an operator's cuda/, or of one name in its shapes/ or types/: the rung's .cu,
    and .cuh files beside it if others need its kernels. A step that uses the copy engine (copy_async) needs no kernel,
    nor does a rung that packs operands for another rung's kernel: by pack(), or by conv's copies with channels last."""
    steps = collections.defaultdict(list)
    ops = source / "rung" / "ops"
    for path in sorted([*ops.glob("*/cuda/*"), *ops.glob("*/cuda/shapes/*"), *ops.glob("*/cuda/types/*")]):
        step = STEP.fullmatch(path.name)
        if step and (step[1] or path.parent.name != "cuda"):
            steps[path.parent, step[1] or step[2]].append(path)
    for paths in steps.values():
        code = re.sub(r"//[^\n]*", "", "\n".join(path.read_text(encoding="utf-8") for path in paths))
        if all(path.suffix == ".cuh" for path in paths):
            yield paths[0], "no rung (.cu) of this step: what several share lives in detail/"
        elif "__global__" not in code and not re.search(PACKS_FOR_OTHERS, code):
            rung = next(path for path in paths if path.suffix == ".cu")
            yield rung, "no __global__ in this step: the kernel belongs into the rung's file, or a .cuh beside it"


def reaches(source):
    """Yields includes of another operator's internals: public are its contract, its struct and shared/ (adr/0022).
    Files in shared/ must not include more of their own operator either."""
    ops = source / "rung" / "ops"
    for path in sorted(path for path in ops.rglob("*") if path.suffix in CODE):
        mine, *folders = path.relative_to(ops).parts
        for included, operator, file in INCLUDE.findall(path.read_text(encoding="utf-8")):
            offered = "/" not in file or file == f"op/{operator}.hpp" or file.startswith("shared/")
            outside = operator != mine or folders[0] == "shared"
            if outside and not offered:
                yield path, f"{included} is an inside of {operator}: what others use is in its shared/"


def shards(source):
    """Yields CUDA files that only instantiate a rung's templates, as (file, complaint)."""
    for path in sorted((source / "rung" / "ops").glob("*/cuda/detail/*.cu")):
        if len(path.read_text(encoding="utf-8").splitlines()) < 30:
            yield path, "so few lines only instantiate: name the types in the rung's file instead (rung/cpu/split.hpp)"


def halves_apart(source):
    """Yields OpenCL rungs with only one of their two files, as (file, complaint): NNN_name.cl has the kernel,
    NNN_name.cpp beside it the constant."""
    for path in sorted((source / "rung" / "ops").glob("*/opencl/*")):
        if path.suffix not in (".cl", ".cpp"):
            continue
        other = path.with_suffix(".cpp" if path.suffix == ".cl" else ".cl")
        if not other.exists():
            yield path, f"there is no {other.name}: a rung's kernel is in its .cl, its constant in the .cpp beside it"
        elif path.suffix == ".cl" and not re.search(r"^kernel\b", path.read_text(encoding="utf-8"), re.M):
            yield path, "no line that begins with 'kernel': the kernel belongs into the rung's .cl"


def main():
    source = pathlib.Path(sys.argv[1])
    seen = bad = 0
    for path in files(source):
        seen += 1
        for number, complaint in complaints(path):
            print(f"{path.relative_to(source)}:{number}: {complaint}")
            bad += 1
    for path, complaint in [*steps_without_kernel(source), *steps_taken_twice(source), *steps_out_of_order(source),
                            *reaches(source), *shards(source), *halves_apart(source),
                            *kernels.hidden_kernels(source), *facts.complaints(source)]:
        print(f"{path.relative_to(source)}:1: {complaint}")
        bad += 1
    if seen == 0:
        sys.exit(f"no sources under {source}")
    print(f"{seen} files, {bad} complaints")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
