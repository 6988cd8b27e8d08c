// SPDX-License-Identifier: Apache-2.0
// Threads go through the loop differently often, and the barrier in it is one of all.
#include <cstdio>

__global__ void prefix(float* a) {
  __shared__ float tile[64];
  const int t = threadIdx.x;
  tile[t] = a[t];
  __syncthreads();
  for (int d = 1; d <= t; d *= 2) {
    const float before = tile[t - d];  // expect: race
    __syncthreads();                   // expect: barrier
    tile[t] += before;                 // expect: race
    __syncthreads();                   // expect: barrier
  }
  a[t] = tile[t];
}

int main() {
  float* a;
  cudaMalloc(&a, 64 * sizeof(float));
  cudaMemset(a, 0, 64 * sizeof(float));
  prefix<<<1, 64>>>(a);
  cudaDeviceSynchronize();
  return 0;
}
