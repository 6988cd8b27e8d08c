// SPDX-License-Identifier: Apache-2.0
// The source of a multicast copy is overwritten by a block that has waited for its part, or behind
// a barrier of the cluster in which such a block takes part.
#include <cooperative_groups.h>

#include <cstdint>

#include "../programs/check.cuh"

__global__ void __cluster_dims__(2, 1, 1) spread(int* data, int* out) {
  __shared__ alignas(128) int kept[64];
  __shared__ alignas(8) uint64_t full;
  auto cluster = cooperative_groups::this_cluster();
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if (cluster.block_rank() == 1) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier));
    }
  }
  cluster.sync();
  if (cluster.block_rank() == 0 && t == 0) {
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile(  // expect: race
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1], 256, [%2], %3;" ::"r"(to),
        "l"(data), "r"(barrier), "h"(static_cast<uint16_t>(2))
        : "memory");
  }
#ifdef BUG
  if (cluster.block_rank() == 0) data[t] = -1;  // expect: race
#endif
  if (cluster.block_rank() == 1) {
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
  }
  cluster.sync();
#ifndef BUG
  if (cluster.block_rank() == 0) data[t] = -1;
#endif
}

int main() {
  Array<int> data(64), out(64);
  for (int i = 0; i < 64; ++i) data[i] = i;
  data.up();
  spread<<<2, 64>>>(data.device, out.device);
#ifndef BUG
  data.down();
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(data[i] == -1 && out[i] == i);
#endif
  return ok();
}
