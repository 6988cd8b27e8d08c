// SPDX-License-Identifier: Apache-2.0
// What the rungs on TMA and wgmma share: which part of the work a block has, the operands' products
// by a warpgroup, and how a warp's rows of o leave. Compute capability 9.0.
#pragma once

#include "rung/ops/attention/cuda/detail/exact_row.hpp"
#include "rung/ops/attention/cuda/detail/panel_tile.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

constexpr int warpgroup = 128;  // threads
constexpr int group_rows = 64;  // of queries: what a wgmma multiplies

/// What a kernel is given.
template <class T>
struct HopperJob : QueryJob<T> {
  TensorMap q, k, v, o;
};

/// scores = Q K^T of 64 queries from first_row of their tile on, over the whole width. Issued only.
template <class T, class TileQ, class TileK, int Width, int Registers>
__device__ __forceinline__ void multiply_keys(float (&scores)[Registers], const unsigned char* q,
                                              int first_row, const unsigned char* k) {
#pragma unroll
  for (int step = 0; step < Width / 16; ++step) {
    ptx::wgmma<T>(scores, TileQ::along_columns(q, first_row, step),
                  TileK::along_columns(k, 0, step), step > 0);
  }
}
/// sums += P V, with P in registers. Issued only.
template <class T, class TileV, int Registers, int Steps>
__device__ __forceinline__ void multiply_values(float (&sums)[Registers],
                                                const std::uint32_t (&powers)[Steps][4],
                                                const unsigned char* v) {
#pragma unroll
  for (int step = 0; step < Steps; ++step) {
    ptx::wgmma<T, T, ptx::WgmmaOptions{.b = ptx::Major::mn}>(sums, powers[step],
                                                             TileV::along_rows(v, step), true);
  }
}

/// Writes 16 rows of o and of lse by a warp: through its rows of a tile in shared memory, from
/// where the copy engine stores what exists. `row` is the first in the tile and in the warp's
/// hands; lane 0 waits for the copies (bulk_wait_read) before the tile is used again.
template <class T, class Tile, int Width>
__device__ __forceinline__ void write_rows(const HopperJob<T>& job, const BlockQueries& work,
                                           int row, unsigned char* tile, RowSoftmax& softmax,
                                           const float (&sums)[Width / 2]) {
  const int lane = lane_of_thread();
  const int first = work.first + row;
  if (first >= job.queries()) return;
  softmax.finish();
  const float factor[2] = {softmax.reciprocal(0), softmax.reciprocal(1)};
  write_log_sums(job, work, first, softmax);
  // Lane 8 i + r of a stmatrix tells where row r of its 8 x 8 matrix i is: two below each other,
  // then two to their right.
  float check[2] = {0, 0};  // NaN where the row has an infinity or NaN
#pragma unroll
  for (int block = 0; block < Width / 16; ++block) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = sums[8 * block + 2 * i] * factor[i % 2];
      const float high = sums[8 * block + 2 * i + 1] * factor[i % 2];
      check[i % 2] = fmaf(low, 0.0f, fmaf(high, 0.0f, check[i % 2]));
      words[i] = halves<T>(low, high);
    }
    constexpr int panel_blocks = Tile::panel_columns / 16;
    const int column = 16 * (block % panel_blocks) + lane / 16 * 8;
    ptx::store_matrix<4>(tile + block / panel_blocks * Tile::panel_bytes +
                             Tile::place_in_panel(row + lane % 16, column),
                         words);
  }
  __syncwarp();
  repair_rows<Width>(job, work, first, check, [&](int at, int column, float value) {
    *reinterpret_cast<T*>(tile + Tile::place(row + at, column)) = convert<T>(value);
  });
  ptx::fence_async_proxy();
  __syncwarp();
  if (lane == 0) {
#pragma unroll
    for (int panel = 0; panel < Tile::panels; ++panel) {
      const int column = panel * Tile::panel_columns;
      if (column < job.value_width()) {
        ptx::tensor_store(job.o, {work.batch, work.head, first, column},
                          tile + Tile::place(row, column));
      }
    }
    ptx::bulk_commit();
  }
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
