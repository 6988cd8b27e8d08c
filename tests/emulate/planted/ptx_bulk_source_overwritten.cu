// SPDX-License-Identifier: Apache-2.0
// The source of a bulk copy is written again behind a wait for the copy's mbarrier; before the copy
// starts, its thread has written there, too.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void load(int* data, int* out) {
  __shared__ alignas(128) int kept[64];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    data[0] = 7;
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier));
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile("cp.async.bulk.shared::cluster.global."  // expect: race
                 "mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(to),
                 "l"(data), "r"(barrier)
                 : "memory");
  }
  __syncthreads();
#ifdef BUG
  if (t == 40) data[t] = -1;  // expect: race
#endif
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  }
  out[t] = kept[t];
#ifndef BUG
  data[t] = -1;
#endif
}

int main() {
  Array<int> data(64), out(64);
  for (int i = 0; i < 64; ++i) data[i] = i;
  data.up();
  load<<<1, 64>>>(data.device, out.device);
#ifndef BUG
  data.down();
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(data[i] == -1 && out[i] == (i == 0 ? 7 : i));
#endif
  return ok();
}
