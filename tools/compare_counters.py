#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the simulated GPU's counters with a chip's, kernel by kernel, and prints a table in Markdown.

  compare_counters.py RUNG                       both, on a machine with a GPU, nvcc and ncu
  compare_counters.py RUNG --record FILE.json    the chip's half alone, there: what Nsight Compute counts
  compare_counters.py RUNG --against FILE.json   the simulator's half, anywhere, against what was recorded

RUNG is the program `rung`; for the chip's half it must be built with RUNG_CUDA=ON. The kernels are those of
tests/emulate/counters (compiled by nvcc, and by `rung emulate`) and gemm's rungs. Exit code 1 if a kernel has a
difference that is not a known one: requests and sectors per request must be equal, wavefronts within 2 % and 64, lanes
per request within 2 %.
"""
import argparse
import importlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "tests/emulate/counters/counters.cu"
NVCC = ["-std=c++20", "-O3", "-lineinfo", "-cudart=static", "-arch=native"]
GEMM = "f32 128x128x128"

# Counter of the simulator: the metrics of Nsight Compute that are added for it. Metrics of smsp__sass count the
# instructions' accesses. Those of l1tex count the hardware's work, which includes conflicts between concurrent warps.
EXECUTED = "smsp__sass_inst_executed_op_{}.sum"
SECTORS = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_{}.sum"
WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
METRICS = {
    "global_load_requests": [EXECUTED.format("global_ld"), EXECUTED.format("ldgsts")],
    "global_load_sectors": [SECTORS.format("ld"), SECTORS.format("ldgsts")],
    "global_store_requests": [EXECUTED.format("global_st")],
    "global_store_sectors": [SECTORS.format("st")],
    "atomic_requests": [EXECUTED.format("global_atom"), EXECUTED.format("global_red")],
    "atomic_sectors": [SECTORS.format("atom"), SECTORS.format("red")],
    "shared_load_requests": [EXECUTED.format("shared_ld")],
    "shared_load_wavefronts": [WAVEFRONTS.format("ld")],
    "shared_store_requests": [EXECUTED.format("shared_st"), EXECUTED.format("ldgsts")],
    "shared_store_wavefronts": [WAVEFRONTS.format("st"), WAVEFRONTS.format("ldgsts")],
    "shared_atomic_requests": [EXECUTED.format("shared_atom")],
    "shared_atomic_wavefronts": [WAVEFRONTS.format("atom")],
}
# Per instruction: lanes that executed it with a true predicate. An asynchronous copy (LDGSTS) is a load and a store.
LANES = "thread_inst_executed_true"
MEMORY_INSTRUCTIONS = {"LDG", "STG", "LDS", "STS", "ATOMG", "ATOMS", "RED", "REDG", "ATOM", "LDGSTS"}
# Known differences, explained in docs/counters-against-hardware.md: nvcc vectorizes loops of loads from neighboring
# addresses, four at a time; and how the chip counts the writes of asynchronous copies is unknown.
KNOWN = {"gemm_uncoalesced_tile": {"memory requests", "wavefronts of shared loads"},
         "gemm_shared_tile": {"memory requests", "wavefronts of shared loads"},
         "gemm_shared_tile_transposed": {"memory requests", "wavefronts of shared loads"},
         "gemm_async_copy": {"of stores"}, "gemm_warp_tile": {"of stores"},
         "gemm_split_k": {"of stores"}, "gemm_simt_top": {"of stores"}}


def plain_name(name):
    """Returns a kernel's name in a form common to both demanglers: no types before constants, no namespaces, no result,
    no parameters."""
    name = re.sub(r"\(anonymous namespace\)::|<unnamed>::|unnamed>::", "", name)
    name = re.sub(r"\((?:\w|::| )+\)(?=-?\w)", "", name)
    name = re.sub(r"\w+::", "", name)
    name = re.sub(r"\bfalse\b", "0", re.sub(r"\btrue\b", "1", name))
    name = name.partition("(")[0].replace("> >", ">>").replace(" >", ">")
    return re.sub(r"^(void|static) ", "", name).strip()


def output_of(command):
    """Returns a program's output; exits with its error output if it fails."""
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {run.returncode}\n{run.stdout[-3000:]}{run.stderr[-3000:]}")
    return run.stdout


# --- the chip --------------------------------------------------------------------------------------------------------
def report_reader():
    """Returns Nsight Compute's Python module, from its installation."""
    for root in ("/opt/nvidia/nsight-compute", "/usr/local/cuda", "/usr/local"):
        for folder in sorted(pathlib.Path(root).glob("**/extras/python/ncu_report.py")):
            sys.path.append(str(folder.parent))
            return importlib.import_module("ncu_report")
    sys.exit("Nsight Compute's extras/python/ncu_report.py: not found")


def lanes(action):
    """Returns the number of lanes that executed instructions on global or shared memory, summed over these."""
    metric = action.metric_by_name(LANES)
    places = metric.correlation_ids()
    total = 0
    for i in range(metric.num_instances()):
        words = [word for word in action.sass_by_pc(places.as_uint64(i)).split() if not word.startswith("@")]
        if words[0].partition(".")[0].rstrip(";") in MEMORY_INSTRUCTIONS:
            total += metric.as_uint64(i) * (2 if words[0].startswith("LDGSTS") else 1)
    return total


def profile(command, only=None):
    """Returns the counters of each kernel of a program, summed over its launches."""
    metrics = sorted({metric for several in METRICS.values() for metric in several})
    reader = report_reader()
    kernels = {}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report")
        ncu = ["ncu", "--clock-control", "none", "--export", report, "--metrics", ",".join([*metrics, LANES])]
        if only is not None:
            ncu += ["--kernel-name", f"regex:{only}"]
        output_of([*ncu, *command])
        for launches in reader.load_report(f"{report}.ncu-rep"):
            for action in launches:
                name = plain_name(action.name(action.NameBase_DEMANGLED))
                kernel = kernels.setdefault(name, {"launches": 0, **dict.fromkeys(METRICS, 0), "active_lanes": 0})
                kernel["launches"] += 1
                kernel["active_lanes"] += lanes(action)
                for counter, several in METRICS.items():
                    kernel[counter] += sum(int(action.metric_by_name(metric).as_double()) for metric in several)
    return kernels


def record(rung):
    """Returns the counters of the chip."""
    gpu = output_of(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).splitlines()[0]
    version = re.search(r"Version (\S+)", output_of(["ncu", "--version"]))[1]
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "counters")
        output_of(["nvcc", *NVCC, SOURCE, "-o", program])
        counters = profile([program])
    gemm = profile([rung, "check", "gemm", "--backend", "cuda", "--problem", GEMM, "--variant", "plain", "--seed",
                    "1"], only="^gemm_")
    return {"machine": {"gpu": gpu}, "ncu": version,
            "programs": {"counters.cu": counters, f"gemm {GEMM}": gemm}}


# --- the simulator ---------------------------------------------------------------------------------------------------
def simulated(kernels):
    """Returns counters by name, from a list of kernels in JSON."""
    sums = {}
    for kernel in kernels:
        counters = sums.setdefault(plain_name(kernel["name"]), {"launches": 0})
        counters["launches"] += kernel["launches"]
        for name, value in kernel["totals"].items():
            counters[name] = counters.get(name, 0) + value
        lanes_a_request = kernel["active_lanes"] or 0
        counters["active_lanes"] = counters.get("active_lanes", 0) + lanes_a_request * requests(kernel["totals"])
    return sums


def simulate(rung):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        output_of([rung, "emulate", "--json", report, SOURCE])
        counters = simulated(json.loads(report.read_text())["kernels"])
    rungs = json.loads(output_of([rung, "explain", "gemm", GEMM, "--json"]))["rungs"]
    gemm = simulated(kernel for one in rungs for kernel in one["kernels"])
    return {"counters.cu": counters, f"gemm {GEMM}": gemm}


# --- both ------------------------------------------------------------------------------------------------------------
def ratio(sectors, requests):
    return sectors / requests if requests != 0 else 0


def near(chip, ours, share, more=0):
    return abs(ours - chip) <= share * chip + more


def exactly(chip, ours):
    return near(chip, ours, 1e-9)


def nearly(chip, ours):
    return near(chip, ours, 0.02, 64)


def closely(chip, ours):
    return near(chip, ours, 0.02)


def sectors(what):
    return lambda counters: ratio(counters[f"{what}_sectors"], counters[f"{what}_requests"])


def wavefronts(what):
    return lambda counters: counters[f"{what}_wavefronts"]


def requests(counters):
    return sum(value for counter, value in counters.items() if counter in METRICS and counter.endswith("_requests"))


# Column: the figure per launch, and the comparison that passes. Conflicts are the wavefronts beyond the requests, so
# for equal requests they differ by as much as wavefronts.
COLUMNS = [
    ("memory requests", requests, exactly),
    ("sectors a load", sectors("global_load"), exactly),
    ("a store", sectors("global_store"), exactly),
    ("an atomic", sectors("atomic"), exactly),
    ("wavefronts of shared loads", wavefronts("shared_load"), nearly),
    ("of stores", wavefronts("shared_store"), nearly),
    ("of atomics", wavefronts("shared_atomic"), nearly),
    ("lanes per request", lambda counters: ratio(counters.get("active_lanes", 0), requests(counters)), closely),
]


class Row:
    """A kernel's counters from the chip and from the simulator."""

    def __init__(self, name, chip, ours):
        self.name = name
        chip, ours = ({counter: value / one["launches"] for counter, value in one.items()
                       if counter in METRICS or counter == "active_lanes"}
                      for one in (chip, ours))
        self.pairs = [(value(chip), value(ours)) for _, value, _ in COLUMNS]
        self.wrong = [column for (column, _, agree), pair in zip(COLUMNS, self.pairs) if not agree(*pair)]

    def markdown(self):
        cells = [("" if a == 0 else f"{a:.6g}") if a == b else f"{a:.6g}, simulated {b:.6g}" for a, b in self.pairs]
        return " | ".join([f"| `{self.name}`", *cells, self.verdict() + " |"])

    def verdict(self):
        known = KNOWN.get(self.name.partition("<")[0], set())
        return "yes" if not self.wrong else "no, known" if known.issuperset(self.wrong) else "no"


def compare(chip, ours):
    """Returns rows for the kernels with counters from the chip, and the names of those without the simulator's."""
    names = [(program, name) for program in chip for name in chip[program]]
    rows = [Row(name, chip[program][name], ours[program][name]) for program, name in names if name in ours[program]]
    return rows, [name for program, name in names if name not in ours[program]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rung", help="the program")
    parser.add_argument("--record", metavar="FILE.json", help="only count on the chip")
    parser.add_argument("--against", metavar="FILE.json", help="only simulate, against this record")
    given = parser.parse_args()
    if given.against is None:
        recorded = record(given.rung)
        if given.record is not None:
            pathlib.Path(given.record).write_text(json.dumps(recorded, indent=1) + "\n")
            return
    else:
        recorded = json.loads(pathlib.Path(given.against).read_text())
    rows, alone = compare(recorded["programs"], simulate(given.rung))
    print(" | ".join(["| kernel", *(column for column, *_ in COLUMNS), "agrees |"]))
    print("|---" * (len(COLUMNS) + 2) + "|")
    for row in rows:
        print(row.markdown())
    wrong = [row.name for row in rows if row.verdict() == "no"]
    print(f"\n{sum(not row.wrong for row in rows)} of {len(rows)} kernels agree with {recorded['machine']['gpu']}.")
    for name in alone:
        print(f"{name}: the simulator has no such kernel")
    sys.exit(1 if wrong or alone else 0)


if __name__ == "__main__":
    main()
