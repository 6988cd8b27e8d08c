// SPDX-License-Identifier: Apache-2.0
// SwizzledTile: shared memory layout of a matrix operand's tile ("128-byte swizzle"). Threads,
// ldmatrix, TMA and wgmma access it 16 bytes at a time without bank conflicts.
//
// A tile is Rows (of M or N) by `depth` (of K), the number of elements in 128 bytes. It consists of
// lines of 128 bytes; 16-byte chunk c of line l is stored at chunk c ^ (l % 8) of its line.
//   KMajor        a line holds `depth` elements of one row; for operands contiguous along K
//   otherwise     a line holds 128 / sizeof(T) rows at one k; `depth` lines are a panel, and panels
//                 are stored one after another. For operands contiguous along the rows.
// In both layouts, a 16-byte chunk of contiguous elements in global memory is a chunk of a line.
#pragma once

#include <cstdint>

#include "rung/device/tensor_map.hpp"

namespace rung::inline RUNG_TARGET {

template <class T, int Rows_, bool KMajor>
struct SwizzledTile {
  static constexpr int rows = Rows_;
  static constexpr int line = 128;  // bytes
  static constexpr int line_elements = line / static_cast<int>(sizeof(T));
  static constexpr int depth = line_elements;  // elements of K
  static constexpr int bytes = rows * line;    // of the whole tile
  static constexpr int panel_rows = KMajor ? rows : line_elements;
  static constexpr int panel_bytes = KMajor ? bytes : depth * line;
  static_assert(rows % panel_rows == 0 && rows % 8 == 0);

  /// Returns an element's offset in bytes from the tile's begin, which is 1024-byte aligned.
  static RUNG_HD constexpr int place(int row, int k) {
    constexpr int element = static_cast<int>(sizeof(T));
    if constexpr (KMajor) return swizzled<Swizzle::bytes_128>(row * line + k * element);
    return row / panel_rows * panel_bytes +
           swizzled<Swizzle::bytes_128>(k * line + row % panel_rows * element);
  }
};

}  // namespace rung::inline RUNG_TARGET
