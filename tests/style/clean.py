# SPDX-License-Identifier: Apache-2.0
"""Records, by content, the sources and tests that clang-tidy and the sanitizers found clean, in a folder outside the
tree.

The folder holds one empty file per key; a key is a hash of all dependencies of a result. It is $RUNG_CLEAN_CACHE, or
rung/clean in $XDG_CACHE_HOME or ~/.cache. Without such a folder, or with an empty one, everything is checked.

usage: clean.py folder             prints the folder, after creating it
       clean.py mark KEY...        remembers keys; those of 60 days ago are forgotten
       clean.py tests ROOT [--all] what the sanitizers have to test: a line with the units that are not known to be
                                   clean, joined by ';', a line with the others, a line per key to mark after a
                                   clean run. A unit is an operator, or `rest`: all tests that are no operator's
       clean.py sources ROOT COMPILE_COMMANDS TOOL [--all]
                                   of the sources on standard input, those that the linter TOOL has to look at: a
                                   line per source with its key and its path. Sources that are not compiled are
                                   left out
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

# Dependencies of an operator's tests, beside its own folder and those of the operators whose code it uses.
SHARED = ("CMakeLists.txt", "CMakePresets.json", "cmake", "rung/rung.h", "rung/rung.hpp", "rung/core", "rung/cpu",
          "rung/device", "rung/simt", "rung/peers", "rung/bench", "rung/workbench", "tests/CMakeLists.txt",
          "tests/support", "tests/c_api")
REST = (*SHARED, "rung/emulate", "tests", "examples")  # dependencies of the other tests
# Neither compiled nor run under the sanitizers.
APART = re.compile(r"[.](md|pyc)$|^tests/(style|fuzz|docs)/")
# The launcher's functions that determine how the sanitizer build is configured and tested.
LAUNCHER = ("configure", "prepare", "run_tests", "asan")
CODE = {".c", ".cpp", ".cu", ".cuh", ".h", ".hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
DAYS_KEPT = 60


def folder():
    """Returns the folder of keys, which exists then."""
    chosen = os.environ.get("RUNG_CLEAN_CACHE")
    if not chosen:
        chosen = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "rung", "clean")
    path = pathlib.Path(chosen)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}; RUNG_CLEAN_CACHE names another folder for what is known to be clean")
    return path


def known(key):
    path = folder() / key
    if not path.exists():
        return False
    os.utime(path)  # marks the key as used, so that mark() keeps it
    return True


def mark(keys):
    place, oldest = folder(), time.time() - DAYS_KEPT * 86400
    for key in keys:
        (place / key).touch()
    for path in place.iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


@functools.lru_cache(maxsize=None)
def content(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def key_of(kind, root, paths, texts):
    """Returns the hash of the texts and of the files, with their paths relative to root."""
    lines = [f"{os.path.relpath(path, root)} {content(path)}" for path in sorted(set(paths))]
    return f"{kind}-{hashlib.sha256(chr(10).join([*lines, *texts]).encode()).hexdigest()}"


def files_below(root, names):
    for name in names:
        top = root / name
        for path in top.rglob("*") if top.is_dir() else [top]:
            if path.is_file() and not APART.search(path.relative_to(root).as_posix()):
                yield path


def said_by(*command):
    """Returns the first lines of a command's output; "" if the command does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return "\n".join(done.stdout.splitlines()[:3])


# --- tests under the sanitizers ------------------------------------------------------------------------------------

def used_by(root, operator):
    """Returns the operator and all operators whose code it uses, directly or not, by its file `uses` and its
    includes."""
    found, waiting = {operator}, [operator]
    while waiting:
        one = root / "rung/ops" / waiting.pop()
        names = set()
        if (one / "uses").exists():
            names |= set(re.findall(r"^[a-z]\w*", (one / "uses").read_text(encoding="utf-8"), re.M))
        for path in one.rglob("*"):
            if path.suffix in CODE:
                names |= set(re.findall(r'#\s*include [<"]rung/ops/(\w+)/', path.read_text(encoding="utf-8")))
        names = {name for name in names - found if (root / "rung/ops" / name).is_dir()}
        found |= names
        waiting += names
    return found


def launcher(root):
    """Returns the text of the functions of rung.sh that make this build."""
    text = (root / "rung.sh").read_text(encoding="utf-8") if (root / "rung.sh").exists() else ""
    return [found for name in LAUNCHER for found in re.findall(rf"^{name}\(\) \{{\n.*?^\}}", text, re.M | re.S)]


def test_keys(root):
    """Returns {unit: key}."""
    texts = [*launcher(root), said_by(os.environ.get("CXX", "c++"), "--version")]
    shared = list(files_below(root, SHARED))
    keys = {"rest": key_of("asan", root, files_below(root, REST), [*texts, "rest"])}
    for path in sorted((root / "rung/ops").iterdir()):
        if path.is_dir():
            own = files_below(root, (f"rung/ops/{name}" for name in used_by(root, path.name)))
            keys[path.name] = key_of("asan", root, [*shared, *own], [*texts, path.name])
    return keys


def print_tests(root, everything):
    keys = test_keys(root)
    clean = [] if everything else [unit for unit, key in keys.items() if known(key)]
    unknown = [unit for unit in keys if unit not in clean]
    print(";".join(unknown), ";".join(clean), *(keys[unit] for unit in unknown), sep="\n")


# --- sources -------------------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def included(path, places):
    """Returns the project's files that one includes, found in the include folders or beside it."""
    found = set()
    for name in INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
        candidates = (place / name for place in (path.parent, *places))
        found.update(pathlib.Path(os.path.normpath(one)) for one in candidates if one.is_file())
    return found


def closure(source, places):
    """Returns the source and all files that it includes, under any condition."""
    found, waiting = {source}, [source]
    while waiting:
        more = included(waiting.pop(), places) - found
        found |= more
        waiting += more
    return found


def own_places(root, entry):
    """Returns the include folders of the compile command that are within the tree."""
    words = shlex.split(entry["command"])
    given = [word[2:] or after for word, after in zip(words, [*words[1:], ""]) if word.startswith("-I")]
    given += [after for word, after in zip(words, words[1:]) if word == "-isystem"]
    places = (pathlib.Path(os.path.normpath(os.path.join(entry["directory"], one))) for one in given)
    return tuple(place for place in dict.fromkeys(places) if place == root or root in place.parents)


def print_sources(root, commands, tool, everything):
    compiled = {}
    for entry in json.loads(pathlib.Path(commands).read_text(encoding="utf-8")):
        compiled.setdefault(os.path.normpath(os.path.join(entry["directory"], entry["file"])), entry)
    fixed = [path for path in (root / ".clang-tidy", root / "tests/style/lint.sh") if path.exists()]
    version = said_by(tool, "--version")
    for line in sys.stdin.read().split("\n"):
        entry = compiled.get(os.path.normpath(root / line)) if line else None
        if not entry:
            continue
        paths = [*fixed, *closure(pathlib.Path(os.path.normpath(root / line)), own_places(root, entry))]
        # The same source in two checkouts or build folders has one key.
        command = entry["command"].replace(entry["directory"], "BUILD").replace(str(root), "ROOT")
        key = key_of("lint", root, paths, [version, command])
        if everything or not known(key):
            print(key, line)


def main():
    arguments = sys.argv[1:]
    everything = arguments[-1:] == ["--all"]
    if everything:
        arguments.pop()
    if arguments == ["folder"]:
        print(folder())
    elif arguments[:1] == ["mark"]:
        mark(arguments[1:])
    elif arguments[:1] == ["tests"] and len(arguments) == 2:
        print_tests(pathlib.Path(arguments[1]).resolve(), everything)
    elif arguments[:1] == ["sources"] and len(arguments) == 4:
        print_sources(pathlib.Path(arguments[1]).resolve(), *arguments[2:], everything)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
