# SPDX-License-Identifier: Apache-2.0
"""Removes one barrier from a rung, compiles it, and expects `rung check` to report a race.

usage: barriers.py BUILD [--operator gemm] [--rung NAME]... [--list]

BUILD is a configured and built tree with the simulated GPU. A mutant is one rung's source without one barrier: one of
its own, or one in a header of the operator that it includes. The mutant's object replaces the original in a copy of
librung. Exit code 1 if a mutant survives."""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

BARRIER = re.compile(r"(__syncthreads|__syncwarp|ptx::barrier_sync|grid_sync|ptx::cluster_sync)\([^;]*\);")
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def rungs(operator):
    """Yields file and name of each rung that may be mutated."""
    folder = SOURCE / "rung/ops" / operator / "cuda"
    for path in sorted([*folder.glob("*.cu"), *folder.glob("shapes/*.cu"), *folder.glob("types/*.cu")]):
        name = re.search(r'\.name = "(\w+)"', path.read_text(encoding="utf-8"))
        if name:
            yield path, name.group(1)


def included(*paths):
    """Returns the files and the operators' headers that they include, directly or not."""
    found, left = [], list(paths)
    while left:
        one = left.pop()
        if one in found:
            continue
        found.append(one)
        for name in re.findall(r'#include "(rung/ops/[^"]+)"', one.read_text(encoding="utf-8")):
            left.append(SOURCE / name)
    return found


def step_of(path):
    """Returns a rung's file and the .cuh files with kernels of its step, or of its name if it is no step."""
    number = re.match(r"\d+_", path.name)
    return [path, *sorted(path.parent.glob(f"{number[0]}*.cuh" if number else path.name.split(".")[0] + ".cuh"))]


def cuda_folder(path):
    """Returns the operator's cuda/ folder, also for a rung in shapes/ or types/."""
    return next(folder for folder in path.parents if folder.name == "cuda")


def sources_of(path):
    """Returns a rung's step and the headers in its operator's cuda/ that it includes, directly or not."""
    return [one for one in included(*step_of(path)) if cuda_folder(path) in one.parents]


def units(path, changed, compiled):
    """Returns the compiled sources of a rung that include the changed file: its own file, or its parts by type that the
    build generated, and files of detail/ with kernels of its step."""
    step = set(step_of(path))
    line = f'#include "{path.relative_to(SOURCE).as_posix()}"'
    own = [path] if path in compiled else [one for one in sorted(compiled)
                                           if "split" in one.parts and line in one.read_text(encoding="utf-8")]
    return [*own, *(one for one in sorted(cuda_folder(path).glob("detail/*.cu"))
                    if changed in included(one) and step.intersection(included(one)))]


def mutants(path):
    """Yields (file, line, text without one barrier) for each barrier outside comments."""
    for one in sources_of(path):
        text = one.read_text(encoding="utf-8")
        for barrier in BARRIER.finditer(text):
            start = text.rfind("\n", 0, barrier.start()) + 1
            if "//" in text[start:barrier.start()]:
                continue
            yield one, text.count("\n", 0, start) + 1, text[:barrier.start()] + ";" + text[barrier.end():]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def code(path):
    """Returns an object's code, without its name and debug information."""
    return run(["objdump", "-d", "--no-show-raw-insn", path]).stdout.splitlines()[3:]


class Builder:
    def __init__(self, build):
        self.build = build
        entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
        self.compile = {pathlib.Path(e["file"]).resolve(): e for e in entries if "rung_simt_kernels" in e["command"]}
        self.library = next((build / "lib").glob("librung.so.*.*"))
        commands = run(["ninja", "-C", build, "-t", "commands", f"lib/{self.library.name}"]).stdout.splitlines()
        self.link = next(line for line in reversed(commands) if f"-o lib/{self.library.name}" in line)

    def make(self, folder, path, changed, text):
        """Returns librung with the mutant, or None and the reason: "" if the rung does not use the changed code."""
        copy = folder / changed.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
        link, differs = self.link, False
        for number, unit in enumerate(units(path, changed, self.compile)):
            entry = self.compile[unit]
            words = shlex.split(entry["command"])
            original = words[words.index("-o") + 1]
            mutant = folder / f"mutant{number}.o"
            words[words.index("-o") + 1] = str(mutant)
            if changed == unit:
                words[words.index("-c") + 1] = str(copy)
            words.insert(words.index("-c"), f"-I{folder}")
            words = [words[0], f"-I{folder}", *words[1:]]
            compiled = run(words, cwd=entry["directory"])
            if compiled.returncode != 0:
                return None, compiled.stderr
            if code(mutant) == code(pathlib.Path(entry["directory"], original)):
                continue
            differs = True
            link = link.replace(os.path.relpath(pathlib.Path(entry["directory"], original), self.build), str(mutant))
        if not differs:
            return None, ""
        link = link.replace(f"-o lib/{self.library.name}", f"-o {folder}/librung.so.0")
        linked = run(["sh", "-c", link.split("&&")[1] if "&&" in link else link], cwd=self.build)
        return (folder if linked.returncode == 0 else None), linked.stderr


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--operator", default="gemm")
    arguments.add_argument("--rung", action="append", default=[])
    arguments.add_argument("--list", action="store_true")
    options = arguments.parse_args()
    builder = None if options.list else Builder(options.build.resolve())
    alive = total = 0
    for path, name in rungs(options.operator):
        if options.rung and name not in options.rung:
            continue
        for changed, line, text in mutants(path):
            what = f"{name} without {changed.relative_to(SOURCE)}:{line}"
            total += 1
            if options.list:
                print(what)
                continue
            with tempfile.TemporaryDirectory() as folder:
                made, why = builder.make(pathlib.Path(folder), path, changed, text)
                if made is None and not why:
                    total -= 1
                    continue
                if made is None:
                    sys.exit(f"{what} does not build\n{why}")
                checked = run([builder.build / "bin/rung", "check", f"{options.operator}/{name}", "--backend", "simt",
                               "--variant", "plain", "--first-failure"],
                              env=dict(os.environ, LD_LIBRARY_PATH=str(made)))
            race = "race (" in checked.stdout
            print(f"{'found' if race else 'LIVES'}  {what}", flush=True)
            alive += 0 if race else 1
    print(f"{total} mutants" if options.list else f"{total} mutants, {alive} alive")
    return 1 if alive or not total else 0


if __name__ == "__main__":
    sys.exit(main())
