// SPDX-License-Identifier: Apache-2.0
// AsyncTile: copies a block's tiles of a float operand from global to shared memory by cp.async,
// one after another along k, while the block multiplies earlier tiles.
//
//   AsyncTile<128, 8, threads, TileAccess::wide> a({data, 1, rows, pitch}, first_row);
//   a.copy_first(stage[0], steps);                 // each thread starts its part of the copies
//   a.copy(stage[1]);                              // the next tile; then async_commit()
//
// A tile is [step of k][outer], with `pitch` words from one step to the next. The main loop
// consists of multiply-adds and loads only:
//   - Rows and columns beyond the matrix are clamped to its last row or column: they only affect
//     elements of C that are not stored. No bounds are checked.
//   - The remainder of the depth comes first: the first tile holds it, zero padded, and all other
//     tiles are whole.
//   - Addresses are one moving pointer plus small constant offsets.
#pragma once

#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/tile/register_tile.hpp"

namespace rung::inline RUNG_TARGET {

/// Copy modes of an operand's tile. wide: four neighbors along m (A) or n (B) per instruction,
/// 16-byte aligned. along_outer: one element per instruction, m or n is the contiguous axis.
/// along_depth: one element per instruction, k is the contiguous axis. any: one element per
/// instruction, any strides and alignment, which costs address arithmetic.
enum class TileAccess { any, along_depth, wide, along_outer };

/// An operand in global memory; `outer` is its axis along m (A) or n (B).
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
  // If lanes run along the outer axis, all copies of a thread have the same outer position.
  static constexpr bool outer_lanes =
      access == TileAccess::wide || access == TileAccess::along_outer;
  static constexpr int count = Extent * Steps / width / Threads;
  static_assert(count * width * Threads == Extent * Steps, "every thread copies as much");
  static_assert(Threads % Steps == 0 && (Threads * width) % Extent == 0);

  const float* from_;         // this thread's first element of the next tile
  std::int64_t tile_stride_;  // elements from a tile to the next
  // Offset of the i-th element from the first, in elements: an array, because clamping makes the
  // distances uneven. If a thread's copies advance along the steps only, one number: the distance
  // from one element to the next.
  static constexpr int offsets = outer_lanes ? 1 : count;
  int offset_[offsets];
  int to_;         // index of the first element in the tile
  int to_stride_;  // from one element of this thread to its next
  int step_;       // step of the first element
  int step_stride_;

 public:
  /// Elements from a step to the next in shared memory. Single elements may be copied along k, one
  /// step per lane: four words of padding then put the lanes in different banks.
  static constexpr int pitch = Extent + (outer_lanes ? 0 : 4);
  static constexpr int elements = Steps * pitch;

  __device__ __forceinline__ AsyncTile(const TileOperand& operand, int first) {
    const int thread = thread_index();
    const int depth_stride =
        access == TileAccess::along_depth ? 1 : static_cast<int>(operand.depth_stride);
    tile_stride_ = std::int64_t{Steps} * depth_stride;
    if constexpr (outer_lanes) {
      // Wide copies: either the outer extent is a multiple of four, or the stride between steps
      // leaves room for a whole last group: a clamped group is aligned and readable.
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
      // Lanes run along the contiguous axis. If `access` fixes it at compile time, each copy's
      // offset reduces to one constant.
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

  /// Starts every `of`-th copy of the next tile, from the `part`-th on; advance() follows the last
  /// part. Copies spread over the steps of the main loop leave its loads of fragments in between.
  __device__ __forceinline__ void copy_part(float* tile, int part, int of) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (i % of == part) {
        ptx::async_copy<width * 4>(tile + to_ + i * to_stride_, from_ + offset(i));
      }
    }
  }
  __device__ __forceinline__ void advance() { from_ += tile_stride_; }

  /// Starts copying a tile of which only the first `steps` steps exist; the others become zero.
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
    return outer_lanes ? i * offset_[0] : offset_[i % offsets];
  }
};

}  // namespace rung::inline RUNG_TARGET
