// SPDX-License-Identifier: Apache-2.0
// What histogram's CPU rungs share: x as a row of contiguous pieces, whatever its strides, and the
// way from tables to counts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/histogram/op/bins.hpp"

namespace rung::histogram_cpu {

/// Calls f(pointer, count) for contiguous pieces that make up elements [range) of x in the order of
/// its normalized axes. Where x is not contiguous, pieces are copies of up to 1024 elements.
template <class T, class F>
void for_each_piece(const ConstTensorRef& x, cpu::Range range, F&& f) {
  constexpr std::int64_t copied = 1024;
  constexpr std::int64_t long_enough = 64;  // shorter rows are better gathered than handed over
  const int last = x.rank() - 1;
  const std::int64_t length = x.shape[last];
  const std::int64_t stride = x.strides[last];
  const T* const data = static_cast<const T*>(x.data);
  // Where row `row` begins, in elements; one division per axis and row.
  const auto row_offset = [&](std::int64_t row) {
    std::int64_t offset = 0;
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += row % x.shape[axis] * x.strides[axis];
      row /= x.shape[axis];
    }
    return offset;
  };
  const bool contiguous = stride == 1 && (length >= long_enough || last == 0);
  T buffer[copied];
  std::int64_t filled = 0;
  std::int64_t at = range.begin;
  while (at < range.end) {
    const std::int64_t column = at % length;
    const std::int64_t count = std::min(length - column, range.end - at);
    const T* row = data + row_offset(at / length) + column * stride;
    at += count;
    if (contiguous) {
      f(row, count);
      continue;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      buffer[filled++] = row[i * stride];
      if (filled < copied && (i + 1 < count || at < range.end)) continue;
      f(static_cast<const T*>(buffer), filled);
      filled = 0;
    }
  }
}

/// counts[b] (+)= of(b) for the bins of `range`.
template <class Of>
void store_counts(const Histogram::Args& args, cpu::Range range, const Of& of) {
  visit<std::int32_t, std::int64_t>(args.counts.dtype, [&]<class C>() {
    const auto counts = args.counts.view<C, 1>();
    using Bits = std::make_unsigned_t<C>;  // wraps where a signed sum must not
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      const auto old = args.accumulate ? static_cast<Bits>(counts(b)) : Bits{0};
      counts(b) = static_cast<C>(old + static_cast<Bits>(of(b)));
    }
  });
}

/// Estimated seconds of what each rung does: counts are written, and edges searched. (This and what
/// rungs add to it: a 2-core Zen 5 vCPU.)
inline double common_seconds(const Histogram::Args& args) {
  const double a_count = args.counts.dtype == DType::i64 ? 0.3e-9 : 0.03e-9;
  constexpr double a_search = 3.5e-9;
  const double searching = args.edges.data != nullptr ? static_cast<double>(args.size()) : 0;
  return static_cast<double>(args.bins()) * a_count + searching * a_search;
}

}  // namespace rung::histogram_cpu
