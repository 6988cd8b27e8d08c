// SPDX-License-Identifier: Apache-2.0
// Iteration over x of any strides as contiguous pieces, and stores of tables to counts.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "rung/cpu/piece_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/histogram/op/bins.hpp"

namespace rung::histogram_cpu {

/// Calls f(pointer, count) for contiguous pieces of elements [range) of x, in the order of its
/// normalized axes. If x is not contiguous, pieces are copies of up to 1024 elements.
template <class T, class F>
void for_each_piece(const ConstTensorRef& x, cpu::Range range, F&& f) {
  constexpr std::int64_t copied = 1024;
  constexpr std::int64_t long_enough = 64;  // shorter rows are gathered instead
  const int last = x.rank() - 1;
  const std::int64_t length = x.shape[last];
  const std::int64_t stride = x.strides[last];
  const T* const data = static_cast<const T*>(x.data);
  // Returns the offset of row `row`, in elements; one division per axis and row.
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

/// Maximum number of bins, since each thread clears and adds a table.
inline constexpr std::int64_t max_bins = 1 << 22;

/// Calls f(args, range) for parts of x so small that no 32-bit counter overflows; from the second
/// part on args accumulates. An empty x has one part.
template <class F>
void for_each_round(const Histogram::Args& args, const F& f) {
  constexpr std::int64_t round = std::int64_t{1} << 31;
  Histogram::Args part = args;
  for (std::int64_t begin = 0; begin == 0 || begin < args.size(); begin += round) {
    f(part, cpu::Range{begin, std::min(begin + round, args.size())});
    part.accumulate = true;
  }
}

/// Stores of(b) to counts[b], or adds it if args accumulates, for the bins of `range`.
template <class Of>
void store_counts(const Histogram::Args& args, cpu::Range range, const Of& of) {
  visit<std::int32_t, std::int64_t>(args.counts.dtype, [&]<class C>() {
    const auto counts = args.counts.view<C, 1>();
    // unsigned: a wrapping sum must not overflow a signed type
    using Bits = std::make_unsigned_t<C>;
    for (std::int64_t b = range.begin; b < range.end; ++b) {
      const auto old = args.accumulate ? static_cast<Bits>(counts(b)) : Bits{0};
      counts(b) = static_cast<C>(old + static_cast<Bits>(of(b)));
    }
  });
}

inline std::string_view bins_path(const Histogram::Args& args) {
  const bool wide = args.counts.dtype == DType::i64;
  if (!args.even()) return "edges";
  if (args.x.dtype == DType::u8) return wide ? "u8 wide" : "u8";
  return is_floating(args.x.dtype) ? wide ? "floats wide" : "floats" : wide ? "wide" : "";
}

/// Returns the work of any of the rungs: per bin, clearing and adding the tables of `threads`
/// threads; per element, finding its bin, by a search if edges are given.
inline Work count_work(const Histogram::Args& args, int threads) {
  Work work = cpu::piece_work(args.bins(), args.size(), threads, bins_path(args));
  if (!args.even())
    work.operations = args.size() * std::bit_width(static_cast<std::uint64_t>(args.bins()));
  return work;
}

}  // namespace rung::histogram_cpu
