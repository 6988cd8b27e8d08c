# SPDX-License-Identifier: Apache-2.0
"""style.py on a small tree: a rung that is right, and each way in which a rung is misnamed. usage: style_test.py"""
import pathlib
import subprocess
import sys
import tempfile

STYLE = pathlib.Path(__file__).resolve().with_name("style.py")
RUNG = """// SPDX-License-Identifier: Apache-2.0
// gemm / swapped
//
// Idea     swaps the loops.
// Changes  against naive: the order.
// Cost     2 m n k operations.
{kernel}
void next(State& state) {{ state.step = state.steps; }}  // another step, which has no number
const Rung<Gemm> self{{{{.name = "{name}", .step = {step}, .run = run}}}};
"""
CPU, CUDA, OPENCL = "rung/ops/gemm/cpu/", "rung/ops/gemm/cuda/", "rung/ops/gemm/opencl/"


def rung(name, step, kernel=""):
    return RUNG.format(name=name, step=step, kernel=kernel)


# Files, and what style.py must say of them; None: nothing.
CASES = [
    ({CPU + "025_swapped.cpp": rung("swapped", 25)}, None),
    ({CUDA + "025_swapped.sm90a.cu": rung("swapped", 25, "__global__ void swapped() {}")}, None),
    ({CPU + "025_swapped.cpp": rung("swapped", 26)},
     "025_swapped.cpp:9: the file's name says step 25, its constant's .step is 26"),
    ({CUDA + "025_swapped.cu": rung("swapped", 250, "__global__ void swapped() {}")},
     "025_swapped.cu:9: the file's name says step 25, its constant's .step is 250"),
    ({CPU + "025_swapped.cpp": rung("swappd", 25)},
     "025_swapped.cpp:9: the file's name says name swapped, its constant's .name is swappd"),
    ({CPU + "025_swapped.cpp": rung("swapped", 25).replace(".step = 25, ", "")},
     "025_swapped.cpp:1: the file's name says step 25, its constant's .step is missing"),
    ({CPU + "025_swapped.cpp": rung("swapped", 25), CPU + "025_other.cpp": rung("other", 25)},
     "025_swapped.cpp:1: step 025 is that of 025_other.cpp"),
    ({CPU + "025_swapped.cpp": rung("swapped", 25),
      CUDA + "025_swapped.cu": rung("swapped", 25, "__global__ void swapped() {}")}, None),  # a backend each
    ({OPENCL + "025_swapped.cl": rung("swapped", 25, "kernel void swapped() {}"),
      OPENCL + "025_swapped.cpp": rung("swapped", 25)}, None),
    ({OPENCL + "025_swapped.cl": rung("swapped", 25, "kernel void swapped() {}"),
      OPENCL + "025_swapped.cpp": rung("swapped", 35)},
     "025_swapped.cpp:9: the file's name says step 25, its constant's .step is 35"),
    ({OPENCL + "025_swapped.cpp": rung("swapped", 25)}, "025_swapped.cpp:1: there is no 025_swapped.cl"),
    ({OPENCL + "025_swapped.cl": rung("swapped", 25), OPENCL + "025_swapped.cpp": rung("swapped", 25)},
     "025_swapped.cl:1: no line that begins with 'kernel'"),
    ({OPENCL + "025_swapped.cl": rung("swapped", 25, "kernel void swapped() {}").replace("Cost", "Price"),
      OPENCL + "025_swapped.cpp": rung("swapped", 25)}, "025_swapped.cl:1: the rung's header does not tell: Cost"),
]


def main():
    failed = 0
    for files, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, STYLE, folder], capture_output=True, text=True, check=False)
        if (done.returncode != 0) != bool(expected) or (expected or "0 complaints") not in done.stdout:
            print(f"{sorted(files)}: wanted is {expected or 'no complaint'}, said was:\n{done.stdout}{done.stderr}")
            failed += 1
    print(f"{len(CASES)} cases, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
