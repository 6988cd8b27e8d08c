#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the simulated GPU's model of L1 and L2 with a chip's caches, kernel by kernel, in a table in Markdown.

  compare_caches.py RUNG                       both, on a machine with a GPU, nvcc and ncu
  compare_caches.py RUNG --record FILE.json    the chip's half alone, there: what Nsight Compute measures
  compare_caches.py RUNG --against FILE.json   the simulator's half, anywhere, against what was recorded
  compare_caches.py RUNG --model               the simulator's half alone

The kernels are those of tests/emulate/caches/caches.cu. Nsight Compute empties the caches before each kernel, as the
model does. --commands prints the commands for the chip, to be run by hand.
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile

import compare_counters

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "tests/emulate/caches/caches.cu"
LOOKUP = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}{}.sum"
# Column: its metrics, which are added.
METRICS = {
    "l1tex__t_sector_hit_rate.pct": ["l1tex__t_sector_hit_rate.pct"],
    "load_sectors": [LOOKUP.format("ld", "")],
    "load_hits": [LOOKUP.format("ld", "_lookup_hit")],
    "store_sectors": [LOOKUP.format("st", "")],
    "store_hits": [LOOKUP.format("st", "_lookup_hit")],
    "lts__t_sector_hit_rate.pct": ["lts__t_sector_hit_rate.pct"],
    "lts__t_sectors_srcunit_tex.sum": ["lts__t_sectors_srcunit_tex.sum"],
    "lts__t_sectors_srcunit_tex_lookup_hit.sum": ["lts__t_sectors_srcunit_tex_lookup_hit.sum"],
    "dram_read_bytes": ["dram__bytes_read.sum"],
    "dram_write_bytes": ["dram__bytes_write.sum"],
    "operations": ["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                   "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
                   "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                   "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"],
}


def ncu_command(report, program):
    metrics = sorted({metric for several in METRICS.values() for metric in several})
    return ["ncu", "--clock-control", "none", "--cache-control", "all", "--export", report, "--metrics",
            ",".join(metrics), program]


def record():
    gpu = compare_counters.output_of(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).splitlines()[0]
    version = re.search(r"Version (\S+)", compare_counters.output_of(["ncu", "--version"]))[1]
    reader = compare_counters.report_reader()
    kernels = {}
    with tempfile.TemporaryDirectory() as folder:
        program, report = pathlib.Path(folder, "caches"), pathlib.Path(folder, "report")
        compare_counters.output_of(["nvcc", *compare_counters.NVCC, SOURCE, "-o", program])
        compare_counters.output_of(ncu_command(report, program))
        for launches in reader.load_report(f"{report}.ncu-rep"):
            for action in launches:
                name = compare_counters.plain_name(action.name(action.NameBase_DEMANGLED))
                kernels[name] = {column: sum(action.metric_by_name(metric).as_double() for metric in several)
                                 for column, several in METRICS.items()}
    return {"machine": {"gpu": gpu}, "ncu": version, "kernels": kernels}


def simulate(rung):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        compare_counters.output_of([rung, "emulate", "--no-checks", "--json", report, SOURCE])
        kernels = json.loads(report.read_text())["kernels"]
    figures = {}
    for kernel in kernels:
        totals, caches = kernel["totals"], kernel["caches"]
        figures[compare_counters.plain_name(kernel["name"])] = {
            "l1tex__t_sector_hit_rate.pct": caches["l1tex__t_sector_hit_rate.pct"],
            "load_sectors": totals["global_load_sectors"], "load_hits": totals["l1_load_hits"],
            "store_sectors": totals["global_store_sectors"], "store_hits": totals["l1_store_hits"],
            "lts__t_sector_hit_rate.pct": caches["lts__t_sector_hit_rate.pct"],
            "lts__t_sectors_srcunit_tex.sum": totals["l2_sectors"],
            "lts__t_sectors_srcunit_tex_lookup_hit.sum": totals["l2_hits"],
            "dram_read_bytes": caches["dram_read_bytes"], "dram_write_bytes": caches["dram_write_bytes"],
            "operations": kernel["operations"]["total"] if kernel["operations"] else None}
    return figures


def share(figures, hits, of):
    return 100 * figures[hits] / figures[of] if figures[of] else None


# Columns of the table, one row per kernel.
COLUMNS = [
    ("L1 hits, % of sectors", lambda one: one["l1tex__t_sector_hit_rate.pct"]),
    ("% of loads", lambda one: share(one, "load_hits", "load_sectors")),
    ("% of stores", lambda one: share(one, "store_hits", "store_sectors")),
    ("L2 hits, % of sectors", lambda one: one["lts__t_sector_hit_rate.pct"]),
    ("% of those from L1", lambda one: share(one, "lts__t_sectors_srcunit_tex_lookup_hit.sum",
                                             "lts__t_sectors_srcunit_tex.sum")),
    ("MB read from memory", lambda one: one["dram_read_bytes"] / 1e6),
    ("MB written", lambda one: one["dram_write_bytes"] / 1e6),
    ("10^6 operations", lambda one: None if one["operations"] is None else one["operations"] / 1e6),
]


def show(value):
    return "" if value is None else f"{value:.4g}"


def table(ours, chip):
    lines = [" | ".join(["| kernel", *(name for name, _ in COLUMNS)]) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, figures in ours.items():
        cells = []
        for _, of in COLUMNS:
            model = show(of(figures))
            real = show(of(chip[name])) if chip and name in chip else None
            cells.append(model if real is None else f"{real}, model {model}" if real != model else model)
        lines.append(" | ".join([f"| `{name}`", *cells]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rung", help="the program")
    parser.add_argument("--record", metavar="FILE.json", help="only measure on the chip")
    parser.add_argument("--against", metavar="FILE.json", help="only simulate, against this record")
    parser.add_argument("--model", action="store_true", help="only simulate")
    parser.add_argument("--commands", action="store_true", help="print the chip's commands")
    given = parser.parse_args()
    if given.commands:
        print(" ".join(["nvcc", *compare_counters.NVCC, str(SOURCE), "-o", "caches"]))
        print(" ".join(map(str, ncu_command("caches", "./caches"))))
        return
    chip = None
    if given.against is not None:
        chip = json.loads(pathlib.Path(given.against).read_text())["kernels"]
    elif not given.model:
        recorded = record()
        chip = recorded["kernels"]
        if given.record is not None:
            pathlib.Path(given.record).write_text(json.dumps(recorded, indent=1) + "\n")
            return
    print(table(simulate(given.rung), chip))


if __name__ == "__main__":
    sys.exit(main())
