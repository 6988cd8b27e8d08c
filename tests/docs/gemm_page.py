# SPDX-License-Identifier: Apache-2.0
"""Compares gemm's README with its rungs and results: which CPU rungs use one thread, and the times in its prose.
result_tables.py compares its tables.

usage: gemm_page.py SOURCE"""
import json
import pathlib
import re
import sys

LARGE_B = "f32 16x4096x4096"  # B leaves the caches


def code_of(folder):
    """Returns the code of each CPU rung, without comments, by name."""
    codes = {}
    for path in folder.glob("*.cpp"):
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        codes[re.search(r'\.name = "(\w+)"', code).group(1)] = code
    return codes


def main():
    source = pathlib.Path(sys.argv[1])
    page = " ".join((source / "rung/ops/gemm/README.md").read_text(encoding="utf-8").split())
    results = json.loads((source / "results/zen5-2-cores/gemm.json").read_text(encoding="utf-8"))["rows"]
    wrong = []

    said = re.search(r"The call had 2 threads\. (.{1,400}?) use one of them", page)
    one_thread = set(re.findall(r"`(\w+)`", said.group(1))) if said else set()
    codes = code_of(source / "rung/ops/gemm/cpu")
    ladder = {row["rung"] for row in results if row["problem"] == "f32 1024x1024x1024" and row["rung"] in codes}
    serial = {name for name in ladder if not re.search(r"\b(run_team|run_shares|Team)\b", codes[name])}
    if one_thread != serial:
        wrong.append(f"one thread: the page names {sorted(one_thread)}; without a team are {sorted(serial)}")

    times = {row["rung"]: f"{row['seconds'] * 1e3:.3g}" for row in results
             if row["problem"] == LARGE_B and row["seconds"]}
    steps = [times[name] for name in ("loop_order_ikj", "register_tiled", "cache_tiled", "cache_and_register_tiled")]
    for text in (", ".join(steps), f"{times['simd_tile']} ms", f"{times['packed_b']};"):
        if text not in page:
            wrong.append(f"{LARGE_B}: the page does not say '{text}'")

    print("\n".join(wrong) or f"{len(serial)} rungs of one thread")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
