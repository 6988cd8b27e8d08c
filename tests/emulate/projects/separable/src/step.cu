// SPDX-License-Identifier: Apache-2.0
// Kernel that uses functions and variables of other files.
#include "forces.cuh"

__global__ void step(float* positions, float* speeds, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  speeds[i] += 0.5f * force(positions[i], speeds[i]);
  positions[i] += 0.5f * speeds[i];
  if (i == 0) atomicAdd(&steps_done, 1);
}
