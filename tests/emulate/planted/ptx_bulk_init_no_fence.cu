// SPDX-License-Identifier: Apache-2.0
// The thread that initializes mbarriers and starts copies at once lets the copies see them first.
#include <cstdint>

#include "../programs/check.cuh"

__device__ uint32_t at(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__global__ void pull(const int* in, int* out) {
  __shared__ alignas(128) int kept[2][64];
  __shared__ alignas(8) uint64_t full[2];
  const int t = threadIdx.x;
  if (t == 0) {
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full[i])));  // expect: race
    }
#ifndef BUG
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    for (int i = 0; i < 2; ++i) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(at(&full[i])));
      asm volatile("cp.async.bulk.shared::cluster.global."  // expect: race
                   "mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(at(kept[i])),
                   "l"(in + 64 * i), "r"(at(&full[i]))
                   : "memory");
    }
  }
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
          "p; }"
          : "=r"(done)
          : "r"(at(&full[i]))
          : "memory");
    }
    sum += kept[i][t];
  }
  out[t] = sum;
}

int main() {
  Array<int> in(128), out(64);
  pull<<<1, 64>>>(in.device, out.device);
  return ok();
}
