// SPDX-License-Identifier: Apache-2.0
// Divisors of a row of windows, for pool and pool_backward: the number of taps of an average, or
// the sum of the taps' weights.
//
// Cost     recomputed only if the block of windows, or its rows of taps, differs from the previous
//          one; windows with all columns of taps share one divisor.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/pool/pool.hpp"
#include "rung/ops/pool/shared/window.hpp"

namespace rung {

template <class T>
class PoolDivisors {
 public:
  using S = Accumulator<T>;

  /// Uses `memory` of the caller, one element per window of a block. With `inverts`, the divisors
  /// of an average are reciprocals.
  template <class Args>
  PoolDivisors(const Args& args, S* memory, bool inverts)
      : rows_(args.rows),
        columns_(args.columns),
        weights_(args.options.weights),
        is_weighted_(args.kind() == Pooling::weighted),
        counts_padding_(args.options.count_padding),
        inverts_(inverts),
        of_window_(memory) {}

  /// Returns the divisors of windows [first, first + count) of row `oh`.
  const S* of_block(std::int64_t oh, std::int64_t first, std::int64_t count) {
    const PoolTaps rows = counted(rows_, oh);
    const bool has_same_rows = rows.begin == last_rows_.begin && rows.end == last_rows_.end;
    if (has_same_rows && first == last_first_) return of_window_;
    last_first_ = first;
    const std::int64_t padding = columns_.padding;
    const std::int64_t last =  // where the last window with all columns of taps may begin
        columns_.in + (counts_padding_ ? padding : 0) - (columns_.kernel - 1) * columns_.dilation -
        1;
    const std::int64_t begin = counts_padding_ ? 0 : ceil_div(padding, columns_.stride);
    const std::int64_t end =
        last < -padding ? 0 : std::min((last + padding) / columns_.stride + 1, columns_.out);
    if (!has_same_rows && begin < end) of_full_ = of(rows, {0, columns_.kernel});
    last_rows_ = rows;
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t ow = first + i;
      const std::int64_t until = ow < begin || ow >= end ? i + 1 : std::min(count, end - first);
      const S value = ow < begin || ow >= end ? of(rows, counted(columns_, ow)) : of_full_;
      std::fill(of_window_ + i, of_window_ + until, value);
      i = until;
    }
    return of_window_;
  }

 private:
  [[nodiscard]] S of(PoolTaps rows, PoolTaps columns) const {
    if (!is_weighted_) {
      const auto taps = static_cast<S>(rows.count() * columns.count());
      return inverts_ ? S{1} / taps : taps;
    }
    const auto* weights = static_cast<const T*>(weights_.data);
    S sum = 0;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        sum += static_cast<S>(weights[i * weights_.strides[0] + j * weights_.strides[1]]);
      }
    }
    return sum;
  }

  [[nodiscard]] PoolTaps counted(const PoolAxis& axis, std::int64_t o) const {
    return counts_padding_ ? PoolTaps{0, axis.padded_taps(o)} : axis.taps(o);
  }

  const PoolAxis& rows_;
  const PoolAxis& columns_;
  const ConstTensorRef& weights_;
  bool is_weighted_, counts_padding_, inverts_;
  S* of_window_;
  PoolTaps last_rows_{-1, -1};
  std::int64_t last_first_ = -1;
  S of_full_ = 0;  // of windows with all columns of taps
};

}  // namespace rung
