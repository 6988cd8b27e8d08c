// SPDX-License-Identifier: Apache-2.0
// Rows of dx as units of work, and the scratch memory of a thread that gathers some of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/core/require.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/pool_backward/op/pool_backward.hpp"

namespace rung::pool_backward_cpu {

/// Number of windows, or channels, processed together; bounds the scratch memory for them.
inline constexpr std::int64_t block_size = 1 << 12;

/// Lengths of a thread's lines, in elements of the arithmetic type; their sum is at most a constant
/// plus two rows of dx.
struct GatherLines {
  std::int64_t units;         // rows of dx, of one channel or of all
  bool along_channels;        // contiguous in every tensor: a row of all channels at a time
  std::int64_t rows_at_once;  // rows whose sums fit in L1 together
  std::int64_t windows;       // length of the lines of dy, of quotients or y, and of divisors
  std::int64_t x;
  std::int64_t sums;

  explicit GatherLines(const PoolBackward::Args& args) {
    constexpr std::int64_t min_channels = 8;  // fewer leave most of a vector idle
    const PoolBackwardOptions& options = args.options;
    along_channels = args.channels() >= min_channels;
    for (const ConstTensorRef& tensor :
         {ConstTensorRef(args.dx), args.dy, options.indices, options.x, options.y}) {
      along_channels = along_channels && (!is_given(tensor) || tensor.strides[1] == 1);
    }
    const std::int64_t channels = along_channels ? std::min(args.channels(), block_size) : 1;
    const std::int64_t width = args.columns.in * channels;
    constexpr std::int64_t l1_elements = 4096;
    rows_at_once = along_channels || args.kind() != Pooling::max
                       ? 1
                       : std::clamp<std::int64_t>(l1_elements / width, 1, args.rows.in);
    units = args.images() * args.rows.in * (along_channels ? 1 : args.channels());
    windows = padded(std::max(std::min(args.columns.out, block_size), channels));
    x = args.kind() != Pooling::l2 ? 0 : padded(along_channels ? channels : width);
    sums = padded(width * rows_at_once);
  }
  [[nodiscard]] std::size_t bytes(DType type) const {
    constexpr std::size_t cache_line = 64;
    const std::size_t element = type == DType::f64 ? 8 : 4;
    return round_up(static_cast<std::size_t>(3 * windows + x + sums) * element, cache_line);
  }

 private:
  static std::int64_t padded(std::int64_t elements) {
    constexpr std::int64_t slack = 16;
    return round_up(elements + slack, slack);
  }
};

/// Computes a range of units on the calling thread, with bytes() of scratch memory. Defined in 020.
void gather_rows(const PoolBackward::Args& args, cpu::Range units, std::byte* scratch);

/// Returns the number of threads that amortize their wake-up; facts() returns the call's work for
/// the time model. Defined in 020.
int threads_of(const PoolBackward::Args& args, const Context& context);
Work facts(const PoolBackward::Args& args, int threads);

}  // namespace rung::pool_backward_cpu
