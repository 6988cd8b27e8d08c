# SPDX-License-Identifier: Apache-2.0
"""`rung emulate --sweep` compiles and runs a program once per value of a macro and compares the figures.
usage: sweep.py RUNG"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

N = 32
SOURCE = """#include <cstdio>
#ifndef TILE
#define TILE 16
#endif
#ifndef TURNS
#define TURNS 1
#endif
__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
  float sum = 0;
  for (int first = 0; first < n; first += TILE) {
    a_tile[ty][tx] = a[row * n + first + tx];
    b_tile[ty][tx] = b[(first + ty) * n + column];
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
int main() {
  const int n = 32;
  float* p;
  cudaMalloc(&p, 3 * n * n * sizeof(float));
  cudaMemset(p, 0, 3 * n * n * sizeof(float));
  for (int i = 0; i < TURNS; ++i) {
    multiply<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(p, p + n * n, p + 2 * n * n, n);
  }
  cudaFree(p);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 4;
}
"""
RACE = """__global__ void shift(int* p) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
#if BARRIER
  __syncthreads();
#endif
  p[threadIdx.x] = s[63 - threadIdx.x];
}
int main() {
  int* p;
  cudaMalloc(&p, 256);
  shift<<<1, 64>>>(p);
  cudaFree(p);
}
"""


def complaints_of_figures(run):
    """Yields complaints if a tile's bytes, blocks and barriers do not follow from its size."""
    done = run("--sweep", "TILE=8,16", "--json", "sweep.json", "multiply.cu")
    if done.returncode != 0:
        yield f"exit code {done.returncode}: {done.stderr}"
        return
    runs = json.loads(run.text("sweep.json"))["sweep"]
    if [one["values"] for one in runs] != [{"TILE": "8"}, {"TILE": "16"}]:
        yield f"values: {[one['values'] for one in runs]}"
    for one, tile in zip(runs, (8, 16)):
        kernel, = one["kernels"]
        moved = 4 * (2 * N ** 3 // tile + N * N)
        found = {"bytes": kernel["bytes"]["global_moved"], "shared": kernel["shared_bytes"],
                 "threads": kernel["block_threads"], "blocks": kernel["blocks"],
                 "barriers": kernel["waits"]["longest"]["barriers"] / kernel["blocks"]}
        wanted = {"bytes": moved, "shared": 8 * tile ** 2, "threads": tile ** 2, "blocks": (N // tile) ** 2,
                  "barriers": 2 * N // tile}
        if found != wanted:
            yield f"TILE={tile}: {found}, not {wanted}"
        for text in (f"{moved:,}", f"{8 * tile ** 2:,}"):
            if text not in done.stdout:
                yield f"TILE={tile}: the table lacks {text}\n{done.stdout}"
        if not kernel["bound"]["seconds"] > 0 or kernel["bound"]["bound_by"] not in kernel["bound"]["roofs"]:
            yield f"TILE={tile}: bound {kernel['bound']}"
        if one["error"] or one["findings"] or one["exit_code"]:
            yield f"TILE={tile}: {one['error']}, {one['findings']}, {one['exit_code']}"
    if not runs[0]["kernels"][0]["bound"]["seconds"] > runs[1]["kernels"][0]["bound"]["seconds"]:
        yield "a larger tile has no smaller bound"
    for text in ("TILE", "depth: barriers and shuffles", "at least: the bound on it"):
        if text not in done.stdout:
            yield f"the table lacks {text!r}\n{done.stdout}"


def complaints_of_ends(run):
    """Yields complaints if a failing value is not reported in its line, or other values are not counted."""
    done = run("--sweep", "TILE=16,x", "multiply.cu")
    if done.returncode != 2 or f"{4 * (2 * N ** 3 // 16 + N * N):,}" not in done.stdout:
        yield f"a value that does not compile: exit code {done.returncode}\n{done.stdout}"
    done = run("--sweep", "BARRIER=1,0", "race.cu")
    if done.returncode != 66 or "1 finding" not in done.stdout or "race" not in done.stderr:
        yield f"a race: exit code {done.returncode}\n{done.stdout}"
    done = run("--sweep", "TILES=8,16", "multiply.cu")
    if "All runs have the same figures: the program does not use TILES" not in " ".join(done.stdout.split()):
        yield f"a macro that nobody uses:\n{done.stdout}"


def complaints_of_refusals(run):
    for words, says in (
            (["TILE"], 'given "TILE"; accepted is a macro and its values, as in TILE_WIDTH=8,16,32'),
            (["TILE=8,,16"], "a value is empty"), (["TILE="], "a value is empty"), (["TILE=8,8"], "8 is given twice"),
            (["2=8"], 'given "2=8"'), (["TILE=8", "--sweep", "TILE=16"], "a macro swept twice"),
            (["TILE=8", "-D", "TILE=16"], "beside -D TILE=16"),
            (["A=" + ",".join(map(str, range(65)))], "more than 64 times"),
            (["TILE=8", "--annotate"], "given with --annotate"), (["TILE=8", "--counters"], "given with --counters"),
            (["TILE=8", "--order", "all"], "given with --order all"), (["TILE=8", "--build"], "given with --build")):
        done = run("--sweep", *words, "multiply.cu")
        if done.returncode != 2 or says not in " ".join(done.stderr.split()) or done.stdout:
            yield f"--sweep {' '.join(words)}: exit code {done.returncode}, {done.stderr!r}, not {says!r}"


def main():
    rung = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "multiply.cu").write_text(SOURCE, encoding="utf-8")
        pathlib.Path(folder, "race.cu").write_text(RACE, encoding="utf-8")

        def run(*words):
            return subprocess.run([rung, "emulate", *words], cwd=folder, capture_output=True, text=True, check=False,
                                  env={**os.environ, "COLUMNS": "160"})
        run.text = lambda name: pathlib.Path(folder, name).read_text(encoding="utf-8")
        wrong = [one for part in (complaints_of_refusals, complaints_of_figures, complaints_of_ends)
                 for one in part(run)]
    print("\n".join([*wrong, f"{len(wrong)} wrong"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
