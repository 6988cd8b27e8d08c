// SPDX-License-Identifier: Apache-2.0
// What is allocated is freed.
#include "../programs/check.cuh"

int main() {
  int* memory;
  CUDA(cudaMalloc(&memory, 64));  // expect: leak
#ifndef BUG
  CUDA(cudaFree(memory));
#endif
  return ok();
}
