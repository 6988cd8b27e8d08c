# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of examples/cuda by `rung emulate`. Those without a bug print PASS, and nothing is found under any
order of threads; for NAME_bug.cu the finding is the one stated in its head, and its advice the one below.

Most are compiled as one, each in a namespace of its own (batch.hpp runs them); a few separately, for the output that a
user sees and for their counters.
usage: examples.py RUNG FOLDER"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ORDERS = 3  # number of orders in --order all
HEAD = re.compile(r"^// Bug: .*\n// rung emulate: (?:(\w+) in line (\d+)$|nothing; )", re.M)
# Part of the advice; "" if the finding has none.
ADVICE = {
    "aliasing": "", "block_order": "let the index depend on blockIdx", "box_blur": "y + dy >= 0 && y + dy < height",
    "coarsening": "__syncthreads() at the end of the loop", "convolution_1d": "", "convolution_2d": "declare tile[",
    "divergence": "", "graph_update": "atomicMin(",
    "hash_table": "__threadfence()", "histogram": "atomicAdd(&own[x[i]], 1)", "image_grey": "",
    "matrix_multiply": "launch 3 blocks in x", "matrix_multiply_tiled": "__syncthreads() at the end of the loop",
    "reduction": "__syncthreads()", "scan_brent_kung": "", "scan_kogge_stone": "__syncthreads()",
    "scheduling": "__syncthreads()", "skipped_tiles": "let all threads come to the barrier", "vector_add": "if (i < n)",
}
# Bugs without a finding: the program's own message.
SILENT = {"cpu_against_gpu": "FAIL", "texture": "FAIL", "transpose": "PASS"}


def batch(paths):
    """Returns one source of all of them: first their includes, then each in a namespace without its includes."""
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    include = re.compile(r"^(#include <.*>)$", re.M)
    lines = sorted({line for text in texts.values() for line in include.findall(text)})
    lines += [f'#include "{HERE}/batch.hpp"']
    for path, text in texts.items():
        pathlib.Path(path.name).write_text(include.sub("", text), encoding="utf-8")
        lines += [f"namespace program_{path.stem} {{", f'#include "{path.name}"', "}"]
    entries = ", ".join(f'{{"{path.stem}", program_{path.stem}::main}}' for path in paths)
    return "\n".join([*lines, f"int main() {{ return batch::run({{{entries}}}, 60); }}", ""])


def run(rung, source, *options):
    return subprocess.run([rung, "emulate", *options, source], capture_output=True, text=True, check=False)


def complaints(name, text, findings, output):
    """Yields complaints about one run of one program."""
    bug = name.endswith("_bug")
    if not bug:
        if findings or not output.endswith(": PASS\n") or output.count("\n") != 1:
            yield f"{findings}\n{output}"
        return
    head, base = HEAD.search(text), name.removesuffix("_bug")
    if head is None:
        yield "its head does not say what is found"
    elif head[1] is None:
        if findings or SILENT.get(base, "?") not in output:
            yield f"{findings}\n{output}"
    else:
        kind, line = head[1], int(head[2])
        there = [one for one in findings if one["kind"] == kind and line in (one["line"], one.get("other_line"))]
        if not there or any(one["kind"] != kind for one in findings):
            yield f"expected {kind} in line {line}, found {findings}\n{output}"
        elif not any(ADVICE[base] in one["advice"] for one in there):
            yield f"no advice '{ADVICE[base]}': {[one['advice'] for one in there]}"


def check_together(rung, paths):
    pathlib.Path("batch.cu").write_text(batch(paths), encoding="utf-8")
    done = run(rung, "batch.cu", "--checks", "always", "--order", "all")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    seen = dict.fromkeys(texts, 0)
    for piece in done.stdout.split("@program ")[1:]:
        head, _, rest = piece.partition("\n@report\n")
        report, _, output = rest.partition("@output\n")
        name = head.split()[0]
        fields = report.partition("\n")[2].strip() or '"findings":[]'
        seen[name] += 1
        for complaint in complaints(name, texts[name], json.loads("{" + fields + "}")["findings"],
                                    output.replace("@end\n", "")):
            yield f"{name}: {complaint}"
    for name, times in seen.items():
        if times != ORDERS:
            yield f"{name} ran {times} times, not {ORDERS}; the batch ended with {done.returncode}"
    if 0 in seen.values():
        yield done.stderr[-2000:]


def kernels_of(rung, path):
    """Returns the exit code, the output and the counters by kernel of a program that is run separately."""
    done = run(rung, path, "--json", "report.json")
    report = json.loads(pathlib.Path("report.json").read_text(encoding="utf-8"))
    return done, {one["name"].partition("(")[0]: one for one in report["kernels"]}


def check_alone(rung, folder):
    """Yields complaints about the output that a user sees, and about the counters of two programs."""
    done = run(rung, folder / "vector_add.cu")
    if done.returncode != 0 or done.stdout != "vector_add: 0 wrong: PASS\n" or done.stderr:
        yield f"vector_add: {done}"
    done = run(rung, folder / "vector_add_bug.cu")
    if done.returncode != 66 or "if (i < n)" not in done.stderr:
        yield f"vector_add_bug: {done}"
    stores = [kernels_of(rung, folder / f"{name}.cu")[1]["transpose"]["global_store_sectors_per_request"]
              for name in ("transpose", "transpose_bug")]
    if stores != [4, 32]:
        yield f"transpose: {stores} sectors per store"
    counted = kernels_of(rung, folder / "aliasing.cu")[1]
    loads = [counted[name]["totals"]["global_load_requests"] for name in ("divide_plain", "divide")]
    if loads != [256, 132]:  # four warps: twice 32, and 32 and one
        yield f"aliasing: {loads} loads"
    counted = kernels_of(rung, folder / "divergence.cu")[1]
    parted = {name: (one["divergent_warps"], sum(launch["warps"] for launch in one["each_launch"]))
              for name, one in counted.items()}
    if parted != {"below_diagonal": (168, 968), "inner": (30, 32), "never": (0, 2)}:
        yield f"divergence: {parted}"


def main():
    rung, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    paths = sorted(folder.glob("*.cu"))
    names = {path.stem for path in paths}
    wrong = [f"{name} lacks its twin" for name in names if name.removesuffix("_bug") not in names
             or not name.endswith("_bug") and f"{name}_bug" not in names]
    wrong += [f"no advice is known of {name}" for name in names
              if name.endswith("_bug") and name.removesuffix("_bug") not in {*ADVICE, *SILENT}]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        wrong += check_together(rung, paths)
        wrong += check_alone(rung, folder)
        os.chdir(HERE)
    print("\n".join(wrong) or f"{len(paths)} programs")
    return 1 if wrong or len(paths) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
