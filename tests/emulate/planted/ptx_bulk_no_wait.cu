// SPDX-License-Identifier: Apache-2.0
// Every thread that reads a bulk copy's tile waits for the mbarrier; a barrier of the block behind
// one thread's wait is as good, but not in front of it.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void load(const int* in, int* out) {
  __shared__ alignas(128) int kept[64];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier));
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile("cp.async.bulk.shared::cluster.global."  // expect: race
                 "mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(to),
                 "l"(in), "r"(barrier)
                 : "memory");
  }
  __syncthreads();
#ifdef BUG
  const bool waits = threadIdx.x < 32;
#else
  const bool waits = true;
#endif
  uint32_t done = waits ? 0 : 1;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  out[threadIdx.x] = kept[threadIdx.x];  // expect: race
}

int main() {
  Array<int> in(64), out(64);
  load<<<1, 64>>>(in.device, out.device);
  return ok();
}
