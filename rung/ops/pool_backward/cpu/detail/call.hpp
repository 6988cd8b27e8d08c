// SPDX-License-Identifier: Apache-2.0
// What a thread of pool_backward's gathering rungs works on: the call, its share of the rows of dx,
// and memory of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/pool_backward/op/pool_backward.hpp"

namespace rung::pool_backward_cpu {

/// Windows, or channels, that are done together: what is kept of them has a constant size.
inline constexpr std::int64_t block_size = 1 << 12;

/// A thread's scratch() is a constant and at most two rows of dx, in the arithmetic type. No thread
/// is without a row of its own, so that all of it is at most four times dx and a constant per
/// thread.
struct Call {
  const PoolBackward::Args* args = nullptr;
  bool along_channels = false;  // contiguous in every tensor: a row of all channels at a time

  /// Rows of dx that threads share.
  [[nodiscard]] std::int64_t units() const {
    return args->images() * args->rows.in * (along_channels ? 1 : args->channels());
  }
  [[nodiscard]] std::int64_t windows() const { return std::min(args->columns.out, block_size); }
  /// Channels that are done together along them.
  [[nodiscard]] std::int64_t channels() const { return std::min(args->channels(), block_size); }
  /// Elements of dy, of quotients or y, and of divisors. Full vectors may be read behind them.
  [[nodiscard]] std::int64_t line() const {
    return padded(along_channels ? std::max(windows(), channels()) : windows());
  }
  static constexpr std::int64_t lines = 3;
  /// Elements of x that are kept.
  [[nodiscard]] std::int64_t x_line() const {
    if (args->kind() != Pooling::l2) return 0;
    return padded(along_channels ? channels() : args->columns.in);
  }
  /// Rows of dx whose sums are in L1 together. Of maxima several: a window gives to one of its
  /// rows, and would otherwise be looked at for each of them.
  [[nodiscard]] std::int64_t rows_at_once() const {
    constexpr std::int64_t elements = 4096;
    if (along_channels || args->kind() != Pooling::max) return 1;
    return std::clamp<std::int64_t>(elements / args->columns.in, 1, args->rows.in);
  }
  [[nodiscard]] std::int64_t sums() const {
    return padded(args->columns.in * (along_channels ? channels() : rows_at_once()));
  }
  [[nodiscard]] std::int64_t scratch() const { return lines * line() + x_line() + sums(); }

 private:
  static std::int64_t padded(std::int64_t elements) {
    constexpr std::int64_t slack = 16;
    return round_up(elements + slack, slack);
  }
};

struct Share {
  const Call* call = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  void* scratch = nullptr;  // scratch() elements of the arithmetic type
};

/// For the instruction set of this machine; in kernels.cpp.
void work(const Share& share);

/// Runs the call on up to `threads` threads.
void gather_on(const PoolBackward::Args& args, Context& context, int threads);

/// Estimated seconds of that. Independent of the number of threads, as the choice must be: naive
/// adds in another order.
double seconds(const PoolBackward::Args& args);

}  // namespace rung::pool_backward_cpu
