// SPDX-License-Identifier: Apache-2.0
// Warp roles of wgmma kernels: a producer warpgroup, one thread of which loads tiles, and two
// consumer warpgroups, which multiply 64 rows of the tile each. This header has the sizes, the
// setup and the loop over tiles; the kernels have the main loops of the roles. A Job has maps a and
// b, a raster (raster.hpp), k_tiles, slice_tiles and tiles_of_slice(), as gemm's TensorJob.
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
constexpr int producer_threads = 128;  // the first of the block
constexpr int role_threads = producer_threads + 32 * consumer_warps;
// 128 * 40 + 256 * 232 = 168 * 384, the registers that the block starts with.
constexpr int producer_registers = 40;
constexpr int consumer_registers = 232;

/// A stage of the ring: tiles of A and B, 128 bytes along k.
template <int Rows, int Columns>
struct alignas(1024) TileStage {
  unsigned char a[Rows * 128];
  unsigned char b[Columns * 128];
};

/// Loads a tile of B into a stage. If the blocks of a cluster share B, each block multicasts its
/// part of the tile to all of them.
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

/// Releases a stage that the calling warp has read: arrives at the empty barriers of all blocks
/// whose producers fill it.
template <class TileB, class Ring>
__device__ __forceinline__ void release_stage(Ring& ring, int stage) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (TileB::parts == 1) {
    if (lane == 0) ring.release(stage);
  } else {
    if (lane < TileB::parts) ring.release_in(stage, lane);
  }
}

/// Tile of C that a block computes, in full or over a slice of k.
struct BlockTile {
  int batch;                // matrix of the operands
  int matrix;               // matrix of C; slice s of matrix b is matrix s * (batch size) + b
  int row, column;          // first element of the tile
  int first_step, k_tiles;  // first tile along k and number of tiles
  int part;                 // index among all slices of tiles; negative: a whole tile
};

/// Calls body(BlockTile) for the calling block's tiles: every gridDim.x-th tile of the raster. If a
/// cluster's blocks share B, a unit of the raster is a column of vertically adjacent tiles, one per
/// block.
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

/// Initializes the ring's barriers and synchronizes the block, or the cluster if its blocks share
/// B. All threads call it.
template <class TileB, class Layout, class Job>
__device__ __forceinline__ void set_up_roles(Layout& layout, const Job& job) {
  ptx::let_next_grid_start();  // which adds the slices of k
  if (threadIdx.x == 0) {
    if constexpr (requires { layout.arrivals; }) {
      for (auto& arrivals : layout.arrivals) arrivals.init();
    }
    layout.ring.init(TileB::parts * consumer_warps);  // its fence covers `arrivals`, too
    ptx::tensor_prefetch_map(job.a);
    ptx::tensor_prefetch_map(job.b);
  }
  if constexpr (TileB::parts > 1) {
    ptx::cluster_sync();  // the barriers of all blocks are initialized
  } else {
    __syncthreads();
  }
}

/// Prefetches C and the residual for the epilogue of a tile, into L2. A producer warp calls it.
template <class TileA, class TileB, class Job>
__device__ __forceinline__ void prefetch_addends_of(const Job& job, const BlockTile& tile) {
  if (tile.first_step != 0) return;
  prefetch_addends(job.product(), job.out_bytes(), tile.matrix, tile.row, tile.column, TileA::rows,
                   TileB::rows);
}

/// Returns the index of the calling warp among the consumer warps; four warps are a warpgroup.
__device__ __forceinline__ int consumer_warp() {
  return static_cast<int>(threadIdx.x - producer_threads) / 32;
}

}  // namespace rung::inline RUNG_TARGET
