# SPDX-License-Identifier: Apache-2.0
"""The advice of `rung emulate` mends programs. Each program of programs/ has a common bug if BUG is defined: the test
runs it, applies the fixes of its findings to its source, and runs it again, until nothing is found. The program is
mended if it then prints OK, which it does only if its result is right, and nothing is found.

Many programs are compiled as one (../batch.hpp runs them), each in a namespace of its own.
usage: advice.py RUNG [--only NAME ...] [--show]"""
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
CHECK = HERE.parent / "programs" / "check.cuh"
ROUNDS = 3  # maximum number of rounds of fixes: one bug may hide another's finding
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)


def source_of(names, bug):
    """Returns one source that includes all these programs."""
    text = ["#include <cstdio>", '#include "check.cuh"', f'#include "{HERE.parent}/batch.hpp"']
    text += ["#define BUG 1"] if bug else []
    for name in names:
        defined = DEFINE.findall(pathlib.Path(f"{name}.cu").read_text())
        text += [f"namespace program_{name} {{", f'#include "{name}.cu"', "}"] + [f"#undef {one}" for one in defined]
    entries = ", ".join(f'{{"{name}", program_{name}::main}}' for name in names)
    return "\n".join([*text, f"int main() {{ return batch::run({{{entries}}}, 20); }}", ""])


def run(rung, names, bug=True):
    """Returns the findings and the output of each of these programs, which are in the current folder."""
    pathlib.Path("batch.cu").write_text(source_of(names, bug))
    done = subprocess.run([rung, "emulate", "batch.cu"], capture_output=True, text=True, check=False)
    results = {}
    for piece in done.stdout.split("@program ")[1:]:
        head, _, rest = piece.partition("\n@report\n")
        report, _, output = rest.partition("@output\n")
        fields = report.partition("\n")[2].strip() or '"findings":[]'
        results[head.split()[0]] = json.loads("{" + fields + "}")["findings"], output.replace("@end\n", "")
    if set(results) != set(names):
        print(done.stdout[-2000:] + done.stderr)
        sys.exit(f"the batch ended with {done.returncode}")
    return results


def apply(fixes, name):
    """Applies the fixes to the program's source; returns those that could not be applied."""
    path = pathlib.Path(f"{name}.cu")
    lines = path.read_text().split("\n")
    # From the last line upward, so that other line numbers stay valid; one position is changed once.
    unique = {(one["line"], one["from"], one["text"]): one for one in fixes if one["file"] == path.name}
    taken = set()
    wrong = [] if unique else ["no fix"]
    for line, old, new in sorted(unique, reverse=True):
        if (line, old) in taken:
            continue
        taken.add((line, old))
        if not old:
            lines.insert(line - 1, new)
            continue
        before, after = lines[:line - 1], "\n".join(lines[line - 1:])
        if old not in after:
            wrong.append(f"line {line} has no {old!r}")
        lines = before + after.replace(old, new, 1).split("\n")
    path.write_text("\n".join(lines))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rung")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--show", action="store_true", help="print each finding's advice")
    given = parser.parse_args()
    rung = os.path.abspath(given.rung)
    names = [path.stem for path in sorted((HERE / "programs").glob("*.cu"))
             if given.only is None or path.stem in given.only]
    failed = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("check.cuh").write_text(CHECK.read_text())
        for name in names:
            pathlib.Path(f"{name}.cu").write_text((HERE / "programs" / f"{name}.cu").read_text())
        for name, (findings, output) in run(rung, names, bug=False).items():
            if findings or output != "OK\n":
                sys.exit(f"{name} is wrong without its bug: {findings}\n{output}")
        left = names
        for rounds in range(ROUNDS + 1):
            still = []
            for name, (findings, output) in run(rung, left).items():
                if rounds == 0 and not findings:
                    failed[name] = "its bug is not found"
                    continue
                if given.show:
                    for one in findings:
                        print(f"{name}:{one['line']}: {one['message']}\n  {one['advice']}")
                if not findings and output == "OK\n":
                    continue
                if not findings or rounds == ROUNDS:
                    failed[name] = f"not right after {rounds} rounds of advice: {findings}\n{output}"
                    continue
                wrong = apply([fix for one in findings for fix in one["fixes"]], name)
                if wrong:
                    failed[name] = "; ".join(wrong) + f": {findings}"
                else:
                    still.append(name)
            left = still
            if not left:
                break
        os.chdir(HERE)
    for name, why in failed.items():
        print(f"{name}: {why}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(names)} programs, {len(names) - len(failed)} mended by their advice, "
          f"{used.ru_utime + used.ru_stime:.1f} s of CPU time")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
