// SPDX-License-Identifier: Apache-2.0
// Bulk copies by asm statements: two stages of tiles in, changed, and out again; sums; prefetches.
#include <cstdint>

#include "check.cuh"

constexpr int tile = 256, stages = 2;

__device__ uint32_t local(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void await(const uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n .reg .pred p;\n"
        " mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
        " selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(local(barrier)), "r"(parity)
        : "memory");
  }
}
__device__ void load(float* to, const float* from, uint64_t* barrier) {
  constexpr uint32_t bytes = tile * sizeof(float);
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   local(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(local(to)),
      "l"(from), "r"(bytes), "r"(local(barrier)), "l"(policy)
      : "memory");
}

__global__ void twice(const float* in, float* out, float* sums, int tiles) {
  __shared__ alignas(128) float from[stages][tile], to[tile];
  __shared__ alignas(8) uint64_t full[stages];
  const int t = threadIdx.x;
  if (t == 0) {
    for (uint64_t& one : full) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(local(&one)));
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in),
                 "r"(tiles * tile * 4));
  }
  __syncthreads();
  if (t == 0) load(from[0], in, &full[0]);
  for (int i = 0; i < tiles; ++i) {
    if (t == 0 && i + 1 < tiles) {
      load(from[(i + 1) % stages], in + (i + 1) * tile, &full[(i + 1) % stages]);
    }
    await(&full[i % stages], i / stages & 1);
    to[t] = 2 * from[i % stages][t];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                       out + i * tile),
                   "r"(local(to)), "r"(tile * 4)
                   : "memory");
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::
                       "l"(sums),
                   "r"(local(to)), "r"(tile * 4)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(0) : "memory");
}

/// cp.async that an mbarrier waits for.
__global__ void by_threads(const int* in, int* out) {
  __shared__ alignas(16) int kept[128];
  __shared__ alignas(8) uint64_t landed;
  const int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(local(&landed)));
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1+0], 16;" ::"r"(local(kept + 4 * t)),
               "l"(in + 4 * t)
               : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(local(&landed))
               : "memory");
  await(&landed, 0);
  for (int i = 0; i < 4; ++i) out[32 * i + t] = kept[127 - 32 * i - t];
}

int main() {
  constexpr int tiles = 5;
  Array<float> in(tiles * tile), out(tiles * tile), sums(tile);
  for (int i = 0; i < tiles * tile; ++i) in[i] = static_cast<float>(i % 97);
  in.up();
  twice<<<1, tile>>>(in.device, out.device, sums.device, tiles);
  CUDA(cudaGetLastError());
  out.down();
  sums.down();
  for (int i = 0; i < tile; ++i) {
    float sum = 0;
    for (int k = 0; k < tiles; ++k) {
      CHECK(out[k * tile + i] == 2 * in[k * tile + i]);
      sum += 2 * in[k * tile + i];
    }
    CHECK(sums[i] == sum);
  }
  Array<int> words(128), turned(128);
  for (int i = 0; i < 128; ++i) words[i] = i;
  words.up();
  by_threads<<<1, 32>>>(words.device, turned.device);
  turned.down();
  for (int i = 0; i < 128; ++i) CHECK(turned[i] == 127 - i);
  return ok();
}
