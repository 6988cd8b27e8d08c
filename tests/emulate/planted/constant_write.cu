// SPDX-License-Identifier: Apache-2.0
// Kernels read constant memory; the host writes it.
#include "../programs/check.cuh"

__constant__ int sizes[4];
__device__ int counts[4];

__global__ void resize() {
#ifdef BUG
  sizes[threadIdx.x] = 5;  // expect: read_only
#else
  counts[threadIdx.x] = sizes[threadIdx.x];
#endif
}

int main() {
  const int values[4] = {1, 2, 3, 4};
  CUDA(cudaMemcpyToSymbol(sizes, values, sizeof values));
  resize<<<1, 4>>>();
  return ok();
}
