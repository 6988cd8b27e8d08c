// SPDX-License-Identifier: Apache-2.0
// An mbarrier for which no thread waits any more is told of as many bytes as come.
#include <cstdint>

#include "../programs/check.cuh"

__device__ void wait(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

__global__ void load(const int* in, int* out, int rounds) {
  __shared__ alignas(128) int kept[64];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
    if (t == 0) {
      const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier));
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, "
          "[%2];" ::"r"(to),
          "l"(in), "r"(barrier)
          : "memory");
    }
    wait(barrier, i % 2);
    out[64 * i + t] = kept[t];
  }
#ifdef BUG
  // The producer announces a tile more than it loads.
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;"  // expect: barrier
                 ::"r"(barrier));
  }
#endif
}

int main() {
  Array<int> in(64), out(192);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  load<<<1, 64>>>(in.device, out.device, 3);
#ifndef BUG
  out.down();
  for (int i = 0; i < 192; ++i) CHECK(out[i] == i % 64);
#endif
  return ok();
}
