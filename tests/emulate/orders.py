# SPDX-License-Identifier: Apache-2.0
"""`rung emulate --order all` reports each finding once, with the orders under which it occurs.
usage: orders.py RUNG"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# A race under every order; an invalid index and another exit code if thread 1 takes its ticket before thread 0.
SOURCE = """#include <cstdio>
__global__ void shift(int* p, int* ticket) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  p[threadIdx.x] = s[63 - threadIdx.x];
  if (threadIdx.x == 0) p[64] = atomicAdd(ticket, 1);
  if (threadIdx.x == 1) p[65] = atomicAdd(ticket, 1);
}
__global__ void late(int* p, int n) { p[n] = 1; }
int main() {
  int *p, *ticket, h[66];
  cudaMalloc(&p, sizeof h);
  cudaMalloc(&ticket, 4);
  cudaMemset(ticket, 0, 4);
  shift<<<1, 64>>>(p, ticket);
  cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
  late<<<1, 1>>>(p, h[64] == 0 ? 65 : 66);
  return cudaDeviceSynchronize() == cudaSuccess && h[64] == 0 ? 0 : 3;
}
"""


def main():
    rung = os.path.abspath(sys.argv[1])
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "program.cu").write_text(SOURCE)
        run = subprocess.run([rung, "emulate", "--order", "all", "--json", "all.json", "program.cu"], cwd=folder,
                             capture_output=True, text=True, check=False)
        report = json.loads(pathlib.Path(folder, "all.json").read_text())
    told = run.stderr
    for text, times in (("rung: race (shared)", 1), ("rung: out_of_bounds (global)", 1),
                        ("under orders forward, reverse and random:1\n", 1),
                        ("under orders reverse and random:1, not under forward\n", 1),
                        ("put __syncthreads() between line 4 and line 5", 1),
                        ("exit code 0 under order forward\n", 1),
                        ("exit code 3 under orders reverse and random:1\n", 1)):
        if told.count(text) != times:
            wrong.append(f"says {told.count(text)} times, not {times}: {text!r}")
    found = {one["kind"]: one.get("orders") for one in report["findings"]}
    if found != {"race": ["forward", "reverse", "random:1"], "out_of_bounds": ["reverse", "random:1"]}:
        wrong.append(f"JSON: {found}")
    if len(report["findings"]) != 2 or run.returncode != 66:
        wrong.append(f"{len(report['findings'])} findings, exit code {run.returncode}")
    print("\n".join([*wrong, told if wrong else "", f"{len(wrong)} wrong"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
