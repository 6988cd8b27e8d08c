// SPDX-License-Identifier: Apache-2.0
// Of two tiles one may still be read by its store: before it is filled again the store before the
// last has read it.
#include <cstdint>

#include "../programs/check.cuh"

#ifdef BUG
#define LEFT "2"
#else
#define LEFT "1"
#endif

__global__ void emit(int* out, int rounds) {
  __shared__ alignas(128) int kept[2][64];
  const int t = threadIdx.x;
  for (int i = 0; i < rounds; ++i) {
    if (t == 0) asm volatile("cp.async.bulk.wait_group.read " LEFT ";" ::: "memory");
    __syncthreads();
    kept[i % 2][t] = 100 * i + t;  // expect: race
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      const auto from = static_cast<uint32_t>(__cvta_generic_to_shared(kept[i % 2]));
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group"  // expect: race
                   " [%0], [%1], 256;" ::"l"(out + 64 * i), "r"(from)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

int main() {
  Array<int> out(256);
  emit<<<1, 64>>>(out.device, 4);
#ifndef BUG
  out.down();
  for (int i = 0; i < 256; ++i) CHECK(out[i] == 100 * (i / 64) + i % 64);
#endif
  return ok();
}
