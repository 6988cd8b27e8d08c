// SPDX-License-Identifier: Apache-2.0
// A barrier that completes in each round is waited for by a parity that flips in each round, not by
// that of a ring of three.
#include <cstdint>

#include "../programs/check.cuh"

__device__ uint32_t at(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}
__device__ void await(const uint64_t* barrier, int parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, "
        "p; }"
        : "=r"(done)
        : "r"(at(barrier)), "r"(parity)
        : "memory");
  }
}
__device__ void arrive(const uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(barrier)) : "memory");
}

__global__ void relay(int* out, int rounds) {
  __shared__ int kept[3][32];
  __shared__ alignas(8) uint64_t full[3], empty;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&full[i])));
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(at(&empty)));
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int i = 0; i < rounds; ++i) {
      kept[i % 3][lane] = 10 * i + lane;  // expect: race
      arrive(&full[i % 3]);
#ifdef BUG
      await(&empty, i / 3 & 1);
#else
      await(&empty, i & 1);
#endif
    }
  } else {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
      await(&full[i % 3], i / 3 & 1);
      sum += kept[i % 3][31 - lane];  // expect: race
      arrive(&empty);
    }
    out[threadIdx.x - 32] = sum;
  }
}

int main() {
  Array<int> out(64);
  relay<<<1, 96>>>(out.device, 12);
  return ok();
}
