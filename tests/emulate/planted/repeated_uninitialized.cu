// SPDX-License-Identifier: Apache-2.0
// What unchecked launches have written counts as written, through pointers in memory too; what only
// others' arguments point to does not.
#include "../programs/check.cuh"

__global__ void fill(int* x, const int* unused) { x[threadIdx.x] = threadIdx.x; }
__global__ void fill_behind(int** x) { (*x)[threadIdx.x] = threadIdx.x; }
__global__ void read(const int* x, int* sum) {
  atomicAdd(sum, x[threadIdx.x]);  // expect: uninitialized
}

int main() {
  record_first_launches(4);
  int *x[20], *unused;
  Array<int> sum(1);
  CUDA(cudaMalloc(&unused, 32 * sizeof(int)));
  for (int*& one : x) {
    CUDA(cudaMalloc(&one, 32 * sizeof(int)));
    fill<<<1, 32>>>(one, unused);
  }
#ifdef BUG
  read<<<1, 32>>>(unused, sum.device);
#endif
  for (int i = 19; i >= 0; --i) {
    read<<<1, 32>>>(x[i], sum.device);
    CUDA(cudaFree(x[i]));
  }
  int** behind;
  CUDA(cudaMalloc(&behind, sizeof(int*)));
  for (int*& one : x) {
    CUDA(cudaMalloc(&one, 32 * sizeof(int)));
    CUDA(cudaMemcpy(behind, &one, sizeof one, cudaMemcpyHostToDevice));
    fill_behind<<<1, 32>>>(behind);
  }
  for (int i = 19; i >= 0; --i) {
    read<<<1, 32>>>(x[i], sum.device);
    CUDA(cudaFree(x[i]));
  }
  CUDA(cudaFree(unused));
  CUDA(cudaFree(behind));
  sum.down();
#ifndef BUG
  CHECK(sum[0] == 40 * 496);
#endif
  return ok();
}
