// SPDX-License-Identifier: Apache-2.0
// Managed memory is freed too.
#include "../programs/check.cuh"

__managed__ int* kept;
int main() {
  CUDA(cudaMallocManaged(&kept, 64));  // expect: leak
#ifndef BUG
  CUDA(cudaFree(kept));
#endif
  return ok();
}
