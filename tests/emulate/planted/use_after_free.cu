// SPDX-License-Identifier: Apache-2.0
// Memory is freed behind the last kernel that uses it.
#include "../programs/check.cuh"

__global__ void fill(int* out) { out[threadIdx.x] = 1; }  // expect: use_after_free

int main() {
  int* memory;
  CUDA(cudaMalloc(&memory, 32 * sizeof(int)));
#ifdef BUG
  CUDA(cudaFree(memory));
  fill<<<1, 32>>>(memory);
#else
  fill<<<1, 32>>>(memory);
  CUDA(cudaFree(memory));
#endif
  return ok();
}
