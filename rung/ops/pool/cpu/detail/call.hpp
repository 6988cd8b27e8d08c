// SPDX-License-Identifier: Apache-2.0
// What a thread of pool's separable rungs works on: the call, its share of the output rows, and
// memory of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/pool/op/pool.hpp"

namespace rung::pool_cpu {

/// Along which axis vectors lie.
enum class Along : std::uint8_t {
  rows,      // W: an output row of an image at a time
  channels,  // C, contiguous: an output row of all channels at a time
};

/// Elements that lines are longer than what they hold, so that full vectors (16 f32 at most, twice
/// as many where every second element is taken) may be read behind their end.
inline constexpr std::int64_t slack = 64;

/// Largest line, or lines of a window, per thread, and largest copy of weights, in elements.
inline constexpr std::int64_t max_line_elements = 1 << 17;
/// Length of the line of a block of windows: 32 KiB of f32. Rows of images are rarely longer.
inline constexpr std::int64_t block_line_elements = 1 << 13;
/// Windows, or channels, whose results are kept together where no line is.
inline constexpr std::int64_t block_results = 1 << 12;

/// Division of a call. A thread's scratch() is bounded by a constant, whatever the extents are:
/// x and weights may be broadcast, so that a multiple of an extent is no multiple of what is read.
struct Call {
  /// finite_weights: whether all weights are; padding is then a number like others.
  Call(const Pool::Args& call_args, Along along_axis, bool finite_weights)
      : args(&call_args), along(along_axis), windows(call_args.columns.out) {
    const std::int64_t kept = std::max<std::int64_t>(1, kept_lines());
    const std::int64_t shortest = span() + 3 * slack;  // at least line() of one window
    direct = args->kind() == Pooling::weighted && args->taps() > max_line_elements;
    if (along == Along::rows) direct |= !finite_weights || kept > max_line_elements / shortest;
    if (direct || along == Along::channels) {
      windows = std::min(windows, block_results);
      return;
    }
    // Blocks join what both of two span twice: they are at least as long as that.
    const std::int64_t longest =
        std::min(std::max(block_line_elements / kept, 2 * span()), max_line_elements / kept);
    windows = std::clamp<std::int64_t>((longest - span()) / args->columns.stride + 1, 1, windows);
  }

  const Pool::Args* args;
  Along along;
  std::int64_t windows;  // of an output row that are done together: a block
  /// True if elements of x and weights are read tap by tap: lines or weights would be too long, or
  /// padding times a weight is not 0.
  bool direct;
  // In the arithmetic type, contiguous; null where there are none.
  const void* weights = nullptr;  // unless direct
  const void* bias = nullptr;     // along the channels

  [[nodiscard]] bool separable() const {
    return args->kind() != Pooling::weighted && !args->has_indices();
  }
  /// Output rows that threads share.
  [[nodiscard]] std::int64_t units() const {
    return args->images() * args->rows.out * (along == Along::rows ? args->channels() : 1);
  }
  /// Columns from the first tap of a window to its last one.
  [[nodiscard]] std::int64_t span() const {
    return (args->columns.kernel - 1) * args->columns.dilation + 1;
  }
  /// Elements of a line: what the windows of a block span, padding included.
  [[nodiscard]] std::int64_t used() const { return (windows - 1) * args->columns.stride + span(); }
  /// From a line to the next one where several are joined: windows go on from one to the other.
  [[nodiscard]] std::int64_t pitch() const { return round_up(used(), args->columns.stride); }
  /// Output rows of an image whose lines are one behind the other: of short ones, many.
  [[nodiscard]] std::int64_t rows_at_once() const {
    constexpr std::int64_t elements = 1024;
    if (along != Along::rows || direct || !separable()) return 1;
    return std::clamp<std::int64_t>(elements / pitch(), 1,
                                    std::max<std::int64_t>(1, args->rows.out));
  }
  /// Elements of a line, or of those that are one behind the other, and of what is read behind.
  [[nodiscard]] std::int64_t line() const {
    const std::int64_t all = (rows_at_once() - 1) * pitch() + used();
    return round_up(all + 2 * slack, slack);
  }
  /// Lines that are kept: one of column sums or maxima, or all of a window.
  [[nodiscard]] std::int64_t lines() const { return direct ? 0 : kept_lines(); }
  /// Of results, of positions and of divisors.
  [[nodiscard]] std::int64_t results() const {
    std::int64_t most = windows;
    if (along == Along::channels) most = std::max(most, std::min(args->channels(), block_results));
    if (rows_at_once() > 1) {
      most = std::max(most, rows_at_once() * ceil_div(pitch(), args->columns.stride));
    }
    return round_up(most + slack, slack);
  }
  /// Elements of the arithmetic type that a thread needs for itself.
  [[nodiscard]] std::int64_t scratch() const { return lines() * line() + 3 * results(); }

 private:
  [[nodiscard]] std::int64_t kept_lines() const {
    return along == Along::channels ? 0 : separable() ? 1 : args->rows.kernel;
  }
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
