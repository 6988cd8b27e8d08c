# SPDX-License-Identifier: Apache-2.0
"""Compares docs/explain.md's figures of gemm with the counters of `rung explain` and the times in results/h200, and the
terms in explain's columns and rows with docs/glossary.md.

usage: explain_page.py SOURCE RUNG"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROW = re.compile(r"^\| (\w+) \| ([\d.]+) \| ([\w ]+) \| ([\d.]+) \|$", re.M)
MEASURED = "f32 4096x4096x4096"
COUNTED = "f32 256x256x64"
# Words in explain's columns and rows that need no glossary entry.
PLAIN = set("""active all and arithmetic at before best bound by byte cache cached came change conflict constant copy
    counted declared div each for global in inst instruction integer launch load loaded memory move must nothing of on
    once one operation or per product read register reuse rung spilled stack store stored that the
    thread used was were written""".split())
# Rungs that together show every row.
SHOWN = ("naive_uncoalesced", "shared_tile_transposed", "split_k", "ldmatrix_pipeline", "persistent")


def explain(program, *words):
    done = subprocess.run([program, "explain", *words], capture_output=True, text=True, check=False,
                          env={**os.environ, "COLUMNS": "250"})
    if done.returncode != 0:
        sys.exit(f"rung explain {' '.join(words)}: {done.stderr}")
    return done.stdout


def same(text, value):
    return f"{value:.{len(text.partition('.')[2])}f}" == text


def wrong_figures(page, source, rungs):
    rows = ROW.findall(page)
    if len(rows) < 14:
        yield f"{len(rows)} rows of gemm's table are understood; 14 at least are wanted"
    results = json.loads((source / "results/h200/gemm_ladder.json").read_text(encoding="utf-8"))["rows"]
    measured = {row["rung"]: row["rate"] / 1e3 for row in results if row["problem"] == MEASURED and row["seconds"]}
    for name, at_best, bound, rate in rows:
        roof = next(one for one in rungs[name]["roofline"] if one["bytes_are"] == "distinct")
        if not same(at_best, roof["operations_per_second_at_best"] / 1e12) or bound != roof["bound_by"]:
            yield f"{name}: {at_best}, {bound}; explain: {roof['operations_per_second_at_best']}, {roof['bound_by']}"
        if not same(rate, measured[name]):
            yield f"{name}: measured {rate}; results: {measured[name]}"
    sectors = rungs["naive_uncoalesced"]["counters"]["global_load_sectors_per_request"]
    shared = rungs["shared_tile_transposed"]["counters"]
    wavefronts = shared["shared_load_wavefronts"] / shared["shared_load_requests"]
    for value, words in ((sectors, "sectors per load"), (wavefronts, "wavefronts per shared load")):
        if f"{value:.1f} {words}" not in page:
            yield f"'{value:.1f} {words}' is not on the page"
    coalesced = rungs["naive_coalesced"]["counters"]["global_load_sectors_per_request"]
    for rung, text in (("naive_uncoalesced", f"{sectors:.1f} sectors per request"),
                       ("naive_coalesced", f"{coalesced:.1f} sectors per request"),
                       ("shared_tile_transposed", f"{wavefronts:.1f} in the mean")):
        if text not in " ".join(rungs[rung]["header"].values()):
            yield f"{rung}: its header does not say '{text}'"


def singular(word):
    word = re.sub("ies$", "y", re.sub("ches$", "ch", word.lower()))
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def labels(program):
    """Yields the words in the columns of the ladder's table and in the rows of a rung's table."""
    for line in explain(program, "gemm", COUNTED).splitlines():
        if line.startswith("rung "):
            yield line.removeprefix("rung ")
    for rung in SHOWN:
        inside = False
        for line in explain(program, f"gemm/{rung}").splitlines():
            inside = (inside or line.endswith("on the simulated GPU")) and not line.startswith("gemm_")
            if inside and re.search(r" {2,}[\d,.-]+|^by the bytes", line) and not line.startswith("On "):
                yield re.split(r" {2,}", line.strip())[0]


def main():
    source, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    page = (source / "docs/explain.md").read_text(encoding="utf-8")
    glossary = (source / "docs/glossary.md").read_text(encoding="utf-8")
    rungs = {one["rung"]: one for one in json.loads(explain(program, "gemm", COUNTED, "--json"))["rungs"]}
    wrong = list(wrong_figures(page, source, rungs))
    heads = re.findall(r"^\*\*(.+?)\*\*", glossary, re.M)
    terms = {singular(word) for head in heads for word in re.findall(r"\w+", head)}
    seen = {word for label in labels(program) for word in re.findall(r"[A-Za-z]{2,}", label)}
    if len(seen) < 30:
        wrong.append(f"{len(seen)} words of explain are understood; 30 at least are wanted")
    verbs = {"diverge": "divergence"}
    for word in sorted(seen):
        if singular(word) not in PLAIN | terms and verbs.get(word) not in terms:
            wrong.append(f"explain says '{word}', which docs/glossary.md does not define")
    print("\n".join(wrong) or f"{len(seen)} words, {len(rungs)} rungs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
