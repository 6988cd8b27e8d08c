// SPDX-License-Identifier: Apache-2.0
// A block reads global memory that its bulk store writes behind wait_group, not wait_group.read.
#include <cstdint>

#include "../programs/check.cuh"

#ifdef BUG
#define WAIT "cp.async.bulk.wait_group.read 0;"
#else
#define WAIT "cp.async.bulk.wait_group 0;"
#endif

__global__ void shift(int* data, int* out) {
  __shared__ alignas(128) int kept[64];
  const int t = threadIdx.x;
  kept[t] = 3 * t;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(kept));
    asm volatile(  // expect: race
        "cp.async.bulk.global.shared::cta.bulk_group"
        " [%0], [%1], 256;" ::"l"(data),
        "r"(from)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile(WAIT ::: "memory");
  }
  __syncthreads();
  out[t] = data[63 - t];  // expect: race
}

int main() {
  Array<int> data(64), out(64);
  shift<<<1, 64>>>(data.device, out.device);
#ifndef BUG
  out.down();
  for (int t = 0; t < 64; ++t) CHECK(out[t] == 3 * (63 - t));
#endif
  return ok();
}
