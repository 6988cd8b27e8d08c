// SPDX-License-Identifier: Apache-2.0
// RowTile: rows of a head in shared memory, laid out for ldmatrix without bank conflicts; and the
// requirements of the tensor-core rungs. Sizes are below 2^30, so indices are int.
#pragma once

#include <cstdint>

#include "rung/device/collectives.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/swizzled_tile.hpp"
#include "rung/ops/attention_backward/cuda/detail/gradients.hpp"

namespace rung::attention_backward_cuda::inline RUNG_TARGET {

/// A tile of rows in swizzled panels of 64 columns.
template <class T, int Rows, int Width>
struct RowTile {
  using Panel = SwizzledTile<T, Rows, true>;
  static constexpr int bytes = Width / Panel::depth * Panel::bytes;

  static __device__ __forceinline__ int place(int row, int column) {
    return column / Panel::depth * Panel::bytes + Panel::place(row, column % Panel::depth);
  }

  /// Starts the copy of rows [first, first + Rows). Rows outside [begin, end), and columns past the
  /// last up to a multiple of 16, are filled with zeros. `wide`: all rows are aligned to 16 bytes.
  template <int Threads>
  static __device__ __forceinline__ void copy(unsigned char* tile, const View<const T, 2>& from,
                                              int first, int begin, int end, bool wide) {
    constexpr int chunk = 8;
    const auto columns = static_cast<int>(from.shape[1]);
    const int chunks = (columns + 15) / 16 * 2;
    for (int i = static_cast<int>(threadIdx.x); i < Rows * chunks; i += Threads) {
      const int row = i / chunks;
      const int column = i % chunks * chunk;
      unsigned char* const to = tile + place(row, column);
      const bool exists = first + row >= begin && first + row < end;
      const int valid = exists ? max(min(columns - column, chunk), 0) : 0;
      const T* const start = from.data + (valid > 0 ? (first + row) * from.strides[0] : 0);
      if (wide) {
        ptx::async_copy<16>(to, start + (valid > 0 ? column : 0), valid * 2);
      } else {
        store_raw(reinterpret_cast<T*>(to),
                  load_anywhere<chunk>(start, column, valid > 0 ? columns : 0));
      }
    }
  }

  /// Loads four 8 x 8 matrices: at (row, column), 8 rows below, 8 columns to the right, and
  /// diagonal.
  template <bool Transposed = false>
  static __device__ __forceinline__ void load(std::uint32_t (&to)[4], const unsigned char* tile,
                                              int row, int column) {
    const int lane = lane_of_thread();
    ptx::load_matrix<4, Transposed>(to, tile + place(row + lane % 16, column + lane / 16 * 8));
  }
};

// --- on the host ---------------------------------------------------------------------------------

constexpr std::int64_t max_tensor_width = 128;
constexpr std::int64_t max_tensor_size = std::int64_t{1} << 30;

inline bool has_contiguous_rows(const ConstTensorRef& heads) {
  return heads.strides[3] == 1 || heads.shape[3] <= 1;
}

/// Returns whether every row starts at a multiple of `bytes`.
inline bool starts_rows_at(const ConstTensorRef& heads, std::int64_t bytes) {
  const auto element = static_cast<std::int64_t>(size_of(heads.dtype));
  for (int axis = 0; axis < 3; ++axis) {
    if (heads.shape[axis] > 1 && heads.strides[axis] * element % bytes != 0) return false;
  }
  return reinterpret_cast<std::uintptr_t>(heads.data) % static_cast<std::uintptr_t>(bytes) == 0;
}

inline Support require_tensor_cores(const AttentionBackward::Args& args) {
  if (args.q.dtype != DType::f16 && args.q.dtype != DType::bf16) {
    return unsupported("this rung multiplies f16 and bf16");
  }
  if (args.width() > max_tensor_width || args.value_width() > max_tensor_width) {
    return unsupported("D or Dv above 128");
  }
  for (const ConstTensorRef& operand : {args.q, args.k, args.v, args.dout, ConstTensorRef(args.dq),
                                        ConstTensorRef(args.dk), ConstTensorRef(args.dv)}) {
    if (!has_contiguous_rows(operand)) {
      return unsupported("rows of q, k, v, dout, dq, dk and dv must be contiguous");
    }
  }
  if (query_rows(args) > max_tensor_size || key_rows(args) > max_tensor_size) {
    return unsupported("more than 2^30 rows of q or k");
  }
  if (static_cast<double>(args.batch()) * static_cast<double>(args.heads()) > max_tensor_size) {
    return unsupported("more than 2^30 heads of batch elements");
  }
  return supported;
}

/// Calls f.template operator()<T, Width>() with the element type and the padded row width.
template <class F>
void with_width(const AttentionBackward::Args& args, F&& f) {
  const bool narrow = args.width() <= 64 && args.value_width() <= 64;
  visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    if (narrow) return f.template operator()<T, 64>();
    f.template operator()<T, 128>();
  });
}

}  // namespace rung::attention_backward_cuda::inline RUNG_TARGET
