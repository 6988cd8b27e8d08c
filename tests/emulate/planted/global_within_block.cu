// SPDX-License-Identifier: Apache-2.0
// A barrier between threads that exchange through global memory.
#include "../programs/check.cuh"

__global__ void exchange(int* data, int* out) {
  const int t = threadIdx.x;
  data[t] = 2 * t;  // expect: race
#ifndef BUG
  __syncthreads();
#endif
  out[t] = data[(t + 40) % 64];  // expect: race
}

int main() {
  Array<int> data(64), out(64);
  exchange<<<1, 64>>>(data.device, out.device);
  return ok();
}
