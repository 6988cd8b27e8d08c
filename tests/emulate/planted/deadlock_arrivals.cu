// SPDX-License-Identifier: Apache-2.0
// An mbarrier is initialized for a warp, and two warps arrive.
#include <cstdint>

#include "../programs/check.cuh"

#ifdef BUG
#define COUNT "32"
#else
#define COUNT "64"
#endif

__global__ void exchange(int* out) {
  __shared__ int kept[64];
  __shared__ alignas(8) uint64_t all;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&all));
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], " COUNT ";" ::"r"(barrier) : "memory");
  }
  __syncthreads();
  kept[t] = t;  // expect: race
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(  // expect: deadlock
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  out[t] = kept[63 - t];  // expect: race
}

int main() {
  Array<int> out(64);
  exchange<<<1, 64>>>(out.device);
#ifndef BUG
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == 63 - i);
#endif
  return ok();
}
