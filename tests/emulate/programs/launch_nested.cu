// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels that launch kernels.
#include "check.cuh"

__global__ void count(int* out, int depth) {
  atomicAdd(out, 1);
  if (depth > 0 && threadIdx.x == 0) count<<<2, 4>>>(out, depth - 1);
}

int main() {
  Array<int> out(1);
  count<<<1, 4>>>(out.device, 2);
  CUDA(cudaDeviceSynchronize());
  out.down();
  CHECK(out[0] == 4 + 8 + 16);
  return ok();
}
