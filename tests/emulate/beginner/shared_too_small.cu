// SPDX-License-Identifier: Apache-2.0
// The shared array is shorter than the block.
#include <cstdio>

__global__ void reverse(float* a) {
  __shared__ float tile[128];
  tile[threadIdx.x] = a[threadIdx.x];  // expect: out_of_bounds
  __syncthreads();
  a[threadIdx.x] = tile[255 - threadIdx.x];  // expect: out_of_bounds
}

int main() {
  float* a;
  cudaMalloc(&a, 256 * sizeof(float));
  cudaMemset(a, 0, 256 * sizeof(float));
  reverse<<<1, 256>>>(a);
  cudaDeviceSynchronize();
  return 0;
}
// says: declare tile with 256 elements
