// SPDX-License-Identifier: Apache-2.0
// A barrier that a half of the threads passes by.
#include <cstdio>

__global__ void reverse(float* a) {
  __shared__ float tile[256];
  const int t = threadIdx.x;
  tile[t] = a[t];  // expect: race
  if (t < 128) {
    __syncthreads();
  }
  a[t] = tile[255 - t];  // expect: race
}

int main() {
  float* a;
  cudaMalloc(&a, 256 * sizeof(float));
  cudaMemset(a, 0, 256 * sizeof(float));
  reverse<<<1, 256>>>(a);
  cudaDeviceSynchronize();
  return 0;
}
// says: the barrier of line 10 is reached by 128 of 256 threads
// says: take it out of `if (t < 128)`
