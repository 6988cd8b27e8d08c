// SPDX-License-Identifier: Apache-2.0
// Lines side by side: how rows of them are read, and the kernels of the rung columns, a pack of
// lines a thread.
#pragma once

#include "rung/ops/scan/cuda/detail/coarse.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda::columns {

inline constexpr int threads = 128;

using Types = DTypes<float, double, f16, bf16, std::uint8_t, std::int32_t>;

/// visit() for these.
template <class F>
void visit_types(DType dtype, F&& f) {
  [&]<class... Ts>(DTypes<Ts...>) { visit<Ts...>(dtype, std::forward<F>(f)); }(Types());
}

inline Support supports(const Scan::Args& args, const Context&) {
  if (!Types::contains(args.x.dtype)) return unsupported("f32, f64, f16, bf16, u8 and i32 only");
  const int last = args.lines.rank - 1;
  if (args.y.empty() || args.lines.rank == 0) return unsupported("a single line, or none");
  if (args.lines.strides[0][last] != 1 || args.lines.strides[1][last] != 1) {
    return unsupported("lines do not lie side by side");
  }
  return supported;
}

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

/// Rows of a strip that are on their way at a time: all are asked for before the first is needed,
/// which the compiler may not do by itself, as y may be x. Of small elements a row has more states.
template <class T>
inline constexpr int abreast = sizeof(T) >= 4 ? 8 : 4;

/// A pack of neighbouring lines, some rows of it at a time in registers.
template <class T>
struct Strip {
  const T* x;
  T* y;
  std::int64_t valid;  // lines that exist
  bool is_wide;        // all do, and all rows lie on 16 bytes
  int rows = 0;        // loaded
  unsigned heads = 0;  // a bit a row: a segment begins
  Pack<T, pack_size<T>> pack[abreast<T>];

  __device__ __forceinline__ Strip(const Lines<T>& lines, std::int64_t line, std::int64_t exist)
      : x(lines.x_of(line)), y(lines.y_of(line)), valid(exist) {
    constexpr int N = pack_size<T>;
    is_wide = valid >= N && is_wide_aligned<T, N>(x) && is_wide_aligned<T, N>(y) &&
              lines.x_stride % N == 0 && lines.y_stride % N == 0;
  }

  /// Rows from `first` on, as far as `end`.
  __device__ __forceinline__ void load(const Lines<T>& lines, std::int64_t first,
                                       std::int64_t end) {
    rows = end - first >= abreast<T> ? abreast<T> : end > first ? static_cast<int>(end - first) : 0;
    const T* from = x + first * lines.x_stride;
    if (is_wide && rows == abreast<T>) {
#pragma unroll
      for (int i = 0; i < abreast<T>; ++i) pack[i] = load_aligned(from + i * lines.x_stride);
    } else {
#pragma unroll
      for (int i = 0; i < abreast<T>; ++i) {
        if (i < rows) pack[i] = load_pack(from + i * lines.x_stride, 1, valid);
      }
    }
    heads = 0;
    if (lines.heads == nullptr) return;
    for (int i = 0; i < rows; ++i) {
      heads |= (lines.heads[(first + i) / 32] >> ((first + i) % 32) & 1) << i;
    }
  }
  [[nodiscard]] __device__ __forceinline__ bool begins_at(int i) const {
    return (heads >> i & 1) != 0;
  }
  __device__ __forceinline__ void store(const Lines<T>& lines, std::int64_t row,
                                        const Pack<T, pack_size<T>>& result) const {
    T* to = y + row * lines.y_stride;
    is_wide ? store_aligned(to, result) : store_pack(to, 1, valid, result);
  }
};

template <class T>
__global__ void __launch_bounds__(threads)
    scan_column_totals(Lines<T> lines, Segmented<T> policy, Cut cut,
                       Flagged<ScanState<T>>* totals) {
  constexpr int N = pack_size<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.count();
       i += step) {
    const Walk<T> walk(cut, lines.n, i);
    Strip<T> strip(lines, walk.line(cut), walk.valid);
    ScanState<T> running[N];
    unsigned any = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) running[k] = policy.identity.value;
    for (std::int64_t first = walk.begin; first < walk.end; first += abreast<T>) {
      strip.load(lines, first, walk.end);
      any |= strip.heads;
#pragma unroll
      for (int i = 0; i < abreast<T>; ++i) {
        if (i >= strip.rows) break;
        const bool head = strip.begins_at(i);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const auto element = convert<ScanState<T>>(strip.pack[i][k]);
          running[k] = head ? element : policy.functor(running[k], element);
        }
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
  constexpr int at_a_time = 8;
  const std::int64_t lines = cut.strips * pack_size<T>;  // a row of pieces
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.outer * lines;
       i += step) {
    const auto total = [&](std::int64_t piece) -> auto& {
      return totals[(i / lines * cut.pieces + piece) * lines + i % lines];
    };
    auto carry = policy.identity;
    for (std::int64_t first = 0; first < cut.pieces; first += at_a_time) {
      Flagged<ScanState<T>> part[at_a_time];
#pragma unroll
      for (int k = 0; k < at_a_time; ++k) {
        if (first + k < cut.pieces) part[k] = total(first + k);
      }
#pragma unroll
      for (int k = 0; k < at_a_time; ++k) {
        if (first + k >= cut.pieces) break;
        total(first + k) = carry;
        carry = policy.combine(carry, part[k]);
      }
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
    Strip<T> strip(lines, walk.line(cut), walk.valid);
    ScanState<T> running[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      running[k] = carries != nullptr ? carries[walk.slot(cut) + k].value : policy.identity.value;
    }
    for (std::int64_t first = walk.begin; first < walk.end; first += abreast<T>) {
      strip.load(lines, first, walk.end);
#pragma unroll
      for (int i = 0; i < abreast<T>; ++i) {
        if (i >= strip.rows) break;
        const bool head = strip.begins_at(i);
        Pack<T, N> result;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          if (head) running[k] = policy.identity.value;
          const auto after = policy.functor(running[k], convert<ScanState<T>>(strip.pack[i][k]));
          result[k] = convert<T>(exclusive ? running[k] : after);
          running[k] = after;
        }
        strip.store(lines, first + i, result);
      }
    }
  }
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda::columns
