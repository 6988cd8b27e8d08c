// SPDX-License-Identifier: Apache-2.0
// Stages of a ring that bulk copies fill: each round waits for its own phase. A barrier of the
// block behind the thread that has started a copy is no wait for that.
#include <cstdint>

#include "../programs/check.cuh"

constexpr int tile = 64, stages = 2, rounds = 6;

__device__ uint32_t local(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void await(const uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(local(barrier)), "r"(parity)
        : "memory");
  }
}

__global__ void sum(const int* in, int* out) {
  __shared__ alignas(128) int kept[stages][tile];
  __shared__ alignas(8) uint64_t full[stages];
  const int t = threadIdx.x;
  if (t == 0) {
    for (const uint64_t& one : full) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(local(&one)));
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int total = 0;
  for (int round = 0; round < rounds; ++round) {
    const int stage = round % stages;
    if (t == 0) {
      const uint32_t barrier = local(&full[stage]);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(barrier));
      asm volatile(  // expect: race
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
          "[%0], [%1], 256, [%2];" ::"r"(local(kept[stage])),
          "l"(in + round * tile), "r"(barrier)
          : "memory");
    }
    __syncthreads();
#ifdef BUG
    if (t == 0 || round < stages) await(&full[stage], round / stages % 2);
#else
    await(&full[stage], round / stages % 2);
#endif
    total += kept[stage][tile - 1 - t];  // expect: race
    __syncthreads();
  }
  out[t] = total;
}

int main() {
  Array<int> in(rounds * tile), out(tile);
  for (int i = 0; i < in.size; ++i) in[i] = i;
  in.up();
  sum<<<1, tile>>>(in.device, out.device);
  return ok();
}
