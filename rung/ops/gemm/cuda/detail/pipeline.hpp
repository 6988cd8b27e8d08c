// SPDX-License-Identifier: Apache-2.0
// The pipeline of the fastest single-precision rungs: tiles travel from global to shared memory by
// cp.async, several tiles ahead, without passing through registers; warps own parts of the tile.
//
// Three things keep the main loop free of everything but multiply-adds and loads:
//   - Rows and columns beyond the matrix are read from its last row or column instead: they only
//     reach elements of C that nobody writes. So no bound is checked, ever.
//   - A depth that is no multiple of the step is dealt with first: the first tile holds what is
//     left over, zero filled, and all others are whole.
//   - Addresses are one pointer that moves and small constant offsets.
#pragma once

#include <cstdint>

#include "rung/device/ptx/async_copy.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// How an operand's tile is copied. wide: four neighbors along m (A) or n (B) an instruction,
/// 16-byte aligned. along_depth: one element, k is the contiguous axis. any: one element, whatever
/// the strides and the alignment, which costs address arithmetic.
enum class Access { any, along_depth, wide };

/// One operand as the pipeline sees it: `outer` is the axis it shares with C.
struct Operand {
  const float* data;
  std::int64_t outer_stride;
  std::int64_t outer_extent;
  std::int64_t depth_stride;
};

/// Copies tiles [step][outer] of an operand, of Extent x Steps elements, one after another.
template <int Extent, int Steps, int Threads, Access access>
class AsyncTile {
  static constexpr int width = access == Access::wide ? 4 : 1;
  static constexpr int count = Extent * Steps / width / Threads;
  static_assert(count * width * Threads == Extent * Steps, "every thread copies as much");
  static_assert(Threads % Steps == 0 && (Threads * width) % Extent == 0);

  const float* from_;         // this thread's first element of the next tile
  std::int64_t tile_stride_;  // elements from a tile to the next
  // From the first element to the i-th, in elements: an array, because clamping makes the distances
  // uneven; for wide copies, which only walk along the steps, one distance.
  static constexpr int offsets = access == Access::wide ? 1 : count;
  int offset_[offsets];
  int to_;         // place of the first element in the tile
  int to_stride_;  // from there to the i-th, times i
  int step_;       // step of the first element
  int step_stride_;

 public:
  /// Elements from a step to the next in shared memory. Single elements may arrive along k, a step
  /// a lane: four words of padding then put the lanes in different banks.
  static constexpr int pitch = Extent + (access == Access::wide ? 0 : 4);
  static constexpr int elements = Steps * pitch;

  __device__ __forceinline__ AsyncTile(const Operand& operand, int first) {
    const int thread = thread_index();
    const int depth_stride =
        access == Access::along_depth ? 1 : static_cast<int>(operand.depth_stride);
    tile_stride_ = std::int64_t{Steps} * depth_stride;
    if constexpr (access == Access::wide) {
      // Memory holds whole groups - the extent is a multiple of four, or lines are longer -
      // so that a clamped group is still aligned.
      constexpr int groups = Extent / width;
      const std::int64_t left = tiles_of(operand.outer_extent, width) * width - first;
      const int outer = thread % groups * width;
      step_ = thread / groups;
      step_stride_ = Threads / groups;
      offset_[0] = step_stride_ * depth_stride;
      from_ = operand.data + first + (outer < left ? outer : static_cast<int>(left) - width) +
              step_ * operand.depth_stride;
      to_ = step_ * pitch + outer;
      to_stride_ = step_stride_ * pitch;
    } else {
      // Lanes run along whichever axis is contiguous. Known while compiling, it leaves one constant
      // a copy of all these numbers.
      const bool along_depth =
          access == Access::along_depth || operand.depth_stride <= operand.outer_stride;
      const int outer = along_depth ? thread / Steps : thread % Extent;
      const int outer_stride = along_depth ? Threads / Steps : 0;
      const std::int64_t left = operand.outer_extent - first;
      step_ = along_depth ? thread % Steps : thread / Extent;
      step_stride_ = along_depth ? 0 : Threads / Extent;
      from_ = operand.data + first * operand.outer_stride + step_ * depth_stride;
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const int at = outer + i * outer_stride;
        const int inside = at < left ? at : static_cast<int>(left) - 1;
        offset_[i] =
            inside * static_cast<int>(operand.outer_stride) + i * step_stride_ * depth_stride;
      }
      to_ = step_ * pitch + outer;
      to_stride_ = step_stride_ * pitch + outer_stride;
    }
  }

  /// Starts copying the next tile, whole.
  __device__ __forceinline__ void copy(float* tile) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      ptx::async_copy<width * 4>(tile + to_ + i * to_stride_, from_ + offset(i));
    }
    from_ += tile_stride_;
  }

  /// The same of a tile that has only its first `steps`; the others become zero.
  __device__ __forceinline__ void copy_first(float* tile, int steps) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const bool exists = step_ + i * step_stride_ < steps;
      ptx::async_copy<width * 4>(tile + to_ + i * to_stride_, from_ + offset(i),
                                 exists ? width * 4 : 0);
    }
    from_ += tile_stride_ / Steps * steps;
  }

 private:
  __device__ __forceinline__ int offset(int i) const {
    return access == Access::wide ? i * offset_[0] : offset_[i % offsets];
  }
};

/// Tile sizes of a kernel, and who makes what of it.
struct TileShape {
  int rows, columns, steps;     // of the block's tile
  int warp_rows, warp_columns;  // of a warp's part of it
  int thread_rows, thread_columns;
  int stages;      // tiles in shared memory: one in use, the others in flight
  int blocks;      // wanted on an SM
  int groups = 1;  // of warps that make the whole tile, each of its share of every tile's steps

  [[nodiscard]] constexpr int warps_down() const { return rows / warp_rows; }
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int group_threads() const { return 32 * warps_down() * warps_along(); }
  [[nodiscard]] constexpr int threads() const { return groups * group_threads(); }
  [[nodiscard]] constexpr int lanes_down() const { return warp_rows / thread_rows; }
  [[nodiscard]] constexpr int lanes_along() const { return warp_columns / thread_columns; }
};

/// One block's work, for operands whose tiles TileA and TileB copy. Sums stay in the threads'
/// registers. There and back: the order of multiply_add().
template <TileShape shape, class TileA, class TileB, bool there_and_back>
class TilePipeline {
  static_assert(shape.lanes_down() * shape.lanes_along() == 32, "a warp has 32 lanes");
  static constexpr int group_steps = shape.steps / shape.groups;
  static_assert(group_steps * shape.groups == shape.steps && group_steps % 2 == 0,
                "fragments alternate between two sets of registers");

 public:
  static constexpr int group = 4;  // neighboring columns of a thread
  struct Stages {
    alignas(16) float a[shape.stages][TileA::elements];
    alignas(16) float b[shape.stages][TileB::elements];
  };
  using Sums = float[shape.thread_rows][shape.thread_columns];

  /// Where in the block's tile the calling thread's element (i, j) lies. A warp's lanes are side by
  /// side in groups of four, so that its reads of a fragment touch every bank once.
  static __device__ __forceinline__ int row(int i) {
    const int warp = group_thread() / 32 % shape.warps_down();
    const int lane = thread_index() % 32 / shape.lanes_along();
    return warp * shape.warp_rows + (i / group * shape.lanes_down() + lane) * group + i % group;
  }
  static __device__ __forceinline__ int column(int j) {
    const int warp = group_thread() / 32 / shape.warps_down();
    const int lane = thread_index() % shape.lanes_along();
    return warp * shape.warp_columns + (j / group * shape.lanes_along() + lane) * group + j % group;
  }

  /// Which share of the steps the calling thread makes, and its number among those that make it.
  static __device__ __forceinline__ int group_number() {
    return shape.groups == 1 ? 0 : thread_index() / shape.group_threads();
  }
  static __device__ __forceinline__ int group_thread() {
    return shape.groups == 1 ? thread_index() : thread_index() % shape.group_threads();
  }

  /// Adds up the groups' sums, in a fixed order; those of group 0 are whole then.
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

  /// sums += the product of so many tiles, of which the first has `first_steps`; of several groups
  /// of warps, each adds its share.
  static __device__ __forceinline__ void accumulate(TileA& tile_a, TileB& tile_b, int tiles,
                                                    int first_steps, Sums& sums) {
    Stages& stages = shared<Stages>();

    // One group of copies per tile, empty ones included, so that "all but the last n groups" always
    // means the same tile.
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

    // Fragments of one step are read while those of the step before are multiplied.
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
          // The next tile has arrived for everybody; and everybody has read this one to its end, so
          // that its place may be filled again.
          ptx::async_wait<shape.stages - 2>();
          __syncthreads();
          // After the last tile nothing new is read, only this tile once more, to no effect.
          const int next = reading == shape.stages - 1 ? 0 : reading + 1;
          reading = tile + 1 < tiles ? next : reading;
        }
        load_step(reading, (step + 1) % group_steps);
        // The copies of a tile in two steps: all at once they would hold up the multiply-adds.
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

// Measured on an H200: 3 % for single copies, and 2 % against it for wide ones, whose registers
// nvcc then assigns worse.
constexpr bool goes_there_and_back(Access access_a, Access access_b) {
  return access_a != Access::wide || access_b != Access::wide;
}

/// The pipeline of two matrices, accessed as given.
template <TileShape shape, Access access_a, Access access_b>
class Pipeline
    : public TilePipeline<shape, AsyncTile<shape.rows, shape.steps, shape.threads(), access_a>,
                          AsyncTile<shape.columns, shape.steps, shape.threads(), access_b>,
                          goes_there_and_back(access_a, access_b)> {
  using TileA = AsyncTile<shape.rows, shape.steps, shape.threads(), access_a>;
  using TileB = AsyncTile<shape.columns, shape.steps, shape.threads(), access_b>;
  using Tiles = TilePipeline<shape, TileA, TileB, goes_there_and_back(access_a, access_b)>;

 public:
  /// sums += A's rows from first_row on times B's columns from first_column on, over `depth` steps.
  static __device__ __forceinline__ void accumulate(const Operand& a, int first_row,
                                                    const Operand& b, int first_column,
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

/// The operands of one matrix of the batch.
template <class P>
__device__ Operand operand_a(const P& p, int batch) {
  return {p.a.data + batch * p.a.strides[0], p.a.strides[1], p.m(), p.a.strides[2]};
}
template <class P>
__device__ Operand operand_b(const P& p, int batch) {
  return {p.b.data + batch * p.b.strides[0], p.b.strides[2], p.n(), p.b.strides[1]};
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
