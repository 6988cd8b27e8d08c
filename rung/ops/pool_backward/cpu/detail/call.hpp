// SPDX-License-Identifier: Apache-2.0
// What a thread of pool_backward's gathering rungs works on: the call, its share of the rows of dx,
// and memory of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/pool_backward/pool_backward.hpp"

namespace rung::pool_backward_cpu {

struct Call {
  const PoolBackward::Args* args = nullptr;
  bool along_channels = false;    // contiguous in every tensor: a row of all channels at a time
  const void* weights = nullptr;  // in the arithmetic type, contiguous

  /// Rows of dx that threads share.
  [[nodiscard]] std::int64_t units() const {
    return args->images() * args->rows.in * (along_channels ? 1 : args->channels());
  }
  /// Elements of a line: a row of dx, or of pooled numbers. Full vectors may be read behind them.
  [[nodiscard]] std::int64_t line() const {
    constexpr std::int64_t slack = 16;
    std::int64_t longest = std::max(args->columns.in, args->columns.out);
    if (along_channels) longest = std::max(args->columns.in * args->channels(), longest);
    return round_up(longest + slack, slack);
  }
  static constexpr std::int64_t lines = 5;

  /// Rows of dx whose sums are in L1 together. Of maxima several: a window gives to one of its
  /// rows, and would otherwise be looked at for each of them.
  [[nodiscard]] std::int64_t rows_at_once() const {
    constexpr std::int64_t elements = 4096;
    if (along_channels || args->kind() != Pooling::max) return 1;
    return std::clamp<std::int64_t>(elements / args->columns.in, 1, args->rows.in);
  }
  [[nodiscard]] std::int64_t scratch() const {
    return lines * line() + (rows_at_once() - 1) * args->columns.in;
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
