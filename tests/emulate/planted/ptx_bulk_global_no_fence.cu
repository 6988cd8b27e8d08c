// SPDX-License-Identifier: Apache-2.0
// What threads have written to global memory a bulk copy sees behind a fence of theirs.
#include <cstdint>

#include "../programs/check.cuh"

__device__ uint32_t at(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__global__ void relay(int* kept, int* out) {
  __shared__ alignas(128) int tile[64];
  __shared__ alignas(8) uint64_t full;
  const int t = threadIdx.x;
  kept[t] = 3 * t;  // expect: race
#ifndef BUG
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&full)));
    asm volatile("cp.async.bulk.shared::cluster.global."  // expect: race
                 "mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(at(tile)),
                 "l"(kept), "r"(at(&full))
                 : "memory");
  }
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(at(&full))
        : "memory");
  }
  out[t] = tile[63 - t];
}

int main() {
  Array<int> kept(64), out(64);
  relay<<<1, 64>>>(kept.device, out.device);
  return ok();
}
