// SPDX-License-Identifier: Apache-2.0
// A pointer is not overwritten before its memory is freed.
#include "../programs/check.cuh"

int main() {
  float* memory = nullptr;
  for (int round = 0; round < 3; ++round) {
    CUDA(cudaMalloc(&memory, 256));  // expect: leak
#ifndef BUG
    CUDA(cudaFree(memory));
#endif
  }
#ifdef BUG
  CUDA(cudaFree(memory));
#endif
  return ok();
}
