// SPDX-License-Identifier: Apache-2.0
// PanelTile: tile of 16-bit elements in shared memory, in a layout that TMA loads and stores and
// that wgmma multiplies along either axis. Compute capability 9.0.
//
// Shapes   Rows x Columns in panels of 64 columns (128 bytes per row, "128-byte swizzle": 16-byte
//          chunk c of row r is stored at chunk c ^ (r % 8)), one panel after another. Rows and
//          columns outside the tensor are zero. The same tile is a K-major operand of products
//          along its columns (Q K^T) and an MN-major operand of products along its rows (P V).
// Owner    the caller provides `bytes` bytes, aligned to 1024.
// Cost     one TMA instruction per panel; operands and stmatrix without bank conflicts.
//
//   using TileK = PanelTile<bf16, 128, 64>;                  // 128 keys, 64 elements of each
//   const TensorMap k = TileK::map(view);                    // host; view: two axes x rows x width
//   ring.expect(at, TileK::bytes);                           // one thread (stage_ring.hpp)
//   TileK::load(tile, k, batch, head, first_row, ring.full[at.stage]);
#pragma once

#include "rung/device/load.hpp"
#include "rung/device/ptx/store_matrix.hpp"
#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/device/ptx/wgmma.hpp"

namespace rung::inline RUNG_TARGET {

template <class T, int Rows, int Columns>
struct PanelTile {
  static_assert(sizeof(T) == 2, "wgmma turns 16-bit operands only");
  static constexpr int panel_columns = 64;
  static constexpr int line = 128;  // bytes
  static constexpr int pattern = 8 * line;
  static constexpr int panels = Columns / panel_columns;
  static constexpr int panel_bytes = Rows * line;
  static constexpr int bytes = panels * panel_bytes;
  static_assert(Columns % panel_columns == 0 && Rows % 8 == 0 && Rows <= 256);

  static constexpr int box[4] = {1, 1, Rows, panel_columns};
  static TensorMap map(const View<const T, 4>& heads) {
    return make_tensor_map(heads, box, Swizzle::bytes_128);
  }

  /// Starts copying rows from first_row on; the barrier counts their bytes.
  static __device__ __forceinline__ void load(unsigned char* tile, const TensorMap& map, int batch,
                                              int head, int first_row,
                                              ptx::MemoryBarrier& barrier) {
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      ptx::tensor_load(tile + panel * panel_bytes, map,
                       {batch, head, first_row, panel * panel_columns}, barrier);
    }
  }

  /// Returns an element's offset in bytes from the tile's begin, which is 1024-byte aligned.
  static RUNG_HD constexpr int place(int row, int column) {
    return column / panel_columns * panel_bytes + place_in_panel(row, column % panel_columns);
  }
  static RUNG_HD constexpr int place_in_panel(int row, int column) {
    return swizzled<Swizzle::bytes_128>(row * line + column * 2);
  }

  /// Returns the descriptor of the operand whose rows, from first_row (a multiple of 8) on, are M
  /// or N and whose columns are K: the 16 columns from 16 step on.
  static __device__ __forceinline__ ptx::MatrixDescriptor along_columns(const unsigned char* tile,
                                                                        int first_row, int step) {
    constexpr int steps = panel_columns / 16;
    return ptx::advanced(ptx::matrix_descriptor(tile, Swizzle::bytes_128, panel_bytes, pattern),
                         first_row * line + step / steps * panel_bytes + step % steps * 32);
  }
  /// Returns the descriptor of the operand whose columns are N and whose rows are K: the 16 rows
  /// from 16 step on.
  static __device__ __forceinline__ ptx::MatrixDescriptor along_rows(const unsigned char* tile,
                                                                     int step) {
    return ptx::advanced(ptx::matrix_descriptor(tile, Swizzle::bytes_128, panel_bytes, pattern),
                         step * 16 * line);
  }

  /// Zeroes rows from first_row on; thread `thread` of `threads` calls it. Afterwards each thread
  /// calls fence_async_proxy(), and a barrier follows.
  static __device__ __forceinline__ void clear_rows(unsigned char* tile, int first_row, int thread,
                                                    int threads) {
    const int chunks = (Rows - first_row) * (line / 16);
    for (int i = thread; i < panels * chunks; i += threads) {
      unsigned char* const to =
          tile + i / chunks * panel_bytes + first_row * line + i % chunks * 16;
      store_wide(reinterpret_cast<unsigned*>(to), Pack<unsigned, 4>{});
    }
  }
};

}  // namespace rung::inline RUNG_TARGET
