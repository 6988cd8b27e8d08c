// SPDX-License-Identifier: Apache-2.0
// An mbarrier is told of as many bytes as come.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void load(const int* in, int* out, int announced) {
  __shared__ alignas(128) int kept[64];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(announced));
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, "
        "[%2];" ::"r"(to),
        "l"(in), "r"(barrier)
        : "memory");
  }
  __syncthreads();
  uint32_t done = 0;
  while (done == 0) {
    asm volatile("{ .reg .pred p;\n"  // expect: deadlock
                 "mbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier)
                 : "memory");
  }
  out[threadIdx.x] = kept[threadIdx.x];
}

int main() {
  Array<int> in(64), out(64);
#ifdef BUG
  load<<<1, 64>>>(in.device, out.device, 512);
#else
  load<<<1, 64>>>(in.device, out.device, 256);
#endif
  return ok();
}
