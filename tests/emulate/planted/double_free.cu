// SPDX-License-Identifier: Apache-2.0
// Memory is freed once.
#include "../programs/check.cuh"

int main() {
  int* memory;
  CUDA(cudaMalloc(&memory, 64));
  CUDA(cudaFree(memory));
#ifdef BUG
  cudaFree(memory);  // expect: use_after_free
  cudaGetLastError();
#endif
  return ok();
}
