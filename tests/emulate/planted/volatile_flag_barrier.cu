// SPDX-License-Identifier: Apache-2.0
// One thread of a block waits for a volatile flag, and a barrier lets the others know: that is no
// fence, but one of that thread's before the barrier, or of each behind it, is enough.
#include "../programs/check.cuh"

__global__ void steps(int* data, volatile int* arrived, int* out, bool fence_of_all) {
  const int n = gridDim.x * blockDim.x;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < 3; ++step) {
    data[(step % 2) * n + i] = i + step;  // expect: race
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      arrived[blockIdx.x] = step + 1;
      for (unsigned block = 0; block < gridDim.x; ++block) {
        while (arrived[block] <= step) {
        }
      }
#ifndef BUG
      if (!fence_of_all) __threadfence();
#endif
    }
    __syncthreads();
#ifndef BUG
    if (fence_of_all) __threadfence();
#endif
    out[i] += data[(step % 2) * n + (i + 40) % n];  // expect: race
    __syncthreads();
  }
}

int main() {
  for (const bool fence_of_all : {false, true}) {
    Array<int> data(256), arrived(4), out(128);
    steps<<<4, 32>>>(data.device, arrived.device, out.device, fence_of_all);
  }
  return ok();
}
