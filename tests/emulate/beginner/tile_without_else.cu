// SPDX-License-Identifier: Apache-2.0
// Threads behind the end leave their element of the tile unwritten, and all read the whole tile.
#include <cstdio>

__global__ void sums(const float* a, float* out, int n) {
  __shared__ float tile[64];
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) tile[threadIdx.x] = a[row];
  __syncthreads();
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += tile[k];  // expect: uninitialized
  if (row < n) out[row] = sum;
}

int main() {
  float *a, *b;
  cudaMalloc(&a, 400);
  cudaMalloc(&b, 400);
  cudaMemset(a, 0, 400);
  sums<<<2, 64>>>(a, b, 100);
  cudaDeviceSynchronize();
  return 0;
}
// says: add `else tile[threadIdx.x] = 0;` to the if in line 8
