// SPDX-License-Identifier: Apache-2.0
// Pipeline of the fastest single-precision rungs: cp.async copies tiles from global to shared
// memory, several tiles ahead, without registers; each warp owns a part of the tile.
//
// Copies use rung/device/tile/async_tile.hpp; a thread's sums have the layout of
// rung/device/tile/register_tile.hpp.
#pragma once

#include <cstdint>

#include "rung/device/shared.hpp"
#include "rung/device/tile/async_tile.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Main loop of one block. TileA and TileB copy the tiles of the two operands; sums stay in
/// registers. `there_and_back`: serpentine order of multiply_add().
template <TileShape shape, class TileA, class TileB, bool there_and_back>
class TilePipeline : public RegisterTile<shape> {
  static constexpr int group_steps = shape.steps / shape.groups;
  static_assert(group_steps * shape.groups == shape.steps && group_steps % 2 == 0,
                "fragments alternate between two sets of registers");

 public:
  struct Stages {
    alignas(16) float a[shape.stages][TileA::elements];
    alignas(16) float b[shape.stages][TileB::elements];
  };
  using typename RegisterTile<shape>::Sums;
  using RegisterTile<shape>::column;
  using RegisterTile<shape>::group;
  using RegisterTile<shape>::group_number;
  using RegisterTile<shape>::group_thread;
  using RegisterTile<shape>::row;

  /// Combines the sums of the groups of warps in a fixed order; the total is in group 0.
  static __device__ __forceinline__ void combine(Sums& sums) {
    constexpr int count = shape.thread_rows * shape.thread_columns;
    struct Shares {
      float of[shape.groups / 2][count][shape.group_threads()];
    };
    static_assert(sizeof(Shares) <= sizeof(Stages));
    auto& shares = shared<Shares>().of;
    const int thread = group_thread();
#pragma unroll
    for (int half = shape.groups / 2; half > 0; half /= 2) {
      const int group = group_number();
      __syncthreads();
      if (group >= half && group < 2 * half) {
#pragma unroll
        for (int i = 0; i < count; ++i) {
          shares[group - half][i][thread] =
              sums[i / shape.thread_columns][i % shape.thread_columns];
        }
      }
      __syncthreads();
      if (group < half) {
#pragma unroll
        for (int i = 0; i < count; ++i) {
          sums[i / shape.thread_columns][i % shape.thread_columns] += shares[group][i][thread];
        }
      }
    }
  }

  /// Adds the product of `tiles` tiles to sums; the first tile has `first_steps` steps. With
  /// several groups of warps, each adds its share.
  static __device__ __forceinline__ void accumulate(TileA& tile_a, TileB& tile_b, int tiles,
                                                    int first_steps, Sums& sums) {
    Stages& stages = shared<Stages>();

    // One commit group per tile, empty ones included, so that a wait for all but the last n groups
    // always refers to the same tile.
    tile_a.copy_first(stages.a[0], first_steps);
    tile_b.copy_first(stages.b[0], first_steps);
    ptx::async_commit();
#pragma unroll
    for (int stage = 1; stage < shape.stages - 1; ++stage) {
      if (stage < tiles) {
        tile_a.copy(stages.a[stage]);
        tile_b.copy(stages.b[stage]);
      }
      ptx::async_commit();
    }

    // Fragments of the next step are loaded while the current ones are multiplied.
    float a_values[2][shape.thread_rows];
    float b_values[2][shape.thread_columns];
    const int a_place = row(0) + group_number() * group_steps * TileA::pitch;
    const int b_place = column(0) + group_number() * group_steps * TileB::pitch;
    const auto load_step = [&](int stage, int step) {
      load_fragment<shape.thread_rows, shape.lanes_down() * group>(
          a_values[step % 2], &stages.a[stage][step * TileA::pitch + a_place]);
      load_fragment<shape.thread_columns, shape.lanes_along() * group>(
          b_values[step % 2], &stages.b[stage][step * TileB::pitch + b_place]);
    };

    int reading = 0;
    int writing = shape.stages - 1;
    ptx::async_wait<shape.stages - 2>();
    __syncthreads();
    load_step(reading, 0);
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int step = 0; step < group_steps; ++step) {
        if (step == group_steps - 1) {
          // The next tile has arrived for all threads, and all have finished reading the current
          // one, whose buffer can be refilled.
          ptx::async_wait<shape.stages - 2>();
          __syncthreads();
          // After the last tile, that tile is read again and not used.
          const int next = reading == shape.stages - 1 ? 0 : reading + 1;
          reading = tile + 1 < tiles ? next : reading;
        }
        load_step(reading, (step + 1) % group_steps);
        // The copies of a tile are issued in two steps: all at once would delay the multiply-adds.
        const bool more = tile + shape.stages - 1 < tiles;
        if (step == 0 && more) tile_b.copy(stages.b[writing]);
        if (step == 1) {
          if (more) tile_a.copy(stages.a[writing]);
          ptx::async_commit();
          writing = writing == shape.stages - 1 ? 0 : writing + 1;
        }
        multiply_add<there_and_back>(sums, a_values[step % 2], b_values[step % 2]);
      }
    }
  }
};

// On an H200, serpentine order gains 3 % for copies of single elements and loses 2 % for wide
// copies, whose registers nvcc then allocates worse.
constexpr bool goes_there_and_back(TileAccess access_a, TileAccess access_b) {
  return access_a != TileAccess::wide || access_b != TileAccess::wide;
}

/// Pipeline of two matrices with the given accesses.
template <TileShape shape, TileAccess access_a, TileAccess access_b>
class Pipeline
    : public TilePipeline<shape, AsyncTile<shape.rows, shape.steps, shape.threads(), access_a>,
                          AsyncTile<shape.columns, shape.steps, shape.threads(), access_b>,
                          goes_there_and_back(access_a, access_b)> {
  using TileA = AsyncTile<shape.rows, shape.steps, shape.threads(), access_a>;
  using TileB = AsyncTile<shape.columns, shape.steps, shape.threads(), access_b>;
  using Tiles = TilePipeline<shape, TileA, TileB, goes_there_and_back(access_a, access_b)>;

 public:
  /// Adds A's rows from first_row on times B's columns from first_column on, over `depth` steps, to
  /// sums.
  static __device__ __forceinline__ void accumulate(const TileOperand& a, int first_row,
                                                    const TileOperand& b, int first_column,
                                                    std::int64_t depth,
                                                    typename Tiles::Sums& sums) {
    if (depth <= 0) return;
    TileA tile_a(a, first_row);
    TileB tile_b(b, first_column);
    const auto tiles = static_cast<int>(tiles_of(depth, shape.steps));
    const auto first_steps = static_cast<int>(depth - (tiles - 1) * std::int64_t{shape.steps});
    Tiles::accumulate(tile_a, tile_b, tiles, first_steps, sums);
  }
};

/// Returns the operands of one matrix of the batch.
template <class P>
__device__ TileOperand operand_a(const P& p, int batch) {
  return {p.a.data + batch * p.a.strides[0], p.a.strides[1], p.m(), p.a.strides[2]};
}
template <class P>
__device__ TileOperand operand_b(const P& p, int batch) {
  return {p.b.data + batch * p.b.strides[0], p.b.strides[2], p.n(), p.b.strides[1]};
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
