// SPDX-License-Identifier: Apache-2.0
// A warp resets the block's counter and counts at once: its own atomic operations come behind the
// reset, those of the other warps perhaps before it.
#include "../programs/check.cuh"

__global__ void count(int* out) {
  __shared__ int counter;
  const int t = threadIdx.x;
#ifdef BUG
  if (t < 32) {
    if (t == 0) counter = 0;  // expect: race
    __syncwarp();
    atomicAdd(&counter, 1);
  } else {
    atomicAdd(&counter, 1);  // expect: race
  }
#else
  if (t == 0) counter = 0;
  __syncthreads();
  atomicAdd(&counter, 1);
#endif
  __syncthreads();
  out[t] = counter;
}

__global__ void restart(int* total, int* out) {
  // Blocks wait for the one that resets.
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    total[1] = 0;
    atomicAdd(&total[1], 1);
    __threadfence();
    atomicExch(total, 1);
  }
  while (atomicAdd(total, 0) == 0) {
  }
  __threadfence();
  atomicAdd(&total[1], 1);
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

int main() {
  Array<int> out(64), total(2);
  count<<<1, 64>>>(out.device);
  restart<<<2, 32>>>(total.device, out.device);
  total.down();
  CHECK(total[1] == 65);
  return ok();
}
