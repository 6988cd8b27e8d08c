// SPDX-License-Identifier: Apache-2.0
// SwizzledTile: where the elements of a matrix operand's tile are in shared memory, so that it is
// written and read 16 bytes at a time without bank conflicts - by threads, by ldmatrix, by the copy
// engine and by wgmma, which all know this layout ("128-byte swizzle").
//
// A tile is Rows (of M or N) by `depth` (of K), as much of K as 128 bytes hold. It is in lines of
// 128 bytes, of which eight make a pattern: chunk c of line l stands at place c ^ (l % 8).
//   KMajor        a line is a row's part of K: what is contiguous along K in global memory
//   otherwise     a line is a panel's part of 128 / sizeof(T) rows at one k; panels follow each
//                 other. What is contiguous along the rows.
// In both, element by element what is contiguous in global memory is contiguous in a line.
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
