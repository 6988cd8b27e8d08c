// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels: children run after what their parent wrote.
#include "check.cuh"

__global__ void child(int* p, int depth) { atomicAdd(&p[depth], 1); }
__global__ void parent(int* p, int depth) {
  p[8 + depth] = 1;
  if (threadIdx.x == 0) {
    child<<<2, 32>>>(p, depth);
    if (depth < 3) parent<<<1, 1>>>(p, depth + 1);
  }
}

int main() {
  Array<int> data(16);
  parent<<<1, 1>>>(data.device, 0);
  CUDA(cudaDeviceSynchronize());
  data.down();
  for (int i = 0; i < 4; ++i) CHECK(data[i] == 64 && data[8 + i] == 1);
  return ok();
}
