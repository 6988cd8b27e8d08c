// SPDX-License-Identifier: Apache-2.0
// One row of y and dy, or a block's part of one, in registers and unconverted.
#pragma once

#include "rung/device/row/register_row.hpp"
#include "rung/ops/softmax_backward/cuda/detail/softmax_backward.hpp"

namespace rung::softmax_backward_cuda::inline RUNG_TARGET {

/// A thread's `packs` packs each of y and dy. 16-bit elements stay packed, in half the registers.
template <class P, int packs, RowKind kind>
class GradientRow {
 public:
  using Sum = typename P::Sum;
  using Out = typename P::Out;
  using T = std::remove_cvref_t<decltype(*P::y)>;
  static constexpr int width = vector_width<T>;

  /// Issues all loads of this thread.
  __device__ __forceinline__ GradientRow(const T* y, const T* dy, std::int64_t length, int lead) {
    const RegisterRow<const T, kind> ys(y, length, lead);
    const RegisterRow<const T, kind> dys(dy, length, lead);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      y_[k] = ys.load(pack_index(k), zero<T>());
      dy_[k] = dys.load(pack_index(k), zero<T>());
    }
    if constexpr (kind == RowKind::shifted) {
      single_y_ = ys.load_single(zero<T>());
      single_dy_ = dys.load_single(zero<T>());
    }
  }
  /// Returns the sum of this thread's terms.
  [[nodiscard]] __device__ __forceinline__ Sum sum(bool log) const {
    Sum sum = 0;
    if constexpr (kind == RowKind::shifted) {
      sum = term_of(convert<Sum>(single_y_), convert<Sum>(single_dy_), log);
    }
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const Pack<Sum, width> y = widen<Sum, T>(y_[k]);
      const Pack<Sum, width> dy = widen<Sum, T>(dy_[k]);
#pragma unroll
      for (int i = 0; i < width; ++i) sum += term_of(y[i], dy[i], log);
    }
    return sum;
  }
  /// Stores this thread's dx, given the sum of the whole row.
  __device__ __forceinline__ void store(const P& p, Out* dx, std::int64_t length, int lead,
                                        Sum sum) const {
    const RegisterRow<Out, kind, width> out(dx, length, lead);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const Pack<Sum, width> y = widen<Sum, T>(y_[k]);
      const Pack<Sum, width> dy = widen<Sum, T>(dy_[k]);
      Pack<Sum, width> results;
#pragma unroll
      for (int i = 0; i < width; ++i) results[i] = gradient_of(y[i], dy[i], sum, p.scale, p.log);
      out.store(pack_index(k), results);
    }
    if constexpr (kind == RowKind::shifted) {
      out.store_single(
          gradient_of(convert<Sum>(single_y_), convert<Sum>(single_dy_), sum, p.scale, p.log));
    }
  }

 private:
  PackedWords y_[packs];
  PackedWords dy_[packs];
  T single_y_;  // of a shifted row
  T single_dy_;
};

/// Returns whether rows of y, dy and dx begin and end at multiples of a pack of T.
template <class T, class Y>
bool is_regular(const SoftmaxBackward::Args& args) {
  constexpr int width = vector_width<T>;
  return rows_are_regular(args.rows, 0, args.y.data, width, 16) &&
         rows_are_regular(args.rows, 1, args.dy.data, width, 16) &&
         rows_are_regular(args.rows, 2, args.dx.data, width, wide_alignment<Y, width>);
}

/// Returns whether the rows of y, dy and dx begin at the same element of a pack of T.
template <class T, class Y>
bool is_shifted(const SoftmaxBackward::Args& args) {
  constexpr int width = vector_width<T>;
  return offsets_agree(args.rows.others, 1, args.dy.data, sizeof(T), args.y.data, sizeof(T),
                       width) &&
         offsets_agree(args.rows.others, 2, args.dx.data, sizeof(Y), args.y.data, sizeof(T), width);
}

}  // namespace rung::softmax_backward_cuda::inline RUNG_TARGET
