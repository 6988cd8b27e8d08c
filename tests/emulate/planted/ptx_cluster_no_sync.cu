// SPDX-License-Identifier: Apache-2.0
// A cluster's barrier, by asm, before another block's shared memory is read.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void __cluster_dims__(2, 1, 1) neighbors(int* out) {
  __shared__ int kept[32];
  uint32_t rank, there;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  kept[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;  // expect: race
#ifdef BUG
  asm volatile("bar.sync 0;" ::: "memory");
#else
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
#endif
  const auto here = static_cast<uint32_t>(__cvta_generic_to_shared(kept + threadIdx.x));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank ^ 1));
  int theirs;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(theirs) : "r"(there));  // expect: race
  out[32 * blockIdx.x + threadIdx.x] = theirs;
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}

int main() {
  Array<int> out(64);
  neighbors<<<2, 32>>>(out.device);
  return ok();
}
