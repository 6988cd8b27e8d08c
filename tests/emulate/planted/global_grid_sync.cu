// SPDX-License-Identifier: Apache-2.0
// A grid's barrier between two steps of all blocks.
#include <cooperative_groups.h>

#include "../programs/check.cuh"

__global__ void steps(int* data, int* out, int n) {
  auto grid = cooperative_groups::this_grid();
  const int i = grid.thread_rank();
  data[i] = i;  // expect: race
#ifdef BUG
  __syncthreads();
#else
  grid.sync();
#endif
  out[i] = data[n - 1 - i];  // expect: race
}

int main() {
  Array<int> data(128), out(128);
  int n = 128;
  void* arguments[] = {&data.device, &out.device, &n};
  CUDA(cudaLaunchCooperativeKernel((void*)steps, dim3(4), dim3(32), arguments, 0, 0));
  return ok();
}
