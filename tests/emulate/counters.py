# SPDX-License-Identifier: Apache-2.0
"""Counters in the JSON of `rung emulate` for a kernel with known figures. usage: counters.py RUNG"""
import json
import pathlib
import subprocess
import sys
import tempfile

N = 64
SOURCE = """
__global__ void multiply(int n, const float* a, const float* b, float* c) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) {
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
  }
}
int main() {
  float* p;
  cudaMalloc(&p, 3 * %d * sizeof(float));
  cudaMemset(p, 0, 3 * %d * sizeof(float));
  multiply<<<dim3(2, 2), dim3(32, 32)>>>(64, p, p + %d, p + 2 * %d);
  cudaFree(p);
}
""" % (N * N, N * N, N * N, N * N)
WARPS = N * N // 32
# A warp reads one element of a row of the left matrix and 32 adjacent ones of the right: 1 and 4 sectors.
EXPECTED = {"global_load_requests": 2 * N * WARPS, "global_load_sectors": 5 * N * WARPS,
            "global_store_requests": WARPS, "global_store_sectors": 4 * WARPS, "shared_requests": 0,
            "local_requests": 0, "constant_requests": 0, "atomic_requests": 0, "barriers": 0}


def main():
    with tempfile.TemporaryDirectory() as folder:
        source, report = pathlib.Path(folder, "multiply.cu"), pathlib.Path(folder, "report.json")
        source.write_text(SOURCE)
        subprocess.run([sys.argv[1], "emulate", "--json", str(report), str(source)], check=True)
        kernel, = json.loads(report.read_text())["kernels"]
    wrong = {name: kernel["totals"][name] for name, value in EXPECTED.items() if kernel["totals"][name] != value}
    if wrong or kernel["divergent_warps"] != 0 or kernel["active_lanes"] != 32:
        sys.exit(f"wrong: {wrong}, {kernel['divergent_warps']} divergent warps, {kernel['active_lanes']} lanes")


if __name__ == "__main__":
    main()
