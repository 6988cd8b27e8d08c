// SPDX-License-Identifier: Apache-2.0
// A cuda::barrier for as many threads as come.
#include <cuda/barrier>

#include "../programs/check.cuh"

__global__ void meet(int* out, int expected) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, expected);
  __syncthreads();
  barrier.arrive_and_wait();  // expect: deadlock
  out[threadIdx.x] = 1;
}

int main() {
  Array<int> out(64);
#ifdef BUG
  meet<<<1, 64>>>(out.device, 65);
#else
  meet<<<1, 64>>>(out.device, 64);
#endif
  return ok();
}
