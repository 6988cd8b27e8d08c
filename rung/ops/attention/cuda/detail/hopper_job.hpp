// SPDX-License-Identifier: Apache-2.0
// HopperJob: argument of the TMA and wgmma kernels, their requirements, and the store of a warp's
// rows of o. Requires compute capability 9.0.
#pragma once

#include "rung/device/tile/panel_tile.hpp"
#include "rung/ops/attention/cuda/detail/apply_rule.hpp"
#include "rung/ops/attention/cuda/detail/exact_row.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

constexpr int warpgroup = 128;  // threads per warpgroup
constexpr int group_rows = 64;  // queries per warpgroup: the M of a wgmma

/// Coordinates of a row in a tensor map.
struct Origin {
  int batch, row;
};

/// Kernel arguments: QueryJob and the tensor maps of the operands.
template <class T>
struct HopperJob : QueryJob<T> {
  TensorMap q, k, v, o;

  /// Return the coordinates of a batch element's first row in the tensor maps.
  [[nodiscard]] __device__ __forceinline__ Origin query_origin(int batch) const {
    if (this->heads.query_offsets.data == nullptr) return {batch, 0};
    return {0, static_cast<int>(this->heads.query_rows(batch).first)};
  }
  [[nodiscard]] __device__ __forceinline__ Origin key_origin(int batch) const {
    if (this->heads.key_offsets.data == nullptr) return {batch, 0};
    return {0, static_cast<int>(this->heads.key_rows(batch).first)};
  }
};

/// Writes a warp's 16 rows of o and lse. The rows pass through the warp's rows of `tile` in shared
/// memory, from where TMA stores those that exist; `row` is the first of them in the tile. Lane 0
/// must wait for the stores (bulk_wait_read) before the tile is reused. Packed: queries may be
/// packed.
template <class T, class Tile, int Width, bool Packed = true>
__device__ __forceinline__ void write_rows(const HopperJob<T>& job, const BlockQueries& work,
                                           int row, unsigned char* tile, RowSoftmax& softmax,
                                           const float (&sums)[Width / 2]) {
  const int lane = lane_of_thread();
  const int first = work.first + row;
  if (first >= work.queries) return;
  float factor[2];
  finish_rows(job, work, softmax, factor);
  write_log_sums(job, work, first, softmax);
  // Lane 8 i + r of a stmatrix supplies the address of row r of its 8 x 8 matrix i: matrices 0 and
  // 1 are stacked vertically, 2 and 3 are to their right.
  float check[2] = {0, 0};  // NaN if the row has an infinity or NaN
#pragma unroll
  for (int block = 0; block < Width / 16; ++block) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = sums[8 * block + 2 * i] * factor[i % 2];
      const float high = sums[8 * block + 2 * i + 1] * factor[i % 2];
      check[i % 2] = fmaf(low, 0.0f, fmaf(high, 0.0f, check[i % 2]));
      words[i] = pack_halves<T>(low, high);
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
  if (Packed && job.heads.query_offsets.data != nullptr && first + warp_rows > work.queries) {
    // The rows below the last query in the tensor map are those of the next batch element.
    __syncwarp();
    const auto o = job.heads.o_of(work.batch).at(work.head);
    for (int at = 0; at < work.queries - first; ++at) {
      for (int column = lane; column < job.value_width(); column += warp_size) {
        o(first + at, column) = *reinterpret_cast<const T*>(tile + Tile::place(row + at, column));
      }
    }
    return;
  }
  ptx::fence_async_proxy();
  __syncwarp();
  if (lane == 0) {
    const Origin origin = Packed ? job.query_origin(work.batch) : Origin{work.batch, 0};
#pragma unroll
    for (int panel = 0; panel < Tile::panels; ++panel) {
      const int column = panel * Tile::panel_columns;
      if (column < job.value_width()) {
        ptx::tensor_store(job.o, {origin.batch, work.head, origin.row + first, column},
                          tile + Tile::place(row, column));
      }
    }
    ptx::bulk_commit();
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Box of O's tensor map: the rows of a warp.
constexpr int o_box[4] = {1, 1, warp_rows, 64};

inline Support require_hopper(const Attention::Args& args, const Context& context, int rows) {
  if (const Support tensor = require_tensor_cores(args, rows); !tensor) return tensor;
  if (args.has_e4m3_keys()) return unsupported("k and v are e4m3");
  if (args.has_pages()) return unsupported("page_table is given");
  if (context.info().compute_capability < 90) {
    return unsupported("wgmma and TMA need compute capability 9.0");
  }
  // TMA stores whole 16-byte pieces, including the one in which a row ends.
  if (args.value_width() % 8 != 0) return unsupported("Dv is no multiple of 8");
  return visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    for (const auto& operand : {args.q, args.k, args.v, ConstTensorRef(args.o)}) {
      const Support map =
          tensor_map_support(operand.template view<const T, 4>(), o_box, Swizzle::bytes_128);
      if (!map) return map;
    }
    return supported;
  });
}

/// Returns the kernel arguments; the tensor maps depend on the tile types TileQ and TileK.
template <class T, class TileQ, class TileK>
HopperJob<T> hopper_job(const Attention::Args& args, const Context& context, int rows) {
  HopperJob<T> job{query_job<T>(args, context, rows), {}, {}, {}, {}};
  job.q = TileQ::map(job.heads.q);
  job.k = TileK::map(job.heads.k);
  job.v = TileK::map(job.heads.v);
  job.o = make_tensor_map(job.heads.o, o_box, Swizzle::bytes_128);
  return job;
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
