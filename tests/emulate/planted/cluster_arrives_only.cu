// SPDX-License-Identifier: Apache-2.0
// Who only arrives at the cluster's last barrier may end before others read its shared memory.
#include <cstdint>

#include "../programs/check.cuh"

__global__ void __cluster_dims__(2, 1, 1) pull(int* out) {
  __shared__ int kept[32];
  uint32_t rank, there;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  const auto here = static_cast<uint32_t>(__cvta_generic_to_shared(kept + threadIdx.x));
  asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(there) : "r"(here));
  kept[threadIdx.x] = 100 * blockIdx.x + threadIdx.x;
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
  if (rank == 0) {
    int theirs;
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(theirs) : "r"(there));  // expect: race
    out[threadIdx.x] = theirs;
  }
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#ifdef BUG
  const bool waits = rank == 0;
#else
  const bool waits = true;
#endif
  if (waits) asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

int main() {
  Array<int> out(32);
  pull<<<2, 32>>>(out.device);
  return ok();
}
