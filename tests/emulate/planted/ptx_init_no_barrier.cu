// SPDX-License-Identifier: Apache-2.0
// Threads arrive at an mbarrier behind a barrier of the block that follows its initialization.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void exchange(int* out) {
  __shared__ int kept[64];
  __shared__ alignas(8) uint64_t all;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&all));
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;"  // expect: race
                 ::"r"(barrier)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
#ifndef BUG
  __syncthreads();
#endif
  kept[t] = t;
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];"  // expect: barrier
               ::"r"(barrier)
               : "memory");
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(  // expect: race
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  out[t] = kept[63 - t];
}

int main() {
  Array<int> out(64);
  exchange<<<1, 64>>>(out.device);
#ifndef BUG
  out.down();
  for (int t = 0; t < 64; ++t) CHECK(out[t] == 63 - t);
#endif
  return ok();
}
