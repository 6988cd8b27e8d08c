// SPDX-License-Identifier: Apache-2.0
// Clusters by asm statements: their registers, barriers, the others' shared memory, bulk copies and
// arrivals from block to block.
#include <cstdint>

#include "check.cuh"

constexpr int blocks = 4, threads = 64;

__device__ uint32_t local(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ uint32_t in_block(uint32_t address, uint32_t rank) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
__device__ void await(const uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(local(barrier)), "r"(parity)
        : "memory");
  }
}

__global__ void __cluster_dims__(blocks, 1, 1) exchange(const int* in, int* out) {
  __shared__ alignas(16) int own[threads], copied[threads], everywhere[threads], sent[4];
  __shared__ alignas(8) uint64_t ready, landed, spread, told;
  const uint32_t t = threadIdx.x;
  uint32_t rank, size, cluster, clusters, place;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
  asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(place));
  const bool right = rank == blockIdx.x % blocks && size == blocks && place == rank &&
                     cluster == blockIdx.x / blocks && clusters == gridDim.x / blocks;
  const uint32_t next = (rank + 1) % size;
  own[t] = in[blockIdx.x * threads + t];
  if (t == 0) {
    for (uint64_t* one : {&ready, &landed, &spread, &told}) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(local(one)),
                   "r"(one == &ready ? threads : 1));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(local(&landed)),
                 "r"(threads * 4)
                 : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(local(&spread)),
                 "r"(threads * 4)
                 : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(local(&told))
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  cluster_sync();
  // A load from the next block, by its number and by a generic address.
  int theirs, again;
  asm volatile("ld.shared::cluster.s32 %0, [%1];"
               : "=r"(theirs)
               : "r"(in_block(local(own + t), next))
               : "memory");
  uint64_t generic;
  asm("mapa.u64 %0, %1, %2;" : "=l"(generic) : "l"(own), "r"(next));
  asm volatile("ld.s32 %0, [%1];" : "=r"(again) : "l"(generic + 4 * t) : "memory");
  uint32_t whose;
  asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(whose) : "r"(in_block(local(own), next)));
  // Every thread of the block before arrives here.
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                   in_block(local(&ready), next))
               : "memory");
  if (t == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(in_block(local(copied), next)),
        "r"(local(own)), "r"(threads * 4), "r"(in_block(local(&landed), next))
        : "memory");
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.s32 [%0], {%1, %2, %3, "
        "%4}, [%5];" ::"r"(in_block(local(sent), next)),
        "r"(own[0]), "r"(own[1]), "r"(own[2]), "r"(own[3]), "r"(in_block(local(&told), next))
        : "memory");
    if (rank == 1) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
          "[%0], [%1], %2, [%3], %4;" ::"r"(local(everywhere)),
          "l"(in), "r"(threads * 4), "r"(local(&spread)), "h"(uint16_t{(1 << blocks) - 1})
          : "memory");
    }
  }
  await(&ready, 0);
  await(&landed, 0);
  await(&spread, 0);
  await(&told, 0);
  const int before = copied[t] + sent[t % 4] + everywhere[t];
  out[blockIdx.x * threads + t] =
      right && whose == next && theirs == again ? 1000 * theirs + before : -1;
  cluster_sync();
}

int main() {
  constexpr int n = 2 * blocks * threads;
  Array<int> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = i;
  in.up();
  exchange<<<2 * blocks, threads>>>(in.device, out.device);
  CUDA(cudaGetLastError());
  out.down();
  for (int block = 0; block < 2 * blocks; ++block) {
    const int first = block / blocks * blocks;
    const int next = first + (block + 1) % blocks, previous = first + (block + blocks - 1) % blocks;
    for (int t = 0; t < threads; ++t) {
      const int before = threads * previous + t + threads * previous + t % 4 + t;
      CHECK(out[block * threads + t] == 1000 * (threads * next + t) + before);
    }
  }
  return ok();
}
