# SPDX-License-Identifier: Apache-2.0
"""`rung emulate --annotate`: each line of a program is printed beside its counters. usage: annotate.py RUNG"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LONG = "x" * 150  # longer than any line
SOURCE = """#include <cstdio>
__global__ void kernel(const float* in, float* out) {
  __shared__ float tile[32 * 32];
  float x = in[32 * threadIdx.x];
  tile[32 * threadIdx.x] = x;
  __syncthreads();
  const unsigned i = threadIdx.x;
  if (i < 8) out[i] = tile[i * 32];
}
template <int Step>
__global__ void spread(const float* in, float* out) {
  out[Step * threadIdx.x] = in[threadIdx.x]/*LONG*/;
}
int main() {
  float *in, *out;
  cudaMalloc(&in, 4096);
  cudaMalloc(&out, 4096);
  cudaMemset(in, 0, 4096);
  kernel<<<2, 32>>>(in, out);
  spread<1><<<1, 32>>>(in, out);
  spread<8><<<1, 32>>>(in, out);
  return cudaDeviceSynchronize();
}
""".replace("LONG", LONG)
WIDTH = 90
# By line: requests of global memory, sectors per request, requests of shared memory, wavefronts per request, lanes,
# note. Both blocks write the same zeros, which is no race.
EXPECTED = {4: "2 32 32", 5: "2 32 32", 6: "bar 2", 8: "2 1 2 8 8 br 0%"}


def wrong_behind_ccache(rung):
    """Returns complaints about a compiler behind ccache, with file names relative to the folder: of two folders with
    the same program, the second must not get file names from the first one's object, whose folder is gone."""
    if not shutil.which("ccache"):
        return []
    with tempfile.TemporaryDirectory() as base:
        tools = pathlib.Path(base, "tools")
        tools.mkdir()
        (tools / "g++").symlink_to(shutil.which("ccache"))
        environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}", CCACHE_DIR=f"{base}/cache",
                           CCACHE_BASEDIR="/", CCACHE_NOHASHDIR="1", CCACHE_CONFIGPATH="/dev/null")
        environment.pop("CXX", None)
        for name in ("first", "second"):
            folder = pathlib.Path(base, name)
            folder.mkdir()
            (folder / "prog.cu").write_text(SOURCE)
            run = subprocess.run([rung, "emulate", "--annotate", "prog.cu"], cwd=folder, env=environment,
                                 capture_output=True, text=True, timeout=100, check=False)
            if f"{SOURCE.splitlines()[3].strip()}\n" not in run.stdout or "not here" in run.stdout:
                return [f"behind ccache, {name}:\n{run.stdout}{run.stderr}"]
            shutil.rmtree(folder)
    return []


def main():
    rung = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "prog.cu").write_text(SOURCE)
        run = subprocess.run([rung, "emulate", "--annotate", "--json", "counts.json", "prog.cu"], cwd=folder,
                             env=dict(os.environ, COLUMNS=str(WIDTH)), capture_output=True, text=True, timeout=100,
                             check=False)
        kernel = json.loads(pathlib.Path(folder, "counts.json").read_text())["kernels"][0]
    wrong = [] if run.returncode == 0 else [f"exit code {run.returncode}"]
    lines = SOURCE.splitlines()
    for number, counts in EXPECTED.items():
        code = lines[number - 1]
        found = re.search(rf"^(.*) {number} {re.escape(code)}$", run.stdout, re.M)
        if found is None or found.group(1).split() != counts.split():
            wrong.append(f"line {number}: {found.group(0) if found else 'not printed'!r}, expected {counts!r}")
    # Both warps diverge at the last line's guard, the only branch.
    if (kernel["totals"]["divergent_branches"], kernel["totals"]["branches"]) != (2, 2):
        wrong.append(f"branches: {kernel['totals']}")
    # Instances of a template are listed separately: they have the same loads, but different stores. Sectors of both
    # lines' requests.
    for instance, counts in {"spread<1>": "2 4 32", "spread<8>": "2 18 32"}.items():
        listing = run.stdout.partition(f"\n{instance}\n")[2]
        found = re.search(r"^(.*) 12 +out\[Step", listing, re.M)
        if found is None or found.group(1).split() != counts.split():
            wrong.append(f"{instance}: {found and found.group(0)!r}, expected {counts!r}")
    # The long word appears in each listing.
    if "".join(re.findall(r"(?<=[/* ])x+(?=$|\*)", run.stdout, re.M)) != 3 * LONG:
        wrong.append("the long word is not whole")
    wrong += wrong_behind_ccache(rung)
    wrong += [f"too wide: {line!r}" for line in run.stdout.splitlines() if len(line) > WIDTH]
    if wrong:
        sys.exit("\n".join(wrong) + "\n" + run.stdout + run.stderr)


main()
