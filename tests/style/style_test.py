# SPDX-License-Identifier: Apache-2.0
"""style.py on a small tree: a correct rung, and each way to misname a rung. usage: style_test.py"""
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
void next(State& s) {{ while (!s.done()) s.step = s.steps; }}  // no rung's step
const Rung<Gemm> self{{{{.name = "{name}", .step = {step}, .run = run}}}};
"""
CPU, SUM, CUDA, OPENCL = "rung/ops/gemm/cpu/", "rung/ops/sum/cpu/", "rung/ops/gemm/cuda/", "rung/ops/gemm/opencl/"


def rung(name, step, kernel="", after=None):
    text = RUNG.format(name=name, step=step, kernel=kernel)
    text = text if step else text.replace(f".step = {step}, ", "")
    return text.replace(".run", f'.after = "{after}", .run') if after else text


def ladder(*steps):
    """Returns the CPU files of a ladder of (step, name, the step that its constant names)."""
    return {f"{CPU}{step:03}_{name}.cpp": rung(name, step, after=after) for step, name, after in steps}


# Files, and style.py's expected complaint; None if there is none.
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
    (ladder((10, "a", None), (20, "b", "a"), (30, "c", "b")), None),
    (ladder((10, "a", None), (20, "b", "a"), (30, "c", "a")),
     "030_c.cpp:1: its .after is a; the step before it in this folder is b"),
    (ladder((10, "a", None), (20, "b", None)), "020_b.cpp:1: its .after is missing; the step before it"),
    (ladder((10, "a", None), (15, "aside", "a"), (20, "b", "a")), None),  # tens may skip the asides between them
    (ladder((10, "a", None), (15, "aside", "a"), (20, "b", "aside")), None),
    (ladder((10, "a", None), (15, "aside", "a"), (17, "other", "a"), (20, "b", "other")), None),
    (ladder((10, "a", None), (15, "aside", "a"), (17, "other", "a"), (20, "b", "aside")),
     "020_b.cpp:1: its .after is aside; the step before it in this folder is other or a"),
    ({CPU + "010_a.cpp": rung("a", 10), CPU + "shapes/swapped.cpp": rung("swapped", None, after="a")}, None),
    ({CUDA + "010_a.cu": rung("a", 10, "__global__ void a() {}"),
      CUDA + "types/swapped.sm90a.cu": rung("swapped", None, "__global__ void swapped() {}", after="a")}, None),
    ({CUDA + "010_a.cu": rung("a", 10, "__global__ void a() {}"),
      CUDA + "types/swapped.cu": rung("swapped", None, after="a"),
      CUDA + "types/swapped.cuh": rung("swapped", None, "__global__ void swapped() {}", after="a")}, None),
    ({CUDA + "010_a.cu": rung("a", 10, "__global__ void a() {}"),
      CUDA + "shapes/swapped.cu": rung("swapped", None, after="a")}, "swapped.cu:1: no __global__ in this step"),
    ({CPU + "010_a.cpp": rung("a", 10), CPU + "shapes/swapped.cpp": rung("swapped", 20, after="a")},
     "swapped.cpp:9: no step: a rung in shapes/ has no .step"),
    ({CPU + "010_a.cpp": rung("a", 10), CPU + "shapes/020_swapped.cpp": rung("swapped", None, after="a")},
     "020_swapped.cpp:1: no step: a rung in shapes/ has no number"),
    ({CPU + "010_a.cpp": rung("a", 10), CPU + "types/swapped.cpp": rung("swappd", None, after="a")},
     "swapped.cpp:1: the file's name says name swapped, its constant's .name is swappd"),
    ({CPU + "010_a.cpp": rung("a", 10), CPU + "types/swapped.cpp": rung("swapped", None)},
     "swapped.cpp:1: its constant's .after is missing"),
    ({CPU + "010_a.cpp": rung("a", 10), CPU + "types/swapped.cpp": rung("swapped", None, after="b")},
     "swapped.cpp:9: there is no rung b in cpu/"),
    ({CPU + "010_a.cpp": rung("a", 10), CPU + "types/swapped.cpp": rung("swapped", None, after="a").replace(
        "Cost", "Price")}, "swapped.cpp:1: the rung's header does not tell: Cost"),
    ({CPU + "025_swapped.cpp": rung("swapped", 25).replace("while", "if")}, "025_swapped.cpp:1: no loop"),
    ({CPU + "025_threads.cpp": rung("threads", 25).replace("while", "if")}, None),
    ({CPU + "025_swapped.cpp": rung("swapped", 25, "void swapped_backward();")},
     "025_swapped.cpp:1: a backward kernel belongs to an operator of its own"),
    ({CUDA + "025_swapped.cu": rung("swapped", 25, "__global__ void swapped(V c) { multiply_tile(c, 1); }"),
      CUDA + "detail/tile.hpp": rung("tile", 25, "__device__ void multiply_tile(V c, int n);")},
     "025_swapped.cu:1: its longest kernel has fewer than 10 lines and calls multiply_tile"),
    ({CUDA + "025_swapped.cu": rung("swapped", 25, "__global__ void swapped(V c) { c[0] = multiply_tile(1); }"),
      CUDA + "detail/tile.hpp": rung("tile", 25, "__device__ float multiply_tile(int n);")}, None),
    ({CPU + "025_swapped.cpp": rung("swapped", 25), CPU + "025_other.cpp": rung("other", 25)},
     "025_swapped.cpp:1: step 025 is that of 025_other.cpp"),
    ({CPU + "025_swapped.cpp": rung("swapped", 25),
      CUDA + "025_swapped.cu": rung("swapped", 25, "__global__ void swapped() {}")}, None),  # one per backend
    ({CPU + "025_swapped.cpp": rung("swapped", 25, '#include "rung/ops/pool/cpu/detail/rows.hpp"')},
     "025_swapped.cpp:1: pool/cpu/detail/rows.hpp is an inside of pool"),
    ({CPU + "025_swapped.cpp": rung("swapped", 25, '#include "rung/ops/pool/shared/window.hpp"')}, None),
    ({CUDA + "detail/swapped_f16.cu": rung("swapped", 25)}, "swapped_f16.cu:1: so few lines only instantiate"),
    ({SUM + "025_swapped.cpp": rung("swapped", 25, "Work work(A a) {\n  return {.steps = 2 * a.n};\n}")}, None),
    ({SUM + "025_swapped.cpp": rung("swapped", 25, "Work work(A a) {\n  return {.steps = 0.7 * a.n};\n}")},
     "025_swapped.cpp:1: work() has 0.7, which no code says"),
    ({SUM + "025_swapped.cpp": rung("swapped", 25, "double estimate(A a) { return 1; }")},
     "025_swapped.cpp:1: 'double estimate(': seconds are predicted from facts and rates"),
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
