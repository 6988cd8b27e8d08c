// SPDX-License-Identifier: Apache-2.0
// Bins in shared memory are neither set to 0 nor updated atomically: both are told.
#include <cstdio>

__global__ void count(const int* a, int* out) {
  __shared__ int bins[16];
  const int t = threadIdx.x;
  bins[a[t] % 16]++;  // expect: race and expect: uninitialized
  __syncthreads();
  if (t < 16) out[t] = bins[t];  // expect: uninitialized
}

int main() {
  int *a, *out;
  cudaMalloc(&a, 64 * sizeof(int));
  cudaMalloc(&out, 16 * sizeof(int));
  cudaMemset(a, 0, 64 * sizeof(int));
  count<<<1, 64>>>(a, out);
  cudaDeviceSynchronize();
  return 0;
}
// says: atomicAdd(&bins[a[t] % 16], 1)
// says: set bins to its first value before it is updated
