// SPDX-License-Identifier: Apache-2.0
// fence.proxy.async between a thread's writes and the bulk copy that reads them.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void store(int* out) {
  __shared__ alignas(128) int kept[64];
  kept[threadIdx.x] = threadIdx.x;  // expect: race
#ifndef BUG
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"  // expect: race
                 ::"l"(out), "r"(from) : "memory");
    asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

int main() {
  Array<int> out(64);
  store<<<1, 64>>>(out.device);
  return ok();
}
