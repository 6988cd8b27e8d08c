// SPDX-License-Identifier: Apache-2.0
// AsyncTile: a block's tiles of a float operand, copied from global to shared memory by cp.async
// one after another along k, while the block multiplies those before.
//
//   AsyncTile<128, 8, threads, TileAccess::wide> a({data, 1, rows, pitch}, first_row);
//   a.copy_first(stage[0], steps);                 // each thread starts its share of the copies
//   a.copy(stage[1]);                              // of the next tile; then async_commit()
//
// A tile is [step of k][outer], a step `pitch` words behind the other. Three things keep the main
// loop free of everything but multiply-adds and loads:
//   - Rows and columns beyond the matrix are read from its last row or column instead: they only
//     reach elements of C that are not written. So no bound is checked, ever.
//   - A depth that is no multiple of the step is dealt with first: the first tile holds what is
//     left over, zero filled, and all others are whole.
//   - Addresses are one pointer that moves and small constant offsets.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/tile/register_tile.hpp"

namespace rung::inline RUNG_TARGET {

/// Modes of copying an operand's tile. wide: four neighbors along m (A) or n (B) an instruction,
/// 16-byte aligned. along_depth: one element, k is the contiguous axis. any: one element, whatever
/// the strides and the alignment, which costs address arithmetic.
enum class TileAccess { any, along_depth, wide };

/// An operand in global memory: `outer` is the axis it shares with C.
struct TileOperand {
  const float* data;
  std::int64_t outer_stride;
  std::int64_t outer_extent;
  std::int64_t depth_stride;
};

/// Copies tiles [step][outer] of an operand, of Extent x Steps elements, one after another.
template <int Extent, int Steps, int Threads, TileAccess access>
class AsyncTile {
  static constexpr int width = access == TileAccess::wide ? 4 : 1;
  static constexpr int count = Extent * Steps / width / Threads;
  static_assert(count * width * Threads == Extent * Steps, "every thread copies as much");
  static_assert(Threads % Steps == 0 && (Threads * width) % Extent == 0);

  const float* from_;         // this thread's first element of the next tile
  std::int64_t tile_stride_;  // elements from a tile to the next
  // From the first element to the i-th, in elements: an array, because clamping makes the distances
  // uneven; for wide copies, which only walk along the steps, one distance.
  static constexpr int offsets = access == TileAccess::wide ? 1 : count;
  int offset_[offsets];
  int to_;         // place of the first element in the tile
  int to_stride_;  // from there to the i-th, times i
  int step_;       // step of the first element
  int step_stride_;

 public:
  /// Elements from a step to the next in shared memory. Single elements may arrive along k, a step
  /// a lane: four words of padding then put the lanes in different banks.
  static constexpr int pitch = Extent + (access == TileAccess::wide ? 0 : 4);
  static constexpr int elements = Steps * pitch;

  __device__ __forceinline__ AsyncTile(const TileOperand& operand, int first) {
    const int thread = thread_index();
    const int depth_stride =
        access == TileAccess::along_depth ? 1 : static_cast<int>(operand.depth_stride);
    tile_stride_ = std::int64_t{Steps} * depth_stride;
    if constexpr (access == TileAccess::wide) {
      // Memory holds whole groups - the extent is a multiple of four, or lines are longer -
      // so that a clamped group is still aligned.
      constexpr int groups = Extent / width;
      const std::int64_t left = ceil_div(operand.outer_extent, width) * width - first;
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
          access == TileAccess::along_depth || operand.depth_stride <= operand.outer_stride;
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

  /// Copies a tile that has only its first `steps`; the others become zero.
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
    return access == TileAccess::wide ? i * offset_[0] : offset_[i % offsets];
  }
};

}  // namespace rung::inline RUNG_TARGET
