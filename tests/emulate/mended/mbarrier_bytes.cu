// SPDX-License-Identifier: Apache-2.0
// More bytes are announced than the copy brings.
#include <cstdint>

#include "check.cuh"

__global__ void load(const int* in, int* out) {
  __shared__ alignas(128) int kept[64];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#ifdef BUG
    const uint32_t bytes = 512;
#else
    const uint32_t bytes = 256;
#endif
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes));
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
    asm volatile(  // expect: deadlock
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  out[t] = kept[t];
}

int main() {
  Array<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i;
  in.up();
  load<<<1, 64>>>(in.device, out.device);
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == i);
  return ok();
}
// says: which lacks 0 of 1 arrivals and 256 bytes
// says: 256 bytes have been announced that none brings
// never: cooperative groups
