// SPDX-License-Identifier: Apache-2.0
// The kernel, and a function that launches it.
#include "scale.h"

__global__ void scale(float* values, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;
}

cudaError_t launch_scale(float* values, float factor, int n, cudaStream_t stream) {
  scale<<<(n + 63) / 64, 64, 0, stream>>>(values, factor, n);
  return cudaGetLastError();
}
