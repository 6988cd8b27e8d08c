// SPDX-License-Identifier: Apache-2.0
// Memory is written before it is read.
#include "../programs/check.cuh"

__global__ void add(int* data) { data[threadIdx.x] += 1; }  // expect: uninitialized

int main() {
  int* memory;
  CUDA(cudaMalloc(&memory, 32 * sizeof(int)));
#ifndef BUG
  CUDA(cudaMemset(memory, 0, 32 * sizeof(int)));
#endif
  add<<<1, 32>>>(memory);
  CUDA(cudaFree(memory));
  return ok();
}
