// SPDX-License-Identifier: Apache-2.0
// Three-dimensional grids and blocks: every index once.
#include "check.cuh"

__global__ void mark(int* seen, dim3 extent) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < extent.x && y < extent.y && z < extent.z) {
    atomicAdd(&seen[x + extent.x * (y + extent.y * z)], 1);
  }
}

int main() {
  const dim3 extent(13, 9, 7);
  Array<int> seen(13 * 9 * 7);
  const dim3 block(4, 2, 3);
  const dim3 grid((extent.x + 3) / 4, (extent.y + 1) / 2, (extent.z + 2) / 3);
  mark<<<grid, block>>>(seen.device, extent);
  seen.down();
  for (int i = 0; i < 13 * 9 * 7; ++i) CHECK(seen[i] == 1);
  return ok();
}
