// SPDX-License-Identifier: Apache-2.0
// Warp roles of the wgmma rungs: a producer warpgroup, of which one thread works, and two consumer
// warpgroups that multiply 64 rows of the tile each.
//
//   in_roles<TileA, TileB>(layout, job, [&](const BlockTile& tile, auto& at) {  // a whole kernel
//     float sums[...];
//     consume_tiles<TileA, TileB>(sums, layout.stages, layout.ring, at, tile.k_tiles, ...);
//     write_strip<...>(...);
//   });
#pragma once

#include <type_traits>

#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/device/stage_ring.hpp"
#include "rung/device/wgmma_tile.hpp"
#include "rung/ops/gemm/cuda/detail/strip.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

constexpr int consumer_groups = 2;
constexpr int consumer_warps = 4 * consumer_groups;
constexpr int producer_threads = 128;  // the block's first
constexpr int role_threads = producer_threads + 32 * consumer_warps;
// 128 * 40 + 256 * 232 are the 168 * 384 registers that the block starts with.
constexpr int producer_registers = 40;
constexpr int consumer_registers = 232;

/// A stage of the ring: 128 bytes of k of both operands.
template <int Rows, int Columns>
struct alignas(1024) TileStage {
  unsigned char a[Rows * 128];
  unsigned char b[Columns * 128];
};

/// Fills so many stages of the ring from step k of both operands on, as fast as they are released:
/// the tiles of A from first_row on, of B from first_column on. By the producer's one thread. A B
/// in parts is shared by the blocks of a cluster: each fetches its part for all of them.
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
    const int b = batch * job.b_moves;
    if constexpr (TileB::parts == 1) {
      TileB::load(stage.b, job.b, b, first_column, k, full);
    } else {
      TileB::load_multicast(ptx::cluster_rank(), stage.b, job.b, b, first_column, k, full,
                            (1 << TileB::parts) - 1);
    }
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

/// To those that fill the stages of TileB.
template <class TileB>
using ReleaseOf = std::conditional_t<TileB::parts == 1, ReleaseHere, ReleaseInBoth>;

/// sums = the products of `tiles` stages of the ring; 64 rows of A from first_row on. A stage is
/// released when the products of the next have been issued and its own are done, so that the tensor
/// cores always have work.
template <class TileA, class TileB, int Stages, class Stage, class Sum, int Registers,
          class Release>
__device__ __forceinline__ void consume_tiles(Sum (&sums)[Registers], Stage (&stages)[Stages],
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

/// A block's tile of C, or of a slice of k.
struct BlockTile {
  int batch;                // the operands' matrix
  int matrix;               // C's: partial sums lie slice behind slice, as a longer batch
  int row, column;          // its first
  int first_step, k_tiles;  // tiles of k
  int part;                 // its number among the slices of tiles; negative: a whole tile
};

/// Calls body(BlockTile) for every gridDim.x-th tile. Where a cluster's blocks share B, they have
/// tiles one below the other, and the raster counts such columns of tiles.
template <class TileA, class TileB, class Job, class Body>
__device__ __forceinline__ void for_each_tile(const Job& job, const Body& body) {
  constexpr int blocks = TileB::parts;
  const int rank = blocks == 1 ? 0 : ptx::cluster_rank();
  const int works = job.raster.total();
  const int at_once = static_cast<int>(gridDim.x) / blocks;
  for (int number = static_cast<int>(blockIdx.x) / blocks; number < works; number += at_once) {
    const auto work = job.raster.at(number);
    body(BlockTile{.batch = work.batch,
                   .matrix = work.slice * job.raster.batch + work.batch,
                   .row = (work.row * blocks + rank) * TileA::rows,
                   .column = work.column * TileB::rows,
                   .first_step = work.slice * job.slice_tiles,
                   .k_tiles = number < job.raster.whole ? job.k_tiles
                                                        : job.tiles_of_slice(work.slice),
                   .part = number - job.raster.whole});
  }
}

/// A kernel whose blocks stay: the producer fetches what its tiles need, the consumers' warps call
/// consume(BlockTile, their place in the ring), which uses tile.k_tiles stages and writes C.
template <class TileA, class TileB, class Layout, class Job, class Consume>
__device__ __forceinline__ void in_roles(Layout& layout, const Job& job, const Consume& consume) {
  constexpr bool shares = TileB::parts > 1;
  ptx::let_next_grid_start();  // what adds up slices is set up meanwhile
  if (threadIdx.x == 0) {
    if constexpr (requires { layout.arrivals; }) {
      for (auto& arrivals : layout.arrivals) arrivals.init();
    }
    layout.ring.init(TileB::parts * consumer_warps);  // fences these barriers, too
    ptx::tensor_prefetch_map(job.a);
    ptx::tensor_prefetch_map(job.b);
  }
  if constexpr (shares) {
    ptx::cluster_sync();  // the barriers of all blocks are there
  } else {
    __syncthreads();
  }
  RingPlace<Layout::stage_count> at;
  if (threadIdx.x < producer_threads) {
    ptx::release_registers<producer_registers>();
    if (threadIdx.x < 32) {
      for_each_tile<TileA, TileB>(job, [&](const BlockTile& tile) {
        if (tile.first_step == 0) {
          prefetch_addends(job.product(), job.out_bytes(), tile.matrix, tile.row, tile.column,
                           TileA::rows, TileB::rows);
        }
        if (threadIdx.x == 0) {
          produce_tiles<TileA, TileB>(layout.stages, layout.ring, at, job, tile.batch, tile.row,
                                      tile.column, tile.first_step * TileA::depth, tile.k_tiles);
        }
        __syncwarp();
      });
    }
  } else {
    ptx::claim_registers<consumer_registers>();
    for_each_tile<TileA, TileB>(job, [&](const BlockTile& tile) { consume(tile, at); });
    if (threadIdx.x % 32 == 0) ptx::bulk_wait_read<0>();  // of the stores of its boxes
  }
  if constexpr (shares) ptx::cluster_sync();  // others still write here, and release stages
}

/// The number of a consumer's warp among the block's; four are a group.
__device__ __forceinline__ int consumer_warp() {
  return static_cast<int>(threadIdx.x - producer_threads) / 32;
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
