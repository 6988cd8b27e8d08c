// SPDX-License-Identifier: Apache-2.0
// The epilogue C = alpha sum by TMA stores, for C that a tensor map supports: a warp writes 16 rows
// by 128 bytes of C to shared memory, and fills the next box while TMA stores the first. Compute
// capability 9.0.
#pragma once

#include <cstdint>

#include "rung/device/ptx/store_matrix.hpp"
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/device/tile/strip.hpp"

namespace rung::inline RUNG_TARGET {

/// Box of the map of C: matrices x rows x columns, 128 bytes wide.
template <class Out>
constexpr int strip_box[3] = {1, StripStage::rows, 128 / static_cast<int>(sizeof(Out))};

/// Double buffer of a warp: one box is filled while the other is stored. finish_strip() can use one
/// of them.
struct StripBoxes {
  StripStage box[2];

  /// Waits until TMA has read all boxes. Lane 0 calls it before it exits.
  static __device__ __forceinline__ void drain() { ptx::bulk_wait_read<0>(); }
};

/// Writes 16 rows by 128 bytes of `alpha` times the sums to a box; sums(i) as in finish_strip(),
/// from the box's first column on.
template <class Out, class Factor, class Sums>
__device__ __forceinline__ void fill_box(StripStage& box, Factor alpha, const Sums& sums) {
  const int lane = lane_anew();
  if constexpr (sizeof(Out) == 2) {
    // 16 x 16 elements per instruction: lane 8 i + r passes the address of row r of 8 x 8 matrix i.
    const int row = lane % 16;
#pragma unroll
    for (int block = 0; block < 4; ++block) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int from = 8 * block + 2 * i;
        const Pack<Out, 2> pair =
            convert<Out>(Pack<float, 2>{{alpha * sums(from), alpha * sums(from + 1)}});
        words[i] = std::uint32_t{pair[0].bits} | std::uint32_t{pair[1].bits} << 16;
      }
      const int chunk = 2 * block + lane / 16;
      ptx::store_matrix<4>(box.bytes + swizzled<Swizzle::bytes_128>(row * 128 + chunk * 16), words);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
      const int row = lane / 4 + 8 * (i / 2 % 2);
      const int column = 8 * (i / 4) + 2 * (lane % 4);
      auto* const to =
          reinterpret_cast<Out*>(box.bytes + swizzled<Swizzle::bytes_128>(row * 128 + column * 4));
      const auto scaled = [&](int at) {
        return static_cast<Out>(alpha * static_cast<Factor>(sums(at)));
      };
      store_wide(to, Pack<Out, 2>{{scaled(i), scaled(i + 1)}});
    }
  }
}

/// Stores a warp's 16 x Columns elements of C from (first_row, first_column) on, clipped to `rows`
/// x `columns`. All lanes call it; `turn` is the index of the next box and persists between calls.
template <class Out, int Columns, class Factor, class Sums>
__device__ __forceinline__ void store_strip(const TensorMap& c, StripBoxes& boxes, int& turn,
                                            Factor alpha, int matrix, int first_row,
                                            int first_column, int rows, int columns,
                                            const Sums& sums) {
  constexpr int width = strip_box<Out>[2];
  static_assert(Columns % width == 0);
  const bool leads = threadIdx.x % 32 == 0;
  if (first_row >= rows) return;
#pragma unroll
  for (int piece = 0; piece < Columns / width; ++piece) {
    const int column = first_column + piece * width;
    if (column >= columns) break;
    StripStage& box = boxes.box[turn];
    turn ^= 1;
    if (leads) ptx::bulk_wait_read<1>();  // the earlier store from this box has read it
    __syncwarp();
    fill_box<Out>(box, alpha, [&](int i) { return sums(piece * (width / 2) + i); });
    ptx::fence_async_proxy();
    __syncwarp();
    if (leads) {
      ptx::tensor_store(c, {matrix, first_row, column}, box.bytes);
      ptx::bulk_commit();
    }
  }
}

}  // namespace rung::inline RUNG_TARGET
