// SPDX-License-Identifier: Apache-2.0
// A cooperative grid: sums of all blocks are seen after grid.sync().
#include <cooperative_groups.h>

#include "check.cuh"

namespace cg = cooperative_groups;

__global__ void sum_all(const int* in, int* partial, int* out) {
  __shared__ int kept[64];
  cg::grid_group grid = cg::this_grid();
  kept[threadIdx.x] = in[grid.thread_rank()];
  __syncthreads();
  for (int stride = 32; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) kept[threadIdx.x] += kept[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = kept[0];
  grid.sync();
  if (grid.thread_rank() == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
    *out = sum;
  }
  grid.sync();
  // Each block still has its own shared memory.
  if (threadIdx.x == 0 && kept[0] != partial[blockIdx.x]) *out = -1;
}

int main() {
  Array<int> in(512), partial(8), out(1);
  int expected = 0;
  for (int i = 0; i < 512; ++i) expected += in[i] = i * 7 % 31;
  in.up();
  void* arguments[] = {&in.device, &partial.device, &out.device};
  CUDA(cudaLaunchCooperativeKernel((void*)sum_all, dim3(8), dim3(64), arguments));
  out.down();
  CHECK(out[0] == expected);
  CHECK(cudaLaunchCooperativeKernel((void*)sum_all, dim3(1000000), dim3(64), arguments) ==
        cudaErrorCooperativeLaunchTooLarge);
  cudaGetLastError();
  return ok();
}
