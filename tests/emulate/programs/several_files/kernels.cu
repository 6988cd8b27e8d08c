// SPDX-License-Identifier: Apache-2.0
// Kernels and variables that main.cu uses; one kernel has a name that another file has too.
#include "kernels.cuh"

__device__ int shared_factor = -1;
__device__ int twice(int x) { return 2 * x; }

static __global__ void local_kernel(int* out) {
  __shared__ int kept[32];
  kept[threadIdx.x] = 100 * static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] += kept[31 - threadIdx.x];
}

void launch_other(int* out) {
  local_kernel<<<1, 32>>>(out);
  scale<int><<<1, 32>>>(out, 0);
}
