// SPDX-License-Identifier: Apache-2.0
// Who arrives at a cuda::barrier and reads what others wrote also waits.
#include <cuda/barrier>

#include "../programs/check.cuh"

__global__ void exchange(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int kept[64];
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, 64);
  __syncthreads();
  kept[t] = 5 * t;  // expect: race
  auto token = barrier.arrive();
#ifndef BUG
  barrier.wait(static_cast<decltype(token)&&>(token));
#endif
  out[t] = kept[63 - t];  // expect: race
}

int main() {
  Array<int> out(64);
  exchange<<<1, 64>>>(out.device);
  return ok();
}
