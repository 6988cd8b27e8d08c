// SPDX-License-Identifier: Apache-2.0
// The same of one with the same arguments, of which one points to memory that is no longer there.
#include "../programs/check.cuh"

__global__ void add(int* x) { x[threadIdx.x] += 1; }  // expect: use_after_free

int main() {
  record_first_launches(4);
  int* x;
  CUDA(cudaMalloc(&x, 32 * sizeof(int)));
  CUDA(cudaMemset(x, 0, 32 * sizeof(int)));
#ifdef BUG
  const int launches = 51;
#else
  const int launches = 50;
#endif
  for (int i = 0; i < launches; ++i) {
    if (i == 50) CUDA(cudaFree(x));
    add<<<1, 32>>>(x);
  }
  if (launches == 50) CUDA(cudaFree(x));
  return ok();
}
