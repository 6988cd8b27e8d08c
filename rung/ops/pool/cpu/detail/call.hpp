// SPDX-License-Identifier: Apache-2.0
// What a thread of pool's separable rungs works on: the call, its share of the output rows, and
// memory of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/pool/pool.hpp"

namespace rung::pool_cpu {

/// Along which axis vectors lie.
enum class Along : std::uint8_t {
  rows,      // W: an output row of an image at a time
  channels,  // C, contiguous: an output row of all channels at a time
};

/// Elements that lines are longer than what they hold, so that full vectors (16 f32 at most, twice
/// as many where every second element is taken) may be read behind their end.
inline constexpr std::int64_t slack = 64;

struct Call {
  const Pool::Args* args = nullptr;
  Along along = Along::rows;
  // In the arithmetic type, contiguous; null where there are none.
  const void* weights = nullptr;
  const void* bias = nullptr;

  [[nodiscard]] bool separable() const {
    return args->kind() != Pooling::weighted && !args->has_indices();
  }
  /// Output rows that threads share.
  [[nodiscard]] std::int64_t units() const {
    return args->images() * args->rows.out * (along == Along::rows ? args->channels() : 1);
  }
  /// Elements of a line of x with its padding.
  [[nodiscard]] std::int64_t used() const {
    const PoolAxis& columns = args->columns;
    const std::int64_t read = columns.start(columns.out - 1) + columns.padding +
                              (columns.kernel - 1) * columns.dilation + 1;
    return std::max(columns.padding + columns.in, read);
  }
  /// From a line to the next one where several are joined: windows go on from one to the other.
  [[nodiscard]] std::int64_t pitch() const { return round_up(used(), args->columns.stride); }
  /// Output rows of an image whose lines are one behind the other: of short ones, many.
  [[nodiscard]] std::int64_t rows_at_once() const {
    constexpr std::int64_t elements = 1024;
    if (along != Along::rows || !separable()) return 1;
    return std::clamp<std::int64_t>(elements / pitch(), 1,
                                    std::max<std::int64_t>(1, args->rows.out));
  }
  /// Elements of a line, or of those that are one behind the other, and of what is read behind.
  [[nodiscard]] std::int64_t line() const {
    const std::int64_t all = (rows_at_once() - 1) * pitch() + used();
    return round_up(all + 2 * slack, slack);
  }
  /// Lines that are kept: one of column sums or maxima, or all of a window.
  [[nodiscard]] std::int64_t lines() const {
    return along == Along::channels ? 0 : separable() ? 1 : args->rows.kernel;
  }
  /// Of results, of positions and of divisors.
  [[nodiscard]] std::int64_t results() const {
    const std::int64_t of_rows =
        along == Along::rows ? rows_at_once() * ceil_div(pitch(), args->columns.stride) : 0;
    return round_up(std::max({args->columns.out, args->channels(), of_rows}) + slack, slack);
  }
  /// Elements of the arithmetic type that a thread needs for itself.
  [[nodiscard]] std::int64_t scratch() const { return lines() * line() + 3 * results(); }
};

/// A share of the output rows, in the call's scratch() elements at `scratch`.
struct Share {
  const Call* call = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  void* scratch = nullptr;
};

/// For the instruction set of this machine; in kernels.cpp.
void work(const Share& share);

/// Pools on up to `threads` threads.
void pool_on(const Pool::Args& args, Context& context, int threads);

/// Whether several threads take part in pool_on().
bool worth_sharing(const Pool::Args& args);
/// Estimated seconds of pool_on(). Independent of the number of threads, as the choice must be:
/// simd and naive add in other orders.
double seconds(const Pool::Args& args);

}  // namespace rung::pool_cpu
