// SPDX-License-Identifier: Apache-2.0
// The kernels of the rung columns: lines side by side, a pack of them a thread.
#pragma once

#include "rung/ops/scan/cuda_coarse.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda::columns {

inline constexpr int threads = 128;

/// Strips of lines side by side, and the pieces they are cut into.
struct Cut {
  std::int64_t width;   // of the innermost axis of lines
  std::int64_t strips;  // packs in that
  std::int64_t outer;   // of the other axes
  std::int64_t pieces;  // along the scan axis
  std::int64_t rows;    // of a piece
  [[nodiscard]] RUNG_HD std::int64_t count() const { return outer * strips * pieces; }
};

template <class T>
struct Walk {
  using State = Flagged<ScanState<T>>;
  static constexpr int N = pack_size<T>;
  std::int64_t strip, outer, piece;
  std::int64_t valid;  // lines of the strip that exist
  std::int64_t begin, end;

  __device__ __forceinline__ Walk(const Cut& cut, std::int64_t n, std::int64_t i)
      : strip(i % cut.strips),
        outer(i / cut.strips / cut.pieces),
        piece(i / cut.strips % cut.pieces),
        valid(cut.width - strip * N),
        begin(piece * cut.rows),
        end(begin + cut.rows < n ? begin + cut.rows : n) {}
  [[nodiscard]] __device__ __forceinline__ std::int64_t line(const Cut& cut) const {
    return outer * cut.width + strip * N;
  }
  /// Where the piece's totals lie: side by side for neighbouring strips.
  [[nodiscard]] __device__ __forceinline__ std::int64_t slot(const Cut& cut) const {
    return ((outer * cut.pieces + piece) * cut.strips + strip) * N;
  }
};

__device__ __forceinline__ bool is_head(const unsigned* heads, std::int64_t i) {
  return heads != nullptr && (heads[i / 32] >> (i % 32) & 1) != 0;
}

template <class T>
__global__ void __launch_bounds__(threads)
    scan_column_totals(Lines<T> lines, Segmented<T> policy, Cut cut,
                       Flagged<ScanState<T>>* totals) {
  constexpr int N = pack_size<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.count();
       i += step) {
    const Walk<T> walk(cut, lines.n, i);
    const T* x = lines.x_of(walk.line(cut));
    ScanState<T> running[N];
    unsigned any = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) running[k] = policy.identity.value;
    for (std::int64_t row = walk.begin; row < walk.end; ++row) {
      const auto pack = load_pack(x + row * lines.x_stride, 1, walk.valid);
      const bool head = is_head(lines.heads, row);
      if (head) any = 1;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const auto element = convert<ScanState<T>>(pack[k]);
        running[k] = head ? element : policy.functor(running[k], element);
      }
    }
#pragma unroll
    for (int k = 0; k < N; ++k) totals[walk.slot(cut) + k] = {running[k], any};
  }
}

/// The totals of each line's pieces become what lies before each piece.
template <class T>
__global__ void __launch_bounds__(threads)
    scan_column_carries(Segmented<T> policy, Cut cut, Flagged<ScanState<T>>* totals) {
  const std::int64_t lines = cut.strips * pack_size<T>;  // a row of pieces
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.outer * lines;
       i += step) {
    auto carry = policy.identity;
    for (std::int64_t piece = 0; piece < cut.pieces; ++piece) {
      auto& total = totals[(i / lines * cut.pieces + piece) * lines + i % lines];
      const auto after = policy.combine(carry, total);
      total = carry;
      carry = after;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    scan_columns(Lines<T> lines, Segmented<T> policy, Cut cut, const Flagged<ScanState<T>>* carries,
                 bool exclusive) {
  constexpr int N = pack_size<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.count();
       i += step) {
    const Walk<T> walk(cut, lines.n, i);
    const T* x = lines.x_of(walk.line(cut));
    T* y = lines.y_of(walk.line(cut));
    ScanState<T> running[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      running[k] = carries != nullptr ? carries[walk.slot(cut) + k].value : policy.identity.value;
    }
    for (std::int64_t row = walk.begin; row < walk.end; ++row) {
      const auto pack = load_pack(x + row * lines.x_stride, 1, walk.valid);
      const bool head = is_head(lines.heads, row);
      Pack<T, N> result;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (head) running[k] = policy.identity.value;
        const auto after = policy.functor(running[k], convert<ScanState<T>>(pack[k]));
        result[k] = convert<T>(exclusive ? running[k] : after);
        running[k] = after;
      }
      store_pack(y + row * lines.y_stride, 1, walk.valid, result);
    }
  }
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda::columns
