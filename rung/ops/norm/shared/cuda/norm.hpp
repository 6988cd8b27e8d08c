// SPDX-License-Identifier: Apache-2.0
// Shared by norm's CUDA kernels: arguments, element access, and the numbers that the threads of a
// row reduce.
#pragma once

#include <cstdint>
#include <limits>

#include "rung/core/bounds.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/rows.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/shared/lines.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

using norm_lines::Lines;

/// Factors of a row's sums. Terms of sum(s) and sum(s - center) are multiplied by `shrink` in the
/// same multiply-add, so that sums of finite elements do not overflow: a sum that is not finite
/// reveals an element that is not finite.
template <class W>
struct SumFactors {
  W part;         // 1 / n; infinite for n = 0, so that 0 times it is NaN
  W shrink;       // a power of two, 1 / (2 n) at most
  W grow;         // 1 / shrink
  W shrunk_part;  // grow / n: converts a shrunk sum to a mean
};

template <class W>
SumFactors<W> sum_factors(std::int64_t n) {
  W grow = 2;
  while (grow < 2 * static_cast<W>(n)) grow *= 2;
  return {W{1} / static_cast<W>(n), 1 / grow, grow, grow / static_cast<W>(n)};
}

/// Kernel arguments. Absent tensors are null.
template <class T_>
struct NormArguments {
  using T = T_;
  using Wide = Accumulator<T>;

  Lines lines;
  std::int64_t rows;
  std::int64_t n;  // elements per row
  const T* x;
  const T* residual;
  T* y;
  T* sum;
  const void* gamma;
  const void* beta;
  Wide* mean;
  Wide* rstd;
  Wide epsilon;
  SumFactors<Wide> factors;
  bool layer;          // else RMS norm
  bool wide_weights;   // gamma and beta have type Wide, not T
  unsigned zero;       // always 0, unknown to the compiler
  std::int64_t ahead;  // rows between a row and the one prefetched into L2; 0: no prefetch
};

template <class T>
NormArguments<T> call_of(const Norm::Args& args) {
  using Wide = Accumulator<T>;
  NormArguments<T> call{};
  call.lines = norm_lines::lines_of(args);
  call.rows = call.lines.rows.size();
  call.n = call.lines.columns.size();
  call.x = static_cast<const T*>(args.x.data);
  call.residual = static_cast<const T*>(args.residual.data);
  call.y = static_cast<T*>(args.y.data);
  call.sum = static_cast<T*>(args.sum.data);
  call.gamma = args.gamma.data;
  call.beta = args.beta.data;
  call.mean = static_cast<Wide*>(args.mean.data);
  call.rstd = static_cast<Wide*>(args.rstd.data);
  call.epsilon = static_cast<Wide>(args.epsilon);
  call.factors = sum_factors<Wide>(call.n);
  call.layer = args.kind == NormKind::layer;
  const DType weights = args.gamma.data != nullptr ? args.gamma.dtype : args.beta.dtype;
  call.wide_weights = weights != args.x.dtype;
  return call;
}

/// Calls f(call) with the type of x.
template <class F>
void with_call(const Norm::Args& args, F&& f) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() { f(call_of<T>(args)); });
}

template <class W>
__device__ __forceinline__ W inverse_root(W value) {
  if constexpr (sizeof(W) == 8) {
    return 1 / sqrt(value);
  } else {
#if defined(__CUDA_ARCH__)
    return rsqrtf(value);  // within 2 ulp, a tenth of the instructions
#else
    return 1 / sqrtf(value);
#endif
  }
}

/// Returns rstd of a variance; clamps a variance that rounding made negative, propagates a NaN.
template <class W>
__device__ __forceinline__ W rstd_of(W variance, W epsilon) {
  return inverse_root((variance < 0 ? W{0} : variance) + epsilon);
}

/// Coefficients of z = (s - center) rstd + shift. The mean is center + rest / n, more digits than W
/// has; shift carries the part that center cannot represent.
template <class W>
struct Scale {
  W center;
  W rstd;
  W shift;
};

/// Moments about a center: rest = shrink sum(s - center), squares = sum((s - center)^2).
template <class W>
struct Moments {
  W rest;
  W squares;
  __device__ __forceinline__ void add(W distance, W shrink) {
    rest += distance * shrink;
    squares += distance * distance;
  }
};

/// Returns the moments of `count` elements about a center that is smaller by `distance`. Infinite
/// squares are kept, because the correction may be infinite with the other sign.
template <class W>
__device__ __forceinline__ Moments<W> moved_by(Moments<W> moments, W distance, W count,
                                               const SumFactors<W>& factors) {
  const W moved = count * distance;
  if (moments.squares < std::numeric_limits<W>::infinity()) {
    moments.squares += distance * (2 * factors.grow * moments.rest + moved);
  }
  moments.rest += moved * factors.shrink;
  return moments;
}

/// Returns the center for moments of elements whose mean is about `mean`: 0 if the mean is not
/// finite, or so large that s - center may overflow. The squares overflow in either case.
template <class W>
__device__ __forceinline__ W center_near(W mean) {
  constexpr W limit = static_cast<W>(sizeof(W) == 8 ? 0x1p960 : 0x1p100);
  return -limit < mean && mean < limit ? mean : W{0};
}

/// Returns the mean of layer norm's row: NaN if an element is not finite, else finite despite
/// rounding.
template <class Arguments, class W>
__device__ __forceinline__ W mean_of(const Arguments& call, W center, const Moments<W>& moments) {
  constexpr W most = std::numeric_limits<W>::max();
  const W rest = moments.rest * call.factors.shrunk_part;
  return center +
         (rest > most    ? most
          : rest < -most ? -most
                         : rest) +
         (moments.rest - moments.rest);
}
struct AddMoments {
  template <class W>
  __device__ __forceinline__ Moments<W> operator()(Moments<W> a, Moments<W> b) const {
    return {a.rest + b.rest, a.squares + b.squares};
  }
};

/// Returns the offset of row `row` in one of the tensors, with few registers. `flat`: rows have one
/// axis.
template <int tensor, bool flat = false, class T>
__device__ __forceinline__ std::int64_t place(const NormArguments<T>& call, int row) {
  const auto& rows = call.lines.rows;
  const auto& strides = rows.strides[tensor];
  if constexpr (flat) return row * strides[0];
  std::int64_t at = 0;
  for (int axis = rows.rank - 1; axis > 0; --axis) {
    const int extent = static_cast<int>(rows.shape[axis]);
    const int quotient = row / extent;
    at += (row - quotient * extent) * strides[axis];
    row = quotient;
  }
  return at + row * strides[0];
}

/// Returns the scale of a row with known moments about `center`. rstd is 0 if the squares overflow,
/// NaN if an element is not finite.
template <class Arguments, class W>
__device__ __forceinline__ Scale<W> scale_about(const Arguments& call, W center,
                                                Moments<W> moments) {
  W rest = call.layer ? moments.rest * call.factors.shrunk_part : W{0};
  W variance = moments.squares * call.factors.part;
  if (variance < std::numeric_limits<W>::infinity()) {
    variance -= rest * rest;
  } else {
    if (call.layer) variance += moments.rest - moments.rest;
    rest = 0;
  }
  const W rstd = rstd_of(variance, call.epsilon);
  return {center, rstd, -rest * rstd};
}

/// Writes mean and rstd, if requested. Called by one thread per row.
template <bool flat = false, class T, class W = Accumulator<T>>
__device__ __forceinline__ void write_statistics(const NormArguments<T>& call, int row, W center,
                                                 Moments<W> moments, W rstd) {
  if (call.mean != nullptr) {
    call.mean[place<norm_lines::row_mean, flat>(call, row)] = mean_of(call, center, moments);
  }
  if (call.rstd != nullptr) call.rstd[place<norm_lines::row_rstd, flat>(call, row)] = rstd;
}

/// Returns the scale of a row from its threads' combined moments; one thread writes mean and rstd.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ Scale<W> scale_of(const NormArguments<T>& call,
                                             const std::int64_t (&at)[6], W center,
                                             Moments<W> moments, bool writes) {
  const Scale<W> scale = scale_about(call, center, moments);
  if (writes && call.mean != nullptr) {
    call.mean[at[norm_lines::row_mean]] = mean_of(call, center, moments);
  }
  if (writes && call.rstd != nullptr) call.rstd[at[norm_lines::row_rstd]] = scale.rstd;
  return scale;
}
/// Returns gamma[at] or beta[at], or `otherwise` if there are none.
template <class T, class W = Accumulator<T>>
__device__ __forceinline__ W weight(const NormArguments<T>& call, const void* weights,
                                    std::int64_t at, W otherwise) {
  if (weights == nullptr) return otherwise;
  if (call.wide_weights) return static_cast<const W*>(weights)[at];
  return convert<W>(static_cast<const T*>(weights)[at]);
}

/// Returns s = x + residual, rounded to T.
template <class T>
__device__ __forceinline__ T add(T x, T residual) {
  using W = Accumulator<T>;
  return convert<T>(convert<W>(x) + convert<W>(residual));
}

/// Element access for a row with any strides. With a residual, the first pass stores s in sum, or
/// in y until y is written, and the same thread reads it from there; so sum and y may alias x or
/// residual.
template <class T>
struct Elements {
  using W = Accumulator<T>;
  const NormArguments<T>& call;
  std::int64_t at[6] = {};

  __device__ __forceinline__ Elements(const NormArguments<T>& call, std::int64_t row) : call(call) {
    call.lines.rows.offsets(row, at);
  }

  __device__ __forceinline__ T* stored(const std::int64_t (&column)[6]) const {
    return call.sum != nullptr ? call.sum + at[norm_lines::row_sum] + column[norm_lines::column_sum]
                               : call.y + at[norm_lines::row_y] + column[norm_lines::column_y];
  }
  /// Returns s[i]; on the first pass it is computed and stored.
  template <bool first = false>
  __device__ __forceinline__ W s(std::int64_t i) const {
    std::int64_t column[6];
    call.lines.columns.offsets(i, column);
    const T* x = call.x + at[norm_lines::row_x] + column[norm_lines::column_x];
    if (call.residual == nullptr) return convert<W>(*x);
    T* place = stored(column);
    if constexpr (first) {
      const T* r =
          call.residual + at[norm_lines::row_residual] + column[norm_lines::column_residual];
      *place = add(*x, *r);
    }
    return convert<W>(*place);
  }
  __device__ __forceinline__ void write(std::int64_t i, const Scale<W>& scale) const {
    std::int64_t column[6];
    call.lines.columns.offsets(i, column);
    const W z = (s(i) - scale.center) * scale.rstd + scale.shift;
    const W gamma = weight(call, call.gamma, column[norm_lines::column_gamma], W{1});
    const W beta = weight(call, call.beta, column[norm_lines::column_beta], W{0});
    call.y[at[norm_lines::row_y] + column[norm_lines::column_y]] = convert<T>(z * gamma + beta);
  }
};

/// Launches kernel(call) with blocks of threads x rows that loop over rows. `dependent`: the kernel
/// begins with start_dependent().
template <class T>
void launch_call(Context& context, const NormArguments<T>& call, const RowBlock& block,
                 void (*kernel)(NormArguments<T>), bool dependent = false) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  launch(context,
         {.grid = smaller(max_blocks, ceil_div(call.rows, std::int64_t{block.rows})),
          .block = {block.threads, block.rows},
          .shared_bytes = block.shared_bytes,
          .dependent = dependent},
         kernel, call);
}

inline Support require_contiguous_rows(const Norm::Args& args, const Context&) {
  return norm_lines::lines_of(args).contiguous_columns()
             ? supported
             : unsupported("rows, gamma and beta must be contiguous");
}

}  // namespace rung::norm_cuda::inline RUNG_TARGET
