// SPDX-License-Identifier: Apache-2.0
// Bug: two blocks write one element. Either may be the last.
// rung emulate: race in line 6
#include <cstdio>

__global__ void mark(int* out) { out[0] = blockIdx.x; }

int main() {
  int *out_device, out = -1;
  cudaMalloc(&out_device, sizeof(out));
  mark<<<2, 1>>>(out_device);
  cudaMemcpy(&out, out_device, sizeof(out), cudaMemcpyDeviceToHost);

  const bool right = out == 0 || out == 1;
  std::printf("block_order_bug: %d: %s\n", out, right ? "PASS" : "FAIL");
  cudaFree(out_device);
  return right ? 0 : 1;
}
