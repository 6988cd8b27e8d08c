// SPDX-License-Identifier: Apache-2.0
// Adjacent lines, a pack of them per thread: loads and stores of their rows for the rungs columns
// and panels.
#pragma once

#include "rung/ops/scan/cuda/detail/coarse.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda::columns {

inline constexpr int threads = 128;

using Types = DTypes<float, double, f16, bf16, std::uint8_t, std::int32_t>;

/// Calls visit() with the types of these rungs.
template <class F>
void visit_types(DType dtype, F&& f) {
  [&]<class... Ts>(DTypes<Ts...>) { visit<Ts...>(dtype, std::forward<F>(f)); }(Types());
}

inline Support supports(const Scan::Args& args, const Context&) {
  if (!Types::contains(args.x.dtype)) return unsupported("f32, f64, f16, bf16, u8 and i32 only");
  const int last = args.lines.rank - 1;
  if (args.y.empty() || args.lines.rank == 0) return unsupported("a single line, or none");
  if (args.lines.strides[0][last] != 1 || args.lines.strides[1][last] != 1) {
    return unsupported("lines are not adjacent");
  }
  return supported;
}

/// Rows of a strip in flight: all loads are issued before the first is used, which the compiler
/// must not do by itself, since y may be x. Rows of small elements take more state registers, so
/// fewer are in flight.
template <class T>
inline constexpr int abreast = sizeof(T) >= 4 ? 8 : 4;

/// A pack of neighboring lines, `rows` rows of it in registers.
template <class T>
struct Strip {
  const T* x;
  T* y;
  std::int64_t valid;  // existing lines of the pack
  bool is_wide;        // all lines exist, and all rows are aligned to 16 bytes
  int rows = 0;        // number loaded
  unsigned heads = 0;  // bit i: a segment begins at row i
  Pack<T, pack_size<T>> pack[abreast<T>];

  __device__ __forceinline__ Strip(const Lines<T>& lines, std::int64_t line, std::int64_t exist)
      : x(lines.x_of(line)), y(lines.y_of(line)), valid(exist) {
    constexpr int N = pack_size<T>;
    is_wide = valid >= N && is_wide_aligned<T, N>(x) && is_wide_aligned<T, N>(y) &&
              lines.x_stride % N == 0 && lines.y_stride % N == 0;
  }

  /// Loads up to `abreast` rows from `first`, stopping at `end`.
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

}  // namespace rung::inline RUNG_TARGET::scan_cuda::columns
