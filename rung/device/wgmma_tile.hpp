// SPDX-License-Identifier: Apache-2.0
// WgmmaTile: tile of a wgmma operand: its tensor map, the copies from global to shared memory, and
// the descriptors by which wgmma reads it. The layout is SwizzledTile's; the axis that is
// contiguous in global memory stays contiguous.
//
//   using TileA = WgmmaTile<bf16, 128, true>;               // 128 rows, k contiguous
//   const TensorMap a = TileA::map(view);                   // host; view: matrices x rows x k
//   ring.expect(at, TileA::bytes + TileB::bytes);           // one thread (stage_ring.hpp)
//   TileA::load(stage.a, a, matrix, first_row, first_k, ring.full[at.stage]);
//   ...
//   float sums[N / 2];                                      // a warpgroup, 64 rows by N
//   ptx::wgmma_fence(sums);
//   wgmma_tile<TileA, TileB>(sums, stage.a, 64 * warpgroup, stage.b, accumulate);
//   ptx::wgmma_commit();
//   ptx::wgmma_wait<0>(sums);
#pragma once

#include <type_traits>

#include "rung/device/ptx/tensor_copy.hpp"
#include "rung/device/ptx/wgmma.hpp"
#include "rung/device/swizzled_tile.hpp"

namespace rung::inline RUNG_TARGET {

/// Tile of a wgmma operand. `Parts` blocks of a cluster each multicast one part of the tile.
template <class T, int Rows, bool KMajor, int Parts = 1>
struct WgmmaTile : SwizzledTile<T, Rows, KMajor> {
  using Base = SwizzledTile<T, Rows, KMajor>;
  /// Element type of the instruction; floats are rounded to tf32.
  using Operand = std::conditional_t<std::is_same_v<T, float>, ptx::tf32, T>;
  static constexpr ptx::Major major = KMajor ? ptx::Major::k : ptx::Major::mn;
  static constexpr int parts = Parts;
  static_assert(KMajor || sizeof(T) == 2, "wgmma turns 16-bit operands only");
  // A part is a range of rows if KMajor, else of k; 8 lines or a multiple, the swizzle's period.
  static constexpr int part_lines = (KMajor ? Rows : Base::depth) / Parts;
  static constexpr int boxes = KMajor ? 1 : Rows / Base::panel_rows;  // per part
  static_assert(part_lines % 8 == 0 && part_lines <= 256);

  /// Box of the map, whose axes are matrices, lines and elements of a line.
  static constexpr int box[3] = {1, part_lines, Base::line_elements};

  /// Makes a tensor map of matrices x rows x k if KMajor, else of matrices x k x rows.
  static TensorMap map(const View<const T, 3>& operand) {
    return make_tensor_map(operand, box, Swizzle::bytes_128, std::is_same_v<T, float>);
  }

  /// Starts the copies of the tile (of part 0 if there are several); the barrier counts the bytes.
  static __device__ __forceinline__ void load(unsigned char* tile, const TensorMap& map, int matrix,
                                              int first_row, int first_k,
                                              ptx::MemoryBarrier& barrier) {
    for_each_box(0, tile, matrix, first_row, first_k,
                 [&](void* to, const int(&at)[3]) { ptx::tensor_load(to, map, at, barrier); });
  }
  /// Starts the copies of one part to the same address in all blocks whose bits are set in `ranks`.
  static __device__ __forceinline__ void load_multicast(int part, unsigned char* tile,
                                                        const TensorMap& map, int matrix,
                                                        int first_row, int first_k,
                                                        ptx::MemoryBarrier& barrier,
                                                        std::uint16_t ranks) {
    for_each_box(part, tile, matrix, first_row, first_k, [&](void* to, const int(&at)[3]) {
      ptx::tensor_load_multicast(to, map, at, barrier, ranks);
    });
  }

  /// Returns the descriptor of the rows from first_row on, a multiple of 64 (of 8 if KMajor), at
  /// the tile's first k.
  static __device__ __forceinline__ ptx::MatrixDescriptor descriptor(const unsigned char* tile,
                                                                     int first_row) {
    constexpr int pattern = 8 * Base::line;
    const int offset =
        KMajor ? first_row * Base::line : first_row / Base::panel_rows * Base::panel_bytes;
    return ptx::matrix_descriptor(tile + offset, Swizzle::bytes_128, Base::panel_bytes, pattern);
  }
  /// Bytes between the operands of successive instructions, which cover 32 bytes of k each.
  static constexpr int step_bytes = KMajor ? 32 : 32 / static_cast<int>(sizeof(T)) * Base::line;
  static constexpr int steps = Base::line / 32;

 private:
  template <class Start>
  static __device__ __forceinline__ void for_each_box(int part, unsigned char* tile, int matrix,
                                                      int first_row, int first_k,
                                                      const Start& start) {
#pragma unroll
    for (int i = 0; i < boxes; ++i) {
      const int line = part * part_lines;
      const int row = first_row + (KMajor ? line : i * Base::panel_rows);
      const int k = first_k + (KMajor ? 0 : line);
      const int at[3] = {matrix, KMajor ? row : k, KMajor ? k : row};
      start(tile + i * Base::panel_bytes + line * Base::line, at);
    }
  }
};

/// Multiplies 64 rows of A, from first_row on, by 2 * Registers rows of B, from first_column on,
/// over the tiles' whole depth; adds to `sums` if `accumulate`, else overwrites them. Sums are int
/// for 8-bit integers, else float.
template <class TileA, class TileB, class Sum, int Registers>
__device__ __forceinline__ void wgmma_tile(Sum (&sums)[Registers], const unsigned char* a,
                                           int first_row, const unsigned char* b, bool accumulate,
                                           int first_column = 0) {
  constexpr ptx::WgmmaOptions options{.a = TileA::major, .b = TileB::major};
  const ptx::MatrixDescriptor of_a = TileA::descriptor(a, first_row);
  const ptx::MatrixDescriptor of_b = TileB::descriptor(b, first_column);
#pragma unroll
  for (int step = 0; step < TileA::steps; ++step) {
    ptx::wgmma<typename TileA::Operand, typename TileB::Operand, options>(
        sums, ptx::advanced(of_a, step * TileA::step_bytes),
        ptx::advanced(of_b, step * TileB::step_bytes), accumulate || step > 0);
  }
}

}  // namespace rung::inline RUNG_TARGET
