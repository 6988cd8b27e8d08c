# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of tests/emulate by `rung emulate`, under three orders of threads: those of programs/, which
check themselves and print OK, and those of planted/, each of which has one bug where BUG is defined, in lines that
say `// expect: kind`, and none where it is not.

Most of the time is spent compiling headers, so many programs are compiled as one, each in a namespace of its own
(batch.hpp runs them, each in a process of its own). --alone compiles them one by one, as a user would.
usage: programs.py RUNG programs|planted [--part I/N] [--only NAME ...] [--alone] [--no-checks] [--checks N]"""
import argparse
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 60  # time limit of a program
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"].*[>"])', re.M)
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)
SOMETIMES = "// Found under some orders"  # in a program whose bug is found under at least one order
ALONE = "// Compiled alone"  # in a program that uses names of its whole file
VOLATILE = re.compile(r"(?<!asm )\bvolatile\b")
OPTIONS = re.compile(r"^// Options: (.*)$", re.M)  # for `rung emulate`, in a program that is compiled alone
UNCHECKED = re.compile(r"^rung: kernel .* ran unchecked .*\n", re.M)  # a remark, no finding
SLOW = re.compile(r"^rung: kernel .* has run for \d+ s, and goes on\n(?:  at .*\n)?", re.M)  # occurs on a slow machine
EXPECT = re.compile(r"//.*expect: (\w+)")


class Program:
    """A source, in the variant with its bug or without it."""

    def __init__(self, path, bug):
        self.path, self.bug = path, bug
        self.files = [path] if path.is_file() else sorted([*path.glob("*.cu"), *path.glob("*.cpp")])
        self.text = path.read_text() if path.is_file() else ALONE
        self.name = path.stem + ("_bug" if bug else "")

    def expected(self):
        """Returns the expected findings: the kinds, and the lines (all of which a finding must involve)."""
        marks = [(match[1], line) for line, text in enumerate(self.text.splitlines(), 1)
                 if (match := EXPECT.search(text))] if self.bug else []
        return {kind for kind, _ in marks}, {line for _, line in marks}

    def wrong(self, exit_code, signal, output, report):
        """Returns a complaint about a run, or None."""
        kinds, lines = self.expected()
        findings = json.loads(report)["findings"]
        if not self.bug:
            if exit_code != 0 or signal != 0 or SLOW.sub("", UNCHECKED.sub("", output)) != "OK\n" or findings:
                return f"exit code {exit_code}, signal {signal}\n{output}"
            return None
        if signal != 0:
            return f"ended by signal {signal}\n{output}"
        told = []
        found = False
        for one in findings:
            if one["kind"] == "leak" and "leak" not in kinds and exit_code != 0:
                continue  # a program that exits early frees nothing
            two_sided = one["kind"] in ("race", "stream_order")
            here = {one["line"], one.get("other_line") or one["line"]} if two_sided else {one["line"]}
            if one["kind"] == "race" and (one["block"], one["thread"]) == (one["other_block"], one["other_thread"]):
                if not self.name.startswith(("copy_", "ptx_bulk_")):  # with its own copy in flight
                    return f"a race of a thread with itself: {one}\n{output}"
            told.append(f"{one['kind']} in line {'and'.join(map(str, sorted(here)))}")
            if pathlib.Path(one["file"]).name != self.path.name or not here & lines:
                return f"found {told[-1]} of {one['file']}, expected {kinds} in lines {sorted(lines)}\n{output}"
            # A race is reported with both lines, or with the one line where both sides are.
            found |= one["kind"] in kinds and (not two_sided or lines <= here or here <= lines)
        return None if found else f"found {told}, expected {kinds} in lines {sorted(lines)}\n{output}"


def source_of(programs):
    """Returns one source of all programs. Each program's macros end with it; all includes come first."""
    includes = sorted({include for one in programs for include in INCLUDE.findall(one.text) if include[0] == "<"})
    text = [f"#include {include}" for include in includes]
    text += [f'#include "{HERE}/programs/check.cuh"', f'#include "{HERE}/batch.hpp"']
    for one in programs:
        text += ["#define BUG 1"] if one.bug else []
        text += [f"namespace program_{one.name} {{", f'#include "{one.path}"', "}"]
        text += [f"#undef {name}" for name in DEFINE.findall(one.text)] + (["#undef BUG"] if one.bug else [])
    entries = ", ".join(f'{{"{one.name}", program_{one.name}::main}}' for one in programs)
    return "\n".join([*text, f"int main() {{ return batch::run({{{entries}}}, {SECONDS}); }}", ""])


def run_batch(rung, programs, options, folder):
    """Yields (program, exit code, signal, output, report) once for each order."""
    source = pathlib.Path(folder, "batch.cu")
    source.write_text(source_of(programs))
    run = subprocess.run([rung, "emulate", *options, str(source)], cwd=folder, capture_output=True, text=True,
                         check=False)
    by_name = {one.name: one for one in programs}
    if run.stdout.count("@end\n") != 3:
        print(run.stdout[-2000:] + run.stderr)
        sys.exit(f"the batch ended with {run.returncode}")
    for piece in run.stdout.split("@program ")[1:]:
        head, _, rest = piece.partition("\n@report\n")
        report, _, output = rest.partition("@output\n")
        name, exit_code, signal = head.split()
        fields = report.partition("\n")[2].strip() or '"findings":[]'
        yield by_name[name], int(exit_code), int(signal), output.replace("@end\n", ""), "{" + fields + "}"


def run_alone(rung, program, options, folder):
    """Yields the same for one program, compiled alone."""
    report = pathlib.Path(folder, "report.json")
    define = ["-D", "BUG"] if program.bug else []
    if match := OPTIONS.search(program.text):
        define += match[1].split()
    for order in ("forward", "reverse", "random:1"):
        command = [rung, "emulate", *options, *define, "--order", order, "--json", str(report),
                   *map(str, program.files)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        # 66 is the exit code for findings.
        yield program, 0 if run.returncode == 66 else run.returncode, 0, run.stdout + run.stderr, report.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rung")
    parser.add_argument("suite", choices=["programs", "planted"])
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--no-checks", action="store_true")
    parser.add_argument("--checks", default="always")  # any other value compiles everything twice
    given = parser.parse_args()
    rung = os.path.abspath(given.rung)
    part, parts = map(int, given.part.split("/"))
    planted = given.suite == "planted"
    folder = HERE / given.suite
    paths = [path for path in sorted([*folder.glob("*.cu"), *filter(pathlib.Path.is_dir, folder.iterdir())])
             if given.only is None or path.stem in given.only][part - 1::parts]
    programs = [Program(path, bug) for path in paths for bug in ([True, False] if planted else [False])]
    options = ["--checks", given.checks]
    options += ["--leaks"] if planted else ["--no-checks"] if given.no_checks else []
    alone = [one for one in programs if given.alone or ALONE in one.text]
    together = [one for one in programs if one not in alone]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for one in alone:
            results += run_alone(rung, one, options, folder)
        # Programs without volatile variables are compiled without hooks, too.
        bare = given.no_checks or given.checks != "always"
        spinning = [one for one in together if bare and VOLATILE.search(one.text)]
        for batch in (spinning, [one for one in together if one not in spinning]):
            results += run_batch(rung, batch, [*options, "--order", "all"], folder) if batch else []
    failed = 0
    missed = {one.name: 0 for one in programs if one.bug and SOMETIMES in one.text}
    for one, *how in results:
        if wrong := one.wrong(*how):
            if one.name in missed and "found []" in wrong and missed[one.name] < 2:
                missed[one.name] += 1
                continue
            failed += 1
            print(f"{one.name}: {wrong}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(programs)} programs, {len(results)} runs, {failed} wrong, "
          f"{used.ru_utime + used.ru_stime:.1f} s of CPU time")
    sys.exit(1 if failed or len(results) != 3 * len(programs) else 0)


if __name__ == "__main__":
    main()
