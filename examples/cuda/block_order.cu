// SPDX-License-Identifier: Apache-2.0
// Blocks run in any order: each writes an element of its own.
#include <cstdio>

__global__ void mark(int* out) { out[blockIdx.x] = blockIdx.x; }

int main() {
  const int blocks = 2;
  int *out_device, out[blocks] = {-1, -1};
  cudaMalloc(&out_device, sizeof(out));
  mark<<<blocks, 1>>>(out_device);
  cudaMemcpy(out, out_device, sizeof(out), cudaMemcpyDeviceToHost);

  int wrong = 0;
  for (int i = 0; i < blocks; ++i) wrong += out[i] != i;
  std::printf("block_order: %d wrong: %s\n", wrong, wrong == 0 ? "PASS" : "FAIL");
  cudaFree(out_device);
  return wrong == 0 ? 0 : 1;
}
