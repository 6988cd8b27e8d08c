// SPDX-License-Identifier: Apache-2.0
// What the two .cu files share.
#pragma once

extern __device__ int shared_factor;
__device__ int twice(int x);
void launch_other(int* out);
int host_factor();

/// Defined in both files; one of them is kept.
template <class T>
__global__ void scale(T* values, int count) {
  __shared__ T kept[32];
  kept[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < count) values[threadIdx.x] = 2 * kept[threadIdx.x];
}
