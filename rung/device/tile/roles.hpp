// SPDX-License-Identifier: Apache-2.0
// Warp roles of wgmma kernels: a producer warpgroup, of which one thread fetches tiles, and two
// consumer warpgroups that multiply 64 rows of the tile each. Here are sizes, set-up and the walk
// over tiles; the loops of both roles stand in the kernels. A Job has maps a and b, a raster
// (raster.hpp), k_tiles and tiles_of_slice(), as gemm's TensorJob.
#pragma once

#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/device/stage_ring.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/device/wgmma_tile.hpp"

namespace rung::inline RUNG_TARGET {

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

/// Loads a tile of B into a stage. Blocks of a cluster that share B each load their part of it for
/// all of them.
template <class TileB>
__device__ __forceinline__ void load_shared(unsigned char* stage, const TensorMap& map, int batch,
                                            int column, int k, ptx::MemoryBarrier& full) {
  if constexpr (TileB::parts == 1) {
    TileB::load(stage, map, batch, column, k, full);
  } else {
    TileB::load_multicast(ptx::cluster_rank(), stage, map, batch, column, k, full,
                          (1 << TileB::parts) - 1);
  }
}

/// The calling warp has read the stage: tells the producers of all blocks that fill it.
template <class TileB, class Ring>
__device__ __forceinline__ void release_stage(Ring& ring, int stage) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (TileB::parts == 1) {
    if (lane == 0) ring.release(stage);
  } else {
    if (lane < TileB::parts) ring.release_in(stage, lane);
  }
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
    body(BlockTile{
        .batch = work.batch,
        .matrix = work.slice * job.raster.batch + work.batch,
        .row = (work.row * blocks + rank) * TileA::rows,
        .column = work.column * TileB::rows,
        .first_step = work.slice * job.slice_tiles,
        .k_tiles = number < job.raster.whole ? job.k_tiles : job.tiles_of_slice(work.slice),
        .part = number - job.raster.whole});
  }
}

/// Sets up the ring's barriers, for all blocks of the cluster that shares B. By all threads.
template <class TileB, class Layout, class Job>
__device__ __forceinline__ void set_up_roles(Layout& layout, const Job& job) {
  ptx::let_next_grid_start();  // what adds up slices is set up meanwhile
  if (threadIdx.x == 0) {
    if constexpr (requires { layout.arrivals; }) {
      for (auto& arrivals : layout.arrivals) arrivals.init();
    }
    layout.ring.init(TileB::parts * consumer_warps);  // fences these barriers, too
    ptx::tensor_prefetch_map(job.a);
    ptx::tensor_prefetch_map(job.b);
  }
  if constexpr (TileB::parts > 1) {
    ptx::cluster_sync();  // the barriers of all blocks are there
  } else {
    __syncthreads();
  }
}

/// Prefetches what the epilogue of a tile adds to it, by the producer's warp.
template <class TileA, class TileB, class Job>
__device__ __forceinline__ void prefetch_addends_of(const Job& job, const BlockTile& tile) {
  if (tile.first_step != 0) return;
  prefetch_addends(job.product(), job.out_bytes(), tile.matrix, tile.row, tile.column, TileA::rows,
                   TileB::rows);
}

/// The number of a consumer's warp among the block's; four are a group.
__device__ __forceinline__ int consumer_warp() {
  return static_cast<int>(threadIdx.x - producer_threads) / 32;
}

}  // namespace rung::inline RUNG_TARGET
