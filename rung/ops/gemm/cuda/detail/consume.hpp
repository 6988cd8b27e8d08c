// SPDX-License-Identifier: Apache-2.0
// Warp roles of the wgmma rungs: a producer warpgroup, of which one thread works, and two consumer
// warpgroups that multiply 64 rows of the tile each.
#pragma once

#include "rung/device/stage_ring.hpp"
#include "rung/device/wgmma_tile.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int consumer_groups = 2;
constexpr int consumer_warps = 4 * consumer_groups;
constexpr int producer_threads = 128;  // the block's first
constexpr int role_threads = producer_threads + 32 * consumer_warps;
// 128 * 24 + 256 * 240 are the 168 * 384 registers that the block starts with.
constexpr int producer_registers = 24;
constexpr int consumer_registers = 240;

/// A stage of the ring: 128 bytes of k of both operands.
template <int Rows, int Columns>
struct alignas(1024) TileStage {
  unsigned char a[Rows * 128];
  unsigned char b[Columns * 128];
};

/// Fills so many stages of the ring from step k of both operands on, as fast as they are released:
/// the tiles of A from first_row on, of B from first_column on. By the producer's one thread.
template <class TileA, class TileB, int Stages, class Stage, class Job>
__device__ __forceinline__ void produce_tiles(Stage (&stages)[Stages], StageRing<Stages>& ring,
                                              RingPlace<Stages>& at, const Job& job, int batch,
                                              int first_row, int first_column, int k, int tiles) {
  static_assert(TileA::depth == TileB::depth);
  for (int tile = 0; tile < tiles; ++tile, k += TileA::depth, at.advance()) {
    Stage& stage = stages[at.stage];
    auto& full = ring.full[at.stage];
    ring.await_empty(at);
    ring.expect(at, TileA::bytes + TileB::bytes);
    TileA::load(stage.a, job.a, batch * job.a_moves, first_row, k, full);
    TileB::load(stage.b, job.b, batch * job.b_moves, first_column, k, full);
  }
}

/// How a warp says that it has read a stage: to its block's producer.
struct ReleaseHere {
  template <class Ring>
  __device__ __forceinline__ void operator()(Ring& ring, int stage) const {
    if (threadIdx.x % 32 == 0) ring.release(stage);
  }
};
/// The same where two blocks of a cluster fill each other's stages: to the producers of both.
struct ReleaseInBoth {
  template <class Ring>
  __device__ __forceinline__ void operator()(Ring& ring, int stage) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane < 2) ring.release_in(stage, lane);
  }
};

/// sums = the products of `tiles` stages of the ring; 64 rows of A from first_row on. A stage is
/// released when the products of the next have been issued and its own are done, so that the tensor
/// cores always have work.
template <class TileA, class TileB, int Stages, class Stage, int Registers, class Release>
__device__ __forceinline__ void consume_tiles(float (&sums)[Registers], Stage (&stages)[Stages],
                                              StageRing<Stages>& ring, RingPlace<Stages>& at,
                                              int tiles, int first_row, const Release& release) {
  int before = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    ring.await_full(at);
    const Stage& stage = stages[at.stage];
    ptx::wgmma_fence(sums);
    wgmma_tile<TileA, TileB>(sums, stage.a, first_row, stage.b, tile > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>(sums);
    if (tile > 0) release(ring, before);
    before = at.stage;
    at.advance();
  }
  ptx::wgmma_wait<0>(sums);
  release(ring, before);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
