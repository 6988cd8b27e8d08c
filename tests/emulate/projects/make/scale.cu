// SPDX-License-Identifier: Apache-2.0
// Kernel with its launch.
#include "scale.h"

__global__ void scale_kernel(float* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= factor;
}
void scale(float* p, int n) { scale_kernel<<<(n + 63) / 64, 64>>>(p, n); }
