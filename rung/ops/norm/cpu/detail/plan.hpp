// SPDX-License-Identifier: Apache-2.0
// The numbers of a row on their way from its elements to its scale, and what the vector kernels of
// norm are given. No vector code here.
#pragma once

#include <cmath>
#include <cstdint>

#include "rung/ops/norm/op/lines.hpp"

namespace rung::norm_cpu {

/// Elements of a row whose statistics are taken together: the second pass over them finds them in
/// L1 (16 KiB of f32), and no sum within them is long. Results depend on it, not on the threads.
constexpr std::int64_t block = 4096;
constexpr std::int64_t blocks_of(std::int64_t n) { return (n + block - 1) / block; }

/// About `center`, a rounded mean: what is left of the mean, rest = sum(s - center), and
/// squares = sum((s - center)^2). RMS norm has center = rest = 0.
template <class V>
struct Moments {
  V center;
  V rest;
  V squares;
};

/// z = (s - center) rstd + shift. The mean is center + rest / n, more digits than V has: shift
/// carries those that center could not.
template <class V>
struct Scale {
  V center;
  V rstd;
  V shift;
  V mean;
};

template <class V>
V rstd_of(V variance, double epsilon) {
  // Not below zero through rounding; a NaN must stay one.
  const V positive = variance < 0 ? V{0} : variance;
  return 1 / std::sqrt(positive + static_cast<V>(epsilon));
}

/// Of a row that is one block.
template <class V>
Scale<V> scale_of(const Moments<V>& moments, std::int64_t n, double epsilon) {
  const V part = 1 / static_cast<V>(n);
  const V rest = moments.rest * part;
  // 0 * infinity, n = 0, is the NaN that it should be.
  const V rstd = rstd_of(moments.squares * part - rest * rest, epsilon);
  return {moments.center, rstd, -rest * rstd, moments.center + rest};
}

/// The same of several blocks, [n elements each, the last one fewer], from their means and sums of
/// squares about them: in double, so that only what happens within a block has rounding to speak
/// of.
struct BlockMoments {
  double mean;
  double squares;
};
template <class V>
BlockMoments block_moments(const Moments<V>& moments, std::int64_t n) {
  const double rest = static_cast<double>(moments.rest) / static_cast<double>(n);
  return {static_cast<double>(moments.center) + rest,
          static_cast<double>(moments.squares) - static_cast<double>(moments.rest) * rest};
}
template <class V>
Scale<V> scale_of(const BlockMoments* blocks, std::int64_t n, NormKind kind, double epsilon) {
  const std::int64_t count = blocks_of(n);
  const auto length = [&](std::int64_t b) {
    return static_cast<double>(b + 1 < count ? block : n - b * block);
  };
  double mean = 0;
  double squares = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    mean += blocks[b].mean * length(b);
    squares += blocks[b].squares;
  }
  mean /= static_cast<double>(n);
  if (kind == NormKind::layer) {
    for (std::int64_t b = 0; b < count; ++b) {
      const double distance = blocks[b].mean - mean;
      squares += length(b) * distance * distance;
    }
  }
  const auto rstd = static_cast<V>(rstd_of(squares / static_cast<double>(n), epsilon));
  const auto center = static_cast<V>(mean);
  const auto rest = static_cast<V>(mean - static_cast<double>(center));
  return {center, rstd, -rest * rstd, center};
}

/// How the memory of a call lies.
enum class Access : std::uint8_t {
  along,    // rows are contiguous: vectors along them
  across,   // rows are adjacent: a vector holds an element of each of several rows
  gathered  // neither: a row is copied into contiguous memory and back
};

/// A call as the kernels see it.
struct Call {
  const Norm::Args* args = nullptr;
  norm_lines::Lines lines;
  Access access = Access::along;
  std::int64_t n = 0;              // elements per row
  std::int64_t adjacent_rows = 1;  // across: rows that are neighbours in memory
  bool streams = false;            // y is not in a cache when it is read next
  const void* gamma = nullptr;     // contiguous, in the arithmetic type; or null
  const void* beta = nullptr;
};

/// Rows [begin, end), of every step one thread does alone. `scratch`: two rows, where gathered.
struct RowsJob {
  const Call* call;
  std::int64_t begin;
  std::int64_t end;
  void* scratch;
};

/// A part of rows that threads share: the statistics of blocks [begin, end) of all the rows', in C
/// order, or y from them.
struct BlocksJob {
  const Call* call;
  std::int64_t begin;
  std::int64_t end;
  BlockMoments* moments;  // of every block of every row
};

}  // namespace rung::norm_cpu
