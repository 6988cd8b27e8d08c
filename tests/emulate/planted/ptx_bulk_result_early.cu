// SPDX-License-Identifier: Apache-2.0
// Who reads what a bulk store brings waits until it has written, not until it has read.
#include <cstdint>

#include "../programs/check.cuh"

#ifdef BUG
#define READ ".read"
#else
#define READ ""
#endif

__global__ void emit(int* out, int* sum) {
  __shared__ alignas(128) int kept[64];
  const int t = threadIdx.x;
  kept[t] = t;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group"  // expect: race
                 " [%0], [%1], 256;" ::"l"(out), "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group" READ " 0;" ::: "memory");
  }
  __syncthreads();
  sum[t] = out[63 - t];  // expect: race
  __syncthreads();
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

int main() {
  Array<int> out(64), sum(64);
  emit<<<1, 64>>>(out.device, sum.device);
  return ok();
}
