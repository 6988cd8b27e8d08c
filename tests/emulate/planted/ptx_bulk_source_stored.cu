// SPDX-License-Identifier: Apache-2.0
// A bulk store goes to the source of a bulk copy once that has landed.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void rotate(int* data, int* out) {
  __shared__ alignas(128) int kept[64], next[64];
  __shared__ alignas(8) uint64_t full;
  const auto barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&full));
  const int t = threadIdx.x;
  next[t] = 100 + t;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier));
    const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile("cp.async.bulk.shared::cluster.global."  // expect: race
                 "mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(to),
                 "l"(data), "r"(barrier)
                 : "memory");
  }
  __syncthreads();
  const auto wait = [&] {
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, "
          "0, p; }"
          : "=r"(done)
          : "r"(barrier)
          : "memory");
    }
  };
#ifndef BUG
  wait();
#endif
  if (t == 0) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(next));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"  // expect: race
                 ::"l"(data),
                 "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
#ifdef BUG
  wait();
#endif
  out[t] = kept[t];
}

int main() {
  Array<int> data(64), out(64);
  for (int i = 0; i < 64; ++i) data[i] = i;
  data.up();
  rotate<<<1, 64>>>(data.device, out.device);
#ifndef BUG
  data.down();
  out.down();
  for (int i = 0; i < 64; ++i) CHECK(data[i] == 100 + i && out[i] == i);
#endif
  return ok();
}
