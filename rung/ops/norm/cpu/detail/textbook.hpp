// SPDX-License-Identifier: Apache-2.0
// What norm's textbook rungs share: a row's elements one by one, wherever they lie.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/shared/cpu/plan.hpp"
#include "rung/ops/norm/shared/lines.hpp"

namespace rung::norm_cpu {

/// mean and rstd of a row; mean is 0 for RMS norm.
template <class Sum>
struct Statistics {
  Sum mean;
  Sum rstd;
};

/// mean and rstd of layer norm's finite elements whose sums overflow; NaN of others.
template <class Sum, class Value>
Statistics<Sum> statistics_past_overflow(const Value& value, std::int64_t n) {
  const Moments<Sum> moments = moments_past_overflow<Sum>(value, n);
  return {moments.center, 1 / moments.squares};
}

/// One call on elements of T; Sum is what its arithmetic is done in.
template <class T, class Sum>
class Textbook {
 public:
  explicit Textbook(const Norm::Args& args) : args_(args), lines_(norm_lines::lines_of(args)) {}

  /// statistics(value, n) for each row, value(i) being s[i]; then y, mean and rstd.
  template <class F>
  void for_each_row(const F& statistics) {
    const std::int64_t n = lines_.columns.size();
    for (std::int64_t row = 0; row < lines_.rows.size(); ++row) {
      lines_.rows.offsets(row, at_);
      if (args_.residual.data != nullptr) add_residual(n);
      const auto value = [&](std::int64_t i) { return static_cast<Sum>(element(i)); };
      const Statistics<Sum> found = statistics(value, n);
      // rstd is 0 where sums overflow, as value - mean would, too.
      const Sum center = found.rstd == 0 ? Sum{0} : found.mean;
      write(args_.mean, at_[norm_lines::row_mean], found.mean);
      write(args_.rstd, at_[norm_lines::row_rstd], found.rstd);
      for (std::int64_t i = 0; i < n; ++i) {
        const Sum z = (value(i) - center) * found.rstd;
        output(i) = static_cast<T>(
            static_cast<Accumulator<T>>(z * weight(args_.gamma, norm_lines::column_gamma, i, 1) +
                                        weight(args_.beta, norm_lines::column_beta, i, 0)));
      }
    }
  }

 private:
  using Wide = Accumulator<T>;

  [[nodiscard]] std::int64_t column(int tensor, std::int64_t i) const {
    std::int64_t at[6];
    lines_.columns.offsets(i, at);
    return at[tensor];
  }
  [[nodiscard]] T& output(std::int64_t i) const {
    return static_cast<T*>(args_.y.data)[at_[norm_lines::row_y] + column(norm_lines::column_y, i)];
  }

  /// s[i] as it is stored: in x, or where add_residual() has put it.
  [[nodiscard]] Wide element(std::int64_t i) const {
    if (args_.residual.data == nullptr) {
      return static_cast<Wide>(static_cast<const T*>(
          args_.x.data)[at_[norm_lines::row_x] + column(norm_lines::column_x, i)]);
    }
    return static_cast<Wide>(args_.sum.data != nullptr ? sum(i) : output(i));
  }
  [[nodiscard]] T& sum(std::int64_t i) const {
    return static_cast<T*>(
        args_.sum.data)[at_[norm_lines::row_sum] + column(norm_lines::column_sum, i)];
  }

  /// s = x + residual, into sum or, when nobody asks for it, into y: y is overwritten later, and
  /// whichever it is, it may be x or residual itself.
  void add_residual(std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const T x = static_cast<const T*>(
          args_.x.data)[at_[norm_lines::row_x] + column(norm_lines::column_x, i)];
      const T r = static_cast<const T*>(
          args_.residual
              .data)[at_[norm_lines::row_residual] + column(norm_lines::column_residual, i)];
      (args_.sum.data != nullptr ? sum(i) : output(i)) =
          static_cast<T>(static_cast<Wide>(x) + static_cast<Wide>(r));
    }
  }

  [[nodiscard]] Sum weight(const ConstTensorRef& tensor, int which, std::int64_t i,
                           Sum otherwise) const {
    if (tensor.data == nullptr) return otherwise;
    const std::int64_t at = column(which, i);
    if (tensor.dtype == dtype_of<T>) {
      return static_cast<Sum>(static_cast<Wide>(static_cast<const T*>(tensor.data)[at]));
    }
    return static_cast<Sum>(static_cast<const Wide*>(tensor.data)[at]);
  }

  static void write(const TensorRef& tensor, std::int64_t at, Sum value) {
    if (tensor.data != nullptr) static_cast<Wide*>(tensor.data)[at] = static_cast<Wide>(value);
  }

  const Norm::Args& args_;
  norm_lines::Lines lines_;
  std::int64_t at_[6] = {};
};

}  // namespace rung::norm_cpu
