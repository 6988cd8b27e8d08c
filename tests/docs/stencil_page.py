# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/stencil.md's tables and compares their counts with the page.

usage: stencil_page.py SOURCE RUNG"""
import json
import math
import pathlib
import re
import subprocess
import sys

ROW = re.compile(r'^\| `rung explain stencil/(\w+) "([^"]+)"` \| ([^|]+) \| ([\d.]+) \|$', re.M)


def count(program, rung, problem):
    """Returns totals of all launches, and the problem's numbers of elements and iterations."""
    done = subprocess.run([program, "explain", f"stencil/{rung}", problem, "--json"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"rung explain stencil/{rung} '{problem}': {done.stderr}")
    shown = next(one for one in json.loads(done.stdout)["rungs"] if one["rung"] == rung)
    if not shown["counted"]:
        sys.exit(f"stencil/{rung} on '{problem}': {shown['why_not']}")
    totals = {}
    for kernel in shown["kernels"]:
        for launch in kernel["each_launch"]:
            for name, value in launch["totals"].items():
                totals[name] = totals.get(name, 0) + value
    totals["global_bytes"] = shown["counters"]["global_bytes"]
    shape, *options = problem.split(" ")[1].split(",")
    elements = math.prod(int(extent) for extent in shape.split("x"))
    iterations = next((int(o.partition("=")[2]) for o in options if o.startswith("iterations=")), 1)
    return totals, elements, iterations


def figure(what, totals, elements, iterations):
    size = 4
    loads, reads = totals["global_load_bytes"] / size, totals["shared_load_bytes"] / size
    return {
        "loads per element": lambda: loads / elements,
        "uses per load": lambda: reads / loads,
        "bytes per element": lambda: totals["global_bytes"] / elements,
        "bytes per element and iteration": lambda: totals["global_bytes"] / elements / iterations,
        "reads from shared memory": lambda: reads,
        "reads from shared memory per element": lambda: reads / elements,
        "reads from global memory": lambda: loads,
    }[what]()


def main():
    page = (pathlib.Path(sys.argv[1]) / "docs/stencil.md").read_text(encoding="utf-8")
    rows = ROW.findall(page)
    written = page.count("| `rung explain")
    if len(rows) != written or written < 20:
        sys.exit(f"{len(rows)} of {written} rows with a command are understood; 20 at least are wanted")
    counted, wrong = {}, 0
    for rung, problem, what, text in rows:
        if (rung, problem) not in counted:
            counted[rung, problem] = count(sys.argv[2], rung, problem)
        value = figure(what, *counted[rung, problem])
        digits = len(text.partition(".")[2])
        if f"{value:.{digits}f}" != f"{float(text):.{digits}f}":
            print(f"stencil/{rung} '{problem}', {what}: the page says {text}, counted are {value:.4f}")
            wrong += 1
    print(f"{len(rows)} figures, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
