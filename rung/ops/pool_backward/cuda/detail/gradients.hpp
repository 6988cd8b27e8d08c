// SPDX-License-Identifier: Apache-2.0
// Shared by pool_backward's CUDA rungs: kernel arguments, and the divisors of windows.
#pragma once

#include <cstdint>

#include "rung/core/require.hpp"
#include "rung/device/load.hpp"
#include "rung/ops/pool_backward/op/pool_backward.hpp"

namespace rung::pool_backward_cuda::inline RUNG_TARGET {

template <class T>
struct Gradients {
  View<const T, 4> dy;
  View<T, 4> dx;
  View<const std::int32_t, 4> indices_i32;  // for max: one of the two has data
  View<const std::int64_t, 4> indices_i64;
  View<const T, 4> x;  // for l2
  View<const T, 4> y;
  View<const T, 2> weights;  // for weighted
  PoolAxis rows;
  PoolAxis columns;
  bool count_padding;
  bool channels_innermost;
};

template <Pooling kind, class T>
__device__ __forceinline__ Accumulator<T> divisor_of(const Gradients<T>& p, std::int64_t oh,
                                                     std::int64_t ow) {
  using Sum = Accumulator<T>;
  const bool padded = p.count_padding;
  const PoolTaps rows = padded ? PoolTaps{0, p.rows.padded_taps(oh)} : p.rows.taps(oh);
  const PoolTaps columns = padded ? PoolTaps{0, p.columns.padded_taps(ow)} : p.columns.taps(ow);
  if constexpr (kind == Pooling::average) return static_cast<Sum>(rows.count() * columns.count());
  Sum sum = 0;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      sum += convert<Sum>(p.weights(i, j));
    }
  }
  return sum;
}

/// Windows over a position without dilation: PoolAxis::windows_over() in 32 bits.
struct Windows {
  int begin, end;
};
__device__ __forceinline__ Windows windows_over(const PoolAxis& axis, int at) {
  const auto place = static_cast<unsigned>(at + axis.padding);
  const auto kernel = static_cast<unsigned>(axis.kernel);
  const auto stride = static_cast<unsigned>(axis.stride);
  const int begin = place < kernel ? 0 : static_cast<int>((place - kernel) / stride) + 1;
  return {begin, smaller(static_cast<int>(axis.out), static_cast<int>(place / stride) + 1)};
}

// --- on the host ---------------------------------------------------------------------------------

template <class T>
Gradients<T> gradients_of(const PoolBackward::Args& args) {
  const PoolBackwardOptions& options = args.options;
  Gradients<T> p{};
  p.dy = args.dy.view<const T, 4>();
  p.dx = args.dx.view<T, 4>();
  p.rows = args.rows;
  p.columns = args.columns;
  p.count_padding = options.count_padding;
  p.channels_innermost = args.dx.strides[1] == 1;
  if (options.kind == Pooling::max && options.indices.dtype == DType::i32) {
    p.indices_i32 = options.indices.view<const std::int32_t, 4>();
  } else if (options.kind == Pooling::max) {
    p.indices_i64 = options.indices.view<const std::int64_t, 4>();
  }
  if (options.kind == Pooling::l2) {
    p.x = options.x.view<const T, 4>();
    p.y = options.y.view<const T, 4>();
  }
  if (options.kind == Pooling::weighted) p.weights = options.weights.view<const T, 2>();
  return p;
}

}  // namespace rung::pool_backward_cuda::inline RUNG_TARGET
