# SPDX-License-Identifier: Apache-2.0
"""Compares docs/course with the output of its commands: each row `command | figure | value` of its tables is run.
Compiling programs takes long, so they are a separate part. `names` runs nothing: it checks that every rung, program and
command, with its options, in a page or in docs/glossary.md exists.

usage: course.py names|counted|programs SOURCE RUNG"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROW = re.compile(r"^ *\| `rung ([\w-]+) ([^`]+)` \| ([^|]+) \| ([^|]+) \|$", re.M)
CALCULATORS = ("reuse", "roofline", "waves", "littles-law", "work")
# Units of values, with their factors.
UNITS = {"%": 0.01, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "KiB": 2 ** 10, "MiB": 2 ** 20, "GFLOP/s": 1e9, "TFLOP/s": 1e12}
HEAD = "| command | figure | value |\n"
LEAST = {"counted": 100, "programs": 20}  # minimum number of rows


def output_of(words, source, *, code=(0,)):
    done = subprocess.run(words, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode not in code:
        raise RuntimeError(f"{shlex.join(map(str, words))}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done


def sum_of(kernels, name):
    return sum(kernel["totals"][name] for kernel in kernels)


def explained(rung, figure):
    """Returns a figure of a rung, by a page's name for it, from the JSON of `rung explain`."""
    counters, kernels = rung["counters"], rung.get("kernels", ())
    roof = {one["bytes_are"]: one for one in rung["roofline"]}
    return {
        "sectors per load": lambda: counters["global_load_sectors_per_request"],
        "sectors per store": lambda: counters["global_store_sectors_per_request"],
        "load requests": lambda: counters["global_load_requests"],
        "bytes moved": lambda: counters["global_bytes"],
        "bytes requested by loads": lambda: sum_of(kernels, "global_load_bytes"),
        "bytes that must move": lambda: rung["compulsory"]["bytes"],
        "useful operations": lambda: rung["compulsory"]["operations"],
        "operations per byte that must move": lambda: roof["compulsory"]["operations_per_byte"],
        "wavefronts per shared load": lambda: counters["shared_load_wavefronts"] / counters["shared_load_requests"],
        "shared load requests": lambda: counters["shared_load_requests"],
        "shared loads by threads": lambda: sum_of(kernels, "shared_load_bytes") / 4,
        "shared bytes read per global byte read": lambda: counters["shared_reuse"],
        "bank conflicts": lambda: counters["shared_load_conflicts"] + counters["shared_store_conflicts"],
        "lanes per instruction": lambda: counters["thread_inst_executed_per_inst_executed"],
        "requests of global atomics": lambda: counters["atomic_requests"],
        "barriers": lambda: counters["barriers"],
        "depth": lambda: counters["depth"],
        "blocks": lambda: counters["blocks"],
        "launches": lambda: counters["launches"],
        "warps": lambda: counters["warps"],
        "operations of tensor cores": lambda: counters["matrix_operations"],
        "bound by": lambda: roof["distinct"]["bound_by"],
    }[figure]()


def explain(program, source, words, figures):
    done = output_of([program, "explain", *words, "--json"], source)
    name = words[0].partition("/")[2]
    rung = next(one for one in json.loads(done.stdout)["rungs"] if one["rung"] == name)
    if not rung["counted"] and rung["backend"] != "cpu":
        raise RuntimeError(f"{' '.join(words)}: {rung['why_not']}")
    return {figure: explained(rung, figure) for figure in figures}


def occupancy(program, source, words, figures):
    found = json.loads(output_of([program, "occupancy", *words, "--json"], source).stdout)
    if "sweep" in found:
        most = max(one["occupancy"] for one in found["sweep"])
        best = [str(one["threads"]) for one in found["sweep"] if one["occupancy"] == most]
        known = {"most occupancy": most, "threads per block with the most": ", ".join(best)}
    else:
        known = {"blocks per SM": found["blocks"], "active warps": found["warps"], "occupancy": found["occupancy"],
                 "limited by": " and ".join(found["limited_by"])}
    return {figure: known[figure] for figure in figures}


def calculate(calculator, program, source, words, figures):
    """Returns results of a calculator, by name."""
    row, = json.loads(output_of([program, calculator, *words, "--json"], source).stdout)["rows"]
    return {figure: row["results"][re.sub("[^a-z0-9]+", "_", figure.lower())] for figure in figures}


def amdahl(program, source, words, figures):
    found = json.loads(output_of([program, "amdahl", *words, "--json"], source).stdout)
    known = {"speed-up": found["rows"][0]["speedup"], "limit of the speed-up": found["limit"]}
    return {figure: known[figure] for figure in figures}


def emulate(program, source, words, figures):
    """Returns figures of a program's run; figures of a kernel end in its name."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        done = output_of([program, "emulate", *words, "--checks", "always", "--json", report], source, code=(0, 1, 66))
        found = json.loads(report.read_text(encoding="utf-8"))
    kernels = {one["name"].partition("(")[0]: one for one in found["kernels"]}

    def value(figure):
        if figure == "exit code":
            return done.returncode
        if figure == "finding":
            return {f"{one['kind']} in line {line}" for one in found["findings"]
                    for line in (one["line"], one.get("other_line"))}
        what, _, name = figure.removesuffix(" that diverge").rpartition(" of ")
        kernel = kernels[name]
        return {
            "warps": lambda: kernel["divergent_warps"] if figure.endswith("that diverge") else
            sum(launch["warps"] for launch in kernel["each_launch"]),
            "load requests": lambda: kernel["totals"]["global_load_requests"],
            "global atomics": lambda: kernel["totals"]["atomic_bytes"] / 4,
            "bytes requested by loads": lambda: kernel["totals"]["global_load_bytes"],
            "sectors per store": lambda: kernel["global_store_sectors_per_request"],
            "sectors per load": lambda: kernel["global_load_sectors_per_request"],
        }[what]()
    return {figure: value(figure) for figure in figures}


def same(text, value):
    """Returns whether the page's text equals the value, rounded to the text's digits, or is one of several values."""
    if isinstance(value, set):
        return text in value
    if isinstance(value, str):
        return text == value
    plain, _, unit = text.replace(",", "").partition(" ")
    if re.fullmatch(r"[\d.]+", plain) is None or unit not in ("", *UNITS):
        return False
    return f"{value / UNITS.get(unit, 1):.{len(plain.partition('.')[2])}f}" == plain


def check_figures(part, source, program):
    run = {"explain": explain, "occupancy": occupancy, "amdahl": amdahl, "emulate": emulate,
           **{name: functools.partial(calculate, name) for name in CALCULATORS}}
    wanted = {}  # by command: (page, figure, text)
    for page in sorted((source / "docs/course").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        tables = [piece.partition("\n\n")[0].split("\n")[1:] for piece in text.split(HEAD)[1:]]
        rows = ROW.findall(text)
        if sum(map(len, tables)) != len(rows):
            yield f"{page.name}: {len(rows)} rows of {sum(map(len, tables))} are understood"
        for command, words, figure, value in rows:
            if (command == "emulate") == (part == "programs"):
                wanted.setdefault((command, words), []).append((page.name, figure, value))
    if sum(map(len, wanted.values())) < LEAST[part]:
        yield f"{sum(map(len, wanted.values()))} figures; {LEAST[part]} at least are expected"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = {(command, words): pool.submit(run[command], program, source, shlex.split(words),
                                              [figure for _, figure, _ in rows])
                for (command, words), rows in wanted.items()}
        for (command, words), rows in wanted.items():
            try:
                values = jobs[command, words].result()
            except (RuntimeError, KeyError, StopIteration) as error:
                yield f"{rows[0][0]}: rung {command} {words}: {error!r}"
                continue
            for page, figure, value in rows:
                if not same(value, values[figure]):
                    yield f"{page}: rung {command} {words}: {figure}: the page says {value}, it is {values[figure]}"


def check_names(source, program):
    """Checks the names in code spans: operator/rung, program.cu, and `rung command`."""
    ops = {path.name for path in (source / "rung/ops").iterdir() if path.is_dir()}
    listed = output_of([program, "--help"], source).stdout
    commands = set(re.findall(r"^  ([\w-]+)  ", listed, re.M))
    helps, seen = {}, 0
    for page in [*sorted((source / "docs/course").glob("*.md")), source / "docs/glossary.md"]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for span in re.findall(r"`([^`\n]+)`", text):
            for operator, rung in re.findall(r"\b(\w+)/([a-z]\w+)\b", span):
                if operator not in ops:
                    continue
                seen += 1
                folder = source / "rung/ops" / operator
                if not any(list(folder.glob(f"c*/{place}{rung}.{ending}"))
                           for place in ("[0-9]*_", "shapes/", "types/") for ending in ("c*", "*.cu")):
                    yield f"{page.name}: there is no rung {operator}/{rung}"
            for name in re.findall(r"\b([a-z]\w*\.cu)\b", span):
                seen += 1
                if not (source / "examples/cuda" / name).exists():
                    yield f"{page.name}: there is no program {name}"
            command = re.match(r"rung (reuse \w+|[\w-]+)", span)
            seen += command is not None
            if command and command[1].split()[0] not in commands:
                yield f"{page.name}: there is no command '{command[1]}'"
            elif command:
                if command[1] not in helps:
                    helps[command[1]] = output_of([program, *command[1].split(), "--help"], source).stdout
                yield from (f"{page.name}: rung {command[1]} has no option {option}"
                            for option in re.findall(r" (--[a-z][\w-]*)", span) if option not in helps[command[1]])
    if seen < 200:
        yield f"{seen} names are understood; 200 at least are expected"


def main():
    part, source, program = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), os.path.abspath(sys.argv[3])
    found = check_names(source, program) if part == "names" else check_figures(part, source, program)
    wrong = list(found)
    print("\n".join(wrong) or "as the pages say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
