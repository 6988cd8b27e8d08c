// SPDX-License-Identifier: Apache-2.0
// Kernel behind a C interface.
#include <cuda_runtime.h>

__global__ void fill(float* p, int n, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = value;
}

extern "C" cudaError_t fill_matrix(float* p, int n, float value, cudaStream_t stream) {
  fill<<<(n + 255) / 256, 256, 0, stream>>>(p, n, value);
  return cudaGetLastError();
}
