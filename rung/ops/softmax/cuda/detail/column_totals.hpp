// SPDX-License-Identifier: Apache-2.0
// Packs across columns: a thread accumulates the totals of `width` adjacent columns, several packs
// at a time, and computes their results.
#pragma once

#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

/// Packs of a thread that are loaded before the first is used.
inline constexpr int deep_packs = 4;

/// Returns a pack of -infinity, which changes no total.
template <class T>
__device__ __forceinline__ PackedWords empty_pack() {
  Pack<T, vector_width<T>> infinities;
#pragma unroll
  for (int i = 0; i < vector_width<T>; ++i) {
    infinities[i] = convert<T>(-std::numeric_limits<Accumulator<T>>::infinity());
  }
  return words_of<T>(infinities);
}

/// Totals of a thread's columns.
template <class T>
struct ColumnTotals {
  using Sum = Accumulator<T>;
  static constexpr int width = vector_width<T>;
  Total<Sum> of[width];

  __device__ __forceinline__ ColumnTotals() {
#pragma unroll
    for (auto& total : of) total = {no_maximum<Sum>, 0};
  }
  /// Adds packs; rescales the sums once per two or four packs.
  template <int packs>
  __device__ __forceinline__ void add(const PackedWords (&read)[packs], const Power<Sum>& power) {
    constexpr int together =
        smaller(packs, std::is_class_v<T> ? 2 : deep_packs);  // limited by registers
#pragma unroll
    for (int first = 0; first < packs; first += together) {
      Pack<Sum, width> wide[together];
#pragma unroll
      for (int k = 0; k < together; ++k) wide[k] = widen<Sum, T>(read[first + k]);
#pragma unroll
      for (int j = 0; j < width; ++j) {
        Sum maximum = of[j].maximum;
#pragma unroll
        for (int k = 0; k < together; ++k) maximum = Larger{}(maximum, wide[k][j]);
        of[j].sum *= power(of[j].maximum - maximum);
        of[j].maximum = maximum;
#pragma unroll
        for (int k = 0; k < together; ++k) of[j].sum += power(wide[k][j] - maximum);
      }
    }
  }
};

/// Maxima of a thread's columns, and the reciprocals or logarithms of their sums.
template <class T>
struct ColumnResults {
  using Sum = Accumulator<T>;
  static constexpr int width = vector_width<T>;
  Sum maximum[width];
  Sum last[width];

  __device__ __forceinline__ void set(int j, const Total<Sum>& total, bool log) {
    maximum[j] = total.maximum;
    last[j] = log ? logarithm(total.sum) : reciprocal(total.sum);
  }
  [[nodiscard]] __device__ __forceinline__ PackedWords of(const PackedWords& read,
                                                          const SoftmaxCall<T, T>& p,
                                                          const Power<Sum>& power) const {
    Pack<Sum, width> wide = widen<Sum, T>(read);
#pragma unroll
    for (int j = 0; j < width; ++j) {
      const Sum difference = wide[j] - maximum[j];
      wide[j] = p.log ? difference * p.scale - last[j] : power(difference) * last[j];
    }
    return narrow<T>(wide);
  }
};

}  // namespace rung::softmax_cuda::inline RUNG_TARGET
